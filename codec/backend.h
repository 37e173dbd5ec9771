// The seam between the codec and the hardware: whole GOPs go in, coded GOPs come out, and back.
//
// A backend transforms, quantises and codes. Files, rate decisions and the container exist once, outside of the
// backends, and do not depend on which backend runs. All backends give the same bytes. A backend may work ahead: push()
// can return before the work is done, and pull() delivers in the order of the pushes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/entropy/fast/size_estimate.h"
#include "codec/format/chunk.h"
#include "codec/format/stream_geometry.h"
#include "codec/motion/level_choice.h"
#include "codec/threads/parallel.h"
#include "trivelet/coefficients.h"

namespace trivelet {

struct BackendOptions {
  int threads = 0;
  SimdLevel simd = SimdLevel::kBest;
  Effort effort = Effort::kMedium;
  Workers workers{};
  bool keys_in_place = false;  ///< keys are predicted without motion (MotionSearchParams)
  /// Every GOP is coded once, and the encoder decides how the next GOP begins before it knows whether this one has
  /// motion.
  bool lookahead = false;
  /// The most GOPs that the CPU codes at the same time (gop_lanes.h). They are pushed one after the other, each once.
  int lanes = 1;
  /// True: CodedGop::samples works for the last GopEncoder::depth() GOPs that were pulled. False: only until the GOP is
  /// given back.
  bool keeps_samples = false;
  /// Encoders on the CPU: the geometry of GOPs of `frames` frames, for it takes milliseconds to make. `header`: as
  /// StreamHeader::describe_gop() describes them. Null: the encoder makes its own. Several threads may call it.
  std::function<std::shared_ptr<const StreamGeometry>(const StreamHeader& header, int frames)> geometry = nullptr;
};

/// What an encoder decides about a GOP before it is coded.
struct GopChoices {
  float step = 1;                         ///< quantiser step; ignored for lossless streams
  float still_step = 0;                   ///< the step instead, if a GOP gets no motion that might have it; 0: `step`
  std::vector<std::uint8_t> frame_gains;  ///< GopHeader::frame_gains
  Motion motion = Motion::kOff;           ///< streams with motion only
  GopKey key = GopKey::kFirst;            ///< of a GOP with motion. kOpen: the GOP before has left a key frame, …
  GopKey key_if_closed = GopKey::kFirst;  ///< … or leaves one if it has motion. This is the key to use if it has none
  int levels = 0;                         ///< temporal levels of a GOP with motion
  /// There is a target, so the GOP may be coded again. Fast profile: deliver PassTables and one part per plane, no
  /// layers.
  bool passes = false;
  /// Fast profile: deliver one part per plane, no layers. PassTables are not needed.
  bool by_plane = false;
  /// Dense profile: do not code the refinement of the last plane. It gains about 2 step^2 of squared error a byte,
  /// which is too little for a target that the planes before nearly meet.
  bool spare_last_pass = false;
  /// Lossy coefficients are rounded by error and bits for a quantiser step of this size (rounding.h); 0: not rounded.
  float rounding_step = 0;
  /// The choices for a GOP that has no motion.
  GopChoices without_motion() const {
    GopChoices still = *this;
    if (still_step > 0) {
      still.step = still_step;
      if (rounding_step > 0) still.rounding_step = still_step;
    }
    still.still_step = 0;
    return still;
  }
  /// The key to use; `left_key`: the GOP before has left a key frame.
  GopKey key_behind(bool left_key) const { return key == GopKey::kOpen && !left_key ? key_if_closed : key; }
  /// The key that the motion search uses. A GOP that is closed only because the GOP before left no key is searched as
  /// an open one: the search can then start before that is known. without_before() of motion_search.h turns the result
  /// into closed motion. This works where frames have the same places in both cases.
  GopKey search_key(bool left_key) const { return key_behind(left_key) == GopKey::kFirst ? GopKey::kFirst : key; }
};

/// The common part of GopEncoder and GopDecoder: GOPs in flight, and times.
class GopWorker {
 public:
  virtual ~GopWorker() = default;
  /// GOPs that the backend wants in flight before the first pull.
  virtual int depth() const = 0;
  /// Whether the next pull() returns without waiting; false where that is not known.
  virtual bool is_ready() { return false; }
  virtual double seconds_transform() const = 0;
  virtual double seconds_coder() const = 0;
  /// The same times, summed over all threads.
  virtual double busy_transform() const { return seconds_transform(); }
  virtual double busy_coder() const { return seconds_coder(); }
  /// The host threads that do the work; null where a device does it, or where lanes do (gop_lanes.h).
  virtual const ThreadPool* pool() const { return nullptr; }
  virtual bool has_lanes() const { return false; }
};

class GopEncoder : public GopWorker {
 public:
  /// The most GOPs that were pulled and may still be in use by other threads. 0: the caller is done with a pulled GOP
  /// before it calls the encoder again.
  virtual int outstanding() const { return 0; }
  /// The encoder may read `gop` until it is pulled, or until wait_for_samples() returns.
  virtual void push(const Gop& gop, const GopChoices& choices) = 0;
  /// Frame gains and motion are those of `coefficients`; those of `choices` are ignored.
  virtual void push(CoefficientGop& coefficients, const GopChoices& choices) = 0;
  /// Makes the coefficients of a GOP without coding them.
  virtual void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) = 0;
  /// Codes the samples of the last push again. GOP and frame gains are the same, and choices.passes is set both times.
  /// Or codes the GOP that was estimated last.
  virtual void push_again(const Gop& gop, const GopChoices& choices) { push(gop, choices); }
  /// Makes the coefficients of a GOP and estimates the size of its first estimated_components() at steps from
  /// choices.step on. push_again() then codes the GOP; before, other steps may be estimated (`again`). Only for lossy
  /// streams of the fast profile without motion.
  virtual SizeEstimate estimate_sizes(const Gop&, const GopChoices&, bool /*again*/) {
    fail(ErrorKind::kInternal, "a backend that estimates no sizes");
  }
  /// The mean squared error of the last coded GOP as a decoder reconstructs it when its segments end at these
  /// truncation points (rate_control.h). The GOP was coded with choices.passes, rounding_step or motion. Negative where
  /// decoding is the fastest way to find the error.
  virtual double squared_error(const Gop&, const GopChoices&, const std::vector<std::uint8_t>& /*cuts*/) { return -1; }
  /// False when no GOP is pending. Grids in `out` stay valid as long as the encoder.
  virtual bool pull(CodedGop& out) = 0;
  /// The choice of choose_levels() for the GOP that is pushed next, where a device makes it; nullopt: the caller must.
  virtual std::optional<LevelChoice> choose_levels(const Gop&, int /*most*/) { return std::nullopt; }
  /// Returns when the encoder will not read any pushed sample again.
  virtual void wait_for_samples() noexcept {}
};

