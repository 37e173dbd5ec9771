// The CUDA backend of the codec (codec/backend.h): encoder and decoder over pipelines and searches for motion.

#include "trivelet/cuda.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <optional>
#include <utility>

#include "codec/backend.h"
#include "codec/cpu/motion_decisions.h"
#include "codec/cpu/motion_gop.h"
#include "codec/threads/parallel.h"
#include "codec/threads/trace.h"
#include "gpu/device/sample_upload.h"
#include "gpu/motion/level_choice.h"
#include "gpu/motion/motion_ahead.h"
#include "gpu/motion/motion_search.h"
#include "gpu/pipeline/pipeline.h"

namespace trivelet::gpu {

namespace {

// GOPs whose streams share a work queue of the driver wait for each other. The driver makes 8 queues unless the
// environment asks for more before its start. The dense profile needs more.
constexpr int kMostQueues = 32;
constexpr int kPipelineStreams = 2;  // beside those of the slots

// With many queues kernels are loaded at the start, too: a kernel that is loaded at its first launch waits for the
// running ones, and a search for motion runs for long.
void ask_for_queues(int count) {
  constexpr int kMany = 17;
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(count).c_str(), 0);
  if (count >= kMany) (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

}  // namespace

bool is_built() { return true; }

void expect_gops(int in_flight) { ask_for_queues(std::clamp(in_flight + 1, 1, kMostQueues)); }

std::vector<DeviceInfo> devices() {
  ask_for_queues(kMostQueues);
  std::vector<DeviceInfo> found;
  const int n = device_count();
  for (int i = 0; i < n; ++i) {
    cudaDeviceProp p{};
    if (cudaGetDeviceProperties(&p, i) != cudaSuccess) {
      (void)cudaGetLastError();
      continue;
    }
    found.push_back({i, p.name, p.totalGlobalMem, p.major, p.minor});
  }
  return found;
}

// The system says it as "0-15,32-47".
std::vector<int> cores_near(int number) {
  char bus[32] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, number) != cudaSuccess) {
    (void)cudaGetLastError();
    return {};
  }
  std::string name(bus);
  for (char& c : name) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  std::ifstream list("/sys/bus/pci/devices/" + name + "/local_cpulist");
  std::vector<int> cores;
  for (int first = 0; list >> first;) {
    int last = first;
    if (list.peek() == '-') {
      list.get();
      list >> last;
    }
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (list.peek() == ',') list.get();
  }
  return cores;
}

namespace {

[[noreturn]] void no_coefficients() {
  fail(ErrorKind::kUnsupported, "coefficients stay on the GPU; use the CPU to read or write them");
}

// After an error of the device the state of an encoder is unknown, so every later call throws the same error. (Decoder
// does that itself.)
class FirstError {
 public:
  template <class F>
  auto guard(const F& call) {
    if (error_) std::rethrow_exception(error_);
    try {
      return call();
    } catch (...) {
      error_ = std::current_exception();
      throw;
    }
  }

