// Times of work on a stream.
#pragma once

#include <algorithm>
#include <vector>

#include "gpu/device/device.h"

namespace trivelet::gpu {

/// Median of the milliseconds that body(i) takes on the stream in `runs` runs, after `warm` uncounted ones.
template <class Body>
double median_milliseconds(const Stream& stream, int warm, int runs, const Body& body) {
  std::vector<float> times;
  const Event start(true), end(true);
  for (int i = 0; i < warm + runs; ++i) {
    start.record(stream);
    body(i);
    end.record(stream);
    end.synchronize();
    if (i >= warm) times.push_back(end.since(start));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace trivelet::gpu
