// keep_encoders() of kept_decoders.h.
#include <string>
#include <utility>
#include <vector>

#include "codec/backend.h"
#include "codec/base/kept_states.h"
#include "codec/format/container.h"
#include "trivelet/kept_decoders.h"

namespace trivelet {

namespace {

/// An encoder used by a stream, which returns it.
class TakenEncoder final : public GopEncoder {
 public:
  TakenEncoder(std::shared_ptr<KeptStates<GopEncoder>> from, std::string kind, std::unique_ptr<GopEncoder> encoder)
      : encoder_(std::move(from), std::move(kind), std::move(encoder)),
        transform_(encoder_->seconds_transform()),
        coder_(encoder_->seconds_coder()) {}

  int depth() const override { return encoder_->depth(); }
  int outstanding() const override { return encoder_->outstanding(); }
  bool is_ready() override {
    return encoder_.or_fail([&] { return encoder_->is_ready(); });
  }
  void push(const Gop& gop, const GopChoices& choices) override {
    pushed([&] { encoder_->push(gop, choices); });
  }
  void push(CoefficientGop& coefficients, const GopChoices& choices) override {
    pushed([&] { encoder_->push(coefficients, choices); });
  }
  void push_again(const Gop& gop, const GopChoices& choices) override {
    pushed([&] { encoder_->push_again(gop, choices); });
  }
  void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) override {
    encoder_.or_fail([&] { encoder_->transform(gop, choices, out); });
  }
  SizeEstimate estimate_sizes(const Gop& gop, const GopChoices& choices, bool again) override {
    return encoder_.or_fail([&] { return encoder_->estimate_sizes(gop, choices, again); });
  }
  double squared_error(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) override {
    return encoder_.or_fail([&] { return encoder_->squared_error(gop, choices, cuts); });
  }
  bool pull(CodedGop& out) override {
    const bool more = encoder_.or_fail([&] { return encoder_->pull(out); });
    if (more) --encoder_.in_flight;
    return more;
  }
  std::optional<LevelChoice> choose_levels(const Gop& gop, int most) override {
    return encoder_.or_fail([&] { return encoder_->choose_levels(gop, most); });
  }
  void wait_for_samples() noexcept override { encoder_->wait_for_samples(); }
  double seconds_transform() const override { return encoder_->seconds_transform() - transform_; }
  double seconds_coder() const override { return encoder_->seconds_coder() - coder_; }
  const ThreadPool* pool() const override { return encoder_->pool(); }
  bool has_lanes() const override { return encoder_->has_lanes(); }

 private:
  template <class F>
  void pushed(const F& f) {
    encoder_.or_fail(f);
    ++encoder_.in_flight;
  }

  TakenState<GopEncoder> encoder_;
  double transform_, coder_;  ///< of earlier streams
};

std::string kind_of(const StreamHeader& header, const BackendOptions& o) {
  const std::vector<std::uint8_t> bytes = serialise(header);
  std::string kind(bytes.begin(), bytes.end());
  for (const int v : {o.threads, static_cast<int>(o.simd), static_cast<int>(o.effort), o.keys_in_place ? 1 : 0,
                      o.lookahead ? 1 : 0, o.lanes, o.keeps_samples ? 1 : 0})
    kind += ' ' + std::to_string(v);
  return kind;
}

}  // namespace

std::shared_ptr<const Backend> keep_encoders(std::shared_ptr<const Backend> backend) {
  Backend result = *backend;
  result.make_encoder = [backend = std::move(backend),
                         kept = std::make_shared<KeptStates<GopEncoder>>(kMostKeptEncoders)](
                            const StreamHeader& header, const BackendOptions& options) {
    if (header.motion || options.workers.run || options.geometry) return backend->make_encoder(header, options);
    std::string kind = kind_of(header, options);
    std::unique_ptr<GopEncoder> encoder = kept->take(kind);
    if (!encoder) {
      BackendOptions own = options;
      own.workers = {};  // callbacks belong to the first stream
      encoder = backend->make_encoder(header, own);
    }
    std::unique_ptr<GopEncoder> taken = std::make_unique<TakenEncoder>(kept, std::move(kind), std::move(encoder));
    return taken;
  };
  return std::make_shared<const Backend>(std::move(result));
}

}  // namespace trivelet
