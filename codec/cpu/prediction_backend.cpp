// The predictive profile on the CPU (prediction_backend.h): codes and decodes blocks without a transform.
#include "codec/cpu/prediction_backend.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "codec/base/bad_stream.h"
#include "codec/base/limits.h"
#include "codec/entropy/labels/label_block.h"
#include "codec/entropy/mixed/mixed_block.h"
#include "codec/predict/prediction.h"
#include "codec/predict/prediction_block.h"
#include "codec/threads/stage_timer.h"
#include "codec/threads/stopwatch.h"

namespace trivelet {

namespace {

using prediction::BlockSamples;

/// The settings with which each block is coded; the smallest codeword wins. Tiles that are fine within the frame suit
/// volumes and moving content. Tiles of one frame suit content that stands still for a while. Fitted weights for such
/// tiles do not always pay.
std::vector<prediction::Effort> efforts_of(Effort effort, bool moved) {
  std::vector<prediction::Effort> efforts(1);
  efforts[0].moved = moved;
  if (effort == Effort::kSlow) {
    prediction::Effort e;
    e.classes = prediction::kMaxClasses;
    e.rounds = 6;
    e.tap_set = 3;
    e.frame_step = e.row_step = 1;
    e.moved = moved;
    e.same_motion = true;
    efforts.push_back(e);
    e.log2_edge = 3;
    e.log2_cell = 3;
    e.same_motion = false;
    efforts.push_back(e);
    e.same_motion = true;
    e.log2_edge = 4;
    e.log2_frames = 0;
    efforts.push_back(e);
  }
  return efforts;
}

// What a codeword begins with in a stream whose codewords are of several kinds (FORMAT.md "Kinds").
constexpr std::uint8_t kNumbers = 0;
constexpr std::uint8_t kLabels = 1;
constexpr std::uint8_t kMixed = 2;

/// The block decoders, for one thread.
struct Coders {
  explicit Coders(SimdLevel simd) : usual(simd), ahead(simd), labels(simd) {}
  prediction::BlockDecoder usual;
  prediction::AheadDecoder ahead;
  labels::LabelDecoder labels;
  mixed::MixedDecoder mixed;

  void decode(const StreamHeader& header, const BlockSamples<MutableVolumeView>& block, const std::uint8_t* codeword,
              std::size_t size, int most_frames = prediction::kAllFrames) {
    if (header.names_kinds()) {
      if (size == 0) bad("a codeword without its kind");
      const std::uint8_t kind = *codeword++;
      --size;
      if (kind == kLabels && header.labels) return labels.decode(block, codeword, size, most_frames);
      if (kind == kMixed && header.mixed) return mixed.decode(block, codeword, size);
      if (kind != kNumbers)
        bad("a codeword of kind " + std::to_string(kind) + ", which the stream's header does not name");
    }
    if (header.known_ahead)
      ahead.decode(block, codeword, size, most_frames);
    else
      usual.decode(block, codeword, size, header.moved, most_frames);
  }
};

[[noreturn]] void refuse_coefficients() {
  fail(ErrorKind::kUnsupported, "the predictive profile has no coefficients; use the dense or the fast one");
}

template <class View>
BlockSamples<View> block_of(const View& plane, int bits, const BlockGrid& grid, int block) {
  const BlockGrid::Patch p = grid.patch(grid.table().lowest(0), block / grid.columns(), block % grid.columns());
  return {plane, p.y, p.x, p.height, p.width, bits};
}

struct BlockTask {
  int component;
  int block;
};

/// Whether two blocks of a component have the same samples in the first frames.
bool are_equal(const BlockSamples<VolumeView>& a, const BlockSamples<MutableVolumeView>& b, int frames) {
  const std::size_t row = static_cast<std::size_t>(a.width) * static_cast<std::size_t>(a.plane.bytes_per_sample);
  for (int z = 0; z < frames; ++z)
    for (int y = 0; y < a.height; ++y)
      if (std::memcmp(a.row(z, y), b.row(z, y), row) != 0) return false;
  return true;
}

class PredictiveEncoder final : public GopEncoder {
 public:
  PredictiveEncoder(const StreamHeader& header, const BackendOptions& options, bool checks)
      : header_(header),
        efforts_(efforts_of(options.effort, header.moved)),
        checks_(checks),
        simd_(options.simd),
        pool_(options.threads, options.workers) {
    for (int i = 0; i < pool_.threads(); ++i) workers_.emplace_back(options.simd);
  }

