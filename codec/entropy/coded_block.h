// A coded block, shared by both coders and by the container: segments, their parts in quality layers, cost and gain of
// every truncation point, and the quantiser steps of the subbands.
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

/// The truncation points of the layers: low[layer * segments + segment] is the lowest plane of the segment in layers
/// 0..layer. It does not increase with the layer and is 0 in the last one. A segment is never cut below its parent.
struct LayerPlan {
  int layers = 1;
  std::vector<std::uint8_t> low;
};

/// The coded form of a block. Part (s, l) holds planes [low(l), low(l - 1)) below top[s]. Parts follow each other in
/// `bytes`, segment by segment. A dense block has one part per segment, which is divided into layers later.
struct CodedBlock {
  std::vector<std::uint8_t> top;    ///< planes of each segment, 0..30
  std::vector<std::uint32_t> size;  ///< bytes of part [segment * layers + layer]
  std::vector<std::size_t> offset;  ///< of each part
  std::vector<std::uint32_t> bits;  ///< of each part, in bits, without padding (fast profile)
  std::vector<std::uint8_t> bytes;
  const std::uint8_t* memory = nullptr;  ///< if not null, in place of `bytes`: the backend's, until its next pull
};

/// Rate and distortion of every truncation point of a block. Pass i of segment s is passes[first[s] + i]; i = 0 is the
/// first pass of the top plane. Squared errors are those of samples, predicted by the norms of the synthesis basis
/// vectors.
struct PassTable {
  struct Pass {
    std::uint32_t bytes = 0;  ///< of the segment, up to and including this pass (fast profile: bits)
    double gain = 0;          ///< decrease of the squared error by this pass
  };
  std::vector<std::uint32_t> first;
  std::vector<Pass> passes;
  int spared = 0;              ///< number of passes at the end of every segment that were not coded
  std::vector<double> energy;  ///< per segment: the squared error when none of it is decoded
};

/// Squared error of samples per squared error of quantised coefficients, in units of their steps.
struct ErrorWeights {
  std::vector<double> subband;             ///< in the order of SubbandTable::all()
  std::vector<std::vector<double>> frame;  ///< [temporal band][frame of the band]: a second factor; empty: 1
};

/// Step of a subband with this norm (FORMAT.md "Quantiser").
float subband_step(const ComponentHeader& component, float step, double norm, int resolution);

/// Steps in the order of SubbandTable::all(): float(step / norm) and float(1 / that) (FORMAT.md "Quantiser").
struct StepTable {
  std::vector<float> step;
  std::vector<float> inverse;
  StepTable(const SubbandTable& table, float step, const ComponentHeader& component);
};

/// The part of a segment in one layer.
struct LayerPart {
  const std::uint8_t* data = nullptr;  ///< a decoder needs 16 readable bytes after the last one
  std::uint32_t size = 0;
  std::uint8_t low = 0;  ///< lowest plane of this part and the parts before it; dense profile: the cut (dense.h)
};
/// A segment divided into layers: all of them in an encoder, those received in a decoder.
struct LayeredSegment {
  std::uint8_t top = 0;
  std::vector<LayerPart> parts;
};

}  // namespace trivelet
