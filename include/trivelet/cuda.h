// The NVIDIA GPU backend and a list of the GPUs. Works only in builds with CUDA; no CUDA type appears here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trivelet {
struct Backend;  // for Encoder and Decoder (codec.h), which it must outlive
class Gop;
class DevicePictures;
class ByteSource;
class ByteSink;
class ReadBack;
struct VolumeDecoderParams;
struct VolumeDescription;
struct VolumeEncoderParams;
struct VolumeResult;
}  // namespace trivelet

namespace trivelet::gpu {

struct DeviceInfo {
  int number = 0;
  std::string name;
  std::size_t memory = 0;  ///< bytes
  int major = 0, minor = 0;
};

/// Whether this library was built with CUDA. Otherwise everything that needs a GPU throws Unsupported.
bool is_built();

/// Tells how many GOPs will be in flight at once, so that the driver creates as many hardware queues. Call it once,
/// before any other use of a GPU. The profile `fast` has 3 in flight; `dense`, and `fast` with Motion::kOn, up to 32.
/// With fewer queues GOPs share them, which costs `dense` little if the host is the bottleneck. On an H200, 4 queues
/// start in 0.1 s; 32 need 0.6 s, and 0.3 s at exit. Without a call there are 32, or CUDA_DEVICE_MAX_CONNECTIONS.
void expect_gops(int in_flight);

/// Usable devices; empty without a driver or without CUDA. Never throws.
std::vector<DeviceInfo> devices();

/// The system's numbers of the CPU cores nearest to device `number`; empty if unknown. Never throws.
std::vector<int> cores_near(int number);

/// A backend on device `number`, with at most `max_memory` bytes of its memory (0 = all). Making encoders and decoders
/// throws Unsupported for what the GPU cannot do (coefficients instead of samples) and if the memory does not hold one
/// GOP.
///
/// With `frames_stay`, decoded frames stay on the device: the planes of Decoder::make_gop() and Decoder::exchange() are
/// device addresses. The host cannot read them, so DecoderParams::verify_hash must be off, and the range of frames must
/// begin and end with GOPs.
std::shared_ptr<const Backend> cuda_backend(int number, std::size_t max_memory, bool frames_stay = false);

/// Page-locked memory, from which a GPU reads frames directly. It fits Gop's allocator. Memory from cudaHostAlloc or
/// registered with cudaHostRegister works as well. Throws Unsupported when none is left.
std::shared_ptr<std::byte> page_locked(std::size_t bytes);

/// Rows in host or device memory; `pitch` is the distance of rows in bytes and may be negative.
struct Rows {
  std::byte* data = nullptr;
  std::ptrdiff_t pitch = 0;
};
/// Copies `rows` rows of `row_bytes` bytes from the host to device `number`, ordered in `stream` (a cudaStream_t; null:
/// the default stream). The copy is complete after wait_for(); `from` must not change before.
void copy_to_device(int number, Rows to, Rows from, std::size_t row_bytes, std::size_t rows, void* stream);
/// The same from the device to the host.
void copy_from_device(int number, Rows to, Rows from, std::size_t row_bytes, std::size_t rows, void* stream);
/// Waits for all work given to `stream` of device `number`.
void wait_for(int number, void* stream);

/// Decodes volume streams directly into memory of device `number`: decoding, mapping to voxels and hash checks all
/// happen on the device. The tables and buffers for a kind of stream are kept for the next one until this object is
/// destroyed.
class VolumeBatch {
 public:
  /// `max_memory`: bytes of device memory for each of the streams decoded in parallel; 0 = what is free.
  VolumeBatch(int number, std::size_t max_memory);
  ~VolumeBatch();
  VolumeBatch(const VolumeBatch&) = delete;
  VolumeBatch& operator=(const VolumeBatch&) = delete;

  /// Decodes one stream of the batch to `voxels`, without gaps. `job` is the caller's number for it. Several threads
  /// may call this, each with its own stream. The voxels are valid after finish(). Returns their bytes, or 0 if
  /// VolumeDecoder must decode the stream instead: prediction, parts of volumes, marked values, several channels and
  /// more than 16 bits are not supported here, and VolumeDecoder reports errors.
  std::uint64_t decode(std::size_t job, ByteSource& source, const VolumeDecoderParams& params, void* voxels,
                       std::size_t capacity);
  /// Waits for all streams and ends the batch. Returns the jobs whose voxels do not have the hash of the original;
  /// decode them with VolumeDecoder.
  std::vector<std::size_t> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Encodes volumes whose voxels are in memory of device `number`: the survey of the values, samples, hashes and the
/// coder all run on the device, and the host writes the streams, which are those of encode_volume(). What is made for a
/// kind of stream is kept for the next one until this object is destroyed.
class VolumeEncodeBatch {
 public:
  /// `max_memory`: bytes of device memory for each of the streams encoded in parallel; 0 = what is free.
  VolumeEncodeBatch(int number, std::size_t max_memory);
  ~VolumeEncodeBatch();
  VolumeEncodeBatch(const VolumeEncodeBatch&) = delete;
  VolumeEncodeBatch& operator=(const VolumeEncodeBatch&) = delete;

  /// Encodes `voxels`, device memory without gaps that does not change meanwhile, as a wavelet. Several threads may
  /// call this, each with its own sink. False, with nothing written, if encode_volume() must do it instead: with loss,
  /// marked values, verification, trials (an effort above kFast without a fixed structure), several channels, more than
  /// 16 bits, big-endian voxels and a runner of the caller's own are not supported here.
  bool encode(const VolumeDescription& volume, const void* voxels, const VolumeEncoderParams& params,
              const std::vector<std::uint8_t>& envelope, ByteSink& sink, ReadBack* again, VolumeResult& result);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A buffer for pictures of a video decoder on device `number` (trivelet/device_pictures.h). It uses an eighth of the
/// memory that is free now. Throws Unsupported when there is no such device.
std::shared_ptr<DevicePictures> device_pictures(int number);

/// OpenGL textures shared with a device. Create, use and destroy it in the thread whose context is current. The
/// textures must keep their size meanwhile.
class Textures {
 public:
  virtual ~Textures() = default;
  /// Copies plane i of a frame in device memory into texture i. After the return `gop` may be overwritten, and later
  /// OpenGL commands see the frame. Throws Internal when CUDA fails.
  virtual void fill(const Gop& gop, int frame) = 0;
};
/// `names`: two-dimensional textures of the planes' sizes, with one channel of 8 or 16 bits. Throws Unsupported if the
/// OpenGL context is not on device `number`.
std::unique_ptr<Textures> share_textures(int number, std::span<const unsigned> names);

}  // namespace trivelet::gpu
