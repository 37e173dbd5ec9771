// Tells which bytes of a stream a decoder will read, for callers that fetch them by their own means: over a network,
// from an archive, or from an object store.
//
//   ReadPlan plan(bytes_of_stream, DecoderParams{.reduce = 2});
//   for (std::vector<ByteRange> wanted = plan.next(); !wanted.empty(); wanted = plan.next())
//     for (const ByteRange& range : wanted) plan.give(range.offset, fetch(range).data(), range.size);
//   Decoder decoder(plan.source(), DecoderParams{.reduce = 2});        // reads nothing else
//
// A ReadPlan reads nothing itself; each request follows from the bytes given so far. A stream with an index needs three
// rounds: beginning and end; headers of GOPs; chunks. A region needs two more rounds, because the headers of chunks
// come before their parts. With a front table (volumes of at least 2^20 bytes), which copies the headers of GOPs and,
// unless there are many, of chunks, two rounds are enough, also for a region. Without an index the whole stream is
// requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trivelet/codec.h"
#include "trivelet/volume.h"

namespace trivelet {

struct ByteRange {
  std::uint64_t offset = 0;  ///< from the first byte of the stream
  std::uint64_t size = 0;
  bool operator==(const ByteRange&) const = default;
};

/// One thread at a time uses it.
class ReadPlan {
 public:
  /// For a Decoder or a VolumeDecoder with these parameters.
  ReadPlan(std::uint64_t stream_bytes, const DecoderParams& request);
  ReadPlan(std::uint64_t stream_bytes, const VolumeDecoderParams& request);
  /// For the header and index alone: what probe() or a Decoder's constructor reads.
  explicit ReadPlan(std::uint64_t stream_bytes);
  ~ReadPlan();
  ReadPlan(const ReadPlan&) = delete;
  ReadPlan& operator=(const ReadPlan&) = delete;

  /// The bytes to give next, ascending and disjoint; empty when the decoder can run. Throws what the decoder would:
  /// BadArgument for requests that the stream cannot answer, and BadStream for damage unless keep_partial.
  std::vector<ByteRange> next();
  /// All ranges that next() has requested.
  std::vector<ByteRange> ranges() const;
  /// Copies bytes of the stream; any bytes in any order. Throws BadArgument for bytes beyond its end.
  void give(std::uint64_t offset, const void* data, std::size_t size);
  /// The given bytes as a seekable source that lives as long as the plan; reading other bytes throws Io.
  ByteSource& source();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
