// Decoding on the CPU: all code blocks of a group of components (component_groups.h) in parallel, then the inverse
// transform, then the next group in the same memory. Patches without any coefficient are not written but noted
// (zero_patches.h), and the inverse transform skips them. Large components with few coefficients, and all with motion,
// are decoded to what is not zero (patch_store.h).

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/base/frame_pool.h"
#include "codec/base/simd.h"
#include "codec/cpu/component_groups.h"
#include "codec/cpu/cpu_backend.h"
#include "codec/cpu/cpu_fields.h"
#include "codec/cpu/decoded_keys.h"
#include "codec/cpu/gop_block_decoder.h"
#include "codec/cpu/motion_gop.h"
#include "codec/cpu/patch_store.h"
#include "codec/cpu/strip_inverse.h"
#include "codec/threads/parallel.h"
#include "codec/threads/stage_timer.h"
#include "codec/transform/colour.h"
#include "codec/transform/dwt.h"
#include "codec/transform/zero_patches.h"

namespace trivelet {

namespace {

// Bytes of a block of memory for frames in 16 bits: of one of the largest component, whose samples need a half of that,
// or of several that are small, but not of most of a GOP.
std::size_t pool_bytes(const StreamHeader& header, const Reduction& reduction) {
  constexpr std::size_t kLeast = std::size_t{4} << 20;  // two huge pages
  constexpr std::size_t kBlocks = 8;
  const Shape shape = header.component_shape(0, header.gop_frames + 1);
  const std::size_t frame = sizeof(std::int16_t) *
                            static_cast<std::size_t>(low_length(shape.height, reduction.spatial)) *
                            static_cast<std::size_t>(low_length(shape.width, reduction.spatial));
  const std::size_t with_gaps = frame + frame / 128 + 1024;  // of the alignment of smaller frames
  const std::size_t share = with_gaps * static_cast<std::size_t>(shape.frames) / kBlocks;
  return std::max(with_gaps, std::min(kLeast, share));
}

class CpuDecoder final : public GopDecoder {
 public:
  CpuDecoder(const StreamHeader& header, const Reduction& reduction, const BackendOptions& options)
      : header_(header),
        headers_(header),
        reduction_(reduction),
        simd_(resolve_simd(options.simd)),
        pool_(options.threads, options.workers),
        blocks_(header_, pool_, simd_),
        motion_(header_, pool_, simd_),
        groups_(header_) {}

  int depth() const override { return 1; }

  void push(const LayeredGop& received, std::vector<std::string>* damage) override {
    received_ = &received;
    blocks_.set_damage(damage);
  }

  bool pull(Gop& gop) override { return pull(gop, false); }
  bool exchange(Gop& gop) override { return pull(gop, true); }

  bool pull(Gop& gop, bool may_exchange) {
    if (received_ && !received_->motion && says_nothing(*received_)) {
      fill(*received_, gop);
      ++number_;
      received_ = nullptr;
      return true;
    }
    if (!received_) return false;
    const LayeredGop& in = *std::exchange(received_, nullptr);
    if (in.only_keys)
      header_.lossless ? decode_keys<std::int32_t>(in, gop) : decode_keys<float>(in, gop);
    else if (in.motion && !header_.colour_transform)
      header_.lossless ? decode_moving<std::int32_t>(in, gop, may_exchange)
                       : decode_moving<float>(in, gop, may_exchange);
    else
      header_.lossless ? decode_in_groups<std::int32_t>(in, gop) : decode_in_groups<float>(in, gop);
    return true;
  }

  bool pull(CoefficientGop& out) override {
    if (!received_) return false;
    const LayeredGop& in = *std::exchange(received_, nullptr);
    header_.lossless ? decode_all<std::int32_t>(in, out) : decode_all<float>(in, out);
    return true;
  }

  void inverse(CoefficientGop& coefficients, Gop& gop) override {
    header_.lossless ? inverse_all<std::int32_t>(coefficients, gop) : inverse_all<float>(coefficients, gop);
  }

  double seconds_transform() const override { return transform_time_.seconds; }
  double seconds_coder() const override { return blocks_.time().seconds; }
  double busy_transform() const override { return transform_time_.busy; }
  double busy_coder() const override { return blocks_.time().busy; }
  const ThreadPool* pool() const override { return &pool_; }

 private:
  auto pool_times() const {
    return [this] { return pool_.times(); };
  }

  // No segment has a plane: every component of the GOP is one constant, so a fill is enough.
  bool says_nothing(const LayeredGop& in) const {
    const int unit = cuts_per_plane(header_.profile);
    for (const auto& component : in.components)
      for (const auto& block : component.blocks)
        for (const LayeredSegment& s : block)
          if (!s.parts.empty() && s.parts.back().low < unit * s.top) return false;
    return true;
  }

