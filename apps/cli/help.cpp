#include "apps/cli/help.h"

#include <algorithm>
#include <string>

namespace trivelet::cli {

namespace {

constexpr std::size_t kNames = 34;  // columns for the names of the options
constexpr std::size_t kLine = 100;

/// Breaks `text` between words so that it fits `width` columns.
std::string wrap(const std::string& text, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (column > 0 && column + 1 + word.size() > width) {
      out += '\n';
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    begin = end + 1;
  }
  return out;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kNames); }

  /// "N", "A:B", "t+2d|dyadic": CLI11 gives the type, then after a colon what the value is checked against.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_type_size() == 0) return {};
    const std::string type = option->get_type_name();
    const std::size_t brace = type.find('{');
    std::string choices = type.substr(brace == std::string::npos ? 0 : brace + 1, type.find_last_of('}') - brace - 1);
    std::replace(choices.begin(), choices.end(), ',', '|');
    // "A:B" is a name of ours, "INT:INT in [0 - 8]" a check.
    const std::size_t check = type.find(':', type == "A:B" ? 3 : 0);
    return " " + (brace == std::string::npos ? type.substr(0, check) : choices);
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    return wrap(text, kLine - kNames);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> make_help_formatter() { return std::make_shared<HelpFormatter>(); }

}  // namespace trivelet::cli
