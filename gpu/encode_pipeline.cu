#include <algorithm>
#include <cmath>
#include <map>

#include "gpu/coefficient_range.h"
#include "gpu/pipeline.h"
#include "gpu/transforms.h"

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
  DeviceBuffer<std::byte> samples, coefficients;
  std::unique_ptr<GopTransforms<float>> real;
  std::unique_ptr<GopTransforms<std::int32_t>> integer;
  std::unique_ptr<ZerotreeEncoder> coder;
  PinnedBuffer<std::uint32_t> meta;
  PinnedBuffer<std::uint8_t> bytes;
  std::size_t fetched = 0;  // of the bytes, without knowing how many there are
  float step = -1;
  std::vector<std::uint8_t> frame_gains;
  PinnedBuffer<float> host_steps;  // then a gain per frame
  DeviceBuffer<float> steps;

  std::size_t device_bytes() const {
    return samples.size() + coefficients.size() + steps.size() * sizeof(float) + (real ? real->device_bytes() : 0) +
           (integer ? integer->device_bytes() : 0) + (coder ? coder->device_bytes() : 0);
  }
};

struct EncodePipeline::State {
  StreamHeader header;
  PipelineOptions options;
  Stream setup;
  std::map<int, std::unique_ptr<GopShape>> shapes;
  std::vector<std::unique_ptr<EncodeSlot>> slots;
  std::size_t next = 0, flying = 0;
  std::size_t expected = 0;  // bytes of a coded GOP

  State(const StreamHeader& h, const PipelineOptions& o) : header(h), options(o) {}

  const GopShape& shape_of(int frames) {
    auto& s = shapes[frames];
    if (!s) s = std::make_unique<GopShape>(header, Reduction{}, frames, setup);
    return *s;
  }

  void prepare(EncodeSlot& slot, int frames, const GopChoices& choices) {
    const float step = choices.step;
    const GopShape& shape = shape_of(frames);
    if (slot.shape == &shape && (header.lossless || (slot.step == step && slot.frame_gains == choices.frame_gains)))
      return;
    double bound = 0;
    for (std::size_t c = 0; c < shape.shapes.size(); ++c)
      bound = std::max(bound, coefficient_bound(header, static_cast<int>(c), frames, step));
    std::uint8_t most = 64;
    for (const std::uint8_t g : choices.frame_gains) most = std::max(most, g);
    bound *= most / 64.0;
    const bool wide = bound > kNarrowLimit;
    const int planes = wide ? std::clamp(static_cast<int>(std::log2(std::min(bound, 1e18))) + 1, 1, 30) : kNarrowPlanes;
    if (slot.shape != &shape || slot.wide != wide || slot.planes < planes) {
      slot.shape = nullptr;
      slot.coder.reset();
      slot.real.reset();
      slot.integer.reset();
      slot.samples = {};
      slot.coefficients = {};
      slot.samples = DeviceBuffer<std::byte>(shape.sample_bytes());
      slot.coefficients = DeviceBuffer<std::byte>(shape.coefficient_origin.back() * (wide ? 4 : 2));
      // Rows of a band are padded; nobody looks at the padding, but it shall not be what another program left.
      check(cudaMemsetAsync(slot.coefficients.data(), 0, slot.coefficients.size(), slot.stream.get()),
            "cudaMemsetAsync");
      if (header.lossless)
        slot.integer = std::make_unique<GopTransforms<std::int32_t>>(header, Reduction{}, shape);
      else
        slot.real = std::make_unique<GopTransforms<float>>(header, Reduction{}, shape);
      const std::size_t capacity = shape.sample_bytes() / (header.lossless ? 1 : 2) + 4096;
      slot.coder = std::make_unique<ZerotreeEncoder>(*shape.plan, header.fast_mode, planes, capacity);
      if (slot.meta.size() < slot.coder->meta_size()) slot.meta = PinnedBuffer<std::uint32_t>(slot.coder->meta_size());
      if (slot.bytes.size() < capacity) slot.bytes = PinnedBuffer<std::uint8_t>(capacity);
      const std::size_t steps = shape.step_origin.back() + static_cast<std::size_t>(frames);
      if (slot.steps.size() < steps) {
        slot.steps = DeviceBuffer<float>(steps);
        slot.host_steps = PinnedBuffer<float>(steps);
      }
      slot.shape = &shape;
      slot.wide = wide;
      slot.planes = planes;
    }
    if (!header.lossless) {
      for (std::size_t c = 0; c < shape.shapes.size(); ++c) {
        const SubbandTable& table = shape.geometry->grid(static_cast<int>(c)).table();
        const std::vector<float> spread =
            shape.layouts[c].spread(table, StepTable(table, step, header.components[c]).inverse);
        std::copy(spread.begin(), spread.end(), slot.host_steps.data() + shape.step_origin[c]);
      }
      require(choices.frame_gains.empty() || choices.frame_gains.size() == static_cast<std::size_t>(frames),
              ErrorKind::kBadArgument, "frame gains that do not fit the GOP");
      float* gains = slot.host_steps.data() + shape.step_origin.back();
      for (const std::uint8_t g : choices.frame_gains) *gains++ = static_cast<float>(g) / 64.0f;
      copy(slot.steps.data(), slot.host_steps.data(), static_cast<std::size_t>(gains - slot.host_steps.data()),
           cudaMemcpyHostToDevice, slot.stream);
    }
    slot.step = step;
    slot.frame_gains = choices.frame_gains;
  }

