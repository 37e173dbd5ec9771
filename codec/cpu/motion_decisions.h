// What a backend that codes on a device leaves to the host where streams have motion, and a target or no room for
// searches ahead (BackendOptions::lookahead): the search, the choice of the GOPs that move, and the errors that a
// decoder makes of them. The backend on the CPU does it for itself.
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
  /// The motion that a GOP is coded along; null: none. GOPs come in their order. `again`: the one before once more, as
  /// GopEncoder::push_again() has it.
  virtual std::shared_ptr<const GopMotion> decide(const Gop& gop, const GopChoices& choices, bool again) = 0;
  /// GopEncoder::squared_error() of the GOP decided last.
  virtual double squared_error(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) = 0;
};

/// Of the scalar code or its equals: what the CPU would decide. `searcher`, if there is one, finds vectors instead, and
/// is used as long as the decisions are.
std::unique_ptr<MotionDecisions> make_motion_decisions(const StreamHeader& header, const BackendOptions& options,
                                                       MotionSearcher* searcher);

}  // namespace trivelet
