/* The shortest way through the interface in C: frames in memory, a stream, frames again, and how far they are apart. */
#include <stdio.h>
#include <stdlib.h>

#include "trivelet/trivelet.h"

enum { kWidth = 320, kHeight = 240, kFrames = 50, kPixels = kWidth * kHeight };
static unsigned char before[kFrames * kPixels], after[kFrames * kPixels];

int main(void) {
  tvl_frame in[kFrames] = {0}, out[kFrames] = {0};
  for (int t = 0; t < kFrames; ++t) {
    for (int i = 0; i < kPixels; ++i) /* a ramp that wanders to the left */
      before[t * kPixels + i] = (unsigned char)((i % kWidth + 2 * t) / 4 + i / kWidth / 3);
    in[t].planes[0].data = before + t * kPixels;
    out[t].planes[0].data = after + t * kPixels;
    in[t].pts = t;
    in[t].duration = 1;
  }

  tvl_video video;
  tvl_video_init(&video, sizeof video);
  video.width = kWidth;
  video.height = kHeight;
  tvl_video_set_format(&video, "gray");
  tvl_encode_params params;
  tvl_encode_params_init(&params, sizeof params);
  params.quality = 75;
  const uint64_t capacity = tvl_encode_bound(&video, &params, kFrames);
  void* stream = malloc(capacity);
  uint64_t size = 0, count = 0;
  tvl_encoder* encoder = tvl_encoder_new();
  tvl_decoder* decoder = tvl_decoder_new();
  if (tvl_encode(encoder, &video, &params, in, kFrames, stream, capacity, &size) != TVL_OK)
    return fprintf(stderr, "%s\n", tvl_encoder_error(encoder)), 1;
  if (tvl_decode(decoder, stream, size, NULL, out, kFrames, &count) != TVL_OK)
    return fprintf(stderr, "%s\n", tvl_decoder_error(decoder)), 1;
  tvl_encoder_free(encoder);
  tvl_decoder_free(decoder);
  free(stream);

  long long squared = 0;
  for (int i = 0; i < kFrames * kPixels; ++i) {
    const int difference = before[i] - after[i];
    squared += difference * difference;
  }
  const double error = (double)squared / sizeof before;
  printf("Trivelet %s: %d frames, %d bytes -> %llu, mean squared error %.3f\n", tvl_version(), (int)count,
         (int)sizeof before, (unsigned long long)size, error);
  return count == kFrames && error < 3 ? 0 : 1;
}
