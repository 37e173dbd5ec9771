// What an Encoder holds: shared by encoder.cpp, which codes GOPs and writes them, and encoder_targets.cpp, which finds
// the steps and cuts that meet a target.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "codec/backend.h"
#include "codec/base/container.h"
#include "codec/encoder/encoder_params.h"
#include "codec/measure/error_sample.h"
#include "codec/measure/measuring_plan.h"
#include "codec/measure/motion_error.h"
#include "codec/measure/sample_error.h"
#include "codec/measure/step_sample.h"
#include "codec/rate/byte_plan.h"
#include "codec/rate/rate_control.h"
#include "codec/rate/spool.h"
#include "codec/threads/parallel.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/stage_timer.h"
#include "codec/threads/worker.h"
#include "trivelet/codec.h"

namespace trivelet {

struct Encoder::State {
  /// A GOP on its way to the stream.
  struct Pending {
    std::uint64_t number = 0;
    std::uint64_t first_frame = 0;
    std::vector<FrameTime> times;
    int frames = 0;
    bool anew = true;  ///< as KeySchedule says
    bool run = true;   ///< likewise
    bool has_hash = false;
    std::uint64_t hash = 0;
    float step = 0;
    float rounding_step = 0;
    std::vector<std::uint8_t> frame_gains;
    GopKey wanted_key = GopKey::kFirst;  ///< if it has motion
    std::shared_ptr<const GopMotion> motion;
    std::uint64_t motion_bytes() const;
    bool open() const { return motion && motion->places.key == GopKey::kOpen; }
    bool passed_on = false;        ///< pass_on() was called before the GOP was coded
    const Gop* samples = nullptr;  ///< where they are still there when it is drained
    bool measures = false;         ///< errors are to be measured
  };
  struct Spooled {
    Pending gop;
    long offset = 0;  ///< in the spool
    RateCurve curve;
    std::uint64_t least = 0;  ///< as WaitingGop has it
    MeasuredErrors errors;
  };
  /// What the first GOP tells all runs.
  struct Seed {
    double step = 0;  ///< of the next GOP, as of all others here
    double correction = 1;
    double aligned_slope = 0;
    double needed_slope = 0;
    RateCurve curve;

    template <class IO>
    void visit(IO& io) {
      io.real(step);
      io.real(correction);
      io.real(aligned_slope);
      io.real(needed_slope);
      curve.visit(io);
    }
  };

  struct Chunks {
    std::vector<std::vector<std::uint8_t>> bytes;
    std::vector<ChunkEntry> entries;
  };
  /// A GOP that the backend has done, and what becomes of it.
  struct Work {
    CodedGop coded;
    Pending gop;
    std::unique_ptr<RateControl> control;  ///< dense profile
    std::vector<Cuts> cuts;                ///< of the layers
    LayeredGop layers;
    Chunks chunks;
    std::uint64_t number = 0;
    std::exception_ptr error;
  };
  /// A GOP that is written but for its errors in the index, which is written last.
  struct Judgement {
    Pending gop;
    std::unique_ptr<RateControl> control;
    std::vector<Cuts> cuts;
    std::vector<double> predicted;                     ///< their errors
    std::vector<std::size_t> measured_at;              ///< some of the layers; none: as GOPs before
    std::optional<Gop> samples;                        ///< for that, else gop.samples
    std::function<void(Gop& gop, int first)> fetch{};  ///< else they come from there, as from CodedGop::samples
    bool spare = false;                                ///< they go back to spare_samples
    std::shared_ptr<const CodedKey> before;            ///< as sampled_errors() has it
  };
  /// What the index says of a GOP, once all before it are judged.
  struct Judged {
    std::vector<double> predicted;
    std::optional<SampleErrorModel> measured;  ///< of this GOP; none: as of those before
  };
  /// Threads that divide coded GOPs, one that writes them in order, and some that find their errors, while the backend
  /// codes others. The second alone then uses what write_gop() changes.
  class Finisher {
   public:
    Finisher(State& s, int threads);
    ~Finisher();
    void hand_over(Work work);
    /// Waits until so many GOPs at most are not written yet. Throws what went wrong.
    void wait(std::size_t unfinished);
    /// GOPs handed over of which wait() does not know yet that they are written.
    std::size_t unfinished() const { return unfinished_; }
    /// A GOP that was written, for its memory.
    Work used();
    /// Waits until nothing is left to do. Throws what went wrong.
    void finish();
    void judge_later(Judgement judgement) { (void)judgements_.push(std::move(judgement)); }
    /// Throws what went wrong in judging, if anything did.
    void check_judges();

