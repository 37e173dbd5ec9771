// Volumes: stacks of slices of scalars of 8 to 64 bits, integers or floats, into a .tvl stream and back.
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
// A voxel is 1..4 scalars of one type, one after the other, in either byte order. Scalars become samples of 1..16 bits
// by a map that is chosen from what occurs (offset and scale, a table of the values, steps of a real scale), in up to
// four planes; slices are the frames of the stream. So `Decoder` of codec.h reads such a stream as well and gives the
// numbers before the map, but for volumes coded by prediction, which it refuses. FORMAT.md "Volumes" is normative.
//
// Memory: slices are borrowed for a call and copied; a few GOPs of them are held, or the whole volume where its fourth
// axis is coded first. Threads: an object is used by one thread at a time; it runs threads of its own inside, and calls
// a source of slices from one of them. The bytes written depend neither on the number of threads nor on the instruction
// set. Ownership: sources, sinks and backends stay the caller's and must outlive what uses them; what functions return
// by reference lives as long as the object. Errors are trivelet::Error: BadArgument for requests that mean nothing,
// Unsupported for what the format cannot hold, BadStream for damaged streams, Mismatch for a failed verification; what
// a source or sink throws passes through.
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

/// Of a scalar.
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
  int channels = 1;  ///< 1..4 scalars, one after the other
  std::size_t bytes() const { return static_cast<std::size_t>(bytes_of(type)) * static_cast<std::size_t>(channels); }
  bool operator==(const VoxelFormat&) const = default;
};

/// The value of a stored scalar, bytes_of(type) bytes at any address. 64-bit integers lose their last bits.
double scalar_value(const std::byte* stored, VoxelType type, bool big_endian);

/// The shape of a volume. Rows are contiguous, then slices, then volumes (points in time, directions, …).
struct VolumeDescription {
  VoxelFormat voxel;
  int width = 0;              ///< voxels of a row, 1..65536
  int height = 0;             ///< rows of a slice, 1..65536
  std::uint64_t slices = 1;   ///< of a volume
  std::uint64_t volumes = 1;  ///< one after the other; the extents of all axes from the fourth on, multiplied

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

/// A box of voxels: half open ranges along x, y, z.
struct VoxelRegion {
  std::uint64_t x = 0, y = 0, z = 0, width = 0, height = 0, depth = 0;
};

/// Distance of scalars from those of another volume, in stored units.
struct VolumeError {
  std::uint64_t scalars = 0;
  std::uint64_t different = 0;  ///< in their bits, or of two formats in their values
  double squared = 0;           ///< sum
  double max = 0;
  double least = 0;  ///< finite value of the first volume
  double largest = 0;
  void add(const VolumeError& other);
  /// In dB; the peak is largest - least of the first volume.
  double psnr() const;
};
/// Of `scalars` scalars without gaps at `a`, the original, and at `b`; channels count as scalars of their own.
VolumeError compare_scalars(const std::byte* a, const VoxelFormat& format_a, const std::byte* b,
                            const VoxelFormat& format_b, std::size_t scalars);

/// What each quality layer of a stream is worth, as its encoder measured it by decoding every cut (FORMAT.md "volq").
struct VolumeCuts {
  struct Cut {
    double max_error = -1;           ///< largest distance of a voxel from the original, stored units; < 0 = not known
    double mean_squared_error = -1;  ///< likewise
    bool known() const { return max_error >= 0 && mean_squared_error >= 0; }
    bool operator==(const Cut&) const = default;
  };
  double peak = 0;        ///< largest minus least value of the original
  std::vector<Cut> cuts;  ///< by layer: of what this layer and those before it give
  bool operator==(const VolumeCuts&) const = default;
};
/// PSNR of cut `layer` < cuts.cuts.size(), which is known, in dB, against the peak; infinite when exact.
double psnr_of(const VolumeCuts& cuts, std::size_t layer);

// --------------------------------------------------------------------------------------------------------- encode

/// Where voxels come from: a file, memory, another stream.
class SliceSource {
 public:
  virtual ~SliceSource() = default;
  virtual const VolumeDescription& description() const = 0;
  /// The next slice of the volume, slice_bytes() of it. Called for all_slices() slices at most, then again after
  /// rewind().
  virtual void read(std::byte* slice) = 0;
  /// Back to the first slice. Volumes are read two times, once more for each layer when they are verified in full.
  virtual void rewind() = 0;
  /// Whether read_at() may be called instead, for any slice and by several threads at once. Which of the two is called
  /// does not change from the first slice of the volume to the last one.
  virtual bool reads_anywhere() const { return false; }
  virtual void read_at(std::uint64_t number, std::byte* slice) const {
    (void)number, (void)slice;
    fail(ErrorKind::kBadArgument, "these slices come in their order only");
  }
  /// What shall be kept beside the voxels (a file's header), in the stream's `volh` box; asked for once, after the last
  /// slice was read for the first time. The library does not look into it. Empty: no box.
  virtual std::vector<std::uint8_t> envelope() { return {}; }
};

/// Voxels in memory, which stays the caller's.
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

/// A way to what went into a sink, with which a stream is verified before it is given away.
class ReadBack {
 public:
  virtual ~ReadBack() = default;
  /// All bytes that were written so far, from the first of the stream on. Seekable.
  virtual std::unique_ptr<ByteSource> open() = 0;
  /// Writes over bytes that were written; the sink goes on where it was.
  virtual void replace(std::uint64_t position, const void* data, std::size_t size) = 0;
};

/// Of a MemorySink that was empty when the stream began.
class MemoryReadBack final : public ReadBack {
 public:
  explicit MemoryReadBack(MemorySink& sink) : sink_(sink) {}
  std::unique_ptr<ByteSource> open() override;
  void replace(std::uint64_t position, const void* data, std::size_t size) override;

