// Dequantised values of truncated segments, computed from the coefficients (see block_cut.h).
#include "codec/rate/block_cut.h"

#include <algorithm>

#include "codec/entropy/dense/dense_block.h"
#include "codec/format/chunk.h"

namespace trivelet {

namespace {

// `cut` is in half planes: 2p truncates below plane p; 2p + 1 keeps only the first pass of plane p, so that
// coefficients significant before keep an interval twice as wide.
template <class T>
CutRow<T> row_cut_at(int cut, int centroid) {
  const int low = std::min(cut >> 1, dense::kMaxPlanes);
  const bool half = (cut & 1) != 0 && low < dense::kMaxPlanes;
  const int low_of_older = half ? low + 1 : low;
  CutRow<T> r;
  r.older = half ? static_cast<std::int32_t>(std::uint32_t{2} << low) : 0;
  r.kept[0] = std::int32_t{1} << low;
  r.kept[1] = -(std::int32_t{1} << low_of_older);
  r.offset[0] = reconstruction_offset_of<T>(centroid, low);
  r.offset[1] = reconstruction_offset_of<T>(centroid, low_of_older);
  return r;
}

}  // namespace

template <class T>
BlockCut<T>::BlockCut(Profile profile, const BlockGrid& grid, const std::uint8_t* cuts, int centroid,
                      const StepTable* steps)
    : grid_(grid), steps_(steps), centroid_(centroid), cuts_(cuts, cuts + segment_count(grid)) {
  for (int b = 0; b < grid.table().temporal_bands(); ++b)
    for (int k = 0; k < grid.resolutions(); ++k) {
      const int parent = parent_segment(grid, b, k);
      if (parent < 0) continue;
      int& cut = cuts_[static_cast<std::size_t>(segment_index(grid, b, k))];
      cut = std::max(cut, lowest_cut(profile, cuts_[static_cast<std::size_t>(parent)]));
    }
  for (int& cut : cuts_) cut *= 2 / cuts_per_plane(profile);
}

template <class T>
CutRow<T> BlockCut<T>::row(std::size_t i) const {
  const Subband& band = grid_.table().all()[i];
  const auto s = static_cast<std::size_t>(segment_index(grid_, band.temporal_band, band.resolution));
  CutRow<T> row = row_cut_at<T>(cuts_[s], centroid_);
  row.inverse_step = steps_ ? steps_->inverse[i] : 1.0f;
  row.step = steps_ ? static_cast<T>(steps_->step[i]) : T{1};
  return row;
}

template class BlockCut<float>;
template class BlockCut<std::int32_t>;

template <class T>
void cut_coefficients(Profile profile, const BlockGrid& grid, const std::uint8_t* cuts, int centroid,
                      const StepTable* steps, const Field<T>& from, const Field<T>& to, ThreadPool& pool,
                      SimdLevel simd) {
  const CoefficientKernels<T>& kernels = coefficient_kernels<T>(simd);
  std::vector<BlockCut<T>> blocks;
  for (int block = 0; block < grid.blocks(); ++block)
    blocks.emplace_back(profile, grid, cuts + block * segment_count(grid), centroid, steps);
  // Goes row by row through the field, across blocks, because rows of a single block are far apart in memory.
  const auto cut_band = [&](std::size_t i, int t) {
    const Subband& band = grid.table().all()[i];
    const Field<T> source = subband_view(from, band);
    const Field<T> target = subband_view(to, band);
    for (int block = 0; block < grid.blocks(); ++block) {
      const BlockGrid::Patch p = grid.patch(band, block / grid.columns(), block % grid.columns());
      const CutRow<T> row = blocks[static_cast<std::size_t>(block)].row(i);
      for (int y = p.y; y < p.y + p.height; ++y)
        kernels.cut(row, source.row(t, y) + p.x, target.row(t, y) + p.x, p.width);
    }
  };
  pool.parallel_for(from.shape.frames, [&](int frame, int) {
    for (std::size_t i = 0; i < grid.table().all().size(); ++i) {
      const Subband& band = grid.table().all()[i];
      const int t = (frame - band.frame_origin) / band.frame_step;
      if (frame >= band.frame_origin && band.frame_origin + t * band.frame_step == frame && t < band.shape.frames)
        cut_band(i, t);
    }
  });
}

template void cut_coefficients(Profile, const BlockGrid&, const std::uint8_t*, int, const StepTable*,
                               const Field<float>&, const Field<float>&, ThreadPool&, SimdLevel);
template void cut_coefficients(Profile, const BlockGrid&, const std::uint8_t*, int, const StepTable*,
                               const Field<std::int32_t>&, const Field<std::int32_t>&, ThreadPool&, SimdLevel);

}  // namespace trivelet
