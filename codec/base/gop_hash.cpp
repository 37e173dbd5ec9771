// The hash and the check run over rows, so that both take views with any strides.
#include "codec/base/gop_hash.h"

#include <string>
#include <type_traits>

#include "codec/base/hash.h"

namespace trivelet {

std::uint64_t hash_samples(const Gop& gop) {
  XxHash64 h;
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = gop.plane(c);
    for (int f = 0; f < v.shape.frames; ++f)
      for (int y = 0; y < v.shape.height; ++y)
        h.update(v.row(f, y), static_cast<std::size_t>(v.shape.width) * static_cast<std::size_t>(v.bytes_per_sample));
  }
  return h.digest();
}

namespace {

template <class T>
void check(const VolumeView& v, int component, int low, int high) {
  for (int f = 0; f < v.shape.frames; ++f)
    for (int y = 0; y < v.shape.height; ++y) {
      const T* row = reinterpret_cast<const T*>(v.row(f, y));
      // The bits of a sample that lie above those of `high` (all bits of a negative sample are inverted): one pass
      // without a branch.
      T used = 0;
      for (int x = 0; x < v.shape.width; ++x)
        used = static_cast<T>(used | (row[x] ^ (std::is_signed_v<T> ? row[x] >> (8 * sizeof(T) - 1) : 0)));
      if (used <= high) continue;
      for (int x = 0; x < v.shape.width; ++x)
        require(row[x] >= low && row[x] <= high, ErrorKind::kBadArgument,
                "sample " + std::to_string(row[x]) + " of component " + std::to_string(component) + " at frame " +
                    std::to_string(f) + " of the GOP, row " + std::to_string(y) + ", column " + std::to_string(x) +
                    " is outside " + std::to_string(low) + ".." + std::to_string(high) +
                    "; declare more bits per sample");
    }
}

}  // namespace

void check_samples(const Gop& gop, int bits) {
  if (bits == 8 || bits == 16) return;
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = gop.plane(c);
    const int low = v.is_signed ? -(1 << (bits - 1)) : 0;
    const int high = v.is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    if (v.bytes_per_sample == 1)
      v.is_signed ? check<std::int8_t>(v, c, low, high) : check<std::uint8_t>(v, c, low, high);
    else
      v.is_signed ? check<std::int16_t>(v, c, low, high) : check<std::uint16_t>(v, c, low, high);
  }
}

}  // namespace trivelet
