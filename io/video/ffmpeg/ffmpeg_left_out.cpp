// Files of pictures hold more than samples: other pictures, an orientation, colours that are not RGB, a colour profile,
// texts. FFmpeg takes the first picture's samples as they are coded, or converts them; the rest is looked for here.
#include "io/video/ffmpeg/ffmpeg_left_out.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "io/source.h"

namespace trivelet::io {

namespace {

constexpr std::uint64_t kMostMeta = 1 << 20;
constexpr int kMostBoxes = 16;        // in front of 'meta'
constexpr int kMostChunks = 100'000;  // of PNG, segments of JPEG
constexpr const char* kCmyk = "CMYK, of which FFmpeg makes RGB";

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

bool is_heif_picture(std::string_view brand) {
  constexpr std::array<std::string_view, 7> kBrands = {"avif", "heic", "heix", "heim", "heis", "mif1", "mif2"};
  return std::find(kBrands.begin(), kBrands.end(), brand) != kBrands.end();
}

/// The content of the box 'meta', "" without one.
std::string meta_of(const InputBytes& file) {
  std::uint64_t at = 0;
  for (int i = 0; i < kMostBoxes; ++i) {
    std::array<char, 16> head{};
    if (file.read_at(at, head.data(), head.size()) != head.size()) return {};
    std::uint64_t size = big_endian({head.data(), 4});
    if (size == 1) size = big_endian({head.data() + 8, 8});
    if (size < 8 || size > *file.size()) return {};
    if (std::string_view(head.data() + 4, 4) == "meta") {
      std::string meta(static_cast<std::size_t>(std::min(size, kMostMeta)), '\0');
      meta.resize(file.read_at(at, meta.data(), meta.size()));
      return meta;
    }
    at += size;
  }
  return {};
}

PictureFile describe_heif(const InputBytes& file) {
  const std::string meta = meta_of(file);
  const auto has = [&meta](std::string_view name) { return meta.find(name) != std::string::npos; };
  PictureFile picture;
  picture.is_heif = true;
  picture.in_tiles = has("grid") || has("iovl");
  const std::array<std::pair<std::string_view, std::string_view>, 5> parts = {{{":alpha", "transparency"},
                                                                               {"irot", "rotation"},
                                                                               {"imir", "mirroring"},
                                                                               {"clap", "cropping"},
                                                                               {"tmap", "gain map"}}};
  for (const auto& [name, what] : parts)
    if (has(name)) picture.left_out.emplace_back(what);
  return picture;
}

/// Bytes from a position on: how many there were of those asked for.
using ReadAt = std::function<std::size_t(std::uint64_t, char*, std::size_t)>;

/// The directories of a TIFF file, or of Exif, which is one. Source: TIFF 6.0.
class TiffDirectories {
 public:
  explicit TiffDirectories(ReadAt read) : read_(std::move(read)) {
    const std::string head = bytes(0, 8);
    is_tiff_ = head.substr(0, 4) == std::string_view("II*\0", 4) || head.substr(0, 4) == std::string_view("MM\0*", 4);
    little_ = is_tiff_ && head[0] == 'I';
    if (is_tiff_) first_ = number(head.substr(4));
  }
  bool is_tiff() const { return is_tiff_; }

  /// A field of the first picture that is one number, 0 if there is none.
  std::uint64_t field(std::uint64_t tag) const {
    const std::uint64_t count = number(bytes(first_, 2));
    const std::string all = bytes(first_ + 2, static_cast<std::size_t>(12 * count));
    for (std::size_t at = 0; at + 12 <= all.size(); at += 12) {
      if (number(all.substr(at, 2)) != tag) continue;
      const bool is_short = number(all.substr(at + 2, 2)) == 3;
      return number(all.substr(at + 8, is_short ? 2 : 4));
    }
    return 0;
  }
  /// Pictures behind the first one, up to a thousand.
  std::size_t others() const {
    std::set<std::uint64_t> seen;
    for (std::uint64_t at = first_; at != 0 && seen.size() <= 1000 && seen.insert(at).second;) {
      const std::uint64_t count = number(bytes(at, 2));
      if (count == 0) break;
      at = number(bytes(at + 2 + 12 * count, 4));
    }
    return seen.empty() ? 0 : seen.size() - 1;
  }

