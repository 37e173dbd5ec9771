// Measures how fast a GPU encodes and decodes a batch of volumes through the C interface:
//   volume_batch [CHUNKS [SIDE [DEVICE]]]
// It makes CHUNKS (64) volumes of SIDE^3 (256) voxels of 16 bits, waves with four bits of noise, in memory of the GPU.
// tvl_encode_volumes codes all of them four times with one handle, with the fast profile and without loss: streams go to
// host memory, and then to device memory. With quality 70 one is coded by itself. tvl_decode_volumes then decodes them four
// times: from streams in either memory to device memory, and from host memory to host memory. It prints GB/s of voxels
// for each run; the first run includes all setup.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "codec/backend.h"
#include "trivelet/cuda.h"
#include "trivelet/trivelet.h"

namespace {

std::vector<std::uint16_t> chunk_of(std::size_t side) {
  std::vector<std::uint16_t> voxels(side * side * side);
  std::uint64_t state = 1;
  for (std::size_t z = 0, i = 0; z < side; ++z)
    for (std::size_t y = 0; y < side; ++y)
      for (std::size_t x = 0; x < side; ++x, ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double wave = std::sin(static_cast<double>(x) / 19) * std::cos(static_cast<double>(y + z) / 23);
        voxels[i] = static_cast<std::uint16_t>(2000 + 1500 * wave + static_cast<double>(state >> 60));
      }
  return voxels;
}

void check(tvl_result result, const char* text) {
  if (result == TVL_OK) return;
  std::fprintf(stderr, "volume_batch: %s\n", text);
  std::exit(1);
}

}  // namespace

namespace {

/// The batch, on the GPU and on the host.
struct Bench {
  int device;
  std::size_t chunks, bytes;  ///< bytes of the voxels of a chunk
  tvl_volume volume;
  tvl_volume_params params;
  std::vector<std::uint16_t> voxels;
  std::shared_ptr<std::byte> on_device, streams_on_device;
  std::vector<std::byte> on_host, stream;
  std::size_t room;  ///< for a stream

  void download(void* to, const std::byte* from, std::size_t size) const {
    const auto pitch = static_cast<std::ptrdiff_t>(size);
    trivelet::gpu::copy_from_device(device, {static_cast<std::byte*>(to), pitch}, {const_cast<std::byte*>(from), pitch},
                                    size, 1, nullptr);
    trivelet::gpu::wait_for(device, nullptr);
  }
};

/// Prints GB/s of four turns.
template <class Turn>
void four_turns(const Bench& b, const Turn& turn) {
  for (int i = 0; i < 4; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    turn();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf(" %.2f", 1e-9 * static_cast<double>(b.chunks * b.bytes) / seconds.count());
    std::fflush(stdout);
  }
}

/// A chunk by itself into b.stream. Returns the size.
std::uint64_t encode_alone(Bench& b) {
  tvl_encoder* encoder = tvl_encoder_new();
  std::uint64_t size = 0;
  const tvl_voxels from{b.voxels.data(), 0, 0, 0};
  check(tvl_encode_volume(encoder, &b.volume, &b.params, &from, b.stream.data(), b.stream.size(), &size),
        tvl_encoder_error(encoder));
  tvl_encoder_free(encoder);
  return size;
}

void encode_all(Bench& b, std::uint64_t expected, bool streams_there) {
  tvl_encoder* encoder = tvl_encoder_new();
  check(tvl_encoder_set_memory(encoder, b.device, nullptr), tvl_encoder_error(encoder));
  tvl_batch_params batch;
  tvl_batch_params_init(&batch, sizeof batch);
  batch.device = b.device;
  batch.streams_there = streams_there;
  std::vector<std::byte> streams(streams_there ? 0 : b.chunks * b.room);
  std::vector<tvl_volume_encode_job> jobs(b.chunks);
  for (std::size_t i = 0; i < b.chunks; ++i) {
    tvl_volume_encode_job_init(&jobs[i], sizeof jobs[i]);
    jobs[i].volume = &b.volume;
    jobs[i].params = &b.params;
    jobs[i].voxels.data = b.on_device.get() + i * b.bytes;
    jobs[i].stream = (streams_there ? b.streams_on_device.get() : streams.data()) + i * b.room;
    jobs[i].capacity = b.room;
  }
  std::printf("encode, lossless, from the GPU to the %s:", streams_there ? "GPU" : "host");
  four_turns(b, [&] { check(tvl_encode_volumes(encoder, jobs.data(), b.chunks, &batch), tvl_encoder_error(encoder)); });
  bool right = true;
  std::vector<std::byte> one(b.room);
  for (const tvl_volume_encode_job& job : jobs) {
    if (streams_there) b.download(one.data(), static_cast<const std::byte*>(job.stream), b.room);
    const void* const made = streams_there ? one.data() : job.stream;
    right = right && job.size == expected && std::memcmp(made, b.stream.data(), expected) == 0;
  }
  std::printf("%s\n", right ? ", the CPU's streams" : ", WRONG");
  tvl_encoder_free(encoder);
}

void decode_all(Bench& b, std::uint64_t size, bool lossless, bool stays, bool streams_there) {
  tvl_decoder* decoder = tvl_decoder_new();
  if (stays) check(tvl_decoder_set_memory(decoder, b.device, nullptr), tvl_decoder_error(decoder));
  tvl_batch_params batch;
  tvl_batch_params_init(&batch, sizeof batch);
  batch.device = b.device;
  batch.streams_there = streams_there;
  std::vector<tvl_volume_job> jobs(b.chunks);
  for (std::size_t i = 0; i < b.chunks; ++i) {
    tvl_volume_job_init(&jobs[i], sizeof jobs[i]);
    jobs[i].stream = streams_there ? b.streams_on_device.get() + i * b.room : b.stream.data();
    jobs[i].size = size;
    jobs[i].voxels = (stays ? b.on_device.get() : b.on_host.data()) + i * b.bytes;
    jobs[i].capacity = b.bytes;
  }
  std::printf("decode, %s, from the %s to the %s:", lossless ? "lossless" : "quality 70",
              streams_there ? "GPU" : "host", stays ? "GPU" : "host");
  four_turns(b, [&] { check(tvl_decode_volumes(decoder, jobs.data(), b.chunks, &batch), tvl_decoder_error(decoder)); });
  if (lossless) {
    std::vector<std::byte> one(b.bytes);
    if (stays)
      b.download(one.data(), b.on_device.get() + (b.chunks - 1) * b.bytes, b.bytes);
    else
      std::memcpy(one.data(), b.on_host.data() + (b.chunks - 1) * b.bytes, b.bytes);
    std::printf("%s", std::memcmp(one.data(), b.voxels.data(), b.bytes) == 0 ? ", the last came back" : ", WRONG");
  }
  std::printf("\n");
  std::fflush(stdout);
  tvl_decoder_free(decoder);
}

}  // namespace