 private:
  MemorySink& sink_;
};

/// Of a FileSink, which is read by its temporary name: a stream that fails never gets its own.
class FileReadBack final : public ReadBack {
 public:
  /// Null where nothing can be written over, or that has no such name: standard output, devices, pipes.
  static std::unique_ptr<FileReadBack> of(FileSink& sink);
  std::unique_ptr<ByteSource> open() override;
  void replace(std::uint64_t position, const void* data, std::size_t size) override;

 private:
  explicit FileReadBack(FileSink& sink) : sink_(sink) {}
  FileSink& sink_;
};

/// What takes the redundancy out of the numbers.
enum class VolumeTransform {
  kWavelet,            ///< has reduced sizes and lower qualities in it
  kPrediction,         ///< the predictive profile (parameters.h): lossless, 1 to 4 channels
  kPredictionInSlice,  ///< of every voxel from those to the left and above; lossless, dense profile, 1 or 2 channels
  kPredictionAcross,   ///< and from those of the slice before; likewise
};

/// How much is tried on a piece of the volume before it is coded. kFast: nothing; without loss, of numbers of at most
/// 16 bits, the predictive profile with contexts that are known ahead, which is several times as fast as that of
/// kMedium and a twentieth larger, else the usual wavelet. kMedium: the most promising; without loss that is the
/// predictive profile. kSlow: more of it, or more weights of that profile.
using VolumeEffort = Effort;

/// How a stream is verified (with ReadBack).
enum class VolumeVerify {
  kFull,  ///< when it is finished it is decoded and compared with the source, at every quality layer
  /// While it is coded, in a sixth of the time: every slice goes through the map and back, every codeword is read again
  /// for the tokens that it was made of, one in 16 is decoded; the source is hashed both times it is read, the stream
  /// when it is written and when it is read back. Of most blocks it is not tried whether a decoder predicts the same
  /// as the encoder did. Only by the predictive profile and where nothing is marked; else as kFull.
  kRunning,
};

struct VolumeEncoderParams {
  // How good: every voxel bit for bit, unless one of these is set. At most one.
  double max_error = 0;                      ///< no voxel errs by more, in stored units; 0 = lossless
  std::optional<double> quality;             ///< 0..100, as EncoderParams::quality
  std::optional<double> step;                ///< quantiser step in numbers of the map
  std::optional<double> psnr;                ///< in dB; the peak is the largest minus the least value
  std::optional<double> bits_per_voxel;      ///< of the stream, never exceeded
  std::optional<double> ratio;               ///< bytes of the voxels over those of the stream, at least
  std::optional<std::uint64_t> total_bytes;  ///< of the stream, never exceeded
  /// Values that stand for "nothing here" (as in NetCDF's _FillValue): they come back exactly, wherever they are, and
  /// cost nothing else. Of floats NaN and infinities are so without being named. Not lossless, where every value comes
  /// back.
  std::vector<double> fill_values;

