// --device: which backend codes. The one place that knows whether the GPU code was built.
#pragma once

#include <optional>
#include <string>

#include "apps/cli.h"
#include "codec/backend.h"

namespace trivelet::cli {

struct DeviceOptions {
  std::string device = "auto";
};
void add_device_option(CLI::App& app, DeviceOptions& options);

/// The backend that --device means; none is the CPU. `auto` takes the first GPU, if there is one, for everything it can
/// do (fast profile) and says so. `gpu` and `gpu:N` without that GPU throw Unsupported. `suits`: what is to be done can
/// be done on a GPU. `max_memory`: of the GPU, in bytes; 0 = all.
std::optional<Backend> choose_backend(const DeviceOptions& options, std::size_t max_memory, bool suits = true);

/// Number of the GPU that --device means, for what runs on a GPU only. Throws Unsupported when there is none.
int choose_gpu(const DeviceOptions& options);

inline const Backend* pointer(const std::optional<Backend>& backend) { return backend ? &*backend : nullptr; }

}  // namespace trivelet::cli
