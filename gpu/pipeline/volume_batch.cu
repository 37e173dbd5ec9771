// Batches of volumes: GOPs stay on the device. A kernel looks up the voxel of each of their numbers, and when all GOPs
// are there another one computes the hashes.
//
// XXH64 is a chain of dependent multiplications, 30 cycles for 32 bytes, so that a GOP of 8 MB takes 4 ms. A block has
// one GOP each, and those of 64 streams run in parallel. It reads voxels and looks up the numbers again, so that no
// samples need be kept until then, and the map is checked, too. One warp has the chain, the others look up its next
// input.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "codec/base/fuzzing.h"
#include "codec/base/xxh64.h"
#include "codec/volume/volume_request.h"
#include "gpu/device/device.h"
#include "gpu/transform/dwt.cuh"
#include "trivelet/codec.h"
#include "trivelet/cuda.h"
#include "trivelet/kept_decoders.h"

namespace trivelet::gpu {

/// Voxels of a GOP and the expected hash of its samples.
struct HashCheck {
  const void* voxels;
  std::uint64_t count;
  const std::uint16_t* number_of;  ///< by the voxel's bits
  std::uint64_t hash;
  std::uint32_t* doubt;
  std::uint32_t voxel_bytes, sample_bytes;
};

/// What a map says, both ways: on the device, number by number and voxel by voxel.
struct BatchMap {
  VolumeMap map;
  std::uint32_t last = 0;
  DeviceBuffer<std::uint16_t> voxel_of, number_of;
};

namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kMapNumbers = 65536;  // that 16 bits can hold
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

/// A number, by its place among the voxels.
template <class V>
__device__ __forceinline__ u64 number_at(const HashCheck& c, u64 i) {
  return c.number_of[static_cast<const V*>(c.voxels)[i]];
}
/// Eight bytes of samples.
template <class S, class V>
__device__ __forceinline__ u64 samples_at(const HashCheck& c, u64 word) {
  constexpr u64 kNumbers = 8 / sizeof(S);
  u64 bytes = 0;
  TRIVELET_UNROLL
  for (u64 j = 0; j < kNumbers; ++j) bytes |= number_at<V>(c, word * kNumbers + j) << (8 * sizeof(S) * j);
  return bytes;
}

constexpr int kLookUpWarps = 4;
constexpr int kHashThreads = 32 * (1 + kLookUpWarps);
constexpr int kThreadWords = 4;  // that a thread looks up at a time
constexpr int kHashedWords = 32 * kLookUpWarps * kThreadWords;

/// The four lanes of XXH64 after the whole 32-byte units; `lanes` is shared memory.
template <class S, class V>
__device__ void hash_lanes(const HashCheck& c, u64* lanes) {
  __shared__ u64 products[2][kHashedWords];  // of the current words, and of the next
  const u64 whole = c.count * sizeof(S) / 32 * 4;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const auto look_up = [&](u64 first) {
    u64* to = products[first / kHashedWords % 2];
    TRIVELET_UNROLL
    for (int i = 0; i < kThreadWords; ++i) {
      const int n = 32 * (kLookUpWarps * i + warp - 1) + lane;
      const u64 word = first + static_cast<u64>(n);
      to[n] = word < whole ? samples_at<S, V>(c, word) * xxh64::kPrime2 : 0;
    }
  };
  u64 state = xxh64::start(lane & 3);
  if (warp > 0) look_up(0);
  __syncthreads();
  for (u64 first = 0; first < whole; first += kHashedWords) {
    if (warp > 0) {
      look_up(first + kHashedWords);
    } else if (lane < 4) {
      const u64* from = products[first / kHashedWords % 2];
      const int n = static_cast<int>(whole - first < kHashedWords ? whole - first : kHashedWords);
      TRIVELET_UNROLL_BY(8)
      for (int i = lane; i < n; i += 4) state = xxh64::mix_product(state, from[i]);
    }
    __syncthreads();
  }
  if (threadIdx.x < 4) lanes[threadIdx.x] = state;
  __syncthreads();
}

/// A block for each.
__global__ void __launch_bounds__(kHashThreads) hash_kernel(const HashCheck* checks) {
  __shared__ u64 lanes[4];
  const HashCheck c = checks[blockIdx.x];
  if (c.sample_bytes == 1)
    c.voxel_bytes == 1 ? hash_lanes<u8, u8>(c, lanes) : hash_lanes<u8, u16>(c, lanes);
  else
    c.voxel_bytes == 1 ? hash_lanes<u16, u8>(c, lanes) : hash_lanes<u16, u16>(c, lanes);
  if (threadIdx.x != 0) return;
  const u64 bytes = c.count * c.sample_bytes;
  u8 rest[32];
  const int left = static_cast<int>(bytes % 32 / c.sample_bytes);
  for (int i = 0; i < left; ++i) {
    const u64 at = c.count - static_cast<u64>(left - i);
    const u64 number = c.voxel_bytes == 1 ? number_at<u8>(c, at) : number_at<u16>(c, at);
    for (u32 j = 0; j < c.sample_bytes; ++j)
      rest[static_cast<u32>(i) * c.sample_bytes + j] = static_cast<u8>(number >> 8 * j);
  }
  if (xxh64::digest(lanes, bytes, rest) != c.hash) atomicOr(c.doubt, 1u);
}

/// Null if voxels are wider, or if two numbers stand for the same one: such a map cannot be inverted.
std::shared_ptr<const BatchMap> tables_of(const VolumeMap& map) {
  const std::size_t wide = map.format.bytes();
  if (wide > 2 || map.last >= kMapNumbers) return nullptr;
  VideoInfo info;
  info.format = map.pixel_format();
  info.width = info.height = info.format.bytes_per_sample() == 1 ? 16 : 256;
  Gop numbers(info, 1);
  numbers.set_frames(1);
  const std::size_t count = static_cast<std::size_t>(info.width) * static_cast<std::size_t>(info.height);
  const MutableVolumeView plane = numbers.plane(0);
  for (std::size_t n = 0; n < count; ++n)
    std::memcpy(
        plane.row(0, static_cast<int>(n) / info.width) + static_cast<int>(n) % info.width * plane.bytes_per_sample, &n,
        static_cast<std::size_t>(plane.bytes_per_sample));  // the first bytes are the least significant
  std::vector<std::byte> stored(count * wide);
  VolumeMapper(map).to_stored(numbers, 0, stored.data());
  std::vector<u16> voxel_of(kMapNumbers), number_of(kMapNumbers);
  std::vector<bool> seen(kMapNumbers);
  for (std::size_t n = 0; n < count; ++n) {
    u16 voxel = 0;
    std::memcpy(&voxel, &stored[n * wide], wide);
    voxel_of[n] = voxel;
    if (n > map.last) continue;
    if (seen[voxel]) return nullptr;
    seen[voxel] = true;
    number_of[voxel] = static_cast<u16>(n);
  }
  auto made = std::make_shared<BatchMap>();
  made->map = map;
  made->last = static_cast<u32>(map.last);
  const Stream stream;
  for (const auto& [to, from] : {std::pair(&made->voxel_of, &voxel_of), std::pair(&made->number_of, &number_of)}) {
    *to = DeviceBuffer<u16>(kMapNumbers);
    copy(to->data(), from->data(), kMapNumbers, cudaMemcpyHostToDevice, stream);
  }
  stream.synchronize();
  return made;
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

/// Unused things of a kind.
template <class T>
class SpareParts {
 public:
  std::unique_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) return std::make_unique<T>();
    std::unique_ptr<T> one = std::move(unused_.back());
    unused_.pop_back();
    return one;
  }
  void give_back(std::unique_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    unused_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> unused_;
};

struct VolumeBatch::State {
  int device;
  std::shared_ptr<const Backend> backend;
  Stream stream;
  SpareParts<BatchLane> lanes;
  SpareParts<BatchJob> memory;
  std::mutex mutex;  ///< of the following
  std::map<std::size_t, std::unique_ptr<BatchJob>> jobs;
  std::vector<HashCheck> checks;
  std::vector<std::shared_ptr<const BatchMap>> maps;  ///< that which was used last at the end

