// The zerotree coder of a block (zerotree.h): memory, order of segments and planes, temporal trees and layers. The
// loops over words are in zerotree_kernels.cpp.
#include "codec/entropy/fast/zerotree.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "codec/base/limits.h"
#include "codec/base/simd.h"
#include "codec/entropy/fast/zerotree_kernels.h"
#include "codec/transform/quantiser.h"
#include "codec/transform/zero_patches.h"

namespace trivelet {

using namespace zerotree;

namespace {

LevelView view(const TreeLevel& l, const LevelMasks& m) {
  LevelView v;
  v.arity = l.arity;
  v.orientations = l.orientations;
  v.words = l.words;
  v.kind = l.kind;
  v.slot = l.slot.data();
  v.base = l.base.data();
  v.valid = m.valid.data();
  v.child = m.child.data();
  return v;
}

// In the two finest levels a group with a single significant coefficient codes that coefficient's position.
bool is_fine(int k, int resolutions) { return k >= resolutions - 2; }

template <class T>
void clear_frame(const Field<T>& v, int t) {
  for (int y = 0; y < v.shape.height; ++y)
    std::memset(v.row(t, y), 0, sizeof(T) * static_cast<std::size_t>(v.shape.width));
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ encoder

struct BlockEncoder::State {
  const Kernels* kernels;
  struct FamilyState {
    std::vector<std::vector<EncodedWord>> levels;
    std::vector<std::uint8_t> root_planes;  // per root group: planes of its spatio-temporal set
  };
  std::vector<FamilyState> families;
  std::unique_ptr<std::uint64_t[]> plane_pool;
  std::unique_ptr<std::uint16_t[]> act_pool;
  std::size_t pool_words = 0;
  std::unique_ptr<std::uint64_t[]> sink_pool;
  std::size_t sink_capacity = 0;
  BitSink sinks[kMaxPlanes][kSubStreams];
  std::vector<std::uint64_t> joined;

  template <class T>
  void encode(const BlockGrid& grid, int by, int bx, const Field<T>& field, const float* inverse_steps,
              const LayerPlan& plan, CodedBlock& out);
  void join_temporal_trees(const BlockGrid& grid, const BlockMasks& masks, Pools& pools, CodedBlock& out);
  void prepare_sinks(const TreeLevel& level, const TreeLevel* parent, int planes);
  void write_root_activity(const Family& f, const FamilyMasks& masks, int b, int planes, int parent_top);
  void store_parts(int planes, int segment, const LayerPlan& plan, int segments, CodedBlock& out);
};

BlockEncoder::BlockEncoder(SimdLevel simd) : state_(std::make_unique<State>()) { state_->kernels = &kernels(simd); }
BlockEncoder::~BlockEncoder() = default;

void BlockEncoder::encode(const BlockGrid& grid, int by, int bx, const Field<float>& field, const StepTable& steps,
                          const LayerPlan& plan, CodedBlock& out) {
  state_->encode(grid, by, bx, field, steps.inverse.data(), plan, out);
}
void BlockEncoder::encode(const BlockGrid& grid, int by, int bx, const Field<std::int32_t>& field,
                          const LayerPlan& plan, CodedBlock& out) {
  state_->encode(grid, by, bx, field, nullptr, plan, out);
}

namespace {

void slice(const Kernels& k, const SliceArgs<float>& a) { k.slice_real(a); }
void slice(const Kernels& k, const SliceArgs<std::int32_t>& a) { k.slice_integer(a); }

// Passes the words of the child level to the slicing kernel.
template <class T>
void set_children(SliceArgs<T>& a, const std::vector<std::vector<EncodedWord>>& words, const Family& f, std::size_t k,
                  int orientation_index) {
  if (k + 1 >= f.levels.size()) return;
  const TreeLevel& c = f.levels[k + 1];
  a.child_words = c.words;
  a.child_arity = c.arity;
  if (k == 0) {
    a.children = words[1].data();
    a.child_orientations = c.orientations;
  } else {
    a.children = words[k + 1].data() + static_cast<std::ptrdiff_t>(orientation_index) * c.words;
  }
}

}  // namespace

template <class T>
void BlockEncoder::State::encode(const BlockGrid& grid, int by, int bx, const Field<T>& field,
                                 const float* inverse_steps, const LayerPlan& plan, CodedBlock& out) {
  const BlockMasks& masks = grid.masks(by, bx);
  const int resolutions = grid.resolutions();
  const int segments = segment_count(grid);
  std::size_t words = 0;
  for (const Family& f : grid.families()) words += f.total_words() + static_cast<std::size_t>(f.levels[0].words);
  if (words > pool_words) {
    plane_pool = std::make_unique_for_overwrite<std::uint64_t[]>(words * kMaxPlanes);
    act_pool = std::make_unique_for_overwrite<std::uint16_t[]>(words * kMaxPlanes);
    pool_words = words;
  }
  Pools pools{plane_pool.get(), act_pool.get(), 0, 0};
  families.resize(grid.families().size());

  out.top.assign(static_cast<std::size_t>(segments), 0);
  out.size.assign(static_cast<std::size_t>(segments * plan.layers), 0);
  out.offset.assign(static_cast<std::size_t>(segments * plan.layers), 0);
  out.bits.assign(static_cast<std::size_t>(segments * plan.layers), 0);
  out.bytes.clear();

  // Pass 1, fine to coarse: quantise, slice into planes, join activity up the spatial trees.
  for (std::size_t b = 0; b < families.size(); ++b) {
    const Family& f = grid.families()[b];
    FamilyState& fs = families[b];
    fs.levels.resize(f.levels.size());
    for (std::size_t k = f.levels.size(); k-- > 0;) {
      const TreeLevel& l = f.levels[k];
      fs.levels[k].resize(static_cast<std::size_t>(l.words) * static_cast<std::size_t>(l.orientations));
      int top = 0;
      for (int i = 0; i < l.orientations; ++i) {
        const Subband& band =
            grid.table().at(static_cast<int>(b), static_cast<int>(k), grid.orientation(static_cast<int>(k), i));
        const Field<T> v = patch_view(grid, by, bx, field, band);
        SliceArgs<T> a;
        a.origin = v.data;
        a.row_stride = v.row_stride;
        a.frame_stride = v.frame_stride;
        if (inverse_steps)
          a.inverse_step = inverse_steps[subband_slot(grid, static_cast<int>(b), static_cast<int>(k), i)];
        a.level = view(l, masks.families[b].levels[k]);
        a.orientation_index = i;
        a.words = fs.levels[k].data() + static_cast<std::ptrdiff_t>(i) * l.words;
        set_children(a, fs.levels, f, k, i);
        a.pools = &pools;
        slice(*kernels, a);
        for (int w = 0; w < l.words; ++w) top = std::max<int>(top, a.words[w].top);
      }
      out.top[static_cast<std::size_t>(segment_index(grid, static_cast<int>(b), static_cast<int>(k)))] =
          static_cast<std::uint8_t>(top);
    }
  }
  join_temporal_trees(grid, masks, pools, out);

  // Pass 2: the bits of every segment, plane by plane.
  for (std::size_t b = 0; b < families.size(); ++b) {
    const Family& f = grid.families()[b];
    if (f.frames == 0) continue;
    FamilyState& fs = families[b];
    for (int k = 0; k < resolutions; ++k) {
      const int s = segment_index(grid, static_cast<int>(b), k);
      const int planes = out.top[static_cast<std::size_t>(s)];
      if (planes == 0) break;
      const auto ku = static_cast<std::size_t>(k);
      prepare_sinks(f.levels[ku], k > 0 ? &f.levels[ku - 1] : nullptr, planes);
      SegmentArgs a;
      a.fine = is_fine(k, resolutions);
      a.planes = planes;
      a.level = view(f.levels[ku], masks.families[b].levels[ku]);
      a.words = fs.levels[ku].data();
      a.root = k == 0;
      if (k > 0) {
        a.parent = view(f.levels[ku - 1], masks.families[b].levels[ku - 1]);
        a.parent_words = fs.levels[ku - 1].data();
        a.parent_is_root = k == 1;
      } else if (f.parent >= 0) {
        write_root_activity(f, masks.families[b], static_cast<int>(b), planes,
                            grid.families()[static_cast<std::size_t>(f.parent)].parent >= 0
                                ? -1
                                : out.top[static_cast<std::size_t>(segment_index(grid, f.parent, 0))]);
      }
      a.pools = &pools;
      a.sinks = sinks;
      kernels->encode_segment(a);
      store_parts(planes, s, plan, segments, out);
    }
  }
}

// Joins root groups along temporal trees: the planes of a root group's set are the maximum of its own spatial set and
// of its temporal children's sets. Root groups without a temporal parent are active from the segment's top.
void BlockEncoder::State::join_temporal_trees(const BlockGrid& grid, const BlockMasks& masks, Pools& pools,
                                              CodedBlock& out) {
  const auto& all = grid.families();
  for (std::size_t b = 0; b < all.size(); ++b) {
    const TreeLevel& root = all[b].levels[0];
    const int groups = 64 / root.arity;
    families[b].root_planes.assign(static_cast<std::size_t>(root.words * groups), 0);
    for (int w = 0; w < root.words; ++w) {
      const EncodedWord& word = families[b].levels[0][static_cast<std::size_t>(w)];
      for (int p = 0; p < word.top; ++p)
        for (int g = 0; g < groups; ++g)
          if (pools.act[word.act_at + static_cast<std::uint32_t>(p)] >> g & 1)
            families[b].root_planes[static_cast<std::size_t>(w * groups + g)] = static_cast<std::uint8_t>(p + 1);
    }
  }
  for (std::size_t b = all.size(); b-- > 0;) {
    const Family& f = all[b];
    if (f.frames == 0) continue;
    const TreeLevel& root = f.levels[0];
    const int groups = 64 / root.arity;
    auto& planes = families[b].root_planes;
    if (f.parent >= 0) {
      auto& parents = families[static_cast<std::size_t>(f.parent)].root_planes;
      const std::size_t per_frame = static_cast<std::size_t>(root.side / 2) * static_cast<std::size_t>(root.side / 2);
      for (std::size_t t = 0; t < f.parent_frame.size(); ++t)
        for (std::size_t i = 0; i < per_frame; ++i) {
          auto& up = parents[static_cast<std::size_t>(f.parent_frame[t]) * per_frame + i];
          up = std::max(up, planes[t * per_frame + i]);
        }
    }
    int top = 0;
    for (const auto p : planes) top = std::max<int>(top, p);
    out.top[static_cast<std::size_t>(segment_index(grid, static_cast<int>(b), 0))] = static_cast<std::uint8_t>(top);
    // Rewrite the activity of the root words with the joined planes.
    const auto& exists = masks.families[b].root_exists;
    for (int w = 0; w < root.words; ++w) {
      EncodedWord& word = families[b].levels[0][static_cast<std::size_t>(w)];
      int word_top = top;
      if (f.parent >= 0) {
        word_top = 0;
        for (int g = 0; g < groups; ++g)
          word_top = std::max<int>(word_top, planes[static_cast<std::size_t>(w * groups + g)]);
      }
      word.top = static_cast<std::uint8_t>(word_top);
      word.act_at = static_cast<std::uint32_t>(pools.act_used);
      for (int p = 0; p < word_top; ++p) {
        std::uint32_t act = exists[static_cast<std::size_t>(w)];
        if (f.parent >= 0) {
          act = 0;
          for (int g = 0; g < groups; ++g)
            if (planes[static_cast<std::size_t>(w * groups + g)] > p) act |= 1u << g;
        }
        pools.act[pools.act_used++] = static_cast<std::uint16_t>(act);
      }
    }
  }
}

void BlockEncoder::State::prepare_sinks(const TreeLevel& level, const TreeLevel* parent, int planes) {
  const auto own = static_cast<std::size_t>(level.words) * static_cast<std::size_t>(level.orientations) + 2;
  const auto sets =
      (parent ? static_cast<std::size_t>(parent->words) * static_cast<std::size_t>(parent->orientations) : own) + 2;
  // Below root groups kChildren needs up to seven bits a group: a word of 64 slots has 8 or 16 groups, and two words
  // fit.
  const std::size_t capacity[kSubStreams] = {sets, 2 * sets, own, own, own, own, own};
  std::size_t per_plane = 0;
  for (const std::size_t c : capacity) per_plane += c;
  const std::size_t needed = per_plane * static_cast<std::size_t>(planes);
  if (needed > sink_capacity) {
    sink_pool = std::make_unique_for_overwrite<std::uint64_t[]>(needed);
    sink_capacity = needed;
  }
  std::uint64_t* at = sink_pool.get();
  for (int p = 0; p < planes; ++p)
    for (int i = 0; i < kSubStreams; ++i) {
      sinks[p][i] = {at, at, 0, 0};
      at += capacity[i];
    }
}

void BlockEncoder::State::write_root_activity(const Family& f, const FamilyMasks& masks, int b, int planes,
                                              int parent_top) {
  const TreeLevel& root = f.levels[0];
  const int groups = 64 / root.arity;
  const std::size_t per_frame = static_cast<std::size_t>(root.side / 2) * static_cast<std::size_t>(root.side / 2);
  const auto& own = families[static_cast<std::size_t>(b)].root_planes;
  const auto& parents = families[static_cast<std::size_t>(f.parent)].root_planes;
  for (std::size_t t = 0; t < f.parent_frame.size(); ++t)
    for (std::size_t i = 0; i < per_frame; ++i) {
      const std::size_t g = t * per_frame + i;
      if (!(masks.root_exists[g / static_cast<std::size_t>(groups)] >> (g % static_cast<std::size_t>(groups)) & 1))
        continue;
      const int parent_planes =
          parent_top >= 0 ? parent_top : parents[static_cast<std::size_t>(f.parent_frame[t]) * per_frame + i];
      for (int p = std::min(planes, parent_planes) - 1; p >= 0 && p >= own[g] - 1; --p) {
        BitSink& s = sinks[p][kSets];
        const std::uint64_t bit = p == own[g] - 1;
        s.acc |= bit << s.fill;
        *s.at = s.acc;
        if (++s.fill == 64) {
          ++s.at;
          s.acc = 0;
          s.fill = 0;
        }
      }
    }
}

void BlockEncoder::State::store_parts(int planes, int segment, const LayerPlan& plan, int segments, CodedBlock& out) {
  int from = planes;
  for (int l = 0; l < plan.layers; ++l) {
    const int to = std::min<int>(from, plan.low[static_cast<std::size_t>(l * segments + segment)]);
    const auto part = static_cast<std::size_t>(segment * plan.layers + l);
    out.offset[part] = out.bytes.size();
    std::size_t bits = 0;
    for (int p = to; p < from; ++p)
      for (const BitSink& s : sinks[p]) bits += static_cast<std::size_t>(s.at - s.begin) * 64 + s.fill;
    if (bits > 0) {
      const std::size_t words = bits / 64 + 2;
      if (joined.size() < words) joined.resize(words);
      BitSink sink{joined.data(), joined.data(), 0, 0};
      for (int p = from - 1; p >= to; --p)
        for (const BitSink& s : sinks[p]) kernels->append(sink, s);
      *sink.at = sink.acc;
      const std::size_t size = (bits + 7) / 8;
      out.size[part] = static_cast<std::uint32_t>(size);
      out.bits[part] = static_cast<std::uint32_t>(bits);
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(joined.data());
      out.bytes.insert(out.bytes.end(), bytes, bytes + size);
    }
    from = to;
  }
}

// ------------------------------------------------------------------------------------------------------------ decoder

namespace {

// Memory of the state of one level.
struct LevelMemory {
  std::vector<std::uint64_t> masks;   // sig, sign, found, live
  std::vector<std::uint16_t> groups;  // act, seen, fresh, open, raw, single
  std::vector<std::uint8_t> first;
  std::unique_ptr<std::uint64_t[]> planes;
  std::size_t plane_capacity = 0;

  LevelState reset(std::size_t words, std::size_t found_words, int top) {
    LevelState s;
    const std::size_t bitmap = (words + 63) / 64;
    masks.assign(2 * words + found_words + bitmap, 0);
    s.sig = masks.data();
    s.sign = s.sig + words;
    s.found = s.sign + words;
    s.live = s.found + found_words;
    groups.assign(6 * words, 0);
    s.act = groups.data();
    s.seen = s.act + words;
    s.fresh = s.seen + words;
    s.open = s.fresh + words;
    s.raw = s.open + words;
    s.single = s.raw + words;
    if (first.size() < words) first.resize(words);
    s.first = first.data();
    const std::size_t needed = words * static_cast<std::size_t>(top);
    if (needed > plane_capacity) {
      planes = std::make_unique_for_overwrite<std::uint64_t[]>(needed);
      plane_capacity = needed;
    }
    s.planes = planes.get();
    return s;
  }
};

void restore(const Kernels& k, const RestoreArgs<float>& a) { k.restore_real(a); }
void restore(const Kernels& k, const RestoreArgs<std::int32_t>& a) { k.restore_integer(a); }
std::size_t pack(const Kernels& k, const RestoreArgs<float>& a, int first, std::vector<std::uint64_t>& words,
                 float* out) {
  return k.pack_real(a, first, static_cast<int>(words.size()), words.data(), out);
}
std::size_t pack(const Kernels& k, const RestoreArgs<std::int32_t>& a, int first, std::vector<std::uint64_t>& words,
                 std::int32_t* out) {
  return k.pack_integer(a, first, static_cast<int>(words.size()), words.data(), out);
}

}  // namespace

struct BlockDecoder::State {
  const Kernels* kernels;
  bool staged;
  std::vector<std::vector<LevelMemory>> memory;  // [family][level]
  std::vector<std::vector<LevelState>> states;
  std::vector<int> low;           // per segment: lowest plane to decode, top when none
  std::vector<std::size_t> part;  // per segment: the part that is read now
  std::vector<BitSource> bits;

  void plan(const BlockGrid& grid, const SubbandTable& target, const std::vector<LayeredSegment>& segments,
            int stop_plane);
  void activate_roots(const BlockGrid& grid, const BlockMasks& masks, int b, int plane, BitSource& source);
  void next_part(const LayeredSegment& r, std::size_t s, int plane);
  template <class T>
  void decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
              const std::vector<LayeredSegment>& segments, int stop_plane, int centroid, const float* steps,
              const BlockMemory<T>& block_memory, ZeroPatches* left_out);
  template <class T>
  std::vector<T>& room() {
    if constexpr (std::is_floating_point_v<T>)
      return reals;
    else
      return integers;
  }
  template <class T>
  void give_tiles(const BlockGrid& grid, const RestoreArgs<T>& a, const Subband& band, int by, int bx,
                  TileSink<T>& tiles);
  std::vector<bool> used_frames;  // frames of a patch that are not zero
  std::vector<std::uint64_t> frame_words;
  std::vector<float> reals;
  std::vector<std::int32_t> integers;
  void find_used(const TreeLevel& level, const LevelState& s, int orientation_index, int frames);
};

BlockDecoder::BlockDecoder(FastMode mode, SimdLevel simd) : state_(std::make_unique<State>()) {
  state_->kernels = &kernels(simd);
  state_->staged = mode == FastMode::kStaged;
}
BlockDecoder::~BlockDecoder() = default;

template <class T>
void BlockDecoder::decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
                          const std::vector<LayeredSegment>& segments, int stop_plane, int centroid,
                          const StepTable* steps, const BlockMemory<T>& block_memory, ZeroPatches* left_out) {
  state_->decode(grid, target, by, bx, segments, stop_plane, centroid, steps ? steps->step.data() : nullptr,
                 block_memory, left_out);
}

template <class T>
void BlockDecoder::clear(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
                         const BlockMemory<T>& block_memory, ZeroPatches* left_out) {
  for (const Subband& band : target.all()) {
    const Field<T> v = patch_view(grid, by, bx, block_memory, band);
    const bool in_tiles = block_memory.tiles && has_tiles(grid, band);  // of which none is given
    for (int t = 0; t < v.shape.frames; ++t) {
      if (!in_tiles) clear_frame(v, t);
      if (left_out && band.resolution > 0) left_out->set(band, t, by, bx, in_tiles);
    }
  }
}

// Finds the lowest plane of every segment: the maximum of the end of its own parts, its parent's end, and the caller's
// stop plane. Segments that the target does not contain are not decoded.
void BlockDecoder::State::plan(const BlockGrid& grid, const SubbandTable& target,
                               const std::vector<LayeredSegment>& segments, int stop_plane) {
  low.assign(segments.size(), 0);
  for (std::size_t b = 0; b < grid.families().size(); ++b)
    for (int k = 0; k < grid.resolutions(); ++k) {
      const auto s = static_cast<std::size_t>(segment_index(grid, static_cast<int>(b), k));
      const LayeredSegment& r = segments[s];
      int own = r.parts.empty() ? r.top : r.parts.back().low;
      const int parent_family = grid.families()[b].parent;
      if (k > 0)
        own = std::max(own, low[s - 1]);
      else if (parent_family >= 0)
        own = std::max(own, low[static_cast<std::size_t>(segment_index(grid, parent_family, 0))]);
      const bool wanted = static_cast<int>(b) < target.temporal_bands() && k < target.resolutions();
      low[s] = wanted ? std::max(own, stop_plane) : kMaxPlanes + 1;
    }
}

// Activates root groups of family b at `plane`. A root group with a temporal parent has a bit that says when it becomes
// active.
void BlockDecoder::State::activate_roots(const BlockGrid& grid, const BlockMasks& masks, int b, int plane,
                                         BitSource& source) {
  const Family& f = grid.families()[static_cast<std::size_t>(b)];
  const TreeLevel& root = f.levels[0];
  const auto& exists = masks.families[static_cast<std::size_t>(b)].root_exists;
  LevelState& s = states[static_cast<std::size_t>(b)][0];
  auto activate = [&](std::size_t w, std::uint32_t groups) {
    if (!groups) return;
    if (!s.act[w]) {
      s.live[w >> 6] |= std::uint64_t{1} << (w & 63);
      s.first[w] = static_cast<std::uint8_t>(plane);
    }
    s.act[w] = static_cast<std::uint16_t>(s.act[w] | groups);
  };
  if (f.parent < 0) {
    for (std::size_t w = 0; w < static_cast<std::size_t>(root.words); ++w)
      if (s.act[w] != exists[w]) activate(w, exists[w]);
    return;
  }
  const auto groups = static_cast<std::size_t>(64 / root.arity);
  const std::size_t per_frame = static_cast<std::size_t>(root.side / 2) * static_cast<std::size_t>(root.side / 2);
  const LevelState& parent = states[static_cast<std::size_t>(f.parent)][0];
  for (std::size_t t = 0; t < f.parent_frame.size(); ++t)
    for (std::size_t i = 0; i < per_frame; ++i) {
      const std::size_t g = t * per_frame + i;
      const std::size_t up = static_cast<std::size_t>(f.parent_frame[t]) * per_frame + i;
      const std::uint32_t bit = 1u << (g % groups);
      if (!(exists[g / groups] & bit) || (s.act[g / groups] & bit) || !(parent.act[up / groups] >> (up % groups) & 1))
        continue;
      const std::size_t byte = source.position >> 3;
      const bool set = byte < source.size && (source.data[byte] >> (source.position & 7) & 1);
      ++source.position;
      if (set) activate(g / groups, bit);
    }
}

// Moves on to the part that holds `plane`. The current part must have been read to its last byte.
void BlockDecoder::State::next_part(const LayeredSegment& r, std::size_t s, int plane) {
  while (part[s] < r.parts.size() && r.parts[part[s]].low > plane) {
    ++part[s];
    bits[s].position = 0;
  }
  if (part[s] == r.parts.size())
    fail(ErrorKind::kInternal, "segment without a part for plane " + std::to_string(plane));
  bits[s].data = r.parts[part[s]].data;
  bits[s].size = r.parts[part[s]].size;
}

void BlockDecoder::State::find_used(const TreeLevel& level, const LevelState& s, int orientation_index, int frames) {
  const int span = level.slot.back().t;  // frames that a word covers
  for (int w = 0; w < level.words; ++w) {
    if (!s.sig[orientation_index * level.words + w]) continue;
    const int first = level.base[static_cast<std::size_t>(w)].t;
    for (int t = first; t <= std::min(first + span, frames - 1); ++t) used_frames[static_cast<std::size_t>(t)] = true;
  }
}

template <class T>
void BlockDecoder::State::decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
                                 const std::vector<LayeredSegment>& segments, int stop_plane, int centroid,
                                 const float* steps, const BlockMemory<T>& block_memory, ZeroPatches* left_out) {
  const BlockMasks& masks = grid.masks(by, bx);
  const auto& all = grid.families();
  const int resolutions = grid.resolutions();
  plan(grid, target, segments, stop_plane);
  memory.resize(all.size());
  states.resize(all.size());
  part.assign(segments.size(), 0);
  bits.assign(segments.size(), {});

  int top = 0;
  for (std::size_t b = 0; b < all.size(); ++b) {
    memory[b].resize(all[b].levels.size());
    states[b].assign(all[b].levels.size(), {});
    for (std::size_t k = 0; k < all[b].levels.size(); ++k) {
      const auto s = static_cast<std::size_t>(segment_index(grid, static_cast<int>(b), static_cast<int>(k)));
      if (low[s] >= segments[s].top) continue;
      top = std::max<int>(top, segments[s].top);
      const TreeLevel& l = all[b].levels[k];
      const auto words = static_cast<std::size_t>(l.words) * static_cast<std::size_t>(l.orientations);
      std::size_t found = words;
      if (k == 0 && all[b].levels.size() > 1)
        found =
            static_cast<std::size_t>(all[b].levels[1].words) * static_cast<std::size_t>(all[b].levels[1].orientations);
      states[b][k] = memory[b][k].reset(words, found, segments[s].top);
    }
  }

  for (int plane = top - 1; plane >= stop_plane; --plane)
    for (std::size_t b = 0; b < all.size(); ++b) {
      if (all[b].frames == 0) continue;
      for (int k = 0; k < resolutions; ++k) {
        const auto s = static_cast<std::size_t>(segment_index(grid, static_cast<int>(b), k));
        if (plane >= segments[s].top || plane < low[s]) break;
        const auto ku = static_cast<std::size_t>(k);
        next_part(segments[s], s, plane);
        PlaneArgs a;
        a.staged = staged;
        a.fine = is_fine(k, resolutions);
        a.plane = plane;
        a.level = view(all[b].levels[ku], masks.families[b].levels[ku]);
        a.state = &states[b][ku];
        if (k == 0) {
          activate_roots(grid, masks, static_cast<int>(b), plane, bits[s]);
        } else {
          a.parent = view(all[b].levels[ku - 1], masks.families[b].levels[ku - 1]);
          a.parent_is_root = k == 1;
          a.parent_state = &states[b][ku - 1];
        }
        a.bits = &bits[s];
        kernels->decode_plane(a);
        const std::size_t used = (bits[s].position + 7) / 8;
        const bool ends = segments[s].parts[part[s]].low == plane;
        const unsigned last_bits = bits[s].position & 7;  // bits used of the last byte; the rest is padding
        const bool padded = ends && used == bits[s].size && last_bits > 0 && bits[s].data[used - 1] >> last_bits != 0;
        if (used > bits[s].size || (ends && used != bits[s].size) || padded)
          fail(ErrorKind::kBadStream, "code block " + std::to_string(by) + "," + std::to_string(bx) +
                                          ", temporal band " + std::to_string(b) + ", resolution " + std::to_string(k) +
                                          ", plane " + std::to_string(plane) +
                                          (padded ? ": the padding of the part is not zero"
                                                  : ": the bits need " + count_of(used, "byte") + ", the part has " +
                                                        std::to_string(bits[s].size)));
      }
    }

  for (const Subband& band : target.all()) {
    const Field<T> v = patch_view(grid, by, bx, block_memory, band);
    const auto b = static_cast<std::size_t>(band.temporal_band);
    const auto k = static_cast<std::size_t>(band.resolution);
    const auto s = static_cast<std::size_t>(segment_index(grid, band.temporal_band, band.resolution));
    const bool empty = low[s] >= segments[s].top;
    const bool in_tiles = block_memory.tiles && has_tiles(grid, band);
    const bool may_leave_out = left_out && band.resolution > 0;
    used_frames.assign(static_cast<std::size_t>(v.shape.frames), false);
    if (may_leave_out && !empty)
      find_used(all[b].levels[k], states[b][k], std::max(0, band.orientation - 1), v.shape.frames);
    for (int t = 0; t < v.shape.frames; ++t) {
      const bool leave_out = may_leave_out && !used_frames[static_cast<std::size_t>(t)];
      if (!leave_out && !in_tiles) clear_frame(v, t);
      if (may_leave_out) left_out->set(band, t, by, bx, leave_out);
    }
    if (empty) continue;
    RestoreArgs<T> a;
    a.origin = v.data;
    a.row_stride = v.row_stride;
    a.frame_stride = v.frame_stride;
    a.orientation_index = std::max(0, band.orientation - 1);
    if (steps) a.step = steps[subband_slot(grid, band.temporal_band, band.resolution, a.orientation_index)];
    a.offset = reconstruction_offset(centroid, low[s]);
    a.integer_offset = integer_reconstruction_offset(centroid, low[s]);
    a.low = low[s];
    a.level = view(all[b].levels[k], masks.families[b].levels[k]);
    a.state = &states[b][k];
    if (in_tiles)
      give_tiles(grid, a, band, by, bx, *block_memory.tiles);
    else
      restore(*kernels, a);
  }
}

