// Names the outputs of many inputs, works on one after the other, and reports.

#include "apps/video/batch.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/cluster/processes.h"
#include "apps/video/video.h"
#include "codec/threads/stopwatch.h"
#include "io/md5.h"
#include "io/video/video_io.h"
#include "io/volume/volume_io.h"
#include "trivelet/streams.h"

namespace trivelet::cli {

namespace {

namespace fs = std::filesystem;

struct BatchFile {
  std::string input;
  std::string name;  ///< of the input, below the folder that was named
  std::string output{};
  bool found = false;  ///< in a folder, not named
  BatchPart part{};    ///< of the input; empty: all of it

  std::string text() const { return part.text.empty() ? input : input + " (" + part.text + ")"; }
};

enum class State { kDone, kSkipped, kOther, kFailed };

constexpr const char* kStates[] = {"done", "skipped", "other", "failed"};

struct Outcome {
  BatchFile file;
  State state = State::kDone;
  int code = kExitDone;
  std::string error{};
  double seconds = 0;
  std::vector<std::string> warnings{};
};

/// Whether `path` holds the data of a header beside it, which is the input.
bool is_data_of_header(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const char* data : {".raw", ".zraw", ".img", ".raw.gz", ".img.gz"}) {
    if (!name.ends_with(data)) continue;
    const fs::path stem = path.parent_path() / name.substr(0, name.size() - std::string_view(data).size());
    for (const char* header : {".mhd", ".nhdr", ".hdr", ".hdr.gz"})
      if (fs::exists(stem.string() + header)) return true;
  }
  return false;
}

/// The inputs in a folder and in those below it, in the order of their names. A DICOM study is one input, to which the
/// folders in it do not belong. `in_study`: the files of the folder itself are such an input.
void find_inputs(const fs::path& folder, const fs::path& below, bool in_study, std::vector<BatchFile>& found) {
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& path : entries) {
    const fs::path name = below / path.filename();
    if (path.filename().string().starts_with(".") || is_data_of_header(path)) continue;
    const bool study = fs::is_directory(path) && io::is_dicom_folder(path.string());
    if (study || (!in_study && fs::is_regular_file(path))) found.push_back({path.string(), name.string(), {}, true});
    if (fs::is_directory(path) && !fs::is_symlink(path))
      find_inputs(path, name, study, found);  // links can lead in circles
  }
}

std::vector<BatchFile> inputs_of(const std::vector<std::string>& typed, const BatchOptions& options) {
  std::vector<BatchFile> files;
  for (const std::string& path : typed) {
    require(path != "-", ErrorKind::kBadArgument,
            "--out-dir names outputs after inputs, and standard input has no name");
    const bool study = fs::is_directory(path) && io::is_dicom_folder(path);
    const fs::path name = fs::path(path).lexically_normal();
    const fs::path last = name.filename().empty() ? name.parent_path().filename() : fs::path(path).filename();
    if (!options.recursive || !fs::is_directory(path) || study) files.push_back({path, last.string()});
    if (options.recursive && fs::is_directory(path)) find_inputs(path, study ? last : fs::path(), study, files);
  }
  return files;
}

void put_outcome(Json& json, const Outcome& outcome, bool verifies) {
  json.begin_object();
  json.member("input", outcome.file.input);
  if (!outcome.file.output.empty()) json.member("output", outcome.file.output);
  json.member("state", kStates[static_cast<int>(outcome.state)]);
  if (!outcome.file.part.text.empty()) json.member("part", outcome.file.part.text);
  put_digest(json, "input", outcome.file.input, outcome.file.part.files);
  if (outcome.state == State::kDone || outcome.state == State::kSkipped)
    put_digest(json, "output", outcome.file.output);
  if (outcome.state == State::kDone) {
    json.member("verified", verifies);
    json.member("seconds", outcome.seconds);
  }
  if (outcome.state == State::kFailed) {
    json.member("exit_code", outcome.code);
    json.member("error", outcome.error);
  }
  json.begin_array("warnings");
  for (const std::string& warning : outcome.warnings) json.value(warning);
  json.end_array();
  json.end_object();
}

std::string report_text(const std::string& command, const std::vector<Outcome>& outcomes, bool verifies) {
  Json json;
  json.begin_object();
  json.member("writer", std::string("trivelet ") + kLibraryVersion);
  json.member("command", command);
  std::map<State, int> counts;
  for (const Outcome& outcome : outcomes) ++counts[outcome.state];
  for (const State state : {State::kDone, State::kSkipped, State::kOther, State::kFailed})
    json.member(kStates[static_cast<int>(state)], counts[state]);
  json.begin_array("files");
  for (const Outcome& outcome : outcomes) put_outcome(json, outcome, verifies);
  json.end_array();
  json.end_object();
  return json.text();
}

/// A file that was found and is neither film, picture nor volume is no failure.
bool is_other(const Outcome& outcome, const Error& e) {
  return outcome.file.found && dynamic_cast<const io::NoPictures*>(&e) != nullptr;
}

