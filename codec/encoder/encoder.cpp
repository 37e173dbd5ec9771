// Encoder of codec.h, implemented by EncoderCore.

#include <memory>
#include <utility>

#include "codec/encoder/encoder_core.h"

namespace trivelet {

Encoder::Encoder(const VideoInfo& info, const EncoderParams& params, ByteSink& sink, const Backend* backend)
    : core_(std::make_unique<EncoderCore>(info, params, sink, backend, nullptr)) {}

Encoder::Encoder(std::unique_ptr<EncoderCore> core) : core_(std::move(core)) {}

Encoder make_encoder(const VideoInfo& info, const CodingParams& params, ByteSink& sink, const Backend* backend) {
  return Encoder(std::make_unique<EncoderCore>(info, params, sink, backend, nullptr));
}

Encoder::~Encoder() = default;

int Encoder::gop_frames() const { return core_->context().header.gop_frames; }

Gop Encoder::make_gop() const {
  const EncoderContext& context = core_->context();
  return Gop(context.header.video, context.header.gop_frames, context.backend.allocate);
}

void Encoder::push(std::span<const FrameView> frames) {
  require(!frames.empty(), ErrorKind::kBadArgument, "a GOP of 0 frames");
  push(Gop(core_->context().header.video, frames));
}

void Encoder::push(const Gop& gop) {
  PendingGop p = core_->accept(gop.frames());
  const KeySchedule::Start start = core_->keys().start_next(gop.frames(), gop.begins_scene());
  p.must_close = start.must_close;
  p.run = start.run;
  core_->push(gop, std::move(p));
}

void Encoder::push_coefficients(CoefficientGop& coefficients) { core_->push(coefficients); }

CoefficientGop Encoder::transform(const Gop& gop) { return core_->transform(gop); }

void Encoder::finish() { core_->finish(); }

const CodecStats& Encoder::stats() const { return core_->stats(); }
const EncoderParams& Encoder::params() const { return core_->context().params; }

}  // namespace trivelet
