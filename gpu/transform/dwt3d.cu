// Temporal lifting: all levels of a GOP in one kernel, one read and one write for each sample.
//
// A thread owns one column of one row in all frames. For the usual filters and GOPs the line is in registers, with all
// loads in flight at once. Otherwise it is in shared memory (a bank for each thread, so no conflicts, and no barrier
// because no other thread touches it), and every level is one pass over it with the lifting state in registers. Lines
// that do not fit are lifted in global memory. 8-bit samples go four at a time between memory and a lane, and from
// there to the lanes that own the columns. Samples are converted on the way in or out. Bytes for each sample: 8-bit
// samples to float 5, float to float 8. Bound: memory.
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {
namespace {

constexpr int kBatch = 8;                       // loads under way per thread
constexpr std::size_t kSharedBytes = 32 << 10;  // per block
constexpr unsigned kRegisterThreads = 128;

template <class T, class Sample>
__device__ __forceinline__ void load_line(const std::byte* in, std::ptrdiff_t in_frame, std::int32_t offset, T* line,
                                          std::ptrdiff_t stride, int n) {
  int t = 0;
  for (; t + kBatch <= n; t += kBatch) {
    Sample s[kBatch];
    TRIVELET_UNROLL
    for (int i = 0; i < kBatch; ++i) s[i] = *reinterpret_cast<const Sample*>(in + (t + i) * in_frame);
    TRIVELET_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      if constexpr (std::is_same_v<T, Sample>)
        line[(t + i) * stride] = s[i];
      else
        line[(t + i) * stride] = to_value<T>(s[i], offset);
    }
  }
  for (; t < n; ++t) {
    const Sample s = *reinterpret_cast<const Sample*>(in + t * in_frame);
    if constexpr (std::is_same_v<T, Sample>)
      line[t * stride] = s;
    else
      line[t * stride] = to_value<T>(s, offset);
  }
}

template <class T, class Sample>
__device__ __forceinline__ void store_line(const T* line, std::ptrdiff_t stride, const SampleRange& range,
                                           std::byte* out, std::ptrdiff_t out_frame, int n) {
  TRIVELET_UNROLL_BY(8)
  for (int t = 0; t < n; ++t) {
    Sample* to = reinterpret_cast<Sample*>(out + t * out_frame);
    if constexpr (std::is_same_v<T, Sample>)
      *to = line[t * stride];
    else
      *to = to_sample<Sample>(line[t * stride], range);
  }
}

/// Frame gains (FORMAT.md): one multiplication per value, if there are any.
template <class T>
__device__ __forceinline__ void amplify(const TimeArgs<T>& a, T* line, std::ptrdiff_t stride) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!a.gains) return;
    for (int t = 0; t < a.frames; ++t) line[t * stride] *= a.gains[t];
  }
}
template <int kFrames, class T>
__device__ __forceinline__ void amplify_signal(const TimeArgs<T>& a, T (&t)[kFrames]) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!a.gains) return;
    TRIVELET_UNROLL
    for (int i = 0; i < kFrames; ++i) t[i] *= a.gains[i];
  }
}

