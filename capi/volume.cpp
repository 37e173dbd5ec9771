// Volumes of trivelet.h, in the handles of video.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "capi/decoder.h"
#include "capi/device_memory.h"
#include "capi/encoder.h"
#include "capi/request.h"
#include "capi/volume_request.h"

namespace trivelet::capi {

namespace {

tvl_volume default_volume() {
  tvl_volume v{};
  v.struct_size = sizeof v;
  v.channels = 1;
  v.slices = v.volumes = 1;
  return v;
}

tvl_volume to_volume(const VolumeDescription& d) {
  tvl_volume v = default_volume();
  v.type = static_cast<std::int32_t>(d.voxel.type);
  v.big_endian = d.voxel.big_endian;
  v.channels = d.voxel.channels;
  v.width = d.width;
  v.height = d.height;
  v.slices = d.slices;
  v.volumes = d.volumes;
  return v;
}

// Slices of the caller's memory, or of the function that gives them.
class CallerSlices final : public SliceSource {
 public:
  CallerSlices(const Handle& handle, const VolumeDescription& description, const tvl_voxels* voxels,
               tvl_slice_reader reader, void* user, const tvl_volume_params& params)
      : handle_(handle), description_(description), reader_(reader), user_(user), params_(params) {
    require((voxels != nullptr) != (reader != nullptr), ErrorKind::kBadArgument,
            "voxels come from memory or from a function, one of the two");
    require(params.envelope || params.envelope_bytes == 0, ErrorKind::kBadArgument,
            "an envelope of " + std::to_string(params.envelope_bytes) + " bytes at NULL");
    if (!voxels) return;
    voxels_ = *voxels;
    (void)not_null(voxels->data, "voxels->data");
    if (voxels_.row_stride == 0) voxels_.row_stride = row_bytes();
    if (voxels_.slice_stride == 0) voxels_.slice_stride = voxels_.row_stride * description.height;
    if (voxels_.volume_stride == 0)
      voxels_.volume_stride = voxels_.slice_stride * static_cast<std::int64_t>(description.slices);
  }
  const VolumeDescription& description() const override { return description_; }
  void read(std::byte* slice) override {
    handle_.check_cancelled();
    const std::uint64_t n = next_++;
    if (reader_) {
      const int result = reader_(user_, n, slice);
      require(result == 0, ErrorKind::kIo,
              "the caller's function returned " + std::to_string(result) + " for slice " + std::to_string(n));
      return;
    }
    const auto* from = static_cast<const std::byte*>(voxels_.data) +
                       static_cast<std::int64_t>(n / description_.slices) * voxels_.volume_stride +
                       static_cast<std::int64_t>(n % description_.slices) * voxels_.slice_stride;
    if (const CallerMemory memory(handle_); memory.on_device()) {
      memory.copy_in(from, static_cast<std::ptrdiff_t>(voxels_.row_stride), slice, row_bytes(),
                     static_cast<std::size_t>(row_bytes()), static_cast<std::size_t>(description_.height));
      return memory.wait();
    }
    for (int y = 0; y < description_.height; ++y)
      std::memcpy(slice + y * row_bytes(), from + y * voxels_.row_stride, static_cast<std::size_t>(row_bytes()));
  }
  void rewind() override { next_ = 0; }
  std::vector<std::uint8_t> envelope() override {
    const auto* bytes = static_cast<const std::uint8_t*>(params_.envelope);
    return {bytes, bytes + params_.envelope_bytes};
  }

