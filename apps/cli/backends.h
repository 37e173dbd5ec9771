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

/// Adds --device auto|cpu|gpu|gpu:N, where `several` can be used also gpu:N,M and gpu:all.
void add_device_option(Command& app, std::string& device, bool several = false);
/// What --device names, a device each: of several GPUs gpu:N for each of them, else the option itself. Throws
/// Unsupported for GPUs that are not there.
std::vector<std::string> devices_named(const std::string& device);

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
/// The same, leaving frames on the GPU, whose number goes to `gpu`; -1 is the CPU.
std::shared_ptr<const Backend> choose_player_backend(const std::string& device, std::size_t max_memory, int& gpu);

/// The same in a thread of its own: a GPU takes some tenths of a second to start, in which other things can be done.
std::future<std::shared_ptr<const Backend>> start_backend(const std::string& device, std::size_t max_memory,
                                                          std::uint64_t gops);
/// What --device and --threads mean for one of several processes: those of a host take its GPUs, or those that are
/// named, in turn, and share its cores unless each is bound to some.
std::string device_of_process(const Place& place, const std::string& device);
int threads_of_process(const Place& place, int threads);

/// The calling thread, and those that it starts, stay where the GPU of gpu:N is near. Does nothing for other devices,
/// nor where the system does not tell.
void stay_near(const std::string& device);

/// What `fast` has in flight: it gains nothing by more.
inline constexpr std::uint64_t kFastGops = 3;
/// Work queues for as many GOPs of `dense` are as good as 32 of them where files are encoded: the host is busier than
/// the device then, and they start in 0.25 s instead of 0.6.
inline constexpr std::uint64_t kDenseGops = 7;

}  // namespace trivelet::cli
