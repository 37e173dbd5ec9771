// Decodes GOPs on the device: upload of parts, entropy decoder, inverse transform, download of frames.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <numeric>

#include "codec/format/stream_layout.h"
#include "codec/threads/parallel.h"
#include "gpu/motion/motion.h"
#include "gpu/pipeline/pipeline.h"
#include "gpu/pipeline/transforms.h"
#include "trivelet/cuda.h"

namespace trivelet::gpu {
namespace {

constexpr std::size_t kPadding = 16;  // readable bytes after the parts
constexpr int kMostShares = 4;        // threads of the host's work on a GOP; more of them would wait for memory and for
                                      // wake-ups
// GOPs whose frames have a buffer on the host, or a separate one on the device: one is read while the next one arrives.
// Other GOPs wait on the device.
constexpr std::size_t kDownloads = 2;

/// How coefficients are stored between coder and transform: quantised, or restored.
enum class Storage { kNarrow, kWide, kReal };

}  // namespace

struct DecodeSlot {
  Stream stream;
  Event begun{true}, uploaded{true}, decoded{true}, downloading{true}, done{true};
  const GopShape* shape = nullptr;
  std::unique_ptr<ZerotreeDecoder> fast;
  std::unique_ptr<DenseGopDecoder> dense;
  DeviceBuffer<std::byte> samples, coefficients;
  std::unique_ptr<GopTransforms<float>> real;
  std::unique_ptr<GopTransforms<std::int32_t>> integer;
  PinnedBuffer<std::uint8_t> host_bytes;
  DeviceBuffer<std::uint8_t> bytes;
  PinnedBuffer<SegmentInput> segments;
  PinnedBuffer<PartInput> parts;
  PinnedBuffer<DenseSegmentInput> dense_segments;
  PinnedBuffer<DensePartInput> dense_parts;
  DeviceBuffer<DensePartInput> device_parts;
  std::vector<std::string> damage;  // seen before decoding
  PinnedBuffer<BlockError> errors;
  std::unique_ptr<Gop> frames;  // the buffer of the download, once it has begun
  bool only_keys = false;       // there are no frames
  MotionUpload motion;
  float step = -1;
  std::vector<std::uint8_t> frame_gains;
  PinnedBuffer<float> host_steps;  // spread for the transform, then a gain per frame, then one per band for the coder
  DeviceBuffer<float> steps;

  std::size_t device_bytes() const {
    return samples.size() + coefficients.size() + bytes.size() + steps.size() * sizeof(float) +
           (real ? real->device_bytes() : 0) + (integer ? integer->device_bytes() : 0) +
           (fast ? fast->device_bytes() : 0) + (dense ? dense->device_bytes() : 0) +
           device_parts.size() * sizeof(DensePartInput) + motion.device_bytes();
  }
};

struct DecodePipeline::State {
  StreamHeader header;
  Reduction reduction;
  PipelineOptions options;
  ThreadPool& pool;
  Stream setup;
  Stream download;  // of all slots: one after the other, so that no upload waits for them
  std::map<GopKind, std::unique_ptr<GopShape>> shapes;
  std::unique_ptr<DeviceMotion> motion;
  std::vector<std::unique_ptr<DecodeSlot>> slots;
  std::size_t next = 0, flying = 0;
  std::size_t most_slots;                       // slots, so far as is known
  std::size_t memory = 0;                       // for them
  std::vector<const LayeredSegment*> received;  // [segment]
  VideoInfo output;
  std::vector<std::unique_ptr<Gop>> unused;  // of the buffers on the host
  std::size_t places = 0;                    // there are

  State(const StreamHeader& h, const Reduction& r, const PipelineOptions& o, ThreadPool& p)
      : header(h),
        reduction(r),
        options(o),
        pool(p),
        most_slots(static_cast<std::size_t>(std::max(1, o.slots))),
        output(reduced_video(h.video, r)) {}

  DecodeSlot& flying_slot(std::size_t i) { return *slots[(next + slots.size() - flying + i) % slots.size()]; }
  void start_downloads();

