// The encoder. After the transform, every chunk of up to 256 blocks is coded alone (planes and stages as separate bit
// strings); then every segment is assembled from its chunks. Chunks lie within segments and begin at gaggles, so a
// frame in one segment is coded in parallel like many small segments.
#include <algorithm>
#include <cstring>

#include "codec/still/ccsds122/ccsds122_dwt.h"
#include "codec/still/ccsds122/ccsds122_plan.h"
#include "codec/still/ccsds122/ccsds122_rate.h"
#include "codec/still/ccsds122/ccsds122_segment.h"
#include "codec/still/ccsds122/ccsds122_sequence.h"
#include "codec/threads/stopwatch.h"

namespace trivelet::ccsds122 {
namespace {

constexpr int kChunkBlocks = 256;

/// Position of stages 1 to 4 of a coded plane in the words of its chunk.
struct CodedPlane {
  std::size_t at[4] = {};
  std::uint64_t bits[4] = {};
  std::uint32_t coefficients[4] = {};
};

struct Chunk {
  std::uint32_t segment = 0;
  std::uint64_t first = 0;  ///< first block in the picture
  int blocks = 0;
  int depth = 0;                   ///< largest number of magnitude bits of its blocks
  int next_plane = -1;             ///< next plane to code
  std::uint64_t bits = 0;          ///< of all coded planes
  std::vector<CodedPlane> planes;  ///< indexed by plane number, filled from the top
  std::vector<std::uint64_t> words;
};

struct Segment : SegmentPlan {
  std::size_t first_chunk = 0, chunks = 0;
  std::vector<std::uint64_t> words;
  std::uint64_t bits = 0;
};

/// Bit planes of a chunk and memory for one coded plane. One per thread, or one per chunk when planes are coded in
/// turn.
struct ChunkMemory {
  std::vector<std::uint64_t> sign, planes, significant;
  std::vector<std::uint64_t> stage[4];

  void prepare(int blocks) {
    const std::size_t n = static_cast<std::size_t>(blocks);
    if (sign.size() < n) {
      sign.resize(n);
      significant.resize(n);
      planes.resize(n * (kMaxPlanes + 1));
    }
    std::fill(significant.begin(), significant.end(), 0);
  }
};
struct StageMemory {
  std::vector<std::uint64_t> words[4];
  StageMemory() {
    for (auto& w : words) w.resize(kChunkBlocks * kStageWords + 8);
  }
};

class Encoder {
 public:
  Encoder(const VolumeView& image, const Params& p, ThreadPool& pool)
      : p_(p), pool_(pool), k_(kernels(p.simd)), image_(image) {
    check_parameters(image, p);
  }

  Encoded run() {
    Encoded out;
    Stopwatch watch;
    transpose_if_asked();
    check_samples(image_, p_, pool_);
    Subbands bands((image_.shape.width + 7) / 8, (image_.shape.height + 7) / 8);
    forward_dwt(image_, p_.dwt, p_.bits, bands, k_, pool_);
    out.seconds.dwt = watch.seconds();

    watch = {};
    bands_ = bands.view();
    plan();
    limited() ? code_in_turn() : code_at_once();
    points_.resize(segments_.size());
    pool_.parallel_for(static_cast<int>(segments_.size()),
                       [&](int i, int) { assemble(segments_[static_cast<std::size_t>(i)]); });
    if (p_.total_bytes) spread();
    join(out);
    out.seconds.coder = watch.seconds();
    return out;
  }

 private:
  bool limited() const { return p_.segment_bytes || p_.total_bytes; }

  void transpose_if_asked() {
    if (!p_.transpose) return;
    const std::size_t size = static_cast<std::size_t>(image_.bytes_per_sample);
    const std::size_t wide = static_cast<std::size_t>(image_.shape.height),
                      high = static_cast<std::size_t>(image_.shape.width);
    turned_.resize(checked_mul(checked_mul(wide, high), size));
    for (std::size_t x = 0; x < wide; ++x) {
      const std::byte* from = image_.row(0, static_cast<int>(x));
      for (std::size_t y = 0; y < high; ++y) std::memcpy(turned_.data() + (y * wide + x) * size, from + y * size, size);
    }
    image_.data = turned_.data();
    image_.shape = {1, static_cast<int>(high), static_cast<int>(wide)};
    image_.row_stride = static_cast<std::ptrdiff_t>(wide * size);
  }

