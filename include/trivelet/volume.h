// The public interface for volumes: it encodes stacks of slices (scalars of 8 to 64 bits, integers or floats) into a
// .tvl stream and decodes them.
//
//   VolumeDescription ct{.voxel = {VoxelType::kI16}, .width = 64, .height = 64, .slices = 40};
//   std::vector<std::byte> voxels(ct.bytes());                        // the scalars, slice by slice
//   MemorySlices slices(ct, voxels.data());
//   MemorySink stream;
//   encode_volume(slices, VolumeEncoderParams{}, stream);             // lossless; see there for bounds and targets
//
//   MemorySource source(stream.bytes.data(), stream.bytes.size());
//   VolumeDecoder decoder(source, VolumeDecoderParams{});
//   std::vector<std::byte> slice(decoder.output().slice_bytes());
//   for (std::uint64_t z = 0; decoder.read(slice.data()); ++z)        // bit for bit what was coded
//     assert(std::memcmp(slice.data(), voxels.data() + z * slice.size(), slice.size()) == 0);
//
// A voxel is 1..4 scalars of one type, in either byte order. A map, chosen from the values that occur (offset and
// scale, a table of the values, or steps of a real scale), turns scalars into samples of 1..16 bits in up to four
// planes; slices are the frames of the stream. Hence `Decoder` of codec.h also reads such a stream and delivers the
// mapped numbers, except for volumes coded by prediction, which it refuses. FORMAT.md "Volumes" is normative.
//
// Memory: slices are copied during a call. A few GOPs of them are held, or the whole volume if its fourth axis is coded
// first.
// Threads: one thread at a time uses an object. The object runs its own threads and calls the slice source from one of
// them. The bytes depend neither on the number of threads nor on the instruction set.
// Ownership: the caller owns sources, sinks and backends, and they must outlive what uses them. References that
// functions return live as long as the object.
// Errors are trivelet::Error: BadArgument for requests that contradict themselves or the volume, Unsupported for what
// the format cannot hold, BadStream for damaged streams, Mismatch for a failed verification. Exceptions of a source or
// sink pass through.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trivelet/codec.h"

namespace trivelet {

// --------------------------------------------------------------------------------------------------------- voxels

enum class VoxelType : std::uint8_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kU64 = 6,
  kI64 = 7,
  kF32 = 8,
  kF64 = 9,
};
inline constexpr int kVoxelTypes = 10;
inline constexpr int kMaxChannels = 4;

/// Bytes of a scalar.
inline int bytes_of(VoxelType t) {
  return t >= VoxelType::kF32 ? (t == VoxelType::kF32 ? 4 : 8) : 1 << (static_cast<int>(t) / 2);
}
inline bool is_real(VoxelType t) { return t >= VoxelType::kF32; }
inline bool is_signed(VoxelType t) { return is_real(t) || (static_cast<int>(t) & 1) != 0; }
/// "uint8", "int16", "float32", …
std::string to_string(VoxelType type);

/// What is stored for each voxel.
struct VoxelFormat {
  VoxelType type = VoxelType::kU8;
  bool big_endian = false;
  int channels = 1;  ///< 1..4 interleaved scalars
  std::size_t bytes() const { return static_cast<std::size_t>(bytes_of(type)) * static_cast<std::size_t>(channels); }
  bool operator==(const VoxelFormat&) const = default;
};

/// The value of a stored scalar of bytes_of(type) bytes, at any alignment. 64-bit integers are rounded to a double.
double scalar_value(const std::byte* stored, VoxelType type, bool big_endian);

/// The shape of a volume. Rows are contiguous, then slices, then volumes (points in time, directions, …).
struct VolumeDescription {
  VoxelFormat voxel;
  int width = 0;              ///< voxels in a row, 1..65536
  int height = 0;             ///< rows in a slice, 1..65536
  std::uint64_t slices = 1;   ///< slices in each volume
  std::uint64_t volumes = 1;  ///< number of volumes: the product of the extents of the fourth and further axes

