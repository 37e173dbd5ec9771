// Kernels of the decoder.
//
//   parse_kernel   a warp per segment. DC values, AC depths and stages 1 to 3 are read by its first lane, one codeword
//                  after the other, 32 blocks at a time that the warp has brought to shared memory; raw planes and
//                  stage 4 are read by all lanes at once, each at its own place. The bits come by a window that is
//                  loaded two words ahead.
//   place_kernel   a thread per block: planes to coefficients, coefficients to their places in the subbands
//   then the inverse transform (ccsds122_dwt.cu)
//
// Everything a damaged segment may do ends in the same state as on the CPU (ccsds122_parse.cpp): which planes and
// blocks are known is part of the result.
#include "gpu/still/ccsds122_decode.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "codec/still/ccsds122/ccsds122_segment.h"
#include "gpu/dwt.cuh"
#include "gpu/still/ccsds122_words.cuh"

namespace trivelet::gpu {

namespace ccsds122_decode {  // not unnamed: State has members of these types

using ccsds122::kBands;
using ccsds122::kLL3;

struct ParseJob {
  std::uint64_t start = 0, end = 0;  ///< bits of the stream
  std::uint64_t block = 0;           ///< first of its blocks in the arrays
  std::uint64_t plane = 0;           ///< first of its planes in the array of planes
  std::uint32_t blocks = 0;
  std::uint32_t gaggle = 0;  ///< first of its gaggles in the array of options
  std::int32_t dc_depth = 1, ac_depth = 0;
  std::int32_t stop_plane = 0, stop_stage = 4;
  std::int32_t dc_stop = 0;
  std::int8_t shift[kBands] = {};
};

struct ParseResult {
  std::uint64_t position;
  std::uint64_t partly_refined;
  std::int64_t dc_sum;
  std::uint32_t dc_blocks, dc_ahead, refined_blocks;
  std::int32_t dc_plane, last_plane;
  std::uint8_t end, damage, stage, plane;
  std::uint8_t partial, has_planes;
};

/// Arrays that all segments share.
struct SegmentArrays {
  const std::uint64_t* stream;
  std::uint64_t stream_words;
  std::int32_t* dc;
  std::uint8_t* depth;
  std::uint8_t* families;
  std::uint64_t* sign;
  std::uint64_t* significant;
  std::uint64_t* plane;
  std::uint32_t* options;
};

/// A segment on its way into the picture.
struct PlaceJob {
  std::uint64_t block = 0, plane = 0;  ///< in the arrays
  std::uint64_t first_block = 0;       ///< in the picture
  std::uint64_t partly_refined = 0;
  std::uint32_t blocks = 0, dc_blocks = 0, dc_ahead = 0, refined_blocks = 0;
  std::int32_t dc_plane = 0;  ///< known down to here
  std::int32_t last_plane = 0;
  std::uint8_t partial = 0, has_planes = 0, real = 0;
  std::int8_t shift[kBands] = {};
};

/// The blocks of a segment that a block of threads places.
struct PlaceTile {
  std::uint32_t job = 0, first = 0;
};

}  // namespace ccsds122_decode

namespace {

using namespace ccsds122_decode;
using ccsds122::Damage;
using ccsds122::ParseEnd;

constexpr int kParseWarps = 4;

__device__ __forceinline__ std::uint64_t swap_word(std::uint64_t v) {
  return static_cast<std::uint64_t>(swap_bytes(static_cast<std::uint32_t>(v))) << 32 |
         swap_bytes(static_cast<std::uint32_t>(v >> 32));
}

// ------------------------------------------------------------------------------------------------------------- reading

__device__ __forceinline__ std::uint64_t stream_word(const SegmentArrays& a, std::uint64_t i) {
  return i < a.stream_words ? swap_word(a.stream[i]) : 0;
}

/// Reads bits one after the other. Reading past `end` is allowed and gives whatever lies there, zeros in the end.
struct BitsIn {
  const SegmentArrays& a;
  std::uint64_t end;
  std::uint64_t index = 0;
  std::uint64_t word[3] = {};  ///< index, index + 1, index + 2
  unsigned used = 0;           ///< bits of word[0], 0..63

