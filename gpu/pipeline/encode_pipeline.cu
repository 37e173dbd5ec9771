// Encodes GOPs on the device: upload of frames, transform, entropy coder, download of chunks.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <tuple>

#include "codec/rate/rate_control.h"
#include "gpu/device/sample_upload.h"
#include "gpu/entropy/fast_pass_table.h"
#include "gpu/entropy/size_estimate.h"
#include "gpu/motion/motion.h"
#include "gpu/pipeline/gop_weighing.h"
#include "gpu/pipeline/key_coding.h"
#include "gpu/pipeline/pipeline.h"
#include "gpu/pipeline/rounding.h"
#include "gpu/pipeline/transforms.h"
#include "gpu/transform/coefficient_range.h"

namespace trivelet::gpu {
namespace {

constexpr int kNarrowPlanes = 15;
constexpr double kNarrowLimit = 32767;

}  // namespace

struct EncodeSlot {
  Stream stream;
  Event begun{true}, uploaded{true}, coded{true}, done{true};
  const GopShape* shape = nullptr;
  bool wide = false;
  int planes = 0;
  PinnedBuffer<std::byte> staging;
  std::shared_ptr<DeviceBuffer<std::byte>> samples;  // results may still hold those of earlier GOPs
  DeviceBuffer<std::byte> coefficients;
  std::unique_ptr<GopTransforms<float>> real;
  std::unique_ptr<GopTransforms<std::int32_t>> integer;
  std::unique_ptr<ZerotreeEncoder> fast;
  std::unique_ptr<DenseGopEncoder> dense;
  std::unique_ptr<FastPassTable> gains;  // fast by plane
  DeviceBuffer<float> exact;             // for the choice of motion, or coefficients that are rounded by cost
  PinnedBuffer<double> host_gains;
  PinnedBuffer<std::byte> meta;
  PinnedBuffer<std::uint8_t> bytes;
  MotionUpload motion;
  MotionOfGop gop_motion;
  float rounding_step = 0;  // as GopChoices has it
  bool spares = false;      // as GopChoices::spare_last_pass says
  std::size_t fetched = 0;  // of the bytes, before their number is known
  float step = -1;
  std::vector<std::uint8_t> frame_gains;
  PinnedBuffer<float> host_steps;  // then a gain per frame, then, dense, one per subband
  DeviceBuffer<float> steps;
  PinnedBuffer<double> host_weights;  // dense: per subband, then per frame of the bands
  DeviceBuffer<double> weights;

  std::size_t device_bytes() const {
    return (samples ? samples->size() : 0) + coefficients.size() + steps.size() * sizeof(float) +
           (real ? real->device_bytes() : 0) + (integer ? integer->device_bytes() : 0) +
           (fast ? fast->device_bytes() : 0) + (dense ? dense->device_bytes() : 0) +
           (gains ? gains->device_bytes() : 0) + exact.size() * sizeof(float) + weights.size() * sizeof(double) +
           motion.device_bytes();
  }
  const std::byte* coder_meta() const {
    return dense ? dense->meta() : reinterpret_cast<const std::byte*>(fast->meta());
  }
  std::size_t meta_bytes() const { return dense ? dense->meta_bytes() : 4 * fast->meta_size(); }
  const std::uint8_t* output() const { return dense ? dense->output() : fast->output(); }
  std::size_t capacity() const { return dense ? dense->capacity() : fast->capacity(); }
  const std::uint32_t* words() const { return reinterpret_cast<const std::uint32_t*>(meta.data()); }
};

struct EncodePipeline::State {
  StreamHeader header;
  PipelineOptions options;
  ThreadPool* pool;
  Stream setup;
  // And whether by plane.
  std::map<std::pair<GopKind, bool>, std::unique_ptr<GopShape>> shapes;
  std::unique_ptr<DeviceMotion> motion;
  std::unique_ptr<DeviceKeyCoding> keys;  // of streams with predicted ones
  std::unique_ptr<GopWeighing> weighing;
  DeviceSizeEstimate sizes;
  Stream fetching;  // in a separate work queue, not behind a search
  std::vector<std::unique_ptr<EncodeSlot>> slots;
  std::size_t next = 0, flying = 0;
  std::size_t most_slots;               // slots, so far as is known
  std::size_t memory = 0;               // for them
  std::size_t expected = 0;             // bytes of a coded GOP
  const EncodeSlot* reading = nullptr;  // it uploads from the caller's memory
  std::vector<std::shared_ptr<DeviceBuffer<std::byte>>>
      held;  // samples that results had when their slots were used again

