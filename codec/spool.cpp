#include "codec/spool.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace trivelet {

Spool::Spool(const std::string& path) {
  file_ = path.empty() ? std::tmpfile() : std::fopen(path.c_str(), "w+bx");
  require(file_ != nullptr, ErrorKind::kIo,
          "cannot create the temporary file " + (path.empty() ? std::string("of the encoder") : "'" + path + "'") +
              ": " + std::strerror(errno));
  if (!path.empty()) std::remove(path.c_str());  // lives on without a name until it is closed
}

Spool::~Spool() { std::fclose(file_); }

void Spool::rewind() {
  require(std::fflush(file_) == 0 && std::fseek(file_, 0, SEEK_SET) == 0, ErrorKind::kIo,
          "cannot read the temporary file of the encoder again");
}

namespace {
constexpr double kPerOctave = 8;
}

RateCurve::RateCurve(const RateControl& control) {
  std::vector<double> lambdas;
  for (int i = 0; i <= static_cast<int>((kMost - kLeast) * kPerOctave); ++i)
    lambdas.push_back(std::exp2(kLeast + i / kPerOctave));
  for (const std::uint64_t bytes : control.body_bytes_at(lambdas)) bytes_.push_back(static_cast<float>(bytes));
}

double RateCurve::bytes(double log2_slope) const {
  const double at = std::clamp((log2_slope - kLeast) * kPerOctave, 0.0, static_cast<double>(bytes_.size() - 1));
  const auto i = std::min(static_cast<std::size_t>(at), bytes_.size() - 2);
  const double f = at - static_cast<double>(i);
  return (1 - f) * static_cast<double>(bytes_[i]) + f * static_cast<double>(bytes_[i + 1]);
}

}  // namespace trivelet
