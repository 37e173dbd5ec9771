// RealMedia is a row of chunks: four letters, length, version, contents, all big-endian. A chunk DATA has the number of
// its packets and the place of the next one.
#include "io/video/ffmpeg/ffmpeg_real_media.h"

extern "C" {
#include <libavutil/intreadwrite.h>
}

#include <string_view>

namespace trivelet::io {

std::optional<std::uint64_t> second_data_of_real_media(InputBytes& source) {
  constexpr std::size_t kHead = 10, kDataHead = 18;
  constexpr std::size_t kMost = std::size_t{1} << 20;  // descriptions of 256 tracks
  if (source.peek(4) != ".RMF") return std::nullopt;
  const std::uint64_t begin = source.position();
  for (std::size_t at = 0; at < kMost;) {
    const std::string_view bytes = source.peek(at + kDataHead);
    if (bytes.size() < at + kDataHead) return std::nullopt;
    const auto* const chunk = reinterpret_cast<const std::uint8_t*>(bytes.data()) + at;
    const std::uint32_t size = AV_RB32(chunk + 4);
    if (bytes.substr(at, 4) == "DATA") {
      const std::uint64_t next = AV_RB32(chunk + 14);
      if (next > begin + at && (!source.size() || next < *source.size())) return next;
      return std::nullopt;
    }
    if (size < kHead) return std::nullopt;
    at += size;
  }
  return std::nullopt;
}

}  // namespace trivelet::io
