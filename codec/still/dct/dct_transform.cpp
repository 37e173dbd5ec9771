// DCT-II of whole planes: direct sums, our own FFT, and FFTW (see dct_transform.h).
#include "codec/still/dct/dct_transform.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <map>
#include <mutex>
#include <numbers>
#include <vector>

#ifdef TRIVELET_HAVE_FFTW
#include <fftw3.h>
#endif

namespace trivelet::dct {

namespace {

using Complex = std::complex<double>;
constexpr double kPi = std::numbers::pi;
constexpr int kRowsAtOnce = 16;

/// A product without std::complex's checks for infinities.
Complex times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// Complex FFT of a power of two, decimation in time, in place.
class PowerFft {
 public:
  explicit PowerFft(std::size_t n) : n_(n), roots_(n / 2), reversed_(n) {
    for (std::size_t i = 0; i < n / 2; ++i)
      roots_[i] = std::polar(1.0, -2 * kPi * static_cast<double>(i) / static_cast<double>(n));
    const int bits = std::countr_zero(n);
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t r = 0;
      for (int b = 0; b < bits; ++b) r |= (i >> b & 1) << (bits - 1 - b);
      reversed_[i] = r;
    }
  }
  void run(Complex* x) const {
    for (std::size_t i = 0; i < n_; ++i)
      if (reversed_[i] > i) std::swap(x[i], x[reversed_[i]]);
    for (std::size_t half = 1; half < n_; half *= 2) {
      const std::size_t step = n_ / (2 * half);
      for (std::size_t first = 0; first < n_; first += 2 * half)
        for (std::size_t k = 0; k < half; ++k) {
          const Complex a = x[first + k], b = times(x[first + k + half], roots_[k * step]);
          x[first + k] = a + b;
          x[first + k + half] = a - b;
        }
    }
  }

 private:
  std::size_t n_;
  std::vector<Complex> roots_;
  std::vector<std::size_t> reversed_;
};

/// Complex FFT of any length by Bluestein's algorithm: a convolution of power-of-two length.
class Fft {
 public:
  explicit Fft(std::size_t n) : n_(n), direct_(std::has_single_bit(n)), fft_(direct_ ? n : std::bit_ceil(2 * n - 1)) {
    if (direct_) return;
    size_ = std::bit_ceil(2 * n - 1);
    chirp_.resize(n);
    kernel_.assign(size_, 0);
    for (std::size_t i = 0; i < n; ++i) {
      // i^2 modulo 2 n keeps the angle exact for long rows.
      const auto square = static_cast<double>(i * i % (2 * n));
      chirp_[i] = std::polar(1.0, -kPi * square / static_cast<double>(n));
      kernel_[i] = std::conj(chirp_[i]);
      if (i > 0) kernel_[size_ - i] = kernel_[i];
    }
    fft_.run(kernel_.data());
  }
  /// scratch: grows as needed.
  void run(Complex* x, std::vector<Complex>& scratch) const {
    if (direct_) return fft_.run(x);
    scratch.assign(size_, 0);
    for (std::size_t i = 0; i < n_; ++i) scratch[i] = times(x[i], chirp_[i]);
    fft_.run(scratch.data());
    // The inverse by conjugation.
    for (std::size_t i = 0; i < size_; ++i) scratch[i] = std::conj(times(scratch[i], kernel_[i]));
    fft_.run(scratch.data());
    const double scale = 1 / static_cast<double>(size_);
    for (std::size_t i = 0; i < n_; ++i) x[i] = times(std::conj(scratch[i]) * scale, chirp_[i]);
  }

 private:
  std::size_t n_;
  bool direct_;
  PowerFft fft_;
  std::size_t size_ = 0;
  std::vector<Complex> chirp_, kernel_;
};

/// One row, in place.
class RowTransform {
 public:
  virtual ~RowTransform() = default;
  virtual void forward(double* row) const = 0;
  virtual void inverse(double* row) const = 0;
};

/// Makhoul's method: the FFT of the mirrored row of 2 n values equals, up to twiddles, that of the even samples
/// ascending and the odd ones descending.
class OwnRow final : public RowTransform {
 public:
  explicit OwnRow(int n) : n_(static_cast<std::size_t>(n)), fft_(n_), twiddle_(n_) {
    for (std::size_t k = 0; k < n_; ++k)
      twiddle_[k] = std::polar(std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(n_)),
                               -kPi * static_cast<double>(k) / (2 * static_cast<double>(n_)));
  }
  void forward(double* row) const override {
    std::vector<Complex> v(n_), scratch;
    for (std::size_t i = 0; i < (n_ + 1) / 2; ++i) v[i] = row[2 * i];
    for (std::size_t i = 0; i < n_ / 2; ++i) v[n_ - 1 - i] = row[2 * i + 1];
    fft_.run(v.data(), scratch);
    for (std::size_t k = 0; k < n_; ++k) row[k] = times(v[k], twiddle_[k]).real();
  }
  void inverse(double* row) const override {
    // V[k] = conj(w_k) (X[k] - i X[n - k]) with unit w_k; its inverse FFT by conjugation.
    std::vector<Complex> v(n_), scratch;
    const double scale = 1 / static_cast<double>(n_);
    for (std::size_t k = 0; k < n_; ++k) {
      const double norm = std::norm(twiddle_[k]);
      const double a = row[k], b = k == 0 ? 0 : row[n_ - k];
      v[k] = std::conj(times(std::conj(twiddle_[k]) / norm, Complex(a, -b))) * scale;
    }
    fft_.run(v.data(), scratch);
    for (std::size_t i = 0; i < (n_ + 1) / 2; ++i) row[2 * i] = v[i].real();
    for (std::size_t i = 0; i < n_ / 2; ++i) row[2 * i + 1] = v[n_ - 1 - i].real();
  }

