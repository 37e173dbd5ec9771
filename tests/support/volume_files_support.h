// Volume files for tests: a folder of them, reading and writing back.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/volume/volume_io.h"
#include "tests/support/volume_support.h"

namespace trivelet::test {

namespace fs = std::filesystem;

inline VolumeBytes operator+(VolumeBytes a, const VolumeBytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline VolumeBytes bytes(const std::string& text) {
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

class VolumeFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("trivelet_volume_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "again");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void save(const std::string& name, const VolumeBytes& bytes) const {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void save(const std::string& name, const std::string& text) const {
    save(name, VolumeBytes(reinterpret_cast<const std::byte*>(text.data()),
                           reinterpret_cast<const std::byte*>(text.data()) + text.size()));
  }
  VolumeBytes load(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    return VolumeBytes(reinterpret_cast<const std::byte*>(text.data()),
                       reinterpret_cast<const std::byte*>(text.data()) + text.size());
  }

  /// Reads a volume twice, and restores its files from what a stream would hold.
  struct Passed {
    io::VolumeInfo info;
    VolumeBytes voxels;
    std::vector<std::string> remarks;
  };
  Passed pass(const std::string& name, const std::string& again, const io::VolumeOptions& options = {}) const {
    const auto reader = io::open_volume(path(name), options);
    Passed p;
    p.info = reader->info();
    p.remarks = reader->remarks();
    p.voxels.resize(static_cast<std::size_t>(p.info.voxels()) * p.info.voxel.bytes());
    reader->read(p.voxels.data(), p.voxels.size() / 3);
    reader->rewind();
    for (std::size_t at = 0; at < p.voxels.size();) {
      const std::size_t n = std::min<std::size_t>(p.voxels.size() - at, 1 + at % 700);
      reader->read(p.voxels.data() + at, n);
      at += n;
    }
    const auto packed = serialise(reader->envelope());
    const io::Envelope envelope = io::parse_envelope(packed.data(), packed.size());
    if (envelope.format != "raw") {
      const io::VolumeInfo said = io::volume_info(envelope);
      EXPECT_EQ(said.width, p.info.width);
      EXPECT_EQ(said.height, p.info.height);
      EXPECT_EQ(said.slices, p.info.slices);
      EXPECT_EQ(said.volumes, p.info.volumes);
      EXPECT_EQ(said.voxel, p.info.voxel);
      EXPECT_EQ(said.affine, p.info.affine);
      EXPECT_EQ(said.slope, p.info.slope);
    }
    io::VolumeWriter writer(envelope, path("again/" + again), false);
    for (std::size_t at = 0; at < p.voxels.size();) {
      const std::size_t n = std::min<std::size_t>(p.voxels.size() - at, 1 + at % 333);
      writer.write(p.voxels.data() + at, n);
      at += n;
    }
    writer.finish();
    return p;
  }
  void expect_same(const std::string& name) const { EXPECT_EQ(load(name), load("again/" + name)) << name; }

  fs::path folder_;
};

}  // namespace trivelet::test
