#include "apps/device_option.h"

#include "codec/error.h"
#if defined(TRIVELET_HAVE_CUDA)
#include "gpu/ccsds122.h"
#endif

namespace trivelet::cli {

int gpu_count() {
#if defined(TRIVELET_HAVE_CUDA)
  return gpu::still_device_count();
#else
  return 0;
#endif
}

void add_device_option(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "Where to compute: auto, cpu, gpu, gpu:N")
      ->type_name("DEVICE")
      ->capture_default_str();
}

DeviceChoice choose_device(const std::string& device) {
  DeviceChoice choice;
  if (device == "cpu") return choice;
  if (device == "auto") {
    choice.automatic = true;
    choice.gpu = gpu_count() > 0 ? 0 : -1;
    return choice;
  }
  [[maybe_unused]] int number = 0;  // without CUDA
  if (device != "gpu") {
    const bool numbered = device.starts_with("gpu:") && device.size() > 4 && device.size() <= 7 &&
                          device.find_first_not_of("0123456789", 4) == std::string::npos;
    require(numbered, ErrorKind::kBadArgument, "--device takes auto, cpu, gpu or gpu:N, not '" + device + "'");
    number = std::stoi(device.substr(4));
  }
#if defined(TRIVELET_HAVE_CUDA)
  const int count = gpu_count();
  require(number < count, ErrorKind::kUnsupported,
          count == 0 ? "--device " + device + ": no GPU can be used on this machine; --device cpu computes without"
                     : "--device " + device + ": there are GPUs 0.." + std::to_string(count - 1));
  choice.gpu = number;
#else
  fail(ErrorKind::kUnsupported,
       "--device " + device + ": this build has no GPU support (CUDA was not found); use --device cpu");
#endif
  return choice;
}

}  // namespace trivelet::cli
