/* Packets in C: the packets of an encoder form the stream, and decoding them one by one gives what decoding the stream
 * gives, also after jumps, losses and damage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/api/capi_check.h"
#include "tests/api/capi_support.h"
#include "trivelet/trivelet.h"

enum { kWidth = 48, kHeight = 30, kGop = 8, kFrames = 40, kMost = 16 };

typedef struct packets {
  tvl_packet info[kMost];
  uint8_t* bytes[kMost];
  uint64_t sizes[kMost];
  int count;
  int fail_at; /* the packet that is not taken */
} packets;

static int take_packet(void* user, const tvl_packet* info, const void* data, uint64_t size) {
  packets* p = user;
  if (p->count == p->fail_at || p->count == kMost) return 7;
  p->info[p->count] = *info;
  p->bytes[p->count] = malloc(size);
  memcpy(p->bytes[p->count], data, size);
  p->sizes[p->count++] = size;
  return 0;
}

static int no_write(void* user, const void* data, uint64_t size) {
  (void)user, (void)data, (void)size;
  return 0;
}

static void free_packets(packets* p) {
  for (int i = 0; i < p->count; ++i) free(p->bytes[i]);
  p->count = 0;
}

/* A square that moves over a slope, at times 100 + 2t. */
static uint8_t* make_film(tvl_video* v, tvl_frame* frames) {
  tvl_video_init(v, sizeof *v);
  v->width = kWidth, v->height = kHeight, v->frames = kFrames;
  CHECK(tvl_video_set_format(v, "yuv420p") == TVL_OK);
  const uint64_t bytes = tvl_frame_bytes(v);
  uint8_t* samples = malloc(kFrames * bytes);
  for (int t = 0; t < kFrames; ++t)
    for (uint64_t i = 0; i < bytes; ++i) {
      const int x = (int)(i % kWidth) - t, y = (int)(i / kWidth);
      samples[(uint64_t)t * bytes + i] = (uint8_t)(x > 3 && x < 17 && y > 6 && y < 20 ? 200 - x * 3 : 40 + y + x);
    }
  for (int t = 0; t < kFrames; ++t) {
    CHECK(tvl_frame_layout(v, TVL_PLANAR, samples + (uint64_t)t * bytes, &frames[t]) == TVL_OK);
    frames[t].pts = 100 + 2 * t, frames[t].duration = 2;
  }
  return samples;
}

static void make_packets(const tvl_video* v, const tvl_frame* frames, int motion, packets* made) {
  tvl_encode_params p;
  tvl_encode_params_init(&p, sizeof p);
  p.gop_frames = kGop, p.motion = motion, p.key_interval = 16, p.device = TVL_CPU;
  if (motion == TVL_MOTION_ON) p.temporal_levels = 2;
  tvl_sink sink;
  tvl_sink_init(&sink, sizeof sink);
  sink.packet = take_packet, sink.user = made;
  made->count = 0, made->fail_at = -1;
  tvl_encoder* encoder = tvl_encoder_new();
  CHECK(tvl_encoder_open(encoder, v, &p, &sink) == TVL_OK);
  CHECK(made->count == 1 && made->info[0].kind == TVL_PACKET_HEAD);
  CHECK(tvl_encoder_write(encoder, frames, kFrames) == TVL_OK);
  CHECK(tvl_encoder_finish(encoder) == TVL_OK);
  /* What the caller does not take ends the encoding. */
  packets none = {.fail_at = 0};
  sink.user = &none;
  CHECK(tvl_encoder_open(encoder, v, &p, &sink) == TVL_IO && strstr(tvl_encoder_error(encoder), "returned 7"));
  sink.write = no_write;
  CHECK(tvl_encoder_open(encoder, v, &p, &sink) == TVL_BAD_ARGUMENT);
  tvl_encoder_free(encoder);
}

