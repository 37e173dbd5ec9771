// Raw video: the samples of frame after frame, planar, rows without padding, 16-bit samples little-endian. The file has
// no header, so size and pixel format come from the caller. Planes are in the order of types.h: Y U V, G B R, or grey,
// then alpha. The formats of packed.h have pixel after pixel instead.
#include <cstddef>
#include <utility>
#include <vector>

#include "codec/base/limits.h"
#include "io/video/packed.h"
#include "io/video/part_writer.h"
#include "io/video/plain_frames.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

class RawReader final : public PlainFrameReader {
 public:
  RawReader(Source source, const ReaderOptions& options) : PlainFrameReader(std::move(source)) {
    const std::string& name = source_->name();
    require(options.width > 0 && options.height > 0, ErrorKind::kBadArgument,
            name + ": raw video does not tell its size; give it (ReaderOptions::width, height)");
    require(
        !options.pixel_format.empty(), ErrorKind::kBadArgument,
        name + ": raw video does not tell its pixel format; give it (ReaderOptions::pixel_format yuv420p, gray10, …)");
    check_dimensions(options.width, options.height, ErrorKind::kBadArgument, name);
    info_.width = options.width;
    info_.height = options.height;
    packed_ = packed_format(options.pixel_format);
    info_.format = samples_of(options.pixel_format);
    set_constant_rate(info_, options.frame_rate.num > 0 ? options.frame_rate : Rational{25, 1});
    frame_bytes_ = frame_bytes(info_);
    if (source_->size()) info_.frames = *source_->size() / frame_bytes_;
    file_.emplace(*source_, info_, "", options.threads);
  }

  int read_frames(Gop& gop, int first, int count) override {
    return packed_ ? FrameReader::read_frames(gop, first, count) : PlainFrameReader::read_frames(gop, first, count);
  }
  bool can_look() const override { return source_->size().has_value() && packed_ == nullptr; }

 private:
  bool read_samples(Gop& gop, int index) override {
    const std::size_t got = packed_ ? read_pixels() : read_planes(*source_, gop, index);
    if (got == 0) return false;
    check_whole(got);
    if (packed_) unpack_pixels(pixels_, *packed_, gop, index);
    return true;
  }
  bool skip_frame() override {
    const std::uint64_t got = source_->skip(frame_bytes_);
    if (got > 0) check_whole(got);
    return got > 0;
  }
  std::size_t read_pixels() {
    pixels_.resize(frame_bytes_);
    return source_->read(pixels_.data(), pixels_.size());
  }

  void check_whole(std::uint64_t got) const {
    require(got == frame_bytes_, ErrorKind::kBadStream,
            source_->name() + ": " + count_of(got, "byte", "is", "are") + " left after " + count_of(frame_, "frame") +
                ", a frame of " + describe(info_) + " has " + std::to_string(frame_bytes_) +
                "; the file is truncated, or size or pixel format are not those of the file");
  }

  const PackedFormat* packed_ = nullptr;  ///< null: planes
  std::vector<std::byte> pixels_;         ///< of a frame, if it is packed
};

class RawWriter final : public FrameWriter, public SharedWriter {
 public:
  RawWriter(const std::string& path, const VideoInfo& info, const WriterOptions& options)
      : info_(info), file_(path, options.overwrite), packed_(packed_format(options.pixel_format)) {}

  void write(const Gop& gop, int index) override {
    check_gop(gop, index, info_);
    if (packed_) {
      pack_pixels(gop, index, *packed_, pixels_);
      file_.write(pixels_.data(), pixels_.size());
    } else {
      write_planes(gop, index, [&](const void* data, std::size_t size) { file_.write(data, size); });
    }
  }
  SharedOutput shared() override { return packed_ ? SharedOutput{} : shared_file(file_, false); }
  void finish() override { file_.commit(); }

 private:
  VideoInfo info_;
  FileSink file_;
  const PackedFormat* packed_;  ///< null: planes
  std::vector<std::byte> pixels_;
};

}  // namespace

Reader make_raw_reader(Source source, const ReaderOptions& options) {
  return std::make_unique<RawReader>(std::move(source), options);
}

Writer make_raw_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  return std::make_unique<RawWriter>(path, info, options);
}

}  // namespace trivelet::io
