// The dense coder of one code block: the zerotree decisions of zerotree.h, coded by an adaptive range coder with
// contexts (FORMAT.md "Dense profile").
//
// A block has one segment per (temporal band b, resolution k), and a segment is one codeword. Every bit plane has two
// passes: first sets, significance and signs, then refinement. The codeword may be cut after each pass. Cuts count
// passes from the bottom: cut 2p = plane p decoded, cut 2p + 1 = only its first pass, 2 * top = nothing. Decoding a
// segment to a cut of plane p requires its spatial parent (b, k - 1), for k = 0 its temporal parent, at plane p or
// below, after either pass.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/entropy/coded_block.h"
#include "codec/entropy/dense/dense_model.h"

namespace trivelet {

template <class T>
class PackedSink;

// In a PassTable a dense segment has 2 * top passes; a cut after pass i is cut 2 * top - 1 - i.

/// The lowest cut of a segment whose parents end at `parent_cut`.
inline int lowest_dense_cut(int parent_cut) { return parent_cut & ~1; }

/// Codes blocks. It holds scratch memory, so each thread needs its own object.
class DenseEncoder {
 public:
  /// `tables` other than the built-in ones (null) are for training only.
  explicit DenseEncoder(const dense::StartTables* tables = nullptr, SimdLevel simd = SimdLevel::kBest);
  ~DenseEncoder();
  /// Quantises (float) and codes block (by, bx) of `field`. |quantised| is limited to 2^30 - 1. `out` has a single
  /// layer of whole codewords. Gains assume reconstruction at `centroid` / 256 and are weighted by `weights` (null:
  /// gains are in squared quantiser steps).
  void encode(const BlockGrid& grid, int by, int bx, const Field<float>& field, const StepTable& steps, int centroid,
              const ErrorWeights* weights, CodedBlock& out, PassTable& table);
  void encode(const BlockGrid& grid, int by, int bx, const Field<std::int32_t>& field, int centroid,
              const ErrorWeights* weights, CodedBlock& out, PassTable& table);
  /// Sets whether the last pass of every segment is left out (GopChoices::spare_last_pass).
  void spare_last_pass(bool spare);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class DenseDecoder {
 public:
  explicit DenseDecoder(const dense::StartTables* tables = nullptr);
  ~DenseDecoder();
  /// Sets the number of bits that codewords may use after their ends, summed over all decoders that share `bits`; null:
  /// no limit. decode() throws Unsupported when none are left.
  void set_allowance(std::atomic<std::int64_t>* bits);
  /// The same as BlockDecoder::decode, but LayerPart::low is a cut. Any bytes decode; missing bytes are zeros.
  template <class T>
  void decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
              const std::vector<LayeredSegment>& segments, int stop_plane, int centroid, const StepTable* steps,
              const BlockMemory<T>& memory, ZeroPatches* left_out = nullptr);
  /// The same, but gives what is not zero to `sink`.
  template <class T>
  void decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
              const std::vector<LayeredSegment>& segments, int stop_plane, int centroid, const StepTable* steps,
              PackedSink<T>& sink, ZeroPatches& left_out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
