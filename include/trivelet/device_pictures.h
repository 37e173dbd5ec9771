// Pictures that a video decoder leaves in the memory of a GPU, on their way into a Gop.
//
// A reader of films (io) decodes on the device, and knows nothing of CUDA but addresses; what copies there is the GPU's
// part of the library, DevicePictures of trivelet/cuda.h. Between them stands this interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace trivelet {

class Gop;

/// Samples of one component in the memory of a device, among those of others perhaps.
struct DevicePlane {
  const void* data = nullptr;
  std::ptrdiff_t pitch = 0;  ///< bytes from row to row
  int width = 0;             ///< samples in a row
  int height = 0;            ///< rows
  int step = 1;              ///< samples from one to the next in a row; 2 where two components take turns
};

struct DevicePicture {
  void* context = nullptr;            ///< the decoder's (CUcontext); null: the CUDA runtime's
  std::array<DevicePlane, 4> planes;  ///< in the order of a Gop's components
  int components = 0;
  int bytes_per_sample = 1;  ///< 1 or 2
  int shift = 0;             ///< samples of two bytes stand so many bits too high
};

/// Takes pictures off a decoder, which has room for few, and keeps them on the device until they are wanted. Members
/// may be called by several threads but for read() and wait(), which are one thread's.
class DevicePictures {
 public:
  virtual ~DevicePictures() = default;
  /// The number of the device that all pictures are on.
  virtual int device() const = 0;
  /// Copies a picture, behind what was given to the default stream of its context before; it may be overwritten when
  /// this returns.
  /// Throws Unsupported when the device has no memory left.
  virtual std::shared_ptr<const void> keep(const DevicePicture& picture) = 0;
  /// Whether as much is kept as should be: who may wait before keep() had better.
  virtual bool is_full() const = 0;
  /// Begins to copy what keep() gave to frame `index` of `gop`, whose planes have its size.
  virtual void read(const std::shared_ptr<const void>& kept, Gop& gop, int index) = 0;
  /// Returns when all that read() began is there.
  virtual void wait() = 0;
};

}  // namespace trivelet
