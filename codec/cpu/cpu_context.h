// What the stages of the encoder on the CPU share: the stream, its geometry and the threads.
#pragma once

#include <map>
#include <memory>

#include "codec/backend.h"
#include "codec/base/simd.h"
#include "codec/cpu/cpu_fields.h"
#include "codec/threads/parallel.h"

namespace trivelet {

/// Used by one thread at a time.
class CpuContext {
 public:
  CpuContext(const StreamHeader& h, const BackendOptions& options)
      : header(h),
        headers(h),
        simd(resolve_simd(options.simd)),
        effort(options.effort),
        keys_in_place(options.keys_in_place),
        pool(options.threads, options.workers),
        make_geometry_(options.geometry) {}
  CpuContext(const CpuContext&) = delete;
  CpuContext& operator=(const CpuContext&) = delete;

  int components() const { return static_cast<int>(header.components.size()); }
  /// For StageTimer.
  auto pool_times() const {
    return [this] { return pool.times(); };
  }
  /// The geometry of GOPs of `frames` frames. `motion`: null if they have none.
  const StreamGeometry& geometry(int frames, const GopMotion* motion) {
    const int levels = motion ? motion->places.levels : 0;
    auto& geometry = geometries_[GopKind(frames, levels, motion ? motion->places.key : GopKey::kFirst)];
    if (!geometry)
      geometry = make_geometry_ ? make_geometry_(headers.of(motion), frames)
                                : std::make_shared<StreamGeometry>(headers.of(motion), frames);
    return *geometry;
  }
  /// The quantiser steps of component `c`.
  StepTable steps(const BlockGrid& grid, int c, float step) const {
    return {grid.table(), header.lossless ? 1.0f : step, header.components[static_cast<std::size_t>(c)]};
  }
  /// The fields of all components of a GOP.
  template <class T>
  std::vector<Field<T>> fields(CoefficientGop& gop, const Reduced& r) const {
    std::vector<Field<T>> fields;
    for (int c = 0; c < components(); ++c) fields.push_back(field_of<T>(gop, c, r.shape(c)));
    return fields;
  }

  const StreamHeader header;
  const GopHeaders headers;
  const SimdLevel simd;
  const Effort effort;
  const bool keys_in_place;
  ThreadPool pool;

 private:
  // Few kinds occur. Coded GOPs refer to them.
  std::map<GopKind, std::shared_ptr<const StreamGeometry>> geometries_;
  const decltype(BackendOptions::geometry) make_geometry_;
};

}  // namespace trivelet
