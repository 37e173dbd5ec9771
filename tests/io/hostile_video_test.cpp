// Hostile, truncated and changing video files are refused with a clear error or read as far as they are intact, without
// a crash.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/support/io_support.h"

namespace trivelet::io {
namespace {

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

// Stretches between key frames decoded by several decoders give every frame of the file once; pictures of open GOPs
// come from the stretch before.
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

}  // namespace
}  // namespace trivelet::io
