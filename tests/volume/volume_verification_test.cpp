// Verification of an encoded volume detects a wrong coder state, a changing source and a stream that reads back
// differently.
#include "trivelet/volume.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>

#include "codec/backend.h"
#include "tests/support/volume_coding_support.h"

namespace trivelet {
namespace {

using test::Coded;
using test::decode;
using test::encode;
using test::expect_error;
using test::make_body;
using test::VolumeBytes;

/// Has something to keep, and may say something else when it is read again.
class OtherSlices final : public SliceSource {
 public:
  OtherSlices(const VolumeDescription& v, const VolumeBytes& voxels) : slices_(v, voxels.data()) {}
  const VolumeDescription& description() const override { return slices_.description(); }
  void read(std::byte* slice) override {
    slices_.read(slice);
    if (passes >= bad_pass) slice[0] ^= std::byte{1};
  }
  void rewind() override {
    ++passes;
    slices_.rewind();
  }
  std::vector<std::uint8_t> envelope() override {
    EXPECT_EQ(passes, 0);
    return {1, 2, 3, 0, 255};
  }
  int passes = 0;
  int bad_pass = 100;

 private:
  MemorySlices slices_;
};

TEST(VolumeVerification, the_envelope_passes_through_and_a_wrong_stream_does_not) {
  const VolumeDescription v{{VoxelType::kU8, false, 1}, 20, 20, 3, 1};
  const VolumeBytes voxels = make_body(v, 0, 200);
  for (const int bad : {100, 2}) {
    OtherSlices slices(v, voxels);
    slices.bad_pass = bad;
    MemorySink sink;
    MemoryReadBack again(sink);
    VolumeEncoderParams params;
    params.threads = 1;
    if (bad == 2) {
      expect_error(ErrorKind::kMismatch, "values differ", [&] { encode_volume(slices, params, sink, &again); });
      continue;
    }
    encode_volume(slices, params, sink, &again);
    EXPECT_EQ(decode(sink.bytes).info.envelope, (std::vector<std::uint8_t>{1, 2, 3, 0, 255}));
  }
}

/// The CPU's, with a byte of every 60 coded ones turned over: a coder in a wrong state.
class FaultyEncoder final : public GopEncoder {
 public:
  explicit FaultyEncoder(std::unique_ptr<GopEncoder> right) : right_(std::move(right)) {}
  int depth() const override { return right_->depth(); }
  void push(const Gop& gop, const GopChoices& choices) override { right_->push(gop, choices); }
  void push(CoefficientGop& coefficients, const GopChoices& choices) override { right_->push(coefficients, choices); }
  void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) override {
    right_->transform(gop, choices, out);
  }
  bool pull(CodedGop& out) override {
    if (!right_->pull(out)) return false;
    for (auto& component : out.components)
      for (CodedBlock& block : component.blocks)
        for (std::size_t i = block.bytes.size(); i > 100; i -= 60) block.bytes[i - 8] ^= 0x10;
    return true;
  }
  double seconds_transform() const override { return right_->seconds_transform(); }
  double seconds_coder() const override { return right_->seconds_coder(); }

 private:
  std::unique_ptr<GopEncoder> right_;
};

TEST(VolumeVerification, verifying_in_full_finds_a_wrong_coder) {
  const VolumeDescription v{{VoxelType::kI16, false, 1}, 40, 30, 8, 1};
  const VolumeBytes voxels = make_body(v, -100, 900);
  Backend faulty = cpu_backend();
  faulty.make_encoder = [](const StreamHeader& header, const BackendOptions& options) -> std::unique_ptr<GopEncoder> {
    return std::make_unique<FaultyEncoder>(cpu_backend().make_encoder(header, options));
  };
  for (const VolumeTransform transform : {VolumeTransform::kPrediction, VolumeTransform::kWavelet}) {
    VolumeEncoderParams params;
    params.transform = transform;
    params.threads = 1;
    EXPECT_TRUE(encode(v, voxels, params).result.verified);
    params.backend = [&faulty](Profile) { return &faulty; };
    MemorySlices slices(v, voxels.data());
    MemorySink sink;
    MemoryReadBack again(sink);
    expect_error(ErrorKind::kMismatch, "", [&] { encode_volume(slices, params, sink, &again); });
  }
}

/// Gives back other bytes than were written.
class WrongReadBack final : public ReadBack {
 public:
  explicit WrongReadBack(MemorySink& sink) : sink_(sink) {}
  std::unique_ptr<ByteSource> open() override {
    bytes_ = sink_.bytes;
    bytes_[bytes_.size() / 2] ^= std::byte{1};
    return std::make_unique<MemorySource>(bytes_.data(), bytes_.size());
  }
  void replace(std::uint64_t, const void*, std::size_t) override { ADD_FAILURE() << "a wrong stream was finished"; }

