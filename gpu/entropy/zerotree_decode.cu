// The decoder of the fast zerotree coder. A thread block has one segment, resolution after resolution (the lowest ones
// of a code block together, since their root groups hang in each other's temporal trees), plane after plane. Within a
// plane the order of the sub-streams lets every count be known before its bits are read:
//
//   A or B, D   which groups are active          R, F   refinement, flags          S, P   significance          N signs
//
// Each of these is a step: warps count the bits of their tiles, prefix sums over the tiles give the positions, and
// every lane takes its word's bits. What the next resolution must know of this one is kept per plane (history). Reads
// never leave the input, whatever the bits say; a part that does not end where it should is reported and its block left
// out. What a segment keeps of every word between the steps is in shared memory (55 KB for 96 tiles), if it fits.
// Bound: barriers and loads of the largest segments; blocks of several GOPs fill the gaps. `restore` then writes the
// significant coefficients into zeroed memory: 2 or 4 bytes per sample plus the planes once.
#include <algorithm>

#include "codec/transform/quantiser.h"
#include "gpu/entropy/zerotree.h"
#include "gpu/entropy/zerotree_activity.cuh"
#include "gpu/entropy/zerotree_segment.cuh"
#include "gpu/entropy/zerotree_significance.cuh"

namespace trivelet::gpu {

namespace {

/// Decodes planes from the top to the lowest received one. A part that does not end at its length ends the segment.
__device__ __forceinline__ void decode_planes(DecodedSegment& s, const SegmentInput& input) {
  ActivityDecoder activity{s};
  SignificanceDecoder significance{s};
  const PartInput* part = s.a.part + static_cast<std::size_t>(s.segment) * static_cast<std::size_t>(s.a.t.layers);
  int layer = 0;
  s.from = part->offset * 8;
  for (int p = input.top - 1; p >= static_cast<int>(input.low); --p) {
    if (static_cast<int>(part[layer].low) > p) {
      while (static_cast<int>(part[layer].low) > p) ++layer;
      s.from = part[layer].offset * 8;
      s.position = 0;
    }
    activity.take(p, p == input.top - 1);
    significance.take(p);

    const u32 used = (s.position + 7) / 8, size = part[layer].size;
    const bool ends = static_cast<int>(part[layer].low) == p;
    const bool padded = ends && used == size && s.position % 8 != 0 &&
                        (peek(s.a, s.from + s.position) & ((1u << (8 - s.position % 8)) - 1)) != 0;
    if (used > size || (ends && used != size) || padded) {
      if (s.thread() == 0) {
        s.a.error[s.block].plane = static_cast<u32>(p);
        s.a.error[s.block].used = used;
        s.a.error[s.block].size = size;
        s.a.error[s.block].segment_and_one = s.segment + 1;
      }
      return;
    }
  }
}

/// Decodes a segment. All threads of the team call it with the same arguments. `shared`: memory for its words, or null.
__device__ void decode_segment(const DecodeArgs& a, u32 segment, const Sums& sums, u64* shared, const Team& team) {
  const DeviceSegment at = a.t.segments[segment];
  const SegmentInput input = a.segment[segment];
  if (input.low >= input.top) return;
  // Another segment of the block may fail at this moment, so one thread reads the state for all.
  if (team.warp == 0 && team.lane == 0)
    sums.total() = a.error[a.t.root_block[a.t.levels[at.level].component] + at.block].segment_and_one;
  __syncthreads();
  const bool given_up = sums.total() != 0;
  __syncthreads();
  if (given_up) return;

  DecodedSegment s(a, segment, at, sums, shared, team);
  s.clear();
  decode_planes(s, input);
  __syncthreads();
  if (!shared) return;
  for (u32 w = s.thread(); w < s.word_count(); w += s.threads()) a.sig[s.own + w] = s.state.sig[w];
  __syncthreads();
}

/// The lowest bands of a code block, family by family.
__global__ void __launch_bounds__(32 * kMostWarps) root_kernel(DecodeArgs a, int most_tiles, bool in_shared) {
  const Sums sums{dynamic_shared<u64>()};
  u64* const words = in_shared ? sums.memory + sums_bytes(most_tiles) / 8 : nullptr;
  const Team team{static_cast<int>(blockDim.x / 32), static_cast<int>(threadIdx.x / 32),
                  static_cast<int>(threadIdx.x % 32)};
  u32 c = 0;
  while (blockIdx.x >= a.t.root_block[c + 1]) ++c;
  const u32 block = blockIdx.x - a.t.root_block[c];
  for (int b = 0; b < a.t.families; ++b) {
    const DeviceLevel& l = a.t.levels[a.t.roots[c * static_cast<u32>(a.t.families) + static_cast<u32>(b)]];
    if (l.words > 0) decode_segment(a, l.first_segment + block, sums, words, team);
  }
}

/// Warps for a segment of this many tiles, its own or of the level above.
__host__ __device__ inline int warps_for(int tiles) {
  const int warps = (tiles + kTilesPerWarp - 1) / kTilesPerWarp;
  return warps < kMostWarps ? warps : kMostWarps;
}

__global__ void __launch_bounds__(32 * kMostWarps)
    segment_kernel(DecodeArgs a, u32 first, int most_tiles, bool in_shared) {
  const DeviceLevel& l = a.t.levels[a.t.segments[first + blockIdx.x].level];
  const int parent_tiles = a.t.levels[l.up].tiles;
  int warps = warps_for(l.tiles > parent_tiles ? l.tiles : parent_tiles);
  warps = warps < 1 ? 1 : warps;
  const Team team{warps, static_cast<int>(threadIdx.x / 32), static_cast<int>(threadIdx.x % 32)};
  if (team.warp >= warps) return;  // barriers do not wait for threads that have left
  const Sums sums{dynamic_shared<u64>()};
  decode_segment(a, first + blockIdx.x, sums, in_shared ? sums.memory + sums_bytes(most_tiles) / 8 : nullptr, team);
}

// ----------------------------------------------------------------------------------------------------------- restore

constexpr unsigned kRestoreWarps = 4;

__device__ __forceinline__ float restored(u32 m, bool negative, float step, float offset, i32, const float*) {
  const float v = (static_cast<float>(m) + offset) * step;
  return negative ? -v : v;
}
template <class V>
__device__ __forceinline__ V restored(u32 m, bool negative, float, float, i32 offset, const V*) {
  const i32 v = static_cast<i32>(m) + offset;
  return static_cast<V>(negative ? -v : v);
}

template <class V>
__global__ void __launch_bounds__(kRestoreWarps * 32)
    restore_kernel(DecodeArgs a, V* coefficients, const float* steps, int centroid) {
  const u32 tile = blockIdx.x * kRestoreWarps + threadIdx.x / 32;
  if (tile >= a.t.tile_count) return;
  const int first = a.first[tile];
  if (first == kNever) return;
  const DeviceTile at = a.t.tiles[tile];
  const DeviceLevel& l = a.t.levels[at.level];
  if (!l.wanted || a.error[a.t.root_block[l.component] + at.block].segment_and_one) return;
  const int lane = static_cast<int>(threadIdx.x % 32), j = static_cast<int>(at.first) + lane;
  const bool inside = j < l.all_words;
  const int o = inside ? j / l.words : 0, i = inside ? j - o * l.words : 0;
  const u32 word = tile * kTileWords + static_cast<u32>(lane);
  const u64 sig = inside ? a.sig[word] : 0;
  const u64 sign = sig ? a.sign[word] : 0;
  const DeviceBand band = a.t.bands[l.band + static_cast<u32>(o)];
  const WordBase base = a.t.base[l.base + static_cast<u32>(i)];
  const int by = static_cast<int>(at.block) / l.columns, bx = static_cast<int>(at.block) % l.columns;
  const u64 origin = band.origin + base.t * band.frame_stride +
                     static_cast<u64>(by * l.side + base.y) * band.row_stride + static_cast<u64>(bx * l.side + base.x);
  const float step = steps ? steps[l.band + static_cast<u32>(o)] : 1.0f;
  const int low = a.segment[l.first_segment + at.block].low;
  const float offset = reconstruction_offset(centroid, low);
  const i32 integer_offset = integer_reconstruction_offset(centroid, low);
  const WordBase s0 = a.t.slot[l.slot + static_cast<u32>(lane)], s1 = a.t.slot[l.slot + 32 + static_cast<u32>(lane)];
  const std::size_t planes_at = plane_at(tile * kTileWords, a.planes, 0);
  for (u32 pending = __ballot_sync(kAllLanes, sig != 0); pending; pending &= pending - 1) {
    const int w = __ffs(static_cast<int>(pending)) - 1;
    const u64 to = __shfl_sync(kAllLanes, origin, w), mask = __shfl_sync(kAllLanes, sig, w);
    const u64 frame = __shfl_sync(kAllLanes, band.frame_stride, w), negative = __shfl_sync(kAllLanes, sign, w);
    const u32 row = __shfl_sync(kAllLanes, band.row_stride, w);
    const float s = __shfl_sync(kAllLanes, step, w);
    u32 m0 = 0, m1 = 0;
    for (int p = first; p >= low; --p) {
      const u64 bits = a.plane[planes_at + static_cast<std::size_t>(p) * kTileWords + static_cast<std::size_t>(w)];
      m0 |= static_cast<u32>(bits >> lane & 1) << p;
      m1 |= static_cast<u32>(bits >> (lane + 32) & 1) << p;
    }
    if (mask >> lane & 1)
      coefficients[to + s0.t * frame + static_cast<u64>(s0.y) * row + s0.x] =
          restored(m0, negative >> lane & 1, s, offset, integer_offset, static_cast<const V*>(nullptr));
    if (mask >> (lane + 32) & 1)
      coefficients[to + s1.t * frame + static_cast<u64>(s1.y) * row + s1.x] =
          restored(m1, negative >> (lane + 32) & 1, s, offset, integer_offset, static_cast<const V*>(nullptr));
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------- launchers

ZerotreeDecoder::ZerotreeDecoder(const TreePlan& plan, FastMode mode, int planes)
    : plan_(&plan), staged_(mode == FastMode::kStaged), planes_(planes) {
  require(planes >= 1 && planes <= 30, ErrorKind::kBadArgument, std::to_string(planes) + " bit planes; must be 1..30");
  const std::size_t words = static_cast<std::size_t>(plan.tiles()) * kTileWords, p = static_cast<std::size_t>(planes);
  // Most shared memory of a block on this device, and not so much that blocks cannot fill a multiprocessor.
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const auto attribute = [&](cudaDeviceAttr which) {
    int v = 0;
    check(cudaDeviceGetAttribute(&v, which, device), "cudaDeviceGetAttribute");
    return static_cast<u32>(v);
  };
  const u32 blocks = std::max(1u, attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / (32 * kMostWarps));
  shared_bytes_ = std::min(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
                           attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / blocks -
                               attribute(cudaDevAttrReservedSharedMemoryPerBlock));
  const int most = static_cast<int>(std::max(shared_bytes_, 48u << 10));  // available on every device, for the sums
  check(cudaFuncSetAttribute(root_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "cudaFuncSetAttribute");
  check(cudaFuncSetAttribute(segment_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
        "cudaFuncSetAttribute");
  planes_memory_ = DeviceBuffer<u64>(words * p);
  history_ = DeviceBuffer<u32>(words * p);
  sign_ = DeviceBuffer<u64>(words);
  sig_ = DeviceBuffer<u64>(words);
  act_ = DeviceBuffer<u16>(words);
  seen_ = DeviceBuffer<u16>(words);
  open_ = DeviceBuffer<u16>(words);
  raw_ = DeviceBuffer<u16>(words);
  single_ = DeviceBuffer<u16>(words);
  first_ = DeviceBuffer<u8>(plan.tiles());
  root_planes_ = DeviceBuffer<u8>((words - plan.first_root_word()) * 16);
  asked_from_ = DeviceBuffer<u8>((words - plan.first_root_word()) * 16);
  segments_ = DeviceBuffer<SegmentInput>(plan.segments());
  parts_ = DeviceBuffer<PartInput>(plan.parts());
  errors_ = DeviceBuffer<BlockError>(plan.blocks());
}

std::size_t ZerotreeDecoder::device_bytes(const TreePlan& plan, int planes) {
  const std::size_t words = static_cast<std::size_t>(plan.tiles()) * kTileWords, p = static_cast<std::size_t>(planes);
  return words * (p * 12 + 16 + 10) + (words - plan.first_root_word()) * 32 + plan.tiles() +
         plan.segments() * sizeof(SegmentInput) + plan.parts() * sizeof(PartInput) + plan.blocks() * sizeof(BlockError);
}
std::size_t ZerotreeDecoder::device_bytes() const { return device_bytes(*plan_, planes_); }

ZerotreeDecodeArgs ZerotreeDecoder::args() const {
  ZerotreeDecodeArgs a{};
  a.t = plan_->tables();
  a.planes = planes_;
  a.staged = staged_;
  a.plane = planes_memory_.data();
  a.history = history_.data();
  a.sign = sign_.data();
  a.sig = sig_.data();
  a.act = act_.data();
  a.seen = seen_.data();
  a.open = open_.data();
  a.raw = raw_.data();
  a.single = single_.data();
  a.first = first_.data();
  a.root_planes = root_planes_.data();
  a.asked_from = asked_from_.data();
  a.first_root_word = plan_->first_root_word();
  a.segment = segments_.data();
  a.part = parts_.data();
  a.error = errors_.data();
  return a;
}

void ZerotreeDecoder::decode(const std::uint8_t* bytes, std::size_t size, const Stream& stream) {
  ZerotreeDecodeArgs a = args();
  a.bytes = reinterpret_cast<const u32*>(bytes);
  a.last_word = size / 4;  // with 16 bytes after the parts, two more can be read
  check(cudaMemsetAsync(first_.data(), kNever, first_.size(), stream.get()), "cudaMemsetAsync");
  check(cudaMemsetAsync(errors_.data(), 0, errors_.size() * sizeof(BlockError), stream.get()), "cudaMemsetAsync");
  for (int k = 0; k < plan_->resolutions(); ++k) {
    const int most = plan_->most_tiles(k);
    u32 words = 0;
    for (const DeviceLevel& l : plan_->levels())
      if (l.k == k)
        words =
            std::max(words, words_bytes(l.tiles, k > 0 ? plan_->levels()[static_cast<std::size_t>(l.up)].tiles : 0));
    const bool in_shared = sums_bytes(most) + words <= shared_bytes_;
    const u32 shared = sums_bytes(most) + (in_shared ? words : 0);
    const dim3 threads(32 * static_cast<unsigned>(warps_for(most)));
    if (k == 0) {
      launch("root_kernel", root_kernel, dim3(plan_->blocks()), threads, shared, stream.get(), a, most, in_shared);
      continue;
    }
    const u32 first = plan_->first_segment(k), end = plan_->first_segment(k + 1);
    if (first < end)
      launch("segment_kernel", segment_kernel, dim3(end - first), threads, shared, stream.get(), a, first, most,
             in_shared);
  }
}

template <class V>
void ZerotreeDecoder::restore(V* coefficients, const float* steps, int centroid, const Stream& stream) {
  launch("restore_kernel", restore_kernel<V>, dim3((plan_->tiles() + kRestoreWarps - 1) / kRestoreWarps),
         dim3(32 * kRestoreWarps), 0, stream.get(), args(), coefficients, steps, centroid);
}

template void ZerotreeDecoder::restore(float*, const float*, int, const Stream&);
template void ZerotreeDecoder::restore(std::int16_t*, const float*, int, const Stream&);
template void ZerotreeDecoder::restore(std::int32_t*, const float*, int, const Stream&);

}  // namespace trivelet::gpu