  State(const StreamHeader& h, const PipelineOptions& o, ThreadPool* p)
      : header(h), options(o), pool(p), most_slots(static_cast<std::size_t>(std::max(1, o.slots))) {}

  bool by_plane(const GopChoices& choices) const {
    return (choices.passes || choices.by_plane) && header.profile == Profile::kFast;
  }
  const GopShape& shape_of(int frames, const GopChoices& choices, const GopMotion* of) {
    const GopKey key = of ? of->places.key : GopKey::kFirst;
    const int levels = of ? of->places.levels : 0;
    auto& s = shapes[{GopKind(frames, levels, key), by_plane(choices)}];
    if (!s)
      s = std::make_unique<GopShape>(header.describe_gop(levels, key), Reduction{}, frames, by_plane(choices), setup);
    return *s;
  }

  void prepare(EncodeSlot& slot, int frames, const GopChoices& choices, const GopMotion* of) {
    const float step = choices.step;
    const GopShape& shape = shape_of(frames, choices, of);
    const bool dense = header.profile == Profile::kDense;
    slot.spares = choices.spare_last_pass;
    slot.rounding_step = choices.rounding_step;
    require(slot.rounding_step == 0 || (dense && !header.lossless), ErrorKind::kBadArgument,
            "coefficients are rounded by cost in lossy streams of the dense profile");
    if (slot.shape == &shape && (header.lossless || (slot.step == step && slot.frame_gains == choices.frame_gains)))
      return;
    double bound = 0;
    for (std::size_t c = 0; c < shape.shapes.size(); ++c)
      bound = std::max(bound, coefficient_bound(shape.header, static_cast<int>(c), frames, step));
    std::uint8_t most = 64;
    for (const std::uint8_t g : choices.frame_gains) most = std::max(most, g);
    bound *= most / 64.0;
    const bool wide = bound > kNarrowLimit;
    const int planes = wide ? std::clamp(static_cast<int>(std::log2(std::min(bound, 1e18))) + 1, 1, 30) : kNarrowPlanes;
    if (slot.shape != &shape || slot.wide != wide || slot.planes < planes) allocate(slot, shape, choices, wide, planes);
    if (!header.lossless) set_steps(slot, choices);
    if (shape.dense) set_weights(slot, choices);
    slot.step = step;
    slot.frame_gains = choices.frame_gains;
  }

  // Makes the buffers and coders of a slot for another shape. The slot has none if this throws.
  void allocate(EncodeSlot& slot, const GopShape& shape, const GopChoices& choices, bool wide, int planes) {
    const bool dense = header.profile == Profile::kDense;
    const IdleMemory idle;  // the GOP that was here before is collected
    slot.shape = nullptr;
    slot.wide = wide;
    slot.planes = planes;
    slot.step = -1;  // the steps on the device are for another shape
    slot.fast.reset();
    slot.dense.reset();
    slot.gains.reset();
    slot.exact = {};
    slot.real.reset();
    slot.integer.reset();
    leave_held(slot);
    slot.coefficients = {};
    slot.samples = std::make_shared<DeviceBuffer<std::byte>>(shape.sample_bytes());
    // The dense coder quantises itself: the gain of a bit depends on the exact value of a coefficient.
    const bool four_bytes = wide || (dense && !header.lossless);
    slot.coefficients = DeviceBuffer<std::byte>(shape.coefficient_origin.back() * (four_bytes ? 4 : 2));
    // Rows of a band are padded. The padding is never read; it is cleared so that no stale device memory leaks.
    check(cudaMemsetAsync(slot.coefficients.data(), 0, slot.coefficients.size(), slot.stream.get()), "cudaMemsetAsync");
    if (header.lossless)
      slot.integer = std::make_unique<GopTransforms<std::int32_t>>(shape);
    else
      slot.real = std::make_unique<GopTransforms<float>>(shape);
    const std::size_t capacity = shape.sample_bytes() / (header.lossless ? 1 : 2) + 4096;
    if (dense)
      slot.dense = std::make_unique<DenseGopEncoder>(*shape.plan, *shape.dense, planes, header.centroid, capacity);
    else
      slot.fast = std::make_unique<ZerotreeEncoder>(*shape.plan, planes, capacity);
    if (by_plane(choices)) {
      slot.gains = std::make_unique<FastPassTable>(*shape.plan, *shape.dense, planes, header.centroid);
      if (slot.host_gains.size() < slot.gains->size()) slot.host_gains = PinnedBuffer<double>(slot.gains->size());
    }
    if (!header.lossless && (by_plane(choices) || choices.rounding_step > 0))
      slot.exact = DeviceBuffer<float>(shape.coefficient_origin.back());
    if (slot.meta.size() < slot.meta_bytes()) slot.meta = PinnedBuffer<std::byte>(slot.meta_bytes());
    // Most GOPs need much less than the buffer on the device has; collect() enlarges it for those that need more.
    const std::size_t usual = std::max(capacity / 4, expected + expected / 4);
    if (slot.bytes.size() < usual) slot.bytes = PinnedBuffer<std::uint8_t>(usual);
    const std::size_t steps =
        shape.step_origin.back() + static_cast<std::size_t>(shape.frames) + (shape.dense ? shape.dense->subbands() : 0);
    if (slot.steps.size() < steps) {
      slot.steps = DeviceBuffer<float>(steps);
      slot.host_steps = PinnedBuffer<float>(steps);
    }
    if (shape.dense) {
      slot.weights = DeviceBuffer<double>(shape.dense->subbands() + shape.dense->frame_weights());
      slot.host_weights = PinnedBuffer<double>(slot.weights.size());
    }
    slot.shape = &shape;
  }

