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

// A family without its levels; `before` are those of the temporal bands before it.
Family make_family(const SubbandTable& table, int temporal_band, const std::vector<Family>& before) {
  Family f;
  f.temporal_band = temporal_band;
  f.frames = table.frames(temporal_band);
  f.root_frames = arity(table.decomposition(), 1) == 8 ? ceil_div(f.frames, 2) : f.frames;
  for (int p = temporal_band - 1; p >= 0 && f.parent < 0; --p)
    if (table.frames(p) > 0) f.parent = p;
  if (f.parent >= 0)
    for (int t = 0; t < f.root_frames; ++t)
      f.parent_frame.push_back(
          std::min(f.parent == 0 ? t : t >> 1, before[static_cast<std::size_t>(f.parent)].root_frames - 1));
  return f;
}

std::vector<TreeLevel> make_levels(const SubbandTable& table, int root_frames, int group_columns) {
  const Decomposition& d = table.decomposition();
  SlotMap map;
  map.group_columns = group_columns;
  std::size_t slots = static_cast<std::size_t>(root_frames) * static_cast<std::size_t>(group_columns) *
                      static_cast<std::size_t>(group_columns);
  std::vector<TreeLevel> levels;
  for (int k = 0; k <= d.spatial_levels; ++k) {
    TreeLevel l;
    l.arity = arity(d, std::max(1, k));
    if (k != 1) {
      map.arities.push_back(l.arity);
      slots *= static_cast<std::size_t>(l.arity);
    }
    l.orientations = k == 0 ? 1 : table.orientations();
    l.words = static_cast<int>((slots + 63) / 64);
    l.side = group_columns << std::max(1, k);
    for (std::size_t i = 0; i < 64; ++i) l.slot[i] = map(i);
    l.kind = kind_of(l.slot);
    l.base.resize(static_cast<std::size_t>(l.words));
    for (std::size_t w = 0; w < l.base.size(); ++w) l.base[w] = map(w * 64);
    levels.push_back(std::move(l));
  }
  return levels;
}

// LevelMasks::valid of level k in the block at by, bx.
std::vector<std::uint64_t> valid_slots(const BlockGrid& grid, const Family& f, int k, int by, int bx) {
  const TreeLevel& l = f.levels[static_cast<std::size_t>(k)];
  std::vector<std::uint64_t> valid(static_cast<std::size_t>(l.words) * static_cast<std::size_t>(l.orientations), 0);
  for (int i = 0; i < l.orientations; ++i) {
    const Subband& band = grid.table().at(f.temporal_band, k, BlockGrid::orientation(k, i));
    const BlockGrid::Patch p = grid.patch(band, by, bx);
    for (int w = 0; w < l.words; ++w) {
      const WordBase& base = l.base[static_cast<std::size_t>(w)];
      std::uint64_t v = 0;
      if (base.t >= band.shape.frames || base.y >= p.height || base.x >= p.width) continue;
      for (std::size_t s = 0; s < 64; ++s)
        if (base.t + l.slot[s].t < band.shape.frames && base.y + l.slot[s].y < p.height &&
            base.x + l.slot[s].x < p.width)
          v |= std::uint64_t{1} << s;
      valid[static_cast<std::size_t>(i * l.words + w)] = v;
    }
  }
  return valid;
}

// LevelMasks::child of level k. `finer` are the masks of level k + 1. A child group exists if any of its slots is valid
// or has an existing child of its own.
std::vector<std::uint64_t> child_groups(const Family& f, int k, const LevelMasks& finer) {
  const TreeLevel& l = f.levels[static_cast<std::size_t>(k)];
  const TreeLevel& cl = f.levels[static_cast<std::size_t>(k) + 1];
  const auto exists = [&](int i, int w) -> std::uint64_t {
    const auto at = static_cast<std::size_t>(i * cl.words + w);
    return any_in_group(finer.valid[at] | (finer.child.empty() ? 0 : finer.child[at]), cl.arity);
  };
  std::vector<std::uint64_t> child;
  if (k == 0) {
    for (int i = 0; i < cl.orientations; ++i)
      for (int w = 0; w < cl.words; ++w) child.push_back(exists(i, w));
    return child;
  }
  child.assign(static_cast<std::size_t>(l.words) * static_cast<std::size_t>(l.orientations), 0);
  const int groups = 64 / cl.arity;
  for (int i = 0; i < l.orientations; ++i)
    for (int w = 0; w < l.words; ++w)
      for (int j = 0; j < cl.arity && w * cl.arity + j < cl.words; ++j)
        child[static_cast<std::size_t>(i * l.words + w)] |= exists(i, w * cl.arity + j) << (j * groups);
  return child;
}

FamilyMasks family_masks(const BlockGrid& grid, const Family& f, int by, int bx) {
  const auto last = f.levels.size() - 1;
  FamilyMasks masks;
  masks.levels.resize(f.levels.size());
  for (std::size_t k = last + 1; k-- > 0;) {
    LevelMasks& m = masks.levels[k];
    m.valid = valid_slots(grid, f, static_cast<int>(k), by, bx);
    if (k < last) {
      m.child = child_groups(f, static_cast<int>(k), masks.levels[k + 1]);
    } else if (k > 0) {
      m.child.assign(m.valid.size(), 0);
    }
  }
  const TreeLevel& root = f.levels[0];
  for (int w = 0; w < root.words; ++w) {
    std::uint64_t e = any_in_group(masks.levels[0].valid[static_cast<std::size_t>(w)], root.arity);
    if (last > 0)
      for (int i = 0; i < f.levels[1].orientations; ++i)
        e |= masks.levels[0].child[static_cast<std::size_t>(i * f.levels[1].words + w)];
    masks.root_exists.push_back(static_cast<std::uint16_t>(e));
  }
  return masks;
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
  group_columns_ = std::max(1, block_size >> (d.spatial_levels + 1));

  const Shape low = table_.lowest(0).shape;
  rows_ = std::max(1, ceil_div(ceil_div(low.height, 2), group_columns_));
  columns_ = std::max(1, ceil_div(ceil_div(low.width, 2), group_columns_));

  for (int b = 0; b < table_.temporal_bands(); ++b) {
    Family f = make_family(table_, b, families_);
    if (trees) f.levels = make_levels(table_, f.root_frames, group_columns_);
    families_.push_back(std::move(f));
  }

  for (int cls = 0; cls < 4 && trees; ++cls) {
    if ((rows_ == 1 && !(cls & 2)) || (columns_ == 1 && !(cls & 1))) continue;  // masks() never returns it
    const int by = cls & 2 ? rows_ - 1 : 0;
    const int bx = cls & 1 ? columns_ - 1 : 0;
    for (const Family& f : families_)
      masks_[static_cast<std::size_t>(cls)].families.push_back(family_masks(*this, f, by, bx));
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
