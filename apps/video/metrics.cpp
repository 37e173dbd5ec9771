// Squared errors and SSIM of two pictures.

#include "apps/video/metrics.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/cli/cli.h"
#include "codec/base/bytes.h"

namespace trivelet::cli {

namespace {

template <class S>
PlaneError plane_error(const VolumeView& a, const VolumeView& b, int frame) {
  PlaneError error;
  error.samples = std::uint64_t{static_cast<std::uint32_t>(a.shape.width)} * static_cast<std::uint32_t>(a.shape.height);
  for (int y = 0; y < a.shape.height; ++y) {
    const auto* p = reinterpret_cast<const S*>(a.row(frame, y));
    const auto* q = reinterpret_cast<const S*>(b.row(frame, y));
    std::uint64_t squared = 0;
    std::uint32_t different = 0;
    std::uint32_t max = 0;
    for (int x = 0; x < a.shape.width; ++x) {
      const auto d = static_cast<std::uint32_t>(std::abs(p[x] - q[x]));
      squared += std::uint64_t{d} * d;
      different += d != 0 ? 1U : 0U;
      max = std::max(max, d);
    }
    error.squared += static_cast<double>(squared);
    error.different += different;
    error.max = std::max(error.max, static_cast<int>(max));
  }
  return error;
}

/// Sums over a block of 4x4 samples of both pictures.
struct Block {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t squares = 0;  ///< a^2 + b^2
  std::int64_t product = 0;  ///< a b
};

template <class S>
void block_row(const VolumeView& a, const VolumeView& b, int frame, int y, std::vector<Block>& out) {
  std::fill(out.begin(), out.end(), Block{});
  for (int dy = 0; dy < 4; ++dy) {
    const auto* p = reinterpret_cast<const S*>(a.row(frame, y + dy));
    const auto* q = reinterpret_cast<const S*>(b.row(frame, y + dy));
    for (Block& block : out) {
      for (int dx = 0; dx < 4; ++dx, ++p, ++q) {
        const std::int64_t u = *p;
        const std::int64_t v = *q;
        block.a += u;
        block.b += v;
        block.squares += u * u + v * v;
        block.product += u * v;
      }
    }
  }
}

template <class S>
double plane_ssim(const VolumeView& a, const VolumeView& b, int frame, int bits) {
  const int columns = a.shape.width / 4;
  const int rows = a.shape.height / 4;
  if (columns < 2 || rows < 2) return std::numeric_limits<double>::quiet_NaN();
  // With N = 64 samples and sums s = N * mean, all terms below are scaled by N^2, as are the constants.
  const double peak = std::ldexp(1.0, bits) - 1;
  const double c1 = 0.01 * 0.01 * peak * peak * 64;
  const double c2 = 0.03 * 0.03 * peak * peak * 64 * 63;
  std::vector<Block> above(static_cast<std::size_t>(columns));
  std::vector<Block> below(static_cast<std::size_t>(columns));
  block_row<S>(a, b, frame, 0, above);
  double sum = 0;
  for (int r = 1; r < rows; ++r) {
    block_row<S>(a, b, frame, 4 * r, below);
    for (std::size_t c = 1; c < static_cast<std::size_t>(columns); ++c) {
      const auto window = [&](std::int64_t Block::*m) {
        return static_cast<double>(above[c - 1].*m + above[c].*m + below[c - 1].*m + below[c].*m);
      };
      const double s1 = window(&Block::a);
      const double s2 = window(&Block::b);
      const double variances = window(&Block::squares) * 64 - s1 * s1 - s2 * s2;
      const double covariance = window(&Block::product) * 64 - s1 * s2;
      sum += (2 * s1 * s2 + c1) * (2 * covariance + c2) / ((s1 * s1 + s2 * s2 + c1) * (variances + c2));
    }
    std::swap(above, below);
  }
  return sum / (static_cast<double>(columns - 1) * (rows - 1));
}

template <class S>
void frame_error(const Gop& a, const Gop& b, int frame, int bits, FrameError& error) {
  for (int c = 0; c < a.components(); ++c)
    error.planes[static_cast<std::size_t>(c)] = plane_error<S>(a.plane(c), b.plane(c), frame);
  error.ssim = plane_ssim<S>(a.plane(0), b.plane(0), frame, bits);
}

}  // namespace

double PlaneError::psnr(int bits) const {
  if (different == 0) return std::numeric_limits<double>::infinity();
  const double peak = std::ldexp(1.0, bits) - 1;
  return 10 * std::log10(peak * peak * static_cast<double>(samples) / squared);
}

void PlaneError::add(const PlaneError& other) {
  samples += other.samples;
  different += other.different;
  squared += other.squared;
  max = std::max(max, other.max);
}

PlaneError FrameError::total() const {
  PlaneError sum;
  for (const PlaneError& plane : planes) sum.add(plane);
  return sum;
}

std::vector<FrameError> VideoError::measure(const Gop& a, const Gop& b, const PixelFormat& format, ThreadPool& pool) {
  std::vector<FrameError> errors(static_cast<std::size_t>(a.frames()));
  pool.parallel_for(a.frames(), [&](int frame, int) {
    FrameError& error = errors[static_cast<std::size_t>(frame)];
    const int bits = format.bits;
    if (format.bytes_per_sample() == 1)
      format.is_signed ? frame_error<std::int8_t>(a, b, frame, bits, error)
                       : frame_error<std::uint8_t>(a, b, frame, bits, error);
    else
      format.is_signed ? frame_error<std::int16_t>(a, b, frame, bits, error)
                       : frame_error<std::uint16_t>(a, b, frame, bits, error);
  });
  return errors;
}

std::vector<FrameError> VideoError::add(const Gop& a, const Gop& b, ThreadPool& pool) {
  std::vector<FrameError> errors = measure(a, b, format_, pool);
  add(errors);
  return errors;
}

void VideoError::add(const std::vector<FrameError>& errors) {
  for (const FrameError& error : errors) {
    for (std::size_t c = 0; c < error.planes.size(); ++c) sum_.planes[c].add(error.planes[c]);
    sum_.ssim += error.ssim;
  }
  frames_ += errors.size();
}

void put_errors(ByteWriter& out, const std::vector<FrameError>& errors) {
  out.varint(errors.size());
  for (const FrameError& error : errors) {
    out.real(error.ssim);
    for (const PlaneError& p : error.planes) {
      out.varint(p.samples);
      out.varint(p.different);
      out.real(p.squared);
      out.varint(static_cast<std::uint64_t>(p.max));
    }
  }
}

std::vector<FrameError> take_errors(ByteReader& in) {
  std::uint64_t count = 0;
  in.varint(count);
  std::vector<FrameError> errors(static_cast<std::size_t>(count));
  for (FrameError& error : errors) {
    in.real(error.ssim);
    for (PlaneError& p : error.planes) {
      std::uint64_t max = 0;
      in.varint(p.samples);
      in.varint(p.different);
      in.real(p.squared);
      in.varint(max);
      p.max = static_cast<int>(max);
    }
  }
  return errors;
}

std::string component_name(const PixelFormat& format, int component) {
  const char* names = format.model == ColourModel::kGrey ? "ya" : format.model == ColourModel::kRgb ? "gbra" : "yuva";
  return std::string(1, names[component]);
}

std::string format_psnr(double psnr) { return std::isinf(psnr) ? "inf" : fmt::format("{:.3f} dB", psnr); }

void require_comparable(const VideoInfo& a, const VideoInfo& b) {
  require(a.width == b.width && a.height == b.height, ErrorKind::kMismatch,
          fmt::format("the pictures differ in size: {}x{} and {}x{}", a.width, a.height, b.width, b.height));
  require(a.format == b.format, ErrorKind::kMismatch,
          "the pictures differ in format: " + trivelet::to_string(a.format) + " and " + trivelet::to_string(b.format));
}

}  // namespace trivelet::cli
