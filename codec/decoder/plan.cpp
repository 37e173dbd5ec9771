// ReadPlan of plan.h: runs the reading half of the decoder (packet_reader.cpp) on the bytes given so far, and notes
// the ranges that it would read.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/decoder/decoder_state.h"
#include "codec/format/container.h"
#include "codec/format/given_bytes.h"
#include "codec/volume/volume_request.h"

namespace trivelet {

// ------------------------------------------------------------------------------------------------------------- ranges

void RangeSet::add(std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return;
  std::uint64_t end = offset + size;
  auto next = ends_.upper_bound(offset);
  if (next != ends_.begin() && std::prev(next)->second >= offset) {
    --next;
    offset = next->first;
  }
  while (next != ends_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ends_.erase(next);
  }
  ends_[offset] = end;
}

std::vector<ByteRange> RangeSet::missing(const ByteRange& range) const {
  std::vector<ByteRange> out;
  std::uint64_t at = range.offset;
  const std::uint64_t end = range.offset + range.size;
  auto next = ends_.upper_bound(at);
  if (next != ends_.begin()) at = std::max(at, std::prev(next)->second);
  for (; at < end; ++next) {
    const std::uint64_t stop = next == ends_.end() ? end : std::min(end, next->first);
    if (at < stop) out.push_back({at, stop - at});
    if (next == ends_.end()) break;
    at = next->second;
  }
  return out;
}

std::vector<ByteRange> RangeSet::all() const {
  std::vector<ByteRange> out;
  for (const auto& [begin, end] : ends_) out.push_back({begin, end - begin});
  return out;
}

void GivenBytes::give(std::uint64_t offset, const void* data, std::size_t size) {
  require(offset <= size_ && size <= size_ - offset, ErrorKind::kBadArgument,
          "bytes " + std::to_string(offset) + " to " + std::to_string(offset + size) + " of a stream of " +
              std::to_string(size_));
  for (const ByteRange& piece : known_.missing({offset, size})) {
    const auto* from = static_cast<const std::byte*>(data) + (piece.offset - offset);
    pieces_[piece.offset].assign(from, from + piece.size);
  }
  known_.add(offset, size);
}

std::vector<ByteRange> GivenBytes::missing(const RangeSet& wanted) const {
  std::vector<ByteRange> out;
  for (const ByteRange& range : wanted.all())
    for (const ByteRange& piece : known_.missing(range)) out.push_back(piece);
  return out;
}

std::uint64_t GivenBytes::known_from(std::uint64_t offset) const {
  const std::vector<ByteRange> missing = known_.missing({offset, size_ - offset});
  return missing.empty() ? size_ - offset : missing.front().offset - offset;
}

std::size_t GivenBytes::read(void* data, std::size_t size) {
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - position_));
  if (const std::vector<ByteRange> missing = known_.missing({position_, n}); !missing.empty())
    throw NotGiven({missing.front().offset, position_ + n - missing.front().offset});
  auto* out = static_cast<std::byte*>(data);
  for (std::size_t done = 0; done < n;) {
    const auto piece = std::prev(pieces_.upper_bound(position_));
    const auto at = static_cast<std::size_t>(position_ - piece->first);
    const std::size_t some = std::min(n - done, piece->second.size() - at);
    std::memcpy(out + done, piece->second.data() + at, some);
    done += some;
    position_ += some;
  }
  return n;
}

void GivenBytes::seek(std::uint64_t position) {
  require(position <= size_, ErrorKind::kIo, "seek to " + std::to_string(position) + " in " + count_of(size_, "byte"));
  position_ = position;
}

// --------------------------------------------------------------------------------------------------------------- plan

struct ReadPlan::State {
  /// monostate: header and index only.
  using Request = std::variant<DecoderParams, VolumeDecoderParams, std::monostate>;
  State(std::uint64_t bytes, Request r) : given(bytes), request(std::move(r)) {}
  GivenBytes given;
  Request request;
  RangeSet asked;

