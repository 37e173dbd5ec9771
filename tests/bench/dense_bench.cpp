// Compares bytes and speed of the dense and the fast coder on coefficients of raw clips.
//
//   dense_bench [--steps 6,12,24,44] [--lossless] [--dyadic] [--levels N] [--temporal N] [--block 128] [--tables FILE]
//               [--gop 32] NAME=FILE:WIDTHxHEIGHT:FORMAT …
//
// Times are those of quantiser and coder on one thread. Every block is decoded and compared.

#include <cmath>
#include <cstring>
#include <ctime>

#include "codec/base/stream_header.h"
#include "codec/entropy/dense/dense.h"
#include "codec/entropy/dense/dense_model.h"
#include "codec/entropy/fast/zerotree.h"
#include "tests/bench/dense_clips.h"

using namespace trivelet;
using namespace trivelet::bench;

namespace {

// CPU seconds of this thread, which other programs disturb little.
double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Totals {
  double samples = 0, fast = 0, dense = 0, encode = 0, decode = 0;
  bool same = true;
};

template <class T>
void measure(const Clip& clip, const Setup& setup, int block, float step, const dense::StartTables* tables,
             Totals& sum) {
  ThreadPool pool(1);
  BlockEncoder fast(SimdLevel::kBest);
  DenseEncoder encoder(tables);
  DenseDecoder decoder(tables);
  for_volumes<T>(clip, setup, pool, [&](Volume<T>& v) {
    const bool integer = std::is_same_v<T, std::int32_t>;
    const BlockGrid grid(v.field.shape, v.d, integer, block);
    const StepTable steps(grid.table(), step, ComponentHeader{});
    LayerPlan plan;
    plan.low.assign(static_cast<std::size_t>(segment_count(grid)), 0);
    std::vector<T> back(v.memory.size());
    Field<T> out = v.field;
    out.data = back.data();
    sum.samples += static_cast<double>(v.memory.size());
    for (int by = 0; by < grid.rows(); ++by)
      for (int bx = 0; bx < grid.columns(); ++bx) {
        CodedBlock a, b;
        PassTable passes;
        double t0 = 0, t1 = 0;
        if constexpr (std::is_same_v<T, float>) {
          fast.encode(grid, by, bx, v.field, steps, plan, a);
          t0 = now();
          encoder.encode(grid, by, bx, v.field, steps, 102, nullptr, b, passes);
          t1 = now();
        } else {
          fast.encode(grid, by, bx, v.field, plan, a);
          t0 = now();
          encoder.encode(grid, by, bx, v.field, 102, nullptr, b, passes);
          t1 = now();
        }
        sum.encode += t1 - t0;
        sum.fast += static_cast<double>(a.bytes.size());
        sum.dense += static_cast<double>(b.bytes.size());
        std::vector<LayeredSegment> segments(b.top.size());
        for (std::size_t s = 0; s < segments.size(); ++s) {
          segments[s].top = b.top[s];
          segments[s].parts.push_back({b.bytes.data() + b.offset[s], b.size[s], 0});
        }
        t0 = now();
        decoder.decode<T>(grid, grid.table(), by, bx, segments, 0, 0, integer ? nullptr : &steps, {out});
        sum.decode += now() - t0;
      }
    for (const Subband& band : grid.table().all()) {
      const Field<T> x = subband_view(v.field, band);
      const Field<T> y = subband_view(out, band);
      const std::size_t slot = static_cast<std::size_t>(&band - grid.table().all().data());
      for (int t = 0; t < x.shape.frames; ++t)
        for (int r = 0; r < x.shape.height; ++r)
          for (int c = 0; c < x.shape.width; ++c) {
            T want = x.row(t, r)[c];
            if constexpr (std::is_same_v<T, float>) {
              const auto q =
                  static_cast<float>(static_cast<int>(std::fabs(want) * steps.inverse[slot])) * steps.step[slot];
              want = want < 0 ? -q : q;
            }
            if (want != y.row(t, r)[c]) sum.same = false;
          }
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const CommandLine given(argc, argv, "--tables");
  const Setup& setup = given.setup;
  const std::string& table_file = given.text;
  dense::StartTables trained;
  if (!table_file.empty()) trained = dense::parse_tables(read_table_text(table_file), setup.layout == Layout::kDyadic);
  const dense::StartTables* tables = table_file.empty() ? nullptr : &trained;
  double log_ratio = 0;
  int n = 0;
  for (const Clip& clip : given.clips)
    for (const float step : given.steps) {
      Totals t;
      given.lossless ? measure<std::int32_t>(clip, setup, given.block, step, tables, t)
                     : measure<float>(clip, setup, given.block, step, tables, t);
      std::printf(
          "%-14s step %3g  fast %9.0f  dense %9.0f bytes  %+6.2f %%  %.3f bpp  encode %5.1f decode %5.1f Msamples/s  "
          "%s\n",
          clip.name.c_str(), static_cast<double>(step), t.fast, t.dense, 100 * (t.dense / t.fast - 1),
          8 * t.dense / t.samples, t.samples / t.encode / 1e6, t.samples / t.decode / 1e6, t.same ? "ok" : "DIFFERS");
      std::fflush(stdout);
      log_ratio += std::log(t.dense / t.fast);
      ++n;
    }
  if (n > 0) std::printf("mean %+.2f %%\n", 100 * (std::exp(log_ratio / n) - 1));
}
