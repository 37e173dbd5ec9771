// Volumes: the readers of headers, and files that come back byte for byte.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "io/volume/volume_io.h"
#include "tests/volume_support.h"

namespace trivelet {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::Content;
using test::make_scalars;

class VolumeFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("trivelet_volume_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "again");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void save(const std::string& name, const Bytes& bytes) const {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void save(const std::string& name, const std::string& text) const {
    save(name, Bytes(reinterpret_cast<const std::byte*>(text.data()),
                     reinterpret_cast<const std::byte*>(text.data()) + text.size()));
  }
  Bytes load(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    return Bytes(reinterpret_cast<const std::byte*>(text.data()),
                 reinterpret_cast<const std::byte*>(text.data()) + text.size());
  }

  /// Reads a volume, twice, and writes its files again from what the stream would hold.
  struct Passed {
    io::VolumeInfo info;
    Bytes voxels;
    std::vector<std::string> remarks;
  };
  Passed pass(const std::string& name, const std::string& again, const io::VolumeOptions& options = {}) const {
    const auto reader = io::open_volume(path(name), options);
    Passed p;
    p.info = reader->info();
    p.remarks = reader->remarks();
    p.voxels.resize(static_cast<std::size_t>(p.info.voxels()) * p.info.voxel.bytes());
    reader->read(p.voxels.data(), p.voxels.size() / 3);
    reader->rewind();
    for (std::size_t at = 0; at < p.voxels.size();) {
      const std::size_t n = std::min<std::size_t>(p.voxels.size() - at, 1 + at % 700);
      reader->read(p.voxels.data() + at, n);
      at += n;
    }
    const auto packed = serialise(reader->envelope());
    const io::Envelope envelope = io::parse_envelope(packed.data(), packed.size());
    if (envelope.format != "raw") {
      const io::VolumeInfo said = io::volume_info(envelope);
      EXPECT_EQ(said.width, p.info.width);
      EXPECT_EQ(said.height, p.info.height);
      EXPECT_EQ(said.slices, p.info.slices);
      EXPECT_EQ(said.volumes, p.info.volumes);
      EXPECT_EQ(said.voxel, p.info.voxel);
      EXPECT_EQ(said.affine, p.info.affine);
      EXPECT_EQ(said.slope, p.info.slope);
    }
    io::VolumeWriter writer(envelope, path("again/" + again), false);
    for (std::size_t at = 0; at < p.voxels.size();) {
      const std::size_t n = std::min<std::size_t>(p.voxels.size() - at, 1 + at % 333);
      writer.write(p.voxels.data() + at, n);
      at += n;
    }
    writer.finish();
    return p;
  }
  void expect_same(const std::string& name) const { EXPECT_EQ(load(name), load("again/" + name)) << name; }

  fs::path folder_;
};

