/* What a worker calls of trivelet.h without knowing where members of structures lie: one stream, its plan and one
 * decoder. JavaScript numbers are doubles, which count bytes and frames exactly up to 2^53. Functions that can fail
 * return a tvl_result, or where they count -tvl_result. */
#include <emscripten.h>
#include <stdlib.h>
#include <string.h>

#include "trivelet/trivelet.h"

#define WEB EMSCRIPTEN_KEEPALIVE

static tvl_plan* plan;
static tvl_decoder* decoder;
static int plan_failed; /* whose text web_error gives */
static tvl_decode_params request;
static tvl_volume_decode_params box;
static tvl_range* ranges;
static uint64_t range_capacity;
static tvl_stream_info stream;
static tvl_video video;
static tvl_metadata metadata;
static tvl_volume whole, part;
static tvl_volume_info volume_info;
static tvl_gop gop;
static tvl_frame frame;
static char* memory; /* of a frame or of voxels that were read */
static uint64_t memory_bytes;
static char name[32];

static tvl_result plan_result(tvl_result result) {
  plan_failed = result != TVL_OK;
  return result;
}

static tvl_result decoder_result(tvl_result result) {
  plan_failed = 0;
  return result;
}

WEB const char* web_error(void) { return plan_failed ? tvl_plan_error(plan) : tvl_decoder_error(decoder); }
WEB const char* web_result_text(int result) { return tvl_result_text((tvl_result)result); }
WEB const char* web_version(void) { return tvl_version(); }

WEB int web_init(int threads, double max_memory) {
  plan = tvl_plan_new();
  decoder = tvl_decoder_new();
  if (!plan || !decoder) return TVL_OUT_OF_MEMORY;
  tvl_decode_params_init(&request, sizeof request);
  tvl_volume_decode_params_init(&box, sizeof box);
  request.threads = box.threads = threads;
  request.max_memory = box.max_memory = (uint64_t)max_memory;
  return TVL_OK;
}

/* What the next plans and open calls ask for; 0 = everything. */
WEB void web_request(int reduce, int temporal_reduce, int layers, int keep_partial) {
  request.reduce = box.reduce = reduce;
  request.temporal_reduce = temporal_reduce;
  request.max_layers = box.max_layers = layers;
  request.keep_partial = keep_partial;
}
WEB void web_box(double x, double y, double z, double width, double height, double depth, double first) {
  box.x = (uint64_t)x, box.y = (uint64_t)y, box.z = (uint64_t)z;
  box.width = (uint64_t)width, box.height = (uint64_t)height, box.depth = (uint64_t)depth;
  box.first_volume = (uint64_t)first, box.volumes = 1;
}

/* ---- plans */

WEB int web_plan_index(double bytes) {
  tvl_decoder_close(decoder); /* it may read the plan's bytes */
  return plan_result(tvl_plan_begin_index(plan, (uint64_t)bytes));
}
WEB int web_plan_frames(double bytes, double first, double end) {
  tvl_decode_params params = request;
  params.first_frame = (uint64_t)first, params.end_frame = (uint64_t)end;
  return plan_result(tvl_plan_begin(plan, (uint64_t)bytes, &params));
}
WEB int web_plan_box(double bytes) {
  tvl_decoder_close(decoder);
  return plan_result(tvl_plan_begin_volume(plan, (uint64_t)bytes, &box));
}
/* How many ranges have to be given next. */
WEB int web_ranges(void) {
  uint64_t count = 0;
  tvl_result result = tvl_plan_next(plan, ranges, range_capacity, &count);
  if (result == TVL_BUFFER_TOO_SMALL) {
    tvl_range* more = realloc(ranges, count * sizeof *ranges);
    if (!more) return -TVL_OUT_OF_MEMORY;
    ranges = more, range_capacity = count;
    result = tvl_plan_next(plan, ranges, range_capacity, &count);
  }
  return plan_result(result) == TVL_OK ? (int)count : -(int)result;
}
WEB double web_range_offset(int i) { return (double)ranges[i].offset; }
WEB double web_range_size(int i) { return (double)ranges[i].size; }
WEB int web_give(double offset, const void* data, double size) {
  return plan_result(tvl_plan_give(plan, (uint64_t)offset, data, (uint64_t)size));
}

/* ---- streams */

static int describe(void) {
  tvl_stream_info_init(&stream, sizeof stream);
  return decoder_result(tvl_decoder_stream(decoder, &stream));
}

/* Reads header and index, which were given to the plan. */
WEB int web_open_index(void) {
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  int result = plan_result(tvl_plan_source(plan, &source));
  if (result) return result;
  tvl_decode_params params = request;
  params.reduce = params.temporal_reduce = params.max_layers = 0;
  if ((result = decoder_result(tvl_decoder_open(decoder, &source, &params))) || (result = describe())) return result;
  if (stream.is_volume) return TVL_OK;
  tvl_video_init(&video, sizeof video);
  tvl_metadata_init(&metadata, sizeof metadata);
  if ((result = decoder_result(tvl_decoder_video(decoder, &video)))) return result;
  tvl_video_format(&video, name, sizeof name);
  return decoder_result(tvl_decoder_metadata(decoder, &metadata));
}

/* Of a film whose head is `size` bytes at `head`, packets decoded as web_request said. `video` is what they give. */
WEB int web_open_packets(const void* head, double size) {
  int result = decoder_result(tvl_decoder_open_packets(decoder, head, (uint64_t)size, &request));
  if (result || (result = describe())) return result;
  tvl_video_init(&video, sizeof video);
  return decoder_result(tvl_decoder_video(decoder, &video));
}

