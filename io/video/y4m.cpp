// YUV4MPEG2: a line of tags, then for every frame a line "FRAME…" and the planar samples.
//
//   YUV4MPEG2 W352 H288 F30000:1001 Ip A128:117 C420jpeg XCOLORRANGE=LIMITED
//
// C names the chroma format: 420jpeg, 420mpeg2, 420paldv (8 bits, with different positions of chroma samples), 420,
// 422, 440, 444, 411, 410, mono, 444alpha. A suffix p10 and so on (mono10 for grey) gives more bits, two bytes each,
// little- endian. Unknown tags are skipped, as the format asks. Frames have no times: frame n is at n / F. Without C
// the format is 4:2:0; without F it has 25 frames a second, as in FFmpeg.
#include <charconv>
#include <numeric>
#include <vector>

#include "codec/base/limits.h"
#include "io/video/part_writer.h"
#include "io/video/plain_frames.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

constexpr std::string_view kSignature = "YUV4MPEG2";
constexpr std::size_t kLongestLine = 4096;
constexpr std::string_view kFrameLine = "FRAME\n";

struct Y4mHeader {
  VideoInfo info;
  std::size_t bytes = 0;  ///< with the line feed
};

[[noreturn]] void bad(const std::string& name, const std::string& what) {
  fail(ErrorKind::kBadStream, name + ": " + what);
}

/// For messages: at most 40 printable characters of the input.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 40)) out += c >= 32 && c < 127 ? c : '?';
  return out + (text.size() > 40 ? "…'" : "'");
}

std::int64_t parse_number(std::string_view text, const std::string& name, std::string_view tag) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty())
    bad(name, "the Y4M header has " + quoted(tag) + ", which is not a number in range");
  return value;
}

/// "N:D" as a reduced fraction; 0/1 for 0:0, which means unknown.
Rational parse_ratio(std::string_view tag, const std::string& name) {
  const std::string_view text = tag.substr(1);
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) bad(name, "the Y4M header has " + quoted(tag) + ", which is not a ratio N:D");
  const std::int64_t num = parse_number(text.substr(0, colon), name, tag);
  const std::int64_t den = parse_number(text.substr(colon + 1), name, tag);
  if (num < 0 || den < 0 || num > INT32_MAX || den > INT32_MAX)
    bad(name, "the Y4M header has " + quoted(tag) + ", which is out of range");
  if (num == 0 || den == 0) return {0, 1};
  const std::int64_t common = std::gcd(num, den);
  return {static_cast<std::int32_t>(num / common), static_cast<std::int32_t>(den / common)};
}

/// Reads digits at the front of `text`; -1 when there are none or they leave 1..16.
int take_bits(std::string_view text) {
  int bits = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  const bool good = error == std::errc{} && end == text.data() + text.size() && bits >= 1 && bits <= 16;
  return good ? bits : -1;
}

struct Chroma {
  std::string_view name;
  int w;
  int h;
};
constexpr Chroma kChromas[] = {{"420", 1, 1}, {"422", 1, 0}, {"444", 0, 0},
                               {"440", 0, 1}, {"411", 2, 0}, {"410", 2, 2}};

/// The value of the C tag, e.g. "420p10".
void parse_chroma(std::string_view text, const std::string& name, VideoInfo& info) {
  PixelFormat& f = info.format;
  if (text.substr(0, 4) == "mono") {
    f.model = ColourModel::kGrey;
    f.bits = text.size() == 4 ? 8 : take_bits(text.substr(4));
  } else {
    f.bits = -1;
    for (const Chroma& chroma : kChromas) {
      if (text.substr(0, 3) != chroma.name) continue;
      f.log2_chroma_w = chroma.w;
      f.log2_chroma_h = chroma.h;
      const std::string_view rest = text.substr(3);
      if (rest.empty()) f.bits = 8;
      if (rest.size() > 1 && rest[0] == 'p') f.bits = take_bits(rest.substr(1));
      if (chroma.name == "420" && (rest == "jpeg" || rest == "mpeg2" || rest == "paldv")) {
        f.bits = 8;
        info.colour.chroma_location = rest == "mpeg2" ? 1 : rest == "jpeg" ? 2 : 3;
      }
      if (chroma.name == "444" && rest == "alpha") {
        f.bits = 8;
        f.alpha = true;
      }
    }
  }
  if (f.bits < 0) fail(ErrorKind::kUnsupported, name + ": unknown Y4M chroma format " + quoted(text));
}

