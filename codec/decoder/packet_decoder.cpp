// PacketDecoder of packet_decoder.h: a Decoder reads from a pipe into which packets are put one by one.
#include "trivelet/packet_decoder.h"
#include "codec/base/limits.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/format/container.h"
#include "codec/format/stream_layout.h"
#include "trivelet/large_memory.h"

namespace trivelet {

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Packets that were added and not read yet.
class Pipe final : public ByteSource {
 public:
  void clear() {
    bytes_.clear();
    at_ = 0;
  }
  void add(const Bytes& bytes) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::size_t read(void* data, std::size_t size) override {
    const std::size_t n = std::min(size, bytes_.size() - at_);
    if (n > 0) std::memcpy(data, bytes_.data() + at_, n);
    at_ += n;
    return n;
  }
  bool seekable() const override { return false; }
  void seek(std::uint64_t) override {}
  std::uint64_t size() const override { return 0; }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
};

/// The size of the complete boxes of a stream's header, up to the first GOP.
std::size_t header_bytes(const std::uint8_t* bytes, std::size_t size) {
  std::size_t at = sizeof kSignature;
  Box box;
  while (at <= size && size - at >= kBoxHeaderBytes && parse_box_header(bytes + at, box) && !box.is("Gop ") &&
         box.length <= size - at - kBoxHeaderBytes)
    at += kBoxHeaderBytes + static_cast<std::size_t>(box.length);
  return std::min(at, size);
}

/// The header of the box "Gop " at the start of `bytes`.
GopHeader gop_header(const StreamHeader& stream, const std::uint8_t* bytes, std::size_t size) {
  Box box;
  if (size < kBoxHeaderBytes + 4 || !parse_box_header(bytes, box) || !box.is("Gop "))
    bad("a packet with a damaged beginning");
  const std::uint8_t* payload = bytes + kBoxHeaderBytes;
  const auto n = load_little_endian<std::uint32_t>(payload);
  if (n < 8 || n > size - kBoxHeaderBytes)
    bad("a packet of " + count_of(size, "byte") + " with a header of " + std::to_string(n));
  return parse_gop_header(stream, payload, n);
}

/// Whether the box at the start of `bytes` is of this type, which may stand in a damaged header.
bool begins_with(const std::uint8_t* bytes, std::size_t size, const char* type) {
  return size >= kBoxHeaderBytes && std::memcmp(bytes, type, 4) == 0;
}

[[noreturn]] void bad_kind(std::size_t size) {
  bad("a packet of " + count_of(size, "byte") + " that is neither a head nor a GOP nor the index");
}

bool same_request(const DecoderParams& a, const DecoderParams& b) {
  return a.reduce == b.reduce && a.temporal_reduce == b.temporal_reduce && a.max_planes == b.max_planes &&
         a.max_layers == b.max_layers && a.max_bits_per_pixel == b.max_bits_per_pixel && a.region.x == b.region.x &&
         a.region.y == b.region.y && a.region.width == b.region.width && a.region.height == b.region.height &&
         a.keep_partial == b.keep_partial && a.verify_hash == b.verify_hash && a.differences == b.differences &&
         a.threads == b.threads && a.simd == b.simd;
}

void check_request(const DecoderParams& p) {
  const DecoderParams all;
  require(p.first_frame == all.first_frame && p.end_frame == all.end_frame && p.turns == all.turns,
          ErrorKind::kBadArgument, "packets are decoded whole; leave packets out instead of selecting frames");
  require(p.max_bytes == 0, ErrorKind::kBadArgument,
          "a limit for the bytes of a whole stream does not apply to packets; limit the bits per pixel instead");
}

constexpr std::size_t kMostLines = 100;

/// Bytes of the packets before that are kept. Where more are needed, decoding goes on but cannot begin again.
constexpr std::size_t kMostKept = std::size_t{1} << 28;

void add_stats(const CodecStats& from, CodecStats& to) {
  to.gops += from.gops;
  to.passed_gops += from.passed_gops;
  to.frames += from.frames;
  to.samples += from.samples;
  to.stream_bytes += from.stream_bytes;
  to.damaged_gops += from.damaged_gops;
  for (const std::string& line : from.damage)
    if (to.damage.size() < kMostLines) to.damage.push_back(line);
}

}  // namespace