/// Runs the work and keeps what went wrong.
void work_on(const BatchWork& work, bool makes_folder, Outcome& outcome) {
  const auto failed = [&](int code, const std::string& what) {
    outcome.state = State::kFailed;
    outcome.code = code;
    outcome.error = in_options(what);
    report_failure(outcome.file.text(), outcome.error);
  };
  try {
    const fs::path folder = fs::path(outcome.file.output).parent_path();
    if (makes_folder && !folder.empty()) fs::create_directories(folder);
    outcome.code = work.run(outcome.file.input, outcome.file.output, outcome.file.part.choice);
    if (outcome.code != kExitDone) outcome.state = State::kFailed;
  } catch (const Error& e) {
    if (!is_other(outcome, e)) return failed(exit_code(e.kind()), e.what());
    outcome.state = State::kOther;
    outcome.error = in_options(e.what());
    log::warn("{}; it is left", outcome.error);
  } catch (const std::bad_alloc&) {
    failed(kExitNoMemory, "out of memory");
  } catch (const fs::filesystem_error& e) {
    failed(kExitIo, "cannot make the folder '" + e.path1().string() + "': " + e.code().message());
  }
}

/// An input of several parts becomes one for each.
std::vector<BatchFile> divided(std::vector<BatchFile> files, const BatchWork& work) {
  if (!work.parts) return files;
  std::vector<BatchFile> all;
  for (BatchFile& file : files) {
    std::vector<BatchPart> parts;
    if (file.output.empty()) parts = work.parts(file.input);
    if (parts.size() < 2) {
      all.push_back(std::move(file));
      continue;
    }
    for (BatchPart& part : parts) {
      BatchFile one = file;
      one.name += part.suffix;
      one.part = std::move(part);
      all.push_back(std::move(one));
    }
  }
  return all;
}