  void plan() {
    const std::size_t blocks =
        static_cast<std::size_t>(bands_.blocks_wide) * static_cast<std::size_t>(bands_.blocks_high);
    dc_.resize(blocks);
    depth_.resize(blocks);
    for (SegmentPlan& plan : plan_segments(p_, image_.shape.width, image_.shape.height)) {
      Segment s;
      static_cast<SegmentPlan&>(s) = plan;
      shift_ = band_shifts(s.header.shifts());
      s.first_chunk = chunks_.size();
      for (std::uint32_t at = 0; at < s.blocks; at += kChunkBlocks) {
        Chunk c;
        c.segment = static_cast<std::uint32_t>(segments_.size());
        c.first = s.first + at;
        c.blocks = static_cast<int>(std::min<std::uint32_t>(kChunkBlocks, s.blocks - at));
        chunks_.push_back(std::move(c));
      }
      s.chunks = chunks_.size() - s.first_chunk;
      segments_.push_back(std::move(s));
    }
    last_plane_ = p_.dc_stop ? kMaxPlanes + 1 : p_.bit_plane_stop;
  }

  BlockPlanes planes_of(const Chunk& c, ChunkMemory& m) {
    return {dc_.data() + c.first, m.sign.data(), depth_.data() + c.first, m.planes.data(),
            static_cast<std::size_t>(c.blocks)};
  }

  void gather(Chunk& c, ChunkMemory& m) {
    m.prepare(c.blocks);
    k_.gather(bands_, c.first, c.blocks, shift_.data(), planes_of(c, m));
    int depth = 0;
    for (int i = 0; i < c.blocks; ++i) depth = std::max<int>(depth, depth_[c.first + static_cast<std::uint64_t>(i)]);
    require(depth <= kMaxPlanes, ErrorKind::kBadArgument,
            "coefficients beyond 31 bits: lower the weights or the bit depth");
    c.depth = depth;
    c.next_plane = depth - 1;
    c.planes.resize(static_cast<std::size_t>(depth));
  }

  void code_plane(Chunk& c, ChunkMemory& m, StageMemory& scratch) {
    const int b = c.next_plane--;
    PlaneBits bits{};
    for (int i = 0; i < 4; ++i) bits.words[i] = scratch.words[i].data();
    const BlockPlanes in = planes_of(c, m);
    k_.encode_plane(in.planes + static_cast<std::size_t>(b) * in.stride, in.sign, in.depth, m.significant.data(),
                    c.blocks, b, eligible_mask(shift_.data(), b), bits);
    CodedPlane& plane = c.planes[static_cast<std::size_t>(b)];
    for (int i = 0; i < 4; ++i) {
      plane.at[i] = c.words.size();
      plane.bits[i] = bits.bits[i];
      plane.coefficients[i] = bits.coefficients[i];
      c.words.insert(c.words.end(), bits.words[i], bits.words[i] + (bits.bits[i] + 63) / 64);
      c.bits += bits.bits[i];
    }
  }

  void code_at_once() {
    std::vector<ChunkMemory> memory(static_cast<std::size_t>(pool_.threads()));
    std::vector<StageMemory> scratch(static_cast<std::size_t>(pool_.threads()));
    pool_.parallel_for(static_cast<int>(chunks_.size()), [&](int i, int worker) {
      Chunk& c = chunks_[static_cast<std::size_t>(i)];
      ChunkMemory& m = memory[static_cast<std::size_t>(worker)];
      gather(c, m);
      c.words.reserve(static_cast<std::size_t>(c.blocks * 6));
      while (c.next_plane >= last_plane_) code_plane(c, m, scratch[static_cast<std::size_t>(worker)]);
    });
  }

