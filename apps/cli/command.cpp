// Commands and options over CLI11, and the layout of the help text.

#include "apps/cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <sstream>

#include "apps/cli/usage.h"
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

/// The words behind "trivelet" that choose `app`: "encode", "still encode".
std::string path_of(const CLI::App& app) {
  std::string path;
  for (const CLI::App* a = &app; a->get_parent() != nullptr; a = a->get_parent())
    if (!a->get_name().empty()) path = path.empty() ? a->get_name() : a->get_name() + " " + path;
  return path;
}

std::string examples_of(const std::string& path) {
  const Usage* usage = usage_of(path);
  if (!usage) return "";
  std::string text = "Examples:";
  for (const Example& example : usage->examples) {
    const std::string line = "  trivelet " + path + " " + example.line;
    text += "\n" + line + std::string(line.size() < 58 ? 58 - line.size() : 1, ' ') + "# " + example.what;
  }
  return text;
}

/// Values and defaults readable, lines of at most 100 columns.
class HelpFormatter final : public CLI::Formatter {
 public:
  /// `line`: columns of a line; 0 = texts are not broken.
  explicit HelpFormatter(std::size_t line = kLine) : line_(line) { column_width(kNames); }

  /// An argument that may also follow an option, as in "-o OUT", is described once.
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    if (is_positional || !is_both(*option)) return CLI::Formatter::make_option(option, is_positional);
    std::stringstream out;
    CLI::detail::format_help(out, option->get_name(false, true) + " " + option->get_name(true, false),
                             option->get_name(true, false) + ", wherever it stands", column_width_);
    return out.str();
  }

  static bool is_both(const CLI::Option& option) {
    return option.get_positional() && !(option.get_lnames().empty() && option.get_snames().empty());
  }

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
    return line_ == 0 ? text : wrap(text, line_ - kNames);
  }

 private:
  std::size_t line_;
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

namespace {

/// Thrown where -h is typed.
class ShortHelp : public CLI::Success {
 public:
  explicit ShortHelp(const CLI::App& of) : CLI::Success("ShortHelp", "", CLI::ExitCodes::Success), app(&of) {}
  const CLI::App* app;
};

/// All options of a command, those of its groups, too.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> options = app.get_options();
  for (const CLI::App* group : app.get_subcommands({}))
    if (group->get_name().empty())
      for (const CLI::Option* option : group->get_options()) options.push_back(option);
  return options;
}

std::string short_help(const CLI::App& app) {
  const std::string path = path_of(app);
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  const Usage* usage = usage_of(path);
  const std::string name = "trivelet " + path;
  // CLI11 adds the command's own name.
  if (!usage || usage->first_options.empty() || !formatter) return app.help(name.substr(0, name.rfind(' ')));
  std::string text =
      app.get_description() + "\n" + formatter->make_usage(&app, name) + formatter->make_positionals(&app);
  text += "\nThe options used most:\n";
  for (const char* wanted : usage->first_options)
    for (const CLI::Option* option : options_of(app))
      if (option->check_lname(std::string(wanted).substr(2))) text += formatter->make_option(option, false);
  return text + "\n" + examples_of(path) + "\n\n'" + name + " --help' lists all options.\n";
}

}  // namespace

void Command::add_help() {
  app_->set_help_flag("--help", "All options")->group("Common");
  const CLI::App* app = app_;
  app_->add_flag_function(
          "-h", [app](std::int64_t) { throw ShortHelp(*app); }, "The options used most, and examples")
      ->trigger_on_parse()
      ->group("Common");
  if (const std::string examples = examples_of(path_of(*app_)); !examples.empty()) add_footer(examples);
}

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

/// The innermost command typed.
const CLI::App& chosen_in(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands())
    if (!command->get_name().empty()) return chosen_in(*command);
  return app;
}

