// A CCSDS 122.0 codec wherever --device says, and the loop over many pictures.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/backends.h"
#include "codec/still/ccsds122/ccsds122.h"

namespace trivelet::gpu {
class Ccsds122Codec;
}

namespace trivelet::cli {

/// One picture at a time, from one thread. With an automatic choice, work that is done before a GPU is set up (about
/// 0.4 s), small pictures and streams of few segments stay on the CPU, and so do those for which the device has too
/// little memory.
class Ccsds122Codec {
 public:
  /// `threads`: of the CPU, 0 = all; `pictures`: approximate number of pictures.
  Ccsds122Codec(const DeviceChoice& choice, int threads, std::size_t pictures);
  ~Ccsds122Codec();

  ccsds122::Encoded encode(const VolumeView& image, const ccsds122::Params& params);
  ccsds122::Decoded decode(std::span<const std::byte> stream, const ccsds122::DecodeParams& params);

 private:
  gpu::Ccsds122Codec& on_gpu();

  DeviceChoice choice_;
  std::size_t pictures_;
  ThreadPool pool_;
  std::unique_ptr<gpu::Ccsds122Codec> gpu_;  ///< made when it is first needed: that takes a while
};

struct FileJob {
  std::string input, output;
};
/// IN OUT, or IN... FOLDER: then every output is FOLDER/name of the input + `extension`. Throws BadArgument.
std::vector<FileJob> make_file_jobs(const std::vector<std::string>& files, const std::string& extension);

/// Does the jobs in order; on a GPU three at a time, so that files, transfers and kernels of different pictures
/// overlap. `work` may be called from several threads. The first error stops the rest and is thrown.
void run_file_jobs(const std::vector<FileJob>& jobs, const DeviceChoice& choice, int threads,
                   const std::function<void(const FileJob&, Ccsds122Codec&)>& work);

}  // namespace trivelet::cli