io::VolumeInfo small_volume(const VoxelFormat& f, std::uint64_t volumes = 1) {
  io::VolumeInfo info;
  info.voxel = f;
  info.width = 13;
  info.height = 9;
  info.slices = 7;
  info.volumes = volumes;
  info.has_affine = true;
  info.affine = {-2, 0, 0, 10, 0, 1.5, 0.25, -20, 0, -0.25, 3, 30};
  info.spacing = {2, 1.5206906325745548, 3.0103986446980739, 2.5};
  info.slope = 2;
  info.intercept = -1024;
  return info;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Bytes bytes(const std::string& text) {
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

TEST_F(VolumeFiles, nifti_with_extensions_and_a_tail) {
  int n = 0;
  for (const VoxelFormat f : {VoxelFormat{VoxelType::kU8, false, 1}, VoxelFormat{VoxelType::kI16, true, 1},
                              VoxelFormat{VoxelType::kF32, true, 1}, VoxelFormat{VoxelType::kU8, false, 3},
                              VoxelFormat{VoxelType::kF32, false, 2}, VoxelFormat{VoxelType::kI64, true, 1}}) {
    const io::VolumeInfo info = small_volume(f, n % 2 ? 3 : 1);
    io::Envelope e = io::make_envelope(info, "nii");
    Bytes head = e.files[0].head;
    // an extension of 32 bytes between header and voxels
    const float offset = 384;
    std::uint32_t bits;
    std::memcpy(&bits, &offset, 4);
    for (std::size_t i = 0; i < 4; ++i)
      head[108 + i] = static_cast<std::byte>(bits >> (8 * (f.big_endian ? 3 - i : i)));
    head[348] = std::byte{1};
    head = head + bytes(std::string(32, 'x'));
    const Bytes voxels = make_scalars(Content::kRandom, f, static_cast<std::size_t>(info.voxels()), 4);
    const std::string name = std::string("v") + std::to_string(n++) + ".nii";
    save(name, head + voxels + bytes("and a tail"));
    const Passed p = pass(name, name);
    expect_same(name);
    EXPECT_EQ(p.voxels, voxels);
    EXPECT_EQ(p.info.voxel, f);
    EXPECT_EQ(p.info.slope, 2);
    EXPECT_EQ(p.info.intercept, -1024);
    EXPECT_EQ(p.info.affine, info.affine);
    EXPECT_EQ(p.info.volumes, info.volumes);
    if (!io::have_zlib()) continue;
    // packed on the way out, and read again from there
    pass(name, "packed.nii.gz");
    fs::rename(path("again/packed.nii.gz"), path("packed.nii.gz"));
    EXPECT_LT(fs::file_size(path("packed.nii.gz")), fs::file_size(path(name)) + 200);
    EXPECT_EQ(pass("packed.nii.gz", "unpacked.nii").voxels, voxels);
    EXPECT_EQ(load("again/unpacked.nii"), load(name));
    fs::remove(path("again/unpacked.nii"));
  }
}

TEST_F(VolumeFiles, nifti_2_and_pairs) {
  const VoxelFormat f{VoxelType::kU16, false, 1};
  io::VolumeInfo info = small_volume(f);
  info.width = 40000;  // more than NIfTI-1 can hold
  info.height = 1;
  info.slices = 2;
  const Bytes voxels = make_scalars(Content::kEvery, f, 80000, 1);
  save("long.nii", io::make_envelope(info, "nii").files[0].head + voxels);
  const Passed p = pass("long.nii", "long.nii");
  expect_same("long.nii");
  EXPECT_EQ(p.info.format, "nifti-2");
  EXPECT_EQ(p.info.width, 40000);

  Bytes head = io::make_envelope(small_volume(f), "nii").files[0].head;
  head[344] = std::byte{'n'};
  head[345] = std::byte{'i'};
  for (std::size_t i = 108; i < 112; ++i) head[i] = std::byte{0};
  const Bytes small = make_scalars(Content::kRandom, f, 13 * 9 * 7, 2);
  save("pair.hdr", head);
  save("pair.img", small);
  EXPECT_EQ(pass("pair.hdr", "pair.hdr").voxels, small);
  expect_same("pair.hdr");
  expect_same("pair.img");
}

TEST_F(VolumeFiles, nrrd) {
  const VoxelFormat f{VoxelType::kI16, true, 1};
  const Bytes voxels = make_scalars(Content::kRandom, f, 4 * 3 * 6, 2);
  const std::string head =
      "NRRD0005\n# comment\ntype: short\ndimension: 3\nsizes: 4 3 6\nspace: left-posterior-superior\n"
      "space directions: (1,0,0) (0,2,0) (0,0,3)\nspace origin: (5,6,7)\nendian: big\nkey:=a value: with colons\n";
  save("a.nrrd", bytes(head + "encoding: raw\n\n") + voxels);
  const Passed a = pass("a.nrrd", "a.nrrd");
  expect_same("a.nrrd");
  EXPECT_EQ(a.voxels, voxels);
  EXPECT_EQ(a.info.spacing, (std::array<double, 4>{1, 2, 3, 1}));
  EXPECT_EQ(a.info.affine, (std::array<double, 12>{-1, 0, 0, -5, 0, -2, 0, -6, 0, 0, 3, 7}));

  save("b.nhdr", head + "byte skip: 5\nencoding: raw\ndata file: b.bin\n");
  save("b.bin", bytes("12345") + voxels + bytes("!"));
  EXPECT_EQ(pass("b.nhdr", "b.nhdr").voxels, voxels);
  expect_same("b.nhdr");
  expect_same("b.bin");

  save("c.nhdr", head + "line skip: 2\nencoding: raw\ndata file: LIST\nc1.bin\nc2.bin\n");
  save("c1.bin", bytes("one\ntwo\n") + Bytes(voxels.begin(), voxels.begin() + 72));
  save("c2.bin", bytes("three\nfour\n") + Bytes(voxels.begin() + 72, voxels.end()));
  EXPECT_EQ(pass("c.nhdr", "c.nhdr").voxels, voxels);
  expect_same("c1.bin");
  expect_same("c2.bin");

  save("d.nhdr", head + "byteskip: -1\nencoding: raw\ndatafile: d%02d.bin 8 10 2\n");
  save("d08.bin", bytes("any length of header") + Bytes(voxels.begin(), voxels.begin() + 72));
  save("d10.bin", Bytes(voxels.begin() + 72, voxels.end()));
  EXPECT_EQ(pass("d.nhdr", "d.nhdr").voxels, voxels);
  expect_same("d08.bin");
  expect_same("d10.bin");
  fs::remove(path("d10.bin"));
  EXPECT_THROW(io::open_volume(path("d.nhdr"), {}), Error);

  if (!io::have_zlib()) return;
  // what make_envelope() writes is packed inside
  const io::VolumeInfo info = small_volume(f);
  const Bytes more = make_scalars(Content::kEvery, f, static_cast<std::size_t>(info.voxels()), 2);
  io::VolumeWriter writer(io::make_envelope(info, "nrrd"), path("e.nrrd"), false);
  writer.write(more.data(), more.size());
  writer.finish();
  EXPECT_LT(fs::file_size(path("e.nrrd")), more.size());
  const Passed e = pass("e.nrrd", "e.nrrd");
  expect_same("e.nrrd");
  EXPECT_EQ(e.voxels, more);
  EXPECT_EQ(e.info.affine, info.affine);
}

TEST_F(VolumeFiles, metaimage) {
  const VoxelFormat f{VoxelType::kI16, true, 1};
  const io::VolumeInfo info = small_volume(f);
  const Bytes voxels = make_scalars(Content::kEvery, f, static_cast<std::size_t>(info.voxels()), 2);
  {
    io::VolumeWriter writer(io::make_envelope(info, "mha"), path("a.mha"), false);
    writer.write(voxels.data(), voxels.size());
    writer.finish();
  }
  const Passed a = pass("a.mha", "a.mha");
  expect_same("a.mha");
  EXPECT_EQ(a.voxels, voxels);
  EXPECT_EQ(a.info.voxel, f);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(a.info.affine[i], info.affine[i], 1e-9);

  const std::string head =
      "NDims = 3\nDimSize = 13 9 7\nUnknownField = kept as it is  \nElementType = MET_SHORT\n"
      "ElementByteOrderMSB = True\n";
  save("b.mhd", head + "HeaderSize = 3\nElementDataFile = b.raw\n");
  save("b.raw", bytes("abc") + voxels);
  EXPECT_EQ(pass("b.mhd", "b.mhd").voxels, voxels);
  expect_same("b.mhd");
  expect_same("b.raw");
  if (!io::have_zlib()) return;

  // data packed beside the header, which tells its size
  {
    io::Envelope e;
    e.format = "metaimage";
    e.files.resize(2);
    e.files[0].name = "c.mhd";
    e.files[0].head = bytes(head + "CompressedData = True\nCompressedDataSize = 1   \nElementDataFile = c.zraw\n");
    e.files[1].name = "c.zraw";
    e.files[1].packing = io::Packing::kZlib;
    e.files[1].voxel_bytes = voxels.size();
    io::VolumeWriter writer(e, path("c.mhd"), false);
    writer.write(voxels.data(), voxels.size());
    writer.finish();
  }
  const Bytes header = load("c.mhd");
  const std::string text(reinterpret_cast<const char*>(header.data()), header.size());
  EXPECT_NE(text.find("CompressedDataSize = " + std::to_string(fs::file_size(path("c.zraw")))), std::string::npos);
  EXPECT_EQ(pass("c.mhd", "c.mhd").voxels, voxels);
  expect_same("c.mhd");
  expect_same("c.zraw");
}

TEST_F(VolumeFiles, raw_needs_size_and_type) {
  const Bytes voxels = make_scalars(Content::kRandom, {VoxelType::kU16, true, 1}, 24, 2);
  save("v.raw", voxels);
  EXPECT_THROW(io::open_volume(path("v.raw"), {}), Error);
  io::VolumeOptions options;
  options.size = {2, 3, 4};
  EXPECT_THROW(io::open_volume(path("v.raw"), options), Error);
  options.type = "u16be";
  EXPECT_EQ(pass("v.raw", "v.raw", options).voxels, voxels);
  expect_same("v.raw");
  options.size = {2, 3, 5};
  EXPECT_THROW(pass("v.raw", "w.raw", options), Error);
}

TEST_F(VolumeFiles, files_are_not_replaced_and_not_written_elsewhere) {
  const Bytes voxels(8);
  io::Envelope e;
  e.format = "nrrd";
  e.files.resize(2);
  e.files[1].voxel_bytes = 8;
  for (const std::string bad : {"../evil", "/evil", "", ".hidden", "a/b"}) {
    e.files[1].name = bad;
    EXPECT_THROW(io::VolumeWriter(e, path("x.nhdr"), false), Error) << bad;
  }
  e.files[1].name = "fine.raw";
  save("fine.raw", "here already");
  // The user named x.nhdr only: an older x.raw beside it may go, a file of another name may not.
  for (const bool overwrite : {false, true})
    EXPECT_THROW(io::VolumeWriter(e, path("x.nhdr"), overwrite), Error) << overwrite;
  e.files[1].name = "x.raw";
  save("x.raw", "here already");
  EXPECT_THROW(io::VolumeWriter(e, path("x.nhdr"), false), Error);
  {
    io::VolumeWriter writer(e, path("x.nhdr"), true);
    writer.write(voxels.data(), 4);
    EXPECT_THROW(writer.finish(), Error);
  }
  EXPECT_EQ(load("fine.raw"), bytes("here already"));
  EXPECT_EQ(load("x.raw"), bytes("here already"));
  EXPECT_FALSE(fs::exists(path("x.nhdr")));
}

TEST_F(VolumeFiles, inconsistent_headers_are_refused) {
  const std::string nrrd = "NRRD0004\ntype: short\ndimension: 3\nencoding: raw\nendian: little\n";
  const std::string meta = "ObjectType = Image\nNDims = 3\nElementType = MET_SHORT\n";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"sizes.nrrd", nrrd + "sizes: 4 4\n\n"},
      {"zero.nrrd", nrrd + "sizes: 4 0 4\n\n"},
      {"huge.nrrd", nrrd + "sizes: 4000000000 4000000000 4000000000\n\n"},
      {"wide.nrrd", nrrd + "sizes: 70000 1 1\n\n"},
      {"short.nrrd", nrrd + "sizes: 4 4 4\n\n12345"},
      {"open.nrrd", nrrd + "sizes: 4 4 4\n"},
      {"type.nrrd", "NRRD0004\ntype: block\ndimension: 1\nsizes: 4\nencoding: raw\n\n"},
      {"endian.nrrd", "NRRD0004\ntype: short\ndimension: 1\nsizes: 4\nencoding: raw\n\n12345678"},
      {"bzip.nrrd", "NRRD0004\ntype: uchar\ndimension: 1\nsizes: 4\nencoding: bzip2\n\n"},
      {"gzip.nrrd", "NRRD0004\ntype: uchar\ndimension: 1\nsizes: 4\nencoding: gzip\n\nno gzip at all"},
      {"axes.mha", meta + "DimSize = 4 4\nElementDataFile = LOCAL\n"},
      {"zero.mha", meta + "DimSize = 4 4 0\nElementDataFile = LOCAL\n"},
      {"none.mha", meta + "DimSize = 4 4 4\n"},
      {"ascii.mha", meta + "DimSize = 4 4 4\nBinaryData = False\nElementDataFile = LOCAL\n"},
      {"short.mha", meta + "DimSize = 4 4 4\nElementDataFile = LOCAL\nfew"},
      {"missing.mhd", meta + "DimSize = 4 4 4\nElementDataFile = nowhere.raw\n"},
  };
  for (const auto& [name, text] : table) {
    save(name, text);
    try {
      pass(name, name);
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& e) {
      EXPECT_NE(e.kind(), ErrorKind::kInternal) << name << ": " << e.what();
    }
  }
  // NIfTI: every field that matters, out of range
  const Bytes good = io::make_envelope(small_volume({VoxelType::kI16, false, 1}), "nii").files[0].head;
  const auto broken = [&](std::size_t at, const Bytes& with) {
    Bytes b = good;
    std::copy(with.begin(), with.end(), b.begin() + static_cast<std::ptrdiff_t>(at));
    save("broken.nii", b + Bytes(13 * 9 * 7 * 2));
    EXPECT_THROW(pass("broken.nii", "broken.nii"), Error) << "byte " << at;
  };
  const auto two = [](int v) { return Bytes{static_cast<std::byte>(v), static_cast<std::byte>(v >> 8)}; };
  broken(40, two(0));
  broken(40, two(8));
  broken(42, two(0));
  broken(44, two(-5));
  broken(70, two(1));
  broken(70, two(1536));
  broken(46, two(32767));
  broken(108, bytes(std::string("\0\0\xC0\xFF", 4)));  // NaN
  broken(108, bytes(std::string("\0\0\x80\x3F", 4)));  // 1
  save("cut.nii", Bytes(good.begin(), good.begin() + 200));
  EXPECT_THROW(io::open_volume(path("cut.nii"), {}), Error);
}

