/* Trivelet's interface in C: frames or volumes into a .tvl stream and back.
 *
 *   tvl_encoder* encoder = tvl_encoder_new();
 *   tvl_video video;
 *   tvl_video_init(&video, sizeof video);
 *   video.width = 320, video.height = 240;
 *   tvl_video_set_format(&video, "gray");
 *   tvl_frame frame = {{{samples, 0, 0}}, 0, 1};                        // rows without gaps
 *   if (tvl_encoder_open(encoder, &video, NULL, NULL) != TVL_OK ||     // quality 60, kept in memory
 *       tvl_encoder_write(encoder, &frame, 1) != TVL_OK || tvl_encoder_finish(encoder) != TVL_OK)
 *     fprintf(stderr, "%s\n", tvl_encoder_error(encoder));
 *   tvl_encoder_free(encoder);
 *
 * samples/c_roundtrip.c is a whole program. The interface in C++ (codec.h, volume.h) stands below this one and says
 * more of what the parameters do; it is in the static library only, for it has no stable ABI. Shared and static library
 * have what is declared here.
 *
 * Structures. Those that begin with `struct_size` are set to defaults by their _init function, which is given sizeof
 * the structure, so that programs run with later libraries, which append members; NULL or a size below 8 does nothing.
 * Those that a call fills need their _init, too. A structure without it is TVL_BAD_ARGUMENT; one that was made for a
 * later library and is read is TVL_UNSUPPORTED. Members and arguments that have ranges are said with them, in the units
 * that stand there; sizes and strides of memory are bytes. Numbers of truth are 0 or 1.
 *
 * Results. Functions that can fail return a tvl_result; of a handle the error function gives the text, which names the
 * value seen, the limit and what to do. It is of the last call on that handle that returned a tvl_result, and valid
 * until the next one. Pointers may be NULL where it is said; elsewhere that is TVL_BAD_ARGUMENT, of a handle without a
 * text. Functions that return none do nothing with a handle of NULL, or return 0 or NULL. Every call that reads or
 * writes a stream may return TVL_IO, TVL_OUT_OF_MEMORY, TVL_CANCELLED, TVL_INTERNAL, and of one that is read
 * TVL_BAD_STREAM and TVL_UNSUPPORTED (another version, a feature that is not known, a limit); functions name what else
 * they return. What a call would store through a pointer is not to be used after an error but where it is said.
 *
 * Ownership. What is passed stays the caller's. Pointers are used during the call only, but for: the bytes, files and
 * callbacks of a tvl_source, which are needed until the decoder opens another one, is closed or freed; memory and
 * callback of a tvl_sink, until the encoder has finished, opens another stream or is freed; a tvl_log, and the
 * `cuda_stream` of _set_memory, until it is replaced or the handle is freed; a tvl_runner for as long, and while a
 * stream is open that was opened with it. With each callback goes its `user`, which the library passes on and does not
 * look at.
 *
 * Threads. Handles are independent of each other. One is used by one thread at a time, but _cancel may be called by
 * any, as long as the handle is not being freed. A handle runs `threads` threads inside; results do not depend on their
 * number, on the instruction set or the device. Callbacks of sources, sinks and slices come one at a time, but not
 * always in the calling thread, between the beginning of open and the end of finish, close or free. No callback may
 * call functions of its handle but _cancel, nor throw or jump out of itself. Functions without a handle may be called
 * by any thread at any time.
 *
 * Cancelling. _cancel makes the call that is running, or else the next one, return TVL_CANCELLED, once. Nothing is open
 * after a call that opens, codes, reads or finishes; one that only asks or sets something (_stream, _stats, _video,
 * ...) leaves open what was. It is looked at whenever bytes are read or written, and by every thread many times a GOP,
 * before each code block (on a GPU before each GOP). Plans cannot be cancelled: they do no work to speak of.
 *
 * Not here: an allocator of the caller's. The library takes memory through the C++ standard library, whose shared part
 * takes some, too, so that it could not promise otherwise; `max_memory` limits what is taken. Where samples, voxels and
 * streams lie is the caller's choice all the same: he brings the memory for each of them.
 */
#ifndef TRIVELET_TRIVELET_H
#define TRIVELET_TRIVELET_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TVL_API __attribute__((visibility("default")))
#else
#define TVL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------- library */

typedef enum tvl_result {
  TVL_OK = 0,
  TVL_INTERNAL = 1,        /* a broken invariant of the library */
  TVL_BAD_ARGUMENT = 2,    /* the caller asked for something outside the documented range */
  TVL_IO = 3,              /* the system, or a callback of the caller, did not read or write */
  TVL_BAD_STREAM = 4,      /* the input is corrupt, truncated or not what it claims to be */
  TVL_UNSUPPORTED = 5,     /* valid, but this build, version, device or limit does not allow it */
  TVL_MISMATCH = 6,        /* a verification failed */
  TVL_OUT_OF_MEMORY = 7,   /* the system has no more */
  TVL_CANCELLED = 8,       /* as asked */
  TVL_BUFFER_TOO_SMALL = 9 /* the caller's memory does not hold the result; the call tells how much is needed */
} tvl_result;

/* What a result means, in a few words, without those of a handle's text; "unknown result" for other numbers. Static. */
TVL_API const char* tvl_result_text(tvl_result result);

/* Version of the library, "0.1.0". Static. */
TVL_API const char* tvl_version(void);

/* Version of the stream format that is written at most, 256 * major + minor. */
TVL_API int32_t tvl_format_version(void);

typedef enum tvl_feature {
  TVL_FEATURE_CUDA = 0,   /* the GPU backend was built */
  TVL_FEATURE_AVX2 = 1,   /* built, and this machine has it */
  TVL_FEATURE_AVX512 = 2, /* built, and this machine has it */
  TVL_FEATURE_MOTION = 3, /* streams with motion are written and read */
  TVL_FEATURE_VOLUMES = 4
} tvl_feature;

/* 1 or 0; 0 for features that the library does not know. */
TVL_API int32_t tvl_has(tvl_feature feature);

typedef enum tvl_limit {
  TVL_LIMIT_SIZE = 0,       /* columns and rows of a picture */
  TVL_LIMIT_BITS = 1,       /* of a sample */
  TVL_LIMIT_GOP_FRAMES = 2, /* frames of a GOP */
  TVL_LIMIT_LAYERS = 3,     /* quality layers of a stream */
  TVL_LIMIT_CHANNELS = 4    /* scalars of a voxel */
} tvl_limit;

/* The largest value; 0 for limits that the library does not know. */
TVL_API uint64_t tvl_limit_of(tvl_limit limit);

/* Usable GPUs: 0 without a driver or a build with CUDA. They are numbered from 0. A build with CUDA sets the variable
 * CUDA_DEVICE_MAX_CONNECTIONS of the environment where it is not set; so the first call, or the first that names a GPU,
 * should not come beside a thread that reads or sets the environment. */
TVL_API int32_t tvl_gpu_count(void);

/* Messages that are no errors: what was chosen for a volume, damage that was passed over. `level`: 0 remark, 1 warning.
 * `text` is valid during the call. Called in the thread that calls the handle. */
typedef void (*tvl_log)(void* user, int32_t level, const char* text);