/* All packets of `p` are one GOP after another without gaps, and the stream of the same encoder without packets. */
static uint8_t* check_packets(const tvl_video* v, const tvl_frame* frames, int motion, const packets* p,
                              uint64_t* stream_bytes) {
  uint64_t size = 0, first = 0;
  int open_gops = 0;
  for (int i = 0; i < p->count; ++i) size += p->sizes[i];
  uint8_t* stream = malloc(size);
  size = 0;
  for (int i = 0; i < p->count; ++i) {
    memcpy(stream + size, p->bytes[i], p->sizes[i]);
    size += p->sizes[i];
    const tvl_packet* info = &p->info[i];
    CHECK(info->kind == (i == 0 ? TVL_PACKET_HEAD : i + 1 < p->count ? TVL_PACKET_GOP : TVL_PACKET_END));
    if (info->kind != TVL_PACKET_GOP) {
      CHECK(info->frames == 0 && info->key == 0);
      continue;
    }
    CHECK(info->first_frame == first && info->frames > 0);
    CHECK(info->pts == 100 + 2 * (int64_t)first && info->duration == 2 * (int64_t)info->frames);
    first += info->frames;
    open_gops += !info->key;
  }
  CHECK(first == kFrames);
  CHECK((open_gops > 0) == (motion == TVL_MOTION_ON));
  tvl_encode_params e;
  tvl_encode_params_init(&e, sizeof e);
  e.gop_frames = kGop, e.motion = motion, e.key_interval = 16, e.device = TVL_CPU;
  if (motion == TVL_MOTION_ON) e.temporal_levels = 2;
  const uint64_t bound = tvl_encode_bound(v, &e, kFrames);
  uint8_t* wanted = malloc(bound);
  tvl_encoder* encoder = tvl_encoder_new();
  CHECK(tvl_encode(encoder, v, &e, frames, kFrames, wanted, bound, stream_bytes) == TVL_OK);
  CHECK(*stream_bytes == size && memcmp(wanted, stream, size) == 0);
  tvl_encoder_free(encoder);
  free(wanted);
  return stream;
}

/* Decodes packet `i` to `into`, which is `bytes` a frame, through `at_once` frames a call. Returns the frames. */
static uint64_t decode_packet(tvl_decoder* decoder, const packets* p, int i, const tvl_video* v, uint8_t* into,
                              uint64_t at_once, tvl_result wanted) {
  uint64_t frames = 0, done = 0, count = 1;
  CHECK(tvl_decoder_packet(decoder, p->bytes[i], p->sizes[i], &frames) == TVL_OK);
  tvl_frame out[kFrames] = {0};
  while (frames > 0 && count > 0) {
    for (uint64_t k = 0; k < at_once; ++k)
      CHECK(tvl_frame_layout(v, TVL_PLANAR, into + (done + k) * tvl_frame_bytes(v), &out[k]) == TVL_OK);
    const tvl_result result = tvl_decoder_read(decoder, out, at_once, &count);
    CHECK(result == wanted);
    if (result != TVL_OK) return 0;
    if (count > 0) CHECK(out[0].pts == p->info[i].pts + 2 * (int64_t)done);
    done += count;
  }
  CHECK(done == frames || wanted != TVL_OK);
  return done;
}

static void test_order(const tvl_video* v, const packets* p, const uint8_t* whole) {
  const uint64_t bytes = tvl_frame_bytes(v);
  uint8_t* back = malloc((kFrames + kFrames) * bytes);
  tvl_decoder* decoder = tvl_decoder_new();
  uint64_t frames = 9;
  CHECK(tvl_decoder_packet(decoder, p->bytes[1], p->sizes[1], &frames) == TVL_BAD_ARGUMENT && frames == 0);
  CHECK(tvl_decoder_flush(decoder) == TVL_BAD_ARGUMENT);
  /* The head as a container gives it that pads to an even size. */
  uint8_t* head = calloc(1, p->sizes[0] + 1);
  memcpy(head, p->bytes[0], p->sizes[0]);
  CHECK(tvl_decoder_open_packets(decoder, head, p->sizes[0] + 1, NULL) == TVL_OK);
  tvl_stream_info info;
  tvl_stream_info_init(&info, sizeof info);
  CHECK(tvl_decoder_stream(decoder, &info) == TVL_OK && info.lossless == 0);
  tvl_video out;
  tvl_video_init(&out, sizeof out);
  CHECK(tvl_decoder_video(decoder, &out) == TVL_OK && out.width == kWidth);
  CHECK(tvl_decoder_gop_frames(decoder) >= kGop);
  for (uint64_t at_once = 1; at_once <= kFrames; at_once += kFrames - 1) {
    memset(back, 0, kFrames * bytes);
    for (int i = 1; i < p->count; ++i) {
      tvl_packet seen;
      tvl_packet_init(&seen, sizeof seen);
      CHECK(tvl_decoder_look_at_packet(decoder, p->bytes[i], p->sizes[i], &seen) == TVL_OK);
      CHECK(memcmp(&seen, &p->info[i], sizeof seen) == 0);
      CHECK(decode_packet(decoder, p, i, v, back + p->info[i].first_frame * bytes, at_once, TVL_OK) ==
            p->info[i].frames);
    }
    CHECK(memcmp(back, whole, kFrames * bytes) == 0);
  }
  /* From each GOP on: an open one needs the one before. */
  for (int i = 1; i + 1 < p->count; ++i) {
    CHECK(tvl_decoder_flush(decoder) == TVL_OK);
    const uint64_t count = decode_packet(decoder, p, i, v, back, kFrames, TVL_OK);
    CHECK(count == (p->info[i].key ? p->info[i].frames : 0));
    CHECK(count == 0 || memcmp(back, whole + p->info[i].first_frame * bytes, count * bytes) == 0);
  }
  /* A packet that is left out without a word. */
  CHECK(decode_packet(decoder, p, 1, v, back, kFrames, TVL_OK) == p->info[1].frames);
  CHECK(decode_packet(decoder, p, 3, v, back, kFrames, TVL_OK) == (p->info[3].key ? p->info[3].frames : 0));
  tvl_decode_stats stats;
  tvl_decode_stats_init(&stats, sizeof stats);
  CHECK(tvl_decoder_stats(decoder, &stats) == TVL_OK && stats.frames >= 2 * kFrames && stats.damaged_gops == 0);
  /* Half the size, a region of it. */
  tvl_decode_params d;
  tvl_decode_params_init(&d, sizeof d);
  d.reduce = 1, d.x = 4, d.y = 2, d.region_width = 10, d.region_height = 8;
  CHECK(tvl_decoder_open_packets(decoder, head, p->sizes[0], &d) == TVL_OK);
  CHECK(tvl_decoder_video(decoder, &out) == TVL_OK && out.width == 10 && out.height == 8);
  CHECK(decode_packet(decoder, p, 1, &out, back, kFrames, TVL_OK) == p->info[1].frames);
  d.first_frame = 3;
  CHECK(tvl_decoder_open_packets(decoder, head, p->sizes[0], &d) == TVL_BAD_ARGUMENT);
  CHECK(tvl_decoder_open_packets(decoder, head, p->sizes[0] - 1, NULL) == TVL_BAD_STREAM);
  CHECK(tvl_decoder_open_packets(decoder, NULL, 0, NULL) == TVL_BAD_ARGUMENT);
  tvl_decoder_free(decoder);
  free(head);
  free(back);
}

