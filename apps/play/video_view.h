// A stream that is shown: its decoded GOPs, and the frame of it that is on the graphics card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/play/frame_store.h"
#include "apps/play/renderer.h"

namespace trivelet::play {

class VideoView {
 public:
  VideoView(const std::string& path, const Options& options)
      : path_(path), store_(path, options.decoding, options.backend, options.budget) {}

  FrameStore& store() { return store_; }
  const FrameStore& store() const { return store_; }
  double begin() const { return store_.times().front(); }
  std::size_t gop_at(double time) const { return store_.gop_of(store_.frame_at(time)); }
  /// The nearest quality that the stream has.
  Quality possible(Quality quality) const;

  /// To be called once there is a graphics context, before show(). `gpu`: see Picture.
  void create_picture(int gpu) { picture_.emplace(gpu); }
  /// Makes a decoded frame the picture: that of `time` or, unless `exact`, the last one before it. True if the picture
  /// changed.
  bool show(double time, bool exact);
  const Picture& picture() const { return *picture_; }

  /// Throws BadStream if something that was shown is damaged.
  void refuse_damage() const;

 private:
  const std::string path_;
  FrameStore store_;
  std::optional<Picture> picture_;
  std::uint64_t shown_gop_ = 0;  ///< DecodedGop::number; 0: nothing is shown
  int shown_frame_ = 0;          ///< in that GOP
};

}  // namespace trivelet::play
