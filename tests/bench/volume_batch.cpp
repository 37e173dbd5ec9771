// Measures how fast a GPU decodes a batch of volumes through the C interface:
//   volume_batch [CHUNKS [SIDE [DEVICE]]]
// It makes CHUNKS (64) volumes of SIDE^3 (256) voxels of 16 bits, waves with four bits of noise, and codes them with
// the fast profile, lossless and with quality 70. tvl_decode_volumes then decodes all of them four times with one
// handle, to device memory and to host memory. It prints GB/s of voxels for each run; the first run includes all setup.
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

int main(int count, char** arguments) {
  const std::size_t chunks = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 64;
  const std::size_t side = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 256;
  const int device = count > 3 ? std::atoi(arguments[3]) : 0;
  const std::vector<std::uint16_t> voxels = chunk_of(side);
  const std::size_t bytes = 2 * voxels.size();
  tvl_volume volume;
  tvl_volume_init(&volume, sizeof volume);
  volume.type = TVL_U16;
  volume.width = volume.height = static_cast<std::int32_t>(side);
  volume.slices = side;
  const std::shared_ptr<const trivelet::Backend> backend = trivelet::gpu::cuda_backend(device, 0, true);
  const std::shared_ptr<std::byte> on_device = backend->allocate(chunks * bytes);
  std::vector<std::byte> on_host(chunks * bytes), one(bytes);
  for (const double quality : {-1.0, 70.0}) {
    tvl_encoder* encoder = tvl_encoder_new();
    tvl_volume_params params;
    tvl_volume_params_init(&params, sizeof params);
    params.transform = TVL_TRANSFORM_WAVELET;
    params.profile = TVL_PROFILE_FAST;
    params.quality = quality;
    std::vector<std::byte> stream(2 * bytes + 65536);
    std::uint64_t size = 0;
    const tvl_voxels from{const_cast<std::uint16_t*>(voxels.data()), 0, 0, 0};
    check(tvl_encode_volume(encoder, &volume, &params, &from, stream.data(), stream.size(), &size),
          tvl_encoder_error(encoder));
    tvl_encoder_free(encoder);
    for (const bool stays : {true, false}) {
      tvl_decoder* decoder = tvl_decoder_new();
      if (stays) check(tvl_decoder_set_memory(decoder, device, nullptr), tvl_decoder_error(decoder));
      tvl_batch_params batch;
      tvl_batch_params_init(&batch, sizeof batch);
      batch.device = device;
      std::vector<tvl_volume_job> jobs(chunks);
      for (std::size_t i = 0; i < chunks; ++i) {
        tvl_volume_job_init(&jobs[i], sizeof jobs[i]);
        jobs[i].stream = stream.data();
        jobs[i].size = size;
        jobs[i].voxels = (stays ? on_device.get() : on_host.data()) + i * bytes;
        jobs[i].capacity = bytes;
      }
      std::printf("%s, %.2f bits per voxel, to the %s:", quality < 0 ? "lossless" : "quality 70",
                  8.0 * static_cast<double>(size) / static_cast<double>(voxels.size()), stays ? "GPU" : "host");
      for (int turn = 0; turn < 4; ++turn) {
        const auto begin = std::chrono::steady_clock::now();
        check(tvl_decode_volumes(decoder, jobs.data(), chunks, &batch), tvl_decoder_error(decoder));
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        std::printf(" %.2f", 1e-9 * static_cast<double>(chunks * bytes) / seconds.count());
      }
      if (quality < 0) {
        std::memcpy(one.data(), on_host.data() + (chunks - 1) * bytes, bytes);
        if (stays) {
          const auto pitch = static_cast<std::ptrdiff_t>(bytes);
          trivelet::gpu::copy_from_device(device, {one.data(), pitch}, {on_device.get() + (chunks - 1) * bytes, pitch},
                                          bytes, 1, nullptr);
          trivelet::gpu::wait_for(device, nullptr);
        }
        std::printf("%s", std::memcmp(one.data(), voxels.data(), bytes) == 0 ? ", the last came back" : ", WRONG");
      }
      std::printf("\n");
      std::fflush(stdout);
      tvl_decoder_free(decoder);
    }
  }
}