  void set_steps(EncodeSlot& slot, const GopChoices& choices) {
    const GopShape& shape = *slot.shape;
    for (std::size_t c = 0; c < shape.shapes.size(); ++c) {
      const SubbandTable& table = shape.geometry->grid(static_cast<int>(c)).table();
      const std::vector<float> spread =
          shape.layouts[c].spread(table, StepTable(table, choices.step, header.components[c]).inverse);
      std::copy(spread.begin(), spread.end(), slot.host_steps.data() + shape.step_origin[c]);
    }
    require(choices.frame_gains.empty() || choices.frame_gains.size() == static_cast<std::size_t>(shape.frames),
            ErrorKind::kBadArgument, "frame gains that do not fit the GOP");
    float* gains = slot.host_steps.data() + shape.step_origin.back();
    for (const std::uint8_t g : choices.frame_gains) *gains++ = static_cast<float>(g) / 64.0f;
    if (shape.dense) {
      gains = slot.host_steps.data() + subband_steps(shape);
      for (std::size_t c = 0; c < shape.shapes.size(); ++c) {
        const StepTable dense_steps(shape.geometry->grid(static_cast<int>(c)).table(), choices.step,
                                    header.components[c]);
        gains = std::copy(dense_steps.inverse.begin(), dense_steps.inverse.end(), gains);
      }
    }
    copy(slot.steps.data(), slot.host_steps.data(), static_cast<std::size_t>(gains - slot.host_steps.data()),
         cudaMemcpyHostToDevice, slot.stream);
  }

  static std::size_t subband_steps(const GopShape& shape) {
    return shape.step_origin.back() + static_cast<std::size_t>(shape.frames);
  }

  // The squared error of samples for a squared error of quantised coefficients.
  void set_weights(EncodeSlot& slot, const GopChoices& choices) {
    double* subband_weight = slot.host_weights.data();
    double* frame_weight = subband_weight + slot.shape->dense->subbands();
    for (int c = 0; c < slot.shape->geometry->components(); ++c) {
      const ErrorWeights w = error_weights(slot.shape->header, c, slot.shape->geometry->grid(c).table(), choices.step,
                                           choices.frame_gains);
      subband_weight = std::copy(w.subband.begin(), w.subband.end(), subband_weight);
      for (const std::vector<double>& band : w.frame) frame_weight = std::copy(band.begin(), band.end(), frame_weight);
    }
    copy(slot.weights.data(), slot.host_weights.data(), slot.weights.size(), cudaMemcpyHostToDevice, slot.stream);
  }

  // What all slots share.
  void take_share() {
    if (memory == 0) memory = options.max_memory > 0 ? options.max_memory : usable_memory();
    if (header.motion && !motion) motion = std::make_unique<DeviceMotion>(header, Reduction{}, true);
    if (header.predicted_keys && !keys) keys = std::make_unique<DeviceKeyCoding>(header);
  }

  GopWeighing& weighed() {
    take_share();
    if (!weighing) weighing = std::make_unique<GopWeighing>(header);
    return *weighing;
  }