 private:
  std::ptrdiff_t row_bytes() const {
    return static_cast<std::ptrdiff_t>(description_.width) * static_cast<std::ptrdiff_t>(description_.voxel.bytes());
  }
  const Handle& handle_;
  VolumeDescription description_;
  tvl_voxels voxels_{};
  tvl_slice_reader reader_;
  void* user_;
  const tvl_volume_params& params_;
  std::uint64_t next_ = 0;
};

VolumeDecoderParams to_params(const tvl_volume_decode_params& p) {
  VolumeDecoderParams out;
  if (p.width != 0 || p.height != 0 || p.depth != 0 || p.x != 0 || p.y != 0 || p.z != 0)
    out.region = VoxelRegion{p.x, p.y, p.z, p.width, p.height, p.depth};
  out.reduce = p.reduce;
  out.max_layers = p.max_layers;
  out.max_planes = p.max_planes;
  out.threads = p.threads;
  out.limits.memory = p.max_memory;
  out.limits.samples = p.max_samples;
  out.limits.frames = p.max_frames;
  out.limits.samples_per_byte = p.max_samples_per_byte;
  out.first_volume = p.first_volume;
  out.volumes = p.volumes;
  return out;
}

// Slices on their way to a GPU: some at a time, from memory that copies overlap with.
constexpr std::size_t kStagedBytes = std::size_t{32} << 20;

tvl_volume_decode_params default_volume_decode_params() {
  const VolumeDecoderParams d;
  tvl_volume_decode_params p{};
  p.struct_size = sizeof p;
  p.max_memory = d.limits.memory;
  p.max_samples = d.limits.samples;
  p.max_frames = d.limits.frames;
  p.max_samples_per_byte = d.limits.samples_per_byte;
  p.device = TVL_CPU;
  return p;
}

void open_volume(tvl_decoder& d, std::unique_ptr<ByteSource> source, const tvl_volume_decode_params* given) {
  require(source->seekable(), ErrorKind::kBadArgument, "a volume's stream must be able to seek, which a pipe cannot");
  const tvl_volume_decode_params p = read_struct(given, default_volume_decode_params(), "tvl_volume_decode_params");
  d.backend = backend_for(p.device, p.device_memory);
  d.source = std::move(source);
  VolumeDecoderParams params = to_params(p);
  params.workers = d.workers();
  d.volume = std::make_unique<VolumeDecoder>(*d.source, params, d.backend.get());
  if (const std::string& lost = d.volume->stream().index_damage; !lost.empty()) d.say(1, lost);
}

void check_volume_open(const tvl_decoder& d) {
  require(d.volume != nullptr, ErrorKind::kBadArgument, "no stream is open by tvl_decoder_open_volume");
}

// As read_slices, to memory of a GPU.
void read_slices_to_gpu(const Handle& h, VolumeDecoder& volume, const tvl_voxels& to, std::uint64_t capacity,
                        std::uint64_t& count, Staging& staging) {
  const CallerMemory memory(h);
  const VolumeDescription& v = volume.output();
  const std::size_t slice = v.slice_bytes();
  const std::size_t row = slice / static_cast<std::size_t>(v.height);
  const std::uint64_t at_once = std::min(capacity, std::max<std::uint64_t>(1, kStagedBytes / slice));
  std::byte* const staged = staging.of(slice * static_cast<std::size_t>(at_once));
  for (bool more = true; more && count < capacity;) {
    std::uint64_t n = 0;
    const std::uint64_t wanted = std::min(at_once, capacity - count);
    while (n < wanted && (more = volume.read(staged + n * slice))) {
      h.check_cancelled();
      ++n;
    }
    auto* out = static_cast<std::byte*>(to.data) + static_cast<std::int64_t>(count) * to.slice_stride;
    const auto pitch = static_cast<std::ptrdiff_t>(row);
    if (to.slice_stride == to.row_stride * v.height) {
      memory.copy_out(staged, pitch, out, to.row_stride, row, static_cast<std::size_t>(n) * v.height);
    } else {
      for (std::uint64_t i = 0; i < n; ++i, out += to.slice_stride)
        memory.copy_out(staged + i * slice, pitch, out, to.row_stride, row, static_cast<std::size_t>(v.height));
    }
    memory.wait();
    count += n;
  }
}

void read_slices(const Handle& d, VolumeDecoder& volume, const tvl_voxels& given, std::uint64_t capacity,
                 std::uint64_t& count, Staging& staging) {
  const VolumeDescription& v = volume.output();
  const auto row = static_cast<std::ptrdiff_t>(v.slice_bytes() / static_cast<std::size_t>(v.height));
  tvl_voxels to = given;
  if (to.row_stride == 0) to.row_stride = row;
  if (to.slice_stride == 0) to.slice_stride = to.row_stride * v.height;
  if (d.memory != TVL_CPU) return read_slices_to_gpu(d, volume, to, capacity, count, staging);
  const bool gaps = to.row_stride != row;
  std::vector<std::byte> slice(gaps ? v.slice_bytes() : 0);
  while (count < capacity) {
    d.check_cancelled();
    auto* out = static_cast<std::byte*>(to.data) + static_cast<std::int64_t>(count) * to.slice_stride;
    if (!volume.read(gaps ? slice.data() : out)) return;
    for (int y = 0; gaps && y < v.height; ++y)
      std::memcpy(out + y * to.row_stride, slice.data() + y * row, static_cast<std::size_t>(row));
    ++count;
  }
}

// What a thread of a batch keeps from job to job.
class JobMemory {
 public:
  JobMemory(tvl_decoder& d, const tvl_batch_params& p)
      : memory_(d), streams_there_(p.streams_there != 0), voxels_(d.stagings), streams_(d.stagings) {}
  Staging& voxels() { return *voxels_; }
  /// The job's stream in memory of the host.
  const void* stream(const tvl_volume_job& job) {
    const void* const given = not_null(job.stream, "stream");
    if (!streams_there_ || !memory_.on_device() || job.size == 0) return given;
    const auto size = static_cast<std::size_t>(job.size);
    const auto pitch = static_cast<std::ptrdiff_t>(size);
    std::byte* const here = streams_->of(size);
    memory_.copy_in(given, pitch, here, pitch, size, 1);
    memory_.wait();
    return here;
  }

