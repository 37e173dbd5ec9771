/* GPU memory and batches (tvl_decoder_set_memory, tvl_decode_volumes, tvl_encode_volumes): the results are those of one
 * volume after the other in host memory. Host memory stands for the memory of an emulated GPU; that of a real one is
 * tested by bench/volume_batch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/api/capi_check.h"
#include "tests/api/capi_support.h"
#include "trivelet/trivelet.h"

enum { kWidth = 36, kHeight = 22, kSlices = 8, kVoxels = kWidth * kHeight * kSlices, kStreams = 7 };

static tvl_volume volume_of_test(void) {
  tvl_volume v;
  tvl_volume_init(&v, sizeof v);
  v.type = TVL_I16, v.width = kWidth, v.height = kHeight, v.slices = kSlices;
  return v;
}

static void frames_on_gpu(int device) {
  tvl_video v;
  tvl_video_init(&v, sizeof v);
  v.width = kWidth, v.height = kHeight;
  CHECK(tvl_video_set_format(&v, "yuv420p") == TVL_OK);
  enum { kFrames = 9 };
  const uint64_t bytes = tvl_frame_bytes(&v);
  uint8_t* samples = malloc(2 * kFrames * bytes);
  for (uint64_t i = 0; i < kFrames * bytes; ++i) samples[i] = (uint8_t)(i * 5 / 7 + i / bytes * 9);
  uint8_t* back = samples + kFrames * bytes;
  tvl_frame frames[kFrames] = {0};
  for (int i = 0; i < kFrames; ++i) {
    CHECK(tvl_frame_layout(&v, TVL_PLANAR, samples + (uint64_t)i * bytes, &frames[i]) == TVL_OK);
    frames[i].pts = i, frames[i].duration = 1;
  }
  tvl_encode_params p;
  tvl_encode_params_init(&p, sizeof p);
  p.lossless = 1, p.gop_frames = 4;
  uint8_t* streams[2];
  uint64_t sizes[2];
  const uint64_t bound = tvl_encode_bound(&v, &p, kFrames);
  for (int on_gpu = 0; on_gpu < 2; ++on_gpu) {
    tvl_encoder* encoder = tvl_encoder_new();
    if (on_gpu) CHECK(tvl_encoder_set_memory(encoder, device, NULL) == TVL_OK);
    streams[on_gpu] = malloc(bound);
    CHECK(tvl_encode(encoder, &v, &p, frames, kFrames, streams[on_gpu], bound, &sizes[on_gpu]) == TVL_OK);
    tvl_encoder_free(encoder);
  }
  CHECK(sizes[0] == sizes[1] && memcmp(streams[0], streams[1], sizes[0]) == 0);
  tvl_decoder* decoder = tvl_decoder_new();
  CHECK(tvl_decoder_set_memory(decoder, device, NULL) == TVL_OK);
  tvl_frame out[kFrames] = {0};
  for (int i = 0; i < kFrames; ++i)
    CHECK(tvl_frame_layout(&v, TVL_PLANAR, back + (uint64_t)i * bytes, &out[i]) == TVL_OK);
  uint64_t count = 0;
  CHECK(tvl_decode(decoder, streams[0], sizes[0], NULL, out, kFrames, &count) == TVL_OK && count == kFrames);
  CHECK(memcmp(samples, back, kFrames * bytes) == 0);
  CHECK(out[8].pts == 8);
  /* A region, from the bottom up. */
  tvl_decode_params d;
  tvl_decode_params_init(&d, sizeof d);
  d.x = 8, d.y = 4, d.region_width = 16, d.region_height = 8;
  uint8_t part[16 * 8 * 3 / 2];
  tvl_frame small = {{{part + 7 * 16, -16, 0}, {part + 128, 8, 0}, {part + 160, 8, 0}}, 0, 0};
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  source.data = streams[0], source.size = sizes[0];
  CHECK(tvl_decoder_open(decoder, &source, &d) == TVL_OK);
  CHECK(tvl_decoder_read(decoder, &small, 1, &count) == TVL_OK && count == 1);
  for (int y = 0; y < 8; ++y) CHECK(memcmp(part + (7 - y) * 16, samples + (4 + y) * kWidth + 8, 16) == 0);
  small.planes[0].sample_stride = 2;
  CHECK(tvl_decoder_read(decoder, &small, 1, &count) == TVL_UNSUPPORTED);
  tvl_decoder_free(decoder);
  free(streams[0]);
  free(streams[1]);
  free(samples);
}

