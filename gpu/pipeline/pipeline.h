// GOPs through the device: several in flight, each in a slot with a stream, page-locked and device memory. Upload,
// kernels and download of different slots overlap; nothing is allocated for a GOP.
//
// The caller fills a slot (staging), submits it, and collects slots in the order of submission. Slots are created while
// all others are in flight, up to the wanted number or the limits `max_memory` and of the device; none at all is an
// error. A shorter last GOP changes its slot only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codec/backend.h"
#include "gpu/entropy/dense.h"
#include "gpu/entropy/zerotree.h"
#include "gpu/pipeline/stage_times.h"
#include "gpu/plan/gop_shape.h"

namespace trivelet {
class ThreadPool;
}

namespace trivelet::gpu {

struct PipelineOptions {
  int device = 0;
  int slots = 3;
  std::size_t max_memory = 0;  ///< device memory in all; 0: three quarters of the free memory
  int outstanding = 0;         ///< results of an encoder that are still used when the next is collected
  bool frames_stay = false;    ///< a decoder leaves frames in device memory
  bool keeps_samples = false;  ///< as BackendOptions has it, of as many GOPs as there are slots
};

/// Moves a fitting slot to position `next` of `free`: one that was made for GOPs of this shape, because changing a slot
/// takes milliseconds; otherwise one for shorter GOPs than most, which scene cuts and ends of films leave.
template <class Slot>
void choose_slot(std::vector<std::unique_ptr<Slot>>& slots, std::size_t next, std::size_t free, const GopShape& shape,
                 int usual_frames) {
  const auto place = [&](std::size_t i) -> std::unique_ptr<Slot>& { return slots[(next + i) % slots.size()]; };
  const auto rank = [&](std::size_t i) {
    const GopShape* made_for = place(i)->shape;
    return made_for == &shape ? 0 : made_for == nullptr || made_for->frames < usual_frames ? 1 : 2;
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < free; ++i)
    if (rank(i) < rank(best)) best = i;
  if (best > 0) std::swap(place(0), place(best));
}

class EncodePipeline {
 public:
  /// `pool`, if there is one, assembles the motion for the device. Only submit() uses it; it must outlive the pipeline.
  EncodePipeline(const StreamHeader& header, const PipelineOptions& options, ThreadPool* pool = nullptr);
  ~EncodePipeline();

  /// Most GOPs in flight: the wanted number, or fewer once memory turned out to be too small.
  int slots() const;
  /// Page-locked memory for the samples of the next GOP: components one after the other, frames and rows without gaps.
  /// Does not wait; all slots but one may be in flight.
  std::byte* staging(int frames, const GopChoices& choices, const GopMotion* motion = nullptr);
  /// Codes the GOP in staging(), or in `samples`, which must be in page-locked or device memory and unchanged until the
  /// event `read`, which is recorded after the last use, has passed. `motion`, if there is one, is not needed
  /// afterwards. `weighed`: it is the GOP weighed last, along that motion.
  void submit(int frames, const GopChoices& choices, const std::byte* samples = nullptr,
              const GopMotion* motion = nullptr, const Event* read = nullptr, bool weighed = false);
  /// Codes frames in place: is_page_locked(gop). They are read until wait_uploaded() returns.
  void submit(const Gop& gop, const GopChoices& choices, const GopMotion* motion = nullptr);
  /// Transforms a GOP in page-locked memory, or in staging() where `gop` is null, and estimates its size at steps from
  /// `step` on. `again`: the GOP that was estimated last, with the same choices. Nothing may be in flight.
  SizeEstimate estimate_sizes(int frames, const GopChoices& choices, float step, const Gop* gop, bool again);
  /// Allocates the memory of all slots for this many GOPs like this one.
  void reserve(std::uint64_t gops, int frames, const GopChoices& choices, const GopMotion* motion = nullptr);
  /// The next GOPs follow the one submitted last, which may have been submitted several times.
  void next_gop();
  /// Starts to estimate the bits of a GOP without this motion, with Motion::kAuto, and with it, and with predicted keys
  /// and without them, if it has their motion. The GOP must be submitted next; `samples` are its samples on the device.
  void weigh(int frames, const GopChoices& choices, const std::byte* samples, const GopMotion& motion);
  /// Whether weighed() has nothing to wait for.
  bool is_weighed() const;
  /// Removes what does not pay of the motion that a GOP was weighed with: all, which leaves null, or that of keys.
  void weighed(const GopChoices& choices, std::shared_ptr<GopMotion>& motion) const;
  void wait_uploaded() noexcept;
  int in_flight() const;

  struct Result {
    const GopShape* shape = nullptr;
    const std::uint32_t* tops = nullptr;  ///< [segment]
    const std::uint32_t* bits = nullptr;  ///< fast: [segment * layers + layer]
    const std::uint8_t* bytes = nullptr;  ///< parts in the order of TreePlan::part_order(); dense: segments in order
    DenseGopEncoder::Meta dense{};        ///< dense profile only
    bool spares = false;                  ///< its last passes are not coded
    const double* gains = nullptr;        ///< fast by plane: as FastPassTable::gains()
    int planes = 0;                       ///< of those
    std::uint64_t total = 0;
    StageTimes times;
    std::shared_ptr<const DeviceBuffer<std::byte>> samples{};  ///< on the device, as long as this is held
  };
  /// Waits for the oldest GOP; false if none is in flight. The result, except for its samples, is valid until
  /// PipelineOptions::outstanding more are collected and another GOP is submitted.
  bool collect(Result& result);
  /// Whether collect() has one and nothing to wait for.
  bool is_ready() const;
  /// Copies the samples of a result, from frame `first` on, from the device; any thread may.
  void fetch_samples(const Result& result, Gop& gop, int first) const;
  std::size_t device_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a decoder leaves frames in: page-locked memory, or the device's.
SampleAllocator frame_memory(const PipelineOptions& options);

/// Where every part of a result begins; scratch memory of unpack().
using PartPlaces = std::vector<std::size_t>;
/// A result for the container. Bytes are not copied: `out` is valid as long as the result.
void unpack(const StreamHeader& header, const EncodePipeline::Result& result, PartPlaces& places, CodedGop& out);

class DecodePipeline {
 public:
  /// `pool` assembles the input of the device. Only submit() uses it; it must outlive the pipeline.
  DecodePipeline(const StreamHeader& header, const Reduction& reduction, const PipelineOptions& options,
                 ThreadPool& pool);
  ~DecodePipeline();
  int slots() const;
  int in_flight() const;
  /// Uploads the received data and decodes them.
  void submit(const LayeredGop& received);

  struct Result {
    const GopShape* shape = nullptr;
    std::unique_ptr<Gop> frames;      ///< as frame_memory() makes it, for the longest GOP; times are not set
    std::vector<std::string> damage;  ///< blocks that contradict themselves; they are zero
    StageTimes times;
  };
  /// Waits for the oldest GOP; false when none is in flight.
  bool collect(Result& result);
  /// Whether collect() has one and nothing to wait for.
  bool is_ready() const;
  /// Result::frames, or others of the same kind: before the next collect().
  void give_back(std::unique_ptr<Gop> frames);
  std::size_t device_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::gpu
