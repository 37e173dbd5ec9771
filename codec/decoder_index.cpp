// What a stream says about itself (decoder_state.h): its header, the boxes behind it, and where its GOPs are, from the
// index at its end or, where that is missing, from what is intact of the packets.

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/bytes.h"
#include "codec/decoder_state.h"

namespace trivelet {

namespace {

[[noreturn]] void bad(const std::string& message) { fail(ErrorKind::kBadStream, message); }

}  // namespace

void Decoder::State::read_header() {
  std::uint8_t signature[sizeof kSignature];
  const std::size_t got = in.read(signature, sizeof signature);
  if (!is_tvl(signature, got))
    bad("this is not a .tvl stream: it does not begin with the signature 89 'TVL' 0D 0A 1A 0A");
  for (;;) {
    std::uint8_t head[kBoxHeaderBytes];
    if (in.read(head, sizeof head) < sizeof head) bad("the stream ends before its header");
    Box box;
    if (!parse_box_header(head, box))
      bad("damaged box header at byte " + std::to_string(in.position() - sizeof head) + ", before the stream header");
    if (box.is("Head")) {
      if (box.length < 8 || box.length > kMaxHeaderBytes)
        bad("stream header of " + std::to_string(box.length) + " bytes; the limit is " +
            std::to_string(kMaxHeaderBytes));
      std::vector<std::uint8_t> payload;
      if (!in.append(payload, box.length)) bad("the stream ends inside its header");
      header = parse_stream_header(payload.data(), payload.size());
      break;
    }
    require(!box.critical(), ErrorKind::kUnsupported,
            std::string("unknown critical box '") + box.type + "' before the stream header");
    if (!in.skip(box.length)) bad("the stream ends before its header");
  }
  read_extra_boxes();
  info.video = header.video;
  info.format_major = header.major;
  info.format_minor = header.minor;
  info.profile = header.profile;
  info.fast_mode = header.fast_mode;
  info.lossless = header.lossless;
  info.decomposition = header.decomposition(0);
  info.gop_frames = header.gop_frames;
  info.block_size = header.block_size();
  info.layers = header.layers;
  info.settings = header.settings;
  info.writer = header.writer;
  info.file_bytes = in.size();
}

void Decoder::State::read_extra_boxes() {
  for (;;) {
    const std::uint64_t at = in.position();
    std::uint8_t head[kBoxHeaderBytes];
    Box box;
    const bool intact = in.read(head, sizeof head) == sizeof head && parse_box_header(head, box);
    if (!intact || is_stream_box(box.type)) {
      if (in.seekable()) {
        in.seek(at);
      } else if (in.position() == at + sizeof head) {
        pending_box.emplace();
        std::memcpy(pending_box->data(), head, sizeof head);
      }
      return;
    }
    require(!box.critical() || box.is("Volm"), ErrorKind::kUnsupported,
            std::string("unknown critical box '") + box.type + "' at byte " + std::to_string(at));
    if (box.length > kMaxExtraBytes)
      bad("a box '" + std::string(box.type) + "' of " + std::to_string(box.length) + " bytes; the limit is " +
          std::to_string(kMaxExtraBytes));
    ExtraBox extra;
    extra.type = box.type;
    if (!in.append(extra.payload, box.length)) bad("the stream ends inside the box '" + extra.type + "'");
    info.boxes.push_back(std::move(extra));
  }
}

void Decoder::State::read_index() {
  constexpr std::size_t kEndBytes = kBoxHeaderBytes + kEndPayloadBytes;
  const std::uint64_t start = in.position();
  const std::uint64_t size = in.size();
  if (size >= start + kEndBytes) {
    std::uint8_t tail[kEndBytes];
    in.seek(size - kEndBytes);
    Box box;
    StreamEnd end;
    if (in.read(tail, sizeof tail) == sizeof tail && parse_box_header(tail, box) && box.is("Done") &&
        parse_stream_end(tail + kBoxHeaderBytes, sizeof tail - kBoxHeaderBytes, end)) {
      info.complete = true;
      promised_frames = end.frames;
      if (end.index_offset >= start && end.index_offset <= size - kEndBytes - kBoxHeaderBytes) {
        std::uint8_t head[kBoxHeaderBytes];
        in.seek(end.index_offset);
        if (in.read(head, sizeof head) == sizeof head && parse_box_header(head, box) && box.is("Indx") &&
            box.length <= size - kEndBytes - in.position()) {
          std::vector<std::uint8_t> payload;
          if (in.append(payload, box.length)) {
            try {
              info.gops = parse_index(payload.data(), payload.size(), header.layers);
              info.has_index = true;
              for (const GopInfo& g : info.gops)
                if (g.offset < start || g.offset > size || g.bytes > size - g.offset) info.has_index = false;
              const std::uint64_t frames = info.gops.empty() ? 0
                                                             : info.gops.back().first_frame +
                                                                   static_cast<std::uint64_t>(info.gops.back().frames);
              if (frames != end.frames) info.has_index = false;
            } catch (const Error&) {
              info.has_index = false;  // fall through to the scan
            }
          }
        }
      }
    }
  }
  if (!info.has_index) {
    in.seek(start);
    scan();
  }
  in.seek(start);
}

// Rebuilds the index from the packets' own headers, as far as they are intact.
void Decoder::State::scan() {
  info.gops.clear();
  for (;;) {
    const std::uint64_t at = in.position();
    std::uint8_t head[kBoxHeaderBytes];
    if (in.read(head, sizeof head) < sizeof head) break;
    Box box;
    if (!parse_box_header(head, box)) {
      in.seek(at + 1);
      if (!resync()) break;
      continue;
    }
    if (box.is("Gop ")) {
      std::uint8_t size_bytes[4];
      std::vector<std::uint8_t> bytes_of_head;
      if (in.read(size_bytes, 4) == 4) {
        const auto n = load_little_endian<std::uint32_t>(size_bytes);
        if (n >= 8 && n <= kMaxHeaderBytes && n <= box.length) {
          bytes_of_head.assign(size_bytes, size_bytes + 4);
          if (in.append(bytes_of_head, n - 4)) {
            try {
              const GopHeader g = parse_gop_header(header, bytes_of_head.data(), bytes_of_head.size());
              GopInfo i;
              i.offset = at;
              i.bytes = kBoxHeaderBytes + box.length;
              i.first_frame = g.first_frame;
              i.frames = g.frames;
              info.gops.push_back(i);
            } catch (const Error&) {  // a damaged packet is left out; decoding will say so
            }
          }
        }
      }
    }
    if (box.is("Done")) break;
    in.seek(at + kBoxHeaderBytes);
    if (box.length > in.size() - in.position()) break;
    in.seek(in.position() + box.length);
  }
  info.has_index = !info.gops.empty();
}

bool Decoder::State::resync() {
  std::uint64_t at = in.position();
  std::vector<std::uint8_t> window;
  // The window grows, so that the work stays in proportion to the way that is gone.
  for (std::uint64_t reach = 4096; at + kBoxHeaderBytes <= in.size();
       reach = std::min(2 * reach, std::uint64_t{1} << 20)) {
    in.seek(at);
    window.clear();
    in.append(window, std::min(reach, in.size() - at));
    if (window.size() < kBoxHeaderBytes) return false;
    for (std::size_t i = 0; i + kBoxHeaderBytes <= window.size(); ++i) {
      Box box;
      const std::uint8_t* p = window.data() + i;
      if ((std::memcmp(p, "Gop ", 4) == 0 || std::memcmp(p, "Indx", 4) == 0 || std::memcmp(p, "Done", 4) == 0) &&
          parse_box_header(p, box)) {
        in.seek(at + i);
        return true;
      }
    }
    at += window.size() - kBoxHeaderBytes + 1;
  }
  return false;
}

}  // namespace trivelet
