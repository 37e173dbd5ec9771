// MP4 and QuickTime: what the description of a track of pictures says that FFmpeg 5 passes over. Sources: ISO/IEC
// 14496-12 and 14496-15, Apple's "Stereo Video ISOBMFF Extensions".
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/source.h"
#include "io/video/ffmpeg/left_out/ffmpeg_left_out.h"

namespace trivelet::io {

namespace {

constexpr int kMostMp4Boxes = 10'000;  // of one box, and tracks of a film

std::uint64_t number_of(const InputBytes& file, std::uint64_t at, std::size_t size) {
  std::array<unsigned char, 8> bytes{};
  file.read_at(at, bytes.data(), size);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8 | bytes[i];
  return value;
}

struct Mp4Box {
  std::string name;
  std::uint64_t begin = 0;  ///< of its content
  std::uint64_t end = 0;
};

/// Calls visit(box) for the boxes from `at` to `end`.
template <class Visit>
void visit_boxes(const InputBytes& file, std::uint64_t at, std::uint64_t end, const Visit& visit) {
  for (int i = 0; i < kMostMp4Boxes && at < end && end - at >= 8; ++i) {
    Mp4Box box{std::string(4, '\0'), at + 8, 0};
    if (file.read_at(at + 4, box.name.data(), 4) != 4) return;
    std::uint64_t size = number_of(file, at, 4);
    if (size == 1) {
      size = number_of(file, at + 8, 8);
      box.begin += 8;
    }
    if (size == 0) size = end - at;
    if (size < box.begin - at || size > end - at) return;
    box.end = at + size;
    visit(box);
    at = box.end;
  }
}

/// The picture that is shown, of one as wide and high as the description says (ISO/IEC 14496-12, 12.1.4).
bool is_cropped(const InputBytes& file, const Mp4Box& clap, std::uint64_t entry) {
  const auto differs = [&](std::uint64_t at, std::uint64_t whole) {
    return number_of(file, at, 4) != whole * number_of(file, at + 4, 4);
  };
  return differs(clap.begin, number_of(file, entry + 24, 2)) || differs(clap.begin + 8, number_of(file, entry + 26, 2));
}

/// The boxes of a description: behind 78 bytes that all descriptions of pictures have.
void name_parts(const InputBytes& file, const Mp4Box& entry, PictureFile& film) {
  constexpr std::uint64_t kFields = 78;
  visit_boxes(file, entry.begin + kFields, entry.end, [&](const Mp4Box& part) {
    const auto add = [&film](const char* what) {
      if (std::find(film.left_out.begin(), film.left_out.end(), what) == film.left_out.end())
        film.left_out.emplace_back(what);
    };
    if (part.name == "lhvC") add("the second eye (MV-HEVC)");
    if (part.name == "vexu") add("how eyes see the picture (vexu)");
    if (part.name == "hfov") add("the horizontal field of view");
    if (part.name == "clap" && is_cropped(file, part, entry.begin)) add("cropping");
  });
}

}  // namespace

PictureFile describe_mp4(const InputBytes& file) {
  PictureFile film;
  // What leads to the descriptions; only tracks of pictures have a vmhd before them.
  static constexpr std::array<std::string_view, 5> kPath = {"moov", "trak", "mdia", "minf", "stbl"};
  bool shows_pictures = false;
  const auto look = [&](const auto& self, std::uint64_t begin, std::uint64_t end, std::size_t depth) -> void {
    visit_boxes(file, begin, end, [&](const Mp4Box& box) {
      if (depth < kPath.size() && box.name == kPath[depth]) {
        if (box.name == "minf") shows_pictures = false;
        self(self, box.begin, box.end, depth + 1);
      }
      if (box.name == "vmhd") shows_pictures = true;
      if (box.name == "stsd" && depth == kPath.size() && shows_pictures && box.end - box.begin > 8)
        visit_boxes(file, box.begin + 8, box.end, [&](const Mp4Box& entry) { name_parts(file, entry, film); });
    });
  };
  look(look, 0, *file.size(), 0);
  return film;
}

}  // namespace trivelet::io
