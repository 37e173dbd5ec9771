// Compressed volume files: unpacked at once or by a thread, with the same errors and limits as uncompressed files,
// abandoned in the middle, and read again from the start; and the same for packing.
#include <algorithm>
#include <random>

#include "io/volume/volume_input.h"
#include "tests/support/volume_files_support.h"

namespace trivelet {
namespace {

using test::bytes;
using test::VolumeBytes;
using test::VolumeFiles;
using test::operator+;

// More than what is read before there is a thread, and than all pieces between the two.
constexpr int kWidth = 256, kHeight = 256, kSlices = 72;

class PackedVolumes : public VolumeFiles {
 protected:
  void SetUp() override {
    if (!io::have_zlib()) GTEST_SKIP() << "without zlib";
    VolumeFiles::SetUp();
    std::mt19937 random(3);
    voxels_.resize(std::size_t{kWidth} * kHeight * kSlices);
    for (std::size_t i = 0; i < voxels_.size(); ++i)
      voxels_[i] = static_cast<std::byte>(i / 300 + (i % 8 ? 0 : random() % 3));
    info_.voxel = {VoxelType::kU8, false, 1};
    info_.width = kWidth;
    info_.height = kHeight;
    info_.slices = kSlices;
  }

  static VolumeBytes packed(const VolumeBytes& plain, bool zlib_format = false) {
    VolumeBytes out;
    io::Deflater deflater(
        [&out](const void* data, std::size_t size) {
          const auto* p = static_cast<const std::byte*>(data);
          out.insert(out.end(), p, p + size);
        },
        zlib_format);
    deflater.write(plain.data(), plain.size());
    deflater.finish();
    return out;
  }
  /// The same volume, packed in all ways.
  std::vector<std::string> save_all() {
    const VolumeBytes nii = io::make_envelope(info_, "nii").files[0].head + voxels_ + bytes("and a tail");
    const auto middle = nii.begin() + 2'500'000;
    save("members.nii.gz",
         packed(VolumeBytes(nii.begin(), middle)) + packed({}) + packed(VolumeBytes(middle, nii.end())));
    save("whole.nii.gz", packed(nii));
    save("v.nrrd",
         bytes("NRRD0004\ntype: uint8\ndimension: 3\nsizes: 256 256 72\nencoding: gzip\n\n") + packed(voxels_));
    save("v.mha", bytes("ObjectType = Image\nNDims = 3\nDimSize = 256 256 72\nElementType = MET_UCHAR\n"
                        "CompressedData = True\nElementDataFile = LOCAL\n") +
                      packed(voxels_, true) + bytes("behind"));
    return {"members.nii.gz", "whole.nii.gz", "v.nrrd", "v.mha"};
  }
  /// How many voxels are read before something is wrong.
  static std::uint64_t read_until_wrong(io::VolumeReader& reader, std::uint64_t all, ErrorKind kind) {
    std::byte piece[1000];
    std::uint64_t done = 0;
    try {
      for (; done < all; done += std::min<std::uint64_t>(sizeof piece, all - done))
        reader.read(piece, static_cast<std::size_t>(std::min<std::uint64_t>(sizeof piece, all - done)));
      (void)reader.envelope();
      ADD_FAILURE() << "nothing was wrong";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
    }
    return done;
  }

