// Rate control of one GOP: which passes of which segments are worth their bytes, and how they are divided into layers.
//
// Every pass of every segment is a possible cut with known bytes and known gain (PassTable). On the convex hull of a
// segment's cuts gain per byte falls from cut to cut, so one number, the slope lambda, gives the best cut of every
// segment at once (Shoham and Gersho 1988; Taubman 2000, "PCRD-opt"). A rate is reached by bisecting lambda; layers are
// the cuts of a descending row of slopes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "codec/format/chunk.h"
#include "codec/threads/parallel.h"

namespace trivelet {

/// A cut of every segment of a GOP: component by component, block by block, segment by segment.
using Cuts = std::vector<std::uint8_t>;

/// How the squared error of a component's samples depends on its quantised coefficients, for a GOP of `frames` frames.
/// `frame_gains` as in GopHeader.
ErrorWeights error_weights(const StreamHeader& header, int component, const SubbandTable& table, float step,
                           const std::vector<std::uint8_t>& frame_gains);

class RateControl {
 public:
  /// Copies the codewords and tables of `gop`; grids and pool must outlive this object. Work on blocks is dealt out to
  /// the pool, null = the caller does it; results are the same.
  RateControl(const StreamHeader& header, const CodedGop& gop, ThreadPool* pool = nullptr);

  /// The cuts at which another byte gains less than `lambda` squared error; what a segment hangs on is respected.
  Cuts at(double lambda) const;
  /// Everything that was coded down to a plane; 0 = all of it.
  Cuts planes(int lowest) const;
  Cuts complete() const { return planes(0); }
  /// The cuts with about this predicted error, not more, and the slope they are at. Everything if that is not enough;
  /// the slope is then below kEverything.
  static constexpr double kEverything = -39;
  Cuts with_error(double wanted, double& log2_lambda) const;
  /// Bytes of the segments up to these cuts, without heads.
  std::uint64_t body_bytes(const Cuts& cuts) const;
  /// The same of at(lambda), for each lambda.
  std::vector<std::uint64_t> body_bytes_at(const std::vector<double>& lambdas) const;
  /// Squared error of all samples with these cuts, as predicted.
  double error(const Cuts& cuts) const;
  double mean_error(const Cuts& cuts) const { return error(cuts) / static_cast<double>(samples_); }
  /// The share of a block in it.
  double block_error(int component, int block, const Cuts& cuts) const;
  /// Samples of the GOP, all components.
  std::uint64_t samples() const { return samples_; }
  int components() const { return static_cast<int>(components_.size()); }
  const BlockGrid& grid(int component) const { return *components_[static_cast<std::size_t>(component)].grid; }
  /// Where the segments of a block begin among the cuts.
  std::size_t first_cut(int component, int block) const {
    const Component& c = components_[static_cast<std::size_t>(component)];
    return c.first + static_cast<std::size_t>(block) * static_cast<std::size_t>(c.segments);
  }

  /// As many rows of cuts as the stream has layers, of which the last is `final` and only `layers` differ from the one
  /// before: the rest of the layers are empty. A row is at the same slope whatever their number, so that layers of
  /// different GOPs go together. With one of `layers` all is in the first.
  std::vector<Cuts> layers(const Cuts& final, double lambda, int layers) const;
  /// The largest number of layers with which a GOP takes at most a fiftieth more bytes than with one, undivided; in
  /// streams with motion, which are small, a hundredth.
  int layers_worth(const Cuts& final, double lambda) const;
  /// Divides the GOP. Parts point into this object; `out` is reused.
  void divide(const std::vector<Cuts>& layers, LayeredGop& out);
  /// Of all chunks of a GOP that is divided so, and what their entries in the table take.
  std::uint64_t chunk_bytes(const std::vector<Cuts>& layers) const;

  /// Finds the cuts whose chunks take at most `budget` bytes, using nearly all of it. `lambda` is a first guess and
  /// then the slope reached. False when not even the first layer's heads fit.
  bool fit(std::uint64_t budget, int layers, double& lambda, LayeredGop& out, Cuts& final);

  /// To and from a temporary file. Throws Error(kIo).
  void save(std::FILE* file) const;
  /// `grids`: per component.
  RateControl(const StreamHeader& header, const std::vector<const BlockGrid*>& grids, std::FILE* file,
              ThreadPool* pool = nullptr);

 private:
  struct Point {        // of a segment's hull, from its top down
    std::uint32_t end;  // bits of the codeword that belong to it
    float slope;        // gain per byte on the way here, emphasised
    double gain;        // of this and all before it, true
    std::uint8_t cut;
  };
  struct Run {                // a segment
    std::uint32_t first = 0;  // in points_
    std::uint32_t count = 0;
    std::uint64_t offset = 0;  // of its codeword in bytes_
    double emphasis = 1;       // how much more its error counts than the samples' it makes
    double energy = 0;         // its error without any of it
    std::uint8_t top = 0;
  };
  struct Component {
    const BlockGrid* grid = nullptr;
    std::size_t first = 0;     // of its segments in runs_
    std::size_t count = 0;     // of its segments
    int segments = 0;          // per block
    std::vector<int> parents;  // per segment of a block
    std::vector<std::vector<std::size_t>> children;
  };
  void prepare(const std::vector<const BlockGrid*>& grids);
  const Point* point_at(const Run& run, int cut) const;
  std::uint32_t end_at(const Run& run, int cut) const {
    const Point* p = point_at(run, cut);
    return p ? p->end : 0;
  }
  /// Calls f(component, first segment) for every block, on the pool.
  template <class F>
  void for_blocks(const F& f) const;
  void at(double lambda, const Component& c, std::size_t first, std::uint8_t* cuts) const;
  void settle(double lambda, const Component& c, std::size_t first, std::uint8_t* cuts) const;
  /// at() of the slopes of all layers, in their order; those of the slope asked for last are kept.
  const std::vector<Cuts>& rows(double lambda) const;
  std::vector<std::uint32_t> part_sizes(const std::vector<Cuts>& layers) const;
  void shift_parts(const std::vector<Cuts>& layers, LayeredGop& out);
  void fill(std::uint64_t budget, int layers, double lambda, Cuts& final, LayeredGop& out);

  const StreamHeader& header_;
  ThreadPool* pool_;
  int unit_ = 1;
  int spared_ = 0;  // passes at the end of a segment that were not coded
  std::uint64_t samples_ = 0;
  double energy_ = 0;
  std::vector<Component> components_;
  std::vector<Run> runs_;
  std::vector<Point> points_;
  std::vector<std::uint8_t> bytes_;    // codewords
  mutable double rows_at_ = -1;        // lambda
  mutable std::vector<Cuts> rows_;     // of rows()
  std::vector<std::uint8_t> shifted_;  // fast profile: parts that do not begin at a byte of their codeword
};

}  // namespace trivelet
