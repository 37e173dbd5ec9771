// Arithmetic of a segment that encoder and decoder share: band shifts, the DC quantiser, sizes of depths.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_kernels.h"
#include "codec/still/ccsds122/ccsds122_lifting.h"

namespace trivelet::ccsds122 {

/// BitShift by Band, from the weights in header order.
inline std::array<int, kBands> band_shifts(const Weights& w) {
  // header: HH1 HL1 LH1 HH2 HL2 LH2 HH3 HL3 LH3 LL3
  return {w[9], w[7], w[8], w[6], w[4], w[5], w[3], w[1], w[2], w[0]};
}

/// Bits of a DC value in two's complement, 1..32.
inline int dc_bits(std::int32_t v) {
  return 1 + static_cast<int>(std::bit_width(static_cast<std::uint32_t>(v < 0 ? ~v : v)));
}

/// The DC quantiser (§4.3.1).
struct DcQuantiser {
  int q = 0;     ///< dropped bits
  int bits = 1;  ///< N of the quantised values
  CCSDS_HD DcQuantiser(int dc_depth, int ac_depth, int shift) {
    const int h = 1 + ac_depth / 2;
    if (dc_depth <= 3) {
      q = 0;
    } else if (dc_depth - h <= 1) {
      q = dc_depth - 3;
    } else if (dc_depth - h > 10) {
      q = dc_depth - 10;
    } else {
      q = h;
    }
    q = q > shift ? q : shift;
    bits = dc_depth - q > 1 ? dc_depth - q : 1;
  }
};

/// Bits of an AC depth: ceil(log2(1 + BitDepthAC)).
inline int depth_bits(int ac_depth) { return static_cast<int>(std::bit_width(static_cast<unsigned>(ac_depth))); }

}  // namespace trivelet::ccsds122
