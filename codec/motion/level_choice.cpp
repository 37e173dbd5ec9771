// Block matching in reduced pictures and the limits that choose the levels (level_choice.h).
#include "codec/motion/level_choice.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "codec/motion/level_estimate.h"
#include "codec/motion/sad_kernels.h"

namespace trivelet {

namespace {

using namespace level_estimate;

// The finest level that loses this percentage of the contrast is dropped, with all coarser ones. A finer level may lose
// more, because dropping it leaves more frames without prediction. Measured by BD-rate on twelve clips of QCIF to 1080p
// and GOPs of 4 to 32 frames: of the coarsest two levels those with losses up to 43 % paid and those from 53 % on did
// not; of the third those up to 66 % did and one of 81 % did not. (That was the share of blocks. Now blocks count by
// their contrast: a flat road in front of a camera is noise, which nothing predicts and few bits code.)
constexpr int kMostLost[] = {100, 80, 70, 45};
constexpr int kMostLostToMove = 40;  // at distance 1: below it GOPs with motion were smaller on all clips

struct ReducedPicture {
  int width = 0, height = 0;
  std::vector<std::int16_t> samples;
  const std::int16_t* at(int y, int x) const { return samples.data() + static_cast<std::ptrdiff_t>(y) * width + x; }
};

template <class T, int kFactor>
void reduce_frame(const VolumeView& v, int frame, int bits, ReducedPicture& out) {
  out.width = v.shape.width / kFactor;
  out.height = v.shape.height / kFactor;
  out.samples.resize(static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height));
  const int columns = out.width * kFactor;
  std::vector<std::int32_t> sums(static_cast<std::size_t>(columns));
  for (int y = 0; y < out.height; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    for (int j = 0; j < kFactor; ++j) {
      const T* row = reinterpret_cast<const T*>(v.row(frame, y * kFactor + j));
      for (int x = 0; x < columns; ++x) sums[static_cast<std::size_t>(x)] += row[x];
    }
    std::int16_t* to = out.samples.data() + static_cast<std::ptrdiff_t>(y) * out.width;
    const std::int32_t* from = sums.data();
    for (int x = 0; x < out.width; ++x, from += kFactor) {
      std::int32_t sum = 0;
      for (int i = 0; i < kFactor; ++i) sum += from[i];
      to[x] = reduced_sample(sum, kFactor, bits);
    }
  }
}

template <class T>
void reduce_frame(const VolumeView& v, int frame, int factor, int bits, ReducedPicture& out) {
  switch (factor) {
    case 8: return reduce_frame<T, 8>(v, frame, bits, out);
    case 4: return reduce_frame<T, 4>(v, frame, bits, out);
    case 2: return reduce_frame<T, 2>(v, frame, bits, out);
    default: return reduce_frame<T, 1>(v, frame, bits, out);
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

// Reduced pictures of a GOP, each made when it is first needed.
class ReducedPictures {
 public:
  ReducedPictures(const Gop& gop, int bits, ThreadPool& pool)
      : gop_(gop),
        bits_(bits),
        factor_(reduction_of(gop.plane(0).shape.width, gop.plane(0).shape.height)),
        pool_(pool),
        pictures_(static_cast<std::size_t>(gop.frames())) {}

  int rows() const { return gop_.plane(0).shape.height / factor_ / kBlockSide; }
  int columns() const { return gop_.plane(0).shape.width / factor_ / kBlockSide; }
  const ReducedPicture& operator[](int frame) const { return pictures_[static_cast<std::size_t>(frame)]; }

  void make(const ComparedFrames& compared) {
    std::vector<int> missing;
    for (int i = 0; i < compared.count; ++i)
      for (const int frame : {compared.past(i), compared.frame(i), compared.other(i, gop_.frames())})
        if ((*this)[frame].samples.empty() && std::find(missing.begin(), missing.end(), frame) == missing.end())
          missing.push_back(frame);
    pool_.parallel_for(static_cast<int>(missing.size()), [&](int i, int) {
      const int frame = missing[static_cast<std::size_t>(i)];
      pictures_[static_cast<std::size_t>(frame)] = reduced_picture(gop_, frame, factor_, bits_);
    });
  }

 private:
  const Gop& gop_;
  int bits_, factor_;
  ThreadPool& pool_;
  std::vector<ReducedPicture> pictures_;
};

class BlockPrediction {
 public:
  BlockPrediction(const ReducedPicture& picture, int y, int x, const FineSadKernels& kernels)
      : kernels_(kernels), y_(y), x_(x), width_(picture.width), block_(picture.at(y, x)) {}

  /// Adds the block's contrast, and to what is lost if nothing predicts it.
  void count(const ReducedPicture& past, const ReducedPicture& other, LostContrast& sums) {
    const int own = contrast();
    sums.all += own;
    if (is_lost(past, other, own * kLostShare / 100)) sums.lost += own;
  }

 private:
  bool is_lost(const ReducedPicture& past, const ReducedPicture& other, int limit) {
    if (find(past, first_) <= limit || find(other, second_) <= limit) return false;
    return kernels_.satd_of_mean(block_, width_, first_, second_, kBlockSide) > limit;
  }

  // The SATD that the block's own mean leaves.
  int contrast() {
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
      const int d = cost_of_place(kernels_.sad(block_, width_, p.at(j, i), p.width), dy, dx);
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
        std::int16_t halves[kBlockSide * kBlockSide];
        for (int j = 0; j < kBlockSide; ++j)
          for (int i = 0; i < kBlockSide; ++i)
            halves[j * kBlockSide + i] = between(from + j * p.width + i, p.width, hy, hx);
        const int d = kernels_.satd(block_, width_, halves, kBlockSide);
        if (d >= cost) continue;
        cost = d;
        std::copy_n(halves, kBlockSide * kBlockSide, best);
      }
    return cost;
  }

  const FineSadKernels& kernels_;
  int y_, x_, width_;
  const std::int16_t* block_;
  std::int16_t first_[kBlockSide * kBlockSide], second_[kBlockSide * kBlockSide];
};

}  // namespace

LevelChoice levels_by_losses(int frames, int most, const std::function<int(int)>& lost) {
  LevelChoice choice;
  for (int level = 0; level < most && 1 << level < frames; ++level) {
    const int at = lost(level);
    choice.lost.push_back(at);
    if (level == 0) choice.moves = at < kMostLostToMove;
    if (at >= kMostLost[std::min<std::size_t>(static_cast<std::size_t>(level), std::size(kMostLost) - 1)]) break;
    choice.levels = level + 1;
  }
  return choice;
}

LevelChoice choose_levels(const Gop& gop, int bits, int most, ThreadPool& pool, SimdLevel simd) {
  const int frames = gop.frames();
  const FineSadKernels& kernels = fine_sad_kernels(resolve_simd(simd));
  ReducedPictures pictures(gop, bits, pool);
  const int rows = pictures.rows(), columns = pictures.columns();
  if (rows == 0 || columns == 0) return {most, false, {}};  // too small to examine
  return levels_by_losses(frames, most, [&](int level) {
    const ComparedFrames compared(1 << level, frames);
    pictures.make(compared);
    std::vector<LostContrast> row_sums(static_cast<std::size_t>(compared.count * rows));
    pool.parallel_for(compared.count * rows, [&](int n, int) {
      const int i = n / rows;
      LostContrast& sums = row_sums[static_cast<std::size_t>(n)];
      for (int x = 0; x < columns; ++x) {
        BlockPrediction block(pictures[compared.frame(i)], n % rows * kBlockSide, x * kBlockSide, kernels);
        block.count(pictures[compared.past(i)], pictures[compared.other(i, frames)], sums);
      }
    });
    LostContrast sums;
    for (const LostContrast& row : row_sums) {
      sums.lost += row.lost;
      sums.all += row.all;
    }
    return sums.percentage();
  });
}

}  // namespace trivelet