 private:
  MemorySink& sink_;
  std::vector<std::byte> bytes_;
};

TEST(VolumeVerification, verifying_while_coding_finds_what_it_says) {
  for (const double max_error : {0.0, 3.0}) {
    const VolumeDescription v{{VoxelType::kI16, true, 1}, 40, 30, 8, 3};
    const VolumeBytes voxels = make_body(v, -100, 900);
    VolumeEncoderParams params;
    params.threads = 1;
    params.max_error = max_error;
    const Coded full = encode(v, voxels, params);
    params.verification = VolumeVerify::kRunning;
    const Coded running = encode(v, voxels, params);
    EXPECT_TRUE(running.result.verified && running.bytes == full.bytes);
    EXPECT_EQ(running.result.cuts, full.result.cuts);
    EXPECT_EQ(running.result.cuts.cuts.size(), 1u);

    OtherSlices changing(v, voxels);
    changing.bad_pass = 1;
    MemorySink sink;
    MemoryReadBack again(sink);
    expect_error(ErrorKind::kMismatch, "other values when it was read again",
                 [&] { encode_volume(changing, params, sink, &again); });
    MemorySlices slices(v, voxels.data());
    MemorySink other;
    WrongReadBack wrong(other);
    expect_error(ErrorKind::kMismatch, "reads back as something else",
                 [&] { encode_volume(slices, params, other, &wrong); });
  }
}

// With static contexts, large blocks are coded as labels first, and as numbers where these do not plainly take more.
TEST(VolumeVerification, labels_beside_a_scan_come_back) {
  const VolumeDescription v{{VoxelType::kU8, false, 1}, 256, 128, 36, 1};
  std::mt19937 random(3);
  VolumeBytes voxels;
  for (int z = 0; z < 36; ++z)
    for (int y = 0; y < v.height; ++y)
      for (int x = 0; x < v.width; ++x) {
        const int ball = (x - 40) * (x - 40) + (y - 60) * (y - 60) + 4 * (z - 18) * (z - 18) < 1500 ? 3 : 1;
        const int region = ball * (1 + (x / 24 + y / 40 + z / 12) % 7);
        const int scan = x / 2 + y / 3 + static_cast<int>(random() % 9);
        voxels.push_back(static_cast<std::byte>(x < 128 ? 10 * region : scan));
      }
  VolumeEncoderParams params;
  params.effort = VolumeEffort::kFast;
  params.profile = Profile::kFast;
  params.verification = VolumeVerify::kRunning;
  std::string remarks;
  params.on_remark = [&](const std::string& remark) { remarks += remark + "\n"; };
  const Coded coded = encode(v, voxels, params);
  EXPECT_NE(remarks.find("chosen: labels"), std::string::npos) << remarks;
  EXPECT_TRUE(coded.result.verified);
  EXPECT_EQ(decode(coded.bytes).voxels, voxels);
  // Of the scan's voxels, each of more than three bits of noise, labels would take many more.
  EXPECT_LT(coded.bytes.size(), voxels.size() / 2 * 4 / 8 + 10000);
}

}  // namespace
}  // namespace trivelet
