// Batches of Fourier transforms of real rows in binary64, by cuFFT. The library is loaded when it is first needed: the
// program starts on machines without it.
#pragma once

namespace trivelet::gpu {

class Stream;  // gpu/device/device.h

struct alignas(16) Complex {
  double re, im;
};

/// Whether this build can use cuFFT and finds it on this machine.
bool have_fft();

class RealFft {
 public:
  /// `batch` rows of `length` real values; their spectra have length / 2 + 1 values. Throws Unsupported without cuFFT
  /// or memory for it.
  RealFft(int length, int batch);
  ~RealFft();
  RealFft(const RealFft&) = delete;
  RealFft& operator=(const RealFft&) = delete;

  void forward(double* rows, Complex* spectra, const Stream& stream);
  /// Without the factor 1 / length; destroys the spectra.
  void inverse(Complex* spectra, double* rows, const Stream& stream);

 private:
  int length_, batch_, plans_[2] = {-1, -1};
};

}  // namespace trivelet::gpu