  std::uint64_t all_slices() const { return slices * volumes; }
  std::size_t slice_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * voxel.bytes();
  }
  std::uint64_t voxels() const {
    return static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height) * all_slices();
  }
  std::uint64_t bytes() const { return voxels() * voxel.bytes(); }
  bool operator==(const VolumeDescription&) const = default;
};

/// A box of voxels: half-open ranges along x, y, z.
struct VoxelRegion {
  std::uint64_t x = 0, y = 0, z = 0, width = 0, height = 0, depth = 0;
};

/// Error statistics between the scalars of two volumes, in stored units.
struct VolumeError {
  std::uint64_t scalars = 0;
  std::uint64_t different = 0;  ///< scalars with different bits; for two formats, with different values
  double squared = 0;           ///< sum of squared errors
  double max = 0;
  double least = 0;  ///< least finite value of the first volume
  double largest = 0;
  void add(const VolumeError& other);
  /// In dB; the peak is largest - least.
  double psnr() const;
};
/// Compares `scalars` contiguous scalars at `a` (the original) and `b`; every channel counts as a scalar.
VolumeError compare_scalars(const std::byte* a, const VoxelFormat& format_a, const std::byte* b,
                            const VoxelFormat& format_b, std::size_t scalars);

/// The errors after each quality layer, which the encoder measured by decoding every truncation point (FORMAT.md
/// "volq").
struct VolumeCuts {
  struct Cut {
    double max_error = -1;           ///< largest absolute error of a voxel, stored units; < 0 = unknown
    double mean_squared_error = -1;  ///< in stored units squared; < 0 = unknown
    bool known() const { return max_error >= 0 && mean_squared_error >= 0; }
    bool operator==(const Cut&) const = default;
  };
  double peak = 0;        ///< largest minus least value of the original
  std::vector<Cut> cuts;  ///< by layer: errors of this layer together with those before it
  bool operator==(const VolumeCuts&) const = default;
};
/// PSNR of layer `layer` in dB, against the peak; infinite when exact. The layer must exist and be known.
double psnr_of(const VolumeCuts& cuts, std::size_t layer);

// --------------------------------------------------------------------------------------------------------- encode

/// The input of an encoder: a file, memory, or another stream.
class SliceSource {
 public:
  virtual ~SliceSource() = default;
  virtual const VolumeDescription& description() const = 0;
  /// Reads the next slice, slice_bytes() bytes. Called at most all_slices() times, and again after rewind().
  virtual void read(std::byte* slice) = 0;
  /// Back to the first slice. Volumes are read twice, and once more for each layer when they are verified in full. With
  /// loss allowed, up to twice more, to count the bytes without.
  virtual void rewind() = 0;
  /// Whether read_at() may be called instead, for any slice and from several threads at once. During one pass over the
  /// volume only one of the two is called.
  virtual bool reads_anywhere() const { return false; }
  virtual void read_at(std::uint64_t number, std::byte* slice) const {
    (void)number, (void)slice;
    fail(ErrorKind::kBadArgument, "these slices come in their order only");
  }
  /// Opaque data to keep with the voxels (a file's header), stored in the stream's `volh` box. Called once, after the
  /// first pass over the slices. Empty: no box.
  virtual std::vector<std::uint8_t> envelope() { return {}; }
};

/// Voxels in memory of the caller.
class MemorySlices final : public SliceSource {
 public:
  MemorySlices(const VolumeDescription& description, const std::byte* voxels)
      : description_(description), voxels_(voxels) {}
  const VolumeDescription& description() const override { return description_; }
  void read(std::byte* slice) override;
  void rewind() override { next_ = 0; }
  bool reads_anywhere() const override { return true; }
  void read_at(std::uint64_t number, std::byte* slice) const override;

 private:
  VolumeDescription description_;
  const std::byte* voxels_;
  std::uint64_t next_ = 0;
};

/// Read access to what was written to a sink, so that a stream can be verified before it is delivered.
class ReadBack {
 public:
  virtual ~ReadBack() = default;
  /// A seekable source of all bytes written so far, from the first of the stream on.
  virtual std::unique_ptr<ByteSource> open() = 0;
  /// Overwrites bytes; the sink's position does not change.
  virtual void replace(std::uint64_t position, const void* data, std::size_t size) = 0;
};

