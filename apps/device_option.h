// --device: where a command computes. The only place of the program that knows whether CUDA was compiled in.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace trivelet::cli {

/// Adds --device auto|cpu|gpu|gpu:N.
void add_device_option(CLI::App& app, std::string& device);

/// What the option asks for. Throws BadArgument for anything but auto, cpu, gpu, gpu:N.
struct DeviceChoice {
  bool automatic = false;
  int gpu = -1;  ///< its number; -1: the CPU
};
/// Looks at the machine: "auto" takes GPU 0 when there is one. Throws Unsupported (exit code 5) when a GPU is asked for
/// that is not there, or none can be used by this build.
DeviceChoice choose_device(const std::string& device);

/// GPUs that can be used; 0 without CUDA.
int gpu_count();

}  // namespace trivelet::cli
