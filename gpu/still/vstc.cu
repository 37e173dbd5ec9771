// VSTC's search: blocks of a wavefront at once, with the tokens that the recursion of codec/still/vstc/vstc_search.cpp
// finds.
//
// The recursion tries a block whole, as two halves one above the other and as two side by side, each half the same way.
// The surroundings that a trial sees depend only on the halvings that led to it, so trials with other halvings need not
// wait for each other. A path is such a sequence of halvings (6 of them lead to each 4x4 block of a block of 16), and
// time is divided into slots, one for each 4x4 block. At slot t every path has one node, which lasts as many slots as
// it has 4x4 blocks. Nodes that begin at a slot are tried together, for all blocks of the wavefront:
//
//   try_modes      magnitudes of the transformed residual of each of the 35 modes; a block of threads per node and mode
//   cost_residual  the costs of all sub-blocks of all sizes for the best few modes, from the smallest to the whole; one
//                  per node, mode and plane
//   finish_leaves  the best mode, its levels, tokens, samples and true cost; one per node
//   merge_nodes    nodes that end with the slot choose between whole and both halvings; the result goes to the canvas
//                  of the path, where the second half finds the first, or into the picture
//
// Trials that the recursion would prune are made too; every cost is computed once. Bound: latency and integer
// arithmetic; all data of a node stay in shared memory and the L2 cache.
#include "gpu/still/vstc.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "gpu/device/device.h"
#include "gpu/still/vstc_leaf.cuh"

namespace trivelet::gpu {

namespace vstc_search {

namespace {

/// Matrices, scans and the rest of Tables in device memory.
class DeviceTables {
 public:
  explicit DeviceTables(const Stream& stream) {
    std::vector<std::int16_t> values;
    Tables t{};
    std::size_t matrix[2][2][7], position[49], rank[49];
    const auto put = [&](auto at) { values.push_back(static_cast<std::int16_t>(at)); };
    for (int turned = 0; turned < 2; ++turned)
      for (int sine = 0; sine < 2; ++sine)
        for (int k = 0; k <= 6; ++k) {
          matrix[turned][sine][k] = values.size();
          const vstc::Coefficient* m = vstc::matrix_of(k, sine == 1);
          for (int i = 0; i < 1 << k; ++i)
            for (int j = 0; j < 1 << k; ++j) put(turned ? m[j << k | i] : m[i << k | j]);
        }
    for (int size = 0; size < 49; ++size) {
      const int kw = size / 7, kh = size % 7, n = 1 << (kw + kh);
      const vstc::Scan& scan = vstc::scan_of(kw, kh);
      position[size] = values.size();
      for (int i = 0; i < n; ++i) put(scan.position[i]);
      rank[size] = values.size();
      for (int i = 0; i < n; ++i) put(scan.rank[i]);
      t.run_offset[size] = runs;
      runs += n + 1;
    }
    for (int p = 0; p < 49; ++p) {
      int total = 0;
      for (int kw = 0; kw <= p / 7; ++kw)
        for (int kh = 0; kh <= p % 7; ++kh) {
          t.node_offset[p][kw * 7 + kh] = total;
          total += 1 << (p / 7 - kw + p % 7 - kh);
        }
    }
    for (int m = 0; m < vstc::kModes; ++m) {
      t.angle[m] = static_cast<std::int16_t>(vstc::kAngles[m]);
      t.mode_order[m] = vstc::kModeOrder[static_cast<std::size_t>(m)];
    }
    memory_ = DeviceBuffer<std::int16_t>(values.size());
    copy(memory_.data(), values.data(), values.size(), cudaMemcpyHostToDevice, stream);
    for (int sine = 0; sine < 2; ++sine)
      for (int k = 0; k <= 6; ++k) {
        t.matrix[sine][k] = memory_.data() + matrix[0][sine][k];
        t.turned[sine][k] = memory_.data() + matrix[1][sine][k];
      }
    for (int size = 0; size < 49; ++size) {
      t.position[size] = reinterpret_cast<const std::uint16_t*>(memory_.data() + position[size]);
      t.rank[size] = reinterpret_cast<const std::uint16_t*>(memory_.data() + rank[size]);
    }
    tables_ = DeviceBuffer<Tables>(1);
    copy(tables_.data(), &t, 1, cudaMemcpyHostToDevice, stream);
    stream.synchronize();
  }
  const Tables* get() const { return tables_.data(); }
  int runs = 0;  ///< zero runs of a set