   private:
    void stop();
    void divide(State& s);
    void write(State& s);
    void judge(State& s, int threads);
    std::uint64_t handed_over_ = 0;
    std::size_t unfinished_ = 0;  ///< as the caller knows
    std::vector<Work> used_;
    OrderedQueue<Work> divided_;
    StageQueue<Work> work_;
    StageQueue<Work> done_;
    StageQueue<Judgement> judgements_;
    std::mutex misjudged_mutex_;
    std::exception_ptr misjudged_;
    std::list<Worker> workers_;
  };

  EncoderParams params;
  StreamHeader header;
  ByteSink& sink;
  const Backend& backend;
  const bool of_parts;  ///< it makes some GOPs of a stream
  std::unique_ptr<GopEncoder> coder;
  std::unique_ptr<GopDecoder> decoder;  ///< measures errors, where the backend does not
  ThreadPool pool;                      ///< of rate control and chunks
  ErrorSample sample;
  MotionErrorSample moving_sample;
  CodecStats stats;
  CodecStats written;           ///< what is counted where it is written; in `stats` by add_written()
  mutable EncoderStages times;  ///< likewise, by timed()
  mutable std::mutex written_mutex;
  std::vector<GopInfo> index;
  std::uint64_t position = 0;
  std::uint64_t frames = 0;  ///< written
  bool finished = false;
  MeasuredErrors measured;
  MeasuringPlan plan;
  std::shared_ptr<const CodedKey> key_before;  ///< of the GOP before, if it left one
  bool fewer_layers;                           ///< layers of GOPs that are too small for so many may be empty
  std::vector<Pending> pending;
  Work current;  ///< for its memory
  std::mutex spare_mutex;
  std::vector<Gop> spare_samples;  ///< for judgements, of GOPs and of key frames
  bool has_spare_samples = false;
  std::mutex judged_mutex;
  std::vector<Judged> judged;  ///< GOP by GOP, where errors come after the GOP

  /// Of an encoder that makes some GOPs of a stream (encoder_part.h): takes what was written of one, and in the dense
  /// profile how its errors are found.
  std::function<void(Work&, Judgement*)> hand_over;
  std::function<void(std::uint64_t number, std::vector<double> errors)> hand_over_errors;  ///< what was measured
  std::function<void(const Pending&)> hand_over_written;                                   ///< likewise, with a target
  std::uint64_t pushed = 0;                                                                ///< GOPs

  // With motion
  KeySchedule schedule;
  bool has_key = false;        ///< the GOP pushed last leaves a key frame to the next, so far as is told
  bool left_key = false;       ///< that drained last has left one
  bool coder_has_key = false;  ///< … of samples, as the next samples need it

  // With a target
  double step;                 ///< of the next GOP
  double target_error = 0;     ///< mean squared
  double aligned_slope = 2.7;  ///< log2 of the slope at which all planes but the last are sent, over that of the step
  double needed_slope = 0.7;   ///< the same where all planes are sent
  double correction = 1;       ///< target PSNR: measured error over the predicted one
  int corrected_age = 0;       ///< GOPs since that was measured
  std::optional<StepAmounts> amounts_before;  ///< of the GOP before, in the same run
  int frames_before = 0;                      ///< of it
  double activity_before = 0;                 ///< likewise
  bool like_before = false;                   ///< the GOP pushed last is like that one
  std::unique_ptr<Spool> spool;
  std::vector<Spooled> spooled;
  std::vector<RateCurve> run;  ///< of the first GOP and those of this run, which the steps of the next ones follow
  std::optional<Seed> seed;
  std::map<std::tuple<int, bool, GopKey>, std::unique_ptr<StreamGeometry>> geometries;

