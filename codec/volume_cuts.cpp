#include "codec/volume_cuts.h"

#include <bit>
#include <cmath>
#include <limits>

#include "codec/hash.h"

namespace trivelet {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kMaxCuts = 16;

void put(std::vector<std::uint8_t>& out, std::uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
}
std::uint64_t get(const std::uint8_t* p, int bytes) {
  std::uint64_t v = 0;
  for (int i = 0; i < bytes; ++i) v |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return v;
}
double real(const std::uint8_t* p) { return std::bit_cast<double>(get(p, 8)); }

std::size_t size_of(std::size_t cuts) { return 2 + 8 + 16 * cuts + 4; }

}  // namespace

std::vector<std::uint8_t> serialise(const VolumeCuts& c) {
  std::vector<std::uint8_t> out = {kVersion, static_cast<std::uint8_t>(c.cuts.size())};
  put(out, std::bit_cast<std::uint64_t>(c.peak), 8);
  for (const VolumeCuts::Cut& cut : c.cuts) {
    put(out, std::bit_cast<std::uint64_t>(cut.max_error), 8);
    put(out, std::bit_cast<std::uint64_t>(cut.mean_squared_error), 8);
  }
  put(out, crc32c(out.data(), out.size()), 4);
  return out;
}

VolumeCuts parse_volume_cuts(const std::uint8_t* bytes, std::size_t size) {
  VolumeCuts c;
  if (size < size_of(1) || bytes[0] != kVersion || bytes[1] < 1 || bytes[1] > kMaxCuts || size != size_of(bytes[1]) ||
      crc32c(bytes, size - 4) != get(bytes + size - 4, 4))
    return c;
  c.peak = real(bytes + 2);
  for (std::size_t i = 0; i < bytes[1]; ++i) {
    const std::uint8_t* p = bytes + 10 + 16 * i;
    VolumeCuts::Cut cut{real(p), real(p + 8)};
    if (!std::isfinite(cut.max_error) || !std::isfinite(cut.mean_squared_error)) cut = {};
    c.cuts.push_back(cut);
  }
  if (!std::isfinite(c.peak)) c = {};
  return c;
}

double psnr_of(const VolumeCuts& c, std::size_t layer) {
  const double error = c.cuts[layer].mean_squared_error;
  return error == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(c.peak * c.peak / error);
}

}  // namespace trivelet
