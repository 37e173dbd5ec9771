// Files of pictures hold more than samples: other pictures, an orientation, colours that are not RGB, a colour profile,
// texts. FFmpeg takes the first picture's samples as they are coded, or converts them; the rest is looked for here.
#include "io/video/ffmpeg/left_out/ffmpeg_left_out.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "codec/base/limits.h"
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
  // Names of boxes, of items and of their types.
  const std::array<std::pair<std::string_view, std::string_view>, 9> parts = {{{":alpha", "transparency"},
                                                                               {"irot", "rotation"},
                                                                               {"imir", "mirroring"},
                                                                               {"clap", "cropping"},
                                                                               {"tmap", "gain map"},
                                                                               {"colrprof", "colour profile (ICC)"},
                                                                               {"colrrICC", "colour profile (ICC)"},
                                                                               {"Exif", "Exif"},
                                                                               {"rdf+xml", "XMP"}}};
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
  bool is_little() const { return little_; }

  /// The first number of a field of the first picture, 0 if there is none.
  std::uint64_t field(std::uint64_t tag) const {
    const std::string entry = entry_of(tag);
    if (entry.empty()) return 0;
    constexpr std::uint64_t kByte = 1, kShort = 3;
    const std::uint64_t type = number(entry.substr(2, 2));
    const std::size_t size = type == kByte ? 1 : type == kShort ? 2 : 4;
    const bool is_here = number(entry.substr(4, 4)) * size <= 4;
    return number(is_here ? entry.substr(8, size) : bytes(number(entry.substr(8)), size));
  }
  bool has(std::uint64_t tag) const { return !entry_of(tag).empty(); }
  /// The fractions of a field, at most `most`.
  std::vector<double> fractions(std::uint64_t tag, std::size_t most) const {
    std::vector<double> all;
    const std::string entry = entry_of(tag);
    constexpr std::uint64_t kFraction = 5;
    if (entry.empty() || number(entry.substr(2, 2)) != kFraction) return all;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, number(entry.substr(4, 4))));
    const std::string data = bytes(number(entry.substr(8)), 8 * count);
    for (std::size_t at = 0; at + 8 <= data.size(); at += 8)
      all.push_back(static_cast<double>(number(data.substr(at, 4))) /
                    static_cast<double>(std::max<std::uint64_t>(1, number(data.substr(at + 4, 4)))));
    return all;
  }
  /// Number of fields of the first picture.
  std::uint64_t fields() const { return number(bytes(first_, 2)); }
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
  std::string entry_of(std::uint64_t tag) const {
    constexpr std::size_t kEntry = 12;
    const std::string all = bytes(first_ + 2, static_cast<std::size_t>(kEntry * fields()));
    for (std::size_t at = 0; at + kEntry <= all.size(); at += kEntry)
      if (number(all.substr(at, 2)) == tag) return all.substr(at, kEntry);
    return {};
  }
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

/// How often an animation is shown. Some files say it twice.
void name_times_shown(std::uint64_t times, PictureFile& picture) {
  constexpr std::string_view kBegin = "that it is shown ";
  const auto is_there = [&](const std::string& what) { return what.starts_with(kBegin); };
  if (std::none_of(picture.left_out.begin(), picture.left_out.end(), is_there))
    picture.left_out.push_back(std::string(kBegin) + count_of(times, "time"));
}

constexpr double kCentimetresOfInch = 2.54;

constexpr std::uint64_t kOrientation = 274;
constexpr std::uint64_t kPhotometric = 262;

void name_density_of_tiff(const TiffDirectories& directories, PictureFile& picture) {
  constexpr std::uint64_t kAcross = 282, kDown = 283, kUnit = 296, kNone = 1, kCentimetre = 3;
  const std::vector<double> across = directories.fractions(kAcross, 1), down = directories.fractions(kDown, 1);
  const std::uint64_t unit = directories.field(kUnit);
  if (across.empty() || down.empty() || unit == kNone) return;
  const double inches = unit == kCentimetre ? kCentimetresOfInch : 1;
  name_density(across[0] * inches, down[0] * inches, picture);
}

/// What YCbCr means, where it is not what TIFF 6.0 takes it for without these fields.
void name_colours_of_tiff(const TiffDirectories& directories, PictureFile& picture) {
  constexpr std::uint64_t kCoefficients = 529, kPositioning = 531, kReference = 532;
  const auto differs = [&directories](std::uint64_t tag, const std::vector<double>& usual) {
    const std::vector<double> found = directories.fractions(tag, usual.size());
    return found.size() == usual.size() && !std::equal(found.begin(), found.end(), usual.begin(),
                                                       [](double a, double b) { return std::abs(a - b) < 1e-3; });
  };
  if (differs(kCoefficients, {0.299, 0.587, 0.114})) picture.left_out.emplace_back("YCbCr coefficients");
  if (directories.field(kPositioning) > 1) picture.left_out.emplace_back("YCbCr positioning");
  if (differs(kReference, {0, 255, 128, 255, 128, 255})) picture.left_out.emplace_back("reference black and white");
}