 private:
  std::string bytes(std::uint64_t at, std::size_t size) const {
    std::string data(size, '\0');
    data.resize(read_(at, data.data(), size));
    return data;
  }
  std::uint64_t number(std::string data) const {
    if (little_) std::reverse(data.begin(), data.end());
    return big_endian(data);
  }

  ReadAt read_;
  bool is_tiff_ = false;
  bool little_ = false;
  std::uint64_t first_ = 0;  ///< where the first directory is
};

/// What there is from a position of a file on, as if it were a file of its own.
ReadAt part_of(const InputBytes& file, std::uint64_t begin, std::uint64_t size) {
  return [&file, begin, size](std::uint64_t at, char* to, std::size_t count) {
    const std::uint64_t most = at < size ? size - at : 0;
    return file.read_at(begin + at, to, static_cast<std::size_t>(std::min<std::uint64_t>(count, most)));
  };
}

void name_others(std::uint64_t others, PictureFile& picture) {
  if (others == 0) return;
  constexpr std::uint64_t kMost = 1000;
  picture.left_out.push_back((others < kMost ? std::to_string(others) : "1000 or more") +
                             (others == 1 ? " more picture" : " more pictures"));
}

constexpr std::uint64_t kOrientation = 274;

PictureFile describe_tiff(const TiffDirectories& directories) {
  constexpr std::uint64_t kPhotometric = 262;
  constexpr std::uint64_t kSeparated = 5;
  PictureFile picture;
  name_others(directories.others(), picture);
  if (directories.field(kPhotometric) == kSeparated) picture.left_out.emplace_back(kCmyk);
  picture.orientation = directories.field(kOrientation);
  return picture;
}

/// The orientation of PNG is in a chunk of Exif. Animations may have a picture for programs that show none: it is the
/// one in IDAT where no fcTL stands before it.
PictureFile describe_png(const InputBytes& file) {
  constexpr std::uint64_t kMostExif = 1 << 16;
  PictureFile picture;
  bool is_animation = false;
  bool has_default = true;
  std::uint64_t at = 8;
  for (int i = 0; i < kMostChunks; ++i) {
    std::array<char, 8> head{};
    if (file.read_at(at, head.data(), head.size()) != head.size()) break;
    const std::uint64_t size = big_endian({head.data(), 4});
    const std::string_view name(head.data() + 4, 4);
    if (name == "acTL") is_animation = true;
    if (name == "fcTL") has_default = false;
    if (name == "IDAT" && std::exchange(is_animation, false) && has_default)
      picture.left_out.emplace_back("the default picture, which is not part of the animation");
    if (name == "eXIf" && size <= kMostExif)
      picture.orientation = TiffDirectories(part_of(file, at + 8, size)).field(kOrientation);
    at += 12 + size;
  }
  return picture;
}

/// Several pictures in a file of JPEG are listed in an application segment. Source: CIPA DC-007 (MPO).
PictureFile describe_jpeg(const InputBytes& file) {
  constexpr std::uint64_t kNumberOfImages = 0xB001;
  PictureFile picture;
  std::uint64_t at = 2;
  for (int i = 0; i < kMostChunks; ++i) {
    std::array<char, 8> head{};
    if (file.read_at(at, head.data(), head.size()) != head.size() || head[0] != '\xff') break;
    if (head[1] == '\xff') {  // fills
      ++at;
      continue;
    }
    const std::uint64_t size = big_endian({head.data() + 2, 2});
    if (head[1] == '\xda' || size < 2) break;
    constexpr std::uint64_t kInFront = 6;  // the size and "MPF\0"
    if (head[1] == '\xe2' && size > kInFront && std::string_view(head.data() + 4, 4) == std::string_view("MPF\0", 4)) {
      const std::uint64_t images =
          TiffDirectories(part_of(file, at + 2 + kInFront, size - kInFront)).field(kNumberOfImages);
      name_others(images > 1 ? images - 1 : 0, picture);
      break;
    }
    at += 2 + size;
  }
  return picture;
}

}  // namespace

std::optional<PictureFile> picture_file(const std::string& path) {
  if (path == "-") return std::nullopt;
  const InputBytes file(path);
  std::array<char, 26> head{};
  if (!file.size()) return std::nullopt;
  const std::string_view begin(head.data(), file.read_at(0, head.data(), head.size()));
  if (begin.size() < head.size()) return std::nullopt;
  if (begin.substr(4, 4) == "ftyp" && is_heif_picture(begin.substr(8, 4))) return describe_heif(file);
  if (begin.substr(0, 4) == "\x89PNG") return describe_png(file);
  if (begin.substr(0, 3) == "\xff\xd8\xff") return describe_jpeg(file);
  if (begin.substr(0, 4) == std::string_view("II+\0", 4) || begin.substr(0, 4) == std::string_view("MM\0+", 4))
    return PictureFile{.is_big_tiff = true, .left_out = {}};
  constexpr std::string_view kCmykMode("\0\4", 2);
  if (begin.substr(0, 4) == "8BPS")
    return begin.substr(24, 2) == kCmykMode ? PictureFile{.left_out = {kCmyk}} : PictureFile{};
  const TiffDirectories directories(
      [&file](std::uint64_t at, char* to, std::size_t count) { return file.read_at(at, to, count); });
  if (directories.is_tiff()) return describe_tiff(directories);
  return std::nullopt;
}

std::vector<std::string> left_out_of(const std::optional<PictureFile>& file, const AVFrame& frame,
                                     const AVCodecParameters& coded, const std::string& demuxer) {
  std::vector<std::string> all = file ? file->left_out : std::vector<std::string>{};
  // An orientation that FFmpeg reads comes as a matrix, which is kept.
  const bool is_turned = av_frame_get_side_data(&frame, AV_FRAME_DATA_DISPLAYMATRIX) != nullptr;
  if (file && file->orientation > 1 && !is_turned) all.push_back("orientation " + std::to_string(file->orientation));
  if (const AVFrameSideData* profile = av_frame_get_side_data(&frame, AV_FRAME_DATA_ICC_PROFILE))
    all.push_back("colour profile (ICC, " + std::to_string(profile->size) + " bytes)");
  // Of JPEG in CMYK FFmpeg makes RGB that is opaque; JPEG has no alpha.
  if (coded.codec_id == AV_CODEC_ID_MJPEG && frame.format == AV_PIX_FMT_GBRAP) all.emplace_back(kCmyk);
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool has_alpha = format != nullptr && (format->flags & (AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_PAL)) != 0;
  if (demuxer == "ico" && coded.codec_id == AV_CODEC_ID_BMP && !has_alpha) all.emplace_back("transparency (its mask)");
  // Films have texts at frames, too (the time code of MPEG-2): only what is a picture is looked at.
  const auto is_called = [&demuxer](std::string_view name) { return demuxer.find(name) != std::string::npos; };
  if (!is_called("image2") && !is_called("_pipe") && !is_called("apng")) return all;
  std::string names;
  int count = 0;
  const AVDictionaryEntry* text = nullptr;
  while ((text = av_dict_get(frame.metadata, "", text, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
    if (is_turned && std::string_view(text->key) == "Orientation") continue;
    constexpr int kNamed = 4;
    if (++count <= kNamed) names += (count > 1 ? ", " : "") + std::string(text->key);
    if (count == kNamed + 1) names += " and others";
  }
  if (count > 0) all.push_back((count == 1 ? "the text " : "the texts ") + names);
  return all;
}

}  // namespace trivelet::io