  int depth() const override { return 1; }

  void push(const Gop& gop, const GopChoices&) override {
    const StageTimer timer(time_, [this] { return pool_.times(); });
    auto& geometry = geometries_[gop.frames()];
    if (!geometry) geometry = std::make_unique<StreamGeometry>(header_, gop.frames());
    coded_.components.resize(header_.components.size());
    std::vector<BlockTask> tasks;
    for (int c = 0; c < geometry->components(); ++c) {
      auto& component = coded_.components[static_cast<std::size_t>(c)];
      component.grid = &geometry->grid(c);
      component.plan = layer_plan(header_, *component.grid);
      component.blocks.resize(static_cast<std::size_t>(component.grid->blocks()));
      for (int b = 0; b < component.grid->blocks(); ++b) tasks.push_back({c, b});
    }
    pool_.parallel_for(static_cast<int>(tasks.size()), [&](int i, int worker) {
      const BlockTask& t = tasks[static_cast<std::size_t>(i)];
      auto& component = coded_.components[static_cast<std::size_t>(t.component)];
      CodedBlock& out = component.blocks[static_cast<std::size_t>(t.block)];
      code(block_of(gop.plane(t.component), header_.video.format.bits, *component.grid, t.block),
           frames_to_decode(coded_blocks_ + static_cast<std::uint64_t>(i)), workers_[static_cast<std::size_t>(worker)],
           out.bytes);
      out.top.assign(1, out.bytes.empty() ? 0 : 1);
      out.offset.assign(1, 0);
      out.size.assign(1, static_cast<std::uint32_t>(out.bytes.size()));
      out.bits.assign(1, 0);
    });
    coded_blocks_ += tasks.size();
    pending_ = true;
  }

  void push(CoefficientGop&, const GopChoices&) override { refuse_coefficients(); }
  void transform(const Gop&, const GopChoices&, CoefficientGop&) override { refuse_coefficients(); }

  bool pull(CodedGop& out) override {
    if (!std::exchange(pending_, false)) return false;
    out = std::exchange(coded_, {});
    return true;
  }

  double seconds_transform() const override { return 0; }
  double seconds_coder() const override { return time_.seconds; }
  const ThreadPool* pool() const override { return &pool_; }

 private:
  // With checks, one block in so many is decoded, and the first frames of one in fewer. Decoding costs two thirds of
  // coding.
  static constexpr std::uint64_t kBlocksForDecoded = 16;
  static constexpr std::uint64_t kBlocksForBegun = 8;
  static constexpr int kFramesBegun = 4;  // the last one has all frames before it that a prediction looks at

  /// Of the block with this number in the stream.
  int frames_to_decode(std::uint64_t number) const {
    if (!checks_) return 0;
    if (number % kBlocksForDecoded == kBlocksForDecoded - 1) return prediction::kAllFrames;
    return number % kBlocksForBegun == 0 ? kFramesBegun : 0;
  }

  /// The coders of one thread.
  struct Worker {
    explicit Worker(SimdLevel simd) : coder(simd), ahead(simd), labels(simd) {}
    prediction::BlockEncoder coder;
    prediction::AheadEncoder ahead;  // with static contexts
    labels::LabelEncoder labels;
    mixed::MixedEncoder mixed;
    std::unique_ptr<Coders> decoders;  // once a block has been decoded
    std::vector<std::uint8_t> other;
    std::vector<std::uint8_t> label_codeword;  // if it was coded before the numbers
  };

