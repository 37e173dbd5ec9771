// Counters of energy. RAPL: powercap.rst of Linux. NVML: nvmlDeviceGetTotalEnergyConsumption, in millijoules, from
// Volta on; the library is loaded when it is needed.

#include "apps/bench/energy.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace trivelet {

namespace {

std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

/// "intel-rapl:0" is a package, "intel-rapl:0:1" a part of one. AMD's packages have the same names.
bool is_package(const std::string& name) {
  return name.starts_with("intel-rapl:") && std::count(name.begin(), name.end(), ':') == 1;
}

}  // namespace

/// The functions used of NVML, and a device.
struct EnergyMeter::Gpu {
  void* library = nullptr;
  int (*shut_down)() = nullptr;
  int (*total_energy)(void* device, unsigned long long* millijoules) = nullptr;
  void* device = nullptr;
  unsigned long long first = 0;

  Gpu(const std::string& name, int number) : library(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library) return;
    int (*start)() = nullptr;
    int (*handle)(unsigned, void**) = nullptr;
    const bool complete = find(start, "nvmlInit_v2") && find(shut_down, "nvmlShutdown") &&
                          find(handle, "nvmlDeviceGetHandleByIndex_v2") &&
                          find(total_energy, "nvmlDeviceGetTotalEnergyConsumption");
    if (!complete || start() != 0) {
      shut_down = nullptr;
      return;
    }
    if (handle(static_cast<unsigned>(number), &device) != 0 || total_energy(device, &first) != 0) device = nullptr;
  }
  ~Gpu() {
    if (shut_down) shut_down();
    if (library) dlclose(library);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  template <class Function>
  bool find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    return function != nullptr;
  }
};

EnergyMeter::EnergyMeter(int gpu, const std::string& powercap, const std::string& nvml) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(powercap, none)) {
    if (!is_package(entry.path().filename().string())) continue;
    const std::string folder = entry.path().string();
    const auto now = number_in(folder + "/energy_uj"), range = number_in(folder + "/max_energy_range_uj");
    if (now && range) packages_.push_back({folder + "/energy_uj", *range, *now});
  }
  if (gpu < 0) return;
  gpu_ = std::make_unique<Gpu>(nvml, gpu);
  if (!gpu_->device) gpu_.reset();
}

EnergyMeter::~EnergyMeter() = default;

double EnergyMeter::cpu_joules() {
  for (Package& p : packages_) {
    const std::uint64_t now = number_in(p.file).value_or(p.last);
    cpu_ += 1e-6 * static_cast<double>(now >= p.last ? now - p.last : now + p.range - p.last);
    p.last = now;
  }
  return cpu_;
}

double EnergyMeter::gpu_joules() {
  unsigned long long now = 0;
  if (!gpu_ || gpu_->total_energy(gpu_->device, &now) != 0) return 0;
  return 1e-3 * static_cast<double>(now - gpu_->first);
}

}  // namespace trivelet
