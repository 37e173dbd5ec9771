// Trivelet's public interface: GOPs of samples in, a .tvl stream out, and back.
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
// Any stack of planes with one size and 1..16 bits is a "video" here: slices of a volume, bands of a multispectral
// cube. Experiments on subband coefficients (statistics, watermarks) use Encoder::push_coefficients and
// Decoder::pull_coefficients, which stand between the transform and the quantiser.
//
// Threads: an object is used by one thread at a time; it runs its own pool inside, and a Decoder reads a file that can
// seek ahead in a thread of its own, which alone uses the ByteSource from the first pull on. Output bytes do not depend
// on the number of threads nor on the instruction set.
// Ownership: sinks, sources and backends stay the caller's and must outlive the objects that are given them; what
// functions return by reference lives as long as the object. Samples and coefficients are used during the call only.
// Errors are trivelet::Error (include/trivelet/error.h): BadArgument for parameters, Gops and frames that do not fit;
// Unsupported for what a device cannot do and, reading, for versions, features and limits; BadStream for damage; what a
// sink or source throws, Io, passes through, as does std::bad_alloc. After an error an Encoder can only be
// destroyed. A Decoder that threw BadStream in a pull goes on behind that GOP in the next one if its header is intact.
// The stream format is described in codec/FORMAT.md.
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
class GivenBytes;  // for ReadPlan (plan.h), which runs the half of a decoder that reads
class RangeSet;

/// What transforms and codes: the CPU unless told otherwise (trivelet/cuda.h makes one of a GPU), and always the CPU in
/// the predictive profile.
struct Backend;

// --------------------------------------------------------------------------------------------------------- encode

struct EncoderParams {
  // What to reach: constant quality, or one of the targets (lossy only), or lossless.
  bool lossless = false;
  double quality = 60;             ///< 0..100 (lossy): step = 2^((100 - quality) / 12 - 1) * 2^(bits - 8)
  double step = 0;                 ///< quantiser step in sample units; 0 = from quality. Lossy only
  std::uint64_t target_bytes = 0;  ///< of the whole stream; 0 = no target. Never exceeded
  double bits_per_pixel = 0;       ///< likewise, times width * height * frames / 8
  double bit_rate = 0;             ///< likewise, bits per second, by the frames' own times; needs a frame rate
  double psnr = 0;                 ///< of all samples, in dB with the peak 2^bits - 1; every GOP is brought to it

  int gop_frames = 33;  ///< 1..128; one more than a multiple of 2^temporal_levels gives even quality at both ends
  // The predictive profile has no levels, no wavelets, no `motion` and one layer.
  /// 0..8, -1 = 4 (fewer for short GOPs), with motion 5, and then `levels_by_gop`
  int temporal_levels = -1;
  /// GOPs with motion have at most `temporal_levels`, and fewer where nothing predicts from so many frames away.
  bool levels_by_gop = false;
  int spatial_levels = -1;  ///< 0..8, -1 = by size: 5 from 720 rows or columns up, else 4, fewer for tiny pictures
  Wavelet spatial = Wavelet::kCdf97;   ///< kCdf97 means "default" when lossless: kCdf53
  Wavelet temporal = Wavelet::kCdf97;  ///< likewise: kCdf53 … the reversible default
  Layout layout = Layout::kT2d;
  /// With it choose GOPs of 2^n frames, of which every one can be halved evenly. On the CPU only, t+2D. `temporal` is
  /// the transform of GOPs that do without.
  Motion motion = Motion::kOff;
  /// With motion GOPs may refer to the one before. Frames after which one does not, so that decoding can begin there:
  /// at most so many, if they are more than those of a GOP; else none does. 0 = four seconds, 100 frames without a
  /// rate.
  int key_interval = 0;
  Profile profile = Profile::kDense;
  /// Predictive profile, but for Effort::kFast: frames are predicted from where things were in the frame before. For
  /// videos; slices of volumes do not move.
  bool moved_frames = true;
  FastMode fast_mode = FastMode::kStaged;
  /// Of the predictive profile, and with motion. kSlow then rounds lossy coefficients of the dense profile by what
  /// decoding leaves of them: 2 to 5 % fewer bytes for half as much time again, and on the CPU whatever the backend.
  Effort effort = Effort::kMedium;
  /// Code blocks cover block_size^2 samples of a component: 32, 64, 128, 256; 0 = 128, but 256 with motion, which
  /// leaves few bits to a block, in pictures of at most 720x576 samples (dense profile) or with Effort::kSlow.
  int block_size = 0;
  /// Quality layers, 1..16; 0 = 16 (small pictures 4 to 12), fast profile without a target 4. Many are a third of a bit
  /// plane apart, few more; the first one holds what is above. With 0, GOPs so small that the heads of all layers would
  /// take more than a fiftieth of their bytes leave later layers empty.
  int layers = 0;
  bool even_ends = true;  ///< spend more on the frames at the ends of GOPs, which else come out worse. Lossy t+2D
  bool visual = false;    ///< weigh subbands by contrast sensitivity instead of for the best PSNR. Lossy
  /// 0 = one per core. From 8 on several GOPs are in work at once where nothing is aimed at and none depends on
  /// another, and take up to 160 MiB a thread.
  int threads = 0;
  Workers workers{};
  SimdLevel simd = SimdLevel::kBest;
  std::string settings{};  ///< stored as text in the stream (the command line), may be empty
  /// Where coded GOPs wait for the end of the video when there is a target for its bytes; removed afterwards. Empty: a
  /// temporary file in the folder that the environment's TMPDIR names, else one of the system's.
  std::string spool_path{};
  Metadata metadata{};            ///< about the video; Encoder throws BadArgument for what the format cannot hold
  std::vector<ExtraBox> boxes{};  ///< of applications; none of those that `metadata` makes
  /// Write checks of the parts of chunks, with which a region is read alone; not with a target for the bytes.
  bool part_checks = false;
  /// Reconstruct some blocks of some GOPs at some layers, so that the errors in the index are those of samples; else
  /// they are predicted from coefficients. At constant quality and lossless, dense profile; targets measure anyway.
  bool measure_errors = true;

