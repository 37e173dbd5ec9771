// Output files appear whole or not at all, replace nothing without permission, and a full disk is reported.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "codec/base/temporaries.h"
#include "io/video/part_writer.h"
#include "io/volume/volume_io.h"
#include "tests/support/io_support.h"

namespace trivelet::io {
namespace {

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

TEST_F(Io, AMissingFolderIsNamed) {
  for (const char* name : {"new/a.y4m", "new/"}) try {
      FileSink sink(path(name), false);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kIo);
      EXPECT_EQ(std::string(e.what()), "cannot create " + path(name) + ": there is no folder " + path("new"));
    }
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
  EXPECT_EQ(error_of([&] { FileSink(path("a"), true); }), ErrorKind::kIo);  // without waiting for a reader
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

// What a process that works with this one leaves goes with this one's own; not what one that lives is writing.
TEST_F(Io, TheTemporaryOfAProcessThatWasKilled) {
  int begun[2];
  ASSERT_EQ(pipe(begun), 0);
  const pid_t first = fork();
  if (first == 0) {
    FileSink file(path("a"), false);
    file.write("begun", 5);
    (void)!::write(begun[1], "b", 1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(begun[0], &byte, 1), 1);
  remove_with_temporaries(path("a"));
  remove_temporaries();
  EXPECT_TRUE(fs::exists(path("a.part")));
  ::kill(first, SIGKILL);
  ASSERT_EQ(waitpid(first, nullptr, 0), first);
  EXPECT_TRUE(fs::exists(path("a.part")));
  remove_temporaries();
  EXPECT_FALSE(fs::exists(path("a.part")));
  ::close(begun[0]);
  ::close(begun[1]);
}

// The author of an existing file could change it during and after writing.
TEST_F(Io, TheTemporaryIsMadeAnew) {
  write_file(path("a.part"), "left by a crash");
  const int before = ::open(path("a.part").c_str(), O_RDWR);
  {
    FileSink file(path("a"), false);
    EXPECT_EQ(::write(before, "changed", 7), 7);
    file.write("new", 3);
    file.commit();
  }
  ::close(before);
  EXPECT_EQ(read_file(path("a")), "new");
  write_file(path("b.part"), "of another");
  if (::geteuid() != 0 || ::chown(path("b.part").c_str(), 12345, 12345) != 0) GTEST_SKIP() << "root alone gives away";
  EXPECT_EQ(error_of([&] { FileSink(path("b"), false); }), ErrorKind::kIo);
  EXPECT_EQ(read_file(path("b.part")), "of another");
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
  // A temporary file that another process has changed is not used.
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

}  // namespace
}  // namespace trivelet::io