  /// Calls body(first, end, share) for the shares of [0, count), each by a thread. Returns how many shares there are.
  template <class Body>
  int in_shares(std::size_t count, const Body& body) {
    const int shares = std::min(pool.threads(), kMostShares);
    const auto first = [&](int share) {
      return count * static_cast<std::size_t>(share) / static_cast<std::size_t>(shares);
    };
    pool.parallel_for(shares, [&](int share, int) { body(first(share), first(share + 1), share); });
    return shares;
  }
  /// body(component, block) for all code blocks, by several threads.
  template <class Body>
  void for_blocks(const GopShape& shape, const Body& body) {
    in_shares(shape.plan->blocks(), [&](std::size_t first, std::size_t end, int) {
      std::size_t c = 0, before = 0;
      for (std::size_t i = first; i < end; ++i) {
        const auto blocks = [&] {
          return static_cast<std::size_t>(shape.geometry->grid(static_cast<int>(c)).blocks());
        };
        while (i >= before + blocks()) before += blocks(), ++c;
        body(c, static_cast<int>(i - before));
      }
    });
  }

  const GopShape& shape_of(const LayeredGop& in) {
    const GopKey key = in.motion ? in.motion->places.key : GopKey::kFirst;
    const int levels = in.motion ? in.motion->places.levels : 0;
    auto& s = shapes[GopKind(in.frames, levels, key)];
    if (!s) s = std::make_unique<GopShape>(header.describe_gop(levels, key), reduction, in.frames, false, setup);
    return *s;
  }

  bool dense() const { return header.profile == Profile::kDense; }

  void prepare(DecodeSlot& slot, const GopShape& shape, int planes) {
    const int frames = shape.frames;
    if (slot.shape != &shape) {
      slot.shape = nullptr;
      slot.fast.reset();
      slot.dense.reset();
      slot.real.reset();
      slot.integer.reset();
      slot.samples = {};
      slot.coefficients = {};
      slot.samples = DeviceBuffer<std::byte>(shape.sample_bytes());
      if (header.lossless)
        slot.integer = std::make_unique<GopTransforms<std::int32_t>>(shape);
      else
        slot.real = std::make_unique<GopTransforms<float>>(shape);
      const auto grow = [](auto& buffer, std::size_t size) {
        using B = std::remove_reference_t<decltype(buffer)>;
        if (buffer.size() < size) {
          buffer = {};
          buffer = B(size);
        }
      };
      std::size_t bands = 0;
      for (int c = 0; c < shape.geometry->components(); ++c) bands += shape.geometry->grid(c).table().all().size();
      grow(slot.segments, shape.plan->segments());
      grow(slot.parts, shape.plan->parts());
      if (dense()) {
        grow(slot.dense_segments, shape.plan->segments());
        grow(slot.dense_parts, shape.plan->parts());
        grow(slot.device_parts, shape.plan->parts());
      }
      grow(slot.errors, shape.plan->blocks());
      grow(slot.steps, shape.step_origin.back() + static_cast<std::size_t>(frames) + bands);
      grow(slot.host_steps, shape.step_origin.back() + static_cast<std::size_t>(frames) + bands);
      slot.step = -1;
      slot.shape = &shape;
    }
    const int made_for = planes <= 15 ? 15 : 30;
    if (dense() && (!slot.dense || slot.dense->planes() < planes)) {
      slot.dense.reset();
      slot.dense = std::make_unique<DenseGopDecoder>(*shape.plan, *shape.dense, made_for);
    }
    if (!dense() && (!slot.fast || slot.fast->planes() < planes)) {
      slot.fast.reset();
      slot.fast = std::make_unique<ZerotreeDecoder>(*shape.plan, header.fast_mode, made_for);
    }
    if (slot.coefficients.size() == 0) reserve(slot, 2);
  }
  void reserve(DecodeSlot& slot, std::size_t bytes_per_value) {
    const std::size_t bytes = slot.shape->coefficient_origin.back() * bytes_per_value;
    if (slot.coefficients.size() >= bytes) return;
    slot.coefficients = {};
    slot.coefficients = DeviceBuffer<std::byte>(bytes);
  }

