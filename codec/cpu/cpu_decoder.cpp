// Decoding on the CPU: all code blocks of all components in parallel, then the inverse transform. Patches without any
// coefficient are not written but noted (zero_patches.h), and the inverse transform skips them.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "codec/base/simd.h"
#include "codec/cpu/cpu_backend.h"
#include "codec/cpu/cpu_fields.h"
#include "codec/cpu/motion_gop.h"
#include "codec/entropy/dense/dense.h"
#include "codec/entropy/fast/zerotree.h"
#include "codec/threads/parallel.h"
#include "codec/threads/stage_timer.h"
#include "codec/transform/colour.h"
#include "codec/transform/dwt.h"
#include "codec/transform/zero_patches.h"

namespace trivelet {

namespace {

class CpuDecoder final : public GopDecoder {
 public:
  CpuDecoder(const StreamHeader& header, const Reduction& reduction, const BackendOptions& options)
      : header_(header),
        headers_(header),
        reduction_(reduction),
        simd_(resolve_simd(options.simd)),
        pool_(options.threads, options.workers),
        motion_(header_, pool_, simd_) {
    for (int i = 0; i < pool_.threads(); ++i) {
      if (header.profile == Profile::kDense)
        dense_.push_back(std::make_unique<DenseDecoder>());
      else
        fast_.push_back(std::make_unique<BlockDecoder>(header.fast_mode, simd_));
    }
  }

  int depth() const override { return 1; }

  void push(const LayeredGop& received, std::vector<std::string>* damage) override {
    received_ = &received;
    damage_ = damage;
  }

  bool pull(Gop& gop) override {
    if (received_ && !received_->motion && says_nothing(*received_)) {
      fill(*received_, gop);
      ++number_;
      received_ = nullptr;
      return true;
    }
    if (!received_) return false;
    const LayeredGop& in = *std::exchange(received_, nullptr);
    // The dyadic layout visits a row several times, so patches must be written.
    zeros_.clear();
    std::vector<ZeroPatches>* zeros = header_.layout == Layout::kT2d ? &zeros_ : nullptr;
    if (header_.lossless) {
      decode_as<std::int32_t>(in, coefficients_, zeros);
      inverse_as<std::int32_t>(coefficients_, gop, zeros);
    } else {
      decode_as<float>(in, coefficients_, zeros);
      inverse_as<float>(coefficients_, gop, zeros);
    }
    return true;
  }

  bool pull(CoefficientGop& out) override {
    if (!received_) return false;
    const LayeredGop& in = *received_;
    received_ = nullptr;
    header_.lossless ? decode_as<std::int32_t>(in, out, nullptr) : decode_as<float>(in, out, nullptr);
    return true;
  }

  void inverse(CoefficientGop& coefficients, Gop& gop) override {
    header_.lossless ? inverse_as<std::int32_t>(coefficients, gop, nullptr)
                     : inverse_as<float>(coefficients, gop, nullptr);
  }

  double seconds_transform() const override { return transform_time_.seconds; }
  double seconds_coder() const override { return coder_time_.seconds; }
  double busy_transform() const override { return transform_time_.busy; }
  double busy_coder() const override { return coder_time_.busy; }
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

  // Codewords may read as many bits past their ends as the stream itself has, and a little more. This bounds the work
  // that a damaged stream can cause.
  void allow(const LayeredGop& in) {
    std::int64_t bytes = 0;
    for (const auto& component : in.components)
      for (const auto& block : component.blocks)
        for (const LayeredSegment& s : block)
          for (const LayerPart& part : s.parts) bytes += part.size;
    allowance_ += 8 * bytes;
    for (const auto& decoder : dense_) decoder->set_allowance(&allowance_);
  }

  // With `zeros`, patches that are zero are not written but noted there, component by component.
  template <class T>
  void decode_as(const LayeredGop& in, CoefficientGop& out, std::vector<ZeroPatches>* zeros) {
    const StageTimer timer(coder_time_, pool_times());
    allow(in);
    const Reduced r(headers_.of(in.motion.get()), reduction_, in.frames);
    lay_out<T>(r, in.frames, in.step, out);
    out.motion = in.motion;
    out.follows = in.follows;
    out.number = ++number_;
    out.frames = r.frames;
    out.source_frames = in.frames;
    out.frame_gains = in.frame_gains;
    struct Task {
      int component, by, bx;
    };
    std::vector<Task> tasks;
    std::vector<StepTable> steps;
    std::vector<SubbandTable> targets;
    for (int c = 0; c < static_cast<int>(in.components.size()); ++c) {
      const BlockGrid& grid = *in.components[static_cast<std::size_t>(c)].grid;
      targets.emplace_back(r.shape(c), r.decomposition(c), header_.lossless);
      if (zeros) zeros->emplace_back(grid, targets.back());
      steps.emplace_back(grid.table(), header_.lossless ? 1.0f : in.step,
                         header_.components[static_cast<std::size_t>(c)]);
      for (int by = 0; by < grid.rows(); ++by)
        for (int bx = 0; bx < grid.columns(); ++bx) tasks.push_back({c, by, bx});
    }
    std::mutex mutex;
    pool_.parallel_for(static_cast<int>(tasks.size()), [&](int i, int worker) {
      const Task& t = tasks[static_cast<std::size_t>(i)];
      const auto c = static_cast<std::size_t>(t.component);
      const auto& component = in.components[c];
      const auto& segments = component.blocks[static_cast<std::size_t>(t.by * component.grid->columns() + t.bx)];
      const Field<T> field = field_of<T>(out, t.component, r.shape(t.component));
      ZeroPatches* left_out = zeros ? &(*zeros)[c] : nullptr;
      try {
        const StepTable* step = header_.lossless ? nullptr : &steps[c];
        if (header_.profile == Profile::kDense)
          dense_[static_cast<std::size_t>(worker)]->decode(*component.grid, targets[c], t.by, t.bx, segments,
                                                           in.stop_plane, header_.centroid, step, field, left_out);
        else
          fast_[static_cast<std::size_t>(worker)]->decode(*component.grid, targets[c], t.by, t.bx, segments,
                                                          in.stop_plane, header_.centroid, step, field, left_out);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kBadStream || !damage_) throw;
        BlockDecoder::clear(*component.grid, targets[c], t.by, t.bx, field, left_out);
        const std::lock_guard lock(mutex);
        damage_->push_back("component " + std::to_string(t.component) + ", " + e.what());
      }
    });
  }

