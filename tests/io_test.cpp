// io: what is written is read back sample for sample in every format; hostile and truncated input is refused with a
// clear error and never crashes; files appear complete or not at all; digests agree with the ffmpeg program's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "io/md5.h"
#include "io/video/part_writer.h"
#include "io/video/video_io.h"
#include "io/volume/volume_io.h"
#include "tests/one_of.h"

namespace trivelet::io {
namespace {

namespace fs = std::filesystem;

struct Size {
  int width;
  int height;
};
constexpr Size kSizes[] = {{1, 1}, {17, 31}, {2, 1}, {64, 48}};

VideoInfo make_info(const std::string& format, Size size) {
  VideoInfo info;
  info.width = size.width;
  info.height = size.height;
  info.format = parse_pixel_format(format);
  return info;
}

/// Random frames with the extreme values well represented.
Gop random_gop(const VideoInfo& info, int frames) {
  std::mt19937 engine(static_cast<unsigned>(info.width * 1000 + info.format.bits));
  const auto random = [&] { return static_cast<unsigned>(engine()); };
  Gop gop(info, frames);
  gop.set_frames(frames);
  const unsigned most = (1u << info.format.bits) - 1;
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView view = gop.plane(c);
    for (int f = 0; f < frames; ++f)
      for (int y = 0; y < view.shape.height; ++y)
        for (int x = 0; x < view.shape.width; ++x) {
          const unsigned choice = random() % 8;
          const unsigned value = choice == 0 ? 0 : choice == 1 ? most : random() & most;
          std::byte* sample = view.row(f, y) + x * view.bytes_per_sample;
          for (int b = 0; b < view.bytes_per_sample; ++b) sample[b] = static_cast<std::byte>(value >> (8 * b));
        }
  }
  for (int f = 0; f < frames; ++f) gop.times()[static_cast<std::size_t>(f)] = {f, 1};
  return gop;
}

bool same_frame(const Gop& a, int i, const Gop& b, int j) {
  if (a.components() != b.components()) return false;
  for (int c = 0; c < a.components(); ++c) {
    const VolumeView p = a.plane(c);
    const VolumeView q = b.plane(c);
    if (p.shape.width != q.shape.width || p.shape.height != q.shape.height) return false;
    for (int y = 0; y < p.shape.height; ++y)
      if (std::memcmp(p.row(i, y), q.row(j, y), static_cast<std::size_t>(p.shape.width * p.bytes_per_sample)) != 0)
        return false;
  }
  return true;
}

/// The kind of the Error that `body` throws; `message` gets its text.
template <class Body>
ErrorKind error_of(Body body, std::string* message = nullptr) {
  try {
    body();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::kInternal;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string shell(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), got);
  ::pclose(pipe);
  return out;
}

bool have_program() {
  static const bool have = !shell("ffmpeg -version 2>/dev/null").empty();
  return have;
}

class Io : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "trivelet_io_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static void write_all(const std::string& to, const VideoInfo& info, const Gop& gop, WriterOptions options = {}) {
    const auto writer = open_writer(to, info, options);
    for (int f = 0; f < gop.frames(); ++f) writer->write(gop, f);
    writer->finish();
  }

  /// Writes, reads back and compares; returns what the reader says.
  static VideoInfo round_trip(const std::string& file, const VideoInfo& info, const Gop& gop,
                              const ReaderOptions& options = {}) {
    write_all(file, info, gop);
    const auto reader = open_reader(file, options);
    EXPECT_EQ(to_string(reader->info().format), to_string(info.format));
    EXPECT_EQ(reader->info().width, info.width);
    EXPECT_EQ(reader->info().height, info.height);
    Gop back(reader->info(), gop.frames() + 1);
    EXPECT_TRUE(read_gop(*reader, back));
    EXPECT_EQ(back.frames(), gop.frames());
    for (int f = 0; f < std::min(back.frames(), gop.frames()); ++f)
      EXPECT_TRUE(same_frame(gop, f, back, f)) << file << " frame " << f;
    EXPECT_FALSE(read_gop(*reader, back));
    return reader->info();
  }

  fs::path folder_;
};

// ---- round trips

TEST_F(Io, Y4mRoundTrip) {
  for (const char* format :
       {"gray",      "gray9",     "gray10",    "gray12",    "gray14",    "gray16",    "yuv420p",   "yuv420p9",
        "yuv420p10", "yuv420p12", "yuv420p14", "yuv420p16", "yuv422p",   "yuv422p10", "yuv422p12", "yuv422p16",
        "yuv444p",   "yuv444p9",  "yuv444p10", "yuv444p14", "yuv444p16", "yuv440p",   "yuv411p",   "yuva444p"})
    for (const Size size : kSizes) {
      SCOPED_TRACE(format);
      const VideoInfo info = make_info(format, size);
      const std::string file = path(std::string(format) + std::to_string(size.width) + ".y4m");
      EXPECT_EQ(round_trip(file, info, random_gop(info, 3)).frames, 3u);
    }
}

TEST_F(Io, Y4mKeepsTags) {
  VideoInfo info = make_info("yuv420p", {16, 8});
  info.frame_rate = {30000, 1001};
  info.sample_aspect = {128, 117};
  for (const int location : {1, 2, 3})
    for (const int range : {0, 1, 2})
      for (const int order : {0, 1, 2}) {
        info.colour.chroma_location = static_cast<std::uint8_t>(location);
        info.colour.range = static_cast<std::uint8_t>(range);
        info.field_order = static_cast<std::uint8_t>(order);
        const std::string file = path(std::to_string(location * 9 + range * 3 + order) + ".y4m");
        const VideoInfo back = round_trip(file, info, random_gop(info, 1));
        EXPECT_EQ(back.colour, info.colour);
        EXPECT_EQ(back.field_order, order);
        EXPECT_EQ(back.frame_rate, info.frame_rate);
        EXPECT_EQ(back.time_base, (Rational{1001, 30000}));
        EXPECT_EQ(back.sample_aspect, info.sample_aspect);
      }
}

TEST_F(Io, RawRoundTrip) {
  for (const char* format :
       {"gray", "gray1", "gray5", "gray11", "gray12", "gray16", "ya8", "ya16", "yuv420p", "yuv410p", "yuv422p10",
        "yuv444p13", "yuva420p", "yuva444p12", "gbrp", "gbrp10", "gbrp16", "gbrap", "gbrap12"})
    for (const Size size : kSizes) {
      SCOPED_TRACE(format);
      const VideoInfo info = make_info(format, size);
      const ReaderOptions options{.width = size.width, .height = size.height, .pixel_format = format};
      const std::string file = path(std::string(format) + std::to_string(size.width) + ".yuv");
      EXPECT_EQ(round_trip(file, info, random_gop(info, 3), options).frames, 3u);
    }
}

TEST_F(Io, PnmRoundTrip) {
  for (const char* format : {"gray", "gray1", "gray10", "gray12", "gray16", "gbrp", "gbrp12", "gbrp16"})
    for (const Size size : kSizes) {
      SCOPED_TRACE(format);
      const VideoInfo info = make_info(format, size);
      round_trip(path(std::string(format) + std::to_string(size.width) + ".pgm"), info, random_gop(info, 3));
    }
  EXPECT_EQ(error_of([&] { open_writer(path("a.ppm"), make_info("yuv420p", {4, 4}), {}); }), ErrorKind::kUnsupported);
}

