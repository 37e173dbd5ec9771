// The temporary file of coded GOPs, and the rate curves that choose their common slope (see spool.h).
#include "codec/rate/spool.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace trivelet {

namespace {

// glibc's std::tmpfile() does not ask for TMPDIR.
std::FILE* open_unnamed(const std::string& folder) {
  if (folder.empty()) return std::tmpfile();
  std::string path = folder + "/trivelet-XXXXXX";
  const int number = mkstemp(path.data());
  if (number < 0) return nullptr;
  std::remove(path.c_str());
  std::FILE* file = fdopen(number, "w+b");
  if (file == nullptr) close(number);
  return file;
}

}  // namespace

Spool::Spool(const std::string& path) {
  const char* set = std::getenv("TMPDIR");
  const std::string folder = set != nullptr ? set : "";
  file_ = path.empty() ? open_unnamed(folder) : std::fopen(path.c_str(), "w+bx");
  const std::string name = !path.empty()     ? "'" + path + "'"
                           : !folder.empty() ? "in '" + folder + "', as TMPDIR says"
                                             : "of the encoder";
  require(file_ != nullptr, ErrorKind::kIo, "cannot create the temporary file " + name + ": " + std::strerror(errno));
  if (!path.empty()) std::remove(path.c_str());  // lives on without a name until it is closed
}

Spool::~Spool() { std::fclose(file_); }

void Spool::rewind() {
  require(std::fflush(file_) == 0, ErrorKind::kIo, "cannot write the temporary file of the encoder");
  seek(0);
}

void Spool::seek(long offset) {
  if (std::ftell(file_) == offset) return;
  require(std::fseek(file_, offset, SEEK_SET) == 0, ErrorKind::kIo,
          "cannot read the temporary file of the encoder again");
}

namespace {
constexpr double kPerOctave = 4;
}

RateCurve::RateCurve(const RateControl& control, std::uint64_t fixed, int frames) : fixed_(fixed), frames_(frames) {
  const auto slope = [](std::size_t i) { return std::exp2(kLeast + static_cast<double>(i) / kPerOctave); };
  constexpr auto kStride = static_cast<std::size_t>(kPerOctave);
  const auto octaves = static_cast<std::size_t>(kMost - kLeast);
  std::vector<double> lambdas;
  for (std::size_t o = 0; o <= octaves; ++o) lambdas.push_back(slope(o * kStride));
  const std::vector<std::uint64_t> rough = control.body_bytes_at(lambdas);
  // Most octaves hold no cut of any segment.
  std::vector<std::size_t> between;
  lambdas.clear();
  bytes_.resize(octaves * kStride + 1);
  for (std::size_t o = 0; o < octaves; ++o)
    for (std::size_t i = o * kStride; i < (o + 1) * kStride; ++i) {
      bytes_[i] = static_cast<float>(rough[o]);
      if (i == o * kStride || rough[o] == rough[o + 1]) continue;
      between.push_back(i);
      lambdas.push_back(slope(i));
    }
  bytes_.back() = static_cast<float>(rough.back());
  const std::vector<std::uint64_t> fine = control.body_bytes_at(lambdas);
  for (std::size_t i = 0; i < between.size(); ++i) bytes_[between[i]] = static_cast<float>(fine[i]);
}

double RateCurve::bytes(double log2_slope) const {
  const double at = std::clamp((log2_slope - kLeast) * kPerOctave, 0.0, static_cast<double>(bytes_.size() - 1));
  const auto i = std::min(static_cast<std::size_t>(at), bytes_.size() - 2);
  const double f = at - static_cast<double>(i);
  return (1 - f) * static_cast<double>(bytes_[i]) + f * static_cast<double>(bytes_[i + 1]) +
         static_cast<double>(fixed_);
}

double slope_for(const std::vector<RateCurve>& curves, double bytes) {
  double low = RateCurve::kLeast;
  double high = RateCurve::kMost;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const RateCurve& c : curves) sum += c.bytes(middle);
    (sum > bytes ? low : high) = middle;
  }
  return high;
}

}  // namespace trivelet