  void code(const BlockSamples<VolumeView>& block, int frames_to_decode, Worker& w,
            std::vector<std::uint8_t>& out) const {
    out.clear();
    w.label_codeword.clear();
    if (header_.known_ahead) {
      w.ahead.encode(block, out, most_for_numbers(block, w));
      check(w.ahead, out);
    } else {
      for (std::size_t i = 0; i < efforts_.size(); ++i) {
        w.other.clear();
        w.coder.encode(block, efforts_[i], w.other);
        if (i > 0 && w.other.size() >= out.size()) continue;
        out.swap(w.other);
        check(w.coder, out);
      }
    }
    const bool is_unchecked =
        header_.names_kinds() && (!out.empty() || !w.label_codeword.empty()) && choose_kind(block, w, out);
    if (is_unchecked) frames_to_decode = prediction::kAllFrames;
    if (frames_to_decode > 0) decode(block, out, std::min(frames_to_decode, block.frames()), w);
  }

  /// Codes a large block as labels, in streams that have any: what numbers may then take in the first frames, before
  /// they are given up. All frames might tell otherwise, but the effort with static contexts looks at time first.
  prediction::AheadEncoder::Most most_for_numbers(const BlockSamples<VolumeView>& block, Worker& w) const {
    constexpr std::int64_t kLarge = std::int64_t{1} << 19;
    constexpr int kParts = 4;
    constexpr double kPlainly = 1.15;
    if (!header_.labels || std::int64_t{block.frames()} * block.height * block.width < kLarge) return {};
    w.labels.encode(block, w.label_codeword);
    const int frames = block.frames() / kParts;
    if (w.label_codeword.empty() || frames == 0) return {};
    return {frames, static_cast<std::size_t>(kPlainly * static_cast<double>(w.labels.bytes_until(frames)))};
  }

  /// Codes the block as other kinds, too, and takes the smallest codeword, with its kind before it. Returns whether it
  /// is to be decoded: there is no other check of mixed contexts.
  bool choose_kind(const BlockSamples<VolumeView>& block, Worker& w, std::vector<std::uint8_t>& out) const {
    std::uint8_t kind = kNumbers;
    const auto try_kind = [&](std::uint8_t other, auto& coder) {
      w.other.clear();
      coder.encode(block, w.other, out.size() - 1);
      if (w.other.empty()) return;
      out.swap(w.other);
      kind = other;
    };
    if (!w.label_codeword.empty()) {
      if (out.empty() || w.label_codeword.size() < out.size()) {
        out.swap(w.label_codeword);
        kind = kLabels;
      }
    } else if (header_.labels) {
      try_kind(kLabels, w.labels);
    }
    if (kind == kLabels) check(w.labels, out);
    if (header_.mixed) try_kind(kMixed, w.mixed);
    out.insert(out.begin(), kind);
    return kind == kMixed && checks_;
  }

  template <class Coder>
  void check(const Coder& coder, const std::vector<std::uint8_t>& out) const {
    require(!checks_ || out.empty() || coder.says_what_was_coded(out.data(), out.size()), ErrorKind::kMismatch,
            "the codeword of a block does not say what was coded");
  }

  /// Decodes the first frames of a block and compares them.
  void decode(const BlockSamples<VolumeView>& block, const std::vector<std::uint8_t>& codeword, int frames,
              Worker& w) const {
    VideoInfo video = header_.video;
    video.width = block.width;
    video.height = block.height;
    video.format = {ColourModel::kGrey, block.bits, 0, 0, false, header_.video.format.is_signed};
    Gop gop(video, frames);
    gop.set_frames(frames);
    BlockSamples<MutableVolumeView> back{gop.plane(0), 0, 0, block.height, block.width, block.bits};
    try {
      if (codeword.empty()) {
        prediction::BlockDecoder::clear(back);
      } else {
        if (!w.decoders) w.decoders = std::make_unique<Coders>(simd_);
        back.plane.shape.frames = block.frames();  // there is memory for those that are decoded
        w.decoders->decode(header_, back, codeword.data(), codeword.size(), frames);
      }
    } catch (const Error& e) {
      // the encoder itself wrote the codeword
      if (e.kind() == ErrorKind::kBadStream) fail(ErrorKind::kMismatch, e.what());
      throw;
    }
    require(are_equal(block, back, frames), ErrorKind::kMismatch, "a block decodes to other samples than were coded");
  }