  // One more, before the oldest GOP in flight: its turn comes next. Where it finds no room, it was the last.
  void add_slot(int frames, const GopChoices& choices, const GopMotion* of) {
    take_share();
    auto slot = std::make_unique<EncodeSlot>();
    try {
      prepare(*slot, frames, choices, of);
      if (of) slot->motion.reserve(*of);
    } catch (const Error& e) {
      if (slots.empty() || e.kind() != ErrorKind::kUnsupported) throw;
      most_slots = slots.size();
      return;
    }
    const std::size_t bytes = slot->device_bytes() + shape_of(frames, choices, of).device_bytes() +
                              (options.keeps_samples ? slot->samples->size() : 0);
    const std::size_t shared_bytes = (motion ? motion->device_bytes() : 0) + (keys ? keys->device_bytes() : 0) +
                                     (weighing ? weighing->device_bytes() : 0);
    const bool fits = shared_bytes + bytes * (slots.size() + 1) <= memory;
    require(fits || !slots.empty() || options.max_memory == 0, ErrorKind::kUnsupported,
            "a GOP needs " + std::to_string((shared_bytes + bytes) >> 20) + " MiB of device memory, the limit is " +
                std::to_string(options.max_memory >> 20) + " MiB; allow more, use shorter GOPs or the CPU");
    if (!fits) most_slots = std::max<std::size_t>(1, slots.size());
    if (fits || slots.empty()) slots.insert(slots.begin() + static_cast<std::ptrdiff_t>(next), std::move(slot));
  }

  EncodeSlot& next_slot(int frames, const GopChoices& choices, const GopMotion* of) {
    check(cudaSetDevice(options.device), "cudaSetDevice");
    if (slots.empty()) add_slot(frames, choices, of);
    require(flying < slots.size(), ErrorKind::kInternal, "no free slot: collect a GOP first");
    const std::size_t used = flying + static_cast<std::size_t>(options.outstanding);
    choose_slot(slots, next, slots.size() > used ? slots.size() - used : 1, shape_of(frames, choices, of),
                header.gop_frames);
    EncodeSlot& slot = *slots[next];
    prepare(slot, frames, choices, of);
    replace_held(slot);
    return slot;
  }

  // Buffers that are still referenced stay with their users. They are released here when no user is left, because a
  // user's release could wait for the device.
  void leave_held(EncodeSlot& slot) {
    if (slot.samples && slot.samples.use_count() > 1) held.push_back(std::move(slot.samples));
    slot.samples.reset();
  }

  // Replaces buffers that are still referenced by unreferenced ones, or by new ones.
  void replace_held(EncodeSlot& slot) {
    if (slot.samples.use_count() == 1) return;
    const IdleMemory idle;
    leave_held(slot);
    const auto released = std::erase_if(held, [](const auto& samples) { return samples.use_count() == 1; });
    if (released > 0) std::atomic_thread_fence(std::memory_order_acquire);  // after their last use
    slot.samples = std::make_shared<DeviceBuffer<std::byte>>(slot.shape->sample_bytes());
  }

  EncodeSlot& oldest() { return *slots[(next + slots.size() - flying) % slots.size()]; }

  // Slots are made when they are needed, but one ahead, so that slots() is right about the next push.
  void make_room(int frames, const GopChoices& choices, const GopMotion* of) {
    const std::size_t used = flying + static_cast<std::size_t>(options.outstanding);
    if (used >= slots.size() && slots.size() < most_slots) add_slot(frames, choices, of);
  }

