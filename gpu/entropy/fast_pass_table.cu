// Sums the bits and gains of every bit plane of a segment in the fast profile.

#include "gpu/entropy/fast_pass_table.h"

#include "gpu/entropy/measure.cuh"

namespace trivelet::gpu {
namespace {

constexpr u32 kSumWarps = 4;

struct SumArgs {
  TreeTables t;
  DenseTables dense;
  DenseMeasure measure;
  int planes;
  double offset[30];  // reconstruction offset by plane
  double* frame_sum;  // [frame of an orientation][planes + 1]
  double* gain;
};

/// A warp per frame of an orientation of a block.
template <class C>
__global__ void __launch_bounds__(kSumWarps * 32) sum_kernel(SumArgs a, const C* coefficients, u32 first_level) {
  const u32 level = a.dense.levels_by_resolution[first_level + blockIdx.y];
  const DeviceLevel& l = a.t.levels[level];
  const DenseLevel& d = a.dense.levels[level];
  const u32 task = blockIdx.x * kSumWarps + threadIdx.x / 32, per_block = static_cast<u32>(l.orientations * d.frames);
  if (per_block == 0 || task >= per_block * static_cast<u32>(l.rows * l.columns)) return;
  const u32 block = task / per_block;
  const int o = static_cast<int>(task % per_block) / d.frames, t = static_cast<int>(task % per_block) % d.frames;
  const int lane = static_cast<int>(threadIdx.x % 32);
  double* gains = dynamic_shared<double>() + static_cast<std::ptrdiff_t>(threadIdx.x / 32) * a.planes * 32 + lane;
  const Patch<C> patch = patch_of(a.t, a.dense, a.measure.inverse_steps, coefficients, level, block, o);
  const DenseBox valid = d.valid[block_class(l, block)][o];
  for (int p = 0; p < a.planes; ++p) gains[32 * p] = 0;
  double energy = 0;
  int most = 0;
  if (t < valid.t)
    for (int y = 0; y < valid.y; ++y)
      for (int x = 2 * lane; x < valid.x; x += 64)
        for (int i = 0; i < 2 && x + i < valid.x; ++i) {
          const auto limit = limited(patch.at(t, y, x + i), patch.inverse_step);
          const double m = static_cast<double>(limit);
          energy += m * m;
          const u32 known = static_cast<u32>(static_cast<i32>(limit));
          const int bits = 32 - __clz(static_cast<int>(known));
          most = bits > most ? bits : most;
          double old = 0;
          for (int p = bits - 1; p >= 0; --p) {
            const double now = static_cast<double>(known >> p << p) + a.offset[p];
            gains[32 * p] += (now - old) * (2 * m - old - now);
            old = now;
          }
        }
  most = warp_max(most);
  double* sums =
      a.frame_sum + (d.frame_sum + static_cast<u64>(block) * d.frame_sum_span + static_cast<u64>(o * d.frames + t)) *
                        static_cast<u64>(a.planes + 1);
  energy = warp_tree(energy);
  if (lane == 0) sums[a.planes] = energy;
  for (int p = 0; p < a.planes; ++p) {
    const double sum = p < most ? warp_tree(gains[32 * p]) : 0;
    if (lane == 0) sums[p] = sum;
  }
}

/// A warp per segment, a lane per plane and one for the energy.
__global__ void __launch_bounds__(kSumWarps * 32) weigh_kernel(SumArgs a) {
  const u32 segment = blockIdx.x * kSumWarps + threadIdx.x / 32;
  const int i = static_cast<int>(threadIdx.x % 32);
  if (segment >= a.t.segment_count || i > a.planes) return;
  a.gain[static_cast<u64>(segment) * static_cast<u64>(a.planes + 1) + static_cast<u64>(i)] =
      weighted_sum(a.t, a.dense, a.measure, a.frame_sum, a.planes + 1, a.t.segments[segment], i);
}

}  // namespace

FastPassTable::FastPassTable(const TreePlan& tree, const DensePlan& plan, int planes, int centroid)
    : tree_(&tree),
      plan_(&plan),
      planes_(planes),
      centroid_(centroid),
      frame_sums_(plan.frame_sums() * static_cast<std::size_t>(planes + 1)),
      gains_(tree.segments() * static_cast<std::size_t>(planes + 1)) {}

template <class C>
void FastPassTable::measure(const C* coefficients, const DenseMeasure& measure, const Stream& stream) {
  SumArgs a{};
  a.t = tree_->tables();
  a.dense = plan_->tables();
  a.measure = measure;
  a.planes = planes_;
  for (int p = 0; p < 30; ++p)
    a.offset[p] = measure.inverse_steps ? static_cast<double>(reconstruction_offset(centroid_, p))
                                        : static_cast<double>(integer_reconstruction_offset(centroid_, p));
  a.frame_sum = frame_sums_.data();
  a.gain = gains_.data();
  const auto shared = static_cast<std::size_t>(planes_) * kSumWarps * 32 * sizeof(double);
  check(cudaFuncSetAttribute(sum_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
        "cudaFuncSetAttribute");
  for (int k = 0; k < tree_->resolutions(); ++k) {
    const u32 levels = plan_->first_level(k + 1) - plan_->first_level(k), frames = plan_->most_frames(k, false);
    if (levels == 0 || frames == 0) continue;
    launch("sum_kernel", sum_kernel<C>, dim3((frames + kSumWarps - 1) / kSumWarps, levels), dim3(kSumWarps * 32),
           shared, stream.get(), a, coefficients, plan_->first_level(k));
  }
  launch("weigh_kernel", weigh_kernel, dim3((tree_->segments() + kSumWarps - 1) / kSumWarps), dim3(kSumWarps * 32), 0,
         stream.get(), a);
}

template void FastPassTable::measure(const float*, const DenseMeasure&, const Stream&);
template void FastPassTable::measure(const std::int16_t*, const DenseMeasure&, const Stream&);
template void FastPassTable::measure(const std::int32_t*, const DenseMeasure&, const Stream&);

}  // namespace trivelet::gpu
