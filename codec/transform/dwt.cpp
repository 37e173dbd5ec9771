// Tiles, passes and threads of the wavelet transform. The arithmetic is in lifting.h, the loops are in dwt_kernels.cpp.
//
// Time: a tile is a few hundred columns of one row in all frames. It is gathered into a small buffer, because frames
// are often a multiple of 4096 bytes apart and would share cache sets. Samples are converted on the way in; all
// temporal levels run in the buffer; the result is written once. The inverse mirrors this and ends with rounding.
// Space: one sweep per frame and level (dwt_kernels.cpp). Threads take rows and tiles in time, frames in space. With
// fewer frames than threads each sweep is split into rows, then into strips of columns.
#include "codec/transform/dwt.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codec/base/simd.h"
#include "codec/base/squared_error.h"
#include "codec/transform/dwt_kernels.h"
#include "codec/transform/lifting.h"
#include "codec/transform/zero_patches.h"
#include "trivelet/error.h"

namespace trivelet {

namespace {

constexpr int kMaxLevels = 8;
constexpr std::int32_t kMaxOffset = 1 << 20;

constexpr std::size_t kTileBytes = 64 << 10;  // size of the buffer of a temporal tile
constexpr int kMinTileColumns = 64;
constexpr int kMaxTileColumns = 1024;
constexpr int kMinStripColumns = 64;  // of a split sweep; wide strips need fewer page walks
constexpr int kMaxStripColumns = 1024;
constexpr int kStripRows = 32;
constexpr std::size_t kStreamBytes = std::size_t{32} << 20;  // larger fields are written past the caches

std::string to_string(const Shape& s) {
  return std::to_string(s.frames) + "x" + std::to_string(s.height) + "x" + std::to_string(s.width);
}

void check_samples(const Shape& field, const Shape& samples, int bytes_per_sample, std::int32_t offset) {
  require(field == samples, ErrorKind::kBadArgument,
          "samples of " + to_string(samples) + " for coefficients of " + to_string(field));
  require(bytes_per_sample == 1 || bytes_per_sample == 2, ErrorKind::kBadArgument,
          "bytes per sample must be 1 or 2, not " + std::to_string(bytes_per_sample));
  require(offset >= -kMaxOffset && offset <= kMaxOffset, ErrorKind::kBadArgument,
          "sample offset " + std::to_string(offset) + " is beyond +-" + std::to_string(kMaxOffset));
}

template <class T, class View>
void check_target(const Shape& field, const View& samples, float gain, std::int32_t offset, std::int32_t min_sample,
                  std::int32_t max_sample) {
  check_samples(field, samples.shape, samples.bytes_per_sample, offset);
  const int bits = 8 * samples.bytes_per_sample;
  const std::int32_t least = samples.is_signed ? -(1 << (bits - 1)) : 0;
  const std::int32_t most = least + (1 << bits) - 1;
  require(least <= min_sample && min_sample <= max_sample && max_sample <= most, ErrorKind::kBadArgument,
          "sample range [" + std::to_string(min_sample) + ", " + std::to_string(max_sample) + "] does not fit into [" +
              std::to_string(least) + ", " + std::to_string(most) + "]");
  require(std::is_floating_point_v<T> || gain == 1.0f, ErrorKind::kBadArgument,
          "integer transforms have gain 1, not " + std::to_string(gain));
}

/// Scratch memory of one worker, 64-byte aligned, uninitialised.
template <class T>
class Scratch {
 public:
  void reserve(std::size_t values) {
    memory_ = std::make_unique_for_overwrite<std::byte[]>(checked_mul(values, sizeof(T)) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    data_ = reinterpret_cast<T*>(memory_.get() + (64 - address % 64) % 64);
  }
  T* data() const { return data_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  T* data_ = nullptr;
};

void prefetch(const void* from, std::ptrdiff_t bytes) {
  const char* p = static_cast<const char*>(from);
  for (std::ptrdiff_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

/// Destination of rounded samples, or the original they are compared with.
struct Target {
  MutableVolumeView samples;
  VolumeView original;              // of a comparison, in place of `samples`
  std::uint64_t* errors = nullptr;  // of a comparison: [frame][row], squared differences are added
  float gain = 1;
  std::int32_t offset = 0;
  std::int32_t min_sample = 0;
  std::int32_t max_sample = 0;
};

/// The part of a volume that is low after `time` splits of time and `space` splits of rows and columns.
struct Lattice {
  int time = 0;
  int space = 0;
};

template <class T>
class Transform {
 public:
  Transform(const Field<T>& field, const Decomposition& d, ThreadPool& pool, SimdLevel simd,
            const std::vector<float>& frame_gains, const ZeroPatches* left_out = nullptr)
      : field_(field), d_(d), pool_(pool), kernels_(dwt_kernels<T>(simd)), gains_(frame_gains), left_out_(left_out) {
    const Shape& s = field.shape;
    require(!left_out || d.layout == Layout::kT2d, ErrorKind::kBadArgument, "zeros left out of the dyadic layout");
    require(gains_.empty() || (std::is_floating_point_v<T> && d.layout == Layout::kT2d &&
                               gains_.size() == static_cast<std::size_t>(s.frames)),
            ErrorKind::kBadArgument, "frame gains that do not fit the transform");
    require(s.frames >= 1 && s.height >= 1 && s.width >= 1, ErrorKind::kBadArgument,
            "cannot transform a volume of " + to_string(s));
    check_axis("temporal", d.temporal_levels, d.temporal);
    check_axis("spatial", d.spatial_levels, d.spatial);
    require(d.layout == Layout::kT2d || d.temporal_levels <= d.spatial_levels, ErrorKind::kBadArgument,
            "the dyadic layout needs at least as many spatial levels (" + std::to_string(d.spatial_levels) +
                ") as temporal levels (" + std::to_string(d.temporal_levels) + ")");
    const int fit = static_cast<int>(kTileBytes / sizeof(T) / static_cast<std::size_t>(s.frames)) / 16 * 16;
    const int tiles = ceil_div(s.width, std::clamp(fit, kMinTileColumns, kMaxTileColumns));
    tile_columns_ = ceil_div(ceil_div(s.width, tiles), 16) * 16;
    tile_stride_ = tile_columns_ + 16;  // not a power of two, so that rows of the tile do not share cache sets
    stream_ = checked_mul(s.samples(), sizeof(T)) > kStreamBytes;
    scratch_.resize(static_cast<std::size_t>(pool.threads()));
    for (Scratch<T>& x : scratch_)
      x.reserve(std::max(checked_mul(static_cast<std::size_t>(tile_stride_), static_cast<std::size_t>(s.frames)),
                         plane_scratch(s.width)));
  }

  void forward(const VolumeView* samples, std::int32_t offset) {
    if (d_.layout == Layout::kT2d) {
      forward_time({}, d_.temporal_levels, samples, offset);
      forward_space({}, d_.spatial_levels);
      return;
    }
    if (d_.spatial_levels == 0) forward_time({}, 0, samples, offset);
    for (int l = 0; l < d_.spatial_levels; ++l) {
      const Lattice lattice{std::min(l, d_.temporal_levels), l};
      forward_time(lattice, l < d_.temporal_levels ? 1 : 0, l == 0 ? samples : nullptr, offset);
      forward_space(lattice, 1);
    }
  }

  void inverse(const Target* target) {
    if (d_.layout == Layout::kT2d) {
      inverse_space({}, d_.spatial_levels);
      inverse_time({}, d_.temporal_levels, target);
      return;
    }
    for (int l = d_.spatial_levels - 1; l >= 0; --l) {
      const Lattice lattice{std::min(l, d_.temporal_levels), l};
      inverse_space(lattice, 1);
      inverse_time(lattice, l < d_.temporal_levels ? 1 : 0, l == 0 ? target : nullptr);
    }
    if (d_.spatial_levels == 0) inverse_time({}, 0, target);
  }

 private:
  void check_axis(const char* axis, int levels, Wavelet wavelet) const {
    require(levels >= 0 && levels <= kMaxLevels, ErrorKind::kBadArgument,
            std::string(axis) + " levels must be 0 to 8, not " + std::to_string(levels));
    const int w = static_cast<int>(wavelet);
    require(levels == 0 || (w < kWavelets && kernels_.forward[w] != nullptr), ErrorKind::kBadArgument,
            std::string(axis) + " wavelet " + std::to_string(w) + " has no transform of this coefficient type");
  }

  PlaneKernel<T> forward_kernel(Wavelet w) const { return kernels_.forward[static_cast<int>(w)]; }
  PlaneKernel<T> inverse_kernel(Wavelet w) const { return kernels_.inverse[static_cast<int>(w)]; }
  int frames(int level) const { return low_length(field_.shape.frames, level); }
  int height(int level) const { return low_length(field_.shape.height, level); }
  int width(int level) const { return low_length(field_.shape.width, level); }
  T* row(int frame, int y) const { return field_.row(frame, y); }
  void amplify([[maybe_unused]] T* line, [[maybe_unused]] int frame, [[maybe_unused]] int columns) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (gains_.empty()) return;
      const float gain = gains_[static_cast<std::size_t>(frame)];
      if (gain == 1.0f) return;
      for (int x = 0; x < columns; ++x) line[x] *= gain;
    }
  }

  std::ptrdiff_t tile_bytes() const { return tile_columns_ * static_cast<std::ptrdiff_t>(sizeof(T)); }

  /// Calls body(y, x, columns, next_y, next_x, scratch) for the tiles of all rows of the lattice. The next tile starts
  /// at (next_y, next_x), so that the body can prefetch it.
  template <class Body>
  void for_tiles(Lattice at, const Body& body) {
    const int tiles = ceil_div(width(at.space), tile_columns_);
    pool_.parallel_for(height(at.space), [&](int i, int worker) {
      for (int tile = 0; tile < tiles; ++tile) {
        const int x = tile * tile_columns_;
        const bool last = tile + 1 == tiles;
        const int next_y = std::min(last ? i + 1 : i, height(at.space) - 1) << at.space;
        body(i << at.space, x, std::min(tile_columns_, width(at.space) - x), next_y, last ? 0 : x + tile_columns_,
             scratch_[static_cast<std::size_t>(worker)].data());
      }
      kernels_.stream_end();
    });
  }

  void forward_time(Lattice at, int levels, const VolumeView* samples, std::int32_t offset) {
    const int n = frames(at.time);
    if (n == 1) levels = 0;
    if (levels == 0 && !samples && gains_.empty()) return;
    const LoadKernel<T> load = samples ? kernels_.load[format_index(*samples)] : nullptr;
    if (levels == 0) {
      pool_.parallel_for(field_.shape.height, [&](int y, int) {
        for (int t = 0; t < n; ++t) {
          if (samples) load(samples->row(t, y), offset, row(t, y), field_.shape.width);
          amplify(row(t, y), t, field_.shape.width);
        }
      });
      return;
    }
    const PlaneKernel<T> kernel = forward_kernel(d_.temporal);
    for_tiles(at, [&](int y, int x, int columns, int next_y, int next_x, T* tile) {
      for (int t = 0; t < n; ++t) {
        T* line = tile + t * tile_stride_;
        if (samples) {
          const std::ptrdiff_t bytes = samples->bytes_per_sample;
          prefetch(samples->row(t, next_y) + next_x * bytes, tile_columns_ * bytes);
          load(samples->row(t, y) + x * bytes, offset, line, columns);
        } else {
          prefetch(row(t << at.time, next_y) + next_x, tile_bytes());
          std::copy_n(row(t << at.time, y) + x, columns, line);
        }
      }
      for (int l = 0; l < levels; ++l)
        kernel(tile, tile_stride_ << l, low_length(n, l), columns, PlaneAxes::kTile, nullptr);
      for (int t = 0; t < n; ++t) {
        T* line = tile + t * tile_stride_;
        amplify(line, t, columns);
        T* out = row(t << at.time, y) + x;
        if (samples && stream_)  // lines read from the field are in the cache already
          kernels_.stream(line, out, columns);
        else
          std::copy_n(line, columns, out);
      }
    });
  }

  void inverse_time(Lattice at, int levels, const Target* target) {
    const int n = frames(at.time);
    if (n == 1) levels = 0;
    if (levels == 0 && !target && gains_.empty()) return;
    const bool compares = target && target->errors;
    const StoreKernel<T> store =
        !target ? nullptr : kernels_.store[compares ? format_index(target->original) : format_index(target->samples)];
    const auto store_row = [&](const T* line, int t, int y, int x, int columns) {
      const auto store_to = [&](std::byte* to, int from, int count) {
        store(line + from, target->gain, target->offset, target->min_sample, target->max_sample, to, count);
      };
      if (!compares) {
        const MutableVolumeView& s = target->samples;
        return store_to(s.row(t, y) + static_cast<std::ptrdiff_t>(x) * s.bytes_per_sample, 0, columns);
      }
      const VolumeView& o = target->original;
      alignas(64) std::byte rounded[2 * kMaxTileColumns];
      for (int from = 0; from < columns; from += kMaxTileColumns) {
        const int count = std::min(kMaxTileColumns, columns - from);
        store_to(rounded, from, count);
        target->errors[static_cast<std::size_t>(t) * static_cast<std::size_t>(o.shape.height) +
                       static_cast<std::size_t>(y)] +=
            squared_row_error(o, o.row(t, y) + static_cast<std::ptrdiff_t>(x + from) * o.bytes_per_sample, rounded,
                              count);
      }
    };
    if (levels == 0) {
      pool_.parallel_for(field_.shape.height, [&](int y, int) {
        for (int t = 0; t < n; ++t) {
          amplify(row(t, y), t, field_.shape.width);
          if (target) store_row(row(t, y), t, y, 0, field_.shape.width);
        }
      });
      return;
    }
    const PlaneKernel<T> kernel = inverse_kernel(d_.temporal);
    for_tiles(at, [&](int y, int x, int columns, int next_y, int next_x, T* tile) {
      for (int t = 0; t < n; ++t) {
        prefetch(row(t << at.time, next_y) + next_x, tile_bytes());
        std::copy_n(row(t << at.time, y) + x, columns, tile + t * tile_stride_);
        amplify(tile + t * tile_stride_, t, columns);
      }
      for (int l = levels - 1; l >= 0; --l)
        kernel(tile, tile_stride_ << l, low_length(n, l), columns, PlaneAxes::kTile, nullptr);
      for (int t = 0; t < n; ++t) {
        const T* line = tile + t * tile_stride_;
        if (target)
          store_row(line, t, y, x, columns);
        else
          std::copy_n(line, columns, row(t << at.time, y) + x);
      }
    });
  }

  /// One level of a frame: both axes in one sweep.
  void sweep(PlaneKernel<T> kernel, int frame, int level, int worker) const {
    kernel(row(frame, 0), field_.row_stride << level, height(level), width(level), PlaneAxes::kRowsAndColumns,
           scratch_[static_cast<std::size_t>(worker)].data());
  }

  /// The inverse of sweep(); it clears zeros that were left out.
  void inverse_sweep(int frame, int level, int worker) const {
    if (!left_out_) return sweep(inverse_kernel(d_.spatial), frame, level, worker);
    struct Context {
      const ZeroPatches* left_out;
      int frame, level, width;
    };
    const Context context{left_out_, frame, level, width(level)};
    const RowPreparation<T> clear{[](const void* p, int y, T* values) {
                                    const Context& c = *static_cast<const Context*>(p);
                                    c.left_out->clear_row(c.frame, c.level, y, c.width, values);
                                  },
                                  &context};
    kernels_.inverse_prepared[static_cast<int>(d_.spatial)](row(frame, 0), field_.row_stride << level, height(level),
                                                            width(level),
                                                            scratch_[static_cast<std::size_t>(worker)].data(), clear);
  }

  void write_zeros(int levels) {
    pool_.parallel_for(field_.shape.frames, [&](int frame, int) {
      for (int l = 0; l < levels; ++l)
        for (int y = 0; y < height(l); ++y) left_out_->clear_row(frame, l, y, width(l), row(frame, y << l));
    });
  }

  /// One level of all frames of the lattice, rows only.
  void split_rows(PlaneKernel<T> kernel, Lattice at, int level) {
    const int parts = ceil_div(height(level), kStripRows);
    pool_.parallel_for(parts * frames(at.time), [&](int i, int worker) {
      const int y = i % parts * kStripRows;
      kernel(row((i / parts) << at.time, y << level), field_.row_stride << level,
             std::min(kStripRows, height(level) - y), width(level), PlaneAxes::kRows,
             scratch_[static_cast<std::size_t>(worker)].data());
    });
  }

  /// One level of all frames of the lattice, columns only.
  void split_columns(PlaneKernel<T> kernel, Lattice at, int level) {
    const int even_share = ceil_div(ceil_div(width(level), pool_.threads()), 16) * 16;
    const int strip = std::clamp(even_share, kMinStripColumns, kMaxStripColumns);
    const int parts = ceil_div(width(level), strip);
    pool_.parallel_for(parts * frames(at.time), [&](int i, int) {
      const int x = i % parts * strip;
      kernel(row((i / parts) << at.time, 0) + x, field_.row_stride << level, height(level),
             std::min(strip, width(level) - x), PlaneAxes::kColumns, nullptr);
    });
  }

  /// Transforms the frames of the lattice by `levels` spatial levels.
  void forward_space(Lattice at, int levels) {
    if (levels == 0) return;
    const PlaneKernel<T> kernel = forward_kernel(d_.spatial);
    if (frames(at.time) >= pool_.threads()) {
      pool_.parallel_for(frames(at.time), [&](int i, int worker) {
        for (int l = at.space; l < at.space + levels; ++l) sweep(kernel, i << at.time, l, worker);
      });
      return;
    }
    for (int l = at.space; l < at.space + levels; ++l) {
      split_rows(kernel, at, l);
      split_columns(kernel, at, l);
    }
  }

  void inverse_space(Lattice at, int levels) {
    if (levels == 0) return;
    if (frames(at.time) >= pool_.threads()) {
      pool_.parallel_for(frames(at.time), [&](int i, int worker) {
        for (int l = at.space + levels - 1; l >= at.space; --l) inverse_sweep(i << at.time, l, worker);
      });
      return;
    }
    const PlaneKernel<T> kernel = inverse_kernel(d_.spatial);
    if (left_out_) write_zeros(levels);
    for (int l = at.space + levels - 1; l >= at.space; --l) {
      split_columns(kernel, at, l);
      split_rows(kernel, at, l);
    }
  }

  Field<T> field_;
  Decomposition d_;
  ThreadPool& pool_;
  const DwtKernels<T>& kernels_;
  const std::vector<float>& gains_;  // t+2D: one per frame, or empty
  const ZeroPatches* left_out_;
  int tile_columns_ = 0;
  std::ptrdiff_t tile_stride_ = 0;
  bool stream_ = false;
  std::vector<Scratch<T>> scratch_;  // one per worker
};

}  // namespace

template <class T>
void forward_transform(const VolumeView& samples, std::int32_t offset, const Field<T>& out, const Decomposition& d,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains) {
  check_samples(out.shape, samples.shape, samples.bytes_per_sample, offset);
  Transform<T>(out, d, pool, simd, frame_gains).forward(&samples, offset);
}

template <class T>
void forward_transform(const Field<T>& field, const Decomposition& d, ThreadPool& pool, SimdLevel simd,
                       const std::vector<float>& frame_gains) {
  Transform<T>(field, d, pool, simd, frame_gains).forward(nullptr, 0);
}

template <class T>
void inverse_transform(const Field<T>& field, const Decomposition& d, ThreadPool& pool, SimdLevel simd,
                       const std::vector<float>& frame_gains, const ZeroPatches* left_out) {
  Transform<T>(field, d, pool, simd, frame_gains, left_out).inverse(nullptr);
}

template <class T>
void inverse_transform(const Field<T>& field, const Decomposition& d, float gain, std::int32_t offset,
                       std::int32_t min_sample, std::int32_t max_sample, const MutableVolumeView& samples,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains,
                       const ZeroPatches* left_out) {
  check_target<T>(field.shape, samples, gain, offset, min_sample, max_sample);
  const Target target{samples, {}, nullptr, gain, offset, min_sample, max_sample};
  Transform<T>(field, d, pool, simd, frame_gains, left_out).inverse(&target);
}

template <class T>
double inverse_transform_error(const Field<T>& field, const Decomposition& d, float gain, std::int32_t offset,
                               std::int32_t min_sample, std::int32_t max_sample, const VolumeView& samples,
                               ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains) {
  check_target<T>(field.shape, samples, gain, offset, min_sample, max_sample);
  const Shape& s = field.shape;
  std::vector<std::uint64_t> errors(static_cast<std::size_t>(s.frames) * static_cast<std::size_t>(s.height));
  const Target target{{}, samples, errors.data(), gain, offset, min_sample, max_sample};
  Transform<T>(field, d, pool, simd, frame_gains).inverse(&target);
  double sum = 0;
  for (const std::uint64_t row : errors) sum += static_cast<double>(row);
  return sum;
}

#define TRIVELET_INSTANTIATE(T)                                                                                        \
  template void forward_transform(const VolumeView&, std::int32_t, const Field<T>&, const Decomposition&, ThreadPool&, \
                                  SimdLevel, const std::vector<float>&);                                               \
  template void forward_transform(const Field<T>&, const Decomposition&, ThreadPool&, SimdLevel,                       \
                                  const std::vector<float>&);                                                          \
  template void inverse_transform(const Field<T>&, const Decomposition&, ThreadPool&, SimdLevel,                       \
                                  const std::vector<float>&, const ZeroPatches*);                                      \
  template void inverse_transform(const Field<T>&, const Decomposition&, float, std::int32_t, std::int32_t,            \
                                  std::int32_t, const MutableVolumeView&, ThreadPool&, SimdLevel,                      \
                                  const std::vector<float>&, const ZeroPatches*);                                      \
  template double inverse_transform_error(const Field<T>&, const Decomposition&, float, std::int32_t, std::int32_t,    \
                                          std::int32_t, const VolumeView&, ThreadPool&, SimdLevel,                     \
                                          const std::vector<float>&);
TRIVELET_INSTANTIATE(float)
TRIVELET_INSTANTIATE(std::int32_t)
#undef TRIVELET_INSTANTIATE

double dc_gain(Wavelet w) { return w == Wavelet::kCdf97 ? kLift97Zeta : 1.0; }

double synthesis_norm(Wavelet w, bool reversible, bool high, int level) {
  // Computed in double precision by inverting an impulse far from both ends, as tests/codec/dwt_test.cpp does to check
  // them.
  struct Norms {
    double low[kMaxLevels + 1];
    double high[kMaxLevels + 1];
  };
  static constexpr Norms kHaarNorms = {{1, 1.41421356, 2, 2.82842712, 4, 5.65685425, 8, 11.3137085, 16},
                                       {0, 0.707106781, 1, 1.41421356, 2, 2.82842712, 4, 5.65685425, 8}};
  static constexpr Norms k53Norms = {
      {1, 1.22474487, 1.6583124, 2.31840462, 3.26917421, 4.61992965, 6.53237132, 9.23774526, 13.0639951},
      {0, 0.847791248, 0.960143218, 1.2593401, 1.74441072, 2.4538713, 3.46565177, 4.89952764, 6.92839704}};
  static constexpr Norms k97Norms = {
      {1, 1.13976398, 1.34165977, 1.55837611, 1.79693992, 2.06740939, 2.37718114, 2.73295585, 3.14185768},
      {0, 0.887277092, 0.983471306, 1.17216121, 1.37033071, 1.58317245, 1.82239848, 2.09573134, 2.4094623}};
  static constexpr Norms k137Norms = {
      {1, 1.28086885, 1.79158528, 2.53151344, 3.57988771, 5.06270591, 7.15974555, 10.1254091, 14.3194909},
      {0, 0.809253958, 0.966665795, 1.33939897, 1.89114887, 2.67418922, 3.78184676, 5.34833644, 7.5636897}};
  // Chosen, not computed: steps grow by a factor of 1.4 per level (FORMAT.md "Motion", "Norms").
  static constexpr Norms kMotionNorms = {{1, 1.1869, 1.66167, 2.32633, 3.25687, 4.55961, 6.38346, 8.93684, 12.5116},
                                         {0, 0.847791, 1.1869, 1.66167, 2.32633, 3.25687, 4.55961, 6.38346, 8.93684}};
  require(level >= (high ? 1 : 0) && level <= kMaxLevels, ErrorKind::kBadArgument,
          "no synthesis norm of level " + std::to_string(level));
  require((w != Wavelet::kCdf97 || !reversible) && (w != Wavelet::kRev137 || reversible), ErrorKind::kBadArgument,
          std::string("wavelet ") + std::to_string(static_cast<int>(w)) + " is not " +
              (reversible ? "reversible" : "a float filter"));
  const Norms& norms = w == Wavelet::kHaar     ? kHaarNorms
                       : w == Wavelet::kCdf53  ? k53Norms
                       : w == Wavelet::kCdf97  ? k97Norms
                       : w == Wavelet::kRev137 ? k137Norms
                                               : kMotionNorms;
  return (high ? norms.high : norms.low)[level];
}

}  // namespace trivelet