PictureFile describe_tiff(const TiffDirectories& directories) {
  constexpr std::uint64_t kSeparated = 5, kYCbCr = 6, kSamples = 277, kExtraSamples = 338, kAssociated = 1;
  constexpr std::array<std::pair<std::uint64_t, const char*>, 4> kTexts = {
      {{700, "XMP"}, {33723, "IPTC"}, {34665, "Exif"}, {34853, "GPS"}}};
  PictureFile picture;
  name_others(directories.others(), picture);
  if (directories.field(kPhotometric) == kSeparated) picture.left_out.emplace_back(kCmyk);
  if (directories.field(kExtraSamples) == kAssociated)
    picture.left_out.emplace_back("that the colours are premultiplied by alpha");
  const bool has_extra = directories.field(kSamples) == 2 || directories.field(kSamples) == 4;
  if (has_extra && directories.has(kExtraSamples) && directories.field(kExtraSamples) == 0)
    picture.left_out.emplace_back("that its last sample is not said to be transparency");
  for (const auto& [tag, name] : kTexts)
    if (directories.has(tag)) picture.left_out.emplace_back(name);
  picture.orientation = directories.field(kOrientation);
  name_density_of_tiff(directories, picture);
  if (directories.field(kPhotometric) == kYCbCr) name_colours_of_tiff(directories, picture);
  return picture;
}

/// Photoshop: FFmpeg reads the picture of all layers together.
PictureFile describe_psd(const InputBytes& file) {
  constexpr int kMostResources = 10'000;
  constexpr std::uint64_t kCmykMode = 4, kProfile = 1039;
  constexpr std::array<std::pair<std::uint64_t, const char*>, 3> kTexts = {
      {{1028, "IPTC"}, {1058, "Exif"}, {1060, "XMP"}}};
  const auto number = [&file](std::uint64_t at, std::size_t size) {
    std::array<char, 4> bytes{};
    return big_endian({bytes.data(), std::min(size, file.read_at(at, bytes.data(), size))});
  };
  PictureFile picture;
  if (number(24, 2) == kCmykMode) picture.left_out.emplace_back(kCmyk);
  std::uint64_t at = 26 + 4 + number(26, 4);
  const std::uint64_t layers = at + 4 + number(at, 4);
  at += 4;
  for (int i = 0; i < kMostResources && at < layers; ++i) {  // "8BIM", a number, a name, a size
    const std::uint64_t name = number(at + 6, 1) / 2 * 2 + 2;
    const std::uint64_t size = number(at + 6 + name, 4);
    const std::uint64_t resource = number(at + 4, 2);
    if (resource == kProfile) picture.left_out.push_back("colour profile (ICC, " + count_of(size, "byte") + ")");
    for (const auto& [which, what] : kTexts)
      if (resource == which) picture.left_out.emplace_back(what);
    at += 6 + name + 4 + size + size % 2;
  }
  const auto count = static_cast<std::int16_t>(number(layers, 4) > 0 ? number(layers + 8, 2) : 0);
  if (count != 0)
    picture.left_out.push_back(count_of(static_cast<std::uint64_t>(std::abs(count)), "layer") +
                               ", of which it is the sum");
  return picture;
}

/// WebP: FFmpeg 5 and 7 read no animations. Source: RFC 9649.
PictureFile describe_webp(const InputBytes& file) {
  PictureFile picture;
  std::uint64_t at = 12;
  for (int i = 0; i < kMostChunks; ++i) {
    std::array<char, 8> head{};
    if (file.read_at(at, head.data(), head.size()) != head.size()) break;
    std::reverse(head.begin() + 4, head.end());
    const std::uint64_t size = big_endian({head.data() + 4, 4});
    const std::string_view name(head.data(), 4);
    if (name == "ANIM") picture.unread = "an animation in WebP";
    if (name == "EXIF") {  // which some programs begin as in JPEG, and FFmpeg does not read then
      constexpr std::string_view kOfJpeg("Exif\0\0", 6);
      std::array<char, kOfJpeg.size()> begin{};
      file.read_at(at + 8, begin.data(), begin.size());
      const bool is_of_jpeg = std::string_view(begin.data(), begin.size()) == kOfJpeg;
      const std::size_t skipped = is_of_jpeg ? kOfJpeg.size() : 0;
      const TiffDirectories exif(part_of(file, at + 8 + skipped, size > skipped ? size - skipped : 0));
      picture.orientation = exif.field(kOrientation);
      if (is_of_jpeg && exif.fields() > 1) picture.left_out.emplace_back("Exif");
    }
    if (name == "XMP ") picture.left_out.emplace_back("XMP");
    at += 8 + size + size % 2;
  }
  return picture;
}

