// A quantiser table and run lengths for the DCT of a whole picture. The header names the paper.

#include "apps/bench/papers_dct.h"

#include <cmath>
#include <cstdint>

#include "codec/still/dct/dct_scan.h"
#include "trivelet/error.h"

namespace trivelet::papers_dct {

namespace {

constexpr int kSide = 8;
constexpr std::uint8_t kTable[kSide][kSide] = {  // T.81, table K.1
    {16, 11, 10, 16, 24, 40, 51, 61},     {12, 12, 14, 19, 26, 58, 60, 55},   {14, 13, 16, 24, 40, 57, 69, 56},
    {14, 17, 22, 29, 51, 87, 80, 62},     {18, 22, 37, 56, 68, 109, 103, 77}, {24, 35, 55, 64, 81, 104, 113, 92},
    {49, 64, 78, 87, 103, 121, 120, 101}, {72, 92, 95, 98, 112, 100, 103, 99}};
constexpr std::size_t kLongRun = 255;

/// body(x, y, place in the scan) of every coefficient.
template <class Body>
void for_coefficients(int w, int h, const Body& body) {
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) body(x, y, dct::scan_place(x, y, w, h));
}

std::size_t index_of(int x, int y, int width) {
  return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
}

}  // namespace

double step_of(int x, int y, int width, int height, int qp, int bits) {
  const auto entry = [](int at, int side) { return static_cast<int>(std::int64_t{kSide} * at / side); };
  return kTable[entry(y, height)][entry(x, width)] / 16.0 * std::exp2((qp - 4) / 6.0 + bits - 8);
}

std::vector<std::byte> encode(const still::Image& image, int qp, double keep, dct::Transform& transform) {
  const int w = image.width, h = image.height, bits = image.format.bits;
  std::vector<double> plane;
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) plane.push_back(image.sample(0, x, y) - (1 << (bits - 1)));
  transform.forward(plane.data(), w, h);
  std::vector<std::int32_t> levels(static_cast<std::size_t>(std::llround(keep * static_cast<double>(plane.size()))));
  for_coefficients(w, h, [&](int x, int y, std::uint64_t place) {
    if (place < levels.size()) levels[place] = dct::level_of(plane[index_of(x, y, w)], step_of(x, y, w, h, qp, bits));
  });
  std::vector<std::byte> out;
  std::size_t run = 0;
  for (const std::int32_t level : levels) {
    if (level == 0) {
      ++run;
      continue;
    }
    for (; run >= kLongRun; run -= kLongRun) out.push_back(static_cast<std::byte>(kLongRun));
    out.push_back(static_cast<std::byte>(run));
    run = 0;
    std::uint32_t code = static_cast<std::uint32_t>(level) << 1 ^ static_cast<std::uint32_t>(level >> 31);
    for (; code >= 128; code >>= 7) out.push_back(static_cast<std::byte>(code | 128));
    out.push_back(static_cast<std::byte>(code));
  }
  return out;
}

void decode(std::span<const std::byte> bytes, int qp, dct::Transform& transform, still::Image& image) {
  const int w = image.width, h = image.height, bits = image.format.bits;
  std::vector<std::int32_t> levels(static_cast<std::size_t>(w) * static_cast<std::size_t>(h));
  std::size_t place = 0;
  for (std::size_t at = 0; at < bytes.size(); ++place) {
    const std::size_t run = std::to_integer<std::size_t>(bytes[at++]);
    place += run;
    if (run == kLongRun) {
      --place;  // no level follows
      continue;
    }
    std::uint32_t code = 0;
    bool more = true;
    for (int shift = 0; more; shift += 7) {
      require(at < bytes.size() && shift < 32, ErrorKind::kBadStream, "a level ends early");
      const std::uint32_t byte = std::to_integer<std::uint32_t>(bytes[at++]);
      code |= (byte & 127) << shift;
      more = byte >= 128;
    }
    require(place < levels.size(), ErrorKind::kBadStream, "a run of zeros leaves the plane");
    levels[place] = static_cast<std::int32_t>(code >> 1 ^ (0 - (code & 1)));
  }
  std::vector<double> plane(levels.size());
  for_coefficients(w, h, [&](int x, int y, std::uint64_t p) {
    plane[index_of(x, y, w)] = levels[p] * step_of(x, y, w, h, qp, bits);
  });
  transform.inverse(plane.data(), w, h);
  const double middle = 1 << (bits - 1), most = (1 << bits) - 1;
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) image.set_sample(0, x, y, dct::sample_of(plane[index_of(x, y, w)], middle, most));
}

}  // namespace trivelet::papers_dct
