// Work on one stream in as many parts as there are processes, each of frames that follow one another, and what comes of
// all of them in the first one: in their order, whoever ends first.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "apps/cluster/job_call.h"
#include "trivelet/stream_info.h"

namespace trivelet::cli {

/// What a part has to do with the others while it is worked on.
class Pace {
 public:
  virtual ~Pace() = default;
  /// So many frames are done. Throws Stopped when another process has failed.
  virtual void done(std::uint64_t frames) = 0;
  /// The sum of `count` over the parts before this one; all parts ask for it, or none.
  virtual std::uint64_t sum_before(std::uint64_t count) = 0;
};

/// Gives what was found, as bytes.
using PartWork = std::function<std::vector<std::uint8_t>(Pace& pace)>;

/// In the first process. `frames`: told how many are done in all. Throws what went wrong in any of them, when all have
/// stopped.
std::vector<std::vector<std::uint8_t>> do_parts(Processes& processes, const PartWork& own,
                                                const std::function<void(std::uint64_t)>& frames);
/// In the others.
void do_part(Processes& processes, const PartWork& work);

/// Where the parts of frames `first` to `end` begin, and where the last one ends: of a stream with GOPs that lean on
/// none before, as even as that allows; some may be empty.
std::vector<std::uint64_t> part_borders(const std::vector<GopInfo>& gops, std::uint64_t first, std::uint64_t end,
                                        int parts);

}  // namespace trivelet::cli