 private:
  CallerMemory memory_;
  bool streams_there_;
  TakenStaging voxels_, streams_;
};

// One of a batch, by one of several threads.
void decode_job(const Handle& h, tvl_volume_job& job, int threads, const Backend* backend, JobMemory& memory) {
  h.check_cancelled();
  MemorySource source(memory.stream(job), static_cast<std::size_t>(job.size));
  VolumeDecoderParams params = volume_decoder_params(job.params);
  params.threads = threads;
  params.workers = h.workers();
  VolumeDecoder volume(source, params, backend);
  const VolumeDescription& output = volume.output();
  job.needed = output.bytes();
  if (job.needed > job.capacity) throw BufferTooSmall("bytes", job.capacity, job.needed);
  std::uint64_t count = 0;
  read_slices(h, volume, {not_null(job.voxels, "voxels"), 0, 0, 0}, output.all_slices(), count, memory.voxels());
  require(count == output.all_slices(), ErrorKind::kBadStream,
          "the stream ends after " + std::to_string(count) + " of " + std::to_string(output.all_slices()) + " slices");
}

tvl_volume_job default_job() {
  tvl_volume_job j{};
  j.struct_size = sizeof j;
  return j;
}

// On a GPU so many streams are in flight: some are read by the host, and mapped if their voxels go there, while others
// are decoded.
constexpr int kStreamsOfGpu = 4, kStreamsInGpu = 16;

// Where streams become voxels in memory of the GPU that decodes them; null elsewhere, and with threads of the caller's
// own.
gpu::VolumeBatch* batch_in_gpu(tvl_decoder& d, const tvl_batch_params& p, int at_once) {
  if (p.device == TVL_CPU || d.memory != p.device || d.runner) return nullptr;
  gpu::wait_for(d.memory, d.cuda_stream);  // whatever was done with that memory so far
  const std::pair<int, std::uint64_t> wanted(p.device, p.device_memory / static_cast<std::uint64_t>(at_once));
  if (!d.batch || d.batch_for != wanted) {
    d.batch.reset();
    d.batch = std::make_unique<gpu::VolumeBatch>(wanted.first, static_cast<std::size_t>(wanted.second));
    d.batch_for = wanted;
  }
  return d.batch.get();
}

// One of a batch whose voxels stay on the GPU: how many bytes; 0: decode_job is to do it.
std::uint64_t decode_on_gpu(gpu::VolumeBatch& batch, const Handle& h, std::size_t number, tvl_volume_job& job,
                            int threads, JobMemory& memory) {
  h.check_cancelled();
  if (!job.voxels) return 0;
  MemorySource source(memory.stream(job), static_cast<std::size_t>(job.size));
  VolumeDecoderParams params = volume_decoder_params(job.params);
  params.threads = threads;
  params.workers = h.workers();
  return batch.decode(number, source, params, job.voxels, static_cast<std::size_t>(job.capacity));
}

// What decodes where voxels go through the host, with decoders for one stream after the other; null: the CPU.
std::shared_ptr<const Backend> backend_of_batch(tvl_decoder& d, const tvl_batch_params& p, int at_once) {
  if (p.device == TVL_CPU) return nullptr;
  const std::pair<int, std::uint64_t> wanted(p.device, p.device_memory / static_cast<std::uint64_t>(at_once));
  if (!d.batch_backend || d.batch_backend_for != wanted) {
    d.batch_backend.reset();
    d.batch_backend = keep_decoders(backend_for(wanted.first, wanted.second));
    d.batch_backend_for = wanted;
  }
  return d.batch_backend;
}

// What a GPU had no memory for beside the others and what is kept, one after the other, with all of it.
void decode_alone(tvl_decoder& d, std::span<tvl_volume_job> jobs, const tvl_batch_params& p, int threads) {
  std::shared_ptr<const Backend> backend;
  JobMemory memory(d, p);
  for (tvl_volume_job& job : jobs) {
    if (job.result != TVL_UNSUPPORTED) continue;
    if (!backend) {
      d.batch.reset();
      d.batch_backend.reset();
      backend = backend_for(p.device, p.device_memory);
    }
    job.result = to_result(job.error, [&] { decode_job(d, job, threads, backend.get(), memory); });
  }
}

void decode_jobs(tvl_decoder& d, std::span<tvl_volume_job> jobs, const tvl_batch_params& p) {
  require(p.threads >= 0, ErrorKind::kBadArgument, std::to_string(p.threads) + " threads");
  const int cores = p.threads > 0 ? p.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const bool stays = p.device != TVL_CPU && d.memory == p.device;
  const int most = p.device == TVL_CPU ? cores : std::min(cores, stays ? kStreamsInGpu : kStreamsOfGpu);
  const int at_once = static_cast<int>(std::min<std::size_t>(jobs.size(), static_cast<std::size_t>(most)));
  std::shared_ptr<const Backend> backend = backend_of_batch(d, p, at_once);
  gpu::VolumeBatch* const batch = batch_in_gpu(d, p, at_once);
  const int threads_each = std::max(1, cores / at_once);
  std::atomic<std::size_t> next{0};
  const auto work = [&](int) {
    JobMemory memory(d, p);
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      tvl_volume_job& job = jobs[i];
      job.needed = 0;
      job.result = to_result(job.error, [&] {
        if (batch) job.needed = decode_on_gpu(*batch, d, i, job, threads_each, memory);
        if (job.needed == 0) decode_job(d, job, threads_each, backend.get(), memory);
      });
    }
  };
  run_batch(d.workers(), at_once, work);
  JobMemory memory(d, p);
  if (batch)
    for (const std::size_t i : batch->finish())
      jobs[i].result = to_result(jobs[i].error, [&] { decode_job(d, jobs[i], cores, backend.get(), memory); });
  if (backend && at_once > 1) {
    backend.reset();
    decode_alone(d, jobs, p, cores);
  }
  d.check_cancelled();
}

tvl_volume_info volume_info(const VolumeDecoder& v) {
  tvl_volume_info out{};
  out.struct_size = sizeof out;
  out.exact = v.info().exact();
  out.has_bound = v.info().has_bound;
  out.max_error = v.info().max_error;
  out.least = v.info().least;
  out.largest = v.info().largest;
  out.prediction = v.info().prediction != VolumePrediction::kNone || v.stream().profile == Profile::kPredictive;
  out.marked = static_cast<std::int32_t>(v.info().marked.size());
  const VoxelRegion& r = v.selection();
  out.x = r.x;
  out.y = r.y;
  out.z = r.z;
  out.width = r.width;
  out.height = r.height;
  out.depth = r.depth;
  out.step_x = v.step()[0];
  out.step_y = v.step()[1];
  out.step_z = v.step()[2];
  return out;
}

void write_volume(tvl_encoder& e, const tvl_volume* volume, const tvl_volume_params* given, const VoxelInput& input) {
  const tvl_volume_params p = read_struct(given, default_volume_params(), "tvl_volume_params");
  const std::shared_ptr<const Backend> backend = backend_for(p.device, p.device_memory);
  const VolumeResult result = encode_into(e, *e.output, to_description(volume), p, input, p.threads, backend.get());
  e.done = {sizeof e.done, result.stats.gops, result.stats.frames, result.stats.stream_bytes};
  e.has_stream = true;
}

}  // namespace

