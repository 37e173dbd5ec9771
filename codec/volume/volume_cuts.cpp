// Writes and reads the box `volq`, the measured errors of a volume's quality layers (FORMAT.md "volq").
#include "codec/volume/volume_cuts.h"

#include <cmath>
#include <limits>
#include <utility>

#include "codec/base/bytes.h"

namespace trivelet {

namespace {

constexpr std::uint8_t kCutsVersion = 1;
constexpr std::size_t kMaxCuts = 16;

std::size_t size_of(std::size_t cuts) { return 2 + 8 + 16 * cuts; }

}  // namespace

std::vector<std::uint8_t> serialise(const VolumeCuts& c) {
  ByteWriter w;
  w.fixed(kCutsVersion);
  w.fixed(static_cast<std::uint8_t>(c.cuts.size()));
  w.real(c.peak);
  for (const VolumeCuts::Cut& cut : c.cuts) {
    w.real(cut.max_error);
    w.real(cut.mean_squared_error);
  }
  return std::move(w.bytes);
}

VolumeCuts parse_volume_cuts(const std::uint8_t* bytes, std::size_t size) {
  VolumeCuts c;
  if (size < size_of(1) || bytes[0] != kCutsVersion || bytes[1] < 1 || bytes[1] > kMaxCuts || size < size_of(bytes[1]))
    return c;
  ByteReader r(bytes + 2, size - 2, "errors of the cuts");
  r.real(c.peak);
  c.cuts.resize(bytes[1]);
  for (VolumeCuts::Cut& cut : c.cuts) {
    r.real(cut.max_error);
    r.real(cut.mean_squared_error);
    if (!std::isfinite(cut.max_error) || !std::isfinite(cut.mean_squared_error)) cut = {};
  }
  if (!std::isfinite(c.peak)) c = {};
  return c;
}

double psnr_of(const VolumeCuts& c, std::size_t layer) {
  const double error = c.cuts[layer].mean_squared_error;
  return error == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(c.peak * c.peak / error);
}

}  // namespace trivelet
