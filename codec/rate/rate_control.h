// Rate control of one GOP: chooses the truncation point of every segment and divides the passes into layers.
//
// Every pass of every segment is a possible truncation point with known bytes and gain (PassTable). On the convex hull
// of a segment's truncation points the gain per byte falls, so one number, the slope lambda, gives the best point of
// every segment (Shoham and Gersho 1988; Taubman 2000, "PCRD-opt"). A rate is met by bisecting lambda; layers are the
// points at descending slopes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "codec/format/chunk.h"
#include "codec/threads/parallel.h"

namespace trivelet {

/// The truncation points of all segments of a GOP: component by component, block by block, segment by segment.
using Cuts = std::vector<std::uint8_t>;

/// How the squared error of a component's samples depends on its quantised coefficients, for a GOP of `frames` frames.
/// `frame_gains` as in GopHeader.
ErrorWeights error_weights(const StreamHeader& header, int component, const SubbandTable& table, float step,
                           const std::vector<std::uint8_t>& frame_gains);

class RateControl {
 public:
  /// Copies the codewords and tables of `gop`; grids and pool must outlive this object. The pool works on the blocks;
  /// null = the calling thread. Results are the same.
  RateControl(const StreamHeader& header, const CodedGop& gop, ThreadPool* pool = nullptr);
  /// Of the fast profile without pass tables, coded with `step` and `frame_gains`. The gain of a plane is estimated by
  /// its size. error() is then not known.
  RateControl(const StreamHeader& header, const CodedGop& gop, float step, const std::vector<std::uint8_t>& frame_gains,
              ThreadPool* pool = nullptr);

  /// The truncation points at which another byte gains less than `lambda` squared error. Parents limit their segments.
  Cuts at(double lambda) const;
  /// All passes down to a plane; 0 = all.
  Cuts planes(int lowest) const;
  Cuts complete() const { return planes(0); }
  /// The truncation points with about this predicted error, not more, and their slope. All passes if that is not
  /// enough; the slope is then below kEverything.
  static constexpr double kEverything = -39;
  Cuts with_error(double wanted, double& log2_lambda) const;
  /// Bytes of the segments up to these points, without headers.
  std::uint64_t body_bytes(const Cuts& cuts) const;
  /// The same of at(lambda), for each lambda; fastest if they ascend.
  std::vector<std::uint64_t> body_bytes_at(const std::vector<double>& lambdas) const;
  /// body_bytes() and error() of planes(lowest), planes(lowest + 1) and so on, `count` of them.
  struct Amounts {
    std::vector<double> bytes;
    std::vector<double> errors;
  };
  Amounts amounts_of_planes(int lowest, int count) const;
  /// Predicted squared error of all samples with these points.
  double error(const Cuts& cuts) const;
  double mean_error(const Cuts& cuts) const { return error(cuts) / static_cast<double>(samples_); }
  /// The part of a block in that error.
  double block_error(int component, int block, const Cuts& cuts) const;
  /// Samples of the GOP, all components.
  std::uint64_t samples() const { return samples_; }
  int components() const { return static_cast<int>(components_.size()); }
  const BlockGrid& grid(int component) const { return *components_[static_cast<std::size_t>(component)].grid; }
  /// The index of a block's first segment.
  std::size_t first_cut(int component, int block) const {
    const Component& c = components_[static_cast<std::size_t>(component)];
    return c.first + static_cast<std::size_t>(block) * static_cast<std::size_t>(c.segments);
  }

  /// The truncation points of every layer of the stream; the last are `final`. Only `layers` layers differ from the one
  /// before, the others are empty. The slope of a layer does not depend on `layers`, so that layers of different GOPs
  /// match. With one of `layers` everything is in the first.
  std::vector<Cuts> layers(const Cuts& final, double lambda, int layers) const;
  /// The largest number of layers with which a GOP takes at most a fiftieth more bytes than with one, undivided; in
  /// streams with motion, which are small, a hundredth.
  int layers_worth(const Cuts& final, double lambda) const;
  /// Divides the GOP. Parts point into this object; `out` is reused.
  void divide(const std::vector<Cuts>& layers, LayeredGop& out);
  /// Bytes of all chunks of a GOP divided so, and of their entries in the table.
  std::uint64_t chunk_bytes(const std::vector<Cuts>& layers) const;

  /// Finds the truncation points whose chunks take at most `budget` bytes and nearly all of it. `lambda` is a first
  /// guess and becomes the slope reached. False if not even the headers of the first layer fit.
  bool fit(std::uint64_t budget, int layers, double& lambda, LayeredGop& out, Cuts& final);

  /// To and from a temporary file. Throws Error(kIo).
  void save(std::FILE* file) const;
  /// `grids`: per component.
  RateControl(const StreamHeader& header, const std::vector<const BlockGrid*>& grids, std::FILE* file,
              ThreadPool* pool = nullptr);

 private:
  struct Point {        // a corner of a segment's hull, from its top down
    std::uint32_t end;  // bits of the codeword that belong to it
    float slope;        // gain per byte on the way here, emphasised
    double gain;        // of this and all before it, not emphasised
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
  void prepare(const CodedGop& gop);
  void prepare(const std::vector<const BlockGrid*>& grids);
  double emphasis(int component, int resolution) const;
  void add_planes(const std::uint32_t* end, double weight, double coefficients, Run& run);
  std::vector<double> segment_weights(int component, float step, const std::vector<std::uint8_t>& frame_gains) const;
  const Point* point_at(const Run& run, int cut) const;
  /// The truncation point of a segment that is cut at plane `lowest`.
  int plane_cut(const Run& run, int lowest) const {
    return std::min(std::max(unit_ * lowest, spared_), unit_ * static_cast<int>(run.top));
  }
  std::uint32_t end_at(const Run& run, int cut) const {
    const Point* p = point_at(run, cut);
    return p ? p->end : 0;
  }
  /// Calls body(index, worker) `count` times, on the pool if there is one.
  void in_parallel(int count, const std::function<void(int, int)>& body) const;
  /// The same, f(component, first segment) for every block.
  void for_blocks(const std::function<void(const Component&, std::size_t)>& f) const;
  /// The truncation points of one block. Returns the largest slope from `lambda` on at which they are known to be the
  /// same.
  double at(double lambda, const Component& c, std::size_t first, std::uint8_t* cuts) const;
  /// The same where `corners` of each segment's hull are all that may be worth it; sets them to those that are.
  double at(double lambda, const Component& c, std::size_t first, std::uint32_t* corners, std::uint8_t* cuts) const;
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
