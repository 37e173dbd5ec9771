// Block matching in reduced pictures and the limits that choose the levels (level_choice.h).
#include "codec/motion/level_choice.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "codec/motion/sad_kernels.h"

namespace trivelet {

namespace {

constexpr int kBlockSide = 8;  // of blocks, in samples of the reduced picture
constexpr int kSearchReach =
    12;  // of the search, in samples of the reduced picture: every second place, then those beside
constexpr int kPairsLookedAt = 4;  // approximate number of frames examined for a distance
constexpr int kEndlessCost = 1 << 30;
constexpr int kReducedBits = 12;  // of samples of reduced pictures
// A block is lost when its best prediction leaves more than this percentage of what its own mean leaves.
constexpr int kLostShare = 70;
// The finest level that loses this percentage of the blocks is dropped, with all coarser ones. A finer level may lose
// more, because dropping it leaves more frames without prediction. Measured by BD-rate on twelve clips of QCIF to 1080p
// and GOPs of 4 to 32 frames: of the coarsest two levels those with losses up to 43 % paid and those from 53 % on did
// not; of the third those up to 66 % did and one of 81 % did not.
constexpr int kMostLost[] = {100, 80, 70, 45};
constexpr int kMostLostToMove = 40;  // at distance 1: below it GOPs with motion were smaller on all clips

struct ReducedPicture {
  int width = 0, height = 0;
  std::vector<std::int16_t> samples;
  const std::int16_t* at(int y, int x) const { return samples.data() + static_cast<std::ptrdiff_t>(y) * width + x; }
};

// Side of the square of samples that becomes one.
int reduction_of(int width, int height) {
  const std::int64_t samples = static_cast<std::int64_t>(width) * height;
  return samples >= 1 << 22 ? 8 : samples >= 150'000 ? 4 : samples >= 50'000 ? 2 : 1;
}

template <class T>
void reduce_frame(const VolumeView& v, int frame, int factor, int bits, ReducedPicture& out) {
  out.width = v.shape.width / factor;
  out.height = v.shape.height / factor;
  out.samples.resize(static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(out.width));
  for (int y = 0; y < out.height; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    for (int j = 0; j < factor; ++j) {
      const T* row = reinterpret_cast<const T*>(v.row(frame, y * factor + j));
      for (int x = 0; x < out.width; ++x)
        for (int i = 0; i < factor; ++i) sums[static_cast<std::size_t>(x)] += row[x * factor + i];
    }
    std::int16_t* to = out.samples.data() + static_cast<std::ptrdiff_t>(y) * out.width;
    for (int x = 0; x < out.width; ++x) {
      const std::int64_t sum = sums[static_cast<std::size_t>(x)];
      to[x] = static_cast<std::int16_t>(
          (bits <= kReducedBits ? sum << (kReducedBits - bits) : sum >> (bits - kReducedBits)) / (factor * factor));
    }
  }
}

ReducedPicture reduced_picture(const Gop& gop, int frame, int factor, int bits) {
  ReducedPicture p;
  const VolumeView v = gop.plane(0);
  if (v.bytes_per_sample == 1)
    v.is_signed ? reduce_frame<std::int8_t>(v, frame, factor, bits, p)
                : reduce_frame<std::uint8_t>(v, frame, factor, bits, p);
  else
    v.is_signed ? reduce_frame<std::int16_t>(v, frame, factor, bits, p)
                : reduce_frame<std::uint16_t>(v, frame, factor, bits, p);
  return p;
}

class BlockPrediction {
 public:
  BlockPrediction(const ReducedPicture& picture, int y, int x, const FineSadKernels& kernels)
      : kernels_(kernels), y_(y), x_(x), width_(picture.width), block_(picture.at(y, x)) {}

  bool is_lost(const ReducedPicture& past, const ReducedPicture& other) {
    const int limit = own() * kLostShare / 100;
    if (find(past, first_) <= limit || find(other, second_) <= limit) return false;
    return kernels_.satd_of_mean(block_, width_, first_, second_, kBlockSide) > limit;
  }

 private:
  // The SATD that the block's own mean leaves.
  int own() {
    int sum = 0;
    for (int j = 0; j < kBlockSide; ++j)
      for (int i = 0; i < kBlockSide; ++i) sum += block_[j * width_ + i];
    std::fill_n(first_, kBlockSide, static_cast<std::int16_t>((sum + kBlockSide * kBlockSide / 2) >> 6));
    return kernels_.satd(block_, width_, first_, 0);
  }

