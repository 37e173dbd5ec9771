// keep_decoders() of kept_decoders.h: decoders and geometries that streams of one kind reuse.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "codec/backend.h"
#include "codec/base/kept_states.h"
#include "codec/format/container.h"
#include "trivelet/kept_decoders.h"

namespace trivelet {

namespace {

constexpr std::size_t kMostKeptGeometries = 8;  // a full GOP and a last one, for a few kinds of streams

/// Geometries of GOPs, most recently used last. They are smaller than decoders and constant, so streams share them.
class KeptGeometries {
 public:
  std::shared_ptr<const StreamGeometry> find(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& g) { return g.first == kind; });
    if (found == all_.end()) return nullptr;
    std::rotate(found, std::next(found), all_.end());
    return all_.back().second;
  }
  void keep(std::string kind, std::shared_ptr<const StreamGeometry> geometry) {
    const std::lock_guard lock(mutex_);
    if (all_.size() == kMostKeptGeometries) all_.erase(all_.begin());
    all_.emplace_back(std::move(kind), std::move(geometry));
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::shared_ptr<const StreamGeometry>>> all_;
};

/// A decoder used by a stream, which returns it.
class TakenDecoder final : public GopDecoder {
 public:
  TakenDecoder(std::shared_ptr<KeptStates<GopDecoder>> from, std::string kind, std::unique_ptr<GopDecoder> decoder)
      : decoder_(std::move(from), std::move(kind), std::move(decoder)),
        transform_(decoder_->seconds_transform()),
        coder_(decoder_->seconds_coder()),
        busy_(decoder_->busy_transform()) {}

  int depth() const override { return decoder_->depth(); }
  bool is_ready() override {
    return decoder_.or_fail([&] { return decoder_->is_ready(); });
  }
  void push(const LayeredGop& received, std::vector<std::string>* damage) override {
    decoder_.or_fail([&] { decoder_->push(received, damage); });
    ++decoder_.in_flight;
  }
  bool pull(Gop& gop) override {
    return pulled([&] { return decoder_->pull(gop); });
  }
  bool exchange(Gop& gop) override {
    return pulled([&] { return decoder_->exchange(gop); });
  }
  bool pull(CoefficientGop& coefficients) override {
    return pulled([&] { return decoder_->pull(coefficients); });
  }
  void inverse(CoefficientGop& coefficients, Gop& gop) override {
    decoder_.or_fail([&] { decoder_->inverse(coefficients, gop); });
  }
  double seconds_transform() const override { return decoder_->seconds_transform() - transform_; }
  double seconds_coder() const override { return decoder_->seconds_coder() - coder_; }
  double busy_transform() const override { return decoder_->busy_transform() - busy_; }
  const ThreadPool* pool() const override { return decoder_->pool(); }

 private:
  template <class F>
  bool pulled(const F& f) {
    const bool more = decoder_.or_fail(f);
    if (more) --decoder_.in_flight;
    return more;
  }

  TakenState<GopDecoder> decoder_;
  double transform_, coder_, busy_;  ///< of earlier streams
};

std::string text_of(const StreamHeader& header) {
  const std::vector<std::uint8_t> bytes = serialise(header);
  return {bytes.begin(), bytes.end()};
}

std::string kind_of(const StreamHeader& header, const Reduction& reduction, const BackendOptions& options) {
  return std::to_string(reduction.spatial) + ' ' + std::to_string(reduction.temporal) + ' ' +
         std::to_string(options.threads) + ' ' + std::to_string(static_cast<int>(options.simd)) + ' ' + text_of(header);
}

}  // namespace

std::shared_ptr<const Backend> keep_decoders(std::shared_ptr<const Backend> backend) {
  auto kept = std::make_shared<KeptStates<GopDecoder>>(kMostKeptDecoders);
  Backend result = *backend;
  result.geometry = [kept = std::make_shared<KeptGeometries>()](const StreamHeader& header,
                                                                int frames) -> std::shared_ptr<const StreamGeometry> {
    if (header.motion) return std::make_shared<StreamGeometry>(header, frames);
    std::string kind = std::to_string(frames) + ' ' + text_of(header);
    std::shared_ptr<const StreamGeometry> geometry = kept->find(kind);
    if (!geometry) {  // several threads may create it at once
      geometry = std::make_shared<StreamGeometry>(header, frames);
      kept->keep(std::move(kind), geometry);
    }
    return geometry;
  };
  result.make_decoder = [backend = std::move(backend), kept](const StreamHeader& header, const Reduction& reduction,
                                                             const BackendOptions& options) {
    if (header.motion || options.workers.run) return backend->make_decoder(header, reduction, options);
    std::string kind = kind_of(header, reduction, options);
    std::unique_ptr<GopDecoder> decoder = kept->take(kind);
    if (!decoder) {
      BackendOptions own = options;
      own.workers = {};  // callbacks belong to the first stream
      decoder = backend->make_decoder(header, reduction, own);
    }
    std::unique_ptr<GopDecoder> taken = std::make_unique<TakenDecoder>(kept, std::move(kind), std::move(decoder));
    return taken;
  };
  return std::make_shared<const Backend>(std::move(result));
}

}  // namespace trivelet