TEST_F(Io, Ffv1RoundTrip) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  test::OneOf chosen(3);
  for (const char* format : {"gray",     "gray9",      "gray10",    "gray12",     "gray16",    "ya8",     "yuv420p",
                             "yuv420p9", "yuv420p10",  "yuv420p12", "yuv420p14",  "yuv420p16", "yuv422p", "yuv422p10",
                             "yuv444p",  "yuv444p12",  "yuv444p16", "yuv440p",    "yuv440p10", "yuv411p", "yuv410p",
                             "yuva420p", "yuva422p10", "yuva444p",  "yuva444p16", "gbrp",      "gbrp9",   "gbrp10",
                             "gbrp12",   "gbrp14",     "gbrp16",    "gbrap",      "gbrap10",   "gbrap12", "gbrap16"})
    for (const Size size : kSizes) {
      if (!chosen()) continue;
      SCOPED_TRACE(format + std::to_string(size.width));
      const VideoInfo info = make_info(format, size);
      round_trip(path(std::string(format) + std::to_string(size.width) + ".mkv"), info, random_gop(info, 3));
    }
  // Sizes at which FFmpeg's own choice of slices loses chroma or more.
  test::OneOf slices(5);
  for (const char* format : {"yuv420p", "yuv422p10", "yuv410p", "yuv411p", "gray16", "gbrp"})
    for (const Size size :
         {Size{2, 2}, {3, 2}, {8, 1}, {1, 64}, {33, 65}, {101, 103}, {354, 290}, {358, 302}, {722, 578}}) {
      if (!slices()) continue;
      const std::string name =
          std::string(format) + "_" + std::to_string(size.width) + "x" + std::to_string(size.height);
      const VideoInfo info = make_info(format, size);
      round_trip(path(name + ".mkv"), info, random_gop(info, 2));
    }
  const VideoInfo info = make_info("yuv422p10", {17, 31});
  round_trip(path("a.avi"), info, random_gop(info, 3));
  round_trip(path("a.nut"), info, random_gop(info, 3));
}

TEST_F(Io, PngRoundTrip) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  for (const char* format : {"gray", "gray16", "ya8", "ya16", "gbrp", "gbrp16", "gbrap", "gbrap16"})
    for (const Size size : kSizes) {
      SCOPED_TRACE(format);
      const VideoInfo info = make_info(format, size);
      round_trip(path(std::string(format) + std::to_string(size.width) + ".png"), info, random_gop(info, 1));
    }
  const VideoInfo info = make_info("gray", {4, 4});
  EXPECT_EQ(error_of([&] { write_all(path("two.png"), info, random_gop(info, 2)); }), ErrorKind::kUnsupported);
  EXPECT_FALSE(fs::exists(path("two.png")) || fs::exists(path("two.png.part")));
}

TEST_F(Io, PictureSequence) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  const VideoInfo info = make_info("gbrp", {17, 31});
  const Gop gop = random_gop(info, 3);
  for (int f = 0; f < 3; ++f) {
    const auto writer = open_writer(path("f" + std::to_string(f + 1) + ".png"), info, {});
    writer->write(gop, f);
    writer->finish();
  }
  const auto reader = open_reader(path("f%d.png"), {.frame_rate = {24, 1}});
  EXPECT_EQ(reader->info().frame_rate, (Rational{24, 1}));
  Gop back(reader->info(), 8);
  ASSERT_TRUE(read_gop(*reader, back));
  ASSERT_EQ(back.frames(), 3);
  for (int f = 0; f < 3; ++f) EXPECT_TRUE(same_frame(gop, f, back, f));
}

// ---- what a format cannot carry

TEST_F(Io, RefusesWhatFormatsCannotCarry) {
  std::string message;
  for (const char* format : {"gbrp", "yuva420p", "ya8", "yuv420p11", "yuv420p7", "yuva444p10", "yuv410p"}) {
    EXPECT_EQ(error_of(
                  [&] {
                    open_writer(path("a.y4m"), make_info(format, {4, 4}), {});
                  },
                  &message),
              ErrorKind::kUnsupported);
    EXPECT_HAS(message, ".mkv");
  }
  VideoInfo negative = make_info("gray16", {4, 4});
  negative.format.is_signed = true;
  EXPECT_EQ(error_of([&] { open_writer(path("a.y4m"), negative, {}); }), ErrorKind::kUnsupported);
  EXPECT_EQ(error_of([&] { open_writer("-", negative, {}); }), ErrorKind::kBadArgument);
  if (have_ffmpeg()) {
    EXPECT_EQ(error_of(
                  [&] {
                    open_writer(path("a.mkv"), make_info("yuv420p11", {4, 4}), {});
                  },
                  &message),
              ErrorKind::kUnsupported);
    EXPECT_HAS(message, "yuv420p12le");
    EXPECT_EQ(error_of(
                  [&] {
                    open_writer(path("a.mkv"), make_info("gray14", {4, 4}), {});
                  },
                  &message),
              ErrorKind::kUnsupported);
    EXPECT_HAS(message, "gray16le");
    EXPECT_EQ(error_of(
                  [&] {
                    open_writer(path("a.mp4"), make_info("yuv420p", {17, 31}), {});
                  },
                  &message),
              ErrorKind::kUnsupported);
    EXPECT_HAS(message, "even");
    EXPECT_EQ(error_of([&] { open_writer(path("a.mkv"), negative, {}); }), ErrorKind::kUnsupported);
    EXPECT_EQ(error_of([&] { open_writer(path("a.xyzzy"), make_info("gray", {4, 4}), {}); }), ErrorKind::kBadArgument);
    EXPECT_EQ(error_of([&] {
                open_writer(path("a.mkv"), make_info("gray", {4, 4}), {.video_codec = "xyzzy"});
              }),
              ErrorKind::kUnsupported);
  } else {
    EXPECT_EQ(error_of(
                  [&] {
                    open_writer(path("a.mkv"), make_info("gray", {4, 4}), {});
                  },
                  &message),
              ErrorKind::kUnsupported);
    EXPECT_HAS(message, "no FFmpeg");
    write_file(path("a.mkv"), "not y4m");
    EXPECT_EQ(error_of([&] { open_reader(path("a.mkv"), {}); }, &message), ErrorKind::kUnsupported);
    EXPECT_HAS(message, "this build has no FFmpeg; readable without it: y4m");
    fs::remove(path("a.mkv"));
  }
  EXPECT_TRUE(fs::is_empty(folder_));  // refused before a file was made
}

// ---- hostile input

TEST_F(Io, Y4mChromaTags) {
  const struct {
    const char* tag;
    const char* format;
    int location;
  } kCases[] = {
      {"", "yuv420p", 0},           {" C420", "yuv420p", 0},        {" C420jpeg", "yuv420p", 2},
      {" C420mpeg2", "yuv420p", 1}, {" C420paldv", "yuv420p", 3},   {" C422", "yuv422p", 0},
      {" C444", "yuv444p", 0},      {" C440", "yuv440p", 0},        {" C411", "yuv411p", 0},
      {" C410", "yuv410p", 0},      {" Cmono", "gray", 0},          {" C444alpha", "yuva444p", 0},
      {" C420p9", "yuv420p9le", 0}, {" C422p10", "yuv422p10le", 0}, {" C444p16", "yuv444p16le", 0},
      {" Cmono9", "gray9le", 0},    {" Cmono16", "gray16le", 0},    {" Xfoo=bar Zunknown C420p12 Q", "yuv420p12le", 0}};
  for (const auto& c : kCases) {
    const std::string file = path("a.y4m");
    write_file(file, std::string("YUV4MPEG2 W4 H2 F25:1") + c.tag + "\n");
    const auto reader = open_reader(file, {});
    EXPECT_EQ(to_string(reader->info().format), c.format) << c.tag;
    EXPECT_EQ(reader->info().colour.chroma_location, c.location) << c.tag;
    Gop gop(reader->info(), 1);
    EXPECT_FALSE(read_gop(*reader, gop));
  }
}

