// The loops of the CCSDS 122.0 codec, compiled once per instruction set (codec/base/simd.h).
#include "codec/still/ccsds122/ccsds122_kernels.h"

#include "codec/still/ccsds122/ccsds122_bitplane.h"
#include "codec/still/ccsds122/ccsds122_blocks.h"
#include "codec/still/ccsds122/ccsds122_line_kernels.h"

namespace trivelet::ccsds122::TRIVELET_ISA {

constinit const Kernels kKernels = {integer_lines<Narrow97M>(),
                                    integer_lines<Wide97M>(),
                                    real_lines(),
                                    round_row,
                                    range_row,
                                    gather,
                                    encode_plane,
                                    decode_plane,
                                    scatter};

}  // namespace trivelet::ccsds122::TRIVELET_ISA
