// TRIVELET_HOST_DEVICE marks arithmetic that runs on the host and, compiled by nvcc, on a device. Such functions are
// `static inline` on purpose: headers are compiled for several instruction sets, and the linker must not merge copies,
// because the copy that it keeps may not run on an older machine.
//
// TRIVELET_ALWAYS_INLINE marks the innermost functions, which must be inlined. TRIVELET_NOINLINE marks device functions
// that are compiled once and called.
#pragma once

#if defined(__CUDACC__)
#define TRIVELET_HOST_DEVICE __host__ __device__
#define TRIVELET_ALWAYS_INLINE __forceinline__
#define TRIVELET_NOINLINE __noinline__
#else
#define TRIVELET_HOST_DEVICE
#define TRIVELET_ALWAYS_INLINE inline __attribute__((always_inline))
#define TRIVELET_NOINLINE
#endif
