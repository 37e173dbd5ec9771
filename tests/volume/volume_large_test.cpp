// Volumes larger than 2^31 and 2^32 in sparse files: their reported sizes, the position of the last voxels, and what
// follows them.
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "codec/volume/volume_map.h"
#include "tests/support/volume_files_support.h"

namespace trivelet {
namespace {

namespace fs = std::filesystem;
using test::bytes;
using test::VolumeBytes;
using test::VolumeFiles;
using test::operator+;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class LargeVolumes : public VolumeFiles {
 protected:
  /// Head, `voxels` bytes of nothing that end with `last`, and a tail.
  void save_holes(const std::string& name, const VolumeBytes& head, std::uint64_t voxels,
                  const VolumeBytes& last) const {
    save(name, head);
    fs::resize_file(path(name), head.size() + voxels - last.size());
    std::ofstream out(path(name), std::ios::binary | std::ios::app);
    const VolumeBytes end = last + bytes("and a tail");
    out.write(reinterpret_cast<const char*>(end.data()), static_cast<std::streamsize>(end.size()));
  }
};

// 16-bit voxels, 4.4e9 of them in 8.8 GB, three slices in the end of which are not empty.
TEST_F(LargeVolumes, last_voxels_and_tail) {
  constexpr std::uint64_t kSlices = 1050;
  io::VolumeInfo info;
  info.voxel = {VoxelType::kU16, false, 1};
  info.width = info.height = 2048;
  info.slices = kSlices;
  ASSERT_GT(info.voxels(), 4 * kGiB);
  EXPECT_EQ(info.bytes(), 2 * info.voxels());
  const VolumeBytes last = bytes("the last twelve bytes of a volume.");
  const std::string nrrd =
      "NRRD0004\ntype: uint16\nendian: little\ndimension: 3\nsizes: 2048 2048 1050\nencoding: raw\n\n";
  const std::string meta =
      "ObjectType = Image\nNDims = 3\nBinaryData = True\nDimSize = 2048 2048 1050\nElementType = MET_USHORT\n"
      "ElementDataFile = LOCAL\n";
  io::VolumeOptions raw;
  raw.size = {2048, 2048, kSlices};
  raw.type = "u16";
  struct File {
    std::string name;
    VolumeBytes head;
    io::VolumeOptions options;
  };
  for (const File& f : {File{"v.nii", io::make_envelope(info, "nii").files[0].head, {}},
                        File{"v.nrrd", bytes(nrrd), {}}, File{"v.mha", bytes(meta), {}}, File{"v.raw", {}, raw}}) {
    save_holes(f.name, f.head, info.bytes(), last);
    const auto reader = io::open_volume(path(f.name), f.options);
    EXPECT_EQ(static_cast<const VolumeDescription&>(reader->info()), static_cast<const VolumeDescription&>(info));
    ASSERT_TRUE(reader->reads_anywhere());
    VolumeBytes found(last.size());
    reader->read_at(info.bytes() - last.size(), found.data(), found.size());
    EXPECT_EQ(found, last) << f.name;
    reader->read_at(2 * kGiB - 1, found.data(), found.size());
    EXPECT_EQ(found, VolumeBytes(found.size())) << f.name;
    EXPECT_THROW(reader->read_at(info.bytes() - last.size() + 1, found.data(), found.size()), Error);
    EXPECT_THROW(reader->read_at(~std::uint64_t{0} - 3, found.data(), 8), Error);
    const io::Envelope envelope = reader->envelope();
    EXPECT_EQ(envelope.files[0].head, f.head) << f.name;
    EXPECT_EQ(envelope.files[0].tail, bytes("and a tail")) << f.name;
    const std::vector<std::uint8_t> packed = serialise(envelope);
    EXPECT_EQ(io::parse_envelope(packed.data(), packed.size()).files[0].voxel_bytes, info.bytes());
    // A byte less than is promised.
    fs::resize_file(path(f.name), f.head.size() + info.bytes() - 1);
    try {
      (void)io::open_volume(path(f.name), f.options);
      ADD_FAILURE() << f.name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kBadStream);
      EXPECT_NE(std::string(e.what()).find(std::to_string(info.bytes() + f.head.size())), std::string::npos)
          << e.what();
    }
    fs::remove(path(f.name));
  }
}

// Where the product of the sizes, and not one of them, does not fit.
TEST_F(LargeVolumes, sizes_that_are_too_large) {
  const auto kind_of = [&](const std::string& sizes, const std::string& type) {
    const std::string dimension = std::to_string(1 + std::count(sizes.begin(), sizes.end(), ' '));
    save("v.nrrd", "NRRD0004\ntype: " + type + "\nendian: big\ndimension: " + dimension + "\nsizes: " + sizes +
                       "\nencoding: raw\n\nx");
    try {
      (void)io::open_volume(path("v.nrrd"), {});
      return std::string("accepted");
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_NE(kind_of("65536 32768 4294967296", "uint8").find("2^48"), std::string::npos);
  EXPECT_NE(kind_of("65536 4 1073741824 4", "double").find("2^48"), std::string::npos);
  EXPECT_NE(kind_of("65536 65536 2", "uint8").find("2^31"), std::string::npos);
  EXPECT_NE(kind_of("65536 64 60000000", "double").find("promised"), std::string::npos);  // 2e15 bytes
  EXPECT_NE(kind_of("4 4 4 20000000", "double").find("promised"), std::string::npos);
}

// Coded along the fourth axis, every slice has a frame of its own, the last one too.
TEST(LargeVolumesOrder, frames_of_slices) {
  VolumeMap map;
  map.order = VolumeOrder::kFourthAxis;
  for (const auto& [slices, volumes] :
       {std::pair<std::uint64_t, std::uint64_t>{100'000, 70'000}, {3, std::uint64_t{1} << 33}, {70'000, 100'000}}) {
    map.slices = slices;
    map.volumes = volumes;
    EXPECT_EQ(map.frame_of(0), 0u);
    EXPECT_EQ(map.frame_of(1), volumes);
    EXPECT_EQ(map.frame_of(slices), 1u);
    EXPECT_EQ(map.frame_of(slices * volumes - 1), slices * volumes - 1);
    EXPECT_EQ(map.frame_of(slices * (volumes - 1)), volumes - 1);
    std::unordered_set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const std::uint64_t frame = map.frame_of(slices * volumes / 1000 * i);
      EXPECT_LT(frame, slices * volumes);
      EXPECT_TRUE(seen.insert(frame).second);
    }
  }
}

}  // namespace
}  // namespace trivelet