  __device__ __forceinline__ BitsIn(const SegmentArrays& arrays, std::uint64_t position, std::uint64_t stop)
      : a(arrays), end(stop) {
    seek(position);
  }
  __device__ __forceinline__ void seek(std::uint64_t position) {
    index = position / 64;
    used = static_cast<unsigned>(position % 64);
    TRIVELET_UNROLL
    for (unsigned i = 0; i < 3; ++i) word[i] = stream_word(a, index + i);
  }
  __device__ __forceinline__ std::uint64_t position() const { return index * 64 + used; }
  __device__ __forceinline__ std::uint64_t window() const { return word[0] << used | word[1] >> 1 >> (63 - used); }
  /// At most 64.
  __device__ __forceinline__ void skip(unsigned bits) {
    used += bits;
    if (used >= 64) {
      used -= 64;
      ++index;
      word[0] = word[1];
      word[1] = word[2];
      word[2] = stream_word(a, index + 2);
    }
  }
  /// 1..32 bits.
  __device__ __forceinline__ std::uint32_t read(unsigned bits) {
    const std::uint64_t w = window();
    skip(bits);
    return static_cast<std::uint32_t>(w >> (64 - bits));
  }
  __device__ __forceinline__ bool overrun() const { return position() > end; }
  __device__ __forceinline__ std::uint64_t left() const {
    const std::uint64_t p = position();
    return p < end ? end - p : 0;
  }
};

/// DC values or AC depths, as ccsds122::decode_sequence. `put(m, v)` takes the values.
template <class Put>
__device__ __forceinline__ std::uint32_t read_sequence(BitsIn& bits, std::uint32_t count, unsigned n, bool is_signed,
                                                       bool& damaged, const Put& put) {
  const unsigned id_bits = n == 2   ? 1
                           : n <= 4 ? 2
                           : n <= 8 ? 3
                                    : 4,
                 largest_k = n == 2   ? 0
                             : n <= 4 ? 2
                             : n <= 8 ? 6
                                      : 8;
  const std::int32_t lowest = is_signed ? -(1 << (n - 1)) : 0, highest = is_signed ? (1 << (n - 1)) - 1 : (1 << n) - 1;
  std::uint32_t done = 0;
  std::int32_t before = 0;
  for (std::uint32_t first = 0; first < count; first += 16) {
    const std::uint32_t last = first + 16 < count ? first + 16 : count;
    const unsigned k = bits.read(id_bits);
    if (bits.overrun()) return done;
    const bool coded = k != (1U << id_bits) - 1;
    if (coded && k > largest_k) {
      damaged = true;
      return done;
    }
    std::uint32_t m = first;
    if (first == 0) {
      const std::uint32_t reference = bits.read(n);
      if (bits.overrun()) return done;
      before = static_cast<std::int32_t>(reference);
      if (before > highest) before -= 1 << n;
      put(0, before);
      done = m = 1;
    }
    std::uint16_t zeros[16];
    const std::uint32_t j = last - m;
    if (coded)
      for (std::uint32_t i = 0; i < j; ++i) {
        std::uint32_t z = 0;
        for (;;) {
          const unsigned run = static_cast<unsigned>(__clzll(static_cast<long long>(bits.window() | 0xFF)));
          if (run < 56) {
            z += run;
            bits.skip(run + 1);
            break;
          }
          z += 56;
          bits.skip(56);
          if (bits.overrun() || z >> (n - (k < n ? k : n)) != 0) break;
        }
        if (bits.overrun()) return done;
        if (static_cast<std::uint64_t>(z) << k >> n != 0) {
          damaged = true;
          return done;
        }
        zeros[i] = static_cast<std::uint16_t>(z);
      }
    const unsigned low = coded ? k : n;
    for (std::uint32_t i = 0; i < j; ++i) {
      std::uint32_t u = coded ? static_cast<std::uint32_t>(zeros[i]) << k : 0;
      if (low) u |= bits.read(low);
      if (bits.overrun()) return done;
      const std::int32_t below = before - lowest, above = highest - before, t = below < above ? below : above;
      const std::int32_t v = static_cast<std::int32_t>(u);
      const std::int32_t d = v > 2 * t ? (below < above ? v - t : t - v) : v % 2 == 0 ? v / 2 : -(v + 1) / 2;
      before += d;
      if (before < lowest || before > highest) {
        // The value is not kept, but it is there: decode_sequence stores before it looks.
        put(m, before);
        damaged = true;
        return done;
      }
      put(m, before);
      done = ++m;
    }
  }
  return done;
}

// --------------------------------------------------------------------------------------------------------------- words

struct ParseTables {
  ccsds122::DecodeTable decode;
  ExpandTable expand;
};

__device__ __forceinline__ unsigned decode_base(int kind, unsigned length) {
  if (length < 2) return length;
  if (length == 2) return 2;
  if (length == 3) return kind == ccsds122::kFamilyWord ? 7 : 4;
  return kind == ccsds122::kQuarterWord ? 10 : kind == ccsds122::kChildWord ? 14 : 0;
}

constexpr std::uint32_t kUnreadOptions = 0xFFFFFFU;  ///< a byte per length 2, 3, 4

/// The words of one block; see WordReader in codec/still/ccsds122/ccsds122_bitplane.inc.
template <bool Checked>
struct WordsIn {
  BitsIn& bits;
  const ParseTables& tables;
  std::uint32_t& options;
  std::uint64_t window;
  unsigned taken = 0;
  bool stopped = false, damaged = false;

