// Fuzzes readers of volumes: a file of one format (TRIVELET_VOLUME_FORMAT in libFuzzer's programs), or with "map",
// "envelope", "cuts" and "mask" the content of a stream's boxes. Only a volume or an Error of a damaged or unsupported
// file is allowed. The header of a readable volume must survive the stream's boxes unchanged.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/hash.h"
#include "codec/volume/volume_cuts.h"
#include "codec/volume/volume_map.h"
#include "codec/volume/volume_mask.h"
#include "io/volume/volume_io.h"

namespace {

using namespace trivelet;

void expect(bool ok) {
  if (!ok) __builtin_trap();
}

void read_file(const std::byte* data, std::size_t size, const std::string& format) {
  // Names of many files and much that was packed take time and tell nothing new.
  const auto reader = io::open_volume(data, size, format, {.files = 64, .unpacked = 1 << 20});
  const io::VolumeInfo& info = reader->info();
  expect(info.width >= 1 && info.height >= 1 && info.slices >= 1 && info.volumes >= 1);
  std::uint64_t left = info.voxels() * info.voxel.bytes();
  std::byte piece[4096];
  VolumeAnalysis analysis(info.voxel);
  bool first = true;
  while (left > 0) {
    const std::size_t n =
        static_cast<std::size_t>(std::min<std::uint64_t>(left, sizeof piece / 32 * info.voxel.bytes()));
    reader->read(piece, n);  // throws at the end of the file
    if (first) analysis.add(piece, n / info.voxel.bytes());
    first = false;
    left -= n;
  }
  const io::Envelope e = reader->envelope();
  std::size_t kept = 0;
  std::uint64_t voxels = 0;
  for (const io::VolumeFile& f : e.files) {
    kept += f.head.size() + f.tail.size();
    voxels += f.voxel_bytes;
  }
  expect(voxels == info.voxels() * info.voxel.bytes());
  // Of DICOM files pixels may be unpacked, and a colour for two pixels becomes one for each.
  const bool other_size = format == "dicom" && (!reader->remarks().empty() || e.files[0].order != 0);
  expect(other_size || e.files[0].packing != io::Packing::kNone || e.files[0].gzip || kept + voxels == size);
  const auto packed = serialise(e);
  const io::Envelope again = io::parse_envelope(packed.data(), packed.size());
  expect(again.files.size() == e.files.size() && again.files[0].head == e.files[0].head &&
         again.files[0].tail == e.files[0].tail && again.files[0].order == e.files[0].order &&
         again.files[0].unused == e.files[0].unused);
  const io::VolumeInfo said = io::volume_info(again);
  expect(said.width == info.width && said.height == info.height && said.slices == info.slices &&
         said.volumes == info.volumes && said.voxel == info.voxel && said.slope == info.slope &&
         said.affine == info.affine);
}

void read_map(const std::uint8_t* data, std::size_t size) {
  const VolumeMap map = parse_volume_map(data, size);
  const auto packed = serialise(map);
  const VolumeMap again = parse_volume_map(packed.data(), packed.size());
  expect(serialise(again) == packed);
  // Any samples come out as some scalars.
  VideoInfo info;
  info.width = 3;
  info.height = 2;
  info.format = map.pixel_format();
  Gop gop(info, 1);
  gop.set_frames(1);
  for (int c = 0; c < gop.components(); ++c)
    std::memset(gop.plane(c).data, 0xFF, static_cast<std::size_t>(6 * info.format.bytes_per_sample()));
  std::byte out[6 * 32];
  if (bytes_of(map.format.type) > 2)
    VolumeMapper(map).to_stored(gop, 0, out);  // tables of narrow ones are slow to make
}

void read_cuts(const std::uint8_t* data, std::size_t size) {
  const VolumeCuts cuts = parse_volume_cuts(data, size);
  const auto packed = serialise(cuts);
  expect(cuts.cuts.empty() || serialise(parse_volume_cuts(packed.data(), packed.size())) == packed);
}

// Shape of the volume in four bytes, then the box.
void read_mask(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return;
  VolumeDescription v;
  v.voxel = {VoxelType::kF32, false, 1 + data[0] % 4};
  v.width = 1 + data[1] % 32;
  v.height = 1 + data[2] % 32;
  v.slices = 1u + data[3] % 70;
  MaskDecoder decoder(v, data + 4, size - 4);
  MaskEncoder encoder(v);
  std::vector<std::vector<std::uint8_t>> all;
  const std::size_t scalars = v.slice_bytes() / 4;
  for (std::uint64_t s = 0; s < v.slices; ++s) {
    const auto marks = decoder.marks(s);
    all.emplace_back(marks.begin(), marks.end());
    all.back().resize(scalars);
    for (const std::uint8_t m : all.back()) expect(m <= decoder.values().size());
    encoder.add(all.back());
  }
  const std::vector<std::uint8_t> box = encoder.finish(decoder.values());
  MaskDecoder again(v, box.data(), box.size());
  for (std::uint64_t s = v.slices; s-- > 0;) {
    const auto marks = again.marks(s);
    std::vector<std::uint8_t> found(marks.begin(), marks.end());
    found.resize(scalars);
    expect(found == all[static_cast<std::size_t>(s)]);
  }
}

int fuzz_volume(const std::string& format, const std::uint8_t* data, std::size_t size) {
  try {
    if (format == "map")
      read_map(data, size);
    else if (format == "cuts")
      read_cuts(data, size);
    else if (format == "mask")
      read_mask(data, size);
    else if (format == "envelope")
      (void)io::volume_info(io::parse_envelope(data, size));
    else
      read_file(reinterpret_cast<const std::byte*>(data), size, format);
  } catch (const Error& e) {
    expect(e.kind() != ErrorKind::kInternal && e.kind() != ErrorKind::kBadArgument);
  }
  return 0;
}

}  // namespace

#ifdef TRIVELET_FUZZ
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_volume(TRIVELET_VOLUME_FORMAT, data, size);
}
#else
extern "C" {
int fuzz_nifti(const std::uint8_t* data, std::size_t size) { return fuzz_volume("nifti", data, size); }
int fuzz_nrrd(const std::uint8_t* data, std::size_t size) { return fuzz_volume("nrrd", data, size); }
int fuzz_metaimage(const std::uint8_t* data, std::size_t size) { return fuzz_volume("metaimage", data, size); }
int fuzz_dicom(const std::uint8_t* data, std::size_t size) { return fuzz_volume("dicom", data, size); }
int fuzz_envelope(const std::uint8_t* data, std::size_t size) { return fuzz_volume("envelope", data, size); }
int fuzz_cuts(const std::uint8_t* data, std::size_t size) { return fuzz_volume("cuts", data, size); }
int fuzz_mask(const std::uint8_t* data, std::size_t size) { return fuzz_volume("mask", data, size); }
int fuzz_map(const std::uint8_t* data, std::size_t size) { return fuzz_volume("map", data, size); }
}
#endif
