// Volumes through the public header and through the program (its path is in TRIVELET_PROGRAM): the same stream bytes
// and the same voxels, whole and in parts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "io/volume/volume_io.h"
#include "tests/support/volume_support.h"
#include "trivelet/volume.h"

namespace trivelet {
namespace {

namespace fs = std::filesystem;
using test::Content;
using test::VolumeBytes;

/// What is typed, and the same in the library's words.
struct Options {
  const char* typed;
  std::function<void(VolumeEncoderParams&)> set;
};
const Options kOptions[] = {
    {"", [](VolumeEncoderParams&) {}},
    {"--preset fast",
     [](VolumeEncoderParams& p) {
       p.effort = VolumeEffort::kFast;
       p.profile = Profile::kFast;
     }},
    {"--preset slow", [](VolumeEncoderParams& p) { p.effort = VolumeEffort::kSlow; }},
    {"--transform prediction", [](VolumeEncoderParams& p) { p.transform = VolumeTransform::kPrediction; }},
    {"--transform wavelet --slab 3",
     [](VolumeEncoderParams& p) {
       p.transform = VolumeTransform::kWavelet;
       p.slab = 3;
     }},
    {"--max-error 0.125 --block-size 32",
     [](VolumeEncoderParams& p) {
       p.max_error = 0.125;
       p.block_size = 32;
     }},
    {"-q 70", [](VolumeEncoderParams& p) { p.quality = 70; }},
    {"--psnr 45 --layers 3",
     [](VolumeEncoderParams& p) {
       p.psnr = 45;
       p.layers = 3;
     }},
    {"--bpp 3", [](VolumeEncoderParams& p) { p.bits_per_voxel = 3; }},
    {"--levels 1x2 --wavelet haar",
     [](VolumeEncoderParams& p) {
       p.depth_levels = 1;
       p.slice_levels = 2;
       p.slice_wavelet = Wavelet::kHaar;
     }},
    {"--gop 4 --profile fast --lossless",
     [](VolumeEncoderParams& p) {
       p.slab = 4;
       p.layout = Layout::kDyadic;
       p.profile = Profile::kFast;
     }},
};

class ReaderSlices final : public SliceSource {
 public:
  explicit ReaderSlices(io::VolumeReader& reader) : reader_(reader) {}
  const VolumeDescription& description() const override { return reader_.info(); }
  void read(std::byte* slice) override { reader_.read(slice, description().slice_bytes()); }
  void rewind() override { reader_.rewind(); }
  std::vector<std::uint8_t> envelope() override { return serialise(reader_.envelope()); }

 private:
  io::VolumeReader& reader_;
};

class VolumeProgram : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("trivelet_volume_program_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  VolumeBytes load(const std::string& name) const {
    VolumeBytes bytes(fs::file_size(path(name)));
    std::ifstream(path(name), std::ios::binary)
        .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }
  static void run(const std::string& command) {
    const std::string line = std::string("'") + TRIVELET_PROGRAM + "' " + command + " -y -t 1 --quiet";
    ASSERT_EQ(std::system(line.c_str()), 0) << line;
  }

  fs::path folder_;
};

VolumeBytes decode(const VolumeBytes& stream, const VolumeDecoderParams& params) {
  MemorySource source(stream.data(), stream.size());
  VolumeDecoder decoder(source, params);
  VolumeBytes slice(decoder.output().slice_bytes());
  VolumeBytes voxels;
  while (decoder.read(slice.data())) voxels.insert(voxels.end(), slice.begin(), slice.end());
  return voxels;
}

TEST_F(VolumeProgram, gives_the_same_streams_and_voxels) {
  for (int i = 0; i < 2 * kVoxelTypes; ++i) {
    const Options& options = kOptions[static_cast<std::size_t>(i) % std::size(kOptions)];
    io::VolumeInfo info;
    info.voxel = {static_cast<VoxelType>(i % kVoxelTypes), i >= kVoxelTypes, i % 4 + 1};
    info.width = 23;
    info.height = 17;
    info.slices = 6;
    info.volumes = i % 3 == 2 ? 4 : 1;
    const bool predicted = std::string(options.typed).find("prediction") != std::string::npos;
    if (predicted) info.voxel.channels = 2;
    SCOPED_TRACE(to_string(info.voxel.type) + " x" + std::to_string(info.voxel.channels) + ", " + options.typed);
    const VolumeBytes voxels =
        make_scalars(Content::kMultiples, info.voxel, static_cast<std::size_t>(info.voxels()), 1);
    io::VolumeWriter writer(io::make_envelope(info, "nrrd"), path("in.nrrd"), true);
    writer.write(voxels.data(), voxels.size());
    writer.finish();
    run("encode " + path("in.nrrd") + " " + path("out.tvl") + " " + options.typed);
    run("decode " + path("out.tvl") + " " + path("whole.raw"));
    run("decode " + path("out.tvl") + " " + path("part.raw") + " --region 3,5,1,17,9,4");
    if (HasFatalFailure()) return;

    const VolumeBytes stream = load("out.tvl");
    VolumeEncoderParams params;
    params.threads = 1;
    options.set(params);
    MemorySource written(stream.data(), stream.size());
    params.settings = Decoder(written, {}).info().settings;  // what was typed
    const auto reader = io::open_volume(path("in.nrrd"), {});
    ReaderSlices slices(*reader);
    MemorySink sink;
    MemoryReadBack again(sink);
    const VolumeResult result = encode_volume(slices, params, sink, &again);
    EXPECT_EQ(sink.bytes, stream);
    EXPECT_EQ(decode(stream, {}), load("whole.raw"));
    if (result.exact()) {
      EXPECT_EQ(load("whole.raw"), voxels);
    }
    VolumeDecoderParams part;
    part.region = VoxelRegion{3, 5, 1, 17, 9, 4};
    EXPECT_EQ(decode(stream, part), load("part.raw"));
  }
}

}  // namespace
}  // namespace trivelet
