// Coded GOPs that wait in a temporary file until the number of bytes of each is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/encoder/encoder_context.h"
#include "codec/encoder/packet_writer.h"
#include "codec/measure/sample_error.h"
#include "codec/rate/byte_plan.h"
#include "codec/rate/spool.h"

namespace trivelet {

/// Used by the thread that calls the encoder.
class SpooledGops {
 public:
  /// `path`: EncoderParams::spool_path.
  SpooledGops(EncoderContext& context, PacketWriter& writer, const std::string& path)
      : context_(context), writer_(writer), spool_(path) {}

  std::size_t size() const { return gops_.size(); }
  /// `measured`: the models of the GOPs measured so far.
  void add(const PendingGop& p, RateControl& control, const RateCurve& curve, const MeasuredErrors& measured);
  /// What BytePlan needs of a GOP.
  WaitingGop waiting(std::size_t n) const;
  const PendingGop& gop(std::size_t n) const { return gops_.at(n).gop; }
  /// Writes all GOPs within the target.
  void write_all();
  /// Writes one GOP with this number of bytes; BytePlan gives `slope`.
  void write(std::size_t n, std::uint64_t budget, double slope);
  /// Switches the file from writing to reading.
  void rewind() { spool_.rewind(); }

 private:
  struct Spooled {
    PendingGop gop;
    long offset = 0;  ///< in the spool
    RateCurve curve;
    std::uint64_t least = 0;  ///< WaitingGop::least
    MeasuredErrors errors;
    std::vector<const BlockGrid*> grids;  ///< per component; the backend's encoder keeps them
  };

  RateControl load(const Spooled& s);

  EncoderContext& context_;
  PacketWriter& writer_;
  Spool spool_;
  std::vector<Spooled> gops_;
};

}  // namespace trivelet