  /// The longest of such GOPs so far: a slot for a shorter one would be made again for the next.
  const GopShape& longest_shape_of(const LayeredGop& in) {
    const GopShape* longest = &shape_of(in);
    for (const auto& [key, shape] : shapes)
      if (shape->moves() == longest->moves() && shape->frames > longest->frames) longest = shape.get();
    return *longest;
  }

  // As EncodePipeline's.
  void add_slot(const LayeredGop& in, int planes) {
    const GopShape& shape = longest_shape_of(in);
    if (slots.empty()) memory = options.max_memory > 0 ? options.max_memory : usable_memory();
    if (header.motion && !motion) motion = std::make_unique<DeviceMotion>(header, reduction, false);
    auto slot = std::make_unique<DecodeSlot>();
    if (options.frames_stay) slot->done = Event(true, true);  // many streams are decoded at once, and need the cores
    try {
      prepare(*slot, shape, planes);
      if (in.motion) slot->motion.reserve(*in.motion);
    } catch (const Error& e) {
      if (slots.empty() || e.kind() != ErrorKind::kUnsupported) throw;
      most_slots = slots.size();
      return;
    }
    const std::size_t bytes = slot->device_bytes() + shape.device_bytes();
    const std::size_t motion_bytes = motion ? motion->device_bytes() : 0;
    const bool fits = motion_bytes + bytes * (slots.size() + 1) <= memory;
    require(fits || !slots.empty() || options.max_memory == 0, ErrorKind::kUnsupported,
            "a GOP needs " + std::to_string((motion_bytes + bytes) >> 20) + " MiB of device memory, the limit is " +
                std::to_string(options.max_memory >> 20) +
                " MiB; allow more, decode at a lower resolution or on the CPU");
    if (!fits) most_slots = std::max<std::size_t>(1, slots.size());
    if (fits || slots.empty()) slots.insert(slots.begin() + static_cast<std::ptrdiff_t>(next), std::move(slot));
  }

  void set_steps(DecodeSlot& slot, float step, const std::vector<std::uint8_t>& frame_gains) {
    if (header.lossless || (slot.step == step && slot.frame_gains == frame_gains)) return;
    const GopShape& shape = *slot.shape;
    require(frame_gains.empty() || frame_gains.size() == static_cast<std::size_t>(shape.frames),
            ErrorKind::kBadArgument, "frame gains that do not fit the GOP");
    float* gains = slot.host_steps.data() + shape.step_origin.back();  // the inverse ones, of the remaining frames
    for (std::size_t t = 0; t < frame_gains.size(); t += std::size_t{1} << reduction.temporal)
      *gains++ = static_cast<float>(64.0 / frame_gains[t]);
    float* next_step = slot.host_steps.data() + band_steps(shape);
    for (std::size_t c = 0; c < shape.shapes.size(); ++c) {
      const SubbandTable& full = shape.geometry->grid(static_cast<int>(c)).table();
      const StepTable steps(full, step, header.components[c]);
      next_step = std::copy(steps.step.begin(), steps.step.end(), next_step);
      const SubbandTable target(shape.shapes[c], shape.decompositions[c], false);
      std::vector<float> reduced;
      for (const Subband& s : target.all())
        reduced.push_back(steps.step[static_cast<std::size_t>(&full.at(s.temporal_band, s.resolution, s.orientation) -
                                                              full.all().data())]);
      const std::vector<float> spread = shape.layouts[c].spread(target, reduced);
      std::copy(spread.begin(), spread.end(), slot.host_steps.data() + shape.step_origin[c]);
    }
    copy(slot.steps.data(), slot.host_steps.data(), static_cast<std::size_t>(next_step - slot.host_steps.data()),
         cudaMemcpyHostToDevice, slot.stream);
    slot.step = step;
    slot.frame_gains = frame_gains;
  }
  static std::size_t band_steps(const GopShape& shape) {
    return shape.step_origin.back() + static_cast<std::size_t>(shape.frames);
  }

