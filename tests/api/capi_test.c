/* The C interface from C: streams and samples are those of the C++ interface, byte for byte. Invalid requests, damaged
 * streams, failing callbacks and cancellation give the results that the header promises. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/api/capi_check.h"
#include "tests/api/capi_support.h"
#include "trivelet/trivelet.h"

#define CHECK_RESULT(call, wanted, text)                                                                            \
  do {                                                                                                              \
    const tvl_result seen_ = (call);                                                                                \
    if (seen_ != (wanted)) {                                                                                        \
      ++failures;                                                                                                   \
      fprintf(stderr, "%s:%d: %s: %s (%s), wanted %s\n", __FILE__, __LINE__, #call, tvl_result_text(seen_), (text), \
              tvl_result_text(wanted));                                                                             \
    }                                                                                                               \
  } while (0)
#define ENCODE_OK(encoder, call) CHECK_RESULT(call, TVL_OK, tvl_encoder_error(encoder))
#define DECODE_OK(decoder, call) CHECK_RESULT(call, TVL_OK, tvl_decoder_error(decoder))

enum { kMostFrames = 40 };

static uint32_t state = 1;
static uint32_t random_bits(void) { return (state = state * 1664525u + 1013904223u) >> 8; }

static tvl_video video_of(const coding* c) {
  tvl_video v;
  tvl_video_init(&v, sizeof v);
  v.width = c->width;
  v.height = c->height;
  CHECK(tvl_video_set_format(&v, c->format) == TVL_OK);
  v.frames = (uint64_t)c->frames;
  return v;
}

static tvl_encode_params params_of(const coding* c) {
  tvl_encode_params p;
  tvl_encode_params_init(&p, sizeof p);
  p.lossless = c->lossless;
  if (c->quality > 0) p.quality = c->quality;
  p.psnr = c->psnr;
  p.bits_per_pixel = c->bpp;
  p.target_bytes = c->bytes;
  if (c->gop) p.gop_frames = c->gop;
  if (c->fast) p.profile = TVL_PROFILE_FAST;
  p.motion = c->motion;
  p.key_interval = c->key_interval;
  p.layers = c->layers;
  p.part_checks = c->part_checks;
  p.device = c->device;
  return p;
}

/* Waves with a little noise, planar without gaps. */
static void* make_samples(const tvl_video* v, int frames) {
  const size_t bytes = (size_t)tvl_frame_bytes(v);
  const int wide = v->bits > 8;
  const size_t samples = bytes / (wide ? 2 : 1);
  uint8_t* memory = malloc(bytes * (size_t)frames + 1);
  for (int t = 0; t < frames; ++t)
    for (size_t i = 0; i < samples; ++i) {
      const double wave =
          0.5 + 0.3 * sin(0.05 * (double)(i % (size_t)v->width) + 0.2 * t) + 0.1 * cos(0.001 * (double)i);
      const uint32_t value = (uint32_t)(wave * ((1 << v->bits) - 1)) ^ (random_bits() & 1);
      if (wide)
        ((uint16_t*)(void*)memory)[(size_t)t * samples + i] = (uint16_t)value;
      else
        memory[(size_t)t * samples + i] = (uint8_t)value;
    }
  return memory;
}

static void planar_frames(const tvl_video* v, void* memory, int count, tvl_frame* frames) {
  for (int t = 0; t < count; ++t) {
    CHECK(tvl_frame_layout(v, TVL_PLANAR, (char*)memory + (size_t)t * tvl_frame_bytes(v), &frames[t]) == TVL_OK);
    frames[t].pts = t;
    frames[t].duration = 1;
  }
}

static int same(const void* a, size_t size_a, const void* b, size_t size_b) {
  return size_a == size_b && memcmp(a, b, size_a) == 0;
}

static void test_library(void) {
  CHECK(strlen(tvl_version()) >= 5);
  CHECK(tvl_format_version() >= 2);
  CHECK(tvl_has(TVL_FEATURE_VOLUMES) == 1 && tvl_has((tvl_feature)9999) == 0);
  CHECK(tvl_limit_of(TVL_LIMIT_BITS) == 16 && tvl_limit_of((tvl_limit)9999) == 0);
  CHECK(strcmp(tvl_result_text(TVL_CANCELLED), "cancelled") == 0);
  tvl_video v;
  tvl_video_init(&v, sizeof v);
  CHECK(tvl_frame_bytes(&v) == 0);
  v.width = 5, v.height = 3;
  CHECK(tvl_frame_bytes(&v) == 15 + 2 * 6);
  CHECK(tvl_video_set_format(&v, "rgb565") == TVL_BAD_ARGUMENT && v.colour_model == TVL_YUV);
  tvl_frame f;
  char memory[1];
  CHECK(tvl_frame_layout(&v, TVL_INTERLEAVED, memory, &f) == TVL_BAD_ARGUMENT);
  tvl_encoder_free(NULL);
  tvl_decoder_free(NULL);
  tvl_encoder_cancel(NULL);
  CHECK(tvl_encoder_finish(NULL) == TVL_BAD_ARGUMENT);
}