/* Threads of the caller's (a pool that he has, a scheduler): calls task(context, i) for i = 0..count - 1, each once, in
 * any threads and order, beside each other or one after the other, and returns when all have returned; `context` is
 * valid until then. It must not fail, nor call functions of the handle. It may be called from several threads at
 * once. */
typedef void (*tvl_runner)(void* user, int32_t count, void (*task)(void* context, int32_t index), void* context);

/* ----------------------------------------------------------------------------------------------------------- frames */

enum { TVL_GREY = 0, TVL_YUV = 1, TVL_RGB = 2 }; /* colour models */

/* All about a video but its samples. */
typedef struct tvl_video {
  uint64_t struct_size;
  int32_t width;         /* 1..65536 samples of component 0 */
  int32_t height;        /* 1..65536 rows of it */
  int32_t colour_model;  /* TVL_YUV */
  int32_t bits;          /* significant bits of a sample, 1..16; up to 8 a sample is a byte, above two (native order) */
  int32_t log2_chroma_w; /* 1: chroma of YUV has half the columns, 2: a quarter; sizes are rounded up */
  int32_t log2_chroma_h; /* the same for rows */
  int32_t alpha;         /* 1: an alpha component of full size follows the colours; 2: which were multiplied by it */
  int32_t is_signed;     /* 1: samples are two's complement; not of RGB */
  int32_t frame_rate_num, frame_rate_den;       /* frames a second, 25 / 1; 0 / 1 = not known */
  int32_t sample_aspect_num, sample_aspect_den; /* 1 / 1; 0 / 1 = not known */
  int32_t time_base_num, time_base_den;         /* seconds in a unit of time, 1 / 25 */
  int32_t primaries, transfer, matrix;          /* ITU-T H.273 code points, 2 = unspecified */
  int32_t range;                                /* 0 unspecified, 1 limited, 2 full */
  int32_t chroma_location;                      /* 0 unspecified, else H.273's chroma sample location type + 1 */
  int32_t rotation;                             /* clockwise degrees for display: 0, 90, 180, 270 */
  int32_t field_order;                          /* 0 progressive or unknown, 1 top field first, 2 bottom field first */
  uint64_t frames;                              /* 0 = not known */
  int32_t mirrored; /* 1: for display left and right change places, before the picture is turned */
  int32_t reserved;
} tvl_video;

/* Defaults as above, 8 bits, 4:2:0, no size yet. */
TVL_API void tvl_video_init(tvl_video* video, uint64_t struct_size);

/* Sets colour model, subsampling, bits, alpha (0 or 1) and is_signed (0) of `video`, after its _init, from FFmpeg's
 * names: "gray", "yuv420p10", "gbrp16", "yuva444p", ... TVL_BAD_ARGUMENT for other names, and nothing is set then. */
TVL_API tvl_result tvl_video_set_format(tvl_video* video, const char* name);

/* One component of a frame. */
typedef struct tvl_plane {
  void* data;            /* its first sample, aligned to 1 byte or, of more than 8 bits, to 2 */
  int64_t row_stride;    /* bytes from a row to the next, negative from the bottom up; 0 = without gaps */
  int64_t sample_stride; /* bytes from a sample to the next of its row, for interleaved samples; 0 = without gaps */
} tvl_plane;

/* Where a frame lies. Components in order: grey; Y, U, V; or G, B, R; then alpha. Encoders only read. */
typedef struct tvl_frame {
  tvl_plane planes[4]; /* those that the format has not are ignored */
  int64_t pts;         /* presentation time in units of the time base */
  int64_t duration;    /* in units of the time base */
} tvl_frame;

enum { TVL_PLANAR = 0, TVL_INTERLEAVED = 1 }; /* arrangements */

/* The name that tvl_video_set_format takes for the format of `video`, into `capacity` bytes at `name` (32 are enough)
 * with a zero at the end. TVL_BAD_ARGUMENT where `video` says what is impossible, TVL_BUFFER_TOO_SMALL where the name
 * does not fit; it is "" then. */
TVL_API tvl_result tvl_video_format(const tvl_video* video, char* name, uint64_t capacity);

/* Columns and rows of one component, and the bytes of a sample; each may be NULL. TVL_BAD_ARGUMENT where `video` says
 * what is impossible or has no such component; all are 0 then. */
TVL_API tvl_result tvl_video_plane(const tvl_video* video, int32_t component, int32_t* width, int32_t* height,
                                   int32_t* sample_bytes);

/* Bytes of a frame whose samples have no gaps, all components together; 0 where `video` is NULL, without its _init or
 * says what is impossible. */
TVL_API uint64_t tvl_frame_bytes(const tvl_video* video);

/* Points the planes of `frame` into memory of tvl_frame_bytes(). TVL_PLANAR: one component after the other, in the
 * order of the components. TVL_INTERLEAVED: for each pixel Y, U, V or R, G, B, then alpha. Nothing is allocated or
 * read; `memory` is the caller's and must last as long as the frame is used, aligned to 2 bytes for samples of more
 * than 8 bits. Times are left as they are. TVL_BAD_ARGUMENT for what `video` cannot be, for another arrangement, and
 * for interleaving subsampled chroma; `frame` has no planes then. */
TVL_API tvl_result tvl_frame_layout(const tvl_video* video, int32_t arrangement, void* memory, tvl_frame* frame);

/* From `begin` up to `end`, in units of tvl_metadata.chapter_time_base, on the same clock as the times of frames. */
typedef struct tvl_chapter {
  int64_t begin, end;
  const char* title; /* UTF-8, at most 4096 bytes */
} tvl_chapter;

/* UTF-8. A key is in lower case and not empty, at most 4096 bytes, and may occur more than once; a value at most 65536.
 * "title", "artist", "copyright", "comment", "creation_time" (ISO 8601), "timecode", "language" mean what they say. */
typedef struct tvl_entry {
  const char* key;
  const char* value;
} tvl_entry;

/* What a stream says about its video beside the pictures; nothing is decoded by it. What a decoder gives is the
 * stream's and valid while it is open; a text that holds a byte 0 ends there. */
typedef struct tvl_metadata {
  uint64_t struct_size;
  int32_t has_mastering_display; /* 1: the next three are the display it was mastered on (SMPTE ST 2086) */
  int32_t has_content_light;     /* 1: the two behind them are known (CTA-861.3) */
  int32_t chromaticity[8];       /* x, y of red, green, blue, white, in 1/50000, 0..65535 */
  uint32_t max_luminance;        /* in 1/10000 cd/m^2 */
  uint32_t min_luminance;
  int32_t max_content_light;                            /* of a pixel, in cd/m^2, 0..65535; 0 = not known */
  int32_t max_frame_average;                            /* of a frame's average */
  int32_t chapter_time_base_num, chapter_time_base_den; /* seconds in a unit of chapters' times, 1 / 1000 */
  const tvl_chapter* chapters;                          /* in order of their begin */
  uint64_t chapter_count;
  const tvl_entry* entries;
  uint64_t entry_count;
} tvl_metadata;
TVL_API void tvl_metadata_init(tvl_metadata* metadata, uint64_t struct_size);

/* ------------------------------------------------------------------------------------------------- bytes of streams */

enum { TVL_PACKET_HEAD = 0, TVL_PACKET_GOP = 1, TVL_PACKET_END = 2 }; /* kinds of packets */

