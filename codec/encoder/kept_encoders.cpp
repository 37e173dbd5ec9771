// keep_encoders() of kept_decoders.h.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "codec/backend.h"
#include "codec/format/container.h"
#include "trivelet/kept_decoders.h"

namespace trivelet {

namespace {

/// Unused encoders, most recently used last.
class UnusedEncoders {
 public:
  std::unique_ptr<GopEncoder> take(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(all_.rbegin(), all_.rend(), [&](const auto& e) { return e.first == kind; });
    if (found == all_.rend()) return nullptr;
    std::unique_ptr<GopEncoder> encoder = std::move(found->second);
    all_.erase(std::next(found).base());
    return encoder;
  }
  void give_back(std::string kind, std::unique_ptr<GopEncoder> encoder) {
    std::unique_ptr<GopEncoder> oldest;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    all_.emplace_back(std::move(kind), std::move(encoder));
    if (all_.size() <= kMostKeptEncoders) return;
    oldest = std::move(all_.front().second);
    all_.erase(all_.begin());
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::unique_ptr<GopEncoder>>> all_;
};

/// An encoder used by a stream; the destructor returns it.
class TakenEncoder final : public GopEncoder {
 public:
  TakenEncoder(std::shared_ptr<UnusedEncoders> from, std::string kind, std::unique_ptr<GopEncoder> encoder)
      : from_(std::move(from)),
        kind_(std::move(kind)),
        encoder_(std::move(encoder)),
        transform_(encoder_->seconds_transform()),
        coder_(encoder_->seconds_coder()) {}
  ~TakenEncoder() override {
    if (in_flight_ != 0 || failed_) return;
    try {
      from_->give_back(std::move(kind_), std::move(encoder_));
    } catch (const std::bad_alloc&) {  // it is not kept
    }
  }
  TakenEncoder(const TakenEncoder&) = delete;
  TakenEncoder& operator=(const TakenEncoder&) = delete;

  int depth() const override { return encoder_->depth(); }
  int outstanding() const override { return encoder_->outstanding(); }
  bool is_ready() override {
    return or_fail([&] { return encoder_->is_ready(); });
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
    or_fail([&] {
      encoder_->transform(gop, choices, out);
      return true;
    });
  }
  SizeEstimate estimate_sizes(const Gop& gop, const GopChoices& choices, bool again) override {
    return or_fail([&] { return encoder_->estimate_sizes(gop, choices, again); });
  }
  double squared_error(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) override {
    return or_fail([&] { return encoder_->squared_error(gop, choices, cuts); });
  }
  bool pull(CodedGop& out) override {
    const bool more = or_fail([&] { return encoder_->pull(out); });
    if (more) --in_flight_;
    return more;
  }
  std::optional<LevelChoice> choose_levels(const Gop& gop, int most) override {
    return or_fail([&] { return encoder_->choose_levels(gop, most); });
  }
  void wait_for_samples() noexcept override { encoder_->wait_for_samples(); }
  double seconds_transform() const override { return encoder_->seconds_transform() - transform_; }
  double seconds_coder() const override { return encoder_->seconds_coder() - coder_; }
  const ThreadPool* pool() const override { return encoder_->pool(); }
  bool has_lanes() const override { return encoder_->has_lanes(); }

 private:
  template <class F>
  std::invoke_result_t<F> or_fail(const F& f) {
    const bool failed_before = std::exchange(failed_, true);
    std::invoke_result_t<F> result = f();
    failed_ = failed_before;
    return result;
  }
  template <class F>
  void pushed(const F& f) {
    or_fail([&] {
      f();
      return ++in_flight_;
    });
  }

  std::shared_ptr<UnusedEncoders> from_;
  std::string kind_;
  std::unique_ptr<GopEncoder> encoder_;
  double transform_, coder_;  ///< of earlier streams
  int in_flight_ = 0;
  bool failed_ = false;  ///< after an exception the encoder's state is unknown, so it is not reused
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
  result.make_encoder = [backend = std::move(backend), kept = std::make_shared<UnusedEncoders>()](
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
