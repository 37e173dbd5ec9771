// Finds the errors of layers for the index: measured at some layers of some GOPs, predicted from coefficients at the
// others. With a target it also measures the error of a GOP at given cuts.
#pragma once

#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "codec/encoder/encoder_context.h"
#include "codec/encoder/encoder_observer.h"
#include "codec/measure/error_sample.h"
#include "codec/measure/measuring_plan.h"
#include "codec/measure/motion_error.h"
#include "codec/measure/sample_error.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"

namespace trivelet {

/// Three kinds of threads use it, each its own functions: the thread that calls the encoder; the writing thread, which
/// is the same one without an OutputStage; and after start_threads() its own measuring threads.
class ErrorMeasurer {
 public:
  /// With an observer measured errors go there; else they are kept for write_errors().
  ErrorMeasurer(EncoderContext& context, EncoderObserver* observer);
  ~ErrorMeasurer();

  // By the thread that calls the encoder
  /// Starts its own measuring threads; profiles other than dense have none. Throws std::system_error if the system
  /// starts no more threads.
  void start_threads();
  /// Ends the threads. Tasks that are not measured yet are dropped.
  void stop_threads();
  /// Allocates memory for measured samples, once. It is page-locked before the search for motion starts: locking blocks
  /// until running searches end, and copies to other memory take many times as long.
  void make_spare_samples();
  /// Throws the error of a measuring thread, if there is one.
  void check();
  /// Waits until all tasks are measured. Throws their error, if there is one.
  void finish();
  /// Writes all measured errors into the index.
  void write_errors(std::vector<GopInfo>& index);

  // By the thread that calls the encoder, with a target
  /// Forgets the measurements of earlier GOPs.
  void begin_run();
  /// Measures the GOP at some of these cuts if earlier measurements are too old or do not apply.
  void measure(const Gop& gop, const PendingGop& p, RateControl& control, const std::vector<Cuts>& layers);
  /// The models of the GOPs measured so far.
  const MeasuredErrors& measured() const { return measured_; }
  /// The error of a GOP without motion at these cuts: by a sample if that is precise enough, else by decoding.
  double likely_error(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts);
  /// The error of the decoded GOP at these cuts.
  double decoded_error(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts);
  /// Whether a sample gives the errors: smaller blocks are mostly border.
  bool sample_tells_errors() const { return context_.header.block_size() >= 128; }

  // By the writing thread
  /// The measuring task of a written GOP; takes its control and cuts. `later`: the observer decides whether it is done.
  MeasureTask task_for(GopWork& work, bool& later);
  /// Measures now or queues the task for a thread.
  void begin(MeasureTask task);

 private:
  /// Input of the index for a GOP, complete when all GOPs before are measured.
  struct Result {
    std::vector<double> predicted;
    std::optional<SampleErrorModel> measured;  ///< of this GOP; none: use the earlier ones
  };

  bool leaves_key(const PendingGop& p) const { return p.measures && p.motion && p.motion->places.ends_with_key(); }
  void run(int threads);
  void measure(MeasureTask& task, ThreadPool& with);
  double error_of_decoder(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts);
  Gop take_samples(int frames, bool& spare);
  void give_back_samples(MeasureTask& task);
  void keep_key(const Gop& gop, const PendingGop& p, const RateControl& control, const std::vector<Cuts>& layers);
  /// Errors at some of the layers' cuts. `before` is the key frame before an open GOP.
  std::vector<SampledError> sampled_errors(const Gop& gop, const PendingGop& p, const RateControl& control,
                                           const std::vector<Cuts>& layers, const std::vector<std::size_t>& points,
                                           const CodedKey* before, ThreadPool& with);
  /// The same as means per sample.
  std::vector<double> measured_errors(const std::vector<std::size_t>& points, const Gop& gop, const PendingGop& p,
                                      const RateControl& control, const std::vector<Cuts>& layers,
                                      const CodedKey* before, ThreadPool& with);

  EncoderContext& context_;
  EncoderObserver* observer_;
  ErrorSample sample_;
  MotionErrorSample moving_sample_;
  std::unique_ptr<GopDecoder> decoder_;  ///< where the backend has no faster way
  MeasuringPlan plan_;
  std::shared_ptr<const CodedKey> key_before_;  ///< of the GOP before, if it left one
  MeasuredErrors measured_;

  std::mutex spare_mutex_;
  std::vector<Gop> spare_samples_;  ///< for GOPs and for key frames
  bool has_spare_samples_ = false;
  std::mutex results_mutex_;
  std::vector<Result> results_;  ///< by GOP, if errors follow their GOPs

  bool threaded_ = false;
  StageQueue<MeasureTask> tasks_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::list<Worker> workers_;  ///< last member: they use the others
};

}  // namespace trivelet
