// Writes a stream box by box and counts its bytes. Shared by the edits that make a stream of others (rewrite, join).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/format/container.h"
#include "trivelet/codec.h"

namespace trivelet {

class StreamWriter {
 public:
  explicit StreamWriter(ByteSink& sink) : sink_(sink) {}

  void write(const void* data, std::size_t size) {
    sink_.write(data, size);
    position_ += size;
  }
  /// Counts bytes that other code writes.
  void skip(std::uint64_t size) { position_ += size; }
  /// `payload` with its crc.
  void write_box(const char* type, const std::vector<std::uint8_t>& payload) {
    begin_box(type, payload.size());
    write(payload.data(), payload.size());
  }
  void write_box(const ExtraBox& box) {
    const BoxEnds ends = box_around(box.type.c_str(), box.payload);
    write(ends.header, sizeof ends.header);
    write(box.payload.data(), box.payload.size());
    write(ends.crc, sizeof ends.crc);
  }
  void write_header(const StreamHeader& header) {
    write(kSignature, sizeof kSignature);
    write_box("Head", serialise(header));
  }
  /// Writes the packet of a GOP without its body, which has h.body_bytes and follows. Returns where the packet begins.
  std::uint64_t begin_gop(const StreamHeader& header, const GopHeader& h) {
    const std::uint64_t offset = position_;
    const std::vector<std::uint8_t> head = serialise(header, h);
    begin_box("Gop ", head.size() + h.body_bytes);
    write(head.data(), head.size());
    return offset;
  }
  void write_end(std::uint64_t frames, const std::vector<GopInfo>& index) {
    StreamEnd end;
    end.frames = frames;
    end.index_offset = position_;
    write_box("Indx", serialise_index(index));
    write_box("Done", serialise(end));
  }
  /// Bytes written so far.
  std::uint64_t position() const { return position_; }

 private:
  void begin_box(const char* type, std::uint64_t length) {
    std::uint8_t head[kBoxHeaderBytes];
    write_box_header(type, length, head);
    write(head, sizeof head);
  }

  ByteSink& sink_;
  std::uint64_t position_ = 0;
};

}  // namespace trivelet
