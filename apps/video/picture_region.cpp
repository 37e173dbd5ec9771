// Parses a region of pictures, and cuts it out of decoded frames without a copy.

#include "apps/video/picture_region.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>
#include <vector>

#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

class RegionWriter final : public io::FrameWriter {
 public:
  RegionWriter(const PictureRegion& region, const VideoInfo& full, std::unique_ptr<io::FrameWriter> writer)
      : region_(region), full_(full), info_(info_of_region(full, region)), writer_(std::move(writer)) {}

  void write(const Gop& gop, int index) override {
    const FrameView frame = region_of(gop, index);
    writer_->write(Gop(info_, std::span(&frame, 1)), 0);
  }
  void write_frames(const Gop& gop) override {
    std::vector<FrameView> frames;
    for (int i = 0; i < gop.frames(); ++i) frames.push_back(region_of(gop, i));
    if (!frames.empty()) writer_->write_frames(Gop(info_, frames));
  }
  void complete() override { writer_->complete(); }
  void finish() override { writer_->finish(); }
  std::string result() const override { return writer_->result(); }
  std::vector<std::string> remarks() const override { return writer_->remarks(); }

 private:
  FrameView region_of(const Gop& gop, int index) const {
    FrameView frame;
    frame.time = gop.times()[static_cast<std::size_t>(index)];
    for (int c = 0; c < gop.components(); ++c) {
      const VolumeView plane = gop.plane(c);
      // Chroma that begins at a whole sample has the region's first column divided by the subsampling.
      const int x = full_.format.component_width(region_.x, c);
      const int y = full_.format.component_height(region_.y, c);
      frame.planes[static_cast<std::size_t>(c)] = {plane.row(index, y) + x * plane.bytes_per_sample, plane.row_stride};
    }
    return frame;
  }

  PictureRegion region_;
  VideoInfo full_;
  VideoInfo info_;
  std::unique_ptr<io::FrameWriter> writer_;
};

/// `first` and `size` in a picture of `full` columns or rows, of which `unit` are one sample of the coarsest component.
void check_range(const std::string& option, const char* what, int first, int size, int full, int unit) {
  require(first >= 0 && size > 0 && first < full && size <= full - first, ErrorKind::kBadArgument,
          fmt::format("{}: {} {} from {} on are not in the picture, which has {}", option, size, what, first, full));
  require(
      first % unit == 0 && (size % unit == 0 || first + size == full), ErrorKind::kBadArgument,
      fmt::format("{}: {} {} from {} on divide a sample, as chroma or --reduce have fewer; begin and end at "
                  "multiples of {}: {} from {} on",
                  option, size, what, first, unit,
                  std::min((first + size + unit - 1) / unit * unit, full) - first / unit * unit, first / unit * unit));
}

}  // namespace

PictureRegion parse_picture_region(const std::string& text, const VideoInfo& full, int reduce) {
  const std::string option = "--region " + text;
  std::array<int, 4> typed{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < typed.size(); ++i) {
    const auto [stop, error] = std::from_chars(at, end, typed[i]);
    require(error == std::errc() && (i + 1 < typed.size() ? stop < end && *stop == ',' : stop == end),
            ErrorKind::kBadArgument,
            option + ": write X,Y,W,H, the first column and row, width and height; of volumes X,Y,Z,W,H,D");
    at = stop + 1;
  }
  const auto [x, y, width, height] = typed;
  check_range(option, "columns", x, width, full.width, 1 << (reduce + full.format.log2_chroma_w));
  check_range(option, "rows", y, height, full.height, 1 << (reduce + full.format.log2_chroma_h));
  const auto reduced = [reduce](int n) { return (n + (1 << reduce) - 1) >> reduce; };
  return {x >> reduce, y >> reduce, reduced(width), reduced(height)};
}

VideoInfo info_of_region(VideoInfo info, const PictureRegion& region) {
  info.width = region.width;
  info.height = region.height;
  return info;
}

std::unique_ptr<io::FrameWriter> make_region_writer(const PictureRegion& region, const VideoInfo& full,
                                                    std::unique_ptr<io::FrameWriter> writer) {
  return std::make_unique<RegionWriter>(region, full, std::move(writer));
}

}  // namespace trivelet::cli
