// What the readers of a stream say when it does not keep to FORMAT.md.
#pragma once

#include <string>

#include "trivelet/error.h"

namespace trivelet {

[[noreturn]] inline void bad(const std::string& message) { fail(ErrorKind::kBadStream, message); }

}  // namespace trivelet
