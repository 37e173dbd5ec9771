// The search for motion on the device (codec/motion/motion_search.h). It makes the CPU's choices, to the last bit of
// their costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/motion/motion_search.h"
#include "codec/motion/motion_tree.h"
#include "gpu/device/device.h"

namespace trivelet::gpu {

class DeviceMotionSearch final : public MotionSearcher {
 public:
  /// `memory`: that all of it should find room in; see has_room().
  DeviceMotionSearch(const StreamHeader& header, int device, std::size_t memory);
  ~DeviceMotionSearch() override { forget(cudaStreamSynchronize(stream_.get())); }
  /// Whether it does. Without room nothing is allocated, and nothing can be searched.
  bool has_room() const { return pictures_ >= kFewestPictures; }
  std::size_t device_bytes() const;

  GopMotion search(const Gop& gop, GopKey key, const std::int32_t* before, const MotionSearchParams& params) override;

  /// The same in two steps: begin() returns at once, end() waits. `gop` is read until wait_uploaded() returns.
  /// `before`: the search of the GOP before, which must not begin another one in between; null except for open GOPs.
  void begin(const Gop& gop, GopKey key, DeviceMotionSearch* before, const MotionSearchParams& params);
  /// Takes a GOP's samples and finds nothing; there is no end().
  void keep(const Gop& gop) {
    upload_samples(gop);
    done_.record(stream_);
  }
  /// Begins the search again, after its end(), for a GOP that is not open after all.
  void again(GopKey key);
  void wait_uploaded() const noexcept { forget(cudaEventSynchronize(uploaded_.get())); }
  bool is_done() const { return done_.is_reached(); }
  GopMotion end(ThreadPool* pool = nullptr);
  /// The samples of the GOP, in the layout of GopShape. The next begin() waits until the event recorded in
  /// samples_read() has passed.
  const std::byte* samples() const { return samples_.data(); }
  const Event& samples_read() const { return samples_read_; }

 private:
  static constexpr std::size_t kFewestPictures = 2;  // the references of a frame

  std::size_t samples_of(int component) const;
  void upload_samples(const Gop& gop);
  template <class T>
  void load(GopKey key, bool with_before);
  template <class T>
  void load_picture(int place, int down);
  std::vector<std::int32_t*> integers_of(const DeviceMotionSearch& from, int frame);
  void find(GopKey key, bool with_before, const MotionSearchParams& params);
  /// The place of each interpolated picture, -1: none.
  template <class T>
  std::vector<int> hold(const std::vector<int>& wanted);
  template <class T>
  void search_level(int level, const MotionSearchParams& params);
  /// Samples of pictures from a number on.
  template <class T>
  static T* at(DeviceBuffer<std::byte>& of, std::size_t sample) {
    return reinterpret_cast<T*>(of.data()) + sample;
  }
  bool is_deep() const { return header_.video.format.bits > motion_choice::kByteBits; }

  StreamHeader header_;
  int device_;
  MotionGrid grid_;
  int height_, width_, factor_, small_height_, small_width_, coarse_blocks_;
  std::size_t places_;                  // at most
  std::size_t stride_ = 0, plane_ = 0;  // samples of a picture with the frame around it
  std::size_t pictures_ = 0;            // interpolated ones at a time
  std::vector<int> held_;               // the places of these, -1: none
  Stream stream_;
  Event uploaded_, samples_read_, read_by_next_;
  Event done_{false, true};
  int frames_ = 0;  // of the GOP
  MotionPlaces gop_places_;
  MotionSearchParams params_;               // of the search begun last
  std::vector<std::size_t> high_;           // the places of its high frames
  std::vector<std::size_t> sample_origin_;  // bytes of the GOP, per component; one more at the end
  DeviceBuffer<std::byte> samples_;
  DeviceBuffer<std::int32_t> integers_;  // a frame of all components
  // Samples of 8 bits, or of 16 if is_deep().
  DeviceBuffer<std::byte> whole_;                  // [place]
  DeviceBuffer<std::byte> quarters_;               // [picture][16 planes]
  DeviceBuffer<std::byte> small_;                  // [place]
  DeviceBuffer<std::int32_t> sums_;                // [component][place][cell]
  DeviceBuffer<MotionVector> coarse_;              // [place][reference][block]
  DeviceBuffer<MotionCell> cells_;                 // [place][cell]
  DeviceBuffer<motion_choice::NodeMotion> nodes_;  // [frame of a level][root block][node]
  // The same for MotionSearchParams::may_close, which uses places at powers of two; on the host after the others, by
  // level.
  DeviceBuffer<MotionVector> closed_coarse_;
  DeviceBuffer<MotionCell> closed_cells_;
  int closed_levels_ = 0;
  PinnedBuffer<MotionCell> host_cells_;
  DeviceBuffer<int> prices_;
  DeviceBuffer<MotionContexts> contexts_;
};

}  // namespace trivelet::gpu
