// Decodes packet by packet, for players and demultiplexers: the stream header once, then GOP after GOP, with possible
// jumps and losses between them.
//
//   PacketDecoder decoder;
//   decoder.set_header(private_data, size);            // or the header stands before each GOP that decodes alone
//   PacketDecoder::Decoded frames;
//   while (next_packet(data, size))
//     if (decoder.add(data, size) && decoder.decode(DecoderParams{}, frames)) show(frames.info, frames.gop);
//
// A packet is a box "Gop " of FORMAT.md and the boxes behind it up to the next one. An open GOP depends on the one
// before it, which is kept (those since the last closed one where keys are predicted), so that each GOP is decoded
// once while packets follow each other. Decoding restarts after a jump, after a gap, for another request and after
// damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "trivelet/codec.h"

namespace trivelet {

/// One thread at a time uses it.
class PacketDecoder {
 public:
  /// The frames of a packet; the next decode() reuses their memory.
  struct Decoded {
    VideoInfo info;  ///< after reduction
    Gop gop;
    std::uint64_t decoder = 0;  ///< number of the decoder that made `gop`
  };
  /// The result of decode() before it runs: sizes and capacity.
  struct Output {
    VideoInfo video;
    int gop_frames = 0;  ///< most frames of a packet
  };

  /// `check` throws for pictures that the caller cannot take, before memory for them is allocated. `backend` (null: the
  /// CPU) must outlive this object.
  explicit PacketDecoder(std::function<void(const VideoInfo&)> check = {}, const Backend* backend = nullptr);
  ~PacketDecoder();
  PacketDecoder(const PacketDecoder&) = delete;
  PacketDecoder& operator=(const PacketDecoder&) = delete;

  /// Sets the stream header: the bytes up to the first GOP. Not needed if packets repeat it. Bytes behind the last
  /// whole box are ignored, because some containers pad to an even size. A new header drops all packets. Throws
  /// BadStream or Unsupported unless it is the header of a video.
  void set_header(const void* data, std::size_t size);
  /// The contents of the header, without an index. This and all members below except clear() throw BadArgument without
  /// a header.
  const StreamInfo& stream() const;
  /// What decode() will deliver. Also throws BadArgument for requests that decode() refuses.
  Output output(const DecoderParams& params) const;

  /// After a jump: no earlier packet is needed.
  void clear();

  /// Parses the header of a packet without keeping it. Throws BadStream if it is damaged.
  PacketInfo look(const void* data, std::size_t size) const;
  /// Copies a packet. False if it delivers no frames: an index, or a GOP whose predecessor is missing. A stream header
  /// before the GOP is passed to set_header(). Without a header nothing is copied (false). True of what is no packet at
  /// all: decode() reports the damage.
  bool add(const void* data, std::size_t size);
  /// The number of frames of the last added packet; -1 if its header is damaged.
  int frames(const DecoderParams& params) const;

  /// Decodes the packet added last. False if it is damaged and delivers no frames, or was already decoded. `params`
  /// select layers, size, frame rate and region; a selection of frames or bytes throws BadArgument. Without
  /// keep_partial a damaged packet throws BadStream. Later packets can be decoded in any case.
  bool decode(const DecoderParams& params, Decoded& into);
  /// The same into `frames`, at least Output::gop_frames of them. Returns how many; 0 where the other form returns
  /// false.
  int decode(const DecoderParams& params, std::span<MutableFrameView> frames);

  /// Totals of all decoders so far, except `stages`.
  CodecStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
