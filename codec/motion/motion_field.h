// The motion of a GOP as bytes (FORMAT.md "Motion", "Sections"): a section per temporal level, and one of
// predicted keys, with a codeword per region of 256x256 luma samples. Regions decode independently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/motion/motion.h"
#include "codec/threads/parallel.h"

namespace trivelet {

/// Encodes a level as a section; coarser levels must be encoded before. Empty for a level without frames. Unused
/// vectors in `motion` are set to what a decoder derives for them. Regions run on the threads of `pool` if it is not
/// null.
std::vector<std::uint8_t> encode_motion(GopMotion& motion, int level, int components, ThreadPool* pool = nullptr);

/// Decodes a level into its fields; coarser levels must be decoded before. Regions run on the threads of `pool` if it
/// is not null. Throws BadStream.
void decode_motion(const std::uint8_t* data, std::size_t size, int level, int components, GopMotion& motion,
                   ThreadPool* pool = nullptr);

}  // namespace trivelet