TEST_F(Io, Y4mHostileHeaders) {
  const struct {
    const char* header;
    ErrorKind kind;
    const char* says;
  } kCases[] = {{"YUV4MPEG2 H2 F25:1\n", ErrorKind::kBadStream, "width"},
                {"YUV4MPEG2 W2 F25:1\n", ErrorKind::kBadStream, "height"},
                {"YUV4MPEG2 W-2 H2 F25:1\n", ErrorKind::kBadStream, "-2x2"},
                {"YUV4MPEG2 W65537 H2 F25:1\n", ErrorKind::kBadStream, "65537x2"},
                {"YUV4MPEG2 W65536 H65536 F25:1\n", ErrorKind::kBadStream, "2^31"},
                {"YUV4MPEG2 W99999999999999999999 H2\n", ErrorKind::kBadStream, "number"},
                {"YUV4MPEG2 W4x H2\n", ErrorKind::kBadStream, "number"},
                {"YUV4MPEG2 W H2\n", ErrorKind::kBadStream, "number"},
                {"YUV4MPEG2 W4 H2 F25\n", ErrorKind::kBadStream, "ratio"},
                {"YUV4MPEG2 W4 H2 F-1:1\n", ErrorKind::kBadStream, "range"},
                {"YUV4MPEG2 W4 H2 F4294967296:1\n", ErrorKind::kBadStream, "range"},
                {"YUV4MPEG2 W4 H2 C420p17\n", ErrorKind::kUnsupported, "420p17"},
                {"YUV4MPEG2 W4 H2 C420p0\n", ErrorKind::kUnsupported, "420p0"},
                {"YUV4MPEG2 W4 H2 C420p-8\n", ErrorKind::kUnsupported, "420p-8"},
                {"YUV4MPEG2 W4 H2 Cfoo\n", ErrorKind::kUnsupported, "foo"},
                {"YUV4MPEG2 W4 H2", ErrorKind::kBadStream, "inside"},
                {"YUV4MPEG2 W4 H2\nXXXXX\n", ErrorKind::kBadStream, "FRAME"},
                {"YUV4MPEG2 W4 H2\nFRAMES\n", ErrorKind::kBadStream, "FRAME"},
                {"YUV4MPEG2 W4 H2\nFRAME I", ErrorKind::kBadStream, "no end"}};
  for (const auto& c : kCases) {
    std::string message;
    const std::string file = path("a.y4m");
    write_file(file, c.header);
    EXPECT_EQ(error_of(
                  [&] {
                    const auto reader = open_reader(file, {});
                    Gop gop(reader->info(), 1);
                    read_gop(*reader, gop);
                  },
                  &message),
              c.kind)
        << c.header;
    EXPECT_HAS(message, c.says);
    EXPECT_HAS(message, file);
  }
  write_file(path("long.y4m"), "YUV4MPEG2 " + std::string(100000, 'X'));
  EXPECT_EQ(error_of([&] { open_reader(path("long.y4m"), {}); }), ErrorKind::kBadStream);
}

TEST_F(Io, TruncatedAtEveryByte) {
  const VideoInfo info = make_info("yuv420p10", {3, 3});
  const Gop gop = random_gop(info, 2);
  write_all(path("whole.y4m"), info, gop);
  write_all(path("whole.pgm"), make_info("gray12", {3, 3}), random_gop(make_info("gray12", {3, 3}), 2));
  for (const char* extension : {".y4m", ".pgm"}) {
    const std::string whole = read_file(path(std::string("whole") + extension));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string file = path(std::string("cut") + extension);
      write_file(file, whole.substr(0, size));
      try {
        const auto reader = open_reader(file, {.format = extension + 1});
        Gop back(reader->info(), 3);
        read_gop(*reader, back);
        // Only a cut between frames goes unseen: there is no count in the file.
        EXPECT_LT(back.frames(), 2);
      } catch (const Error& error) {
        EXPECT_TRUE(error.kind() == ErrorKind::kBadStream || error.kind() == ErrorKind::kUnsupported) << error.what();
      }
    }
  }
}

TEST_F(Io, TruncatedFrameIsNamed) {
  const VideoInfo info = make_info("yuv420p", {16, 16});
  write_all(path("a.y4m"), info, random_gop(info, 3));
  write_all(path("a.yuv"), info, random_gop(info, 3));
  fs::resize_file(path("a.y4m"), fs::file_size(path("a.y4m")) - 84);
  fs::resize_file(path("a.yuv"), fs::file_size(path("a.yuv")) - 84);
  std::string message;
  const ReaderOptions raw{.width = 16, .height = 16, .pixel_format = "yuv420p"};
  for (const bool skipping : {false, true}) {
    const auto y4m = open_reader(path("a.y4m"), {});
    const auto yuv = open_reader(path("a.yuv"), raw);
    Gop gop(info, 3);
    EXPECT_EQ(error_of([&] { skipping ? (void)y4m->skip(3) : (void)read_gop(*y4m, gop); }, &message),
              ErrorKind::kBadStream);
    EXPECT_HAS(message, "frame 2 is truncated: 300 of 384 bytes");
    EXPECT_EQ(error_of([&] { skipping ? (void)yuv->skip(3) : (void)read_gop(*yuv, gop); }, &message),
              ErrorKind::kBadStream);
    EXPECT_HAS(message, "300 bytes are left");
  }
}

TEST_F(Io, SamplesBeyondTheirBits) {
  const VideoInfo info = make_info("yuv420p10", {4, 4});
  write_all(path("a.y4m"), info, random_gop(info, 2));
  std::string bytes = read_file(path("a.y4m"));
  bytes.back() = '\x7f';
  write_file(path("a.y4m"), bytes);
  const auto reader = open_reader(path("a.y4m"), {});
  Gop gop(reader->info(), 2);
  std::string message;
  EXPECT_EQ(error_of([&] { read_gop(*reader, gop); }, &message), ErrorKind::kBadStream);
  EXPECT_HAS(message, "frame 1");
}

TEST_F(Io, FrameParametersAndPipes) {
  const VideoInfo info = make_info("yuv420p", {17, 31});
  const Gop gop = random_gop(info, 4);
  write_all(path("a.y4m"), info, gop);
  std::string bytes = read_file(path("a.y4m"));
  for (std::size_t at = 0; (at = bytes.find("FRAME\n", at)) != std::string::npos; at += 6)
    bytes.replace(at, 6, "FRAME Ip Xabc\n");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread feeder([&] { write_file(path("pipe"), bytes); });
  const auto reader = open_reader(path("pipe"), {});
  EXPECT_EQ(reader->info().frames, 0u);
  EXPECT_EQ(reader->skip(1), 1u);
  Gop back(reader->info(), 8);
  EXPECT_TRUE(read_gop(*reader, back));
  feeder.join();
  ASSERT_EQ(back.frames(), 3);
  for (int f = 0; f < 3; ++f) EXPECT_TRUE(same_frame(gop, f + 1, back, f));
  EXPECT_EQ(back.times()[0].pts, 1);
  EXPECT_EQ(reader->skip(5), 0u);
}