std::string printable_key(std::string text) {
  for (char& c : text)
    if (c < 32 || c == 127) c = '?';  // other letters of PNG's alphabet (Latin-1), too, are none of UTF-8
  return text;
}

constexpr std::array<std::pair<std::string_view, const char*>, 8> kChunksOfPng = {
    {{"tIME", "date (tIME)"},
     {"bKGD", "background colour (bKGD)"},
     {"oFFs", "offset (oFFs)"},
     {"sCAL", "scale (sCAL)"},
     {"pCAL", "meaning of its values (pCAL)"},
     {"sPLT", "suggested palette (sPLT)"},
     {"hIST", "histogram (hIST)"},
     {"sTER", "that it is stereoscopic (sTER)"}}};

/// Colours that PNG names, which FFmpeg 5 passes over, and transparency that no FFmpeg reads. cICP counts more than a
/// profile (iCCP), that more than sRGB: see the third edition of PNG, 4.3.
class ColoursOfPng {
 public:
  void read(std::string_view name, const InputBytes& file, std::uint64_t at, PictureFile& picture) {
    std::array<char, 13> bytes{};
    if (name != "IHDR" && name != "sRGB" && name != "cICP" && name != "tRNS" && name != "iCCP") return;
    const std::size_t got = file.read_at(at, bytes.data(), bytes.size());
    if (got < 4) return;  // behind each chunk stands its checksum
    constexpr char kGrey = 0;
    if (name == "IHDR") is_bilevel_ = bytes[8] == 1 && bytes[9] == kGrey;
    if (name == "tRNS" && is_bilevel_) picture.left_out.emplace_back("transparency (tRNS)");
    if (name == "iCCP") has_profile_ = true;
    constexpr std::uint8_t kBt709 = 1, kSrgb = 13;
    if (name == "cICP") {
      has_code_points_ = true;
      picture.primaries = static_cast<std::uint8_t>(bytes[0]);
      picture.transfer = static_cast<std::uint8_t>(bytes[1]);
    } else if (name == "sRGB" && !has_code_points_) {
      picture.primaries = kBt709;
      picture.transfer = kSrgb;
      constexpr char kSaturation = 2, kAbsolute = 3;
      if (bytes[0] == kSaturation) picture.left_out.emplace_back("rendering intent (saturation)");
      if (bytes[0] == kAbsolute) picture.left_out.emplace_back("rendering intent (absolute)");
    }
    if (has_profile_ && !has_code_points_) picture.primaries = picture.transfer = 0;
  }

 private:
  bool is_bilevel_ = false;
  bool has_profile_ = false;
  bool has_code_points_ = false;
};

/// The orientation of PNG is in a chunk of Exif. Animations may have a picture for programs that show none: it is the
/// one in IDAT where no fcTL stands before it.
PictureFile describe_png(const InputBytes& file) {
  constexpr std::uint64_t kMostExif = 1 << 16;
  PictureFile picture;
  bool is_animation = false;
  bool has_default = true;
  ColoursOfPng colours;
  std::uint64_t at = 8;
  for (int i = 0; i < kMostChunks; ++i) {
    std::array<char, 8> head{};
    if (file.read_at(at, head.data(), head.size()) != head.size()) break;
    const std::uint64_t size = big_endian({head.data(), 4});
    const std::string_view name(head.data() + 4, 4);
    colours.read(name, file, at + 8, picture);
    if (name == "acTL") {
      is_animation = true;
      std::array<char, 4> plays{};
      file.read_at(at + 12, plays.data(), plays.size());
      const std::uint64_t times = big_endian({plays.data(), plays.size()});  // 0: for ever
      if (times > 0) name_times_shown(times, picture);
    }
    if (name == "fcTL") has_default = false;
    if (name == "IDAT" && std::exchange(is_animation, false) && has_default)
      picture.left_out.emplace_back("the default picture, which is not part of the animation");
    if (name == "pHYs" && size == 9) {
      std::array<char, 9> density{};
      constexpr double kMetresOfInch = kCentimetresOfInch / 100;
      if (file.read_at(at + 8, density.data(), density.size()) == density.size() && density[8] == 1)
        name_density(static_cast<double>(big_endian({density.data(), 4})) * kMetresOfInch,
                     static_cast<double>(big_endian({density.data() + 4, 4})) * kMetresOfInch, picture);
    }
    for (const auto& [chunk, what] : kChunksOfPng)
      if (name == chunk) picture.left_out.emplace_back(what);
    if (name == "iTXt") {  // which FFmpeg passes over
      std::array<char, 80> key{};
      const std::size_t got =
          file.read_at(at + 8, key.data(), static_cast<std::size_t>(std::min<std::uint64_t>(size, 79)));
      const std::string word(key.data(), std::find(key.data(), key.data() + got, '\0'));
      picture.left_out.push_back(word == "XML:com.adobe.xmp" ? "XMP" : "the text " + printable_key(word));
    }
    if (name == "eXIf" && size <= kMostExif) {
      const TiffDirectories exif(part_of(file, at + 8, size));
      picture.orientation = exif.field(kOrientation);
      if (exif.fields() > (exif.has(kOrientation) ? 1 : 0)) picture.left_out.emplace_back("Exif");
    }
    at += 12 + size;
  }
  return picture;
}

