// Segment headers (CCSDS 122.0-B-2 §4.2): parts 1A, 1B, 2, 3 and 4. visit() lists the fields once for reading and
// writing. Reserved bits are written as 0 and ignored when read.
#include <bit>

#include "codec/base/limits.h"
#include "codec/still/ccsds122/ccsds122.h"

namespace trivelet::ccsds122 {
namespace {

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  static constexpr bool kReading = true;

  void need(int bytes) {
    if (bytes_.size() < position_ / 8 + static_cast<std::size_t>(bytes))
      fail(ErrorKind::kBadStream, "segment header cut off after " + count_of(bytes_.size(), "byte"));
  }
  template <class T>
  void field(int bits, T& value) {
    std::uint32_t v = 0;
    for (int i = 0; i < bits; ++i, ++position_)
      v = v << 1 | (std::to_integer<std::uint32_t>(bytes_[position_ / 8]) >> (7 - position_ % 8) & 1);
    value = static_cast<T>(v);
  }
  void reserved(int bits) { position_ += static_cast<std::size_t>(bits); }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

class Writer {
 public:
  static constexpr bool kReading = false;
  void need(int) {}
  template <class T>
  void field(int bits, T& value) {
    for (int i = bits - 1; i >= 0; --i) bit(static_cast<std::uint32_t>(value) >> i & 1);
  }
  void reserved(int bits) {
    for (int i = 0; i < bits; ++i) bit(0);
  }
  std::vector<std::byte> bytes;

 private:
  void bit(std::uint32_t b) {
    if (count_ % 8 == 0) bytes.push_back(std::byte{0});
    bytes.back() |= static_cast<std::byte>(b << (7 - count_ % 8));
    ++count_;
  }
  std::size_t count_ = 0;
};

template <class Io>
void visit(Io& io, SegmentHeader& h) {
  io.need(3);  // part 1A
  io.field(1, h.start);
  io.field(1, h.end);
  io.field(8, h.count);
  int depth = h.dc_depth & 31;
  io.field(5, depth);
  if (Io::kReading) h.dc_depth = depth == 0 ? 32 : depth;
  io.field(5, h.ac_depth);
  io.reserved(1);
  io.field(1, h.part2);
  io.field(1, h.part3);
  io.field(1, h.part4);

  if (h.end) {  // part 1B
    io.need(1);
    io.field(3, h.pad_rows);
    io.reserved(5);
  } else if (Io::kReading) {
    h.pad_rows = 0;
  }

  if (h.part2) {
    io.need(5);
    io.field(27, h.byte_limit);
    io.field(1, h.dc_stop);
    io.field(5, h.bit_plane_stop);
    io.field(2, h.stage_stop);
    io.field(1, h.use_fill);
    io.reserved(4);
  }

  if (h.part3) {
    io.need(3);
    std::uint32_t blocks = h.blocks & (kMaxSegmentBlocks - 1);
    io.field(20, blocks);
    if (Io::kReading) h.blocks = blocks == 0 ? kMaxSegmentBlocks : blocks;
    io.field(1, h.optimal_dc);
    io.field(1, h.optimal_ac);
    io.reserved(2);
  }

  if (h.part4) {
    io.need(8);
    io.field(1, h.dwt);
    io.reserved(1);
    bool extended = h.bits > 16;
    io.field(1, extended);
    io.field(1, h.is_signed);
    int bits = h.bits & 15;
    io.field(4, bits);
    if (Io::kReading) h.bits = extended ? 16 + bits : bits == 0 ? 16 : bits;
    std::uint32_t width = static_cast<std::uint32_t>(h.width) & (static_cast<std::uint32_t>(kMaxWidth) - 1);
    io.field(20, width);
    if (Io::kReading) h.width = width == 0 ? kMaxWidth : static_cast<int>(width);
    io.field(1, h.transpose);
    int low = (h.word_bytes - 1) & 3;  // the two low bits of the length come first, then the high one
    int high = (h.word_bytes - 1) >> 2;
    io.field(2, low);
    io.field(1, high);
    if (Io::kReading) h.word_bytes = 1 + low + 4 * high;
    io.field(1, h.custom_weights);
    for (std::uint8_t& w : h.weights) io.field(2, w);
    io.reserved(11);
  }
}

void check(const SegmentHeader& h) {
  if (h.part4) {
    const int most = h.dwt == Dwt::kInteger ? 25 : h.is_signed ? 28 : 27;
    require(
        h.bits <= most, ErrorKind::kBadStream,
        "pixel bit depth " + std::to_string(h.bits) + " is above " + std::to_string(most) + ", the limit of this DWT");
    require(h.width >= kMinSide, ErrorKind::kBadStream, "image width " + std::to_string(h.width) + " is below 17");
  }
}

}  // namespace

Weights SegmentHeader::shifts() const {
  if (dwt == Dwt::kFloat) return Weights{};
  return custom_weights ? weights : kDefaultWeights;
}

SegmentHeader read_header(std::span<const std::byte> bytes, const SegmentHeader& previous) {
  SegmentHeader h = previous;
  Reader reader(bytes);
  visit(reader, h);
  check(h);
  return h;
}

std::vector<std::byte> write_header(const SegmentHeader& header) {
  SegmentHeader h = header;
  if (!h.custom_weights) h.weights = Weights{};
  Writer writer;
  visit(writer, h);
  return writer.bytes;
}

}  // namespace trivelet::ccsds122
