// The codec on an NVIDIA GPU, and which GPUs there are. Only in builds with CUDA; no type of CUDA appears.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trivelet {
struct Backend;  // for Encoder and Decoder (codec.h), which it must outlive
class Gop;
class DevicePictures;
class ByteSource;
struct VolumeDecoderParams;
}  // namespace trivelet

namespace trivelet::gpu {

struct DeviceInfo {
  int number = 0;
  std::string name;
  std::size_t memory = 0;  ///< bytes
  int major = 0, minor = 0;
};

/// Whether this library was built with CUDA. Without, everything that needs a GPU throws Unsupported.
bool is_built();

/// How many GOPs are going to be in flight at a time; `fast` has 3, `dense`, or `fast` with Motion::kOn, up to 32 if
/// there are so many; fewer may share work queues, which costs `dense` little where the host has more to do. To be said
/// before anything else is asked of a GPU, once in a process, for the driver makes as many queues when it starts: 4 of
/// them in 0.1 s on an H200, 32 in 0.6, and 0.3 to give them back at the end. Else there are 32, or what
/// CUDA_DEVICE_MAX_CONNECTIONS says.
void expect_gops(int in_flight);

/// Usable devices; none without a driver or CUDA. Never throws.
std::vector<DeviceInfo> devices();

/// Cores of the host that are nearest to a device, by the system's numbers; none where nobody knows. Never throws.
std::vector<int> cores_near(int number);

/// Codes on device `number`. `max_memory`: of the device, in bytes; 0 = all there is. Makers throw Unsupported for what
/// the GPU cannot do (coefficients instead of samples) and when its memory does not hold one GOP.
///
/// With `frames_stay` a decoder leaves frames on the device: the planes of what Decoder::make_gop() makes and
/// Decoder::exchange() fills are addresses there. DecoderParams::verify_hash must be off and its range of frames begin
/// and end with GOPs, for the host cannot look at them.
std::shared_ptr<const Backend> cuda_backend(int number, std::size_t max_memory, bool frames_stay = false);

/// Page-locked memory: an encoder on a GPU reads frames in it where they are. To be had from here (it fits Gop's
/// allocator), from cudaHostAlloc, or by cudaHostRegister for memory that is there already. Throws Unsupported when
/// there is none left.
std::shared_ptr<std::byte> page_locked(std::size_t bytes);

/// Rows in memory of the host or of a device: `pitch` bytes from one to the next, which may be negative.
struct Rows {
  std::byte* data = nullptr;
  std::ptrdiff_t pitch = 0;
};
/// Copies `rows` rows of `row_bytes` from the host to memory of device `number`, in the order of `stream` (a
/// cudaStream_t; null: the default one). They are there when wait_for() returns; `from` must not change until then.
void copy_to_device(int number, Rows to, Rows from, std::size_t row_bytes, std::size_t rows, void* stream);
/// Likewise back to the host.
void copy_from_device(int number, Rows to, Rows from, std::size_t row_bytes, std::size_t rows, void* stream);
/// Waits for all work given to `stream` of device `number`.
void wait_for(int number, void* stream);

/// Streams of volumes into memory of device `number`, through no memory of the host: decoded, mapped to voxels and
/// their hashes checked there. What a decoder makes for a kind of streams is kept for the next one for as long as this
/// is.
class VolumeBatch {
 public:
  /// `max_memory`: of the device, in bytes for each of the streams that are decoded beside each other; 0 = what there
  /// is.
  VolumeBatch(int number, std::size_t max_memory);
  ~VolumeBatch();
  VolumeBatch(const VolumeBatch&) = delete;
  VolumeBatch& operator=(const VolumeBatch&) = delete;

  /// Decodes a stream of the batch, called `job` by the caller, to `voxels` without gaps, where they stay until
  /// finish(); several threads may, each with its own. How many bytes it has; 0: nothing of `voxels` counts. It is to
  /// be decoded by VolumeDecoder, for it is of a kind that is not for this (prediction, parts of volumes, marked
  /// values, voxels of several channels or more than 16 bits), or VolumeDecoder is to say what is wrong with it.
  std::uint64_t decode(std::size_t job, ByteSource& source, const VolumeDecoderParams& params, void* voxels,
                       std::size_t capacity);
  /// Waits for all of that and ends the batch; jobs that are to be decoded by VolumeDecoder as well, for their voxels
  /// do not have the hash of the originals.
  std::vector<std::size_t> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Room for pictures that a video decoder makes on device `number` (trivelet/device_pictures.h), for an eighth of the
/// memory that is free now. Throws Unsupported when there is no such device.
std::shared_ptr<DevicePictures> device_pictures(int number);

/// Textures of OpenGL as a device sees them. All of it, its end too, is for the thread whose context is current; the
/// textures must not be given another size meanwhile.
class Textures {
 public:
  virtual ~Textures() = default;
  /// Makes plane i of a frame, in memory of that device, the content of texture i. `gop` may be overwritten when it
  /// returns; what OpenGL is told afterwards sees the frame. Throws Internal when a call of CUDA fails.
  virtual void fill(const Gop& gop, int frame) = 0;
};
/// `names`: of two-dimensional textures, one channel of 8 or 16 bits each, with the size of the planes. Throws
/// Unsupported where the context is not of device `number`.
std::unique_ptr<Textures> share_textures(int number, std::span<const unsigned> names);

}  // namespace trivelet::gpu