 private:
  std::size_t n_;
  Fft fft_;
  std::vector<Complex> twiddle_;
};

#ifdef TRIVELET_HAVE_FFTW
/// FFTW's planner is not thread-safe; plan execution is.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

class FftwRow final : public RowTransform {
 public:
  explicit FftwRow(int n) : n_(static_cast<std::size_t>(n)) {
    std::vector<double> row(n_);
    std::lock_guard lock(planner());
    forward_ = fftw_plan_r2r_1d(n, row.data(), row.data(), FFTW_REDFT10, FFTW_ESTIMATE | FFTW_UNALIGNED);
    inverse_ = fftw_plan_r2r_1d(n, row.data(), row.data(), FFTW_REDFT01, FFTW_ESTIMATE | FFTW_UNALIGNED);
  }
  ~FftwRow() override {
    std::lock_guard lock(planner());
    fftw_destroy_plan(forward_);
    fftw_destroy_plan(inverse_);
  }
  FftwRow(const FftwRow&) = delete;
  FftwRow& operator=(const FftwRow&) = delete;
  // FFTW leaves out the factors 2 and n.
  void forward(double* row) const override {
    fftw_execute_r2r(forward_, row, row);
    scale(row, std::sqrt(1 / (2.0 * static_cast<double>(n_))), 0.5 * std::sqrt(1 / static_cast<double>(n_)));
  }
  void inverse(double* row) const override {
    scale(row, std::sqrt(1 / (2.0 * static_cast<double>(n_))), std::sqrt(1 / static_cast<double>(n_)));
    fftw_execute_r2r(inverse_, row, row);
  }

 private:
  void scale(double* row, double factor, double first) const {
    row[0] *= first;
    for (std::size_t i = 1; i < n_; ++i) row[i] *= factor;
  }
  std::size_t n_;
  fftw_plan forward_, inverse_;
};
#endif

/// Transforms rows, transposes, transforms rows, transposes back.
template <class Row>
class Separable final : public Transform {
 public:
  Separable(ThreadPool& pool, const char* name) : pool_(pool), name_(name) {}
  const char* name() const override { return name_; }
  void forward(double* plane, int width, int height) override { both(plane, width, height, &RowTransform::forward); }
  void inverse(double* plane, int width, int height) override { both(plane, width, height, &RowTransform::inverse); }

 private:
  using Direction = void (RowTransform::*)(double*) const;
  void both(double* plane, int width, int height, Direction direction) {
    std::vector<double> turned(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    rows(plane, width, height, direction);
    transpose(plane, width, height, turned.data(), pool_);
    rows(turned.data(), height, width, direction);
    transpose(turned.data(), height, width, plane, pool_);
  }
  void rows(double* plane, int width, int height, Direction direction) {
    const Row row(width);
    pool_.parallel_for((height + kRowsAtOnce - 1) / kRowsAtOnce, [&](int chunk, int) {
      for (int y = chunk * kRowsAtOnce; y < std::min(height, (chunk + 1) * kRowsAtOnce); ++y)
        (row.*direction)(plane + static_cast<std::ptrdiff_t>(y) * width);
    });
  }
  ThreadPool& pool_;
  const char* name_;
};

class Direct final : public Transform {
 public:
  const char* name() const override { return "direct"; }
  void forward(double* plane, int width, int height) override { both(plane, width, height, false); }
  void inverse(double* plane, int width, int height) override { both(plane, width, height, true); }

 private:
  static void rows(double* plane, int width, int height, bool inverse) {
    const auto n = static_cast<std::size_t>(width);
    std::vector<double> matrix(n * n), row(n);
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < n; ++i)
        matrix[inverse ? i * n + k : k * n + i] =
            std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(n)) *
            std::cos(kPi * static_cast<double>((2 * i + 1) * k % (4 * n)) / (2 * static_cast<double>(n)));
    for (int y = 0; y < height; ++y) {
      double* p = plane + static_cast<std::size_t>(y) * n;
      for (std::size_t k = 0; k < n; ++k) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += matrix[k * n + i] * p[i];
        row[k] = sum;
      }
      std::copy(row.begin(), row.end(), p);
    }
  }
  static void both(double* plane, int width, int height, bool inverse) {
    ThreadPool one(1);
    std::vector<double> turned(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    rows(plane, width, height, inverse);
    transpose(plane, width, height, turned.data(), one);
    rows(turned.data(), height, width, inverse);
    transpose(turned.data(), height, width, plane, one);
  }
};

}  // namespace

void transpose(const double* in, int width, int height, double* out, ThreadPool& pool) {
  constexpr int kTile = 32;
  pool.parallel_for((height + kTile - 1) / kTile, [&](int chunk, int) {
    const int y0 = chunk * kTile, y1 = std::min(height, y0 + kTile);
    for (int x0 = 0; x0 < width; x0 += kTile)
      for (int x = x0; x < std::min(width, x0 + kTile); ++x)
        for (int y = y0; y < y1; ++y)
          out[static_cast<std::ptrdiff_t>(x) * height + y] = in[static_cast<std::ptrdiff_t>(y) * width + x];
  });
}

std::unique_ptr<Transform> make_own_transform(ThreadPool& pool) {
  return std::make_unique<Separable<OwnRow>>(pool, "own FFT");
}

std::unique_ptr<Transform> make_fast_transform(ThreadPool& pool) {
#ifdef TRIVELET_HAVE_FFTW
  return std::make_unique<Separable<FftwRow>>(pool, "FFTW");
#else
  return make_own_transform(pool);
#endif
}

std::unique_ptr<Transform> make_direct_transform() { return std::make_unique<Direct>(); }

}  // namespace trivelet::dct