static void voxels_on_gpu(int device, const int16_t* voxels, const uint8_t* stream, uint64_t size) {
  const tvl_volume v = volume_of_test();
  tvl_encoder* encoder = tvl_encoder_new();
  CHECK(tvl_encoder_set_memory(encoder, device, NULL) == TVL_OK);
  tvl_volume_params p;
  tvl_volume_params_init(&p, sizeof p);
  p.transform = TVL_TRANSFORM_WAVELET;
  const tvl_voxels from = {(void*)voxels, 0, 0, 0};
  const void* again = NULL;
  uint64_t again_size = 0;
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, &from, NULL, NULL, NULL) == TVL_OK);
  CHECK(tvl_encoder_stream(encoder, &again, &again_size) == TVL_OK);
  CHECK(again_size == size && memcmp(again, stream, size) == 0);
  /* Coded there, too, and what is predicted on the CPU all the same. */
  p.device = device, p.verify = 1;
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, &from, NULL, NULL, NULL) == TVL_OK);
  CHECK(tvl_encoder_stream(encoder, &again, &again_size) == TVL_OK && again_size > 0);
  uint64_t wanted = 0;
  int16_t* coded_there = calloc(kVoxels, 2);
  tvl_decoder* reader = tvl_decoder_new();
  CHECK(tvl_decode_volume(reader, again, again_size, NULL, coded_there, 2 * kVoxels, &wanted) == TVL_OK);
  CHECK(wanted == 2 * kVoxels && memcmp(coded_there, voxels, 2 * kVoxels) == 0);
  p.transform = TVL_TRANSFORM_PREDICTION;
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, &from, NULL, NULL, NULL) == TVL_OK);
  p.device = 77;
  CHECK(tvl_encoder_write_volume(encoder, &v, &p, &from, NULL, NULL, NULL) == TVL_UNSUPPORTED);
  tvl_decoder_free(reader);
  free(coded_there);
  tvl_encoder_free(encoder);

  tvl_decoder* decoder = tvl_decoder_new();
  CHECK(tvl_decoder_set_memory(decoder, device, NULL) == TVL_OK);
  tvl_volume_decode_params d;
  tvl_volume_decode_params_init(&d, sizeof d);
  d.device = device;
  int16_t* back = calloc(2 * kVoxels, 2);
  uint64_t needed = 0, count = 0;
  CHECK(tvl_decode_volume(decoder, stream, size, &d, back, 2 * kVoxels, &needed) == TVL_OK);
  CHECK(memcmp(back, voxels, 2 * kVoxels) == 0);
  /* Rows and slices with gaps. */
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  source.data = stream, source.size = size;
  const tvl_voxels gaps = {back, 2 * kWidth + 6, (2 * kWidth + 6) * kHeight + 10, 0};
  CHECK(tvl_decoder_open_volume(decoder, &source, &d) == TVL_OK);
  CHECK(tvl_decoder_read_slices(decoder, &gaps, kSlices, &count) == TVL_OK && count == kSlices);
  for (int z = 0; z < kSlices; ++z)
    for (int y = 0; y < kHeight; ++y)
      CHECK(memcmp((uint8_t*)back + z * gaps.slice_stride + y * gaps.row_stride, voxels + (z * kHeight + y) * kWidth,
                   2 * kWidth) == 0);
  CHECK(tvl_decoder_set_memory(decoder, TVL_CPU, NULL) == TVL_OK);
  CHECK(tvl_decoder_set_memory(decoder, 77, NULL) == TVL_UNSUPPORTED);
  tvl_decoder_free(decoder);
  free(back);
}

