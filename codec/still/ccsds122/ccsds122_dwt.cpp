// The three-level wavelet transform (CCSDS 122.0-B-2 §3) in strips of rows, a task for each strip.
#include "codec/still/ccsds122/ccsds122_dwt.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

namespace trivelet::ccsds122 {
namespace {

constexpr int kStrip = 32;  // row pairs per task; of 64 rows, 8 are read twice
constexpr int kRing = 16;   // buffered rows of a strip; more than the 9 that the filters span
constexpr int kMargin = 64;

/// Whole-sample symmetric extension of a row number.
int mirror(int y, int height) { return y < 0 ? -y : y >= height ? 2 * (height - 1) - y : y; }

/// The bands of one level except LL: HL, LH, HH.
struct Level {
  int wide = 0, high = 0;  // of each band
  std::int32_t* band[3] = {};
};

Level level_of(const BandView& v, int level) {
  const int scale = 1 << (3 - level);
  const int first = level == 1 ? kHL1 : level == 2 ? kHL2 : kHL3;
  return {v.blocks_wide * scale, v.blocks_high * scale, {v.data[first], v.data[first + 1], v.data[first + 2]}};
}

std::size_t at(int row, int wide) { return static_cast<std::size_t>(row) * static_cast<std::size_t>(wide); }

/// One forward level. `load(y, row)` gives row y of 2 * wide samples; `low` receives LL (as T, or rounded into LL3).
template <class T, class Load>
void forward_level(const Level& level, const Load& load, T* low, std::int32_t* rounded_low, const LineKernels<T>& k,
                   const Kernels& all, ThreadPool& pool) {
  const int wide = level.wide, high = level.high, width = 2 * wide, height = 2 * high;
  const std::size_t row_size = static_cast<std::size_t>(width) + kMargin;
  std::vector<std::vector<T>> scratch(static_cast<std::size_t>(pool.threads()));

  pool.parallel_for((high + kStrip - 1) / kStrip, [&](int strip, int worker) {
    std::vector<T>& memory = scratch[static_cast<std::size_t>(worker)];
    memory.resize(row_size * (kRing + 6));
    T* const ring = memory.data();
    T* const line = ring + row_size * kRing;  // a row before the split
    T* const work = line + row_size;          // scratch of the row kernel
    T* const d_rows[2] = {work + row_size * 2, work + row_size * 3};
    T* const out_row = work + row_size;
    const auto row = [&](int y) { return ring + static_cast<std::size_t>(mirror(y, height) % kRing) * row_size; };

    const int from = strip * kStrip, to = std::min(high, from + kStrip);
    int next = std::max(0, 2 * from - 4);
    const auto fetch = [&](int last) {
      for (; next <= std::min(last, height - 1); ++next) {
        load(next, line);
        T* r = row(next);
        k.forward_row(line, wide, r, r + wide, work);
      }
    };
    const auto high_row = [&](int j, T* out) {
      for (int half = 0; half < 2; ++half) {
        const T* rows[7];
        for (int i = 0; i < 7; ++i) rows[i] = row(2 * j + 1 - 3 + i) + half * wide;
        k.forward_high(rows, wide, out + half * wide);
      }
    };
    const auto put = [&](const T* values, std::int32_t* out) {
      if constexpr (std::is_same_v<T, float>) {
        all.round_row(values, wide, out);
      } else {
        std::memcpy(out, values, static_cast<std::size_t>(wide) * sizeof(T));
      }
    };

    if (from > 0) {  // D[from - 1], needed by the first low row
      fetch(2 * from + 2);
      high_row(from - 1, d_rows[(from - 1) & 1]);
    }
    for (int j = from; j < to; ++j) {
      fetch(2 * j + 4);
      T* d = d_rows[j & 1];
      T* d_before = j > 0 ? d_rows[(j - 1) & 1] : d;
      high_row(j, d);
      put(d, level.band[1] + at(j, wide));
      put(d + wide, level.band[2] + at(j, wide));
      for (int half = 0; half < 2; ++half) {
        const T* rows[9];
        for (int i = 0; i < 9; ++i) rows[i] = row(2 * j - 4 + i) + half * wide;
        const T* highs[2] = {d_before + half * wide, d + half * wide};
        if (half == 0 && low) {
          k.forward_low(rows, highs, wide, low + at(j, wide));
        } else {
          k.forward_low(rows, highs, wide, out_row);
          put(out_row, (half == 0 ? rounded_low : level.band[0]) + at(j, wide));
        }
      }
    }
  });
}

/// One inverse level. `low` is LL; `store(y, row)` takes row y of 2 * wide samples.
template <class T, class Store>
void inverse_level(const Level& level, const T* low, const Store& store, const LineKernels<T>& k, ThreadPool& pool) {
  const int wide = level.wide, high = level.high, width = 2 * wide;
  const std::size_t row_size = static_cast<std::size_t>(width) + kMargin;
  std::vector<std::vector<T>> scratch(static_cast<std::size_t>(pool.threads()));
  // Band memory holds T: int32, or float of the same size.
  const T* const bands[4] = {low, reinterpret_cast<const T*>(level.band[0]), reinterpret_cast<const T*>(level.band[1]),
                             reinterpret_cast<const T*>(level.band[2])};

  pool.parallel_for((high + kStrip - 1) / kStrip, [&](int strip, int worker) {
    std::vector<T>& memory = scratch[static_cast<std::size_t>(worker)];
    memory.resize(row_size * (8 + 4));
    T* const ring = memory.data();  // even rows before the horizontal transform
    T* const odd = ring + row_size * 8;
    T* const line = odd + row_size;
    T* const work = line + row_size;

    // Symmetric extension: lows C[-m] = C[m], C[N-1+m] = C[N-m]; highs D[-m] = D[m-1], D[N-1+m] = D[N-1-m].
    const auto c_index = [&](int j) { return j < 0 ? -j : j >= high ? 2 * high - 1 - j : j; };
    const auto d_index = [&](int j) { return j < 0 ? -j - 1 : j >= high ? 2 * (high - 1) - j : j; };
    const auto c_row = [&](int j, int half) { return bands[half] + at(c_index(j), wide); };
    const auto d_row = [&](int j, int half) { return bands[2 + half] + at(d_index(j), wide); };
    const auto e_row = [&](int j, int half) {
      return ring + static_cast<std::size_t>(c_index(j) & 7) * row_size + half * wide;
    };
    const auto even_row = [&](int j) {
      for (int half = 0; half < 2; ++half) {
        const T* lows[3];
        const T* highs[4];
        for (int i = 0; i < 3; ++i) lows[i] = c_row(j - 1 + i, half);
        for (int i = 0; i < 4; ++i) highs[i] = d_row(j - 2 + i, half);
        k.inverse_even(lows, highs, wide, e_row(j, half));
      }
    };
    const auto finish = [&](const T* columns, int y) {
      k.inverse_row(columns, columns + wide, wide, line, work);
      store(y, line);
    };

    const int from = strip * kStrip, to = std::min(high, from + kStrip);
    int next = std::max(0, from - 1);
    for (int j = from; j < to; ++j) {
      for (; next <= std::min(j + 2, high - 1); ++next) even_row(next);
      for (int half = 0; half < 2; ++half) {
        const T* lows[4];
        const T* highs[5];
        const T* evens[4];
        for (int i = 0; i < 4; ++i) lows[i] = c_row(j - 1 + i, half);
        for (int i = 0; i < 5; ++i) highs[i] = d_row(j - 2 + i, half);
        for (int i = 0; i < 4; ++i) evens[i] = e_row(j - 1 + i, half);
        k.inverse_odd(lows, highs, evens, wide, odd + half * wide);
      }
      finish(e_row(j, 0), 2 * j);
      finish(odd, 2 * j + 1);
    }
  });
}

template <class T>
void forward(const VolumeView& image, const Subbands& out, const LineKernels<T>& k, const Kernels& all,
             ThreadPool& pool) {
  const BandView& v = out.view();
  const Level l1 = level_of(v, 1), l2 = level_of(v, 2), l3 = level_of(v, 3);
  const std::unique_ptr<T[]> low1(new T[at(l1.high, l1.wide)]);
  const std::unique_ptr<T[]> low2(new T[at(l2.high, l2.wide)]);
  const int width = image.shape.width, height = image.shape.height;
  forward_level<T>(
      l1,
      [&](int y, T* row) {
        k.load_row(image.row(0, std::min(y, height - 1)), image.bytes_per_sample, image.is_signed, width, 2 * l1.wide,
                   row);
      },
      low1.get(), nullptr, k, all, pool);
  const auto from_low = [](const T* low, int wide) {
    return
        [low, wide](int y, T* row) { std::memcpy(row, low + at(y, wide), static_cast<std::size_t>(wide) * sizeof(T)); };
  };
  forward_level<T>(l2, from_low(low1.get(), l1.wide), low2.get(), nullptr, k, all, pool);
  forward_level<T>(l3, from_low(low2.get(), l2.wide), nullptr, v.data[kLL3], k, all, pool);
}

template <class T>
void inverse(const Subbands& in, std::int64_t low, std::int64_t high, const MutableVolumeView& image,
             const LineKernels<T>& k, ThreadPool& pool) {
  const BandView& v = in.view();
  const Level l1 = level_of(v, 1), l2 = level_of(v, 2), l3 = level_of(v, 3);
  const std::unique_ptr<T[]> low1(new T[at(l1.high, l1.wide)]);
  const std::unique_ptr<T[]> low2(new T[at(l2.high, l2.wide)]);
  const auto into = [](T* to, int wide) {
    return [to, wide](int y, const T* row) {
      std::memcpy(to + at(y, wide), row, static_cast<std::size_t>(wide) * sizeof(T));
    };
  };
  inverse_level<T>(l3, reinterpret_cast<const T*>(v.data[kLL3]), into(low2.get(), l2.wide), k, pool);
  inverse_level<T>(l2, low2.get(), into(low1.get(), l1.wide), k, pool);
  inverse_level<T>(
      l1, low1.get(),
      [&](int y, const T* row) {
        if (y < image.shape.height)
          k.store_row(row, image.bytes_per_sample, low, high, image.shape.width, image.row(0, y));
      },
      k, pool);
}

constexpr int kNarrowBits = 16;  // 32-bit intermediates are safe: 20 * 1.5^4 * 2.25 * 2^15 < 2^31

}  // namespace

Subbands::Subbands(int blocks_wide, int blocks_high) {
  const std::size_t blocks = checked_mul(static_cast<std::size_t>(blocks_wide), static_cast<std::size_t>(blocks_high));
  memory_.reset(new std::int32_t[checked_mul(blocks, 64)]);
  view_.blocks_wide = blocks_wide;
  view_.blocks_high = blocks_high;
  std::int32_t* p = memory_.get();
  for (int b = 0; b < kBands; ++b) {
    view_.data[b] = p;
    p += blocks * (b < kHL2 ? 1 : b < kHL1 ? 4 : 16);
  }
}

void forward_dwt(const VolumeView& image, Dwt dwt, int bits, const Subbands& out, const Kernels& k, ThreadPool& pool) {
  if (dwt == Dwt::kFloat) {
    forward<float>(image, out, k.real, k, pool);
  } else {
    forward<std::int32_t>(image, out, bits <= kNarrowBits ? k.narrow : k.wide, k, pool);
  }
}

void inverse_dwt(const Subbands& in, Dwt dwt, int bits, std::int64_t low, std::int64_t high,
                 const MutableVolumeView& image, const Kernels& k, ThreadPool& pool) {
  if (dwt == Dwt::kFloat) {
    inverse<float>(in, low, high, image, k.real, pool);
  } else {
    inverse<std::int32_t>(in, low, high, image, bits <= kNarrowBits ? k.narrow : k.wide, pool);
  }
}

}  // namespace trivelet::ccsds122