  /// Codes plane by plane over all chunks, so that few planes below the byte limit are coded in vain.
  void code_in_turn() {
    std::vector<ChunkMemory> memory(chunks_.size());
    std::vector<StageMemory> scratch(static_cast<std::size_t>(pool_.threads()));
    const int count = static_cast<int>(chunks_.size());
    pool_.parallel_for(
        count, [&](int i, int) { gather(chunks_[static_cast<std::size_t>(i)], memory[static_cast<std::size_t>(i)]); });
    int top = 0;
    for (const Chunk& c : chunks_) top = std::max(top, c.depth);
    int extra = 2;  // planes below the one that exhausts the budget, so that slopes can be compared
    for (int b = top - 1; b >= last_plane_; --b) {
      std::vector<std::uint64_t> spent(segments_.size(), 0);
      std::uint64_t all = 0;
      for (const Chunk& c : chunks_) {
        spent[c.segment] += c.bits;
        all += c.bits;
      }
      if (p_.total_bytes && all > 8 * p_.total_bytes && --extra < 0) break;
      pool_.parallel_for(count, [&](int i, int worker) {
        Chunk& c = chunks_[static_cast<std::size_t>(i)];
        const std::uint64_t limit =
            p_.segment_bytes ? 8 * std::uint64_t{segments_[c.segment].header.byte_limit} : ~std::uint64_t{0};
        if (c.next_plane == b && spent[c.segment] < limit)
          code_plane(c, memory[static_cast<std::size_t>(i)], scratch[static_cast<std::size_t>(worker)]);
      });
    }
  }

  /// Concatenates header, DC, AC depths and planes of a segment, and records its possible truncation points.
  void assemble(Segment& s) {
    SegmentHeader& h = s.header;
    const std::int32_t* dc = dc_.data() + s.first;
    const std::uint8_t* depth = depth_.data() + s.first;
    h.dc_depth = 1;
    h.ac_depth = 0;
    for (std::uint32_t m = 0; m < s.blocks; ++m) {
      h.dc_depth = std::max(h.dc_depth, dc_bits(dc[m]));
      h.ac_depth = std::max<int>(h.ac_depth, depth[m]);
    }
    const int dc_shift = shift_[kLL3];
    const DcQuantiser dc_q(h.dc_depth, h.ac_depth, dc_shift);

    std::uint64_t size = 64 * 4 + std::uint64_t{s.blocks} * (64 * 2 + 32);
    for (std::size_t c = 0; c < s.chunks; ++c) size += chunks_[s.first_chunk + c].bits;
    s.words.resize(size / 64 + 4);
    WordWriter out(s.words.data());
    std::vector<CutPoint>* points =
        p_.total_bytes ? &points_[static_cast<std::size_t>(&s - segments_.data())] : nullptr;

    for (const std::byte b : write_header(h)) out.put(std::to_integer<std::uint64_t>(b), 8);

    // Quantised DC values, then their planes above the AC planes.
    std::vector<std::int32_t> values(s.blocks);
    for (std::uint32_t m = 0; m < s.blocks; ++m) values[m] = dc[m] >> dc_q.q;
    if (dc_q.bits == 1) {
      for (std::uint32_t m = 0; m < s.blocks; ++m) out.put(values[m] & 1, 1);
    } else {
      encode_sequence(values.data(), s.blocks, {dc_q.bits, true}, p_.optimal_dc, out);
    }
    for (int b = dc_q.q - 1; b >= std::max(h.ac_depth, dc_shift); --b) put_dc_plane(dc, s.blocks, b, out);
    double gain = 0;
    const auto point = [&] {
      if (points) points->push_back({out.bits(s.words.data()), gain});
    };
    point();

    if (!p_.dc_stop && p_.bit_plane_stop < h.ac_depth) {
      if (h.ac_depth == 1) {
        for (std::uint32_t m = 0; m < s.blocks; ++m) out.put(depth[m], 1);
      } else {
        std::copy(depth, depth + s.blocks, values.begin());
        encode_sequence(values.data(), s.blocks, {depth_bits(h.ac_depth), false}, p_.optimal_ac, out);
      }
      for (int b = h.ac_depth - 1; b >= p_.bit_plane_stop; --b) {
        if (b < dc_q.q && b >= dc_shift) {
          put_dc_plane(dc, s.blocks, b, out);
          gain += stage_gain(0, b, s.blocks);
        }
        const int stages = b == p_.bit_plane_stop ? p_.stage_stop + 1 : 4;
        bool coded = false;
        for (int stage = 0; stage < stages; ++stage) {
          std::uint64_t coefficients = 0;
          for (std::size_t i = 0; i < s.chunks; ++i) {
            const Chunk& c = chunks_[s.first_chunk + i];
            if (b >= c.depth || b <= c.next_plane) continue;
            const CodedPlane& plane = c.planes[static_cast<std::size_t>(b)];
            out.append(c.words.data() + plane.at[stage], plane.bits[stage]);
            coefficients += plane.coefficients[stage];
            coded = true;
          }
          gain += stage_gain(stage + 1, b, coefficients);
          point();
        }
        if (!coded && limited()) {
          // Above the depth of all chunks nothing is sent; below the coded planes the limit is exceeded.
          bool any = false;
          for (std::size_t i = 0; i < s.chunks; ++i) any = any || b < chunks_[s.first_chunk + i].depth;
          if (any) break;
        }
      }
    }
    out.flush();
    s.bits = out.bits(s.words.data());
  }