/* One case: frame by frame, all at once, and what comes back. */
static void test_video(const coding* c) {
  const tvl_video v = video_of(c);
  const tvl_encode_params p = params_of(c);
  void* samples = make_samples(&v, c->frames);
  tvl_frame frames[kMostFrames];
  planar_frames(&v, samples, c->frames, frames);
  size_t wanted_size = 0, wanted_bytes = 0;
  void* wanted = reference_encode(c, samples, &wanted_size);

  tvl_encoder* encoder = tvl_encoder_new();
  const void* stream = NULL;
  uint64_t size = 0;
  ENCODE_OK(encoder, tvl_encoder_open(encoder, &v, &p, NULL));
  for (int t = 0; t < c->frames; ++t) ENCODE_OK(encoder, tvl_encoder_write(encoder, &frames[t], 1));
  ENCODE_OK(encoder, tvl_encoder_finish(encoder));
  ENCODE_OK(encoder, tvl_encoder_stream(encoder, &stream, &size));
  CHECK(same(stream, size, wanted, wanted_size));
  tvl_encode_stats stats;
  tvl_encode_stats_init(&stats, sizeof stats);
  ENCODE_OK(encoder, tvl_encoder_stats(encoder, &stats));
  CHECK(stats.frames == (uint64_t)c->frames && stats.stream_bytes == size);

  const uint64_t bound = tvl_encode_bound(&v, &p, (uint64_t)c->frames);
  void* memory = malloc(bound);
  ENCODE_OK(encoder, tvl_encode(encoder, &v, &p, frames, (uint64_t)c->frames, memory, bound, &size));
  CHECK(same(memory, size, wanted, wanted_size));
  CHECK(tvl_encode(encoder, &v, &p, frames, (uint64_t)c->frames, memory, size - 1, &size) == TVL_BUFFER_TOO_SMALL);
  CHECK(size == wanted_size);
  tvl_encoder_free(encoder);

  tvl_decoder* decoder = tvl_decoder_new();
  void* back = reference_decode(wanted, wanted_size, 0, 0, 0, 0, UINT64_MAX, &wanted_bytes);
  if (c->lossless) CHECK(same(back, wanted_bytes, samples, tvl_frame_bytes(&v) * (size_t)c->frames));
  void* decoded = calloc(1, wanted_bytes);
  planar_frames(&v, decoded, c->frames, frames);
  tvl_decode_params d;
  tvl_decode_params_init(&d, sizeof d);
  d.device = c->device;
  uint64_t count = 0;
  DECODE_OK(decoder, tvl_decode(decoder, wanted, wanted_size, &d, frames, (uint64_t)c->frames, &count));
  CHECK(count == (uint64_t)c->frames);
  CHECK(memcmp(decoded, back, wanted_bytes) == 0);
  CHECK(frames[c->frames - 1].pts == c->frames - 1 && frames[c->frames - 1].duration == 1);
  CHECK(tvl_decode(decoder, wanted, wanted_size, &d, frames, (uint64_t)c->frames - 1, &count) == TVL_BUFFER_TOO_SMALL);
  CHECK(count == (uint64_t)c->frames);

  /* Frame by frame from a part of it. */
  free(back);
  d.reduce = 1;
  d.temporal_reduce = 1;
  d.first_frame = 3;
  back = reference_decode(wanted, wanted_size, 1, 1, 0, 3, UINT64_MAX, &wanted_bytes);
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  source.data = wanted;
  source.size = wanted_size;
  DECODE_OK(decoder, tvl_decoder_open(decoder, &source, &d));
  tvl_video part;
  tvl_video_init(&part, sizeof part);
  DECODE_OK(decoder, tvl_decoder_video(decoder, &part));
  CHECK(part.width == (v.width + 1) / 2 && part.frames * tvl_frame_bytes(&part) == wanted_bytes);
  memset(decoded, 0, wanted_bytes);
  for (uint64_t t = 0; t < part.frames; ++t) {
    planar_frames(&part, (char*)decoded + t * tvl_frame_bytes(&part), 1, frames);
    DECODE_OK(decoder, tvl_decoder_read(decoder, frames, 1, &count));
    CHECK(count == 1);
  }
  DECODE_OK(decoder, tvl_decoder_read(decoder, frames, 1, &count));
  CHECK(count == 0);
  CHECK(memcmp(decoded, back, wanted_bytes) == 0);
  tvl_stream_info info;
  tvl_stream_info_init(&info, sizeof info);
  DECODE_OK(decoder, tvl_decoder_stream(decoder, &info));
  CHECK(info.lossless == c->lossless && info.complete && info.bytes == wanted_size && !info.is_volume);
  tvl_gop gop;
  tvl_gop_init(&gop, sizeof gop);
  DECODE_OK(decoder, tvl_decoder_gop(decoder, info.gops - 1, &gop));
  CHECK(gop.first_frame + gop.frames == (uint64_t)c->frames && gop.layer_bytes[0] > 0);
  CHECK(tvl_decoder_gop(decoder, info.gops, &gop) == TVL_BAD_ARGUMENT);
  tvl_decoder_free(decoder);
  free(decoded);
  free(back);
  free(memory);
  free(wanted);
  free(samples);
}

/* Frames with gaps, from the bottom up, interleaved: the same streams; and back into such memory. */
static void test_strides(void) {
  const coding c = {
      .format = "gbrp10", .width = 37, .height = 21, .frames = 9, .lossless = 1, .gop = 4, .device = TVL_CPU};
  const tvl_video v = video_of(&c);
  const tvl_encode_params p = params_of(&c);
  uint16_t* samples = make_samples(&v, c.frames);
  size_t wanted_size = 0;
  void* wanted = reference_encode(&c, samples, &wanted_size);
  const size_t plane = 37 * 21, per_frame = 3 * plane;
  uint16_t* interleaved = malloc(2 * per_frame * 9);
  uint16_t* upside_down = malloc(2 * 3 * 21 * 50 * 9);
  tvl_frame straight[9], other[9];
  for (int t = 0; t < 9; ++t) {
    CHECK(tvl_frame_layout(&v, TVL_INTERLEAVED, interleaved + (size_t)t * per_frame, &straight[t]) == TVL_OK);
    straight[t].pts = other[t].pts = t;
    straight[t].duration = other[t].duration = 1;
    const int place[3] = {1, 2, 0};
    for (int i = 0; i < 3; ++i) {
      uint16_t* rows = upside_down + ((size_t)t * 3 + (size_t)i) * 21 * 50;
      other[t].planes[i] = (tvl_plane){rows + 20 * 50, -100, 0};
      for (int y = 0; y < 21; ++y)
        for (int x = 0; x < 37; ++x) {
          const uint16_t s = samples[(size_t)t * per_frame + (size_t)i * plane + (size_t)(y * 37 + x)];
          interleaved[(size_t)t * per_frame + (size_t)(3 * (y * 37 + x) + place[i])] = s;
          rows[(20 - y) * 50 + x] = s;
        }
    }
  }
  tvl_encoder* encoder = tvl_encoder_new();
  const uint64_t bound = tvl_encode_bound(&v, &p, 9);
  void* memory = malloc(bound);
  uint64_t size = 0;
  ENCODE_OK(encoder, tvl_encode(encoder, &v, &p, straight, 9, memory, bound, &size));
  CHECK(same(memory, size, wanted, wanted_size));
  ENCODE_OK(encoder, tvl_encode(encoder, &v, &p, other, 9, memory, bound, &size));
  CHECK(same(memory, size, wanted, wanted_size));
  tvl_encoder_free(encoder);

  uint16_t* before = malloc(2 * per_frame * 9);
  memcpy(before, interleaved, 2 * per_frame * 9);
  memset(interleaved, 0, 2 * per_frame * 9);
  tvl_decoder* decoder = tvl_decoder_new();
  uint64_t count = 0;
  DECODE_OK(decoder, tvl_decode(decoder, wanted, wanted_size, NULL, straight, 9, &count));
  CHECK(count == 9 && memcmp(before, interleaved, 2 * per_frame * 9) == 0);
  uint16_t* again = malloc(2 * 3 * 21 * 50 * 9);
  memcpy(again, upside_down, 2 * 3 * 21 * 50 * 9);
  memset(upside_down, 0, 2 * 3 * 21 * 50 * 9);
  DECODE_OK(decoder, tvl_decode(decoder, wanted, wanted_size, NULL, other, 9, &count));
  for (size_t row = 0; row < 9 * 3 * 21; ++row) CHECK(memcmp(again + row * 50, upside_down + row * 50, 2 * 37) == 0);

  /* A region is a picture of its own. */
  tvl_decode_params d;
  tvl_decode_params_init(&d, sizeof d);
  d.x = 11, d.y = 5, d.region_width = 7, d.region_height = 9;
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  source.data = wanted, source.size = wanted_size;
  DECODE_OK(decoder, tvl_decoder_open(decoder, &source, &d));
  tvl_video part;
  tvl_video_init(&part, sizeof part);
  DECODE_OK(decoder, tvl_decoder_video(decoder, &part));
  CHECK(part.width == 7 && part.height == 9);
  uint16_t box[3 * 7 * 9];
  tvl_frame small;
  CHECK(tvl_frame_layout(&part, TVL_PLANAR, box, &small) == TVL_OK);
  DECODE_OK(decoder, tvl_decoder_read(decoder, &small, 1, &count));
  for (int i = 0; i < 3; ++i)
    for (int y = 0; y < 9; ++y)
      CHECK(memcmp(box + (i * 9 + y) * 7, samples + (size_t)i * plane + (size_t)((y + 5) * 37 + 11), 14) == 0);
  d.region_width = 30;
  CHECK(tvl_decoder_open(decoder, &source, &d) == TVL_BAD_ARGUMENT);
  tvl_decoder_free(decoder);
  free(again);
  free(before);
  free(memory);
  free(upside_down);
  free(interleaved);
  free(wanted);
  free(samples);
}