/// For a MemorySink that was empty when the stream began.
class MemoryReadBack final : public ReadBack {
 public:
  explicit MemoryReadBack(MemorySink& sink) : sink_(sink) {}
  std::unique_ptr<ByteSource> open() override;
  void replace(std::uint64_t position, const void* data, std::size_t size) override;

 private:
  MemorySink& sink_;
};

/// For a FileSink. The file is read under its temporary name, so a stream that fails never gets its final name.
class FileReadBack final : public ReadBack {
 public:
  /// Null for outputs that cannot be read back or overwritten: standard output, devices, pipes.
  static std::unique_ptr<FileReadBack> of(FileSink& sink);
  std::unique_ptr<ByteSource> open() override;
  void replace(std::uint64_t position, const void* data, std::size_t size) override;

 private:
  explicit FileReadBack(FileSink& sink) : sink_(sink) {}
  FileSink& sink_;
};

/// The decorrelating transform of the mapped numbers.
enum class VolumeTransform {
  kWavelet,            ///< scalable in size and quality
  kPrediction,         ///< the predictive profile (parameters.h): lossless, 1 to 4 channels
  kPredictionInSlice,  ///< from voxels to the left and above; lossless, dense profile, 1 or 2 channels
  kPredictionAcross,   ///< also from voxels of the slice before; lossless, dense profile, 1 or 2 channels
};

/// How much is tried on a piece of the volume before coding. kFast: nothing. Lossless integers of at most 16 bits then
/// use the predictive profile with static contexts, which is several times as fast as that of kMedium and 5 % larger;
/// others use the default wavelet. kMedium: the most promising choices; the predictive profile when lossless. kSlow:
/// more choices, or more weights of the predictive profile.
using VolumeEffort = Effort;

/// How a stream is verified (needs ReadBack).
enum class VolumeVerify {
  kFull,  ///< decode the finished stream and compare it with the source, at every quality layer
  /// Checks during coding, in a sixth of the time of kFull. Every slice is mapped and mapped back. Every codeword is
  /// read back and compared with its tokens; one block in 16 is decoded, and of one in 8 the first four slices. The
  /// source is hashed in both passes, and the stream when written and when read back. Not covered: for most blocks,
  /// that a decoder predicts what the encoder did. Applies to the predictive profile without marked values; otherwise
  /// kFull is used.
  kRunning,
};

/// What readers do. It decides how large code blocks and slabs are, the smallest units that are read.
enum class VolumeAccess {
  kWhole,   ///< decode all: blocks of 128, slabs of about 64 slices; with loss 128
  kSlices,  ///< decode slices: blocks of 256, at least 10 slabs of 4 to 16 slices
  /// Decode boxes: blocks of 64, of the wavelet 32, slabs of 4 to 32 slices. Volumes of up to 2^24 voxels get mixed
  /// contexts where these save bytes (not with VolumeEffort::kFast), which take ten times as long.
  kRegion,
};

struct VolumeEncoderParams {
  // The quality: lossless unless one of these is set; at most one. A volume that is smaller without loss is coded
  // without (VolumeResult::spared_loss); a target of bytes is met without loss where that suffices.
  double max_error = 0;                      ///< bound of every voxel's absolute error, in stored units; 0 = lossless
  std::optional<double> quality;             ///< 0..100, as EncoderParams::quality
  std::optional<double> step;                ///< quantiser step in numbers of the map
  std::optional<double> psnr;                ///< in dB; the peak is the largest minus the least value
  std::optional<double> bits_per_voxel;      ///< of the stream, never exceeded
  std::optional<double> ratio;               ///< least compression ratio: bytes of the voxels / bytes of the stream
  std::optional<std::uint64_t> total_bytes;  ///< size of the stream, never exceeded
  /// Values that mean "no data" (such as NetCDF's _FillValue). They are restored exactly and cost almost nothing. NaN
  /// and infinities are always treated so. Ignored when lossless, where every value is restored.
  std::vector<double> fill_values;

