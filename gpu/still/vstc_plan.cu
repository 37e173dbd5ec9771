// Lists the paths and nodes of VSTC's search for a size of blocks.

#include "gpu/still/vstc_args.h"

namespace trivelet::gpu::vstc_search {

Plan::Plan(int log2_block, int planes) : log2_slots(2 * (log2_block - 2)), depth(log2_slots) {
  Path root;
  root.log2_w = root.log2_h = log2_block;
  root.widths[0] = root.heights[0] = static_cast<std::uint8_t>(log2_block);
  paths.push_back(root);
  root_tokens = most_tokens(1 << 2 * log2_block, planes);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const int area = 1 << (paths[i].log2_w + paths[i].log2_h);
    paths[i].leaf = leaf;
    leaf += area;
    paths[i].leaf_tokens = leaf_tokens;
    leaf_tokens += most_tokens(area, planes);
    paths[i].nodes = nodes;
    paths[i].node_count = ((2 << paths[i].log2_w) - 1) * ((2 << paths[i].log2_h) - 1);
    nodes += paths[i].node_count;
    for (int across = 0; across < 2; ++across) {
      if ((across ? paths[i].log2_w : paths[i].log2_h) <= 2) continue;
      Path p = paths[i];
      ++p.depth;
      (across ? p.log2_w : p.log2_h) -= 1;
      p.widths[p.depth] = static_cast<std::uint8_t>(p.log2_w);
      p.heights[p.depth] = static_cast<std::uint8_t>(p.log2_h);
      p.ancestor[p.depth] = static_cast<std::int16_t>(paths.size());
      p.child[0] = p.child[1] = -1;
      p.canvas = canvas;
      canvas += area;
      p.canvas_cells = canvas_cells;
      canvas_cells += area / 16;
      p.canvas_tokens = canvas_tokens;
      canvas_tokens += most_tokens(area, planes);
      paths[i].child[across] = static_cast<int>(paths.size());
      paths.push_back(p);
    }
  }
}

}  // namespace trivelet::gpu::vstc_search