  // Fixed choices; what is not set is chosen by trying.
  VolumeEffort effort = VolumeEffort::kMedium;
  std::optional<VolumeTransform> transform;
  bool predictive = true;                 ///< the predictive profile may be chosen where `transform` is not set
  std::optional<bool> palette;            ///< true: numbers stand for a table of the values that occur. Lossless
  std::optional<bool> fourth_axis_first;  ///< true: the transform goes along the volumes instead of the slices
  std::optional<int> slab;                ///< slices transformed together, 1..128
  // Of the wavelet. As soon as one of these is set, nothing is tried, and the others are as in EncoderParams.
  std::optional<int> slice_levels;  ///< along x and y
  std::optional<int> depth_levels;  ///< along z
  std::optional<Wavelet> slice_wavelet;
  std::optional<Wavelet> depth_wavelet;
  std::optional<Layout> layout;  ///< kDyadic

  /// Whether copies of index and headers stand at the front, with which a reader over a network needs fewer answers.
  /// Only where what is written can be read back. Not set: for volumes of 2^20 bytes and more.
  std::optional<bool> front_table;
  bool verify = true;                               ///< where what is written can be read back
  VolumeVerify verification = VolumeVerify::kFull;  ///< how

  // As in EncoderParams.
  Profile profile = Profile::kDense;  ///< of wavelets
  FastMode fast_mode = FastMode::kStaged;
  int block_size = 128;
  int layers = 0;  ///< 0 = 9, lossless in the fast profile 4; by prediction always 1
  bool visual = false;
  int threads = 0;
  Workers workers;
  SimdLevel simd = SimdLevel::kBest;
  std::string settings;
  std::string spool_path;

  /// Who codes, asked when all is chosen and nothing is written yet, with the profile that was chosen; it must outlive
  /// the call. Null, or when it gives null: the CPU. The predictive profile takes the CPU in any case. Pieces that are
  /// tried are the CPU's.
  std::function<const Backend*(Profile profile)> backend;

  std::function<void(std::uint64_t slices)> progress;      ///< called after every GOP: slices coded so far
  std::function<void(const std::string& text)> on_remark;  ///< what was found and tried, a line each, for people

