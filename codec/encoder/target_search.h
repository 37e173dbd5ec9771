// Finds the steps and cuts with which GOPs meet a target: a PSNR per GOP, or bytes of the whole video.
#pragma once

#include <optional>
#include <vector>

#include "codec/encoder/encoder_context.h"
#include "codec/encoder/error_measurer.h"
#include "codec/encoder/key_plan.h"
#include "codec/measure/step_sample.h"
#include "codec/rate/rate_control.h"
#include "codec/rate/spool.h"

namespace trivelet {

/// Used by the thread that calls the encoder. Each GOP is coded once or more with the context's backend; its rate and
/// error predict the step of the next GOP.
class TargetSearch {
 public:
  TargetSearch(EncoderContext& context, ErrorMeasurer& measurer, KeyPlan& keys);

  /// What the first GOP of a stream passes to all runs.
  struct Seed {
    double step = 0;  ///< for the next GOP, like all members
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
  const std::optional<Seed>& seed() const { return seed_; }
  void set_seed(Seed seed) { seed_ = std::move(seed); }

  /// Forgets what earlier GOPs gave if this GOP begins a run.
  void begin_run(const PendingGop& p);
  /// The step of the next GOP; without a target that of all GOPs.
  double step() const { return step_; }

  /// A GOP that was coded.
  struct Coded {
    RateControl control;
    std::vector<Cuts> layers;  ///< with a target PSNR
    RateCurve curve;           ///< with a target for bytes
  };
  /// Codes a GOP that has the target PSNR at its last layer.
  Coded code_to_psnr(const Gop& gop, PendingGop& p);
  /// Codes a GOP more finely than the target of the whole video will need.
  Coded code_to_bytes(const Gop& gop, PendingGop& p);

 private:
  enum class Measured { kNot, kBySample, kWhole };
  struct Budget {
    double share = 0;    ///< of the GOP, in bytes; 0: the rate is unknown
    double known = 0;    ///< of the GOP and all before
    double unknown = 0;  ///< how little they predict the rest of the video, from 1 down
    bool may_be_last = false;
  };

  template <class Needed>
  bool follows_before(const Gop& gop, const StepSample& sample, double finest, double alike, const Needed& needed_for);
  void estimate_step(const Gop& gop, const PendingGop& p, const Budget& budget, double alike);
  template <class Needed>
  bool find_step(const Gop& gop, double finest, double alike, const Needed& needed_for);
  RateControl coded_at_once(const Gop& gop, bool again, PendingGop& p);
  RateControl coded_once(const Gop& gop, bool spare, bool measured_whole, PendingGop& p);
  RateControl coded_as(const Gop& gop, const GopChoices& choice, bool again, PendingGop& p);
  void keep_amounts(const RateControl& control, int frames, int more_planes);
  bool cut_to_error(const Gop& gop, const PendingGop& p, RateControl& control, Measured how, Cuts& best,
                    double& best_slope);
  Budget budget_for(const PendingGop& p) const;
  double run_bytes(double log2_slope) const;
  template <class Bytes>
  double step_within(const Budget& budget, const Bytes& bytes_at) const;
  double step_within(const Budget& budget, const StepAmounts& amounts) const;
  double missing(double wanted, const RateControl& control) const;
  Coded code_found(const Gop& gop, PendingGop& p, const Budget& budget);
  void add_to_run(const RateControl& control, const PendingGop& p);
  Coded held(const Gop& gop, const PendingGop& p, RateControl control, double expected_slope);

  EncoderContext& context_;
  ErrorMeasurer& measurer_;
  KeyPlan& keys_;
  double step_;                 ///< of the next GOP
  double target_error_ = 0;     ///< mean squared
  double aligned_slope_ = 2.7;  ///< log2(slope at which all planes but the last are sent / slope of the step)
  double needed_slope_ = 0.7;   ///< the same where all planes are sent
  double correction_ = 1;       ///< target PSNR: measured error / predicted error
  int corrected_age_ = 0;       ///< GOPs since the last measurement
  std::optional<StepAmounts> amounts_before_;  ///< of the GOP before, in the same run
  int frames_before_ = 0;                      ///< of the GOP before
  double activity_before_ = 0;                 ///< of the GOP before
  bool like_before_ = false;                   ///< the current GOP is like the one before
  bool is_estimated_ = false;                  ///< the backend has the coefficients of the current GOP
  std::vector<RateCurve> run_;                 ///< of the first GOP and those of this run; they predict the next steps
  std::optional<Seed> seed_;
};

}  // namespace trivelet