/// Segments of JPEG that FFmpeg passes over: a list of several pictures (CIPA DC-007, MPO), texts.
PictureFile describe_jpeg(const InputBytes& file) {
  constexpr std::uint64_t kNumberOfImages = 0xB001;
  constexpr std::string_view kList("MPF\0", 4), kXmp = "http://ns.adobe.com/xap/", kPhotoshop = "Photoshop 3.0",
                                                kFfmpeg = "Lavc";
  PictureFile picture;
  std::set<std::string> texts;
  std::uint64_t at = 2;
  for (int i = 0; i < kMostChunks; ++i) {
    std::array<char, 4 + 24> head{};
    const std::size_t got = file.read_at(at, head.data(), head.size());
    if (got < 4 || head[0] != '\xff') break;
    if (head[1] == '\xff') {  // fills
      ++at;
      continue;
    }
    const std::uint64_t size = big_endian({head.data() + 2, 2});
    if (head[1] == '\xda' || size < 2) break;
    const std::string_view begin(head.data() + 4, std::min<std::size_t>(got - 4, static_cast<std::size_t>(size) - 2));
    if (head[1] == '\xe2' && begin.substr(0, kList.size()) == kList) {
      const std::uint64_t list = at + 4 + kList.size();
      const TiffDirectories directories(part_of(file, list, size - 2 - kList.size()));
      const std::uint64_t images = directories.field(kNumberOfImages);
      name_others(images > 1 ? images - 1 : 0, picture);
    }
    if (head[1] == '\xe0' && begin.size() >= 12 && begin.substr(0, 5) == std::string_view("JFIF\0", 5) &&
        begin[7] != 0) {
      const double inches = begin[7] == 2 ? kCentimetresOfInch : 1;
      name_density(static_cast<double>(big_endian(begin.substr(8, 2))) * inches,
                   static_cast<double>(big_endian(begin.substr(10, 2))) * inches, picture);
    }
    if (head[1] == '\xfe' && begin.substr(0, kFfmpeg.size()) != kFfmpeg) texts.insert("comment");
    if (head[1] == '\xe1' && begin.substr(0, kXmp.size()) == kXmp) texts.insert("XMP");
    if (head[1] == '\xed' && begin.substr(0, kPhotoshop.size()) == kPhotoshop) texts.insert("Photoshop's fields");
    at += 2 + size;
  }
  picture.left_out.insert(picture.left_out.end(), texts.begin(), texts.end());
  return picture;
}

/// The main header of a codestream of JPEG 2000 (ITU-T T.800, A.9.2): comments. Encoders leave their names there.
void name_comments(const InputBytes& file, std::uint64_t at, PictureFile& picture) {
  constexpr std::array<std::string_view, 4> kEncoders = {"Created by", "Creator:", "Kakadu", "Lavc"};
  at += 2;
  for (int i = 0; i < kMostChunks; ++i) {
    std::array<char, 6 + 10> head{};
    const std::size_t got = file.read_at(at, head.data(), head.size());
    if (got < 6 || head[0] != '\xff' || head[1] == '\x90') return;
    const std::string_view text(head.data() + 6, got - 6);
    const bool is_name = std::any_of(kEncoders.begin(), kEncoders.end(),
                                     [text](std::string_view name) { return text.substr(0, name.size()) == name; });
    if (head[1] == '\x64' && !is_name) {
      picture.left_out.emplace_back("comment");
      return;
    }
    at += 2 + std::max<std::uint64_t>(2, big_endian({head.data() + 2, 2}));
  }
}

