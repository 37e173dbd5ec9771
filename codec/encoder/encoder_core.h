// The implementation of Encoder (codec.h) and of PartEncoder (encoder_part.h): passes GOPs through the backend and
// writes their packets to the stream.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "codec/encoder/encoder_context.h"
#include "codec/encoder/encoder_observer.h"
#include "codec/encoder/error_measurer.h"
#include "codec/encoder/key_plan.h"
#include "codec/encoder/output_stage.h"
#include "codec/encoder/packet_writer.h"
#include "codec/encoder/spooled_gops.h"
#include "codec/encoder/target_search.h"

namespace trivelet {

/// Used by the thread that calls the encoder. write() runs in the writing thread of the OutputStage if there is one.
class EncoderCore {
 public:
  /// Writes the stream's header. With an `observer`, which assembles the stream from the GOPs of several encoders, the
  /// encoder makes packets only: finish() is not called, and pushed samples must live until the GOP is settled there.
  EncoderCore(const VideoInfo& info, const CodingParams& params, ByteSink& sink, const Backend* backend,
              EncoderObserver* observer);
  ~EncoderCore();

  const EncoderContext& context() const { return context_; }
  const CodecStats& stats() const { return stats_; }
  KeyPlan& keys() { return keys_; }

  /// Makes the record of the next GOP, which has this number of frames.
  PendingGop accept(int gop_frames);
  void push(const Gop& gop, PendingGop p);
  void push(CoefficientGop& coefficients);
  CoefficientGop transform(const Gop& gop);
  /// Writes finished GOPs of the backend, or hands them to the output stage, until at most `in_flight` remain in the
  /// backend.
  void drain(int in_flight);
  void finish();

  // For an observer
  bool has_threads() const { return output_.has_value(); }
  void wait_for_samples() { context_.coder->wait_for_samples(); }
  /// Waits until all pushed GOPs are written.
  void flush();
  /// Measures a GOP that was left undecided.
  void begin_measuring(MeasureTask task) { measurer_.begin(std::move(task)); }
  /// Throws the error of a measuring thread, if there is one.
  void check_measuring() { measurer_.check(); }
  TargetSearch& search() { return search_; }
  /// GOPs that wait for their number of bytes; null without a target for bytes.
  const SpooledGops* spooled() const { return spooled_ ? &*spooled_ : nullptr; }
  /// Writes one of them.
  void write_spooled(std::size_t n, std::uint64_t bytes, double slope);

 private:
  void start_threads();
  int outstanding() const;
  int in_backend() const;
  bool can_take_early() const;
  void check(const Gop& gop) const;
  void prepare(const Gop& gop, PendingGop& p);
  void hash(const Gop& gop, PendingGop& p);
  void push_to_psnr(const Gop& gop, PendingGop p);
  void push_to_bytes(const Gop& gop, PendingGop p);
  void push_at_step(const Gop& gop, PendingGop p);
  bool pull();
  void write(GopWork& work);
  void tell_observer(const PendingGop& p);
  void update_stats();

  EncoderContext context_;
  EncoderObserver* observer_;
  PacketWriter writer_;
  KeyPlan keys_;
  ErrorMeasurer measurer_;
  TargetSearch search_;
  std::optional<SpooledGops> spooled_;
  CodecStats stats_;
  std::uint64_t pushed_ = 0;  ///< number of GOPs
  bool finished_ = false;
  std::vector<PendingGop> pending_;    ///< in the backend
  GopWork current_;                    ///< kept for its memory
  std::optional<OutputStage> output_;  ///< last member: its threads end first
};

}  // namespace trivelet
