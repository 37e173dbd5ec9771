// Commands and options over CLI11, and the layout of the help text.

#include "apps/cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

// ------------------------------------------------------------------------------------------------- the look of --help

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

/// Values and defaults readable, lines of at most 100 columns.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kNames); }

  /// "N", "A:B", "t+2d|dyadic": CLI11 gives the type, then after a colon the check of the value.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_type_size() == 0) return {};
    const std::string type = option->get_type_name();
    const std::size_t brace = type.find('{');
    std::string choices = type.substr(brace == std::string::npos ? 0 : brace + 1, type.find_last_of('}') - brace - 1);
    std::replace(choices.begin(), choices.end(), ',', '|');
    // "A:B" and "LOW:HIGH" are names; "INT:INT in [0 - 8]" is a name and a check.
    const bool is_range = type == "A:B" || type == "LOW:HIGH";
    const std::size_t check = is_range ? std::string::npos : type.find(':');
    return " " + (brace == std::string::npos ? type.substr(0, check) : choices);
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    return wrap(text, kLine - kNames);
  }
};

}  // namespace

// ------------------------------------------------------------------------------------------------------------- Option

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

Option Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option Option::show_default() {
  option_->capture_default_str();
  return *this;
}

namespace {

/// The complaint about `text` if it is not a number that satisfies `holds`; `wanted` describes such numbers.
std::string number_complaint(const std::string& text, bool whole, const std::function<bool(double)>& holds,
                             const std::string& wanted) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size())
    return "'" + text + "' is not a number" +
           (text.find(',') != std::string::npos ? "; write decimals with a point, as 0.5" : "");
  if (whole && value != std::floor(value)) return text + " is not a whole number";
  return holds(value) ? "" : text + " is not " + wanted;
}

std::string between(double least, double most) {
  std::ostringstream text;
  text << std::setprecision(10) << "in " << least << " to " << most;
  return text.str();
}

}  // namespace

Option Option::range(int least, int most) {
  return check([=](const std::string& text) {
    return number_complaint(
        text, true, [=](double v) { return v >= least && v <= most; }, between(least, most));
  });
}

Option Option::range(double least, double most) {
  return check([=](const std::string& text) {
    return number_complaint(
        text, false, [=](double v) { return v >= least && v <= most; }, between(least, most));
  });
}

Option Option::positive() {
  return check([](const std::string& text) {
    return number_complaint(
        text, false, [](double v) { return v > 0 && std::isfinite(v); }, "above 0 and finite");
  });
}

Option Option::non_negative() {
  return check([](const std::string& text) {
    return number_complaint(
        text, false, [](double v) { return v >= 0 && std::isfinite(v); }, "0 or above, and finite");
  });
}

Option Option::one_of(std::vector<std::string> values) {
  option_->check(CLI::IsMember(std::move(values)));
  return *this;
}

Option Option::one_of(std::initializer_list<int> values) {
  option_->check(CLI::IsMember(std::vector<int>(values)));
  return *this;
}

Option Option::check(std::function<std::string(const std::string&)> complaint) {
  option_->check(CLI::Validator([complaint = std::move(complaint)](std::string& s) { return complaint(s); }, ""));
  return *this;
}

Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(Option other) {
  option_->needs(other.option_);
  return *this;
}

Option Option::expected(int least, int most) {
  option_->expected(least, most);
  return *this;
}

Option Option::repeatable() {
  option_->allow_extra_args(false)->take_all();
  return *this;
}

Option Option::delimiter(char between) {
  option_->delimiter(between);
  return *this;
}

bool Option::typed() const { return option_->count() > 0; }

// ------------------------------------------------------------------------------------------------------------ Command

Option Command::add_option(const std::string& names, std::string& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, int& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::uint32_t& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::uint64_t& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, double& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return Option(app_->add_option(names, values, help));
}

Option Command::add_option(const std::string& names, std::vector<int>& values, const std::string& help) {
  return Option(app_->add_option(names, values, help));
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}

