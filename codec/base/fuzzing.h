// What is different in programs for fuzzing, which run thousands of tiny inputs a second.
#pragma once

namespace trivelet {

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
/// Every check of a stream is taken for right, so that what was changed reaches the code behind it. A target that wants
/// to see damage says false.
inline bool checks_are_believed = true;
/// Threads that work ahead, where a decoder can do without: to start one takes longer than to decode such a stream.
inline constexpr bool kThreadsAhead = false;
#else
inline constexpr bool checks_are_believed = false;
inline constexpr bool kThreadsAhead = true;
#endif

}  // namespace trivelet
