// Finds and loads the modules of the program (FFmpeg, GDCM, MPI, player) with dlopen.

#include "apps/cli/modules.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <new>
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

// True if the system limits the memory of this process (ulimit -v).
bool memory_is_limited() {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// Loads a module in a child process, and returns whether that process survived: a constructor in one of the libraries
// that gets no memory throws through the loader or ends its process.
bool survives_loading(const std::string& path) {
  const pid_t child = ::fork();
  if (child < 0) return true;
  if (child == 0) {
    if (const int null = ::open("/dev/null", O_WRONLY); null >= 0) ::dup2(null, STDERR_FILENO);
    const rlimit no_core = {};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGABRT, SIG_DFL);
    try {
      ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return true;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// True if the loader found no memory, by its messages; it has no codes.
bool means_no_memory(std::string_view reason) {
  for (const char* words : {"failed to map segment", "cannot map", "annot allocate", "annot create"})
    if (reason.find(words) != std::string_view::npos) return true;
  return false;
}

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
    const bool is_limited = memory_is_limited();
    if (is_limited && !survives_loading(path)) throw std::bad_alloc();
    // Never closed. The symbols it lacks are the program's, which exports its own.
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const void* table = module ? ::dlsym(module, ("trivelet_" + name).c_str()) : nullptr;
    if (table) return table;
    const char* reason = ::dlerror();
    if (is_limited && reason && means_no_memory(reason)) throw std::bad_alloc();
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
