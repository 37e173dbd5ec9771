// --device: finds the GPUs, chooses one, and starts its backend.

#include "apps/cli/backends.h"
#include "apps/cli/log.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "codec/backend.h"
#include "codec/threads/trace.h"
#include "trivelet/cuda.h"

namespace trivelet::cli {

namespace {

struct Gpu {
  int number;
  std::string name;
};

std::vector<Gpu> gpus() {
  std::vector<Gpu> found;
  for (const gpu::DeviceInfo& d : gpu::devices()) found.push_back({d.number, d.name});
  return found;
}

/// The numbers of gpu:N and gpu:N,M,…; nothing for other texts.
std::optional<std::vector<int>> numbers_of(const std::string& device) {
  if (!device.starts_with("gpu:")) return std::nullopt;
  std::vector<int> numbers;
  const char* at = device.data() + 4;
  const char* end = device.data() + device.size();
  for (;; ++at) {
    int number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc() || *at == '-' || number > 999) return std::nullopt;
    numbers.push_back(number);
    at = behind;
    if (at == end) return numbers;
    if (*at != ',') return std::nullopt;
  }
}

}  // namespace

void stay_near(const std::string& device) {
  const std::optional<std::vector<int>> numbers = numbers_of(device);
  if (!numbers) return;
  cpu_set_t allowed, near;
  CPU_ZERO(&near);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (const int core : gpu::cores_near(numbers->front()))
    if (core < CPU_SETSIZE && CPU_ISSET(core, &allowed)) CPU_SET(core, &near);
  if (CPU_COUNT(&near) == 0) return;
  if (sched_setaffinity(0, sizeof near, &near) == 0)
    log::debug("{}: its threads run on {} of {} cores, which are near it", device, CPU_COUNT(&near),
               CPU_COUNT(&allowed));
}

void add_device_option(Command& app, std::string& device, bool several) {
  app.add_option("--device", device,
                 several ? "Device: auto = a GPU if there is one that supports the job, cpu, gpu, gpu:N, or several "
                           "GPUs: gpu:N,M or gpu:all. A transform gives the same bytes on all"
                         : "Device: auto = a GPU if there is one that supports the job, cpu, gpu, gpu:N. A transform "
                           "gives the same bytes on all")
      .check([several](const std::string& s) {
        if (s == "auto" || s == "cpu" || s == "gpu") return std::string();
        const std::optional<std::vector<int>> numbers = numbers_of(s);
        if (!numbers && s != "gpu:all")
          return "'" + s + "' is not auto, cpu, gpu or gpu:N" + (several ? ", gpu:N,M or gpu:all" : "");
        if (!several && (!numbers || numbers->size() > 1)) return "'" + s + "': this command uses one GPU; write gpu:N";
        for (std::size_t i = 0; numbers && i < numbers->size(); ++i)
          if (std::count(numbers->begin(), numbers->end(), (*numbers)[i]) > 1)
            return "'" + s + "' names GPU " + std::to_string((*numbers)[i]) + " twice";
        return std::string();
      })
      .type_name("DEVICE")
      .show_default()
      .group("Common");
}

bool may_name_several(const std::string& device) {
  const std::optional<std::vector<int>> numbers = numbers_of(device);
  return device == "gpu:all" || (numbers && numbers->size() > 1);
}

std::vector<std::string> devices_named(const std::string& device) {
  const std::optional<std::vector<int>> numbers = numbers_of(device);
  if (!may_name_several(device)) return {device};
  const std::vector<Gpu> found = gpus();
  if (found.empty()) (void)choose_device("gpu");  // says why there is none
  std::vector<std::string> names;
  if (!numbers)
    for (const Gpu& g : found) names.push_back("gpu:" + std::to_string(g.number));
  else
    for (const int n : *numbers) names.push_back("gpu:" + std::to_string(n));
  for (const std::string& name : names) (void)choose_device(name);
  return names;
}

DeviceChoice choose_device(const std::string& device) {
  DeviceChoice choice;
  if (device == "cpu") return choice;
  choice.automatic = device == "auto";
  const std::vector<Gpu> found = gpus();
  if (choice.automatic && found.empty()) return choice;
  require(!found.empty(), ErrorKind::kUnsupported,
          "--device " + device + ": " +
              (gpu::is_built() ? "there is no NVIDIA GPU with a driver here; use --device cpu"
                               : "this program was built without CUDA; use --device cpu"));
  int wanted = found.front().number;
  if (device.starts_with("gpu:")) std::from_chars(device.data() + 4, device.data() + device.size(), wanted);
  for (const Gpu& g : found)
    if (g.number == wanted) {
      choice.gpu = wanted;
      choice.name = g.name;
    }
  require(choice.gpu >= 0, ErrorKind::kUnsupported,
          "--device " + device + ": " +
              (found.size() == 1 ? "there is one GPU, number 0"
                                 : "there are " + std::to_string(found.size()) + " GPUs, numbered from 0"));
  return choice;
}

int choose_gpu(const std::string& device) { return choose_device(device == "auto" ? "gpu" : device).gpu; }

std::shared_ptr<const Backend> choose_backend(const std::string& device, std::size_t max_memory, std::uint64_t gops) {
  const trace::Span span("start the GPU");
  if (gops > 0) gpu::expect_gops(static_cast<int>(std::min<std::uint64_t>(gops, 1000)));
  const DeviceChoice choice = choose_device(device);
  if (choice.gpu < 0) return nullptr;
  if (choice.automatic) log::info("coding on GPU {}: {}", choice.gpu, choice.name);
  return gpu::cuda_backend(choice.gpu, max_memory);
}

std::shared_ptr<const Backend> choose_player_backend(const std::string& device, std::size_t max_memory, int& gpu) {
  const DeviceChoice choice = choose_device(device);
  gpu = choice.gpu;
  if (choice.gpu < 0) return nullptr;
  if (choice.automatic) log::info("decoding on GPU {}: {}", choice.gpu, choice.name);
  return gpu::cuda_backend(choice.gpu, max_memory, true);
}

std::future<std::shared_ptr<const Backend>> start_backend(const std::string& device, std::size_t max_memory,
                                                          std::uint64_t gops) {
  // The CPU is there already.
  const auto policy = device == "cpu" ? std::launch::deferred : std::launch::async;
  return std::async(policy, [=] {
    if (policy == std::launch::async) trace::name_thread("start the GPU");
    return choose_backend(device, max_memory, gops);
  });
}

std::string device_of_process(const Place& place, const std::string& device) {
  if (device != "auto" && device != "gpu") {
    const std::vector<std::string> named = devices_named(device);
    return named[static_cast<std::size_t>(place.local_rank) % named.size()];
  }
  const std::vector<Gpu> found = gpus();
  if (found.empty()) return device;
  return "gpu:" + std::to_string(found[static_cast<std::size_t>(place.local_rank) % found.size()].number);
}

int threads_of_process(const Place& place, int threads) {
  if (threads > 0) return threads;
  const int mine = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const bool bound = mine < sysconf(_SC_NPROCESSORS_ONLN);
  return bound ? mine : std::max(1, mine / place.local_size);
}

}  // namespace trivelet::cli