/* A stream that is read by callbacks and written by them. */
typedef struct bytes {
  uint8_t* data;
  uint64_t size, at, most; /* `most`: fails beyond */
  tvl_encoder* cancels;
  tvl_decoder* cancels_decoder;
} bytes;

static int write_bytes(void* user, const void* data, uint64_t size) {
  bytes* b = user;
  if (b->cancels) tvl_encoder_cancel(b->cancels);
  if (b->size + size > b->most) return 7;
  memcpy(b->data + b->size, data, size);
  b->size += size;
  return 0;
}
static int64_t read_bytes(void* user, void* data, uint64_t size) {
  bytes* b = user;
  if (b->cancels_decoder) tvl_decoder_cancel(b->cancels_decoder);
  if (b->at >= b->most) return -1;
  const uint64_t n = size < b->size - b->at ? size : b->size - b->at;
  memcpy(data, b->data + b->at, n);
  b->at += n;
  return (int64_t)n;
}
static int seek_bytes(void* user, uint64_t position) {
  ((bytes*)user)->at = position;
  return 0;
}

static void test_callbacks(void) {
  const coding c = {.format = "gray", .width = 40, .height = 30, .frames = 12, .gop = 5, .device = TVL_CPU};
  const tvl_video v = video_of(&c);
  const tvl_encode_params p = params_of(&c);
  void* samples = make_samples(&v, c.frames);
  tvl_frame frames[12];
  planar_frames(&v, samples, 12, frames);
  size_t wanted_size = 0;
  void* wanted = reference_encode(&c, samples, &wanted_size);
  bytes b = {malloc(wanted_size), 0, 0, wanted_size, NULL, NULL};
  tvl_sink sink;
  tvl_sink_init(&sink, sizeof sink);
  sink.write = write_bytes;
  sink.user = &b;
  tvl_encoder* encoder = tvl_encoder_new();
  ENCODE_OK(encoder, tvl_encoder_open(encoder, &v, &p, &sink));
  ENCODE_OK(encoder, tvl_encoder_write(encoder, frames, 12));
  ENCODE_OK(encoder, tvl_encoder_finish(encoder));
  CHECK(same(b.data, b.size, wanted, wanted_size));

  /* A sink that fails. */
  b.size = 0, b.most = wanted_size / 2;
  ENCODE_OK(encoder, tvl_encoder_open(encoder, &v, &p, &sink));
  tvl_result result = tvl_encoder_write(encoder, frames, 12);
  if (result == TVL_OK) result = tvl_encoder_finish(encoder);
  CHECK(result == TVL_IO && strstr(tvl_encoder_error(encoder), "returned 7"));
  CHECK(tvl_encoder_write(encoder, frames, 1) == TVL_BAD_ARGUMENT); /* nothing is open any more */

  /* One that cancels, and a cancelled call that works again. */
  b.size = 0, b.most = wanted_size, b.cancels = encoder;
  result = tvl_encoder_open(encoder, &v, &p, &sink);
  CHECK(result == TVL_CANCELLED && strstr(tvl_encoder_error(encoder), "cancelled"));
  b.size = 0, b.cancels = NULL;
  tvl_encoder_cancel(encoder);
  CHECK(tvl_encoder_open(encoder, &v, &p, &sink) == TVL_CANCELLED);
  ENCODE_OK(encoder, tvl_encoder_open(encoder, &v, &p, &sink));
  ENCODE_OK(encoder, tvl_encoder_write(encoder, frames, 12));
  tvl_encoder_cancel(encoder);
  CHECK(tvl_encoder_write(encoder, frames, 12) == TVL_CANCELLED);
  CHECK(tvl_encoder_finish(encoder) == TVL_BAD_ARGUMENT);
  tvl_encoder_free(encoder);

  /* From a source with and without seeking. */
  memcpy(b.data, wanted, wanted_size);
  b.size = b.most = wanted_size;
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  source.read = read_bytes;
  source.user = &b;
  size_t bytes_wanted = 0;
  void* back = reference_decode(wanted, wanted_size, 0, 0, 0, 0, UINT64_MAX, &bytes_wanted);
  void* decoded = malloc(bytes_wanted);
  planar_frames(&v, decoded, 12, frames);
  tvl_decoder* decoder = tvl_decoder_new();
  for (int pipe = 0; pipe < 2; ++pipe) {
    b.at = 0;
    source.seek = pipe ? NULL : seek_bytes;
    source.size = pipe ? 0 : wanted_size;
    memset(decoded, 1, bytes_wanted);
    uint64_t count = 0;
    DECODE_OK(decoder, tvl_decoder_open(decoder, &source, NULL));
    DECODE_OK(decoder, tvl_decoder_read(decoder, frames, 12, &count));
    CHECK(count == 12 && memcmp(decoded, back, bytes_wanted) == 0);
    CHECK(strcmp(tvl_decoder_settings(decoder), "") == 0 && strstr(tvl_decoder_writer(decoder), "Trivelet"));
    tvl_decoder_close(decoder);
    CHECK(tvl_decoder_settings(decoder) == NULL);
  }
  source.seek = seek_bytes, source.size = wanted_size;
  b.at = 0, b.most = 0;
  CHECK(tvl_decoder_open(decoder, &source, NULL) == TVL_IO && strstr(tvl_decoder_error(decoder), "returned -1"));
  b.at = 0, b.most = wanted_size, b.cancels_decoder = decoder;
  CHECK(tvl_decoder_open(decoder, &source, NULL) == TVL_CANCELLED);
  b.cancels_decoder = NULL;
  b.at = 0;
  DECODE_OK(decoder, tvl_decoder_open(decoder, &source, NULL));
  tvl_decoder_cancel(decoder);
  uint64_t count = 0;
  CHECK(tvl_decoder_read(decoder, frames, 12, &count) == TVL_CANCELLED && count == 0);
  CHECK(tvl_decoder_read(decoder, frames, 12, &count) == TVL_BAD_ARGUMENT); /* nothing is open any more */
  tvl_decoder_free(decoder);
  free(decoded);
  free(back);
  free(b.data);
  free(wanted);
  free(samples);
}

