// Division of a coded GOP into layers and chunks (gop_work.h).
#include "codec/encoder/gop_work.h"

#include <cmath>
#include <string>

#include "codec/base/limits.h"
#include "codec/encoder/encoder_context.h"
#include "codec/format/chunk_check.h"
#include "codec/measure/measuring_plan.h"
#include "codec/threads/trace.h"

namespace trivelet {

std::uint64_t PendingGop::motion_bytes() const {
  std::uint64_t bytes = 0;
  if (motion)
    for (const auto& section : motion->sections) bytes += section.size();
  return bytes;
}

void PendingGop::take_motion(const CodedGop& coded) {
  motion = coded.motion;
  if (motion) {
    frame_gains.clear();
  } else if (still_step > 0) {
    step = still_step;
    if (rounding_step > 0) rounding_step = still_step;
  }
}

void make_chunks(const StreamHeader& header, const LayeredGop& layers, GopChunks& out, ThreadPool* with) {
  const int distances = header.spatial_levels + 1;
  const int per_layer = layers.temporal_bands() * distances;
  out.bytes.resize(static_cast<std::size_t>(header.layers * per_layer));
  out.entries.resize(out.bytes.size());
  const auto make = [&](int i) {
    const auto n = static_cast<std::size_t>(i);
    out.bytes[n] =
        write_chunk(header, layers, i / per_layer, i % per_layer / distances, header.spatial_levels - i % distances);
    out.entries[n] = chunk_entry(out.bytes[n]);
  };
  if (with) return with->parallel_for(header.layers * per_layer, [&](int i, int) { make(i); });
  for (int i = 0; i < header.layers * per_layer; ++i) make(i);
}

void divide_gop(const EncoderContext& context, GopWork& work, ThreadPool* with) {
  const trace::Span span("layers and chunks");
  const StreamHeader& header = context.header;
  work.layers.frames = work.gop.frames;
  if (header.profile == Profile::kDense || context.limits_bytes()) {
    context.timed(&EncoderStages::layers, !with, [&] {
      const PendingGop& p = work.gop;
      work.control = context.cuts_by_plane()
                         ? std::make_unique<RateControl>(header, work.coded, p.step, p.frame_gains, with)
                         : std::make_unique<RateControl>(header, work.coded, with);
      const RateControl& control = *work.control;
      const double unit = header.lossless ? 1 : static_cast<double>(p.step);
      const Cuts final = control.complete();
      work.cuts = control.layers(final, unit * unit, context.layers_for(control, final, unit * unit));
    });
  }
  context.timed(&EncoderStages::pack, !with, [&] {
    work.control ? work.control->divide(work.cuts, work.layers) : divide_by_plan(work.coded, work.layers);
    make_chunks(header, work.layers, work.chunks, with);
  });
}

void cut_gop(const EncoderContext& context, std::uint64_t budget, GopWork& work, ThreadPool* with) {
  std::uint64_t bytes = 0;
  for (const auto& chunk : work.chunks.bytes) bytes += bytes_in_packet(chunk.size());
  if (bytes <= budget) return;
  RateControl& control = *work.control;
  context.timed(&EncoderStages::layers, !with, [&] {
    double lambda = std::pow(static_cast<double>(work.gop.step), 2);
    Cuts final = work.cuts.back();
    const int layers = context.layers_for(control, final, lambda);
    require(control.fit(budget, layers, lambda, work.layers, final), ErrorKind::kBadArgument,
            "the bound on the rate is too small: GOP " + std::to_string(work.gop.number) + " of " +
                count_of(work.gop.frames, "frame") + " cannot be coded in the " + count_of(budget, "byte") +
                " that are its share; raise EncoderParams::max_rate or lower EncoderParams::layers");
    work.cuts = control.layers(final, lambda, layers);
  });
  context.timed(&EncoderStages::pack, !with, [&] { make_chunks(context.header, work.layers, work.chunks, with); });
}

std::vector<double> predicted_errors(const StreamHeader& header, const RateControl& control,
                                     const std::vector<Cuts>& layers) {
  std::vector<double> errors;
  for (const Cuts& cuts : layers) {
    const bool exact = header.lossless && cuts == control.complete();
    errors.push_back(exact ? kExactLayer : control.mean_error(cuts));
  }
  return errors;
}

}  // namespace trivelet