  __device__ __forceinline__ WordsIn(BitsIn& b, const ParseTables& t, std::uint32_t& o)
      : bits(b), tables(t), options(o), window(b.window()) {}
  __device__ __forceinline__ void refill() {
    bits.skip(taken);
    taken = 0;
    window = bits.window();
  }
  __device__ __forceinline__ void take(unsigned count) {
    window <<= count;
    taken += count;
  }
  __device__ __forceinline__ bool room(unsigned count) {
    if (!Checked) return true;
    if (bits.position() + taken + count > bits.end) stopped = true;
    return !stopped;
  }
  __device__ bool read_option(unsigned length) {
    refill();
    const unsigned count = length == 2 ? 1 : 2;
    if (!room(count)) return false;
    const unsigned id = static_cast<unsigned>(window >> (64 - count)), uncoded = length - 1;
    unsigned option = id;
    if (id == (1U << count) - 1) {
      option = uncoded;
    } else if (id >= uncoded) {
      damaged = true;
      return false;
    }
    const unsigned at = 8 * (length - 2);
    options = (options & ~(0xFFU << at)) | option << at;
    take(count);
    refill();
    return true;
  }
  __device__ __forceinline__ unsigned look(int kind, unsigned length) {
    unsigned option = 0;
    if (length >= 2) {
      option = options >> (8 * (length - 2)) & 255;
      if (option == 255) {
        if (!read_option(length)) return 0;
        option = options >> (8 * (length - 2)) & 255;
      }
    }
    const unsigned e = tables.decode.entry[decode_base(kind, length) + option][window >> 56];
    if (e & ccsds122::kSlow) {
      if (room(8)) damaged = true;
      return 0;
    }
    return e;
  }
  __device__ __forceinline__ unsigned flags(int kind, unsigned mask) {
    const unsigned e = look(kind, static_cast<unsigned>(__popc(mask)));
    const unsigned length = e >> 4 & 15;
    if (!room(length)) return 0;
    take(length);
    return tables.expand.entry[mask << 4 | (e & 15)];
  }
  /// The coefficients of nibble `at` / 4 at `mask`.
  __device__ __forceinline__ void types(int kind, unsigned mask, int at, std::uint64_t& plane, std::uint64_t& sign) {
    const unsigned e = look(kind, static_cast<unsigned>(__popc(mask)));
    const unsigned length = e >> 4 & 15, total = e >> 8 & 15;
    if (!room(length)) return;
    unsigned fresh = tables.expand.entry[mask << 4 | (e & 15)];
    unsigned signs = total - length;
    take(length);
    if (Checked) {
      const std::uint64_t all_left = bits.left();
      const std::uint64_t left = all_left > taken ? all_left - taken : 0;
      if (left < signs) {  // the first of the new coefficients, from the top
        stopped = true;
        for (unsigned drop = signs - static_cast<unsigned>(left); drop; --drop) fresh &= fresh - 1;
        signs = static_cast<unsigned>(left);
      }
    }
    const unsigned values = static_cast<unsigned>(window >> 60) >> (4 - signs);
    sign |= static_cast<std::uint64_t>(tables.expand.entry[fresh << 4 | values]) << at;
    plane |= static_cast<std::uint64_t>(fresh) << at;
    take(signs);
  }
};

template <int Stage, bool Checked>
__device__ __forceinline__ void read_block(WordsIn<Checked>& r, const PlaneMask& e, std::uint64_t s,
                                           std::uint64_t& plane, std::uint64_t& sign, std::uint8_t& families) {
  const std::uint64_t a = ~s & e.all;
  const auto nibble = [&](int at) { return static_cast<unsigned>(a >> at) & 15; };
  if constexpr (Stage == 1) {
    if (const unsigned mask = nibble(60)) r.types(ccsds122::kOtherWord, mask, 60, plane, sign);
    return;
  }
  const unsigned hs = nibble_flags(s);
  const unsigned gs = grandchildren_flags(hs);
  if constexpr (Stage == 2) {
    families = 0;
    if (!(hs & kDescendantFlags)) {
      if (!(e.all & kDescendantBits)) return;
      if (!r.room(1)) return;
      const bool flag = r.window >> 63;
      r.take(1);
      if (!flag) return;
    }
    const unsigned ds = (hs >> 12 & 7) | gs;
    unsigned now = ds;
    if (const unsigned ask = ~ds & e.family) {
      now |= r.flags(ccsds122::kFamilyWord, ask);
      if (Checked && (r.stopped || r.damaged)) return;
    }
    families = static_cast<std::uint8_t>(now);
    for (unsigned set = now; set;) {
      const int at = 48 + 4 * take_highest(set);
      if (const unsigned mask = nibble(at)) r.types(ccsds122::kChildWord, mask, at, plane, sign);
      if (Checked && (r.stopped || r.damaged)) return;
    }
    return;
  }
  if constexpr (Stage == 3) {
    if (!families) return;
    unsigned grand = gs;
    if (const unsigned ask = families & ~gs & e.grand) {
      grand |= r.flags(ccsds122::kOtherWord, ask);
      if (Checked && (r.stopped || r.damaged)) return;
    }
    if (!grand) return;
    unsigned quarters = hs & 0xFFF;
    for (unsigned set = grand; set;) {
      const int at = 4 * take_highest(set);
      const unsigned ask = ~(hs >> at) & e.nibble >> at & 15;
      if (ask) quarters |= r.flags(ccsds122::kQuarterWord, ask) << at;
      if (Checked && (r.stopped || r.damaged)) return;
    }
    for (unsigned set = quarters & nibble_flags(a); set;) {
      r.refill();
      for (int i = 0; i < 4 && set; ++i) {  // 4 * 12 bits at most
        const int at = 4 * take_highest(set);
        r.types(ccsds122::kQuarterWord, nibble(at), at, plane, sign);
        if (Checked && (r.stopped || r.damaged)) return;
      }
    }
  }
}

// --------------------------------------------------------------------------------------------------------------- parse

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
  const PlaneMask& masks;  // of the plane at hand, in shared memory
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
          if (!fine) {  // once more, with care: either the data end in this block or its bits cannot be
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
        // A block starts in the plane of its depth, and a family that was announced brings something.
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

  /// Stage 4 of plane b; what was read joins `significant`.
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

// --------------------------------------------------------------------------------------------------------------- place

/// Value of a DC coefficient of which the bits >= plane are known.
__device__ __forceinline__ double dc_value(std::int32_t v, int plane, int shift) {
  const double unit = static_cast<double>(std::int64_t{1} << shift);
  const double half = plane > shift ? 0.5 * (static_cast<double>(std::int64_t{1} << plane) - unit) : 0.0;
  return (static_cast<double>(v) + half) / unit;
}
__host__ __device__ inline std::int32_t coefficient_bits(double v, bool real) {
  if (real) {
    const float f = static_cast<float>(v);
    std::int32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
  }
  v = v < -2147483648.0 ? -2147483648.0 : v > 2147483647.0 ? 2147483647.0 : v;
  return static_cast<std::int32_t>(v < 0                     ? v - 0.5 <= -2147483648.0 ? -2147483648.0 : v - 0.5
                                   : v + 0.5 >= 2147483647.0 ? 2147483647.0
                                                             : v + 0.5);
}

constexpr int kPlaceThreads = 128;

__global__ void __launch_bounds__(kPlaceThreads)
    place_kernel(SegmentArrays a, const PlaceJob* jobs, const PlaceTile* tiles, DeviceBands bands, double constant) {
  const PlaceTile tile = tiles[blockIdx.x];
  const PlaceJob& j = jobs[tile.job];
  const std::uint32_t m = tile.first + threadIdx.x;
  if (m >= j.blocks) return;
  const std::uint64_t block = j.first_block + m;
  const std::uint64_t wide = static_cast<std::uint64_t>(bands.blocks_wide);
  const std::ptrdiff_t r = static_cast<std::ptrdiff_t>(block / wide), c = static_cast<std::ptrdiff_t>(block % wide);
  const std::ptrdiff_t at3 = r * bands.pitch[2] + c;
  const bool real = j.real;

  double dc = constant;
  if (j.dc_blocks) {
    const std::uint32_t known = m < j.dc_blocks ? m : j.dc_blocks - 1;  // the last one stands for the rest
    dc = dc_value(a.dc[j.block + known], j.dc_plane - (known < j.dc_ahead ? 1 : 0), j.shift[kLL3]);
  }
  bands.data[kLL3][at3] = coefficient_bits(dc, real);

  std::uint32_t magnitude[64];
  TRIVELET_UNROLL
  for (int i = 0; i < 64; ++i) magnitude[i] = 0;
  std::uint64_t sign = 0, known = ~std::uint64_t{0};
  if (j.has_planes) {
    const int depth = a.depth[j.block + m];
    const std::uint64_t* plane = a.plane + j.plane + m;
    sign = a.sign[j.block + m];
    for (int b = j.last_plane; b < depth; ++b) {
      const std::uint64_t word = plane[static_cast<std::uint64_t>(b) * j.blocks];
      const std::uint32_t high = static_cast<std::uint32_t>(word >> 32), low = static_cast<std::uint32_t>(word);
      TRIVELET_UNROLL
      for (int i = 0; i < 64; ++i) magnitude[i] |= ((i < 32 ? high : low) >> (31 - i % 32) & 1) << b;
    }
    if (j.partial && m >= j.refined_blocks && j.last_plane < depth) {
      known = plane[static_cast<std::uint64_t>(j.last_plane) * j.blocks];
      if (m == j.refined_blocks) known |= j.partly_refined;
    }
  }
  const auto value = [&](int i, int band) -> std::int32_t {
    const bool is_known = known >> (63 - i) & 1, negative = sign >> (63 - i) & 1;
    const int shift = j.shift[band];
    int up = j.last_plane + (is_known ? 0 : 1) - shift;  // lowest known plane above the shift
    if (real) {
      const float offset = up > 0 ? 0.45F * static_cast<float>(std::int64_t{1} << up) - 0.5F : 0.0F;
      const float v = magnitude[i] ? static_cast<float>(magnitude[i]) + offset : 0.0F;
      return __float_as_int(negative ? -v : v);
    }
    const std::int32_t offset = up > 0 ? static_cast<std::int32_t>((std::int64_t{9} << up) / 20) : 0;
    const std::uint32_t v = magnitude[i] ? (magnitude[i] >> shift) + static_cast<std::uint32_t>(offset) : 0;
    return static_cast<std::int32_t>(negative ? 0U - v : v);
  };
  TRIVELET_UNROLL
  for (int i = 0; i < 3; ++i) {
    bands.data[ccsds122::kHL3 + i][at3] = value(1 + i, ccsds122::kHL3 + i);
    TRIVELET_UNROLL
    for (int y = 0; y < 2; ++y) {
      const int band = ccsds122::kHL2 + i, from = 4 + 4 * i + 2 * y;
      store_pack<std::int32_t, 2>(bands.data[band] + (2 * r + y) * bands.pitch[1] + 2 * c,
                                  {{value(from, band), value(from + 1, band)}});
    }
    TRIVELET_UNROLL
    for (int y = 0; y < 4; ++y) {
      const int band = ccsds122::kHL1 + i, from = 16 + 16 * i + 8 * (y / 2) + 2 * (y % 2);
      store_pack<std::int32_t, 4>(
          bands.data[band] + (4 * r + y) * bands.pitch[0] + 4 * c,
          {{value(from, band), value(from + 1, band), value(from + 4, band), value(from + 5, band)}});
    }
  }
}

/// Blocks that no segment describes.
__global__ void fill_kernel(DeviceBands bands, std::int32_t dc) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= bands.blocks_wide) return;
  for (int y = static_cast<int>(blockIdx.y); y < bands.blocks_high; y += static_cast<int>(gridDim.y))
    bands.data[kLL3][static_cast<std::ptrdiff_t>(y) * bands.pitch[2] + x] = dc;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A device buffer that only grows.
template <class T>
T* at_least(DeviceBuffer<T>& buffer, std::size_t size) {
  if (buffer.size() < size) {
    buffer = {};
    buffer = DeviceBuffer<T>(size + size / 8);
  }
  return buffer.data();
}
template <class T>
T* at_least(PinnedBuffer<T>& buffer, std::size_t size) {
  if (buffer.size() < size) {
    buffer = {};
    buffer = PinnedBuffer<T>(size + size / 8);
  }
  return buffer.data();
}

}  // namespace

/// Memory of the segments of one parse(): what its SegmentData point into.
struct ParsedBatch {
  std::uint64_t first_block = 0, first_plane = 0;
  std::uint32_t blocks = 0;
};

struct Ccsds122Decoder::State {
  Stream stream;
  Event marks[2] = {Event(true), Event(true)};
  Times times;
  SegmentArrays arrays{};
  DeviceBuffer<std::uint64_t> d_stream, d_sign, d_significant, d_plane;
  DeviceBuffer<std::int32_t> d_dc;
  DeviceBuffer<std::uint8_t> d_depth, d_families;
  DeviceBuffer<std::uint32_t> d_options;
  DeviceBuffer<ccsds122_decode::ParseJob> d_jobs;
  DeviceBuffer<ccsds122_decode::ParseResult> d_results;
  DeviceBuffer<ccsds122_decode::PlaceJob> d_places;
  DeviceBuffer<PlaceTile> d_tiles;
  DeviceBuffer<std::byte> d_picture, d_turned;
  PinnedBuffer<std::byte> staging;
  std::unique_ptr<Ccsds122Transform> transform;
  std::vector<ParsedBatch> parsed;       ///< by SegmentData::on_device
  std::uint64_t blocks = 0, planes = 0;  ///< used of the arrays

