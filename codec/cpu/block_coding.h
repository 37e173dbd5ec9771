// Codes the blocks of a GOP on the CPU, all blocks of some components in parallel, each thread with a coder of its own.
#pragma once

#include <memory>
#include <vector>

#include "codec/cpu/cpu_context.h"
#include "codec/entropy/dense/dense.h"
#include "codec/entropy/fast/zerotree.h"
#include "codec/threads/stage_timer.h"

namespace trivelet {

/// Used by one thread at a time. A GOP is begun, its components are coded in their order, and it is taken.
class BlockCoding {
 public:
  explicit BlockCoding(CpuContext& context);

  /// Begins a GOP. `choices` stays valid until its last component is coded.
  void begin(int frames, const std::vector<std::uint8_t>& frame_gains, const std::shared_ptr<const GopMotion>& motion,
             const GopChoices& choices);
  /// Codes the components from `first` on, one for each field of coefficients. T: float, std::int32_t if lossless.
  template <class T>
  void code(int first, const std::vector<Field<T>>& fields);
  CodedGop take();

  const StageTime& time() const { return time_; }

 private:
  template <class T>
  void code_block(std::size_t c, int by, int bx, const Field<T>& field, int worker);

  CpuContext& context_;
  std::vector<std::unique_ptr<BlockEncoder>> fast_;   // by thread; one of the two is empty
  std::vector<std::unique_ptr<DenseEncoder>> dense_;  // by thread
  const GopChoices* choices_ = nullptr;               // for the current GOP
  std::vector<StepTable> steps_;                      // by component
  std::vector<ErrorWeights> weights_;                 // by component, if there are pass tables
  CodedGop coded_;
  StageTime time_;
};

}  // namespace trivelet
