// Batches of volumes: GOPs stay on the device. A kernel looks up the voxel of each of their numbers, and when all GOPs
// are there another one computes the hashes.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "codec/base/fuzzing.h"
#include "codec/volume/volume_request.h"
#include "gpu/device/device.h"
#include "gpu/pipeline/volume_maps.h"
#include "gpu/transform/dwt.cuh"
#include "trivelet/codec.h"
#include "trivelet/cuda.h"
#include "trivelet/kept_decoders.h"

namespace trivelet::gpu {

namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr int kMapThreads = 256;
constexpr u64 kMostMapBlocks = 4096;  // enough for a device; each continues after them

/// Numbers of one byte or two to voxels of one byte or two. A number above `last` is not in the map: losses make such
/// numbers, but if there is a hash it cannot be recomputed from the voxels, and `doubt` is not null.
template <class S, class V>
__global__ void __launch_bounds__(kMapThreads)
    map_kernel(const S* samples, V* voxels, u64 count, const u16* voxel_of, u32 last, u32* doubt) {
  const u64 step = static_cast<u64>(gridDim.x) * kMapThreads;
  bool beyond = false;
  for (u64 i = static_cast<u64>(blockIdx.x) * kMapThreads + threadIdx.x; i < count; i += step) {
    const u32 number = samples[i];
    beyond = beyond || number > last;
    voxels[i] = static_cast<V>(voxel_of[number]);
  }
  if (beyond && doubt) atomicOr(doubt, 1u);
}

}  // namespace

/// What a thread decodes with.
struct BatchLane {
  Stream stream;
  std::optional<Gop> gop;  ///< on the device

  /// Of the decoder's kind of GOPs.
  Gop& gop_for(const Decoder& decoder) {
    const VideoInfo& info = decoder.output();
    const auto fits = [&] {
      if (!gop || gop->capacity() != decoder.gop_frames() || gop->components() != 1) return false;
      const VolumeView v = std::as_const(*gop).plane(0);
      return v.shape.width == info.width && v.shape.height == info.height &&
             v.bytes_per_sample == info.format.bytes_per_sample();
    };
    if (!fits()) {
      gop.reset();
      gop = decoder.make_gop();
    }
    return *gop;
  }
};

/// Of a job: its map, and a word on the device that is not 0 when there is doubt.
struct BatchJob {
  std::shared_ptr<const BatchMap> map;
  DeviceBuffer<u32> doubt{1};
};

struct VolumeBatch::State {
  int device;
  std::shared_ptr<const Backend> backend;
  Stream stream;
  SpareParts<BatchLane> lanes;
  SpareParts<BatchJob> memory;
  BatchMaps maps;
  std::mutex mutex;  ///< of the following
  std::map<std::size_t, std::unique_ptr<BatchJob>> jobs;
  std::vector<HashCheck> checks;

  State(int number, std::size_t max_memory)
      : device(number), backend(keep_decoders(cuda_backend(number, max_memory, true))) {}

  bool decode(const PlainVolume& plain, ByteSource& source, void* voxels, BatchJob& job, std::vector<HashCheck>& found);
};

VolumeBatch::VolumeBatch(int number, std::size_t max_memory) {
  check(cudaSetDevice(number), "cudaSetDevice");
  state_ = std::make_unique<State>(number, max_memory);
}
VolumeBatch::~VolumeBatch() { forget(cudaSetDevice(state_->device)); }

