// The seam between VSTC's encoder and a device that searches whole blocks: blocks of a wavefront at once.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "codec/still/vstc/vstc.h"
#include "codec/still/vstc/vstc_model.h"
#include "codec/still/vstc/vstc_picture.h"

namespace trivelet::vstc {

/// Finds the same tokens as Search.
class WaveSearch {
 public:
  struct Job {
    int bx, by;
    const Contexts* contexts;    ///< what the costs come from
    std::vector<Token>* tokens;  ///< out: of all trees of the block
  };
  virtual ~WaveSearch() = default;
  /// Blocks that do not need each other. All that they need has been given to earlier calls.
  virtual void search(std::span<const Job> jobs) = 0;
};

/// Makes one for a picture; `source` has its planes, padded to coded sizes. Throws Unsupported when the device cannot.
using MakeWaveSearch = std::function<std::unique_ptr<WaveSearch>(
    const Picture& picture, const std::vector<Plane>& source, const Params& params)>;

/// encode() with the search done by a device: the same bytes. `params.team` is not used; trials are not counted.
Encoded encode_waves(const still::Image& image, const Params& params, const MakeWaveSearch& make);

}  // namespace trivelet::vstc