/* What a packet of a video's stream is: the unit that players, multiplexers and networks handle. The packets of a
 * stream, one after the other, are the stream. The first one (TVL_PACKET_HEAD) is what Matroska keeps in CodecPrivate
 * (FORMAT.md "In Matroska"), each GOP is one, and the last one (TVL_PACKET_END) holds the index, which decoding does
 * not need. The members below `key` are those of a GOP, else 0. */
typedef struct tvl_packet {
  uint64_t struct_size;
  int32_t kind;
  int32_t key; /* 1: the GOP depends on none before it: decoding can begin here */
  uint64_t first_frame;
  uint64_t frames;
  int64_t pts;      /* of the first frame, in units of the time base */
  int64_t duration; /* from there to where the last frame ends */
} tvl_packet;
TVL_API void tvl_packet_init(tvl_packet* packet, uint64_t struct_size);

/* Where a stream goes: one of path, data, write, packet, else TVL_BAD_ARGUMENT; nothing = memory of the encoder
 * (tvl_encoder_stream). */
typedef struct tvl_sink {
  uint64_t struct_size;
  const char* path;  /* a file, which has its name only after finish; "-" = standard output */
  int32_t overwrite; /* 1: an existing file is replaced; else TVL_BAD_ARGUMENT */
  int32_t reserved;
  void* data; /* memory of `capacity` bytes; finishing is TVL_BUFFER_TOO_SMALL when more are needed */
  uint64_t capacity;
  int (*write)(void* user, const void* data, uint64_t size); /* takes all bytes, in order; not 0 = TVL_IO */
  void* user;
  /* Takes the packets of a video in order, `size` bytes at `data` each, valid during the call; not 0 = TVL_IO. The head
   * comes during open. Volumes have no packets (TVL_BAD_ARGUMENT). */
  int (*packet)(void* user, const tvl_packet* info, const void* data, uint64_t size);
} tvl_sink;
TVL_API void tvl_sink_init(tvl_sink* sink, uint64_t struct_size);

/* Where a stream comes from: exactly one of path, data, read, else TVL_BAD_ARGUMENT. */
typedef struct tvl_source {
  uint64_t struct_size;
  const char* path; /* a file; "-" = standard input */
  const void* data; /* `size` bytes in memory */
  uint64_t size;    /* of `data`, or of what can seek */
  /* Reads up to `size` bytes where the last read or seek left off: how many, fewer only at the end; < 0 = TVL_IO. */
  int64_t (*read)(void* user, void* data, uint64_t size);
  /* Goes to `position` <= size; not 0 = TVL_IO. NULL: a pipe, of which index and regions are not used. */
  int (*seek)(void* user, uint64_t position);
  void* user;
} tvl_source;
TVL_API void tvl_source_init(tvl_source* source, uint64_t struct_size);

/* --------------------------------------------------------------------------------------------------------- encoding */

typedef struct tvl_encoder tvl_encoder;

/* Predictive: lossless, without layers; what is chosen for lossless volumes unless their transform or effort says
 * else. */
enum { TVL_PROFILE_FAST = 0, TVL_PROFILE_DENSE = 1, TVL_PROFILE_PREDICTIVE = 2 };
enum { TVL_HAAR = 0, TVL_CDF53 = 1, TVL_CDF97 = 2, TVL_REV137 = 3 }; /* wavelets */
enum { TVL_T2D = 0, TVL_DYADIC = 1 };                                /* layouts of streams */
/* Auto: in the GOPs that then take fewer bits. Default: auto in the dense profile, unless a temporal wavelet is chosen;
 * else off. */
enum { TVL_MOTION_OFF = 0, TVL_MOTION_ON = 1, TVL_MOTION_AUTO = 2, TVL_MOTION_DEFAULT = 3 };
/* Keys that are predicted from those of the GOP before, where that is estimated to cost less: on along their motion,
 * which makes smaller pictures less exact; auto from the same places, not with a target or max_rate. */
enum { TVL_KEY_PREDICTION_OFF = 0, TVL_KEY_PREDICTION_ON = 1, TVL_KEY_PREDICTION_AUTO = 2 };
enum { TVL_CPU = -1 }; /* device; else the number of a GPU */

/* How to encode; every member is as in EncoderParams of codec.h. */
typedef struct tvl_encode_params {
  uint64_t struct_size;
  int32_t lossless;        /* 1: every sample comes back, and the members down to psnr mean nothing */
  int32_t profile;         /* TVL_PROFILE_DENSE */
  double quality;          /* 0..100, 60: constant quality */
  double step;             /* quantiser step in sample units instead; 0 = from quality */
  uint64_t target_bytes;   /* of the whole stream, never exceeded; 0 = no target. One of this and the next three */
  double bits_per_pixel;   /* the target as bits: bytes are it * width * height * frames / 8 */
  double bit_rate;         /* the target as bits per second of video */
  double psnr;             /* dB over all samples, peak 2^bits - 1 */
  int32_t gop_frames;      /* frames that are transformed together, 1..128; 0 = with motion 64 or, above 720x576, 32,
                            * without motion 33, predictive up to 66 */
  int32_t temporal_levels; /* -1 = by the GOP, 0..8; with motion as suits each GOP, or 0..8 for all */
  int32_t spatial_levels;  /* -1 = by size, 0..8 */
  int32_t temporal_wavelet, spatial_wavelet; /* TVL_CDF97; which lossless means TVL_CDF53 */
  int32_t reserved_layout;                   /* 0. This and the other reserved members stay as _init sets them, for what
                                                they chose is no longer written; else TVL_UNSUPPORTED */
  int32_t motion;                            /* TVL_MOTION_DEFAULT; with motion 2^n gop_frames are best */
  int32_t reserved_staged;                   /* 1 */
  int32_t block_size;                        /* 32, 64, 128, 256; 0 = 128, with motion 256 in small pictures */
  int32_t layers;                            /* quality layers, 1..16; 0 = by size */
  int32_t reserved_even_ends;                /* 1 */
  int32_t visual;                            /* 1: weigh by contrast sensitivity instead of for PSNR. Lossy */
  int32_t part_checks;          /* 1: checks with which a region is read alone; not with a target for the bytes */
  int32_t measure_errors;       /* 1: the errors in the index are measured, else predicted */
  int32_t threads;              /* 0 = one for each core */
  int32_t device;               /* TVL_CPU, or the number of a GPU */
  uint64_t device_memory;       /* bytes of the GPU's memory that may be used; 0 = all */
  const char* settings;         /* text that is kept in the stream, at most 4096 bytes; NULL = none */
  const char* spool_path;       /* temporary file for a target of bytes; NULL = in TMPDIR, else one of the system's */
  int64_t key_interval;         /* with motion: most frames between places where decoding can begin; 0 = four seconds */
  const tvl_metadata* metadata; /* kept beside the pictures; NULL = none. Used during open only */
  double max_rate;              /* most bits per second over rate_window seconds or more; 0 = no bound. GOPs are cut */
  double rate_window;           /* seconds, 1 */
  int32_t key_prediction;       /* TVL_KEY_PREDICTION_AUTO */
} tvl_encode_params;
TVL_API void tvl_encode_params_init(tvl_encode_params* params, uint64_t struct_size);

/* A handle that does nothing yet; NULL when there is no memory. It can code any number of streams, one after the
 * other. */