static void count_lines(void* user, int32_t level, const char* text) {
  (void)level;
  if (strlen(text) > 0) ++*(int*)user;
}

static void test_errors_and_damage(void) {
  const coding c = {
      .format = "yuv420p", .width = 48, .height = 32, .frames = 10, .gop = 5, .lossless = 1, .device = TVL_CPU};
  const tvl_video v = video_of(&c);
  tvl_encode_params p = params_of(&c);
  void* samples = make_samples(&v, c.frames);
  tvl_frame frames[10];
  planar_frames(&v, samples, 10, frames);
  tvl_encoder* encoder = tvl_encoder_new();
  CHECK(strcmp(tvl_encoder_error(encoder), "") == 0);
  CHECK(tvl_encoder_open(encoder, NULL, NULL, NULL) == TVL_BAD_ARGUMENT);
  p.gop_frames = 1000;
  CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_BAD_ARGUMENT && strstr(tvl_encoder_error(encoder), "1000"));
  p = params_of(&c);
  p.lossless = 0, p.quality = 500;
  CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_BAD_ARGUMENT && strstr(tvl_encoder_error(encoder), "is 500;"));
  p = params_of(&c);
  p.key_interval = -1;
  CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_BAD_ARGUMENT && strstr(tvl_encoder_error(encoder), "-1"));
  p = params_of(&c);
  p.reserved_layout = TVL_DYADIC; /* of a program that was compiled with an earlier header */
  CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_UNSUPPORTED && strstr(tvl_encoder_error(encoder), "layout"));
  p = params_of(&c);
  p.struct_size = sizeof p + 8;
  CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_UNSUPPORTED);
  p.struct_size = 0;
  CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_BAD_ARGUMENT);
  p = params_of(&c);
  p.struct_size = offsetof(tvl_encode_params, gop_frames); /* of an older program: the rest is default */
  ENCODE_OK(encoder, tvl_encoder_open(encoder, &v, &p, NULL));
  CHECK(tvl_encoder_gop_frames(encoder) == 10); /* 64, but not more than there are */
  p = params_of(&c);
  if (!has_gpu()) {
    p.device = 0;
    CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_UNSUPPORTED);
    p.device = TVL_CPU;
  }
  tvl_sink sink;
  tvl_sink_init(&sink, sizeof sink);
  sink.path = "/nowhere/at/all.tvl";
  CHECK(tvl_encoder_open(encoder, &v, &p, &sink) == TVL_IO);
  const void* stream = NULL;
  uint64_t size = 0, count = 0;
  CHECK(tvl_encoder_stream(encoder, &stream, &size) == TVL_BAD_ARGUMENT);
  ENCODE_OK(encoder, tvl_encoder_open(encoder, &v, &p, NULL));
  tvl_frame bad = frames[0];
  bad.planes[1].data = NULL;
  CHECK(tvl_encoder_write(encoder, &bad, 1) == TVL_BAD_ARGUMENT && strstr(tvl_encoder_error(encoder), "component 1"));
  ENCODE_OK(encoder, tvl_encoder_write(encoder, frames, 7)); /* nothing was lost */
  ENCODE_OK(encoder, tvl_encoder_end_gop(encoder));
  ENCODE_OK(encoder, tvl_encoder_write(encoder, frames + 7, 3));
  ENCODE_OK(encoder, tvl_encoder_finish(encoder));
  ENCODE_OK(encoder, tvl_encoder_stream(encoder, &stream, &size));

  tvl_decoder* decoder = tvl_decoder_new();
  CHECK(tvl_decoder_read(decoder, frames, 1, &count) == TVL_BAD_ARGUMENT);
  CHECK(tvl_decode(decoder, "no stream at all", 16, NULL, frames, 10, &count) == TVL_BAD_STREAM);
  void* decoded = calloc(10, tvl_frame_bytes(&v));
  planar_frames(&v, decoded, 10, frames);
  DECODE_OK(decoder, tvl_decode(decoder, stream, size, NULL, frames, 10, &count));
  CHECK(count == 10 && memcmp(decoded, samples, 10 * tvl_frame_bytes(&v)) == 0);

  /* The lengths of the GOPs, then a byte of the second one's is changed. */
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  uint8_t* damaged = malloc(size);
  memcpy(damaged, stream, size);
  source.data = damaged;
  source.size = size;
  DECODE_OK(decoder, tvl_decoder_open(decoder, &source, NULL));
  tvl_gop gop;
  tvl_gop_init(&gop, sizeof gop);
  const uint64_t lengths[] = {5, 2, 3};
  for (uint64_t i = 0; i < 3; ++i) {
    DECODE_OK(decoder, tvl_decoder_gop(decoder, i, &gop));
    CHECK(gop.frames == lengths[i]);
  }
  DECODE_OK(decoder, tvl_decoder_gop(decoder, 1, &gop));
  damaged[gop.offset + gop.bytes - 10] ^= 0x40;
  CHECK(tvl_decode(decoder, damaged, size, NULL, frames, 10, &count) == TVL_BAD_STREAM && count == 5);
  CHECK(strstr(tvl_decoder_error(decoder), "checksum"));
  tvl_decode_params d;
  tvl_decode_params_init(&d, sizeof d);
  d.keep_partial = 1;
  int lines = 0;
  tvl_decoder_set_log(decoder, count_lines, &lines);
  DECODE_OK(decoder, tvl_decoder_open(decoder, &source, &d));
  DECODE_OK(decoder, tvl_decoder_read(decoder, frames, 10, &count));
  tvl_decode_stats stats;
  tvl_decode_stats_init(&stats, sizeof stats);
  DECODE_OK(decoder, tvl_decoder_stats(decoder, &stats));
  CHECK(count == 10 && stats.damaged_gops == 1 && stats.frames == 10 && lines > 0);
  CHECK(memcmp(decoded, samples, 5 * tvl_frame_bytes(&v)) == 0);

  /* Cut, and any byte changed: a result, never a crash. */
  for (uint64_t cut = 0; cut < size; cut += 1 + size / 29)
    (void)tvl_decode(decoder, stream, cut, NULL, frames, 10, &count);
  for (uint64_t at = 0; at < size; at += 1 + size / 37) {
    memcpy(damaged, stream, size);
    damaged[at] ^= 0x11;
    const tvl_result result = tvl_decode(decoder, damaged, size, at % 2 ? &d : NULL, frames, 10, &count);
    CHECK(result != TVL_INTERNAL && (result == TVL_OK || strlen(tvl_decoder_error(decoder)) > 0));
  }
  uint64_t* const limits[] = {&d.max_memory, &d.max_samples, &d.max_frames, &d.max_samples_per_byte};
  for (int i = 0; i < 4; ++i) {
    const uint64_t before = *limits[i];
    *limits[i] = i == 3 ? 0 : 9;
    const tvl_result result = tvl_decode(decoder, stream, size, &d, frames, 10, &count);
    /* Work is counted beyond 2^24 samples only, which so small a clip does not have. */
    CHECK(result == (i == 3 ? TVL_OK : TVL_UNSUPPORTED));
    *limits[i] = before;
  }
  d.struct_size = offsetof(tvl_decode_params, max_samples); /* of a program that knows no other limits */
  CHECK(tvl_decode(decoder, stream, size, &d, frames, 10, &count) == TVL_OK);
  tvl_decoder_free(decoder);
  tvl_encoder_free(encoder);
  free(decoded);
  free(damaged);
  free(samples);
}

