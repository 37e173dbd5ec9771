// Encoders and decoders that work on several GOPs at once, a lane for each (see gop_lanes.h).
#include "codec/cpu/gop_lanes.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "codec/base/fuzzing.h"
#include "codec/cpu/cpu_backend.h"
#include "codec/format/stream_layout.h"
#include "codec/threads/parallel.h"
#include "codec/threads/trace.h"
#include "codec/threads/worker.h"

namespace trivelet {

namespace {

constexpr int kThreadsOfLane = 4;    // do the work of 3.6
constexpr int kThreadsThatCopy = 4;  // saturate the memory

int threads_of(const BackendOptions& options) {
  return options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Times of the stages, over the GOPs that were pulled.
struct LaneTimes {
  double transform = 0, busy_transform = 0, coder = 0, busy_coder = 0;

  template <class Coder>
  static LaneTimes of(const Coder& c) {
    return {c.seconds_transform(), c.busy_transform(), c.seconds_coder(), c.busy_coder()};
  }
  void add(const LaneTimes& from, const LaneTimes& to) {
    transform += to.transform - from.transform;
    busy_transform += to.busy_transform - from.busy_transform;
    coder += to.coder - from.coder;
    busy_coder += to.busy_coder - from.busy_coder;
  }
};

/// Sums the times of an encoder or decoder with lanes.
template <class Base>
class LaneCounter : public Base {
 public:
  bool has_lanes() const override { return true; }
  double seconds_transform() const override { return times_.transform / lane_count(); }
  double seconds_coder() const override { return times_.coder / lane_count(); }
  double busy_transform() const override { return times_.busy_transform; }
  double busy_coder() const override { return times_.busy_coder; }

 protected:
  virtual int lane_count() const = 0;
  /// Adds the times of `coder` since `before`, and sets `before` to its times until now.
  void count(const Base& coder, LaneTimes& before) {
    const LaneTimes now = LaneTimes::of(coder);
    times_.add(std::exchange(before, now), now);
  }

 private:
  LaneTimes times_;
};

/// All lanes: the idle ones, and the busy ones in the order in which they were sent.
template <class Lane>
class Lanes {
 public:
  using Make = std::function<std::unique_ptr<Lane>(int threads)>;
  Lanes(int threads, int most, Make make) : threads_(threads), most_(most), make_(std::move(make)) {
    all_.push_back(make_(threads));
    idle_.push_back(all_.back().get());
  }

  int most() const { return most_; }
  int count() const { return static_cast<int>(all_.size()); }
  bool empty() const { return flying_.empty(); }
  const std::deque<Lane*>& flying() const { return flying_; }

  /// An idle lane; the first one has the most threads and is preferred.
  Lane& idle() {
    if (idle_.empty()) {
      require(count() < most_, ErrorKind::kInternal, "more GOPs beside each other than lanes");
      all_.push_back(make_(std::max(1, threads_ / (most_ - 1))));
      idle_.push_back(all_.back().get());
    }
    return *idle_.back();
  }
  /// Marks the lane as busy.
  void send(Lane& lane) {
    flying_.push_back(&lane);
    idle_.erase(std::find(idle_.begin(), idle_.end(), &lane));
  }
  /// Returns the lane that was sent first and marks it as idle. The caller waits for its work.
  Lane& take() {
    Lane& lane = *flying_.front();
    idle_.push_back(&lane);
    flying_.pop_front();
    const auto before = [this](const Lane* a, const Lane* b) { return number(a) > number(b); };
    std::sort(idle_.begin(), idle_.end(), before);
    return lane;
  }

 private:
  std::size_t number(const Lane* lane) const {
    return static_cast<std::size_t>(
        std::find_if(all_.begin(), all_.end(), [lane](const auto& l) { return l.get() == lane; }) - all_.begin());
  }

  int threads_;
  int most_;
  Make make_;
  std::vector<std::unique_ptr<Lane>> all_;
  std::vector<Lane*> idle_;
  std::deque<Lane*> flying_;
};

BackendOptions with_threads(BackendOptions options, int threads) {
  options.threads = threads;
  return options;
}

/// Copies the frames of `from`; `to` must have the capacity.
void copy_frames(const Gop& from, Gop& to, ThreadPool& pool) {
  to.set_frames(from.frames());
  for (int c = 0; c < from.components(); ++c) {
    const VolumeView v = from.plane(c);
    const MutableVolumeView w = to.plane(c);
    pool.parallel_for(from.frames(), [&](int f, int) {
      for (int y = 0; y < v.shape.height; ++y) std::memcpy(w.row(f, y), v.row(f, y), v.row_bytes());
    });
  }
}

// ----------------------------------------------------------------------------------------------------------- encoding

class EncoderLanes final : public LaneCounter<GopEncoder> {
 public:
  EncoderLanes(const StreamHeader& header, const BackendOptions& options, int most)
      : header_(header),
        copying_(std::min(kThreadsThatCopy, threads_of(options))),
        lanes_(threads_of(options), most, [this, options](int threads) {
          return std::make_unique<Lane>(header_, with_threads(options, threads));
        }) {}

  int depth() const override { return lanes_.most(); }

  void push(const Gop& gop, const GopChoices& choices) override {
    Lane& lane = lanes_.idle();
    copy_frames(gop, lane.gop, copying_);
    lanes_.send(lane);
    lane.worker.begin_or_run([&lane, choices] {
      const trace::Span span("code a GOP");
      lane.encoder->push(lane.gop, choices);
      (void)lane.encoder->pull(lane.coded);
    });
  }
  void push(CoefficientGop& coefficients, const GopChoices& choices) override {
    Lane& lane = lanes_.idle();
    lane.encoder->push(coefficients, choices);
    (void)lane.encoder->pull(lane.coded);
    lanes_.send(lane);
  }
  void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) override {
    lanes_.idle().encoder->transform(gop, choices, out);
  }

  bool pull(CodedGop& out) override {
    if (lanes_.empty()) return false;
    Lane& lane = lanes_.take();
    lane.worker.wait();
    count(*lane.encoder, lane.times);
    out = std::exchange(lane.coded, {});
    out.held = &lane.gop;
    return true;
  }

 protected:
  int lane_count() const override { return lanes_.count(); }

 private:
  struct Lane {
    Lane(const StreamHeader& header, const BackendOptions& options)
        : encoder(make_transform_encoder(header, options)), gop(header.video, header.gop_frames), worker("lane") {}
    std::unique_ptr<GopEncoder> encoder;
    Gop gop;
    CodedGop coded;
    LaneTimes times;
    Worker worker;  ///< last: it ends first
  };

  StreamHeader header_;
  ThreadPool copying_;
  Lanes<Lane> lanes_;
};

// ----------------------------------------------------------------------------------------------------------- decoding

class DecoderLanes final : public LaneCounter<GopDecoder> {
 public:
  DecoderLanes(const StreamHeader& header, const Reduction& reduction, const BackendOptions& options, int most)
      : header_(header),
        reduction_(reduction),
        copying_(std::min(kThreadsThatCopy, threads_of(options))),
        lanes_(threads_of(options), most, [this, options](int threads) {
          return std::make_unique<Lane>(header_, reduction_, with_threads(options, threads));
        }) {}

