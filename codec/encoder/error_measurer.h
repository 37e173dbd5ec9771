// Finds the errors of layers that the index of a stream states: measured at some layers of some GOPs, predicted from
// coefficients at the others. With a target it also measures what one GOP errs at given cuts.
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

/// Three kinds of threads use it, each its own functions: the thread that calls the encoder; the thread that writes,
/// which is the same one where no OutputStage runs; and, after start_threads(), its own threads, which measure.
class ErrorMeasurer {
 public:
  /// With an observer, that gets what was measured; else it is kept for write_errors().
  ErrorMeasurer(EncoderContext& context, EncoderObserver* observer);
  ~ErrorMeasurer();

  // By the thread that calls the encoder
  /// Tasks are measured by threads of its own, of which there are none outside the dense profile. Throws
  /// std::system_error where the system starts no more threads.
  void start_threads();
  /// Ends its threads; what they have not measured yet is dropped.
  void stop_threads();
  /// Makes memory for samples that are measured, once. It is page-locked before the search for motion starts: locking
  /// blocks until running searches end, and a copy to other memory takes many times as long.
  void make_spare_samples();
  /// Throws what went wrong in threads that measure, if anything did.
  void check();
  /// Waits until all is measured. Throws what went wrong.
  void finish();
  /// The errors of all that was measured, into the index.
  void write_errors(std::vector<GopInfo>& index);

  // By the thread that calls the encoder, with a target
  /// What was learnt from GOP to GOP is forgotten.
  void begin_run();
  /// Measures the GOP at some of these cuts, if what was measured before is too long ago or does not apply.
  void measure(const Gop& gop, const PendingGop& p, RateControl& control, const std::vector<Cuts>& layers);
  /// Errors of layers as far as GOPs were measured.
  const MeasuredErrors& measured() const { return measured_; }
  /// The error of a GOP of large pictures without motion, by a sample where that tells it.
  double likely_error(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts);
  /// What a decoder would make of it.
  double decoded_error(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts);
  /// Whether errors can be found by a sample: smaller blocks are mostly border.
  bool sample_tells_errors() const { return context_.header.block_size() >= 128; }

  // By the thread that writes
  /// What is to be measured of a GOP that was written; takes its control and cuts. `later`: the observer decides.
  MeasureTask task_for(GopWork& work, bool& later);
  /// Measures now, or has it done by a thread.
  void begin(MeasureTask task);

 private:
  /// What the index says of a GOP, once all before it are measured.
  struct Result {
    std::vector<double> predicted;
    std::optional<SampleErrorModel> measured;  ///< of this GOP; none: as of those before
  };

  bool leaves_key(const PendingGop& p) const { return p.measures && p.motion && p.motion->places.ends_with_key(); }
  void run(int threads);
  void measure(MeasureTask& task, ThreadPool& with);
  double error_of_decoder(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts);
  Gop take_samples(int frames, bool& spare);
  void give_back_samples(MeasureTask& task);
  void keep_key(const Gop& gop, const PendingGop& p, const RateControl& control, const std::vector<Cuts>& layers);
  /// At some of the layers' cuts. `before`: the key frame before an open GOP.
  std::vector<SampledError> sampled_errors(const Gop& gop, const PendingGop& p, const RateControl& control,
                                           const std::vector<Cuts>& layers, const std::vector<std::size_t>& points,
                                           const CodedKey* before, ThreadPool& with);
  /// The mean of the same.
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
  std::vector<Gop> spare_samples_;  ///< of GOPs and of key frames
  bool has_spare_samples_ = false;
  std::mutex results_mutex_;
  std::vector<Result> results_;  ///< GOP by GOP, where errors come after the GOP

  bool threaded_ = false;
  StageQueue<MeasureTask> tasks_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::list<Worker> workers_;  ///< last: they use the others
};

}  // namespace trivelet
