// Reconstructs the picture from the segments that were found (see ccsds122_picture.h).
#include "codec/still/ccsds122/ccsds122_picture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "codec/base/limits.h"
#include "codec/still/ccsds122/ccsds122_dwt.h"
#include "codec/still/ccsds122/ccsds122_segment.h"
#include "codec/threads/stopwatch.h"

namespace trivelet::ccsds122 {

namespace {

/// The value of a DC coefficient with known bits >= plane.
double dc_value(std::int32_t v, int plane, int shift) {
  const double unit = static_cast<double>(std::int64_t{1} << shift);
  const double half = plane > shift ? 0.5 * (static_cast<double>(std::int64_t{1} << plane) - unit) : 0.0;
  return (static_cast<double>(v) + half) / unit;
}

std::int32_t round_half_away(double v) {
  v = std::clamp(v, -2147483648.0, 2147483647.0);
  return static_cast<std::int32_t>(v < 0                     ? v - 0.5 <= -2147483648.0 ? -2147483648.0 : v - 0.5
                                   : v + 0.5 >= 2147483647.0 ? 2147483647.0
                                                             : v + 0.5);
}

void put_dc(const BandView& bands, bool real, std::uint64_t block, double v) {
  if (real) {
    const float f = static_cast<float>(v);
    std::memcpy(bands.data[kLL3] + block, &f, sizeof f);
  } else {
    bands.data[kLL3][block] = round_half_away(v);
  }
}

Dequantiser dequantiser_of(const SegmentData& d, bool real, const std::array<int, kBands>& shift) {
  Dequantiser q{};
  q.real = real;
  q.last_plane = d.last_plane;
  q.partial = d.partial;
  q.refined_blocks = d.refined_blocks;
  q.partly_refined = d.partly_refined;
  for (int lane = 0; lane < 64; ++lane) {
    const int i = 63 - lane;
    const int s = shift[static_cast<std::size_t>(i < 4    ? kHL3 + std::max(i, 1) - 1
                                                 : i < 16 ? kHL2 + (i - 4) / 4
                                                          : kHL1 + (i - 16) / 16)];
    q.shift[lane] = s;
    for (int unknown = 0; unknown < 2; ++unknown) {
      const int up = std::max(d.last_plane + unknown - s, 0);  // lowest known plane above the shift
      q.offset[unknown][lane] = up ? static_cast<std::int32_t>((std::int64_t{9} << up) / 20) : 0;
      q.real_offset[unknown][lane] = up ? 0.45F * static_cast<float>(std::int64_t{1} << up) - 0.5F : 0.0F;
    }
  }
  return q;
}

/// Writes the coefficients of a segment into the subbands. `unknown` is the value of unknown DC coefficients.
void place_coefficients(const FoundSegment& f, double unknown, const Kernels& kernels, const BandView& bands) {
  const SegmentHeader& h = f.report.header;
  const SegmentData& d = f.data;
  const bool real = h.dwt == Dwt::kFloat;
  const std::array<int, kBands> shift = band_shifts(h.shifts());
  double last = unknown;
  for (std::uint32_t m = 0; m < h.blocks; ++m) {
    if (m < d.dc_blocks) {
      const DcQuantiser q(h.dc_depth, h.ac_depth, shift[kLL3]);
      const int plane = (d.dc_plane == 32 ? q.q : d.dc_plane) - (m < d.dc_ahead ? 1 : 0);
      last = dc_value(d.dc[m], plane, shift[kLL3]);
    }
    put_dc(bands, real, f.report.first_block + m, last);
  }
  BlockPlanes planes;
  std::vector<std::uint64_t> no_signs;
  std::vector<std::uint8_t> no_depth;
  planes.stride = h.blocks;
  planes.depth = const_cast<std::uint8_t*>(d.depth.data());
  planes.sign = d.sign.get();
  planes.planes = d.planes.get();
  if (!d.planes) {  // only DC
    no_signs.assign(h.blocks, 0);
    no_depth.assign(h.blocks, 0);
    planes.sign = planes.planes = no_signs.data();
    planes.depth = no_depth.data();
  }
  kernels.scatter(planes, 0, static_cast<int>(h.blocks), f.report.first_block, dequantiser_of(d, real, shift), bands);
}

void transpose(Decoded& d) {
  std::vector<std::byte> out(d.samples.size());
  const std::size_t size = static_cast<std::size_t>(d.bytes_per_sample);
  const std::size_t wide = static_cast<std::size_t>(d.width), high = static_cast<std::size_t>(d.height);
  for (std::size_t y = 0; y < high; ++y)
    for (std::size_t x = 0; x < wide; ++x)
      std::memcpy(out.data() + (x * high + y) * size, d.samples.data() + (y * wide + x) * size, size);
  d.samples = std::move(out);
  std::swap(d.width, d.height);
}

/// The picture under construction, in blocks of 8x8 samples.
class PictureAssembly {
 public:
  PictureAssembly(SegmentList& list, const Limits& limits)
      : list_(list),
        header_(list.segments().front().report.header),
        wide_((header_.width + 7) / 8),
        low_(header_.is_signed ? -(std::int64_t{1} << (header_.bits - 1)) : 0),
        top_((std::int64_t{1} << (header_.is_signed ? header_.bits - 1 : header_.bits)) - 1) {
    const std::uint64_t wide = static_cast<std::uint64_t>(wide_);
    const std::uint64_t rows = (list.blocks() + wide - 1) / wide;
    require(rows <= 1U << 27, ErrorKind::kUnsupported, "picture of more than 2^30 rows");
    height_ = static_cast<int>(rows) * 8 - (list.has_last() ? list.segments().back().report.header.pad_rows : 0);
    // The transform needs three rows of blocks, so shorter remains are padded.
    high_ = static_cast<int>(std::max<std::uint64_t>(rows, 3));
    const std::uint64_t samples = blocks() * 64;
    check_limit(samples, limits.samples, "samples", "a picture of " + count_of(samples, "sample"));
    check_memory(limits, samples * 10 + list.used_memory(), "the picture");
    find_constant();
  }