  // Fixed choices; the encoder chooses what is not set.
  VolumeEffort effort = VolumeEffort::kMedium;
  std::optional<VolumeTransform> transform;
  bool predictive = true;       ///< allow the predictive profile when `transform` is not set
  std::optional<bool> palette;  ///< true: code indices into a table of values that occur. Lossless or with max_error
  std::optional<bool> fourth_axis_first;  ///< true: transform along the fourth axis instead of along the slices
  VolumeAccess access = VolumeAccess::kWhole;
  std::optional<int> slab;  ///< slices of a GOP, 1..128; not set: by `access` and by trying
  // Wavelet structure. If any of these is set nothing is tried, and the others have the defaults of EncoderParams.
  std::optional<int> slice_levels;  ///< along x and y
  std::optional<int> depth_levels;  ///< along z
  std::optional<Wavelet> slice_wavelet;
  std::optional<Wavelet> depth_wavelet;
  std::optional<Layout> layout;  ///< kDyadic

  /// Put copies of index and headers in front, which saves a network reader round trips. Needs ReadBack. Not set: for
  /// volumes of at least 2^20 bytes, with `access` to parts 2^16.
  std::optional<bool> front_table;
  bool verify = true;                               ///< verify the stream, where a ReadBack is given
  VolumeVerify verification = VolumeVerify::kFull;  ///< how to verify

  // As in EncoderParams.
  Profile profile = Profile::kDense;  ///< for wavelets
  int block_size = 0;                 ///< 32, 64, 128 or 256; 0 = by `access`
  int layers = 0;                     ///< 0 = 9, or 4 when lossless in the fast profile; prediction has always 1
  bool visual = false;
  int threads = 0;
  Workers workers;
  SimdLevel simd = SimdLevel::kBest;
  std::string settings;
  std::string spool_path;

  /// Returns the backend for the chosen profile, called before anything is written; the backend must outlive the call.
  /// Null (function or result): the CPU. The predictive profile and trials always run on the CPU.
  std::function<const Backend*(Profile profile)> backend;

  /// Called after every GOP with the number of slices coded so far.
  std::function<void(std::uint64_t slices)> progress;
  std::function<void(const std::string& text)> on_remark;  ///< receives findings and trials as text, a line each

  bool is_lossy() const { return quality || step || psnr || bits_per_voxel || ratio || total_bytes; }
};

struct VolumeResult {
  CodecStats stats;           ///< stats.stream_bytes is the size of the stream
  double seconds = 0;         ///< until the stream was written, without verification
  std::string transform;      ///< the chosen transform as text: "13/7 3x4, slabs of 64 slices"
  double promised_error = 0;  ///< guaranteed bound of every voxel's error; infinite when lossy
  bool spared_loss = false;   ///< coded without loss, although some was allowed, because that is smaller or fits
  bool verified = false;
  VolumeCuts cuts;  ///< measured errors by layer; empty when not verified
  bool exact() const { return promised_error == 0; }
};

/// Encodes a volume. With `again` and params.verify the stream is verified as params.verification says, and the
/// measured errors of its layers are stored in it (VolumeStreamInfo::cuts). Throws Mismatch when a promise is broken.
VolumeResult encode_volume(SliceSource& source, const VolumeEncoderParams& params, ByteSink& sink,
                           ReadBack* again = nullptr);

// --------------------------------------------------------------------------------------------------------- decode

enum class VolumeMapKind : std::uint8_t {
  kAffine = 0,   ///< offset and scale
  kPalette = 1,  ///< a table of the values that occur
  kReal = 2,     ///< multiples of a real step
};
enum class VolumeOrder : std::uint8_t {
  kFile = 0,        ///< slice by slice of volume by volume
  kFourthAxis = 1,  ///< slice 0 of all volumes, then slice 1 of all volumes, …
};
enum class VolumePrediction : std::uint8_t { kNone = 0, kInSlice = 1, kAcross = 2 };