// Several frames at once, by several threads, are what they are one by one: also behind frames with parameters, and at
// the frame that is damaged.
TEST_F(Io, SeveralFramesAtOnce) {
  const VideoInfo info = make_info("yuv422p10", {34, 21});
  const Gop gop = random_gop(info, 9);
  write_all(path("a.y4m"), info, gop);
  write_all(path("a.yuv"), info, gop);
  std::string bytes = read_file(path("a.y4m"));
  const std::size_t header = bytes.find('\n') + 1, frame = (bytes.size() - header) / 9;
  std::string tagged = bytes, wrong = bytes;
  tagged.replace(header + 3 * frame, 6, "FRAME Ip\n");
  wrong[header + 5 * frame + 6 + 1] = '\x7f';  // a sample above ten bits
  write_file(path("tagged.y4m"), tagged);
  write_file(path("wrong.y4m"), wrong);
  write_file(path("short.y4m"), bytes.substr(0, bytes.size() - 5));

  const ReaderOptions raw{.width = 34, .height = 21, .pixel_format = "yuv422p10"};
  for (const char* name : {"a.y4m", "a.yuv", "tagged.y4m"}) {
    SCOPED_TRACE(name);
    const auto reader = open_reader(path(name), std::string(name) == "a.yuv" ? raw : ReaderOptions{});
    Gop back(reader->info(), 9);
    EXPECT_EQ(reader->read_frames(back, 0, 2), 2);
    EXPECT_TRUE(reader->read(back, 2));
    EXPECT_FALSE(reader->unread(1)) << "one that was read alone";
    EXPECT_EQ(reader->read_frames(back, 3, 6), 6);
    EXPECT_TRUE(reader->unread(4));
    EXPECT_FALSE(reader->unread(100));
    Gop again(reader->info(), 9);
    EXPECT_EQ(reader->read_frames(again, 5, 4), 4);
    for (int f = 0; f < 9; ++f) {
      EXPECT_TRUE(same_frame(gop, f, f < 5 ? back : again, f)) << f;
      EXPECT_EQ((f < 5 ? back : again).times()[static_cast<std::size_t>(f)].pts, f);
    }
    EXPECT_EQ(reader->read_frames(back, 0, 9), 0);
  }
  for (const auto& [name, message] :
       {std::pair{"wrong.y4m", "frame 5"}, std::pair{"short.y4m", "frame 8 is truncated"}}) {
    SCOPED_TRACE(name);
    const auto reader = open_reader(path(name), {});
    Gop back(reader->info(), 9);
    try {
      (void)reader->read_frames(back, 0, 9);
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kBadStream);
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  }
}

// Stretches between key frames decoded apart are the file's frames, each once, whatever decoders there are; pictures that
// lean on the stretch before come from it (open GOPs).
TEST_F(Io, SeveralDecoders) {
  if (!have_ffmpeg() || !have_program()) GTEST_SKIP() << "no FFmpeg or no ffmpeg program";
  const std::string source = "-f lavfi -i testsrc2=size=64x48:rate=25:duration=12";
  const std::string x264 = " -c:v libx264 -pix_fmt yuv420p -preset fast -x264-params ";
  struct Case {
    const char* name;
    std::string how;
    bool divides;
  };
  for (const Case& c :
       {Case{"closed.mp4", x264 + "keyint=50:scenecut=0", true},
        Case{"open.mkv", x264 + "keyint=60:min-keyint=60:open-gop=1:bframes=3:scenecut=0", true},
        Case{"hevc.mp4", " -c:v libx265 -pix_fmt yuv420p10le -x265-params keyint=50:open-gop=1:log-level=none", true},
        Case{"alone.mp4", x264 + "keyint=1000:scenecut=0", false}, Case{"no_index.h264", x264 + "keyint=50", false},
        Case{"intra.mkv", " -c:v ffv1", true}}) {
    SCOPED_TRACE(c.name);
    const std::string file = path(c.name);
    shell("ffmpeg -v quiet -y " + source + c.how + " '" + file + "' 2>&1");
    if (!fs::exists(file) || fs::file_size(file) == 0) continue;  // an ffmpeg without that coder
    const auto plain = open_reader(file, {});
    Gop expected(plain->info(), 400);
    ASSERT_TRUE(read_gop(*plain, expected));
    ASSERT_EQ(expected.frames(), 300);
    for (const int decoders : {3, 64}) {
      SCOPED_TRACE(decoders);
      const auto reader = open_reader(file, {.decoders = decoders});
      Gop back(reader->info(), 400);
      EXPECT_EQ(reader->skip(3), 3u);
      EXPECT_TRUE(reader->read(back, 3));
      EXPECT_EQ(reader->read_frames(back, 4, 90), 90);
      EXPECT_EQ(reader->unread(20), c.divides);
      int at = c.divides ? 74 : 94;
      at += reader->read_frames(back, at, 400 - at);
      ASSERT_EQ(at, 300);
      EXPECT_EQ(reader->read_frames(back, 300, 1), 0);
      for (int f = 3; f < 300; ++f) {
        ASSERT_TRUE(same_frame(expected, f, back, f)) << f;
        EXPECT_EQ(back.times()[static_cast<std::size_t>(f)].pts, expected.times()[static_cast<std::size_t>(f)].pts);
      }
    }
    (void)open_reader(file, {.decoders = 8});  // left before anything is read
  }
}

// Damage is found in its stretch, and the frames before are delivered.
TEST_F(Io, SeveralDecodersFindDamage) {
  if (!have_ffmpeg() || !have_program()) GTEST_SKIP() << "no FFmpeg or no ffmpeg program";
  shell(
      "ffmpeg -v quiet -y -f lavfi -i testsrc2=size=64x48:rate=25:duration=12 -c:v libx264 -x264-params "
      "keyint=50:scenecut=0 -movflags faststart '" +
      path("a.mp4") + "'");
  std::string bytes = read_file(path("a.mp4"));
  if (bytes.empty()) GTEST_SKIP() << "no x264";
  for (std::size_t i = bytes.size() * 3 / 4; i < bytes.size() * 3 / 4 + 400; ++i)
    bytes[i] = static_cast<char>(~bytes[i]);
  write_file(path("a.mp4"), bytes);
  const auto reader = open_reader(path("a.mp4"), {.decoders = 4});
  Gop gop(reader->info(), 1);
  int frames = 0;
  const std::optional<ErrorKind> kind = error_of([&] {
    while (reader->read(gop, 0)) ++frames;
  });
  EXPECT_EQ(kind, ErrorKind::kBadStream);
  EXPECT_GE(frames, 100);
  EXPECT_LT(frames, 300);
}

