// Messages on standard error over spdlog.

#include "apps/cli/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace trivelet::cli::log {

namespace {

/// "trivelet: error: " before warnings and errors, nothing before plain information.
class Prefix final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    if (message.level == spdlog::level::info) return;
    const auto level = spdlog::level::to_string_view(message.level);
    fmt::format_to(std::back_inserter(out), "trivelet: {}: ", std::string_view(level.data(), level.size()));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Prefix>(); }
};

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: break;
  }
  return spdlog::level::err;
}

}  // namespace

void set_up() {
  const char* no_colour = std::getenv("NO_COLOR");
  const auto mode = no_colour && *no_colour ? spdlog::color_mode::never : spdlog::color_mode::automatic;
  auto logger =
      std::make_shared<spdlog::logger>("trivelet", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<Prefix>('*').set_pattern("%^%*%$%v");
  logger->set_formatter(std::move(formatter));
  spdlog::set_default_logger(std::move(logger));
}

void set_level(Level level) { spdlog::set_level(to_spdlog(level)); }

void set_level(const std::string& name) { spdlog::set_level(spdlog::level::from_str(name)); }

bool is_said(Level level) { return spdlog::should_log(to_spdlog(level)); }

void say(Level level, std::string_view text) {
  spdlog::default_logger_raw()->log(to_spdlog(level), printable(text, true));
}

namespace {

std::mutex warnings_mutex;
std::vector<std::string> all_warnings;

}  // namespace

void say_warning(std::string text) {
  {
    const std::lock_guard lock(warnings_mutex);
    if (std::find(all_warnings.begin(), all_warnings.end(), text) != all_warnings.end()) return;
    all_warnings.push_back(text);
  }
  if (is_said(Level::kWarn)) say(Level::kWarn, text);
}

std::vector<std::string> warnings() {
  const std::lock_guard lock(warnings_mutex);
  return all_warnings;
}

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  const auto escape = [&](unsigned byte) { fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    if ((c < 0x20 && !(keep_lines && (c == '\n' || c == '\t'))) || c == 0x7f) {
      escape(c);
    } else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {  // the control characters above ASCII, in UTF-8
      escape(next);
      ++i;
    } else if (c >= 0x80 && c < 0xa0 && (i == 0 || static_cast<unsigned char>(text[i - 1]) < 0x80)) {  // and alone
      escape(c);
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace trivelet::cli::log