/// The names of the outputs. Throws before any work if two inputs have the same.
std::vector<Outcome> name_outputs(std::vector<BatchFile> files, const BatchOptions& options, const BatchWork& work) {
  std::vector<Outcome> outcomes;
  std::map<std::string, std::string> input_of;
  for (BatchFile& file : files) {
    Outcome outcome{file};
    if (options.recursive && !work.takes(file.input)) {
      outcome.state = State::kOther;
    } else if (file.output.empty()) {
      const fs::path name(file.name);
      try {
        outcome.file.output =
            (fs::path(options.folder) / name.parent_path() / work.output_name(file.input, name.filename().string()))
                .string();
      } catch (const Error& e) {
        const bool other = is_other(outcome, e);
        outcome.state = other ? State::kOther : State::kFailed;
        outcome.code = other ? kExitDone : exit_code(e.kind());
        outcome.error = in_options(e.what());
      }
    }
    if (!outcome.file.output.empty()) {
      const auto [other, is_new] = input_of.try_emplace(outcome.file.output, file.text());
      require(is_new, ErrorKind::kBadArgument,
              "'" + other->second + "' and '" + file.text() + "' would both be written to '" + outcome.file.output +
                  "'; write them into different folders");
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

/// All that is done about one input. `number`: of how many, for the message.
void handle(const BatchOptions& options, const BatchWork& work, const std::string& number, Outcome& outcome) {
  const BatchFile& file = outcome.file;
  if (outcome.state == State::kFailed) return report_failure(file.text(), outcome.error);
  if (outcome.state == State::kOther && !outcome.error.empty()) log::warn("{}; it is left", outcome.error);
  if (outcome.state != State::kDone) return;
  if (options.skip_existing && fs::exists(file.output)) {
    outcome.state = State::kSkipped;
    return;
  }
  if (!options.folder.empty()) log::info("[{}] {} -> {}", number, file.text(), file.output);
  const Stopwatch clock;
  work_on(work, !options.folder.empty(), outcome);
  outcome.seconds = clock.seconds();
}

std::string summary(const std::vector<Outcome>& outcomes) {
  std::map<State, int> counts;
  for (const Outcome& outcome : outcomes) ++counts[outcome.state];
  std::string text = fmt::format("{} done, {} skipped, {} failed", counts[State::kDone], counts[State::kSkipped],
                                 counts[State::kFailed]);
  if (counts[State::kOther] > 0)
    text += ", " + count_of(static_cast<std::uint64_t>(counts[State::kOther]), "other file") + " left";
  return text;
}

}  // namespace

bool is_stream_in_folder(const std::string& path) {
  if (is_tvl_file(path)) return true;
  if (!fs::is_regular_file(path)) return false;
  const fs::path extension = fs::path(path).extension();
  if (extension == ".tvl") return true;
  if (extension != ".mkv") return false;
  std::array<char, 4> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  if (std::string_view(head.data(), head.size()) != "\x1a\x45\xdf\xa3") return true;
  log::warn("'{}' holds no Trivelet stream, or its beginning is damaged; it is left", path);
  return false;
}

FoundFiles find_files(const std::string& folder, const std::function<bool(const std::string& path)>& takes) {
  std::vector<BatchFile> all;
  find_inputs(folder, {}, false, all);
  FoundFiles found;
  for (BatchFile& file : all) {
    if (takes(file.input))
      found.taken.push_back(std::move(file.input));
    else
      ++found.others;
  }
  return found;
}

void report_failure(const std::string& path, const std::string& error) {
  if (error.find(path) != std::string::npos)
    log::error("{}", error);
  else
    log::error("{}: {}", path, error);
}

void put_digest(Json& json, const std::string& prefix, const std::string& path, const std::vector<std::string>& files) {
  std::error_code none;
  if (fs::is_regular_file(path, none)) {
    json.member(prefix + "_bytes", fs::file_size(path));
    try {
      json.member(prefix + "_md5", md5_of_file(path));
    } catch (const Error& e) {
      json.member(prefix + "_error", std::string(e.what()));
    }
    return;
  }
  if (!fs::is_directory(path, none)) return;
  std::set<std::string> members;
  for (const std::string& file : files) members.insert((fs::path(path) / file).string());
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (files.empty() && entry.is_regular_file()) members.insert(entry.path().string());
  json.begin_array(prefix + "_files");
  for (const std::string& member : members) {
    json.begin_object();
    json.member("name", member);
    json.member("bytes", fs::file_size(member));
    json.member("md5", md5_of_file(member));
    json.end_object();
  }
  json.end_array();
}

std::string md5_of_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  require(file != nullptr, ErrorKind::kIo, "cannot open '" + path + "' for its digest");
  io::Md5 digest;
  std::vector<unsigned char> bytes(std::size_t{1} << 20);
  while (const std::size_t n = std::fread(bytes.data(), 1, bytes.size(), file.get())) digest.update(bytes.data(), n);
  require(std::ferror(file.get()) == 0, ErrorKind::kIo, "cannot read '" + path + "' for its digest");
  return digest.hex();
}

void add_batch_options(Command& app, BatchOptions& options, const std::string& extensions) {
  constexpr const char* kMany = "Many files";
  app.add_option("MORE", options.more, "With --out-dir: further inputs");
  app.add_option("--out-dir", options.folder,
                 "Folder for the outputs, which are named after the inputs; all arguments are inputs")
      .type_name("FOLDER")
      .group(kMany);
  app.add_option("--out-ext", options.extension, extensions).type_name("EXT").group(kMany);
  app.add_flag("--recursive", options.recursive, "Also take all files in folders that are named, and below them")
      .group(kMany);
  app.add_flag("--skip-existing", options.skip_existing, "Leave inputs out whose output exists").group(kMany);
  app.add_option("--report", options.report,
                 "Write a report in JSON: state, MD5 digests of input and output, warnings and errors of every file; "
                 "- = standard output")
      .type_name("FILE")
      .group(kMany);
}

void check_single(const std::string& command, const std::string& output, const BatchOptions& options) {
  require(options.more.empty(), ErrorKind::kBadArgument,
          "'" + (options.more.empty() ? "" : options.more.front()) + "' is too much: " + command +
              " takes one input and one output; --out-dir FOLDER takes several inputs");
  require(!output.empty(), ErrorKind::kBadArgument,
          "OUT is missing: trivelet " + command + " IN OUT, or IN... --out-dir FOLDER");
  require(!options.recursive && !options.skip_existing && options.extension.empty(), ErrorKind::kBadArgument,
          "--recursive, --skip-existing and --out-ext need --out-dir FOLDER");
}

int run_batch(const std::string& input, const std::string& output, const BatchOptions& options, const Common& common,
              const BatchWork& work) {
  require(place_of_process().size <= 1, ErrorKind::kBadArgument,
          "--out-dir and --report are for one process; give mpirun one file at a time");
  std::vector<BatchFile> files;
  if (options.folder.empty()) {
    check_single(work.command, output, options);
    files.push_back({input, input, output});
  } else {
    std::vector<std::string> typed = {input};
    if (!output.empty()) typed.push_back(output);
    typed.insert(typed.end(), options.more.begin(), options.more.end());
    files = divided(inputs_of(typed, options), work);
  }
  std::vector<Outcome> outcomes = name_outputs(std::move(files), options, work);
  const auto report = options.report.empty() ? nullptr : std::make_unique<FileSink>(options.report, common.overwrite);
  int code = kExitDone;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const std::size_t warnings_before = log::warnings().size();
    handle(options, work, std::to_string(i + 1) + "/" + std::to_string(outcomes.size()), outcomes[i]);
    const std::vector<std::string> all = log::warnings();
    outcomes[i].warnings.assign(all.begin() + static_cast<std::ptrdiff_t>(warnings_before), all.end());
    if (code == kExitDone) code = outcomes[i].code;
  }
  if (!options.folder.empty()) log::info("{}", summary(outcomes));
  if (report) {
    const std::string text = report_text(work.command, outcomes, work.verifies);
    report->write(text.data(), text.size());
    report->commit();
  }
  return code;
}

}  // namespace trivelet::cli
