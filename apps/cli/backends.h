// --device: what computes.
#pragma once

#include <future>
#include <memory>
#include <string>

#include "apps/cli/cli.h"
#include "apps/cli/processes.h"
#include "trivelet/codec.h"

namespace trivelet::cli {

/// Adds --device auto|cpu|gpu|gpu:N.
void add_device_option(Command& app, std::string& device);

/// What the option asks for.
struct DeviceChoice {
  bool automatic = false;
  int gpu = -1;      ///< its number; -1: the CPU
  std::string name;  ///< of the GPU
};
/// Looks at the machine: `auto` takes the first GPU when there is one. Throws Unsupported when a GPU is asked for that
/// is not there, or none can be used by this build.
DeviceChoice choose_device(const std::string& device);

/// Number of the GPU that --device means, for what runs on a GPU only. Throws Unsupported when there is none.
int choose_gpu(const std::string& device);

/// The video codec's backend; null is the CPU. With `auto` it says which GPU it takes. `max_memory`: of the GPU, in
/// bytes; 0 = all. `gops`: in flight at most, if that is known, for a GPU that need not have many starts sooner; 0 =
/// not known.
std::shared_ptr<const Backend> choose_backend(const std::string& device, std::size_t max_memory, std::uint64_t gops);

/// The same in a thread of its own: a GPU takes some tenths of a second to start, in which other things can be done.
std::future<std::shared_ptr<const Backend>> start_backend(const std::string& device, std::size_t max_memory,
                                                          std::uint64_t gops);
/// What --device and --threads mean for one of several processes: those of a host take its GPUs in turn, and share its
/// cores unless each is bound to some.
std::string device_of_process(const Place& place, const std::string& device);
int threads_of_process(const Place& place, int threads);

/// What `fast` has in flight: it gains nothing by more.
inline constexpr std::uint64_t kFastGops = 3;

}  // namespace trivelet::cli