static int32_t tasks = 0;
static void run_in_turn(void* user, int32_t count, void (*task)(void* context, int32_t index), void* context) {
  (void)user;
  for (int32_t i = 0; i < count; ++i) task(context, i);
  ++tasks;
}

static void batch(int device, int memory, const int16_t* voxels, const uint8_t* stream, uint64_t size) {
  tvl_decoder* decoder = tvl_decoder_new();
  if (memory != TVL_CPU) CHECK(tvl_decoder_set_memory(decoder, memory, NULL) == TVL_OK);
  tvl_batch_params p;
  tvl_batch_params_init(&p, sizeof p);
  p.device = device, p.threads = 3;
  tvl_volume_decode_params part;
  tvl_volume_decode_params_init(&part, sizeof part);
  part.z = 3, part.width = kWidth, part.height = kHeight, part.depth = 2;
  int16_t* out = calloc(kStreams * kVoxels, 2);
  tvl_volume_job jobs[kStreams];
  for (int i = 0; i < kStreams; ++i) {
    tvl_volume_job_init(&jobs[i], sizeof jobs[i]);
    jobs[i].stream = stream, jobs[i].size = size;
    jobs[i].voxels = out + i * kVoxels, jobs[i].capacity = 2 * kVoxels;
  }
  jobs[2].params = &part;
  CHECK(tvl_decode_volumes(decoder, jobs, kStreams, &p) == TVL_OK);
  for (int i = 0; i < kStreams; ++i) {
    const int n = i == 2 ? 2 * kWidth * kHeight : kVoxels;
    CHECK(jobs[i].result == TVL_OK && jobs[i].needed == 2 * (uint64_t)n);
    CHECK(memcmp(jobs[i].voxels, voxels + (i == 2 ? 3 * kWidth * kHeight : 0), 2 * (size_t)n) == 0);
  }
  /* One that fails, and one without room, leave the others alone. */
  uint8_t* damaged = malloc(size);
  memcpy(damaged, stream, size);
  damaged[size / 2] ^= 1;
  jobs[4].stream = damaged;
  jobs[5].capacity = 3;
  memset(out, 0, 2 * kVoxels);
  CHECK(tvl_decode_volumes(decoder, jobs, kStreams, &p) == TVL_BAD_STREAM);
  CHECK(strncmp(tvl_decoder_error(decoder), "job 4: ", 7) == 0 && strlen(jobs[4].error) > 10);
  CHECK(jobs[5].result == TVL_BUFFER_TOO_SMALL && jobs[5].needed == 2 * kVoxels);
  CHECK(jobs[6].result == TVL_OK && memcmp(out, voxels, 2 * kVoxels) == 0);
  free(damaged);
  /* Threads of the caller; cancelling; nothing to do. */
  tvl_decoder_set_runner(decoder, run_in_turn, NULL);
  tasks = 0;
  CHECK(tvl_decode_volumes(decoder, jobs, 2, &p) == TVL_OK && tasks > 0);
  tvl_decoder_cancel(decoder);
  CHECK(tvl_decode_volumes(decoder, jobs, 2, NULL) == TVL_CANCELLED);
  CHECK(tvl_decode_volumes(decoder, NULL, 0, NULL) == TVL_OK);
  CHECK(tvl_decode_volumes(decoder, NULL, 1, NULL) == TVL_BAD_ARGUMENT);
  jobs[1].struct_size -= 8;
  CHECK(tvl_decode_volumes(decoder, jobs, 2, NULL) == TVL_UNSUPPORTED);
  tvl_decoder_free(decoder);
  free(out);
}

/* One volume by itself on the CPU: what a batch must write. */
static uint64_t encoded_alone(const tvl_volume* v, const tvl_volume_params* p, const void* voxels, uint8_t** stream) {
  tvl_encoder* encoder = tvl_encoder_new();
  const tvl_voxels from = {(void*)voxels, 0, 0, 0};
  tvl_volume_params own = *p;
  own.device = TVL_CPU;
  const uint64_t bound = tvl_encode_volume_bound(v, &own);
  uint64_t size = 0;
  *stream = malloc(bound);
  CHECK(tvl_encode_volume(encoder, v, &own, &from, *stream, bound, &size) == TVL_OK && size > 0);
  tvl_encoder_free(encoder);
  return size;
}

