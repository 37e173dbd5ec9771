// A coded block as the coders make it and the container carries it: segments, their parts in quality layers, what a cut
// behind each pass costs, and the steps of its subbands. Shared by both coders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/transform/tree.h"
#include "trivelet/parameters.h"

namespace trivelet {

struct ComponentHeader;

/// Index of segment (b, k) among the segments of a block.
inline int segment_index(const BlockGrid& grid, int b, int k) { return b * grid.resolutions() + k; }
inline int segment_count(const BlockGrid& grid) { return grid.table().temporal_bands() * grid.resolutions(); }

/// Where layers cut: low[layer * segments + segment] is the lowest plane of the segment in layers 0..layer. Not
/// increasing with the layer, 0 in the last; a segment's cut is never below its parent's.
struct LayerPlan {
  int layers = 1;
  std::vector<std::uint8_t> low;
};

/// What an encoder made of a block. Part (s, l) holds planes [low(l), low(l - 1)) below top[s]; parts lie one after
/// the other in `bytes`, segment by segment. A dense block comes whole, as one part per segment, and is divided later.
struct CodedBlock {
  std::vector<std::uint8_t> top;    ///< planes of each segment, 0..30
  std::vector<std::uint32_t> size;  ///< bytes of part [segment * layers + layer]
  std::vector<std::size_t> offset;  ///< of each part
  std::vector<std::uint32_t> bits;  ///< of each part, without padding (fast profile)
  std::vector<std::uint8_t> bytes;
  const std::uint8_t* memory = nullptr;  ///< instead of `bytes`: a backend's own, until the next pull
};

/// What a cut behind every pass of a block costs and gains. Pass i of segment s is passes[first[s] + i], i = 0 being
/// the first one of the top plane. Squared errors are those of samples, as far as they are predicted by the norms of
/// the synthesis basis vectors.
struct PassTable {
  struct Pass {
    std::uint32_t bytes = 0;  ///< of the segment that decode this pass and all before it (fast profile: bits)
    double gain = 0;          ///< decrease of the squared error by this pass
  };
  std::vector<std::uint32_t> first;
  std::vector<Pass> passes;
  int spared = 0;              ///< so many passes at the end of every segment were not coded
  std::vector<double> energy;  ///< per segment: the squared error when nothing of it is decoded
};

/// How much the squared error of samples grows with that of quantised coefficients (in units of their step).
struct ErrorWeights {
  std::vector<double> subband;             ///< in the order of SubbandTable::all()
  std::vector<std::vector<double>> frame;  ///< [temporal band][frame of the band], a further factor; empty = 1
};

/// Step of a subband of this norm (FORMAT.md "Quantiser").
float subband_step(const ComponentHeader& component, float step, double norm, int resolution);

/// Steps by subband, in the order of SubbandTable::all(): float(step / norm), and float(1 / that); FORMAT.md
/// "Quantiser".
struct StepTable {
  std::vector<float> step;
  std::vector<float> inverse;
  StepTable(const SubbandTable& table, float step, const ComponentHeader& component);
};

/// A segment's share of a layer.
struct LayerPart {
  const std::uint8_t* data = nullptr;  ///< for a decoder, 16 readable bytes must follow the last one
  std::uint32_t size = 0;
  std::uint8_t low = 0;  ///< lowest plane in this and the parts before it; dense: the cut (dense.h)
};
/// A segment as layers carry it: from an encoder all of them, at a decoder those received.
struct LayeredSegment {
  std::uint8_t top = 0;
  std::vector<LayerPart> parts;
};

}  // namespace trivelet
