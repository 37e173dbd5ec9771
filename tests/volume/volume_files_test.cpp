// Volume files: the readers of headers, and byte-exact round trips of files.
#include <cstring>
#include <limits>

#include "tests/support/volume_files_support.h"

namespace trivelet {
namespace {

namespace fs = std::filesystem;
using test::bytes;
using test::Content;
using test::make_scalars;
using test::VolumeBytes;
using test::VolumeFiles;
using test::operator+;

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

TEST_F(VolumeFiles, nifti_with_extensions_and_a_tail) {
  int n = 0;
  for (const VoxelFormat f : {VoxelFormat{VoxelType::kU8, false, 1}, VoxelFormat{VoxelType::kI16, true, 1},
                              VoxelFormat{VoxelType::kF32, true, 1}, VoxelFormat{VoxelType::kU8, false, 3},
                              VoxelFormat{VoxelType::kF32, false, 2}, VoxelFormat{VoxelType::kI64, true, 1}}) {
    const io::VolumeInfo info = small_volume(f, n % 2 ? 3 : 1);
    io::Envelope e = io::make_envelope(info, "nii");
    VolumeBytes head = e.files[0].head;
    // an extension of 32 bytes between header and voxels
    const float offset = 384;
    std::uint32_t bits;
    std::memcpy(&bits, &offset, 4);
    for (std::size_t i = 0; i < 4; ++i)
      head[108 + i] = static_cast<std::byte>(bits >> (8 * (f.big_endian ? 3 - i : i)));
    head[348] = std::byte{1};
    head = head + bytes(std::string(32, 'x'));
    const VolumeBytes voxels = make_scalars(Content::kRandom, f, static_cast<std::size_t>(info.voxels()), 4);
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
  const VolumeBytes voxels = make_scalars(Content::kEvery, f, 80000, 1);
  save("long.nii", io::make_envelope(info, "nii").files[0].head + voxels);
  const Passed p = pass("long.nii", "long.nii");
  expect_same("long.nii");
  EXPECT_EQ(p.info.format, "nifti-2");
  EXPECT_EQ(p.info.width, 40000);

  VolumeBytes head = io::make_envelope(small_volume(f), "nii").files[0].head;
  head[344] = std::byte{'n'};
  head[345] = std::byte{'i'};
  for (std::size_t i = 108; i < 112; ++i) head[i] = std::byte{0};
  const VolumeBytes small = make_scalars(Content::kRandom, f, 13 * 9 * 7, 2);
  save("pair.hdr", head);
  save("pair.img", small);
  EXPECT_EQ(pass("pair.hdr", "pair.hdr").voxels, small);
  expect_same("pair.hdr");
  expect_same("pair.img");
  // Either half may be named.
  fs::remove(path("again/pair.hdr"));
  fs::remove(path("again/pair.img"));
  EXPECT_TRUE(io::is_volume(path("pair.img")));
  EXPECT_EQ(pass("pair.img", "pair.img").voxels, small);
  expect_same("pair.hdr");
  expect_same("pair.img");
  save("alone.img", small);
  EXPECT_FALSE(io::is_volume(path("alone.img")));
}

// Where NIfTI has the codes of its matrices and its units, Analyze has an orientation, the origin of SPM and a free float.
TEST_F(VolumeFiles, analyze_has_no_matrix) {
  io::VolumeInfo info = small_volume({VoxelType::kU8, false, 1});
  info.has_affine = false;
  info.affine = {};
  info.spacing = {2, 3, 4, 1};
  VolumeBytes head = io::make_envelope(info, "nii").files[0].head;
  for (std::size_t i = 344; i < 348; ++i) head[i] = std::byte{0};
  for (std::size_t i = 108; i < 112; ++i) head[i] = std::byte{0};
  head[123] = std::byte{3 + 16};  // of the free float; in NIfTI micrometres and milliseconds
  const std::string origin("\6\0\4\0\3\0", 6);
  std::memcpy(&head[253], origin.data(), origin.size());
  save("spm.hdr", head);
  save("spm.img", VolumeBytes(static_cast<std::size_t>(info.bytes())));
  const Passed p = pass("spm.hdr", "spm.hdr");
  expect_same("spm.hdr");
  const io::VolumeInfo& found = p.info;
  EXPECT_FALSE(found.has_affine);
  EXPECT_FALSE(found.knows_distance_unit);
  EXPECT_EQ(found.spacing, info.spacing);
  ASSERT_EQ(p.remarks.size(), 1u);
  EXPECT_NE(p.remarks[0].find("(voxel 6, 4, 3)"), std::string::npos) << p.remarks[0];
}

TEST_F(VolumeFiles, nrrd) {
  const VoxelFormat f{VoxelType::kI16, true, 1};
  const VolumeBytes voxels = make_scalars(Content::kRandom, f, 4 * 3 * 6, 2);
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
  save("c1.bin", bytes("one\ntwo\n") + VolumeBytes(voxels.begin(), voxels.begin() + 72));
  save("c2.bin", bytes("three\nfour\n") + VolumeBytes(voxels.begin() + 72, voxels.end()));
  EXPECT_EQ(pass("c.nhdr", "c.nhdr").voxels, voxels);
  expect_same("c1.bin");
  expect_same("c2.bin");

  save("d.nhdr", head + "byteskip: -1\nencoding: raw\ndatafile: d%02d.bin 8 10 2\n");
  save("d08.bin", bytes("any length of header") + VolumeBytes(voxels.begin(), voxels.begin() + 72));
  save("d10.bin", VolumeBytes(voxels.begin() + 72, voxels.end()));
  EXPECT_EQ(pass("d.nhdr", "d.nhdr").voxels, voxels);
  expect_same("d08.bin");
  expect_same("d10.bin");
  fs::remove(path("d10.bin"));
  EXPECT_THROW(io::open_volume(path("d.nhdr"), {}), Error);

  if (!io::have_zlib()) return;
  // what make_envelope() writes is packed inside
  const io::VolumeInfo info = small_volume(f);
  const VolumeBytes more = make_scalars(Content::kEvery, f, static_cast<std::size_t>(info.voxels()), 2);
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
  const VolumeBytes voxels = make_scalars(Content::kEvery, f, static_cast<std::size_t>(info.voxels()), 2);
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
  // Remarks, empty lines and other fields stand before the first known one.
  save("d.mhd", "of a phantom\n\n# its header\nBinaryDataByteOrderMSB = True\n\n" + head +
                    "another remark\nHeaderSize = 3\nElementDataFile = d.raw\nbehind = it\n");
  save("d.raw", bytes("abc") + voxels);
  EXPECT_EQ(pass("d.mhd", "d.mhd").voxels, voxels);
  expect_same("d.mhd");
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
  const VolumeBytes header = load("c.mhd");
  const std::string text(reinterpret_cast<const char*>(header.data()), header.size());
  EXPECT_NE(text.find("CompressedDataSize = " + std::to_string(fs::file_size(path("c.zraw")))), std::string::npos);
  EXPECT_EQ(pass("c.mhd", "c.mhd").voxels, voxels);
  expect_same("c.mhd");
  expect_same("c.zraw");
}

TEST_F(VolumeFiles, raw_needs_size_and_type) {
  const VolumeBytes voxels = make_scalars(Content::kRandom, {VoxelType::kU16, true, 1}, 24, 2);
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
  const VolumeBytes voxels(8);
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
  const VolumeBytes good = io::make_envelope(small_volume({VoxelType::kI16, false, 1}), "nii").files[0].head;
  const auto broken = [&](std::size_t at, const VolumeBytes& with) {
    VolumeBytes b = good;
    std::copy(with.begin(), with.end(), b.begin() + static_cast<std::ptrdiff_t>(at));
    save("broken.nii", b + VolumeBytes(13 * 9 * 7 * 2));
    EXPECT_THROW(pass("broken.nii", "broken.nii"), Error) << "byte " << at;
  };
  const auto two = [](int v) { return VolumeBytes{static_cast<std::byte>(v), static_cast<std::byte>(v >> 8)}; };
  broken(40, two(0));
  broken(40, two(8));
  broken(42, two(0));
  broken(44, two(-5));
  broken(70, two(1));
  broken(70, two(1536));
  broken(46, two(32767));
  broken(108, bytes(std::string("\0\0\xC0\xFF", 4)));  // NaN
  broken(108, bytes(std::string("\0\0\x80\x3F", 4)));  // 1
  save("cut.nii", VolumeBytes(good.begin(), good.begin() + 200));
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
  fs::create_symlink(path("secret.raw"), path("in/link.raw"));
  const auto save_headers = [&](const std::string& name) {
    save("in/a.nhdr", nrrd + "data file: " + name + "\n");
    save("in/a.mhd", meta + "ElementDataFile = " + name + "\n");
  };
  for (const std::string& name :
       {std::string("../secret.raw"), path("secret.raw"), std::string("link.raw"), std::string("..")}) {
    save_headers(name);
    for (const char* header : {"in/a.nhdr", "in/a.mhd"}) {
      EXPECT_NE(refusal(path(header)).find("VolumeOptions::allow_outside"), std::string::npos) << name;
      EXPECT_EQ(refusal(path(header), {.allow_outside = true}).empty(), name != "..") << name;
    }
  }
  fs::create_symlink("beside.raw", path("in/own.raw"));
  for (const std::string& name : {std::string("beside.raw"), std::string("./beside.raw"),
                                  std::string("../in/beside.raw"), path("in/beside.raw"), std::string("own.raw")}) {
    save_headers(name);
    for (const char* header : {"in/a.nhdr", "in/a.mhd"}) EXPECT_EQ(refusal(path(header)), "") << name;
  }
  save("in/a.nhdr", nrrd + "data file: LIST\nbeside.raw\n./beside.raw\n");
  EXPECT_NE(refusal(path("in/a.nhdr")).find("twice"), std::string::npos);
}

// Distances are reported in millimetres and times in seconds, whatever units a header has.
TEST_F(VolumeFiles, units_of_headers) {
  io::VolumeInfo info = small_volume({VoxelType::kU8, false, 1});
  info.width = info.height = 2;
  info.slices = info.volumes = 2;
  info.spacing = {2, 3, 4, 500};
  info.has_affine = true;
  info.affine = {2, 0, 0, 10, 0, 3, 0, 20, 0, 0, 4, 30};
  info.knows_distance_unit = false;  // the unit is put in below
  const VolumeBytes voxels(16);
  const auto text = [](const io::Envelope& e) {
    return std::string(reinterpret_cast<const char*>(e.files[0].head.data()), e.files[0].head.size());
  };
  std::string nifti = text(io::make_envelope(info, "nii"));
  nifti[123] = 3 + 16;  // micrometres and milliseconds
  std::string nrrd = text(io::make_envelope(info, "nrrd"));
  nrrd.replace(nrrd.find("gzip"), 4, "raw");
  nrrd.insert(nrrd.find("kinds:"), "space units: \"um\" \"um\" \"um\"\n");
  const auto with_unit = [&](const std::string& unit) {
    std::string named = nrrd;
    for (std::size_t at = 0; (at = named.find("\"um\"", at)) != std::string::npos;) named.replace(at + 1, 2, unit);
    return named;
  };
  const std::string latin1 = with_unit("\xB5m");
  const std::string greek = with_unit("\xCE\xBCm");
  std::string meta = text(io::make_envelope(info, "mha"));
  meta.replace(meta.find("CompressedData = True"), 21, "DistanceUnits = um");
  for (const auto& [name, head] : {std::pair("a.nii", nifti), std::pair("a.nrrd", nrrd), std::pair("b.nrrd", latin1),
                                   std::pair("c.nrrd", greek), std::pair("a.mha", meta)}) {
    save(name, bytes(head) + voxels);
    const io::VolumeInfo read = pass(name, name).info;
    EXPECT_NEAR(read.spacing[1], 0.003, 1e-9) << name;
    EXPECT_NEAR(read.affine[5], 0.003, 1e-9) << name;
    EXPECT_NEAR(read.affine[11], 0.03, 1e-9) << name;
    EXPECT_NEAR(read.spacing[3], std::string(name) == "a.nii" ? 0.5 : 500, 1e-9) << name;
  }
}

// A header says no more of units than the file did that its numbers are from.
TEST_F(VolumeFiles, unknown_units_stay_unknown) {
  io::VolumeInfo info = small_volume({VoxelType::kU8, false, 1});
  info.width = info.height = 2;
  info.slices = info.volumes = 2;
  info.spacing = {2, 3, 4, 0.5};
  info.has_affine = false;
  info.affine = {};
  const VolumeBytes voxels(16);
  int files = 0;
  const auto read = [&](const std::string& text, const char* extension) {
    const std::string name = "u" + std::to_string(++files) + extension;
    save(name, bytes(text) + voxels);
    return pass(name, name);
  };
  const auto head = [](const io::VolumeInfo& of, const char* extension) {
    const io::Envelope e = io::make_envelope(of, extension);
    return std::string(reinterpret_cast<const char*>(e.files[0].head.data()), e.files[0].head.size());
  };
  std::string nifti = head(info, "nii");
  for (const int units : {0, 2, 8, 10, 2 + 32, 2 + 40, 48}) {
    nifti[123] = static_cast<char>(units);
    EXPECT_EQ(head(read(nifti, ".nii").info, "nii")[123], units);
  }
  std::string nrrd = head(info, "nrrd");
  nrrd.replace(nrrd.find("gzip"), 4, "raw");
  const std::size_t begin = nrrd.find("units:"), end = nrrd.find('\n', begin);
  const struct {
    const char* units;
    double across, times;
    int in_nifti;
    const char* remark;
  } kCases[] = {{"", 2, 0.5, 0, ""},
                {"units: \"mm\" \"mm\" \"mm\" \"s\"", 2, 0.5, 10, ""},
                {"units: \"um\" \"um\" \"um\" \"ms\"", 0.002, 0.0005, 10, ""},
                {"units: \"um\" \"um\" \"mm\" \"\"", 2, 0.5, 0, "unit of distance"},
                {"units: \"feet\" \"feet\" \"feet\" \"\"", 2, 0.5, 0, "feet"}};
  for (const auto& c : kCases) {
    std::string text = nrrd;
    text.replace(begin, end + (*c.units == 0 ? 1 : 0) - begin, c.units);
    const Passed found = read(text, ".nrrd");
    EXPECT_NEAR(found.info.spacing[0], c.across, 1e-9) << c.units;
    EXPECT_NEAR(found.info.spacing[3], c.times, 1e-9) << c.units;
    EXPECT_EQ(head(found.info, "nii")[123], c.in_nifti) << c.units;
    EXPECT_EQ(found.remarks.empty(), *c.remark == 0) << c.units;
    if (!found.remarks.empty()) {
      EXPECT_NE(found.remarks[0].find(c.remark), std::string::npos) << found.remarks[0];
    }
  }
}

// The fourth number of a quaternion is what is left of 1; of half a turn that is the rounding of the others.
TEST_F(VolumeFiles, half_a_turn_of_a_quaternion) {
  io::VolumeInfo info = small_volume({VoxelType::kU8, false, 1});
  info.has_affine = false;
  info.affine = {};
  info.spacing = {1, 1, 1, 1};
  VolumeBytes nifti = io::make_envelope(info, "nii").files[0].head;
  const float half = std::sqrt(0.5F);  // b and c; d is 0
  std::memcpy(&nifti[256], &half, 4);
  std::memcpy(&nifti[260], &half, 4);
  nifti[252] = std::byte{1};  // qform_code
  save("turned.nii", nifti + VolumeBytes(static_cast<std::size_t>(info.bytes())));
  const std::array<double, 12> found = pass("turned.nii", "turned.nii").info.affine;
  const std::array<double, 12> wanted = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0, -1, 0};
  for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6) << i;
}

// Headers that promise much more than there is, or ask for much more work than they are long.
TEST_F(VolumeFiles, short_files_take_little_memory_and_time) {
  io::VolumeInfo large = small_volume({VoxelType::kF64, false, 1});
  large.width = large.height = 20000;
  save("large.nii", io::make_envelope(large, "nii").files[0].head + VolumeBytes(100));
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
  lines.files[0].head = bytes(
      "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 2 2 400\nencoding: raw\nline skip: 600\n"
      "data file: x%d.raw 1 400 1\n");
  for (std::size_t i = 1; i < lines.files.size(); ++i) {
    lines.files[i].name = "x" + std::to_string(i) + ".raw";
    lines.files[i].voxel_bytes = 4;
    lines.files[i].head.assign(60000, std::byte{'n'});
    for (std::size_t end = 99; end < 60000; end += 100) lines.files[i].head[end] = std::byte{'\n'};
  }
  EXPECT_THROW(io::volume_info(lines), Error);
}

// What stands after the fourth axis is in the volume as one with it; that is said, and its own file has it again.
TEST_F(VolumeFiles, axes_after_the_fourth) {
  struct Case {
    std::string size;  // after 2 x 2 x 2
    std::uint64_t volumes;
    std::string said;  // "" = nothing
  };
  const Case cases[] = {{"3", 3, ""},
                        {"3 1 1", 3, ""},
                        {"1 3", 3, "an axis of 3 after the fourth one is the fourth one in files of other formats"},
                        {"2 3", 6, "the axes after the third one, 2 x 3, are put together"},
                        {"2 1 3 2", 12, "the axes after the third one, 2 x 3 x 2, are put together"}};
  for (const Case& c : cases) {
    const VolumeBytes voxels = make_scalars(Content::kRandom, {}, 8 * c.volumes, 5);
    const std::size_t axes = 3 + (c.size.size() + 1) / 2;
    std::string spacings = " 1 1 1 2.5", units = "\"mm\" \"mm\" \"mm\" \"s\"";
    for (std::size_t i = 4; i < axes; ++i) {
      spacings += " 1";
      units += " \"\"";
    }
    save("a.nrrd", bytes("NRRD0004\ntype: uchar\ndimension: " + std::to_string(axes) + "\nsizes: 2 2 2 " + c.size +
                         "\nspacings:" + spacings + "\nunits: " + units + "\nencoding: raw\n\n") +
                       voxels);
    save("a.mha", bytes("ObjectType = Image\nNDims = " + std::to_string(axes) + "\nDimSize = 2 2 2 " + c.size +
                        "\nElementSpacing =" + spacings + "\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n") +
                      voxels);
    io::VolumeInfo info;
    info.width = info.height = 2;
    info.slices = 2;
    info.spacing[3] = 2.5;
    info.volumes = c.volumes;
    VolumeBytes head = io::make_envelope(info, "nii").files[0].head;
    head[40] = static_cast<std::byte>(axes);
    for (std::size_t i = 4; i <= axes; ++i) head[40 + 2 * i] = static_cast<std::byte>(c.size[2 * (i - 4)] - '0');
    save("a.nii", head + voxels);
    for (const std::string name : {"a.nrrd", "a.mha", "a.nii"}) {
      const Passed p = pass(name, name);
      expect_same(name);
      fs::remove(path("again/" + name));
      EXPECT_EQ(p.info.volumes, c.volumes);
      EXPECT_EQ(p.info.spacing[3], c.said.empty() ? 2.5 : 1) << name << ", " << c.size;
      EXPECT_EQ(p.info.fourth_unit == io::FourthUnit::kSeconds, c.said.empty() && name != "a.mha") << name;
      ASSERT_EQ(p.remarks.size(), c.said.empty() ? 0u : 1u) << name << ", " << c.size;
      if (p.remarks.empty()) continue;
      EXPECT_EQ(p.remarks[0].rfind(c.said, 0), 0u) << p.remarks[0];
    }
  }
}

// Text has numbers between white space and commas; the file comes back raw.
TEST_F(VolumeFiles, nrrd_of_text) {
  const std::string begin = "NRRD0004\n# a remark\ntype: short\ndimension: 3\nsizes: 2 2 2\nEncoding: TXT\n";
  const std::vector<std::int16_t> due = {1, -2, 3, 32767, -32768, 0, 7, 8};
  const auto bytes_of = [](const auto& values) {
    VolumeBytes b(values.size() * sizeof values[0]);
    std::memcpy(b.data(), values.data(), b.size());
    return b;
  };
  const std::string numbers = " 1 -2\t+3,32767\r\n-32768 , 0\n7.0 8\n\n";
  save("t.nrrd", begin + "\n" + numbers);
  const Passed p = pass("t.nrrd", "t.nrrd");
  EXPECT_EQ(p.voxels, bytes_of(due));
  ASSERT_EQ(p.remarks.size(), 1u);
  EXPECT_EQ(p.remarks[0].rfind("its voxels are text and come back raw", 0), 0u) << p.remarks[0];
  const std::string head =
      "NRRD0004\n# a remark\ntype: short\ndimension: 3\nsizes: 2 2 2\nencoding: raw\nendian: little\n";
  EXPECT_EQ(load("again/t.nrrd"), bytes(head + "\n") + bytes_of(due));
  // A byte order means nothing for text.
  save("e.nrrd", begin + "endian: big\n\n" + numbers);
  EXPECT_EQ(pass("e.nrrd", "e.nrrd").voxels, bytes_of(due));
  // In a file of its own, with Windows' line ends.
  save("t.nhdr", begin + "data file: t.txt\r\nkey:=encoding: no field\r\n");
  save("t.txt", numbers);
  EXPECT_EQ(pass("t.nhdr", "t.nhdr").voxels, bytes_of(due));
  EXPECT_EQ(load("again/t.txt"), bytes_of(due));
  EXPECT_EQ(load("again/t.nhdr"), bytes(head + "data file: t.txt\r\nkey:=encoding: no field\r\n"));

  const std::vector<float> reals = {0.1f, -1e-30f, std::numeric_limits<float>::infinity(), 3.0f};
  save("f.nrrd", std::string("NRRD0001\ntype: float\ndimension: 1\nsizes: 4\nencoding: ascii\n\n0.1 -1e-30 inf 3"));
  EXPECT_EQ(pass("f.nrrd", "f.nrrd").voxels, bytes_of(reals));

  for (const char* wrong :
       {"1 2 3 4 5 6 7", "1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 x", "1 2 3 4 5 6 7 32768", "1 2 3 4 5 6 7 8.5"}) {
    save("w.nrrd", begin + "\n" + wrong);
    try {
      (void)pass("w.nrrd", "w.nrrd");
      ADD_FAILURE() << wrong;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << wrong << ": " << e.what();
    }
  }
}

// Hex digits are the bytes as they lie in memory, so that their order is the header's; the file comes back raw.
TEST_F(VolumeFiles, nrrd_of_hex) {
  const std::string begin = "NRRD0004\ntype: ushort\ndimension: 3\nsizes: 2 2 1\nendian: big\nencoding: ";
  const VolumeBytes due = bytes(std::string("\x01\x02\xab\xcd\0\xff\x7f\x80", 8));
  for (const std::string name : {"h.nrrd", "h.nhdr"}) {
    const bool is_alone = name == "h.nhdr";
    const std::string end = is_alone ? "\ndata file: h.hex\n" : "\n\n";
    const std::string digits = "0102ab\nCD 0 0\tff\r\n7f80\n";
    save(name, begin + "hex" + end + (is_alone ? "" : digits));
    save("h.hex", digits);
    const Passed p = pass(name, name);
    EXPECT_EQ(p.voxels, due);
    EXPECT_TRUE(p.info.voxel.big_endian);
    ASSERT_EQ(p.remarks.size(), 1u);
    EXPECT_EQ(p.remarks[0].rfind("its voxels are hex digits and come back raw", 0), 0u) << p.remarks[0];
    EXPECT_EQ(load("again/" + name), bytes(begin + "raw" + end) + (is_alone ? VolumeBytes{} : due));
    if (is_alone) {
      EXPECT_EQ(load("again/h.hex"), due);
    }
  }
  for (const char* wrong : {"0102abcd00ff7f8", "0102abcd00ff7f801", "0102abcd00ff7f80ff", "0102abcd00ff7f8g", ""}) {
    save("w.nrrd", begin + "hex\n\n" + wrong);
    try {
      (void)pass("w.nrrd", "w.nrrd");
      ADD_FAILURE() << wrong;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << wrong << ": " << e.what();
    }
  }
}

// Bytes to skip inside of gzip: a .gz beside its header comes back as it was, data behind a header come back raw.
TEST_F(VolumeFiles, nrrd_of_gzip_with_bytes_to_skip) {
  if (!io::have_zlib()) GTEST_SKIP() << "no zlib";
  const VolumeBytes voxels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 60, 3);
  const std::string begin = "NRRD0004\ntype: short\ndimension: 3\nsizes: 5 4 3\nendian: little\nencoding: ";
  const auto packed = [&](const VolumeBytes& content) {  // by the program's own writer of .gz
    io::VolumeWriter writer(io::text_envelope("nrrd", "", io::Packing::kGzip, content.size()), path("packed"), true);
    writer.write(content.data(), content.size());
    writer.finish();
    return load("packed");
  };
  struct Case {
    std::string skip;
    VolumeBytes before, after;
  };
  const Case cases[] = {
      {"-1", bytes("a header of any length"), {}}, {"-1", {}, {}}, {"6", bytes("a head"), bytes("tail")}};
  for (const Case& c : cases) {
    const std::string skip = "\nbyte skip: " + c.skip + "\n";
    const VolumeBytes content = c.before + voxels + c.after;
    save("g.nhdr", begin + "gzip" + skip + "data file: g.raw.gz\n");
    save("g.raw.gz", packed(content));
    const Passed beside = pass("g.nhdr", "g.nhdr");
    EXPECT_EQ(beside.voxels, voxels);
    EXPECT_TRUE(beside.remarks.empty());
    expect_same("g.nhdr");
    fs::rename(path("again/g.raw.gz"), path("g.raw.gz"));
    EXPECT_EQ(pass("g.nhdr", "2.nhdr").voxels, voxels) << "the same again";
    fs::remove_all(path("again"));
    fs::create_directories(path("again"));

    save("a.nrrd", bytes(begin + "gzip" + skip + "\n") + packed(content));
    const Passed attached = pass("a.nrrd", "a.nrrd");
    EXPECT_EQ(attached.voxels, voxels);
    EXPECT_EQ(attached.remarks.size(), 1u);
    EXPECT_EQ(load("again/a.nrrd"), bytes(begin + "raw" + skip + "\n") + content);
    fs::remove_all(path("again"));
    fs::create_directories(path("again"));
  }
  save("g.nhdr", begin + "gzip\nbyte skip: -1\ndata file: g.raw.gz\n");
  save("g.raw.gz", packed(VolumeBytes(119)));
  EXPECT_NE(refusal(path("g.nhdr")).find("unpacks to 119 bytes where 120 are due"), std::string::npos);
  save("g.nhdr", begin + "gzip\nbyte skip: -1\ndata file: g.raw\n");
  save("g.raw", packed(voxels));
  EXPECT_NE(refusal(path("g.nhdr")).find("does not end in .gz"), std::string::npos);
}

