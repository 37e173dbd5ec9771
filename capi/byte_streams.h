// Where a handle's bytes go to and come from, as tvl_sink and tvl_source say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "capi/handle.h"
#include "trivelet/streams.h"
#include "trivelet/volume.h"

namespace trivelet::capi {

tvl_sink default_sink();
tvl_source default_source();
tvl_packet to_packet(const PacketInfo& packet);
/// From one time to a later one, as far as the type reaches.
inline std::int64_t ticks_between(std::int64_t from, std::int64_t to) {
  const auto ticks = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
  return static_cast<std::int64_t>(std::min<std::uint64_t>(ticks, INT64_MAX));
}

/// A sink that can be cancelled and is finished by commit().
class Output : public ByteSink {
 public:
  /// What was written can be read again and patched; null where it cannot.
  virtual std::unique_ptr<ReadBack> read_back() { return nullptr; }
  /// Throws BufferTooSmall when the caller's memory did not hold all.
  virtual void commit() {}
  /// Bytes written.
  virtual std::uint64_t size() const = 0;
};

/// `kept`: where the stream goes when the sink says nothing; emptied first. `sink` may be null.
std::unique_ptr<Output> open_output(const Handle& handle, const tvl_sink* sink, std::vector<std::byte>& kept);
std::unique_ptr<Output> open_output(const Handle& handle, void* data, std::uint64_t capacity);

std::unique_ptr<ByteSource> open_source(const Handle& handle, const tvl_source* source);

}  // namespace trivelet::capi