  void make_slots(int frames, const GopChoices& choices) {
    if (!slots.empty()) return;
    while (static_cast<int>(slots.size()) < std::max(1, options.slots)) {
      auto slot = std::make_unique<EncodeSlot>();
      try {
        prepare(*slot, frames, choices);
      } catch (const Error& e) {
        if (slots.empty() || e.kind() != ErrorKind::kUnsupported) throw;
        break;  // what fits, works
      }
      const std::size_t bytes = slot->device_bytes() + shape_of(frames).plan->device_bytes();
      const bool fits = options.max_memory == 0 || bytes * (slots.size() + 1) <= options.max_memory;
      if (!fits && !slots.empty()) break;
      require(fits, ErrorKind::kUnsupported,
              "a GOP needs " + std::to_string(bytes >> 20) + " MiB of device memory, the limit is " +
                  std::to_string(options.max_memory >> 20) +
                  " MiB; raise --max-memory, use shorter GOPs or --device cpu");
      slots.push_back(std::move(slot));
    }
  }

  EncodeSlot& next_slot(int frames, const GopChoices& choices) {
    check(cudaSetDevice(options.device), "cudaSetDevice");
    make_slots(frames, choices);
    require(flying < slots.size(), ErrorKind::kInternal, "no free slot: collect a GOP first");
    EncodeSlot& slot = *slots[next];
    prepare(slot, frames, choices);
    return slot;
  }

  template <class T, class Q>
  void run(EncodeSlot& slot, GopTransforms<T>& transforms) {
    auto* coefficients = reinterpret_cast<Q*>(slot.coefficients.data());
    const float* gains =
        slot.frame_gains.empty() || header.lossless ? nullptr : slot.steps.data() + slot.shape->step_origin.back();
    transforms.forward(slot.samples.data(), coefficients, slot.steps.data(), gains, slot.stream);
    slot.coder->encode(coefficients, slot.stream);
  }
};

EncodePipeline::EncodePipeline(const StreamHeader& header, const PipelineOptions& options) {
  check(cudaSetDevice(options.device), "cudaSetDevice");
  state_ = std::make_unique<State>(header, options);
}
EncodePipeline::~EncodePipeline() {
  for (const auto& s : state_->slots) (void)cudaStreamSynchronize(s->stream.get());
}

int EncodePipeline::slots() const { return static_cast<int>(state_->slots.size()); }
int EncodePipeline::in_flight() const { return static_cast<int>(state_->flying); }

std::size_t EncodePipeline::device_bytes() const {
  std::size_t n = 0;
  for (const auto& s : state_->slots) n += s->device_bytes();
  for (const auto& [frames, s] : state_->shapes) n += s->plan->device_bytes();
  return n;
}

std::byte* EncodePipeline::staging(int frames, const GopChoices& choices) {
  EncodeSlot& slot = state_->next_slot(frames, choices);
  if (slot.staging.size() < slot.shape->sample_bytes())
    slot.staging = PinnedBuffer<std::byte>(slot.shape->sample_bytes());
  return slot.staging.data();
}

