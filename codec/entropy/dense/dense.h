// The dense coder of one code block: the zerotree decisions of zerotree.h through an adaptive range coder with
// contexts.
//
// A block has one segment per (temporal band b, resolution k) and a segment is one codeword. Every bit plane is coded
// in two passes: first sets, significance and signs, then refinement. After each pass the codeword may be cut. Cuts are
// counted in passes from the bottom: cut 2p = plane p decoded, cut 2p + 1 = only its first pass, 2 * top = nothing.
// To be decoded to a cut of plane p, a segment needs those it depends on at plane p or below (either pass): its spatial
// parent (b, k - 1), for k = 0 the temporal parent's. FORMAT.md "Dense profile" is the description.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/entropy/coded_block.h"
#include "codec/entropy/dense/dense_model.h"

namespace trivelet {

// In a PassTable a segment has 2 * top passes here; cutting behind pass i is cut 2 * top - 1 - i.

/// The lowest cut a segment can be decoded to when those it depends on end at `parent_cut`.
inline int lowest_dense_cut(int parent_cut) { return parent_cut & ~1; }

/// Codes blocks. Holds scratch memory; one object per thread.
class DenseEncoder {
 public:
  /// Other than the built-in tables are for training only.
  explicit DenseEncoder(const dense::StartTables* tables = nullptr, SimdLevel simd = SimdLevel::kBest);
  ~DenseEncoder();
  /// Quantises (float) and codes block (by, bx) of `field`. |quantised| is limited to 2^30 - 1. `out` has a single
  /// layer: whole codewords. Gains count on reconstruction at `centroid` / 256 and are weighted by `weights` (null: in
  /// squared quantiser steps).
  void encode(const BlockGrid& grid, int by, int bx, const Field<float>& field, const StepTable& steps, int centroid,
              const ErrorWeights* weights, CodedBlock& out, PassTable& table);
  void encode(const BlockGrid& grid, int by, int bx, const Field<std::int32_t>& field, int centroid,
              const ErrorWeights* weights, CodedBlock& out, PassTable& table);
  /// Whether the last pass of every segment is left out from now on (GopChoices::spare_last_pass).
  void spare_last_pass(bool spare);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class DenseDecoder {
 public:
  explicit DenseDecoder(const dense::StartTables* tables = nullptr);
  ~DenseDecoder();
  /// Bits that codewords may use behind their ends, for all decoders that share it; null: any number. decode() throws
  /// Unsupported when it is used up.
  void set_allowance(std::atomic<std::int64_t>* bits);
  /// As BlockDecoder::decode, but LayerPart::low is a cut. Any bytes decode to something; missing ones are zeros.
  template <class T>
  void decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
              const std::vector<LayeredSegment>& segments, int stop_plane, int centroid, const StepTable* steps,
              const Field<T>& field, ZeroPatches* left_out = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