  bool has_region() const;
  void want_end(RangeSet& wanted) const;
  void plan(RangeSet& wanted);
};

namespace {

// The first request covers header, boxes of volumes with the front table, and an index of some GOPs; larger ones are
// requested when their size is known. This is a small share of a stream: tables of volumes take 0.05 to 0.3 %.
constexpr std::uint64_t kLeastBegin = 1024;
constexpr std::uint64_t kMostBegin = 1 << 16;
constexpr std::uint64_t kShareOfBegin = 400;
// A region also needs the headers of chunks, which are a larger share of small streams.
constexpr std::uint64_t kShareOfBeginForRegion = 200;
constexpr std::uint64_t kShareOfSmallBegin = 100;
constexpr std::uint64_t kSmallBegin = 4096;
constexpr std::uint64_t kEnd = 512;

}  // namespace

ReadPlan::ReadPlan(std::uint64_t stream_bytes, const DecoderParams& request)
    : state_(std::make_unique<State>(stream_bytes, request)) {}
ReadPlan::ReadPlan(std::uint64_t stream_bytes, const VolumeDecoderParams& request)
    : state_(std::make_unique<State>(stream_bytes, request)) {}
ReadPlan::ReadPlan(std::uint64_t stream_bytes) : state_(std::make_unique<State>(stream_bytes, std::monostate())) {}
ReadPlan::~ReadPlan() = default;

void ReadPlan::give(std::uint64_t offset, const void* data, std::size_t size) {
  state_->given.give(offset, data, size);
}
ByteSource& ReadPlan::source() { return state_->given; }
std::vector<ByteRange> ReadPlan::ranges() const { return state_->asked.all(); }

bool ReadPlan::State::has_region() const {
  if (const auto* volume = std::get_if<VolumeDecoderParams>(&request)) return volume->region.has_value();
  const auto* video = std::get_if<DecoderParams>(&request);
  return video && video->region.width > 0;
}

void ReadPlan::State::want_end(RangeSet& wanted) const {
  const std::uint64_t size = given.size();
  wanted.add(size - std::min(kEnd, size), std::min(kEnd, size));
}

// A GOP's header and, with a region, the box after the packet, which may hold checks. The header is what the index does
// not count as layers. With motion in between, the header itself gives its size.
void Decoder::State::plan_heads(std::size_t gop, RangeSet& wanted) {
  const GopInfo& g = info.gops[gop];
  std::uint64_t chunks = 0;
  for (const LayerInfo& layer : g.layers) chunks += std::min(layer.bytes, g.bytes);
  std::uint64_t head = g.bytes - std::min(chunks, g.bytes - kBoxHeaderBytes);
  if (header.motion) {
    std::uint8_t begin[kBoxHeaderBytes + 4];
    wanted.add(g.offset, std::min<std::uint64_t>(sizeof begin, g.bytes));
    try {
      in.seek(g.offset);
      if (in.read(begin, sizeof begin) < sizeof begin) return;
    } catch (const NotGiven&) {
      return;
    }
    head = std::min<std::uint64_t>(head, kBoxHeaderBytes + load_little_endian<std::uint32_t>(begin + kBoxHeaderBytes));
  }
  wanted.add(g.offset, head);
  if (!has_region()) return;
  const std::uint64_t end = g.offset + g.bytes;
  const std::uint64_t next = gop + 1 < info.gops.size() ? info.gops[gop + 1].offset : index_offset;
  const std::uint64_t behind = std::max<std::uint64_t>(kBoxHeaderBytes, next > end ? next - end : 0);
  wanted.add(end, std::min(behind, in.size() - end));
}

