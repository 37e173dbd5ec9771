// Real FFTs by cuFFT, or by definition in builds without a GPU.

#include "gpu/still/real_fft.h"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "gpu/device/device.h"

#if defined(TRIVELET_HAVE_CUFFT) && !defined(TRIVELET_CUDA_EMULATION)
#include <cufft.h>
#include <dlfcn.h>
#endif

namespace trivelet::gpu {

#if defined(TRIVELET_CUDA_EMULATION)

// Replaces the library in builds without a GPU: the definition.
namespace {
double angle_of(int i, int k, int n) {
  return 2 * std::numbers::pi * static_cast<double>(static_cast<long long>(i) * k % n) / n;
}
}  // namespace

bool have_fft() { return true; }

RealFft::RealFft(int length, int batch) : length_(length), batch_(batch) {}
RealFft::~RealFft() = default;

void RealFft::forward(double* rows, Complex* spectra, const Stream&) {
  for (int r = 0; r < batch_; ++r)
    for (int k = 0; k <= length_ / 2; ++k) {
      Complex sum{0, 0};
      for (int i = 0; i < length_; ++i) {
        const double angle = -angle_of(i, k, length_);
        sum.re += rows[r * length_ + i] * std::cos(angle);
        sum.im += rows[r * length_ + i] * std::sin(angle);
      }
      spectra[r * (length_ / 2 + 1) + k] = sum;
    }
}

void RealFft::inverse(Complex* spectra, double* rows, const Stream&) {
  for (int r = 0; r < batch_; ++r)
    for (int i = 0; i < length_; ++i) {
      double sum = 0;
      for (int k = 0; k < length_; ++k) {
        const Complex& c = spectra[r * (length_ / 2 + 1) + (k <= length_ / 2 ? k : length_ - k)];
        const double angle = angle_of(i, k, length_);
        sum += c.re * std::cos(angle) - (k <= length_ / 2 ? c.im : -c.im) * std::sin(angle);
      }
      rows[r * length_ + i] = sum;
    }
}

#elif defined(TRIVELET_HAVE_CUFFT)

namespace {

/// The functions used, from the shared library.
struct Library {
  decltype(&cufftPlanMany) plan_many = nullptr;
  decltype(&cufftSetStream) set_stream = nullptr;
  decltype(&cufftExecD2Z) forward = nullptr;
  decltype(&cufftExecZ2D) inverse = nullptr;
  decltype(&cufftDestroy) destroy = nullptr;
  bool complete = false;

  Library() {
    const std::string name = "libcufft.so." + std::to_string(CUFFT_VERSION / 1000);
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)> >(dlsym(handle, symbol));
      return function != nullptr;
    };
    complete = find(plan_many, "cufftPlanMany") && find(set_stream, "cufftSetStream") &&
               find(forward, "cufftExecD2Z") && find(inverse, "cufftExecZ2D") && find(destroy, "cufftDestroy");
  }
};
const Library& library() {
  static const Library l;
  return l;
}

void check_fft(cufftResult result, const char* call) {
  require(result == CUFFT_SUCCESS, result == CUFFT_ALLOC_FAILED ? ErrorKind::kUnsupported : ErrorKind::kInternal,
          std::string(call) + " failed with cuFFT's error " + std::to_string(result));
}

}  // namespace

bool have_fft() { return library().complete; }

RealFft::RealFft(int length, int batch) : length_(length), batch_(batch) {
  require(have_fft(), ErrorKind::kUnsupported,
          "cuFFT cannot be loaded (libcufft.so." + std::to_string(CUFFT_VERSION / 1000) +
              "); install it, set LD_LIBRARY_PATH, or compute on the CPU");
  int n = length, values = length, spectrum = length / 2 + 1;
  check_fft(library().plan_many(&plans_[0], 1, &n, &values, 1, length, &spectrum, 1, spectrum, CUFFT_D2Z, batch),
            "cufftPlanMany");
  const cufftResult second =
      library().plan_many(&plans_[1], 1, &n, &spectrum, 1, spectrum, &values, 1, length, CUFFT_Z2D, batch);
  if (second != CUFFT_SUCCESS) (void)library().destroy(plans_[0]);
  check_fft(second, "cufftPlanMany");
}

RealFft::~RealFft() {
  for (const int plan : plans_) (void)library().destroy(plan);
}

void RealFft::forward(double* rows, Complex* spectra, const Stream& stream) {
  check_fft(library().set_stream(plans_[0], stream.get()), "cufftSetStream");
  check_fft(library().forward(plans_[0], rows, reinterpret_cast<cufftDoubleComplex*>(spectra)), "cufftExecD2Z");
}

void RealFft::inverse(Complex* spectra, double* rows, const Stream& stream) {
  check_fft(library().set_stream(plans_[1], stream.get()), "cufftSetStream");
  check_fft(library().inverse(plans_[1], reinterpret_cast<cufftDoubleComplex*>(spectra), rows), "cufftExecZ2D");
}

#else

bool have_fft() { return false; }
RealFft::RealFft(int length, int batch) : length_(length), batch_(batch) {
  fail(ErrorKind::kUnsupported, "this build has no cuFFT; compute on the CPU, or configure with TRIVELET_CUFFT=ON");
}
RealFft::~RealFft() = default;
void RealFft::forward(double*, Complex*, const Stream&) {}
void RealFft::inverse(Complex*, double*, const Stream&) {}

#endif

}  // namespace trivelet::gpu
