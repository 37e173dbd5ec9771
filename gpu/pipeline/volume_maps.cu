// Tables of maps, and hashes of GOPs of voxels.
//
// XXH64 is a chain of dependent multiplications, 30 cycles for 32 bytes, so that a GOP of 8 MB takes 4 ms. A block has
// one GOP each, and those of 64 streams run in parallel. It reads voxels and looks up the numbers again, so that no
// samples need be kept until then, and the map is checked, too. One warp has the chain, the others look up its next
// input.
#include "gpu/pipeline/volume_maps.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "codec/base/xxh64.h"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kMapNumbers = 65536;  // that 16 bits can hold

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
  const u64 digest = xxh64::digest(lanes, bytes, rest);
  if (c.digest)
    *c.digest = digest;
  else if (digest != c.hash)
    atomicOr(c.doubt, 1u);
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

void hash_gops(const HashCheck* checks, std::size_t count, const Stream& stream) {
  if (count == 0) return;
  launch("hash_kernel", hash_kernel, dim3(static_cast<unsigned>(count)), dim3(kHashThreads), 0, stream.get(), checks);
}

std::shared_ptr<const BatchMap> BatchMaps::find(const VolumeMap& map) {
  constexpr std::size_t kMostMaps = 64;  // of 256 KiB
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(maps_.begin(), maps_.end(), [&](const auto& m) { return m->map == map; });
    if (found != maps_.end()) {
      std::rotate(found, std::next(found), maps_.end());
      return maps_.back();
    }
  }
  std::shared_ptr<const BatchMap> made = tables_of(map);
  if (!made) return made;
  std::shared_ptr<const BatchMap> oldest;  // released without the lock
  const std::lock_guard lock(mutex_);
  if (maps_.size() == kMostMaps) {
    oldest = std::move(maps_.front());
    maps_.erase(maps_.begin());
  }
  maps_.push_back(made);
  return made;
}

}  // namespace trivelet::gpu
