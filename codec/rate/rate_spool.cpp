// A GOP's rate control to and from a temporary file (rate_control.h).
#include "codec/rate/rate_control.h"

namespace trivelet {

namespace {

template <class T>
void put(std::FILE* f, const T* data, std::size_t n) {
  if (n == 0) return;  // the pointer may be null, as in a flat picture
  require(std::fwrite(data, sizeof(T), n, f) == n, ErrorKind::kIo, "cannot write to the temporary file of the encoder");
}
template <class T>
void take(std::FILE* f, T* data, std::size_t n) {
  if (n == 0) return;
  require(std::fread(data, sizeof(T), n, f) == n, ErrorKind::kIo, "cannot read the temporary file of the encoder");
}

}  // namespace

void RateControl::save(std::FILE* file) const {
  const std::uint64_t sizes[3] = {runs_.size(), points_.size(), bytes_.size()};
  put(file, sizes, 3);
  put(file, &energy_, 1);
  put(file, &spared_, 1);
  put(file, runs_.data(), runs_.size());
  put(file, points_.data(), points_.size());
  put(file, bytes_.data(), bytes_.size());
}

RateControl::RateControl(const StreamHeader& header, const std::vector<const BlockGrid*>& grids, std::FILE* file,
                         ThreadPool* pool)
    : header_(header), pool_(pool) {
  prepare(grids);
  std::uint64_t sizes[3] = {};
  take(file, sizes, 3);
  take(file, &energy_, 1);
  take(file, &spared_, 1);
  runs_.resize(sizes[0]);
  points_.resize(sizes[1]);
  bytes_.resize(sizes[2]);
  take(file, runs_.data(), runs_.size());
  take(file, points_.data(), points_.size());
  take(file, bytes_.data(), bytes_.size());
}

}  // namespace trivelet