  bool has_byte_target() const { return target_bytes > 0 || bits_per_pixel > 0 || bit_rate > 0; }
};

/// A stage of the work, summed over GOPs.
struct StageTime {
  double seconds = 0;  ///< by the clock
  double busy = 0;     ///< of all threads together: busy / seconds of them worked
};

/// What an encoder does with the calling thread: nearly all of the time of its calls. On a GPU `transform` is part of
/// `coder`, and both are the device's; what the caller waits for them is `wait`.
struct EncoderStages {
  StageTime hash;  ///< and checks of samples
  StageTime transform;
  StageTime coder;    ///< quantiser and coder
  StageTime layers;   ///< rate control: where segments are cut
  StageTime measure;  ///< errors of some cuts
  StageTime pack;     ///< chunks and their checksums; with a target for the bytes also the temporary file
  StageTime write;
  StageTime wait;
};

/// What a decoder does with the calling thread: nearly all of the time of its calls. A device's `transform` and `coder`
/// are not told apart from the rest of what the caller waits for.
struct DecoderStages {
  StageTime read;       ///< packets: their chunks, checksums and motion
  StageTime coder;      ///< and quantiser
  StageTime transform;  ///< up to samples
  StageTime hash;       ///< of decoded samples
  StageTime wait;       ///< for a thread that reads packets ahead, and for a device
};

/// Seconds of work by stage (summed over GOPs) and what came out.
struct CodecStats {
  std::uint64_t gops = 0;
  std::uint64_t passed_gops = 0;  ///< decoder: that were decoded and gave no frame; others depend on them
  std::uint64_t frames = 0;
  std::uint64_t samples = 0;
  std::uint64_t stream_bytes = 0;   ///< written by the encoder, read by the decoder
  EncoderStages stages;             ///< of an encoder
  DecoderStages decoding;           ///< the same of a decoder
  std::uint64_t damaged_gops = 0;   ///< decoder with keep_partial: GOPs with missing or damaged chunks
  std::vector<std::string> damage;  ///< decoder with keep_partial: what and where, one line each (at most 100)
};

class Encoder {
 public:
  /// Writes the stream header at once. `info.frames` may be 0 (unknown). A null backend means the CPU.
  /// Throws BadArgument for parameters outside their ranges or combinations that mean nothing.
  Encoder(const VideoInfo& info, const EncoderParams& params, ByteSink& sink, const Backend* backend = nullptr);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  /// Frames a GOP holds at most.
  int gop_frames() const;
  /// A Gop of the right format and capacity for push(), in the memory that the backend reads fastest.
  Gop make_gop() const;
  /// Codes one GOP of 1..gop_frames() frames; shorter ones are for scene cuts and the end. The samples are only read
  /// during the call.
  void push(const Gop& gop);
  /// The same with frames in memory of the caller, which are not copied on the CPU. A GPU reads them where they are if
  /// they lie in page-locked memory (trivelet/cuda.h), else they are copied into such memory first.
  void push(std::span<const FrameView> frames);
  /// Codes coefficients instead of samples (as Decoder::pull_coefficients or transform() delivers them); they are
  /// used up.
  void push_coefficients(CoefficientGop& coefficients);
  /// The forward transform alone.
  CoefficientGop transform(const Gop& gop);
  /// Writes index and end (with a target for the bytes: everything). No push may follow. Without it the stream is a
  /// valid but unfinished one.
  void finish();