TEST_F(Io, StandardInput) {
  const VideoInfo info = make_info("yuv420p", {17, 31});
  const Gop gop = random_gop(info, 4);
  std::vector<std::string> names = {"a.y4m"};
  if (have_ffmpeg()) names.insert(names.end(), {"a.mkv", "a.nut"});
  for (const std::string& name : names) {
    write_all(path(name), info, gop);
    const int saved = ::dup(STDIN_FILENO);
    for (const bool pipe : {false, true}) {
      SCOPED_TRACE(name + (pipe ? " pipe" : " file"));
      std::array<int, 2> ends = {-1, -1};
      std::thread feeder;
      int input = -1;
      if (pipe) {
        ASSERT_EQ(::pipe(ends.data()), 0);
        input = ends[0];
        feeder = std::thread([&] {
          const std::string bytes = read_file(path(name));
          EXPECT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
          ::close(ends[1]);
        });
      } else {
        input = ::open(path(name).c_str(), O_RDONLY);
      }
      ::dup2(input, STDIN_FILENO);
      ::close(input);
      const auto reader = open_reader("-", {});
      Gop back(reader->info(), 8);
      EXPECT_TRUE(read_gop(*reader, back));
      if (feeder.joinable()) feeder.join();
      ASSERT_EQ(back.frames(), 4);
      for (int f = 0; f < 4; ++f) EXPECT_TRUE(same_frame(gop, f, back, f));
    }
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
  }
}

TEST_F(Io, RawNeedsItsOptions) {
  write_file(path("a.yuv"), "123456");
  std::string message;
  EXPECT_EQ(error_of([&] { open_reader(path("a.yuv"), {}); }, &message), ErrorKind::kBadArgument);
  EXPECT_HAS(message, "ReaderOptions::width");
  EXPECT_EQ(error_of([&] { open_reader(path("a.yuv"), {.width = 2, .height = 2}); }, &message),
            ErrorKind::kBadArgument);
  EXPECT_HAS(message, "ReaderOptions::pixel_format");
  EXPECT_EQ(error_of([&] { open_reader(path("a.yuv"), {.width = 2, .height = 2, .pixel_format = "foo"}); }),
            ErrorKind::kBadArgument);
  write_file(path("a.y4m"), "YUV4MPEG2 W4 H2\n");
  EXPECT_EQ(error_of([&] { open_reader(path("a.y4m"), {.width = 2, .height = 2}); }), ErrorKind::kBadArgument);
  const auto reader =
      open_reader(path("a.yuv"), {.width = 2, .height = 2, .pixel_format = "yuv420p", .frame_rate = {30000, 1001}});
  EXPECT_EQ(reader->info().frames, 1u);
  EXPECT_EQ(reader->info().time_base, (Rational{1001, 30000}));
}

TEST_F(Io, DamageIsNotConcealed) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  const VideoInfo info = make_info("yuv420p", {64, 48});
  write_all(path("a.mkv"), info, random_gop(info, 20));
  const std::string whole = read_file(path("a.mkv"));
  auto read_all = [&](const std::string& bytes) {
    write_file(path("b.mkv"), bytes);
    const auto reader = open_reader(path("b.mkv"), {});
    Gop gop(reader->info(), 32);
    read_gop(*reader, gop);
    return gop.frames();
  };
  EXPECT_EQ(read_all(whole), 20);
  std::string message;
  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x55);
  EXPECT_EQ(error_of([&] { read_all(damaged); }, &message), ErrorKind::kBadStream);
  EXPECT_HAS(message, "frame ");
  EXPECT_HAS(message, "CRC");
  EXPECT_EQ(error_of([&] { read_all(whole.substr(0, whole.size() / 2)); }, &message), ErrorKind::kBadStream);
  for (const std::size_t size : {0, 1, 10, 100, 600})
    EXPECT_EQ(error_of([&] { read_all(whole.substr(0, size)); }), ErrorKind::kBadStream);
}

// A playlist, whatever its name, has no other file coded unless that is asked for.
TEST_F(Io, PlaylistsLeadNowhere) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  const VideoInfo info = make_info("yuv420p", {64, 48});
  write_all(path("secret.mkv"), info, random_gop(info, 5));
  write_file(path("list.mp4"), "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXTINF:0.2,\nfile://" +
                                   path("secret.mkv") + "\n#EXT-X-ENDLIST\n");
  EXPECT_EQ(error_of([&] { (void)open_reader(path("list.mp4"), {}); }), ErrorKind::kBadStream);
  ReaderOptions allowed;
  allowed.allow_outside = true;
  EXPECT_EQ(open_reader(path("list.mp4"), allowed)->info().width, 64);
}

TEST_F(Io, ChangeOfSize) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  const VideoInfo small = make_info("gray", {4, 4});
  const VideoInfo large = make_info("gray", {8, 4});
  for (const char* extension : {".pgm", ".png"}) {
    write_all(path(std::string("f1") + extension), small, random_gop(small, 1));
    write_all(path(std::string("f2") + extension), large, random_gop(large, 1));
    write_file(path("both"), read_file(path(std::string("f1") + extension)) +
                                 (extension[2] == 'g' ? read_file(path(std::string("f2") + extension)) : ""));
    const auto reader = open_reader(path(extension[2] == 'g' ? "both" : "f%d.png"), {});
    Gop gop(reader->info(), 4);
    std::string message;
    EXPECT_EQ(error_of([&] { read_gop(*reader, gop); }, &message), ErrorKind::kUnsupported);
    EXPECT_HAS(message, "8x4");
    EXPECT_HAS(message, "4x4");
  }
}

// ---- what travels beside the samples

TEST_F(Io, VariableTimes) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  VideoInfo info = make_info("yuv420p", {16, 16});
  info.time_base = {1, 1000};
  Gop gop = random_gop(info, 5);
  const std::int64_t pts[] = {0, 40, 55, 300, 1000};
  for (int f = 0; f < 5; ++f)
    gop.times()[static_cast<std::size_t>(f)] = {pts[f], f < 4 ? pts[f + 1] - pts[f] : std::int64_t{40}};
  for (const char* name : {"a.mkv", "a.nut", "a.mov"}) {
    SCOPED_TRACE(name);
    write_all(path(name), info, gop);
    const auto reader = open_reader(path(name), {});
    Gop back(reader->info(), 5);
    ASSERT_TRUE(read_gop(*reader, back));
    ASSERT_EQ(back.frames(), 5);
    const Rational unit = reader->info().time_base;
    for (std::size_t f = 0; f < 5; ++f) {
      EXPECT_NEAR(static_cast<double>(back.times()[f].pts - back.times()[0].pts) * unit.value(),
                  static_cast<double>(pts[f]) / 1000.0, 1e-9);
      EXPECT_GT(back.times()[f].duration, 0);
    }
    // Given a frame rate, the times of the file are dropped.
    const auto constant = open_reader(path(name), {.frame_rate = {50, 1}});
    EXPECT_EQ(constant->skip(2), 2u);
    Gop one(constant->info(), 1);
    ASSERT_TRUE(read_gop(*constant, one));
    EXPECT_TRUE(name[2] == 'm' && name[3] == 'o' ? true : same_frame(one, 0, gop, 2));
    EXPECT_EQ(one.times()[0].pts, 2);
    EXPECT_EQ(constant->info().time_base, (Rational{1, 50}));
  }
  // Times that stand still are replaced by frame number / frame rate.
  for (auto& time : gop.times()) time = {};
  write_all(path("still.mkv"), info, gop);
  const auto reader = open_reader(path("still.mkv"), {});
  Gop back(reader->info(), 5);
  ASSERT_TRUE(read_gop(*reader, back));
  for (std::size_t f = 0; f < 5; ++f) EXPECT_EQ(back.times()[f].pts, 40 * static_cast<std::int64_t>(f));
}

