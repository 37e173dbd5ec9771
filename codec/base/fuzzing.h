// What differs in fuzzers, which run thousands of tiny inputs a second.
#pragma once

namespace trivelet {

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
/// All checksums count as correct, so that changed bytes reach the code behind the checks. A fuzzer that tests the
/// handling of damage sets this to false.
inline bool checks_are_believed = true;
/// Whether decoders start threads that work ahead. Starting a thread takes longer than decoding a tiny stream.
inline constexpr bool kThreadsAhead = false;
#else
inline constexpr bool checks_are_believed = false;
inline constexpr bool kThreadsAhead = true;
#endif

}  // namespace trivelet
