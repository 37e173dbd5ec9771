#include "apps/backends.h"

#include <spdlog/spdlog.h>

#include <charconv>
#include <vector>

#if defined(TRIVELET_HAVE_CUDA)
#include "gpu/cuda_backend.h"
#endif

namespace trivelet::cli {

namespace {

struct Gpu {
  int number;
  std::string name;
};

#if defined(TRIVELET_HAVE_CUDA)
std::vector<Gpu> gpus() {
  std::vector<Gpu> found;
  for (const gpu::DeviceInfo& d : gpu::devices()) found.push_back({d.number, d.name});
  return found;
}
Backend backend_of(int number, std::size_t max_memory) { return gpu::cuda_backend(number, max_memory); }
constexpr const char* kNone = "there is no NVIDIA GPU with a driver here";
#else
std::vector<Gpu> gpus() { return {}; }
Backend backend_of(int, std::size_t) { return cpu_backend(); }
constexpr const char* kNone = "this program was built without CUDA";
#endif

}  // namespace

void add_device_option(CLI::App& app, DeviceOptions& options) {
  app.add_option("--device", options.device,
                 "Where to code: auto = a GPU if there is one and it can, cpu, gpu, gpu:N. Never changes the output")
      ->check(CLI::Validator(
          [](const std::string& s) {
            const bool numbered = s.size() > 4 && s.starts_with("gpu:") &&
                                  s.find_first_not_of("0123456789", 4) == std::string::npos && s.size() < 8;
            return s == "auto" || s == "cpu" || s == "gpu" || numbered ? std::string()
                                                                       : "'" + s + "' is not auto, cpu, gpu or gpu:N";
          },
          ""))
      ->type_name("DEVICE")
      ->capture_default_str()
      ->group("Common");
}

int choose_gpu(const DeviceOptions& options) {
  const std::vector<Gpu> found = gpus();
  require(!found.empty(), ErrorKind::kUnsupported, "--device " + options.device + ": " + kNone);
  if (!options.device.starts_with("gpu:")) return found.front().number;
  int wanted = 0;
  std::from_chars(options.device.data() + 4, options.device.data() + options.device.size(), wanted);
  for (const Gpu& g : found)
    if (g.number == wanted) return wanted;
  fail(ErrorKind::kUnsupported,
       "--device " + options.device + ": there are " + std::to_string(found.size()) + " GPUs, numbered from 0");
}

std::optional<Backend> choose_backend(const DeviceOptions& options, std::size_t max_memory, bool suits) {
  if (options.device == "cpu") return std::nullopt;
  if (options.device != "auto") return backend_of(choose_gpu(options), max_memory);
  const std::vector<Gpu> found = gpus();
  if (!suits || found.empty()) return std::nullopt;
  const Gpu& chosen = found.front();
  const Backend on_gpu = backend_of(chosen.number, max_memory);
  const auto says = [chosen](bool fast) {
    if (fast) spdlog::info("coding on GPU {}: {}", chosen.number, chosen.name);
    return fast;
  };
  return Backend{"auto",
                 [on_gpu, says](const StreamHeader& h, const BackendOptions& o) {
                   return (says(h.profile == Profile::kFast) ? on_gpu : cpu_backend()).make_encoder(h, o);
                 },
                 [on_gpu, says](const StreamHeader& h, const Reduction& r, const BackendOptions& o) {
                   return (says(h.profile == Profile::kFast) ? on_gpu : cpu_backend()).make_decoder(h, r, o);
                 }};
}

}  // namespace trivelet::cli
