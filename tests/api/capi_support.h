/* Reference results for the C tests, made through the C++ interface. Memory comes from malloc. */
#ifndef CAPI_SUPPORT_H
#define CAPI_SUPPORT_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct coding {
  const char* format; /* of pixels */
  int width, height, frames;
  int lossless;
  double quality, psnr, bpp; /* 0 = not asked for */
  uint64_t bytes;
  int gop, fast, motion, key_interval, layers, part_checks, device;
} coding;

/* Frames lie one after the other, planar without gaps; their times are i, 1. */
void* reference_encode(const coding* c, const void* samples, size_t* size);
/* A part of a stream, whole pictures. */
void* reference_decode(const void* stream, size_t size, int reduce, int temporal_reduce, int layers, uint64_t first,
                       uint64_t end, size_t* bytes);

typedef struct volume_coding {
  int type, channels, width, height, slices, volumes;
  double max_error, quality, psnr, bits_per_voxel; /* 0 = not asked for */
  int wavelet, verify;
} volume_coding;
void* reference_encode_volume(const volume_coding* c, const void* voxels, size_t* size);
void* reference_decode_volume(const void* stream, size_t size, const uint64_t region[6], int reduce, int layers,
                              size_t* bytes);

/* capi_memory_test.c and capi_packets_test.c: how many checks failed. */
int test_memory(int emulated);
int test_packets(void);

/* 1 where the device of `coding` may be a GPU. */
int has_gpu(void);

#ifdef __cplusplus
}
#endif
#endif