TEST_F(Io, TagsThroughContainers) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  VideoInfo info = make_info("yuv420p10", {64, 48});
  info.frame_rate = {24000, 1001};
  info.time_base = {1001, 24000};
  info.sample_aspect = {4, 3};
  info.colour = {.primaries = 9, .transfer = 16, .matrix = 9, .range = 1, .chroma_location = 3};
  for (const int rotation : {0, 90, 180, 270})
    for (const char* name : {"a.mkv", "a.mp4", "a.mov"}) {
      SCOPED_TRACE(name);
      info.rotation = rotation;
      write_all(path(name), info, random_gop(info, 3), {.overwrite = true});
      const VideoInfo back = open_reader(path(name), {})->info();
      EXPECT_EQ(back.colour.primaries, 9);
      EXPECT_EQ(back.colour.transfer, 16);
      EXPECT_EQ(back.colour.matrix, 9);
      EXPECT_EQ(back.colour.range, 1);
      EXPECT_EQ(back.sample_aspect, info.sample_aspect);
      EXPECT_EQ(back.frame_rate, info.frame_rate);
      if (name[3] != 'k') {
        EXPECT_EQ(back.rotation, rotation);
        EXPECT_EQ(back.frames, 3u);
      }
    }
}

TEST_F(Io, H264Formats) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  for (const char* format :
       {"yuv420p", "yuv422p", "yuv444p", "yuv420p10", "yuv422p10", "yuv444p10", "gray", "gray10", "gbrp"}) {
    SCOPED_TRACE(format);
    const VideoInfo info = make_info(format, {32, 16});
    try {
      write_all(path("a.mp4"), info, random_gop(info, 3), {.overwrite = true});
    } catch (const Error& error) {
      if (std::string(error.what()).find("no encoder") != std::string::npos) GTEST_SKIP() << error.what();
      throw;
    }
    const auto reader = open_reader(path("a.mp4"), {});
    // FFmpeg decodes grey H.264 into 4:2:0.
    if (info.format.model != ColourModel::kGrey) {
      EXPECT_EQ(reader->info().format, info.format);
    }
    EXPECT_EQ(reader->info().format.bits, info.format.bits);
    EXPECT_EQ(reader->skip(9), 3u);
  }
}

TEST_F(Io, Conversion) {
  if (!have_ffmpeg()) GTEST_SKIP() << "this build has no FFmpeg";
  const VideoInfo info = make_info("gray", {16, 16});
  const Gop gop = random_gop(info, 2);
  write_all(path("a.y4m"), info, gop);
  write_all(path("a.mkv"), info, gop);
  for (const char* name : {"a.y4m", "a.mkv"}) {
    const auto same = open_reader(path(name), {.pixel_format = "gray"});
    const auto reader = open_reader(path(name), {.pixel_format = "yuv420p10"});
    EXPECT_EQ(to_string(reader->info().format), "yuv420p10le");
    Gop back(reader->info(), 3);
    EXPECT_TRUE(read_gop(*reader, back));
    EXPECT_EQ(back.frames(), 2);
  }
  EXPECT_EQ(error_of([&] { open_reader(path("a.mkv"), {.pixel_format = "yuv420p11"}); }), ErrorKind::kUnsupported);
  EXPECT_EQ(error_of([&] { open_reader(path("a.mkv"), {.pixel_format = "foo"}); }), ErrorKind::kBadArgument);
}

// ---- digests and layouts, compared with the ffmpeg program

TEST(Md5, PublishedVectors) {
  const std::pair<std::string, std::string> kVectors[] = {
      {"", "d41d8cd98f00b204e9800998ecf8427e"},
      {"a", "0cc175b9c0f1b6a831c399e269772661"},
      {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
      {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
       "57edf4a22be3c955ac49da2e2107b67a"}};
  for (const auto& [text, digest] : kVectors)
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
      Md5 md5;
      for (std::size_t at = 0; at < text.size(); at += piece)
        md5.update(text.data() + at, std::min(piece, text.size() - at));
      EXPECT_EQ(md5.hex(), digest);
    }
}

TEST_F(Io, DigestOfRawBytes) {
  const VideoInfo info = make_info("gbrap12", {17, 31});
  const Gop gop = random_gop(info, 3);
  write_all(path("a.raw"), info, gop);
  const std::string bytes = read_file(path("a.raw"));
  Md5 md5;
  md5.update(bytes.data(), bytes.size());
  const std::string expected = "MD5=" + md5.hex();
  const auto writer = open_writer("md5", info, {});
  const auto null = open_writer("null", info, {});
  for (int f = 0; f < 3; ++f) {
    writer->write(gop, f);
    null->write(gop, f);
  }
  writer->finish();
  null->finish();
  EXPECT_EQ(writer->result(), expected);
  EXPECT_EQ(null->result(), "");
  write_all(path("digest.txt"), info, gop, {.format = "md5"});
  EXPECT_EQ(read_file(path("digest.txt")), expected + "\n");
}

std::string digest_of(const std::string& file) {
  const auto reader = open_reader(file, {});
  const auto writer = open_writer("md5", reader->info(), {});
  Gop gop(reader->info(), 4);
  while (read_gop(*reader, gop))
    for (int f = 0; f < gop.frames(); ++f) writer->write(gop, f);
  writer->finish();
  return writer->result();
}

TEST_F(Io, LayoutsAgreeWithFfmpeg) {
  if (!have_ffmpeg() || !have_program()) GTEST_SKIP() << "no FFmpeg or no ffmpeg program";
  // FFmpeg's layout and our planes.
  std::istringstream pairs(
      "yuv420p yuv420p yuvj444p yuv444p nv12 yuv420p nv21 yuv420p nv16 yuv422p nv24 yuv444p p010le yuv420p10le "
      "p016le yuv420p16le p210le yuv422p10le p416le yuv444p16le yuyv422 yuv422p uyvy422 yuv422p yvyu422 yuv422p "
      "y210le yuv422p10le rgb24 gbrp bgr24 gbrp 0rgb gbrp bgr0 gbrp rgba gbrap argb gbrap bgra gbrap abgr gbrap "
      "rgb48le gbrp16le rgb48be gbrp16le bgr48be gbrp16le rgba64be gbrap16le gbrp10be gbrp10le gbrp gbrp gray gray "
      "gray16be gray16le gray10be gray10le yuv420p10be yuv420p10le yuva444p16be yuva444p16le x2rgb10le gbrp10le "
      "yuv410p yuv410p yuv411p yuv411p yuv440p12be yuv440p12le monob gray monow gray");
  int compared = 0;
  test::OneOf chosen(3);
  for (std::string from, to; pairs >> from >> to;) {
    if (!chosen()) continue;
    SCOPED_TRACE(from);
    const std::string file = path(from + ".nut");
    shell("ffmpeg -v quiet -f lavfi -i testsrc2=size=51x38:rate=5:duration=1 -pix_fmt " + from +
          " -c:v rawvideo -strict -2 -y " + file + " 2>&1");
    const std::string line = shell("ffmpeg -v quiet -i " + file + " -sws_flags accurate_rnd+bitexact -pix_fmt " + to +
                                   " -f md5 -c:v rawvideo - 2>/dev/null");
    const std::string carried = shell("ffprobe -v quiet -show_entries stream=pix_fmt -of csv=p=0 " + file);
    if (line.empty() || carried != from + "\n") continue;  // NUT has no tag for this layout
    ++compared;
    const auto reader = open_reader(file, {});
    EXPECT_EQ(to_string(reader->info().format), to);
    EXPECT_EQ(digest_of(file) + "\n", line);
  }
  EXPECT_GT(compared, test::full() ? 20 : 6);
}