  int list_segments(const LayeredGop& in, const GopShape& shape);
  bool plan_segments(const LayeredGop& in, DecodeSlot& slot);
  bool plan_dense(const LayeredGop& in, DecodeSlot& slot);
  template <class Wanted>
  std::size_t gather_parts(DecodeSlot& slot, const Wanted& wanted);
  std::uint32_t list_dense_parts(DecodeSlot& slot, std::size_t& codeword_bytes);

  template <class T, class V>
  void run(DecodeSlot& slot, GopTransforms<T>& transforms, const MotionOfGop* gop_motion) {
    const GopShape& shape = *slot.shape;
    auto* coefficients = reinterpret_cast<V*>(slot.coefficients.data());
    check(cudaMemsetAsync(coefficients, 0, shape.coefficient_origin.back() * sizeof(V), slot.stream.get()),
          "cudaMemsetAsync");
    const float* steps = header.lossless ? nullptr : slot.steps.data() + band_steps(shape);
    if (slot.dense)
      slot.dense->restore(coefficients, steps, header.centroid, slot.stream);
    else
      slot.fast->restore(coefficients, steps, header.centroid, slot.stream);
    const float* gains =
        slot.frame_gains.empty() || header.lossless ? nullptr : slot.steps.data() + shape.step_origin.back();
    if (!gop_motion)
      return transforms.inverse(coefficients, slot.steps.data(), gains, slot.samples.data(), slot.stream);
    motion->begin(slot.stream);
    std::vector<float> gain;
    for (int c = 0; c < static_cast<int>(shape.shapes.size()); ++c) {
      transforms.inverse(coefficients, slot.steps.data(), c, motion->values<T>(shape, c), slot.stream);
      gain.push_back(transforms.gain_of(c));
    }
    motion->to_samples<T>(shape, *gop_motion, gain.data(), slot.samples.data(), slot.stream);
    motion->end(slot.stream);
  }
};

// Which received segment has which number; the most planes of any.
int DecodePipeline::State::list_segments(const LayeredGop& in, const GopShape& shape) {
  std::atomic<int> most{1};
  received.assign(shape.plan->segments(), nullptr);
  for_blocks(shape, [&](std::size_t c, int block) {
    const BlockGrid& grid = shape.geometry->grid(static_cast<int>(c));
    const auto& segments = in.components[c].blocks[static_cast<std::size_t>(block)];
    int top = 1;
    for (int b = 0; b < grid.table().temporal_bands(); ++b)
      for (int k = 0; k < grid.resolutions(); ++k) {
        const LayeredSegment& s = segments[static_cast<std::size_t>(segment_index(grid, b, k))];
        received[shape.plan->segment(static_cast<int>(c), b, k, block)] = &s;
        top = std::max<int>(top, s.top);
      }
    for (int seen = most; seen < top && !most.compare_exchange_weak(seen, top);) {
    }
  });
  return most;
}

// The lowest plane of every segment: where its own parts or its parent end, or the caller's limit. False if any of them
// ends above plane 0.
bool DecodePipeline::State::plan_segments(const LayeredGop& in, DecodeSlot& slot) {
  const GopShape& shape = *slot.shape;
  std::atomic<bool> whole{true};
  for_blocks(shape, [&](std::size_t c, int block) {
    const BlockGrid& grid = shape.geometry->grid(static_cast<int>(c));
    const int resolutions = grid.resolutions();
    std::vector<int> low(static_cast<std::size_t>(segment_count(grid)));
    for (int b = 0; b < grid.table().temporal_bands(); ++b)
      for (int k = 0; k < resolutions; ++k) {
        const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
        const std::uint32_t number = shape.plan->segment(static_cast<int>(c), b, k, block);
        const LayeredSegment& r = *received[number];
        int own = r.parts.empty() ? r.top : r.parts.back().low;
        const int parent = grid.families()[static_cast<std::size_t>(b)].parent;
        if (k > 0)
          own = std::max(own, low[s - 1]);
        else if (parent >= 0)
          own = std::max(own, low[static_cast<std::size_t>(segment_index(grid, parent, 0))]);
        const bool wanted = shape.plan->level(static_cast<int>(c), b, k).wanted;
        low[s] = wanted ? std::max(own, in.stop_plane) : 31;
        slot.segments.data()[number] = {r.top, static_cast<std::uint8_t>(low[s]), 0};
        if (low[s] < r.top && low[s] > 0) whole = false;
      }
  });
  return whole;
}

// The same for the dense profile (codec/entropy/dense/dense.cpp): cuts instead of planes. A block that contradicts
// itself is left out.
bool DecodePipeline::State::plan_dense(const LayeredGop& in, DecodeSlot& slot) {
  constexpr std::uint8_t kNotDecoded = 255;
  const GopShape& shape = *slot.shape;
  bool whole = true;
  slot.damage.clear();
  for (std::size_t c = 0; c < in.components.size(); ++c) {
    const int component = static_cast<int>(c);
    const BlockGrid& grid = shape.geometry->grid(component);
    const int resolutions = grid.resolutions(), bands = grid.table().temporal_bands();
    std::vector<int> cut(static_cast<std::size_t>(segment_count(grid)));
    for (int block = 0; block < grid.blocks(); ++block) {
      const char* wrong = nullptr;
      for (int b = 0; b < bands; ++b)
        for (int k = 0; k < resolutions; ++k) {
          const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
          const std::uint32_t number = shape.plan->segment(component, b, k, block);
          const LayeredSegment& r = *received[number];
          DenseSegmentInput& input = slot.dense_segments.data()[number];
          input = {0, 0, r.top, kNotDecoded, 0};
          if (!shape.plan->level(component, b, k).wanted) continue;
          if (r.top > 30) wrong = "a segment has more than 30 planes";
          const int on = parent_segment(grid, b, k);
          int own = r.parts.empty() ? 2 * r.top : r.parts.back().low;
          if (on >= 0) {
            const std::uint32_t parent = shape.plan->segment(component, on / resolutions, on % resolutions, block);
            if (r.top > received[parent]->top) wrong = "a segment has more planes than the one it depends on";
            own = std::max(own, lowest_cut(Profile::kDense, cut[static_cast<std::size_t>(on)]));
          }
          cut[s] = std::max(own, 2 * in.stop_plane);
          if (r.parts.empty() || cut[s] >= 2 * r.top) continue;
          input.cut = static_cast<std::uint8_t>(cut[s]);
          if (cut[s] > 0) whole = false;
        }
      if (!wrong) continue;
      slot.damage.push_back("component " + std::to_string(c) + ", code block " +
                            std::to_string(block / grid.columns()) + "," + std::to_string(block % grid.columns()) +
                            ": " + wrong);
      for (int b = 0; b < bands; ++b)
        for (int k = 0; k < resolutions; ++k)
          slot.dense_segments.data()[shape.plan->segment(component, b, k, block)].cut = kNotDecoded;
    }
  }
  return whole;
}

// What the device puts together to codewords: the parts of every segment that its cut needs. Returns how many.
std::uint32_t DecodePipeline::State::list_dense_parts(DecodeSlot& slot, std::size_t& codeword_bytes) {
  const auto layers = static_cast<std::size_t>(slot.shape->plan->layers());
  std::uint32_t count = 0;
  codeword_bytes = 0;
  for (std::size_t s = 0; s < received.size(); ++s) {
    DenseSegmentInput& input = slot.dense_segments.data()[s];
    if (input.cut >= 2 * input.top) continue;
    const auto& parts = received[s]->parts;
    input.offset = codeword_bytes;
    std::size_t n = 0;
    while (n + 1 < parts.size() && parts[n].low > input.cut) ++n;
    for (std::size_t i = 0; i <= n; ++i) {
      const PartInput& p = slot.parts.data()[s * layers + i];
      if (p.size == 0) continue;
      slot.dense_parts.data()[count++] = {p.offset, codeword_bytes, p.size, 0};
      codeword_bytes += p.size;
    }
    input.size = static_cast<std::uint32_t>(codeword_bytes - input.offset);
    codeword_bytes = (codeword_bytes + 3) / 4 * 4;
  }
  return count;
}

// Copies the parts of wanted segments into page-locked memory; those of a chunk are already in order. Returns bytes.
template <class Wanted>
std::size_t DecodePipeline::State::gather_parts(DecodeSlot& slot, const Wanted& wanted) {
  const TreePlan& plan = *slot.shape->plan;
  const auto layers = static_cast<std::size_t>(plan.layers());
  const std::vector<std::uint32_t>& order = plan.part_order();
  const auto part_of = [&](std::uint32_t id) -> const LayerPart* {
    const std::vector<LayerPart>& parts = received[id / layers]->parts;
    return id % layers < parts.size() ? &parts[id % layers] : nullptr;
  };
  // Where the parts of a share begin; the first entry stays 0.
  std::array<std::size_t, kMostShares + 1> begin{};
  const int shares = in_shares(order.size(), [&](std::size_t first, std::size_t end, int share) {
    std::size_t bytes = 0;
    for (std::size_t i = first; i < end; ++i)
      if (const LayerPart* p = part_of(order[i]); p && wanted(order[i] / layers)) bytes += p->size;
    begin[static_cast<std::size_t>(share) + 1] = bytes;
  });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  const std::size_t total = begin[static_cast<std::size_t>(shares)];
  if (slot.host_bytes.size() < total + kPadding) {
    const std::size_t room = total + total / 4 + 4096;
    slot.bytes = {};
    slot.host_bytes = {};
    slot.host_bytes = PinnedBuffer<std::uint8_t>(room);
    slot.bytes = DeviceBuffer<std::uint8_t>(room);
  }
  std::uint8_t* to = slot.host_bytes.data();
  in_shares(order.size(), [&](std::size_t first, std::size_t end, int share) {
    std::size_t at = begin[static_cast<std::size_t>(share)];
    const std::uint8_t* run = nullptr;
    std::size_t run_bytes = 0;
    const auto flush = [&] {
      if (run_bytes) std::memcpy(to + at - run_bytes, run, run_bytes);
      run_bytes = 0;
    };
    for (std::size_t i = first; i < end; ++i) {
      PartInput& part = slot.parts.data()[order[i]];
      part = {at, 0, 0};
      const LayerPart* p = part_of(order[i]);
      if (!p) continue;
      part.low = p->low;
      if (!wanted(order[i] / layers)) continue;
      part.size = p->size;
      if (p->size == 0) continue;
      if (run_bytes == 0 || run + run_bytes != p->data) {
        flush();
        run = p->data;
      }
      run_bytes += p->size;
      at += p->size;
    }
    flush();
  });
  std::memset(to + total, 0, kPadding);
  return total;
}

DecodePipeline::DecodePipeline(const StreamHeader& header, const Reduction& reduction, const PipelineOptions& options,
                               ThreadPool& pool) {
  check(cudaSetDevice(options.device), "cudaSetDevice");
  state_ = std::make_unique<State>(header, reduction, options, pool);
}
DecodePipeline::~DecodePipeline() {
  forget(cudaSetDevice(state_->options.device));
  for (const auto& s : state_->slots) forget(cudaStreamSynchronize(s->stream.get()));
  forget(cudaStreamSynchronize(state_->download.get()));
  (void)free_idle_memory();
}

int DecodePipeline::slots() const { return static_cast<int>(state_->most_slots); }
int DecodePipeline::in_flight() const { return static_cast<int>(state_->flying); }

std::size_t DecodePipeline::device_bytes() const {
  std::size_t n = 0;
  for (const auto& s : state_->slots) n += s->device_bytes();
  for (const auto& [key, s] : state_->shapes) n += s->device_bytes();
  if (state_->motion) n += state_->motion->device_bytes();
  return n;
}

void DecodePipeline::submit(const LayeredGop& in) {
  State& s = *state_;
  check(cudaSetDevice(s.options.device), "cudaSetDevice");
  const GopShape& shape = s.shape_of(in);
  const int top = s.list_segments(in, shape);
  if (s.slots.empty()) s.add_slot(in, top);
  require(s.flying < s.slots.size(), ErrorKind::kInternal, "no free slot: collect a GOP first");
  choose_slot(s.slots, s.next, s.slots.size() - s.flying, shape, s.header.gop_frames);
  DecodeSlot& slot = *s.slots[s.next];
  const IdleMemory idle;  // the GOP that was here before is collected
  s.prepare(slot, shape, top);
  const bool whole = s.dense() ? s.plan_dense(in, slot) : s.plan_segments(in, slot);
  std::size_t bytes = 0, codeword_bytes = 0;
  std::uint32_t dense_parts = 0;
  if (s.dense()) {
    bytes = s.gather_parts(slot, [&](std::size_t i) {
      const DenseSegmentInput& d = slot.dense_segments.data()[i];
      return d.cut < 2 * d.top;
    });
    dense_parts = s.list_dense_parts(slot, codeword_bytes);
  } else {
    bytes = s.gather_parts(slot, [&](std::size_t i) { return slot.segments.data()[i].low < s.received[i]->top; });
  }
  const Storage storage = !s.header.lossless && !whole ? Storage::kReal : top <= 15 ? Storage::kNarrow : Storage::kWide;
  s.reserve(slot, storage == Storage::kNarrow ? 2 : 4);

  slot.begun.record(slot.stream);
  slot.only_keys = in.only_keys;
  if (in.begins && s.motion) s.motion->forget_keys();
  s.set_steps(slot, in.step, in.frame_gains);
  if (in.motion)
    slot.motion.submit(*in.motion, in.only_keys ? in.motion->places.levels : slot.shape->reduction.temporal, &s.pool,
                       slot.stream);
  copy(slot.bytes.data(), slot.host_bytes.data(), bytes + kPadding, cudaMemcpyHostToDevice, slot.stream);
  if (s.dense()) {
    copy(slot.dense->segments(), slot.dense_segments.data(), shape.plan->segments(), cudaMemcpyHostToDevice,
         slot.stream);
    copy(slot.device_parts.data(), slot.dense_parts.data(), dense_parts, cudaMemcpyHostToDevice, slot.stream);
    slot.uploaded.record(slot.stream);
    slot.dense->decode(slot.bytes.data(), slot.device_parts.data(), dense_parts, codeword_bytes, slot.stream);
  } else {
    copy(slot.fast->segments(), slot.segments.data(), shape.plan->segments(), cudaMemcpyHostToDevice, slot.stream);
    copy(slot.fast->parts(), slot.parts.data(), shape.plan->parts(), cudaMemcpyHostToDevice, slot.stream);
    slot.uploaded.record(slot.stream);
    slot.fast->decode(slot.bytes.data(), bytes, slot.stream);
  }
  MotionOfGop moving;
  const MotionOfGop* motion = nullptr;
  if (in.motion) {
    moving = {in.motion->places, slot.motion.cells(), in.follows, in.motion->predicts_keys, in.only_keys};
    motion = &moving;
  }
  if (s.header.lossless)
    storage == Storage::kNarrow ? s.run<std::int32_t, std::int16_t>(slot, *slot.integer, motion)
                                : s.run<std::int32_t, std::int32_t>(slot, *slot.integer, motion);
  else if (storage == Storage::kReal)
    s.run<float, float>(slot, *slot.real, motion);
  else
    storage == Storage::kNarrow ? s.run<float, std::int16_t>(slot, *slot.real, motion)
                                : s.run<float, std::int32_t>(slot, *slot.real, motion);
  slot.decoded.record(slot.stream);
  s.next = (s.next + 1) % s.slots.size();
  ++s.flying;
  s.start_downloads();
  if (s.flying == s.slots.size() && s.slots.size() < s.most_slots) s.add_slot(in, top);
}

// Downloads the frames of the oldest GOPs, one after the other.
void DecodePipeline::State::start_downloads() {
  for (std::size_t i = 0; i < std::min(flying, kDownloads); ++i) {
    DecodeSlot& slot = flying_slot(i);
    if (slot.frames) continue;
    if (unused.empty() && places < kDownloads) {
      unused.push_back(std::make_unique<Gop>(output, header.most_frames(reduction.temporal), frame_memory(options)));
      ++places;
    }
    if (unused.empty()) return;
    slot.frames = std::move(unused.back());
    unused.pop_back();
    const GopShape& shape = *slot.shape;
    slot.decoded.hold(download);
    slot.downloading.record(download);
    if (slot.fast)
      copy(slot.errors.data(), slot.fast->errors(), shape.plan->blocks(), cudaMemcpyDeviceToHost, download);
    slot.frames->set_frames(shape.frames_left());
    for (int c = 0; c < slot.frames->components() && !slot.only_keys; ++c) {
      const auto n = static_cast<std::size_t>(c);
      copy(slot.frames->plane(c).data, slot.samples.data() + shape.sample_origin[n],
           shape.sample_origin[n + 1] - shape.sample_origin[n], cudaMemcpyDefault, download);
    }
    slot.done.record(download);
  }
}

SampleAllocator frame_memory(const PipelineOptions& options) {
  if (!options.frames_stay) return page_locked;
  return [device = options.device](std::size_t bytes) -> std::shared_ptr<std::byte> {
    check(cudaSetDevice(device), "cudaSetDevice");
    const auto buffer = std::make_shared<DeviceBuffer<std::byte>>(bytes);
    return {buffer, buffer->data()};
  };
}

void DecodePipeline::give_back(std::unique_ptr<Gop> frames) { state_->unused.push_back(std::move(frames)); }

bool DecodePipeline::is_ready() const {
  if (state_->flying == 0) return false;
  check(cudaSetDevice(state_->options.device), "cudaSetDevice");
  const DecodeSlot& slot = state_->flying_slot(0);
  return slot.frames && slot.done.is_reached();
}

bool DecodePipeline::collect(Result& result) {
  State& s = *state_;
  if (s.flying == 0) return false;
  check(cudaSetDevice(s.options.device), "cudaSetDevice");
  s.start_downloads();
  DecodeSlot& slot = s.flying_slot(0);
  require(slot.frames != nullptr, ErrorKind::kInternal, "frames of the GOP before were not given back");
  slot.done.synchronize();
  --s.flying;
  check(cudaGetLastError(), "a kernel of the decoder");
  const GopShape& shape = *slot.shape;
  result.shape = &shape;
  result.frames = std::move(slot.frames);
  result.times = {slot.uploaded.since(slot.begun), slot.decoded.since(slot.uploaded),
                  slot.done.since(slot.downloading)};
  result.damage = slot.damage;
  for (std::uint32_t i = 0; slot.fast && i < shape.plan->blocks(); ++i) {
    const BlockError& e = slot.errors.data()[i];
    if (!e.segment_and_one) continue;
    for (const DeviceLevel& l : shape.plan->levels()) {
      const std::uint32_t block = e.segment_and_one - 1 - l.first_segment;
      if (e.segment_and_one - 1 < l.first_segment || block >= static_cast<std::uint32_t>(l.rows * l.columns)) continue;
      const auto columns = static_cast<std::uint32_t>(l.columns);
      result.damage.push_back(
          "component " + std::to_string(l.component) + ", code block " + std::to_string(block / columns) + "," +
          std::to_string(block % columns) + ", temporal band " + std::to_string(l.family) + ", resolution " +
          std::to_string(l.k) + ", plane " + std::to_string(e.plane) +
          (e.used == e.size
               ? ": the padding of the part is not zero"
               : ": the bits need " + std::to_string(e.used) + " bytes, the part has " + std::to_string(e.size)));
      break;
    }
  }
  return true;
}

}  // namespace trivelet::gpu
