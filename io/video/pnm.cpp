// Portable grey and colour maps, binary form: "P5" or "P6", width, height, greatest value, one white space, samples of
// one byte, or, if the greatest value exceeds 255, of two, the higher first. Several pictures may follow one another.
//
// FFmpeg reads them too, but stretches a 12-bit map to 16 bits. Here the samples stay unchanged, and a greatest value
// of 4095 means 12 bits.
#include <bit>
#include <vector>

#include "codec/base/limits.h"
#include "io/video/planes.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Our component of the R, G, B samples of a pixel.
constexpr int kFromRgb[3] = {2, 0, 1};

/// Swaps between the samples of a row of pixels, high byte first, and rows of planes. `Move` is (file byte, sample
/// byte).
template <class File, class Plane, class Move>
void move_row(File* file, Plane* const* rows, int components, int bytes, int width, Move move) {
  for (int x = 0; x < width; ++x)
    for (int c = 0; c < components; ++c) {
      Plane* sample = rows[components == 1 ? 0 : kFromRgb[c]] + static_cast<std::ptrdiff_t>(x) * bytes;
      for (int b = bytes - 1; b >= 0; --b) move(*file++, sample[b]);
    }
}

class PnmReader final : public FrameReader {
 public:
  PnmReader(Source source, const ReaderOptions& options) : source_(std::move(source)) {
    ahead_ = read_header(info_);
    require(ahead_, ErrorKind::kBadStream, source_->name() + " is empty");
    set_constant_rate(info_, options.frame_rate.num > 0 ? options.frame_rate : Rational{25, 1});
  }

  const VideoInfo& info() const override { return info_; }
  std::vector<std::string> remarks() const override {
    if (uneven_ == 0) return {};
    return {"the greatest value, that of white, is " + std::to_string(uneven_) + "; it is not kept, and " +
            std::to_string((1 << info_.format.bits) - 1) + " takes its place"};
  }

  bool read(Gop& gop, int index) override {
    check_gop(gop, index, info_);
    if (!next_picture()) return false;
    const int components = info_.format.components();
    const int bytes = info_.format.bytes_per_sample();
    std::vector<std::byte> row(row_bytes());
    for (int y = 0; y < info_.height; ++y) {
      const std::size_t got = source_->read(row.data(), row.size());
      if (got < row.size()) truncated(static_cast<std::uint64_t>(y) * row.size() + got);
      std::byte* rows[3] = {};
      for (int c = 0; c < components; ++c) rows[c] = gop.plane(c).row(index, y);
      move_row(row.data(), rows, components, bytes, info_.width, [](std::byte& in, std::byte& out) { out = in; });
    }
    check_samples(gop, index, info_.format, source_->name(), frame_);
    gop.times()[static_cast<std::size_t>(index)] = {static_cast<std::int64_t>(frame_), 1};
    ++frame_;
    return true;
  }

  std::uint64_t skip(std::uint64_t count) override {
    const std::uint64_t bytes = row_bytes() * static_cast<std::uint64_t>(info_.height);
    for (std::uint64_t done = 0; done < count; ++done) {
      if (!next_picture()) return done;
      const std::uint64_t got = source_->skip(bytes);
      if (got < bytes) truncated(got);
      ++frame_;
    }
    return count;
  }

