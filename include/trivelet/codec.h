// The main public interface: it encodes GOPs of samples into a .tvl stream and decodes a stream into GOPs.
//
//   #include "trivelet/codec.h"
//   using namespace trivelet;
//
//   void encode(const VideoInfo& info, const std::function<bool(Gop&)>& read, const std::string& path) {
//     FileSink sink(path, false);
//     Encoder encoder(info, EncoderParams{.quality = 70}, sink);
//     Gop gop = encoder.make_gop();
//     while (read(gop)) encoder.push(gop);
//     encoder.finish();
//     sink.commit();  // now the file has its name
//   }
//
//   void decode(const std::string& path, const std::function<void(const Gop&)>& use) {
//     FileSource source(path);
//     Decoder decoder(source, DecoderParams{});
//     Gop gop = decoder.make_gop();
//     while (decoder.pull(gop)) use(gop);
//   }
//
// Any stack of planes with one size and 1..16 bits is a "video" here, for instance the slices of a volume or the bands
// of a multispectral cube. Encoder::push_coefficients and Decoder::pull_coefficients exchange subband coefficients
// between the transform and the quantiser, for experiments (statistics, watermarks).
//
// Threads: one thread at a time uses an object. The object runs its own pool. A Decoder of a seekable source reads
// ahead in a thread of its own; from the first pull on only that thread uses the ByteSource. Output bytes depend
// neither on the number of threads nor on the instruction set.
// Ownership: the caller owns sinks, sources and backends, and they must outlive the objects that use them. References
// that functions return live as long as the object. Samples and coefficients are used during the call only.
// Errors are trivelet::Error (include/trivelet/error.h): BadArgument for parameters, GOPs and frames that do not fit;
// Unsupported for what a device cannot do and, when reading, for versions, features and limits; BadStream for damage.
// Io errors of a sink or source and std::bad_alloc pass through. After an error an Encoder can only be destroyed. After
// BadStream in a pull, a Decoder goes on with the next GOP if the header of the damaged one is intact.
// codec/FORMAT.md describes the stream format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trivelet/coefficients.h"
#include "trivelet/error.h"
#include "trivelet/limits.h"
#include "trivelet/parameters.h"
#include "trivelet/stream_info.h"
#include "trivelet/streams.h"
#include "trivelet/types.h"

namespace trivelet {

class EncoderCore;
struct CodingParams;
class GivenBytes;  // for ReadPlan (plan.h), which runs the reading half of a decoder
class RangeSet;

/// What transforms and codes: the CPU by default, or a GPU (trivelet/cuda.h). The predictive profile always runs on the
/// CPU.
struct Backend;

// --------------------------------------------------------------------------------------------------------- encode

struct EncoderParams {
  // The goal: constant quality, one of the targets (lossy only), or lossless.
  bool lossless = false;
  double quality = 60;             ///< 0..100 (lossy): step = 2^((100 - quality) / 12 - 1) * 2^(bits - 8)
  double step = 0;                 ///< quantiser step in sample units; 0 = from quality. Lossy only
  std::uint64_t target_bytes = 0;  ///< size of the whole stream, never exceeded; 0 = no target
  /// As target_bytes, as bits per pixel of a full-size component: bytes = it * width * height * frames / 8.
  double bits_per_pixel = 0;
  /// As target_bytes, in bits per second of the frames' presentation times; needs a frame rate.
  double bit_rate = 0;
  /// PSNR of all samples in dB, peak 2^bits - 1, reached by every GOP; 0 = no target
  double psnr = 0;
  /// The most bits per second over `rate_window` seconds or more, counted in whole packets; 0 = no bound. GOPs that
  /// would take more are cut, and get at least 3/4 of what the rate gives for their time. Shorter stretches have at
  /// most what a window may have, but a GOP that is longer than the window has the rate. So a reader at this rate
  /// needs a buffer for the longer one of window and GOP. Together with quality, step or a target for bytes.
  double max_rate = 0;
  double rate_window = 1;  ///< seconds