/// What a stream says about its volume.
struct VolumeStreamInfo {
  VolumeDescription volume;
  VolumeMapKind map = VolumeMapKind::kAffine;
  VolumeOrder order = VolumeOrder::kFile;
  VolumePrediction prediction = VolumePrediction::kNone;
  int bits = 0;      ///< bits of a mapped number
  double least = 0;  ///< least value of the map
  double largest = 0;
  double max_error = 0;        ///< bound of the map's error, valid if the mapped numbers are exact
  std::vector<double> marked;  ///< values that are restored exactly (NaN, fill values); mostly empty
  bool has_bound = false;      ///< the mapped numbers are exact: a lossless stream of which nothing was dropped
  VolumeCuts cuts;             ///< one entry for each layer, or empty when the stream has none
  std::vector<std::uint8_t> envelope{};  ///< SliceSource::envelope() of the encoder
  bool exact() const { return has_bound && max_error == 0; }
};
/// Empty for streams without a volume. Throws BadStream when the description is damaged or contradicts the pictures.
std::optional<VolumeStreamInfo> volume_stream_info(const StreamInfo& stream);

struct VolumeDecoderParams {
  std::optional<VoxelRegion> region;  ///< voxels at full size; the same region of every volume
  std::uint64_t first_volume = 0;     ///< first of the `volumes` to decode
  std::uint64_t volumes = 0;          ///< 0 = all from first_volume on
  int reduce = 0;      ///< number of halvings: voxel x is at x / 2^reduce afterwards. Not with prediction
  int max_layers = 0;  ///< the most quality layers to decode; 0 = all. Not with prediction
  int max_planes = 0;  ///< the most bit planes to decode; 0 = all. Not with prediction
  /// Deliver a damaged or cut stream: slices of damaged slabs are 0, whatever the type and scale of the values, and are
  /// in VolumeDecoder::lost().
  bool keep_partial = false;
  int threads = 0;  ///< 0 = one per core
  Workers workers{};
  Limits limits{};  ///< throws Unsupported for streams that would exceed them
  SimdLevel simd = SimdLevel::kBest;
};

/// Slices that follow one another in the order in which they are coded (VolumeStreamInfo::order) and are damaged.
struct LostSlices {
  std::uint64_t first_slice = 0;  ///< of the volume at full size, like all of these
  std::uint64_t first_volume = 0;
  std::uint64_t last_slice = 0;
  std::uint64_t last_volume = 0;
  std::uint64_t delivered = 0;  ///< slices that read() delivers as 0 for them
  std::string why;              ///< what is wrong with the first
};

class VolumeDecoder {
 public:
  /// Reads the header. `source` must be seekable. `source` and `backend` (null: the CPU), which decodes wavelets, must
  /// outlive the decoder. Throws BadArgument when the stream holds no volume or the region exceeds it.
  VolumeDecoder(ByteSource& source, const VolumeDecoderParams& params, const Backend* backend = nullptr);
  ~VolumeDecoder();
  VolumeDecoder(const VolumeDecoder&) = delete;
  VolumeDecoder& operator=(const VolumeDecoder&) = delete;

  /// Describes the whole stream.
  const VolumeStreamInfo& info() const;
  const StreamInfo& stream() const;
  /// Describes what read() delivers.
  const VolumeDescription& output() const;
  /// The selected region in full-size voxels; step() is the number of these for each delivered voxel along x, y, z.
  const VoxelRegion& selection() const;
  std::array<std::uint64_t, 3> step() const;

  /// Decodes the next slice, output().slice_bytes() bytes; false at the end. A truncated stream ends early. Throws
  /// BadStream for damage, after which no slice follows. With VolumeDecoderParams::keep_partial neither happens.
  bool read(std::byte* slice);
  /// Decodes up to `most` >= 1 contiguous slices with several threads, at most the rest of a GOP. Returns how many; 0
  /// at the end.
  std::uint64_t read(std::byte* slices, std::uint64_t most);

  /// With VolumeDecoderParams::keep_partial: the damaged slices up to the one that was read last; all of the selected
  /// ones if the fourth axis was coded first.
  const std::vector<LostSlices>& lost() const;

  const CodecStats& stats() const;

 private:
  friend DecoderParams volume_request(ByteSource& source, const VolumeDecoderParams& params);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