enum { kKinds = 8 };

/* Volumes of all kinds in one batch, twice: those that a GPU does by itself, and those that pass through the host. */
static void encode_batch(int device, int memory, int streams_there) {
  static int16_t values[kVoxels];
  static uint8_t bytes[kVoxels];
  static int16_t few[kVoxels];
  for (int i = 0; i < kVoxels; ++i) {
    values[i] = (int16_t)(i % kWidth * 9 - i / kWidth % 50 * 4 + i * 7919 % 5);
    bytes[i] = (uint8_t)(i % kWidth + i * 31 % 3);
    few[i] = (int16_t)(-30000 + 9000 * (i / 7 % 6));
  }
  tvl_volume volumes[kKinds];
  tvl_volume_params params[kKinds];
  tvl_volume_encode_job jobs[kKinds];
  uint8_t* expected[kKinds];
  uint64_t sizes[kKinds];
  for (int i = 0; i < kKinds; ++i) {
    volumes[i] = volume_of_test();
    tvl_volume_params_init(&params[i], sizeof params[i]);
    params[i].transform = TVL_TRANSFORM_WAVELET, params[i].effort = TVL_EFFORT_FAST;
    params[i].profile = i % 2 ? TVL_PROFILE_DENSE : TVL_PROFILE_FAST;
    tvl_volume_encode_job_init(&jobs[i], sizeof jobs[i]);
    jobs[i].voxels.data = values;
  }
  volumes[1].type = TVL_U8, jobs[1].voxels.data = bytes;
  jobs[2].voxels.data = few, params[2].slab = 5, params[2].envelope = "head", params[2].envelope_bytes = 4;
  volumes[3].type = TVL_U16;
  params[4].quality = 60;
  params[5].verify = 1, params[5].effort = TVL_EFFORT_MEDIUM;
  params[6].transform = TVL_TRANSFORM_PREDICTION, params[6].profile = TVL_PROFILE_DENSE, params[6].layers = 1;
  volumes[7].slices = kSlices / 2, volumes[7].volumes = 2, params[7].layers = 1;
  for (int i = 0; i < kKinds; ++i) {
    jobs[i].volume = &volumes[i], jobs[i].params = &params[i];
    jobs[i].capacity = tvl_encode_volume_bound(&volumes[i], &params[i]);
    jobs[i].stream = malloc(jobs[i].capacity);
    sizes[i] = encoded_alone(&volumes[i], &params[i], jobs[i].voxels.data, &expected[i]);
  }
  tvl_encoder* encoder = tvl_encoder_new();
  if (memory != TVL_CPU) CHECK(tvl_encoder_set_memory(encoder, memory, NULL) == TVL_OK);
  tvl_batch_params p;
  tvl_batch_params_init(&p, sizeof p);
  p.device = device, p.threads = 3, p.streams_there = streams_there;
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < kKinds; ++i) memset(jobs[i].stream, 0xa5, sizes[i]);
    CHECK(tvl_encode_volumes(encoder, jobs, kKinds, &p) == TVL_OK);
    for (int i = 0; i < kKinds; ++i) {
      CHECK(jobs[i].result == TVL_OK && jobs[i].error[0] == 0);
      CHECK(jobs[i].size == sizes[i] && memcmp(jobs[i].stream, expected[i], sizes[i]) == 0);
    }
  }
  /* Without room, of a volume that there is not, of voxels with gaps. */
  jobs[0].capacity = sizes[0] - 1;
  volumes[1].type = 77;
  CHECK(tvl_encode_volumes(encoder, jobs, 3, &p) == TVL_BUFFER_TOO_SMALL);
  CHECK(strncmp(tvl_encoder_error(encoder), "job 0: ", 7) == 0 && jobs[0].size == sizes[0]);
  CHECK(jobs[1].result == TVL_BAD_ARGUMENT && jobs[1].size == 0 && jobs[2].result == TVL_OK);
  jobs[0].capacity = tvl_encode_volume_bound(&volumes[0], &params[0]);
  jobs[0].voxels.row_stride = 4 * kWidth, volumes[0].height = kHeight / 2;
  CHECK(tvl_encode_volumes(encoder, jobs, 1, &p) == TVL_OK && jobs[0].size > 0 && jobs[0].size < sizes[0]);
  /* Back from where they are. */
  tvl_decoder* decoder = tvl_decoder_new();
  if (memory != TVL_CPU) CHECK(tvl_decoder_set_memory(decoder, memory, NULL) == TVL_OK);
  int16_t* back = calloc(2 * kVoxels, 2);
  tvl_volume_job decoded[2];
  for (int i = 0; i < 2; ++i) {
    tvl_volume_job_init(&decoded[i], sizeof decoded[i]);
    decoded[i].stream = jobs[2 + i].stream, decoded[i].size = sizes[2 + i];
    decoded[i].voxels = back + i * kVoxels, decoded[i].capacity = 2 * kVoxels;
  }
  CHECK(tvl_decode_volumes(decoder, decoded, 2, &p) == TVL_OK);
  CHECK(memcmp(back, few, 2 * kVoxels) == 0 && memcmp(back + kVoxels, values, 2 * kVoxels) == 0);
  /* Cancelled, nothing to do, jobs of another size. */
  tvl_encoder_cancel(encoder);
  CHECK(tvl_encode_volumes(encoder, jobs, 2, NULL) == TVL_CANCELLED);
  CHECK(tvl_encode_volumes(encoder, NULL, 0, NULL) == TVL_OK);
  CHECK(tvl_encode_volumes(encoder, NULL, 1, NULL) == TVL_BAD_ARGUMENT);
  tvl_encoder_set_runner(encoder, run_in_turn, NULL);
  tasks = 0;
  CHECK(tvl_encode_volumes(encoder, jobs + 2, 2, &p) == TVL_OK && tasks > 0 && jobs[2].size == sizes[2]);
  jobs[1].struct_size -= 8;
  CHECK(tvl_encode_volumes(encoder, jobs, 2, &p) == TVL_UNSUPPORTED);
  tvl_decoder_free(decoder);
  tvl_encoder_free(encoder);
  free(back);
  for (int i = 0; i < kKinds; ++i) free(jobs[i].stream), free(expected[i]);
}