  bool is_lossy() const { return quality || step || psnr || bits_per_voxel || ratio || total_bytes; }
};

struct VolumeResult {
  CodecStats stats;           ///< stats.stream_bytes is the size of the stream
  double seconds = 0;         ///< until it was written, verification left out
  std::string transform;      ///< what was chosen, for people: "13/7 3x4, slabs of 64 slices"
  double promised_error = 0;  ///< by construction, of every voxel; infinite when lossy
  bool verified = false;
  VolumeCuts cuts;  ///< what was measured, by layer; empty when not verified
  bool exact() const { return promised_error == 0; }
};

/// Codes a volume. With `again` and params.verify, the stream is verified as params.verification says, and what was
/// measured of its quality layers is written into it (VolumeStreamInfo::cuts); Mismatch when a promise is not kept.
VolumeResult encode_volume(SliceSource& source, const VolumeEncoderParams& params, ByteSink& sink,
                           ReadBack* again = nullptr);

// --------------------------------------------------------------------------------------------------------- decode

enum class VolumeMapKind : std::uint8_t {
  kAffine = 0,   ///< offset and scale
  kPalette = 1,  ///< a table of the values that occur
  kReal = 2,     ///< steps of a real scale
};
enum class VolumeOrder : std::uint8_t {
  kFile = 0,        ///< slice by slice of volume by volume
  kFourthAxis = 1,  ///< all volumes' slice 0, then all volumes' slice 1, …
};
enum class VolumePrediction : std::uint8_t { kNone = 0, kInSlice = 1, kAcross = 2 };

/// What a stream says about the volume in it.
struct VolumeStreamInfo {
  VolumeDescription volume;
  VolumeMapKind map = VolumeMapKind::kAffine;
  VolumeOrder order = VolumeOrder::kFile;
  VolumePrediction prediction = VolumePrediction::kNone;
  int bits = 0;      ///< of a number
  double least = 0;  ///< value the map can give
  double largest = 0;
  double max_error = 0;        ///< of the map: no value errs by more, if the numbers are exact
  std::vector<double> marked;  ///< values that come back exactly wherever they are: NaN, fill values; mostly none
  bool has_bound = false;      ///< the numbers are: the stream is lossless and nothing was cut off afterwards
  VolumeCuts cuts;             ///< one per layer, or none when the stream does not tell
  std::vector<std::uint8_t> envelope{};  ///< SliceSource::envelope()
  bool exact() const { return has_bound && max_error == 0; }
};
/// Nothing for streams without a volume; BadStream when what is said about it is damaged or contradicts the pictures.
std::optional<VolumeStreamInfo> volume_stream_info(const StreamInfo& stream);

struct VolumeDecoderParams {
  std::optional<VoxelRegion> region;  ///< voxels of the full size; of several volumes the same of each
  std::uint64_t first_volume = 0;     ///< of several volumes, `volumes` of them from this one on
  std::uint64_t volumes = 0;          ///< 0 = all from the first on
  int reduce = 0;  ///< halve the size so many times: a voxel at x is left as the one at x / 2^reduce. Not by prediction
  int max_layers = 0;  ///< decode only so many quality layers; 0 = all. Not by prediction
  int max_planes = 0;  ///< decode only so many bit planes; 0 = all. Not by prediction
  int threads = 0;     ///< 0 = one per core
  Workers workers{};
  Limits limits{};  ///< refuse what would cost more; throws Unsupported
  SimdLevel simd = SimdLevel::kBest;
};

class VolumeDecoder {
 public:
  /// Reads the header. `source` must be seekable and outlive the decoder, and so must `backend` (null: the CPU), on
  /// which wavelets are decoded. BadArgument when the stream holds no volume or the region leaves it.
  VolumeDecoder(ByteSource& source, const VolumeDecoderParams& params, const Backend* backend = nullptr);
  ~VolumeDecoder();
  VolumeDecoder(const VolumeDecoder&) = delete;
  VolumeDecoder& operator=(const VolumeDecoder&) = delete;

  /// Of the whole stream.
  const VolumeStreamInfo& info() const;
  const StreamInfo& stream() const;
  /// What read() delivers.
  const VolumeDescription& output() const;
  /// The same within the volume, which has step() of its voxels for each of these along x, y, z.
  const VoxelRegion& selection() const;
  std::array<std::uint64_t, 3> step() const;

  /// The next slice, output().slice_bytes() of it; false at the end. A stream that was cut short ends early. BadStream
  /// for damage, after which no slice follows.
  bool read(std::byte* slice);
  /// Up to `most` slices, 1 or more, one behind the other, by several threads: those of one coded group of them at
  /// most. Returns how many, 0 at the end.
  std::uint64_t read(std::byte* slices, std::uint64_t most);

  const CodecStats& stats() const;

 private:
  friend DecoderParams volume_request(ByteSource& source, const VolumeDecoderParams& params);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