  /// 1..128. 0 = with motion 64, but 32 in pictures above 720x576 unless Effort::kSlow; without motion 33. Predictive
  /// profile: 33 to 66, more in small pictures.
  int gop_frames = 0;
  // The predictive profile has no levels, no wavelets, no `motion` and one layer.
  /// 0..8; -1 = 4 (fewer for short GOPs), or with motion 5 together with `levels_by_gop`.
  int temporal_levels = -1;
  /// With motion: a GOP uses fewer than `temporal_levels` where prediction from distant frames does not pay.
  bool levels_by_gop = false;
  int spatial_levels = -1;  ///< 0..8; -1 = 5 if width or height is at least 720, else 4; fewer for tiny pictures
  Wavelet spatial = Wavelet::kCdf97;   ///< kCdf97, the default, becomes kCdf53 when lossless
  Wavelet temporal = Wavelet::kCdf97;  ///< kCdf97, the default, becomes the reversible default when lossless
  /// Motion compensation along time. Choose GOPs of 2^n frames, which split evenly at every level.
  /// `temporal` is the wavelet of GOPs without motion.
  Motion motion = Motion::kDefault;
  /// With motion, a GOP may be predicted from the one before. At least every `key_interval` frames a closed GOP allows
  /// decoding to begin; an interval of at most gop_frames makes all GOPs closed. 0 = four seconds, or 100 frames
  /// without a frame rate.
  int key_interval = 0;
  /// With motion. Still scenes take fewer bytes. Decoding then begins at a closed GOP with the keys from there on.
  KeyPrediction key_prediction = KeyPrediction::kAuto;
  Profile profile = Profile::kDense;
  /// Predictive profile, except with Effort::kFast: predict with motion compensation from the previous frame. For
  /// videos; switch it off for the slices of volumes.
  bool moved_frames = true;
  /// Predictive profile: each block is also coded as labels and takes the smaller codeword. For label maps, masks and
  /// pages, whose regions have one value. Readers that do not know the feature refuse such streams by its name.
  bool labels = false;
  /// For the predictive profile and for motion. In the dense profile with motion, kSlow also optimises the rounding of
  /// lossy coefficients in the decoded picture: 2 to 5 % fewer bytes for 1.5 times the time, always on the CPU.
  Effort effort = Effort::kMedium;
  /// Side of a code block, in samples of a component: 32, 64, 128 or 256. 0 = 128; but 256 with motion, where blocks
  /// have few bits, if the picture has at most 720x576 samples (dense profile) or with Effort::kSlow.
  int block_size = 0;
  /// Quality layers, 1..16. 0 = 16 (small pictures 4 to 12); fast profile without a target 4. Many layers are a third
  /// of a bit plane apart, few layers more; the first one holds all planes above. With 0, later layers stay empty in
  /// GOPs so small that the headers of all layers would take more than 2 % of their bytes.
  int layers = 0;
  bool visual = false;  ///< weight subbands by contrast sensitivity instead of for the best PSNR. Lossy
  /// 0 = one per core. From 8 threads on, several independent GOPs are coded in parallel unless there is a target,
  /// using up to 160 MiB a thread.
  int threads = 0;
  Workers workers{};
  SimdLevel simd = SimdLevel::kBest;
  std::string settings{};  ///< text stored in the stream (the command line); may be empty
  /// Temporary file for coded GOPs while there is a target for the bytes; removed afterwards. Empty: a file in $TMPDIR,
  /// or in the system's temporary folder.
  std::string spool_path{};
  /// About the video; the constructor throws BadArgument for what the format cannot hold.
  Metadata metadata{};
  std::vector<ExtraBox> boxes{};  ///< boxes of applications; none of the types that `metadata` uses
  /// Write checksums of the parts of chunks, so that a region can be read alone. Not with a target for the bytes.
  bool part_checks = false;
  /// Reconstruct a sample of blocks at some layers, so that the index holds errors in samples; otherwise they are
  /// predicted from coefficients. Applies to the dense profile, constant quality or lossless. Targets always measure.
  bool measure_errors = true;