TVL_API tvl_encoder* tvl_encoder_new(void);
/* Frees the handle and all that it gave. Leaves an unfinished stream as it is (a file is removed). NULL is allowed. */
TVL_API void tvl_encoder_free(tvl_encoder* encoder);
/* The text of the last result, see the top; "" after success, "the encoder is NULL" for NULL. */
TVL_API const char* tvl_encoder_error(const tvl_encoder* encoder);
/* Where messages go from now on, with `user`. NULL = silence, as at first. */
TVL_API void tvl_encoder_set_log(tvl_encoder* encoder, tvl_log log, void* user);
/* For streams that are opened from now on: no threads of the library, but at most `threads` tasks of `run` at a time
 * (0 = as many as cores). The bytes are the same. NULL = threads of the library, as at first. */
TVL_API void tvl_encoder_set_runner(tvl_encoder* encoder, tvl_runner run, void* user);
/* From any thread, also from callbacks; see the top. NULL: nothing. */
TVL_API void tvl_encoder_cancel(tvl_encoder* encoder);

/* Begins a stream; one that was not finished is left as it is, and what tvl_encoder_stream gave is void.
 * `video->frames` may be 0. params, sink: NULL = defaults. TVL_BAD_ARGUMENT for parameters outside their ranges or that
 * exclude each other and for a file that is there already, TVL_UNSUPPORTED for what the device cannot do. After an
 * error nothing is open. */
TVL_API tvl_result tvl_encoder_open(tvl_encoder* encoder, const tvl_video* video, const tvl_encode_params* params,
                                    const tvl_sink* sink);
/* Frames that a GOP of the open stream holds at most; 0 when none is open. */
TVL_API int32_t tvl_encoder_gop_frames(const tvl_encoder* encoder);
/* Codes `count` frames of the size and format of the open stream, one after the other in time; 0 of them, which may be
 * at NULL, is nothing. Whole GOPs of planes without gaps between samples are coded where they are; frames that do not
 * fill a GOP are copied and wait for more, so that no sample is needed after the call. TVL_BAD_ARGUMENT when nothing is
 * open, and for a component that is missing or has samples of two bytes at odd addresses: no frame of the call is
 * coded, and the stream goes on. After any other error the stream is lost and nothing is open. */
TVL_API tvl_result tvl_encoder_write(tvl_encoder* encoder, const tvl_frame* frames, uint64_t count);
/* Ends a GOP before it is full: for scene cuts, which a caller who knows of one tells so. No frame waiting: nothing.
 * Errors are as those of tvl_encoder_write. */
TVL_API tvl_result tvl_encoder_end_gop(tvl_encoder* encoder);
/* Writes what waits, the index and the end. A file has its name now. Nothing is open afterwards, and after an error
 * there is no stream. TVL_BAD_ARGUMENT when nothing is open; TVL_BUFFER_TOO_SMALL where tvl_sink.data is. */
TVL_API tvl_result tvl_encoder_finish(tvl_encoder* encoder);
/* The finished stream, *size bytes at *data, when no sink was given (else *size is 0). It is the encoder's, and valid
 * until that begins another stream in any way or is freed. TVL_BAD_ARGUMENT when none was finished. */
TVL_API tvl_result tvl_encoder_stream(tvl_encoder* encoder, const void** data, uint64_t* size);

typedef struct tvl_encode_stats {
  uint64_t struct_size;
  uint64_t gops;         /* pushed to the coder */
  uint64_t frames;       /* pushed to the coder; of volumes slices */
  uint64_t stream_bytes; /* written */
} tvl_encode_stats;
TVL_API void tvl_encode_stats_init(tvl_encode_stats* stats, uint64_t struct_size);
/* Sets `stats`, after its _init, to those of the open stream or, when it is finished, of the last one; all 0 before. */
TVL_API tvl_result tvl_encoder_stats(tvl_encoder* encoder, tvl_encode_stats* stats);

/* Whole streams: as open, write and finish, and their errors: `count` frames, which video->frames need not say, to
 * memory of `capacity` bytes at `stream` (NULL when that is 0). *size: bytes of the stream, also with
 * TVL_BUFFER_TOO_SMALL, where coding goes on to the end to know it; 0 with other errors. Nothing is open afterwards. */
TVL_API tvl_result tvl_encode(tvl_encoder* encoder, const tvl_video* video, const tvl_encode_params* params,
                              const tvl_frame* frames, uint64_t count, void* stream, uint64_t capacity, uint64_t* size);
/* An upper bound of the bytes of a stream of tvl_encode with the same arguments: 9 a sample, 16 KiB a GOP, and what
 * settings and metadata take. Real streams are much smaller: memory of the size of the samples and 64 KiB suffices for
 * everything but noise. params: NULL = defaults. 0 where video or params are impossible. */
TVL_API uint64_t tvl_encode_bound(const tvl_video* video, const tvl_encode_params* params, uint64_t count);

/* --------------------------------------------------------------------------------------------------------- decoding */

typedef struct tvl_decoder tvl_decoder;

/* What to decode; every member is as in DecoderParams of codec.h. */
typedef struct tvl_decode_params {
  uint64_t struct_size;
  int32_t reduce;            /* how often width and height are halved */
  int32_t temporal_reduce;   /* how often the frame rate is halved */
  int32_t max_layers;        /* the most quality layers; 0 = all */
  int32_t max_planes;        /* the most bit planes, from the top of every GOP; 0 = all */
  uint64_t max_bytes;        /* the most bytes of the stream, about; 0 = all */
  double max_bits_per_pixel; /* the same limit as bits of the pictures that are decoded; 0 = all */
  uint64_t first_frame;      /* frames [first_frame, end_frame) of the stream */
  uint64_t end_frame;        /* UINT64_MAX = to the end */
  int32_t x, y;              /* region of the pictures after reduction; begins at whole chroma samples */
  int32_t region_width;      /* 0 = whole pictures; else frames have this size */
  int32_t region_height;
  int32_t keep_partial;   /* 1: decode what is intact of a damaged stream, and count and log the rest */
  int32_t verify_hash;    /* 1: check the samples of lossless GOPs that are decoded whole */
  int32_t threads;        /* 0 = one for each core */
  int32_t device;         /* TVL_CPU, or the number of a GPU */
  uint64_t device_memory; /* bytes of the GPU's memory that may be used; 0 = all */
  /* What a stream may cost; what exceeds it is refused with TVL_UNSUPPORTED. As Limits of limits.h. */
  uint64_t max_memory;           /* bytes that decoding takes; 8 GiB */
  uint64_t max_samples;          /* of all components of a GOP; 2^33 */
  uint64_t max_frames;           /* of a stream; 100 million */
  uint64_t max_samples_per_byte; /* of the stream, beyond the first 2^24; 4096 */
} tvl_decode_params;
TVL_API void tvl_decode_params_init(tvl_decode_params* params, uint64_t struct_size);

/* A handle that has nothing open; NULL when there is no memory. It can decode any number of streams. */
TVL_API tvl_decoder* tvl_decoder_new(void);
TVL_API void tvl_decoder_free(tvl_decoder* decoder); /* closes; NULL is allowed */
/* The text of the last result, see the top; "" after success, "the decoder is NULL" for NULL. */
TVL_API const char* tvl_decoder_error(const tvl_decoder* decoder);
/* As tvl_encoder_set_log, _set_runner and _cancel. */
TVL_API void tvl_decoder_set_log(tvl_decoder* decoder, tvl_log log, void* user);
TVL_API void tvl_decoder_set_runner(tvl_decoder* decoder, tvl_runner run, void* user);
TVL_API void tvl_decoder_cancel(tvl_decoder* decoder);

