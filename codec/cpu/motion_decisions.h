// Decisions on motion that a GPU backend leaves to the host: the motion search, which GOPs have motion, and the errors
// after decoding. A backend needs them for streams with motion that have a target, or where memory does not allow
// BackendOptions::lookahead. The CPU backend makes these decisions itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/backend.h"
#include "codec/motion/motion_search.h"

namespace trivelet {

class MotionDecisions {
 public:
  virtual ~MotionDecisions() = default;
  /// The motion of a GOP; null: none. GOPs come in order. `again`: the GOP of the last call once more, as in
  /// GopEncoder::push_again().
  virtual std::shared_ptr<const GopMotion> decide(const Gop& gop, const GopChoices& choices, bool again) = 0;
  /// GopEncoder::squared_error() of the GOP that was decided last.
  virtual double squared_error(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) = 0;
};

/// The decisions of the CPU backend. `searcher`, if not null, finds the vectors instead; it must outlive the decisions.
std::unique_ptr<MotionDecisions> make_motion_decisions(const StreamHeader& header, const BackendOptions& options,
                                                       MotionSearcher* searcher);

}  // namespace trivelet