Y4mHeader parse_header(std::string_view text, const std::string& name) {
  if (text.substr(0, kSignature.size()) != kSignature) bad(name, "no Y4M signature (YUV4MPEG2)");
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) {
    bad(name, text.size() < kLongestLine ? "the input ends inside the Y4M header"
                                         : "the Y4M header has no end within 4096 bytes");
  }
  Y4mHeader header;
  VideoInfo& info = header.info;
  header.bytes = end + 1;
  info.format.log2_chroma_w = info.format.log2_chroma_h = 1;
  std::int64_t width = 0;
  std::int64_t height = 0;
  Rational rate{0, 1};
  info.sample_aspect = {0, 1};
  std::string_view rest = text.substr(kSignature.size(), end - kSignature.size());
  while (!rest.empty()) {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    const std::string_view tag = rest.substr(0, space);
    rest.remove_prefix(std::min(space + 1, rest.size()));
    if (tag.empty()) continue;
    const std::string_view value = tag.substr(1);
    switch (tag[0]) {
      case 'W': width = parse_number(value, name, tag); break;
      case 'H': height = parse_number(value, name, tag); break;
      case 'F': rate = parse_ratio(tag, name); break;
      case 'A': info.sample_aspect = parse_ratio(tag, name); break;
      case 'I': info.field_order = value == "t" ? 1 : value == "b" ? 2 : 0; break;
      case 'C':
        info.format = PixelFormat{};
        info.colour.chroma_location = 0;
        parse_chroma(value, name, info);
        break;
      case 'X':
        if (value == "COLORRANGE=LIMITED") info.colour.range = 1;
        if (value == "COLORRANGE=FULL") info.colour.range = 2;
        break;
      default: break;
    }
  }
  if (width == 0) bad(name, "the Y4M header does not tell the width (W)");
  if (height == 0) bad(name, "the Y4M header does not tell the height (H)");
  check_dimensions(width, height, ErrorKind::kBadStream, name);
  info.width = static_cast<int>(width);
  info.height = static_cast<int>(height);
  set_constant_rate(info, rate.num > 0 ? rate : Rational{25, 1});
  return header;
}

class Y4mReader final : public PlainFrameReader {
 public:
  Y4mReader(Source source, const ReaderOptions& options) : PlainFrameReader(std::move(source)) {
    const Y4mHeader header = parse_header(source_->peek(kLongestLine), source_->name());
    source_->skip(header.bytes);
    info_ = header.info;
    if (options.frame_rate.num > 0) set_constant_rate(info_, options.frame_rate);
    frame_bytes_ = frame_bytes(info_);
    // With plain "FRAME" lines the size of the file tells the number of frames.
    const std::uint64_t step = frame_bytes_ + kFrameLine.size();
    if (source_->size() && source_->peek(6) == kFrameLine && (*source_->size() - header.bytes) % step == 0)
      info_.frames = (*source_->size() - header.bytes) / step;
    file_.emplace(*source_, info_, kFrameLine, options.threads);
  }

  bool can_look() const override { return info_.frames > 0; }

 private:
  bool read_samples(Gop& gop, int index) override {
    if (!read_frame_line()) return false;
    check_whole(read_planes(*source_, gop, index));
    return true;
  }
  bool skip_frame() override {
    if (!read_frame_line()) return false;
    check_whole(source_->skip(frame_bytes_));
    return true;
  }

  /// Skips "FRAME" and its parameters. False at the end of the input.
  bool read_frame_line() {
    std::string_view ahead = source_->peek(6);
    if (ahead.empty()) return false;
    const std::string frame = "frame " + std::to_string(frame_);
    if (ahead.size() < 6)
      bad(source_->name(),
          frame + " is truncated: the input ends inside its FRAME line, after " + count_of(ahead.size(), "byte"));
    if (ahead.substr(0, 5) != "FRAME" || (ahead[5] != '\n' && ahead[5] != ' '))
      bad(source_->name(), frame + " begins with " + quoted(ahead) + " instead of FRAME");
    std::size_t end = 5;
    if (ahead[5] == ' ') {
      ahead = source_->peek(kLongestLine);
      end = ahead.find('\n');
      if (end == std::string_view::npos) bad(source_->name(), frame + ": its FRAME line has no end");
    }
    source_->skip(end + 1);
    return true;
  }

