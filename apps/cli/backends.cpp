#include "apps/cli/backends.h"
#include "apps/cli/log.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <thread>
#include <vector>

#include "codec/backend.h"
#include "codec/trace.h"
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

}  // namespace

void add_device_option(Command& app, std::string& device) {
  app.add_option("--device", device,
                 "Where to code: auto = a GPU if there is one and it can, cpu, gpu, gpu:N. Never changes the output")
      .check([](const std::string& s) {
        const bool numbered = s.size() > 4 && s.starts_with("gpu:") &&
                              s.find_first_not_of("0123456789", 4) == std::string::npos && s.size() < 8;
        return s == "auto" || s == "cpu" || s == "gpu" || numbered ? std::string()
                                                                   : "'" + s + "' is not auto, cpu, gpu or gpu:N";
      })
      .type_name("DEVICE")
      .show_default()
      .group("Common");
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
          "--device " + device + ": there are " + std::to_string(found.size()) + " GPUs, numbered from 0");
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
  if (device != "auto" && device != "gpu") return device;
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