  void fill(const LayeredGop& in, Gop& gop) {
    const StageTimer timer(transform_time_, pool_times());
    gop.set_frames(Reduced(header_, reduction_, in.frames).frames);
    const PixelFormat& f = header_.video.format;
    for (int c = 0; c < gop.components(); ++c) {
      const std::size_t offset_of = header_.colour_transform && c < 3 ? 0 : static_cast<std::size_t>(c);
      const int value = std::clamp(header_.components[offset_of].offset, lowest_sample(f), highest_sample(f));
      const MutableVolumeView v = gop.plane(c);
      pool_.parallel_for(gop.frames(), [&](int frame, int) {
        for (int y = 0; y < v.shape.height; ++y) {
          std::byte* row = v.row(frame, y);
          if (v.bytes_per_sample == 1)
            std::memset(row, value & 0xff, static_cast<std::size_t>(v.shape.width));
          else
            std::fill_n(reinterpret_cast<std::uint16_t*>(row), v.shape.width, static_cast<std::uint16_t>(value));
        }
      });
    }
  }

  // Makes samples of one group of components after the other, in the same memory.
  template <class T>
  void decode_in_groups(const LayeredGop& in, Gop& gop) {
    const Reduced r(headers_.of(in.motion.get()), reduction_, in.frames);
    describe(in, r, described_);
    gop.set_frames(described_.frames);
    keys_.begin(described_);
    frame_pool_.trim();
    const std::vector<Shape> shapes = shapes_of(r);
    // The dyadic layout visits a row several times, so patches must be written.
    std::vector<ZeroPatches> left_out;
    std::vector<ZeroPatches>* zeros = header_.layout == Layout::kT2d ? &left_out : nullptr;
    const std::size_t limit = group_limit(in, r, shapes);
    for (int first = 0; first < static_cast<int>(shapes.size());) {
      if (takes_strips(in, r, first)) {
        decode_strips<T>(in, r, first++, gop);
        continue;
      }
      const int end = groups_.end(first, shapes, limit);
      const std::vector<Field<T>> fields = groups_.fields<T>(first, end, shapes);
      left_out.clear();
      blocks_.decode(in, r, first, fields, zeros);
      inverse_group(described_, r, first, fields, gop, zeros);
      first = end;
    }
    keys_.end(described_);
  }

  // Whether a component is large, and most of its coefficients are zero: one that is not takes some bits. Without loss
  // strips take 1.28 times as long as the whole (at 0.8 bits a pixel).
  bool takes_strips(const LayeredGop& in, const Reduced& r, int c) const {
    if (in.motion || r.frames == 0 || (header_.colour_transform && c < 3)) return false;
    const Shape shape = r.shape(c);
    const std::int64_t bits = 8 * GopBlockDecoder::coded_bytes(in.components[static_cast<std::size_t>(c)]);
    return strips_of(shape, r.decomposition(c)) > 1 &&
           (header_.lossless ? 2 : 1) * bits < static_cast<std::int64_t>(shape.samples());
  }

  // Samples of the components that are in memory at once: of the largest of those without strips, or what is there for
  // strips.
  std::size_t group_limit(const LayeredGop& in, const Reduced& r, const std::vector<Shape>& shapes) const {
    std::size_t limit = 0;
    for (int c = 0; c < static_cast<int>(shapes.size()); ++c)
      limit = std::max(limit, takes_strips(in, r, c) ? kStripValues : shapes[static_cast<std::size_t>(c)].samples());
    return limit;
  }

  // Makes samples of one component. Coefficients that are zero are not kept, and the others are transformed in strips.
  template <class T>
  void decode_strips(const LayeredGop& in, const Reduced& r, int c, Gop& gop) {
    PatchStore<T> patches = blocks_.patches_of<T>(in, r, c);
    blocks_.decode(in, c, patches);
    const StageTimer timer(transform_time_, pool_times());
    const PixelFormat& f = header_.video.format;
    inverse_in_strips<T>(
        patches, strips_of(r.shape(c), r.decomposition(c)), synthesis_gain<T>(r.header, reduction_, c, in.frames),
        header_.components[static_cast<std::size_t>(c)].offset, lowest_sample(f), highest_sample(f), gop.plane(c),
        pool_, simd_, inverse_gains(in.frame_gains, reduction_.temporal), {low_rows<T>(), groups_.memory<T>()});
  }