/* Closes what is open, then reads header and index and checks the request. params: NULL = everything. TVL_BAD_ARGUMENT
 * for a request that the stream cannot answer: reductions that it has not, a region that leaves the pictures or begins
 * inside a chroma sample (frames behind the end are none), and for a source that is not one. TVL_UNSUPPORTED also where
 * there is no such GPU, or it cannot decode this. After an error nothing is open. */
TVL_API tvl_result tvl_decoder_open(tvl_decoder* decoder, const tvl_source* source, const tvl_decode_params* params);
/* Lets go of the source; what the decoder gave of the stream (texts, metadata, an envelope) is void. */
TVL_API void tvl_decoder_close(tvl_decoder* decoder);

/* What a stream says about itself. */
typedef struct tvl_stream_info {
  uint64_t struct_size;
  int32_t format_version; /* 256 * major + minor */
  int32_t profile;
  int32_t lossless;
  int32_t motion;     /* 1: GOPs may have motion */
  int32_t gop_frames; /* the most frames of a GOP */
  int32_t block_size;
  int32_t layers;
  int32_t temporal_levels; /* of the transform; reductions can be as many, but for what was left out already */
  int32_t spatial_levels;
  int32_t layout;
  int32_t is_volume;
  int32_t has_index;     /* 1: the number of GOPs is known (from the index, or by looking for them) */
  int32_t index_rebuilt; /* 1: by looking for them, for the index is lost */
  int32_t complete;      /* 1: the end of the stream was found */
  uint64_t gops;
  uint64_t bytes; /* of the stream; 0 = not known */
} tvl_stream_info;
TVL_API void tvl_stream_info_init(tvl_stream_info* info, uint64_t struct_size);
/* Sets `info`, after its _init. TVL_BAD_ARGUMENT when nothing is open, as all functions of decoders below that are
 * given no stream of their own. Of frames and of volumes, as _settings, _writer, _metadata, _gop and _stats. */
TVL_API tvl_result tvl_decoder_stream(tvl_decoder* decoder, tvl_stream_info* info);
/* Texts of the stream, the decoder's, valid while it is open; NULL when nothing is. The encoder's `settings`, and name
 * and version of the library that wrote it; "" for none. */
TVL_API const char* tvl_decoder_settings(const tvl_decoder* decoder);
TVL_API const char* tvl_decoder_writer(const tvl_decoder* decoder);

/* Sets `metadata`, after its _init, to what the stream says beside the pictures; what is damaged is left out. Chapters
 * and entries are the decoder's, valid until they are asked for again and while the stream is open. */
TVL_API tvl_result tvl_decoder_metadata(tvl_decoder* decoder, tvl_metadata* metadata);

typedef struct tvl_gop {
  uint64_t struct_size;
  uint64_t offset; /* of its packet in the stream, bytes */
  uint64_t bytes;
  uint64_t first_frame;
  uint64_t frames;
  uint64_t layer_bytes[16]; /* of each layer alone; 0 behind the last */
  double layer_error[16];   /* mean squared error of all samples after this layer; < 0 = not known */
  int64_t pts;              /* of its first frame, in units of the time base */
  int64_t duration;         /* from there to where its last frame ends */
  int32_t key;              /* 1: it depends on no GOP before it */
  int32_t reserved;
} tvl_gop;
TVL_API void tvl_gop_init(tvl_gop* gop, uint64_t struct_size);
/* Sets `gop`, after its _init, to what the index says of GOP `number` < tvl_stream_info.gops; else TVL_BAD_ARGUMENT. */
TVL_API tvl_result tvl_decoder_gop(tvl_decoder* decoder, uint64_t number, tvl_gop* gop);

/* Sets `video`, after its _init, to the frames that tvl_decoder_read delivers: size, format, rate and, where it can be
 * known, their number after reduction and selection. TVL_BAD_ARGUMENT for what tvl_decoder_open_volume opened, too. */
TVL_API tvl_result tvl_decoder_video(tvl_decoder* decoder, tvl_video* video);
/* Frames that a GOP gives at most: reading as many at once into planes without gaps saves a copy. 0: nothing is
 * open. */
TVL_API int32_t tvl_decoder_gop_frames(const tvl_decoder* decoder);
/* Decodes the next `capacity` frames, fewer at the end: samples and times where `frames` says, each with planes for all
 * components of tvl_decoder_video in memory of the caller. *count: how many, also with an error; 0 with TVL_OK is the
 * end. TVL_BAD_STREAM for a damaged GOP, of which no frame is given without keep_partial; the stream stays open. If the
 * GOP's header is intact the next call goes on behind it (of motion the one behind it may fail, too, for want of it);
 * else the next calls fail as well, and only keep_partial finds what is left. TVL_BAD_ARGUMENT for what
 * tvl_decoder_open did not open, for a component that is missing or has samples of two bytes at odd addresses. Streams
 * of volumes give the numbers that stand for their voxels, unless these are coded by prediction (TVL_UNSUPPORTED). */
TVL_API tvl_result tvl_decoder_read(tvl_decoder* decoder, tvl_frame* frames, uint64_t capacity, uint64_t* count);

/* Decoding by packets, as players and demultiplexers have a stream: its head once, then one GOP after another, with
 * jumps and losses between them.
 *
 *   tvl_decoder_open_packets(decoder, head, head_bytes, NULL);
 *   while (next_packet(&data, &size))
 *     if (tvl_decoder_packet(decoder, data, size, &wanted) == TVL_OK && wanted > 0)
 *       tvl_decoder_read(decoder, frames, wanted, &count);
 *
 * An open GOP depends on the one before, of which the decoder keeps what is needed, so that each GOP is decoded once
 * while packets follow each other. Memory and threads are kept as well. */

/* Closes what is open and takes the head of a stream: its bytes up to the first GOP, which are copied. Bytes behind the
 * last whole box are ignored: some containers pad to an even size. Then _stream, _settings, _writer, _metadata, _video,
 * _gop_frames, _read, _stats and _close mean what they mean elsewhere; there is no index. params: NULL = everything;
 * frames are not selected and max_bytes is 0 (TVL_BAD_ARGUMENT). Errors are those of tvl_decoder_open. */
TVL_API tvl_result tvl_decoder_open_packets(tvl_decoder* decoder, const void* head, uint64_t size,
                                            const tvl_decode_params* params);
/* Sets `info`, after its _init, to what the header at the beginning of a packet says; nothing is kept or decoded. A GOP
 * may have the head before it, as in Matroska. TVL_BAD_STREAM for a damaged header. */
TVL_API tvl_result tvl_decoder_look_at_packet(tvl_decoder* decoder, const void* data, uint64_t size, tvl_packet* info);
/* Copies a packet, which the next calls of tvl_decoder_read decode. They give its `frames` and then none. Frames of the
 * packet before that were not read are dropped. *frames is 0 for a packet that gives none: the index, or an open GOP
 * behind a gap or a jump. Of a packet whose header is damaged it is the most that a GOP can give, and _read says
 * TVL_BAD_STREAM (with keep_partial: gives no frames). After damage the next packets are decoded again, an open GOP
 * behind a damaged one as far as that is known. TVL_BAD_ARGUMENT unless tvl_decoder_open_packets opened the stream. */
