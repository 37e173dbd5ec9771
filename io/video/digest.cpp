// Writers without a video file: "null" drops frames, for timing; "md5" prints the digest of the bytes the raw writer
// would write, and "framemd5" that of each frame, in the forms of FFmpeg's muxers, so that a decode can be compared
// with `ffmpeg -i X -f md5 -`.
#include <cstddef>
#include <cstdio>
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

/// The bytes that the raw writer writes of a frame.
class RawBytes {
 public:
  RawBytes(const VideoInfo& info, const WriterOptions& options)
      : info_(info), packed_(packed_format(options.pixel_format)) {}

  /// Returns their number.
  std::size_t add_to(Md5& digest, const Gop& gop, int index) {
    check_gop(gop, index, info_);
    std::size_t bytes = 0;
    const auto add = [&](const void* data, std::size_t size) {
      digest.update(data, size);
      bytes += size;
    };
    if (packed_) {
      pack_pixels(gop, index, *packed_, pixels_);
      add(pixels_.data(), pixels_.size());
    } else {
      write_planes(gop, index, add);
    }
    return bytes;
  }

 private:
  VideoInfo info_;
  const PackedFormat* packed_;  ///< null: planes
  std::vector<std::byte> pixels_;
};

class Md5Writer final : public FrameWriter {
 public:
  Md5Writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) : bytes_(info, options) {
    if (!path.empty() && path != "-" && path != "md5") file_.emplace(path, options.overwrite);
  }

  void write(const Gop& gop, int index) override { bytes_.add_to(digest_, gop, index); }

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
  RawBytes bytes_;
  Md5 digest_;
  std::optional<FileSink> file_;
  std::string result_;
};

class FrameMd5Writer final : public FrameWriter {
 public:
  FrameMd5Writer(const std::string& path, const VideoInfo& info, const WriterOptions& options)
      : bytes_(info, options), file_(path.empty() || path == "framemd5" ? "-" : path, options.overwrite) {
    const Rational tick = info.time_base.num > 0 ? info.time_base : Rational{1, 25};
    const Rational aspect = info.sample_aspect.num > 0 ? info.sample_aspect : Rational{0, 1};
    put("#format: frame checksums\n#version: 2\n#hash: MD5\n#tb 0: " + std::to_string(tick.num) + "/" +
        std::to_string(tick.den) + "\n#media_type 0: video\n#codec_id 0: rawvideo\n#dimensions 0: " +
        std::to_string(info.width) + "x" + std::to_string(info.height) + "\n#sar 0: " + std::to_string(aspect.num) +
        "/" + std::to_string(aspect.den) + "\n#stream#, dts,        pts, duration,     size, hash\n");
  }

  void write(const Gop& gop, int index) override {
    Md5 digest;
    const std::size_t size = bytes_.add_to(digest, gop, index);
    const FrameTime& time = gop.times()[static_cast<std::size_t>(index)];
    char line[128];
    const auto pts = static_cast<long long>(time.pts);
    const int length = std::snprintf(line, sizeof line, "0, %10lld, %10lld, %8lld, %8zu, ", pts, pts,
                                     static_cast<long long>(time.duration), size);
    put(std::string(line, static_cast<std::size_t>(length)) + digest.hex() + "\n");
  }

  void finish() override { file_.commit(); }

 private:
  void put(const std::string& text) { file_.write(text.data(), text.size()); }

  RawBytes bytes_;
  FileSink file_;
};

}  // namespace

Writer make_null_writer(const std::string&, const VideoInfo& info, const WriterOptions&) {
  return std::make_unique<NullWriter>(info);
}

Writer make_md5_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  return std::make_unique<Md5Writer>(path, info, options);
}

Writer make_framemd5_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  return std::make_unique<FrameMd5Writer>(path, info, options);
}

}  // namespace trivelet::io