  // Makes samples of one component of a GOP with motion after the other. Coefficients that are zero are not kept, and
  // frames that are lifted have 16 bits where they can. With `exchanges` samples take the place of frames.
  template <class T>
  void decode_moving(const LayeredGop& in, Gop& gop, bool exchanges) {
    const Reduced r(headers_.of(in.motion.get()), reduction_, in.frames);
    describe(in, r, described_);
    gop.set_frames(described_.frames);
    keys_.begin(described_);
    release();
    if (exchanges) gop.release();
    const SampleAllocator allocate = [this](std::size_t bytes) { return frame_pool_.take(bytes); };
    for (int c = 0; c < static_cast<int>(header_.components.size()); ++c) {
      PatchStore<T> patches = blocks_.patches_of<T>(in, r, c);
      blocks_.decode(in, c, patches);
      if (r.frames == 0) continue;  // a reduced frame rate can leave no frame of a short GOP
      const StageTimer timer(transform_time_, pool_times());
      // Where samples were released by the caller, they need the room of frames.
      const bool is_pooled = exchanges || std::as_const(gop).plane(c).data;
      MotionFrames frames(patches.target().shape(), simd_, is_pooled ? &frame_pool_ : nullptr);
      inverse_space(in, r, c, patches, frames);
      if (in.no_samples)
        motion_.inverse_time(frames, c, *in.motion, r.reduction, keys_.of(described_));
      else
        motion_.inverse(frames, c, *in.motion, r.reduction, keys_.of(described_), gop, exchanges ? allocate : nullptr);
    }
    keys_.end(described_);
  }

  // Makes the keys of a GOP, of which nothing but the lowest temporal band was received: no other frame takes memory.
  template <class T>
  void decode_keys(const LayeredGop& in, Gop& gop) {
    const StreamHeader& header = headers_.of(in.motion.get());
    describe(in, Reduced(header, reduction_, in.frames), described_);
    gop.set_frames(described_.frames);
    keys_.begin(described_);
    release();
    Reduction to_keys = reduction_;
    to_keys.temporal = in.motion->places.levels;
    const Reduced r(header, to_keys, in.frames);
    for (int c = 0; c < static_cast<int>(header_.components.size()); ++c) {
      PatchStore<T> patches = blocks_.patches_of<T>(in, r, c);
      blocks_.decode(in, c, patches);
      if (r.frames == 0 || described_.frames == 0) continue;
      const StageTimer timer(transform_time_, pool_times());
      MotionFrames frames(patches.target().shape(), simd_);
      inverse_space(in, r, c, patches, frames);
      motion_.inverse_time(frames, c, *in.motion, r.reduction, keys_.of(described_));
    }
    keys_.end(described_);
  }

  template <class T>
  void decode_all(const LayeredGop& in, CoefficientGop& out) {
    const Reduced r(headers_.of(in.motion.get()), reduction_, in.frames);
    lay_out<T>(r, in.frames, in.step, out);
    describe(in, r, out);
    blocks_.decode(in, r, 0, fields_of<T>(out, r), nullptr);
  }

  template <class T>
  void inverse_all(CoefficientGop& in, Gop& gop) {
    const Reduced r(headers_.of(in.motion.get()), reduction_, in.source_frames);
    gop.set_frames(in.frames);
    keys_.begin(in);
    inverse_group(in, r, 0, fields_of<T>(in, r), gop, nullptr);
    keys_.end(in);
  }

  std::vector<Shape> shapes_of(const Reduced& r) const {
    std::vector<Shape> shapes;
    for (int c = 0; c < static_cast<int>(header_.components.size()); ++c) shapes.push_back(r.shape(c));
    return shapes;
  }

  template <class T>
  std::vector<Field<T>> fields_of(CoefficientGop& gop, const Reduced& r) const {
    std::vector<Field<T>> fields;
    for (int c = 0; c < static_cast<int>(header_.components.size()); ++c)
      fields.push_back(field_of<T>(gop, c, r.shape(c)));
    return fields;
  }

  // What the inverse transform needs to know of a GOP beside its coefficients.
  void describe(const LayeredGop& in, const Reduced& r, CoefficientGop& out) {
    blocks_.allow(in);
    out.motion = in.motion;
    out.follows = in.follows;
    if (in.begins) keys_.clear();
    out.number = ++number_;
    out.frames = r.frames;
    out.source_frames = in.frames;
    out.frame_gains = in.frame_gains;
  }

