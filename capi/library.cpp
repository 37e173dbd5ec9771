// What trivelet.h tells of the library, and of frames without coding any.
#include <cstring>
#include <string>

#include "capi/handle.h"
#include "capi/video.h"
#include "trivelet/cuda.h"
#include "trivelet/parameters.h"
#include "trivelet/volume.h"

using namespace trivelet;
using namespace trivelet::capi;

namespace {

// Of an impossible size: throws.
std::size_t plane_bytes(const VideoInfo& info, int c) {
  return checked_mul(Shape{1, info.component_height(c), info.component_width(c)}.samples(),
                     static_cast<std::size_t>(info.format.bytes_per_sample()));
}

}  // namespace

extern "C" {

const char* tvl_result_text(tvl_result result) {
  switch (result) {
    case TVL_OK: return "done";
    case TVL_INTERNAL: return "internal error";
    case TVL_BAD_ARGUMENT: return "bad argument";
    case TVL_IO: return "reading or writing failed";
    case TVL_BAD_STREAM: return "damaged stream";
    case TVL_UNSUPPORTED: return "not supported";
    case TVL_MISMATCH: return "verification failed";
    case TVL_OUT_OF_MEMORY: return "out of memory";
    case TVL_CANCELLED: return "cancelled";
    case TVL_BUFFER_TOO_SMALL: return "buffer too small";
  }
  return "unknown result";
}

const char* tvl_version(void) { return kLibraryVersion; }

int32_t tvl_format_version(void) { return 256 * kFormatMajor + kFormatMinor; }

int32_t tvl_has(tvl_feature feature) {
  switch (feature) {
    case TVL_FEATURE_CUDA: return gpu::is_built();
    case TVL_FEATURE_AVX2: return detected_simd() >= SimdLevel::kAvx2;
    case TVL_FEATURE_AVX512: return detected_simd() >= SimdLevel::kAvx512;
    case TVL_FEATURE_MOTION:
    case TVL_FEATURE_VOLUMES: return 1;
  }
  return 0;
}

uint64_t tvl_limit_of(tvl_limit limit) {
  switch (limit) {
    case TVL_LIMIT_SIZE: return 65536;
    case TVL_LIMIT_BITS: return 16;
    case TVL_LIMIT_GOP_FRAMES: return 128;
    case TVL_LIMIT_LAYERS: return 16;
    case TVL_LIMIT_CHANNELS: return kMaxChannels;
  }
  return 0;
}

int32_t tvl_gpu_count(void) { return static_cast<int32_t>(gpu::devices().size()); }

void tvl_video_init(tvl_video* video, uint64_t struct_size) { init_struct(video, struct_size, default_video()); }

tvl_result tvl_video_set_format(tvl_video* video, const char* name) {
  char ignored[256];
  return to_result(ignored, [&] {
    const PixelFormat format = parse_pixel_format(not_null(name, "name"));
    tvl_video v = read_struct(not_null(video, "video"), default_video(), "tvl_video");
    v.colour_model = static_cast<std::int32_t>(format.model);
    v.bits = format.bits;
    v.log2_chroma_w = format.log2_chroma_w;
    v.log2_chroma_h = format.log2_chroma_h;
    v.alpha = format.alpha;
    v.is_signed = format.is_signed;
    write_struct(video, v, "tvl_video");
  });
}

tvl_result tvl_video_format(const tvl_video* video, char* name, uint64_t capacity) {
  char ignored[256];
  if (name && capacity > 0) name[0] = '\0';
  return to_result(ignored, [&] {
    (void)not_null(name, "name");
    const std::string text = to_string(to_info(video).format);
    if (text.size() >= capacity) throw BufferTooSmall("bytes", capacity, text.size() + 1);
    std::memcpy(name, text.c_str(), text.size() + 1);
  });
}

tvl_result tvl_video_plane(const tvl_video* video, int32_t component, int32_t* width, int32_t* height,
                           int32_t* sample_bytes) {
  char ignored[256];
  const auto set = [&](int w, int h, int bytes) {
    if (width) *width = w;
    if (height) *height = h;
    if (sample_bytes) *sample_bytes = bytes;
  };
  set(0, 0, 0);
  return to_result(ignored, [&] {
    const VideoInfo info = to_info(video);
    require(component >= 0 && component < info.format.components(), ErrorKind::kBadArgument, "component");
    set(info.component_width(component), info.component_height(component), info.format.bytes_per_sample());
  });
}

uint64_t tvl_frame_bytes(const tvl_video* video) {
  char ignored[256];
  std::uint64_t bytes = 0;
  (void)to_result(ignored, [&] {
    const VideoInfo info = to_info(video);
    for (int c = 0; c < info.format.components(); ++c) bytes += plane_bytes(info, c);
  });
  return bytes;
}

tvl_result tvl_frame_layout(const tvl_video* video, int32_t arrangement, void* memory, tvl_frame* frame) {
  char ignored[256];
  return to_result(ignored, [&] {
    const VideoInfo info = to_info(video);
    const PixelFormat& f = info.format;
    auto* at = static_cast<std::byte*>(not_null(memory, "memory"));
    std::memset(not_null(frame, "frame")->planes, 0, sizeof frame->planes);
    require(arrangement == TVL_PLANAR || arrangement == TVL_INTERLEAVED, ErrorKind::kBadArgument, "arrangement");
    if (arrangement == TVL_PLANAR) {
      for (int c = 0; c < f.components(); ++c) {
        frame->planes[c].data = at;
        at += plane_bytes(info, c);
      }
      return;
    }
    require(f.log2_chroma_w == 0 && f.log2_chroma_h == 0, ErrorKind::kBadArgument,
            "subsampled chroma cannot be interleaved");
    constexpr int kPlaceInRgb[] = {1, 2, 0, 3};  // of G, B, R, alpha
    for (int c = 0; c < f.components(); ++c) {
      const int place = f.model == ColourModel::kRgb ? kPlaceInRgb[c] : c;
      frame->planes[c].data = at + place * f.bytes_per_sample();
      frame->planes[c].sample_stride = f.components() * f.bytes_per_sample();
    }
  });
}

}  // extern "C"
