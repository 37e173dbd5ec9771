// Helpers of the tests of the predictive profile: a picture's block, its encoding and decoding, damage.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "codec/predict/prediction_block.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"

namespace trivelet::test {

inline VideoInfo block_video(int width, int height, int bits, bool is_signed = false) {
  VideoInfo v;
  v.width = width;
  v.height = height;
  v.format = {ColourModel::kGrey, bits, 0, 0, false, is_signed};
  v.frame_rate = {0, 1};
  v.sample_aspect = {0, 1};
  v.time_base = {1, 1};
  return v;
}

template <class G>
auto block_of(G& gop, const VideoInfo& info) {
  auto plane = gop.plane(0);
  plane.shape.frames = gop.frames();
  return prediction::BlockSamples<decltype(plane)>{plane, 0, 0, info.height, info.width, info.format.bits};
}

inline std::vector<std::uint8_t> encode_block(const Gop& gop, const VideoInfo& info, const prediction::Effort& effort,
                                              SimdLevel simd = SimdLevel::kBest) {
  prediction::BlockEncoder coder(simd);
  std::vector<std::uint8_t> out;
  coder.encode(block_of(gop, info), effort, out);
  return out;
}

/// Expects that `coder`, which has just coded `codeword`, finds every wrong bit in it and every cut.
template <class Coder>
void expect_wrong_bits_are_found(const Coder& coder, std::vector<std::uint8_t> codeword) {
  EXPECT_TRUE(coder.says_what_was_coded(codeword.data(), codeword.size()));
  OneOf some(7);
  for (std::size_t bit = 0; bit < 8 * codeword.size(); ++bit) {
    if (!some()) continue;
    codeword[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_FALSE(coder.says_what_was_coded(codeword.data(), codeword.size())) << "bit " << bit;
    codeword[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
  for (std::size_t size = 0; size < codeword.size(); size += full() ? 1 : 5)
    EXPECT_FALSE(coder.says_what_was_coded(codeword.data(), size)) << size << " bytes";
}

/// Calls coder(block, bytes, size) with a codeword behind which no byte may be read; an empty codeword means all zero.
template <class Coder>
Gop decoded_block(const std::vector<std::uint8_t>& codeword, const VideoInfo& info, int frames, const Coder& coder) {
  Gop gop(info, frames);
  gop.set_frames(frames);
  if (codeword.empty()) {
    prediction::BlockDecoder::clear(block_of(gop, info));
    return gop;
  }
  const auto exact = std::make_unique<std::uint8_t[]>(codeword.size());
  std::memcpy(exact.get(), codeword.data(), codeword.size());
  coder(block_of(gop, info), exact.get(), codeword.size());
  return gop;
}

inline Gop decode_block(const std::vector<std::uint8_t>& codeword, const VideoInfo& info, int frames, SimdLevel simd,
                        bool moved) {
  return decoded_block(codeword, info, frames, [&](const auto& block, const std::uint8_t* bytes, std::size_t size) {
    prediction::BlockDecoder(simd).decode(block, bytes, size, moved);
  });
}

/// Every truncated codeword is refused. Most changed codewords are refused; the others give the same samples with every
/// instruction set. Half of the changes are in the first bytes.
inline void expect_damage_is_found(const std::vector<std::uint8_t>& whole, std::uint32_t seed, std::size_t first_bytes,
                                   const std::function<Gop(const std::vector<std::uint8_t>&, SimdLevel)>& decode) {
  OneOf some(5);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (!some()) continue;
    const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW((void)decode(cut, SimdLevel::kBest), Error) << size;
  }
  std::mt19937 random(seed);
  int refused = 0;
  const int tries = full() ? 1500 : 400;
  for (int i = 0; i < tries; ++i) {
    std::vector<std::uint8_t> changed = whole;
    const std::size_t most = i % 2 ? changed.size() : std::min(changed.size(), first_bytes);
    changed[random() % most] ^= static_cast<std::uint8_t>(1 + random() % 255);
    std::array<bool, 2> bad{};
    std::array<Gop, 2> decoded;
    for (std::size_t k = 0; k < 2; ++k) {
      try {
        decoded[k] = decode(changed, k == 0 ? SimdLevel::kScalar : SimdLevel::kBest);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << e.what();
        bad[k] = true;
      }
    }
    EXPECT_EQ(bad[0], bad[1]);
    if (!bad[0] && !bad[1]) {
      EXPECT_EQ(compare(decoded[0], decoded[1]).largest, 0);
    }
    refused += bad[0];
  }
  EXPECT_GT(refused, tries / 2);  // the final state reveals damage, but extra bits only through what depends on them
}

}  // namespace trivelet::test