/* A damaged packet says so, and the next one that is whole is decoded. */
static void test_damage(const tvl_video* v, packets* p, const uint8_t* whole) {
  const uint64_t bytes = tvl_frame_bytes(v);
  uint8_t* back = malloc((kFrames + kFrames) * bytes);
  tvl_decoder* decoder = tvl_decoder_new();
  CHECK(tvl_decoder_open_packets(decoder, p->bytes[0], p->sizes[0], NULL) == TVL_OK);
  const uint64_t at[] = {p->sizes[1] - 3, 14};
  for (int k = 0; k < 2; ++k) {
    p->bytes[1][at[k]] ^= 0x40;
    decode_packet(decoder, p, 1, v, back, kFrames, TVL_BAD_STREAM);
    tvl_packet seen;
    tvl_packet_init(&seen, sizeof seen);
    CHECK(tvl_decoder_look_at_packet(decoder, p->bytes[1], p->sizes[1], &seen) == (k ? TVL_BAD_STREAM : TVL_OK));
    p->bytes[1][at[k]] ^= 0x40;
    int next = 2;
    while (!p->info[next].key) ++next;
    CHECK(decode_packet(decoder, p, next, v, back, kFrames, TVL_OK) == p->info[next].frames);
    CHECK(memcmp(back, whole + p->info[next].first_frame * bytes, p->info[next].frames * bytes) == 0);
  }
  uint64_t frames = 0;
  CHECK(tvl_decoder_packet(decoder, p->bytes[1], 0, &frames) == TVL_OK && frames == 0);
  tvl_packet seen;
  tvl_packet_init(&seen, sizeof seen);
  p->bytes[1][1] ^= 1;
  CHECK(tvl_decoder_look_at_packet(decoder, p->bytes[1], p->sizes[1], &seen) == TVL_BAD_STREAM);
  /* Nor is it passed over, and the frames that follow are those of their own GOP. */
  CHECK(decode_packet(decoder, p, 1, v, back, kFrames, TVL_BAD_STREAM) == 0);
  p->bytes[1][1] ^= 1;
  CHECK(decode_packet(decoder, p, 2, v, back, kFrames, TVL_OK) == (p->info[2].key ? p->info[2].frames : 0));
  const uint64_t size = p->sizes[1];
  p->sizes[1] = 3; /* less than the name of a box and its length */
  CHECK(decode_packet(decoder, p, 1, v, back, kFrames, TVL_BAD_STREAM) == 0);
  p->sizes[1] = size;
  /* What is intact may be asked for. */
  tvl_decode_params d;
  tvl_decode_params_init(&d, sizeof d);
  d.keep_partial = 1;
  CHECK(tvl_decoder_open_packets(decoder, p->bytes[0], p->sizes[0], &d) == TVL_OK);
  p->bytes[1][1] ^= 1;
  tvl_frame none = {0};
  CHECK(tvl_decoder_packet(decoder, p->bytes[1], p->sizes[1], &frames) == TVL_OK && frames > 0);
  CHECK(tvl_frame_layout(v, TVL_PLANAR, back, &none) == TVL_OK);
  CHECK(tvl_decoder_read(decoder, &none, 1, &frames) == TVL_OK && frames == 0);
  tvl_decode_stats stats;
  tvl_decode_stats_init(&stats, sizeof stats);
  CHECK(tvl_decoder_stats(decoder, &stats) == TVL_OK && stats.damaged_gops == 1);
  p->bytes[1][1] ^= 1;
  tvl_decoder_free(decoder);
  free(back);
}