 private:
  DeviceBuffer<std::int16_t> memory_;
  DeviceBuffer<Tables> tables_;
};

/// A tree's part of the device memory.
struct TreeMemory {
  TreeMemory(int log2_block, int planes, int jobs, int candidates, std::size_t cells_in, const Stream& stream)
      : plan(log2_block, planes),
        paths(plan.paths.size()),
        cells(cells_in),
        canvas_cells(times(jobs, plan.canvas_cells)),
        leaf(times(jobs * planes, plan.leaf)),
        canvas(times(jobs * planes, plan.canvas)),
        leaf_tokens(times(jobs, plan.leaf_tokens)),
        canvas_tokens(times(jobs, plan.canvas_tokens)),
        root_tokens(times(jobs, plan.root_tokens)),
        leaf_counts(times(jobs, size())),
        canvas_counts(times(jobs, size())),
        root_counts(times(jobs, 1)),
        sums(times(jobs * vstc::kModes, size())),
        leaf_costs(times(jobs, size())),
        canvas_costs(times(jobs, size())),
        node_costs(times(jobs * candidates * planes, plan.nodes)),
        node_energies(node_costs.size()),
        scratch(times(2 * jobs, plan.leaf)),
        leaf_modes(times(jobs, size())),
        leaf_coded(times(jobs, size())),
        node_choices(node_costs.size()),
        host_tokens(root_tokens.size()),
        host_counts(root_counts.size()) {
    copy(paths.data(), plan.paths.data(), plan.paths.size(), cudaMemcpyHostToDevice, stream);
    check(cudaMemsetAsync(cells.data(), 0, cells.size() * sizeof(Cell), stream.get()), "cudaMemsetAsync");
    stream.synchronize();
  }
  int size() const { return static_cast<int>(plan.paths.size()); }
  static std::size_t times(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

  Plan plan;
  DeviceBuffer<Path> paths;
  DeviceBuffer<Cell> cells, canvas_cells;
  DeviceBuffer<Sample> leaf, canvas;
  DeviceBuffer<Token> leaf_tokens, canvas_tokens, root_tokens;
  DeviceBuffer<int> leaf_counts, canvas_counts, root_counts, sums;
  DeviceBuffer<Joint> leaf_costs, canvas_costs, node_costs, node_energies, scratch;
  DeviceBuffer<std::uint8_t> leaf_modes, leaf_coded, node_choices;
  PinnedBuffer<Token> host_tokens;
  PinnedBuffer<int> host_counts;

  void fill(TreeArgs& a) const {
    a.paths = paths.data();
    a.path_count = size();
    a.depth = plan.depth;
    a.log2_slots = plan.log2_slots;
    a.cells = cells.data();
    a.canvas_cells = canvas_cells.data();
    a.leaf = leaf.data();
    a.canvas = canvas.data();
    a.leaf_tokens = leaf_tokens.data();
    a.canvas_tokens = canvas_tokens.data();
    a.root_tokens = root_tokens.data();
    a.leaf_counts = leaf_counts.data();
    a.canvas_counts = canvas_counts.data();
    a.root_counts = root_counts.data();
    a.sums = sums.data();
    a.leaf_costs = leaf_costs.data();
    a.canvas_costs = canvas_costs.data();
    a.node_costs = node_costs.data();
    a.node_energies = node_energies.data();
    a.scratch = scratch.data();
    a.leaf_modes = leaf_modes.data();
    a.leaf_coded = leaf_coded.data();
    a.node_choices = node_choices.data();
    a.leaf_size = plan.leaf;
    a.canvas_size = plan.canvas;
    a.canvas_cell_size = plan.canvas_cells;
    a.leaf_token_size = plan.leaf_tokens;
    a.canvas_token_size = plan.canvas_tokens;
    a.root_token_size = plan.root_tokens;
    a.node_size = plan.nodes;
  }
};

/// Shared memory of the kernels, bytes per sample of the largest node of a launch.
constexpr int kTrySize = 4, kCostSize = 8, kFinishSize = 14;

class DeviceSearch final : public vstc::WaveSearch {
 public:
  DeviceSearch(int device, const vstc::Picture& picture, const std::vector<vstc::Plane>& source,
               const vstc::Params& params)
      : device_(device), picture_(picture) {
    require(params.remember, ErrorKind::kBadArgument,
            "computing costs again (Params::remember = false) is for the CPU; a GPU computes every cost once");
    check(cudaSetDevice(device), "cudaSetDevice");
    stream_ = std::make_unique<Stream>();
    tables_ = std::make_unique<DeviceTables>(*stream_);
    most_jobs_ = std::min(picture.blocks_high, (picture.blocks_wide + 1) / 2);
    const vstc::SearchConstants constants(params.qp, picture.format.bits);
    const int candidates = vstc::trial_modes(params.effort), most = std::min(candidates + 1, vstc::kModes);
    for (const vstc::Plane& p : source) {
      pictures_.emplace_back(p.samples.size());
      sources_.emplace_back(p.samples.size());
      copy(sources_.back().data(), p.samples.data(), p.samples.size(), cudaMemcpyHostToDevice, *stream_);
    }
    jobs_ = DeviceBuffer<int>(2 * jobs());
    host_jobs_ = PinnedBuffer<int>(jobs_.size());
    costs_ = DeviceBuffer<Cost>(jobs() * 2 * 2 * kContexts);
    host_costs_ = PinnedBuffer<Cost>(costs_.size());
    runs_ = DeviceBuffer<Cost>(jobs() * 2 * static_cast<std::size_t>(tables_->runs));
    host_runs_ = PinnedBuffer<Cost>(runs_.size());
    for (const vstc::Tree& t : picture.trees) {
      const auto plane = static_cast<std::size_t>(t.first_plane);
      TreeMemory& m = memory_.emplace_back(t.log2_block, t.planes, most_jobs_, most, t.cells.size(), *stream_);
      TreeArgs& a = args_.emplace_back();
      m.fill(a);
      a.tables = tables_->get();
      a.log2_block = t.log2_block;
      a.planes = t.planes;
      a.set = t.first_plane == 0 ? 0 : 1;
      a.width = t.width;
      a.height = t.height;
      a.cells_wide = t.cells_wide;
      a.bits = picture.format.bits;
      a.qp = params.qp;
      a.candidates = candidates;
      a.most_candidates = most;
      a.may_smooth = vstc::may_smooth(picture, t);
      a.fast = params.effort == vstc::Effort::kFast;
      a.optimise = params.optimise_levels;
      for (std::size_t p = 0; p < static_cast<std::size_t>(t.planes); ++p)
        a.plane[p] = {pictures_[plane + p].data(), sources_[plane + p].data(), source[plane + p].coded_width};
      const vstc::Tree& luma = picture.trees[0];
      a.luma_cells = memory_[0].cells.data();
      a.luma_cells_wide = luma.cells_wide;
      a.luma_width = luma.width;
      a.luma_height = luma.height;
      a.shift_x = picture.format.log2_chroma_w;
      a.shift_y = picture.format.log2_chroma_h;
      a.jobs = jobs_.data();
      a.costs = costs_.data();
      a.runs = runs_.data();
      a.runs_per_set = tables_->runs;
      a.lambda = constants.lambda;
      std::copy(std::begin(constants.mode_root), std::end(constants.mode_root), a.mode_root);
      std::copy(std::begin(constants.step_inverse), std::end(constants.step_inverse), a.step_inverse);
      std::copy(std::begin(constants.threshold), std::end(constants.threshold), a.threshold);
      // The value of a level before shifting: for an even and an odd log2 of the area.
      static constexpr int kScale[2][6] = {{645, 724, 813, 912, 1024, 1149}, {456, 512, 575, 645, 724, 813}};
      for (int odd = 0; odd < 2; ++odd) a.scale[odd] = kScale[odd][params.qp % 6];
    }
    const int area = 1 << 2 * picture.log2_block;
    const auto allow = [&](auto kernel, int bytes) {
      const cudaError_t result = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      if (result != cudaErrorInvalidValue) return check(result, "cudaFuncSetAttribute");
      forget(result);
      fail(ErrorKind::kUnsupported, "blocks of " + std::to_string(1 << picture.log2_block) + " need " +
                                        std::to_string(bytes) +
                                        " bytes of shared memory, which this GPU does not have; choose smaller blocks");
    };
    allow(try_modes<0>, kTrySize * area);
    allow(cost_residual<0>, kCostSize * area);
    allow(finish_leaves<0>, kFinishSize * area);
    stream_->synchronize();
  }

