// Helpers of the tests of readers and writers: formats, random frames, temporary files, the ffmpeg program.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "io/video/video_io.h"

namespace trivelet::io {

namespace fs = std::filesystem;

struct Size {
  int width;
  int height;
};
inline constexpr Size kSizes[] = {{1, 1}, {17, 31}, {2, 1}, {64, 48}};

inline VideoInfo make_info(const std::string& format, Size size) {
  VideoInfo info;
  info.width = size.width;
  info.height = size.height;
  info.format = parse_pixel_format(format);
  return info;
}

/// Random frames in which extreme values are frequent.
inline Gop random_gop(const VideoInfo& info, int frames) {
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

inline bool same_frame(const Gop& a, int i, const Gop& b, int j) {
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

inline std::string read_file(const fs::path& path) {
  std::string bytes(fs::exists(path) ? static_cast<std::size_t>(fs::file_size(path)) : 0, 0);
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string shell(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> part;
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), got);
  ::pclose(pipe);
  return out;
}

inline bool have_program() {
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

  /// Writes, reads back and compares; returns the reader's description.
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

}  // namespace trivelet::io