  State(const VideoInfo& video, const EncoderParams& p, ByteSink& s, const Backend& b, bool parts);

  /// f(), and its time to a stage. `alone`: by the calling thread without a pool.
  template <class F>
  auto timed(StageTime EncoderStages::*stage, bool alone, const F& f) const {
    struct Add {
      const State& state;
      StageTime EncoderStages::*stage;
      StageTime time{};
      ~Add() { state.add_time(stage, time); }
    } add{*this, stage};
    const StageTimer timer(add.time, [this, alone] { return alone ? ThreadPool::Times() : pool_times(); });
    return f();
  }
  /// What the backend does, f(), and its time to the stages that it is.
  template <class F>
  void code(const F& f) const {
    const StageTime before{coder->seconds_transform(), coder->busy_transform()};
    const double busy_coder_before = coder->busy_coder();
    StageTime all;
    {
      const StageTimer timer(all, [this] { return pool_times(); });
      f();
    }
    if (!coder->pool()) {
      if (!coder->has_lanes()) return add_time(&EncoderStages::wait, all);
      const auto [transform, code_blocks] =
          shared_out(all.seconds, coder->busy_transform() - before.busy, coder->busy_coder() - busy_coder_before);
      add_time(&EncoderStages::transform, transform);
      return add_time(&EncoderStages::coder, code_blocks);
    }
    const StageTime transform{coder->seconds_transform() - before.seconds, coder->busy_transform() - before.busy};
    add_time(&EncoderStages::transform, transform);
    add_time(&EncoderStages::coder, {all.seconds - transform.seconds, all.busy - transform.busy});
  }
  void add_time(StageTime EncoderStages::*stage, const StageTime& time) const;
  ThreadPool::Times pool_times() const;

  // encoder.cpp
  void write(const void* data, std::size_t size);
  void write_box(const char* type, const std::vector<std::uint8_t>& payload);
  /// The next GOP, of so many frames.
  Pending accept(int gop_frames);
  void push(const Gop& gop, Pending p);
  GopChoices choices(const Pending& p) const;
  /// Where the key frame of the next GOP is to stand.
  GopKey next_key(int gop_frames, bool anew) const;
  GopKey closed_key(int gop_frames) const;
  /// What the backend decided about a GOP.
  static void take_motion(const CodedGop& coded, Pending& p);
  /// It is known, or assumed, whether a GOP has motion, and so whether the next one may be open. `places`: those of the
  /// motion; null without.
  void pass_on(const MotionPlaces* places);
  void pass_on(const Pending& p) { pass_on(p.motion ? &p.motion->places : nullptr); }
  std::vector<std::uint8_t> gains(int gop_frames) const;
  int layers_for(const RateControl& control, const Cuts& final, double lambda) const;
  GopHeader head_of(const Pending& p) const;

  // encoder_finish.cpp
  void begin_finishing();
  /// GOPs of the backend's depth that may be with the finisher.
  int lent() const;
  /// GOPs that may stay in the backend when another one is to be pushed.
  int in_backend() const;
  /// Whether the backend has done a GOP, and there are threads that write it.
  bool can_take_early() const;
  /// Writes GOPs that the backend has done, or has them written, until so many are left in it at most.
  void drain(int in_flight);
  /// What can be done to a GOP before those before it are written. `with` null: alone.
  void divide_gop(Work& done, ThreadPool* with) const;
  void write_gop(Work& done);
  /// Now, or in a thread of the finisher's.
  void begin_judging(Judgement judgement);
  /// Whether it is said later, by who has all GOPs, where this one is measured. With motion GOPs that begin anew do so for
  /// every encoder of some.
  bool is_told_later(const Pending& p) const { return of_parts && !header.motion && p.measures; }
  void judge(Judgement& judgement, ThreadPool& with);
  Gop samples_of(int frames_of, bool& spare);
  void let_go(Judgement& judgement);
  void make_spare_samples();
  /// The errors of all that was judged, in the index.
  void write_judged();
  void make_chunks(const LayeredGop& layers, Chunks& out, ThreadPool* with) const;
  std::vector<double> predicted_errors(const RateControl& control, const std::vector<Cuts>& layers) const;
  void write_chunks(const Pending& p, const LayeredGop& layers, const Chunks& chunks,
                    const std::vector<double>& errors);
  void write_controlled(const Pending& p, RateControl& control, const std::vector<Cuts>& layers,
                        const MeasuredErrors& measured_before, LayeredGop& divided);
  void add_written();

