// Helpers of the container tests, beside boxes.h: a header, and the exception of a function.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "codec/base/stream_header.h"
#include "tests/support/support.h"

namespace trivelet::test {

inline StreamHeader grey_header() {
  StreamHeader h;
  h.video = video(40, 30, "gray", 100);
  h.spatial_levels = 3;
  h.temporal_levels = 2;
  h.layers = 3;
  h.gop_frames = 16;
  h.components.resize(1);
  h.components[0] = {128, 1.0f, 3, {64, 64, 64, 64}};
  h.writer = "writer";
  h.settings = "settings";
  return h;
}

template <class F>
ErrorKind kind_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_STRNE(e.what(), "");
    return e.kind();
  }
  return ErrorKind::kInternal;  // nothing was thrown
}

inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace trivelet::test