  void search(std::span<const Job> jobs) override {
    check(cudaSetDevice(device_), "cudaSetDevice");
    for (std::size_t i = 0; i < jobs.size(); ++i) freeze(jobs[i], i);
    const std::size_t n = jobs.size();
    copy(jobs_.data(), host_jobs_.data(), 2 * n, cudaMemcpyHostToDevice, *stream_);
    copy(costs_.data(), host_costs_.data(), costs_.size() / this->jobs() * n, cudaMemcpyHostToDevice, *stream_);
    copy(runs_.data(), host_runs_.data(), runs_.size() / this->jobs() * n, cudaMemcpyHostToDevice, *stream_);
    for (std::size_t t = 0; t < args_.size(); ++t) {
      TreeMemory& m = memory_[t];
      for (int slot = 0; slot < 1 << m.plan.log2_slots; ++slot)
        run_slot(args_[t], m.plan, slot, static_cast<unsigned>(n));
      copy(m.host_counts.data(), m.root_counts.data(), n, cudaMemcpyDeviceToHost, *stream_);
      copy(m.host_tokens.data(), m.root_tokens.data(), n * static_cast<std::size_t>(m.plan.root_tokens),
           cudaMemcpyDeviceToHost, *stream_);
    }
    stream_->synchronize();
    for (std::size_t i = 0; i < n; ++i) {
      jobs[i].tokens->clear();
      for (const TreeMemory& m : memory_) {
        const Token* from = m.host_tokens.data() + i * static_cast<std::size_t>(m.plan.root_tokens);
        jobs[i].tokens->insert(jobs[i].tokens->end(), from, from + m.host_counts.data()[i]);
      }
    }
  }

