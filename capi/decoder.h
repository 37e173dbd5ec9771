// What a tvl_decoder holds.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "capi/byte_streams.h"
#include "capi/device_memory.h"
#include "capi/handle.h"
#include "capi/metadata.h"
#include "trivelet/codec.h"
#include "trivelet/cuda.h"
#include "trivelet/kept_decoders.h"
#include "trivelet/packet_decoder.h"
#include "trivelet/volume.h"

struct tvl_decoder : trivelet::capi::Handle {
  std::unique_ptr<trivelet::ByteSource> source;
  std::shared_ptr<const trivelet::Backend> backend;
  trivelet::VideoInfo output;             ///< of the frames that are delivered
  trivelet::PictureRegion region;         ///< of the pictures that the decoder gives; width 0: all
  trivelet::PacketDecoder::Decoded held;  ///< decoded frames; those from next_held on are not delivered yet
  int next_held = 0;
  std::size_t damage_said = 0;
  std::unique_ptr<trivelet::Decoder> decoder;  ///< one of these, which use source and backend
  std::unique_ptr<trivelet::VolumeDecoder> volume;
  std::unique_ptr<trivelet::PacketDecoder> packets;
  trivelet::DecoderParams packet_params;              ///< of `packets`, as is the next one
  int packet_frames = 0;                              ///< that one gives at most
  std::unique_ptr<trivelet::gpu::VolumeBatch> batch;  ///< of tvl_decode_volumes into memory of a GPU, for the next time
  std::pair<int, std::uint64_t> batch_for{};          ///< its GPU and how much of its memory
  std::shared_ptr<const trivelet::Backend>
      batch_backend;  ///< of tvl_decode_volumes by a GPU into host memory, for the next time
  std::pair<int, std::uint64_t> batch_backend_for{};
  trivelet::capi::Stagings stagings;         ///< of batches
  trivelet::capi::GivenMetadata metadata{};  ///< of the stream, once it was asked for

  const trivelet::StreamInfo& stream() const {
    return volume ? volume->stream() : packets ? packets->stream() : decoder->info();
  }
  bool is_open() const { return decoder || volume || packets; }
  bool gives_frames() const { return decoder || packets; }
  void close() {
    decoder.reset();
    volume.reset();
    packets.reset();
    held = {};
    next_held = 0;
    damage_said = 0;
    backend.reset();
    source.reset();
  }
  ~tvl_decoder() { close(); }
};