TVL_API tvl_result tvl_decoder_packet(tvl_decoder* decoder, const void* data, uint64_t size, uint64_t* frames);
/* After a jump: forgets all packets. A jump that is not announced is found by the numbers of frames. */
TVL_API tvl_result tvl_decoder_flush(tvl_decoder* decoder);

typedef struct tvl_decode_stats {
  uint64_t struct_size;
  uint64_t frames; /* decoded; of volumes slices */
  uint64_t gops;
  uint64_t bytes_read;   /* of the stream */
  uint64_t damaged_gops; /* with keep_partial */
} tvl_decode_stats;
TVL_API void tvl_decode_stats_init(tvl_decode_stats* stats, uint64_t struct_size);
/* Sets `stats`, after its _init, to those of the open stream up to now. */
TVL_API tvl_result tvl_decoder_stats(tvl_decoder* decoder, tvl_decode_stats* stats);

/* Whole streams of `size` bytes at `stream`: as open, read and close, and their errors. *count: frames of the
 * selection, also with TVL_BUFFER_TOO_SMALL, where nothing is decoded because `capacity` is smaller; with other errors
 * those that were decoded. `frames` may be NULL when `capacity` is 0. Nothing is open afterwards. */
TVL_API tvl_result tvl_decode(tvl_decoder* decoder, const void* stream, uint64_t size, const tvl_decode_params* params,
                              tvl_frame* frames, uint64_t capacity, uint64_t* count);

/* ---------------------------------------------------------------------------------------------------------- volumes */

enum { /* types of scalars */
       TVL_U8 = 0,
       TVL_I8 = 1,
       TVL_U16 = 2,
       TVL_I16 = 3,
       TVL_U32 = 4,
       TVL_I32 = 5,
       TVL_U64 = 6,
       TVL_I64 = 7,
       TVL_F32 = 8,
       TVL_F64 = 9
};

/* The shape of a volume, or of several after one another (points in time, directions). */
typedef struct tvl_volume {
  uint64_t struct_size;
  int32_t type;       /* TVL_U8 */
  int32_t big_endian; /* 1: bytes of scalars are stored the most significant first */
  int32_t channels;   /* 1..4 scalars a voxel, one after the other; 1 */
  int32_t width;      /* voxels of a row, 1..65536 */
  int32_t height;     /* rows of a slice, 1..65536 */
  int32_t reserved;
  uint64_t slices;  /* of a volume; 1 */
  uint64_t volumes; /* 1 */
} tvl_volume;
TVL_API void tvl_volume_init(tvl_volume* volume, uint64_t struct_size);
/* Bytes of all voxels without gaps; 0 where `volume` is NULL, without its _init or the shape is impossible. */
TVL_API uint64_t tvl_volume_bytes(const tvl_volume* volume);

/* Where voxels lie. Voxels of a row have no gaps; strides are bytes and may be negative. */
typedef struct tvl_voxels {
  void* data;
  int64_t row_stride;    /* from a row to the next; 0 = without gaps */
  int64_t slice_stride;  /* from a slice to the next; 0 = rows * row_stride */
  int64_t volume_stride; /* from a volume to the next; 0 = slices * slice_stride */
} tvl_voxels;

/* Gives slices instead: fills `slice`, of width * height voxels without gaps, in memory of the library that is valid
 * during the call. `number` counts through all volumes. They are asked for in order, from 0 on, two times, once more
 * for each layer with `verify`. Returns 0, or else the call that codes is TVL_IO. */
typedef int (*tvl_slice_reader)(void* user, uint64_t number, void* slice);

enum { TVL_TRANSFORM_AUTO = 0, TVL_TRANSFORM_WAVELET = 1, TVL_TRANSFORM_PREDICTION = 2 };
enum { TVL_EFFORT_FAST = 0, TVL_EFFORT_MEDIUM = 1, TVL_EFFORT_SLOW = 2 };
/* What readers of a volume do, see VolumeAccess of volume.h: decode all, some slices, or boxes. */
enum { TVL_ACCESS_WHOLE = 0, TVL_ACCESS_SLICES = 1, TVL_ACCESS_REGION = 2 };

/* How to encode a volume, as VolumeEncoderParams of volume.h. Every voxel comes back bit for bit unless one of
 * max_error to total_bytes is set; at most one is. */
typedef struct tvl_volume_params {
  uint64_t struct_size;
  double max_error;      /* no voxel errs by more, in stored units; 0 = lossless */
  double quality;        /* 0..100; < 0 = not asked for, as the default of this and the next two */
  double psnr;           /* dB; the peak is the largest minus the least value */
  double bits_per_voxel; /* of the stream, never exceeded */
  uint64_t total_bytes;  /* of the stream, never exceeded; 0 = not asked for */
  int32_t transform;     /* TVL_TRANSFORM_AUTO: what is smaller; only the wavelet has reduced sizes and layers */
  int32_t effort;        /* TVL_EFFORT_MEDIUM: how much is tried on a piece of the volume first */
  int32_t profile;       /* TVL_PROFILE_DENSE: of wavelets; not TVL_PROFILE_PREDICTIVE */
  int32_t block_size;    /* 32, 64, 128 or 256; 0 = by access */
  int32_t layers;        /* 0 = by profile */
  int32_t slab;          /* slices transformed together, 1..128; 0 = by access and by trying */
  int32_t verify;        /* 1: decode and compare before the end, TVL_MISMATCH; not with a `write` function */
  int32_t threads;       /* 0 = one for each core */
  const char* settings;  /* text that is kept in the stream; NULL = none */
  const void* envelope;  /* bytes kept beside the voxels (a file's header); NULL = none */
  uint64_t envelope_bytes;
  const double*
      fill_values;     /* with loss: `fill_count` values that mean "nothing here" and come back exactly; of floats */
  uint64_t fill_count; /* NaN and infinities do without being named. NULL, 0 = none */
  int32_t device; /* TVL_CPU, or the number of a GPU, on which wavelets are coded; what is predicted takes the CPU */
  int32_t access; /* TVL_ACCESS_WHOLE: chooses the smallest units that are read */
  uint64_t device_memory; /* bytes of the GPU's memory that may be used; 0 = all */
} tvl_volume_params;
TVL_API void tvl_volume_params_init(tvl_volume_params* params, uint64_t struct_size);

/* Codes a volume to `sink` (NULL = memory of the encoder). The voxels, or what `read` gives when `voxels` is NULL (one
 * of the two). params: NULL = defaults. A stream of frames that is open is left as it is. TVL_BAD_ARGUMENT for a shape
 * or parameters outside their ranges, more than one goal, a max_error below the resolution of floats; TVL_UNSUPPORTED
 * for what the format or the device cannot; TVL_BUFFER_TOO_SMALL where tvl_sink.data is; TVL_MISMATCH where `verify`
 * finds that the stream does not say what was given. Nothing is open afterwards, and after an error there is no
 * stream. */
TVL_API tvl_result tvl_encoder_write_volume(tvl_encoder* encoder, const tvl_volume* volume,
                                            const tvl_volume_params* params, const tvl_voxels* voxels,
                                            tvl_slice_reader read, void* user, const tvl_sink* sink);
