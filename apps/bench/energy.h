// Energy that processors and a GPU have used, by the system's counters: RAPL through powercap, NVML for the GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trivelet {

/// Joules since the object was made. The counters are of whole packages and of the whole GPU: they count idle power and
/// other programs, too. Use it from one thread; read it at least once a minute, for a package's counter wraps around.
class EnergyMeter {
 public:
  static constexpr const char* kPowercap = "/sys/class/powercap";
  static constexpr const char* kNvml = "libnvidia-ml.so.1";

  /// `gpu`: its number; -1: none. What cannot be read is absent.
  explicit EnergyMeter(int gpu, const std::string& powercap = kPowercap, const std::string& nvml = kNvml);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  bool has_cpu() const { return !packages_.empty(); }
  bool has_gpu() const { return gpu_ != nullptr; }
  /// Of all packages together; 0 if absent.
  double cpu_joules();
  double gpu_joules();

 private:
  struct Package {
    std::string file;
    std::uint64_t range;  ///< microjoules at which the counter starts again
    std::uint64_t last;
  };
  struct Gpu;

  std::vector<Package> packages_;
  double cpu_ = 0;
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace trivelet