  void code(EncodeSlot& slot, const GopMotion* of, bool lifted = false);
  // The transform only; for a GOP with motion, of the lifted values.
  template <class T, class Q>
  void transform(EncodeSlot& slot, GopTransforms<T>& transforms, Q* coefficients) {
    const GopShape& shape = *slot.shape;
    const float* gains =
        slot.frame_gains.empty() || header.lossless ? nullptr : slot.steps.data() + shape.step_origin.back();
    if (!shape.moves())
      return transforms.forward(slot.samples->data(), coefficients, slot.steps.data(), gains, slot.stream);
    for (int c = 0; c < static_cast<int>(shape.shapes.size()); ++c)
      transforms.forward(motion->values<T>(shape, c), c, coefficients, slot.steps.data(), slot.stream);
  }
  template <class T, class Q>
  void run(EncodeSlot& slot, GopTransforms<T>& transforms, bool lifted) {
    auto* coefficients = reinterpret_cast<Q*>(slot.coefficients.data());
    const bool moves = slot.shape->moves();
    if (moves) motion->begin(slot.stream);
    if (moves && !lifted) {
      motion->from_samples<T>(*slot.shape, slot.gop_motion, slot.samples->data(), slot.stream,
                              keys ? keys->keys() : nullptr);
      if (slot.gop_motion.predicts_keys) keys->predict(slot.gop_motion, *motion, false, slot.stream);
    }
    if (moves && keys) keys->finish(slot.gop_motion, *motion, slot.stream);
    if constexpr (std::is_same_v<Q, float>) {
      transform(slot, transforms, slot.rounding_step > 0 ? slot.exact.data() : coefficients);
      if (slot.rounding_step > 0)
        round_by_cost(*slot.shape, slot.rounding_step, slot.exact.data(), coefficients, slot.stream);
    } else {
      transform(slot, transforms, coefficients);
      if constexpr (std::is_same_v<T, float>)
        if (slot.gains) transform(slot, transforms, slot.exact.data());
    }
    if (moves) motion->end(slot.stream);
    if (slot.dense)
      slot.dense->encode(coefficients, measure(slot), slot.stream);
    else if constexpr (!std::is_same_v<Q, float>)
      slot.fast->encode(coefficients, slot.stream);
    if (!slot.gains) return;
    if constexpr (std::is_same_v<T, float>)
      slot.gains->measure(slot.exact.data(), measure(slot), slot.stream);
    else
      slot.gains->measure(coefficients, measure(slot), slot.stream);
  }
  DenseMeasure measure(const EncodeSlot& slot) const {
    return {header.lossless ? nullptr : slot.steps.data() + subband_steps(*slot.shape), slot.weights.data(),
            slot.weights.data() + slot.shape->dense->subbands(), slot.spares};
  }
  // Runs the dense coder again, with a buffer of the size that it needs.
  void encode_again(EncodeSlot& slot, std::size_t bytes) {
    const auto again = [&](auto* coefficients) {
      slot.dense->encode_larger(bytes, coefficients, measure(slot), slot.stream);
    };
    if (!header.lossless)
      again(reinterpret_cast<const float*>(slot.coefficients.data()));
    else if (slot.wide)
      again(reinterpret_cast<const std::int32_t*>(slot.coefficients.data()));
    else
      again(reinterpret_cast<const std::int16_t*>(slot.coefficients.data()));
    copy(slot.meta.data(), slot.coder_meta(), slot.meta_bytes(), cudaMemcpyDeviceToHost, slot.stream);
    slot.stream.synchronize();
  }
};

EncodePipeline::EncodePipeline(const StreamHeader& header, const PipelineOptions& options, ThreadPool* pool) {
  check(cudaSetDevice(options.device), "cudaSetDevice");
  state_ = std::make_unique<State>(header, options, pool);
}
EncodePipeline::~EncodePipeline() {
  forget(cudaSetDevice(state_->options.device));
  for (const auto& s : state_->slots) forget(cudaStreamSynchronize(s->stream.get()));
  (void)free_idle_memory();
}

int EncodePipeline::slots() const { return static_cast<int>(state_->most_slots); }
int EncodePipeline::in_flight() const { return static_cast<int>(state_->flying); }

std::size_t EncodePipeline::device_bytes() const {
  std::size_t n = 0;
  for (const auto& s : state_->slots) n += s->device_bytes();
  for (const auto& [key, s] : state_->shapes) n += s->device_bytes();
  if (state_->motion) n += state_->motion->device_bytes();
  if (state_->keys) n += state_->keys->device_bytes();
  return n + state_->sizes.device_bytes();
}

std::byte* EncodePipeline::staging(int frames, const GopChoices& choices, const GopMotion* motion) {
  EncodeSlot& slot = state_->next_slot(frames, choices, motion);
  if (slot.staging.size() < slot.shape->sample_bytes())
    slot.staging = PinnedBuffer<std::byte>(slot.shape->sample_bytes());
  return slot.staging.data();
}

void EncodePipeline::submit(int frames, const GopChoices& choices, const std::byte* samples, const GopMotion* motion,
                            const Event* read, bool weighed) {
  EncodeSlot& slot = state_->next_slot(frames, choices, motion);
  slot.begun.record(slot.stream);
  copy(slot.samples->data(), samples ? samples : slot.staging.data(), slot.shape->sample_bytes(), cudaMemcpyDefault,
       slot.stream);
  if (read) read->record(slot.stream);
  state_->code(slot, motion, weighed && motion != nullptr);
  state_->make_room(frames, choices, motion);
}

void EncodePipeline::submit(const Gop& gop, const GopChoices& choices, const GopMotion* motion) {
  wait_uploaded();
  EncodeSlot& slot = state_->next_slot(gop.frames(), choices, motion);
  slot.begun.record(slot.stream);
  state_->reading = &slot;
  upload(gop, slot.shape->sample_origin, slot.samples->data(), slot.stream);
  state_->code(slot, motion);
  state_->make_room(gop.frames(), choices, motion);
}

SizeEstimate EncodePipeline::estimate_sizes(int frames, const GopChoices& choices, float step, const Gop* gop,
                                            bool again) {
  State& s = *state_;
  EncodeSlot& slot = s.next_slot(frames, choices, nullptr);
  require(slot.real && slot.exact.size() > 0, ErrorKind::kInternal, "sizes of coefficients that are coded otherwise");
  if (!again) {
    wait_uploaded();
    if (gop)
      upload(*gop, slot.shape->sample_origin, slot.samples->data(), slot.stream);
    else
      copy(slot.samples->data(), slot.staging.data(), slot.shape->sample_bytes(), cudaMemcpyDefault, slot.stream);
    s.transform(slot, *slot.real, slot.exact.data());
  }
  return s.sizes.estimate(*slot.shape, slot.exact.data(), static_cast<double>(step), slot.stream);
}

void EncodePipeline::reserve(std::uint64_t gops, int frames, const GopChoices& choices, const GopMotion* motion) {
  State& s = *state_;
  check(cudaSetDevice(s.options.device), "cudaSetDevice");
  const bool may_stay = choices.motion == Motion::kAuto;
  if (motion && (may_stay || s.header.predicted_keys))
    s.weighed().reserve(may_stay ? &s.shape_of(frames, choices, nullptr) : nullptr, s.shape_of(frames, choices, motion),
                        choices, *motion);
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(s.most_slots, gops));
  for (std::size_t before = s.slots.size() + 1; s.slots.size() < most && s.slots.size() != before;) {
    before = s.slots.size();
    s.add_slot(frames, choices, motion);
  }
}

