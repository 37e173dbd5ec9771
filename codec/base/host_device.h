// TRIVELET_NOINLINE: for functions of a device of which there is to be one copy.
// TRIVELET_HOST_DEVICE: for arithmetic that runs on the host and, when nvcc compiles it, on a device. Functions so
// marked are `static inline` on purpose: the headers are compiled with several instruction sets, and a merged copy of
// one of them must never end up in code that runs on a lesser machine.
// TRIVELET_ALWAYS_INLINE: for the innermost of them, of which no compiler is to make a function of its own.
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
