// --device: what computes.
#pragma once

#include <memory>
#include <string>

#include "apps/cli/cli.h"
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
/// bytes; 0 = all.
std::shared_ptr<const Backend> choose_backend(const std::string& device, std::size_t max_memory);

}  // namespace trivelet::cli
