// VSTC, the variable-size transform coder for still pictures. VSTC.md is the format.
//
//   ThreadPool pool(0);
//   vstc::Params p;                       // QP 27, blocks of 32
//   p.qp = 32;
//   vstc::Encoded e = vstc::encode(image, p, pool);
//   still::Image decoded = vstc::decode(e.bytes, {}, pool);
//
// Bytes depend neither on threads nor on the instruction set nor on the number of processes of a Team. Errors are
// trivelet::Error; nothing here prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "codec/base/simd.h"
#include "codec/threads/parallel.h"
#include "trivelet/limits.h"
#include "trivelet/still.h"

namespace trivelet::vstc {

/// Processes that search together. All of them call encode() with the same picture and parameters; rank 0 gets the
/// stream. Calls are made from the calling thread only, in the same order on all members where they are collective.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The half this member belongs to: ranks below size() / 2, or the others. size() >= 2. Always the same object.
  virtual Team& half() = 0;
  /// Collective: the least value and, among equal ones, the lowest index.
  virtual std::pair<std::int64_t, int> minimum(std::int64_t value, int index) = 0;
  /// Collective: everybody gets the data of `root`.
  virtual void broadcast(std::vector<std::int16_t>& data, int root) = 0;
  /// To another member; returns at once. Messages between two members arrive in order.
  virtual void send(std::vector<std::int16_t> data, int to) = 0;
  virtual std::vector<std::int16_t> receive(int from) = 0;
};

/// How a Team shares the work.
enum class Sharing : std::uint8_t {
  kRows,        ///< every member takes rows of blocks in turn and waits for the block above and to the right
  kCandidates,  ///< modes and halvings of every block are spread over the members, the best is found by minimum()
};

/// How much is tried. Every level writes the same format.
enum class Effort : std::uint8_t {
  kFast,    ///< 2 modes get a full trial; blocks predicted without a residual are not halved
  kMedium,  ///< 4 modes get a full trial
  kFull,    ///< all 35 modes get a full trial: the exhaustive search
};

/// What was done. Trials: transform, quantisation and rate of one residual block.
struct Statistics {
  std::uint64_t trials = 0;        ///< made
  std::uint64_t plain_trials = 0;  ///< a plain recursion would have made
  std::uint64_t predictions = 0;   ///< prediction blocks tried
  /// Decisions by context: luma, chroma; [context][bit]. For training.
  std::vector<std::uint32_t> decisions[2];
  void add(const Statistics& other);
};

struct Params {
  int qp = 27;         ///< 0..51
  int log2_block = 5;  ///< blocks of 16, 32 or 64
  Effort effort = Effort::kMedium;
  /// Best costs of residual blocks are kept (dynamic programming); false: computed whenever the recursion meets them.
  bool remember = true;
  bool optimise_levels = true;  ///< levels of the chosen blocks by rate and distortion; false: plain rounding
  Team* team = nullptr;
  Sharing sharing = Sharing::kRows;
  SimdLevel simd = SimdLevel::kBest;
};

struct Encoded {
  std::vector<std::byte> bytes;  ///< empty on other ranks than 0
  Statistics statistics;         ///< of this process
};

/// Throws BadArgument for pictures that are not grey, YUV 4:2:0, 4:4:4 or RGB of 8 to 12 bits, and parameters out of
/// range.
Encoded encode(const still::Image& image, const Params& params, ThreadPool& pool);

struct DecodeParams {
  Limits limits{};  ///< Unsupported for what would cost more
  SimdLevel simd = SimdLevel::kBest;
};
/// Throws BadStream for damaged streams, Unsupported for other codecs and larger pictures.
still::Image decode(std::span<const std::byte> bytes, const DecodeParams& params, ThreadPool& pool);

}  // namespace trivelet::vstc
