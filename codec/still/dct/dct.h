// dct, a still codec with one cosine transform of the whole picture. DCT.md is the format.
//
//   ThreadPool pool(0);
//   auto transform = dct::make_fast_transform(pool);
//   std::vector<std::byte> bytes = dct::encode(image, {.qp = 30, .keep = 0.5}, *transform);
//   still::Image decoded = dct::decode(bytes, {}, *transform);
#pragma once

#include <span>
#include <vector>

#include "codec/still/dct/dct_transform.h"
#include "trivelet/limits.h"
#include "trivelet/still.h"

namespace trivelet::dct {

struct Params {
  int qp = 27;      ///< 0..51: step = 2^((QP - 4) / 6) at 8 bits
  double keep = 1;  ///< share of the coefficients that is kept, lowest frequencies first: 0..1
};

/// Throws BadArgument unless the picture is grey, YUV 4:2:0, 4:4:4 or RGB of 8 to 16 bits, and for parameters out of
/// range.
std::vector<std::byte> encode(const still::Image& image, const Params& params, Transform& transform);

struct DecodeParams {
  Limits limits{};  ///< exceeding them throws Unsupported
};
/// Throws BadStream for damaged streams, Unsupported for other codecs and larger pictures.
still::Image decode(std::span<const std::byte> bytes, const DecodeParams& params, Transform& transform);

}  // namespace trivelet::dct
