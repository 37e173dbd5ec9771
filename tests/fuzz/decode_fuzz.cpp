// Whole streams. The first two bytes choose how to decode, the others are a .tvl stream whose checksums are made right
// before it is decoded. Errors must be BadStream or Unsupported; what is found in one way of decoding must be found in
// another instruction set and from a pipe as well.
//
// The mutator knows boxes and chunks: it changes one chunk, header or box and puts the sizes around it right.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "codec/backend.h"
#include "trivelet/codec.h"
#include "codec/gop_hash.h"
#include "tests/boxes.h"

using namespace trivelet;
using namespace trivelet::test;

namespace {

constexpr std::size_t kOptionBytes = 2;

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

// Streams with larger GOPs are left out: they are slow, not different.
bool small(const StreamHeader& h) {
  std::uint64_t samples = 0;
  std::uint64_t words = 0;
  for (int c = 0; c < static_cast<int>(h.components.size()); ++c) {
    const Shape s = h.component_shape(c, h.gop_frames);
    const GridSize g = grid_size(s, h.decomposition(c), h.block_size());
    samples += s.samples();
    words += g.words * g.blocks;
    if (g.blocks * static_cast<std::uint64_t>(g.segments) * h.layers > 20000) return false;
  }
  return samples <= 65536 && words <= 2500;
}

// False when there is no header, or one of a stream that is too large.
bool find_header(const Bytes& s, StreamHeader& h) {
  for (const BoxAt& b : list_boxes(s.data(), s.size())) {
    if (b.type != "Head") continue;
    try {
      h = parse_stream_header(s.data() + b.payload(), b.length);
      return small(h);
    } catch (const Error&) {
      return true;  // the decoder will say the same
    }
  }
  return true;
}

struct Outcome {
  bool error = false;
  std::uint64_t gops = 0;
  std::uint64_t hash = 0;
  std::size_t damage = 0;
};

Outcome decode(const Bytes& s, const DecoderParams& p, bool pipe, bool coefficients) {
  MemorySource file(s.data(), s.size());
  Pipe forward(s.data(), s.size(), 64);
  Outcome out;
  try {
    Decoder d(pipe ? static_cast<ByteSource&>(forward) : file, p);
    if (coefficients) {
      CoefficientGop c;
      while (d.pull_coefficients(c)) ++out.gops;
    } else {
      Gop gop = d.make_gop();
      while (d.pull(gop)) {
        ++out.gops;
        out.hash = out.hash * 31 + hash_samples(gop);
        if (gop.frames() < 1 || gop.frames() > gop.capacity()) wrong("number of frames");
      }
    }
    out.damage = d.stats().damage.size();
    if (out.damage > 100) wrong("more than 100 damages listed");
    if (d.stats().damaged_gops > 0 && out.damage == 0) wrong("damage that is not listed");
  } catch (const Error& e) {
    out.error = true;
    if (e.kind() != ErrorKind::kBadStream && e.kind() != ErrorKind::kUnsupported) {
      std::fprintf(stderr, "%s\n", e.what());
      wrong("kind of error");
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kOptionBytes) return 0;
  const unsigned options = data[0] | static_cast<unsigned>(data[1]) << 8;
  Bytes s(data + kOptionBytes, data + size);
  if (!(options & 1)) repair(s);
  StreamHeader h;
  if (!find_header(s, h)) return 0;

  DecoderParams p;
  p.threads = 1;
  p.keep_partial = options & 2;
  if (!h.components.empty()) {
    p.reduce = std::min<int>(options >> 4 & 3, h.max_reduce() - h.dropped_spatial);
    if (h.layout == Layout::kT2d)
      p.temporal_reduce = std::min<int>(options >> 6 & 1, h.temporal_levels - h.dropped_temporal);
    p.max_layers = options & 128 ? 1 : 0;
  }
  p.max_planes = options >> 8 & 7;
  p.first_frame = options & 2048 ? 1 : 0;
  const bool coefficients = (options & 4) && p.first_frame == 0;
  const bool pipe = options & 8;
  const SimdLevel choice[4] = {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512, SimdLevel::kBest};
  p.simd = choice[options >> 12 & 3];
  if (p.simd != SimdLevel::kBest && p.simd > detected_simd()) p.simd = SimdLevel::kBest;
  const Outcome first = decode(s, p, pipe, coefficients);
  if (options & 0x4000) {  // another instruction set
    p.simd = p.simd == SimdLevel::kScalar ? SimdLevel::kBest : SimdLevel::kScalar;
    const Outcome second = decode(s, p, pipe, coefficients);
    if (second.error != first.error || second.gops != first.gops || second.hash != first.hash ||
        second.damage != first.damage)
      wrong("instruction sets disagree");
  } else if ((options & 0x8000) && !first.error && !p.keep_partial && p.first_frame == 0 && !pipe) {
    // A file that is decoded strictly is the same from a pipe, unless the pipe finds more to complain about.
    const Outcome second = decode(s, p, true, coefficients);
    if (!second.error && (second.gops != first.gops || second.hash != first.hash)) wrong("a pipe gives other samples");
  }
  return 0;
}

#ifdef TRIVELET_FUZZ
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

// libFuzzer's mutation of a part of a stream.
void mutate(Bytes& part, std::size_t growth) {
  const std::size_t n = part.size();
  if (n == 0) growth = std::max<std::size_t>(growth, 8);
  part.resize(n + growth);
  part.resize(LLVMFuzzerMutate(part.data(), n, part.size()));
}

Bytes slice(const Bytes& s, std::size_t from, std::size_t to) {
  return Bytes(s.begin() + static_cast<std::ptrdiff_t>(from), s.begin() + static_cast<std::ptrdiff_t>(to));
}

// The stream with other bytes in place of [from, to).
Bytes replaced(const Bytes& s, std::size_t from, std::size_t to, const Bytes& by) {
  Bytes out = slice(s, 0, from);
  out.insert(out.end(), by.begin(), by.end());
  out.insert(out.end(), s.begin() + static_cast<std::ptrdiff_t>(to), s.end());
  return out;
}

// One packet with a chunk, the header or a value of it changed.
Bytes mutate_packet(const StreamHeader& h, const Bytes& payload, std::mt19937& random) {
  const std::size_t n = payload.size() >= 8 ? static_cast<std::size_t>(load(payload.data(), 4)) : 0;
  if (n < 8 || n > payload.size()) {
    Bytes p = payload;
    mutate(p, 8);
    return p;
  }
  if (random() % 4 == 0) {  // bytes of the header
    Bytes head = slice(payload, 4, n - 4);
    mutate(head, random() & 1 ? 8 : 0);
    Bytes out(4);
    store(out.data(), head.size() + 8, 4);
    out.insert(out.end(), head.begin(), head.end());
    out.resize(out.size() + 4);
    out.insert(out.end(), payload.begin() + static_cast<std::ptrdiff_t>(n), payload.end());
    return out;
  }
  GopHeader g;
  try {
    Bytes head = slice(payload, 0, n);
    repair_crc(head.data(), head.size());
    g = parse_gop_header(h, head.data(), head.size());
  } catch (const Error&) {
    Bytes p = payload;
    mutate(p, 8);
    return p;
  }
  std::vector<Bytes> chunks;
  std::size_t at = n;
  for (ChunkEntry& c : g.chunks) {
    const std::size_t size = std::min(static_cast<std::size_t>(c.size), payload.size() - at);
    chunks.push_back(slice(payload, at, at + size));
    at += size;
  }
  Bytes& chunk = chunks[random() % chunks.size()];
  switch (random() % 6) {
    case 0: chunk.clear(); break;
    case 1: chunk = chunks[random() % chunks.size()]; break;
    default: {
      Bytes* c = &chunk;
      for (int i = 0; i < 8 && c->empty(); ++i) c = &chunks[random() % chunks.size()];
      mutate(*c, random() & 1 ? 0 : 16);
    }
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) g.chunks[i].size = chunks[i].size();
  Bytes out = serialise(h, g);
  for (const Bytes& c : chunks) out.insert(out.end(), c.begin(), c.end());
  return out;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::mt19937 random(seed);
  if (size < kOptionBytes + sizeof kSignature || random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  if (random() % 8 == 0) data[random() % kOptionBytes] = static_cast<std::uint8_t>(random());
  Bytes s(data + kOptionBytes, data + size);
  repair(s);
  const std::vector<BoxAt> boxes = list_boxes(s.data(), s.size());
  if (boxes.empty()) return LLVMFuzzerMutate(data, size, max_size);
  StreamHeader h;
  bool have_header = false;
  if (boxes[0].type == "Head") try {
      h = parse_stream_header(s.data() + boxes[0].payload(), boxes[0].length);
      have_header = true;
    } catch (const Error&) {
    }
  const BoxAt& b = boxes[random() % boxes.size()];
  switch (random() % 16) {
    case 0: s = replaced(s, b.at, b.end(), {}); break;                    // lost
    case 1: s = replaced(s, b.at, b.at, slice(s, b.at, b.end())); break;  // twice
    case 2: {                                                             // elsewhere
      const Bytes box = slice(s, b.at, b.end());
      s = replaced(s, b.at, b.end(), {});
      const std::vector<BoxAt> left = list_boxes(s.data(), s.size());
      const std::size_t to = left.empty() ? s.size() : left[random() % left.size()].at;
      s = replaced(s, to, to, box);
      break;
    }
    case 3: s.resize(s.size() - random() % s.size()); break;  // cut
    default: {
      Bytes payload = slice(s, b.payload(), b.end());
      if (b.type == "Gop " && have_header) {
        payload = mutate_packet(h, payload, random);
      } else if (b.type == "Head" && payload.size() > 4 && random() % 4) {  // its fields are small numbers
        payload[random() % (payload.size() - 4)] = static_cast<std::uint8_t>(random() % 4 ? random() % 10 : random());
      } else {
        mutate(payload, 8);
      }
      s = replaced(s, b.at, b.end(), make_box(b.type.c_str(), payload));
    }
  }
  const std::size_t n = std::min(s.size(), max_size - kOptionBytes);
  std::memcpy(data + kOptionBytes, s.data(), n);
  return kOptionBytes + n;
}
#endif