  int depth() const override { return lanes_.most(); }

  // Whether samples or coefficients are wanted is known only at a pull. Decoding starts here if the last pull took
  // samples.
  void push(const LayeredGop& received, std::vector<std::string>* damage) override {
    Lane& lane = lanes_.idle();
    lane.received = &received;
    lane.damage = damage;
    lane.begun = false;
    lanes_.send(lane);
    if (to_samples_) begin(lane);
  }

  bool pull(Gop& gop) override { return pull(gop, false); }
  bool exchange(Gop& gop) override { return pull(gop, true); }

  bool pull(CoefficientGop& out) override {
    to_samples_ = false;
    if (lanes_.empty()) return false;
    Lane& lane = lanes_.take();
    if (lane.begun) {  // its work is useless: coefficients are wanted
      try {
        lane.worker.wait();
      } catch (const Error&) {  // the same error comes again below
      }
      if (lane.damage) lane.damage->clear();
    }
    lane.decoder->push(*lane.received, lane.damage);
    (void)lane.decoder->pull(out);
    count(*lane.decoder, lane.times);
    return true;
  }
  void inverse(CoefficientGop& coefficients, Gop& gop) override {
    Lane& lane = lanes_.idle();
    lane.decoder->inverse(coefficients, gop);
    count(*lane.decoder, lane.times);
  }