struct PacketDecoder::State {
  std::function<void(const VideoInfo&)> check;
  const Backend* backend;
  Bytes head;                        ///< the stream's header, up to its first GOP
  std::optional<StreamLayout> said;  ///< parsed from `head`
  std::vector<Bytes> before;         ///< the packets that the last one needs, if it follows them; else empty
  std::size_t before_bytes = 0;
  Bytes gop;                             ///< the last packet
  std::optional<GopHeader> last_header;  ///< header of the last packet, if intact
  bool waits = false;                    ///< the last packet was not decoded yet
  Pipe pipe;
  DecoderParams request;
  CodecStats ended;  ///< statistics of earlier decoders
  std::uint64_t decoders = 0;
  std::unique_ptr<Decoder> decoder;  ///< reads `pipe`, which got all packets up to `gop`

  State(std::function<void(const VideoInfo&)> c, const Backend* b) : check(std::move(c)), backend(b) {}

  void end_decoder() {
    if (decoder) add_stats(decoder->stats(), ended);
    decoder.reset();
  }

  void clear() {
    end_decoder();
    forget_before();
    gop.clear();
    last_header.reset();
    waits = false;
  }

  const StreamHeader& header() const {
    require(said.has_value(), ErrorKind::kBadArgument, "packets without the header of their stream");
    return said->header;
  }

  bool is_open() const { return last_header && last_header->key == GopKey::kOpen; }

  void forget_before() {
    before.clear();
    before_bytes = 0;
  }
  /// Makes the last packet one that the next packet needs, with those that the last one's key frame needs.
  void keep_last() {
    const bool has_chain = is_open() && last_header->predicts_keys;
    if (!has_chain) forget_before();
    if (has_chain && before.empty()) return;  // its key frame cannot be made
    const std::size_t bytes = before_bytes + gop.size();
    if (!begins_with(gop.data(), gop.size(), "Gop ") || (has_chain && bytes > kMostKept)) return forget_before();
    before.push_back(std::move(gop));
    before_bytes = bytes;
  }

  bool set_header(const std::uint8_t* bytes, std::size_t size) {
    const std::size_t n = header_bytes(bytes, size);
    if (said && head.size() == n && std::equal(head.begin(), head.end(), bytes)) return false;
    MemorySource source(bytes, n);
    std::uint64_t read = 0;
    StreamInput in(source, read);
    StreamLayout layout;
    layout.read(in);
    clear();
    head.assign(bytes, bytes + n);
    said = std::move(layout);
    return true;
  }

  void begin(const DecoderParams& params) {
    end_decoder();
    DecoderParams p = params;
    p.reads_ahead = false;
    Bytes stream = head;
    if (last_header) p.first_frame = last_header->first_frame;  // of an earlier packet only the key frame is used
    if (is_open())
      for (const Bytes& packet : before) stream.insert(stream.end(), packet.begin(), packet.end());
    stream.insert(stream.end(), gop.begin(), gop.end());
    pipe.clear();
    pipe.add(stream);
    decoder = std::make_unique<Decoder>(pipe, p, backend);
    request = params;
    ++decoders;
  }

  /// A decoder whose next frames are those of the last packet; null if that was decoded already.
  Decoder* ready(const DecoderParams& params) {
    check_request(params);
    if (!std::exchange(waits, false)) return nullptr;
    if (!begins_with(gop.data(), gop.size(), "Gop ")) {  // no decoder would say so, for it looks for the next GOP
      end_decoder();
      if (!params.keep_partial) bad_kind(gop.size());
      ++ended.damaged_gops;
      if (ended.damage.size() < kMostLines) ended.damage.push_back("a packet that is no GOP is passed over");
      return nullptr;
    }
    if (!decoder || !same_request(params, request))
      begin(params);
    else
      pipe.add(gop);
    return decoder.get();
  }

  /// Runs f(decoder), which returns whether there were frames. Without frames the decoder is at the end of its pipe.
  template <class F>
  bool decode(const DecoderParams& params, const F& f) {
    try {
      Decoder* from = ready(params);
      if (!from) return false;
      if (f(*from)) return true;
    } catch (...) {
      end_decoder();
      throw;
    }
    end_decoder();
    return false;
  }
};