  bool has_byte_target() const { return target_bytes > 0 || bits_per_pixel > 0 || bit_rate > 0; }
};

/// A stage of the work, summed over GOPs.
struct StageTime {
  double seconds = 0;  ///< by the clock
  double busy = 0;     ///< summed over all threads: on average busy / seconds threads worked
};

/// Time of an encoder's calling thread; the members add up to nearly all time spent in its calls. On a GPU `coder`
/// includes `transform`, both are device time, and `wait` is the time the caller waits for them.
struct EncoderStages {
  StageTime hash;  ///< content hash, and checks of samples
  StageTime transform;
  StageTime coder;    ///< quantiser and coder
  StageTime layers;   ///< rate control: choice of truncation points
  StageTime measure;  ///< errors at some truncation points
  StageTime pack;     ///< chunks and their checksums; with a target for the bytes also the temporary file
  StageTime write;
  StageTime wait;
};

/// Time of a decoder's calling thread; the members add up to nearly all time spent in its calls. A device's `transform`
/// and `coder` are part of `wait`.
struct DecoderStages {
  StageTime read;       ///< packets: chunks, checksums and motion
  StageTime coder;      ///< entropy decoder and dequantiser
  StageTime transform;  ///< inverse transform, up to samples
  StageTime hash;       ///< content hash of decoded samples
  StageTime wait;       ///< for the reading thread and for a device
};

/// Totals, and the time by stage (summed over GOPs).
struct CodecStats {
  std::uint64_t gops = 0;
  std::uint64_t passed_gops = 0;  ///< decoder: decoded only because others depend on them; they delivered no frame
  std::uint64_t frames = 0;
  std::uint64_t samples = 0;
  std::uint64_t stream_bytes = 0;  ///< written by the encoder, read by the decoder
  EncoderStages stages;            ///< of an encoder
  DecoderStages decoding;          ///< of a decoder
  std::uint64_t damaged_gops = 0;  ///< decoder with keep_partial: GOPs with missing or damaged chunks
  /// Decoder with keep_partial: what is damaged and where, one line each (at most 100).
  std::vector<std::string> damage;
};

class Encoder {
 public:
  /// Writes the stream header. `info.frames` may be 0 (unknown). A null backend means the CPU.
  /// Throws BadArgument for parameters outside their ranges and for combinations that contradict each other.
  Encoder(const VideoInfo& info, const EncoderParams& params, ByteSink& sink, const Backend* backend = nullptr);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  /// The most frames of a GOP.
  int gop_frames() const;
  /// A Gop of the right format and capacity for push(), in the memory that the backend reads fastest.
  Gop make_gop() const;
  /// Codes one GOP of 1..gop_frames() frames; shorter ones are for scene cuts and the end. Samples are read during the
  /// call only.
  void push(const Gop& gop);
  /// The same for frames in the caller's memory. The CPU does not copy them. A GPU reads them in place if the memory is
  /// page-locked (trivelet/cuda.h); otherwise they are copied first.
  void push(std::span<const FrameView> frames);
  /// Codes coefficients instead of samples, as Decoder::pull_coefficients or transform() delivers them; they are
  /// consumed.
  void push_coefficients(CoefficientGop& coefficients);
  /// The forward transform alone.
  CoefficientGop transform(const Gop& gop);
  /// Writes the index and the end; with a target for the bytes, the whole stream. No push may follow. A stream that was
  /// never finished is valid but incomplete.
  void finish();

  const CodecStats& stats() const;
  /// The parameters in use, every default replaced by its value.
  const EncoderParams& params() const;