// False: there are other slices than the volume has.
bool VolumeBatch::State::decode(const PlainVolume& plain, ByteSource& source, void* voxels, BatchJob& job,
                                std::vector<HashCheck>& found) {
  DecoderParams decoding = plain.decoding;
  decoding.verify_hash = false;
  Decoder decoder(source, decoding, backend.get());
  std::unique_ptr<BatchLane> lane = lanes.take();
  const Stream& on = lane->stream;
  const BatchMap& tables = *job.map;
  check(cudaMemsetAsync(job.doubt.data(), 0, sizeof(u32), on.get()), "cudaMemsetAsync");
  Gop& gop = lane->gop_for(decoder);
  const u64 slice = static_cast<u64>(plain.output.width) * static_cast<u64>(plain.output.height);
  const u32 wide = static_cast<u32>(plain.map.format.bytes());
  u64 slices = 0;
  for (std::size_t n = 0; decoder.exchange(gop); ++n) {
    const auto frames = static_cast<u64>(gop.frames());
    if (n == plain.gops.size() || plain.gops[n].frames != gop.frames()) return false;
    if (slices + frames > plain.output.all_slices()) return false;
    const std::optional<u64> hash = plain.gops[n].hash;
    const VolumeView from = std::as_const(gop).plane(0);
    const auto narrow = static_cast<u32>(from.bytes_per_sample);
    void* const to = static_cast<std::byte*>(voxels) + slices * slice * wide;
    const u64 count = frames * slice;
    const dim3 grid(static_cast<unsigned>(std::min((count + kMapThreads - 1) / kMapThreads, kMostMapBlocks)));
    const auto map = [&](auto s, auto v) {
      using S = decltype(s);
      using V = decltype(v);
      launch("map_kernel", map_kernel<S, V>, grid, dim3(kMapThreads), 0, on.get(),
             reinterpret_cast<const S*>(from.data), static_cast<V*>(to), count, tables.voxel_of.data(), tables.last,
             hash ? job.doubt.data() : nullptr);
    };
    narrow == 1 ? wide == 1 ? map(u8{}, u8{}) : map(u8{}, u16{}) : wide == 1 ? map(u16{}, u8{}) : map(u16{}, u16{});
    if (hash && !checks_are_believed)
      found.push_back({to, count, tables.number_of.data(), *hash, job.doubt.data(), nullptr, wide, narrow});
    slices += frames;
    on.synchronize();  // the next GOP replaces this one
  }
  lanes.give_back(std::move(lane));
  return slices == plain.output.all_slices();
}

std::uint64_t VolumeBatch::decode(std::size_t job, ByteSource& source, const VolumeDecoderParams& params, void* voxels,
                                  std::size_t capacity) {
  State& s = *state_;
  check(cudaSetDevice(s.device), "cudaSetDevice");
  std::unique_ptr<BatchJob> memory;
  std::vector<HashCheck> found;
  std::uint64_t bytes = 0;
  bool done = false;
  try {
    const std::optional<PlainVolume> plain = plain_volume(source, params);
    std::shared_ptr<const BatchMap> map = plain ? s.maps.find(plain->map) : nullptr;
    bytes = map ? plain->output.bytes() : 0;
    if (bytes == 0 || bytes > capacity) return 0;
    if (reinterpret_cast<std::uintptr_t>(voxels) % plain->map.format.bytes() != 0) return 0;
    memory = s.memory.take();
    memory->map = std::move(map);
    done = s.decode(*plain, source, voxels, *memory, found);
  } catch (const Error&) {  // VolumeDecoder reports the error
  }
  if (!memory) return 0;
  if (!done) {
    memory->map.reset();
    s.memory.give_back(std::move(memory));
    return 0;
  }
  const std::lock_guard lock(s.mutex);
  s.checks.insert(s.checks.end(), found.begin(), found.end());
  s.jobs[job] = std::move(memory);
  return bytes;
}

std::vector<std::size_t> VolumeBatch::finish() {
  State& s = *state_;
  check(cudaSetDevice(s.device), "cudaSetDevice");
  const std::vector<HashCheck> checks = std::exchange(s.checks, {});
  auto jobs = std::exchange(s.jobs, {});
  const DeviceBuffer<HashCheck> on_device(checks.size());
  if (!checks.empty()) {
    copy(on_device.data(), checks.data(), checks.size(), cudaMemcpyHostToDevice, s.stream);
    hash_gops(on_device.data(), checks.size(), s.stream);
  }
  std::vector<u32> doubts(jobs.size());
  std::size_t i = 0;
  for (const auto& [job, memory] : jobs) copy(&doubts[i++], memory->doubt.data(), 1, cudaMemcpyDeviceToHost, s.stream);
  s.stream.synchronize();
  check(cudaGetLastError(), "a kernel of the batch");
  std::vector<std::size_t> doubtful;
  i = 0;
  for (auto& [job, memory] : jobs) {
    if (doubts[i++] != 0) doubtful.push_back(job);
    memory->map.reset();
    s.memory.give_back(std::move(memory));
  }
  return doubtful;
}

}  // namespace trivelet::gpu