  // The SATD that the best place in another picture leaves, to half a sample. `best` gets the samples there.
  int find(const ReducedPicture& p, std::int16_t* best) const {
    int least = kEndlessCost, by = 0, bx = 0;
    const auto look = [&](int dy, int dx) {
      const int j = y_ + dy, i = x_ + dx;
      if (j < 0 || i < 0 || j + kBlockSide > p.height || i + kBlockSide > p.width) return;
      constexpr int kPerSample = 4;
      const int d = kernels_.sad(block_, width_, p.at(j, i), p.width) + kPerSample * (std::abs(dy) + std::abs(dx));
      if (d >= least) return;
      least = d;
      by = dy;
      bx = dx;
    };
    look(0, 0);
    for (int dy = -kSearchReach; dy <= kSearchReach; dy += 2)
      for (int dx = -kSearchReach; dx <= kSearchReach; dx += 2) look(dy, dx);
    const int cy = by, cx = bx;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) look(cy + dy, cx + dx);
    const int y = y_ + by, x = x_ + bx;
    const std::int16_t* from = p.at(y, x);
    for (int j = 0; j < kBlockSide; ++j) std::copy_n(from + j * p.width, kBlockSide, best + j * kBlockSide);
    int cost = kernels_.satd(block_, width_, best, kBlockSide);
    if (y < 1 || x < 1 || y + kBlockSide >= p.height || x + kBlockSide >= p.width) return cost;
    for (int hy = -1; hy <= 1; ++hy)
      for (int hx = -1; hx <= 1; ++hx) {
        if (hy == 0 && hx == 0) continue;
        std::int16_t between[kBlockSide * kBlockSide];
        for (int j = 0; j < kBlockSide; ++j)
          for (int i = 0; i < kBlockSide; ++i) {
            const std::int16_t* s = from + j * p.width + i;
            between[j * kBlockSide + i] =
                static_cast<std::int16_t>((s[0] + s[hx] + s[hy * p.width] + s[hy * p.width + hx] + 2) >> 2);
          }
        const int d = kernels_.satd(block_, width_, between, kBlockSide);
        if (d >= cost) continue;
        cost = d;
        std::copy_n(between, kBlockSide * kBlockSide, best);
      }
    return cost;
  }

  const FineSadKernels& kernels_;
  int y_, x_, width_;
  const std::int16_t* block_;
  std::int16_t first_[kBlockSide * kBlockSide], second_[kBlockSide * kBlockSide];
};

}  // namespace

LevelChoice choose_levels(const Gop& gop, int bits, int most, ThreadPool& pool, SimdLevel simd) {
  const int frames = gop.frames();
  const int factor = reduction_of(gop.plane(0).shape.width, gop.plane(0).shape.height);
  const FineSadKernels& kernels = fine_sad_kernels(resolve_simd(simd));
  std::vector<ReducedPicture> pictures(static_cast<std::size_t>(frames));
  pool.parallel_for(frames,
                    [&](int t, int) { pictures[static_cast<std::size_t>(t)] = reduced_picture(gop, t, factor, bits); });
  const int rows = pictures[0].height / kBlockSide, columns = pictures[0].width / kBlockSide;
  // Percentage of the blocks that are not predicted from this distance.
  const auto lost_at = [&](int distance) {
    const int step = std::max(2 * distance, frames / kPairsLookedAt / (2 * distance) * 2 * distance);
    const int places = (frames - 1 - distance) / step + 1;
    std::vector<int> lost(static_cast<std::size_t>(places * rows));
    pool.parallel_for(places * rows, [&](int i, int) {
      const int t = distance + i / rows * step;
      const int other = t + distance < frames ? t + distance : t - distance;
      for (int x = 0; x < columns; ++x) {
        BlockPrediction block(pictures[static_cast<std::size_t>(t)], i % rows * kBlockSide, x * kBlockSide, kernels);
        lost[static_cast<std::size_t>(i)] +=
            block.is_lost(pictures[static_cast<std::size_t>(t - distance)], pictures[static_cast<std::size_t>(other)]);
      }
    });
    std::int64_t sum = 0;
    for (const int n : lost) sum += n;
    return static_cast<int>(100 * sum / (static_cast<std::int64_t>(places) * rows * columns));
  };
  LevelChoice choice;
  if (rows == 0 || columns == 0) return {most, false};  // too small to examine
  for (int level = 0; level < most && 1 << level < frames; ++level) {
    const int at = lost_at(1 << level);
    if (level == 0) choice.moves = at < kMostLostToMove;
    if (at >= kMostLost[std::min<std::size_t>(static_cast<std::size_t>(level), std::size(kMostLost) - 1)]) break;
    choice.levels = level + 1;
  }
  return choice;
}

}  // namespace trivelet
