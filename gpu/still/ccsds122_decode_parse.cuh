// First pass of the CCSDS 122.0 decoder: the codes of segments to bit planes. Part of ccsds122_decode.cu.
#pragma once

#include "gpu/still/ccsds122_decode_words.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_decode;
using ccsds122::Damage;
using ccsds122::ParseEnd;

constexpr int kParseWarps = 4;

/// 32 blocks in shared memory.
struct BlockGroup {
  std::uint64_t significant[32], plane[32], sign[32];
  std::uint8_t families[32];
  std::uint32_t options[2];
};

/// A segment being parsed; the fields are the same in all lanes, except that `bits` is the first lane's.
struct SegmentParser {
  const SegmentArrays& a;
  const ParseJob& job;
  const ParseTables& tables;
  const PlaneMask& masks;  // of the current plane, in shared memory
  BlockGroup& group;
  BitsIn bits;
  int lane;
  ParseResult result{};

  __device__ __forceinline__ std::uint64_t agree_on_position() { return __shfl_sync(kAllLanes, bits.position(), 0); }
  __device__ __forceinline__ int first(int v) { return __shfl_sync(kAllLanes, v, 0); }

  /// A plane of DC bits; false when the bits end in it.
  __device__ bool dc_plane(int b) {
    const std::uint64_t position = agree_on_position();
    const std::uint64_t left = position < job.end ? job.end - position : 0;
    const std::uint32_t n = job.blocks < left ? job.blocks : static_cast<std::uint32_t>(left);
    for (std::uint32_t m = static_cast<std::uint32_t>(lane); m < n; m += 32) {
      const std::uint64_t at = position + m;
      const std::uint32_t bit = static_cast<std::uint32_t>(stream_word(a, at / 64) >> (63 - at % 64)) & 1;
      std::int32_t& v = a.dc[job.block + m];
      v = static_cast<std::int32_t>(static_cast<std::uint32_t>(v) | bit << b);
    }
    bits.seek(position + n);
    if (n < job.blocks) {
      result.dc_ahead = n;
      return false;
    }
    result.dc_plane = b;
    result.dc_ahead = 0;
    return true;
  }

  __device__ ParseEnd damage(Damage what, int stage = 0, int plane = 0) {
    result.damage = static_cast<std::uint8_t>(what);
    result.stage = static_cast<std::uint8_t>(stage);
    result.plane = static_cast<std::uint8_t>(plane);
    return ParseEnd::kDamaged;
  }

  __device__ ParseEnd quantised_dc(const ccsds122::DcQuantiser& q) {
    std::int32_t* dc = a.dc + job.block;
    int most = 1, count = 0, damaged = 0;
    if (lane == 0) {
      const auto put = [&](std::uint32_t m, std::int32_t v) {
        const int size = 33 - __clz(v < 0 ? ~v : v);
        most = size > most ? size : most;
        dc[m] = static_cast<std::int32_t>(static_cast<std::uint32_t>(v) << q.q);
      };
      if (q.bits == 1) {
        std::uint32_t m = 0;
        for (; m < job.blocks && bits.left() > 0; ++m) put(m, -static_cast<std::int32_t>(bits.read(1)));
        count = static_cast<int>(m);
      } else {
        bool bad = false;
        count = static_cast<int>(read_sequence(bits, job.blocks, static_cast<unsigned>(q.bits), true, bad, put));
        damaged = bad;
      }
    }
    result.dc_blocks = static_cast<std::uint32_t>(first(count));
    if (first(damaged)) return damage(Damage::kDcCode);
    __syncwarp();
    if (result.dc_blocks < job.blocks) return ParseEnd::kOutOfBits;
    result.dc_plane = q.q;
    if (first(most) != q.bits) return damage(Damage::kDcDepth);
    return ParseEnd::kDone;
  }

