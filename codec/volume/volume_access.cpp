// A reader takes whole code blocks, and a code block has all slices of its slab: small ones read less for a region, but
// each carries weights and frequencies of its own. Blocks with mixed contexts carry none (docs/VOLUMES.md "Regions" has
// the figures from which these sizes are chosen).
#include "codec/volume/volume_access.h"

#include <algorithm>
#include <bit>

namespace trivelet {

namespace {

constexpr int kWholeBlock = 128;
constexpr int kSliceBlock = 256;
constexpr int kRegionBlock = 64;
constexpr int kWaveletRegionBlock = 32;  // whose reader needs coefficients around the region, too
constexpr int kWaveletSlab = 32;
constexpr int kLargeSlab = 32;
constexpr std::uint64_t kSlicesForLargeSlabs = 64;
constexpr std::uint64_t kMixedVoxels = std::uint64_t{1} << 24;  // more take long to decode (4 MB/s)
constexpr std::uint64_t kParts = 10;                            // slabs of a volume, about
constexpr std::uint64_t kMostSlab = 16;

/// Slabs of nearly equal size, about kParts of them if they have `least` to kMostSlab slices.
int fine_slab(std::uint64_t slices, std::uint64_t least) {
  const std::uint64_t wanted = std::bit_ceil((slices + kParts - 1) / kParts);
  const std::uint64_t most = std::clamp(wanted, least, kMostSlab);
  const std::uint64_t parts = (slices + most - 1) / most;
  return static_cast<int>((slices + parts - 1) / parts);
}

bool may_be_predicted(const VolumeEncoderParams& p) {
  return !p.is_lossy() && p.layers <= 1 && p.transform != VolumeTransform::kWavelet && p.predictive;
}

struct Blocks {
  int size;
  int slab;
};

Blocks blocks_for_regions(const VolumeDescription& volume, const VolumeEncoderParams& p) {
  if (!may_be_predicted(p)) return {kWaveletRegionBlock, kWaveletSlab};
  if (p.effort == VolumeEffort::kFast) return {kRegionBlock, fine_slab(volume.slices, 8)};  // tables are shorter
  if (p.effort == VolumeEffort::kSlow || mixes_for_regions(volume, p))
    return {kRegionBlock, fine_slab(volume.slices, 6)};
  // Tables need 2^17 samples.
  if (volume.slices < kSlicesForLargeSlabs) return {2 * kRegionBlock, fine_slab(volume.slices, 8)};
  return {kRegionBlock, kLargeSlab};
}

}  // namespace

bool mixes_for_regions(const VolumeDescription& volume, const VolumeEncoderParams& params) {
  return params.access == VolumeAccess::kRegion && params.effort != VolumeEffort::kFast &&
         volume.voxels() <= kMixedVoxels;
}

VolumeEncoderParams with_blocks_for_access(const VolumeDescription& volume, const VolumeEncoderParams& params) {
  VolumeEncoderParams p = params;
  Blocks blocks{kWholeBlock, 0};
  if (p.access == VolumeAccess::kRegion) blocks = blocks_for_regions(volume, p);
  if (p.access == VolumeAccess::kSlices)
    blocks = {kSliceBlock, may_be_predicted(p) ? fine_slab(volume.slices, 4) : static_cast<int>(kMostSlab)};
  if (p.block_size == 0) p.block_size = blocks.size;
  // With a fourth axis a GOP is a volume, or one slice at all times.
  if (blocks.slab > 0 && !p.slab && volume.volumes == 1) p.slab = blocks.slab;
  return p;
}

}  // namespace trivelet