  StreamHeader header_;
  std::vector<prediction::Effort> efforts_;
  bool checks_;
  SimdLevel simd_;
  ThreadPool pool_;
  std::deque<Worker> workers_;  // one per thread
  std::uint64_t coded_blocks_ = 0;
  std::map<int, std::unique_ptr<StreamGeometry>> geometries_;  // by number of frames; results refer to them
  CodedGop coded_;
  bool pending_ = false;
  StageTime time_;
};

class PredictiveDecoder final : public GopDecoder {
 public:
  PredictiveDecoder(const StreamHeader& header, const BackendOptions& options)
      : header_(header), pool_(options.threads, options.workers) {
    for (int i = 0; i < pool_.threads(); ++i) coders_.emplace_back(options.simd);
  }

  int depth() const override { return 1; }

  void push(const LayeredGop& received, std::vector<std::string>* damage) override {
    received_ = &received;
    damage_ = damage;
  }

  bool pull(Gop& gop) override {
    if (!received_) return false;
    const ScopeTimer timer(seconds_);
    const LayeredGop& in = *std::exchange(received_, nullptr);
    gop.set_frames(in.frames);
    std::vector<BlockTask> tasks;
    for (std::size_t c = 0; c < in.components.size(); ++c)
      for (int b = 0; b < in.components[c].grid->blocks(); ++b) tasks.push_back({static_cast<int>(c), b});
    std::mutex mutex;
    pool_.parallel_for(static_cast<int>(tasks.size()), [&](int i, int worker) {
      const BlockTask& t = tasks[static_cast<std::size_t>(i)];
      const auto& component = in.components[static_cast<std::size_t>(t.component)];
      const BlockSamples<MutableVolumeView> samples =
          block_of(gop.plane(t.component), header_.video.format.bits, *component.grid, t.block);
      try {
        decode(samples, component.blocks[static_cast<std::size_t>(t.block)][0],
               coders_[static_cast<std::size_t>(worker)]);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kBadStream || !damage_) throw;
        prediction::BlockDecoder::clear(samples);
        const std::lock_guard lock(mutex);
        damage_->push_back("component " + std::to_string(t.component) + ", block " + std::to_string(t.block) + ": " +
                           e.what());
      }
    });
    return true;
  }

  bool pull(CoefficientGop&) override { refuse_coefficients(); }
  void inverse(CoefficientGop&, Gop&) override { refuse_coefficients(); }
  double seconds_transform() const override { return 0; }
  double seconds_coder() const override { return seconds_; }
  const ThreadPool* pool() const override { return &pool_; }

 private:
  void decode(const BlockSamples<MutableVolumeView>& samples, const LayeredSegment& segment, Coders& coders) const {
    if (segment.top > 1) bad("a block of " + count_of(segment.top, "plane") + " in the predictive profile");
    if (segment.parts.empty() || segment.top == 0) return prediction::BlockDecoder::clear(samples);
    if (segment.parts[0].low > 0) bad("a block without its codeword");
    coders.decode(header_, samples, segment.parts[0].data, segment.parts[0].size);
  }

  StreamHeader header_;
  ThreadPool pool_;
  std::deque<Coders> coders_;  // one per thread
  const LayeredGop* received_ = nullptr;
  std::vector<std::string>* damage_ = nullptr;
  double seconds_ = 0;
};

}  // namespace

std::unique_ptr<GopEncoder> make_predictive_encoder(const StreamHeader& header, const BackendOptions& options) {
  return std::make_unique<PredictiveEncoder>(header, options, false);
}

std::unique_ptr<GopDecoder> make_predictive_decoder(const StreamHeader& header, const BackendOptions& options) {
  return std::make_unique<PredictiveDecoder>(header, options);
}

const Backend& checked_prediction() {
  static const Backend backend{
      cpu_backend().name,
      [](const StreamHeader& header, const BackendOptions& options) -> std::unique_ptr<GopEncoder> {
        return std::make_unique<PredictiveEncoder>(header, options, true);
      },
      [](const StreamHeader& header, const Reduction&, const BackendOptions& options) {
        return make_predictive_decoder(header, options);
      }};
  return backend;
}

}  // namespace trivelet
