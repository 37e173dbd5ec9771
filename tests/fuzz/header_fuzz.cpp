// Fuzzes the parsers of headers without decoding. The first byte chooses parser and profile; the rest is a stream
// header, a GOP header, an index, an end, or a chunk, with its checksum corrected. Only a result or an Error of a
// damaged or unsupported stream is allowed. An accepted header must be the same after writing and reading.

#include <cstring>
#include <vector>

#include "codec/backend.h"
#include "codec/base/hash.h"
#include "codec/format/chunk.h"
#include "codec/format/container.h"
#include "tests/fuzz/header_params.h"
#include "tests/support/support.h"

namespace {

using namespace trivelet;

std::vector<std::uint8_t> with_crc(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  const std::uint32_t crc = crc32c(bytes.data(), bytes.size());
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(crc >> (8 * i)));
  return bytes;
}

void expect_parsed(bool ok) {
  if (!ok) __builtin_trap();
}

// A small stream of which GOP headers and chunks are read.
struct Sample {
  StreamHeader header;
  std::unique_ptr<StreamGeometry> geometry;
  Sample(bool dyadic, Profile profile) {
    MemorySink sink;
    const Encoder encoder = make_encoder(test::video(70, 41, "yuv420p"), fuzz::header_params(dyadic, profile), sink);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(sink.bytes.data());
    header = parse_stream_header(bytes + sizeof kSignature + kBoxHeaderBytes,
                                 sink.bytes.size() - sizeof kSignature - kBoxHeaderBytes);
    geometry = std::make_unique<StreamGeometry>(header, 5);
  }
};

void read_one_chunk(const Sample& s, const std::uint8_t* data, std::size_t size) {
  if (size < 1) return;
  LayeredGop gop;
  gop.components.resize(s.header.components.size());
  for (int c = 0; c < s.geometry->components(); ++c) {
    auto& component = gop.components[static_cast<std::size_t>(c)];
    component.grid = &s.geometry->grid(c);
    component.blocks.assign(static_cast<std::size_t>(component.grid->blocks()),
                            std::vector<LayeredSegment>(static_cast<std::size_t>(segment_count(*component.grid))));
  }
  // The coarsest chunk of layer 0, the next finer one, and the coarsest of layer 1 from three pieces of the input.
  const std::size_t cut1 = data[0] % size;
  const std::size_t cut2 = cut1 + (size - cut1) / 2;
  const int d = s.header.spatial_levels;
  std::vector<std::uint8_t> padded(data, data + size);
  padded.resize(size + 16);
  read_chunk(s.header, padded.data(), cut1, 0, 0, d, gop);
  read_chunk(s.header, padded.data() + cut1, cut2 - cut1, 0, 0, d - 1, gop);
  read_chunk(s.header, padded.data() + cut2, size - cut2, 1, 0, d, gop);
  const Profile profile = s.header.profile;
  for (const auto& component : gop.components)
    for (const auto& block : component.blocks)
      for (std::size_t i = 0; i < block.size(); ++i) {
        const LayeredSegment& segment = block[i];
        expect_parsed(segment.top <= 30);
        int low = cuts_per_plane(profile) * segment.top;
        for (const auto& part : segment.parts) {
          expect_parsed(part.low <= low && part.size <= size);
          low = part.low;
        }
        // Cuts may ask for more than the parent has: the decoder stops where that ends.
        const int k = static_cast<int>(i) % component.grid->resolutions();
        if (k == 1 && !segment.parts.empty()) expect_parsed(segment.top <= block[i - 1].top);
      }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sample samples[2][2] = {{{false, Profile::kFast}, {true, Profile::kFast}},
                                       {{false, Profile::kDense}, {true, Profile::kDense}}};
  if (size < 1) return 0;
  const int what = data[0] % 8;
  const int profile = data[0] >> 3 & 1;
  const int layers = data[0] >> 4 & 3;  // of an index
  ++data;
  --size;
  try {
    switch (what) {
      case 0: {
        const auto bytes = with_crc(data, size);
        const StreamHeader h = parse_stream_header(bytes.data(), bytes.size());
        const auto again = serialise(h);
        expect_parsed(serialise(parse_stream_header(again.data(), again.size())) == again);
        break;
      }
      case 1:
      case 2: {
        const Sample& s = samples[profile][what - 1];
        if (size < 4) return 0;
        const auto bytes = with_crc(data, size);
        const GopHeader g = parse_gop_header(s.header, bytes.data(), bytes.size());
        const auto again = serialise(s.header, g);
        const GopHeader g2 = parse_gop_header(s.header, again.data(), again.size());
        expect_parsed(g2.frames == g.frames && g2.body_bytes == g.body_bytes && g2.chunks.size() == g.chunks.size());
        expect_parsed(g2.frame_gains == g.frame_gains && g2.room == g.room);
        for (std::size_t i = 0; i < g.times.size(); ++i)
          expect_parsed(g2.times[i].pts == g.times[i].pts && g2.times[i].duration == g.times[i].duration);
        break;
      }
      case 3: {
        const auto bytes = with_crc(data, size);
        const auto gops = parse_index(bytes.data(), bytes.size(), layers);
        const auto again = serialise_index(gops);
        expect_parsed(serialise_index(parse_index(again.data(), again.size(), layers)) == again);
        break;
      }
      case 4: {
        const auto bytes = with_crc(data, size);
        StreamEnd end;
        if (parse_stream_end(bytes.data(), bytes.size(), end)) expect_parsed(serialise(end) == bytes);
        break;
      }
      case 5: {
        if (size < 12) return 0;
        const auto bytes = with_crc(data, 12);
        Box box;
        if (!parse_box_header(bytes.data(), box)) return 0;  // its type is none
        std::uint8_t again[kBoxHeaderBytes];
        write_box_header(box.type, box.length, again);
        expect_parsed(std::memcmp(again, bytes.data(), sizeof again) == 0);
        break;
      }
      default: read_one_chunk(samples[profile][what - 6], data, size);
    }
  } catch (const Error& e) {
    expect_parsed(e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported);
  }
  return 0;
}