 private:
  std::exception_ptr error_;
};

// Copies rows of all frames of a component, in parallel over frames.
template <class From, class To>
void copy_plane(const From& from, const To& to, ThreadPool& pool) {
  const std::size_t row = from.row_bytes();
  const bool dense = from.row_stride == to.row_stride && from.row_stride == static_cast<std::ptrdiff_t>(row);
  pool.parallel_for(from.shape.frames, [&](int f, int) {
    if (dense)
      std::memcpy(to.row(f, 0), from.row(f, 0), row * static_cast<std::size_t>(from.shape.height));
    else
      for (int y = 0; y < from.shape.height; ++y) std::memcpy(to.row(f, y), from.row(f, y), row);
  });
}

// For streams with motion, if the device has memory for the search; otherwise the host searches.
std::unique_ptr<DeviceMotionSearch> make_search(const StreamHeader& header, const PipelineOptions& options) {
  constexpr std::size_t kShare = 3;  // divisor of the memory: coefficients and the buffers of lifting take more
  if (!header.motion) return nullptr;
  check(cudaSetDevice(options.device), "cudaSetDevice");
  const std::size_t memory = options.max_memory > 0 ? options.max_memory : usable_memory();
  auto search = std::make_unique<DeviceMotionSearch>(header, options.device, memory / kShare);
  return search->has_room() ? std::move(search) : nullptr;
}

// Searches of several GOPs, if the device has memory for them.
std::unique_ptr<MotionAhead> make_searches(const StreamHeader& header, const BackendOptions& options,
                                           const PipelineOptions& pipeline) {
  constexpr std::size_t kShare = 2;
  if (!header.motion || !options.lookahead) return nullptr;
  check(cudaSetDevice(pipeline.device), "cudaSetDevice");
  const std::size_t memory = pipeline.max_memory > 0 ? pipeline.max_memory : usable_memory();
  // Work queued behind a search waits for all of it, so each stream gets its own queue.
  const int most = std::max(1, kMostQueues - pipeline.slots - kPipelineStreams);
  auto searches = std::make_unique<MotionAhead>(header, options, pipeline.device, memory / kShare, most);
  return searches->most() > 0 ? std::move(searches) : nullptr;
}

class CudaEncoder final : public GopEncoder {
 public:
  CudaEncoder(const StreamHeader& header, const BackendOptions& options, const PipelineOptions& pipeline)
      : header_(header),
        device_(pipeline.device),
        frames_stay_(pipeline.frames_stay),
        pool_(options.threads, options.workers),
        ahead_(make_searches(header, options, pipeline)),
        search_(ahead_ ? nullptr : make_search(header, pipeline)),
        slots_(header.motion && !ahead_ ? 1 : pipeline.slots),
        outstanding_(header.motion && !ahead_ ? 0 : pipeline.outstanding),
        pipeline_(header, beside_searches(pipeline), &pool_) {
    if (ahead_ || search_) levels_ = std::make_unique<DeviceLevelChoice>(header, device_);
    if (header.motion && !ahead_) motion_ = make_motion_decisions(header, options, search_.get());
  }

  // Where it turned out that fewer GOPs find room, none are taken in for their search alone.
  int depth() const override {
    const int slots = pipeline_.slots();
    return ahead_ && slots == slots_ ? slots + ahead_->most() : slots;
  }
  int outstanding() const override { return outstanding_; }

  void push(const Gop& gop, const GopChoices& choices) override { push(gop, choices, false); }
  void push_again(const Gop& gop, const GopChoices& choices) override { push(gop, choices, true); }
  SizeEstimate estimate_sizes(const Gop& gop, const GopChoices& choices, bool again) override;
  double squared_error(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) override {
    return motion_ ? motion_->squared_error(gop, choices, cuts) : -1;
  }
  std::optional<LevelChoice> choose_levels(const Gop& gop, int most) override {
    if (!levels_) return std::nullopt;
    return error_.guard([&] { return levels_->choose(gop, most); });
  }
  void wait_for_samples() noexcept override {
    if (ahead_) ahead_->wait_uploaded();
    pipeline_.wait_uploaded();
  }
  void push(CoefficientGop&, const GopChoices&) override { no_coefficients(); }
  void transform(const Gop&, const GopChoices&, CoefficientGop&) override { no_coefficients(); }

  bool pull(CodedGop& out) override {
    EncodePipeline::Result r;
    if (ahead_) error_.guard([&] { code_found(1); });
    if (!error_.guard([&] { return pipeline_.collect(r); })) return false;
    seconds_coder_ += r.times.kernels / 1e3;
    unpack(header_, r, places_, out);
    out.motion = std::move(motions_.front());
    motions_.pop_front();
    out.samples = [this, r](Gop& gop, int first) { pipeline_.fetch_samples(r, gop, first); };
    return true;
  }
  bool is_ready() override {
    return error_.guard([&] { return pipeline_.is_ready(); });
  }
  double seconds_transform() const override { return 0; }
  double seconds_coder() const override { return seconds_coder_; }

