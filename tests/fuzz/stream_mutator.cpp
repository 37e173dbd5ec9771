// The mutator of the fuzzers of whole streams (TRIVELET_FUZZ_OPTIONS bytes, then a stream). It knows boxes and chunks:
// it changes one chunk, header or box and corrects the sizes around it.

#include <cstdint>
#include <random>

#include "codec/format/container.h"
#include "tests/support/boxes.h"

using namespace trivelet;
using namespace trivelet::test;

// Weak: other engines than libFuzzer have none, and do not call a mutator either.
extern "C" [[gnu::weak]] std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::size_t kOptionBytes = TRIVELET_FUZZ_OPTIONS;

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
