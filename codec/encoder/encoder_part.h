// One stream from several encoders, each of which codes some of its GOPs. The result is byte for byte that of one
// Encoder.
//
//   distributor           numbers the GOPs and hands them out; KeySchedule (key_schedule.h) says which are closed
//   PartEncoder           makes a GopRecord of each GOP; keeps its samples until settle() says whether errors are
//                         measured, which it does while a device codes other GOPs
//   BytePlan              with a target for bytes: divides them when all records exist; fit() then makes the packets
//   StreamAssembly        takes the records in order, writes them, plans which are measured, and ends the stream
//
// All encoders of a stream must agree on its header: PartEncoder::head() is equal. The GOPs of a run (KeySchedule) go
// to one encoder, in order.
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
#include "codec/encoder/key_schedule.h"
#include "codec/format/stream_writer.h"
#include "codec/measure/measuring_plan.h"
#include "codec/rate/byte_plan.h"
#include "trivelet/codec.h"

namespace trivelet {

/// A GOP as it is given to an encoder.
struct GopTask {
  std::uint64_t number = 0;
  std::uint64_t first_frame = 0;
  bool must_close = true;            ///< KeySchedule::Start::must_close
  bool run = true;                   ///< KeySchedule::Start::run
  std::vector<std::uint8_t> seed{};  ///< with a target, where a later run begins: GopRecord::seed of GOP 0
};

/// A GOP that was coded.
struct GopRecord {
  std::uint64_t number = 0;
  bool must_close = true;
  GopInfo info;                          ///< of its packet; offset and errors of layers are not known yet
  std::vector<double> predicted;         ///< errors of its layers (measuring_plan.h); empty if unknown
  bool asks = false;                     ///< waits for settle()
  std::vector<std::size_t> measured_at;  ///< layers whose GopErrors follow, if that was decided at once
  std::vector<std::uint8_t> seed;        ///< of GOP 0, with a target
  bool waits = false;                    ///< for its bytes, by `waiting`; PartEncoder::fit() makes the packet later
  WaitingGop waiting;
  std::uint64_t size = 0;           ///< of `bytes`
  std::vector<std::uint8_t> bytes;  ///< the packet and the boxes after it; empty if the encoder's side writes it

  std::vector<std::uint8_t> serialise() const;
  static GopRecord parse(const std::vector<std::uint8_t>& bytes);
};

/// Of a GOP that was measured: mean squared errors of the layers that GopRecord or MeasuringPlan named.
struct GopErrors {
  std::uint64_t number = 0;
  std::vector<double> errors;
};

class EncoderCore;

/// Used by one thread, except for make_gop(), which any thread may call.
class PartEncoder final : public EncoderObserver {
 public:
  /// The same arguments as Encoder.
  PartEncoder(const VideoInfo& info, const EncoderParams& params, const Backend* backend = nullptr);
  ~PartEncoder() override;

  const StreamHeader& header() const;
  const EncoderParams& params() const;
  /// For the distributor of GOPs.
  KeySchedule schedule() const;
  /// The bytes before the first GOP of the stream.
  const std::vector<std::uint8_t>& head() const { return head_; }
  /// Memory for push(). Any thread may call it.
  Gop make_gop();
  void push(Gop gop, const GopTask& task);
  /// Limit of records that ask and are not settled, because their samples are kept.
  std::size_t most_asked() const;
  /// Takes finished GOPs without waiting.
  void advance();
  /// Waits until all pushed GOPs are coded; errors may still be measured.
  void flush();
  /// The next finished GOP, in the order of pushes.
  std::optional<GopRecord> next();
  /// Errors of GOPs that next() returned. Throws the error of a measuring thread, if there is one.
  std::vector<GopErrors> take_errors();
  /// Number of GOPs that were pushed and are not settled, or are still measured.
  std::size_t unsettled() const;
  /// Answers a record that asks: measures the errors of these layers, as chosen by MeasuringPlan; empty: of none.
  void settle(std::uint64_t number, const std::vector<std::size_t>& layers);
  /// Makes the packet of a waiting GOP with this number of bytes; BytePlan gives `slope`. next() returns it.
  void fit(std::uint64_t number, std::uint64_t bytes, double slope);

  // EncoderObserver, called by its own encoder
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
  mutable std::mutex mutex_;  ///< protects the members below
  std::map<std::uint64_t, std::unique_ptr<Kept>> kept_;
  std::vector<GopRecord> done_;
  std::vector<GopErrors> measured_;
  std::size_t measuring_ = 0;                     ///< number of GOPs
  std::map<std::uint64_t, std::size_t> waiting_;  ///< index of a waiting GOP among the spooled ones
  std::vector<Gop> free_;
  std::optional<Gop> uploading_;       ///< being uploaded to a device
  std::unique_ptr<EncoderCore> core_;  ///< last member: its threads use the others
};

class StreamAssembly {
 public:
  /// Writes the header. `head` is PartEncoder::head(). `skip` gets the number of bytes left out for records without
  /// bytes, which belong at position_of(); null if all records have bytes.
  StreamAssembly(const StreamHeader& header, const std::vector<std::uint8_t>& head, ByteSink& sink,
                 std::function<void(std::uint64_t bytes)> skip = nullptr);
  /// The number of the next GOP.
  std::uint64_t next() const { return index_.size(); }
  /// Writes the GOP. Returns the layers at which it is measured: already decided, or to pass to settle() if it asks.
  std::vector<std::size_t> add(const GopRecord& record);
  /// Takes the measured errors of a GOP, which may come before add().
  void measured(std::uint64_t number, std::vector<double> errors);
  /// Whether all errors have arrived.
  bool settled() const { return missing_ == 0; }
  /// Writes index and end.
  void finish();
  std::uint64_t frames() const { return frames_; }
  std::uint64_t bytes() const { return out_.position(); }
  const std::vector<GopInfo>& index() const { return index_; }
  const MeasuringPlan& plan() const { return plan_; }
  /// Position in the stream of the bytes of a GOP that was added.
  std::uint64_t position_of(std::uint64_t number) const { return index_.at(number).offset; }

 private:
  struct Errors {
    std::vector<double> predicted;
    std::vector<std::size_t> layers;  ///< that are measured
    std::vector<double> measured;
    bool must_close = true;
  };
  StreamHeader header_;
  MeasuringPlan plan_;
  StreamWriter out_;
  std::function<void(std::uint64_t)> skip_;
  std::vector<GopInfo> index_;
  std::vector<Errors> errors_;
  std::map<std::uint64_t, std::vector<double>> early_;  ///< measured errors of GOPs that were not added yet
  std::uint64_t frames_ = 0;
  std::size_t missing_ = 0;
};

}  // namespace trivelet
