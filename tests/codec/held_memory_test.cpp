// What a decoder holds at once, of which there is little where memory is never given back (WebAssembly): GOPs of other
// lengths use the same memory.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/support/support.h"
#include "trivelet/codec.h"

namespace {
std::atomic<std::size_t> held{0};
std::atomic<std::size_t> most_held{0};

void* counted(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  const std::size_t now = held += malloc_usable_size(p);
  if (now > most_held) most_held = now;
  return p;
}
}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t a) {
  const auto unit = static_cast<std::size_t>(a);
  return counted(std::aligned_alloc(unit, (size + unit - 1) / unit * unit));
}
void operator delete(void* p) noexcept {
  if (p != nullptr) held -= malloc_usable_size(p);
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { operator delete(p); }

namespace trivelet {
namespace {

using namespace test;

constexpr std::size_t kMiB = std::size_t{1} << 20;

DecoderParams one_by_one(std::uint64_t first_frame = 0) {
  DecoderParams p;
  p.first_frame = first_frame;
  p.threads = 1;
  p.reads_ahead = false;
  return p;
}

// The most that is held while f() runs, beyond what is held before.
template <class F>
std::size_t most_during(const F& f) {
  const std::size_t before = held;
  most_held = before;
  f();
  return most_held - before;
}

// GOPs of 33 and then of 21 frames of 1080p: luma in fewer strips, chroma in none.
TEST(Memory, StaysForShorterGops) {
  const VideoInfo info = video(1920, 1080, "yuv420p", 54);
  EncoderParams p;
  p.profile = Profile::kFast;
  p.motion = Motion::kOff;
  p.gop_frames = 33;
  p.threads = 2;
  MemorySink sink;
  {
    Encoder encoder(info, p, sink);
    Gop gop(info, 33);
    for (const int frames : {33, 21}) {
      gop.set_frames(frames);
      for (int c = 0; c < gop.components(); ++c) {
        const MutableVolumeView v = gop.plane(c);
        for (int f = 0; f < frames; ++f)
          for (int y = 0; y < v.shape.height; ++y)
            for (int x = 0; x < v.shape.width; ++x) v.row(f, y)[x] = static_cast<std::byte>(((x + y) >> 3) + f);
      }
      encoder.push(gop);
    }
    encoder.finish();
  }
  MemorySource source(sink.bytes.data(), sink.bytes.size());
  Decoder decoder(source, one_by_one());
  Gop gop = decoder.make_gop();
  const std::size_t before = held;
  const std::size_t first = most_during([&] { ASSERT_TRUE(decoder.pull(gop)); });
  EXPECT_LT(first, 100 * kMiB) << "60 MiB for a strip, 16 for low rows, and what is not zero";
  const std::size_t between = held;
  const std::size_t second = most_during([&] { ASSERT_TRUE(decoder.pull(gop)); });
  EXPECT_EQ(gop.frames(), 21);
  EXPECT_LE(between + second, before + first + kMiB);
}

}  // namespace
}  // namespace trivelet