  // encoder_targets.cpp
  /// Measures the GOP at some of these cuts, if what was measured before is too long ago or does not apply.
  void measure(const Gop& gop, const Pending& p, RateControl& control, const std::vector<Cuts>& layers);
  /// Where a GOP is to be measured; nowhere if one before is like it.
  std::vector<std::size_t> measuring_points(const Pending& p, const std::vector<double>& predicted);
  bool leaves_key(const Pending& p) const {
    return p.measures && p.motion && p.motion->places.ends_with_key(header.temporal_levels);
  }
  /// Keeps what the GOP behind this one is measured with.
  void keep_key(const Gop& gop, const Pending& p, const RateControl& control, const std::vector<Cuts>& layers);
  /// At some of the layers' cuts. `before`: the key frame before an open GOP.
  std::vector<SampledError> sampled_errors(const Gop& gop, const Pending& p, const RateControl& control,
                                           const std::vector<Cuts>& layers, const std::vector<std::size_t>& points,
                                           const CodedKey* before, ThreadPool& with);
  /// The errors of decoded samples there, mean squared.
  std::vector<double> measured_errors(const std::vector<std::size_t>& points, const Gop& gop, const Pending& p,
                                      const RateControl& control, const std::vector<Cuts>& layers,
                                      const CodedKey* before, ThreadPool& with);
  /// The error of a GOP of large pictures without motion, by a sample where that tells it.
  double likely_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts);
  /// Smaller blocks are mostly border.
  bool sample_tells_errors() const { return header.block_size() >= 128; }
  double measured_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts);
  double decoded_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts);
  template <class Needed>
  bool find_step(const Gop& gop, double finest, double alike, const Needed& needed_for);
  RateControl coded_at_once(const Gop& gop, bool again, Pending& p);
  RateControl coded_once(const Gop& gop, bool spare, bool measured_whole, Pending& p);
  RateControl coded_as(const Gop& gop, const GopChoices& choice, bool again, Pending& p);
  void keep_amounts(const RateControl& control, int frames_of, int more_planes);
  enum class Measured { kNot, kBySample, kWhole };
  bool cut_to_error(const Gop& gop, const Pending& p, RateControl& control, Measured how, Cuts& best,
                    double& best_slope);
  void push_to_psnr(const Gop& gop, Pending p);
  struct Budget {
    double share = 0;    ///< of the GOP, in bytes; 0: nothing is known about the rate
    double known = 0;    ///< of it and all before
    double unknown = 0;  ///< how little they say about the rest of the video, from 1 down
    bool may_be_last = false;
  };
  Budget budget_of(const Pending& p) const;
  double run_bytes(double log2_slope) const;
  double step_within(const Budget& budget, const StepAmounts& amounts) const;
  void push_to_spool(const Gop& gop, Pending p);
  void push_found(const Gop& gop, Pending p, const Budget& budget);
  void add_to_run(const RateControl& control, const Pending& p);
  void put_off(const Gop& gop, const Pending& p, RateControl& control, double expected_slope);
  void write_spooled();
  WaitingGop waiting(const Spooled& s) const;
  void write_fitted(const Spooled& s, std::uint64_t budget, double slope);
  /// Forgets what was learnt from GOP to GOP, if this GOP begins a run.
  void begin_run(const Pending& p);

  std::optional<Finisher> finisher;  ///< last: it ends first
};

}  // namespace trivelet
