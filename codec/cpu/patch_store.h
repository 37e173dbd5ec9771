// The coefficients of a component between its code blocks, which are decoded in any order, and the inverse spatial
// transform, which takes frame by frame. Patches that are zero take no memory, and a frame's memory is freed when it is
// taken: of a film at a usual rate a small part of all coefficients is there, and never more than all of them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "codec/transform/tree.h"
#include "codec/transform/zero_patches.h"

namespace trivelet {

/// T: float or std::int32_t.
template <class T>
class PatchStore {
 public:
  /// For a component whose blocks are decoded to `target`, as of BlockDecoder::decode (t+2D).
  PatchStore(const BlockGrid& grid, const SubbandTable& target);

  const SubbandTable& target() const { return target_; }
  /// Marks patches that a decoder leaves out, for add().
  ZeroPatches& zeros() { return zeros_; }
  /// Copies block (by, bx) from its own memory (BlockMemory::is_separate). Threads may add different blocks at once.
  void add(int by, int bx, const BlockMemory<T>& memory);
  /// Writes a frame to the one frame of `field`, without the patches that the result has, and frees it. Threads may
  /// take different frames at once.
  ZeroPatches take(int frame, const Field<T>& field);

 private:
  struct Frame {
    std::mutex mutex;
    std::vector<std::unique_ptr<T[]>> chunks;
    T* next = nullptr;
    std::size_t left = 0;     // values behind `next`
    std::vector<T*> patches;  // [subband of the frame][block row][block column]; null: zero
    T* allocate(std::size_t values);
  };
  std::size_t patch(const Subband& band, int by, int bx) const;

  const BlockGrid& grid_;
  const SubbandTable target_;
  ZeroPatches zeros_;
  std::vector<Frame> frames_;
};

}  // namespace trivelet