// Reads header, boxes and index, which every request needs. False if some are missing; `wanted` gets them. Without an
// index it gets the whole stream, because every packet would be read.
bool plan_layout(StreamLayout& layout, StreamInput& in, RangeSet& wanted) {
  try {
    layout.read(in);
    return true;
  } catch (const NotGiven& missing) {
    const bool scans = !layout.info.index_damage.empty();
    const ByteRange& range = missing.range();
    // Boxes follow what did not fit into the first request: fetch some bytes more, not each box alone.
    const std::uint64_t more = std::min(range.size + kLeastBegin, in.size() - range.offset);
    scans ? wanted.add(0, in.size()) : wanted.add(range.offset, more);
    return false;
  }
}

void plan_reads(GivenBytes& given, const DecoderParams& params, RangeSet& wanted) {
  Decoder::State s(given, params);
  if (!plan_layout(s, s.in, wanted)) return;
  for (const auto& [offset, bytes] : s.in.known()) given.give(offset, bytes.data(), bytes.size());
  s.check_request();
  s.output = reduced_video(s.header.video, s.reduction);
  if (!s.info.index_damage.empty() || !s.info.has_index) return wanted.add(0, given.size());
  s.planned = &wanted;
  for (std::size_t i = 0; i < s.info.gops.size(); ++i) {
    const GopInfo& g = s.info.gops[i];
    if (!s.wanted_gop(i)) continue;
    s.plan_heads(i, wanted);
    s.next_gop = i;
    s.expected_frame = g.first_frame;
    try {
      Decoder::State::Packet packet;
      Box box;
      std::uint64_t offset = 0;
      if (s.open_next_packet(box, offset)) (void)s.receive(packet, box.length, offset);
    } catch (const NotGiven& missing) {
      wanted.add(missing.range().offset, missing.range().size);
    }
  }
}

// The request of VolumeDecoder to Decoder. Nothing if header or index are missing.
std::optional<DecoderParams> plan_volume(GivenBytes& given, const VolumeDecoderParams& params, RangeSet& wanted) {
  std::uint64_t bytes_read = 0;
  StreamInput in(given, bytes_read);
  StreamLayout layout;
  layout.limits = params.limits;
  layout.uses_front_table = true;
  if (!plan_layout(layout, in, wanted)) return std::nullopt;
  return volume_request(given, params);
}

void plan_index(GivenBytes& given, RangeSet& wanted) {
  std::uint64_t bytes_read = 0;
  StreamInput in(given, bytes_read);
  StreamLayout layout;
  layout.uses_front_table = true;
  (void)plan_layout(layout, in, wanted);
}

// The ranges that the decoder would read next, as far as known.
void ReadPlan::State::plan(RangeSet& wanted) {
  given.seek(0);
  if (std::holds_alternative<std::monostate>(request)) return plan_index(given, wanted);
  const auto* volume = std::get_if<VolumeDecoderParams>(&request);
  const std::optional<DecoderParams> params =
      volume ? plan_volume(given, *volume, wanted) : std::get<DecoderParams>(request);
  if (!params) return;
  given.seek(0);
  plan_reads(given, *params, wanted);
}

std::vector<ByteRange> ReadPlan::next() {
  State& s = *state_;
  const std::uint64_t size = s.given.size();
  RangeSet wanted;
  if (s.given.has({0, std::min(kLeastBegin, size)})) {
    s.plan(wanted);
    // Extend the last range to the end when that is near: most of the index is there.
    const std::vector<ByteRange> missing = s.given.missing(wanted);
    if (!missing.empty() && missing.back().offset + missing.back().size + kEnd > size) s.want_end(wanted);
  } else {
    const std::uint64_t begin =
        s.has_region() ? std::max(size / kShareOfBeginForRegion, std::min(size / kShareOfSmallBegin, kSmallBegin))
                       : size / kShareOfBegin;
    wanted.add(0, std::min(std::clamp(begin, kLeastBegin, kMostBegin), size));
    s.want_end(wanted);
  }
  s.given.seek(0);
  std::vector<ByteRange> missing = s.given.missing(wanted);
  for (const ByteRange& range : missing) s.asked.add(range.offset, range.size);
  return missing;
}

}  // namespace trivelet
