// The functions of this library that the host calls, in a build without CUDA: there are no devices, and all other
// functions throw with the reason. This file is compiled instead of the others; only the build system knows which.
#include "codec/backend.h"
#include "gpu/still/ccsds122.h"
#include "gpu/still/dct.h"
#include "gpu/still/real_fft.h"
#include "gpu/still/vstc.h"
#include "trivelet/cuda.h"
#include "trivelet/error.h"

namespace trivelet::gpu {

namespace {

[[noreturn]] void without_cuda() { fail(ErrorKind::kUnsupported, "this library was built without CUDA"); }

}  // namespace

bool is_built() { return false; }
void expect_gops(int) {}
std::vector<DeviceInfo> devices() { return {}; }
std::vector<int> cores_near(int) { return {}; }
std::shared_ptr<const Backend> cuda_backend(int, std::size_t, bool) { without_cuda(); }
std::shared_ptr<std::byte> page_locked(std::size_t) { without_cuda(); }
void copy_to_device(int, Rows, Rows, std::size_t, std::size_t, void*) { without_cuda(); }
void copy_from_device(int, Rows, Rows, std::size_t, std::size_t, void*) { without_cuda(); }
void wait_for(int, void*) { without_cuda(); }
std::shared_ptr<DevicePictures> device_pictures(int) { without_cuda(); }
struct VolumeBatch::State {};
VolumeBatch::VolumeBatch(int, std::size_t) { without_cuda(); }
VolumeBatch::~VolumeBatch() = default;
std::uint64_t VolumeBatch::decode(std::size_t, ByteSource&, const VolumeDecoderParams&, void*, std::size_t) {
  without_cuda();
}
std::vector<std::size_t> VolumeBatch::finish() { without_cuda(); }
struct VolumeEncodeBatch::State {};
VolumeEncodeBatch::VolumeEncodeBatch(int, std::size_t) { without_cuda(); }
VolumeEncodeBatch::~VolumeEncodeBatch() = default;
bool VolumeEncodeBatch::encode(const VolumeDescription&, const void*, const VolumeEncoderParams&,
                               const std::vector<std::uint8_t>&, ByteSink&, ReadBack*, VolumeResult&) {
  without_cuda();
}
std::unique_ptr<Textures> share_textures(int, std::span<const unsigned>) { without_cuda(); }

int still_device_count() { return 0; }

struct Ccsds122Codec::State {};
Ccsds122Codec::Ccsds122Codec(int) { without_cuda(); }
Ccsds122Codec::~Ccsds122Codec() = default;
Ccsds122Codec::Ccsds122Codec(Ccsds122Codec&&) noexcept = default;
Ccsds122Codec& Ccsds122Codec::operator=(Ccsds122Codec&&) noexcept = default;
ccsds122::Encoded Ccsds122Codec::encode(const VolumeView&, const ccsds122::Params&, ThreadPool&) { without_cuda(); }
ccsds122::Decoded Ccsds122Codec::decode(std::span<const std::byte>, const ccsds122::DecodeParams&, ThreadPool&) {
  without_cuda();
}
Ccsds122Times measure_ccsds122(int, const VolumeView&, const ccsds122::Params&, int, ThreadPool&) { without_cuda(); }
Ccsds122TransformTimes measure_ccsds122_transform(int, int, int, ccsds122::Dwt, int) { without_cuda(); }

bool have_fft() { return false; }
std::unique_ptr<dct::Transform> make_dct_transform(int, DctWay) { without_cuda(); }
DctFigure bench_dct(const still::Image&, double, double, int, DctWay) { without_cuda(); }

vstc::MakeWaveSearch make_vstc_search(int) { without_cuda(); }

}  // namespace trivelet::gpu
