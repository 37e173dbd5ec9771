#include "codec/encoder/encoder_part.h"

#include <algorithm>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/encoder/encoder_state.h"
#include "codec/threads/trace.h"

namespace trivelet {

// ------------------------------------------------------------------------------------------------------------ records

namespace {

template <class IO, class T>
void number(IO& io, T& v) {
  if constexpr (IO::kReading) {
    std::uint64_t u = 0;
    io.varint(u);
    v = static_cast<T>(u);
  } else {
    io.varint(static_cast<std::uint64_t>(v));
  }
}

template <class IO>
void numbers(IO& io, std::vector<double>& v) {
  std::uint64_t n = v.size();
  number(io, n);
  if constexpr (IO::kReading) v.resize(static_cast<std::size_t>(n));
  for (double& x : v) io.real(x);
}

template <class IO>
void octets(IO& io, std::vector<std::uint8_t>& v) {
  std::uint64_t n = v.size();
  number(io, n);
  if constexpr (IO::kReading) v.resize(static_cast<std::size_t>(n));
  for (std::uint8_t& b : v) io.fixed(b);
}

template <class IO>
void visit(IO& io, GopRecord& r) {
  number(io, r.number);
  number(io, r.anew);
  number(io, r.info.bytes);
  number(io, r.info.first_frame);
  number(io, r.info.frames);
  number(io, r.info.key);
  io.signed_varint(r.info.begin_pts);
  io.signed_varint(r.info.end_pts);
  std::uint64_t layers = r.info.layers.size();
  number(io, layers);
  if constexpr (IO::kReading) r.info.layers.resize(static_cast<std::size_t>(layers));
  for (LayerInfo& l : r.info.layers) {
    number(io, l.bytes);
    number(io, l.error);
  }
  std::uint64_t points = r.measured_at.size();
  numbers(io, r.predicted);
  number(io, r.asks);
  number(io, points);
  if constexpr (IO::kReading) r.measured_at.resize(static_cast<std::size_t>(points));
  for (std::size_t& l : r.measured_at) number(io, l);
  octets(io, r.seed);
  number(io, r.size);
  number(io, r.waits);
  if (!r.waits) return;
  r.waiting.curve.visit(io);
  number(io, r.waiting.head);
  number(io, r.waiting.least);
  if constexpr (IO::kReading) r.waiting.info = r.info;
}

}  // namespace

std::vector<std::uint8_t> GopRecord::serialise() const {
  ByteWriter out;
  GopRecord copy = *this;
  visit(out, copy);
  out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  return std::move(out.bytes);
}

GopRecord GopRecord::parse(const std::vector<std::uint8_t>& bytes) {
  GopRecord r;
  ByteReader in(bytes.data(), bytes.size(), "a GOP of another process");
  visit(in, r);
  r.bytes.assign(bytes.end() - static_cast<std::ptrdiff_t>(in.left()), bytes.end());
  return r;
}

// ------------------------------------------------------------------------------------------------------- some of GOPs

/// What an encoder writes, until it is taken.
class PartEncoder::Bytes final : public ByteSink {
 public:
  void write(const void* data, std::size_t size) override {
    const auto* p = static_cast<const std::uint8_t*>(data);
    bytes_.insert(bytes_.end(), p, p + size);
  }
  std::vector<std::uint8_t> take() { return std::exchange(bytes_, {}); }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// A GOP that may still have to be measured.
struct PartEncoder::Kept {
  Gop samples;
  bool free = false;                                     ///< and the samples were given back
  std::optional<Encoder::State::Judgement> judgement{};  ///< where it is to be said whether it is
};

PartEncoder::PartEncoder(const VideoInfo& info, const EncoderParams& params, const Backend* backend)
    : sink_(std::make_unique<Bytes>()) {
  encoder_.reset(new Encoder(info, params, *sink_, backend, true));
  head_ = sink_->take();
  encoder_->state_->hand_over = [this](Encoder::State::Work& work, Encoder::State::Judgement* judgement) {
    take(&work, judgement);
  };
  encoder_->state_->hand_over_errors = [this](std::uint64_t number, std::vector<double> errors) {
    const std::lock_guard lock(mutex_);
    measured_.push_back({number, std::move(errors)});
    --measuring_;
  };
  encoder_->state_->hand_over_written = [this](const Encoder::State::Pending& p) { take_written(&p); };
}

PartEncoder::~PartEncoder() = default;

const StreamHeader& PartEncoder::header() const { return encoder_->state_->header; }
KeySchedule PartEncoder::schedule() const { return {header(), params()}; }

Gop PartEncoder::make_gop() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Gop gop = std::move(free_.back());
      free_.pop_back();
      return gop;
    }
  }
  return encoder_->make_gop();
}