  VolumeBytes voxels_;
  io::VolumeInfo info_;
};

TEST_F(PackedVolumes, come_back_however_they_are_read) {
  for (const std::string& name : save_all()) {
    const auto reader = io::open_volume(path(name), {});
    EXPECT_FALSE(reader->reads_anywhere());
    VolumeBytes found(voxels_.size());
    // Left behind at every stage: before there is a thread, while it is ahead, at the end.
    for (const std::size_t stop : {std::size_t{1000}, std::size_t{1'500'000}, std::size_t{4'000'000}, found.size()}) {
      std::fill(found.begin(), found.end(), std::byte{0xEE});
      std::size_t at = 0;
      for (std::size_t piece = 1; at < stop; piece = piece * 3 % 1'000'003) {
        const std::size_t n = std::min(piece, stop - at);
        reader->read(found.data() + at, n);
        at += n;
      }
      EXPECT_TRUE(std::equal(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(stop), voxels_.begin()))
          << name << " up to " << stop;
      if (stop == found.size()) {
        const io::Envelope envelope = reader->envelope();
        const VolumeBytes tail = name.ends_with(".nii.gz") ? bytes("and a tail")
                                 : name == "v.mha"         ? bytes("behind")
                                                           : VolumeBytes{};
        EXPECT_EQ(envelope.files[0].tail, tail) << name;
      }
      reader->rewind();
    }
    // Gone while the thread is ahead.
    reader->read(found.data(), 2'000'000);
  }
}

// With libdeflate, what fits into kWholeBytes is packed and unpacked at once; the larger one by threads in any case.
TEST_F(PackedVolumes, are_written_at_once_and_by_threads) {
  for (const int slices : {kSlices, 800}) {
    io::VolumeInfo info = info_;
    info.slices = static_cast<std::uint64_t>(slices);
    ASSERT_EQ(info.bytes() > io::kWholeBytes, slices != kSlices);
    for (const std::string name : {"w.nii.gz", "w.mha"}) {
      io::Envelope envelope = io::make_envelope(info, name == "w.mha" ? "mha" : "nii");
      if (name == "w.mha") {
        const std::string head = "ObjectType = Image\nNDims = 3\nDimSize = 256 256 " + std::to_string(slices) +
                                 "\nElementType = MET_UCHAR\nCompressedData = True\nCompressedDataSize = 1\n"
                                 "ElementDataFile = LOCAL\n";
        envelope.files[0].head = bytes(head);
        envelope.files[0].packing = io::Packing::kZlib;
      }
      envelope.files[0].tail = bytes("and a tail");
      io::VolumeWriter writer(envelope, path(name), true);
      for (int z = 0; z < slices; z += 3) {  // in pieces that no buffer has
        const std::size_t all = std::size_t{kWidth} * kHeight;
        const int last = std::min(z + 3, slices);
        for (int i = z; i < last; ++i) writer.write(voxels_.data() + static_cast<std::size_t>(i % kSlices) * all, all);
      }
      writer.finish();
      EXPECT_LT(load(name).size(), info.bytes() / 2) << name;
      const auto reader = io::open_volume(path(name), {});
      VolumeBytes found(std::size_t{kWidth} * kHeight);
      for (int z = 0; z < slices; ++z) {
        reader->read(found.data(), found.size());
        const auto wanted = voxels_.begin() + static_cast<std::ptrdiff_t>(z % kSlices) * kWidth * kHeight;
        ASSERT_TRUE(std::equal(found.begin(), found.end(), wanted)) << name << " of " << slices << ", slice " << z;
      }
      EXPECT_EQ(reader->envelope().files[0].tail, bytes("and a tail")) << name << " of " << slices;
    }
  }
}

// An error in the packing thread reaches the writer, and no thread waits for ever.
TEST_F(PackedVolumes, errors_of_the_sink_arrive) {
  for (const std::size_t room : {std::size_t{0}, std::size_t{200'000}, std::size_t{900'000}}) {
    std::size_t written = 0;
    const auto packer = io::make_packer(
        [&](const void*, std::size_t size) {
          written += size;
          if (written > room) fail(ErrorKind::kIo, "no room");
        },
        false, std::uint64_t{1} << 40);
    std::mt19937 random(5);
    VolumeBytes noise(100'000);
    EXPECT_THROW(
        {
          for (int i = 0; i < 100; ++i) {
            for (std::byte& b : noise) b = static_cast<std::byte>(random());
            packer->write(noise.data(), noise.size());
          }
          packer->finish();
        },
        Error)
        << room;
  }
}

// Left without an end.
TEST_F(PackedVolumes, writing_may_stop_anywhere) {
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{1'500'000}, voxels_.size()}) {
    const auto packer = io::make_packer([](const void*, std::size_t) {}, true, std::uint64_t{1} << 40);
    for (std::size_t at = 0; at < bytes; at += 100'000)
      packer->write(voxels_.data() + at, std::min<std::size_t>(100'000, bytes - at));
  }
}

TEST_F(PackedVolumes, two_at_once) {
  const std::vector<std::string> names = save_all();
  std::vector<std::unique_ptr<io::VolumeReader>> readers;
  for (const std::string& name : names) readers.push_back(io::open_volume(path(name), {}));
  VolumeBytes slice(std::size_t{kWidth} * kHeight);
  for (std::size_t z = 0; z < kSlices; ++z)
    for (std::size_t i = 0; i < readers.size(); ++i) {
      readers[i]->read(slice.data(), slice.size());
      ASSERT_TRUE(
          std::equal(slice.begin(), slice.end(), voxels_.begin() + static_cast<std::ptrdiff_t>(z * slice.size())))
          << names[i] << ", slice " << z;
    }
}

TEST_F(PackedVolumes, damage_ends_and_limits) {
  for (const std::string& name : save_all()) {
    const VolumeBytes good = load(name);
    // A changed byte in the middle: found there or by the checksum in the end, never passed over.
    VolumeBytes changed = good;
    changed[changed.size() / 2] ^= std::byte{0x10};
    save("x" + name, changed);
    auto reader = io::open_volume(path("x" + name), {});
    EXPECT_GT(read_until_wrong(*reader, voxels_.size(), ErrorKind::kBadStream), voxels_.size() / 4) << name;
    reader->rewind();
    EXPECT_GT(read_until_wrong(*reader, voxels_.size(), ErrorKind::kBadStream), voxels_.size() / 4) << name;
    // Cut off.
    save("x" + name, VolumeBytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() * 3 / 4)));
    reader = io::open_volume(path("x" + name), {});
    const std::uint64_t read = read_until_wrong(*reader, voxels_.size(), ErrorKind::kBadStream);
    EXPECT_GT(read, voxels_.size() / 2) << name;
    EXPECT_LT(read, voxels_.size()) << name;
    // More than is allowed, where it is reached.
    constexpr std::uint64_t kMost = 3'500'000;
    io::VolumeOptions options;
    options.limits.unpacked = kMost;
    reader = io::open_volume(path(name), options);
    const std::uint64_t allowed = read_until_wrong(*reader, voxels_.size(), ErrorKind::kUnsupported);
    EXPECT_LE(allowed, kMost) << name;
    EXPECT_GT(allowed, kMost / 2) << name;
    options.limits.unpacked = voxels_.size() + 1000;
    reader = io::open_volume(path(name), options);
    VolumeBytes all(voxels_.size());
    reader->read(all.data(), all.size());
    EXPECT_EQ(all, voxels_) << name;
  }
}

}  // namespace
}  // namespace trivelet
