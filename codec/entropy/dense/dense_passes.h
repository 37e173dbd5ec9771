// The passes of the dense profile over one segment, written once for both directions: a Coder turns a decision and its
// context into bits, or bits into the decision.
//
//   struct Coder {
//     static constexpr bool kDecoding;
//     bool code(State& context, bool truth);               // returns the decision; a decoder ignores `truth`
//     void orientation(int index);                         // before coefficients of another subband
//     void row();                                          // before each row of groups
//     void became_significant(int t, int y, int x, int plane, std::uint32_t magnitude);  // encoders know `magnitude`
//     void refined(int t, int y, int x, int plane, std::uint32_t before, std::uint32_t known, std::uint32_t magnitude);
//   };
//
// The first pass of a plane codes sets, then coefficients that become significant, with their signs. The second pass
// refines those that were significant before. The first pass never depends on refinement bits of the same plane,
// neither of this segment nor of those it depends on.
#pragma once

#include "codec/entropy/dense/dense_coefficients.h"
#include "codec/entropy/dense/dense_segment.h"
#include "codec/entropy/dense/dense_sets.h"

namespace trivelet::dense {

template <class Coder>
class SegmentCoder {
 public:
  /// Segment (b, k) of `block`; states[i] points to the kContexts states of orientation index i.
  SegmentCoder(Block& block, int b, int k, State* const* states, Coder& coder)
      : segment_(block, b, k, states, coder), sets_(segment_), coefficients_(segment_) {}

  /// The first pass of `plane`.
  void significance_pass(int plane) {
    sets_.code(plane);
    for (int o = 0; o < segment_.level.orientations; ++o) coefficients_.code_significance(o, plane);
  }

  void refinement_pass(int plane) {
    if (plane + 1 >= segment_.level.top) return;
    for (int o = 0; o < segment_.level.orientations; ++o) coefficients_.refine(o, plane);
  }

 private:
  const Segment<Coder> segment_;
  SetCoder<Coder> sets_;
  CoefficientCoder<Coder> coefficients_;
};

}  // namespace trivelet::dense
