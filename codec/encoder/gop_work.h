// A GOP on its way through an encoder: as it was pushed, as the backend coded it, and as it is to be measured.
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
  bool anew = true;  ///< as KeySchedule says
  bool run = true;   ///< as KeySchedule says
  bool has_hash = false;
  std::uint64_t hash = 0;
  float step = 0;
  float rounding_step = 0;
  std::vector<std::uint8_t> frame_gains;
  GopKey wanted_key = GopKey::kFirst;  ///< if it has motion
  int levels = 0;                      ///< temporal ones, if it has motion
  bool moves = false;                  ///< it need not be tried without motion
  std::shared_ptr<const GopMotion> motion;
  bool key_is_planned = false;   ///< KeyPlan was told of its key before the GOP was coded
  const Gop* samples = nullptr;  ///< where they are still there when it is drained
  bool measures = false;         ///< errors are to be measured

  std::uint64_t motion_bytes() const;
  bool open() const { return motion && motion->places.key == GopKey::kOpen; }
  const MotionPlaces* places() const { return motion ? &motion->places : nullptr; }
  /// Takes what the backend decided.
  void take_motion(const CodedGop& coded);
};

/// The chunks of a GOP, layer by layer.
struct GopChunks {
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<ChunkEntry> entries;
};

/// A GOP that the backend has coded, and what becomes of it. Used again for its memory.
struct GopWork {
  CodedGop coded;
  PendingGop gop;
  std::unique_ptr<RateControl> control;  ///< dense profile
  std::vector<Cuts> cuts;                ///< of the layers
  LayeredGop layers;
  GopChunks chunks;
  std::uint64_t number = 0;  ///< OutputStage counts
  std::exception_ptr error;
};

/// A GOP that is written but for its errors in the index, which is written last.
struct MeasureTask {
  PendingGop gop;
  std::unique_ptr<RateControl> control;
  std::vector<Cuts> cuts;
  std::vector<double> predicted;                     ///< their errors
  std::vector<std::size_t> layers;                   ///< that are measured; none: the errors are as in GOPs before
  std::optional<Gop> samples;                        ///< for that, else gop.samples
  std::function<void(Gop& gop, int first)> fetch{};  ///< else they come from there, as from CodedGop::samples
  bool spare = false;                                ///< `samples` go back to the measurer's spare ones
  std::shared_ptr<const CodedKey> before;            ///< the key frame before an open GOP
};

/// Writes the chunks of a GOP into `out`. `with` null: by the calling thread alone. Any thread may call it.
void make_chunks(const StreamHeader& header, const LayeredGop& layers, GopChunks& out, ThreadPool* with);

/// What can be done to a coded GOP before those before it are written: layers and chunks. `with` null: by the calling
/// thread alone. Any thread may call it.
void divide_gop(const EncoderContext& context, GopWork& work, ThreadPool* with);

/// The errors of a GOP at these cuts of its layers, as its coefficients predict them.
std::vector<double> predicted_errors(const StreamHeader& header, const RateControl& control,
                                     const std::vector<Cuts>& layers);

}  // namespace trivelet