/* What a player asks of a video, and the plan that reads header and index alone. */
static void test_questions(const tvl_video* v, const uint8_t* stream, uint64_t size) {
  char name[32];
  CHECK(tvl_video_format(v, name, sizeof name) == TVL_OK && strcmp(name, "yuv420p") == 0);
  CHECK(tvl_video_format(v, name, 4) == TVL_BUFFER_TOO_SMALL && name[0] == 0);
  tvl_video odd = *v;
  odd.width = 49;
  int32_t width = 0, height = 0, sample_bytes = 0;
  CHECK(tvl_video_plane(&odd, 1, &width, &height, &sample_bytes) == TVL_OK);
  CHECK(width == 25 && height == kHeight / 2 && sample_bytes == 1);
  CHECK(tvl_video_plane(&odd, 3, &width, NULL, NULL) == TVL_BAD_ARGUMENT && width == 0);
  odd.bits = 77;
  CHECK(tvl_video_format(&odd, name, sizeof name) == TVL_BAD_ARGUMENT && name[0] == 0);

  tvl_plan* plan = tvl_plan_new();
  tvl_range ranges[16];
  uint64_t count = 1, given = 0;
  CHECK(tvl_plan_begin_index(plan, size) == TVL_OK);
  while (tvl_plan_next(plan, ranges, 16, &count) == TVL_OK && count > 0)
    for (uint64_t i = 0; i < count; ++i) {
      given += ranges[i].size;
      CHECK(tvl_plan_give(plan, ranges[i].offset, stream + ranges[i].offset, ranges[i].size) == TVL_OK);
    }
  CHECK(count == 0 && given < size);
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  CHECK(tvl_plan_source(plan, &source) == TVL_OK);
  tvl_decoder* decoder = tvl_decoder_new();
  CHECK(tvl_decoder_open(decoder, &source, NULL) == TVL_OK);
  tvl_stream_info info;
  tvl_stream_info_init(&info, sizeof info);
  CHECK(tvl_decoder_stream(decoder, &info) == TVL_OK && info.gops >= 5);
  uint64_t first = 0;
  for (uint64_t g = 0; g < info.gops; ++g) {
    tvl_gop gop;
    tvl_gop_init(&gop, sizeof gop);
    CHECK(tvl_decoder_gop(decoder, g, &gop) == TVL_OK);
    CHECK(gop.pts == 100 + 2 * (int64_t)first && gop.duration == 2 * (int64_t)gop.frames && (g > 0 || gop.key == 1));
    first += gop.frames;
  }
  CHECK(first == kFrames);
  tvl_decoder_free(decoder);
  tvl_plan_free(plan);
}

int test_packets(void) {
  tvl_video v;
  tvl_frame frames[kFrames] = {0};
  uint8_t* samples = make_film(&v, frames);
  const int kMotion[] = {TVL_MOTION_OFF, TVL_MOTION_ON};
  for (int k = 0; k < 2; ++k) {
    packets p;
    make_packets(&v, frames, kMotion[k], &p);
    uint64_t size = 0;
    uint8_t* stream = check_packets(&v, frames, kMotion[k], &p, &size);
    size_t bytes = 0;
    uint8_t* whole = reference_decode(stream, size, 0, 0, 0, 0, UINT64_MAX, &bytes);
    CHECK(bytes == kFrames * tvl_frame_bytes(&v));
    test_order(&v, &p, whole);
    test_damage(&v, &p, whole);
    test_questions(&v, stream, size);
    free(whole);
    free(stream);
    free_packets(&p);
  }
  free(samples);
  return failures;
}