 private:
  PipelineOptions beside_searches(PipelineOptions options) const {
    options.slots = slots_;
    options.outstanding = outstanding_;
    if (options.max_memory > 0) {
      options.max_memory -= ahead_ ? ahead_->device_bytes() : search_ ? search_->device_bytes() : 0;
      if (ahead_ || search_) options.max_memory -= DeviceLevelChoice::device_bytes(header_);
    }
    return options;
  }
  void push(const Gop& gop, const GopChoices& choices, bool again);
  void reserve(int frames, GopChoices choices);
  void search_ahead(const Gop& gop, const GopChoices& choices);
  void code_found(int at_least);
  bool has_room() const;
  void take_found();
  void weigh_found();
  void code_taken();
  void copy_in(const Gop& gop, std::byte* to);

  StreamHeader header_;
  int device_;
  bool frames_stay_;  // GOPs that are pushed lie in device memory
  ThreadPool pool_;
  std::unique_ptr<MotionAhead> ahead_;          // null: the GOPs of a stream with motion are in flight alone
  std::unique_ptr<DeviceMotionSearch> search_;  // for motion_
  std::unique_ptr<DeviceLevelChoice> levels_;   // beside either search
  int slots_, outstanding_;                     // of the pipeline, as many as are wanted
  EncodePipeline pipeline_;
  bool reserved_ = false;                    // memory for ahead_, and for later allocations
  std::optional<MotionAhead::Found> taken_;  // the GOP that is coded next
  bool closing_ = false, weighed_ = false;   // it is searched again, or weighed
  bool left_key_ = false;                    // the one before
  FirstError error_;
  std::unique_ptr<MotionDecisions> motion_;
  std::deque<std::shared_ptr<const GopMotion>> motions_;  // of the GOPs in the pipeline
  std::optional<Gop> staging_;                            // page-locked, for ahead_
  PartPlaces places_;
  double seconds_coder_ = 0;
  float estimated_with_ = 0;  // step of the slot with the GOP that was estimated
};

void CudaEncoder::push(const Gop& gop, const GopChoices& choices, bool again) {
  require(gop.frames() >= 1 && gop.frames() <= header_.gop_frames, ErrorKind::kBadArgument,
          "a GOP of " + std::to_string(gop.frames()) + " frames; this stream's hold 1.." +
              std::to_string(header_.gop_frames));
  if (ahead_) return error_.guard([&] { search_ahead(gop, choices); });
  GopChoices chosen = choices;
  std::shared_ptr<const GopMotion> motion;
  if (motion_) {
    motion = error_.guard([&] { return motion_->decide(gop, choices, again); });
    if (motion)
      chosen.frame_gains.clear();
    else
      chosen = choices.without_motion();
    if (!again) pipeline_.next_gop();
  }
  motions_.push_back(motion);
  if (frames_stay_ || is_page_locked(gop))
    return error_.guard([&] { pipeline_.submit(gop, chosen, motion.get()); });
  copy_in(gop, error_.guard([&] { return pipeline_.staging(gop.frames(), chosen, motion.get()); }));
  error_.guard([&] { pipeline_.submit(gop.frames(), chosen, nullptr, motion.get()); });
}

SizeEstimate CudaEncoder::estimate_sizes(const Gop& gop, const GopChoices& choices, bool again) {
  return error_.guard([&] {
    // A slot for a coarser step serves for the one with which the GOP will be coded, too.
    constexpr float kCoarser = 8;
    GopChoices probable = choices;
    probable.step = again ? estimated_with_ : kCoarser * choices.step;
    estimated_with_ = probable.step;
    const bool in_place = frames_stay_ || is_page_locked(gop);
    if (!again && !in_place) copy_in(gop, pipeline_.staging(gop.frames(), probable));
    return pipeline_.estimate_sizes(gop.frames(), probable, choices.step, in_place ? &gop : nullptr, again);
  });
}

void CudaEncoder::reserve(int frames, GopChoices choices) {
  const auto gop_frames = static_cast<std::uint64_t>(header_.gop_frames);
  const std::uint64_t gops =
      header_.video.frames == 0 ? std::uint64_t{1} << 32 : (header_.video.frames + gop_frames - 1) / gop_frames;
  ahead_->reserve(gops);
  if (!may_move(header_, frames, choices)) return pipeline_.reserve(gops, frames, choices);
  choices.frame_gains.clear();
  const GopMotion like(MotionPlaces(frames, choices.key, choices.levels), header_.video.width, header_.video.height);
  pipeline_.reserve(gops, frames, choices, &like);
}

void CudaEncoder::search_ahead(const Gop& gop, const GopChoices& choices) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  if (!std::exchange(reserved_, true)) reserve(gop.frames(), choices);
  while (!ahead_->has_room()) code_found(pipeline_.in_flight() + 1);
  const Gop* from = &gop;
  if (!is_page_locked(gop)) {
    if (!staging_) staging_.emplace(header_.video, header_.gop_frames, page_locked);
    staging_->set_frames(gop.frames());
    for (int c = 0; c < gop.components(); ++c) copy_plane(gop.plane(c), staging_->plane(c), pool_);
    from = &*staging_;
  }
  ahead_->begin(*from, choices);
  code_found(0);
}