template <class T>
void BlockDecoder::State::give_tiles(const BlockGrid& grid, const RestoreArgs<T>& a, const Subband& band, int by,
                                     int bx, TileSink<T>& tiles) {
  std::vector<T>& out = room<T>();
  frame_words.resize(tiles_of(grid, band));
  out.resize(64 * frame_words.size() + 16);
  for (std::size_t t = 0; t < used_frames.size(); ++t) {
    if (!used_frames[t]) continue;
    const std::size_t count = pack(*kernels, a, static_cast<int>(t * frame_words.size()), frame_words, out.data());
    tiles.add(band, static_cast<int>(t), by, bx, frame_words, out.data(), count);
  }
}

namespace {

void unpack(const Kernels& k, const UnpackArgs<float>& a) { k.unpack_real(a); }
void unpack(const Kernels& k, const UnpackArgs<std::int32_t>& a) { k.unpack_integer(a); }

}  // namespace

template <class T>
void write_tiles(const BlockGrid& grid, const Subband& band, const BlockGrid::Patch& patch, const std::uint32_t* packed,
                 int first_row, int end_row, T* origin, std::ptrdiff_t row_stride, SimdLevel simd) {
  UnpackArgs<T> a;
  a.packed = packed;
  a.base = grid.families()[static_cast<std::size_t>(band.temporal_band)]
               .levels[static_cast<std::size_t>(band.resolution)]
               .base.data();
  a.words = static_cast<int>(tiles_of(grid, band));
  a.origin = origin;
  a.row_stride = row_stride;
  a.first_row = first_row;
  a.end_row = end_row;
  a.width = patch.width;
  unpack(kernels(simd), a);
}

template void write_tiles(const BlockGrid&, const Subband&, const BlockGrid::Patch&, const std::uint32_t*, int, int,
                          float*, std::ptrdiff_t, SimdLevel);
template void write_tiles(const BlockGrid&, const Subband&, const BlockGrid::Patch&, const std::uint32_t*, int, int,
                          std::int32_t*, std::ptrdiff_t, SimdLevel);
template void BlockDecoder::decode(const BlockGrid&, const SubbandTable&, int, int, const std::vector<LayeredSegment>&,
                                   int, int, const StepTable*, const BlockMemory<float>&, ZeroPatches*);
template void BlockDecoder::decode(const BlockGrid&, const SubbandTable&, int, int, const std::vector<LayeredSegment>&,
                                   int, int, const StepTable*, const BlockMemory<std::int32_t>&, ZeroPatches*);
template void BlockDecoder::clear(const BlockGrid&, const SubbandTable&, int, int, const BlockMemory<float>&,
                                  ZeroPatches*);
template void BlockDecoder::clear(const BlockGrid&, const SubbandTable&, int, int, const BlockMemory<std::int32_t>&,
                                  ZeroPatches*);

}  // namespace trivelet
