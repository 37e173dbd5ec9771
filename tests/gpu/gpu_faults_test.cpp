// Failures of the CUDA runtime in the emulation. Each call and launch fails in turn: once, like out of memory, and for
// ever after, like a lost device. n = 1, 2, 3 … until nothing is left to fail (a sample of n; all with
// TRIVELET_FULL=1), while streams and stills are coded and decoded. The result is an error that names the call, or the
// whole output. An existing file stays unchanged, all resources are returned, and an object that failed gives errors or
// correct samples afterwards.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "codec/threads/parallel.h"
#include "gpu/device/device.h"
#include "gpu/still/ccsds122.h"
#include "gpu/still/dct.h"
#include "gpu/still/vstc.h"
#include "tests/support/one_of.h"
#include "tests/support/still_support.h"
#include "tests/support/support.h"
#include "trivelet/cuda.h"
#include "trivelet/volume.h"

namespace trivelet {
namespace {

namespace fs = std::filesystem;
using namespace test;
using gpu::cuda_backend;

enum class Device { kFull, kLost };

class GpuFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("trivelet_gpu_faults_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    output_ = folder_ / "output";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string content() const {
    std::ifstream in(output_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& text) const { std::ofstream(output_, std::ios::binary) << text; }

  /// Runs `work`, which writes output_, with every call failing in turn.
  void fail_everywhere(const std::function<void()>& work) {
    const long before = emu::handed_out;
    work();
    ASSERT_EQ(emu::handed_out, before);
    const std::string whole = content(), old = "what stood there before";
    ++cases_;
    int refused = 0;  // by either device: many a call for memory is for a search or a slot that may be missing
    for (const Device device : {Device::kFull, Device::kLost}) {
      const unsigned first = full() ? 1 : 1 + cases_ % 3;
      long n = first;
      for (;; n += full() ? 1 : 1 + 2 * n) {
        put(old);
        std::string error;
        emu::failing.call = nullptr;
        emu::failing.error = device == Device::kFull ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure;
        emu::failing.lost = device == Device::kLost;
        emu::failing.countdown = n;
        ::alarm(100);  // ends a hanging test
        try {
          work();
        } catch (const Error& e) {
          error = e.what();
          const bool none = error.find("no GPU") != std::string::npos;
          EXPECT_EQ(e.kind(), device == Device::kFull || none ? ErrorKind::kUnsupported : ErrorKind::kInternal)
              << error;
        }
        ::alarm(0);
        const char* call = emu::failing.call;
        const std::string where = (device == Device::kFull ? "out of memory, call " : "lost, call ") +
                                  std::to_string(n) + ", " + (call ? call : "none") + ": " + error;
        emu::failing.countdown = 0;
        emu::failing.lost = false;
        // Of a device that is lost every call says so, also to those who have not heard yet.
        if (device == Device::kLost) (void)cudaGetLastError();
        EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "left for the next one: " << where;
        EXPECT_EQ(emu::handed_out, before) << where;
        EXPECT_FALSE(fs::exists(output_.string() + ".part")) << where;
        if (error.empty()) {
          EXPECT_EQ(content(), whole) << where;
        } else {
          ++refused;
          ASSERT_NE(call, nullptr) << where;
          // A call that only queries may fail without effect; a lost device fails the next one. Without a driver there
          // is no GPU.
          EXPECT_TRUE(error.find(call) != std::string::npos ||
                      (std::string(call) == "cudaGetDeviceCount" && error.find("no GPU") != std::string::npos) ||
                      (device == Device::kLost && error.find("cudaErrorLaunchFailure") != std::string::npos))
              << where;
          EXPECT_EQ(content(), old) << where;
        }
        if (!call || HasFailure()) break;
      }
    }
    EXPECT_GT(refused, full() ? 40 : 2);
    emu::failing.call = nullptr;
  }

  void write(const std::vector<std::byte>& bytes) const {
    FileSink sink(output_.string(), true);
    sink.write(bytes.data(), bytes.size());
    sink.commit();
  }

  fs::path folder_, output_;
  static inline unsigned cases_ = 0;  ///< not the same failures in each of them
};

EncoderParams params(Profile profile) {
  EncoderParams p;
  p.motion = Motion::kOff;
  p.profile = profile;
  p.gop_frames = 2;
  p.temporal_levels = 1;
  p.spatial_levels = 2;
  p.block_size = 32;
  p.layers = 2;
  p.threads = 2;
  p.measure_errors = false;
  return p;
}

struct Kind {
  const char* name;
  EncoderParams params;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all = {{"fast", params(Profile::kFast)},     {"dense_lossless", params(Profile::kDense)},
                           {"motion", params(Profile::kDense)},  {"dense", params(Profile::kDense)},
                           {"lossless", params(Profile::kFast)}, {"target", params(Profile::kFast)}};
  all[1].params.lossless = all[4].params.lossless = true;
  all[2].params.motion = Motion::kAuto;
  all[2].params.measure_errors = true;
  all[5].params.target_bytes = 700;
  if (!full()) all.resize(3, all[0]);
  return all;
}

class GpuFaultsOf : public GpuFaults, public ::testing::WithParamInterface<Kind> {
 protected:
  // Three GOPs and a shorter one, so that slots are made, reused and made again.
  Clip clip_ = make_clip(video(12, 10, "gray"), 7, 2, Pattern::kTexture, 5);
};

TEST_P(GpuFaultsOf, Encoding) {
  fail_everywhere([&] {
    const auto cuda = cuda_backend(0, 0);
    FileSink sink(output_.string(), true);
    Encoder encoder(clip_.info, GetParam().params, sink, cuda.get());
    try {
      for (const Gop& g : clip_.gops) {
        Gop locked = encoder.make_gop();
        locked.set_frames(g.frames());
        std::memcpy(locked.plane(0).data, g.plane(0).data, g.plane(0).shape.samples());
        std::copy(g.times().begin(), g.times().end(), locked.times().begin());
        encoder.push(locked);
      }
      encoder.finish();
    } catch (const Error&) {
      try {  // a caller that goes on after an error
        encoder.push(clip_.gops[0]);
        encoder.finish();
      } catch (const Error&) {
      }
      throw;
    }
    sink.commit();
  });
}

// Where GOPs are coded on a GPU, errors are measured by a thread beside the one that pushes, which with one thread is the
// only other one that has work of the caller's.
TEST(Interruption, ReachesTheThreadThatMeasuresErrors) {
  struct Interrupted {};
  const Clip clip = make_clip(video(12, 10, "gray"), 7, 2, Pattern::kTexture, 5);
  EncoderParams p = params(Profile::kDense);
  p.threads = 1;
  p.measure_errors = true;
  p.workers.check = [caller = std::this_thread::get_id()] {
    if (std::this_thread::get_id() != caller) throw Interrupted();
  };
  const auto cuda = cuda_backend(0, 0);
  MemorySink sink;
  Encoder encoder(clip.info, p, sink, cuda.get());
  const auto encode = [&] {
    for (const Gop& g : clip.gops) encoder.push(g);
    encoder.finish();
  };
  EXPECT_THROW(encode(), Interrupted);
}

TEST_P(GpuFaultsOf, Decoding) {
  const std::vector<std::byte> stream = encode(clip_, GetParam().params);
  const std::vector<Gop> right = decode(stream, {});
  for (const bool keep_partial : {false, true}) {
    if (!full() && keep_partial != (GetParam().params.profile == Profile::kFast)) continue;
    fail_everywhere([&] {
      const auto cuda = cuda_backend(0, 0);
      MemorySource source(stream.data(), stream.size());
      DecoderParams p;
      p.threads = 2;
      p.keep_partial = keep_partial;
      Decoder decoder(source, p, cuda.get());
      Gop gop = decoder.make_gop();
      std::size_t pulled = 0;
      const auto pull = [&] {
        while (decoder.pull(gop)) {
          require(pulled < right.size() && gop.times()[0].pts == right[pulled].times()[0].pts, ErrorKind::kInternal,
                  "another GOP");
          require(compare(gop, right[pulled]).largest == 0, ErrorKind::kInternal, "other samples");
          ++pulled;
        }
      };
      try {
        pull();
      } catch (const Error& first) {
        for (int again = 0; again < 3; ++again) {
          try {
            pull();
            FAIL() << "after '" << first.what() << "' it ends as if all were well";
          } catch (const Error& e) {
            EXPECT_EQ(std::string(e.what()), first.what());
          }
        }
        throw;
      }
      require(pulled == right.size() && decoder.stats().damaged_gops == 0, ErrorKind::kInternal, "a GOP is missing");
      write(stream);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuFaultsOf, ::testing::ValuesIn(kinds()),
                         [](const auto& of) { return std::string(of.param.name); });

TEST_F(GpuFaults, Ccsds) {
  const still::Image image = picture(24, 17, ColourModel::kGrey, 8, 0);
  VolumeView view;
  view.data = image.samples.data();
  view.shape = {1, 17, 24};
  view.bytes_per_sample = 1;
  view.row_stride = 24;
  fail_everywhere([&] {
    ThreadPool pool(1);
    gpu::Ccsds122Codec codec(0);
    const std::vector<std::byte> bytes = codec.encode(view, {}, pool).bytes;
    const auto decoded = codec.decode(bytes, {}, pool);
    require(decoded.width == 24 && decoded.height == 17, ErrorKind::kInternal, "another picture");
    write(bytes);
  });
}

TEST_F(GpuFaults, BatchOfVolumes) {
  const VolumeDescription volume{.voxel = {VoxelType::kI16}, .width = 10, .height = 9, .slices = 5};
  std::vector<std::int16_t> voxels(volume.voxels());
  for (std::size_t i = 0; i < voxels.size(); ++i) voxels[i] = static_cast<std::int16_t>(i * 7 % 90);
  VolumeEncoderParams p;
  p.transform = VolumeTransform::kWavelet;
  p.effort = VolumeEffort::kFast;
  p.profile = Profile::kFast;
  p.verify = false;
  p.slab = 2;
  p.layers = 1;
  p.threads = 1;
  fail_everywhere([&] {
    gpu::VolumeEncodeBatch batch(0, 0);
    MemorySink streams[2];
    for (MemorySink& stream : streams) {  // the second by the encoder of the first
      VolumeResult result;
      require(batch.encode(volume, voxels.data(), p, {}, stream, nullptr, result), ErrorKind::kInternal, "refused");
    }
    require(streams[0].bytes == streams[1].bytes, ErrorKind::kInternal, "another stream");
    write(streams[0].bytes);
  });
}

TEST_F(GpuFaults, Vstc) {
  const still::Image image = picture(4, 4, ColourModel::kGrey, 8, 0);
  fail_everywhere([&] {
    write(
        vstc::encode_waves(image, {.qp = 27, .log2_block = 4, .effort = vstc::Effort::kFast}, gpu::make_vstc_search(0))
            .bytes);
  });
}

TEST_F(GpuFaults, Dct) {
  const still::Image image = picture(9, 6, ColourModel::kGrey, 8, 0);
  fail_everywhere([&] {
    const auto transform = gpu::make_dct_transform(0);
    const std::vector<std::byte> bytes = dct::encode(image, {.qp = 12}, *transform);
    require(dct::decode(bytes, {}, *transform).width == 9, ErrorKind::kInternal, "another picture");
    write(bytes);
  });
}

}  // namespace
}  // namespace trivelet