static int give_slice(void* user, uint64_t number, void* slice) {
  const uint16_t* voxels = user;
  memcpy(slice, voxels + number * 20 * 14, 2 * 20 * 14);
  return 0;
}
static int give_nothing(void* user, uint64_t number, void* slice) {
  (void)user, (void)slice;
  return number == 3 ? 5 : 0;
}

static void test_volume(const volume_coding* c) {
  static const int kBytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  const size_t scalars =
      (size_t)c->width * (size_t)c->height * (size_t)c->slices * (size_t)c->volumes * (size_t)c->channels;
  const size_t bytes_all = scalars * (size_t)kBytes[c->type];
  uint8_t* voxels = malloc(bytes_all);
  for (size_t i = 0; i < scalars; ++i) {
    const double wave = 100 + 90 * sin(0.1 * (double)(i % (size_t)c->width)) + random_bits() % 3;
    const int16_t narrow = (int16_t)wave;
    const float real = (float)wave;
    if (c->type == TVL_F32)
      memcpy(voxels + 4 * i, &real, 4);
    else if (c->type == TVL_U8)
      voxels[i] = (uint8_t)wave;
    else
      memcpy(voxels + 2 * i, &narrow, 2);
  }
  size_t wanted_size = 0, wanted_bytes = 0;
  void* wanted = reference_encode_volume(c, voxels, &wanted_size);
  tvl_volume v;
  tvl_volume_init(&v, sizeof v);
  v.type = c->type, v.channels = c->channels, v.width = c->width, v.height = c->height;
  v.slices = (uint64_t)c->slices, v.volumes = (uint64_t)c->volumes;
  CHECK(tvl_volume_bytes(&v) == bytes_all);
  tvl_volume_params p;
  tvl_volume_params_init(&p, sizeof p);
  p.max_error = c->max_error;
  if (c->quality > 0) p.quality = c->quality;
  if (c->psnr > 0) p.psnr = c->psnr;
  if (c->bits_per_voxel > 0) p.bits_per_voxel = c->bits_per_voxel;
  if (c->wavelet) p.transform = TVL_TRANSFORM_WAVELET;
  p.verify = c->verify;
  tvl_encoder* encoder = tvl_encoder_new();
  int lines = 0;
  tvl_encoder_set_log(encoder, count_lines, &lines);
  const tvl_voxels plain = {voxels, 0, 0, 0};
  uint64_t size = 0;
  const uint64_t bound = tvl_encode_volume_bound(&v, &p);
  void* memory = malloc(bound);
  ENCODE_OK(encoder, tvl_encode_volume(encoder, &v, &p, &plain, memory, bound, &size));
  CHECK(same(memory, size, wanted, wanted_size));
  uint64_t needed = 0;
  CHECK(tvl_encode_volume(encoder, &v, &p, &plain, memory, size - 1, &needed) == TVL_BUFFER_TOO_SMALL &&
        needed == size);

  tvl_decoder* decoder = tvl_decoder_new();
  void* back = reference_decode_volume(wanted, wanted_size, NULL, 0, 0, &wanted_bytes);
  void* decoded = malloc(bytes_all);
  DECODE_OK(decoder, tvl_decode_volume(decoder, wanted, wanted_size, NULL, decoded, bytes_all, &needed));
  CHECK(needed == bytes_all && same(decoded, bytes_all, back, wanted_bytes));
  CHECK(tvl_decode_volume(decoder, wanted, wanted_size, NULL, decoded, bytes_all - 1, &needed) == TVL_BUFFER_TOO_SMALL);
  free(back);

  /* A box, into rows with gaps. */
  const uint64_t box[6] = {3, 2, 1, 11, 7, 2};
  tvl_volume_decode_params d;
  tvl_volume_decode_params_init(&d, sizeof d);
  d.x = 3, d.y = 2, d.z = 1, d.width = 11, d.height = 7, d.depth = 2;
  back = reference_decode_volume(wanted, wanted_size, box, 0, 0, &wanted_bytes);
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  source.data = wanted;
  source.size = wanted_size;
  DECODE_OK(decoder, tvl_decoder_open_volume(decoder, &source, &d));
  tvl_volume whole, output;
  tvl_volume_init(&whole, sizeof whole);
  tvl_volume_init(&output, sizeof output);
  tvl_volume_info info;
  tvl_volume_info_init(&info, sizeof info);
  DECODE_OK(decoder, tvl_decoder_volume(decoder, &whole, &output, &info));
  CHECK(memcmp(&whole, &v, sizeof v) == 0 && output.width == 11 && output.slices == 2 && info.depth == 2);
  /* Where loss is allowed, a volume that is smaller without is coded without. */
  const int lossless = c->max_error == 0 && c->quality == 0 && c->psnr == 0 && c->bits_per_voxel == 0;
  CHECK(info.exact || !lossless);
  CHECK(!info.exact || memcmp(decoded, voxels, bytes_all) == 0);
  const size_t row = 11 * (size_t)kBytes[c->type] * (size_t)c->channels;
  const uint64_t slices = 2 * (uint64_t)c->volumes;
  uint8_t* gaps = malloc((row + 5) * 7 * slices);
  const tvl_voxels apart = {gaps, (int64_t)row + 5, 0, 0};
  uint64_t count = 0;
  DECODE_OK(decoder, tvl_decoder_read_slices(decoder, &apart, slices, &count));
  CHECK(count == slices && wanted_bytes == row * 7 * slices);
  for (size_t i = 0; i < 7 * slices; ++i) CHECK(memcmp(gaps + i * (row + 5), (char*)back + i * row, row) == 0);
  DECODE_OK(decoder, tvl_decoder_read_slices(decoder, &apart, 1, &count));
  CHECK(count == 0);
  d.x = 1000;
  CHECK(tvl_decoder_open_volume(decoder, &source, &d) == TVL_BAD_ARGUMENT);
  uint8_t* damaged = malloc(wanted_size);
  for (uint64_t at = 0; at < wanted_size; at += 1 + wanted_size / 23) {
    memcpy(damaged, wanted, wanted_size);
    damaged[at] ^= 0x21;
    CHECK(tvl_decode_volume(decoder, damaged, wanted_size, NULL, decoded, bytes_all, &needed) != TVL_INTERNAL);
  }
  tvl_decoder_free(decoder);
  tvl_encoder_free(encoder);
  free(damaged);
  free(gaps);
  free(decoded);
  free(back);
  free(memory);
  free(wanted);
  free(voxels);
}