/* The same of voxels in memory to that of `capacity` bytes at `stream` (NULL when that is 0). *size: bytes of the
 * stream, also with TVL_BUFFER_TOO_SMALL; 0 with other errors. */
TVL_API tvl_result tvl_encode_volume(tvl_encoder* encoder, const tvl_volume* volume, const tvl_volume_params* params,
                                     const tvl_voxels* voxels, void* stream, uint64_t capacity, uint64_t* size);
/* Bytes that no stream of tvl_encode_volume exceeds, its envelope included; memory of tvl_volume_bytes() and 64 KiB
 * suffices but for noise. params: NULL = defaults. 0 where the shape is impossible. */
TVL_API uint64_t tvl_encode_volume_bound(const tvl_volume* volume, const tvl_volume_params* params);

/* What to decode of a volume, as VolumeDecoderParams of volume.h. */
typedef struct tvl_volume_decode_params {
  uint64_t struct_size;
  uint64_t x, y, z;              /* first voxel of a box, in voxels of the full size */
  uint64_t width, height, depth; /* its extent; all 0 = everything */
  int32_t reduce;                /* how often the size is halved; not by prediction */
  int32_t max_layers;            /* the most quality layers, not by prediction; 0 = all */
  int32_t max_planes;            /* the most bit planes, not by prediction; 0 = all */
  int32_t threads;               /* 0 = one for each core */
  uint64_t max_memory;           /* as in tvl_decode_params, and those that follow */
  uint64_t max_samples;
  uint64_t max_frames; /* slices of all volumes */
  uint64_t max_samples_per_byte;
  int32_t device; /* TVL_CPU, or the number of a GPU, on which wavelets are decoded; the rest is done by the CPU */
  int32_t reserved;
  uint64_t device_memory; /* bytes of the GPU's memory that may be used; 0 = all */
  uint64_t first_volume;  /* of several volumes, `volumes` of them from this one on */
  uint64_t volumes;       /* 0 = all from the first on */
} tvl_volume_decode_params;
TVL_API void tvl_volume_decode_params_init(tvl_volume_decode_params* params, uint64_t struct_size);

/* As tvl_decoder_open. The source must be able to seek. TVL_BAD_ARGUMENT also when it cannot, when the stream holds no
 * volume, for a box that leaves it, and for reductions, layers or planes of what is coded by prediction. */
TVL_API tvl_result tvl_decoder_open_volume(tvl_decoder* decoder, const tvl_source* source,
                                           const tvl_volume_decode_params* params);

typedef struct tvl_volume_info {
  uint64_t struct_size;
  int32_t exact;     /* 1: voxels are those that were coded, bit for bit */
  int32_t has_bound; /* 1: no voxel of the full volume errs by more than max_error */
  double max_error;  /* stored units */
  double least;      /* the range of values that the stream can give */
  double largest;
  int32_t prediction; /* 1: coded by prediction: no reduction, layers or planes */
  int32_t marked; /* values that come back exactly wherever they are, beside all others: NaN, fill values; mostly 0 */
  uint64_t x, y, z, width, height, depth; /* of the full volume, what is read */
  uint64_t step_x, step_y, step_z;        /* voxels of it that are one of what is read */
} tvl_volume_info;
TVL_API void tvl_volume_info_init(tvl_volume_info* info, uint64_t struct_size);
/* Sets, after their _init, whole: the volume of the stream; output: what tvl_decoder_read_slices delivers; info. Each
 * may be NULL. TVL_BAD_ARGUMENT unless tvl_decoder_open_volume opened the stream, as the next two. */
TVL_API tvl_result tvl_decoder_volume(tvl_decoder* decoder, tvl_volume* whole, tvl_volume* output,
                                      tvl_volume_info* info);
/* What the encoder kept beside the voxels, *size bytes at *data; the decoder's, valid while the stream is open. *size 0
 * when nothing. */
TVL_API tvl_result tvl_decoder_envelope(tvl_decoder* decoder, const void** data, uint64_t* size);
/* Decodes the next `capacity` slices, fewer at the end: slice i of the call at voxels->data + i * slice_stride, with
 * the type, byte order, width and height of `output`, which counts through all its volumes; volume_stride is not used.
 * *count: how many, also with an error; 0 with TVL_OK is the end. After TVL_BAD_STREAM no slice follows. */
TVL_API tvl_result tvl_decoder_read_slices(tvl_decoder* decoder, const tvl_voxels* voxels, uint64_t capacity,
                                           uint64_t* count);
/* Whole volumes in memory: as open, read and close, and their errors, of the `size` bytes at `stream` into `capacity`
 * bytes at `voxels` without gaps. *needed: bytes of the selection, also with TVL_BUFFER_TOO_SMALL, where nothing is
 * decoded; 0 where they could not be known. TVL_BAD_STREAM also for a stream that ends early. Nothing is open
 * afterwards. */
TVL_API tvl_result tvl_decode_volume(tvl_decoder* decoder, const void* stream, uint64_t size,
                                     const tvl_volume_decode_params* params, void* voxels, uint64_t capacity,
                                     uint64_t* needed);

/* ------------------------------------------------------------------------------------------ batches, memory of GPUs */

/* Where the samples of frames and the voxels are that later calls on this handle are given: memory of the host
 * (TVL_CPU, as at first), or of GPU `device`, of which pointers are then device pointers. Streams, slices of a
 * tvl_slice_reader and callbacks stay the host's. Copies are put in the order of `cuda_stream`, a cudaStream_t (NULL:
 * the default one): a frame is read after what was given to the stream before the call, and what is given to it
 * afterwards finds what was decoded. Calls return when their copies are done. It does not matter where coding goes on:
 * that is `device` of the params.
 *
 *   tvl_decoder_set_memory(decoder, 0, stream);
 *   tvl_decoder_read_slices(decoder, &(tvl_voxels){device_pointer, 0, 0, 0}, slices, &count);
 *
 * Samples of a row must have no gaps (TVL_UNSUPPORTED). Memory that moves between both, or that a GPU maps of the host,
 * may be given, too. What was decoded passes through memory of the host, which hashes and maps it, but for whole
 * volumes of one channel and at most 16 bits in tvl_decode_volumes by the same GPU. Pointers are not checked: one that
 * is not where it is said to be is as bad as any wild pointer. TVL_UNSUPPORTED where the library was built without CUDA
 * (tvl_has(TVL_FEATURE_CUDA)), or there is no such GPU; the handle's memory is then as before. */
TVL_API tvl_result tvl_encoder_set_memory(tvl_encoder* encoder, int32_t device, void* cuda_stream);
TVL_API tvl_result tvl_decoder_set_memory(tvl_decoder* decoder, int32_t device, void* cuda_stream);

/* One volume of a batch: what tvl_decode_volume is given, and what it answers. */
typedef struct tvl_volume_job {
  uint64_t struct_size; /* of all jobs of a batch as in this library, for they lie in a row */
  const void* stream;
  uint64_t size;                          /* bytes of it */
  const tvl_volume_decode_params* params; /* NULL = everything; its `threads` and `device` mean nothing here */
  void* voxels;                           /* of the selection, without gaps; where _set_memory says */
  uint64_t capacity;                      /* bytes there */
  uint64_t needed;                        /* set: bytes of the selection, if they could be known */
  tvl_result result;                      /* set */
  char error[260];                        /* set: as tvl_decoder_error; "" after success */
} tvl_volume_job;
TVL_API void tvl_volume_job_init(tvl_volume_job* job, uint64_t struct_size);