  State(int number, std::size_t max_memory)
      : device(number), backend(keep_decoders(cuda_backend(number, max_memory, true))) {}

  std::shared_ptr<const BatchMap> map_for(const VolumeMap& map);
  bool decode(const PlainVolume& plain, ByteSource& source, void* voxels, BatchJob& job, std::vector<HashCheck>& found);
};

// Chunks of an array have the same map, or one of a few.
std::shared_ptr<const BatchMap> VolumeBatch::State::map_for(const VolumeMap& map) {
  constexpr std::size_t kMostMaps = 64;  // of 256 KiB
  {
    const std::lock_guard lock(mutex);
    const auto found = std::find_if(maps.begin(), maps.end(), [&](const auto& m) { return m->map == map; });
    if (found != maps.end()) {
      std::rotate(found, std::next(found), maps.end());
      return maps.back();
    }
  }
  std::shared_ptr<const BatchMap> made = tables_of(map);
  if (!made) return made;
  std::shared_ptr<const BatchMap> oldest;  // released without the lock
  const std::lock_guard lock(mutex);
  if (maps.size() == kMostMaps) {
    oldest = std::move(maps.front());
    maps.erase(maps.begin());
  }
  maps.push_back(made);
  return made;
}

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
      found.push_back({to, count, tables.number_of.data(), *hash, job.doubt.data(), wide, narrow});
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
    std::shared_ptr<const BatchMap> map = plain ? s.map_for(plain->map) : nullptr;
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
    launch("hash_kernel", hash_kernel, dim3(static_cast<unsigned>(checks.size())), dim3(kHashThreads), 0,
           s.stream.get(), static_cast<const HashCheck*>(on_device.data()));
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
