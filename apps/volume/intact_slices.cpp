// Decodes around damaged slabs (intact_slices.h): a slab decodes by itself, so a new decoder begins after each of them.
#include "apps/volume/intact_slices.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace trivelet::cli {

namespace {
constexpr std::size_t kMostLost = 1000;  // places: for each the stream is opened again and its index read
}

IntactSlices::IntactSlices(Open open, const VolumeDecoderParams& params, const VolumeDecoder& decoder)
    : open_(std::move(open)),
      params_(params),
      whole_(decoder.info().volume),
      output_(decoder.output()),
      selection_(decoder.selection()),
      slab_(static_cast<std::uint64_t>(std::max(1, decoder.stream().gop_frames))) {
  require(decoder.info().order == VolumeOrder::kFile || whole_.volumes == 1, ErrorKind::kUnsupported,
          "--keep-partial: the fourth axis of this volume was coded first; leave the option out");
  require(decoder.step()[2] == 1, ErrorKind::kUnsupported,
          "--keep-partial: with --reduce this volume has fewer slices; leave one of the two out");
}

std::uint64_t IntactSlices::lost_slices() const {
  std::uint64_t slices = 0;
  for (const Lost& lost : lost_) slices += lost.end - lost.first;
  return slices;
}

std::string IntactSlices::place_of(const Lost& lost) const {
  const auto z_of = [this](std::uint64_t slice) { return selection_.z + slice % output_.slices; };
  const std::uint64_t last = lost.end - 1;
  if (output_.volumes == 1) return fmt::format("--slices {}:{}", z_of(lost.first), z_of(last) + 1);
  const auto text = [&](std::uint64_t slice) {
    return fmt::format("slice {} of volume {}", z_of(slice), params_.first_volume + slice / output_.slices);
  };
  return lost.first == last ? text(last) : text(lost.first) + " to " + text(last);
}

std::uint64_t IntactSlices::frame_of(std::uint64_t slice) const {
  return (params_.first_volume + slice / output_.slices) * whole_.slices + selection_.z + slice % output_.slices;
}

std::uint64_t IntactSlices::end_of_slab(std::uint64_t slice) const {
  const std::uint64_t end = (frame_of(slice) / slab_ + 1) * slab_;
  while (slice < output_.all_slices() && frame_of(slice) < end) ++slice;
  return slice;
}

void IntactSlices::open_at(std::uint64_t slice) {
  decoder_.reset();
  VolumeDecoderParams params = params_;
  const std::uint64_t volume = slice / output_.slices;
  const std::uint64_t z = slice % output_.slices;
  params.first_volume = params_.first_volume + volume;
  params.volumes = z == 0 ? output_.volumes - volume : 1;
  if (z > 0) {
    VoxelRegion rest = params_.region.value_or(VoxelRegion{0, 0, 0, static_cast<std::uint64_t>(whole_.width),
                                                           static_cast<std::uint64_t>(whole_.height), whole_.slices});
    rest.z += z;
    rest.depth -= z;
    params.region = rest;
  }
  decoder_end_ = z == 0 ? output_.all_slices() : (volume + 1) * output_.slices;
  is_fresh_ = true;
  decoder_ = open_(params);
}

/// False if the slice is damaged: then lost_end_ says how many are.
bool IntactSlices::decode(std::byte* slice) {
  while (true) {
    try {
      if (!decoder_ || at_ == decoder_end_) open_at(at_);
      if (decoder_->read(slice)) {
        is_fresh_ = false;
        return true;
      }
      lose(output_.all_slices(), "the stream ends before");
      return false;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kBadStream) throw;
      // Between the selected slices of two volumes there are others, whose damage does not matter.
      const bool may_go_on = decoder_ && !is_fresh_;
      decoder_.reset();
      if (may_go_on) continue;
      lose(end_of_slab(at_), e.what());
      return false;
    }
  }
}

void IntactSlices::lose(std::uint64_t end, const std::string& why) {
  decoder_.reset();
  lost_end_ = end;
  if (!lost_.empty() && lost_.back().end == at_)
    lost_.back().end = end;
  else
    lost_.push_back({at_, end, why});
  require(++times_lost_ <= kMostLost, ErrorKind::kBadStream,
          "more than " + std::to_string(kMostLost) + " slabs are damaged: " + why);
}

bool IntactSlices::read(std::byte* slice) {
  if (at_ == output_.all_slices()) return false;
  if (at_ < lost_end_ || !decode(slice)) std::memset(slice, 0, output_.slice_bytes());
  ++at_;
  return true;
}

}  // namespace trivelet::cli
