// Fuzzes readers of video: an option byte, then a file of one format (TRIVELET_VIDEO_FORMAT in libFuzzer's programs).
// Raw video also has its size and pixel format in front. Only frames or an Error of a damaged or unsupported file are
// allowed, and reading one frame or many at a time gives the same frames.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "codec/base/gop_hash.h"
#include "io/video/video_io.h"
#include "tests/fuzz/wrong.h"

namespace {

using namespace trivelet;
using fuzz::wrong;

/// A file in memory.
class File {
 public:
  File(const std::uint8_t* data, std::size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, data, size) != static_cast<ssize_t>(size)) wrong("no file in memory");
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

struct Outcome {
  bool refused = false;
  std::uint64_t frames = 0;
  std::uint64_t hash = 0;
};

constexpr std::uint64_t kMostFrames = 64;
constexpr std::int64_t kMostPixels = 1 << 14;

Outcome read(const std::string& path, const io::ReaderOptions& options, bool singly, unsigned skipped) {
  Outcome out;
  try {
    const auto reader = io::open_reader(path, options);
    const VideoInfo info = reader->info();
    if (static_cast<std::int64_t>(info.width) * info.height > kMostPixels) return out;
    Gop gop(info, 1), several(info, 5);
    out.frames = reader->skip(skipped);
    if (out.frames > skipped) wrong("skipped too much");
    while (out.frames < kMostFrames) {
      if (singly) {
        if (!reader->read(gop, 0)) break;
        gop.set_frames(1);
        out.hash = out.hash * 31 + hash_samples(gop);
        ++out.frames;
        continue;
      }
      const int n = reader->read_frames(several, 0, several.capacity());
      if (n > 1 && reader->unread(1)) {
        if (reader->read_frames(several, n - 1, 1) != 1) wrong("a frame that was given back is lost");
      }
      for (int f = 0; f < n; ++f) {
        gop.set_frames(1);
        for (int c = 0; c < gop.components(); ++c) {
          const VolumeView from = static_cast<const Gop&>(several).plane(c);
          const MutableVolumeView to = gop.plane(c);
          for (int y = 0; y < from.shape.height; ++y) std::copy_n(from.row(f, y), from.row_bytes(), to.row(0, y));
        }
        out.hash = out.hash * 31 + hash_samples(gop);
      }
      out.frames += static_cast<std::uint64_t>(n);
      if (n < several.capacity()) break;
    }
  } catch (const Error& e) {
    out.refused = true;
    if (e.kind() != ErrorKind::kBadStream && e.kind() != ErrorKind::kUnsupported) {
      std::fprintf(stderr, "%s\n", e.what());
      wrong("kind of error");
    }
  }
  return out;
}

int fuzz_video(const std::string& format, const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptionBytes = 4;
  if (size < kOptionBytes) return 0;
  io::ReaderOptions options;
  options.format = format;
  options.threads = 1;
  if (format == "raw") {
    const char* formats[] = {"gray", "gray1", "gray12", "gray16", "yuv420p", "yuv410p10", "gbrp", "gbrap16"};
    options.width = 1 + data[1] % 16;
    options.height = 1 + data[2] % 16;
    options.pixel_format = formats[data[3] & 7];
  }
  const File file(data + kOptionBytes, size - kOptionBytes);
  const unsigned skipped = data[0] & 3;
  const Outcome many = read(file.path(), options, false, skipped);
  if (!(data[0] & 4)) return 0;
  const Outcome single = read(file.path(), options, true, skipped);
  if (many.frames + 5 > kMostFrames || single.frames + 5 > kMostFrames) return 0;  // one of them may not be at the end
  if (many.refused != single.refused) wrong("one by one another answer");
  if (!many.refused && (many.frames != single.frames || many.hash != single.hash)) wrong("one by one other frames");
  return 0;
}

}  // namespace

#ifdef TRIVELET_FUZZ
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_video(TRIVELET_VIDEO_FORMAT, data, size);
}
#else
extern "C" {
int fuzz_y4m(const std::uint8_t* data, std::size_t size) { return fuzz_video("y4m", data, size); }
int fuzz_pnm(const std::uint8_t* data, std::size_t size) { return fuzz_video("pnm", data, size); }
int fuzz_raw(const std::uint8_t* data, std::size_t size) { return fuzz_video("raw", data, size); }
}
#endif