static void test_volume_sources(void) {
  tvl_volume v;
  tvl_volume_init(&v, sizeof v);
  v.type = TVL_U16, v.width = 20, v.height = 14, v.slices = 6;
  uint16_t voxels[6 * 14 * 20];
  for (int i = 0; i < 6 * 14 * 20; ++i) voxels[i] = (uint16_t)(i * 7 % 1000);
  tvl_encoder* encoder = tvl_encoder_new();
  tvl_volume_params p;
  tvl_volume_params_init(&p, sizeof p);
  p.access = TVL_ACCESS_REGION + 1;
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, NULL, give_slice, voxels, NULL) == TVL_BAD_ARGUMENT);
  CHECK(strstr(tvl_encoder_error(encoder), "access"));
  p.access = TVL_ACCESS_WHOLE;
  p.envelope = "header";
  p.envelope_bytes = 6;
  const void* stream = NULL;
  uint64_t size = 0;
  const tvl_voxels plain = {voxels, 0, 0, 0};
  ENCODE_OK(encoder, tvl_encoder_write_volume(encoder, &v, &p, NULL, give_slice, voxels, NULL));
  ENCODE_OK(encoder, tvl_encoder_stream(encoder, &stream, &size));
  void* first = malloc(size);
  memcpy(first, stream, size);
  const uint64_t first_size = size;
  /* Slices in the other order, by a negative stride. */
  uint16_t reversed[6 * 14 * 20];
  for (int z = 0; z < 6; ++z) memcpy(reversed + z * 280, voxels + (5 - z) * 280, 560);
  const tvl_voxels backwards = {reversed + 5 * 280, 0, -560, 0};
  ENCODE_OK(encoder, tvl_encoder_write_volume(encoder, &v, &p, &backwards, NULL, NULL, NULL));
  ENCODE_OK(encoder, tvl_encoder_stream(encoder, &stream, &size));
  CHECK(same(first, first_size, stream, size));
  tvl_decoder* decoder = tvl_decoder_new();
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  source.data = first;
  source.size = first_size;
  DECODE_OK(decoder, tvl_decoder_open_volume(decoder, &source, NULL));
  const void* envelope = NULL;
  DECODE_OK(decoder, tvl_decoder_envelope(decoder, &envelope, &size));
  CHECK(same(envelope, size, "header", 6));
  tvl_decoder_free(decoder);
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, NULL, give_nothing, voxels, NULL) == TVL_IO);
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, &plain, give_slice, voxels, NULL) == TVL_BAD_ARGUMENT);
  p.max_error = 1, p.quality = 50;
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, &plain, NULL, NULL, NULL) == TVL_BAD_ARGUMENT);
  p.quality = -1, p.verify = 1;
  bytes b = {NULL, 0, 0, 0, NULL, NULL};
  tvl_sink sink;
  tvl_sink_init(&sink, sizeof sink);
  sink.write = write_bytes;
  sink.user = &b;
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, &plain, NULL, NULL, &sink) == TVL_BAD_ARGUMENT);
  /* Fill values: exact wherever they are. */
  for (int i = 0; i < 6 * 14 * 20; i += 17) voxels[i] = 65535;
  const double fill[1] = {65535};
  p.quality = -1, p.max_error = 3, p.verify = 0, p.fill_count = 1;
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, &plain, NULL, NULL, NULL) == TVL_BAD_ARGUMENT);
  p.fill_values = fill;
  ENCODE_OK(encoder, tvl_encoder_write_volume(encoder, &v, &p, &plain, NULL, NULL, NULL));
  ENCODE_OK(encoder, tvl_encoder_stream(encoder, &stream, &size));
  decoder = tvl_decoder_new();
  uint64_t needed = 0;
  DECODE_OK(decoder, tvl_decode_volume(decoder, stream, size, NULL, reversed, sizeof reversed, &needed));
  for (int i = 0; i < 6 * 14 * 20; ++i)
    CHECK(i % 17 == 0 ? reversed[i] == 65535 : abs((int)reversed[i] - (int)voxels[i]) <= 3);
  source.data = stream, source.size = size;
  DECODE_OK(decoder, tvl_decoder_open_volume(decoder, &source, NULL));
  tvl_volume_info info;
  tvl_volume_info_init(&info, sizeof info);
  DECODE_OK(decoder, tvl_decoder_volume(decoder, NULL, NULL, &info));
  CHECK(info.marked == 1 && info.has_bound && info.max_error == 3);
  tvl_decoder_free(decoder);
  tvl_encoder_free(encoder);
  free(first);
}

static void test_metadata(void) {
  const coding c = {.format = "gray", .width = 16, .height = 16, .frames = 2, .gop = 2, .device = TVL_CPU};
  tvl_video v = video_of(&c);
  v.mirrored = 1, v.rotation = 90;
  tvl_encode_params p = params_of(&c);
  const tvl_chapter chapters[2] = {{0, 40, "one"}, {40, 80, ""}};
  const tvl_entry entries[1] = {{"title", "a title"}};
  tvl_metadata m;
  tvl_metadata_init(&m, sizeof m);
  CHECK(m.chapter_time_base_num == 1 && m.chapter_time_base_den == 1000 && !m.chapters);
  m.has_mastering_display = m.has_content_light = 1;
  for (int i = 0; i < 8; ++i) m.chromaticity[i] = 1000 * i;
  m.max_luminance = 10000000, m.min_luminance = 1, m.max_content_light = 65535;
  m.chapters = chapters, m.chapter_count = 2, m.entries = entries, m.entry_count = 1;
  p.metadata = &m;
  uint8_t samples[512] = {0};
  const tvl_frame frames[2] = {{{{samples, 0, 0}}, 0, 1}, {{{samples + 256, 0, 0}}, 1, 1}};
  tvl_encoder* encoder = tvl_encoder_new();
  ENCODE_OK(encoder, tvl_encoder_open(encoder, &v, &p, NULL));
  ENCODE_OK(encoder, tvl_encoder_write(encoder, frames, 2));
  ENCODE_OK(encoder, tvl_encoder_finish(encoder));
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  ENCODE_OK(encoder, tvl_encoder_stream(encoder, &source.data, &source.size));
  tvl_decoder* decoder = tvl_decoder_new();
  tvl_metadata back;
  tvl_metadata_init(&back, sizeof back);
  CHECK(tvl_decoder_metadata(decoder, &back) == TVL_BAD_ARGUMENT);
  DECODE_OK(decoder, tvl_decoder_open(decoder, &source, NULL));
  DECODE_OK(decoder, tvl_decoder_metadata(decoder, &back));
  CHECK(back.has_mastering_display && memcmp(back.chromaticity, m.chromaticity, sizeof m.chromaticity) == 0);
  CHECK(back.max_luminance == 10000000 && back.min_luminance == 1);
  CHECK(back.has_content_light && back.max_content_light == 65535 && back.max_frame_average == 0);
  CHECK(back.chapter_count == 2 && back.chapters[1].begin == 40 && strcmp(back.chapters[0].title, "one") == 0);
  CHECK(back.entry_count == 1 && strcmp(back.entries[0].key, "title") == 0 &&
        strcmp(back.entries[0].value, "a title") == 0);
  tvl_video seen;
  tvl_video_init(&seen, sizeof seen);
  DECODE_OK(decoder, tvl_decoder_video(decoder, &seen));
  CHECK(seen.mirrored == 1 && seen.rotation == 90);
  char text[60000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  const tvl_entry long_ones[3] = {{"a", text}, {"b", text}, {"c", text}};
  m.entries = long_ones, m.entry_count = 3;
  const uint64_t bound = tvl_encode_bound(&v, &p, 2);
  uint64_t size = 0;
  void* memory = malloc(bound);
  ENCODE_OK(encoder, tvl_encode(encoder, &v, &p, frames, 2, memory, bound, &size));
  CHECK(size > 3 * (sizeof text - 1));
  free(memory);
  m.entries = entries, m.entry_count = 1, m.max_content_light = 65536;
  CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_BAD_ARGUMENT);
  m.max_content_light = 0, m.entries = NULL;
  CHECK(tvl_encoder_open(encoder, &v, &p, NULL) == TVL_BAD_ARGUMENT);
  tvl_decoder_free(decoder);
  tvl_encoder_free(encoder);
}