bool CudaEncoder::has_room() const {
  const int slots = pipeline_.slots();
  return pipeline_.in_flight() < std::max(1, slots - std::min(outstanding_, slots / 2));
}

// Codes found GOPs, as far as the pipeline has free slots; waits until this many GOPs are in the pipeline. With
// Motion::kAuto, and where keys may be predicted, each GOP is weighed first.
void CudaEncoder::code_found(int at_least) {
  while (ahead_->in_flight() > 0) {
    const bool waits = pipeline_.in_flight() < at_least;
    if (!waits && !has_room()) return;
    if (!taken_) {
      if (!waits && !ahead_->is_found()) return;
      take_found();
    }
    if (closing_) {
      if (!waits && !taken_->search->is_done()) return;
      ahead_->close_end(*taken_, pool_);
      closing_ = false;
      weigh_found();
    }
    if (weighed_ && !waits && !pipeline_.is_weighed()) return;
    code_taken();
  }
}

void CudaEncoder::take_found() {
  taken_ = ahead_->end();
  pipeline_.next_gop();
  closing_ = taken_->choices.key == GopKey::kOpen && !left_key_ && ahead_->close(*taken_, pool_);
  if (!closing_) weigh_found();
}

void CudaEncoder::weigh_found() {
  weighed_ = taken_->motion && (taken_->choices.motion == Motion::kAuto || taken_->motion->predicts_keys);
  if (weighed_) pipeline_.weigh(taken_->frames, taken_->choices, taken_->search->samples(), *taken_->motion);
}

void CudaEncoder::code_taken() {
  const trace::Span span(weighed_ ? "weigh and code" : "code");
  MotionAhead::Found& found = *taken_;
  if (weighed_) pipeline_.weighed(found.choices, found.motion);
  left_key_ = found.motion && found.motion->places.ends_with_key();
  if (found.motion)
    found.choices.frame_gains.clear();
  else
    found.choices = found.choices.without_motion();
  pipeline_.submit(found.frames, found.choices, found.search->samples(), found.motion.get(),
                   &found.search->samples_read(), weighed_);
  motions_.push_back(std::move(found.motion));
  taken_.reset();
  ahead_->let_go();
}

void CudaEncoder::copy_in(const Gop& gop, std::byte* to) {
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView from = gop.plane(c);
    MutableVolumeView v;
    v.data = to;
    v.shape = from.shape;
    v.bytes_per_sample = from.bytes_per_sample;
    v.row_stride = static_cast<std::ptrdiff_t>(v.shape.width) * v.bytes_per_sample;
    v.frame_stride = v.row_stride * v.shape.height;
    copy_plane(from, v, pool_);
    to += v.shape.samples() * static_cast<std::size_t>(v.bytes_per_sample);
  }
}

class CudaDecoder final : public GopDecoder {
 public:
  CudaDecoder(const StreamHeader& header, const Reduction& reduction, const BackendOptions& options,
              const PipelineOptions& pipeline)
      : header_(header),
        options_(pipeline),
        pool_(options.threads, options.workers),
        pipeline_(header, reduction, pipeline, pool_) {}

