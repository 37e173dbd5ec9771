// Builds the words and masks of orientation trees (tree.h) for a shape, a decomposition and a block size.
#include "codec/transform/tree.h"

#include <algorithm>
#include <string>

#include "codec/transform/dwt.h"

namespace trivelet {

std::uint32_t any_in_group(std::uint64_t slots, int arity) {
  if (slots == 0) return 0;
  std::uint32_t groups = 0;
  const std::uint64_t mask = (std::uint64_t{1} << arity) - 1;
  for (int g = 0; g < 64 / arity; ++g)
    if (slots >> (g * arity) & mask) groups |= 1u << g;
  return groups;
}

std::size_t subband_slot(const BlockGrid& grid, int b, int k, int orientation_index) {
  const int n = grid.table().orientations();
  const int per_band = 1 + (grid.resolutions() - 1) * n;
  return static_cast<std::size_t>(b * per_band + (k == 0 ? 0 : 1 + (k - 1) * n + orientation_index));
}

std::size_t Family::total_words() const {
  std::size_t n = 0;
  for (const auto& l : levels) n += static_cast<std::size_t>(l.words) * static_cast<std::size_t>(l.orientations);
  return n;
}

namespace {

// Offset of child c (slot inside a group) from twice the group's coordinates.
WordBase child_offset(int c) {
  return {static_cast<std::uint16_t>(c >> 2), static_cast<std::uint16_t>(c >> 1 & 1),
          static_cast<std::uint16_t>(c & 1)};
}

// Coordinates of the slots of one level of a family as a function of the slot index. The low bits of a slot are its
// place in its group; the bits above are the slot of the parent, and so on up to the root group.
struct SlotMap {
  std::vector<int> arities;  // of levels 1..k; a root group has the arity of level 1
  int group_columns = 1;
  WordBase operator()(std::size_t slot) const {
    int places[10];
    int n = 0;
    for (std::size_t i = arities.size(); i-- > 0;) {
      places[n++] = static_cast<int>(slot % static_cast<std::size_t>(arities[i]));
      slot /= static_cast<std::size_t>(arities[i]);
    }
    const std::size_t per_frame = static_cast<std::size_t>(group_columns) * static_cast<std::size_t>(group_columns);
    WordBase p;
    p.t = static_cast<std::uint16_t>(slot / per_frame);
    const std::size_t z = slot % per_frame;
    for (int b = 0; b < 8; ++b) {
      p.x = static_cast<std::uint16_t>(p.x | (z >> (2 * b) & 1) << b);
      p.y = static_cast<std::uint16_t>(p.y | (z >> (2 * b + 1) & 1) << b);
    }
    for (std::size_t i = 0; i < arities.size(); ++i) {
      const WordBase c = child_offset(places[n - 1 - static_cast<int>(i)]);
      p.t = static_cast<std::uint16_t>(arities[i] == 8 ? 2 * p.t + c.t : p.t);
      p.y = static_cast<std::uint16_t>(2 * p.y + c.y);
      p.x = static_cast<std::uint16_t>(2 * p.x + c.x);
    }
    return p;
  }
};

WordKind kind_of(const std::array<WordBase, 64>& slot) {
  bool tile = true;
  bool cube = true;
  for (int i = 0; i < 64; ++i) {
    const WordBase& s = slot[static_cast<std::size_t>(i)];
    const int zx = (i & 1) | (i >> 2 & 1) << 1 | (i >> 4 & 1) << 2;
    const int zy = (i >> 1 & 1) | (i >> 3 & 1) << 1 | (i >> 5 & 1) << 2;
    tile = tile && s.t == 0 && s.y == zy && s.x == zx;
    const int cx = (i & 1) | (i >> 3 & 1) << 1;
    const int cy = (i >> 1 & 1) | (i >> 4 & 1) << 1;
    const int ct = (i >> 2 & 1) | (i >> 5 & 1) << 1;
    cube = cube && s.t == ct && s.y == cy && s.x == cx;
  }
  return tile ? WordKind::kTile8x8 : cube ? WordKind::kCube4x4x4 : WordKind::kOther;
}

// Arity of level k >= 1: groups are 2x2x2 where the step from the next coarser level also doubles time.
int arity(const Decomposition& d, int k) {
  if (d.layout != Layout::kDyadic) return 4;
  const int level = d.spatial_levels - k + 1;
  if (k <= 1) return d.temporal_levels > 0 && d.temporal_levels == d.spatial_levels ? 8 : 4;
  return level < d.temporal_levels ? 8 : 4;
}

}  // namespace

GridSize grid_size(const Shape& shape, const Decomposition& d, int block_size) {
  const int levels = d.spatial_levels;
  const int group_columns = std::max(1, block_size >> (levels + 1));
  const bool dyadic = d.layout == Layout::kDyadic;
  auto blocks = [&](int length) {
    return static_cast<std::uint64_t>(std::max(1, ceil_div(ceil_div(low_length(length, levels), 2), group_columns)));
  };
  GridSize n;
  n.blocks = blocks(shape.height) * blocks(shape.width);
  n.segments = (dyadic ? 1 : d.temporal_levels + 1) * (levels + 1);
  const std::uint64_t orientations = dyadic && d.temporal_levels > 0 ? 7 : 3;
  for (int b = 0; b <= (dyadic ? 0 : d.temporal_levels); ++b) {
    int frames = low_length(shape.frames, b == 0 ? d.temporal_levels : d.temporal_levels - b);
    if (b > 0) frames /= 2;
    if (b == 0 && d.key_last) --frames;
    if (arity(d, 1) == 8) frames = ceil_div(frames, 2);
    std::uint64_t slots = static_cast<std::uint64_t>(frames) * static_cast<std::uint64_t>(group_columns) *
                          static_cast<std::uint64_t>(group_columns);
    for (int k = 0; k <= levels; ++k) {
      if (k != 1) slots *= static_cast<std::uint64_t>(arity(d, std::max(1, k)));
      n.words += (slots + 63) / 64 * (k == 0 ? 1 : orientations);
    }
  }
  return n;
}

BlockGrid::BlockGrid(const Shape& shape, const Decomposition& d, bool reversible, int block_size, bool trees)
    : table_(shape, d, reversible) {
  require(block_size == 32 || block_size == 64 || block_size == 128 || block_size == 256, ErrorKind::kBadArgument,
          "block size must be 32, 64, 128 or 256, not " + std::to_string(block_size));
  const int levels = d.spatial_levels;
  group_columns_ = std::max(1, block_size >> (levels + 1));

  const Shape low = table_.lowest(0).shape;
  rows_ = std::max(1, ceil_div(ceil_div(low.height, 2), group_columns_));
  columns_ = std::max(1, ceil_div(ceil_div(low.width, 2), group_columns_));

  for (int b = 0; b < table_.temporal_bands(); ++b) {
    Family f;
    f.temporal_band = b;
    f.frames = table_.frames(b);
    const int root_arity = arity(d, 1);
    f.root_frames = root_arity == 8 ? ceil_div(f.frames, 2) : f.frames;
    for (int p = b - 1; p >= 0 && f.parent < 0; --p)
      if (table_.frames(p) > 0) f.parent = p;
    if (f.parent >= 0)
      for (int t = 0; t < f.root_frames; ++t)
        f.parent_frame.push_back(
            std::min(f.parent == 0 ? t : t >> 1, families_[static_cast<std::size_t>(f.parent)].root_frames - 1));

    if (!trees) {
      families_.push_back(std::move(f));
      continue;
    }
    SlotMap map;
    map.group_columns = group_columns_;
    std::size_t slots = static_cast<std::size_t>(f.root_frames) * static_cast<std::size_t>(group_columns_) *
                        static_cast<std::size_t>(group_columns_);
    for (int k = 0; k <= levels; ++k) {
      TreeLevel l;
      l.arity = k == 0 ? root_arity : arity(d, k);
      if (k == 0) {
        map.arities = {root_arity};
      } else if (k > 1) {
        map.arities.push_back(l.arity);
      }
      if (k != 1) slots *= static_cast<std::size_t>(l.arity);
      l.orientations = k == 0 ? 1 : table_.orientations();
      l.words = static_cast<int>((slots + 63) / 64);
      l.side = group_columns_ << std::max(1, k);
      for (std::size_t i = 0; i < 64; ++i) l.slot[i] = map(i);
      l.kind = kind_of(l.slot);
      l.base.resize(static_cast<std::size_t>(l.words));
      for (std::size_t w = 0; w < l.base.size(); ++w) l.base[w] = map(w * 64);
      f.levels.push_back(std::move(l));
    }
    families_.push_back(std::move(f));
  }

  for (int cls = 0; cls < 4 && trees; ++cls) {
    if ((rows_ == 1 && !(cls & 2)) || (columns_ == 1 && !(cls & 1))) continue;  // masks() never returns it
    const int by = cls & 2 ? rows_ - 1 : 0;
    const int bx = cls & 1 ? columns_ - 1 : 0;
    BlockMasks& m = masks_[static_cast<std::size_t>(cls)];
    for (const Family& f : families_) {
      FamilyMasks fm;
      fm.levels.resize(f.levels.size());
      for (int k = levels; k >= 0; --k) {
        const TreeLevel& l = f.levels[static_cast<std::size_t>(k)];
        LevelMasks& lm = fm.levels[static_cast<std::size_t>(k)];
        lm.valid.assign(static_cast<std::size_t>(l.words) * static_cast<std::size_t>(l.orientations), 0);
        for (int i = 0; i < l.orientations; ++i) {
          const Subband& band = table_.at(f.temporal_band, k, orientation(k, i));
          const Patch p = patch(band, by, bx);
          for (int w = 0; w < l.words; ++w) {
            const WordBase& base = l.base[static_cast<std::size_t>(w)];
            std::uint64_t v = 0;
            if (base.t >= band.shape.frames || base.y >= p.height || base.x >= p.width) continue;
            for (std::size_t s = 0; s < 64; ++s)
              if (base.t + l.slot[s].t < band.shape.frames && base.y + l.slot[s].y < p.height &&
                  base.x + l.slot[s].x < p.width)
                v |= std::uint64_t{1} << s;
            lm.valid[static_cast<std::size_t>(i * l.words + w)] = v;
          }
        }
        if (k == levels) {
          const int n = k == 0 ? 0 : l.orientations * l.words;
          lm.child.assign(static_cast<std::size_t>(n), 0);
          continue;
        }
        // A child group exists if any of its slots is valid or has an existing child of its own.
        const TreeLevel& cl = f.levels[static_cast<std::size_t>(k) + 1];
        const LevelMasks& cm = fm.levels[static_cast<std::size_t>(k) + 1];
        auto exists = [&](int i, int w) -> std::uint64_t {
          const auto at = static_cast<std::size_t>(i * cl.words + w);
          return any_in_group(cm.valid[at] | (cm.child.empty() ? 0 : cm.child[at]), cl.arity);
        };
        if (k == 0) {
          lm.child.assign(static_cast<std::size_t>(cl.orientations) * static_cast<std::size_t>(cl.words), 0);
          for (int i = 0; i < cl.orientations; ++i)
            for (int w = 0; w < cl.words; ++w) lm.child[static_cast<std::size_t>(i * cl.words + w)] = exists(i, w);
        } else {
          lm.child.assign(lm.valid.size(), 0);
          const int groups = 64 / cl.arity;
          for (int i = 0; i < l.orientations; ++i)
            for (int w = 0; w < l.words; ++w)
              for (int j = 0; j < cl.arity && w * cl.arity + j < cl.words; ++j)
                lm.child[static_cast<std::size_t>(i * l.words + w)] |= exists(i, w * cl.arity + j) << (j * groups);
        }
      }
      const TreeLevel& root = f.levels[0];
      fm.root_exists.assign(static_cast<std::size_t>(root.words), 0);
      for (int w = 0; w < root.words; ++w) {
        std::uint64_t e = any_in_group(fm.levels[0].valid[static_cast<std::size_t>(w)], root.arity);
        if (levels > 0)
          for (int i = 0; i < f.levels[1].orientations; ++i)
            e |= fm.levels[0].child[static_cast<std::size_t>(i * f.levels[1].words + w)];
        fm.root_exists[static_cast<std::size_t>(w)] = static_cast<std::uint16_t>(e);
      }
      m.families.push_back(std::move(fm));
    }
  }
}

BlockGrid::Patch BlockGrid::patch(const Subband& band, int by, int bx) const {
  const int side = this->side(band.resolution);
  Patch p;
  p.y = by * side;
  p.x = bx * side;
  p.height = std::clamp(band.shape.height - p.y, 0, side);
  p.width = std::clamp(band.shape.width - p.x, 0, side);
  return p;
}

BlockGrid::Patch BlockGrid::extent(int block) const {
  const int side = group_columns_ << (table_.decomposition().spatial_levels + 1);
  Patch p;
  p.y = block / columns_ * side;
  p.x = block % columns_ * side;
  p.height = std::min(side, table_.shape().height - p.y);
  p.width = std::min(side, table_.shape().width - p.x);
  return p;
}

}  // namespace trivelet