// Two lines of one field have no meaning of which all readers think alike. In a stream the last one counts, as before.
TEST_F(VolumeFiles, nrrd_fields_that_stand_there_twice) {
  const std::string begin =
      "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 2 2 2\nspace: right-anterior-superior\n"
      "space directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (0,0,0)\n";
  const VolumeBytes voxels(8);
  for (const std::string line : {"sizes: 2 2 2", "space directions: (2,0,0) (0,1,0) (0,0,1)",
                                 "spacedirections: none none none", "Space Origin: (1,1,1)", "type: uchar"}) {
    save("t.nrrd", bytes(begin + line + "\nencoding: raw\n\n") + voxels);
    const std::string said = refusal(path("t.nrrd"));
    EXPECT_NE(said.find("' stands there twice"), std::string::npos) << line << ": " << said;
  }
  io::Envelope stored =
      io::text_envelope("nrrd", begin + "space origin: (1,1,1)\nencoding: raw\n\n", io::Packing::kNone, 8);
  EXPECT_EQ(io::volume_info(stored).affine[3], 1);
}

// Compressed by Python's bz2: 27 scalars, in two streams.
TEST_F(VolumeFiles, nrrd_of_bzip2) {
  const std::string head = "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 3 3 3\nencoding: bzip2\n\n";
  VolumeBytes packed;
  for (const char* hex :
       {"425a6839314159265359cebe5f3e0000007fb564204020240020004400200004200020400000200400200020002283468d36a610a64c4c"
        "832304df059d11f113a0799e27e2ee48a70a1219d7cbe7c0",
        "425a683931415926535938e201f8000001a4b92000400020004000040000200400200021934c08602f28e5c2ee48a70a12071c403f00"})
    for (const char* c = hex; *c != 0; c += 2)
      packed.push_back(static_cast<std::byte>(std::stoi(std::string(c, 2), nullptr, 16)));
  save("b.nrrd", bytes(head) + packed);
  const auto open = [&](const std::string& name) { return io::open_volume(path(name), {}); };
  try {
    VolumeBytes due;
    for (int i = 0; i < 27; ++i) due.push_back(static_cast<std::byte>(i * i));
    EXPECT_EQ(pass("b.nrrd", "b.nrrd").voxels, due);
    const std::string raw = "NRRD0004\ntype: uchar\ndimension: 3\nsizes: 3 3 3\nencoding: raw\n\n";
    EXPECT_EQ(load("again/b.nrrd"), bytes(raw) + due);
    packed.pop_back();
    save("c.nrrd", bytes(head) + packed);
    EXPECT_THROW(pass("c.nrrd", "c.nrrd"), Error);
  } catch (const Error& e) {  // named by a build without libbz2
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
    EXPECT_NE(std::string(e.what()).find("libbz2"), std::string::npos) << e.what();
    EXPECT_THROW(open("b.nrrd"), Error);
  }
}