  const CodecStats& stats() const;
  /// The parameters with every default replaced by the value in use.
  const EncoderParams& params() const;

 private:
  std::unique_ptr<EncoderCore> core_;
};

// --------------------------------------------------------------------------------------------------------- decode

/// Samples x .. x + width - 1 of rows y .. y + height - 1.
struct PictureRegion {
  int x = 0;
  int y = 0;
  int width = 0;  ///< 0 = everything
  int height = 0;
};

struct DecoderParams {
  int reduce = 0;                 ///< drop so many spatial levels: sizes become ceil(size / 2^reduce)
  int temporal_reduce = 0;        ///< drop so many temporal levels: one frame of 2^n remains
  int max_planes = 0;             ///< decode only so many bit planes, counted from the top of each GOP; 0 = all
  int max_layers = 0;             ///< decode only so many quality layers; 0 = all
  std::uint64_t max_bytes = 0;    ///< read chunks only as far as this size allows, GOP by GOP in proportion; 0 = all
  double max_bits_per_pixel = 0;  ///< likewise, bits per pixel of the pictures that are decoded
  std::uint64_t first_frame = 0;  ///< frames [first_frame, end_frame) of the stream, before temporal reduction
  std::uint64_t end_frame = std::numeric_limits<std::uint64_t>::max();
  /// Of several decoders that share a stream with an index this one delivers every `turns`-th run, from number `turn`
  /// on: a run is a GOP that depends on none before it, and those behind that do; the first one is that of first_frame.
  std::uint64_t turn = 0;
  std::uint64_t turns = 1;
  /// Of the pictures that pull() delivers: only these samples count. Pictures keep their size; what lies outside is not
  /// defined. From a seekable source with checks of parts (EncoderParams::part_checks) only what the region needs is
  /// read, else all of every picture, but only the region's blocks are decoded.
  PictureRegion region{};
  bool keep_partial = false;  ///< decode what is intact, fill the rest, and report it in stats(); else throw BadStream
  bool verify_hash = true;    ///< check the content hash of lossless GOPs that are decoded whole
  /// Deliver the samples of a volume coded by prediction, which are differences of numbers; else pull() refuses them.
  bool differences = false;
  /// Packets may be read ahead of the one that pull() delivers. False for a source to which they are added one by one.
  bool reads_ahead = true;
  int threads = 0;
  Workers workers{};
  Limits limits{};  ///< refuse what would cost more; throws Unsupported
  SimdLevel simd = SimdLevel::kBest;
};

/// What a stream says about itself, without decoding anything; of a seekable source also by its index.
/// Throws BadStream, or Unsupported, also for more frames, larger GOPs or a larger index than `limits` allow.
StreamInfo probe(ByteSource& source, const Limits& limits = {});

class Decoder {
 public:
  /// Reads the header; for a seekable source also the index (rebuilt by a scan when it is lost). A null backend means
  /// the CPU. Throws BadArgument for a request that the stream cannot answer: reductions, regions outside the pictures.
  Decoder(ByteSource& source, const DecoderParams& params, const Backend* backend = nullptr);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const StreamInfo& info() const;
  /// The pictures pull() delivers: sizes, frame rate and frame count after reduction and selection.
  const VideoInfo& output() const;
  /// Frames that a GOP gives at most.
  int gop_frames() const;
  /// The number, in the stream, of the first frame of the GOP that was delivered last.
  std::uint64_t first_frame_of_gop() const;
  /// A Gop of the right format and capacity for pull(), in memory that the backend writes fastest.
  Gop make_gop() const;
  /// Decodes the next GOP of the selected range into `gop`. False at the end. Samples of a volume are the numbers that
  /// stand for its voxels; Unsupported when they are only differences of those: VolumeDecoder (volume.h) knows both.
  bool pull(Gop& gop);
  /// The same without a copy where a GPU decodes: `gop`, from make_gop(), comes back with other memory than it had, and
  /// what pointed into it is void.
  bool exchange(Gop& gop);
  /// The same into memory of the caller: the planes and times of the first frames of `frames`, of which there are at
  /// least as many as make_gop() has room for. Returns how many; 0 at the end.
  int pull(std::span<MutableFrameView> frames);
  /// The same without the inverse transform. Not with a frame selection that starts or ends inside a GOP.
  bool pull_coefficients(CoefficientGop& coefficients);
  /// The inverse transform alone.
  void inverse(CoefficientGop& coefficients, Gop& gop);

  const CodecStats& stats() const;

 private:
  friend void plan_reads(GivenBytes& given, const DecoderParams& params, RangeSet& wanted);
  struct State;
  std::unique_ptr<State> state_;
};

/// True when the `size` bytes at `data` begin like a .tvl stream (8 are enough, fewer never). By any thread.
bool is_tvl(const void* data, std::size_t size);

}  // namespace trivelet
