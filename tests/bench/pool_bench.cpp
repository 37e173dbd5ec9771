// Compares the library's threads with oneTBB's, used through Workers: parallel_for calls with almost no work, and whole
// encodings and decodings in turns. If other programs run, compare CPU seconds.
//   pool_bench FRAMES.yuv WIDTH HEIGHT FRAMES [THREADS]       8 bits, 4:2:0
#include <sys/resource.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "codec/threads/parallel.h"
#include "codec/threads/stopwatch.h"
#include "trivelet/codec.h"

using namespace trivelet;

namespace {

double cpu_seconds() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(r.ru_utime) + seconds(r.ru_stime);
}

struct Taken {
  double clock = 0;
  double cpu = 0;
};

template <class F>
Taken taken(const F& f) {
  const Stopwatch watch;
  const double before = cpu_seconds();
  f();
  return {watch.seconds(), cpu_seconds() - before};
}

std::vector<Gop> read_gops(const char* path, const Encoder& encoder, int frames) {
  std::ifstream in(path, std::ios::binary);
  std::vector<Gop> gops;
  for (int first = 0; first < frames;) {
    Gop gop = encoder.make_gop();
    gop.set_frames(std::min(encoder.gop_frames(), frames - first));
    for (int t = 0; t < gop.frames(); ++t) {
      for (int c = 0; c < gop.components(); ++c) {
        const MutableVolumeView v = gop.plane(c);
        for (int y = 0; y < v.shape.height; ++y) in.read(reinterpret_cast<char*>(v.row(t, y)), v.shape.width);
      }
      gop.times()[static_cast<std::size_t>(t)] = {first + t, 1};
    }
    first += gop.frames();
    gops.push_back(std::move(gop));
  }
  require(in.good(), ErrorKind::kIo, std::string("cannot read so many frames of ") + path);
  return gops;
}

void compare_calls(int threads, const Workers& tbb) {
  constexpr int kCalls = 10000;
  for (const int count : {2, 60, 1000})
    for (const bool other : {false, true}) {
      ThreadPool pool(threads, other ? tbb : Workers{});
      std::vector<int> sums(static_cast<std::size_t>(count) * 16);
      const Taken t = taken([&] {
        for (int call = 0; call < kCalls; ++call)
          pool.parallel_for(count, [&](int i, int) { ++sums[static_cast<std::size_t>(i) * 16]; });
      });
      std::printf("parallel_for of %4d, %-6s  %6.2f us, %6.2f of CPU\n", count, other ? "oneTBB" : "ours",
                  1e6 * t.clock / kCalls, 1e6 * t.cpu / kCalls);
    }
}

void compare_codec(const char* path, const VideoInfo& info, int threads, const Workers& tbb) {
  constexpr int kRounds = 6;
  for (const Profile profile : {Profile::kFast, Profile::kDense}) {
    Taken encoding[2], decoding[2];
    for (int round = 0; round < kRounds; ++round)
      for (const int other : {0, 1}) {
        EncoderParams p{.motion = Motion::kOff, .profile = profile, .threads = threads};
        if (other) p.workers = tbb;
        MemorySink sink;
        Encoder encoder(info, p, sink);
        const std::vector<Gop> gops = read_gops(path, encoder, static_cast<int>(info.frames));
        const Taken e = taken([&] {
          for (const Gop& gop : gops) encoder.push(gop);
          encoder.finish();
        });
        DecoderParams d{.threads = threads};
        if (other) d.workers = tbb;
        MemorySource source(sink.bytes.data(), sink.bytes.size());
        Decoder decoder(source, d);
        Gop gop = decoder.make_gop();
        const Taken back = taken([&] {
          while (decoder.pull(gop)) continue;
        });
        for (const auto& [sum, more] : {std::pair{&encoding[other], e}, std::pair{&decoding[other], back}}) {
          sum->clock += more.clock / kRounds;
          sum->cpu += more.cpu / kRounds;
        }
      }
    for (const int other : {0, 1})
      std::printf("%s, %-6s  encoding %.3f s, %.3f of CPU; decoding %.3f s, %.3f of CPU\n",
                  profile == Profile::kFast ? "fast " : "dense", other ? "oneTBB" : "ours", encoding[other].clock,
                  encoding[other].cpu, decoding[other].clock, decoding[other].cpu);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return std::fprintf(stderr, "usage: pool_bench FRAMES.yuv WIDTH HEIGHT FRAMES [THREADS]\n"), 2;
  const int threads = argc > 5 ? std::atoi(argv[5]) : 2;
  VideoInfo info;
  info.width = std::atoi(argv[2]);
  info.height = std::atoi(argv[3]);
  info.frames = static_cast<std::uint64_t>(std::atoi(argv[4]));
  info.format = parse_pixel_format("yuv420p");
  info.time_base = {1, 25};
  info.frame_rate = {25, 1};
  tbb::task_arena arena(threads);
  Workers tbb;
  tbb.run = [&arena](int count, const std::function<void(int)>& task) {
    arena.execute([&] {
      tbb::parallel_for(
          0, count, [&](int i) { task(i); }, tbb::simple_partitioner());
    });
  };
  try {
    compare_calls(threads, tbb);
    compare_codec(argv[1], info, threads, tbb);
  } catch (const Error& e) {
    return std::fprintf(stderr, "pool_bench: %s\n", e.what()), 1;
  }
  return 0;
}