/// What open_volume() says of a file, "" if it takes it.
std::string refusal(const std::string& path, const io::VolumeOptions& options = {}) {
  try {
    (void)io::open_volume(path, options);
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

// A header from elsewhere cannot have any file of the user's coded, unless that is asked for.
TEST_F(VolumeFiles, data_files_lie_beside_their_header) {
  const std::string nrrd = "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 2 2 2\nencoding: raw\n";
  const std::string meta = "ObjectType = Image\nNDims = 3\nElementType = MET_UCHAR\nDimSize = 2 2 2\n";
  save("secret.raw", std::string("12345678"));
  fs::create_directories(folder_ / "in");
  save("in/beside.raw", std::string("abcdefgh"));
  for (const std::string& name : {std::string("../secret.raw"), path("secret.raw"), std::string("./beside.raw")}) {
    save("in/a.nhdr", nrrd + "data file: " + name + "\n");
    save("in/a.mhd", meta + "ElementDataFile = " + name + "\n");
    for (const char* header : {"in/a.nhdr", "in/a.mhd"}) {
      EXPECT_NE(refusal(path(header)).find("VolumeOptions::allow_outside"), std::string::npos) << name;
      EXPECT_EQ(refusal(path(header), {.allow_outside = true}), "") << name;
    }
  }
  save("in/a.nhdr", nrrd + "data file: beside.raw\n");
  EXPECT_EQ(refusal(path("in/a.nhdr")), "");
}

// Headers that promise much more than there is, or ask for much more work than they are long.
TEST_F(VolumeFiles, short_files_take_little_memory_and_time) {
  io::VolumeInfo large = small_volume({VoxelType::kF64, false, 1});
  large.width = large.height = 20000;
  save("large.nii", io::make_envelope(large, "nii").files[0].head + Bytes(100));
  EXPECT_NE(refusal(path("large.nii")).find("are promised"), std::string::npos);

  const std::string nrrd = "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 2 2 4\nencoding: raw\n";
  save("x.raw", std::string("12345678"));
  save("twice.nhdr", nrrd + "data file: LIST\nx.raw\nx.raw\n");
  EXPECT_NE(refusal(path("twice.nhdr")).find("twice"), std::string::npos);
  std::string many = nrrd + "data file: LIST\n";
  for (int i = 0; i < 300; ++i) many += std::string(60000, 'n') + std::to_string(i) + "\n";
  save("many.nhdr", many);
  EXPECT_NE(refusal(path("many.nhdr")).find("bytes of their names"), std::string::npos);

  // Lines to skip, again and again, in a header that a stream holds.
  io::Envelope lines;
  lines.format = "nrrd";
  lines.files.resize(401);
  lines.files[0].name = "lines.nhdr";
  lines.files[0].head = bytes("NRRD0004\ntype: uchar\ndimension: 3\nsizes: 2 2 400\nencoding: raw\nline skip: 600\n"
                              "data file: x%d.raw 1 400 1\n");
  for (std::size_t i = 1; i < lines.files.size(); ++i) {
    lines.files[i].name = "x" + std::to_string(i) + ".raw";
    lines.files[i].voxel_bytes = 4;
    lines.files[i].head.assign(60000, std::byte{'n'});
    for (std::size_t end = 99; end < 60000; end += 100) lines.files[i].head[end] = std::byte{'\n'};
  }
  EXPECT_THROW(io::volume_info(lines), Error);
}

// -------------------------------------------------------------------------------------------------------------- DICOM

/// Just enough of a DICOM file.
struct DicomMaker {
  bool explicit_vr = true;
  bool big_endian = false;
  std::string series = "1.2.3";
  double z = 0;
  double shift = 0;  // along y: tilt
  int frames = 1;
  int number = 1;

  void u16(Bytes& out, unsigned v, bool big) const {
    out.push_back(static_cast<std::byte>(big ? v >> 8 : v));
    out.push_back(static_cast<std::byte>(big ? v : v >> 8));
  }
  void element(Bytes& out, unsigned group, unsigned number_, const char* vr, Bytes value, bool is_meta = false) const {
    if (value.size() % 2) value.push_back(std::byte{' '});
    const bool big = big_endian && !is_meta;
    u16(out, group, big);
    u16(out, number_, big);
    const auto length = static_cast<unsigned>(value.size());
    const bool long_form = std::string(vr) == "OW" || std::string(vr) == "UN";
    if (explicit_vr || is_meta) {
      out = out + bytes(vr);
      if (long_form) u16(out, 0, big);
      if (!long_form) {
        u16(out, length, big);
        out = out + value;
        return;
      }
    }
    u16(out, big ? length >> 16 : length & 0xFFFF, big);
    u16(out, big ? length & 0xFFFF : length >> 16, big);
    out = out + value;
  }
  Bytes make(const Bytes& pixels) const {
    Bytes out(128);
    out = out + bytes("DICM");
    const std::string syntax = !explicit_vr ? "1.2.840.10008.1.2"
                               : big_endian ? "1.2.840.10008.1.2.2"
                                            : "1.2.840.10008.1.2.1";
    element(out, 2, 0x10, "UI", bytes(syntax), true);
    const auto word = [&](unsigned v) {
      Bytes b;
      u16(b, v, big_endian);
      return b;
    };
    // a private sequence of undefined length with an item of undefined length in it
    Bytes sequence;
    u16(sequence, 0x0009, big_endian);
    u16(sequence, 0x1001, big_endian);
    if (explicit_vr) sequence = sequence + bytes("SQ") + Bytes(2);
    const auto delimiter = [&](unsigned e, bool undefined) {
      u16(sequence, 0xFFFE, big_endian);
      u16(sequence, e, big_endian);
      for (int i = 0; i < 4; ++i) sequence.push_back(undefined ? std::byte{0xFF} : std::byte{0});
    };
    for (int i = 0; i < 4; ++i) sequence.push_back(std::byte{0xFF});
    delimiter(0xE000, true);
    element(sequence, 0x0028, 0x0010, "US", word(9999));  // not the rows of the picture
    delimiter(0xE00D, false);
    delimiter(0xE0DD, false);
    out = out + sequence;
    element(out, 0x10, 0x10, "PN", bytes("Doe^Jane"));
    element(out, 0x20, 0x0E, "UI", bytes(series));
    element(out, 0x20, 0x13, "IS", bytes(std::to_string(number)));
    element(out, 0x20, 0x32, "DS", bytes(std::string("0\\") + std::to_string(shift) + "\\" + std::to_string(z)));
    element(out, 0x20, 0x37, "DS", bytes("1\\0\\0\\0\\1\\0"));
    element(out, 0x28, 0x02, "US", word(1));
    if (frames > 1) element(out, 0x28, 0x08, "IS", bytes(std::to_string(frames)));
    element(out, 0x28, 0x10, "US", word(3));
    element(out, 0x28, 0x11, "US", word(4));
    element(out, 0x28, 0x30, "DS", bytes("0.5\\0.25"));
    element(out, 0x28, 0x100, "US", word(16));
    element(out, 0x28, 0x103, "US", word(1));
    element(out, 0x28, 0x1052, "DS", bytes("-1024"));
    element(out, 0x28, 0x1053, "DS", bytes("1"));
    element(out, 0x7FE0, 0x10, "OW", pixels);
    element(out, 0xFFFC, 0xFFFC, "UN", bytes("trailing"));
    return out;
  }
};

// Pixels were uncompressed before their header came into a stream: what says otherwise is not handed to a decompressor.
TEST_F(VolumeFiles, a_stored_dicom_header_is_uncompressed) {
  const Bytes whole = DicomMaker{}.make(Bytes(24));
  std::string text(reinterpret_cast<const char*>(whole.data()), whole.size());
  io::Envelope stored;
  stored.format = "dicom";
  stored.files.resize(1);
  stored.files[0].name = "a.dcm";
  stored.files[0].head = bytes(text);
  EXPECT_EQ(io::volume_info(stored).width, 4);
  text.replace(text.find("1.2.840.10008.1.2.1"), 19, "1.2.840.10008.1.2.5");
  stored.files[0].head = bytes(text);
  try {
    (void)io::volume_info(stored);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << e.what();
  }
}

TEST_F(VolumeFiles, dicom_series) {
  for (int kind = 0; kind < 3; ++kind) {
    DicomMaker maker;
    maker.explicit_vr = kind > 0;
    maker.big_endian = kind == 2;
    const std::string in = std::string("series") + std::to_string(kind);
    fs::create_directories(path(in));
    const double z[5] = {10, 0, 5, 25, 15};  // 20 is missing
    std::vector<Bytes> pixels;
    for (int i = 0; i < 5; ++i) {
      maker.z = z[i];
      maker.number = i;
      pixels.push_back(
          make_scalars(Content::kRandom, {VoxelType::kI16, maker.big_endian, 1}, 12, static_cast<std::uint32_t>(i)));
      save(in + "/" + std::to_string(i) + ".dcm", maker.make(pixels.back()));
    }
    save(in + "/notes.txt", "not DICOM");
    const Passed p = pass(in, in);
    EXPECT_EQ(p.voxels, pixels[1] + pixels[2] + pixels[0] + pixels[4] + pixels[3]);
    EXPECT_EQ(p.info.slices, 5u);
    EXPECT_EQ(p.info.intercept, -1024);
    EXPECT_EQ(p.info.spacing, (std::array<double, 4>{0.25, 0.5, 5, 1}));
    std::string remarks;
    for (const std::string& r : p.remarks) remarks += r + "\n";
    EXPECT_NE(remarks.find("1 slices seem to be missing between 4.dcm and 3.dcm"), std::string::npos) << remarks;
    EXPECT_EQ(remarks.find("tilted"), std::string::npos) << remarks;
    for (int i = 0; i < 5; ++i) expect_same(in + "/" + std::to_string(i) + ".dcm");
    EXPECT_FALSE(fs::exists(path("again/" + in + "/notes.txt")));
  }
}

TEST_F(VolumeFiles, dicom_tilt_mixed_series_several_volumes_and_frames) {
  DicomMaker maker;
  const Bytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  fs::create_directories(path("tilted"));
  for (int i = 0; i < 4; ++i) {
    maker.z = 5 * i;
    maker.shift = 1.0 * i;
    save(std::string("tilted/") + std::to_string(i), maker.make(pixels));
  }
  const Passed tilted = pass("tilted", "tilted");
  ASSERT_EQ(tilted.remarks.size(), 1u);
  EXPECT_NE(tilted.remarks[0].find("tilted by 11.3 degrees"), std::string::npos);

  maker.series = "9.9";
  save("tilted/other", maker.make(pixels));
  try {
    io::open_volume(path("tilted"), {});
    ADD_FAILURE() << "two series were taken for one";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kBadStream);
    EXPECT_NE(std::string(e.what()).find("9.9"), std::string::npos);
  }

  maker.shift = 0;
  fs::create_directories(path("times"));
  for (int t = 0; t < 3; ++t)
    for (int i = 0; i < 2; ++i) {
      maker.z = i;
      maker.number = 10 * t + i;
      save(std::string("times/") + std::to_string(t) + std::to_string(i), maker.make(pixels));
    }
  const Passed times = pass("times", "times");
  EXPECT_EQ(times.info.slices, 2u);
  EXPECT_EQ(times.info.volumes, 3u);

  maker.frames = 6;
  const Bytes many = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 72, 1);
  save("frames.dcm", maker.make(many));
  const Passed frames = pass("frames.dcm", "frames.dcm");
  expect_same("frames.dcm");
  EXPECT_EQ(frames.info.slices, 6u);
  EXPECT_EQ(frames.voxels, many);
  maker.frames = 7;
  save("few.dcm", maker.make(many));
  EXPECT_THROW(io::open_volume(path("few.dcm"), {}), Error);
}

}  // namespace
}  // namespace trivelet
