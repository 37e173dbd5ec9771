// Decodes the code blocks of a GOP's components, in parallel: to fields, or to what is not zero.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codec/backend.h"
#include "codec/cpu/cpu_fields.h"
#include "codec/cpu/patch_store.h"
#include "codec/threads/parallel.h"
#include "codec/threads/stage_timer.h"
#include "codec/transform/quantiser.h"
#include "codec/transform/zero_patches.h"

namespace trivelet {

class BlockDecoder;
class DenseDecoder;

/// T is float in lossy streams and std::int32_t in lossless ones. Calls come one after the other; each uses the pool.
class GopBlockDecoder {
 public:
  /// `header` and `pool` must outlive this object.
  GopBlockDecoder(const StreamHeader& header, ThreadPool& pool, SimdLevel simd);
  ~GopBlockDecoder();

  /// Where damaged blocks are told. They are then zero. Null: they end decoding with Error(kBadStream).
  void set_damage(std::vector<std::string>* damage) { damage_ = damage; }
  /// Codewords may read as many bits past their ends as the stream itself has, and a little more. This adds those of a
  /// GOP, and so bounds the work that a damaged stream can cause.
  void allow(const LayeredGop& in);
  /// Decodes the components from `first` on, one for each field. With `zeros`, patches that are zero are not written
  /// but noted there, component by component.
  template <class T>
  void decode(const LayeredGop& in, const Reduced& r, int first, const std::vector<Field<T>>& fields,
              std::vector<ZeroPatches>* zeros);
  /// Memory for what is not zero of a component.
  template <class T>
  PatchStore<T> patches_of(const LayeredGop& in, const Reduced& r, int c) const {
    return {*in.components[static_cast<std::size_t>(c)].grid,
            {r.shape(c), r.decomposition(c), header_.lossless},
            header_.profile == Profile::kFast,
            simd_};
  }
  /// Decodes component c to it.
  template <class T>
  void decode(const LayeredGop& in, int c, PatchStore<T>& patches);

  template <class Component>
  static std::int64_t coded_bytes(const Component& component) {
    std::int64_t bytes = 0;
    for (const auto& block : component.blocks)
      for (const LayeredSegment& s : block)
        for (const LayerPart& part : s.parts) bytes += part.size;
    return bytes;
  }
  const StageTime& time() const { return time_; }

 private:
  struct Task {
    int component, by, bx;
  };
  StepTable steps_of(const LayeredGop& in, int c) const;
  template <class F>
  bool is_intact(const LayeredGop& in, const Task& task, const F& decode);
  template <class T>
  bool pack_block(const LayeredGop& in, const Task& task, int worker, const StepTable& steps, PatchStore<T>& patches);
  template <class T>
  void decode_block(const LayeredGop& in, const Task& task, int worker, const SubbandTable& target,
                    const StepTable& steps, const BlockMemory<T>& memory, ZeroPatches* left_out);

  const StreamHeader& header_;
  ThreadPool& pool_;
  SimdLevel simd_;
  std::vector<std::unique_ptr<BlockDecoder>> fast_;   // of each worker, in streams of the fast profile
  std::vector<std::unique_ptr<DenseDecoder>> dense_;  // of each worker, in those of the dense profile
  std::atomic<std::int64_t> allowance_{8 * 4096};     // bits
  std::mutex damage_mutex_;
  std::vector<std::string>* damage_ = nullptr;
  StageTime time_;
};

}  // namespace trivelet