 private:
  friend Encoder make_encoder(const VideoInfo& info, const CodingParams& params, ByteSink& sink,
                              const Backend* backend);
  explicit Encoder(std::unique_ptr<EncoderCore> core);
  std::unique_ptr<EncoderCore> core_;
};

// --------------------------------------------------------------------------------------------------------- decode

/// Samples x .. x + width - 1 of rows y .. y + height - 1 of the picture.
struct PictureRegion {
  int x = 0;
  int y = 0;
  int width = 0;  ///< 0 = the whole picture
  int height = 0;
};

struct DecoderParams {
  int reduce = 0;                 ///< number of spatial levels to drop: sizes become ceil(size / 2^reduce)
  int temporal_reduce = 0;        ///< number of temporal levels to drop: every 2^n-th frame remains
  int max_planes = 0;             ///< the most bit planes to decode, counted from the top of each GOP; 0 = all
  int max_layers = 0;             ///< the most quality layers to decode; 0 = all
  std::uint64_t max_bytes = 0;    ///< the most bytes of chunks to read, shared among the GOPs in proportion; 0 = all
  double max_bits_per_pixel = 0;  ///< as max_bytes, as bits per pixel of the decoded pictures
  std::uint64_t first_frame = 0;  ///< frames [first_frame, end_frame) of the stream, before temporal reduction
  std::uint64_t end_frame = std::numeric_limits<std::uint64_t>::max();
  /// Distributes a stream with an index over several decoders: this one delivers every `turns`-th run, beginning with
  /// run number `turn`. A run is a closed GOP and the open GOPs that depend on it; run 0 is that of first_frame.
  std::uint64_t turn = 0;
  std::uint64_t turns = 1;
  /// The samples of the delivered pictures that the caller needs; pictures keep their size, and samples outside are
  /// undefined. Only blocks of the region are decoded. If the source is seekable and the stream has
  /// EncoderParams::part_checks, only their bytes are read.
  PictureRegion region{};
  /// Decode what is intact, fill the rest and report it in stats(); false: throw BadStream.
  bool keep_partial = false;
  bool verify_hash = true;  ///< check the content hash of lossless GOPs that are decoded completely
  /// Deliver the raw residuals of a volume coded by prediction; false: pull() refuses such streams.
  bool differences = false;
  /// Read packets ahead of pull() in another thread. False for a source that grows packet by packet.
  bool reads_ahead = true;
  int threads = 0;
  Workers workers{};
  Limits limits{};  ///< throws Unsupported for streams that would exceed them
  SimdLevel simd = SimdLevel::kBest;
};

/// Reads a stream's header, and the index of a seekable source, without decoding.
/// Throws BadStream for damage, and Unsupported if frames, GOP size or index exceed `limits`.
StreamInfo probe(ByteSource& source, const Limits& limits = {});

class Decoder {
 public:
  /// Reads the header and, of a seekable source, the index (a scan rebuilds a lost one). A null backend means the CPU.
  /// Throws BadArgument for requests that the stream cannot answer, such as too many reductions or a region outside the
  /// picture.
  Decoder(ByteSource& source, const DecoderParams& params, const Backend* backend = nullptr);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const StreamInfo& info() const;
  /// The pictures pull() delivers: sizes, frame rate and frame count after reduction and selection.
  const VideoInfo& output() const;
  /// The most frames that a GOP delivers.
  int gop_frames() const;
  /// The number, in the stream, of the first frame of the GOP delivered last.
  std::uint64_t first_frame_of_gop() const;
  /// With DecoderParams::keep_partial: whether something of the GOP delivered last is damaged.
  bool is_gop_damaged() const;
  /// With DecoderParams::keep_partial: damage since the GOP before, of packets that are missing and then of the GOP
  /// delivered last; after the end, what is missing there. At most 100 lines.
  const std::vector<std::string>& gop_damage() const;
  /// A Gop of the right format and capacity for pull(), in memory that the backend writes fastest.
  Gop make_gop() const;
  /// Decodes the next GOP of the selected range into `gop`. False at the end. For a volume it delivers the mapped
  /// numbers; if those are only residuals it throws Unsupported. VolumeDecoder (volume.h) delivers the voxels of both.
  bool pull(Gop& gop);
  /// As pull(), without a copy when a GPU decodes: the memory of `gop`, which comes from make_gop(), is exchanged, so
  /// that pointers into it become invalid.
  bool exchange(Gop& gop);
  /// As pull(), into the caller's memory. `frames` needs at least the capacity of make_gop(); the first ones get planes
  /// and times. Returns how many; 0 at the end.
  int pull(std::span<MutableFrameView> frames);
  /// As pull(), without the inverse transform. A selection of frames must begin and end with GOPs.
  bool pull_coefficients(CoefficientGop& coefficients);
  /// The inverse transform alone.
  void inverse(CoefficientGop& coefficients, Gop& gop);

  const CodecStats& stats() const;

 private:
  friend void plan_reads(GivenBytes& given, const DecoderParams& params, RangeSet& wanted);
  struct State;
  std::unique_ptr<State> state_;
};

/// True when the `size` bytes at `data` begin like a .tvl stream; 8 bytes are enough, fewer give false. Any thread may
/// call it.
bool is_tvl(const void* data, std::size_t size);

}  // namespace trivelet