  __device__ ParseEnd ac_depths() {
    if (job.ac_depth == 0) return ParseEnd::kDone;
    std::uint8_t* depth = a.depth + job.block;
    int most = 0, count = 0, damaged = 0;
    if (lane == 0) {
      const auto put = [&](std::uint32_t m, std::int32_t v) {
        most = v > most ? v : most;
        depth[m] = static_cast<std::uint8_t>(v);
      };
      if (job.ac_depth == 1) {
        std::uint32_t m = 0;
        for (; m < job.blocks && bits.left() > 0; ++m) put(m, static_cast<std::int32_t>(bits.read(1)));
        count = static_cast<int>(m);
      } else {
        bool bad = false;
        const unsigned n = 32 - static_cast<unsigned>(__clz(job.ac_depth));
        count = static_cast<int>(read_sequence(bits, job.blocks, n, false, bad, put));
        damaged = bad || most > job.ac_depth;
      }
    }
    if (first(damaged)) return damage(Damage::kAcCode);
    __syncwarp();
    if (static_cast<std::uint32_t>(first(count)) < job.blocks) return ParseEnd::kOutOfBits;
    if (first(most) != job.ac_depth) return damage(Damage::kAcDepth);
    return ParseEnd::kDone;
  }

  /// Stage 1, 2 or 3 of plane b.
  template <int Stage>
  __device__ ParseEnd words(int b) {
    std::uint64_t* plane = a.plane + job.plane + static_cast<std::uint64_t>(b) * job.blocks;
    for (std::uint32_t from = 0; from < job.blocks; from += 32) {
      const std::uint32_t m = from + static_cast<std::uint32_t>(lane);
      const bool there = m < job.blocks;
      const int depth = there ? a.depth[job.block + m] : 0;
      const bool own = depth > b;
      const std::uint64_t s = own ? a.significant[job.block + m] : 0;
      if (own) {
        group.significant[lane] = s;
        group.plane[lane] = Stage == 1 ? 0 : plane[m];
        group.sign[lane] = a.sign[job.block + m];
        group.families[lane] = Stage == 3 ? a.families[job.block + m] : 0;
      }
      const std::uint32_t gaggle = from / 16 + static_cast<std::uint32_t>(lane);
      if (lane < 2 && gaggle * 16 < job.blocks)
        group.options[lane] = Stage == 1 ? kUnreadOptions : a.options[job.gaggle + gaggle];
      bool busy = own;
      if (Stage == 1) busy = own && (~s & masks.all) >> 60 != 0;
      if (Stage == 3) busy = own && a.families[job.block + m] != 0;
      const unsigned todo = __ballot_sync(kAllLanes, busy);
      __syncwarp();

      int stopped_at = 32, end = static_cast<int>(ParseEnd::kDone);
      if (lane == 0) {
        for (unsigned set = todo; set; set &= set - 1) {
          const int i = __ffs(static_cast<int>(set)) - 1;
          std::uint32_t options = group.options[i / 16];
          const std::uint64_t significant = group.significant[i];
          std::uint64_t p = group.plane[i], g = group.sign[i];
          std::uint8_t families = group.families[i];
          const std::uint64_t position = bits.position();
          bool fine;
          {
            WordsIn<false> fast(bits, tables, options);
            read_block<Stage, false>(fast, masks, significant, p, g, families);
            fast.refill();
            fine = !fast.damaged && !bits.overrun();
          }
          if (!fine) {  // again, with checks: either the data end in this block or its bits are invalid
            options = group.options[i / 16];
            p = group.plane[i];
            g = group.sign[i];
            families = group.families[i];
            bits.seek(position);
            WordsIn<true> careful(bits, tables, options);
            read_block<Stage, true>(careful, masks, significant, p, g, families);
            bits.skip(careful.taken);
            stopped_at = i;
            end = static_cast<int>(careful.damaged ? ParseEnd::kDamaged : ParseEnd::kOutOfBits);
          }
          group.plane[i] = p;
          group.sign[i] = g;
          group.families[i] = families;
          group.options[i / 16] = options;
          if (!fine) break;
        }
      }
      stopped_at = first(stopped_at);
      end = first(end);
      __syncwarp();
      const std::uint64_t p = own ? group.plane[lane] : 0;
      if (Stage == 1 ? there : own) plane[m] = p;
      if (own) {
        a.sign[job.block + m] = group.sign[lane];
        if (Stage == 2) a.families[job.block + m] = group.families[lane];
      }
      if (lane < 2 && gaggle * 16 < job.blocks) a.options[job.gaggle + gaggle] = group.options[lane];
      if (Stage == 3) {
        // A block starts in the plane of its depth, and an announced family must have a significant coefficient.
        bool wrong = false;
        if (own && lane < stopped_at) {
          const unsigned h = nibble_flags(p | s);
          const unsigned got = (h >> 12 & 7) | grandchildren_flags(h);
          wrong = (depth == b + 1 && p == 0) || (group.families[lane] & ~got);
        }
        if (__any_sync(kAllLanes, wrong)) end = static_cast<int>(ParseEnd::kDamaged);
      }
      __syncwarp();
      if (end != static_cast<int>(ParseEnd::kDone)) {
        if (Stage == 1)
          for (std::uint32_t rest = from + 32 + static_cast<std::uint32_t>(lane); rest < job.blocks; rest += 32)
            plane[rest] = 0;
        return static_cast<ParseEnd>(end);
      }
    }
    return ParseEnd::kDone;
  }

