// What a tvl_encoder holds.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/byte_streams.h"
#include "capi/device_memory.h"
#include "capi/handle.h"
#include "trivelet/codec.h"
#include "trivelet/cuda.h"

struct tvl_encoder : trivelet::capi::Handle {
  trivelet::VideoInfo info;
  std::shared_ptr<const trivelet::Backend> backend;
  std::unique_ptr<trivelet::capi::Output> output;
  std::vector<std::byte> kept;  ///< the stream, when the caller gave no sink
  bool has_stream = false;      ///< and it is finished
  tvl_encode_stats done{sizeof(tvl_encode_stats), 0, 0, 0};
  std::optional<trivelet::Gop> waiting;                     ///< frames that do not fill a GOP yet
  std::unique_ptr<trivelet::Encoder> encoder;               ///< uses output and backend
  std::unique_ptr<trivelet::gpu::VolumeEncodeBatch> batch;  ///< of tvl_encode_volumes on a GPU, for the next time
  std::pair<int, std::uint64_t> batch_for{};                ///< its GPU and how much of its memory
  trivelet::capi::Stagings stagings;                        ///< of batches

  /// Lets an unfinished stream go.
  void close();
  /// Lets an unfinished stream go and forgets the stream that is kept.
  void reset() {
    close();
    kept.clear();
    has_stream = false;
    done = {sizeof done, 0, 0, 0};
  }
  ~tvl_encoder() { close(); }
};

namespace trivelet::capi {

template <class T>
T to_enum(std::int32_t value, std::int32_t last, const char* what) {
  require(value >= 0 && value <= last, ErrorKind::kBadArgument,
          std::string(what) + " is " + std::to_string(value) + "; there are 0.." + std::to_string(last));
  return static_cast<T>(value);
}

/// Bytes that no stream of `samples` in `gops` exceeds. A coefficient has 30 planes at most; a plane costs it
/// one decision, shared ones of the tree above it two thirds more, an adaptive model a tenth on top: 7 bytes. Headers
/// and ends of codewords of parts (of blocks of 32x32, 6 resolutions, 16 layers) take less than another, checks of them
/// half. The header of a GOP has up to 1296 chunks of 9 bytes and 128 frames of 23.
inline std::uint64_t stream_bound(std::uint64_t samples, std::uint64_t gops) {
  constexpr std::uint64_t kHead = std::uint64_t{1} << 14;
  const std::uint64_t bound = checked_mul(9, samples);
  const std::uint64_t heads = checked_mul(kHead, gops) + 4 * kHead;
  require(bound <= ~std::uint64_t{0} - heads, ErrorKind::kBadArgument, "a stream of more than 2^64 bytes");
  return bound + heads;
}

}  // namespace trivelet::capi
