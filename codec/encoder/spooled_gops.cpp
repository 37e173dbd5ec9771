// Stores rate control of coded GOPs in a file and writes their packets later (spooled_gops.h).
#include "codec/encoder/spooled_gops.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "codec/base/frame_times.h"
#include "codec/base/limits.h"
#include "codec/encoder/encoder_params.h"
#include "codec/format/container.h"
#include "codec/measure/measuring_plan.h"

namespace trivelet {

namespace {

// A slope at which no byte is worth sending.
constexpr double kWorthless = 1e30;

}  // namespace

void SpooledGops::add(const PendingGop& p, RateControl& control, const RateCurve& curve,
                      const MeasuredErrors& measured) {
  const std::vector<Cuts> nothing(static_cast<std::size_t>(context_.header.layers), control.at(kWorthless));
  std::vector<const BlockGrid*> grids;
  for (int c = 0; c < control.components(); ++c) grids.push_back(&control.grid(c));
  gops_.push_back({p, std::ftell(spool_.file()), curve, control.chunk_bytes(nothing), measured, std::move(grids)});
  context_.timed(&EncoderStages::pack, true, [&] { control.save(spool_.file()); });
}

WaitingGop SpooledGops::waiting(std::size_t n) const {
  const Spooled& s = gops_.at(n);
  WaitingGop w;
  w.curve = s.curve;
  w.head = writer_.head_bytes(s.gop);
  w.least = s.least;
  w.info.first_frame = s.gop.first_frame;
  w.info.frames = s.gop.frames;
  w.info.begin_pts = s.gop.times[0].pts;
  w.info.end_pts = end_of(s.gop.times);
  return w;
}

void SpooledGops::write_all() {
  if (gops_.empty()) return;
  const FrameTime begin = gops_.front().gop.times.front();
  const FrameTime end{end_of(gops_.back().gop.times), 0};
  std::vector<WaitingGop> all;
  std::uint64_t count = 0;
  for (std::size_t n = 0; n < gops_.size(); ++n) {
    all.push_back(waiting(n));
    count += static_cast<std::uint64_t>(gops_[n].gop.frames);
  }
  const auto total = static_cast<std::uint64_t>(
      bytes_wanted(context_.header.video, context_.params, static_cast<double>(count), begin, end));
  const BytePlan bytes(context_.header, std::move(all), total);
  rewind();
  const std::vector<GopInfo>& index = writer_.index();
  for (auto budgets = bytes.next(index, writer_.position()); !budgets.empty();
       budgets = bytes.next(index, writer_.position()))
    for (const std::uint64_t budget : budgets) write(index.size(), budget, bytes.slope());
}

RateControl SpooledGops::load(const Spooled& s) {
  return context_.timed(&EncoderStages::pack, true, [&] {
    spool_.seek(s.offset);
    return RateControl(context_.header, s.grids, spool_.file(), &context_.pool);
  });
}

void SpooledGops::write(std::size_t n, std::uint64_t budget, double slope) {
  const Spooled& s = gops_.at(n);
  const PendingGop& p = s.gop;
  RateControl control = load(s);
  double lambda = std::exp2(slope);
  LayeredGop divided;
  divided.frames = p.frames;
  Cuts final;
  int layers = 0;
  budget = std::min(budget, writer_.bytes_allowed(p));
  const bool fits = context_.timed(&EncoderStages::layers, false, [&] {
    final = control.at(lambda);
    layers = context_.layers_for(control, final, lambda);
    return control.fit(budget, layers, lambda, divided, final);
  });
  require(fits, ErrorKind::kBadArgument,
          "the target is too small: GOP " + std::to_string(p.number) + " cannot be coded in the " +
              count_of(budget, "byte") + " that are its share; raise it or lower EncoderParams::layers");
  std::vector<double> errors;
  if (!context_.cuts_by_plane()) {
    const std::vector<Cuts> cuts = control.layers(final, lambda, layers);
    errors = layer_errors(predicted_errors(context_.header, control, cuts), s.errors);
  }
  writer_.write_divided(p, divided, errors);
}

}  // namespace trivelet