void PartEncoder::push(Gop gop, const GopTask& task) {
  Encoder::State& s = *encoder_->state_;
  auto kept = std::make_unique<Kept>();
  kept->samples = std::move(gop);
  const Gop& samples = kept->samples;
  {
    const std::lock_guard lock(mutex_);
    kept_[task.number] = std::move(kept);
  }
  Encoder::State::Pending p = s.accept(samples.frames());
  p.number = task.number;
  p.first_frame = task.first_frame;
  p.anew = task.anew;
  p.run = task.run;
  if (!task.seed.empty() && !s.seed) {
    ByteReader in(task.seed.data(), task.seed.size(), "what the first GOP told");
    s.seed = Encoder::State::Seed();
    s.seed->visit(in);
  }
  const std::uint64_t number = p.number;
  free_uploaded();
  // A device still has those that are measured, for the finisher to fetch.
  const bool needed = s.header.profile == Profile::kDense && s.params.measure_errors && !s.finisher;
  if (needed) p.samples = &samples;
  s.push(samples, std::move(p));
  if (s.spool) take_waiting();
  // Others are free where a device has them: there is no more page-locked memory than is read into.
  if (needed || s.coder->depth() == 1 || s.params.psnr > 0 || s.spool) return;
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(number);
  if (found == kept_.end()) return;
  uploading_ = std::move(found->second->samples);
  found->second->free = true;
}

void PartEncoder::free_uploaded() {
  const trace::Span span("wait for samples");
  encoder_->state_->coder->wait_for_samples();
  const std::lock_guard lock(mutex_);
  if (uploading_) free_.push_back(*std::exchange(uploading_, std::nullopt));
}

// Where nothing but its own samples is needed to measure a GOP, that waits until those before are known; with motion the
// key frame before has to be at hand, and GOPs that begin anew begin anew here, too.
void PartEncoder::take(void* done, void* how) {
  auto& work = *static_cast<Encoder::State::Work*>(done);
  auto* judgement = static_cast<Encoder::State::Judgement*>(how);
  Encoder::State& s = *encoder_->state_;
  const Encoder::State::Pending& gop = judgement ? judgement->gop : work.gop;
  GopRecord r;
  r.number = gop.number;
  r.anew = gop.anew;
  r.info = s.index.back();
  s.index.clear();
  r.bytes = sink_->take();
  r.size = r.bytes.size();
  r.asks = judgement && s.is_told_later(gop);
  if (judgement) {
    r.predicted = judgement->predicted;
    r.measured_at = judgement->measured_at;
  }
  const bool measured = !r.measured_at.empty();
  {
    const std::lock_guard lock(mutex_);
    if (r.asks) kept_.at(r.number)->judgement = std::move(*judgement);
    if (measured) ++measuring_;
    done_.push_back(std::move(r));
  }
  if (measured) s.begin_judging(std::move(*judgement));
}

namespace {

template <class Seed>
std::vector<std::uint8_t> bytes_of(Seed seed) {
  ByteWriter out;
  seed.visit(out);
  return std::move(out.bytes);
}

}  // namespace

// With a target a GOP is measured when it is coded, as what runs learn from GOP to GOP is known here.
void PartEncoder::take_written(const void* pending) {
  const auto& p = *static_cast<const Encoder::State::Pending*>(pending);
  Encoder::State& s = *encoder_->state_;
  GopRecord r;
  r.number = p.number;
  r.anew = p.anew;
  r.info = s.index.back();
  s.index.clear();
  r.bytes = sink_->take();
  r.size = r.bytes.size();
  if (r.number == 0 && s.seed) r.seed = bytes_of(*s.seed);
  const std::lock_guard lock(mutex_);
  done_.push_back(std::move(r));
}

void PartEncoder::take_waiting() {
  Encoder::State& s = *encoder_->state_;
  const Encoder::State::Spooled& spooled = s.spooled.back();
  GopRecord r;
  r.number = spooled.gop.number;
  r.anew = spooled.gop.anew;
  r.waits = true;
  r.waiting = s.waiting(spooled);
  r.info = r.waiting.info;
  if (r.number == 0) r.seed = bytes_of(*s.seed);
  const std::lock_guard lock(mutex_);
  waiting_[r.number] = s.spooled.size() - 1;
  done_.push_back(std::move(r));
}

void PartEncoder::fit(std::uint64_t number, std::uint64_t bytes, double slope) {
  Encoder::State& s = *encoder_->state_;
  const auto found = waiting_.find(number);
  require(found != waiting_.end(), ErrorKind::kInternal, "bytes for a GOP that was not coded here");
  s.spool->rewind();
  s.write_fitted(s.spooled.at(found->second), bytes, slope);
  waiting_.erase(found);
}

std::size_t PartEncoder::most_asked() const {
  const Encoder::State& s = *encoder_->state_;
  return s.finisher ? static_cast<std::size_t>(std::max(4, s.coder->depth() / 2)) : 3;
}