  // The frames of a component before their lifting. Threads take frames, or share each one if there are few.
  template <class T>
  void inverse_space(const LayeredGop& in, const Reduced& r, int c, PatchStore<T>& patches, MotionFrames& frames) {
    const Shape& shape = frames.shape();
    const Decomposition d = in_space(r.decomposition(c));
    const float gain = synthesis_gain<T>(r.header, reduction_, c, in.frames) * (1 << kMotionFraction);
    const auto make = [&](int t, LargeVector<T>& memory, ThreadPool& pool) {
      memory.resize(static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width));
      const Field<T> field = packed_field(memory.data(), {1, shape.height, shape.width});
      const ZeroPatches left_out = patches.take(t, field);
      inverse_transform<T>(field, d, pool, simd_, {}, &left_out);
      if constexpr (std::is_floating_point_v<T>)
        frames.set(t, field.data, gain);
      else
        frames.set(t, field.data);
    };
    const int first = first_place(in.motion->places.key);
    for (int t = 0; t < first; ++t) frames.set_zero(t);
    if (shape.frames - first < pool_.threads()) {
      LargeVector<T> memory;
      for (int t = first; t < shape.frames; ++t) make(t, memory, pool_);
      return;
    }
    std::vector<LargeVector<T>> memory(static_cast<std::size_t>(pool_.threads()));
    pool_.parallel_for(shape.frames - first, [&](int i, int worker) {
      ThreadPool alone(1);
      make(first + i, memory[static_cast<std::size_t>(worker)], alone);
    });
  }

  // Makes samples of the components from `first` on, one for each field.
  template <class T>
  void inverse_group(const CoefficientGop& in, const Reduced& r, int first, const std::vector<Field<T>>& fields,
                     Gop& gop, const std::vector<ZeroPatches>* zeros) {
    const StageTimer timer(transform_time_, pool_times());
    if (in.frames == 0) return;  // a reduced frame rate can leave no frame of a short GOP
    const PixelFormat& f = header_.video.format;
    const auto zeros_of = [&](std::size_t i) { return zeros ? &(*zeros)[i] : nullptr; };
    const auto gain_of = [&](int c) { return synthesis_gain<T>(r.header, reduction_, c, in.source_frames); };
    if (in.motion) {
      std::vector<float> field_gains;
      const int uncoded = first_place(in.motion->places.key);
      for (std::size_t i = 0; i < fields.size(); ++i) {
        const int c = first + static_cast<int>(i);
        field_gains.push_back(gain_of(c));
        std::fill_n(fields[i].data, uncoded * fields[i].frame_stride, T{});
        inverse_transform<T>(fields[i], in_space(r.decomposition(c)), pool_, simd_, {}, zeros_of(i));
      }
      return motion_.inverse<T>(fields, first, field_gains, *in.motion, r.reduction, keys_.of(in), gop);
    }
    const std::vector<float> gains = inverse_gains(in.frame_gains, reduction_.temporal);
    std::size_t i = 0;
    if (first == 0 && header_.colour_transform) {
      for (; i < 3; ++i)
        inverse_transform<T>(fields[i], r.decomposition(static_cast<int>(i)), pool_, simd_, gains, zeros_of(i));
      inverse_colour<T>(fields[0], fields[1], fields[2], gain_of(0), header_.components[0].offset, highest_sample(f),
                        gop, pool_);
    }
    for (; i < fields.size(); ++i) {
      const int c = first + static_cast<int>(i);
      inverse_transform<T>(fields[i], r.decomposition(c), gain_of(c),
                           header_.components[static_cast<std::size_t>(c)].offset, lowest_sample(f), highest_sample(f),
                           gop.plane(c), pool_, simd_, gains, zeros_of(i));
    }
  }

  template <class T>
  LargeVector<T>& low_rows() {
    if constexpr (std::is_floating_point_v<T>)
      return real_low_;
    else
      return integer_low_;
  }

  // The memory of coefficients, for frames that are lifted.
  void release() {
    groups_.release();
    LargeVector<float>().swap(real_low_);
    LargeVector<std::int32_t>().swap(integer_low_);
  }

  StreamHeader header_;
  GopHeaders headers_;
  Reduction reduction_;
  SimdLevel simd_;
  ThreadPool pool_;
  GopBlockDecoder blocks_;
  MotionTransform motion_;
  DecodedKeys keys_{header_};
  std::uint64_t number_ = 0;                               // GOPs decoded so far
  FramePool frame_pool_{pool_bytes(header_, reduction_)};  // of frames that are lifted, and of samples
  ComponentGroups groups_;
  LargeVector<float> real_low_;  // of strips
  LargeVector<std::int32_t> integer_low_;
  CoefficientGop described_;  // the last GOP without its coefficients, which were in groups_
  const LayeredGop* received_ = nullptr;
  StageTime transform_time_;
};

}  // namespace

std::unique_ptr<GopDecoder> make_transform_decoder(const StreamHeader& header, const Reduction& reduction,
                                                   const BackendOptions& options) {
  return std::make_unique<CpuDecoder>(header, reduction, options);
}

}  // namespace trivelet