  void check_whole(std::uint64_t got) const {
    if (got != frame_bytes_)
      bad(source_->name(), "frame " + std::to_string(frame_) + " is truncated: " + std::to_string(got) + " of " +
                               count_of(frame_bytes_, "byte"));
  }
};

/// The value of the C tag. Only forms that other programs read are written.
std::string chroma_tag(const VideoInfo& info) {
  const PixelFormat& f = info.format;
  const bool known_depth = f.bits == 8 || f.bits == 9 || f.bits == 10 || f.bits == 12 || f.bits == 14 || f.bits == 16;
  std::string tag;
  if (known_depth && !f.is_signed && f.model != ColourModel::kRgb) {
    if (f.alpha) {
      if (f == PixelFormat{.alpha = true}) return "444alpha";
    } else if (f.model == ColourModel::kGrey) {
      return f.bits == 8 ? "mono" : "mono" + std::to_string(f.bits);
    } else {
      for (const Chroma& chroma : kChromas) {
        if (chroma.w != f.log2_chroma_w || chroma.h != f.log2_chroma_h || chroma.name == "410") continue;
        if (f.bits > 8 && (chroma.name == "440" || chroma.name == "411")) continue;
        tag = chroma.name;
        if (f.bits > 8) return tag + "p" + std::to_string(f.bits);
        if (tag != "420") return tag;
        const int location = info.colour.chroma_location;
        return tag + (location == 1 ? "mpeg2" : location == 3 ? "paldv" : "jpeg");
      }
    }
  }
  fail(ErrorKind::kUnsupported, "Y4M cannot carry " + to_string(f) + (f.is_signed ? " of signed samples" : "") +
                                    "; it holds gray, yuv420p, yuv422p and yuv444p of 8, 9, 10, 12, 14, 16 bits, "
                                    "yuv440p, yuv411p and yuva444p of 8; write .mkv, or .yuv (raw)");
}

class Y4mWriter final : public FrameWriter, public SharedWriter {
 public:
  Y4mWriter(const std::string& path, const VideoInfo& info, const WriterOptions& options)
      : info_(info), tag_(chroma_tag(info)), file_(path, options.overwrite) {
    const Rational rate = info.frame_rate.num > 0 && info.frame_rate.den > 0 ? info.frame_rate : Rational{25, 1};
    const Rational aspect = info.sample_aspect.num > 0 ? info.sample_aspect : Rational{0, 0};
    auto ratio = [](Rational r) { return std::to_string(r.num) + ":" + std::to_string(r.den); };
    std::string line = std::string(kSignature) + " W" + std::to_string(info.width) + " H" +
                       std::to_string(info.height) + " F" + ratio(rate) + " I" +
                       (info.field_order == 1   ? "t"
                        : info.field_order == 2 ? "b"
                                                : "p") +
                       " A" + ratio(aspect) + " C" + tag_;
    if (info.colour.range == 1) line += " XCOLORRANGE=LIMITED";
    if (info.colour.range == 2) line += " XCOLORRANGE=FULL";
    line += '\n';
    file_.write(line.data(), line.size());
  }

  void write(const Gop& gop, int index) override {
    check_gop(gop, index, info_);
    file_.write("FRAME\n", 6);
    write_planes(gop, index, [&](const void* data, std::size_t size) { file_.write(data, size); });
  }
  SharedOutput shared() override { return shared_file(file_, true); }
  void finish() override { file_.commit(); }

 private:
  VideoInfo info_;
  std::string tag_;  ///< found out before the file is created: a refusal leaves no trace
  FileSink file_;
};

}  // namespace

bool is_y4m(InputBytes& source) {
  const std::string_view start = source.peek(kSignature.size() + 1);
  return start.substr(0, kSignature.size()) == kSignature &&
         (start.size() == kSignature.size() || start.back() == ' ' || start.back() == '\n');
}

PixelFormat peek_y4m_format(InputBytes& source) {
  return parse_header(source.peek(kLongestLine), source.name()).info.format;
}

Reader make_y4m_reader(Source source, const ReaderOptions& options) {
  return std::make_unique<Y4mReader>(std::move(source), options);
}

bool y4m_holds(const VideoInfo& info) {
  try {
    chroma_tag(info);
    return true;
  } catch (const Error&) {
    return false;
  }
}

Writer make_y4m_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  return std::make_unique<Y4mWriter>(path, info, options);
}

}  // namespace trivelet::io
