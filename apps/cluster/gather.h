// GOPs of one stream that several processes decode in turns, in their order in the first one. A turn is a run: a GOP
// that leans on none before it, and those behind that do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/cluster/job_call.h"
#include "trivelet/codec.h"

namespace trivelet::cli {

/// Where the runs of frames `first` to `end` begin, and where the last one ends.
std::vector<std::uint64_t> run_borders(const std::vector<GopInfo>& gops, std::uint64_t first, std::uint64_t end);

/// Runs, and what decodes every `turns`-th of them from number `turn` on.
struct RunDecoding {
  std::vector<std::uint64_t> borders;
  std::function<std::unique_ptr<Decoder>(std::uint64_t turn, std::uint64_t turns)> make;
};

/// What all decoders found out together.
struct Gathered {
  std::uint64_t damaged_gops = 0;
  std::vector<std::string> damage;
  std::vector<std::uint64_t> gops;  ///< that each delivered
};

/// In the first process, which takes its turns, too. One thread uses it.
class Gathering {
 public:
  /// `whole`: of all frames, which is not used to decode; it outlives this.
  Gathering(Processes& processes, RunDecoding runs, const Decoder& whole);
  /// Stops all, if they have not ended.
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;
  /// The next GOP, given back when nobody points to it any more; null at the end. Throws what went wrong in any of
  /// them.
  std::shared_ptr<const Gop> next();
  /// At the end.
  const Gathered& found() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// In the others: decodes until there is no more, or the first one stops. What goes wrong, in `prepare` too, is told to
/// the first one.
void decode_for_others(Processes& processes, const std::function<RunDecoding()>& prepare);

}  // namespace trivelet::cli
