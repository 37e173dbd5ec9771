// --device: what computes.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/cluster/processes.h"
#include "trivelet/codec.h"

namespace trivelet::cli {

/// Adds --device auto|cpu|gpu|gpu:N; with `several` also gpu:N,M and gpu:all.
void add_device_option(Command& app, std::string& device, bool several = false);
/// The devices that --device names: gpu:N for each of several GPUs, otherwise the option itself. Throws Unsupported for
/// GPUs that do not exist.
std::vector<std::string> devices_named(const std::string& device);

/// Whether --device is gpu:all, or a list of GPUs. Does not look for them.
bool may_name_several(const std::string& device);

/// What the option asks for.
struct DeviceChoice {
  bool automatic = false;
  int gpu = -1;      ///< its number; -1: the CPU
  std::string name;  ///< of the GPU
};
/// Looks at the machine: `auto` takes the first GPU if there is one. Throws Unsupported if the named GPU does not
/// exist, or if this build cannot use any.
DeviceChoice choose_device(const std::string& device);

/// Number of the GPU that --device names, for commands that run on a GPU only. Throws Unsupported if there is none.
int choose_gpu(const std::string& device);

/// The video codec's backend; null is the CPU. With `auto` the GPU is printed. `max_memory`: of the GPU, in bytes; 0 =
/// all. `gops`: most GOPs in flight, 0 = unknown; a GPU starts sooner for few.
std::shared_ptr<const Backend> choose_backend(const std::string& device, std::size_t max_memory, std::uint64_t gops);
/// The same, with frames that stay on the GPU, whose number goes to `gpu`; -1 is the CPU.
std::shared_ptr<const Backend> choose_player_backend(const std::string& device, std::size_t max_memory, int& gpu);

/// The same in a thread of its own, because a GPU takes some tenths of a second to start.
std::future<std::shared_ptr<const Backend>> start_backend(const std::string& device, std::size_t max_memory,
                                                          std::uint64_t gops);
/// --device and --threads of one of several processes: those of a host take its GPUs, or the named ones, in turn, and
/// share its cores unless each is bound to some.
std::string device_of_process(const Place& place, const std::string& device);
int threads_of_process(const Place& place, int threads);

/// Keeps the calling thread, and those that it starts, on cores near the GPU of gpu:N. Does nothing for other devices,
/// or if the system does not report these cores.
void stay_near(const std::string& device);

/// What `fast` has in flight: it gains nothing by more.
inline constexpr std::uint64_t kFastGops = 3;
/// GOPs of `dense` in flight for which work queues are created when files are encoded. 32 queues are not faster,
/// because the host is busier than the device, and they take 0.6 s to start instead of 0.25.
inline constexpr std::uint64_t kDenseGops = 7;
/// GOPs with motion: each is searched, and then coded. More work queues find no more at once (gpu/BENCHMARKS.md, "With
/// motion").
inline constexpr std::uint64_t kMovingGops = 16;

}  // namespace trivelet::cli
