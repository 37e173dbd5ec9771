// Batches of volumes to encode: tvl_encode_volumes.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <span>
#include <thread>

#include "capi/device_memory.h"
#include "capi/encoder.h"
#include "capi/volume_request.h"

namespace trivelet::capi {

namespace {

// As many as decode (volume.cpp): some are written by the host while others are coded.
constexpr int kEncodedByGpu = 4, kEncodedInGpu = 16;

tvl_volume_encode_job default_encode_job() {
  tvl_volume_encode_job j{};
  j.struct_size = sizeof j;
  return j;
}

/// What all jobs of a batch share.
struct EncodeBatch {
  tvl_encoder& encoder;
  tvl_batch_params params;
  std::shared_ptr<const Backend> backend;  ///< for voxels that the host reads; null: the CPU
  gpu::VolumeEncodeBatch* in_gpu;          ///< for voxels on the GPU; null: there is none
  int threads_each;

  bool streams_there() const { return params.streams_there != 0 && encoder.memory != TVL_CPU; }
};

/// Null where voxels are elsewhere, and with threads of the caller's own.
gpu::VolumeEncodeBatch* encode_batch_in_gpu(tvl_encoder& e, const tvl_batch_params& p, int at_once) {
  if (p.device == TVL_CPU || e.memory != p.device || e.runner) return nullptr;
  gpu::wait_for(e.memory, e.cuda_stream);  // whatever was done with that memory so far
  const std::pair<int, std::uint64_t> wanted(p.device, p.device_memory / static_cast<std::uint64_t>(at_once));
  if (!e.batch || e.batch_for != wanted) {
    e.batch.reset();
    e.batch = std::make_unique<gpu::VolumeEncodeBatch>(wanted.first, static_cast<std::size_t>(wanted.second));
    e.batch_for = wanted;
  }
  return e.batch.get();
}

bool has_no_gaps(const VolumeDescription& volume, const tvl_voxels& v) {
  const auto row = static_cast<std::int64_t>(volume.slice_bytes()) / volume.height;
  const auto slice = static_cast<std::int64_t>(volume.slice_bytes());
  const auto whole = slice * static_cast<std::int64_t>(volume.slices);
  return (v.row_stride == 0 || v.row_stride == row) && (v.slice_stride == 0 || v.slice_stride == slice) &&
         (v.volume_stride == 0 || v.volume_stride == whole || volume.volumes == 1);
}

/// Encodes a job into `output`, on the GPU if it can.
void encode_to(const EncodeBatch& batch, const tvl_volume_encode_job& job, Output& output) {
  const Handle& h = batch.encoder;
  h.check_cancelled();
  const tvl_volume_params given = read_struct(job.params, default_volume_params(), "tvl_volume_params");
  const VolumeDescription volume = to_description(job.volume);
  (void)not_null(job.voxels.data, "voxels.data");
  if (batch.in_gpu && has_no_gaps(volume, job.voxels)) {
    VolumeEncoderParams params = volume_encoder_params(given);
    params.verify = given.verify != 0;
    params.threads = batch.threads_each;
    params.workers.check = h.workers().check;
    params.progress = [&h](std::uint64_t) { h.check_cancelled(); };
    require(given.envelope || given.envelope_bytes == 0, ErrorKind::kBadArgument,
            "an envelope of " + std::to_string(given.envelope_bytes) + " bytes at NULL");
    const auto* envelope = static_cast<const std::uint8_t*>(given.envelope);
    const std::unique_ptr<ReadBack> back = output.read_back();
    VolumeResult result;
    if (batch.in_gpu->encode(volume, job.voxels.data, params, {envelope, envelope + given.envelope_bytes}, output,
                             back.get(), result))
      return output.commit();
  }
  encode_into(h, output, volume, given, {&job.voxels, nullptr, nullptr}, batch.threads_each, batch.backend.get());
}

/// The job's stream in memory of the host, and then on the GPU. `staging` is kept for the next one.
void encode_and_copy(const EncodeBatch& batch, tvl_volume_encode_job& job, Staging& staging) {
  const std::uint64_t voxel_bytes = to_description(job.volume).bytes();
  // Without loss a stream is hardly larger than its voxels, unless they are noise of a few.
  const std::uint64_t usual = voxel_bytes + voxel_bytes / 8 + 65536;
  std::uint64_t room = std::min(job.capacity, usual);
  for (;; room = job.capacity) {
    std::byte* const here = staging.of(static_cast<std::size_t>(std::max<std::uint64_t>(room, 1)));
    const std::unique_ptr<Output> output = open_output(batch.encoder, here, room);
    try {
      encode_to(batch, job, *output);
    } catch (const BufferTooSmall&) {
      job.size = output->size();
      if (room == job.capacity) throw;
      continue;
    }
    job.size = output->size();
    const auto pitch = static_cast<std::ptrdiff_t>(job.size);
    const CallerMemory memory(batch.encoder);
    memory.copy_out(here, pitch, not_null(static_cast<std::byte*>(job.stream), "stream"), pitch,
                    static_cast<std::size_t>(job.size), 1);
    return memory.wait();
  }
}

void encode_job(const EncodeBatch& batch, tvl_volume_encode_job& job, Staging& staging) {
  job.size = 0;
  if (batch.streams_there()) return encode_and_copy(batch, job, staging);
  const std::unique_ptr<Output> output = open_output(batch.encoder, job.stream, job.capacity);
  try {
    encode_to(batch, job, *output);
  } catch (const BufferTooSmall&) {
    job.size = output->size();
    throw;
  }
  job.size = output->size();
}

void encode_jobs(tvl_encoder& e, std::span<tvl_volume_encode_job> jobs, const tvl_batch_params& p) {
  require(p.threads >= 0, ErrorKind::kBadArgument, std::to_string(p.threads) + " threads");
  const int cores = p.threads > 0 ? p.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const bool stays = p.device != TVL_CPU && e.memory == p.device;
  const int most = p.device == TVL_CPU ? cores : std::min(cores, stays ? kEncodedInGpu : kEncodedByGpu);
  const int at_once = static_cast<int>(std::min<std::size_t>(jobs.size(), static_cast<std::size_t>(most)));
  const std::uint64_t memory_each = p.device_memory / static_cast<std::uint64_t>(at_once);
  const EncodeBatch batch{e, p, backend_for(p.device, memory_each), encode_batch_in_gpu(e, p, at_once),
                          std::max(1, cores / at_once)};
  std::atomic<std::size_t> next{0};
  run_batch(e.workers(), at_once, [&](int) {
    TakenStaging staging(e.stagings);
    for (std::size_t i = next++; i < jobs.size(); i = next++)
      jobs[i].result = to_result(jobs[i].error, [&] { encode_job(batch, jobs[i], *staging); });
  });
  // What a GPU had no memory for beside the others.
  TakenStaging staging(e.stagings);
  const EncodeBatch alone{e, p, p.device == TVL_CPU ? nullptr : backend_for(p.device, p.device_memory), nullptr, cores};
  for (tvl_volume_encode_job& job : jobs) {
    if (job.result != TVL_UNSUPPORTED || p.device == TVL_CPU || at_once == 1) continue;
    e.batch.reset();
    job.result = to_result(job.error, [&] { encode_job(alone, job, *staging); });
  }
  e.check_cancelled();
}

}  // namespace

}  // namespace trivelet::capi