int test_memory(int emulated) {
  int16_t* voxels = malloc(2 * kVoxels);
  for (int i = 0; i < kVoxels; ++i) voxels[i] = (int16_t)(i % kWidth * 9 - i / kWidth % 50 * 4 + i * 7919 % 5);
  volume_coding c = {.type = TVL_I16, .channels = 1, .width = kWidth, .height = kHeight, .slices = kSlices,
                     .volumes = 1, .wavelet = 1};
  size_t size = 0;
  uint8_t* stream = reference_encode_volume(&c, voxels, &size);
  if (!emulated) { /* which has been tried without a GPU */
    batch(TVL_CPU, TVL_CPU, voxels, stream, size);
    encode_batch(TVL_CPU, TVL_CPU, 0);
  }
  if (emulated) {
    encode_batch(0, 0, 0);
    encode_batch(0, 0, 1);
    encode_batch(0, TVL_CPU, 0);
    frames_on_gpu(0);
    voxels_on_gpu(0, voxels, stream, size);
    batch(0, 0, voxels, stream, size);
  } else if (has_gpu()) {
    batch(0, TVL_CPU, voxels, stream, size);
  } else {
    tvl_decoder* decoder = tvl_decoder_new();
    CHECK(tvl_decoder_set_memory(decoder, 0, NULL) == TVL_UNSUPPORTED && strlen(tvl_decoder_error(decoder)) > 10);
    CHECK(tvl_decoder_set_memory(decoder, TVL_CPU, NULL) == TVL_OK);
    tvl_decoder_free(decoder);
  }
  free(stream);
  free(voxels);
  return failures;
}