TEST_F(Io, Palette) {
  if (!have_ffmpeg() || !have_program()) GTEST_SKIP() << "no FFmpeg or no ffmpeg program";
  const std::string file = path("a.png");
  shell(
      "ffmpeg -v quiet -f lavfi -i testsrc2=size=51x38:duration=0.04 -vf "
      "'split[a][b];[a]palettegen=reserve_transparent=0"
      "[p];[b][p]paletteuse' -y " +
      file + " 2>&1");
  const auto reader = open_reader(file, {});
  EXPECT_EQ(to_string(reader->info().format), "gbrp");
  EXPECT_EQ(digest_of(file) + "\n",
            shell("ffmpeg -v quiet -i " + file + " -vf format=rgb24,format=gbrp -f md5 -c:v rawvideo - 2>/dev/null"));
}

TEST_F(Io, OurFilesReadByFfmpeg) {
  if (!have_program()) GTEST_SKIP() << "no ffmpeg program";
  std::vector<std::pair<std::string, std::string>> cases = {
      {"yuv420p", "y4m"}, {"yuv422p10", "y4m"}, {"yuv444p16", "y4m"}, {"gray", "y4m"},
      {"gray12", "y4m"},  {"yuv411p", "y4m"},   {"gray", "pgm"},      {"gbrp", "ppm"}};
  if (have_ffmpeg()) cases.insert(cases.end(), {{"gbrp12", "mkv"}, {"yuv440p", "mkv"}, {"yuva420p10", "mkv"}});
  for (const auto& [format, extension] : cases) {
    SCOPED_TRACE(format);
    const VideoInfo info = make_info(format, {17, 31});
    const Gop gop = random_gop(info, extension == "y4m" || extension == "mkv" ? 3 : 1);
    const std::string file = path(format + "." + extension);
    write_all(file, info, gop);
    EXPECT_EQ(
        shell("ffmpeg -v error -i " + file + " -f md5 -pix_fmt " + to_string(info.format) + " -c:v rawvideo - 2>&1"),
        digest_of(file) + "\n");
  }
}

// ---- files

TEST_F(Io, RefusesToOverwrite) {
  const VideoInfo info = make_info("gray", {4, 4});
  const Gop gop = random_gop(info, 1);
  write_file(path("a.y4m"), "old");
  EXPECT_EQ(error_of([&] { open_writer(path("a.y4m"), info, {}); }), ErrorKind::kBadArgument);
  EXPECT_EQ(read_file(path("a.y4m")), "old");
  {
    const auto writer = open_writer(path("a.y4m"), info, {.overwrite = true});
    writer->write(gop, 0);
    EXPECT_EQ(read_file(path("a.y4m")), "old");  // until it is complete
    writer->finish();
  }
  EXPECT_EQ(read_file(path("a.y4m")).substr(0, 9), "YUV4MPEG2");
  // A file that appears while we write survives.
  FileSink late(path("late"), false);
  late.write("new", 3);
  write_file(path("late"), "other");
  EXPECT_EQ(error_of([&] { late.commit(); }), ErrorKind::kBadArgument);
  EXPECT_EQ(read_file(path("late")), "other");
}

TEST_F(Io, TemporaryIsRemoved) {
  const VideoInfo info = make_info("gray", {4, 4});
  const Gop gop = random_gop(info, 1);
  std::vector<std::string> names = {"a.y4m", "a.yuv", "a.pgm"};
  if (have_ffmpeg()) names.insert(names.end(), {"a.mkv", "a.mp4"});
  for (const std::string& name : names) {
    {
      const auto writer = open_writer(path(name), info, {});
      writer->write(gop, 0);
      EXPECT_TRUE(fs::exists(path(name + ".part")));
      EXPECT_FALSE(fs::exists(path(name)));
    }
    EXPECT_TRUE(fs::is_empty(folder_)) << name;
  }
  FileSink one(path("one"), false);
  FileSink two(path("two"), false);
  EXPECT_EQ(one.temporary_path(), path("one.part"));
  remove_temporaries();
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Io, TwoWritersOfOneFile) {
  FileSink first(path("a"), true);
  first.write("first", 5);
  EXPECT_EQ(error_of([&] { FileSink(path("a"), true); }), ErrorKind::kIo);
  first.commit();
  EXPECT_EQ(read_file(path("a")), "first");
  write_file(path("b.part"), "left by a crash, and long");
  FileSink second(path("b"), false);
  second.write("second", 6);
  second.commit();
  EXPECT_EQ(read_file(path("b")), "second");
}