void EncodePipeline::submit(int frames, const GopChoices& choices, const std::byte* samples) {
  State& s = *state_;
  EncodeSlot& slot = s.next_slot(frames, choices);
  const GopShape& shape = *slot.shape;
  slot.begun.record(slot.stream);
  copy(slot.samples.data(), samples ? samples : slot.staging.data(), shape.sample_bytes(), cudaMemcpyHostToDevice,
       slot.stream);
  slot.uploaded.record(slot.stream);
  if (slot.real)
    slot.wide ? s.run<float, std::int32_t>(slot, *slot.real) : s.run<float, std::int16_t>(slot, *slot.real);
  else
    slot.wide ? s.run<std::int32_t, std::int32_t>(slot, *slot.integer)
              : s.run<std::int32_t, std::int16_t>(slot, *slot.integer);
  slot.coded.record(slot.stream);
  copy(slot.meta.data(), slot.coder->meta(), slot.coder->meta_size(), cudaMemcpyDeviceToHost, slot.stream);
  // How many bytes there are is known on the device only: as many as the GOP before had, and a little more, are fetched
  // at once.
  slot.fetched = std::min({s.expected + s.expected / 8 + 4096, slot.coder->capacity(), slot.bytes.size()});
  copy(slot.bytes.data(), slot.coder->output(), slot.fetched, cudaMemcpyDeviceToHost, slot.stream);
  slot.done.record(slot.stream);
  s.next = (s.next + 1) % s.slots.size();
  ++s.flying;
}

bool EncodePipeline::collect(Result& result) {
  State& s = *state_;
  if (s.flying == 0) return false;
  check(cudaSetDevice(s.options.device), "cudaSetDevice");
  EncodeSlot& slot = *s.slots[(s.next + s.slots.size() - s.flying) % s.slots.size()];
  --s.flying;
  slot.done.synchronize();
  check(cudaGetLastError(), "a kernel of the encoder");
  const auto total = static_cast<std::size_t>(ZerotreeEncoder::total(slot.meta.data()));
  if (total > slot.coder->capacity()) {
    slot.coder->grow(total + total / 4, slot.stream);
    slot.fetched = 0;
  }
  if (total > slot.bytes.size()) {
    slot.bytes = {};
    slot.bytes = PinnedBuffer<std::uint8_t>(total + total / 4);
    slot.fetched = 0;
  }
  if (total > slot.fetched) {
    copy(slot.bytes.data() + slot.fetched, slot.coder->output() + slot.fetched, total - slot.fetched,
         cudaMemcpyDeviceToHost, slot.stream);
    slot.stream.synchronize();
  }
  s.expected = total;
  result.shape = slot.shape;
  result.tops = slot.coder->tops(slot.meta.data());
  result.sizes = slot.coder->sizes(slot.meta.data());
  result.bytes = slot.bytes.data();
  result.total = total;
  result.times = {slot.uploaded.since(slot.begun), slot.coded.since(slot.uploaded), slot.done.since(slot.coded)};
  return true;
}

// Parts stand in the order of the chunks and stay in the slot's memory.
void unpack(const StreamHeader& header, const EncodePipeline::Result& r, PartPlaces& places, CodedGop& out) {
  const GopShape& shape = *r.shape;
  const auto layers = static_cast<std::size_t>(header.layers);
  places.resize(shape.plan->parts());
  std::size_t at = 0;
  for (const std::uint32_t id : shape.plan->part_order()) {
    places[id] = at;
    at += r.sizes[id];
  }
  out.components.resize(shape.shapes.size());
  for (std::size_t c = 0; c < shape.shapes.size(); ++c) {
    const BlockGrid& grid = shape.geometry->grid(static_cast<int>(c));
    const auto segments = static_cast<std::size_t>(segment_count(grid));
    auto& component = out.components[c];
    component.grid = &grid;
    component.plan = layer_plan(header, grid);
    component.blocks.resize(static_cast<std::size_t>(grid.blocks()));
    for (CodedBlock& b : component.blocks) {
      b.top.resize(segments);
      b.size.resize(segments * layers);
      b.offset.resize(segments * layers);
      b.memory = r.bytes;
    }
    for (int band = 0; band < grid.table().temporal_bands(); ++band)
      for (int k = 0; k < grid.resolutions(); ++k) {
        const auto s = static_cast<std::size_t>(segment_index(grid, band, k));
        std::size_t number = shape.plan->segment(static_cast<int>(c), band, k, 0);
        for (CodedBlock& b : component.blocks) {
          b.top[s] = static_cast<std::uint8_t>(r.tops[number]);
          for (std::size_t l = 0; l < layers; ++l) {
            b.size[s * layers + l] = r.sizes[number * layers + l];
            b.offset[s * layers + l] = places[number * layers + l];
          }
          ++number;
        }
      }
  }
}

}  // namespace trivelet::gpu
