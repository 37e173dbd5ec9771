#include "apps/play/video_view.h"

#include <algorithm>

#include "apps/cli/log.h"

namespace trivelet::play {

Quality VideoView::possible(Quality quality) const {
  quality.layers = std::min(quality.layers, store_.stream().layers);
  quality.reduce = std::min(quality.reduce, store_.most_reduce());
  quality.temporal = std::min(quality.temporal, store_.most_temporal());
  return quality;
}

bool VideoView::show(double time, bool exact) {
  std::size_t gop = gop_at(time);
  std::shared_ptr<const DecodedGop> decoded = exact ? store_.find(gop) : store_.find_before(gop);
  while (decoded && decoded->gop.frames() == 0 && gop > 0) decoded = store_.find(--gop);
  if (!decoded || decoded->gop.frames() == 0) return false;
  int frame = 0;
  const double unit = decoded->info.time_base.value();
  constexpr double kRounding = 1e-4;
  while (frame + 1 < decoded->gop.frames() &&
         static_cast<double>(decoded->gop.times()[static_cast<std::size_t>(frame) + 1].pts) * unit <= time + kRounding)
    ++frame;
  if (shown_gop_ == decoded->number && shown_frame_ == frame) return false;
  picture_->upload(decoded->info, decoded->gop, frame);
  shown_gop_ = decoded->number;
  shown_frame_ = frame;
  return true;
}

void VideoView::refuse_damage() const {
  const std::vector<std::string> damage = store_.damage();
  if (damage.empty()) return;
  const std::string more = damage.size() > 1 ? fmt::format(" (and {} more)", damage.size() - 1) : "";
  fail(ErrorKind::kBadStream, fmt::format("'{}' is damaged: {}{}; the intact part was shown", path_, damage[0], more));
}

}  // namespace trivelet::play