TEST_F(Io, WhatIsReplacedHandsItsPermissionsDown) {
  write_file(path("a"), "old");
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  FileSink file(path("a"), true);
  EXPECT_EQ(fs::status(path("a.part")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  file.write("new", 3);
  file.commit();
  EXPECT_EQ(read_file(path("a")), "new");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// Links and pipes at the temporary's name would send the bytes elsewhere.
TEST_F(Io, TheTemporaryIsAFileOfItsOwn) {
  write_file(path("precious"), "precious");
  fs::create_hard_link(path("precious"), path("a.part"));
  EXPECT_EQ(error_of([&] { FileSink(path("a"), true); }), ErrorKind::kIo);
  fs::remove(path("a.part"));
  fs::create_symlink(path("precious"), path("a.part"));
  EXPECT_EQ(error_of([&] { FileSink(path("a"), true); }), ErrorKind::kIo);
  fs::remove(path("a.part"));
  ASSERT_EQ(mkfifo(path("a.part").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { FileSink(path("a"), true); }), ErrorKind::kIo);  // and nobody waits for a reader
  EXPECT_TRUE(fs::exists(path("a.part")));
  EXPECT_EQ(read_file(path("precious")), "precious");
}

Envelope series(int files, const std::string& format) {
  Envelope e;
  e.format = format;
  for (int i = 0; i < files; ++i) {
    VolumeFile f;
    f.name = "i" + std::to_string(i) + (i == 0 ? ".mhd" : ".raw");
    f.head.resize(132);
    std::memcpy(f.head.data() + 128, "DICM", 4);
    f.voxel_bytes = 4;
    e.files.push_back(f);
  }
  return e;
}

// A series has more files than a process may have open.
TEST_F(Io, ManyFilesOfAVolume) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{40, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const std::vector<std::byte> voxels(4 * 100, std::byte{7});
  {
    VolumeWriter writer(series(100, "dicom"), path("series"), false);
    writer.write(voxels.data(), voxels.size());
    EXPECT_FALSE(fs::exists(path("series/i99.raw")));
    writer.finish();
  }
  {
    VolumeWriter again(series(100, "dicom"), path("series"), true);
    again.write(voxels.data(), voxels.size());
    again.finish();
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(read_file(path("series/i99.raw")).size(), 136u);
  EXPECT_EQ(std::distance(fs::directory_iterator(path("series")), {}), 100);
  // A temporary that somebody else has changed is not taken for ours.
  VolumeWriter other(series(3, "dicom"), path("other"), false);
  other.write(voxels.data(), 12);
  write_file(path("other/i0.mhd.part"), "something else");
  EXPECT_EQ(error_of([&] { other.finish(); }), ErrorKind::kIo);
}

// Names that come from the stream: -y does not mean them.
TEST_F(Io, WhatAStreamNamesIsNotReplaced) {
  write_file(path("i1.raw"), "precious");
  EXPECT_EQ(error_of([&] { VolumeWriter(series(2, "metaimage"), path("v.mhd"), true); }), ErrorKind::kBadArgument);
  fs::create_directory(path("series"));
  write_file(path("series/i1.raw"), "precious");
  EXPECT_EQ(error_of([&] { VolumeWriter(series(2, "dicom"), path("series"), true); }), ErrorKind::kBadArgument);
  EXPECT_EQ(read_file(path("i1.raw")) + read_file(path("series/i1.raw")), "preciousprecious");
  write_file(path("i1.mhd"), "an older version");  // named after the volume itself
  write_file(path("i1.raw"), "its data");
  const std::vector<std::byte> voxels(8, std::byte{7});
  VolumeWriter writer(series(2, "metaimage"), path("i1.mhd"), true);
  writer.write(voxels.data(), voxels.size());
  writer.finish();
  EXPECT_EQ(read_file(path("i1.raw")).size(), 136u);
}

TEST_F(Io, SeekAndLink) {
  fs::create_symlink(path("target"), path("link"));
  write_file(path("target"), "old");
  FileSink file(path("link"), true);
  EXPECT_TRUE(file.seekable());
  file.write("hello", 5);
  EXPECT_EQ(file.position(), 5u);
  file.seek(1);
  file.write("u", 1);
  file.commit();
  EXPECT_EQ(read_file(path("target")), "hullo");
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

// Parts of a file are written to what the first process opened and to nothing else of that name. Devices have numbers of
// their machine: another one's say nothing.
TEST_F(Io, PartsOfOneFile) {
  const VideoInfo info = make_info("gray", {5, 4});
  Gop gop(info, 1);
  gop.set_frames(1);
  std::memset(gop.plane(0).data, 7, 20);
  FileSink sink(path("shared.raw"), false);
  sink.write("head", 4);
  const SharedOutput shared = shared_file(sink, false);
  EXPECT_EQ(shared.head_bytes, 4U);
  const auto opens = [&](const SharedOutput& output) {
    try {
      const std::unique_ptr<FrameWriter> part = open_part_writer(output, info, 1);
      part->write(gop, 0);
      part->finish();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kIo);
      return false;
    }
    return true;
  };
  EXPECT_TRUE(opens(shared));
  EXPECT_EQ(fs::file_size(shared.path), 4U + 2 * 20);
  SharedOutput other = shared;
  ++other.file;
  EXPECT_FALSE(opens(other));
  other = shared;
  ++other.device;
  EXPECT_EQ(opens(other), shared.machine.empty());
  other.machine = "another one";
  EXPECT_TRUE(opens(other));
}

TEST_F(Io, FullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const VideoInfo info = make_info("yuv420p", {64, 48});
  const Gop gop = random_gop(info, 2);
  std::vector<std::string> formats = {"y4m", "raw"};
  if (have_ffmpeg()) formats.insert(formats.end(), {"matroska", "nut"});
  for (const std::string& format : formats) {
    std::string message;
    EXPECT_EQ(error_of([&] { write_all("/dev/full", info, gop, {.format = format, .overwrite = true}); }, &message),
              ErrorKind::kIo)
        << format;
    EXPECT_HAS(message, "/dev/full");
    EXPECT_HAS(message, "No space");
  }
}

TEST_F(Io, ClosedPipe) {
  const auto previous = std::signal(SIGPIPE, SIG_IGN);
  const int saved = ::dup(STDOUT_FILENO);
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  std::fflush(stdout);
  ::dup2(ends[1], STDOUT_FILENO);
  const VideoInfo info = make_info("yuv420p", {64, 48});
  std::string message;
  const ErrorKind kind = error_of([&] { write_all("-", info, random_gop(info, 1), {.format = "y4m"}); }, &message);
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  ::close(ends[1]);
  std::signal(SIGPIPE, previous);
  EXPECT_EQ(kind, ErrorKind::kIo);
  EXPECT_HAS(message, "standard output: Broken pipe");
}

TEST_F(Io, UnreadableAndUnwritable) {
  std::string message;
  EXPECT_EQ(error_of([&] { open_reader(path("absent.mkv"), {}); }, &message), ErrorKind::kIo);
  EXPECT_HAS(message, "No such file");
  EXPECT_EQ(error_of([&] { open_reader(folder_.string(), {}); }), ErrorKind::kIo);
  const VideoInfo info = make_info("gray", {4, 4});
  EXPECT_EQ(error_of([&] { open_writer(path("absent/a.y4m"), info, {}); }, &message), ErrorKind::kIo);
  EXPECT_HAS(message, "absent/a.y4m");
  fs::create_directory(path("folder.y4m"));
  EXPECT_EQ(error_of([&] { open_writer(path("folder.y4m"), info, {.overwrite = true}); }), ErrorKind::kIo);
  if (::geteuid() != 0) {
    write_file(path("secret.y4m"), "YUV4MPEG2");
    fs::permissions(path("secret.y4m"), fs::perms::none);
    EXPECT_EQ(error_of([&] { open_reader(path("secret.y4m"), {}); }), ErrorKind::kIo);
  }
}

// ---- real clips

TEST(IoData, EveryClipOpens) {
  const char* named = std::getenv("TRIVELET_DATA");
  const fs::path data =
      named != nullptr ? fs::path(named) : fs::path(__FILE__).parent_path().parent_path().parent_path() / "shared/data";
  if (!fs::is_directory(data / "video")) GTEST_SKIP() << "no clips in " << data << "; set TRIVELET_DATA";
  int opened = 0;
  for (const char* folder : {"video", "image"}) {
    if (!fs::is_directory(data / folder)) continue;
    for (const auto& entry : fs::directory_iterator(data / folder)) {
      const std::string name = entry.path().filename().string();
      ReaderOptions options;
      if (entry.path().extension() == ".yuv") {
        // The size stands in the name: foreman_qcif_176x144_48f.yuv.
        const std::size_t x = name.find_first_of("x", name.find_first_of("0123456789"));
        ASSERT_NE(x, std::string::npos) << name;
        options.width = std::atoi(name.c_str() + name.find_last_not_of("0123456789", x - 1) + 1);
        options.height = std::atoi(name.c_str() + x + 1);
        options.pixel_format = name.find("10le") != std::string::npos ? "yuv420p10" : "yuv420p";
      } else if (!have_ffmpeg() && entry.path().extension() != ".y4m" && entry.path().extension() != ".pgm") {
        continue;
      }
      SCOPED_TRACE(name);
      const auto reader = open_reader(entry.path().string(), options);
      Gop gop(reader->info(), 2);
      EXPECT_TRUE(read_gop(*reader, gop));
      if (std::string_view(folder) == "video") {
        EXPECT_EQ(gop.frames(), 2);
      }
      ++opened;
    }
  }
  EXPECT_GT(opened, 0);
}

}  // namespace
}  // namespace trivelet::io