VolumeDescription to_description(const tvl_volume* given) {
  const tvl_volume v = read_struct(not_null(given, "volume"), default_volume(), "tvl_volume");
  VolumeDescription d;
  d.voxel.type = to_enum<VoxelType>(v.type, TVL_F64, "type");
  d.voxel.big_endian = v.big_endian != 0;
  d.voxel.channels = v.channels;
  d.width = v.width;
  d.height = v.height;
  d.slices = v.slices;
  d.volumes = v.volumes;
  require(v.channels >= 1 && v.channels <= kMaxChannels, ErrorKind::kBadArgument,
          std::to_string(v.channels) + " channels; must be 1.." + std::to_string(kMaxChannels));
  require(v.width >= 1 && v.height >= 1 && v.width <= 65536 && v.height <= 65536, ErrorKind::kBadArgument,
          "slices of " + std::to_string(v.width) + "x" + std::to_string(v.height) + "; sizes must be 1..65536");
  require(v.slices >= 1 && v.volumes >= 1, ErrorKind::kBadArgument, "a volume without slices");
  (void)checked_mul(checked_mul(v.slices, v.volumes), d.slice_bytes());
  return d;
}

tvl_volume_params default_volume_params() {
  const VolumeEncoderParams d;
  tvl_volume_params p{};
  p.struct_size = sizeof p;
  p.quality = p.psnr = p.bits_per_voxel = -1;
  p.effort = static_cast<std::int32_t>(d.effort);
  p.profile = static_cast<std::int32_t>(d.profile);
  p.block_size = d.block_size;
  p.device = TVL_CPU;
  return p;
}