/* Tasks one after the other, the last first; cancels a handle at the task that it is told. */
typedef struct runner {
  int calls, tasks, most, cancel_at;
  tvl_encoder* encoder;
  tvl_decoder* decoder;
} runner;
static void run_tasks(void* user, int32_t count, void (*task)(void* context, int32_t index), void* context) {
  runner* r = user;
  ++r->calls;
  if (count > r->most) r->most = count;
  for (int32_t i = count; i-- > 0; ++r->tasks) {
    if (r->cancel_at && r->tasks == r->cancel_at) {
      tvl_encoder_cancel(r->encoder);
      tvl_decoder_cancel(r->decoder);
    }
    task(context, i);
  }
}

/* The same bytes and samples as with threads of the library, and cancelled in the middle of a GOP. */
static void test_runner(void) {
  const coding cases[] = {
      {.format = "yuv420p", .width = 96, .height = 80, .frames = 9, .gop = 9, .device = TVL_CPU},
      {.format = "gray", .width = 96, .height = 80, .frames = 9, .gop = 9, .lossless = 1, .device = TVL_CPU}};
  for (size_t i = 0; i < 2; ++i) {
    const coding* c = &cases[i];
    const tvl_video v = video_of(c);
    tvl_encode_params p = params_of(c);
    p.block_size = 32, p.threads = 3;
    void* samples = malloc(tvl_frame_bytes(&v) * 9);
    for (size_t n = 0; n < tvl_frame_bytes(&v) * 9; ++n) ((uint8_t*)samples)[n] = (uint8_t)(n * n / 91 % 250);
    tvl_frame frames[9];
    planar_frames(&v, samples, 9, frames);
    tvl_encoder* encoder = tvl_encoder_new();
    void* stream[2];
    uint64_t size[2];
    runner r = {0, 0, 0, 0, encoder, NULL};
    for (int own = 0; own < 2; ++own) {
      if (own) tvl_encoder_set_runner(encoder, run_tasks, &r);
      const uint64_t capacity = tvl_encode_bound(&v, &p, 9);
      stream[own] = malloc(capacity);
      ENCODE_OK(encoder, tvl_encode(encoder, &v, &p, frames, 9, stream[own], capacity, &size[own]));
    }
    CHECK(same(stream[0], size[0], stream[1], size[1]));
    CHECK(r.calls > 3 && r.tasks > 9 && r.most == 3);
    r.cancel_at = r.tasks + r.tasks / 2;
    const int before = r.calls;
    CHECK(tvl_encode(encoder, &v, &p, frames, 9, stream[1], size[0], &size[1]) == TVL_CANCELLED);
    CHECK(r.calls > before && r.calls < 2 * before);
    tvl_decoder* decoder = tvl_decoder_new();
    r = (runner){0, 0, 0, 0, NULL, decoder};
    tvl_decoder_set_runner(decoder, run_tasks, &r);
    tvl_decode_params d;
    tvl_decode_params_init(&d, sizeof d);
    d.threads = 3;
    void* decoded[2] = {malloc(tvl_frame_bytes(&v) * 9), malloc(tvl_frame_bytes(&v) * 9)};
    uint64_t count = 0;
    for (int own = 1; own >= 0; --own) {
      planar_frames(&v, decoded[own], 9, frames);
      DECODE_OK(decoder, tvl_decode(decoder, stream[0], size[0], &d, frames, 9, &count));
      tvl_decoder_set_runner(decoder, NULL, NULL);
    }
    CHECK(memcmp(decoded[0], decoded[1], tvl_frame_bytes(&v) * 9) == 0);
    CHECK(r.calls > 1 && r.tasks > 3 && r.most == 3);
    tvl_decoder_set_runner(decoder, run_tasks, &r);
    r.cancel_at = r.tasks + r.tasks / 2;
    CHECK(tvl_decode(decoder, stream[0], size[0], &d, frames, 9, &count) == TVL_CANCELLED && count == 0);
    r.cancel_at = 0;
    DECODE_OK(decoder, tvl_decode(decoder, stream[0], size[0], &d, frames, 9, &count));
    CHECK(count == 9);
    tvl_decoder_free(decoder);
    tvl_encoder_free(encoder);
    free(decoded[0]);
    free(decoded[1]);
    free(stream[0]);
    free(stream[1]);
    free(samples);
  }
}