 protected:
  int lane_count() const override { return lanes_.count(); }

 private:
  struct Lane {
    Lane(const StreamHeader& header, const Reduction& reduction, const BackendOptions& options)
        : decoder(make_transform_decoder(header, reduction, options)), worker("lane") {}
    std::unique_ptr<GopDecoder> decoder;
    Gop gop;
    const LayeredGop* received = nullptr;
    std::vector<std::string>* damage = nullptr;
    bool begun = false;
    LaneTimes times;
    Worker worker;  ///< last: it ends first
  };

  void begin(Lane& lane) {
    if (std::exchange(lane.begun, true)) return;
    lane.worker.begin_or_run([this, &lane] {
      const trace::Span span("decode a GOP");
      if (lane.gop.capacity() == 0)
        lane.gop = Gop(reduced_video(header_.video, reduction_), header_.most_frames(reduction_.temporal));
      lane.decoder->push(*lane.received, lane.damage);
      (void)lane.decoder->pull(lane.gop);
    });
  }

  bool pull(Gop& gop, bool may_exchange) {
    to_samples_ = true;
    if (lanes_.empty()) return false;
    for (Lane* lane : lanes_.flying()) begin(*lane);
    Lane& lane = lanes_.take();
    lane.worker.wait();
    count(*lane.decoder, lane.times);
    const int frames = lane.gop.frames();
    gop.set_frames(gop.capacity());
    lane.gop.set_frames(lane.gop.capacity());
    const bool swaps = may_exchange && are_alike(gop, lane.gop);
    lane.gop.set_frames(frames);
    if (swaps)
      std::swap(gop, lane.gop);
    else
      copy_frames(lane.gop, gop, copying_);
    return true;
  }

  StreamHeader header_;
  Reduction reduction_;
  ThreadPool copying_;
  bool to_samples_ = false;  ///< the last pull took samples, so pushed GOPs are decoded at once
  Lanes<Lane> lanes_;
};

}  // namespace

int lanes_for(const StreamHeader& header, const BackendOptions& options, std::uint64_t bytes, std::uint64_t gops) {
  if (!kThreadsAhead || header.motion || header.profile == Profile::kPredictive || options.workers.run) return 1;
  const int threads = threads_of(options);
  if (threads < 2 * kThreadsOfLane) return 1;
  const std::uint64_t by_memory = kLaneBytes * static_cast<std::uint64_t>(threads) / std::max<std::uint64_t>(1, bytes);
  const auto by_threads = static_cast<std::uint64_t>(threads / kThreadsOfLane + 1);
  const std::uint64_t most = gops > 0 ? std::min(gops, by_threads) : by_threads;
  return static_cast<int>(std::clamp<std::uint64_t>(by_memory, 1, most));
}

// Coefficients, samples, and coded bytes, which take about as much as the samples.
std::uint64_t encoding_memory(const StreamHeader& header) {
  return header.samples(header.gop_frames) *
         (sizeof(float) + 2 * static_cast<unsigned>(header.video.format.bytes_per_sample()));
}

std::uint64_t decoding_memory(const StreamHeader& header, const Reduction& reduction) {
  const std::uint64_t samples = header.samples(header.gop_frames) >> (2 * reduction.spatial + reduction.temporal);
  return samples * (sizeof(float) + static_cast<unsigned>(header.video.format.bytes_per_sample()));
}

std::unique_ptr<GopEncoder> make_encoder_lanes(const StreamHeader& header, const BackendOptions& options) {
  return std::make_unique<EncoderLanes>(header, options, options.lanes);
}

std::unique_ptr<GopDecoder> make_decoder_lanes(const StreamHeader& header, const Reduction& reduction,
                                               const BackendOptions& options) {
  return std::make_unique<DecoderLanes>(header, reduction, options, options.lanes);
}

}  // namespace trivelet
