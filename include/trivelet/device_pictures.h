// The interface between a video reader that decodes on a GPU and the GPU code that copies its pictures into a Gop. The
// reader (io) knows device addresses but not CUDA; gpu::device_pictures() in trivelet/cuda.h implements the copies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace trivelet {

class Gop;

/// Samples of one component in device memory, possibly interleaved with others.
struct DevicePlane {
  const void* data = nullptr;
  std::ptrdiff_t pitch = 0;  ///< bytes from row to row
  int width = 0;             ///< samples in a row
  int height = 0;            ///< rows
  int step = 1;              ///< distance of samples in a row; 2 where two components are interleaved
};

struct DevicePicture {
  void* context = nullptr;            ///< the decoder's CUcontext; null: that of the CUDA runtime
  std::array<DevicePlane, 4> planes;  ///< in the order of a Gop's components
  int components = 0;
  int bytes_per_sample = 1;  ///< 1 or 2
  int shift = 0;             ///< left shift of two-byte samples, in bits
};

/// Keeps decoded pictures on the device until they are needed, so that the decoder can reuse its few buffers. One
/// thread calls read() and wait(); any thread calls the others.
class DevicePictures {
 public:
  virtual ~DevicePictures() = default;
  /// The device of all pictures.
  virtual int device() const = 0;
  /// Copies a picture, ordered after earlier work in the default stream of its context. The picture may be overwritten
  /// after the return.
  /// Throws Unsupported when the device has no memory left.
  virtual std::shared_ptr<const void> keep(const DevicePicture& picture) = 0;
  /// Whether the buffer is full; a caller that can wait should do so before keep().
  virtual bool is_full() const = 0;
  /// Begins to copy a kept picture to frame `index` of `gop`, whose planes have its size.
  virtual void read(const std::shared_ptr<const void>& kept, Gop& gop, int index) = 0;
  /// Waits for the copies that read() began.
  virtual void wait() = 0;
};

}  // namespace trivelet
