// Median edge prediction of volumes (LOCO-I), forward and inverse.
#include "codec/volume/volume_predict.h"

#include <algorithm>
#include <cstring>

namespace trivelet {

namespace {

int median(int a, int b, int c) {
  const int low = std::min(a, b);
  const int high = std::max(a, b);
  return c >= high ? low : c <= low ? high : a + b - c;
}

/// Calls f(x, prediction of sample x) along a row, in either direction. `row`, the row above (null = first row) and the
/// same rows of the slice before (null = predict within the slice) hold numbers.
template <class T>
struct Rows {
  const T* row;
  const T* above;
  const T* before;
  const T* before_above;
  int top;  // 2^bits - 1

  int at(int x) const { return before ? row[x] - before[x] : row[x]; }
  int over(int x) const { return before ? above[x] - before_above[x] : above[x]; }
  int prediction(int x) const {
    int p = 0;
    if (x > 0)
      p = above ? median(at(x - 1), over(x), over(x - 1)) : at(x - 1);
    else if (above)
      p = over(0);
    return before ? std::clamp(before[x] + p, 0, top) : p;
  }
};

template <class T, bool kForward>
void slice(const MutableVolumeView& v, int frame, bool across, int bits) {
  const int mask = (1 << bits) - 1;
  const int half = bits > 0 ? 1 << (bits - 1) : 0;
  const auto row_of = [&v](int f, int y) { return reinterpret_cast<T*>(v.row(f, y)); };
  for (int i = 0; i < v.shape.height; ++i) {
    // Forward runs from the last sample to the first, so that the neighbours are still numbers.
    const int y = kForward ? v.shape.height - 1 - i : i;
    T* row = row_of(frame, y);
    const Rows<T> rows{row, y > 0 ? row_of(frame, y - 1) : nullptr, across ? row_of(frame - 1, y) : nullptr,
                       across && y > 0 ? row_of(frame - 1, y - 1) : nullptr, mask};
    if constexpr (kForward) {
      for (int x = v.shape.width - 1; x >= 0; --x) {
        const int d = (row[x] - rows.prediction(x)) & mask;
        row[x] = static_cast<T>(d >= half ? d - mask - 1 : d);  // two's complement
      }
    } else {
      for (int x = 0; x < v.shape.width; ++x) row[x] = static_cast<T>((rows.prediction(x) + row[x]) & mask);
    }
  }
}

template <class T, bool kForward>
void all(VolumeMap::Prediction prediction, int bits, Gop& gop) {
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int i = 0; i < v.shape.frames; ++i) {
      const int f = kForward ? v.shape.frames - 1 - i : i;
      slice<T, kForward>(v, f, prediction == VolumeMap::Prediction::kAcross && f > 0, bits);
    }
  }
}

template <bool kForward>
void run(VolumeMap::Prediction prediction, int bits, Gop& gop) {
  if (prediction == VolumeMap::Prediction::kNone) return;
  bits <= 8 ? all<std::uint8_t, kForward>(prediction, bits, gop) : all<std::uint16_t, kForward>(prediction, bits, gop);
}

}  // namespace

void predict(VolumeMap::Prediction prediction, int bits, Gop& gop) { run<true>(prediction, bits, gop); }
void unpredict(VolumeMap::Prediction prediction, int bits, Gop& gop) { run<false>(prediction, bits, gop); }

}  // namespace trivelet