  int depth() const override { return pipeline_.slots(); }

  void push(const LayeredGop& received, std::vector<std::string>* damage) override {
    pipeline_.submit(received);
    const bool depends = received.motion && received.motion->places.key == GopKey::kOpen && received.follows;
    pushed_.push_back({damage, depends});
  }

  bool pull(Gop& gop) override { return pull(gop, false); }
  bool exchange(Gop& gop) override { return pull(gop, true); }
  bool pull(CoefficientGop&) override { no_coefficients(); }
  bool is_ready() override { return pipeline_.is_ready(); }
  void inverse(CoefficientGop&, Gop&) override { no_coefficients(); }
  double seconds_transform() const override { return 0; }
  double seconds_coder() const override { return seconds_coder_; }

 private:
  struct Pushed {
    std::vector<std::string>* damage = nullptr;
    bool depends = false;  ///< on the key frame of the GOP before
  };
  bool pull(Gop& gop, bool may_exchange);
  bool may_stay_in(const Gop& a, const Gop& b) const;
  void copy_out(const Gop& from, Gop& to);

  StreamHeader header_;
  PipelineOptions options_;
  ThreadPool pool_;
  DecodePipeline pipeline_;
  std::deque<Pushed> pushed_;
  bool failed_ = false;  ///< the GOP pulled last
  double seconds_coder_ = 0;
};

// Whether frames can be left in `a` as well as in `b`, which is of frame_memory().
bool CudaDecoder::may_stay_in(const Gop& a, const Gop& b) const {
  return are_alike(a, b) && (options_.frames_stay || is_page_locked(a));
}

void CudaDecoder::copy_out(const Gop& from, Gop& to) {
  for (int c = 0; c < to.components(); ++c) {
    const VolumeView v = from.plane(c);
    const MutableVolumeView out = to.plane(c);
    if (!options_.frames_stay) {
      copy_plane(v, out, pool_);
      continue;
    }
    for (int f = 0; f < v.shape.frames; ++f)
      copy_from_device(options_.device, {out.row(f, 0), out.row_stride},
                       {const_cast<std::byte*>(v.row(f, 0)), v.row_stride}, v.row_bytes(),
                       static_cast<std::size_t>(v.shape.height), nullptr);
  }
  if (options_.frames_stay) wait_for(options_.device, nullptr);
}

bool CudaDecoder::pull(Gop& gop, bool may_exchange) {
  DecodePipeline::Result r;
  if (!pipeline_.collect(r)) return false;
  const Pushed pushed = pushed_.front();
  pushed_.pop_front();
  seconds_coder_ += r.times.kernels / 1e3;
  const int frames = r.frames->frames();
  gop.set_frames(gop.capacity());
  if (may_exchange && may_stay_in(gop, *r.frames)) {
    std::swap(gop, *r.frames);
  } else {
    gop.set_frames(frames);
    copy_out(*r.frames, gop);
  }
  pipeline_.give_back(std::move(r.frames));
  gop.set_frames(frames);
  const bool failed_before = std::exchange(failed_, true);
  if (!r.damage.empty() && !pushed.damage) fail(ErrorKind::kBadStream, r.damage.front());
  require(!pushed.depends || !failed_before, ErrorKind::kBadStream,
          "a GOP is predicted from the one before, of which no samples were made");
  failed_ = false;
  if (!r.damage.empty()) pushed.damage->insert(pushed.damage->end(), r.damage.begin(), r.damage.end());
  return true;
}

// GOPs on the device at once. The dense profile's kernels wait for their longest segments, and other GOPs fill the
// device meanwhile.
constexpr int kFastSlots = 3, kDenseSlots = 32;
// Results that are divided and written while the device codes others (output_stage.h). Rate control of the dense
// profile takes a thread of the host about ten times as long as a full device takes for the GOP.
constexpr int kFastOutstanding = 3, kDenseOutstanding = 12;
// With motion an encoder lifts and searches, which the device is busier with: more in flight are no faster, and take
// the memory and work queues of searches.
constexpr int kMovingDenseSlots = 8, kMovingDenseOutstanding = 6;