  float elapsed() const {
    marks[1].synchronize();
    return marks[1].since(marks[0]);
  }
};

Ccsds122Decoder::Ccsds122Decoder() : state_(std::make_unique<State>()) {}
Ccsds122Decoder::~Ccsds122Decoder() = default;
Ccsds122Decoder::Times Ccsds122Decoder::times() const { return state_->times; }

void Ccsds122Decoder::begin(std::span<const std::byte> bytes) {
  State& s = *state_;
  s.parsed.clear();
  s.blocks = s.planes = 0;
  const std::size_t words = bytes.size() / 8 + 2;
  s.arrays.stream = at_least(s.d_stream, words);
  s.arrays.stream_words = words;
  // Behind the last byte there are zeros (ccsds122::kReadPadding of them).
  check(cudaMemcpyAsync(s.d_stream.data(), bytes.data(), words * 8, cudaMemcpyHostToDevice, s.stream.get()),
        "cudaMemcpyAsync");
}

void Ccsds122Decoder::parse(std::span<ccsds122::ParseTask> tasks) {
  if (tasks.empty()) return;
  State& s = *state_;
  // Arrays that grow lose what is in them, so the segments of one stream are parsed in one call; more calls would need
  // room beside the old ones.
  require(s.parsed.empty(), ErrorKind::kInternal, "a stream is parsed once");
  std::vector<ccsds122_decode::ParseJob> jobs(tasks.size());
  std::uint64_t gaggles = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const ccsds122::SegmentHeader& h = *tasks[i].header;
    ccsds122_decode::ParseJob& j = jobs[i];
    j.start = tasks[i].bits.position;
    j.end = tasks[i].bits.end;
    j.block = s.blocks;
    j.plane = s.planes;
    j.gaggle = static_cast<std::uint32_t>(gaggles);
    j.blocks = h.blocks;
    j.dc_depth = h.dc_depth;
    j.ac_depth = h.ac_depth;
    j.stop_plane = h.bit_plane_stop;
    j.stop_stage = h.stage_stop + 1;
    j.dc_stop = h.dc_stop;
    const auto shift = ccsds122::band_shifts(h.shifts());
    for (int b = 0; b < kBands; ++b) j.shift[b] = static_cast<std::int8_t>(shift[static_cast<std::size_t>(b)]);
    tasks[i].data.on_device = static_cast<std::int32_t>(i);
    s.parsed.push_back({j.block, j.plane, h.blocks});
    s.blocks += h.blocks;
    s.planes += std::uint64_t{h.blocks} * static_cast<std::uint64_t>(h.ac_depth);
    gaggles += (h.blocks + 15) / 16;
  }
  const std::size_t n = s.blocks;
  s.arrays.dc = at_least(s.d_dc, n);
  s.arrays.depth = at_least(s.d_depth, n);
  s.arrays.families = at_least(s.d_families, n);
  s.arrays.sign = at_least(s.d_sign, n);
  s.arrays.significant = at_least(s.d_significant, n);
  s.arrays.plane = at_least(s.d_plane, s.planes);
  s.arrays.options = at_least(s.d_options, gaggles);
  at_least(s.d_jobs, jobs.size());
  at_least(s.d_results, jobs.size());
  copy(s.d_jobs.data(), jobs.data(), jobs.size(), cudaMemcpyHostToDevice, s.stream);
  s.marks[0].record(s.stream);
  launch("parse_kernel", parse_kernel, dim3(static_cast<unsigned>((jobs.size() + kParseWarps - 1) / kParseWarps)),
         dim3(32 * kParseWarps), 0, s.stream.get(), s.arrays, s.d_jobs.data(), s.d_results.data(),
         static_cast<std::uint32_t>(jobs.size()));
  s.marks[1].record(s.stream);
  std::vector<ccsds122_decode::ParseResult> results(jobs.size());
  copy(results.data(), s.d_results.data(), jobs.size(), cudaMemcpyDeviceToHost, s.stream);
  s.stream.synchronize();
  s.times.parse = s.elapsed();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const ccsds122_decode::ParseResult& r = results[i];
    ccsds122::ParseTask& t = tasks[i];
    t.end = static_cast<ParseEnd>(r.end);
    t.position = r.position;
    t.message = ccsds122::describe(static_cast<Damage>(r.damage), r.stage, r.plane);
    t.data.dc_plane = r.dc_plane;
    t.data.dc_blocks = r.dc_blocks;
    t.data.dc_ahead = r.dc_ahead;
    t.data.last_plane = r.last_plane;
    t.data.partial = r.partial != 0;
    t.data.refined_blocks = r.refined_blocks;
    t.data.partly_refined = r.partly_refined;
    t.data.dc_sum = r.dc_sum;
    t.data.has_planes = r.has_planes != 0;
  }
}