/// The boxes of JPEG 2000 (ITU-T T.800, annex I) from `at` to `end`. `depth`: of boxes around them; there are two at
/// most, and hostile files nest more.
void describe_jp2(const InputBytes& file, std::uint64_t at, std::uint64_t end, int depth, PictureFile& picture) {
  for (int i = 0; i < kMostChunks && at < end; ++i) {
    std::array<char, 8 + 10> head{};
    if (file.read_at(at, head.data(), head.size()) < 8) return;
    std::uint64_t size = big_endian({head.data(), 4}), begin = at + 8;
    if (size == 1) {
      size = big_endian({head.data() + 8, 8});
      begin += 8;
    }
    if (size == 0) size = end - at;
    const std::string_view name(head.data() + 4, 4);
    if (size < begin - at || size > end - at) return;
    if (name == (depth == 0 ? "jp2h" : "res ") && depth < 2) describe_jp2(file, begin, at + size, depth + 1, picture);
    if (name == "resc") {  // pixels in a metre: two fractions, then two powers of ten; those down come first
      const auto part = [&head](std::size_t from) { return static_cast<double>(big_endian({head.data() + from, 2})); };
      const auto metre = [&](std::size_t from, std::size_t power) {
        return part(from) / std::max(1.0, part(from + 2)) * std::pow(10, static_cast<signed char>(head[power]));
      };
      name_density(metre(12, 17) * kCentimetresOfInch / 100, metre(8, 16) * kCentimetresOfInch / 100, picture);
    }
    const auto add = [&picture](const char* what) {
      if (std::find(picture.left_out.begin(), picture.left_out.end(), what) == picture.left_out.end())
        picture.left_out.emplace_back(what);
    };
    if (name == "xml ") add("XML");
    if (name == "uuid") add("fields of a program (uuid)");
    if (name == "jp2c") name_comments(file, begin, picture);
    at += size;
  }
}

/// Densities of PCX; programs of old wrote the size of the screen, or of the picture, instead.
PictureFile describe_pcx(std::string_view head) {
  const auto number = [&head](std::size_t at) {
    return static_cast<unsigned char>(head[at]) | static_cast<unsigned char>(head[at + 1]) << 8;
  };
  PictureFile picture;
  const int width = number(8) - number(4) + 1, across = number(12), down = number(14);
  if (across == down && across != width) name_density(across, down, picture);
  return picture;
}

/// An application extension of GIF by its name of 11 bytes and its first block of up to 4.
void name_application(std::string_view name, std::string_view block, PictureFile& picture) {
  const auto byte = [&block](std::size_t at) { return at < block.size() ? static_cast<unsigned char>(block[at]) : 0u; };
  if (name == "NETSCAPE2.0" || name == "ANIMEXTS1.0") {
    const unsigned more = byte(2) | byte(3) << 8;  // 0: for ever, which is usual
    if (byte(1) == 1 && more > 0) name_times_shown(more + 1, picture);
  } else if (name == "XMP DataXMP") {
    picture.left_out.emplace_back("XMP");
  } else if (name == "ICCRGBG1012") {
    picture.left_out.emplace_back("colour profile (ICC)");
  } else {
    picture.left_out.push_back("fields of a program (" + printable_key(std::string(name.substr(0, 8))) + ")");
  }
}

/// FFmpeg hands over one comment alone. Source: GIF89a.
PictureFile describe_gif(const InputBytes& file) {
  PictureFile picture;
  std::array<char, 16> head{};
  const auto read = [&](std::uint64_t from, std::size_t count) {
    return file.read_at(from, head.data(), count) == count ? std::string_view(head.data(), count) : std::string_view();
  };
  const auto colours = [](char flags) { return (flags & 0x80) != 0 ? 3u * (2u << (flags & 7)) : 0u; };
  std::string_view bytes = read(10, 1);
  if (bytes.empty()) return picture;
  std::uint64_t at = 13 + colours(bytes[0]);
  int comments = 0;
  for (int i = 0; i < kMostChunks; ++i) {
    bytes = read(at, 2);
    if (bytes.empty() || (bytes[0] != '!' && bytes[0] != ',')) break;
    if (bytes[0] == '!' && bytes[1] == '\xfe') ++comments;
    if (bytes[0] == '!' && bytes[1] == '\x01') picture.left_out.emplace_back("a text that is drawn over it");
    if (bytes[0] == '!' && bytes[1] == '\xff') {
      const std::string_view application = read(at + 2, head.size());
      if (application.size() == head.size() && application[0] == 11)
        name_application(application.substr(1, 11), application.substr(12), picture);
    }
    bytes = read(at, 2);
    if (bytes[0] == ',') {
      bytes = read(at + 9, 1);
      if (bytes.empty()) break;
      at += 11 + colours(bytes[0]);
    } else {
      at += 2;
    }
    for (bytes = read(at, 1); !bytes.empty() && bytes[0] != 0; bytes = read(at, 1))
      at += 1 + static_cast<unsigned char>(bytes[0]);
    ++at;
  }
  if (comments > 0) picture.left_out.emplace_back(comments > 1 ? std::to_string(comments) + " comments" : "comment");
  return picture;
}