  /// Stage 4 of plane b; adds its bits to `significant`.
  __device__ ParseEnd refinement(int b) {
    std::uint64_t* plane = a.plane + job.plane + static_cast<std::uint64_t>(b) * job.blocks;
    std::uint64_t position = agree_on_position();
    for (std::uint32_t from = 0; from < job.blocks; from += 32) {
      const std::uint32_t m = from + static_cast<std::uint32_t>(lane);
      const bool own = m < job.blocks && a.depth[job.block + m] > b;
      const std::uint64_t s = own ? a.significant[job.block + m] : 0, mask = s & masks.all;
      const unsigned count = static_cast<unsigned>(__popcll(mask));
      unsigned sum = count;
      TRIVELET_UNROLL
      for (unsigned d = 1; d < 32; d *= 2) {
        const unsigned other = __shfl_up_sync(kAllLanes, sum, d);
        if (static_cast<unsigned>(lane) >= d) sum += other;
      }
      const std::uint64_t at = position + sum - count;
      const bool over = count && at + count > job.end;
      const unsigned overs = __ballot_sync(kAllLanes, over);
      const int cut = overs ? __ffs(static_cast<int>(overs)) - 1 : 32;
      if (own && count && lane <= cut) {
        const unsigned shift = static_cast<unsigned>(at % 64);
        const std::uint64_t window =
            stream_word(a, at / 64) << shift | stream_word(a, at / 64 + 1) >> 1 >> (63 - shift);
        std::uint64_t v = expand_bits(window >> (64 - count), mask, tables.expand);
        if (lane == cut) {  // the first places of the mask, from the top
          std::uint64_t keep = mask;
          const std::uint64_t left = job.end > at ? job.end - at : 0;
          for (std::uint64_t drop = count - left; drop; --drop) keep &= keep - 1;
          v &= keep;
          result.partly_refined = keep;
        }
        plane[m] |= v;
      }
      if (overs) {
        const std::uint64_t keep = result.partly_refined;
        result.partly_refined = __shfl_sync(kAllLanes, keep, cut);
        result.refined_blocks = from + static_cast<std::uint32_t>(cut);
        bits.seek(job.end);
        return ParseEnd::kOutOfBits;
      }
      if (own) a.significant[job.block + m] = s | plane[m];
      position += __shfl_sync(kAllLanes, sum, 31);
    }
    result.refined_blocks = job.blocks;
    bits.seek(position);
    return ParseEnd::kDone;
  }
};

