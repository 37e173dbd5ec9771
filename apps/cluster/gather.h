// GOPs of one stream that several processes decode in turn; the first process gets them in order. A turn is a run: a
// closed GOP and the open GOPs after it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/cluster/job_call.h"
#include "trivelet/codec.h"

namespace trivelet::cli {

/// The first frame of each run of frames `first` to `end`, and the end of the last run.
std::vector<std::uint64_t> run_borders(const std::vector<GopInfo>& gops, std::uint64_t first, std::uint64_t end);

/// Runs, and a decoder of every `turns`-th of them from number `turn` on.
struct RunDecoding {
  std::vector<std::uint64_t> borders;
  std::function<std::unique_ptr<Decoder>(std::uint64_t turn, std::uint64_t turns)> make;
};

/// The combined results of all decoders.
struct Gathered {
  std::uint64_t damaged_gops = 0;
  std::vector<std::string> damage;
  std::vector<std::uint64_t> gops;  ///< that each delivered
};

/// The first process, which takes its turns, too. Used by one thread.
class Gathering {
 public:
  /// `whole` covers all frames and does not decode; it must outlive this object.
  Gathering(Processes& processes, RunDecoding runs, const Decoder& whole);
  /// Stops all decoders that have not ended.
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;
  /// The next GOP, null at the end. Its memory is reused when no pointer to it is left. Throws the error of any
  /// process.
  std::shared_ptr<const Gop> next();
  /// At the end.
  const Gathered& found() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// In the other processes: decodes until the end, or until the first one stops. Reports errors, those of `prepare` too,
/// to the first one.
void decode_for_others(Processes& processes, const std::function<RunDecoding()>& prepare);

}  // namespace trivelet::cli