void EncodePipeline::next_gop() {
  if (state_->motion) state_->motion->next_gop();
}

void EncodePipeline::weigh(int frames, const GopChoices& choices, const std::byte* samples, const GopMotion& motion) {
  State& s = *state_;
  check(cudaSetDevice(s.options.device), "cudaSetDevice");
  GopWeighing& weighing = s.weighed();
  weighing.begin(choices.motion == Motion::kAuto ? &s.shape_of(frames, choices, nullptr) : nullptr,
                 s.shape_of(frames, choices, &motion), choices, samples, motion, *s.motion, s.keys.get(), s.pool);
}

bool EncodePipeline::is_weighed() const { return state_->weighing->done().is_reached(); }

void EncodePipeline::weighed(const GopChoices& choices, std::shared_ptr<GopMotion>& motion) const {
  check(cudaSetDevice(state_->options.device), "cudaSetDevice");
  const GopWeighing::Costs costs = state_->weighing->end(*motion);
  if (!costs.predicts_keys) motion->leave_keys();
  if (choices.motion == Motion::kAuto &&
      !(costs.still > costs.moving + motion_cost(state_->header, *motion, choices.step)))
    motion = nullptr;
}

void EncodePipeline::wait_uploaded() noexcept {
  if (state_->reading) forget(cudaEventSynchronize(state_->reading->uploaded.get()));
  state_->reading = nullptr;
}

// All work after the upload.
void EncodePipeline::State::code(EncodeSlot& slot, const GopMotion* of, bool lifted) {
  if (of) {
    if (!lifted) slot.motion.submit(*of, 0, pool, slot.stream);
    slot.gop_motion = {of->places, slot.motion.cells(), of->places.key == GopKey::kOpen, of->predicts_keys};
    if (keys) keys->prepare(*slot.shape, slot.step, slot.rounding_step);
  }
  slot.uploaded.record(slot.stream);
  if (slot.real && slot.dense)
    run<float, float>(slot, *slot.real, lifted);
  else if (slot.real)
    slot.wide ? run<float, std::int32_t>(slot, *slot.real, lifted) : run<float, std::int16_t>(slot, *slot.real, lifted);
  else
    slot.wide ? run<std::int32_t, std::int32_t>(slot, *slot.integer, lifted)
              : run<std::int32_t, std::int16_t>(slot, *slot.integer, lifted);
  slot.coded.record(slot.stream);
  copy(slot.meta.data(), slot.coder_meta(), slot.meta_bytes(), cudaMemcpyDeviceToHost, slot.stream);
  if (slot.gains)
    copy(slot.host_gains.data(), slot.gains->gains(), slot.gains->size(), cudaMemcpyDeviceToHost, slot.stream);
  // How many bytes there are is known on the device only: as many as the GOP before had, and a little more, are fetched
  // at once.
  slot.fetched = std::min({expected + expected / 8 + 4096, slot.capacity(), slot.bytes.size()});
  copy(slot.bytes.data(), slot.output(), slot.fetched, cudaMemcpyDeviceToHost, slot.stream);
  slot.done.record(slot.stream);
  next = (next + 1) % slots.size();
  ++flying;
}