  static void put_dc_plane(const std::int32_t* dc, std::uint32_t blocks, int b, WordWriter& out) {
    for (std::uint32_t m = 0; m < blocks; m += 32) {
      const std::uint32_t n = std::min<std::uint32_t>(32, blocks - m);
      std::uint64_t bits = 0;
      for (std::uint32_t i = 0; i < n; ++i) bits = bits << 1 | (static_cast<std::uint32_t>(dc[m + i]) >> b & 1);
      out.put(bits, n);
    }
  }

  /// Chooses the SegByteLimit of every segment and writes it into the headers.
  void spread() {
    const std::vector<std::uint32_t> bytes = allocate_bytes(points_, p_.total_bytes, p_.word_bytes);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Segment& s = segments_[i];
      s.header.byte_limit = bytes[i];
      const std::vector<std::byte> header = write_header(s.header);
      for (std::size_t k = 0; k < header.size(); ++k) {
        std::uint64_t& word = s.words[k / 8];
        const unsigned up = 56 - 8 * static_cast<unsigned>(k % 8);
        word = (word & ~(std::uint64_t{0xFF} << up)) | std::to_integer<std::uint64_t>(header[k]) << up;
      }
    }
  }

  void join(Encoded& out) const {
    std::vector<std::uint64_t> offset(segments_.size() + 1, 0);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      out.segment_bytes.push_back(segment_length(p_, segments_[i].header, segments_[i].bits));
      offset[i + 1] = offset[i] + out.segment_bytes[i];
    }
    out.bytes.resize(offset.back());
    pool_.parallel_for(static_cast<int>(segments_.size()), [&](int i, int) {
      const Segment& s = segments_[static_cast<std::size_t>(i)];
      std::uint8_t* to = reinterpret_cast<std::uint8_t*>(out.bytes.data()) + offset[static_cast<std::size_t>(i)];
      const std::uint64_t data =
          std::min<std::uint64_t>(out.segment_bytes[static_cast<std::size_t>(i)], (s.bits + 7) / 8);
      for (std::uint64_t k = 0; k < data / 8; ++k) store_big_endian(to + 8 * k, s.words[k]);
      for (std::uint64_t k = data / 8 * 8; k < data; ++k)
        to[k] = static_cast<std::uint8_t>(s.words[k / 8] >> (56 - 8 * (k % 8)));
    });
  }

  Params p_;
  ThreadPool& pool_;
  const Kernels& k_;
  VolumeView image_;
  std::vector<std::byte> turned_;
  BandView bands_;
  std::array<int, kBands> shift_{};
  int last_plane_ = 0;
  std::vector<std::int32_t> dc_;
  std::vector<std::uint8_t> depth_;
  std::vector<Segment> segments_;
  std::vector<Chunk> chunks_;
  std::vector<std::vector<CutPoint>> points_;
};

}  // namespace

Encoded encode(const VolumeView& image, const Params& params, ThreadPool& pool) {
  return Encoder(image, params, pool).run();
}

}  // namespace trivelet::ccsds122