/// Where a thread keeps its line: shared memory, or for kGlobal the side of the transform that has values.
template <class F, bool kInverse, bool kGlobal, class T = typename F::Value>
__global__ void time_kernel(TimeArgs<T> a) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= a.width) return;
  for (int y = static_cast<int>(blockIdx.y); y < a.height; y += static_cast<int>(gridDim.y)) {
    const int in_bytes = kInverse || a.format == SampleFormat::kValues ? 4 : a.format >= SampleFormat::kU16 ? 2 : 1;
    const int out_bytes = !kInverse || a.format == SampleFormat::kValues ? 4 : a.format >= SampleFormat::kU16 ? 2 : 1;
    const std::byte* in =
        static_cast<const std::byte*>(a.in) + y * a.in_row + static_cast<std::ptrdiff_t>(x) * in_bytes;
    std::byte* out = static_cast<std::byte*>(a.out) + y * a.out_row + static_cast<std::ptrdiff_t>(x) * out_bytes;
    T* line = nullptr;
    std::ptrdiff_t stride = blockDim.x;
    if constexpr (!kGlobal) {
      line = dynamic_shared<T>() + threadIdx.x;
    } else if constexpr (kInverse) {  // the coefficients are used up
      line = reinterpret_cast<T*>(const_cast<std::byte*>(in));
      stride = a.in_frame / static_cast<std::ptrdiff_t>(sizeof(T));
    } else {
      line = reinterpret_cast<T*>(out);
      stride = a.out_frame / static_cast<std::ptrdiff_t>(sizeof(T));
    }
    const SampleFormat from = kInverse ? SampleFormat::kValues : a.format;
    const SampleFormat to = kInverse ? a.format : SampleFormat::kValues;
    const std::int32_t offset = a.range.offset;
    if (!(kGlobal && kInverse)) {
      switch (from) {
        case SampleFormat::kU8: load_line<T, std::uint8_t>(in, a.in_frame, offset, line, stride, a.frames); break;
        case SampleFormat::kS8: load_line<T, std::int8_t>(in, a.in_frame, offset, line, stride, a.frames); break;
        case SampleFormat::kU16: load_line<T, std::uint16_t>(in, a.in_frame, offset, line, stride, a.frames); break;
        case SampleFormat::kS16: load_line<T, std::int16_t>(in, a.in_frame, offset, line, stride, a.frames); break;
        case SampleFormat::kValues: load_line<T, T>(in, a.in_frame, offset, line, stride, a.frames); break;
      }
    }
    if (kInverse) amplify(a, line, stride);
    if constexpr (kInverse) {
      for (int l = a.levels - 1; l >= 0; --l) lift_line<F, true>(line, stride << l, (a.frames + (1 << l) - 1) >> l);
    } else {
      for (int l = 0; l < a.levels; ++l) lift_line<F, false>(line, stride << l, (a.frames + (1 << l) - 1) >> l);
    }
    if (!kInverse) amplify(a, line, stride);
    if (!(kGlobal && !kInverse)) {
      switch (to) {
        case SampleFormat::kU8: store_line<T, std::uint8_t>(line, stride, a.range, out, a.out_frame, a.frames); break;
        case SampleFormat::kS8: store_line<T, std::int8_t>(line, stride, a.range, out, a.out_frame, a.frames); break;
        case SampleFormat::kU16: store_line<T, std::uint16_t>(line, stride, a.range, out, a.out_frame, a.frames); break;
        case SampleFormat::kS16: store_line<T, std::int16_t>(line, stride, a.range, out, a.out_frame, a.frames); break;
        case SampleFormat::kValues: store_line<T, T>(line, stride, a.range, out, a.out_frame, a.frames); break;
      }
    }
  }
}

/// GOPs of kFrames frames: the line is in registers and everything is unrolled.
template <class F, bool kInverse, int kFrames, class T = typename F::Value>
__global__ void __launch_bounds__(kRegisterThreads) gop_kernel(TimeArgs<T> a) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const unsigned lanes = __ballot_sync(kAllLanes, x < a.width);
  if (x >= a.width) return;
  for (int y = static_cast<int>(blockIdx.y); y < a.height; y += static_cast<int>(gridDim.y)) {
    T t[kFrames];
    const std::ptrdiff_t in = y * a.in_row, out = y * a.out_row;
    const std::ptrdiff_t samples = static_cast<std::ptrdiff_t>(x) * sample_bytes(a.format),
                         values = static_cast<std::ptrdiff_t>(x) * 4;
    if constexpr (kInverse) {
      load_frames_as<T, T>(a, in + values, 0, t);
      amplify_signal(a, t);
      inverse_signal<F>(t, a.levels);
      if (a.quads && a.format == SampleFormat::kU8)
        store_quads<std::uint8_t>(a, out + samples, lanes, t);
      else if (a.quads)
        store_quads<std::int8_t>(a, out + samples, lanes, t);
      else
        store_frames<0, kFrames>(a, out + samples, 0, t);
    } else {
      if (a.quads && a.format == SampleFormat::kU8)
        load_quads<std::uint8_t>(a, in + samples, lanes, t);
      else if (a.quads)
        load_quads<std::int8_t>(a, in + samples, lanes, t);
      else
        load_frames(a, in + samples, 0, t);
      forward_signal<F>(t, a.levels);
      amplify_signal(a, t);
      store_frames_as<T, T, 0, kFrames>(a, out + values, 0, t);
    }
  }
}

