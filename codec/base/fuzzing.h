// Differences in fuzzers, which run thousands of tiny inputs a second.
#pragma once

namespace trivelet {

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
/// All checksums count as correct, so that changed bytes reach the code behind them. A fuzzer of damage sets it to
/// false.
inline bool checks_are_believed = true;
/// Whether decoders start threads that work ahead. Starting one takes longer than decoding a tiny stream.
inline constexpr bool kThreadsAhead = false;
#else
inline constexpr bool checks_are_believed = false;
inline constexpr bool kThreadsAhead = true;
#endif

}  // namespace trivelet
