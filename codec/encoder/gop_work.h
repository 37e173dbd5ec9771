// A GOP on its way through an encoder: as pushed, as coded by the backend, and as a task to measure.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "codec/backend.h"
#include "codec/measure/motion_error.h"
#include "codec/rate/rate_control.h"

namespace trivelet {

class EncoderContext;

/// A GOP that was pushed.
struct PendingGop {
  std::uint64_t number = 0;
  std::uint64_t first_frame = 0;
  std::vector<FrameTime> times;
  int frames = 0;
  bool must_close = true;  ///< KeySchedule::Start::must_close
  bool run = true;         ///< KeySchedule::Start::run
  bool has_hash = false;
  std::uint64_t hash = 0;
  float step = 0;
  float still_step = 0;  ///< GopChoices::still_step
  float rounding_step = 0;
  std::vector<std::uint8_t> frame_gains;
  GopKey wanted_key = GopKey::kFirst;  ///< if it has motion
  int levels = 0;                      ///< temporal levels, if it has motion
  bool moves = false;                  ///< coding without motion need not be tried
  std::shared_ptr<const GopMotion> motion;
  bool key_is_planned = false;   ///< KeyPlan::coded() was called before the GOP was coded
  const Gop* samples = nullptr;  ///< null if they are gone when the GOP is drained
  bool measures = false;         ///< its errors are to be measured

  std::uint64_t motion_bytes() const;
  bool open() const { return motion && motion->places.key == GopKey::kOpen; }
  const MotionPlaces* places() const { return motion ? &motion->places : nullptr; }
  /// Takes the backend's decisions.
  void take_motion(const CodedGop& coded);
};

/// The chunks of a GOP, layer by layer.
struct GopChunks {
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<ChunkEntry> entries;
};

/// A GOP that the backend has coded and the results of later stages. Reused for its memory.
struct GopWork {
  CodedGop coded;
  PendingGop gop;
  std::unique_ptr<RateControl> control;  ///< dense profile, or with limits_bytes()
  std::vector<Cuts> cuts;                ///< of the layers
  LayeredGop layers;
  GopChunks chunks;
  std::uint64_t number = 0;  ///< set by OutputStage
  std::exception_ptr error;
};

/// A GOP that is written except for its errors, which are in the index at the end.
struct MeasureTask {
  PendingGop gop;
  std::unique_ptr<RateControl> control;
  std::vector<Cuts> cuts;
  std::vector<double> predicted;                     ///< predicted errors of the layers
  std::vector<std::size_t> layers;                   ///< to measure; empty: earlier GOPs give the errors
  std::optional<Gop> samples;                        ///< to measure with; if unset: gop.samples
  std::function<void(Gop& gop, int first)> fetch{};  ///< if set, gets the samples, as CodedGop::samples
  bool spare = false;                                ///< `samples` return to the measurer's spare ones
  std::shared_ptr<const CodedKey> before;            ///< the key frame before an open GOP
};

/// Writes the chunks of a GOP into `out`. Null `with`: in the calling thread alone. Any thread may call it.
void make_chunks(const StreamHeader& header, const LayeredGop& layers, GopChunks& out, ThreadPool* with);

/// Divides a coded GOP into layers and chunks, which may run before earlier GOPs are written. Null `with`: in the
/// calling thread alone. Any thread may call it.
void divide_gop(const EncoderContext& context, GopWork& work, ThreadPool* with);

/// Cuts a divided GOP whose chunks and their entries take more than `budget` bytes. Throws BadArgument if that is not
/// possible. Null `with`: in the calling thread alone.
void cut_gop(const EncoderContext& context, std::uint64_t budget, GopWork& work, ThreadPool* with);

/// The errors of a GOP at these cuts of its layers, predicted from its coefficients.
std::vector<double> predicted_errors(const StreamHeader& header, const RateControl& control,
                                     const std::vector<Cuts>& layers);

}  // namespace trivelet