/// True when there was a kernel for the filter and the number of frames.
template <class F, bool kInverse, class T>
bool run_gop(const TimeArgs<T>& a, const Stream& stream) {
  if constexpr (std::is_same_v<F, Cdf97> || std::is_same_v<F, Rev53>) {
    const dim3 grid((static_cast<unsigned>(a.width) + kRegisterThreads - 1) / kRegisterThreads,
                    static_cast<unsigned>(a.height < 65535 ? a.height : 65535));
    const auto run = [&](auto kernel) {
      launch("gop_kernel", kernel, grid, dim3(kRegisterThreads), 0, stream.get(), a);
    };
    switch (a.frames) {
      case 16: run(gop_kernel<F, kInverse, 16>); return true;
      case 32: run(gop_kernel<F, kInverse, 32>); return true;
      case 64: run(gop_kernel<F, kInverse, 64>); return true;
      case 128: run(gop_kernel<F, kInverse, 128>); return true;
      default: break;
    }
  }
  return false;
}

template <bool kInverse, class T>
void run_time(TimeArgs<T> a, Wavelet w, const Stream& stream) {
  const auto multiples_of_4 = [](const void* p, std::ptrdiff_t row, std::ptrdiff_t frame) {
    return reinterpret_cast<std::uintptr_t>(p) % 4 == 0 && row % 4 == 0 && frame % 4 == 0;
  };
  a.quads = sample_bytes(a.format) == 1 && a.width % 4 == 0 &&
            (kInverse ? multiples_of_4(a.out, a.out_row, a.out_frame) : multiples_of_4(a.in, a.in_row, a.in_frame));
  const std::size_t line_bytes = static_cast<std::size_t>(a.frames) * sizeof(T);
  unsigned threads = 128;
  while (threads > 32 && line_bytes * threads > kSharedBytes) threads /= 2;
  const bool global = line_bytes * threads > (48u << 10);
  const dim3 grid((static_cast<unsigned>(a.width) + threads - 1) / threads,
                  static_cast<unsigned>(a.height < 65535 ? a.height : 65535));
  with_filter<T>(w, [&](auto filter) {
    using F = decltype(filter);
    if (run_gop<F, kInverse>(a, stream)) return;
    if (global)
      launch("time_kernel", time_kernel<F, kInverse, true>, grid, dim3(threads), 0, stream.get(), a);
    else
      launch("time_kernel", time_kernel<F, kInverse, false>, grid, dim3(threads), line_bytes * threads, stream.get(),
             a);
  });
}

}  // namespace

template <class T>
void forward_time(const TimeArgs<T>& a, Wavelet w, const Stream& stream) {
  run_time<false>(a, w, stream);
}
template <class T>
void inverse_time(const TimeArgs<T>& a, Wavelet w, const Stream& stream) {
  run_time<true>(a, w, stream);
}

template void forward_time(const TimeArgs<float>&, Wavelet, const Stream&);
template void forward_time(const TimeArgs<std::int32_t>&, Wavelet, const Stream&);
template void inverse_time(const TimeArgs<float>&, Wavelet, const Stream&);
template void inverse_time(const TimeArgs<std::int32_t>&, Wavelet, const Stream&);

}  // namespace trivelet::gpu