/* The other half of a stream is not needed for half the size, and is not there. */
static void test_plan(void) {
  const coding c = {
      .format = "gray", .width = 96, .height = 64, .frames = 8, .gop = 4, .quality = 80, .device = TVL_CPU};
  const tvl_video v = video_of(&c);
  void* samples = make_samples(&v, c.frames);
  size_t size = 0, wanted_bytes = 0;
  uint8_t* stream = reference_encode(&c, samples, &size);
  void* wanted = reference_decode(stream, size, 1, 0, 0, 0, UINT64_MAX, &wanted_bytes);
  tvl_decode_params params;
  tvl_decode_params_init(&params, sizeof params);
  params.reduce = 1;
  tvl_plan* plan = tvl_plan_new();
  tvl_range ranges[64];
  uint64_t count = 0, given = 0;
  CHECK(tvl_plan_next(plan, ranges, 64, &count) == TVL_BAD_ARGUMENT);
  CHECK_RESULT(tvl_plan_begin(plan, size, &params), TVL_OK, tvl_plan_error(plan));
  CHECK(tvl_plan_next(plan, ranges, 0, &count) == TVL_BUFFER_TOO_SMALL && count > 0);
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  CHECK_RESULT(tvl_plan_source(plan, &source), TVL_OK, tvl_plan_error(plan));
  tvl_decoder* decoder = tvl_decoder_new();
  CHECK(tvl_decoder_open(decoder, &source, &params) == TVL_IO);
  for (;;) {
    CHECK_RESULT(tvl_plan_next(plan, ranges, 64, &count), TVL_OK, tvl_plan_error(plan));
    if (count == 0) break;
    for (uint64_t i = 0; i < count; ++i) {
      given += ranges[i].size;
      CHECK_RESULT(tvl_plan_give(plan, ranges[i].offset, stream + ranges[i].offset, ranges[i].size), TVL_OK,
                   tvl_plan_error(plan));
    }
  }
  CHECK(given < size / 2 + 1536);
  CHECK(tvl_plan_give(plan, size, stream, 1) == TVL_BAD_ARGUMENT);
  CHECK_RESULT(tvl_plan_source(plan, &source), TVL_OK, tvl_plan_error(plan));
  DECODE_OK(decoder, tvl_decoder_open(decoder, &source, &params));
  tvl_video half;
  tvl_video_init(&half, sizeof half);
  DECODE_OK(decoder, tvl_decoder_video(decoder, &half));
  void* decoded = calloc(8, tvl_frame_bytes(&half));
  tvl_frame frames[8];
  planar_frames(&half, decoded, 8, frames);
  DECODE_OK(decoder, tvl_decoder_read(decoder, frames, 8, &count));
  CHECK(count == 8 && same(decoded, 8 * tvl_frame_bytes(&half), wanted, wanted_bytes));
  CHECK_RESULT(tvl_plan_begin_volume(plan, size, NULL), TVL_OK, tvl_plan_error(plan));
  CHECK_RESULT(tvl_plan_give(plan, 0, stream, size), TVL_OK, tvl_plan_error(plan));
  CHECK(tvl_plan_next(plan, ranges, 64, &count) == TVL_BAD_ARGUMENT && strstr(tvl_plan_error(plan), "volume"));
  tvl_decoder_free(decoder);
  tvl_plan_free(plan);
  free(decoded);
  free(wanted);
  free(stream);
  free(samples);
}

/* Noise is what takes the most. */
static void test_bounds(void) {
  const int kGop[] = {1, 8};
  for (int i = 0; i < 4; ++i) {
    coding c = {.format = i < 2 ? "gray16" : "gbrp",
                .width = 33,
                .height = 31,
                .frames = 8,
                .lossless = 1,
                .gop = kGop[i % 2],
                .device = TVL_CPU};
    const tvl_video v = video_of(&c);
    tvl_encode_params p = params_of(&c);
    p.layers = 16, p.block_size = 32, p.part_checks = 1;
    const size_t all = (size_t)tvl_frame_bytes(&v) * 8;
    uint8_t* samples = malloc(all);
    for (size_t k = 0; k < all; ++k) samples[k] = (uint8_t)random_bits();
    tvl_frame frames[8];
    planar_frames(&v, samples, 8, frames);
    for (int fast = 0; fast < 2; ++fast) {
      p.profile = fast ? TVL_PROFILE_FAST : TVL_PROFILE_DENSE;
      tvl_encoder* encoder = tvl_encoder_new();
      const uint64_t bound = tvl_encode_bound(&v, &p, 8);
      void* memory = malloc(bound);
      uint64_t size = 0;
      ENCODE_OK(encoder, tvl_encode(encoder, &v, &p, frames, 8, memory, bound, &size));
      CHECK(size > all && size < all + (1 << 16));
      tvl_encoder_free(encoder);
      free(memory);
    }
    free(samples);
  }
}

/* capi_test [gpu]: all of it, or what an emulated GPU does, where all has been tried without one. */
int main(int argc, char** argv) {
  const int gpu_alone = argc > 1 && strcmp(argv[1], "gpu") == 0;
  const int device = has_gpu() ? 0 : TVL_CPU;
  const coding kVideos[] = {
      {.format = "yuv420p", .width = 50, .height = 35, .frames = 11, .gop = 5, .device = TVL_CPU},
      {.format = "yuv420p", .width = 50, .height = 35, .frames = 9, .gop = 5, .device = device},
      {.format = "gray16", .width = 41, .height = 29, .frames = 7, .gop = 5, .lossless = 1, .device = device},
      {.format = "yuva444p10",
       .width = 33,
       .height = 18,
       .frames = 8,
       .gop = 5,
       .quality = 90,
       .fast = 1,
       .device = TVL_CPU},
      {.format = "gray12", .width = 64, .height = 40, .frames = 10, .gop = 5, .psnr = 50, .device = TVL_CPU},
      {.format = "yuv422p", .width = 64, .height = 40, .frames = 10, .gop = 5, .bpp = 1, .device = TVL_CPU},
      {.format = "yuv420p",
       .width = 64,
       .height = 40,
       .frames = 16,
       .gop = 8,
       .motion = TVL_MOTION_ON,
       .key_interval = 9,
       .device = TVL_CPU},
      {.format = "yuv420p", .width = 64, .height = 40, .frames = 12, .motion = TVL_MOTION_DEFAULT, .device = TVL_CPU},
      {.format = "gray",
       .width = 64,
       .height = 40,
       .frames = 10,
       .gop = 5,
       .bytes = 9000,
       .layers = 3,
       .device = TVL_CPU},
  };
  const volume_coding kVolumes[] = {
      {.type = TVL_I16, .channels = 1, .width = 20, .height = 14, .slices = 6, .volumes = 1},
      {.type = TVL_U8, .channels = 3, .width = 20, .height = 14, .slices = 5, .volumes = 1, .wavelet = 1, .verify = 1},
      {.type = TVL_F32, .channels = 1, .width = 24, .height = 18, .slices = 8, .volumes = 1},
      {.type = TVL_F32, .channels = 1, .width = 24, .height = 18, .slices = 8, .volumes = 2, .max_error = 0.5},
      {.type = TVL_I16, .channels = 1, .width = 24, .height = 18, .slices = 8, .volumes = 1, .quality = 50},
      {.type = TVL_U16, .channels = 1, .width = 24, .height = 18, .slices = 8, .volumes = 1, .psnr = 45},
      {.type = TVL_U16, .channels = 1, .width = 24, .height = 18, .slices = 8, .volumes = 1, .bits_per_voxel = 6},
  };
  test_library();
  for (size_t i = 0; i < sizeof kVideos / sizeof *kVideos; ++i)
    if (!gpu_alone || kVideos[i].device != TVL_CPU) test_video(&kVideos[i]);
  failures += test_memory(gpu_alone);
  if (!gpu_alone) {
    test_strides();
    test_callbacks();
    test_errors_and_damage();
    for (size_t i = 0; i < sizeof kVolumes / sizeof *kVolumes; ++i) test_volume(&kVolumes[i]);
    test_volume_sources();
    test_metadata();
    test_runner();
    test_plan();
    failures += test_packets();
    test_bounds();
  }
  if (failures) fprintf(stderr, "%d checks failed\n", failures);
  return failures ? 1 : 0;
}
