// Records of GOPs, the encoder that makes them, and the assembly of the stream (encoder_part.h).
#include "codec/encoder/encoder_part.h"

#include <algorithm>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/encoder/encoder_core.h"
#include "codec/format/container.h"
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
  number(io, r.must_close);
  number(io, r.info.bytes);
  number(io, r.info.first_frame);
  number(io, r.info.frames);
  number(io, r.info.key);
  number(io, r.info.predicts_keys);
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

/// Collects an encoder's output until it is taken.
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

/// A GOP whose samples may still be needed to measure it.
struct PartEncoder::Kept {
  Gop samples;
  bool free = false;                  ///< the samples were given back
  std::optional<MeasureTask> task{};  ///< set while it waits for settle()
};

PartEncoder::PartEncoder(const VideoInfo& info, const EncoderParams& params, const Backend* backend)
    : sink_(std::make_unique<Bytes>()), core_(std::make_unique<EncoderCore>(info, params, *sink_, backend, this)) {
  head_ = sink_->take();
}

PartEncoder::~PartEncoder() = default;

const StreamHeader& PartEncoder::header() const { return core_->context().header; }
const EncoderParams& PartEncoder::params() const { return core_->context().params; }
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
  return Gop(header().video, header().gop_frames, core_->context().backend.allocate);
}

void PartEncoder::push(Gop gop, const GopTask& task) {
  auto kept = std::make_unique<Kept>();
  kept->samples = std::move(gop);
  const Gop& samples = kept->samples;
  {
    const std::lock_guard lock(mutex_);
    kept_[task.number] = std::move(kept);
  }
  PendingGop p = core_->accept(samples.frames());
  p.number = task.number;
  p.first_frame = task.first_frame;
  p.must_close = task.must_close;
  p.run = task.run;
  if (!task.seed.empty() && !core_->search().seed()) {
    ByteReader in(task.seed.data(), task.seed.size(), "what the first GOP told");
    TargetSearch::Seed seed;
    seed.visit(in);
    core_->search().set_seed(std::move(seed));
  }
  free_uploaded();
  // A device keeps the samples of GOPs that are measured, and the measuring threads fetch them.
  const EncoderContext& context = core_->context();
  const bool needed = context.measures() && !core_->has_threads();
  if (needed) p.samples = &samples;
  core_->push(samples, std::move(p));
  if (core_->spooled()) take_waiting();
  // On a device other samples are free after the upload, so no more page-locked memory is needed than for reading.
  if (needed || context.coder->depth() == 1 || context.has_target()) return;
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(task.number);
  if (found == kept_.end()) return;
  uploading_ = std::move(found->second->samples);
  found->second->free = true;
}

void PartEncoder::free_uploaded() {
  const trace::Span span("wait for samples");
  core_->wait_for_samples();
  const std::lock_guard lock(mutex_);
  if (uploading_) free_.push_back(*std::exchange(uploading_, std::nullopt));
}

namespace {

std::vector<std::uint8_t> serialise(TargetSearch::Seed seed) {
  ByteWriter out;
  seed.visit(out);
  return std::move(out.bytes);
}

}  // namespace

// The observer decides later where a GOP can be measured from its own samples, because the plan needs the GOPs before.
// With a target it was measured when it was coded, because a run knows its own measurements.
void PartEncoder::gop_written(WrittenGop gop) {
  GopRecord r;
  r.number = gop.number;
  r.must_close = gop.must_close;
  r.info = std::move(gop.info);
  r.predicted = std::move(gop.predicted);
  r.measured_at = std::move(gop.measured_at);
  r.asks = gop.undecided.has_value();
  r.bytes = sink_->take();
  r.size = r.bytes.size();
  if (r.number == 0 && core_->search().seed()) r.seed = serialise(*core_->search().seed());
  const std::lock_guard lock(mutex_);
  if (r.asks) kept_.at(r.number)->task = std::move(*gop.undecided);
  if (!r.measured_at.empty()) ++measuring_;
  done_.push_back(std::move(r));
}

void PartEncoder::errors_measured(std::uint64_t number, std::vector<double> errors) {
  const std::lock_guard lock(mutex_);
  measured_.push_back({number, std::move(errors)});
  --measuring_;
}

void PartEncoder::take_waiting() {
  const SpooledGops& spooled = *core_->spooled();
  const std::size_t last = spooled.size() - 1;
  GopRecord r;
  r.number = spooled.gop(last).number;
  r.must_close = spooled.gop(last).must_close;
  r.waits = true;
  r.waiting = spooled.waiting(last);
  r.info = r.waiting.info;
  if (r.number == 0) r.seed = serialise(*core_->search().seed());
  const std::lock_guard lock(mutex_);
  waiting_[r.number] = last;
  done_.push_back(std::move(r));
}

void PartEncoder::fit(std::uint64_t number, std::uint64_t bytes, double slope) {
  const auto found = waiting_.find(number);
  require(found != waiting_.end(), ErrorKind::kInternal, "bytes for a GOP that was not coded here");
  core_->write_spooled(found->second, bytes, slope);
  waiting_.erase(found);
}

std::size_t PartEncoder::most_asked() const {
  return core_->has_threads() ? static_cast<std::size_t>(std::max(4, core_->context().coder->depth() / 2)) : 3;
}

void PartEncoder::advance() { core_->drain(core_->context().coder->depth()); }

void PartEncoder::flush() {
  free_uploaded();
  core_->flush();
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
  core_->check_measuring();
  const std::lock_guard lock(mutex_);
  return std::exchange(measured_, {});
}

std::size_t PartEncoder::unsettled() const {
  const std::lock_guard lock(mutex_);
  return kept_.size() + measuring_;
}

void PartEncoder::settle(std::uint64_t number, const std::vector<std::size_t>& layers) {
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
    require(kept->task && *std::max_element(layers.begin(), layers.end()) < kept->task->cuts.size(),
            ErrorKind::kInternal, "a GOP is settled at layers that it does not have");
    kept->task->layers = layers;
    core_->begin_measuring(std::move(*kept->task));
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
  e.must_close = record.must_close;
  e.layers = record.asks ? plan_.layers(record.predicted, record.info.key == GopKey::kOpen, record.must_close)
                         : record.measured_at;
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
    if (std::optional<SampleErrorModel> model =
            measured_model(header_, e.predicted, e.layers, e.measured, e.must_close))
      measured.add(std::move(*model));
    const std::vector<double> errors = layer_errors(e.predicted, measured);
    for (std::size_t l = 0; l < errors.size(); ++l) index_[g].layers[l].error = error_code(errors[l]);
  }
  out_.write_end(frames_, index_);
}

}  // namespace trivelet
