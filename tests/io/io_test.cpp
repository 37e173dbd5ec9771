// Readers and writers of video: samples and metadata round-trip in every format, a format refuses what it cannot carry,
// and digests agree with the ffmpeg program's.
#include <gtest/gtest.h>

#include <sstream>

#include "io/md5.h"
#include "tests/support/io_support.h"
#include "tests/support/one_of.h"

namespace trivelet::io {
namespace {

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

// ---- real clips

TEST(IoData, EveryClipOpens) {
  const char* named = std::getenv("TRIVELET_DATA");
  const fs::path data =
      named != nullptr ? fs::path(named) : fs::path(__FILE__).parent_path().parent_path().parent_path().parent_path() / "shared/data";
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
