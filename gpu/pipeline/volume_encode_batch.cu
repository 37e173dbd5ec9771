// Encodes batches of volumes whose voxels are in device memory: kernels find out which values occur, make the samples
// of all GOPs and compute their hashes. The encoder (codec/encoder) then codes GOPs that never were on the host.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "codec/volume/volume_samples.h"
#include "gpu/device/device.h"
#include "gpu/pipeline/volume_maps.h"
#include "gpu/transform/dwt.cuh"
#include "trivelet/cuda.h"
#include "trivelet/kept_decoders.h"

namespace trivelet::gpu {

namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr int kVoxelThreads = 256;
constexpr u64 kMostVoxelBlocks = 2048;  // enough for a device; each continues after them
constexpr u32 kPatternWords = 65536 / 32;

/// Sets the bit of every pattern that occurs. Neighbours are often equal, so that most bits are found set.
template <class V>
__global__ void __launch_bounds__(kVoxelThreads) survey_kernel(const V* voxels, u64 count, u32* patterns) {
  constexpr int kWords = sizeof(V) == 1 ? 256 / 32 : static_cast<int>(kPatternWords);
  __shared__ u32 seen[kWords];
  for (int i = static_cast<int>(threadIdx.x); i < kWords; i += kVoxelThreads) seen[i] = 0;
  __syncthreads();
  const u64 step = static_cast<u64>(gridDim.x) * kVoxelThreads;
  u32 before = ~0u;
  for (u64 i = static_cast<u64>(blockIdx.x) * kVoxelThreads + threadIdx.x; i < count; i += step) {
    const u32 v = voxels[i];
    if (v != before) atomicOr(&seen[v / 32], 1u << v % 32);
    before = v;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kWords; i += kVoxelThreads)
    if (seen[i] != 0) atomicOr(&patterns[i], seen[i]);
}

template <class V, class S>
__global__ void __launch_bounds__(kVoxelThreads)
    sample_kernel(const V* voxels, S* samples, u64 count, const u16* number_of) {
  const u64 step = static_cast<u64>(gridDim.x) * kVoxelThreads;
  for (u64 i = static_cast<u64>(blockIdx.x) * kVoxelThreads + threadIdx.x; i < count; i += step)
    samples[i] = static_cast<S>(number_of[voxels[i]]);
}

dim3 voxel_grid(u64 count) {
  return dim3(static_cast<unsigned>(std::min((count + kVoxelThreads - 1) / kVoxelThreads, kMostVoxelBlocks)));
}

}  // namespace

/// What a thread encodes with: buffers, and the volume that is encoded.
class EncodeLane final : public VolumeSamples {
 public:
  Backend backend;  ///< for this lane's GOPs

  EncodeLane() = default;
  EncodeLane(const EncodeLane&) = delete;
  EncodeLane& operator=(const EncodeLane&) = delete;
  /// After a failure kernels may still read the caller's voxels.
  ~EncodeLane() override {
    forget(cudaStreamSynchronize(stream_.get()));
    forget(cudaStreamSynchronize(hashing_.get()));
  }

  void set(const VolumeDescription& volume, const void* voxels, BatchMaps& maps) {
    volume_ = volume;
    voxels_ = voxels;
    maps_ = &maps;
  }
  const VolumeDescription& description() const override { return volume_; }
  VolumeAnalysis survey() override;
  bool begin(const VolumeMap& map, const VideoInfo& video, int gop_frames) override;
  const Gop* next() override;
  /// Of the GOP with this number. They are computed while GOPs are coded.
  u64 hash(u64 number) const {
    require(number < gops_, ErrorKind::kInternal, "the hash of a GOP that there is not");
    hashed_.synchronize();
    return host_digests_.data()[number];
  }

 private:
  template <class V>
  void make_samples(const BatchMap& tables);
  void hash_all(const BatchMap& tables);

  VolumeDescription volume_;
  const void* voxels_ = nullptr;
  BatchMaps* maps_ = nullptr;
  std::shared_ptr<const BatchMap> tables_;  ///< that kernels use
  VideoInfo video_;
  int gop_frames_ = 0;
  std::size_t current_ = 0, gops_ = 0;  ///< number of the current GOP, and of all
  std::optional<Gop> gop_;
  Stream stream_, hashing_;
  Event hashed_{false, true};
  DeviceBuffer<u32> patterns_{kPatternWords};
  PinnedBuffer<u32> host_patterns_{kPatternWords};
  DeviceBuffer<std::byte> samples_;
  DeviceBuffer<HashCheck> checks_;
  PinnedBuffer<HashCheck> host_checks_;
  DeviceBuffer<u64> digests_;
  PinnedBuffer<u64> host_digests_;
};

VolumeAnalysis EncodeLane::survey() {
  const u64 count = volume_.voxels();
  check(cudaMemsetAsync(patterns_.data(), 0, kPatternWords * sizeof(u32), stream_.get()), "cudaMemsetAsync");
  const auto look = [&](auto v) {
    using V = decltype(v);
    launch("survey_kernel", survey_kernel<V>, voxel_grid(count), dim3(kVoxelThreads), 0, stream_.get(),
           static_cast<const V*>(voxels_), count, patterns_.data());
  };
  volume_.voxel.bytes() == 1 ? look(u8{}) : look(u16{});
  copy(host_patterns_.data(), patterns_.data(), kPatternWords, cudaMemcpyDeviceToHost, stream_);
  stream_.synchronize();
  VolumeAnalysis analysis(volume_.voxel);
  analysis.add_patterns(host_patterns_.data(), static_cast<std::size_t>(count));
  return analysis;
}

