// Messages on standard error. spdlog does the work behind this header, because its templates cost seconds in every file
// that uses them.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trivelet::cli::log {

enum class Level { kDebug, kInfo, kWarn, kError };

/// Nothing before plain information, "trivelet: warning: " and the like before the rest. Honours NO_COLOR.
void set_up();
void set_level(Level level);
/// A name as spdlog has it: "trace", "debug", "info", "warn", "error", "off".
void set_level(const std::string& name);

/// Makes text that may come from a file safe for a terminal: control characters become \\x1b and the like.
std::string printable(std::string_view text, bool keep_lines = false);

bool is_said(Level level);
/// `text` may have several lines, but no other control characters: see printable().
void say(Level level, std::string_view text);
/// Prints a warning, the same one only once, and keeps it for warnings(), even if it is not printed.
void say_warning(std::string text);
/// All of this run until now, for `info --json`.
std::vector<std::string> warnings();

template <class... Args>
void say_formatted(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (is_said(level)) say(level, fmt::vformat(format, fmt::make_format_args(args...)));
}

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  say_formatted<Args...>(Level::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  say_formatted<Args...>(Level::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  say_warning(fmt::vformat(format, fmt::make_format_args(args...)));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  say_formatted<Args...>(Level::kError, format, std::forward<Args>(args)...);
}

}  // namespace trivelet::cli::log
