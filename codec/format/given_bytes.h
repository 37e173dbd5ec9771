// A stream of which only some ranges are known (trivelet/plan.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "trivelet/error.h"
#include "trivelet/plan.h"
#include "trivelet/streams.h"

namespace trivelet {

/// Thrown by GivenBytes: the first bytes that a read needs and that are not known.
class NotGiven final : public Error {
 public:
  explicit NotGiven(const ByteRange& range)
      : Error(ErrorKind::kIo, "bytes " + std::to_string(range.offset) + " to " +
                                  std::to_string(range.offset + range.size) +
                                  " of the stream were not given; ReadPlan::next tells what is needed"),
        range_(range) {}
  const ByteRange& range() const { return range_; }

 private:
  ByteRange range_;
};

/// A set of ranges, ordered and joined.
class RangeSet {
 public:
  void add(std::uint64_t offset, std::uint64_t size);
  /// The parts of the range that are not in the set.
  std::vector<ByteRange> missing(const ByteRange& range) const;
  std::vector<ByteRange> all() const;

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  ///< by the beginning; disjoint, not touching
};

class GivenBytes final : public ByteSource {
 public:
  explicit GivenBytes(std::uint64_t size) : size_(size) {}
  void give(std::uint64_t offset, const void* data, std::size_t size);
  bool has(const ByteRange& range) const { return known_.missing(range).empty(); }
  /// The number of bytes known from `offset` on without a gap.
  std::uint64_t known_from(std::uint64_t offset) const;
  /// The unknown parts of these ranges, ascending and disjoint.
  std::vector<ByteRange> missing(const RangeSet& wanted) const;

  std::size_t read(void* data, std::size_t size) override;
  bool seekable() const override { return true; }
  void seek(std::uint64_t position) override;
  std::uint64_t size() const override { return size_; }

 private:
  std::uint64_t size_;
  std::uint64_t position_ = 0;
  RangeSet known_;
  std::map<std::uint64_t, std::vector<std::byte>> pieces_;  ///< by their offset, disjoint
};

}  // namespace trivelet
