// Runs fuzz targets on files and folders without libFuzzer: fuzz_replay TARGET PATH... for one target, or fuzz_replay
// --all FOLDER for all targets, each on the subfolder of its name.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

// TRIVELET_FUZZ_TARGETS is a list of TARGET(name); each has a function fuzz_name().
#define TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
TRIVELET_FUZZ_TARGETS
#undef TARGET

namespace {

struct Target {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

#define TARGET(name) {#name, fuzz_##name},
constexpr Target kTargets[] = {TRIVELET_FUZZ_TARGETS};
#undef TARGET

bool run_file(const Target& target, const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  const std::vector<char> content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // A copy of exactly this size, so that a sanitizer sees reads beyond it.
  const std::vector<std::uint8_t> bytes(content.begin(), content.end());
  std::fprintf(stderr, "%s\n", path.c_str());
  target.run(bytes.data(), bytes.size());
  return true;
}

// False when nothing was run.
bool run(const Target& target, const char* path) {
  if (!std::filesystem::is_directory(path)) return run_file(target, path);
  bool any = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    if (!run_file(target, entry.path())) return false;
    any = true;
  }
  return any;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--all") == 0) {
    for (const Target& target : kTargets)
      if (!run(target, (std::filesystem::path(argv[2]) / target.name).c_str())) return 1;
    return 0;
  }
  for (const Target& target : kTargets) {
    if (argc < 3 || std::strcmp(argv[1], target.name) != 0) continue;
    for (int i = 2; i < argc; ++i)
      if (!run(target, argv[i])) return 1;
    return 0;
  }
  std::fprintf(stderr, "usage: fuzz_replay TARGET PATH... | --all FOLDER\ntargets:");
  for (const Target& target : kTargets) std::fprintf(stderr, " %s", target.name);
  std::fprintf(stderr, "\n");
  return 2;
}
