// Checks values against the limits of include/trivelet/limits.h, and counts things in messages. All errors have the
// same wording.
#pragma once

#include <cstdint>
#include <string>

#include "trivelet/error.h"
#include "trivelet/limits.h"

namespace trivelet {

/// "1 slice", "2 slices"; with verbs "1 slice is", "2 slices are".
inline std::string count_of(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}
inline std::string count_of(std::uint64_t count, const std::string& noun, const char* singular, const char* plural) {
  return count_of(count, noun) + " " + (count == 1 ? singular : plural);
}

/// `what`: the beginning of the message, with the value in it. `member`: the name of the limit in Limits.
inline void check_limit(std::uint64_t value, std::uint64_t limit, const char* member, const std::string& what) {
  if (value > limit)
    fail(ErrorKind::kUnsupported,
         what + "; the limit (Limits::" + member + ") is " + std::to_string(limit) + ", raise it");
}

inline void check_memory(const Limits& limits, std::uint64_t bytes, const std::string& what,
                         const char* otherwise = "") {
  if (bytes > limits.memory)
    fail(ErrorKind::kUnsupported, what + " needs about " + std::to_string(bytes >> 20) +
                                      " MiB; the limit (Limits::memory) is " + std::to_string(limits.memory >> 20) +
                                      " MiB, raise it" + otherwise);
}

/// Checks the number of samples that `bytes` bytes of a stream may stand for. `cheapness`: how many of these samples
/// cost as much as one sample of a still picture.
inline void check_work(const Limits& limits, std::uint64_t samples, std::uint64_t bytes, std::uint64_t cheapness = 1) {
  constexpr std::uint64_t kFree = std::uint64_t{1} << 24;
  const std::uint64_t beyond = samples / cheapness > kFree ? samples / cheapness - kFree : 0;
  if (beyond == 0 || (bytes > 0 && beyond / bytes < limits.samples_per_byte)) return;
  const std::uint64_t needed = beyond / (bytes > 0 ? bytes : 1) + 1;
  check_limit(needed, limits.samples_per_byte, "samples_per_byte",
              count_of(samples, "sample") + " in " + count_of(bytes, "byte") + " cost as much as " +
                  std::to_string(needed) + " for each byte of a picture");
}

}  // namespace trivelet