 private:
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(info_.width) * static_cast<std::size_t>(info_.format.components()) *
           static_cast<std::size_t>(info_.format.bytes_per_sample());
  }

  [[noreturn]] void truncated(std::uint64_t got) const {
    fail(ErrorKind::kBadStream, source_->name() + ": picture " + std::to_string(frame_) +
                                    " is truncated: " + std::to_string(got) + " of " +
                                    count_of(row_bytes() * static_cast<std::uint64_t>(info_.height), "byte"));
  }

  char next_char() {
    char c = 0;
    require(source_->read(&c, 1) == 1, ErrorKind::kBadStream,
            source_->name() + ": the input ends inside the header of picture " + std::to_string(frame_));
    return c;
  }

  int read_number(const char* what) {
    char c = next_char();
    while (is_space(c) || c == '#') {
      if (c == '#')
        while (c != '\n' && c != '\r') c = next_char();
      c = next_char();
    }
    std::int64_t value = -1;
    while (c >= '0' && c <= '9' && value < 1'000'000) {
      value = std::max<std::int64_t>(value, 0) * 10 + (c - '0');
      c = next_char();
    }
    if (c == '#')  // a comment ends the number, and the end of its line the comment
      while (c != '\n' && c != '\r') c = next_char();
    require(value >= 0 && is_space(c), ErrorKind::kBadStream,
            source_->name() + ": picture " + std::to_string(frame_) + " has no valid " + what + " in its header");
    return static_cast<int>(value);
  }

  /// False at the end of the input.
  bool read_header(VideoInfo& info) {
    // Some programs end a file with a line break.
    while (frame_ > 0 && !source_->peek(1).empty() && is_space(source_->peek(1)[0])) next_char();
    if (source_->peek(1).empty()) return false;
    const char p = next_char();
    const char kind = next_char();
    require(p == 'P' && (kind == '5' || kind == '6'), ErrorKind::kBadStream,
            source_->name() + ": picture " + std::to_string(frame_) + " begins with neither P5 nor P6");
    info.width = read_number("width");
    info.height = read_number("height");
    check_dimensions(info.width, info.height, ErrorKind::kBadStream, source_->name());
    const int greatest = read_number("greatest value");
    require(greatest >= 1 && greatest <= 65535, ErrorKind::kBadStream,
            source_->name() + ": the greatest value " + std::to_string(greatest) + " is outside 1..65535");
    if (uneven_ == 0 && !std::has_single_bit(static_cast<unsigned>(greatest) + 1)) uneven_ = greatest;
    if (kind == '5') info.colour.range = 2;  // otherwise outputs of YCbCr take it for luma
    info.format = {.model = kind == '5' ? ColourModel::kGrey : ColourModel::kRgb,
                   .bits = static_cast<int>(std::bit_width(static_cast<unsigned>(greatest)))};
    return true;
  }

  bool next_picture() {
    if (ahead_) {
      ahead_ = false;
      return true;
    }
    VideoInfo next;
    if (!read_header(next)) return false;
    require(next.width == info_.width && next.height == info_.height && next.format == info_.format,
            ErrorKind::kUnsupported,
            source_->name() + ": picture " + std::to_string(frame_) + " is " + describe(next) + ", the first was " +
                describe(info_));
    return true;
  }

  Source source_;
  VideoInfo info_;
  int uneven_ = 0;      ///< the first greatest value that is not all bits; 0: all are
  bool ahead_ = false;  ///< the header of the next picture has been read
  std::uint64_t frame_ = 0;
};

class PnmWriter final : public FrameWriter {
 public:
  PnmWriter(const std::string& path, const VideoInfo& info, const WriterOptions& options)
      : info_(checked(info)), file_(path, options.overwrite) {}

  void write(const Gop& gop, int index) override {
    check_gop(gop, index, info_);
    const int components = info_.format.components();
    const int bytes = info_.format.bytes_per_sample();
    const std::string header = std::string(components == 1 ? "P5" : "P6") + "\n" + std::to_string(info_.width) + " " +
                               std::to_string(info_.height) + "\n" + std::to_string((1 << info_.format.bits) - 1) +
                               "\n";
    file_.write(header.data(), header.size());
    std::vector<std::byte> row(static_cast<std::size_t>(info_.width) * static_cast<std::size_t>(components * bytes));
    for (int y = 0; y < info_.height; ++y) {
      const std::byte* rows[3] = {};
      for (int c = 0; c < components; ++c) rows[c] = gop.plane(c).row(index, y);
      move_row(row.data(), rows, components, bytes, info_.width, [](std::byte& out, const std::byte& in) { out = in; });
      file_.write(row.data(), row.size());
    }
  }
  void complete() override {
    if (file_.seekable()) file_.suspend();
  }
  void finish() override { file_.commit(); }

 private:
  static const VideoInfo& checked(const VideoInfo& info) {
    require(pnm_holds(info), ErrorKind::kUnsupported,
            "PGM and PPM hold gray and gbrp without alpha, not " + to_string(info.format) +
                (info.format.is_signed ? " of signed samples" : "") +
                "; write .y4m, .mkv or .yuv (raw), or convert (WriterOptions::pixel_format auto)");
    return info;
  }

  VideoInfo info_;
  FileSink file_;
};

}  // namespace

bool is_pnm(InputBytes& source) {
  const std::string_view start = source.peek(3);
  return start.size() == 3 && start[0] == 'P' && (start[1] == '5' || start[1] == '6') &&
         (is_space(start[2]) || start[2] == '#');
}

Reader make_pnm_reader(Source source, const ReaderOptions& options) {
  return std::make_unique<PnmReader>(std::move(source), options);
}

bool pnm_holds(const VideoInfo& info) {
  const PixelFormat& f = info.format;
  return f.model != ColourModel::kYuv && !f.alpha && !f.is_signed;
}

Writer make_pnm_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  return std::make_unique<PnmWriter>(path, info, options);
}

}  // namespace trivelet::io
