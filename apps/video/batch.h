// Many inputs in one call: 'trivelet encode' and 'decode' with --out-dir, --recursive, --skip-existing and --report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/cli/json.h"

namespace trivelet::cli {

struct BatchOptions {
  std::vector<std::string> more;  ///< inputs behind the first two arguments
  std::string folder;             ///< --out-dir
  std::string extension;          ///< --out-ext, without a dot; empty = chosen for each file
  bool recursive = false;
  bool skip_existing = false;
  std::string report;  ///< file of --report

  bool is_typed() const { return !folder.empty() || !report.empty(); }
};

/// Adds the options, and the further inputs as arguments.
void add_batch_options(Command& app, BatchOptions& options, const std::string& extensions);

/// Whether a file that was found in a folder is a stream, or is named like one and begins like none (.tvl, or .mkv that
/// is no Matroska): the beginning of that one is damaged, and it must not be taken for another kind of file. Warns of
/// other Matroska files, whose head may be damaged, too.
bool is_stream_in_folder(const std::string& path);

/// Of the files in a folder and below it those that `takes` accepts, in the order of their names, and how many others
/// there are.
struct FoundFiles {
  std::vector<std::string> taken;
  std::uint64_t others = 0;
};
FoundFiles find_files(const std::string& folder, const std::function<bool(const std::string& path)>& takes);

/// Prints an error of one of many files, with the name of the file unless the text has it.
void report_failure(const std::string& path, const std::string& error);

/// A part of an input that gets an output of its own: a series in a folder of DICOM files.
struct BatchPart {
  std::string choice;              ///< for BatchWork::run
  std::string suffix;              ///< of the output's name
  std::string text;                ///< for messages: series 3, 'T1'
  std::vector<std::string> files;  ///< names in the folder
};

/// How a command works on one of many files.
struct BatchWork {
  const char* command;
  /// Whether a file that was found in a folder is an input.
  std::function<bool(const std::string& path)> takes{};
  /// The parts of an input, if there are several.
  std::function<std::vector<BatchPart>(const std::string& path)> parts{};
  /// The name of the output of an input; `name` is that of the input without its folder.
  std::function<std::string(const std::string& path, const std::string& name)> output_name{};
  /// Does it. `choice`: of a part; empty for a whole input. Returns an exit code or throws.
  std::function<int(const std::string& input, const std::string& output, const std::string& choice)> run{};
  bool verifies = false;  ///< run() compares the output with the input
};

/// Runs `work` on all inputs, on the others, too, if one fails. `input` and `output` are the first two arguments; with
/// --out-dir both are inputs. Returns the exit code of the first failure. Throws BadArgument before any work if two
/// inputs would have the same output.
int run_batch(const std::string& input, const std::string& output, const BatchOptions& options, const Common& common,
              const BatchWork& work);

/// Refuses a call of one file without an output, and options that need --out-dir.
void check_single(const std::string& command, const std::string& output, const BatchOptions& options);

/// Adds size and MD5 digest of a file, or of the files of a folder (those named in `files`, or all), to a report:
/// members that begin with `prefix`.
void put_digest(Json& json, const std::string& prefix, const std::string& path,
                const std::vector<std::string>& files = {});

/// The MD5 digest of a file, as md5sum prints it.
std::string md5_of_file(const std::string& path);

}  // namespace trivelet::cli
