// FFmpeg takes the primary picture's samples as they are coded. Properties and other pictures that belong to it are
// found by the names of their boxes in the box 'meta'.
#include "io/video/ffmpeg/ffmpeg_left_out.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "io/source.h"

namespace trivelet::io {

namespace {

constexpr std::uint64_t kMostMeta = 1 << 20;
constexpr int kMostBoxes = 16;  // in front of 'meta'

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

}  // namespace

std::optional<HeifPicture> heif_picture(const std::string& path) {
  if (path == "-") return std::nullopt;
  const InputBytes file(path);
  std::array<char, 12> head{};
  if (!file.size() || file.read_at(0, head.data(), head.size()) != head.size()) return std::nullopt;
  const std::string_view begin(head.data(), head.size());
  if (begin.substr(4, 4) != "ftyp" || !is_heif_picture(begin.substr(8, 4))) return std::nullopt;
  const std::string meta = meta_of(file);
  const auto has = [&meta](std::string_view name) { return meta.find(name) != std::string::npos; };
  HeifPicture picture;
  picture.in_tiles = has("grid") || has("iovl");
  const std::array<std::pair<std::string_view, std::string_view>, 5> parts = {{{":alpha", "transparency"},
                                                                               {"irot", "rotation"},
                                                                               {"imir", "mirroring"},
                                                                               {"clap", "cropping"},
                                                                               {"tmap", "gain map"}}};
  for (const auto& [name, what] : parts)
    if (has(name)) picture.left_out += (picture.left_out.empty() ? "" : ", ") + std::string(what);
  return picture;
}

}  // namespace trivelet::io