  Decoded empty_picture() const {
    Decoded out;
    out.bits = header_.bits;
    out.is_signed = header_.is_signed;
    out.bytes_per_sample = header_.bits <= 8 ? 1 : header_.bits <= 16 ? 2 : 4;
    out.width = header_.width;
    out.height = height_;
    out.samples.resize(
        checked_mul(checked_mul(static_cast<std::size_t>(header_.width), static_cast<std::size_t>(height_)),
                    static_cast<std::size_t>(out.bytes_per_sample)));
    return out;
  }

  void fill_on(SegmentDevice& device, ThreadPool& pool, Decoded& out) const {
    if (header_.transpose) std::swap(out.width, out.height);
    PictureTask task{wide_, high_, !whole_, constant_, header_, low_, top_, {}};
    for (const FoundSegment& f : list_.segments())
      task.segments.push_back({&f.report.header, &f.data, f.report.first_block});
    device.picture(task, view_of(out), pool, out.seconds);
  }

  void fill(const Kernels& kernels, ThreadPool& pool, Decoded& out) const {
    Stopwatch watch;
    const Subbands bands(wide_, high_);
    if (!whole_) fill_gaps(bands.view());
    std::vector<FoundSegment>& segments = list_.segments();
    pool.parallel_for(static_cast<int>(segments.size()), [&](int i, int) {
      FoundSegment& f = segments[static_cast<std::size_t>(i)];
      place_coefficients(f, constant_, kernels, bands.view());
      f.data = SegmentData{};
    });
    out.seconds.coder = watch.seconds();
    watch = {};
    inverse_dwt(bands, header_.dwt, header_.bits, low_, top_, view_of(out), kernels, pool);
    if (header_.transpose) transpose(out);
    out.seconds.dwt = watch.seconds();
  }

 private:
  std::uint64_t blocks() const { return static_cast<std::uint64_t>(wide_) * static_cast<std::uint64_t>(high_); }

  static MutableVolumeView view_of(Decoded& out) {
    MutableVolumeView view;
    view.data = out.samples.data();
    view.shape = {1, out.height, out.width};
    view.bytes_per_sample = out.bytes_per_sample;
    view.is_signed = out.is_signed;
    view.row_stride = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(out.width) *
                                                  static_cast<std::size_t>(out.bytes_per_sample));
    return view;
  }

  /// Unknown DC coefficients get the mean of the known ones.
  void find_constant() {
    double sum = 0;
    std::uint64_t count = 0;
    bool whole = true;
    for (const FoundSegment& f : list_.segments()) {
      whole = whole && f.data.dc_blocks == f.report.header.blocks;
      sum += static_cast<double>(f.data.dc_sum);
      count += f.data.dc_blocks;
    }
    const double unit = static_cast<double>(1 << band_shifts(header_.shifts())[kLL3]);
    constant_ = count ? sum / static_cast<double>(count) / unit : 0.0;
    whole_ = whole && list_.blocks() == blocks();
  }

  void fill_gaps(const BandView& bands) const {
    std::memset(bands.data[0], 0, static_cast<std::size_t>(blocks()) * 64 * sizeof(std::int32_t));
    for (std::uint64_t b = 0; b < blocks(); ++b) put_dc(bands, header_.dwt == Dwt::kFloat, b, constant_);
  }

  SegmentList& list_;
  const SegmentHeader header_;
  const int wide_;
  int high_ = 0;    ///< in blocks
  int height_ = 0;  ///< in samples
  const std::int64_t low_, top_;
  bool whole_ = false;   ///< all DC coefficients are known
  double constant_ = 0;  ///< DC value of blocks without a segment
};

}  // namespace

Decoded assemble_picture(SegmentList& list, const Limits& limits, const Kernels& kernels, ThreadPool& pool,
                         SegmentDevice* device) {
  const PictureAssembly assembly(list, limits);
  Decoded out = assembly.empty_picture();
  if (device != nullptr)
    assembly.fill_on(*device, pool, out);
  else
    assembly.fill(kernels, pool, out);
  out.ended = list.has_last();
  out.trailing_bytes = list.trailing_bytes();
  out.segments = list.reports();
  return out;
}

}  // namespace trivelet::ccsds122
