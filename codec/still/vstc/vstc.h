// VSTC, the variable-size transform coder for still pictures. VSTC.md is the format.
//
//   ThreadPool pool(0);
//   vstc::Params p;                       // QP 27, blocks of 32
//   p.qp = 32;
//   vstc::Encoded e = vstc::encode(image, p, pool);
//   still::Image decoded = vstc::decode(e.bytes, {}, pool);
//
// The bytes do not depend on threads, on the instruction set, or on the number of processes of a Team. Errors are
// trivelet::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "codec/base/simd.h"
#include "codec/threads/parallel.h"
#include "trivelet/limits.h"
#include "trivelet/still.h"

namespace trivelet::vstc {

/// Processes that search together. All of them call encode() with the same picture and parameters; rank 0 returns the
/// stream. Calls come from the calling thread only. Collective ones come in the same order on all members.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The half that this member belongs to: ranks below size() / 2, or the others. Needs size() >= 2. Always the same
  /// object.
  virtual Team& half() = 0;
  /// Collective: returns the least value; among equal ones that with the lowest index.
  virtual std::pair<std::int64_t, int> minimum(std::int64_t value, int index) = 0;
  /// Collective: copies the data of `root` to all members.
  virtual void broadcast(std::vector<std::int16_t>& data, int root) = 0;
  /// Sends to another member without waiting. Messages between two members keep their order.
  virtual void send(std::vector<std::int16_t> data, int to) = 0;
  virtual std::vector<std::int16_t> receive(int from) = 0;
};

/// How a Team divides the work.
enum class Sharing : std::uint8_t {
  kRows,        ///< rows of blocks by turns; a row waits for the block above and to the right
  kCandidates,  ///< modes and splits of every block; minimum() finds the best
  kModes,       ///< modes alone, one after the other to each member: the division of the work of 2015
};

/// How much the search tries. The format is the same.
enum class Effort : std::uint8_t {
  kFast,    ///< full trials of 2 modes; blocks predicted without a residual are not split
  kMedium,  ///< full trials of 4 modes
  kFull,    ///< full trials of all 35 modes: the exhaustive search. Where kMedium's result is better, it is kept
};

/// Counts of the search. A trial is the transform, quantisation and rate of one residual block.
struct Statistics {
  std::uint64_t trials = 0;        ///< trials made
  std::uint64_t plain_trials = 0;  ///< trials that a recursion without memory would have made
  std::uint64_t predictions = 0;   ///< prediction blocks tried
  /// Decisions by context, for luma and chroma; [context][bit]. For training.
  std::vector<std::uint32_t> decisions[2];
  void add(const Statistics& other);
};

struct Params {
  int qp = 27;         ///< 0..51
  int log2_block = 5;  ///< blocks of 16, 32 or 64
  Effort effort = Effort::kMedium;
  /// Keep the best costs of residual blocks (dynamic programming); false: compute them whenever the recursion needs
  /// them.
  bool remember = true;
  bool optimise_levels = true;  ///< rate-distortion optimised levels in chosen blocks; false: plain rounding
  Team* team = nullptr;
  Sharing sharing = Sharing::kRows;
  SimdLevel simd = SimdLevel::kBest;
  /// Called after each block that was searched, from any thread: searched_blocks() times, in a team fewer.
  std::function<void()> block_searched{};
};

/// The number of blocks that encode() searches; kFull searches each twice.
std::uint64_t searched_blocks(const still::Image& image, const Params& params);

struct Encoded {
  std::vector<std::byte> bytes;  ///< empty on ranks other than 0
  Statistics statistics;         ///< of this process
};

/// Throws BadArgument unless the picture is grey, YUV 4:2:0, 4:4:4 or RGB of 8 to 12 bits, and for parameters out of
/// range.
Encoded encode(const still::Image& image, const Params& params, ThreadPool& pool);

struct DecodeParams {
  Limits limits{};  ///< exceeding them throws Unsupported
  SimdLevel simd = SimdLevel::kBest;
};
/// Throws BadStream for damaged streams, Unsupported for other codecs and larger pictures.
still::Image decode(std::span<const std::byte> bytes, const DecodeParams& params, ThreadPool& pool);

}  // namespace trivelet::vstc
