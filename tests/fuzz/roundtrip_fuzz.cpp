// Fuzzes encoder and decoder together. The first bytes choose format and parameters, the others are the samples.
// Lossless must be exact, lossy must decode, a target for bytes must not be exceeded, the index must be valid, and a
// second run with another instruction set must give the same bytes. Pictures have 1 to 12 samples a side, and there are
// no threads. Targets, which encode many times, and motion search take ten times as long as the rest, so few inputs get
// them.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "codec/encoder/encoder_params.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/wrong.h"
#include "trivelet/codec.h"
#include "trivelet/error.h"

using namespace trivelet;

namespace {

using fuzz::wrong;

// Empty if the target is refused: fewer bytes than the headers need.
std::vector<std::byte> encode(const Gop* gops, int count, const VideoInfo& info, const CodingParams& p) {
  MemorySink sink;
  Encoder e = make_encoder(info, p, sink);
  for (int i = 0; i < count; ++i) e.push(gops[i]);
  try {
    e.finish();
  } catch (const Error& error) {
    if (!p.has_byte_target() || error.kind() != ErrorKind::kBadArgument) throw;
    return {};
  }
  return std::move(sink.bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 10) return 0;
  const std::uint32_t draw = fuzz::drawn(data, size);
  const bool may_move = draw % 32 == 0;
  const bool may_aim = draw / 32 % 16 == 0;
  const bool twice = (data[9] & 16) && draw / 512 % 2 == 0;
  VideoInfo info;
  const char* formats[] = {"gray", "gray1", "gray12", "gray16", "yuv420p", "yuv410p10", "gbrp", "gbrap16"};
  info.format = parse_pixel_format(formats[data[0] & 7]);
  if (data[0] & 8 && info.format.model == ColourModel::kGrey) info.format.is_signed = true;
  info.width = 1 + data[1] % 12;
  info.height = 1 + data[2] % 12;
  const int more = data[2] / 12;
  CodingParams p;
  p.threads = 1;
  p.gop_frames = 1 + data[3] % 5;
  p.lossless = data[4] & 1;
  p.layout = data[4] & 2 ? Layout::kDyadic : Layout::kT2d;
  p.profile = data[6] & 128 ? Profile::kFast : Profile::kDense;
  p.block_size = (data[4] & 8) && more % 4 == 3 ? 64 : 32;  // all of a block is cleared, however little of it is used
  const Wavelet wavelets[] = {Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kCdf97,
                              p.lossless ? Wavelet::kRev137 : Wavelet::kCdf97};
  p.spatial = wavelets[data[4] >> 4 & 3];
  p.temporal = wavelets[data[4] >> 6 & 3];
  p.spatial_levels = data[5] % 6 - 1;
  p.temporal_levels = data[5] / 6 % 5 - 1;
  if (p.layout == Layout::kDyadic && p.spatial_levels >= 0)
    p.temporal_levels = std::min(p.temporal_levels, p.spatial_levels);
  if (p.layout == Layout::kDyadic && p.spatial_levels < 0) p.temporal_levels = -1;
  p.layers = 1 + data[6] % 5;
  switch (data[5] / 30) {
    case 4:
    case 5:
    case 6:
    case 7:
      if (p.layout == Layout::kDyadic || !may_move) break;
      p.motion = data[5] / 30 < 7 ? Motion::kOn : Motion::kAuto;
      p.effort = more % 8 == 1 ? Effort::kMedium : Effort::kFast;
      p.key_interval = more & 2 ? 0 : 1 + data[3] % 8;
      // So wide that errors are measured in some windows, not all over.
      if (data[1] >= 254 && info.format.model == ColourModel::kGrey) {
        info.width = 570 + 20 * (data[1] - 253);
        info.height = 1 + data[2] % 4;
        p.gop_frames = 1 + data[3] % 3;
      }
      break;
    case 8:
      p.profile = Profile::kPredictive;
      p.lossless = true;
      p.layout = Layout::kT2d;
      p.spatial_levels = p.temporal_levels = -1;
      p.layers = 1;
      break;
    default: break;
  }
  const bool may_predict = p.motion != Motion::kOff && (p.lossless || !(data[6] & 64));
  p.key_prediction = !(may_predict && more & 8) ? KeyPrediction::kOff
                     : more & 1                 ? KeyPrediction::kAuto
                                                : KeyPrediction::kOn;
  p.measure_errors = more % 5 > 0;
  p.part_checks = more & 4 && !(data[6] & 64 && !p.lossless);
  const int gops = 1 + (data[0] >> 4 & 1) + (p.motion != Motion::kOff ? data[0] >> 5 & 1 : 0);
  const int last = 1 + (data[3] / 5) % p.gop_frames;
  if (!p.lossless) {
    p.quality = data[7] % 101;
    p.is_volume = data[3] / 25 & 1;
    p.visual = data[3] / 25 & 2;
    if ((data[6] & 64) && may_aim)
      (data[3] / 25 & 4 ? p.psnr : p.bits_per_pixel) = data[3] / 25 & 4 ? 15 + data[7] % 50 : data[7] / 16.0;
  }
  const std::uint8_t* samples = data + 10;
  const std::size_t n = size - 10;

  // Samples beyond the end of the input repeat it.
  std::size_t at = 0;
  std::size_t round = 0;
  auto next = [&]() -> unsigned {
    if (n == 0) return 0;
    if (at == n) {
      at = 0;
      ++round;
    }
    return static_cast<unsigned>(samples[at++] + round * data[8]) & 255;
  };
  const unsigned mask = (1u << info.format.bits) - 1;
  std::vector<Gop> in;
  for (int g = 0; g < gops; ++g) {
    in.emplace_back(info, p.gop_frames);
    Gop& gop = in.back();
    gop.set_frames(g + 1 < gops ? p.gop_frames : last);
    for (int f = 0; f < gop.frames(); ++f)
      gop.times()[static_cast<std::size_t>(f)] = {static_cast<std::int64_t>(data[9] & 1 ? f : f * f) << (data[9] >> 2),
                                                  data[9] & 2 ? f : 1};
    for (int c = 0; c < gop.components(); ++c) {
      const MutableVolumeView v = gop.plane(c);
      for (int f = 0; f < v.shape.frames; ++f)
        for (int y = 0; y < v.shape.height; ++y)
          for (int x = 0; x < v.shape.width; ++x) {
            unsigned s = next();
            if (v.bytes_per_sample == 2) s |= next() << 8;
            s &= mask;
            if (info.format.is_signed && s >> (info.format.bits - 1)) s |= ~mask;
            std::memcpy(v.row(f, y) + x * v.bytes_per_sample, &s,
                        static_cast<std::size_t>(v.bytes_per_sample));  // little-endian
          }
    }
  }

  p.simd = SimdLevel::kBest;
  const auto stream = encode(in.data(), gops, info, p);
  p.simd = SimdLevel::kScalar;
  if (twice && encode(in.data(), gops, info, p) != stream) wrong("encoded twice, not the same");
  if (stream.empty()) return 0;
  if (p.has_byte_target()) {
    const double pixels = static_cast<double>(info.width) * info.height * ((gops - 1) * p.gop_frames + last);
    if (static_cast<double>(stream.size()) > p.bits_per_pixel * pixels / 8) wrong("more bytes than the target");
  }

  MemorySource source(stream.data(), stream.size());
  DecoderParams dp;
  dp.threads = 1;
  Decoder d(source, dp);
  if (!d.info().has_index || !d.info().index_damage.empty()) wrong("the index is none");
  Gop out = d.make_gop();
  for (int g = 0; g < gops; ++g) {
    const Gop& original = in[static_cast<std::size_t>(g)];
    if (!d.pull(out)) wrong("a GOP is missing");
    if (out.frames() != original.frames()) wrong("number of frames");
    for (std::size_t f = 0; f < static_cast<std::size_t>(out.frames()); ++f)
      if (out.times()[f].pts != original.times()[f].pts || out.times()[f].duration != original.times()[f].duration)
        wrong("times");
    if (!p.lossless) continue;
    for (int c = 0; c < out.components(); ++c) {
      const VolumeView a = original.plane(c);
      const VolumeView b = static_cast<const Gop&>(out).plane(c);
      for (int f = 0; f < a.shape.frames; ++f)
        for (int y = 0; y < a.shape.height; ++y)
          if (std::memcmp(a.row(f, y), b.row(f, y),
                          static_cast<std::size_t>(a.shape.width) * static_cast<std::size_t>(a.bytes_per_sample)) != 0)
            wrong("samples");
    }
  }
  if (d.pull(out)) wrong("a GOP too many");

  // Less of it must decode too.
  if (!(data[9] & 32)) return 0;
  dp.reduce = std::min<int>(data[6] >> 5 & 1, d.info().decomposition.spatial_levels > 2 ? 1 : 0);
  if (p.profile != Profile::kPredictive) dp.max_planes = data[7] >> 4;
  dp.max_layers = 1;
  MemorySource again(stream.data(), stream.size());
  Decoder less(again, dp);
  Gop small = less.make_gop();
  int pulled = 0;
  while (less.pull(small)) ++pulled;
  if (pulled != gops) wrong("a GOP is missing from the reduced stream");
  return 0;
}
