// The command line: commands, their options and the help text. CLI11 does the work behind this header, which does not
// include it, because its templates cost seconds in every file that sees them.
//
// Command and Option are handles, cheap to copy; the CommandLine owns the objects. The functions of Option return it,
// so that calls can be chained:
//   app.add_option("--gop", options.gop, "Frames transformed together").range(1, 128).type_name("N").show_default();
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trivelet::cli {

/// Something that can be typed: "--name VALUE", a flag, or an argument by its place.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  Option group(const std::string& heading);   ///< heading in the help
  Option type_name(const std::string& name);  ///< name of the value in the help: N, FILE, WxH
  Option show_default();                      ///< the value the variable has now, in the help
  Option range(int least, int most);
  Option range(double least, double most);
  Option positive();
  Option non_negative();
  Option one_of(std::vector<std::string> values);
  Option one_of(std::initializer_list<int> values);
  /// `complaint` returns what is wrong with a value, or "".
  Option check(std::function<std::string(const std::string&)> complaint);
  Option excludes(Option other);
  Option needs(Option other);
  Option expected(int least, int most);  ///< so many values
  Option repeatable();                   ///< may be typed several times, with a value each
  Option delimiter(char between);        ///< several values in one word

  bool typed() const;

 private:
  CLI::Option* option_;
};

/// A command, or a group of options in one.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  /// Adds "-s,--long" or, without dashes, an argument by its place. The variable keeps its value unless one is typed.
  Option add_option(const std::string& names, std::string& value, const std::string& help);
  Option add_option(const std::string& names, int& value, const std::string& help);
  Option add_option(const std::string& names, std::uint32_t& value, const std::string& help);
  Option add_option(const std::string& names, std::uint64_t& value, const std::string& help);
  Option add_option(const std::string& names, double& value, const std::string& help);
  Option add_option(const std::string& names, std::vector<std::string>& values, const std::string& help);
  Option add_option(const std::string& names, std::vector<int>& values, const std::string& help);
  Option add_flag(const std::string& names, bool& value, const std::string& help);

  /// A heading of options, of which between `least` and `most` must be typed.
  Command add_group(const std::string& heading, std::size_t least, std::size_t most);
  Command add_command(const std::string& name, const std::string& help);
  void require_command(std::size_t least, std::size_t most);
  /// Options that a subcommand does not have are looked up in its parent.
  void fall_through();
  /// Adds -h, the first options and examples (usage.h), and --help, all; after the other options.
  void add_help();
  /// Another line below the options in the help.
  void add_footer(const std::string& text);

  // After CommandLine::parse().

  bool chosen() const;                          ///< this command was typed
  bool typed(const std::string& option) const;  ///< this option of it was typed
  /// Names and values of the typed options under `heading`.
  std::vector<std::pair<std::string, std::string>> typed_under(const std::string& heading) const;

 protected:
  CLI::App* app_;
};

/// The whole program's: the command above all others.
class CommandLine : public Command {
 public:
  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  void add_version(const std::string& names, std::function<std::string()> version, const std::string& help);
  void add_help(const std::string& help);
  void add_help_all(const std::string& help);

  /// Sets the variables. Returns the text to print if help or the version is requested. Throws Error(kBadArgument) for
  /// a command line that cannot be parsed.
  std::optional<std::string> parse(std::vector<std::string> words);
  /// The command typed; empty without one.
  std::string chosen_name() const;
  /// All of the help as lines of five fields with a TAB between: command, kind (about, usage, heading, positional,
  /// option, command, example, footer, environment), names, value, text.
  std::string table() const;

 private:
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace trivelet::cli