VolumeEncoderParams volume_encoder_params(const tvl_volume_params& p) {
  VolumeEncoderParams out;
  out.max_error = p.max_error;
  if (p.quality >= 0) out.quality = p.quality;
  if (p.psnr >= 0) out.psnr = p.psnr;
  if (p.bits_per_voxel >= 0) out.bits_per_voxel = p.bits_per_voxel;
  if (p.total_bytes > 0) out.total_bytes = p.total_bytes;
  const int wants =
      (p.max_error != 0) + (p.quality >= 0) + (p.psnr >= 0) + (p.bits_per_voxel >= 0) + (p.total_bytes > 0);
  require(wants <= 1, ErrorKind::kBadArgument,
          std::to_string(wants) + " of max_error, quality, psnr, bits_per_voxel and total_bytes; a volume has one");
  require(p.transform >= TVL_TRANSFORM_AUTO && p.transform <= TVL_TRANSFORM_PREDICTION, ErrorKind::kBadArgument,
          "transform is " + std::to_string(p.transform) + "; there are 0..2");
  if (p.transform == TVL_TRANSFORM_WAVELET) out.transform = VolumeTransform::kWavelet;
  if (p.transform == TVL_TRANSFORM_PREDICTION) out.transform = VolumeTransform::kPrediction;
  out.effort = to_enum<VolumeEffort>(p.effort, TVL_EFFORT_SLOW, "effort");
  out.profile = to_enum<Profile>(p.profile, TVL_PROFILE_DENSE, "profile");
  out.access = to_enum<VolumeAccess>(p.access, TVL_ACCESS_REGION, "access");
  out.block_size = p.block_size;
  out.layers = p.layers;
  if (p.slab != 0) out.slab = p.slab;
  out.threads = p.threads;
  if (p.settings) out.settings = p.settings;
  require(p.fill_values || p.fill_count == 0, ErrorKind::kBadArgument,
          std::to_string(p.fill_count) + " fill values at NULL");
  if (p.fill_count > 0) out.fill_values.assign(p.fill_values, p.fill_values + p.fill_count);
  return out;
}

VolumeResult encode_into(const Handle& handle, Output& output, const VolumeDescription& volume,
                         const tvl_volume_params& given, const VoxelInput& input, int threads, const Backend* backend) {
  CallerSlices slices(handle, volume, input.voxels, input.reader, input.user, given);
  VolumeEncoderParams params = volume_encoder_params(given);
  params.threads = threads;
  params.workers = handle.workers();
  params.progress = [&handle](std::uint64_t) { handle.check_cancelled(); };
  params.on_remark = [&handle](const std::string& text) { handle.say(0, text); };
  if (backend && params.effort == VolumeEffort::kFast) params.predictive = false;  // a wavelet is what it can code
  params.backend = [backend](Profile profile) { return profile == Profile::kPredictive ? nullptr : backend; };
  const std::unique_ptr<ReadBack> back = output.read_back();
  params.verify = given.verify != 0;
  require(back != nullptr || !params.verify, ErrorKind::kBadArgument,
          "what is written here cannot be read back, so that it cannot be verified; write to memory or a file");
  VolumeResult result = encode_volume(slices, params, output, back.get());
  output.commit();
  return result;
}

