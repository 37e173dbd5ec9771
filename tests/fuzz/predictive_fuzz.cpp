// Fuzzes codewords of the predictive profile. The first bytes choose shape, bits and kind of a block; the others are
// its codeword, without a byte after it.
//
// The codeword is refused as BadStream, or decodes to the same samples with every instruction set and survives a round
// trip through the encoder.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "codec/entropy/labels/label_block.h"
#include "codec/entropy/mixed/mixed_block.h"
#include "codec/predict/prediction_block.h"
#include "trivelet/error.h"

using namespace trivelet;
using prediction::BlockDecoder;
using prediction::BlockEncoder;
using prediction::BlockSamples;

namespace {

struct Input {
  Shape shape;
  int bits;
  bool is_signed;
  int bytes_per_sample() const { return bits <= 8 ? 1 : 2; }
  template <class View, class Byte>
  BlockSamples<View> block(Byte* samples) const {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(shape.width) * bytes_per_sample();
    const View plane{samples, shape, bytes_per_sample(), is_signed, row, row * shape.height, nullptr};
    return {plane, 0, 0, shape.height, shape.width, bits};
  }
};

using Samples = std::vector<std::byte>;

/// options: whether frames may move, but for those known ahead.
template <class Decoder, class... Options>
std::optional<Samples> decode(Decoder& decoder, const Input& in, const std::uint8_t* codeword, std::size_t size,
                              Options... options) {
  Samples out(in.shape.samples() * static_cast<std::size_t>(in.bytes_per_sample()));
  try {
    decoder.decode(in.block<MutableVolumeView>(out.data()), codeword, size, options...);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream) std::abort();
    return std::nullopt;
  }
  return out;
}

/// What decodes survives a round trip.
template <class Decoder, class Encoder>
int decode_and_encode(Decoder& decoder, Encoder& encoder, const Input& in, const std::uint8_t* codeword,
                      std::size_t size) {
  const std::optional<Samples> samples = decode(decoder, in, codeword, size);
  if (!samples) return 0;
  std::vector<std::uint8_t> again;
  encoder.encode(in.block<VolumeView>(samples->data()), again);
  if (!again.empty() && decode(decoder, in, again.data(), again.size()) != samples) std::abort();
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptions = 4;
  if (size < kOptions) return 0;
  const Input in{
      {1 + data[0] % 5, 1 + (data[1] & 127) % 48, 1 + (data[2] & 127) % 48}, 1 + data[3] % 16, (data[3] & 128) != 0};
  static BlockDecoder scalar(SimdLevel::kScalar);  // what one block leaves behind must not matter to the next
  static BlockDecoder best(SimdLevel::kBest);
  static BlockEncoder encoder(SimdLevel::kBest);
  const auto codeword = std::make_unique<std::uint8_t[]>(size - kOptions);
  std::memcpy(codeword.get(), data + kOptions, size - kOptions);
  if (data[1] & 128) {  // known ahead
    static prediction::AheadDecoder ahead_scalar(SimdLevel::kScalar);
    static prediction::AheadDecoder ahead_best(SimdLevel::kBest);
    static prediction::AheadEncoder ahead_encoder(SimdLevel::kBest);
    const std::optional<Samples> samples = decode(ahead_scalar, in, codeword.get(), size - kOptions);
    if (samples != decode(ahead_best, in, codeword.get(), size - kOptions)) std::abort();
    return decode_and_encode(ahead_scalar, ahead_encoder, in, codeword.get(), size - kOptions);
  }
  if (data[3] & 64) {
    static labels::LabelDecoder label_scalar(SimdLevel::kScalar);
    static labels::LabelDecoder label_decoder;
    static labels::LabelEncoder label_encoder;
    const std::optional<Samples> samples = decode(label_scalar, in, codeword.get(), size - kOptions);
    if (samples != decode(label_decoder, in, codeword.get(), size - kOptions)) std::abort();
    return decode_and_encode(label_decoder, label_encoder, in, codeword.get(), size - kOptions);
  }
  if (data[3] & 32) {
    static mixed::MixedDecoder mixed_decoder;
    static mixed::MixedEncoder mixed_encoder;
    return decode_and_encode(mixed_decoder, mixed_encoder, in, codeword.get(), size - kOptions);
  }
  const bool moved = (data[2] & 128) != 0;
  const std::optional<Samples> samples = decode(scalar, in, codeword.get(), size - kOptions, moved);
  if (samples != decode(best, in, codeword.get(), size - kOptions, moved)) std::abort();
  if (!samples) return 0;
  prediction::Effort effort;
  effort.tap_set = data[0] >> 6;
  effort.log2_edge = 3;
  effort.moved = moved;
  effort.log2_cell = 3 + data[0] % 2;
  std::vector<std::uint8_t> again;
  encoder.encode(in.block<VolumeView>(samples->data()), effort, again);
  if (again.empty()) return 0;  // all zeros
  if (decode(scalar, in, again.data(), again.size(), moved) != samples) std::abort();
  return 0;
}