/// FITS may hold a picture in the rows of a table, compressed, or none. Source: FITS Standard 4.0, 10.
PictureFile describe_fits(const InputBytes& file) {
  constexpr std::uint64_t kCard = 80, kBlock = 2880;
  PictureFile picture;
  const auto card = [&file](std::uint64_t at) {
    std::string text(kCard, '\0');
    text.resize(file.read_at(at, text.data(), text.size()));
    return text;
  };
  const auto number = [](const std::string& text) { return std::strtoull(text.c_str() + 10, nullptr, 10); };
  std::uint64_t at = 0;
  bool has_picture = false, is_compressed = false;
  for (int unit = 0; unit < kMostBoxes && !has_picture; ++unit) {
    std::uint64_t bytes = 0, axes = 0, more = 0;
    bool is_table = false;
    std::string text = card(at);
    if (text.size() < kCard) break;
    for (int i = 0; i < kMostChunks && text.size() == kCard && text.substr(0, 8) != "END     "; ++i, text = card(at)) {
      const std::string key = text.substr(0, 8);
      if (key == "XTENSION") is_table = text.find("TABLE") != std::string::npos;
      if (key == "ZIMAGE  ") is_compressed = true;
      if (key == "BITPIX  ")
        bytes = static_cast<std::uint64_t>(std::abs(std::strtol(text.c_str() + 10, nullptr, 10))) / 8;
      if (key == "NAXIS   ") axes = number(text);
      if (key == "PCOUNT  ") more = number(text);
      if (key.substr(0, 5) == "NAXIS" && key[5] != ' ') bytes *= std::min<std::uint64_t>(number(text), 1u << 30);
      at += kCard;
    }
    has_picture = axes > 0 && !is_table;
    at = (at + kCard + kBlock - 1) / kBlock * kBlock + (axes > 0 ? (bytes + more + kBlock - 1) / kBlock * kBlock : 0);
  }
  if (!has_picture) picture.unread = is_compressed ? "a compressed FITS picture" : "a FITS file without a picture";
  picture.advice = is_compressed ? "unpack it first, for example with funpack" : "only pictures are read";
  return picture;
}

/// Whether a program has put something into the bytes that are no colour.
bool fourth_bytes_vary(const AVFrame& frame) {
  const bool is_first = frame.format == AV_PIX_FMT_0RGB || frame.format == AV_PIX_FMT_0BGR;
  if (!is_first && frame.format != AV_PIX_FMT_BGR0 && frame.format != AV_PIX_FMT_RGB0) return false;
  const auto byte = [&frame, at = is_first ? 0 : 3](int x, int y) {
    return frame.data[0][static_cast<std::ptrdiff_t>(y) * frame.linesize[0] + 4 * static_cast<std::ptrdiff_t>(x) + at];
  };
  for (int y = 0; y < frame.height; ++y)
    for (int x = 0; x < frame.width; ++x)
      if (byte(x, y) != byte(0, 0)) return true;
  return false;
}

}  // namespace

void name_density(double across, double down, PictureFile& picture) {
  const long x = std::lround(across), y = std::lround(down);
  if (x <= 0 || y <= 0 || (x == 72 && y == 72)) return;
  picture.left_out.push_back("density (" + std::to_string(x) + (y != x ? "x" + std::to_string(y) : "") + " dpi)");
}

std::optional<PictureFile> picture_file(const std::string& path) {
  if (path == "-") return std::nullopt;
  const InputBytes file(path);
  std::array<char, 26> head{};
  if (!file.size()) return std::nullopt;
  const std::string_view begin(head.data(), file.read_at(0, head.data(), head.size()));
  if (begin.size() < head.size()) return std::nullopt;
  if (begin.substr(4, 4) == "ftyp" && is_heif_picture(begin.substr(8, 4))) return describe_heif(file);
  for (const std::string_view box : {"ftyp", "moov", "mdat", "wide", "free", "skip"})
    if (begin.substr(4, 4) == box) return describe_mp4(file);
  if (begin.substr(0, 4) == "\x89PNG") return describe_png(file);
  if (begin.substr(0, 3) == "\xff\xd8\xff") return describe_jpeg(file);
  if (begin.substr(0, 4) == std::string_view("II+\0", 4) || begin.substr(0, 4) == std::string_view("MM\0+", 4))
    return PictureFile{.unread = "a BigTIFF picture", .advice = "convert it to TIFF first, for example with tiffcp"};
  if (begin.substr(0, 4) == "RIFF" && begin.substr(8, 4) == "WEBP") return describe_webp(file);
  if (begin.substr(0, 2) == "\xff\x0a" || begin.substr(0, 8) == std::string_view("\0\0\0\x0cJXL ", 8))
    return describe_jxl(file);
  if (begin.substr(0, 10) == "#?RADIANCE" || begin.substr(0, 6) == "#?RGBE")
    return PictureFile{.unread = "a Radiance picture (HDR)"};
  // WBMP has no signature: a type of 0, and flags of 0.
  if (path.ends_with(".wbmp") && begin.substr(0, 2) == std::string_view("\0\0", 2))
    return PictureFile{.unread = "a WBMP picture"};
  if (begin.substr(0, 4) == "8BPS") return describe_psd(file);
  if (begin[0] == 10 && static_cast<unsigned char>(begin[1]) <= 5 && begin[2] == 1) return describe_pcx(begin);
  if (begin.substr(0, 2) == "BM") return describe_bmp(file);
  if (begin.substr(0, 4) == "BLP1" || begin.substr(0, 4) == "BLP2")  // some have JPEG inside, of other colours
    return PictureFile{.unread = "a BLP picture", .misread = true};
  if (begin.substr(0, 6) == "GIF87a" || begin.substr(0, 6) == "GIF89a") return describe_gif(file);
  if (begin.substr(0, 10) == "SIMPLE  = ") return describe_fits(file);
  if (begin.substr(4, 4) == "jP  " || begin.substr(0, 4) == "\xff\x4f\xff\x51") {
    PictureFile picture;
    if (begin[0] == '\xff')
      name_comments(file, 0, picture);
    else
      describe_jp2(file, 0, *file.size(), 0, picture);
    return picture;
  }
  const TiffDirectories directories(
      [&file](std::uint64_t at, char* to, std::size_t count) { return file.read_at(at, to, count); });
  if (directories.is_tiff()) return describe_tiff(directories);
  return std::nullopt;
}