tvl_batch_params default_batch() {
  tvl_batch_params p{};
  p.struct_size = sizeof p;
  p.device = TVL_CPU;
  return p;
}

void run_batch(const Workers& workers, int at_once, const std::function<void(int)>& work) {
  if (workers.run) return workers.run(at_once, work);
  std::vector<std::thread> threads;
  try {
    for (int i = 1; i < at_once; ++i) threads.emplace_back(work, i);
  } catch (const std::system_error&) {  // the system starts no more: those that were started do it
  }
  work(0);
  for (std::thread& t : threads) t.join();
}

VolumeDecoderParams volume_decoder_params(const tvl_volume_decode_params* params) {
  return to_params(read_struct(params, default_volume_decode_params(), "tvl_volume_decode_params"));
}

}  // namespace trivelet::capi

using namespace trivelet;
using namespace trivelet::capi;

extern "C" {

void tvl_volume_init(tvl_volume* volume, uint64_t struct_size) { init_struct(volume, struct_size, default_volume()); }

void tvl_volume_params_init(tvl_volume_params* params, uint64_t struct_size) {
  init_struct(params, struct_size, default_volume_params());
}

void tvl_volume_decode_params_init(tvl_volume_decode_params* params, uint64_t struct_size) {
  init_struct(params, struct_size, default_volume_decode_params());
}

void tvl_volume_info_init(tvl_volume_info* info, uint64_t struct_size) {
  init_struct(info, struct_size, tvl_volume_info{});
}

uint64_t tvl_volume_bytes(const tvl_volume* volume) {
  char ignored[64];
  std::uint64_t bytes = 0;
  (void)to_result(ignored, [&] { bytes = to_description(volume).bytes(); });
  return bytes;
}

tvl_result tvl_encoder_write_volume(tvl_encoder* encoder, const tvl_volume* volume, const tvl_volume_params* params,
                                    const tvl_voxels* voxels, tvl_slice_reader read, void* user, const tvl_sink* sink) {
  const tvl_result result = call(encoder, [&] {
    encoder->reset();
    require(!read_struct(sink, default_sink(), "tvl_sink").packet, ErrorKind::kBadArgument,
            "a packet function for a volume, whose stream has no packets; use `write`");
    encoder->output = open_output(*encoder, sink, encoder->kept);
    write_volume(*encoder, volume, params, {voxels, read, user});
  });
  if (encoder) encoder->close();
  return result;
}

tvl_result tvl_encode_volume(tvl_encoder* encoder, const tvl_volume* volume, const tvl_volume_params* params,
                             const tvl_voxels* voxels, void* stream, uint64_t capacity, uint64_t* size) {
  if (size) *size = 0;
  const tvl_result result = call(encoder, [&] {
    (void)not_null(size, "size");
    encoder->reset();
    encoder->output = open_output(*encoder, stream, capacity);
    write_volume(*encoder, volume, params, {voxels, nullptr, nullptr});
  });
  if (encoder) {
    if (encoder->output && (result == TVL_OK || result == TVL_BUFFER_TOO_SMALL)) *size = encoder->output->size();
    encoder->close();
  }
  return result;
}

uint64_t tvl_encode_volume_bound(const tvl_volume* volume, const tvl_volume_params* params) {
  char ignored[64];
  std::uint64_t bound = 0;
  (void)to_result(ignored, [&] {
    const tvl_volume_params p = read_struct(params, default_volume_params(), "tvl_volume_params");
    const VolumeDescription d = to_description(volume);
    // Numbers of more than 16 bits are split into planes; a palette has 65536 keys of up to 10 bytes.
    const auto planes = static_cast<std::size_t>(std::max(1, bytes_of(d.voxel.type) / 2));
    const std::size_t scalars =
        checked_mul(static_cast<std::size_t>(d.voxels()), static_cast<std::size_t>(d.voxel.channels));
    const std::uint64_t palette = 10 * std::min<std::uint64_t>(scalars, 65536);
    const std::uint64_t slab = p.slab > 0 ? static_cast<std::uint64_t>(p.slab) : 1;
    bound = stream_bound(checked_mul(scalars, planes), (d.all_slices() + slab - 1) / slab) + palette + p.envelope_bytes;
  });
  return bound;
}

tvl_result tvl_decoder_open_volume(tvl_decoder* decoder, const tvl_source* source,
                                   const tvl_volume_decode_params* params) {
  return call_or_close(
      decoder, [] {},
      [&] {
        decoder->close();
        open_volume(*decoder, open_source(*decoder, source), params);
      });
}

tvl_result tvl_decoder_volume(tvl_decoder* decoder, tvl_volume* whole, tvl_volume* output, tvl_volume_info* info) {
  return call(decoder, [&] {
    check_volume_open(*decoder);
    if (whole) write_struct(whole, to_volume(decoder->volume->info().volume), "tvl_volume");
    if (output) write_struct(output, to_volume(decoder->volume->output()), "tvl_volume");
    if (info) write_struct(info, volume_info(*decoder->volume), "tvl_volume_info");
  });
}

tvl_result tvl_decoder_envelope(tvl_decoder* decoder, const void** data, uint64_t* size) {
  return call(decoder, [&] {
    check_volume_open(*decoder);
    *not_null(data, "data") = decoder->volume->info().envelope.data();
    *not_null(size, "size") = decoder->volume->info().envelope.size();
  });
}

tvl_result tvl_decoder_read_slices(tvl_decoder* decoder, const tvl_voxels* voxels, uint64_t capacity, uint64_t* count) {
  if (count) *count = 0;
  return call_or_close_cancelled(decoder, [&] {
    (void)not_null(count, "count");
    check_volume_open(*decoder);
    if (capacity == 0) return;
    (void)not_null(not_null(voxels, "voxels")->data, "voxels->data");
    Staging staging;
    read_slices(*decoder, *decoder->volume, *voxels, capacity, *count, staging);
  });
}

tvl_result tvl_decode_volume(tvl_decoder* decoder, const void* stream, uint64_t size,
                             const tvl_volume_decode_params* params, void* voxels, uint64_t capacity,
                             uint64_t* needed) {
  if (needed) *needed = 0;
  const tvl_result result = call(decoder, [&] {
    (void)not_null(needed, "needed");
    decoder->close();
    tvl_source source = default_source();
    source.data = not_null(stream, "stream");
    source.size = size;
    open_volume(*decoder, open_source(*decoder, &source), params);
    const VolumeDescription& output = decoder->volume->output();
    *needed = output.bytes();
    if (*needed > capacity) throw BufferTooSmall("bytes", capacity, *needed);
    std::uint64_t count = 0;
    Staging staging;
    read_slices(*decoder, *decoder->volume, {not_null(voxels, "voxels"), 0, 0, 0}, output.all_slices(), count, staging);
    require(
        count == output.all_slices(), ErrorKind::kBadStream,
        "the stream ends after " + std::to_string(count) + " of " + std::to_string(output.all_slices()) + " slices");
  });
  if (decoder) decoder->close();
  return result;
}

void tvl_batch_params_init(tvl_batch_params* params, uint64_t struct_size) {
  init_struct(params, struct_size, default_batch());
}

void tvl_volume_job_init(tvl_volume_job* job, uint64_t struct_size) { init_struct(job, struct_size, default_job()); }

tvl_result tvl_decode_volumes(tvl_decoder* decoder, tvl_volume_job* jobs, uint64_t count,
                              const tvl_batch_params* params) {
  tvl_result first = TVL_OK;
  const tvl_result result = call(decoder, [&] {
    const tvl_batch_params p = read_struct(params, default_batch(), "tvl_batch_params");
    decoder->close();
    if (count == 0) return;
    const std::span all(not_null(jobs, "jobs"), static_cast<std::size_t>(count));
    for (const tvl_volume_job& job : all)
      require(job.struct_size == sizeof job, ErrorKind::kUnsupported,
              "jobs of " + std::to_string(job.struct_size) + " bytes lie in a row; this library's have " +
                  std::to_string(sizeof job));
    decode_jobs(*decoder, all, p);
    for (std::size_t i = 0; i < all.size() && first == TVL_OK; ++i) {
      first = all[i].result;
      if (first != TVL_OK) std::snprintf(decoder->error, sizeof decoder->error, "job %zu: %s", i, all[i].error);
    }
  });
  return result == TVL_OK ? first : result;
}

}  // extern "C"