PipelineOptions options_for_encoder(const StreamHeader& h, int device, std::size_t max_memory) {
  const bool dense = h.profile == Profile::kDense;
  const int outstanding = !dense ? kFastOutstanding : h.motion ? kMovingDenseOutstanding : kDenseOutstanding;
  return {device,
          (!dense     ? kFastSlots
           : h.motion ? kMovingDenseSlots
                      : kDenseSlots) +
              outstanding,
          max_memory, outstanding};
}

PipelineOptions options_for_decoder(const StreamHeader& h, int device, std::size_t max_memory, bool frames_stay) {
  return {device, h.profile == Profile::kDense ? kDenseSlots : kFastSlots, max_memory, 0, frames_stay};
}

}  // namespace

std::shared_ptr<std::byte> page_locked(std::size_t bytes) {
  const auto buffer = std::make_shared<PinnedBuffer<std::byte>>(bytes);
  return {buffer, buffer->data()};
}

namespace {

// Pitches that cudaMemcpy2DAsync takes in one call; others a row at a time.
void copy_rows(int number, Rows to, Rows from, std::size_t row_bytes, std::size_t rows, void* stream) {
  if (row_bytes == 0 || rows == 0) return;
  check(cudaSetDevice(number), "cudaSetDevice");
  const auto s = static_cast<cudaStream_t>(stream);
  const auto row = static_cast<std::ptrdiff_t>(row_bytes);
  // Managed memory, and host memory that the device maps, are as good.
  constexpr cudaMemcpyKind kind = cudaMemcpyDefault;
  if (to.pitch == row && from.pitch == row)
    return check(cudaMemcpyAsync(to.data, from.data, checked_mul(row_bytes, rows), kind, s), "cudaMemcpyAsync");
  if (to.pitch >= row && from.pitch >= row)
    return check(cudaMemcpy2DAsync(to.data, static_cast<std::size_t>(to.pitch), from.data,
                                   static_cast<std::size_t>(from.pitch), row_bytes, rows, kind, s),
                 "cudaMemcpy2DAsync");
  for (std::size_t y = 0; y < rows; ++y, to.data += to.pitch, from.data += from.pitch)
    check(cudaMemcpyAsync(to.data, from.data, row_bytes, kind, s), "cudaMemcpyAsync");
}

}  // namespace

void copy_to_device(int number, Rows to, Rows from, std::size_t row_bytes, std::size_t rows, void* stream) {
  copy_rows(number, to, from, row_bytes, rows, stream);
}

void copy_from_device(int number, Rows to, Rows from, std::size_t row_bytes, std::size_t rows, void* stream) {
  copy_rows(number, to, from, row_bytes, rows, stream);
}

void wait_for(int number, void* stream) {
  check(cudaSetDevice(number), "cudaSetDevice");
  check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
}

std::shared_ptr<const Backend> cuda_backend(int number, std::size_t max_memory, bool frames_stay) {
  ask_for_queues(kMostQueues);
  check(cudaSetDevice(number), "cudaSetDevice");  // starts it, which takes a while
  return std::make_shared<const Backend>(
      Backend{"cuda",
              [=](const StreamHeader& h, const BackendOptions& o) -> std::unique_ptr<GopEncoder> {
                PipelineOptions pipeline = options_for_encoder(h, number, max_memory);
                pipeline.keeps_samples = o.keeps_samples;
                pipeline.frames_stay = frames_stay && !h.motion;
                return std::make_unique<CudaEncoder>(h, o, pipeline);
              },
              [=](const StreamHeader& h, const Reduction& r, const BackendOptions& o) -> std::unique_ptr<GopDecoder> {
                return std::make_unique<CudaDecoder>(h, r, o, options_for_decoder(h, number, max_memory, frames_stay));
              },
              [=](std::size_t bytes) {
                check(cudaSetDevice(number), "cudaSetDevice");
                return frame_memory(PipelineOptions{.device = number, .frames_stay = frames_stay})(bytes);
              }});
}

}  // namespace trivelet::gpu
