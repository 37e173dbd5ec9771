// The error that readers throw for a stream that violates FORMAT.md.
#pragma once

#include <string>

#include "trivelet/error.h"

namespace trivelet {

[[noreturn]] inline void bad(const std::string& message) { fail(ErrorKind::kBadStream, message); }

}  // namespace trivelet
