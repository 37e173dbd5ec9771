// Failures of the system at every place: the n-th allocation, thread, read, write, fsync and rename fails, for n = 1,
// 2, 3 … until nothing is left to fail (a sample of n; all with TRIVELET_FULL=1). Covers encoding, decoding and cutting
// of streams, volumes and their files. The result is an error or the whole output, never half a file, and an existing
// file stays unchanged. Sanitizers find no leaks.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>

#include "io/volume/volume_io.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"
#include "trivelet/edit.h"
#include "trivelet/volume.h"

namespace {

enum Fault { kAllocation, kThread, kRead, kWrite, kSync, kRename, kFaults };
constexpr const char* kNames[kFaults] = {"allocation", "thread", "read", "write", "fsync", "rename"};

std::atomic<int> armed{-1};      // which fails; -1: none
std::atomic<long> countdown{0};  // 1: the next one fails
std::atomic<bool> fired{false};

bool fails(Fault fault) {
  if (armed.load(std::memory_order_relaxed) != fault) return false;
  if (countdown.fetch_sub(1) != 1) return false;
  fired = true;
  return true;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (fails(kAllocation)) throw std::bad_alloc();
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(size > 0 ? size : 1)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

/// Not inlined, where the compiler would think of another allocator.
[[gnu::noinline]] void give_back(void* p) { std::free(p); }

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void* operator new(std::size_t n) { return allocate(n, 0); }
void* operator new[](std::size_t n) { return allocate(n, 0); }
// What can do without (std::stable_sort) asks like this.
void* operator new(std::size_t n, const std::nothrow_t&) noexcept try {
  return allocate(n, 0);
} catch (const std::bad_alloc&) {
  return nullptr;
}
void* operator new(std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return allocate(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }

// What the libraries call, before the system's own.
extern "C" {
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  static auto* const next = real<decltype(pthread_create)>("pthread_create");
  return fails(kThread) ? EAGAIN : next(thread, attributes, run, argument);
}
ssize_t read(int file, void* data, std::size_t size) {
  static auto* const next = real<decltype(read)>("read");
  if (!fails(kRead)) return next(file, data, size);
  errno = EIO;
  return -1;
}
ssize_t pread(int file, void* data, std::size_t size, off_t at) {
  static auto* const next = real<decltype(pread)>("pread");
  if (!fails(kRead)) return next(file, data, size, at);
  errno = EIO;
  return -1;
}
ssize_t write(int file, const void* data, std::size_t size) {
  static auto* const next = real<decltype(write)>("write");
  if (!fails(kWrite)) return next(file, data, size);
  errno = ENOSPC;
  return -1;
}
ssize_t pwrite(int file, const void* data, std::size_t size, off_t at) {
  static auto* const next = real<decltype(pwrite)>("pwrite");
  if (!fails(kWrite)) return next(file, data, size, at);
  errno = ENOSPC;
  return -1;
}
int fsync(int file) {
  static auto* const next = real<decltype(fsync)>("fsync");
  if (!fails(kSync)) return next(file);
  errno = EIO;
  return -1;
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static auto* const next = real<int(int, const char*, int, const char*, unsigned)>("renameat2");
  if (!fails(kRename)) return next(from_folder, from, to_folder, to, flags);
  errno = EACCES;
  return -1;
}
int rename(const char* from, const char* to) noexcept {
  static auto* const next = real<int(const char*, const char*)>("rename");
  if (!fails(kRename)) return next(from, to);
  errno = EACCES;
  return -1;
}
}

namespace trivelet {
namespace {

namespace fs = std::filesystem;
using namespace test;

std::string content_of(const fs::path& path) {
  std::string bytes(fs::exists(path) ? static_cast<std::size_t>(fs::file_size(path)) : 0, 0);
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

void put(const fs::path& path, const void* data, std::size_t size) {
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("trivelet_faults_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    output_ = folder_ / "output";
    EncoderParams p = params();
    clip_ = make_clip(video(24, 20, "yuv420p"), 6, 3, Pattern::kTexture, 5);
    const std::vector<std::byte> stream = encode(clip_, p);
    put(folder_ / "input", stream.data(), stream.size());
    const std::vector<std::byte> moving = encode(clip_, with_motion());
    put(folder_ / "motion", moving.data(), moving.size());
    MemorySource source(moving.data(), moving.size());
    ASSERT_TRUE(probe(source).motion);
    shape_ = {{VoxelType::kI16}, 9, 8, 5, 1};
    for (std::size_t i = 0; i < shape_.bytes(); ++i) voxels_.push_back(static_cast<std::byte>(i % 3 * (i & 1)));
  }
  void TearDown() override { fs::remove_all(folder_); }

  static EncoderParams params() {
    EncoderParams p;
    p.motion = Motion::kOff;
    p.gop_frames = 3;
    p.block_size = 32;
    p.layers = 2;
    p.threads = 3;
    return p;
  }

  static EncoderParams with_motion() {
    EncoderParams p = params();
    p.profile = Profile::kDense;
    p.motion = Motion::kOn;
    p.layers = 1;
    return p;
  }

  /// Runs `work`, which writes output_ (or nothing), with every fault at every place.
  void fail_everywhere(const std::function<void()>& work, bool writes) {
    work();
    const std::string whole = writes ? content_of(output_) : "";
    const std::string old = "what stood there before";
    const bool all = test::full();
    for (int fault = 0; fault < kFaults; ++fault) {
      long refused = 0;
      long n = 1;
      for (; n < 1'000'000; n += all ? 1 : 1 + n / 8) {
        if (writes) put(output_, old.data(), old.size());
        std::string error;
        fired = false;
        countdown = n;
        armed = fault;
        try {
          work();
        } catch (const Error& e) {
          error = e.what();
        } catch (const std::bad_alloc&) {
          error = "out of memory";
        }
        armed = -1;
        if (!error.empty()) ++refused;
        const std::string where = std::string(kNames[fault]) + " " + std::to_string(n) + ": " + error;
        EXPECT_TRUE(fired || error.empty()) << where;
        if (writes) {
          const std::string now = content_of(output_);
          // After the rename only the folder's fsync can fail: the new file is there.
          if (error.empty()) {
            EXPECT_EQ(now, whole) << where;
          } else {
            EXPECT_TRUE(now == old || (fault == kSync && now == whole)) << where << ", " << now.size() << " bytes";
          }
          EXPECT_FALSE(fs::exists(output_.string() + ".part")) << where;
        }
        if (!fired || ::testing::Test::HasFailure()) break;
      }
      if (n > 1 && fault != kThread) {
        EXPECT_GT(refused, fault == kAllocation ? 10 : 0) << kNames[fault];
      }
    }
  }

  fs::path folder_, output_;
  Clip clip_;
  VolumeDescription shape_;
  std::vector<std::byte> voxels_;
};

// Eight threads are the least that have lanes.
TEST_F(Faults, Encoding) {
  for (const auto& [threads, target] : {std::pair{3, false}, {3, true}, {8, false}})
    fail_everywhere(
        [&, threads = threads, target = target] {
          EncoderParams p = params();
          p.threads = threads;
          if (target) p.target_bytes = 1500;
          FileSink sink(output_.string(), true);
          Encoder encoder(clip_.info, p, sink);
          for (const Gop& g : clip_.gops) encoder.push(g);
          encoder.finish();
          sink.commit();
        },
        true);
}

TEST_F(Faults, EncodingMotion) {
  fail_everywhere(
      [&] {
        FileSink sink(output_.string(), true);
        Encoder encoder(clip_.info, with_motion(), sink);
        for (const Gop& g : clip_.gops) encoder.push(g);
        encoder.finish();
        sink.commit();
      },
      true);
}

TEST_F(Faults, Decoding) {
  for (const auto& [name, threads] : {std::pair{"input", 3}, {"motion", 3}, {"input", 8}})
    fail_everywhere(
        [&, name = name, threads = threads] {
          FileSource source((folder_ / name).string());
          DecoderParams p;
          p.threads = threads;
          Decoder decoder(source, p);
          Gop gop = decoder.make_gop();
          int gops = 0;
          while (decoder.pull(gop)) ++gops;
          require(gops == 2, ErrorKind::kInternal, "a GOP is missing");
        },
        false);
}

// After a failure for lack of memory a second call reports the same, not damage of a good stream.
template <class Open>
void fail_again(const Open& open) {
  int failed = 0;
  for (long n = 1; n < 1'000'000; n += 1 + n / 8) {
    const auto reader = open();
    fired = false;
    countdown = n;
    armed = kAllocation;
    bool threw = false;
    try {
      while (reader->read()) {
      }
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    armed = -1;
    if (!fired) break;
    if (!threw) continue;  // it could do without
    ++failed;
    EXPECT_THROW(reader->read(), std::bad_alloc) << "allocation " << n;
  }
  EXPECT_GT(failed, 3);
}

struct OpenFilm {
  OpenFilm(const std::string& path, const DecoderParams& p)
      : source(path), decoder(source, p), gop(decoder.make_gop()) {}
  bool read() { return decoder.pull(gop); }
  FileSource source;
  Decoder decoder;
  Gop gop;
};

struct OpenVolume {
  OpenVolume(const std::vector<std::byte>& stream, const VolumeDecoderParams& p)
      : source(stream.data(), stream.size()), decoder(source, p), slice(decoder.output().slice_bytes()) {}
  bool read() { return decoder.read(slice.data()); }
  MemorySource source;
  VolumeDecoder decoder;
  std::vector<std::byte> slice;
};

TEST_F(Faults, WhatFailedFailsAgain) {
  MemorySlices slices(shape_, voxels_.data());
  MemorySink stream;
  VolumeEncoderParams p;
  p.slab = 2;
  p.verify = false;
  encode_volume(slices, p, stream, nullptr);
  for (const int threads : {1, 3}) {
    DecoderParams film_params;
    VolumeDecoderParams volume_params;
    film_params.threads = volume_params.threads = threads;
    fail_again([&] { return std::make_unique<OpenFilm>((folder_ / "input").string(), film_params); });
    fail_again([&] { return std::make_unique<OpenVolume>(stream.bytes, volume_params); });
  }
}

TEST_F(Faults, Truncating) {
  const auto size = fs::file_size(folder_ / "input");
  RewriteParams smaller, extracted;
  smaller.target_bytes = size * 9 / 10;
  extracted.reduce = 1;
  for (const char* name : {"input", "motion"})
    fail_everywhere(
        [&] {
          FileSource source((folder_ / name).string());
          FileSink sink(output_.string(), true);
          rewrite(source, name == std::string("input") ? smaller : extracted, sink);
          sink.commit();
        },
        true);
}

// Each with a coder of its own: contexts known a row ahead, contexts of the row itself, and the wavelet.
TEST_F(Faults, Volumes) {
  const auto of = [&](VolumeEffort effort, std::optional<VolumeTransform> transform) {
    VolumeEncoderParams p;
    p.threads = 2;
    p.block_size = 32;
    p.effort = effort;
    p.transform = transform;
    return p;
  };
  for (const VolumeEncoderParams& p :
       {of(VolumeEffort::kFast, VolumeTransform::kPrediction), of(VolumeEffort::kMedium, VolumeTransform::kPrediction),
        of(VolumeEffort::kMedium, VolumeTransform::kWavelet)})
    fail_everywhere(
        [&] {
          MemorySlices slices(shape_, voxels_.data());
          MemorySink stream;
          MemoryReadBack again(stream);
          encode_volume(slices, p, stream, &again);
          MemorySource source(stream.bytes.data(), stream.bytes.size());
          VolumeDecoderParams decoding;
          decoding.threads = 2;
          VolumeDecoder decoder(source, decoding);
          std::vector<std::byte> got(shape_.bytes());
          for (std::uint64_t z = 0; z < shape_.slices; ++z)
            require(decoder.read(got.data() + z * shape_.slice_bytes()), ErrorKind::kInternal, "a slice is missing");
          require(got == voxels_, ErrorKind::kInternal, "other voxels");
        },
        false);
}

TEST_F(Faults, FilesOfVolumes) {
  const std::string input = (folder_ / "volume.nrrd").string();
  std::string file = "NRRD0004\ntype: int16\ndimension: 3\nsizes: 9 8 5\nendian: little\nencoding: raw\n\n";
  file.append(reinterpret_cast<const char*>(voxels_.data()), voxels_.size());
  put(input, file.data(), file.size());
  fail_everywhere(
      [&] {
        const auto reader = io::open_volume(input, io::VolumeOptions{});
        std::vector<std::byte> voxels(reader->info().bytes());
        reader->read(voxels.data(), voxels.size());
        io::VolumeWriter writer(reader->envelope(), output_.string(), true);
        writer.write(voxels.data(), voxels.size());
        writer.finish();
      },
      true);
}

}  // namespace
}  // namespace trivelet
