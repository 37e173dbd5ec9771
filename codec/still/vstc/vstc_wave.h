// The interface between VSTC's encoder and a device that searches all blocks of a wavefront at once.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "codec/still/vstc/vstc.h"
#include "codec/still/vstc/vstc_model.h"
#include "codec/still/vstc/vstc_picture.h"

namespace trivelet::vstc {

/// Finds the same tokens as Search does.
class WaveSearch {
 public:
  struct Job {
    int bx, by;
    const Contexts* contexts;    ///< for the costs
    std::vector<Token>* tokens;  ///< output: tokens of all trees of the block
  };
  virtual ~WaveSearch() = default;
  /// Searches independent blocks. Blocks that they depend on were given to earlier calls.
  virtual void search(std::span<const Job> jobs) = 0;
};

/// Makes a search for a picture; `source` has its planes, padded to coded sizes. Throws Unsupported when the device
/// cannot.
using MakeWaveSearch = std::function<std::unique_ptr<WaveSearch>(
    const Picture& picture, const std::vector<Plane>& source, const Params& params)>;

/// encode() with the search on a device; the bytes are the same. `params.team` is ignored; trials are not counted.
Encoded encode_waves(const still::Image& image, const Params& params, const MakeWaveSearch& make);

}  // namespace trivelet::vstc
