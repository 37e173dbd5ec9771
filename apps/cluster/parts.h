// Divides work on one stream into as many parts of consecutive frames as there are processes. The first process gets
// the results in order of the parts, whichever ends first.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "apps/cluster/job_call.h"
#include "trivelet/stream_info.h"

namespace trivelet::cli {

/// The communication of a part while it is worked on.
class Pace {
 public:
  virtual ~Pace() = default;
  /// This many frames are done. Throws Stopped when another process has failed.
  virtual void done(std::uint64_t frames) = 0;
  /// The sum of `count` over the parts before this one. All parts call it, or none.
  virtual std::uint64_t sum_before(std::uint64_t count) = 0;
};

/// Does a part and returns its result as bytes.
using PartWork = std::function<std::vector<std::uint8_t>(Pace& pace)>;

/// In the first process. `frames` is called with the number of frames done in all parts. Throws the error of any
/// process when all have stopped.
std::vector<std::vector<std::uint8_t>> do_parts(Processes& processes, const PartWork& own,
                                                const std::function<void(std::uint64_t)>& frames);
/// In the others.
void do_part(Processes& processes, const PartWork& work);

/// The first frame of each part of frames `first` to `end`, and the end of the last part. Parts begin with closed GOPs
/// and are as even as that allows; some may be empty.
std::vector<std::uint64_t> part_borders(const std::vector<GopInfo>& gops, std::uint64_t first, std::uint64_t end,
                                        int parts);

}  // namespace trivelet::cli
