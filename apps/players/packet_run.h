// The packets of a Trivelet track, as modules for players get them from a demultiplexer (io/video/matroska.h).
//
// A packet is a GOP. That of a closed GOP begins with the stream's header; an open GOP needs the one before. So one
// decoder continues from packet to packet, as if they came through a pipe, and decodes each once. It restarts after a
// seek, for another quality, and after damage. The packet with the index shows nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "codec/format/container.h"
#include "trivelet/codec.h"

namespace trivelet {

class PacketRun {
 public:
  /// The part of the stream to decode.
  struct Choice {
    int layers = 0;  ///< 0 = all; also more than there are
    int reduce = 0;
    int threads = 0;
    bool operator==(const Choice&) const = default;
  };
  /// Frames of a packet; their memory is used again for the next one.
  struct Decoded {
    VideoInfo info;
    Gop gop;
    std::uint64_t decoder = 0;  ///< that made it
  };

  /// `check` throws for pictures that the player cannot take: it is called before memory is taken for them.
  explicit PacketRun(std::function<void(const VideoInfo&)> check = {}) : check_(std::move(check)) {}

  /// After a jump: nothing that came before is needed.
  void clear() {
    end_decoder();
    before_.clear();
    gop_.clear();
    head_.clear();
  }

  /// False if the packet shows nothing: the index, or a GOP that depends on a missing one.
  bool add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    std::size_t at = 0;
    if (is_tvl(data, size)) {
      at = gop_in(bytes, size);
      if (at == size) return false;
      if (head_.size() != at || !std::equal(head_.begin(), head_.end(), bytes)) {
        clear();
        head_.assign(bytes, bytes + at);
      }
    }
    if (size - at < 4 || std::memcmp(bytes + at, "Gop ", 4) != 0 || head_.empty()) return false;
    before_.swap(gop_);
    gop_.assign(bytes + at, bytes + size);
    return true;
  }

  /// Decodes the packet added last. False if it is damaged and gives no frames. Throws the errors of Decoder.
  bool decode(const Choice& choice, Decoded& into) {
    try {
      if (!decoder_ || !(choice == choice_))
        begin(choice);
      else
        source_.add(gop_);
      if (into.decoder != decoders_) {
        if (check_) check_(decoder_->output());
        into.gop = decoder_->make_gop();
      }
      into.decoder = decoders_;
      into.info = decoder_->output();
      if (decoder_->pull(into.gop)) return true;
    } catch (...) {
      end_decoder();
      throw;
    }
    end_decoder();  // which has reached the end of its pipe
    return false;
  }

  /// Number of GOPs decoded, including those that were only needed by others.
  std::uint64_t gops_decoded() const {
    return gops_ + (decoder_ ? decoder_->stats().gops + decoder_->stats().passed_gops : 0);
  }

 private:
  /// What was added and not read yet.
  class Pipe final : public ByteSource {
   public:
    void clear() { bytes_.clear(), at_ = 0; }
    void add(const std::vector<std::uint8_t>& bytes) {
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
    std::vector<std::uint8_t> bytes_;
    std::size_t at_ = 0;
  };

  /// Where the box of the GOP begins after the stream's header; the whole size if there is none.
  static std::size_t gop_in(const std::uint8_t* bytes, std::size_t size) {
    std::size_t at = sizeof kSignature;
    Box box;
    while (size - at >= kBoxHeaderBytes && parse_box_header(bytes + at, box)) {
      if (box.is("Gop ")) return at;
      if (box.length > size - at - kBoxHeaderBytes) break;
      at += kBoxHeaderBytes + static_cast<std::size_t>(box.length);
    }
    return size;
  }

  void begin(const Choice& choice) {
    end_decoder();
    std::vector<std::uint8_t> stream = head_;
    stream.insert(stream.end(), gop_.begin(), gop_.end());
    MemorySource alone(stream.data(), stream.size());
    const StreamInfo info = probe(alone);
    DecoderParams params;
    if (!info.gops.empty() && info.gops[0].key == GopKey::kOpen) {  // of the previous packet only what this one depends
                                                                    // on
      params.first_frame = info.gops[0].first_frame;
      stream.insert(stream.begin() + static_cast<std::ptrdiff_t>(head_.size()), before_.begin(), before_.end());
    }
    params.keep_partial = true;  // after a seek, earlier packets are missing
    params.max_layers = std::min(choice.layers, info.layers);
    params.reduce = choice.reduce;
    params.threads = choice.threads;
    params.reads_ahead = false;
    source_.clear();
    source_.add(stream);
    decoder_ = std::make_unique<Decoder>(source_, params);
    choice_ = choice;
    ++decoders_;
  }

  void end_decoder() {
    gops_ = gops_decoded();
    decoder_.reset();
  }

  std::function<void(const VideoInfo&)> check_;
  std::vector<std::uint8_t> head_;    ///< of the stream, up to its first GOP
  std::vector<std::uint8_t> before_;  ///< the packet before the last one, without head_; empty after a jump
  std::vector<std::uint8_t> gop_;     ///< the last one
  Pipe source_;
  Choice choice_;
  std::uint64_t gops_ = 0;  ///< of decoders that are no more
  std::uint64_t decoders_ = 0;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace trivelet