PacketDecoder::PacketDecoder(std::function<void(const VideoInfo&)> check, const Backend* backend)
    : state_(std::make_unique<State>(std::move(check), backend)) {}

PacketDecoder::~PacketDecoder() = default;

void PacketDecoder::set_header(const void* data, std::size_t size) {
  state_->set_header(static_cast<const std::uint8_t*>(data), size);
}

const StreamInfo& PacketDecoder::stream() const {
  (void)state_->header();
  return state_->said->info;
}

PacketDecoder::Output PacketDecoder::output(const DecoderParams& params) const {
  const State& s = *state_;
  (void)s.header();
  check_request(params);
  DecoderParams p = params;
  p.keep_partial = true;  // there is no GOP
  MemorySource source(s.head.data(), s.head.size());
  const Decoder decoder(source, p);
  return {decoder.output(), decoder.gop_frames()};
}

void PacketDecoder::clear() { state_->clear(); }

PacketInfo PacketDecoder::look(const void* data, std::size_t size) const {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  const State& s = *state_;
  const std::size_t at = is_tvl(data, size) ? header_bytes(bytes, size) : 0;
  PacketInfo info;
  if (begins_with(bytes + at, size - at, "Indx")) return info;
  if (!begins_with(bytes + at, size - at, "Gop ")) {
    if (at == 0) bad_kind(size);
    info.kind = PacketInfo::Kind::kHead;
    return info;
  }
  return packet_info(gop_header(s.header(), bytes + at, size - at));
}

bool PacketDecoder::add(const void* data, std::size_t size) {
  State& s = *state_;
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  std::size_t at = 0;
  if (is_tvl(data, size)) {
    at = header_bytes(bytes, size);
    if (at == size) return false;
    s.set_header(bytes, at);
  }
  if (size == at || begins_with(bytes + at, size - at, "Indx") || !s.said) return false;
  const std::uint64_t end =
      s.last_header ? s.last_header->first_frame + static_cast<std::uint64_t>(s.last_header->frames) : 0;
  const bool known = s.last_header.has_value();
  s.keep_last();
  s.gop.assign(bytes + at, bytes + size);
  try {
    s.last_header = gop_header(s.header(), s.gop.data(), s.gop.size());
  } catch (const Error&) {
    s.last_header.reset();  // decode() reports the damage
  }
  // A packet that was added but not decoded is missing in the pipe.
  if (s.waits || (known && s.last_header && s.last_header->first_frame != end)) s.end_decoder();
  if (known && s.last_header && s.last_header->first_frame != end) s.forget_before();
  s.waits = !s.is_open() || !s.before.empty() || s.decoder;
  return s.waits;
}

int PacketDecoder::frames(const DecoderParams& params) const {
  const State& s = *state_;
  if (!s.last_header) return -1;
  const int levels = params.temporal_reduce + s.header().dropped_temporal;
  const int first = s.last_header->key == GopKey::kFirst ? 0 : (1 << levels) - 1;
  return std::max(0, s.last_header->frames - first + (1 << levels) - 1) >> levels;
}

bool PacketDecoder::decode(const DecoderParams& params, Decoded& into) {
  State& s = *state_;
  return s.decode(params, [&](Decoder& from) {
    if (into.decoder != s.decoders) {
      if (s.check) s.check(from.output());
      into.gop = Gop();  // whose memory is freed before there is more
      into.gop = from.make_gop();
    }
    // With motion frames in 16 bits need the room. Threads of the predictive profile would allocate samples at once.
    if (kScarceMemory && s.header().motion && s.header().profile != Profile::kPredictive) into.gop.release();
    into.decoder = s.decoders;
    into.info = from.output();
    return from.pull(into.gop);
  });
}

int PacketDecoder::decode(const DecoderParams& params, std::span<MutableFrameView> frames) {
  int n = 0;
  (void)state_->decode(params, [&](Decoder& from) { return (n = from.pull(frames)) > 0; });
  return n;
}

CodecStats PacketDecoder::stats() const {
  CodecStats all = state_->ended;
  if (state_->decoder) add_stats(state_->decoder->stats(), all);
  return all;
}

}  // namespace trivelet