typedef struct tvl_batch_params {
  uint64_t struct_size;
  int32_t threads;        /* of all jobs together; 0 = one for each core */
  int32_t device;         /* TVL_CPU, or a GPU, on which wavelets are decoded */
  uint64_t device_memory; /* bytes of the GPU's memory that all together may use; 0 = all */
  int32_t streams_there;  /* not 0: streams, too, are where _set_memory says */
  int32_t reserved;       /* 0 */
} tvl_batch_params;
TVL_API void tvl_batch_params_init(tvl_batch_params* params, uint64_t struct_size);

/* Decodes `count` volumes, each as tvl_decode_volume does. On the CPU as many run at a time as there are threads. On a
 * GPU four do, each with kernels of its own, and sixteen where their voxels stay there; a volume for which memory does
 * not suffice beside the others runs alone after them. The handle keeps what is made on a GPU for the next batch. A job
 * that fails does not stop the others: the call returns the result of the first that failed, and its text says which.
 * params: NULL = defaults. An open stream is closed. Several threads read and set the jobs during the call, which must
 * not share memory that is written. TVL_BAD_ARGUMENT for parameters outside their ranges and
 * TVL_UNSUPPORTED for jobs of another size or a GPU that is not there: no job is touched then. When the call is
 * cancelled the jobs that were not done say so, too. */
TVL_API tvl_result tvl_decode_volumes(tvl_decoder* decoder, tvl_volume_job* jobs, uint64_t count,
                                      const tvl_batch_params* params);

/* One volume to encode: what tvl_encode_volume is given, and what it answers. */
typedef struct tvl_volume_encode_job {
  uint64_t struct_size; /* of all jobs of a batch as in this library, for they lie in a row */
  const tvl_volume* volume;
  const tvl_volume_params* params; /* NULL = defaults; its `threads` and `device` mean nothing here */
  tvl_voxels voxels;               /* where _set_memory says */
  void* stream;
  uint64_t capacity; /* bytes there; tvl_encode_volume_bound() are enough */
  uint64_t size;     /* set: bytes of the stream, also with TVL_BUFFER_TOO_SMALL */
  tvl_result result; /* set */
  char error[260];   /* set: as tvl_encoder_error; "" after success */
} tvl_volume_encode_job;
TVL_API void tvl_volume_encode_job_init(tvl_volume_encode_job* job, uint64_t struct_size);

/* Encodes `count` volumes, each as tvl_encode_volume does, with the same bytes. On the CPU as many run at a time as
 * there are threads; on a GPU sixteen where the voxels are in its memory, else four. Voxels in memory of the GPU that
 * encodes are surveyed, mapped, hashed and coded there if they are without loss and without gaps, of one channel and at
 * most 16 bits, with TVL_TRANSFORM_WAVELET or TVL_TRANSFORM_AUTO, TVL_EFFORT_FAST and without `verify`; others pass
 * through memory of the host. The streams are assembled by the host in every case. With streams_there they are copied
 * to the GPU afterwards, in the order of the handle's stream.
 *
 *   tvl_encoder_set_memory(encoder, 0, stream);
 *   batch.device = 0; batch.streams_there = 1;
 *   tvl_encode_volumes(encoder, jobs, count, &batch);
 *
 * The handle keeps what is made on a GPU for the next batch. Jobs, threads, results and cancelling are as of
 * tvl_decode_volumes. An open stream is closed, a kept one forgotten. */
TVL_API tvl_result tvl_encode_volumes(tvl_encoder* encoder, tvl_volume_encode_job* jobs, uint64_t count,
                                      const tvl_batch_params* params);

/* ------------------------------------------------------------------------------------------------------------ plans */

/* Which bytes of a stream a decoder is going to read, for those who fetch them in their own way (over a network, from a
 * store of objects). Nothing is read here: what is asked for depends on what was given alone.
 *
 *   tvl_plan_begin(plan, stream_bytes, params);
 *   while (tvl_plan_next(plan, ranges, capacity, &count) == TVL_OK && count > 0)
 *     for (i = 0; i < count; ++i) tvl_plan_give(plan, ranges[i].offset, fetch(ranges[i]), ranges[i].size);
 *   tvl_plan_source(plan, &source);
 *   tvl_decoder_open(decoder, &source, params);
 *
 * A stream with an index needs three rounds, one more with motion, two more for a region: beginning and end; heads of
 * the GOPs; chunks, or their heads and then the parts that the region needs. With a front table, which volumes of 2^20
 * bytes and more have in files and in memory, there are two, of a region, too, for it has the heads of GOPs and, unless
 * they are many, of chunks. Where the index is lost, all is asked for. */
typedef struct tvl_plan tvl_plan;
TVL_API tvl_plan* tvl_plan_new(void);       /* NULL when there is no memory */
TVL_API void tvl_plan_free(tvl_plan* plan); /* NULL is allowed */
/* The text of the last result, see the top; "" after success, "the plan is NULL" for NULL. */
TVL_API const char* tvl_plan_error(const tvl_plan* plan);

/* Forgets what was given and plans header and index alone: what tvl_decoder_open reads, so that a stream (also a
 * volume, as tvl_stream_info.is_volume tells) can be asked for its GOPs before anything of them is fetched. */
TVL_API tvl_result tvl_plan_begin_index(tvl_plan* plan, uint64_t stream_bytes);
/* Forgets what was given and plans a stream of this many bytes and a decoder that is opened with the same params
 * (NULL = everything), which are checked by tvl_plan_next, when the stream is known. */
TVL_API tvl_result tvl_plan_begin(tvl_plan* plan, uint64_t stream_bytes, const tvl_decode_params* params);
TVL_API tvl_result tvl_plan_begin_volume(tvl_plan* plan, uint64_t stream_bytes, const tvl_volume_decode_params* params);

typedef struct tvl_range {
  uint64_t offset; /* from the first byte of the stream */
  uint64_t size;   /* bytes */
} tvl_range;

/* What has to be given next: ascending, apart from each other. *count: how many, 0 = all is there; with
 * TVL_BUFFER_TOO_SMALL how many there are where `capacity` is less (`ranges` may be NULL when that is 0), and the call
 * is made again. Else as the decoder would fail: TVL_BAD_ARGUMENT for a request that the stream cannot answer, and
 * before tvl_plan_begin, as the next two; TVL_BAD_STREAM for damage; TVL_UNSUPPORTED for limits and features. */
TVL_API tvl_result tvl_plan_next(tvl_plan* plan, tvl_range* ranges, uint64_t capacity, uint64_t* count);
/* `size` bytes of the stream from its byte `offset` on, which are copied; any, in any order. TVL_BAD_ARGUMENT for bytes
 * beyond the end that was said. */
TVL_API tvl_result tvl_plan_give(tvl_plan* plan, uint64_t offset, const void* data, uint64_t size);
/* Sets `source`, after its _init, to what was given: a stream that can seek. Reading what was not given is TVL_IO. The
 * plan must live as long as a decoder has it open, which uses it from its own threads: nothing else may be done with
 * the plan meanwhile, and a second decoder needs a second plan. */
TVL_API tvl_result tvl_plan_source(tvl_plan* plan, tvl_source* source);

#ifdef __cplusplus
}
#endif

#endif
