// One stream from several encoders, each of which makes some of its GOPs, anywhere: byte for byte that of one Encoder.
//
//   who has the frames     deals out GOPs with their numbers (KeySchedule of encoder_params.h tells which begin anew)
//   PartEncoder            makes a GopRecord of each; keeps its samples until it is told whether to measure errors,
//   which it
//                          does beside coding others where a device codes
//   BytePlan               with a target for bytes: divides them when all records are there; fit() then makes packets
//   StreamAssembly         takes records in their order, writes them, plans which are measured, and ends the stream
//
// Those who share a stream agree on its header: PartEncoder::head() of all are equal. The GOPs of a run, as KeySchedule
// has it, go to one encoder, in their order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "codec/encoder/encoder_observer.h"
#include "codec/encoder/encoder_params.h"
#include "codec/format/stream_writer.h"
#include "codec/measure/measuring_plan.h"
#include "codec/rate/byte_plan.h"
#include "trivelet/codec.h"

namespace trivelet {

/// A GOP as it comes to an encoder.
struct GopTask {
  std::uint64_t number = 0;
  std::uint64_t first_frame = 0;
  bool anew = true;                  ///< as KeySchedule says
  bool run = true;                   ///< likewise
  std::vector<std::uint8_t> seed{};  ///< with a target: that of the record of GOP 0, where another run begins
};

/// A GOP that was coded.
struct GopRecord {
  std::uint64_t number = 0;
  bool anew = true;
  GopInfo info;                          ///< of its packet; offset, and errors of layers, are not known yet
  std::vector<double> predicted;         ///< errors of its layers (measuring_plan.h); none: nobody knows them
  bool asks = false;                     ///< waits to be told whether it is measured
  std::vector<std::size_t> measured_at;  ///< layers, of which GopErrors come, where that was decided at once
  std::vector<std::uint8_t> seed;        ///< of GOP 0, with a target
  bool waits = false;                    ///< for its bytes, by `waiting`; the packet comes later, by PartEncoder::fit()
  WaitingGop waiting;
  std::uint64_t size = 0;           ///< of `bytes`
  std::vector<std::uint8_t> bytes;  ///< the packet, and boxes behind it; empty where who made it writes it

  std::vector<std::uint8_t> serialise() const;
  static GopRecord parse(const std::vector<std::uint8_t>& bytes);
};

/// Of a GOP that was measured: mean squared errors of the layers that GopRecord or MeasuringPlan named.
struct GopErrors {
  std::uint64_t number = 0;
  std::vector<double> errors;
};

class EncoderCore;

/// Used by one thread, but for make_gop(), which any thread may call.
class PartEncoder final : public EncoderObserver {
 public:
  /// As Encoder.
  PartEncoder(const VideoInfo& info, const EncoderParams& params, const Backend* backend = nullptr);
  ~PartEncoder() override;

  const StreamHeader& header() const;
  const EncoderParams& params() const;
  /// For whoever deals out GOPs.
  KeySchedule schedule() const;
  /// What stands before the first GOP of the stream.
  const std::vector<std::uint8_t>& head() const { return head_; }
  /// For push(); any thread may ask.
  Gop make_gop();
  void push(Gop gop, const GopTask& task);
  /// Records that ask and are not settled, at most: their samples are kept.
  std::size_t most_asked() const;
  /// Takes what is done without waiting for it.
  void advance();
  /// Waits until all that was pushed is done; errors may still be measured.
  void flush();
  /// A GOP that is done, in the order of pushes.
  std::optional<GopRecord> next();
  /// Errors of GOPs that next() gives before them. Throws what went wrong.
  std::vector<GopErrors> take_errors();
  /// GOPs that were pushed and not settled, or are measured still.
  std::size_t unsettled() const;
  /// Of a record that asks: measures the errors of these layers, as MeasuringPlan chose them; or nothing, if none.
  void settle(std::uint64_t number, const std::vector<std::size_t>& layers);
  /// Makes the packet of a GOP that waits, of so many bytes; `slope` as BytePlan says. next() gives it.
  void fit(std::uint64_t number, std::uint64_t bytes, double slope);

  // EncoderObserver: of its own encoder alone
  void gop_written(WrittenGop gop) override;
  void errors_measured(std::uint64_t number, std::vector<double> errors) override;

 private:
  struct Kept;
  class Bytes;
  void take_waiting();
  void free_uploaded();
  bool kept(std::uint64_t number) const;

  std::vector<std::uint8_t> head_;
  std::unique_ptr<Bytes> sink_;
  mutable std::mutex mutex_;  ///< of what follows
  std::map<std::uint64_t, std::unique_ptr<Kept>> kept_;
  std::vector<GopRecord> done_;
  std::vector<GopErrors> measured_;
  std::size_t measuring_ = 0;                     ///< GOPs
  std::map<std::uint64_t, std::size_t> waiting_;  ///< where they are among those spooled
  std::vector<Gop> free_;
  std::optional<Gop> uploading_;       ///< on its way to a device
  std::unique_ptr<EncoderCore> core_;  ///< last: its threads use the others
};

class StreamAssembly {
 public:
  /// Writes the head. `head`: of a PartEncoder. `skip`: told how many bytes are left out, of records without theirs,
  /// which go where `position_of()` says; null where all have them.
  StreamAssembly(const StreamHeader& header, const std::vector<std::uint8_t>& head, ByteSink& sink,
                 std::function<void(std::uint64_t bytes)> skip = nullptr);
  /// The number of the next GOP.
  std::uint64_t next() const { return index_.size(); }
  /// Writes it. The layers at which it is measured, if any: is to be, if it asks.
  std::vector<std::size_t> add(const GopRecord& record);
  /// What was measured there; of a GOP that comes later, too.
  void measured(std::uint64_t number, std::vector<double> errors);
  /// Whether all that was to be measured is.
  bool settled() const { return missing_ == 0; }
  /// Writes index and end.
  void finish();
  std::uint64_t frames() const { return frames_; }
  std::uint64_t bytes() const { return out_.position(); }
  const std::vector<GopInfo>& index() const { return index_; }
  const MeasuringPlan& plan() const { return plan_; }
  /// Where in the stream the bytes of a GOP that was added begin.
  std::uint64_t position_of(std::uint64_t number) const { return index_.at(number).offset; }

 private:
  struct Errors {
    std::vector<double> predicted;
    std::vector<std::size_t> layers;  ///< measured
    std::vector<double> measured;
    bool anew = true;
  };
  StreamHeader header_;
  MeasuringPlan plan_;
  StreamWriter out_;
  std::function<void(std::uint64_t)> skip_;
  std::vector<GopInfo> index_;
  std::vector<Errors> errors_;
  std::map<std::uint64_t, std::vector<double>> early_;  ///< measured, of GOPs that were not added yet
  std::uint64_t frames_ = 0;
  std::size_t missing_ = 0;
};

}  // namespace trivelet
