// Decoding packet by packet, as players and demultiplexers have a stream: its header once, then one GOP after another,
// with jumps and losses between them.
//
//   PacketDecoder decoder;
//   decoder.set_header(private_data, size);            // or the header stands before each GOP that decodes alone
//   PacketDecoder::Decoded frames;
//   while (next_packet(data, size))
//     if (decoder.add(data, size) && decoder.decode(DecoderParams{}, frames)) show(frames.info, frames.gop);
//
// A packet is a box "Gop " of FORMAT.md and the boxes behind it up to the next one. An open GOP depends on the one
// before it, which is kept, so that each GOP is decoded once while packets follow each other. Decoding restarts after
// a jump, after a gap, for another request and after damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "trivelet/codec.h"

namespace trivelet {

/// Used by one thread at a time.
class PacketDecoder {
 public:
  /// The frames of a packet; their memory is used again for the next one.
  struct Decoded {
    VideoInfo info;  ///< of the frames, after reduction
    Gop gop;
    std::uint64_t decoder = 0;  ///< number of the decoder that made `gop`
  };
  /// What decode() gives.
  struct Output {
    VideoInfo video;
    int gop_frames = 0;  ///< frames of a packet at most
  };

  /// `check` throws for pictures that the caller cannot take; it is called before memory is taken for them. `backend`:
  /// null means the CPU; it must outlive this object.
  explicit PacketDecoder(std::function<void(const VideoInfo&)> check = {}, const Backend* backend = nullptr);
  ~PacketDecoder();
  PacketDecoder(const PacketDecoder&) = delete;
  PacketDecoder& operator=(const PacketDecoder&) = delete;

  /// The stream up to its first GOP. It is not needed where packets repeat it. Bytes
  /// behind the last whole box are ignored: some containers pad to an even size. A header other than the one before
  /// forgets all packets. Throws BadStream or Unsupported if it is none of a video.
  void set_header(const void* data, std::size_t size);
  /// What the header says; there is no index. Throws BadArgument without a header, as do all that follow but clear().
  const StreamInfo& stream() const;
  /// Throws BadArgument also for what decode() refuses.
  Output output(const DecoderParams& params) const;

  /// After a jump: no earlier packet is needed.
  void clear();

  /// What a packet is, by the header at its beginning; nothing is kept. Throws BadStream for a damaged one.
  PacketInfo look(const void* data, std::size_t size) const;
  /// Copies a packet. False if it gives no frames: the index, or a GOP that depends on a missing one. A header before
  /// the GOP is taken as by set_header().
  bool add(const void* data, std::size_t size);
  /// Frames that the packet added last gives; -1 if its header is damaged.
  int frames(const DecoderParams& params) const;

  /// Decodes the packet added last. False if it is damaged and gives no frames, or was decoded already. `params` select
  /// layers, size, frame rate and region, not frames or bytes of the stream (BadArgument). Without keep_partial a
  /// damaged packet throws BadStream. In any case the next packets can be decoded.
  bool decode(const DecoderParams& params, Decoded& into);
  /// Likewise into `frames`, of which there are Output::gop_frames. Returns how many; 0 where the other returns false.
  int decode(const DecoderParams& params, std::span<MutableFrameView> frames);

  /// Of all decoders so far; `stages` are not summed.
  CodecStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
