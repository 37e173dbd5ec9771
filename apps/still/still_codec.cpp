// Chooses CPU or GPU for a still picture, and forms the names of outputs.

#include "apps/still/still_codec.h"
#include "apps/cli/log.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "gpu/still/ccsds122.h"
#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

constexpr std::uint64_t kSmallPicture = 1 << 18;  // samples: not worth the way over the bus
constexpr std::uint64_t kSmallWork = 1 << 27;     // samples of all pictures: done before a GPU is set up
constexpr std::size_t kSmallStream = 1 << 16;     // bytes
constexpr std::size_t kSmallStreams = 1 << 25;    // bytes of all streams
constexpr std::uint32_t kLargeSegment = 2048;     // blocks: too few segments to fill a GPU
constexpr int kGpuWorkers = 3;

bool worth_decoding_on_gpu(std::span<const std::byte> stream, std::size_t pictures) {
  if (stream.size() < kSmallStream || stream.size() * pictures < kSmallStreams) return false;
  try {
    return ccsds122::read_header(stream, {}).blocks <= kLargeSegment;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Ccsds122Codec::Ccsds122Codec(const DeviceChoice& choice, int threads, std::size_t pictures)
    : choice_(choice), pictures_(pictures), pool_(threads) {}
Ccsds122Codec::~Ccsds122Codec() = default;

gpu::Ccsds122Codec& Ccsds122Codec::on_gpu() {
  if (!gpu_) gpu_ = std::make_unique<gpu::Ccsds122Codec>(choice_.gpu);
  return *gpu_;
}

ccsds122::Encoded Ccsds122Codec::encode(const VolumeView& image, const ccsds122::Params& params) {
  const std::uint64_t samples = image.shape.samples();
  if (choice_.gpu >= 0 && !(choice_.automatic && (samples < kSmallPicture || samples * pictures_ < kSmallWork))) {
    try {
      return on_gpu().encode(image, params, pool_);
    } catch (const Error& e) {
      if (!choice_.automatic || e.kind() != ErrorKind::kUnsupported) throw;
      log::info("on the CPU, because on the GPU: {}", e.what());
    }
  }
  return ccsds122::encode(image, params, pool_);
}

ccsds122::Decoded Ccsds122Codec::decode(std::span<const std::byte> stream, const ccsds122::DecodeParams& params) {
  if (choice_.gpu >= 0 && !(choice_.automatic && !worth_decoding_on_gpu(stream, pictures_))) {
    try {
      return on_gpu().decode(stream, params, pool_);
    } catch (const Error& e) {
      if (!choice_.automatic || e.kind() != ErrorKind::kUnsupported) throw;
      log::info("on the CPU, because on the GPU: {}", e.what());
    }
  }
  return ccsds122::decode(stream, params, pool_);
}

std::vector<FileJob> make_file_jobs(const std::vector<std::string>& files, const std::string& extension) {
  namespace fs = std::filesystem;
  require(files.size() >= 2, ErrorKind::kBadArgument, "an input and an output are needed");
  std::error_code ignored;
  const bool folder = fs::is_directory(files.back(), ignored);
  if (files.size() == 2 && !folder) return {{files[0], files[1]}};
  require(folder, ErrorKind::kBadArgument,
          "several pictures need a folder as output; '" + files.back() + "' is not a folder");
  std::vector<FileJob> jobs;
  for (std::size_t i = 0; i + 1 < files.size(); ++i) {
    require(files[i] != "-", ErrorKind::kBadArgument, "standard input has no name for a file in a folder");
    jobs.push_back({files[i], (fs::path(files.back()) / fs::path(files[i]).stem()).string() + extension});
    for (std::size_t k = 0; k < i; ++k)
      require(jobs[k].output != jobs[i].output, ErrorKind::kBadArgument,
              "'" + jobs[k].input + "' and '" + jobs[i].input + "' would both become '" + jobs[i].output + "'");
  }
  return jobs;
}

void run_file_jobs(const std::vector<FileJob>& jobs, const DeviceChoice& choice, int threads,
                   const std::function<void(const FileJob&, Ccsds122Codec&)>& work) {
  const int workers = std::min<int>(choice.gpu >= 0 ? kGpuWorkers : 1, static_cast<int>(jobs.size()));
  std::atomic<std::size_t> next = 0;
  std::exception_ptr error;
  std::mutex error_mutex;
  const auto run = [&] {
    try {
      Ccsds122Codec codec(choice, threads, jobs.size());
      for (std::size_t i = next++; i < jobs.size(); i = next++) work(jobs[i], codec);
    } catch (...) {
      next = jobs.size();
      const std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < workers; ++i) others.emplace_back(run);
  run();
  for (std::thread& t : others) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace trivelet::cli