std::optional<Turn> turn_of(std::uint64_t orientation) {
  constexpr std::array<Turn, 8> kTurns = {
      {{0, false}, {0, true}, {180, false}, {180, true}, {270, true}, {90, false}, {90, true}, {270, false}}};
  if (orientation < 1 || orientation > kTurns.size()) return std::nullopt;
  return kTurns[orientation - 1];
}

std::string misread_psd(const AVPacket& packet) {
  const auto size = static_cast<std::size_t>(packet.size);
  const std::string_view data(reinterpret_cast<const char*>(packet.data), size);
  const auto number = [&data](std::size_t at, std::size_t bytes) -> std::size_t {
    return at < data.size() ? static_cast<std::size_t>(big_endian(data.substr(at, bytes))) : 0;
  };
  const std::size_t rows = number(12, 2) * number(14, 4);
  std::size_t at = 26;
  for (int section = 0; section < 3; ++section) at += 4 + number(at, 4);
  constexpr std::size_t kPackBits = 1;
  if (number(at, 2) != kPackBits || at + 2 + 2 * rows > size) return {};
  std::size_t row = at + 2 + 2 * rows;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t end = std::min(size, row + number(at + 2 + 2 * i, 2));
    while (row < end) {
      const auto code = static_cast<unsigned char>(data[row]);
      if (code == 128) return "whose PackBits have codes that stand for nothing";  // FFmpeg takes them for 129 bytes
      row += code > 128 ? 2 : 2 + std::size_t{code};
    }
    row = end;
  }
  return {};
}

std::string misread_targa(const AVPacket& packet) {
  constexpr int kHeader = 18, kGrey = 3, kPacked = 8, kBits = 16;
  if (packet.size < kHeader || (packet.data[2] & ~kPacked) != kGrey || packet.data[16] != kBits) return {};
  return "of grey with transparency";  // FFmpeg takes the two bytes for a colour of 15 bits
}

namespace {

/// Of a picture that is not compressed: whether its only strip says fewer bytes than it has.
bool lacks_lines(const TiffDirectories& tiff) {
  constexpr std::uint64_t kWidth = 256, kHeight = 257, kBits = 258, kSamples = 277, kRows = 278, kBytes = 279,
                          kPlanar = 284, kYcbcr = 6;
  const std::uint64_t height = tiff.field(kHeight), rows = tiff.field(kRows), bytes = tiff.field(kBytes);
  if ((rows > 0 && rows < height) || bytes == 0 || tiff.field(kPlanar) > 1 || tiff.field(kPhotometric) == kYcbcr)
    return false;
  const auto or_one = [&tiff](std::uint64_t tag) { return std::max<std::uint64_t>(1, tiff.field(tag)); };
  constexpr std::uint64_t kMost = 1 << 20;  // pixels of a side; larger ones are refused
  const std::uint64_t bits_of_line = std::min(kMost, tiff.field(kWidth)) * std::min(kMost, or_one(kBits)) *
                                     std::min<std::uint64_t>(64, or_one(kSamples));
  return bytes < (bits_of_line + 7) / 8 * std::min(kMost, height);
}

}  // namespace

