// The reference kernels: plain C++, no instruction set assumed.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "codec/still/ccsds122/ccsds122_codes.h"
#include "codec/still/ccsds122/ccsds122_kernels.h"
#include "codec/still/ccsds122/ccsds122_lifting.h"

namespace trivelet::ccsds122 {
namespace {

#include "codec/still/ccsds122/ccsds122_bitplane.inc"
#include "codec/still/ccsds122/ccsds122_blocks.inc"
#include "codec/still/ccsds122/ccsds122_dwt_kernels.inc"

}  // namespace

const Kernels& scalar_kernels() {
  static constexpr Kernels kTable = {integer_lines<Narrow97M>(),
                                     integer_lines<Wide97M>(),
                                     real_lines(),
                                     round_row,
                                     range_row,
                                     gather,
                                     encode_plane,
                                     decode_plane,
                                     scatter};
  return kTable;
}

}  // namespace trivelet::ccsds122