Command Command::add_group(const std::string& heading, std::size_t least, std::size_t most) {
  CLI::App* group = app_->add_option_group(heading);
  group->require_option(least, most);
  return Command(group);
}

Command Command::add_command(const std::string& name, const std::string& help) {
  CLI::App* command = app_->add_subcommand(name, help);
  command->set_help_flag();  // the one inherited; add_help() puts it after the other options
  return Command(command);
}

void Command::require_command(std::size_t least, std::size_t most) { app_->require_subcommand(least, most); }

void Command::fall_through() { app_->fallthrough(); }

void Command::add_help() { app_->set_help_flag("-h,--help", "This help")->group("Common"); }

void Command::add_footer(const std::string& text) {
  const std::string before = app_->get_footer();
  app_->footer(before + (before.empty() ? "" : "\n") + text);
}

bool Command::chosen() const { return app_->parsed(); }

bool Command::typed(const std::string& option) const { return app_->count(option) > 0; }

std::vector<std::pair<std::string, std::string>> Command::typed_under(const std::string& heading) const {
  std::vector<std::pair<std::string, std::string>> typed;
  for (const CLI::Option* option : static_cast<const CLI::App*>(app_)->get_options())
    if (option->count() > 0 && option->get_group() == heading)
      typed.emplace_back(option->get_name(), option->as<std::string>());
  return typed;
}

// -------------------------------------------------------------------------------------------------------- CommandLine

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : Command(nullptr), owned_(std::make_unique<CLI::App>(description, name)) {
  app_ = owned_.get();
  app_->formatter(std::make_shared<HelpFormatter>());
}

CommandLine::~CommandLine() = default;

void CommandLine::add_version(const std::string& names, std::function<std::string()> version, const std::string& help) {
  app_->set_version_flag(names, std::move(version), help);
}

void CommandLine::add_help(const std::string& help) { app_->set_help_flag("-h,--help", help); }

void CommandLine::add_help_all(const std::string& help) { app_->set_help_all_flag("--help-all", help); }

namespace {

/// Letters to add, leave out, change or swap with the next to make `b` of `a`.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

/// ", did you mean X?" for the option or command most similar to one of `words` that `app` does not have; otherwise "".
std::string meant(const CLI::App& app, const std::vector<std::string>& words) {
  const auto chosen = app.get_subcommands();
  const CLI::App& in = chosen.empty() ? app : *chosen.front();
  std::vector<std::string> names;
  if (chosen.empty())
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const auto add_options = [&names](const CLI::App& of) {
    for (const CLI::Option* option : of.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  };
  add_options(in);
  for (const CLI::App* group : in.get_subcommands({}))
    if (group->get_name().empty()) add_options(*group);  // its groups of options
  for (std::string word : words) {
    word = word.substr(0, word.find('='));
    if (word.size() < 3 || word.size() > 40 || (!chosen.empty() && word.rfind("--", 0) != 0)) continue;
    if (std::find(names.begin(), names.end(), word) != names.end()) continue;
    const auto nearer = [&word](const std::string& a, const std::string& b) {
      return distance(word, a) < distance(word, b);
    };
    const auto begun =
        std::find_if(names.begin(), names.end(), [&word](const std::string& name) { return name.starts_with(word); });
    if (begun != names.end()) return "; did you mean " + *begun + "?";
    const auto best = std::min_element(names.begin(), names.end(), nearer);
    if (best != names.end() && distance(word, *best) <= std::max<std::size_t>(1, word.size() / 4))
      return "; did you mean " + *best + "?";
  }
  return "";
}

}  // namespace

std::optional<std::string> CommandLine::parse(std::vector<std::string> words) {
  const std::vector<std::string> typed = words;
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app_->parse(std::move(words));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success))
      fail(ErrorKind::kBadArgument, e.what() + meant(*app_, typed));
    std::ostringstream text;
    app_->exit(e, text, text);
    return text.str();
  }
  return std::nullopt;
}

std::string CommandLine::chosen_name() const {
  const auto chosen = app_->get_subcommands();
  return chosen.empty() ? "" : chosen.front()->get_name();
}

}  // namespace trivelet::cli