WEB double web_stream(int what) {
  const double numbers[] = {stream.is_volume, stream.layers,    stream.spatial_levels, stream.temporal_levels,
                            stream.gops,      stream.motion,    stream.lossless,       stream.profile,
                            stream.complete,  stream.has_index, stream.gop_frames,     stream.index_rebuilt};
  return what >= 0 && (size_t)what < sizeof numbers / sizeof *numbers ? numbers[what] : 0;
}
WEB double web_video(int what) {
  const double numbers[] = {video.width,
                            video.height,
                            video.colour_model,
                            video.bits,
                            video.log2_chroma_w,
                            video.log2_chroma_h,
                            video.alpha,
                            video.is_signed,
                            video.frame_rate_num,
                            video.frame_rate_den,
                            video.time_base_num,
                            video.time_base_den,
                            video.primaries,
                            video.transfer,
                            video.matrix,
                            video.range,
                            video.rotation,
                            video.mirrored,
                            video.frames,
                            tvl_frame_bytes(&video),
                            video.sample_aspect_num,
                            video.sample_aspect_den,
                            video.chroma_location};
  return what >= 0 && (size_t)what < sizeof numbers / sizeof *numbers ? numbers[what] : 0;
}
/* Columns (0), rows (1) and bytes of a sample (2) of a component; 0 where there is none. */
WEB int web_plane(int component, int what) {
  int32_t size[3];
  return tvl_video_plane(&video, component, &size[0], &size[1], &size[2]) == TVL_OK ? size[what] : 0;
}
WEB const char* web_format(void) { return name; }
WEB const char* web_text(int what) { return what ? tvl_decoder_writer(decoder) : tvl_decoder_settings(decoder); }
/* The brightest pixel in cd/m^2: as measured, or what the mastering display shows; 0 = not known. */
WEB double web_peak(void) {
  if (metadata.has_content_light && metadata.max_content_light) return metadata.max_content_light;
  return metadata.has_mastering_display ? metadata.max_luminance / 1e4 : 0;
}
WEB double web_gop(double number, int what) {
  tvl_gop_init(&gop, sizeof gop);
  if (decoder_result(tvl_decoder_gop(decoder, (uint64_t)number, &gop))) return -1;
  const double numbers[] = {gop.first_frame, gop.frames, gop.offset, gop.bytes, gop.pts, gop.duration, gop.key};
  return what < 7 ? numbers[what] : gop.layer_bytes[what - 7];
}

/* ---- packets */

/* How many frames web_read will give. */
WEB int web_packet(const void* data, double size) {
  uint64_t count = 0;
  const tvl_result result = decoder_result(tvl_decoder_packet(decoder, data, (uint64_t)size, &count));
  return result ? -(int)result : (int)count;
}
WEB int web_flush(void) { return decoder_result(tvl_decoder_flush(decoder)); }

static int reserve(uint64_t bytes) {
  if (bytes <= memory_bytes) return 1;
  free(memory);
  memory = bytes > SIZE_MAX ? NULL : malloc(bytes);
  memory_bytes = memory ? bytes : 0;
  return memory != NULL;
}

/* The next frame of those of the last packet, its planes one after the other from web_memory on. 0 = there is none. */
WEB int web_read(void) {
  if (!reserve(tvl_frame_bytes(&video))) return -TVL_OUT_OF_MEMORY;
  tvl_frame_layout(&video, TVL_PLANAR, memory, &frame);
  uint64_t count = 0;
  const tvl_result result = decoder_result(tvl_decoder_read(decoder, &frame, 1, &count));
  return result ? -(int)result : (int)count;
}
WEB void* web_memory(void) { return memory; }
WEB double web_pts(void) { return (double)frame.pts; }
WEB double web_duration(void) { return (double)frame.duration; }

/* ---- volumes */

WEB int web_open_box(void) {
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  int result = plan_result(tvl_plan_source(plan, &source));
  if (result || (result = decoder_result(tvl_decoder_open_volume(decoder, &source, &box))) || (result = describe()))
    return result;
  tvl_volume_init(&whole, sizeof whole);
  tvl_volume_init(&part, sizeof part);
  tvl_volume_info_init(&volume_info, sizeof volume_info);
  return decoder_result(tvl_decoder_volume(decoder, &whole, &part, &volume_info));
}
WEB double web_volume(int what) {
  const double numbers[] = {whole.width,
                            whole.height,
                            whole.slices,
                            whole.volumes,
                            whole.channels,
                            whole.type,
                            whole.big_endian,
                            part.width,
                            part.height,
                            part.slices,
                            volume_info.least,
                            volume_info.largest,
                            volume_info.exact,
                            volume_info.has_bound,
                            volume_info.max_error,
                            volume_info.prediction,
                            tvl_volume_bytes(&part)};
  return what >= 0 && (size_t)what < sizeof numbers / sizeof *numbers ? numbers[what] : 0;
}
/* Slices of the box that were decoded. */
WEB int web_read_box(void) {
  const uint64_t bytes = tvl_volume_bytes(&part), slice = bytes / (part.slices ? part.slices : 1);
  if (!reserve(bytes)) return -TVL_OUT_OF_MEMORY;
  uint64_t read = 0, count = 1;
  for (; read < part.slices && count > 0; read += count) {
    const tvl_voxels voxels = {memory + read * slice, 0, 0, 0};
    const tvl_result result = decoder_result(tvl_decoder_read_slices(decoder, &voxels, part.slices - read, &count));
    if (result) return -(int)result;
  }
  return (int)read;
}
/* Bytes of the header of the file that the volume was read from, at web_envelope_data; 0 = none. */
static const void* envelope;
WEB double web_envelope(void) {
  uint64_t size = 0;
  return decoder_result(tvl_decoder_envelope(decoder, &envelope, &size)) ? 0 : (double)size;
}
WEB const void* web_envelope_data(void) { return envelope; }
