// The motion of a GOP as bytes (FORMAT.md "Motion", "Sections"): a section per temporal level, in it a codeword per
// region of 256x256 luma samples, which decodes without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/motion/motion.h"
#include "codec/threads/parallel.h"

namespace trivelet {

/// The section of a level; those of coarser levels have the same motion before. Empty for a level without frames.
/// Vectors that blocks do not use become in `motion` what a decoder takes them for. Region by region on the threads of
/// `pool`, if there is one.
std::vector<std::uint8_t> encode_motion(GopMotion& motion, int level, int components, ThreadPool* pool = nullptr);

/// Fills the fields of a level, region by region on the threads of `pool`, if there is one; all coarser ones are there.
/// Throws BadStream.
void decode_motion(const std::uint8_t* data, std::size_t size, int level, int components, GopMotion& motion,
                   ThreadPool* pool = nullptr);

}  // namespace trivelet
