// Times the wavelet transform: million samples per second from samples to coefficients and back.
// Usage: dwt_bench [repetitions [threads...]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "codec/transform/dwt.h"
#include "trivelet/error.h"

namespace {

using namespace trivelet;

struct Case {
  const char* name;
  Shape shape;
  int bits;
  bool reversible;
  Decomposition d;
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class T>
bool run(const Case& c, ThreadPool& pool, SimdLevel simd, int repetitions) {
  const int bytes = c.bits <= 8 ? 1 : 2;
  const std::size_t n = c.shape.samples();
  std::vector<std::byte> in(n * static_cast<std::size_t>(bytes)), out(in.size());
  for (std::size_t i = 0; i < n; ++i) {
    const auto v = static_cast<unsigned>((i * 2654435761u >> 27) + i % 97 + (i / 1920) % 101) & ((1u << c.bits) - 1);
    std::memcpy(&in[i * static_cast<std::size_t>(bytes)], &v, static_cast<std::size_t>(bytes));
  }
  std::vector<T> memory(n);
  const Shape& s = c.shape;
  const Field<T> field{memory.data(), s, s.width, static_cast<std::ptrdiff_t>(s.width) * s.height};
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(s.width) * bytes;
  const VolumeView from{in.data(), s, bytes, false, row, row * s.height};
  const MutableVolumeView to{out.data(), s, bytes, false, row, row * s.height};
  const std::int32_t offset = 1 << (c.bits - 1);
  std::vector<double> forward, inverse;
  for (int r = 0; r < repetitions; ++r) {
    const double a = seconds();
    forward_transform(from, offset, field, c.d, pool, simd);
    const double b = seconds();
    inverse_transform(field, c.d, 1.0f, offset, 0, (1 << c.bits) - 1, to, pool, simd);
    forward.push_back(b - a);
    inverse.push_back(seconds() - b);
  }
  std::sort(forward.begin(), forward.end());
  std::sort(inverse.begin(), inverse.end());
  const double million = static_cast<double>(n) * 1e-6;
  const bool same = std::memcmp(in.data(), out.data(), in.size()) == 0;
  std::printf("%-34s %-7s %d threads: forward %7.0f  inverse %7.0f Msamples/s%s\n", c.name, to_string(simd).c_str(),
              pool.threads(), million / forward[forward.size() / 2], million / inverse[inverse.size() / 2],
              same ? "" : "  MISMATCH");
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::vector<int> threads;
  for (int i = 2; i < argc; ++i) threads.push_back(std::atoi(argv[i]));
  if (threads.empty()) threads = {1, 2};
  const Decomposition c97{Layout::kT2d, 4, 5, Wavelet::kCdf97, Wavelet::kCdf97};
  const Decomposition haar97{Layout::kT2d, 4, 5, Wavelet::kHaar, Wavelet::kCdf97};
  const Decomposition r53{Layout::kT2d, 4, 5, Wavelet::kCdf53, Wavelet::kCdf53};
  const Decomposition dyadic137{Layout::kDyadic, 3, 5, Wavelet::kRev137, Wavelet::kRev137};
  const Decomposition dyadic97{Layout::kDyadic, 3, 5, Wavelet::kCdf97, Wavelet::kCdf97};
  const Decomposition image{Layout::kT2d, 0, 5, Wavelet::kCdf97, Wavelet::kCdf97};
  const Case cases[] = {
      {"1920x1080x32 8 bit 9/7", {32, 1080, 1920}, 8, false, c97},
      {"960x540x32 8 bit 9/7", {32, 540, 960}, 8, false, c97},
      {"352x288x32 8 bit 9/7", {32, 288, 352}, 8, false, c97},
      {"1920x1080x32 10 bit Haar, 9/7", {32, 1080, 1920}, 10, false, haar97},
      {"1920x1080x32 8 bit reversible 5/3", {32, 1080, 1920}, 8, true, r53},
      {"512x512x128 16 bit dyadic 13/7", {128, 512, 512}, 16, true, dyadic137},
      {"512x512x128 16 bit dyadic 9/7", {128, 512, 512}, 16, false, dyadic97},
      {"8192x8192x1 8 bit 9/7", {1, 8192, 8192}, 8, false, image},
  };
  bool same = true;
  try {
    for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
      if (simd > detected_simd()) continue;
      for (const Case& c : cases)
        for (const int t : threads) {
          ThreadPool pool(t);
          same &= c.reversible ? run<std::int32_t>(c, pool, simd, repetitions) : run<float>(c, pool, simd, repetitions);
        }
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "dwt_bench: %s\n", e.what());
    return 1;
  }
  return same ? 0 : 1;
}
