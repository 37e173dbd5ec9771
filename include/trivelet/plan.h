// Which bytes of a stream a decoder is going to read, for those who fetch them in their own way: over a network, from
// an archive, from a store of objects.
//
//   ReadPlan plan(bytes_of_stream, DecoderParams{.reduce = 2});
//   for (std::vector<ByteRange> wanted = plan.next(); !wanted.empty(); wanted = plan.next())
//     for (const ByteRange& range : wanted) plan.give(range.offset, fetch(range).data(), range.size);
//   Decoder decoder(plan.source(), DecoderParams{.reduce = 2});        // reads nothing else
//
// Nothing is read here: what is asked for depends on what was given alone. A stream with an index needs three rounds,
// two more for a region: beginning and end; heads of the GOPs; chunks, or their heads and then the parts that the
// region needs. With a front table (volumes of 2^20 bytes and more) there are two, of a region, too, for it has the
// heads of GOPs and, unless they are many, of chunks. Where the index is lost, all of the stream is asked for.
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

/// Used by one thread at a time.
class ReadPlan {
 public:
  /// For Decoder, or VolumeDecoder, with the same parameters.
  ReadPlan(std::uint64_t stream_bytes, const DecoderParams& request);
  ReadPlan(std::uint64_t stream_bytes, const VolumeDecoderParams& request);
  /// For header and index alone: what probe(), or the constructor of Decoder, reads.
  explicit ReadPlan(std::uint64_t stream_bytes);
  ~ReadPlan();
  ReadPlan(const ReadPlan&) = delete;
  ReadPlan& operator=(const ReadPlan&) = delete;

  /// What has to be given next: ascending, apart from each other. Nothing when all is there. Throws what the decoder
  /// would: BadArgument for a request that the stream cannot answer, BadStream, unless keep_partial, for damage.
  std::vector<ByteRange> next();
  /// All ranges that next() asked for.
  std::vector<ByteRange> ranges() const;
  /// Bytes of the stream, which are copied; any, in any order. BadArgument for bytes beyond its end.
  void give(std::uint64_t offset, const void* data, std::size_t size);
  /// What was given, as a stream that can seek; reading anything else throws Io. Lives as long as the plan.
  ByteSource& source();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