  template <class T>
  void inverse_as(CoefficientGop& in, Gop& gop, const std::vector<ZeroPatches>* zeros) {
    const StageTimer timer(transform_time_, pool_times());
    const StreamHeader& header = headers_.of(in.motion.get());
    const Reduced r(header, reduction_, 1);
    gop.set_frames(in.frames);
    if (in.frames == 0) return;  // a reduced frame rate can leave no frame of a short GOP
    const PixelFormat& f = header_.video.format;
    const auto zeros_of = [&](int c) { return zeros ? &(*zeros)[static_cast<std::size_t>(c)] : nullptr; };
    const auto gain_of = [&](int c) { return synthesis_gain<T>(header, reduction_, c, in.source_frames); };
    auto shape = [&](int c) {
      Shape s = r.shape(c);
      s.frames = header.component_shape(c, in.frames).frames;
      return s;
    };
    if (in.motion) {
      std::vector<Field<T>> fields;
      std::vector<float> field_gains;
      const int first = first_place(in.motion->places.key);
      for (int k = 0; k < gop.components(); ++k) {
        fields.push_back(field_of<T>(in, k, shape(k)));
        field_gains.push_back(gain_of(k));
        std::fill_n(fields.back().data, first * fields.back().frame_stride, T{});  // place 0 is not coded
        inverse_transform<T>(fields.back(), in_space(r.decomposition(k)), pool_, simd_, {}, zeros_of(k));
      }
      const bool open = in.motion->places.key == GopKey::kOpen && in.follows;
      require(!open || (key_number_ + 1 == in.number && !key_.empty()), ErrorKind::kBadStream,
              "a GOP is predicted from the one before, of which no samples were made");
      const MotionKey before = open ? std::exchange(key_, {}) : MotionKey();
      key_number_ = in.number;
      return motion_.inverse<T>(fields, field_gains, *in.motion, r.reduction, {&before, &key_, nullptr}, gop);
    }
    const std::vector<float> gains = inverse_gains(in.frame_gains, reduction_.temporal);
    int c = 0;
    if (header_.colour_transform) {
      Field<T> fields[3];
      for (; c < 3; ++c) {
        fields[c] = field_of<T>(in, c, shape(c));
        inverse_transform<T>(fields[c], r.decomposition(c), pool_, simd_, gains, zeros_of(c));
      }
      inverse_colour<T>(fields[0], fields[1], fields[2], gain_of(0), header_.components[0].offset, highest_sample(f),
                        gop, pool_);
    }
    for (; c < gop.components(); ++c)
      inverse_transform<T>(field_of<T>(in, c, shape(c)), r.decomposition(c), gain_of(c),
                           header_.components[static_cast<std::size_t>(c)].offset, lowest_sample(f), highest_sample(f),
                           gop.plane(c), pool_, simd_, gains, zeros_of(c));
  }

  StreamHeader header_;
  GopHeaders headers_;
  Reduction reduction_;
  SimdLevel simd_;
  ThreadPool pool_;
  MotionTransform motion_;
  MotionKey key_;  // of the last GOP with motion whose samples were made
  std::uint64_t key_number_ = 0;
  std::uint64_t number_ = 0;  // GOPs decoded so far
  std::vector<std::unique_ptr<BlockDecoder>> fast_;
  std::vector<std::unique_ptr<DenseDecoder>> dense_;
  std::atomic<std::int64_t> allowance_{8 * 4096};  // bits
  CoefficientGop coefficients_;
  std::vector<ZeroPatches> zeros_;  // of coefficients_, per component
  const LayeredGop* received_ = nullptr;
  std::vector<std::string>* damage_ = nullptr;
  StageTime transform_time_;
  StageTime coder_time_;
};

}  // namespace

std::unique_ptr<GopDecoder> make_transform_decoder(const StreamHeader& header, const Reduction& reduction,
                                                   const BackendOptions& options) {
  return std::make_unique<CpuDecoder>(header, reduction, options);
}

}  // namespace trivelet
