#include "capi/video.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "capi/handle.h"
#include "trivelet/cuda.h"

namespace trivelet::capi {

namespace {

template <class T>
T narrow(std::int32_t value, const char* what) {
  require(value >= 0 && value <= 255, ErrorKind::kBadArgument,
          std::string(what) + " is " + std::to_string(value) + "; it must be 0..255");
  return static_cast<T>(value);
}

std::ptrdiff_t row_bytes(const VideoInfo& info, int c) {
  return static_cast<std::ptrdiff_t>(info.component_width(c)) * info.format.bytes_per_sample();
}

// `bytes` a sample, of which those of a row may lie apart.
void copy_row(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride, int samples,
              int bytes) {
  if (from_stride == bytes && to_stride == bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(samples) * static_cast<std::size_t>(bytes));
    return;
  }
  for (int x = 0; x < samples; ++x, from += from_stride, to += to_stride)
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

template <class View>
std::vector<View> make_views(const VideoInfo& info, std::span<const tvl_frame> frames) {
  std::vector<View> views(frames.size());
  for (std::size_t f = 0; f < frames.size(); ++f) {
    const tvl_frame frame = explicit_strides(info, frames[f]);
    for (int c = 0; c < info.format.components(); ++c) {
      const tvl_plane& plane = frame.planes[c];
      views[f].planes[static_cast<std::size_t>(c)] = {static_cast<std::byte*>(plane.data),
                                                      static_cast<std::ptrdiff_t>(plane.row_stride)};
    }
    views[f].time = {frame.pts, frame.duration};
  }
  return views;
}

}  // namespace

tvl_video default_video() {
  tvl_video v = to_video(VideoInfo{});
  v.log2_chroma_w = v.log2_chroma_h = 1;
  return v;
}

VideoInfo to_info(const tvl_video* video) {
  const tvl_video v = read_struct(not_null(video, "video"), default_video(), "tvl_video");
  require(v.width >= 1 && v.height >= 1 && v.width <= 65536 && v.height <= 65536, ErrorKind::kBadArgument,
          "pictures of " + std::to_string(v.width) + "x" + std::to_string(v.height) + "; sizes must be 1..65536");
  require(v.colour_model >= 0 && v.colour_model <= 2, ErrorKind::kBadArgument,
          "colour model " + std::to_string(v.colour_model) + "; there are 0..2");
  require(v.bits >= 1 && v.bits <= 16, ErrorKind::kBadArgument,
          std::to_string(v.bits) + " bits per sample; must be 1..16");
  for (const std::int32_t shift : {v.log2_chroma_w, v.log2_chroma_h})
    require(shift >= 0 && shift <= 2, ErrorKind::kBadArgument,
            "chroma subsampled " + std::to_string(shift) + " times; must be 0..2");
  VideoInfo info;
  info.width = v.width;
  info.height = v.height;
  info.format.model = static_cast<ColourModel>(v.colour_model);
  info.format.bits = v.bits;
  if (info.format.model == ColourModel::kYuv) {
    info.format.log2_chroma_w = v.log2_chroma_w;
    info.format.log2_chroma_h = v.log2_chroma_h;
  }
  require(v.alpha >= 0 && v.alpha <= 2, ErrorKind::kBadArgument,
          "alpha is " + std::to_string(v.alpha) + "; there are 0..2");
  info.format.alpha = v.alpha != 0;
  info.premultiplied = v.alpha == 2;
  info.mirrored = v.mirrored != 0;
  info.format.is_signed = v.is_signed != 0;
  info.frame_rate = {v.frame_rate_num, v.frame_rate_den};
  info.sample_aspect = {v.sample_aspect_num, v.sample_aspect_den};
  info.time_base = {v.time_base_num, v.time_base_den};
  info.colour.primaries = narrow<std::uint8_t>(v.primaries, "primaries");
  info.colour.transfer = narrow<std::uint8_t>(v.transfer, "transfer");
  info.colour.matrix = narrow<std::uint8_t>(v.matrix, "matrix");
  info.colour.range = narrow<std::uint8_t>(v.range, "range");
  info.colour.chroma_location = narrow<std::uint8_t>(v.chroma_location, "chroma_location");
  require(v.rotation == 0 || v.rotation == 90 || v.rotation == 180 || v.rotation == 270, ErrorKind::kBadArgument,
          "a rotation by " + std::to_string(v.rotation) + " degrees; there are 0, 90, 180, 270");
  info.rotation = v.rotation;
  info.field_order = narrow<std::uint8_t>(v.field_order, "field_order");
  info.frames = v.frames;
  return info;
}

tvl_video to_video(const VideoInfo& info) {
  tvl_video v{};
  v.struct_size = sizeof v;
  v.width = info.width;
  v.height = info.height;
  v.colour_model = static_cast<std::int32_t>(info.format.model);
  v.bits = info.format.bits;
  v.log2_chroma_w = info.format.log2_chroma_w;
  v.log2_chroma_h = info.format.log2_chroma_h;
  v.alpha = info.format.alpha ? (info.premultiplied ? 2 : 1) : 0;
  v.mirrored = info.mirrored;
  v.is_signed = info.format.is_signed;
  v.frame_rate_num = info.frame_rate.num;
  v.frame_rate_den = info.frame_rate.den;
  v.sample_aspect_num = info.sample_aspect.num;
  v.sample_aspect_den = info.sample_aspect.den;
  v.time_base_num = info.time_base.num;
  v.time_base_den = info.time_base.den;
  v.primaries = info.colour.primaries;
  v.transfer = info.colour.transfer;
  v.matrix = info.colour.matrix;
  v.range = info.colour.range;
  v.chroma_location = info.colour.chroma_location;
  v.rotation = info.rotation;
  v.field_order = info.field_order;
  v.frames = info.frames;
  return v;
}

tvl_frame explicit_strides(const VideoInfo& info, const tvl_frame& frame) {
  tvl_frame out = frame;
  const int bytes = info.format.bytes_per_sample();
  for (int c = 0; c < info.format.components(); ++c) {
    tvl_plane& p = out.planes[c];
    require(p.data != nullptr, ErrorKind::kBadArgument, "a frame without component " + std::to_string(c));
    if (p.sample_stride == 0) p.sample_stride = bytes;
    if (p.row_stride == 0) p.row_stride = p.sample_stride * info.component_width(c);
    require((reinterpret_cast<std::uintptr_t>(p.data) | static_cast<std::uintptr_t>(p.row_stride) |
             static_cast<std::uintptr_t>(p.sample_stride)) %
                    static_cast<std::uintptr_t>(bytes) ==
                0,
            ErrorKind::kBadArgument, "samples of two bytes at odd addresses");
  }
  return out;
}

bool can_borrow(const VideoInfo& info, std::span<const tvl_frame> frames) {
  if (frames.empty()) return false;
  const tvl_frame first = explicit_strides(info, frames[0]);
  for (const tvl_frame& given : frames) {
    const tvl_frame frame = explicit_strides(info, given);
    for (int c = 0; c < info.format.components(); ++c) {
      const tvl_plane& p = frame.planes[c];
      const std::ptrdiff_t row = row_bytes(info, c);
      if (p.sample_stride != info.format.bytes_per_sample() || p.row_stride != first.planes[c].row_stride) return false;
      if (info.component_height(c) > 1 && p.row_stride < row && p.row_stride > -row) return false;
    }
  }
  return true;
}

std::vector<FrameView> views_of(const VideoInfo& info, std::span<const tvl_frame> frames) {
  return make_views<FrameView>(info, frames);
}

std::vector<MutableFrameView> mutable_views_of(const VideoInfo& info, std::span<const tvl_frame> frames) {
  return make_views<MutableFrameView>(info, frames);
}

namespace {

// Of memory of a GPU rows are copied as they are.
void check_on_device(const tvl_plane& plane, int bytes) {
  require(plane.sample_stride == bytes, ErrorKind::kUnsupported,
          "samples that are " + std::to_string(plane.sample_stride) +
              " bytes apart in memory of a GPU; there those of "
              "a row stand without gaps");
}

}  // namespace

void copy_in(const VideoInfo& info, const tvl_frame& given, Gop& gop, int index, const CallerMemory& memory) {
  const tvl_frame from = explicit_strides(info, given);
  const int bytes = info.format.bytes_per_sample();
  for (int c = 0; c < info.format.components(); ++c) {
    const MutableVolumeView to = gop.plane(c);
    const tvl_plane& p = from.planes[c];
    if (memory.on_device()) {
      check_on_device(p, bytes);
      memory.copy_in(p.data, p.row_stride, to.row(index, 0), to.row_stride, to.row_bytes(),
                     static_cast<std::size_t>(to.shape.height));
      continue;
    }
    for (int y = 0; y < to.shape.height; ++y)
      copy_row(static_cast<const std::byte*>(p.data) + y * p.row_stride, p.sample_stride, to.row(index, y), bytes,
               to.shape.width, bytes);
  }
  gop.times()[static_cast<std::size_t>(index)] = {from.pts, from.duration};
}

void copy_out(const VideoInfo& info, const Gop& gop, int index, int x, int y, tvl_frame& given,
              const CallerMemory& memory) {
  const tvl_frame to = explicit_strides(info, given);
  const int bytes = info.format.bytes_per_sample();
  for (int c = 0; c < info.format.components(); ++c) {
    const VolumeView from = gop.plane(c);
    const tvl_plane& p = to.planes[c];
    const bool chroma = info.format.is_chroma(c);
    const int left = chroma ? x >> info.format.log2_chroma_w : x;
    const int top = chroma ? y >> info.format.log2_chroma_h : y;
    if (memory.on_device()) {
      check_on_device(p, bytes);
      memory.copy_out(from.row(index, top) + static_cast<std::ptrdiff_t>(left) * bytes, from.row_stride, p.data,
                      p.row_stride, static_cast<std::size_t>(row_bytes(info, c)),
                      static_cast<std::size_t>(info.component_height(c)));
      continue;
    }
    for (int row = 0; row < info.component_height(c); ++row)
      copy_row(from.row(index, top + row) + static_cast<std::ptrdiff_t>(left) * bytes, bytes,
               static_cast<std::byte*>(p.data) + row * p.row_stride, p.sample_stride, info.component_width(c), bytes);
  }
  const FrameTime time = gop.times()[static_cast<std::size_t>(index)];
  given.pts = time.pts;
  given.duration = time.duration;
}

void set_memory(Handle& handle, std::int32_t device, void* cuda_stream) {
  if (device != TVL_CPU) {
    require(gpu::is_built(), ErrorKind::kUnsupported, "this library was built without CUDA; use TVL_CPU");
    const std::size_t count = gpu::devices().size();
    require(device >= 0 && static_cast<std::size_t>(device) < count, ErrorKind::kUnsupported,
            "there is no GPU " + std::to_string(device) + ", but " + std::to_string(count) + " in all");
  }
  handle.memory = device;
  handle.cuda_stream = device == TVL_CPU ? nullptr : cuda_stream;
}

std::byte* Staging::of(std::size_t wanted) {
  if (wanted > bytes) {
    memory.reset();
    bytes = 0;
    memory = gpu::page_locked(wanted);
    bytes = wanted;
  }
  return memory.get();
}

Staging Stagings::take() {
  const std::lock_guard lock(mutex_);
  if (unused_.empty()) return {};
  Staging one = std::move(unused_.back());
  unused_.pop_back();
  return one;
}

void Stagings::give_back(Staging staging) {
  if (!staging.memory) return;
  const std::lock_guard lock(mutex_);
  try {
    unused_.push_back(std::move(staging));
  } catch (const std::bad_alloc&) {  // it is not kept
  }
}

std::shared_ptr<const Backend> backend_for(std::int32_t device, std::uint64_t memory) {
  if (device == TVL_CPU) return nullptr;
  const std::size_t count = gpu::devices().size();
  require(gpu::is_built(), ErrorKind::kUnsupported, "this library was built without CUDA; use TVL_CPU");
  require(device >= 0 && static_cast<std::size_t>(device) < count, ErrorKind::kUnsupported,
          "there is no GPU " + std::to_string(device) + ", but " + std::to_string(count) + " in all");
  return gpu::cuda_backend(device, static_cast<std::size_t>(memory));
}

}  // namespace trivelet::capi
