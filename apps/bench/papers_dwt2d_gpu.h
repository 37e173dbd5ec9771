// The 2D 9/7 transform on a GPU by the methods of "2D-DWT from multicore to GPU" (Galiano, Lopez, Malumbres, Migallon
// 2011), and the codec's own lifting. For comparison only. Coefficients are those of apps/bench/papers_dwt2d.h.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace trivelet::gpu {

class Stream;  // gpu/device/device.h

enum class Dwt2dMethod {
  kConv,  ///< CUDA-Conv: a row or column per block, in a buffer in shared memory; the result in place
  kMem,   ///< CUDA-Mem: straight from global memory into a second picture
  kText,  ///< CUDA-Text: the same through textures
  kSep,   ///< CUDA-Sep: blocks of rows and of columns in shared memory, into a second picture
  kOwn,   ///< the codec's lifting: both axes in one kernel (gpu/transform/dwt.h)
};
const char* name_of(Dwt2dMethod method);

/// Samples of a block of CUDA-Sep along its axis.
struct Dwt2dBlocks {
  int row = 256;
  int column = 64;
};
/// The paper has rows of 16 and 32, columns of 4, 8 and 16.
inline constexpr int kRowBlocks[] = {16, 32, 64, 128, 256, 512, 1024};
inline constexpr int kColumnBlocks[] = {4, 8, 16, 32, 64, 128, 256};

/// A picture on the device.
class Dwt2d {
 public:
  /// Throws BadArgument for sides that 2^levels does not divide and for block sizes not in the lists above, Unsupported
  /// when the device has too little memory, or shared memory for a line of CUDA-Conv.
  Dwt2d(Dwt2dMethod method, int width, int height, int levels, const Dwt2dBlocks& blocks = {});
  ~Dwt2d();
  Dwt2d(Dwt2d&&) noexcept;

  /// Memory taken on the device.
  std::size_t device_bytes() const;
  /// From and to width x height values on the host; work given to the stream.
  void upload(const float* picture, const Stream& stream);
  void download(float* coefficients, const Stream& stream) const;
  /// Transforms the current picture. A second call transforms the coefficients (kOwn: the picture again).
  void run(const Stream& stream);
  /// The coefficients in the layout and scale of papers_dwt2d::transform; waits for the stream.
  std::vector<float> result(const Stream& stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Makes GPU `device` the one that objects of this thread live on.
void use_device(int device);

struct Dwt2dFigure {
  Dwt2dMethod method;
  Dwt2dBlocks blocks;
  double milliseconds = 0;    ///< the kernels, median
  double with_transfers = 0;  ///< floats up from and down to page-locked memory, one after the other
  std::size_t device_bytes = 0;
};
/// Times one method and checks its result: throws Mismatch when a coefficient differs from `expected` by more than
/// 1e-5 of the range of the picture.
Dwt2dFigure bench_dwt2d(Dwt2dMethod method, const std::vector<float>& picture, const std::vector<float>& expected,
                        int width, int height, int levels, const Dwt2dBlocks& blocks = {});

}  // namespace trivelet::gpu