__global__ void __launch_bounds__(32 * kParseWarps)
    parse_kernel(SegmentArrays a, const ParseJob* jobs, ParseResult* results, std::uint32_t count) {
  __shared__ ParseTables tables;
  __shared__ BlockGroup groups[kParseWarps];
  __shared__ PlaneMask masks[kParseWarps];
  stage_table(tables.decode, kDeviceDecode);
  stage_table(tables.expand, kDeviceExpand);
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const std::uint32_t number = blockIdx.x * kParseWarps + static_cast<std::uint32_t>(warp);
  if (number >= count) return;
  const ParseJob& job = jobs[number];
  SegmentParser p{a, job, tables, masks[warp], groups[warp], BitsIn(a, job.start, job.end), lane};
  ParseResult& r = p.result;
  r.dc_plane = 32;
  r.last_plane = job.ac_depth;
  const ccsds122::DcQuantiser q(job.dc_depth, job.ac_depth, job.shift[kLL3]);
  for (std::uint32_t m = static_cast<std::uint32_t>(lane); m < job.blocks; m += 32) {
    a.dc[job.block + m] = 0;
    a.depth[job.block + m] = 0;
  }
  __syncwarp();

  const auto run = [&]() -> ParseEnd {
    ParseEnd end = p.quantised_dc(q);
    if (end != ParseEnd::kDone) return end;
    const int floor = job.ac_depth > job.shift[kLL3] ? job.ac_depth : job.shift[kLL3];
    for (int b = q.q - 1; b >= floor; --b)
      if (!p.dc_plane(b)) return ParseEnd::kOutOfBits;
    if (job.dc_stop || job.stop_plane >= job.ac_depth) return ParseEnd::kDone;
    end = p.ac_depths();
    if (end != ParseEnd::kDone || job.ac_depth == 0) return end;
    r.has_planes = 1;
    for (std::uint32_t m = static_cast<std::uint32_t>(lane); m < job.blocks; m += 32)
      a.sign[job.block + m] = a.significant[job.block + m] = 0;
    __syncwarp();
    for (int b = job.ac_depth - 1; b >= job.stop_plane; --b) {
      if (b < q.q && b >= job.shift[kLL3] && !p.dc_plane(b)) return ParseEnd::kOutOfBits;
      __syncwarp();
      if (lane == 0) {
        PlaneMask e;
        for (int i = 0; i < 3; ++i) {
          if (job.shift[ccsds122::kHL3 + i] <= b) e.all |= std::uint64_t{1} << (62 - i);
          if (job.shift[ccsds122::kHL2 + i] <= b) e.all |= std::uint64_t{0xF} << (56 - 4 * i);
          if (job.shift[ccsds122::kHL1 + i] <= b) e.all |= std::uint64_t{0xFFFF} << (32 - 16 * i);
        }
        e.nibble = nibble_flags(e.all);
        e.grand = static_cast<std::uint16_t>(grandchildren_flags(e.nibble));
        e.family = static_cast<std::uint16_t>((e.nibble >> 12 & 7) | e.grand);
        masks[warp] = e;
      }
      __syncwarp();
      const int stages = b == job.stop_plane ? job.stop_stage : 4;
      r.refined_blocks = 0;
      r.partly_refined = 0;
      int stage = 1;
      end = p.words<1>(b);
      if (end == ParseEnd::kDone && stages >= 2) {
        stage = 2;
        end = p.words<2>(b);
      }
      if (end == ParseEnd::kDone && stages >= 3) {
        stage = 3;
        end = p.words<3>(b);
      }
      if (end == ParseEnd::kDone && stages >= 4) {
        stage = 4;
        end = p.refinement(b);
      }
      if (end == ParseEnd::kDamaged) {
        return p.damage(Damage::kPlane, stage, b);
      }
      r.last_plane = b;
      if (end == ParseEnd::kOutOfBits || stages < 4) {
        r.partial = 1;
        return end;
      }
    }
    return ParseEnd::kDone;
  };
  const ParseEnd end = run();
  r.end = static_cast<std::uint8_t>(end);
  r.position = p.agree_on_position();
  if (end == ParseEnd::kDamaged && !r.partial) {
    r.refined_blocks = 0;
    r.partly_refined = 0;
  }
  __syncwarp();
  std::int64_t sum = 0;
  for (std::uint32_t m = static_cast<std::uint32_t>(lane); m < r.dc_blocks; m += 32) sum += a.dc[job.block + m];
  TRIVELET_UNROLL
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
  r.dc_sum = sum;
  if (lane == 0) results[number] = r;
}

}  // namespace

}  // namespace trivelet::gpu
