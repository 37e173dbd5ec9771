// The dense coder of one code block: the zerotree decisions of zerotree.h through an adaptive range coder with
// contexts.
//
// A block has one segment per (temporal band b, resolution k) and a segment is one codeword. Every bit plane is coded
// in two passes: first sets, significance and signs, then refinement. After each pass the codeword may be cut. Cuts are
// counted in passes from the bottom: cut 2p = plane p decoded, cut 2p + 1 = only its first pass, 2 * top = nothing.
// To be decoded to a cut of plane p, a segment needs those it depends on at plane p or below (either pass): its spatial
// parent (b, k - 1), for k = 0 the temporal parent's. FORMAT.md "Dense profile" is the description.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/dense_model.h"
#include "codec/zerotree.h"

namespace trivelet {

/// What a cut behind every pass costs and gains. Pass i of segment s is passes[first[s] + i]; i = 0 is the first pass
/// of the top plane, so cutting behind pass i is cut 2 * top[s] - 1 - i. A segment has 2 * top[s] passes.
struct PassTable {
  struct Pass {
    std::uint32_t bytes = 0;  ///< of the codeword that decode this pass and all before it
    double gain = 0;          ///< decrease of the sum of squared errors by this pass, in units of the quantiser step
  };
  std::vector<std::uint32_t> first;
  std::vector<Pass> passes;
};

/// The lowest cut a segment can be decoded to when those it depends on end at `parent_cut`.
inline int lowest_dense_cut(int parent_cut) { return parent_cut & ~1; }

/// Divides the codewords in `block` into parts, one per layer; plan.low counts passes. What no layer wants stays in
/// `bytes` unused.
void divide_into_layers(const PassTable& table, const LayerPlan& plan, CodedBlock& block);

/// Codes blocks. Holds scratch memory; one object per thread.
class DenseEncoder {
 public:
  /// Other than the built-in tables are for training only.
  explicit DenseEncoder(const dense::StartTables* tables = nullptr);
  ~DenseEncoder();
  /// Quantises (float) and codes block (by, bx) of `field`. |quantised| is limited to 2^30 - 1. `out` has a single
  /// layer: whole codewords. Gains count on reconstruction at `centroid` / 256.
  void encode(const BlockGrid& grid, int by, int bx, const Field<float>& field, const StepTable& steps, int centroid,
              CodedBlock& out, PassTable& table);
  void encode(const BlockGrid& grid, int by, int bx, const Field<std::int32_t>& field, int centroid, CodedBlock& out,
              PassTable& table);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class DenseDecoder {
 public:
  explicit DenseDecoder(const dense::StartTables* tables = nullptr);
  ~DenseDecoder();
  /// As BlockDecoder::decode, but ReceivedPart::low is a cut. Any bytes decode to something; missing ones are zeros.
  template <class T>
  void decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
              const std::vector<ReceivedSegment>& segments, int stop_plane, int centroid, const StepTable* steps,
              const Field<T>& field);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
