// The choices of an encoder of the predictive profile for a block: the weights, and the class of every tile.
//
// The products of the neighbours of every tile are summed once, over some rows of some frames. These sums give the best
// weights of any set of tiles (least squares) and the error of any weights in a tile. So tiles and classes are fitted
// to each other without reading the samples again. A tile counts in inverse proportion to its error, because bits
// depend on the logarithm of the error. A class may also copy the frame before. Least squares do not find that if few
// tiles of a still picture change by much.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/predict/prediction_block.h"
#include "codec/predict/prediction_history.h"

namespace trivelet::prediction {

class Model {
 public:
  explicit Model(const Kernels& k) : kernels_(k) {}
  /// `history` holds all frames of the block.
  void fit(History& history, int frames, const Effort& effort);

  BlockHead head;
  Tiles tiles;
  std::vector<std::uint8_t> map;  ///< class of every tile

 private:
  bool stands_still_at_times(History& history, int frames) const;
  void choose_shift(History& history, int frames);
  void sum_tile(History& history, int frames, int tile, float* out);
  int gather(History& history, int frame, int y, int x, int width, int taps, int at);
  void fit_first(History& history);
  void fit_classes(int rounds);
  void copy_where_still(std::vector<float>& forms);
  Weights solve(const std::vector<double>& sums, int taps) const;

  const Kernels& kernels_;
  Effort effort_;
  int shift_ = 0;
  int taps_ = 0;                    // of frames that have one before
  std::size_t products_ = 0;        // floats per tile, padded
  std::vector<std::int16_t> rows_;  // differences to the left neighbour, of the taps and of the sample
  std::vector<std::int32_t> summed_;
  std::vector<float> tile_products_;  // mean products
  std::vector<float> samples_;        // number of gathered samples
};

}  // namespace trivelet::prediction
