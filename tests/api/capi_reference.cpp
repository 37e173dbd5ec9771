// The C++ side of capi_test.c: the same calls through the C++ interface, whose results are compared.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/api/capi_support.h"
#include "trivelet/codec.h"
#include "trivelet/cuda.h"
#include "trivelet/volume.h"

using namespace trivelet;

namespace {

void* copy_of(const std::vector<std::byte>& bytes, std::size_t* size) {
  *size = bytes.size();
  void* memory = std::malloc(bytes.size() + 1);
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return memory;
}

std::size_t plane_bytes(const VideoInfo& info, int c) {
  return static_cast<std::size_t>(info.component_width(c)) * static_cast<std::size_t>(info.component_height(c)) *
         static_cast<std::size_t>(info.format.bytes_per_sample());
}

VolumeDescription description_of(const volume_coding& c) {
  VolumeDescription d;
  d.voxel.type = static_cast<VoxelType>(c.type);
  d.voxel.channels = c.channels;
  d.width = c.width;
  d.height = c.height;
  d.slices = static_cast<std::uint64_t>(c.slices);
  d.volumes = static_cast<std::uint64_t>(c.volumes);
  return d;
}

}  // namespace

void* reference_encode(const coding* c, const void* samples, size_t* size) {
  VideoInfo info;
  info.width = c->width;
  info.height = c->height;
  info.format = parse_pixel_format(c->format);
  info.frames = static_cast<std::uint64_t>(c->frames);
  EncoderParams p;
  p.lossless = c->lossless != 0;
  if (c->quality > 0) p.quality = c->quality;
  p.psnr = c->psnr;
  p.bits_per_pixel = c->bpp;
  p.target_bytes = c->bytes;
  if (c->gop) p.gop_frames = c->gop;
  if (c->fast) p.profile = Profile::kFast;
  p.motion = static_cast<Motion>(c->motion);
  p.key_interval = c->key_interval;
  p.layers = c->layers;
  p.part_checks = c->part_checks != 0;
  MemorySink sink;
  Encoder encoder(info, p, sink);
  const auto* at = static_cast<const std::byte*>(samples);
  for (int first = 0; first < c->frames; first += encoder.gop_frames()) {
    const int n = std::min(c->frames - first, encoder.gop_frames());
    Gop gop(info, n);
    gop.set_frames(n);
    for (int f = 0; f < n; ++f) {
      gop.times()[static_cast<std::size_t>(f)] = {first + f, 1};
      for (int i = 0; i < info.format.components(); ++i) {
        std::memcpy(gop.plane(i).row(f, 0), at, plane_bytes(info, i));
        at += plane_bytes(info, i);
      }
    }
    encoder.push(gop);
  }
  encoder.finish();
  return copy_of(sink.bytes, size);
}

void* reference_decode(const void* stream, size_t size, int reduce, int temporal_reduce, int layers, uint64_t first,
                       uint64_t end, size_t* bytes) {
  MemorySource source(stream, size);
  DecoderParams p;
  p.reduce = reduce;
  p.temporal_reduce = temporal_reduce;
  p.max_layers = layers;
  p.first_frame = first;
  p.end_frame = end;
  Decoder decoder(source, p);
  std::vector<std::byte> all;
  Gop gop = decoder.make_gop();
  while (decoder.pull(gop))
    for (int f = 0; f < gop.frames(); ++f)
      for (int c = 0; c < gop.components(); ++c) {
        const std::byte* row = std::as_const(gop).plane(c).row(f, 0);
        all.insert(all.end(), row, row + plane_bytes(decoder.output(), c));
      }
  return copy_of(all, bytes);
}

void* reference_encode_volume(const volume_coding* c, const void* voxels, size_t* size) {
  MemorySlices slices(description_of(*c), static_cast<const std::byte*>(voxels));
  VolumeEncoderParams p;
  p.max_error = c->max_error;
  if (c->quality > 0) p.quality = c->quality;
  if (c->psnr > 0) p.psnr = c->psnr;
  if (c->bits_per_voxel > 0) p.bits_per_voxel = c->bits_per_voxel;
  if (c->wavelet) p.transform = VolumeTransform::kWavelet;
  MemorySink sink;
  MemoryReadBack back(sink);
  p.verify = c->verify;
  encode_volume(slices, p, sink, &back);
  return copy_of(sink.bytes, size);
}

void* reference_decode_volume(const void* stream, size_t size, const uint64_t region[6], int reduce, int layers,
                              size_t* bytes) {
  MemorySource source(stream, size);
  VolumeDecoderParams p;
  if (region) p.region = VoxelRegion{region[0], region[1], region[2], region[3], region[4], region[5]};
  p.reduce = reduce;
  p.max_layers = layers;
  VolumeDecoder decoder(source, p);
  std::vector<std::byte> all(static_cast<std::size_t>(decoder.output().bytes()));
  for (std::byte* at = all.data(); decoder.read(at); at += decoder.output().slice_bytes()) {
    if (at + decoder.output().slice_bytes() == all.data() + all.size()) break;
  }
  return copy_of(all, bytes);
}

int has_gpu(void) { return !gpu::devices().empty(); }
