// Entropy decoding of a GOP's code blocks (gop_block_decoder.h).
#include "codec/cpu/gop_block_decoder.h"

#include <utility>

#include "codec/entropy/dense/dense.h"
#include "codec/entropy/fast/zerotree.h"
#include "codec/transform/tree.h"

namespace trivelet {

GopBlockDecoder::GopBlockDecoder(const StreamHeader& header, ThreadPool& pool, SimdLevel simd)
    : header_(header), pool_(pool), simd_(simd) {
  for (int i = 0; i < pool_.threads(); ++i) {
    if (header.profile == Profile::kDense)
      dense_.push_back(std::make_unique<DenseDecoder>());
    else
      fast_.push_back(std::make_unique<BlockDecoder>(header.fast_mode, simd));
  }
}

GopBlockDecoder::~GopBlockDecoder() = default;

void GopBlockDecoder::allow(const LayeredGop& in) {
  std::int64_t bytes = 0;
  for (const auto& component : in.components) bytes += coded_bytes(component);
  allowance_ += 8 * bytes;
  for (const auto& decoder : dense_) decoder->set_allowance(&allowance_);
}

StepTable GopBlockDecoder::steps_of(const LayeredGop& in, int c) const {
  const auto i = static_cast<std::size_t>(c);
  return {in.components[i].grid->table(), header_.lossless ? 1.0f : in.step, header_.components[i]};
}

template <class T>
void GopBlockDecoder::decode(const LayeredGop& in, const Reduced& r, int first, const std::vector<Field<T>>& fields,
                             std::vector<ZeroPatches>* zeros) {
  const StageTimer timer(time_, [this] { return pool_.times(); });
  std::vector<SubbandTable> targets;
  std::vector<Task> tasks;
  std::vector<StepTable> steps;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const int c = first + static_cast<int>(i);
    const BlockGrid& grid = *in.components[static_cast<std::size_t>(c)].grid;
    targets.emplace_back(fields[i].shape, r.decomposition(c), header_.lossless);
    if (zeros) zeros->emplace_back(grid, targets.back());
    steps.push_back(steps_of(in, c));
    for (int by = 0; by < grid.rows(); ++by)
      for (int bx = 0; bx < grid.columns(); ++bx) tasks.push_back({c, by, bx});
  }
  pool_.parallel_for(static_cast<int>(tasks.size()), [&](int k, int worker) {
    const Task& task = tasks[static_cast<std::size_t>(k)];
    const auto i = static_cast<std::size_t>(task.component - first);
    decode_block<T>(in, task, worker, targets[i], steps[i], {fields[i]}, zeros ? &(*zeros)[i] : nullptr);
  });
}

template <class T>
void GopBlockDecoder::decode(const LayeredGop& in, int c, PatchStore<T>& patches) {
  const StageTimer timer(time_, [this] { return pool_.times(); });
  const BlockGrid& grid = *in.components[static_cast<std::size_t>(c)].grid;
  const StepTable steps = steps_of(in, c);
  const SubbandTable& target = patches.target();
  const int side = grid.block_side(target.decomposition().spatial_levels);
  const Shape shape{target.shape().frames, side, side};
  std::vector<LargeVector<T>> memory(static_cast<std::size_t>(pool_.threads()));
  pool_.parallel_for(grid.blocks(), [&](int k, int worker) {
    const Task task{c, k / grid.columns(), k % grid.columns()};
    if (header_.profile == Profile::kDense && pack_block(in, task, worker, steps, patches)) return;
    LargeVector<T>& own = memory[static_cast<std::size_t>(worker)];
    own.resize(shape.samples());
    const BlockMemory<T> block{packed_field(own.data(), shape), true, &patches};
    if (header_.profile == Profile::kDense)
      BlockDecoder::clear(grid, target, task.by, task.bx, block, &patches.zeros());
    else
      decode_block<T>(in, task, worker, target, steps, block, &patches.zeros());
    patches.add(task.by, task.bx, block);
  });
}

// Calls decode(segments); returns false for a block whose damage was noted.
template <class F>
bool GopBlockDecoder::is_intact(const LayeredGop& in, const Task& task, const F& decode) {
  const auto& component = in.components[static_cast<std::size_t>(task.component)];
  try {
    decode(component.blocks[static_cast<std::size_t>(task.by * component.grid->columns() + task.bx)]);
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream || !damage_) throw;
    const std::lock_guard lock(damage_mutex_);
    damage_->push_back("component " + std::to_string(task.component) + ", " + e.what());
    return false;
  }
}

template <class T>
void GopBlockDecoder::decode_block(const LayeredGop& in, const Task& task, int worker, const SubbandTable& target,
                                   const StepTable& steps, const BlockMemory<T>& memory, ZeroPatches* left_out) {
  const auto [c, by, bx] = task;
  const BlockGrid& grid = *in.components[static_cast<std::size_t>(c)].grid;
  const StepTable* step = header_.lossless ? nullptr : &steps;
  const auto with = [&](const auto& decoders, const std::vector<LayeredSegment>& segments) {
    decoders[static_cast<std::size_t>(worker)]->decode(grid, target, task.by, task.bx, segments, in.stop_plane,
                                                       header_.centroid, step, memory, left_out);
  };
  if (!is_intact(in, task, [&](const std::vector<LayeredSegment>& segments) {
        header_.profile == Profile::kDense ? with(dense_, segments) : with(fast_, segments);
      }))
    BlockDecoder::clear(grid, target, by, bx, memory, left_out);
}

// A block of the dense profile to what is not zero.
template <class T>
bool GopBlockDecoder::pack_block(const LayeredGop& in, const Task& task, int worker, const StepTable& steps,
                                 PatchStore<T>& patches) {
  return is_intact(in, task, [&](const std::vector<LayeredSegment>& segments) {
    dense_[static_cast<std::size_t>(worker)]->decode(*in.components[static_cast<std::size_t>(task.component)].grid,
                                                     patches.target(), task.by, task.bx, segments, in.stop_plane,
                                                     header_.centroid, header_.lossless ? nullptr : &steps,
                                                     static_cast<PackedSink<T>&>(patches), patches.zeros());
  });
}

template void GopBlockDecoder::decode(const LayeredGop&, const Reduced&, int, const std::vector<Field<float>>&,
                                      std::vector<ZeroPatches>*);
template void GopBlockDecoder::decode(const LayeredGop&, const Reduced&, int, const std::vector<Field<std::int32_t>>&,
                                      std::vector<ZeroPatches>*);
template void GopBlockDecoder::decode(const LayeredGop&, int, PatchStore<float>&);
template void GopBlockDecoder::decode(const LayeredGop&, int, PatchStore<std::int32_t>&);

}  // namespace trivelet
