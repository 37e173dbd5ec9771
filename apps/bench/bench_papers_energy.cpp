// The energy section of "trivelet bench papers": CCSDS 122.0 by platform, which the CCSDS paper leaves to future work.

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <thread>

#include "apps/bench/bench_papers.h"
#include "apps/bench/energy.h"
#include "apps/still/still_codec.h"

namespace trivelet::cli {

namespace {

using Seconds = std::chrono::duration<double>;

/// What was counted meanwhile.
struct Used {
  double seconds = 0, cpu = 0, gpu = 0;
};

template <class Body>
Used measure(EnergyMeter& meter, const Body& body) {
  const double cpu = meter.cpu_joules(), gpu = meter.gpu_joules();
  const auto start = std::chrono::steady_clock::now();
  body();
  const double seconds = Seconds(std::chrono::steady_clock::now() - start).count();
  return {seconds, meter.cpu_joules() - cpu, meter.gpu_joules() - gpu};
}

std::string joules(bool known, double value, double mpixel) {
  return known ? fmt::format("{:.4f}", value / mpixel) : "-";
}

}  // namespace

void print_papers_energy(const PapersEnergy& o) {
  EnergyMeter meter(o.device.gpu);
  fmt::print("\nEnergy by platform (future work of the CCSDS paper): CCSDS 122.0, integer, lossless, {}x{}, {} bits\n",
             o.image.width, o.image.height, o.image.bits);
  if (!meter.has_cpu() && !meter.has_gpu()) {
    fmt::print(
        "not measured: no RAPL counter can be read in {}{}\n", EnergyMeter::kPowercap,
        o.device.gpu >= 0 ? fmt::format(", and no energy through {}", EnergyMeter::kNvml) : ", and no GPU is used");
    return;
  }
  fmt::print("joules of all packages{} and of the GPU{}, idle power included\n",
             meter.has_cpu() ? "" : fmt::format(" (no RAPL counter can be read in {})", EnergyMeter::kPowercap),
             meter.has_gpu() ? "" : " (not known)");
  fmt::print("{:<12} {:>12} {:>10} {:>10} {:>16} {:>16}\n", "", "Mpixel/s", "CPU, W", "GPU, W", "CPU, J/Mpixel",
             "GPU, J/Mpixel");
  const auto watts = [](bool known, double value, const Used& u) {
    return known ? fmt::format("{:.1f}", value / u.seconds) : "-";
  };
  const Used idle = measure(meter, [&] { std::this_thread::sleep_for(Seconds(o.seconds)); });
  fmt::print("{:<12} {:>12} {:>10} {:>10} {:>16} {:>16}\n", "idle", "-", watts(meter.has_cpu(), idle.cpu, idle),
             watts(meter.has_gpu(), idle.gpu, idle), "-", "-");
  ccsds122::Params params;
  params.bits = o.image.bits;
  params.simd = o.simd;
  const auto run = [&](const std::string& name, const DeviceChoice& device, int threads) {
    Ccsds122Codec codec(device, threads, 1);
    (void)codec.encode(o.image.view(), params);
    double mpixel = 0;
    const Used used = measure(meter, [&] {
      for (const auto start = std::chrono::steady_clock::now();
           Seconds(std::chrono::steady_clock::now() - start).count() < o.seconds;
           mpixel += 1e-6 * static_cast<double>(o.image.width) * o.image.height)
        (void)codec.encode(o.image.view(), params);
    });
    fmt::print("{:<12} {:>12.1f} {:>10} {:>10} {:>16} {:>16}\n", name, mpixel / used.seconds,
               watts(meter.has_cpu(), used.cpu, used), watts(meter.has_gpu(), used.gpu, used),
               joules(meter.has_cpu(), used.cpu, mpixel), joules(meter.has_gpu(), used.gpu, mpixel));
  };
  run("1 thread", {}, 1);
  if (o.threads > 1) run(fmt::format("{} threads", o.threads), {}, o.threads);
  if (o.device.gpu >= 0) run("GPU", {false, o.device.gpu, o.device.name}, 1);
}

}  // namespace trivelet::cli