std::string misread_tiff(const AVPacket& packet) {
  constexpr std::uint64_t kVersionOfDng = 50706, kTileWidth = 322, kCompression = 259, kFillOrder = 266, kBits = 258,
                          kSamples = 277, kSampleFormat = 339;
  const auto size = static_cast<std::size_t>(packet.size);
  const TiffDirectories tiff([&packet, size](std::uint64_t at, char* to, std::size_t count) {
    const std::size_t from = static_cast<std::size_t>(std::min<std::uint64_t>(at, size));
    const std::size_t got = std::min(count, size - from);
    std::copy_n(packet.data + from, got, to);
    return got;
  });
  if (!tiff.is_tiff() || tiff.has(kVersionOfDng)) return {};
  const std::uint64_t compression = tiff.field(kCompression), format = tiff.field(kSampleFormat),
                      bits = tiff.field(kBits);
  if (tiff.has(kTileWidth)) return "in tiles";
  constexpr std::uint64_t kInks = 5, kRgb = 2, kPlanar = 284, kInPlanes = 2;
  if (tiff.field(kPlanar) == kInPlanes && tiff.field(kSamples) > 1 && (bits != 8 || tiff.field(kPhotometric) != kRgb))
    return "in planes that are not red, green and blue of 8 bits";
  if (tiff.field(kPhotometric) == kInks && bits > 8 && tiff.is_little())
    return "of inks (CMYK) with 16 bits, little-endian";
  if (compression == 6 || compression == 7) return "with JPEG inside";
  if (tiff.field(kFillOrder) == 2 && bits > 1 && bits < 8) return "with the bits of a byte in reverse";
  if (format == 2) return "of signed samples";
  if (format == 3 && bits <= 16) return "of floats";  // others it refuses itself
  const bool has_palette = tiff.field(kPhotometric) == 3;
  if (has_palette && tiff.field(kSamples) > 1) return "of a palette with more samples";
  if (has_palette && bits > 8) return "of a palette with 16 bits";
  if (compression == 1 && lacks_lines(tiff)) return "whose strip is shorter than its lines";  // they stay black
  return {};
}

std::vector<std::string> left_out_of(const std::optional<PictureFile>& file, const AVFrame& frame,
                                     const AVCodecParameters& coded, const std::string& demuxer) {
  std::vector<std::string> all = file ? file->left_out : std::vector<std::string>{};
  // An orientation that FFmpeg reads comes as a matrix, which is kept, as those are that we read.
  const bool is_turned =
      av_frame_get_side_data(&frame, AV_FRAME_DATA_DISPLAYMATRIX) != nullptr || (file && turn_of(file->orientation));
  if (file && file->orientation > 8) all.push_back("orientation " + std::to_string(file->orientation));
  if (const AVFrameSideData* profile = av_frame_get_side_data(&frame, AV_FRAME_DATA_ICC_PROFILE))
    all.push_back("colour profile (ICC, " + count_of(profile->size, "byte") + ")");
  // Of JPEG in CMYK or YCCK FFmpeg makes RGB or YUV that is opaque; JPEG has no alpha.
  if (coded.codec_id == AV_CODEC_ID_MJPEG && (frame.format == AV_PIX_FMT_GBRAP || frame.format == AV_PIX_FMT_YUVA444P))
    all.emplace_back(kCmyk);
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool has_alpha = format != nullptr && (format->flags & AV_PIX_FMT_FLAG_ALPHA) != 0 &&
                         (format->flags & AV_PIX_FMT_FLAG_PAL) == 0;  // of which the mask of an icon is none
  if (demuxer == "ico" && coded.codec_id == AV_CODEC_ID_BMP && !has_alpha) all.emplace_back("transparency (its mask)");
  if (file && file->unsaid_alpha && has_alpha) all.emplace_back("that its fourth byte is not said to be transparency");
  if (coded.codec_id == AV_CODEC_ID_FITS)
    all.emplace_back("the values themselves, which FFmpeg stretches, the least to 0 and the largest to white");
  if (coded.codec_id == AV_CODEC_ID_PHOTOCD) all.emplace_back("Photo CD's colours (YCC), of which FFmpeg makes YCbCr");
  if (coded.codec_id == AV_CODEC_ID_TARGA && frame.format == AV_PIX_FMT_RGB555LE)
    all.emplace_back("the sixteenth bit of pixels");
  if ((coded.codec_id == AV_CODEC_ID_TARGA || coded.codec_id == AV_CODEC_ID_BMP) && fourth_bytes_vary(frame))
    all.emplace_back("the fourth byte of pixels, which is not said to be transparency");
  // Films have texts at frames, too (the time code of MPEG-2): only what is a picture is looked at.
  const auto is_called = [&demuxer](std::string_view name) { return demuxer.find(name) != std::string::npos; };
  if (!is_called("image2") && !is_called("_pipe") && !is_called("apng")) return all;
  std::string names;
  int count = 0;
  const AVDictionaryEntry* text = nullptr;
  while ((text = av_dict_get(frame.metadata, "", text, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
    const bool is_kept = is_turned || std::strtol(text->value, nullptr, 10) == 1;
    if (is_kept && std::string_view(text->key) == "Orientation") continue;
    constexpr int kNamed = 4;
    if (++count <= kNamed) names += (count > 1 ? ", " : "") + std::string(text->key);
    if (count == kNamed + 1) names += " and others";
  }
  if (count > 0) all.push_back((count == 1 ? "the text " : "the texts ") + names);
  return all;
}

}  // namespace trivelet::io