void Ccsds122Decoder::picture(const ccsds122::PictureTask& task, const MutableVolumeView& out, ThreadPool& pool,
                              ccsds122::StageSeconds& seconds) {
  State& s = *state_;
  auto start = std::chrono::steady_clock::now();
  if (!s.transform || s.transform->bands().blocks_wide != task.blocks_wide ||
      s.transform->bands().blocks_high != task.blocks_high) {
    s.transform.reset();
    s.transform = std::make_unique<Ccsds122Transform>(task.blocks_wide, task.blocks_high);
  }
  const DeviceBands& bands = s.transform->bands();

  // Segments that the host has parsed go behind the others.
  std::vector<ccsds122_decode::PlaceJob> places;
  std::vector<PlaceTile> tiles;
  std::uint64_t blocks = s.blocks, planes = s.planes;
  for (const ccsds122::PlacedSegment& p : task.segments) {
    const ccsds122::SegmentHeader& h = *p.header;
    const ccsds122::SegmentData& d = *p.data;
    ccsds122_decode::PlaceJob j;
    const auto shift = ccsds122::band_shifts(h.shifts());
    for (int b = 0; b < kBands; ++b) j.shift[b] = static_cast<std::int8_t>(shift[static_cast<std::size_t>(b)]);
    j.first_block = p.first_block;
    j.blocks = h.blocks;
    j.dc_blocks = d.dc_blocks;
    j.dc_ahead = d.dc_ahead;
    j.dc_plane = d.dc_plane == 32 ? ccsds122::DcQuantiser(h.dc_depth, h.ac_depth, shift[kLL3]).q : d.dc_plane;
    j.last_plane = d.last_plane;
    j.partial = d.partial;
    j.refined_blocks = d.refined_blocks;
    j.partly_refined = d.partly_refined;
    j.has_planes = d.has_planes;
    j.real = h.dwt == ccsds122::Dwt::kFloat;
    if (d.on_device >= 0) {
      const ParsedBatch& at = s.parsed[static_cast<std::size_t>(d.on_device)];
      j.block = at.first_block;
      j.plane = at.first_plane;
    } else {
      j.block = blocks;
      j.plane = planes;
      blocks += d.dc.size();
      if (d.has_planes) planes += std::uint64_t{h.blocks} * static_cast<std::uint64_t>(h.ac_depth);
    }
    for (std::uint32_t m = 0; m < h.blocks; m += kPlaceThreads)
      tiles.push_back({static_cast<std::uint32_t>(places.size()), m});
    places.push_back(j);
  }
  if (blocks > s.blocks) {
    // Room behind: what is there already is carried over.
    const auto grow = [&](auto& buffer, std::size_t used, std::size_t size) {
      using T = std::remove_pointer_t<decltype(buffer.data())>;
      if (buffer.size() >= size) return buffer.data();
      DeviceBuffer<T> larger(size);
      copy(larger.data(), buffer.data(), used, cudaMemcpyDeviceToDevice, s.stream);
      s.stream.synchronize();
      buffer = std::move(larger);
      return buffer.data();
    };
    s.arrays.dc = grow(s.d_dc, s.blocks, blocks);
    s.arrays.depth = grow(s.d_depth, s.blocks, blocks);
    s.arrays.sign = grow(s.d_sign, s.blocks, blocks);
    s.arrays.plane = grow(s.d_plane, s.planes, planes);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const ccsds122::SegmentData& d = *task.segments[i].data;
      const ccsds122_decode::PlaceJob& j = places[i];
      if (d.on_device >= 0 || d.dc.empty()) continue;
      copy(s.arrays.dc + j.block, d.dc.data(), d.dc.size(), cudaMemcpyHostToDevice, s.stream);
      copy(s.arrays.depth + j.block, d.depth.data(), d.depth.size(), cudaMemcpyHostToDevice, s.stream);
      if (!d.has_planes) continue;
      const std::size_t n = j.blocks;
      copy(s.arrays.sign + j.block, d.sign.get(), n, cudaMemcpyHostToDevice, s.stream);
      const std::size_t depth = static_cast<std::size_t>(task.segments[i].header->ac_depth);
      copy(s.arrays.plane + j.plane, d.planes.get(), n * depth, cudaMemcpyHostToDevice, s.stream);
    }
  }
  at_least(s.d_places, places.size());
  at_least(s.d_tiles, tiles.size());
  copy(s.d_places.data(), places.data(), places.size(), cudaMemcpyHostToDevice, s.stream);
  copy(s.d_tiles.data(), tiles.data(), tiles.size(), cudaMemcpyHostToDevice, s.stream);
  const bool real = task.header.dwt == ccsds122::Dwt::kFloat;
  if (task.fill) {
    check(cudaMemsetAsync(bands.data[0], 0, s.transform->bytes(), s.stream.get()), "cudaMemsetAsync");
    const dim3 grid((static_cast<unsigned>(bands.blocks_wide) + 127) / 128,
                    static_cast<unsigned>(std::min(bands.blocks_high, 4096)));
    launch("fill_kernel", fill_kernel, grid, dim3(128), 0, s.stream.get(), bands,
           coefficient_bits(task.constant, real));
  }
  s.marks[0].record(s.stream);
  launch("place_kernel", place_kernel, dim3(static_cast<unsigned>(tiles.size())), dim3(kPlaceThreads), 0,
         s.stream.get(), s.arrays, s.d_places.data(), s.d_tiles.data(), bands, task.constant);
  s.marks[1].record(s.stream);
  s.stream.synchronize();  // the lists are pageable
  s.times.place = s.elapsed();
  seconds.coder += seconds_since(start);

  start = std::chrono::steady_clock::now();
  const ccsds122::SegmentHeader& h = task.header;
  const int bytes = out.bytes_per_sample;
  const int width = h.transpose ? out.shape.height : out.shape.width;  // as coded
  const int height = h.transpose ? out.shape.width : out.shape.height;
  const auto stride_of = [&](int w) { return static_cast<std::ptrdiff_t>((w + 15) / 16 * 16) * bytes; };
  const SampleType format = sample_type_of(bytes, h.is_signed);
  MutableDevicePicture picture{nullptr, format, width, height, stride_of(width)};
  picture.data = at_least(s.d_picture, static_cast<std::size_t>(picture.row_stride) * static_cast<std::size_t>(height));
  s.marks[0].record(s.stream);
  s.transform->inverse(h.dwt, h.bits, task.low, task.high, picture, s.stream);
  if (h.transpose) {
    MutableDevicePicture turned{nullptr, format, height, width, stride_of(height)};
    turned.data = at_least(s.d_turned, static_cast<std::size_t>(turned.row_stride) * static_cast<std::size_t>(width));
    transpose_picture({picture.data, format, width, height, picture.row_stride}, turned, s.stream);
    picture = turned;
  }
  s.marks[1].record(s.stream);
  const std::size_t row = static_cast<std::size_t>(out.shape.width) * static_cast<std::size_t>(bytes);
  const std::size_t rows = static_cast<std::size_t>(out.shape.height);
  std::byte* staging = at_least(s.staging, row * rows);
  check(cudaMemcpy2DAsync(staging, row, picture.data, static_cast<std::size_t>(picture.row_stride), row, rows,
                          cudaMemcpyDeviceToHost, s.stream.get()),
        "cudaMemcpy2DAsync");
  s.stream.synchronize();
  s.times.transform = s.elapsed();
  pool.parallel_for((out.shape.height + 63) / 64, [&](int strip, int) {
    for (int y = 64 * strip; y < std::min(64 * strip + 64, out.shape.height); ++y)
      std::memcpy(out.row(0, y), staging + static_cast<std::size_t>(y) * row, row);
  });
  seconds.dwt += seconds_since(start);
}

}  // namespace trivelet::gpu