void PartEncoder::advance() {
  Encoder::State& s = *encoder_->state_;
  s.drain(s.coder->depth());
}

void PartEncoder::flush() {
  Encoder::State& s = *encoder_->state_;
  free_uploaded();
  s.drain(0);
  if (s.finisher) s.finisher->wait(0);
}

std::optional<GopRecord> PartEncoder::next() {
  GopRecord r;
  {
    const std::lock_guard lock(mutex_);
    if (done_.empty()) return std::nullopt;
    r = std::move(done_.front());
    done_.erase(done_.begin());
  }
  if (!r.asks && kept(r.number)) settle(r.number, {});
  return r;
}

bool PartEncoder::kept(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return kept_.count(number) > 0;
}

std::vector<GopErrors> PartEncoder::take_errors() {
  if (encoder_->state_->finisher) encoder_->state_->finisher->check_judges();
  const std::lock_guard lock(mutex_);
  return std::exchange(measured_, {});
}

std::size_t PartEncoder::unsettled() const {
  const std::lock_guard lock(mutex_);
  return kept_.size() + measuring_;
}

void PartEncoder::settle(std::uint64_t number, const std::vector<std::size_t>& layers) {
  Encoder::State& s = *encoder_->state_;
  std::unique_ptr<Kept> kept;
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(number);
    require(found != kept_.end(), ErrorKind::kInternal, "a GOP is settled that was not coded here");
    kept = std::move(found->second);
    kept_.erase(found);
    if (!layers.empty()) ++measuring_;
  }
  if (!layers.empty()) {
    require(kept->judgement && *std::max_element(layers.begin(), layers.end()) < kept->judgement->cuts.size(),
            ErrorKind::kInternal, "a GOP is settled at layers that it does not have");
    kept->judgement->measured_at = layers;
    s.begin_judging(std::move(*kept->judgement));
  }
  const std::lock_guard lock(mutex_);
  if (!kept->free) free_.push_back(std::move(kept->samples));
}

// ------------------------------------------------------------------------------------------------------------ all GOPs

StreamAssembly::StreamAssembly(const StreamHeader& header, const std::vector<std::uint8_t>& head, ByteSink& sink,
                               std::function<void(std::uint64_t bytes)> skip)
    : header_(header), plan_(header_), out_(sink), skip_(std::move(skip)) {
  out_.write(head.data(), head.size());
}

std::vector<std::size_t> StreamAssembly::add(const GopRecord& record) {
  require(record.number == next() && record.info.first_frame == frames_, ErrorKind::kInternal,
          "GOP " + std::to_string(record.number) + " where GOP " + std::to_string(next()) + " is to come");
  GopInfo info = record.info;
  info.offset = out_.position();
  if (record.bytes.empty() && record.size > 0) {
    require(skip_ != nullptr, ErrorKind::kInternal, "a GOP without its bytes");
    skip_(record.size);
    out_.skip(record.size);
  } else {
    out_.write(record.bytes.data(), record.bytes.size());
  }
  index_.push_back(std::move(info));
  frames_ += static_cast<std::uint64_t>(record.info.frames);
  Errors& e = errors_.emplace_back();
  e.predicted = record.predicted;
  e.anew = record.anew;
  e.layers =
      record.asks ? plan_.layers(record.predicted, record.info.key == GopKey::kOpen, record.anew) : record.measured_at;
  if (e.layers.empty()) return {};
  ++missing_;
  std::vector<std::size_t> layers = e.layers;
  if (auto early = early_.extract(record.number); !early.empty()) measured(record.number, std::move(early.mapped()));
  return layers;
}

void StreamAssembly::measured(std::uint64_t number, std::vector<double> errors) {
  if (number >= errors_.size()) {
    require(early_.emplace(number, std::move(errors)).second, ErrorKind::kInternal, "a GOP was measured twice");
    return;
  }
  require(errors_[number].measured.empty() && errors_[number].layers.size() == errors.size() && !errors.empty(),
          ErrorKind::kInternal, "errors of a GOP that was not to be measured");
  errors_[number].measured = std::move(errors);
  --missing_;
}

void StreamAssembly::finish() {
  require(missing_ == 0, ErrorKind::kInternal, "the stream ends before all its errors are known");
  MeasuredErrors measured(header_.lossless);
  for (std::size_t g = 0; g < index_.size(); ++g) {
    const Errors& e = errors_[g];
    if (std::optional<SampleErrorModel> model = measured_model(header_, e.predicted, e.layers, e.measured, e.anew))
      measured.add(std::move(*model));
    const std::vector<double> errors = layer_errors(e.predicted, measured);
    for (std::size_t l = 0; l < errors.size(); ++l) index_[g].layers[l].error = error_code(errors[l]);
  }
  out_.write_end(frames_, index_);
}

}  // namespace trivelet