bool EncodePipeline::is_ready() const {
  if (state_->flying == 0) return false;
  check(cudaSetDevice(state_->options.device), "cudaSetDevice");
  return state_->oldest().done.is_reached();
}

bool EncodePipeline::collect(Result& result) {
  State& s = *state_;
  if (s.flying == 0) return false;
  check(cudaSetDevice(s.options.device), "cudaSetDevice");
  EncodeSlot& slot = s.oldest();
  --s.flying;
  slot.done.synchronize();
  check(cudaGetLastError(), "a kernel of the encoder");
  auto total = static_cast<std::size_t>(ZerotreeEncoder::total(slot.words()));
  if (slot.dense) {
    DenseGopEncoder::Meta meta = slot.dense->view(slot.meta.data());
    while (!slot.dense->complete(meta)) {
      const auto needed = static_cast<std::size_t>(std::max(meta.total, meta.pool));
      s.encode_again(slot, needed + needed / 4);
      slot.fetched = 0;
      meta = slot.dense->view(slot.meta.data());
    }
    total = static_cast<std::size_t>(meta.total);
  } else if (total > slot.fast->capacity()) {
    slot.fast->grow(total + total / 4, slot.stream);
    slot.fetched = 0;
  }
  if (total > slot.bytes.size()) {
    slot.bytes = {};
    slot.bytes = PinnedBuffer<std::uint8_t>(total + total / 4);
    slot.fetched = 0;
  }
  if (total > slot.fetched) {
    copy(slot.bytes.data() + slot.fetched, slot.output() + slot.fetched, total - slot.fetched, cudaMemcpyDeviceToHost,
         slot.stream);
    slot.stream.synchronize();
  }
  s.expected = total;
  result.shape = slot.shape;
  if (slot.dense) {
    result.dense = slot.dense->view(slot.meta.data());
    result.tops = result.dense.tops;
  } else {
    result.tops = slot.fast->tops(slot.words());
    result.bits = slot.fast->bits(slot.words());
    result.gains = slot.gains ? slot.host_gains.data() : nullptr;
    result.planes = slot.gains ? slot.gains->planes() : 0;
  }
  result.bytes = slot.bytes.data();
  result.spares = slot.spares;
  result.samples = slot.samples;
  result.total = total;
  result.times = {slot.uploaded.since(slot.begun), slot.coded.since(slot.uploaded), slot.done.since(slot.coded)};
  return true;
}

void EncodePipeline::fetch_samples(const Result& result, Gop& gop, int first) const {
  check(cudaSetDevice(state_->options.device), "cudaSetDevice");
  const Stream& stream = state_->fetching;
  const GopShape& shape = *result.shape;
  for (int c = 0; c < gop.components(); ++c) {
    const auto n = static_cast<std::size_t>(c);
    const MutableVolumeView to = gop.plane(c);
    const std::size_t bytes = to.shape.samples() * static_cast<std::size_t>(to.bytes_per_sample);
    const std::size_t frame = bytes / static_cast<std::size_t>(to.shape.frames);
    copy(to.data, result.samples->data() + shape.sample_origin[n] + static_cast<std::size_t>(first) * frame, bytes,
         cudaMemcpyDeviceToHost, stream);
  }
  stream.synchronize();
}