/// "; did you mean X?" for the option or command most similar to `word`, an option or a command that `app` does not
/// have; otherwise "".
std::string meant(const CLI::App& app, const std::string& typed) {
  const std::string word = typed.substr(0, typed.find('='));
  const bool option_typed = word.starts_with("-");
  if (word.size() < 3 || word.size() > 40) return "";
  std::vector<std::string> names;
  if (option_typed) {
    for (const CLI::Option* option : options_of(app))
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  } else {
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  }
  if (names.empty()) return "";
  const auto begun =
      std::find_if(names.begin(), names.end(), [&word](const std::string& name) { return name.starts_with(word); });
  if (begun != names.end()) return "; did you mean " + *begun + "?";
  const auto best = std::min_element(names.begin(), names.end(), [&word](const std::string& a, const std::string& b) {
    return distance(word, a) < distance(word, b);
  });
  return distance(word, *best) <= std::max<std::size_t>(1, word.size() / 4) ? "; did you mean " + *best + "?" : "";
}

/// "IN OUT": the arguments without an option that `app` takes.
std::string arguments_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && !option->get_group().empty())
      text += (text.empty() ? "" : " ") + option->get_name(true, false) +
              (option->get_items_expected_max() > 1 ? "..." : "");
  return text;
}

bool has_option(const CLI::App& app, const std::string& word) {
  const std::vector<const CLI::Option*> options = options_of(app);
  return std::any_of(options.begin(), options.end(), [&](const CLI::Option* o) { return o->check_name(word); });
}

/// An answer to the first word of `typed` that is an option of another program; otherwise "".
std::string foreign(const CLI::App& app, const std::vector<std::string>& typed) {
  for (std::size_t i = 0; i < typed.size(); ++i) {
    if (typed[i] == "--") break;
    const std::size_t equals = typed[i].find('=');
    const std::string word = typed[i].substr(0, equals);
    const std::string value = equals != std::string::npos ? typed[i].substr(equals + 1)
                              : i + 1 < typed.size()      ? typed[i + 1]
                                                          : "";
    if (word.empty() || word[0] != '-' || has_option(app, word)) continue;
    if (const std::string answer = foreign_option(word, value); !answer.empty())
      return "unknown option '" + word + "'; " + answer;
  }
  return "";
}

/// What is wrong with the words that were not understood: the first of them that is an option, or the first.
std::string unknown_word(const CLI::App& app, const CLI::App& in, const std::vector<std::string>& typed) {
  std::vector<std::string> left = app.remaining(true);
  const auto is_left = [&left](const std::string& word) {
    return std::find(left.begin(), left.end(), word) != left.end();
  };
  for (const std::string& word : typed)
    if (word.size() > 1 && word[0] == '-' && is_left(word)) return "unknown option '" + word + "'" + meant(in, word);
  const auto first = std::find_if(typed.begin(), typed.end(), is_left);
  const std::string word = first == typed.end() ? "" : *first;
  if (!in.get_subcommands([](const CLI::App* a) { return !a->get_name().empty(); }).empty())
    return "'" + word + "' is not a command" + meant(in, word);
  const std::string arguments = arguments_of(in);
  return "'" + word + "' is too much: " + path_of(in) + " takes " + (arguments.empty() ? "options only" : arguments);
}

/// A command that is missing below `in`, or a word in its place.
std::string no_command(const CLI::App& in, const std::vector<std::string>& typed) {
  const auto own = std::find(typed.begin(), typed.end(), in.get_name());
  if (own != typed.end() && own + 1 != typed.end() && (own + 1)->front() != '-')
    return "'" + *(own + 1) + "' is not a command of " + path_of(in) + meant(in, *(own + 1));
  std::string names;
  for (const CLI::App* command : in.get_subcommands({})) names += (names.empty() ? "" : ", ") + command->get_name();
  return "a command is missing: " + path_of(in) + " takes one of " + names;
}

/// CLI11's words for a value that is none of a choice: "--preset: veryslow not in {fast,medium,slow}".
std::string in_plain_words(std::string text, const CLI::App& in) {
  const std::size_t colon = text.find(": ");
  const std::size_t brace = text.find(" not in {");
  if (colon != std::string::npos && brace != std::string::npos && text.back() == '}') {
    std::string choices = text.substr(brace + 9, text.size() - brace - 10);
    for (std::size_t at = 0; (at = choices.find(',', at)) != std::string::npos; at += 2) choices.replace(at, 1, ", ");
    return text.substr(0, colon) + " " + text.substr(colon + 2, brace - colon - 2) + ": choose one of " + choices;
  }
  constexpr std::string_view kRequired = " is required";
  if (text.ends_with(kRequired)) {
    const std::string what = text.substr(0, text.size() - kRequired.size());
    const std::string path = path_of(in);
    if (what.starts_with("-")) return what + " is missing";
    return what + " is missing: trivelet " + path + " " + arguments_of(in);
  }
  return text;
}

}  // namespace