template <class V>
void EncodeLane::make_samples(const BatchMap& tables) {
  const u64 count = volume_.voxels();
  const auto make = [&](auto s) {
    using S = decltype(s);
    launch("sample_kernel", sample_kernel<V, S>, voxel_grid(count), dim3(kVoxelThreads), 0, stream_.get(),
           static_cast<const V*>(voxels_), reinterpret_cast<S*>(samples_.data()), count, tables.number_of.data());
  };
  video_.format.bytes_per_sample() == 1 ? make(u8{}) : make(u16{});
}

void EncodeLane::hash_all(const BatchMap& tables) {
  make_room(checks_, host_checks_, gops_);
  make_room(digests_, host_digests_, gops_);
  const u64 slice = volume_.slice_bytes() / volume_.voxel.bytes(), slices = volume_.all_slices();
  const auto frames = static_cast<u64>(gop_frames_);
  for (std::size_t n = 0; n < gops_; ++n) {
    const u64 first = n * frames;
    host_checks_.data()[n] = {static_cast<const std::byte*>(voxels_) + first * volume_.slice_bytes(),
                              std::min(frames, slices - first) * slice,
                              tables.number_of.data(),
                              0,
                              nullptr,
                              digests_.data() + n,
                              static_cast<u32>(volume_.voxel.bytes()),
                              static_cast<u32>(video_.format.bytes_per_sample())};
  }
  copy(checks_.data(), host_checks_.data(), gops_, cudaMemcpyHostToDevice, hashing_);
  hash_gops(checks_.data(), gops_, hashing_);
  copy(host_digests_.data(), digests_.data(), gops_, cudaMemcpyDeviceToHost, hashing_);
  hashed_.record(hashing_);
}

bool EncodeLane::begin(const VolumeMap& map, const VideoInfo& video, int gop_frames) {
  if (map.order != VolumeOrder::kFile || map.prediction != VolumePrediction::kNone) return false;
  const std::shared_ptr<const BatchMap> tables = maps_->find(map);
  if (!tables) return false;
  video_ = video;
  gop_frames_ = gop_frames;
  const auto frames = static_cast<u64>(gop_frames);
  gops_ = static_cast<std::size_t>((volume_.all_slices() + frames - 1) / frames);
  current_ = gops_;
  gop_.reset();
  const std::size_t bytes =
      static_cast<std::size_t>(volume_.voxels()) * static_cast<std::size_t>(video.format.bytes_per_sample());
  if (samples_.size() < bytes) {
    const IdleMemory idle;  // nothing of the volume before is in use
    samples_ = {};
    samples_ = DeviceBuffer<std::byte>(bytes);
  }
  tables_ = tables;
  hash_all(*tables);
  volume_.voxel.bytes() == 1 ? make_samples<u8>(*tables) : make_samples<u16>(*tables);
  stream_.synchronize();
  check(cudaGetLastError(), "a kernel of the batch");
  return true;
}

const Gop* EncodeLane::next() {
  current_ = gop_ ? current_ + 1 : 0;
  if (current_ >= gops_) return nullptr;
  const u64 first = current_ * static_cast<u64>(gop_frames_);
  const int frames = static_cast<int>(std::min<u64>(static_cast<u64>(gop_frames_), volume_.all_slices() - first));
  const std::size_t frame_bytes =
      volume_.slice_bytes() / volume_.voxel.bytes() * static_cast<std::size_t>(video_.format.bytes_per_sample());
  std::byte* const at = samples_.data() + static_cast<std::size_t>(first) * frame_bytes;
  gop_.emplace(video_, frames, [at](std::size_t) { return std::shared_ptr<std::byte>(std::shared_ptr<void>(), at); });
  gop_->set_frames(frames);
  for (int i = 0; i < frames; ++i)
    gop_->times()[static_cast<std::size_t>(i)] = {static_cast<std::int64_t>(first) + i, 1};
  return &*gop_;
}

struct VolumeEncodeBatch::State {
  int device;
  std::shared_ptr<const Backend> backend;
  BatchMaps maps;
  SpareParts<EncodeLane> lanes;
};

VolumeEncodeBatch::VolumeEncodeBatch(int number, std::size_t max_memory) {
  check(cudaSetDevice(number), "cudaSetDevice");
  state_ = std::make_unique<State>();
  state_->device = number;
  state_->backend = keep_encoders(cuda_backend(number, max_memory, true));
}
VolumeEncodeBatch::~VolumeEncodeBatch() { forget(cudaSetDevice(state_->device)); }

bool VolumeEncodeBatch::encode(const VolumeDescription& volume, const void* voxels, const VolumeEncoderParams& params,
                               const std::vector<std::uint8_t>& envelope, ByteSink& sink, ReadBack* again,
                               VolumeResult& result) {
  State& s = *state_;
  VolumeEncoderParams own = params;
  own.predictive = false;  // wavelets are what a GPU codes
  if (!codes_from_samples(volume, own) || params.workers.run) return false;
  if (reinterpret_cast<std::uintptr_t>(voxels) % volume.voxel.bytes() != 0) return false;
  check(cudaSetDevice(s.device), "cudaSetDevice");
  std::unique_ptr<EncodeLane> lane = s.lanes.take();
  lane->backend = *s.backend;
  lane->backend.hash = [lane = lane.get()](u64 number) { return lane->hash(number); };
  own.backend = [&lane](Profile) { return &lane->backend; };
  lane->set(volume, voxels, s.maps);
  const std::optional<VolumeResult> done = encode_volume(*lane, own, envelope, sink, again);
  s.lanes.give_back(std::move(lane));
  if (done) result = *done;
  return done.has_value();
}

}  // namespace trivelet::gpu