class GopDecoder : public GopWorker {
 public:
  /// `received` and the bytes it points to must stay alive until the GOP is pulled. With `damage`, a block with
  /// contradictory data becomes zero and is named there; without it, such a block throws BadStream.
  virtual void push(const LayeredGop& received, std::vector<std::string>* damage) = 0;
  /// Decodes into samples of the reduced size; sets gop.frames(). With LayeredGop::no_samples there may be none.
  virtual bool pull(Gop& gop) = 0;
  /// Like pull(); `gop` may come back with other memory, of the kind that Backend::allocate makes.
  virtual bool exchange(Gop& gop) { return pull(gop); }
  virtual bool pull(CoefficientGop& coefficients) = 0;
  virtual void inverse(CoefficientGop& coefficients, Gop& gop) = 0;
};

struct Backend {
  const char* name;
  std::function<std::unique_ptr<GopEncoder>(const StreamHeader&, const BackendOptions&)> make_encoder;
  std::function<std::unique_ptr<GopDecoder>(const StreamHeader&, const Reduction&, const BackendOptions&)> make_decoder;
  /// Makes memory that an encoder reads and a decoder writes without a copy in between; null: any memory is as good.
  SampleAllocator allocate = nullptr;
  /// The geometry of GOPs of `frames` frames, kept for several streams, since it takes milliseconds to make. `header`
  /// comes from StreamHeader::describe_gop(). Null: every stream makes its own. Any thread may call it.
  std::function<std::shared_ptr<const StreamGeometry>(const StreamHeader&, int frames)> geometry = nullptr;
  /// hash_samples() (gop_hash.h) of the GOP with this number in the stream, asked when it was pulled, for GOPs whose
  /// samples the host cannot read; all of these fit the bits of the stream. Null: the host reads them.
  std::function<std::uint64_t(std::uint64_t number)> hash = nullptr;
};

const Backend& cpu_backend();

/// Whether `a` can take the place of `b`: capacity, components and sizes are equal, and neither has separate frames.
inline bool are_alike(const Gop& a, const Gop& b) {
  if (a.capacity() != b.capacity() || a.components() != b.components()) return false;
  for (int c = 0; c < a.components(); ++c) {
    const VolumeView v = a.plane(c), w = b.plane(c);
    if (v.frames || v.shape.height != w.shape.height || v.shape.width != w.shape.width ||
        v.bytes_per_sample != w.bytes_per_sample)
      return false;
  }
  return true;
}

}  // namespace trivelet