 private:
  std::size_t jobs() const { return static_cast<std::size_t>(most_jobs_); }

  /// Costs of all decisions as the job's contexts have them.
  void freeze(const Job& job, std::size_t index) {
    host_jobs_.data()[2 * index] = job.bx;
    host_jobs_.data()[2 * index + 1] = job.by;
    for (std::size_t set = 0; set < picture_.trees.size(); ++set) {
      Cost* cost = host_costs_.data() + (2 * index + set) * 2 * kContexts;
      for (std::size_t c = 0; c < static_cast<std::size_t>(kContexts); ++c) {
        const std::uint32_t p = (*job.contexts)[set][c].probability();
        cost[2 * c] = vstc::cost_of(65536 - p);
        cost[2 * c + 1] = vstc::cost_of(p);
      }
      Cost* run = host_runs_.data() + (2 * index + set) * static_cast<std::size_t>(tables_->runs);
      for (int size = 0; size < 49; ++size) {
        const int kw = size / 7, kh = size % 7, n = 1 << (kw + kh);
        const vstc::Scan& scan = vstc::scan_of(kw, kh);
        Cost sum = 0;
        for (int rank = 0; rank < n; ++rank) {
          *run++ = sum;
          const int at = scan.position[rank];
          sum += cost[2 * vstc::significant_context(kw + kh, at & ((1 << kw) - 1), at >> kw, 0)];
        }
        *run++ = sum;
      }
    }
  }

  void run_slot(TreeArgs a, const Plan& plan, int slot, unsigned jobs) {
    const int starting = slot == 0 ? 0 : plan.log2_slots - std::countr_zero(static_cast<unsigned>(slot));
    a.slot = slot;
    while (plan.paths[static_cast<std::size_t>(a.first_path)].depth < starting) ++a.first_path;
    const auto paths = static_cast<unsigned>(a.path_count - a.first_path);
    const std::size_t area = std::size_t{1} << (2 * a.log2_block - starting);
    if (a.candidates < vstc::kModes)
      launch("try_modes", try_modes<0>, dim3(paths, jobs, vstc::kModes), dim3(kThreads), kTrySize * area,
             stream_->get(), a);
    launch("cost_residual", cost_residual<0>, dim3(paths, jobs, static_cast<unsigned>(a.most_candidates * a.planes)),
           dim3(kThreads), kCostSize * area, stream_->get(), a);
    launch("finish_leaves", finish_leaves<0>, dim3(paths, jobs), dim3(kThreads), kFinishSize * area, stream_->get(), a);
    launch("merge_nodes", merge_nodes<0>, dim3(jobs), dim3(kThreads), 0, stream_->get(), a);
  }

  int device_;
  const vstc::Picture& picture_;
  int most_jobs_ = 1;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceTables> tables_;
  std::vector<DeviceBuffer<Sample>> pictures_, sources_;
  DeviceBuffer<int> jobs_;
  DeviceBuffer<Cost> costs_, runs_;
  PinnedBuffer<int> host_jobs_;
  PinnedBuffer<Cost> host_costs_, host_runs_;
  std::vector<TreeMemory> memory_;
  std::vector<TreeArgs> args_;
};

}  // namespace

}  // namespace vstc_search

vstc::MakeWaveSearch make_vstc_search(int device) {
  return [device](const vstc::Picture& picture, const std::vector<vstc::Plane>& source, const vstc::Params& params) {
    return std::make_unique<vstc_search::DeviceSearch>(device, picture, source, params);
  };
}

}  // namespace trivelet::gpu
