// Finds and loads the modules of the program (FFmpeg, GDCM, MPI, player) with dlopen.

#include "apps/cli/modules.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "io/adapters.h"
#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

// The modules that CMake built, each name followed by a blank, and the folder of the installed modules relative to the
// program's.
constexpr std::string_view kBuilt = TRIVELET_MODULES;
constexpr const char* kInstalled = TRIVELET_MODULE_FOLDER;

}  // namespace

bool has_module(const std::string& name) { return kBuilt.find(name + " ") != std::string_view::npos; }

const void* load_module(const std::string& name, const std::string& user) {
  if (!has_module(name)) return nullptr;
  const std::string file = "libtrivelet-" + name + ".so";
  const std::string wanted = user + ": needs " + file + ", which ";
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  // Beside the program in a build, otherwise in the folder of installed modules.
  const std::array<std::filesystem::path, 2> folders = {program, (program / kInstalled).lexically_normal()};
  for (const std::filesystem::path& folder : folders) {
    const std::filesystem::path path = folder / file;
    if (!std::filesystem::exists(path, error)) continue;
    // Never closed. The symbols it lacks are the program's, which exports its own.
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const void* table = module ? ::dlsym(module, ("trivelet_" + name).c_str()) : nullptr;
    if (table) return table;
    const char* reason = ::dlerror();
    fail(ErrorKind::kUnsupported, wanted + "cannot be loaded: " + (reason ? reason : path.string()));
  }
  fail(ErrorKind::kUnsupported, wanted + "is neither in " + folders[0].string() + " nor in " + folders[1].string() +
                                    "; 'cmake --install' puts it there");
}

}  // namespace trivelet::cli

// The program's own way to the adapters, instead of io/adapters.cpp.
namespace trivelet::io {

const FfmpegAdapter* ffmpeg_adapter(const std::string& user) {
  return static_cast<const FfmpegAdapter*>(cli::load_module("ffmpeg", user));
}

const GdcmAdapter* gdcm_adapter(const std::string& user) {
  return static_cast<const GdcmAdapter*>(cli::load_module("gdcm", user));
}

bool have_ffmpeg() { return cli::has_module("ffmpeg"); }

}  // namespace trivelet::io