namespace {

// Calls f(component, segment of a block, its number on the device for block 0).
template <class F>
void for_segments(const GopShape& shape, std::size_t c, const F& f) {
  const BlockGrid& grid = shape.geometry->grid(static_cast<int>(c));
  for (int band = 0; band < grid.table().temporal_bands(); ++band)
    for (int k = 0; k < grid.resolutions(); ++k)
      f(static_cast<std::size_t>(segment_index(grid, band, k)), shape.plan->segment(static_cast<int>(c), band, k, 0));
}

// Codewords are in the order of the segments.
void unpack_dense(const EncodePipeline::Result& r, PartPlaces& places, CodedGop& out) {
  const GopShape& shape = *r.shape;
  const DenseGopEncoder::Meta& meta = r.dense;
  places.resize(shape.plan->segments());
  std::size_t at = 0;
  for (std::size_t s = 0; s < places.size(); ++s) {
    places[s] = at;
    at += (meta.sizes[s] + std::size_t{3}) / 4 * 4;
  }
  for (std::size_t c = 0; c < out.components.size(); ++c) {
    auto& component = out.components[c];
    const auto segments = static_cast<std::size_t>(segment_count(*component.grid));
    component.passes.resize(component.blocks.size());
    for (std::size_t i = 0; i < component.blocks.size(); ++i) {
      CodedBlock& b = component.blocks[i];
      PassTable& table = component.passes[i];
      b.top.resize(segments);
      b.size.resize(segments);
      b.offset.resize(segments);
      b.memory = r.bytes;
      table.first.resize(segments);
      table.energy.resize(segments);
      table.passes.clear();
      table.spared = r.spares ? 1 : 0;
      for_segments(shape, c, [&](std::size_t s, std::size_t number) {
        number += i;
        b.top[s] = static_cast<std::uint8_t>(r.tops[number]);
        b.size[s] = meta.sizes[number];
        b.offset[s] = places[number];
        table.first[s] = static_cast<std::uint32_t>(table.passes.size());
        table.energy[s] = meta.energy[number];
        const std::size_t first = number * static_cast<std::size_t>(meta.passes);
        const std::size_t passes = 2 * std::size_t{b.top[s]};
        table.passes.reserve(table.passes.size() + passes);
        for (std::size_t p = first; p + (r.spares ? 1 : 0) < first + passes; ++p)
          table.passes.push_back({meta.bytes[p], meta.gains[p]});
      });
    }
  }
}

// Parts are in the order of the chunks.
void unpack_fast(const StreamHeader& header, const EncodePipeline::Result& r, PartPlaces& places, CodedGop& out) {
  const GopShape& shape = *r.shape;
  const auto layers = static_cast<std::size_t>(shape.plan->layers());
  places.resize(shape.plan->parts());
  std::size_t at = 0;
  for (const std::uint32_t id : shape.plan->part_order()) {
    places[id] = at;
    at += (r.bits[id] + 7) / 8;
  }
  for (std::size_t c = 0; c < out.components.size(); ++c) {
    auto& component = out.components[c];
    const auto segments = static_cast<std::size_t>(segment_count(*component.grid));
    component.plan = r.gains ? plane_plan(*component.grid) : layer_plan(header, *component.grid);
    for (CodedBlock& b : component.blocks) {
      b.top.resize(segments);
      b.size.resize(segments * layers);
      b.offset.resize(segments * layers);
      b.bits.resize(segments * layers);
      b.memory = r.bytes;
    }
    for_segments(shape, c, [&](std::size_t s, std::size_t number) {
      for (CodedBlock& b : component.blocks) {
        b.top[s] = static_cast<std::uint8_t>(r.tops[number]);
        for (std::size_t l = 0; l < layers; ++l) {
          b.bits[s * layers + l] = r.bits[number * layers + l];
          b.size[s * layers + l] = (b.bits[s * layers + l] + 7) / 8;
          b.offset[s * layers + l] = places[number * layers + l];
        }
        ++number;
      }
    });
    if (!r.gains) continue;
    component.passes.resize(component.blocks.size());
    for (std::size_t i = 0; i < component.blocks.size(); ++i) {
      const CodedBlock& b = component.blocks[i];
      PassTable& table = component.passes[i];
      table.first.resize(segments);
      table.energy.resize(segments);
      table.passes.clear();
      for_segments(shape, c, [&](std::size_t s, std::size_t number) {
        const double* gains = r.gains + (number + i) * static_cast<std::size_t>(r.planes + 1);
        table.first[s] = static_cast<std::uint32_t>(table.passes.size());
        table.energy[s] = gains[r.planes];
        std::uint32_t bits = 0;
        for (std::size_t p = b.top[s]; p-- > 0;) {
          bits += b.bits[s * layers + layers - 1 - p];
          table.passes.push_back({bits, gains[p]});
        }
      });
    }
  }
}

}  // namespace

void unpack(const StreamHeader& header, const EncodePipeline::Result& r, PartPlaces& places, CodedGop& out) {
  out.components.resize(r.shape->shapes.size());
  for (std::size_t c = 0; c < out.components.size(); ++c) {
    out.components[c].grid = &r.shape->geometry->grid(static_cast<int>(c));
    out.components[c].blocks.resize(static_cast<std::size_t>(out.components[c].grid->blocks()));
  }
  if (header.profile == Profile::kDense)
    unpack_dense(r, places, out);
  else
    unpack_fast(header, r, places, out);
}

}  // namespace trivelet::gpu
