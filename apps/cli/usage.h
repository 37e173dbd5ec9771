// Examples of each command, the options that its short help shows, and answers to options of other programs.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trivelet::cli {

struct Example {
  const char* line;  ///< without "trivelet " and the command's name
  const char* what;
};

struct Usage {
  std::string_view command;  ///< "encode", "still encode"
  std::vector<Example> examples;
  std::vector<const char*> first_options;  ///< shown by -h
};

/// Of one command; null if it has none of its own.
const Usage* usage_of(std::string_view command);

/// Variables of the environment that the program reads, and what they do.
std::vector<std::pair<const char*, const char*>> environment();

/// What to type instead of `word`, an option of another program, which `value` follows; "" if it is not known.
std::string foreign_option(const std::string& word, const std::string& value);

}  // namespace trivelet::cli