using namespace trivelet;
using namespace trivelet::capi;

extern "C" {

void tvl_volume_encode_job_init(tvl_volume_encode_job* job, uint64_t struct_size) {
  init_struct(job, struct_size, default_encode_job());
}

tvl_result tvl_encode_volumes(tvl_encoder* encoder, tvl_volume_encode_job* jobs, uint64_t count,
                              const tvl_batch_params* params) {
  tvl_result first = TVL_OK;
  const tvl_result result = call(encoder, [&] {
    const tvl_batch_params p = read_struct(params, default_batch(), "tvl_batch_params");
    encoder->reset();
    if (count == 0) return;
    (void)not_null(jobs, "jobs");
    const std::span all(jobs, static_cast<std::size_t>(count));
    for (const tvl_volume_encode_job& job : all)
      require(job.struct_size == sizeof job, ErrorKind::kUnsupported,
              "jobs of " + std::to_string(job.struct_size) + " bytes lie in a row; this library's have " +
                  std::to_string(sizeof job));
    encode_jobs(*encoder, all, p);
    for (std::size_t i = 0; i < all.size() && first == TVL_OK; ++i) {
      first = all[i].result;
      if (first != TVL_OK) std::snprintf(encoder->error, sizeof encoder->error, "job %zu: %s", i, all[i].error);
    }
  });
  return result == TVL_OK ? first : result;
}

}  // extern "C"