int main(int count, char** arguments) {
  Bench b;
  b.chunks = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 64;
  const std::size_t side = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 256;
  b.device = count > 3 ? std::atoi(arguments[3]) : 0;
  b.voxels = chunk_of(side);
  b.bytes = 2 * b.voxels.size();
  b.room = b.bytes + b.bytes / 8 + 65536;
  tvl_volume_init(&b.volume, sizeof b.volume);
  b.volume.type = TVL_U16;
  b.volume.width = b.volume.height = static_cast<std::int32_t>(side);
  b.volume.slices = side;
  tvl_volume_params_init(&b.params, sizeof b.params);
  b.params.transform = TVL_TRANSFORM_WAVELET;
  b.params.effort = TVL_EFFORT_FAST;
  b.params.profile = TVL_PROFILE_FAST;
  const std::shared_ptr<const trivelet::Backend> backend = trivelet::gpu::cuda_backend(b.device, 0, true);
  b.on_device = backend->allocate(b.chunks * b.bytes);
  b.streams_on_device = backend->allocate(b.chunks * b.room);
  b.on_host.resize(b.chunks * b.bytes);
  b.stream.resize(2 * b.bytes + 65536);
  const auto pitch = static_cast<std::ptrdiff_t>(b.bytes);
  for (std::size_t i = 0; i < b.chunks; ++i)
    trivelet::gpu::copy_to_device(b.device, {b.on_device.get() + i * b.bytes, pitch},
                                  {reinterpret_cast<std::byte*>(b.voxels.data()), pitch}, b.bytes, 1, nullptr);
  trivelet::gpu::wait_for(b.device, nullptr);
  std::uint64_t size = encode_alone(b);
  std::printf("%zu chunks of %zu^3, lossless: %.2f bits per voxel\n", b.chunks, side,
              8.0 * static_cast<double>(size) / static_cast<double>(b.voxels.size()));
  for (const bool there : {false, true}) encode_all(b, size, there);
  decode_all(b, size, true, true, false);
  decode_all(b, size, true, true, true);
  decode_all(b, size, true, false, false);
  b.params.quality = 70;
  size = encode_alone(b);
  std::printf("quality 70: %.2f bits per voxel\n",
              8.0 * static_cast<double>(size) / static_cast<double>(b.voxels.size()));
  decode_all(b, size, false, true, false);
  decode_all(b, size, false, false, false);
}
