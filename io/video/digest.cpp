// Writers without a video file: "null" drops frames, for timing; "md5" prints the digest of the bytes the raw writer
// would write, in the form of FFmpeg's md5 muxer, so that a decode can be compared with `ffmpeg -i X -f md5 -`.
#include <cstddef>
#include <optional>
#include <vector>

#include "io/md5.h"
#include "io/video/packed.h"
#include "io/video/planes.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

class NullWriter final : public FrameWriter {
 public:
  explicit NullWriter(const VideoInfo& info) : info_(info) {}
  void write(const Gop& gop, int index) override { check_gop(gop, index, info_); }
  void finish() override {}

 private:
  VideoInfo info_;
};

class Md5Writer final : public FrameWriter {
 public:
  Md5Writer(const std::string& path, const VideoInfo& info, const WriterOptions& options)
      : info_(info), packed_(packed_format(options.pixel_format)) {
    if (!path.empty() && path != "-" && path != "md5") file_.emplace(path, options.overwrite);
  }

  void write(const Gop& gop, int index) override {
    check_gop(gop, index, info_);
    if (packed_) {
      pack_pixels(gop, index, *packed_, pixels_);
      digest_.update(pixels_.data(), pixels_.size());
    } else {
      write_planes(gop, index, [&](const void* data, std::size_t size) { digest_.update(data, size); });
    }
  }

  void finish() override {
    if (!result_.empty()) return;
    result_ = "MD5=" + digest_.hex();
    if (file_) {
      const std::string line = result_ + "\n";
      file_->write(line.data(), line.size());
      file_->commit();
    }
  }

  std::string result() const override { return result_; }

 private:
  VideoInfo info_;
  const PackedFormat* packed_;  ///< null: planes
  std::vector<std::byte> pixels_;
  Md5 digest_;
  std::optional<FileSink> file_;
  std::string result_;
};

}  // namespace

Writer make_null_writer(const std::string&, const VideoInfo& info, const WriterOptions&) {
  return std::make_unique<NullWriter>(info);
}

Writer make_md5_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  return std::make_unique<Md5Writer>(path, info, options);
}

}  // namespace trivelet::io