// Where more values stand in a voxel than can be coded together they are an axis.
TEST_F(VolumeFiles, values_as_the_first_axis) {
  const std::string head =
      "ObjectType = Image\nNDims = 3\nBinaryData = True\nDimSize = 6 4 5\nElementSpacing = 0.5 0.75 2\nOffset = 1 2 3\n"
      "ElementNumberOfChannels = ";
  const auto info_of = [&](int channels, bool values_as_axis, std::size_t remarks) {
    save("v.mha", bytes(head + std::to_string(channels) + "\nElementType = MET_FLOAT\nElementDataFile = LOCAL\n") +
                      VolumeBytes(static_cast<std::size_t>(480 * channels)));
    io::VolumeOptions options;
    options.values_as_axis = values_as_axis;
    const auto reader = io::open_volume(path("v.mha"), options);
    EXPECT_EQ(reader->remarks().size(), remarks);
    // The header in a stream is read by the same rules.
    std::vector<std::string> said;
    const io::VolumeInfo again = io::volume_info(reader->envelope(), reader->info(), &said);
    EXPECT_EQ(said, reader->remarks());
    EXPECT_EQ(static_cast<const VolumeDescription&>(again), reader->info());
    EXPECT_EQ(again.spacing, reader->info().spacing);
    EXPECT_EQ(again.has_affine, reader->info().has_affine);
    return reader->info();
  };
  const io::VolumeInfo voxels = info_of(3, false, 0);
  EXPECT_EQ((std::array{voxels.voxel.channels, voxels.width, voxels.height}), (std::array{3, 6, 4}));
  EXPECT_TRUE(voxels.has_affine);
  for (const int channels : {3, 7}) {
    const io::VolumeInfo axis = info_of(channels, channels == 3, 1);
    EXPECT_EQ((std::array{axis.voxel.channels, axis.width, axis.height}), (std::array{1, channels, 6}));
    EXPECT_EQ((std::array{axis.slices, axis.volumes}), (std::array<std::uint64_t, 2>{4, 5}));
    EXPECT_EQ(axis.spacing, (std::array<double, 4>{1, 0.5, 0.75, 2}));
    EXPECT_FALSE(axis.has_affine);
  }
}

}  // namespace
}  // namespace trivelet