std::optional<std::string> CommandLine::parse(std::vector<std::string> words) {
  const std::vector<std::string> typed = words;
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app_->parse(std::move(words));
  } catch (const ShortHelp& e) {
    return short_help(*e.app);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      std::ostringstream text;
      app_->exit(e, text, text);
      return text.str();
    }
    const CLI::App& in = chosen_in(*app_);
    if (const std::string answer = foreign(in, typed); !answer.empty()) fail(ErrorKind::kBadArgument, answer);
    if (std::string_view(e.what()).starts_with("A subcommand")) fail(ErrorKind::kBadArgument, no_command(in, typed));
    if (dynamic_cast<const CLI::ExtrasError*>(&e)) fail(ErrorKind::kBadArgument, unknown_word(*app_, in, typed));
    fail(ErrorKind::kBadArgument, in_plain_words(e.what(), in));
  }
  return std::nullopt;
}

namespace {

std::string in_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

/// The lines of one command, without those of its commands.
void list_command(const CLI::App& app, const HelpFormatter& formatter, std::ostringstream& out) {
  const std::string path = path_of(app);
  const auto line = [&](const char* kind, const std::string& names, const std::string& value, const std::string& text) {
    out << path << '\t' << kind << '\t' << names << '\t' << value << '\t' << in_one_line(text) << '\n';
  };
  const std::string about = app.get_description();
  line("about", "", "", about.substr(0, about.find('\n')));
  std::string usage = formatter.make_usage(&app, "trivelet" + (path.empty() ? "" : " " + path));
  usage.erase(0, usage.find("trivelet"));
  line("usage", "", "", usage.substr(0, usage.find('\n')));
  const auto list_option = [&](const CLI::Option& option) {
    std::string value = formatter.make_option_opts(&option);
    value.erase(0, value.find_first_not_of(' '));
    if (HelpFormatter::is_both(option)) value = option.get_name(true, false);
    const std::string names = option.get_name(false, true);
    line("option", names, value,
         HelpFormatter::is_both(option) ? value + ", wherever it stands" : formatter.make_option_desc(&option));
  };
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && !option->get_group().empty())
      line("positional", option->get_name(true, false), "", formatter.make_option_desc(option));
  for (const std::string& group : app.get_groups()) {
    const auto in_group = app.get_options([&](const CLI::Option* o) {
      return o->get_group() == group && (o->nonpositional() || HelpFormatter::is_both(*o));
    });
    if (in_group.empty() || group.empty()) continue;
    line("heading", "", "", group);
    for (const CLI::Option* option : in_group) list_option(*option);
  }
  for (const CLI::App* group : app.get_subcommands([](const CLI::App* a) { return a->get_name().empty(); })) {
    line("heading", "", "", group->get_group());
    for (const CLI::Option* option : group->get_options()) list_option(*option);
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* a) { return !a->get_name().empty(); }))
    line("command", command->get_name(), "", command->get_description());
  if (const Usage* found = usage_of(path))
    for (const Example& example : found->examples)
      line("example", "", "trivelet " + path + " " + example.line, example.what);
  std::istringstream footer(app.get_footer());
  for (std::string text; std::getline(footer, text) && !text.starts_with("Examples:");)
    if (!text.empty()) line("footer", "", "", text);
}

void list_all(const CLI::App& app, const HelpFormatter& formatter, std::ostringstream& out) {
  list_command(app, formatter, out);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* a) { return !a->get_name().empty(); }))
    list_all(*command, formatter, out);
}

}  // namespace

std::string CommandLine::table() const {
  std::ostringstream out;
  for (const auto& [name, what] : environment()) out << "\tenvironment\t" << name << "\t\t" << what << '\n';
  list_all(*app_, HelpFormatter(0), out);
  return out.str();
}

std::string CommandLine::chosen_name() const {
  const auto chosen = app_->get_subcommands();
  return chosen.empty() ? "" : chosen.front()->get_name();
}

}  // namespace trivelet::cli
