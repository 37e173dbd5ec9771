// DICOM: folders with one or several series, multi-frame files, colours, and inconsistent headers.
#include <algorithm>
#include <cstring>
#include <functional>

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

/// Just enough of a DICOM file, 4 x 3 pixels.
struct DicomMaker {
  bool explicit_vr = true;
  bool big_endian = false;
  bool undefined_lengths = true;  // of sequences and items
  std::string syntax{};           // "" = as the two above say
  std::string series = "1.2.3";
  std::string series_number{};
  std::string description{};
  double z = 0;
  double shift = 0;  // along y: tilt
  int frames = 1;
  int number = 1;
  unsigned samples = 1;
  unsigned columns = 4;
  unsigned bits = 16;
  unsigned stored = 0, high_bit = 0;  // 0 = not said
  std::string photometric{};
  std::string instance{};
  std::string orientation = "1\\0\\0\\0\\1\\0";
  bool planar = false;
  bool placed = true;    // says at the top where it lies and what its values mean
  VolumeBytes groups{};  // functional groups

  void u16(VolumeBytes& out, unsigned v, bool big) const {
    out.push_back(static_cast<std::byte>(big ? v >> 8 : v));
    out.push_back(static_cast<std::byte>(big ? v : v >> 8));
  }
  void u32(VolumeBytes& out, unsigned v, bool big) const {
    u16(out, big ? v >> 16 : v & 0xFFFF, big);
    u16(out, big ? v & 0xFFFF : v >> 16, big);
  }
  void element(VolumeBytes& out, unsigned group, unsigned number_, const char* vr, VolumeBytes value,
               bool is_meta = false) const {
    if (value.size() % 2) value.push_back(std::byte{' '});
    const bool big = big_endian && !is_meta;
    u16(out, group, big);
    u16(out, number_, big);
    const auto length = static_cast<unsigned>(value.size());
    const bool long_form = vr[0] == 'O' || std::string(vr) == "UN";
    if (explicit_vr || is_meta) {
      out = out + bytes(vr);
      if (long_form) u16(out, 0, big);
      if (!long_form) {
        u16(out, length, big);
        out = out + value;
        return;
      }
    }
    u32(out, length, big);
    out = out + value;
  }
  /// A sequence of items.
  VolumeBytes sequence(unsigned group, unsigned number_, const std::vector<VolumeBytes>& items) const {
    constexpr unsigned kUndefined = 0xFFFFFFFF;
    const auto delimiter = [&](VolumeBytes& out, unsigned e, unsigned length) {
      u16(out, 0xFFFE, big_endian);
      u16(out, e, big_endian);
      u32(out, length, big_endian);
    };
    VolumeBytes inside;
    for (const VolumeBytes& item : items) {
      delimiter(inside, 0xE000, undefined_lengths ? kUndefined : static_cast<unsigned>(item.size()));
      inside = inside + item;
      if (undefined_lengths) delimiter(inside, 0xE00D, 0);
    }
    if (undefined_lengths) delimiter(inside, 0xE0DD, 0);
    VolumeBytes out;
    u16(out, group, big_endian);
    u16(out, number_, big_endian);
    if (explicit_vr) out = out + bytes("SQ") + VolumeBytes(2);
    u32(out, undefined_lengths ? kUndefined : static_cast<unsigned>(inside.size()), big_endian);
    return out + inside;
  }
  VolumeBytes word(unsigned v) const {
    VolumeBytes b;
    u16(b, v, big_endian);
    return b;
  }
  VolumeBytes text(unsigned group, unsigned number_, const char* vr, const std::string& value) const {
    VolumeBytes out;
    element(out, group, number_, vr, bytes(value));
    return out;
  }
  VolumeBytes make(const VolumeBytes& pixels) const {
    VolumeBytes out(128);
    out = out + bytes("DICM");
    const std::string said = !syntax.empty() ? syntax
                             : !explicit_vr  ? "1.2.840.10008.1.2"
                             : big_endian    ? "1.2.840.10008.1.2.2"
                                             : "1.2.840.10008.1.2.1";
    element(out, 2, 0x10, "UI", bytes(said), true);
    if (!instance.empty()) element(out, 0x08, 0x18, "UI", bytes(instance));
    if (!description.empty()) element(out, 0x08, 0x103E, "LO", bytes(description));
    // a private sequence
    VolumeBytes rows;
    element(rows, 0x0028, 0x0010, "US", word(9999));  // not the rows of the picture
    out = out + sequence(0x0009, 0x1001, {rows});
    element(out, 0x10, 0x10, "PN", bytes("Doe^Jane"));
    element(out, 0x20, 0x0E, "UI", bytes(series));
    if (!series_number.empty()) element(out, 0x20, 0x11, "IS", bytes(series_number));
    element(out, 0x20, 0x13, "IS", bytes(std::to_string(number)));
    if (placed) {
      element(out, 0x20, 0x32, "DS", bytes(std::string("0\\") + std::to_string(shift) + "\\" + std::to_string(z)));
      element(out, 0x20, 0x37, "DS", bytes(orientation));
    }
    element(out, 0x28, 0x02, "US", word(samples));
    if (!photometric.empty()) element(out, 0x28, 0x04, "CS", bytes(photometric));
    if (samples > 1) element(out, 0x28, 0x06, "US", word(planar ? 1 : 0));
    if (frames > 1) element(out, 0x28, 0x08, "IS", bytes(std::to_string(frames)));
    element(out, 0x28, 0x10, "US", word(3));
    element(out, 0x28, 0x11, "US", word(columns));
    if (placed) element(out, 0x28, 0x30, "DS", bytes("0.5\\0.25"));
    element(out, 0x28, 0x100, "US", word(bits));
    if (stored > 0) element(out, 0x28, 0x101, "US", word(stored));
    if (stored > 0) element(out, 0x28, 0x102, "US", word(high_bit));
    element(out, 0x28, 0x103, "US", word(bits > 8 ? 1 : 0));
    if (placed) {
      element(out, 0x28, 0x1052, "DS", bytes("-1024"));
      element(out, 0x28, 0x1053, "DS", bytes("1"));
    }
    out = out + groups;
    element(out, 0x7FE0, 0x10, "OW", pixels);
    element(out, 0xFFFC, 0xFFFC, "UN", bytes("trailing"));
    return out;
  }
};

Error error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return {ErrorKind::kInternal, "nothing was wrong"};
}

// Pixels were uncompressed before their header came into a stream: what says otherwise is not handed to a decompressor.
TEST_F(VolumeFiles, a_stored_dicom_header_is_uncompressed) {
  const VolumeBytes whole = DicomMaker{}.make(VolumeBytes(24));
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

TEST_F(VolumeFiles, one_series) {
  for (int kind = 0; kind < 3; ++kind) {
    DicomMaker maker;
    maker.explicit_vr = kind > 0;
    maker.big_endian = kind == 2;
    const std::string in = std::string("series") + std::to_string(kind);
    fs::create_directories(path(in));
    const double z[5] = {10, 0, 5, 25, 15};  // 20 is missing
    std::vector<VolumeBytes> pixels;
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
    EXPECT_NE(remarks.find("1 slice seems to be missing between 4.dcm and 3.dcm"), std::string::npos) << remarks;
    EXPECT_EQ(remarks.find("tilted"), std::string::npos) << remarks;
    for (int i = 0; i < 5; ++i) expect_same(in + "/" + std::to_string(i) + ".dcm");
    EXPECT_FALSE(fs::exists(path("again/" + in + "/notes.txt")));
  }
}

TEST_F(VolumeFiles, tilt_several_volumes_and_frames) {
  DicomMaker maker;
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  fs::create_directories(path("tilted"));
  for (int i = 0; i < 4; ++i) {
    maker.z = 5 * i;
    maker.shift = 1.0 * i;
    save(std::string("tilted/") + std::to_string(i), maker.make(pixels));
  }
  const Passed tilted = pass("tilted", "tilted");
  ASSERT_EQ(tilted.remarks.size(), 1u);
  EXPECT_NE(tilted.remarks[0].find("tilted by 11.3 degrees"), std::string::npos);

  maker.shift = 0;
  fs::create_directories(path("times"));
  for (int t = 0; t < 3; ++t)
    for (int i = 0; i < 2; ++i) {
      maker.z = i;
      maker.number = 10 * t + i;
      save(std::string("times/") + std::to_string(t) + std::to_string(i), maker.make(pixels));
    }
  const Passed times = pass("times", "times");
  EXPECT_TRUE(times.remarks.empty());
  EXPECT_EQ(times.info.slices, 2u);
  EXPECT_EQ(times.info.volumes, 3u);

  const VolumeBytes whole = maker.make(pixels);
  save("mosaic.dcm", VolumeBytes(whole.begin(), whole.begin() + 160) +
                         maker.text(8, 8, "CS", "ORIGINAL\\PRIMARY\\M\\ND\\MOSAIC") +
                         VolumeBytes(whole.begin() + 160, whole.end()));
  const Passed mosaic = pass("mosaic.dcm", "mosaic.dcm");
  ASSERT_EQ(mosaic.remarks.size(), 1u);
  EXPECT_NE(mosaic.remarks[0].find("mosaics"), std::string::npos);
  // Image Type does not always say it: how many tiles there are stands in private elements.
  int files = 0;
  const auto with = [&](const VolumeBytes& elements) {
    const std::string name = "tiles" + std::to_string(++files);
    save(name,
         VolumeBytes(whole.begin(), whole.begin() + 160) + elements + VolumeBytes(whole.begin() + 160, whole.end()));
    return pass(name, name).remarks.size();
  };
  const auto siemens = [&](const char* creator, char tiles) {
    return maker.text(0x19, 0x10, "LO", creator) + maker.text(0x19, 0x100A, "US", std::string{tiles, 0});
  };
  const auto uih = [&](const char* tiles) {
    return maker.text(0x65, 0x10, "LO", "Image Private Header") + maker.text(0x65, 0x1050, "DS", tiles);
  };
  EXPECT_EQ(with(siemens("SIEMENS MR HEADER", 48)), 1u);
  EXPECT_EQ(with(siemens("SIEMENS MR HEADER", 1)), 0u);
  EXPECT_EQ(with(siemens("GEMS_ACQU_01", 48)), 0u);
  EXPECT_EQ(with(uih("27")), 1u);
  EXPECT_EQ(with(uih("1")), 0u);

  maker.frames = 6;
  const VolumeBytes many = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 72, 1);
  save("frames.dcm", maker.make(many));
  const Passed frames = pass("frames.dcm", "frames.dcm");
  expect_same("frames.dcm");
  EXPECT_EQ(frames.info.slices, 6u);
  EXPECT_EQ(frames.voxels, many);
  maker.frames = 7;
  save("few.dcm", maker.make(many));
  EXPECT_THROW(io::open_volume(path("few.dcm"), {}), Error);
}

TEST_F(VolumeFiles, several_series) {
  DicomMaker maker;
  fs::create_directories(path("folder"));
  std::vector<VolumeBytes> pixels;
  const auto add = [&](const std::string& name, int z, std::uint32_t seed) {
    maker.z = z;
    maker.number = 100 - z;
    pixels.push_back(make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, seed));
    save("folder/" + name, maker.make(pixels.back()));
  };
  maker.series = "1.2.30";
  maker.series_number = "7";
  maker.description = "AX\x01T1";
  add("a", 1, 1);
  add("d", 0, 2);
  maker.series = "1.2.4";
  maker.series_number = "11";
  maker.description = "";
  maker.frames = 5;
  save("folder/b", maker.make(make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 60, 3)));
  maker.frames = 1;
  // Pixels of a series that is not chosen are not uncompressed.
  maker.series = "1.2.5";
  maker.series_number = "";
  maker.syntax = "1.2.840.10008.1.2.4.70";
  add("c", 3, 4);
  maker.syntax.clear();

  const auto open = [&](const std::string& series) {
    io::VolumeOptions options;
    options.series = series;
    return io::open_volume(path("folder"), options);
  };
  Error e = error_of([&] { open(""); });
  EXPECT_EQ(e.kind(), ErrorKind::kBadArgument);
  const std::string said = e.what();
  for (const char* wanted : {"3 series; VolumeOptions::series", "\n  number 7, 2 slices, 'AX?T1', UID 1.2.30\n",
                             "\n  number 11, 5 slices in 1 file, UID 1.2.4\n", "\n  no number, 1 slice, UID 1.2.5"})
    EXPECT_NE(said.find(wanted), std::string::npos) << wanted << "\n" << said;
  EXPECT_LT(said.find("number 7"), said.find("number 11"));

  for (const char* series : {"7", "07", "1.2.30"}) {
    io::VolumeOptions options;
    options.series = series;
    const Passed p = pass("folder", std::string("folder") + series, options);
    EXPECT_EQ(p.voxels, pixels[1] + pixels[0]);
    EXPECT_TRUE(p.remarks.empty());  // "files had compressed pixels"
    for (const char* name : {"a", "d"})
      EXPECT_EQ(load(std::string("folder/") + name), load(std::string("again/folder") + series + "/" + name));
    EXPECT_FALSE(fs::exists(path(std::string("again/folder") + series + "/b")));
  }
  EXPECT_EQ(open("11")->info().slices, 5u);
  for (const char* series : {"1.2.3", "8", "seven", "1.2.300"}) {
    e = error_of([&] { open(series); });
    EXPECT_EQ(e.kind(), ErrorKind::kBadArgument) << series;
    EXPECT_NE(std::string(e.what()).find("hold no series '"), std::string::npos) << e.what();
  }
  // A number that two series have says nothing.
  maker.series = "1.2.6";
  maker.series_number = "11";
  add("e", 3, 5);
  e = error_of([&] { open("11"); });
  EXPECT_EQ(e.kind(), ErrorKind::kBadArgument);
  EXPECT_NE(std::string(e.what()).find("hold 2 series with the number 11"), std::string::npos) << e.what();
  EXPECT_EQ(open("1.2.6")->info().slices, 1u);

  // What is no DICOM is of no series; a single file is of one.
  io::VolumeOptions options;
  options.series = "7";
  EXPECT_EQ(io::open_volume(path("folder/a"), options)->info().slices, 1u);
  EXPECT_EQ(error_of([&] { io::open_volume(path("folder/b"), options); }).kind(), ErrorKind::kBadArgument);
  save("v.nrrd", std::string("NRRD0004\ntype: uint8\ndimension: 3\nsizes: 1 1 1\nencoding: raw\n\nx"));
  EXPECT_EQ(error_of([&] { io::open_volume(path("v.nrrd"), options); }).kind(), ErrorKind::kBadArgument);

  // A stream that claims to hold two is damaged.
  io::Envelope stored;
  stored.format = "dicom";
  for (const char* series : {"1.2.3", "1.2.4"}) {
    maker.series = series;
    stored.files.emplace_back();
    stored.files.back().head = maker.make(VolumeBytes(24));
  }
  EXPECT_EQ(error_of([&] { (void)io::volume_info(stored); }).kind(), ErrorKind::kBadStream);
}

// Enhanced files: every frame says where it lies, and what its values mean, in functional groups.
TEST_F(VolumeFiles, frames_of_an_enhanced_file) {
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12 * 6, 1);
  int n = 0;
  for (const bool explicit_vr : {true, false})
    for (const bool undefined : {true, false}) {
      DicomMaker m;
      m.explicit_vr = explicit_vr;
      m.undefined_lengths = undefined;
      m.placed = false;
      m.frames = 6;
      const auto group = [&m](unsigned number, unsigned e, const VolumeBytes& inside) {
        return m.sequence(number, e, {inside});
      };
      const VolumeBytes shared =
          group(0x0020, 0x9116, m.text(0x20, 0x37, "DS", "0\\1\\0\\0\\0\\-1")) +
          group(0x0028, 0x9110, m.text(0x18, 0x50, "DS", "9") + m.text(0x28, 0x30, "DS", "0.5\\0.25")) +
          group(0x0020, 0x9999, m.text(0x28, 0x30, "DS", "8\\8"));
      const auto frame = [&](double x, const char* slope) {
        return group(0x0020, 0x9113, m.text(0x20, 0x32, "DS", std::to_string(x) + "\\-20\\30")) +
               group(0x0028, 0x9145, m.text(0x28, 0x1052, "DS", "-7") + m.text(0x28, 0x1053, "DS", slope));
      };
      const auto file = [&](const std::vector<double>& x, const char* last_slope = "2") {
        std::vector<VolumeBytes> frames;
        for (std::size_t i = 0; i < x.size(); ++i) frames.push_back(frame(x[i], i + 1 == x.size() ? last_slope : "2"));
        m.groups = m.sequence(0x5200, 0x9229, {shared}) + m.sequence(0x5200, 0x9230, frames);
        const std::string name = std::string("enhanced") + std::to_string(n++) + ".dcm";
        save(name, m.make(pixels));
        const Passed p = pass(name, name);
        expect_same(name);
        EXPECT_EQ(p.voxels, pixels);
        return p;
      };
      const Passed line = file({10, 7, 4, 1, -2, -5});
      EXPECT_EQ(line.info.slices, 6u);
      EXPECT_EQ(line.info.volumes, 1u);
      EXPECT_EQ(line.info.spacing, (std::array<double, 4>{0.25, 0.5, 3, 1}));
      EXPECT_EQ(line.info.slope, 2);
      EXPECT_EQ(line.info.intercept, -7);
      EXPECT_EQ(line.info.largest_slope, 2);
      EXPECT_TRUE(line.info.has_affine);
      EXPECT_EQ(line.info.affine, (std::array<double, 12>{0, 0, 3, -10, -0.25, 0, 0, 20, 0, -0.5, 0, 30}));
      EXPECT_TRUE(line.remarks.empty());

      // Places that come again: volumes one after the other.
      const Passed again = file({10, 7.5, 5, 10, 7.5, 5}, "-3");
      EXPECT_EQ(again.info.slices, 3u);
      EXPECT_EQ(again.info.volumes, 2u);
      EXPECT_EQ(again.info.spacing[2], 2.5);
      EXPECT_EQ(again.info.largest_slope, 3);
      ASSERT_EQ(again.remarks.size(), 1u);
      EXPECT_NE(again.remarks[0].find("slope"), std::string::npos);

      // Each place several times in a row: not in the order of a volume. One place alone: points in time.
      const Passed turned = file({10, 10, 7.5, 7.5, 5, 5});
      EXPECT_EQ(turned.info.slices, 6u);
      EXPECT_FALSE(turned.info.has_affine);
      ASSERT_EQ(turned.remarks.size(), 1u);
      EXPECT_NE(turned.remarks[0].find("do not stand volume by volume"), std::string::npos);
      const Passed still = file({10, 10, 10, 10, 10, 10});
      EXPECT_EQ(still.info.slices, 1u);
      EXPECT_EQ(still.info.volumes, 6u);
      EXPECT_TRUE(still.remarks.empty());

      // If several files have the same positions, each is a volume. Otherwise their order is unknown.
      for (const bool same : {true, false}) {
        const std::string folder = std::string("study") + std::to_string(n++);
        fs::create_directories(path(folder));
        for (const int number : {2, 1, 3}) {
          std::vector<VolumeBytes> frames;
          for (int i = 0; i < 6; ++i) frames.push_back(frame(10 - 3 * i - (same ? 0 : number), "2"));
          m.groups = m.sequence(0x5200, 0x9229, {shared}) + m.sequence(0x5200, 0x9230, frames);
          m.number = number;
          save(folder + "/" + std::to_string(9 - number), m.make(pixels));
        }
        const Passed p = pass(folder, folder);
        EXPECT_EQ(p.info.slices, same ? 6u : 18u);
        EXPECT_EQ(p.info.volumes, same ? 3u : 1u);
        EXPECT_EQ(p.info.has_affine, same);
        EXPECT_EQ(p.remarks.size(), same ? 0u : 1u);
      }

      // Places on no line, and too few of them: no matrix.
      for (const std::vector<double>& x : {std::vector<double>{10, 7, 4, 1, -5, -8}, std::vector<double>{10, 7, 4}}) {
        const Passed p = file(x);
        EXPECT_EQ(p.info.slices, 6u);
        EXPECT_FALSE(p.info.has_affine);
        EXPECT_EQ(p.info.spacing[2], 9);
      }

      // Lengths that lie, and files that end in a group.
      VolumeBytes whole = m.make(pixels);
      int like_a_report = 0;
      for (std::size_t size = 200; size + pixels.size() < whole.size(); ++size) {
        const Error e = error_of([&] { io::open_volume(whole.data(), size, "dicom"); });
        if (e.kind() == ErrorKind::kUnsupported)  // behind an element
          ++like_a_report;
        else
          EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << size << ": " << e.what();
      }
      EXPECT_LT(like_a_report, 20);
      if (undefined) continue;
      const auto at = std::search(whole.begin(), whole.end(), m.groups.begin(), m.groups.begin() + 4) - whole.begin();
      for (std::ptrdiff_t i = at; i < at + static_cast<std::ptrdiff_t>(m.groups.size()); ++i) {
        VolumeBytes changed = whole;
        changed[static_cast<std::size_t>(i)] ^= std::byte{0x81};
        try {
          const auto reader = io::open_volume(changed.data(), changed.size(), "dicom");
          EXPECT_EQ(reader->info().all_slices(), 6u) << i;
        } catch (const Error& e) {
          EXPECT_TRUE(e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported)
              << i << ": " << e.what();
        }
      }
    }
}

/// A file of frames at places along x; `pixels` are 4 x 3 for each.
VolumeBytes enhanced_file(DicomMaker m, const std::vector<double>& x, const VolumeBytes& pixels) {
  m.placed = false;
  m.frames = static_cast<int>(x.size());
  const auto group = [&m](unsigned number, unsigned e, const VolumeBytes& inside) {
    return m.sequence(number, e, {inside});
  };
  std::vector<VolumeBytes> frames;
  for (const double at : x)
    frames.push_back(group(0x0020, 0x9113, m.text(0x20, 0x32, "DS", std::to_string(at) + "\\-20\\30")));
  m.groups = m.sequence(0x5200, 0x9229,
                        {group(0x0020, 0x9116, m.text(0x20, 0x37, "DS", "0\\1\\0\\0\\0\\-1")) +
                         group(0x0028, 0x9110, m.text(0x28, 0x30, "DS", "0.5\\0.25"))}) +
             m.sequence(0x5200, 0x9230, frames);
  return m.make(pixels);
}

// A copy among files of several frames stands behind the volume, whose place it does not take.
TEST_F(VolumeFiles, copies_of_files_of_frames) {
  const std::array<double, 12> place{0, 0, 3, -10, -0.25, 0, 0, 20, 0, -0.5, 0, 30};
  const std::vector<double> line = {10, 7, 4};
  std::vector<VolumeBytes> pixels;
  for (std::uint32_t i = 0; i < 3; ++i)
    pixels.push_back(make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12 * 3, i));
  DicomMaker m;
  for (const int files : {1, 3}) {
    const std::string folder = "frames" + std::to_string(files);
    fs::create_directories(path(folder));
    VolumeBytes due;
    for (int i = 0; i < files; ++i) {
      m.number = i + 1;
      m.instance = "1.2.9." + std::to_string(i);
      save(folder + "/" + std::to_string(i), enhanced_file(m, line, pixels[static_cast<std::size_t>(i)]));
      due = due + pixels[static_cast<std::size_t>(i)];
    }
    const auto volumes = static_cast<std::uint64_t>(files);
    m.number = 1;
    m.instance = "1.2.9.0";
    save(folder + "/copy", enhanced_file(m, line, pixels[0]));
    const Passed stacked = pass(folder, folder);
    EXPECT_EQ(stacked.voxels, due + pixels[0]);
    EXPECT_EQ(stacked.info.slices, 3 * volumes + 3);
    EXPECT_EQ(stacked.info.affine, place);
    ASSERT_EQ(stacked.remarks.size(), files > 1 ? 2u : 1u) << stacked.remarks.back();
    EXPECT_NE(stacked.remarks[0].find(": there twice"), std::string::npos) << stacked.remarks[0];
    if (files > 1) {
      EXPECT_EQ(stacked.remarks[1].rfind("the 3 volumes stand one behind the other", 0), 0u) << stacked.remarks[1];
    }
    expect_same(folder + "/copy");
    io::VolumeOptions options;
    options.only_matching = true;
    const Passed alone = pass(folder, folder + "_alone", options);
    EXPECT_EQ(alone.voxels, due);
    EXPECT_EQ(alone.info.slices, 3u);
    EXPECT_EQ(alone.info.volumes, volumes);
    EXPECT_EQ(alone.info.affine, place);
    EXPECT_EQ(alone.remarks.size(), 1u);
  }

  // A picture of its own at the place of a frame.
  m.number = 2;
  m.instance = "1.2.9.50";
  fs::remove(path("frames1/copy"));
  save("frames1/one", enhanced_file(m, {10}, VolumeBytes(24)));
  const Passed one = pass("frames1", "one");
  EXPECT_EQ(one.voxels, pixels[0] + VolumeBytes(24));
  EXPECT_EQ(one.info.affine, place);
  ASSERT_EQ(one.remarks.size(), 1u);
  EXPECT_EQ(one.remarks[0].rfind("one: its frames lie elsewhere", 0), 0u) << one.remarks[0];

  // Files that continue each other are one volume.
  save("frames1/one", enhanced_file(m, {1, -2}, VolumeBytes(48)));
  const Passed whole = pass("frames1", "whole");
  EXPECT_EQ(whole.info.slices, 5u);
  EXPECT_EQ(whole.info.affine, place);
  EXPECT_TRUE(whole.remarks.empty());
}

// A copy of one slice does not divide a series of several volumes into slices.
TEST_F(VolumeFiles, copies_in_several_volumes) {
  DicomMaker m;
  fs::create_directories(path("bold"));
  std::vector<VolumeBytes> pixels;
  for (int i = 0; i < 6; ++i) {
    pixels.push_back(make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, static_cast<std::uint32_t>(i)));
    m.z = i % 3;
    m.number = i + 1;
    m.instance = "1.2.9." + std::to_string(i);
    save("bold/" + std::to_string(i), m.make(pixels.back()));
  }
  const VolumeBytes due = pixels[0] + pixels[1] + pixels[2] + pixels[3] + pixels[4] + pixels[5];
  for (const char* instance : {"1.2.9.1", "1.2.9.60"}) {
    m.z = 1;
    m.number = 2;
    m.instance = instance;
    save("bold/copy", m.make(pixels[1]));
    const Passed stacked = pass("bold", std::string("bold") + instance);
    EXPECT_EQ(stacked.voxels, due + pixels[1]);
    EXPECT_EQ(stacked.info.volumes, 1u);
    EXPECT_EQ(stacked.info.slices, 7u);
    EXPECT_EQ(stacked.info.spacing[2], 1);
    ASSERT_EQ(stacked.remarks.size(), 2u);
    EXPECT_EQ(stacked.remarks[1].rfind("the 2 volumes stand one behind the other", 0), 0u) << stacked.remarks[1];
    io::VolumeOptions options;
    options.only_matching = true;
    const Passed alone = pass("bold", std::string("alone") + instance, options);
    EXPECT_EQ(alone.voxels, due);
    EXPECT_EQ(alone.info.volumes, 2u);
    EXPECT_EQ(alone.remarks.size(), 1u);
  }
}

// The step of a fourth axis: by clocks that run evenly, by Repetition Time, or unknown.
TEST_F(VolumeFiles, times_of_volumes) {
  DicomMaker m;
  int n = 0;
  const auto place = [&](const std::vector<VolumeBytes>& times) {
    const std::string folder = "times" + std::to_string(n++);
    fs::create_directories(path(folder));
    for (std::size_t t = 0; t < times.size(); ++t)
      for (int z = 0; z < 2; ++z) {
        m.z = z;
        m.number = static_cast<int>(t) * 2 + z;
        m.groups = times[t];
        save(folder + "/" + std::to_string(m.number), m.make(VolumeBytes(24)));
      }
    const Passed p = pass(folder, folder);
    EXPECT_EQ(p.info.volumes, times.size());
    return p;
  };
  const auto expect = [&](const std::vector<VolumeBytes>& times, double seconds, const std::string& remark = "") {
    const Passed p = place(times);
    EXPECT_EQ(p.info.fourth_unit, seconds > 0 ? io::FourthUnit::kSeconds : io::FourthUnit::kUnknown) << n;
    EXPECT_EQ(p.info.spacing[3], seconds > 0 ? seconds : 1) << n;
    ASSERT_EQ(p.remarks.size(), remark.empty() ? 0u : 1u) << n;
    if (!remark.empty()) {
      EXPECT_NE(p.remarks[0].find(remark), std::string::npos) << p.remarks[0];
    }
  };
  const auto repetition = m.text(0x18, 0x80, "DS", "2500");
  const auto acquired = [&](const char* time) { return m.text(8, 0x32, "TM", time); };
  const auto day = [&](const char* date) { return m.text(8, 0x22, "DA", date); };
  const auto reference = [&](const char* ms) { return m.text(0x54, 0x1300, "DS", ms); };
  const auto trigger = [&](const char* ms) { return m.text(0x18, 0x1060, "DS", ms); };
  const auto echo = [&](const char* ms) { return m.text(0x18, 0x81, "DS", ms); };
  expect({repetition, repetition, repetition}, 2.5);
  expect({VolumeBytes{}, VolumeBytes{}}, 0);
  const auto is_3d = m.text(0x18, 0x23, "CS", "3D");
  expect({is_3d + repetition, is_3d + repetition}, 0);
  expect({repetition + m.text(0x20, 0x110, "DS", "4000"), repetition + m.text(0x20, 0x110, "DS", "4000")}, 4);
  expect({repetition + echo("10"), repetition + echo("20")}, 0);
  // Clocks that are read in whole seconds go on average as Repetition Time says.
  expect({repetition + acquired("120000"), repetition + acquired("120002"), repetition + acquired("120005")}, 2.5);
  expect({acquired("115959.5"), acquired("120001"), acquired("120002.5")}, 1.5);
  expect({acquired("11:59:59"), acquired("12:00:01")}, 2);
  expect({day("20251231") + acquired("235959"), day("20260101") + acquired("000001")}, 2);
  expect({m.text(8, 0x2A, "DT", "20240228235950+0100"), m.text(8, 0x2A, "DT", "20240229000010.5+0100")}, 20.5);
  expect({reference("5000"), reference("15000"), reference("25000")}, 10);
  expect({reference("5000"), reference("15000"), reference("45000")}, 0, "not taken at equal distances in time");
  // Before the day's clock, which does not tell a heart's phases apart.
  expect({trigger("0") + acquired("120000"), trigger("40.5") + acquired("120000")}, 0.0405);
  expect({acquired("120002"), acquired("120001")}, 0);
  expect({acquired("noon"), acquired("12")}, 0);

  // Frames, with times in functional groups.
  m.placed = false;
  m.frames = 4;
  const auto seconds = [&](double v) {
    VolumeBytes value(8), element;
    std::memcpy(value.data(), &v, 8);
    m.element(element, 0x20, 0x930D, "FD", value);
    return m.sequence(0x20, 0x9310, {element});
  };
  std::vector<VolumeBytes> frames;
  for (const double t : {0.0, 1.25})
    for (const char* at : {"0\\0\\0", "0\\0\\3"})
      frames.push_back(m.sequence(0x20, 0x9113, {m.text(0x20, 0x32, "DS", at)}) + seconds(t));
  m.groups = m.sequence(0x5200, 0x9229, {m.sequence(0x20, 0x9116, {m.text(0x20, 0x37, "DS", m.orientation)})}) +
             m.sequence(0x5200, 0x9230, frames);
  save("enhanced_times.dcm", m.make(VolumeBytes(24 * 4)));
  const Passed p = pass("enhanced_times.dcm", "enhanced_times.dcm");
  EXPECT_EQ(p.info.volumes, 2u);
  EXPECT_EQ(p.info.spacing, (std::array<double, 4>{1, 1, 3, 1.25}));
  EXPECT_EQ(p.info.fourth_unit, io::FourthUnit::kSeconds);
}

TEST_F(VolumeFiles, colours) {
  DicomMaker m;
  m.samples = 3;
  m.bits = 8;
  for (const int frames : {1, 4})
    for (const bool planar : {false, true}) {
      m.frames = frames;
      m.planar = planar;
      const VolumeBytes pixels =
          make_scalars(Content::kRandom, {VoxelType::kU8, false, 3}, static_cast<std::size_t>(12 * frames), 2);
      const std::string name = std::string("rgb") + std::to_string(frames) + (planar ? "p" : "i") + ".dcm";
      save(name, m.make(pixels));
      const Passed p = pass(name, name);
      expect_same(name);
      VolumeBytes interleaved(pixels.size());
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        const std::size_t frame = i / 36, plane = i % 36 / 12, pixel = i % 12;
        interleaved[planar ? 36 * frame + 3 * pixel + plane : i] = pixels[i];
      }
      EXPECT_EQ(p.voxels, interleaved);
      EXPECT_EQ(p.info.voxel.channels, 3);
      EXPECT_EQ(p.info.all_slices(), static_cast<std::uint64_t>(frames));
    }
}

// What values mean is said of any file of a series, not of the first one alone.
TEST_F(VolumeFiles, meanings_of_some_files) {
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kU8, false, 3}, 12, 2);
  int number = 0;
  const auto remarks_of = [&](const std::vector<std::string>& photometric, const VolumeBytes& groups) {
    const std::string name = "series" + std::to_string(++number);
    std::filesystem::create_directory(path(name));
    for (std::size_t i = 0; i < photometric.size(); ++i) {
      DicomMaker m;
      m.samples = photometric[i].rfind("MONO", 0) == 0 || photometric[i] == "PALETTE COLOR" ? 1 : 3;
      m.bits = 8;
      m.z = static_cast<double>(i);
      m.instance = "1.2." + std::to_string(i);
      m.photometric = photometric[i];
      if (i == 1) m.groups = groups;
      save(name + "/" + std::to_string(i), m.make(VolumeBytes(pixels.begin(), pixels.begin() + 12 * m.samples)));
    }
    std::string text;
    for (const std::string& line : pass(name, name).remarks) text += line + '\n';
    return text;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string plain = remarks_of({"RGB", "RGB", "RGB"}, {});
  EXPECT_FALSE(has(plain, "Photometric")) << plain;
  const std::string mixed = remarks_of({"RGB", "YBR_FULL", "RGB"}, {});
  EXPECT_TRUE(has(mixed, "is not the same in all files: RGB in 0, 2; YBR_FULL in 1\n")) << mixed;
  EXPECT_TRUE(has(mixed, "1: colours are YBR_FULL, luminance")) << mixed;
  const std::string all = remarks_of({"YBR_FULL", "YBR_FULL"}, {});
  EXPECT_TRUE(all.rfind("colours are YBR_FULL", 0) == 0 || has(all, "\ncolours are YBR_FULL")) << all;
  EXPECT_FALSE(has(all, "not the same")) << all;
  const std::string inverse = remarks_of({"MONOCHROME2", "MONOCHROME1"}, {});
  EXPECT_TRUE(has(inverse, "MONOCHROME1 in 1; MONOCHROME2 in 0")) << inverse;
  EXPECT_TRUE(has(remarks_of({"MONOCHROME2", "PALETTE COLOR"}, {}), "1: values are indices into the palette"));
  for (const unsigned high_bit : {11u, 15u}) {
    DicomMaker m;
    m.stored = 12;
    m.high_bit = high_bit;
    const std::string name = "high" + std::to_string(high_bit);
    save(name, m.make(VolumeBytes(24)));
    std::string text;
    for (const std::string& line : pass(name, name).remarks) text += line;
    EXPECT_EQ(has(text, "with Bits Stored 12 and High Bit 15 values are the upper bits"), high_bit == 15) << text;
  }
  VolumeBytes item;
  DicomMaker{}.element(item, 0x28, 0x3003, "LO", bytes("a table"));
  const std::string table =
      remarks_of({"MONOCHROME2", "MONOCHROME2", "MONOCHROME2"}, DicomMaker{}.sequence(0x28, 0x3000, {item}));
  EXPECT_TRUE(has(table, "1: a table in the header")) << table;
}

/// Words of 16 bits.
VolumeBytes words(const std::vector<unsigned>& values, bool big_endian) {
  VolumeBytes out;
  for (const unsigned v : values) {
    out.push_back(static_cast<std::byte>(big_endian ? v >> 8 : v));
    out.push_back(static_cast<std::byte>(big_endian ? v : v >> 8));
  }
  return out;
}

// Values are what Bits Stored holds; all else of a word comes back as it was.
TEST_F(VolumeFiles, bits_beside_the_values) {
  const std::vector<unsigned> value = {0, 1, 0x7FF, 0xF800, 0xFFFF, 0xFD44, 5, 0xFFFF, 7, 8, 9, 0xF801};
  struct Case {
    const char* name;
    std::function<unsigned(unsigned, unsigned)> word;  // of a value and its number
    unsigned high_bit;
  };
  const Case cases[] = {
      {"zeros", [](unsigned v, unsigned) { return v & 0xFFF; }, 11},
      {"signs", [](unsigned v, unsigned) { return v; }, 11},
      {"overlay", [](unsigned v, unsigned i) { return (v & 0xFFF) | (i % 3 == 0 ? 0x1000
                                                                     : i == 7   ? 0xA000
                                                                                : 0); }, 11},
      {"signs and a bit", [](unsigned v, unsigned i) { return v ^ (i == 4 ? 0x4000 : 0); }, 11},
      {"above", [](unsigned v, unsigned i) { return (v & 0xFFF) << 4 | (i % 2 ? 3 : 0); }, 15},
  };
  for (const bool big_endian : {false, true})
    for (const Case& c : cases) {
      DicomMaker m;
      m.big_endian = big_endian;
      m.stored = 12;
      m.high_bit = c.high_bit;
      std::vector<unsigned> stored;
      for (unsigned i = 0; i < value.size(); ++i) stored.push_back(c.word(value[i], i));
      const std::string name = std::string(c.name) + (big_endian ? " be" : "") + ".dcm";
      save(name, m.make(words(stored, big_endian)));
      const Passed p = pass(name, name);
      expect_same(name);
      EXPECT_EQ(p.voxels, words(value, big_endian)) << name;
    }
}

// Colours of two pixels each, and 8-bit samples in big-endian words.
TEST_F(VolumeFiles, orders_of_samples) {
  DicomMaker m;
  m.samples = 3;
  m.bits = 8;
  m.photometric = "YBR_FULL_422";
  VolumeBytes halved, whole;
  for (int i = 0; i < 6; ++i) {
    const auto b = [i](int k) { return static_cast<std::byte>(16 * i + k); };
    for (const int k : {0, 1, 2, 3}) halved.push_back(b(k));
    for (const int k : {0, 2, 3, 1, 2, 3}) whole.push_back(b(k));
  }
  save("halved.dcm", m.make(halved));
  EXPECT_EQ(pass("halved.dcm", "halved.dcm").voxels, whole);
  expect_same("halved.dcm");

  m = {};
  m.bits = 8;
  m.big_endian = true;
  VolumeBytes ordered, swapped;
  for (unsigned i = 0; i < 12; ++i) {
    ordered.push_back(static_cast<std::byte>(i));
    swapped.push_back(static_cast<std::byte>(i ^ 1));
  }
  save("swapped.dcm", m.make(swapped));  // of type OW
  EXPECT_EQ(pass("swapped.dcm", "swapped.dcm").voxels, ordered);
  expect_same("swapped.dcm");

  // The last of an odd number shares its word with a byte that means nothing, and comes back as it was.
  m.columns = 3;
  for (const unsigned stored : {0u, 7u}) {
    m.stored = stored;
    m.high_bit = stored > 0 ? stored - 1 : 0;
    for (const unsigned pad : {0u, 7u, 255u}) {
      VolumeBytes words;
      for (unsigned i = 0; i < 10; ++i) words.push_back(static_cast<std::byte>(i == 8 ? pad : i ^ 1));
      const std::string name = "odd" + std::to_string(stored) + "_" + std::to_string(pad) + ".dcm";
      save(name, m.make(words));
      EXPECT_EQ(pass(name, name).voxels, VolumeBytes(ordered.begin(), ordered.begin() + 9));
      expect_same(name);
    }
  }
  m.frames = 2;
  save("odd.dcm", m.make(VolumeBytes(18)));
  EXPECT_EQ(error_of([&] { io::open_volume(path("odd.dcm"), {}); }).kind(), ErrorKind::kUnsupported);
}

// Files of both byte orders in one series: one order in the stream, and every file as it was.
TEST_F(VolumeFiles, both_byte_orders_in_a_series) {
  const auto swapped = [](VolumeBytes words, std::size_t bytes) {
    for (std::size_t i = 0; i < words.size(); i += bytes)
      std::reverse(words.begin() + static_cast<std::ptrdiff_t>(i),
                   words.begin() + static_cast<std::ptrdiff_t>(i + bytes));
    return words;
  };
  struct Case {
    const char* name;
    unsigned bits, stored, samples;
    bool planar;
  };
  for (const Case& c : {Case{"words", 16, 0, 1, false}, Case{"long", 32, 0, 1, false}, Case{"stored", 16, 12, 1, false},
                        Case{"planes", 16, 0, 3, true}, Case{"bytes", 8, 0, 1, false}}) {
    fs::create_directories(path(c.name));
    VolumeBytes due;
    for (int i = 0; i < 4; ++i) {
      DicomMaker m;
      m.big_endian = i % 2 == 0;  // the first and the last by place differ
      m.z = i;
      m.number = i + 1;
      m.bits = c.bits;
      m.stored = c.stored;
      m.high_bit = c.stored > 0 ? c.stored - 1 : 0;
      m.samples = c.samples;
      m.planar = c.planar;
      if (c.samples > 1) m.photometric = "RGB";
      const unsigned bytes = c.bits / 8;
      VolumeBytes little = make_scalars(Content::kRandom, {VoxelType::kU8, false, 1}, 12 * c.samples * bytes, 7 + i);
      save(std::string(c.name) + "/" + std::to_string(i),
           m.make(swapped(little, m.big_endian ? std::max(2u, bytes) : 1)));
      if (c.stored > 0)
        for (std::size_t at = 1; at < little.size(); at += 2) {  // of 12 bits and a sign
          const auto high = static_cast<unsigned>(little[at]) & 15;
          little[at] = static_cast<std::byte>(high & 8 ? high | 0xF0 : high);
        }
      if (c.planar) {
        VolumeBytes pixels;
        for (std::size_t pixel = 0; pixel < 12; ++pixel)
          for (std::size_t plane = 0; plane < 3; ++plane)
            for (std::size_t b = 0; b < bytes; ++b) pixels.push_back(little[(plane * 12 + pixel) * bytes + b]);
        little = pixels;
      }
      due = due + little;
    }
    const Passed p = pass(c.name, c.name);
    EXPECT_EQ(p.voxels, due) << c.name;
    EXPECT_FALSE(p.info.voxel.big_endian);
    EXPECT_TRUE(p.remarks.empty());
    for (int i = 0; i < 4; ++i) expect_same(std::string(c.name) + "/" + std::to_string(i));
  }
}

// Packed samples are named, not called damaged.
TEST_F(VolumeFiles, packed_samples) {
  DicomMaker m;
  for (const auto& [bits, name] : {std::pair{1u, " samples of 1 bit, which are packed"},
                                   std::pair{12u, " samples of 12 bits, which are packed"}}) {
    m.bits = bits;
    save("packed.dcm", m.make(VolumeBytes(24)));
    const Error e = error_of([&] { io::open_volume(path("packed.dcm"), {}); });
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
  }
}

// Files that begin with their meta information, and files of other things than pictures.
TEST_F(VolumeFiles, no_preamble_and_no_pixels) {
  DicomMaker m;
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  const VolumeBytes whole = m.make(pixels);
  save("bare.dcm", VolumeBytes(whole.begin() + 132, whole.end()));
  EXPECT_EQ(pass("bare.dcm", "bare.dcm").voxels, pixels);
  expect_same("bare.dcm");

  // Older ones have no meta information either.
  for (const auto& [explicit_vr, big_endian] : {std::pair(true, false), {false, false}, {true, true}}) {
    m.explicit_vr = explicit_vr;
    m.big_endian = big_endian;
    const VolumeBytes all = m.make(pixels);
    const VolumeBytes data(all.begin() + 132 + (!explicit_vr ? 26 : 28), all.end());
    VolumeBytes group_length;
    m.element(group_length, 8, 0, "UL", VolumeBytes(4));
    for (const VolumeBytes& first :
         {group_length, m.text(8, 5, "CS", "ISO_IR 100"), m.text(8, 0x16, "UI", "1.2.3"),
          m.text(8, 8, "CS", "ORIGINAL"), m.text(8, 0x10, "SH", "ACR-NEMA 2.0"), m.text(8, 0x12, "DA", "20260101"),
          m.text(8, 0x18, "UI", "1.3.12"), m.text(0x10, 0x10, "PN", "Doe^Jane")}) {
      if (!explicit_vr && first == m.text(0x10, 0x10, "PN", "Doe^Jane")) continue;  // might be anything
      save("old.dcm", first + data);
      const auto old = pass("old.dcm", "old.dcm");
      EXPECT_EQ(old.info.voxel.big_endian, big_endian);
      EXPECT_EQ(old.voxels, pixels);
      expect_same("old.dcm");
      fs::remove(path("again/old.dcm"));
    }
  }
  m.explicit_vr = true;
  m.big_endian = false;

  const auto pixels_at = std::search(whole.begin(), whole.end(), pixels.begin(), pixels.end()) - 12;
  save("cut.dcm", VolumeBytes(whole.begin(), pixels_at));
  const Error cut = error_of([&] { io::open_volume(path("cut.dcm"), {}); });
  EXPECT_EQ(cut.kind(), ErrorKind::kUnsupported) << cut.what();  // a complete data set, as in a folder
  EXPECT_NE(std::string(cut.what()).find("describes pictures of 4x3"), std::string::npos) << cut.what();
  save("cut.dcm", VolumeBytes(whole.begin(), pixels_at + 10));
  const Error inside = error_of([&] { io::open_volume(path("cut.dcm"), {}); });
  EXPECT_EQ(inside.kind(), ErrorKind::kBadStream) << inside.what();
  const VolumeBytes name = m.text(0x10, 0x10, "PN", "Doe^Jane");
  const auto name_at = std::search(whole.begin(), whole.end(), name.begin(), name.end());
  save("report.dcm", VolumeBytes(whole.begin(), name_at) + name);
  const Error report = error_of([&] { io::open_volume(path("report.dcm"), {}); });
  EXPECT_EQ(report.kind(), ErrorKind::kUnsupported) << report.what();
  VolumeBytes spectrum(whole.begin(), pixels_at);
  m.element(spectrum, 0x5600, 0x20, "OF", VolumeBytes(16));
  save("spectrum.dcm", spectrum);
  const Error spectroscopy = error_of([&] { io::open_volume(path("spectrum.dcm"), {}); });
  EXPECT_EQ(spectroscopy.kind(), ErrorKind::kUnsupported) << spectroscopy.what();
}

// One file goes into the folder that is named, which is made, under its own name.
TEST_F(VolumeFiles, one_file_into_a_new_folder) {
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  save("one.dcm", DicomMaker{}.make(pixels));
  pass("one.dcm", "new/folder/");
  EXPECT_EQ(load("again/new/folder/one.dcm"), load("one.dcm"));
}

// A folder from elsewhere cannot have any file of the user's coded by a link.
TEST_F(VolumeFiles, links_in_a_folder_of_slices) {
  DicomMaker m;
  fs::create_directories(path("in"));
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  save("in/a.dcm", m.make(pixels));
  save("notes.txt", std::string("no slice"));
  fs::create_symlink("../notes.txt", path("in/notes.txt"));
  fs::create_symlink("nowhere", path("in/nowhere"));
  EXPECT_EQ(io::open_volume(path("in"), {})->info().slices, 1u);
  m.z = 1;
  save("b.dcm", m.make(pixels));
  fs::create_symlink("../b.dcm", path("in/b.dcm"));
  const Error e = error_of([&] { io::open_volume(path("in"), {}); });
  EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
  EXPECT_NE(std::string(e.what()).find("VolumeOptions::allow_outside"), std::string::npos) << e.what();
  EXPECT_EQ(io::open_volume(path("in"), {.allow_outside = true})->info().slices, 2u);
}

// What does not belong to the volume is named, stands behind it, and moves nothing; or is left out.
TEST_F(VolumeFiles, misfits_of_a_series) {
  DicomMaker m;
  fs::create_directories(path("ct"));
  std::vector<VolumeBytes> pixels;
  const auto add = [&](const std::string& name) {
    pixels.push_back(
        make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, static_cast<std::uint32_t>(pixels.size())));
    save("ct/" + name, m.make(pixels.back()));
  };
  for (int i = 0; i < 5; ++i) {
    m.z = 4.22 * i;
    m.number = i;
    m.instance = "1.2.9." + std::to_string(i);
    add(std::to_string(i) + ".dcm");
  }
  m.instance = "1.2.9.2";
  m.number = 2;
  m.z = 8.44;
  add("again.dcm");
  m.instance = "1.2.9.77";
  m.orientation = "0\\1\\0\\0\\0\\-1";
  m.z = 1;
  add("localizer.dcm");

  const Passed stacked = pass("ct", "ct");
  for (const char* name : {"0.dcm", "again.dcm", "localizer.dcm"}) expect_same(std::string("ct/") + name);
  EXPECT_EQ(stacked.info.slices, 7u);
  EXPECT_NEAR(stacked.info.spacing[2], 4.22, 1e-9);
  EXPECT_NEAR(stacked.info.affine[10], 4.22, 1e-9);
  VolumeBytes due;
  for (const VolumeBytes& p : pixels) due = due + p;
  EXPECT_EQ(stacked.voxels, due);
  ASSERT_EQ(stacked.remarks.size(), 2u);
  EXPECT_EQ(stacked.remarks[0].rfind("localizer.dcm: another orientation", 0), 0u) << stacked.remarks[0];
  EXPECT_EQ(stacked.remarks[1].rfind("again.dcm: there twice", 0), 0u) << stacked.remarks[1];

  m.bits = 8;  // and another type, which cannot be in the same volume
  m.orientation = "1\\0\\0\\0\\1\\0";
  m.instance = "1.2.9.78";
  save("ct/other.dcm", m.make(VolumeBytes(12)));
  const Error e = error_of([&] { io::open_volume(path("ct"), {}); });
  EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
  EXPECT_NE(std::string(e.what()).find("other.dcm: 4 x 3 pixels of 8 bits"), std::string::npos) << e.what();
  io::VolumeOptions options;
  options.only_matching = true;
  const Passed alone = pass("ct", "alone", options);
  EXPECT_EQ(alone.info.slices, 5u);
  EXPECT_EQ(alone.remarks.size(), 3u);
  EXPECT_NEAR(alone.info.spacing[2], 4.22, 1e-9);
}

// Positions that were rounded: the last slice lies where it says, not where the steps of two neighbours lead.
TEST_F(VolumeFiles, rounded_positions) {
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  fs::create_directories(path("rounded"));
  for (int i = 0; i < 61; ++i) {
    DicomMaker m;
    m.number = i;
    m.z = 0.5 * i + (i % 2 == 0 ? 0 : 0.00122);
    m.shift = i == 30 ? 0.002 : 0;
    save("rounded/" + std::to_string(i), m.make(pixels));
  }
  const Passed even = pass("rounded", "rounded");
  EXPECT_NEAR(even.info.spacing[2], 0.5, 1e-9);
  EXPECT_NEAR(even.info.affine[10], 0.5, 1e-9);
  EXPECT_TRUE(even.remarks.empty());
  // One slice that is moved counts for nothing, even the last.
  DicomMaker m;
  m.number = 60;
  m.z = 30;
  m.shift = 2;
  save("rounded/60", m.make(pixels));
  const Passed moved = pass("rounded", "moved");
  EXPECT_NEAR(moved.info.affine[6], 0, 1e-9);
  EXPECT_NEAR(moved.info.affine[10], 0.5, 0.0013);
}

TEST_F(VolumeFiles, a_series_without_places) {
  DicomMaker m;
  m.placed = false;
  fs::create_directories(path("nowhere"));
  VolumeBytes due;
  for (int i = 0; i < 3; ++i) {
    const VolumeBytes pixels =
        make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, static_cast<std::uint32_t>(i));
    m.number = 3 - i;
    save("nowhere/" + std::to_string(i), m.make(pixels));
    due = pixels + due;
  }
  const Passed stacked = pass("nowhere", "nowhere");
  EXPECT_EQ(stacked.voxels, due);
  EXPECT_FALSE(stacked.info.has_affine);
  ASSERT_EQ(stacked.remarks.size(), 1u);
  EXPECT_EQ(stacked.remarks[0].rfind("files that do not say where they lie", 0), 0u) << stacked.remarks[0];
}

// Syntaxes that the standard does not know, or that nothing decodes, go to no library.
TEST_F(VolumeFiles, unknown_syntaxes) {
  DicomMaker m;
  for (const char* syntax : {"1.2.3", "1.2.840.10008.1.2.4.999", "1.2.840.10008.1.2.4.102"}) {
    m.syntax = syntax;
    save("strange.dcm", m.make(VolumeBytes(24)));
    const Error e = error_of([&] { io::open_volume(path("strange.dcm"), {}); });
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
    EXPECT_NE(std::string(e.what()).find(syntax), std::string::npos) << e.what();
  }
}

// A syntax that says elements have types, and a data set whose elements have none.
TEST_F(VolumeFiles, types_that_are_not_there) {
  DicomMaker m;
  m.explicit_vr = false;
  m.syntax = "1.2.840.10008.1.2.1";
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  save("lies.dcm", m.make(pixels));
  EXPECT_EQ(pass("lies.dcm", "lies.dcm").voxels, pixels);
  expect_same("lies.dcm");
}

// Elements in implicit encoding among others, as some programs write private ones.
TEST_F(VolumeFiles, implicit_elements_in_between) {
  DicomMaker m, implicit;
  implicit.explicit_vr = false;
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  for (const bool undefined : {true, false}) {
    implicit.undefined_lengths = undefined;
    m.undefined_lengths = undefined;
    m.groups = implicit.text(0x29, 0x1010, "LO", "private") +
               m.sequence(0x29, 0x1020,
                          {implicit.text(0x29, 0x1030, "LO", "inside") +
                           implicit.sequence(0x29, 0x1040, {implicit.text(0x29, 0x1050, "LO", "deep")})});
    const std::string name = undefined ? "undefined.dcm" : "defined.dcm";
    save(name, m.make(pixels));
    EXPECT_EQ(pass(name, name).voxels, pixels);
    expect_same(name);
  }
}

// Elements without which pixels mean nothing are named.
TEST_F(VolumeFiles, missing_elements) {
  const VolumeBytes pixels = make_scalars(Content::kRandom, {VoxelType::kI16, false, 1}, 12, 1);
  const DicomMaker m;
  const VolumeBytes whole = m.make(pixels);
  const auto without = [&](unsigned number) {
    VolumeBytes element;
    m.element(element, 0x28, number, "US", VolumeBytes(2));
    const auto at = std::find_end(whole.begin(), whole.end(), element.begin(), element.begin() + 8);
    return VolumeBytes(whole.begin(), at) + VolumeBytes(at + 10, whole.end());
  };
  for (const auto& [number, name] : {std::pair{0x100u, "Bits Allocated (0028,0100)"}, {0x10u, "Rows (0028,0010)"}}) {
    save("missing.dcm", without(number));
    const Error e = error_of([&] { io::open_volume(path("missing.dcm"), {}); });
    EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << e.what();
    EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
  }
  save("unsigned.dcm", without(0x103));
  const Passed p = pass("unsigned.dcm", "unsigned.dcm");
  EXPECT_EQ(p.info.voxel.type, VoxelType::kU16);
  ASSERT_EQ(p.remarks.size(), 1u);
  EXPECT_EQ(p.remarks[0].rfind("Pixel Representation (0028,0103) is missing", 0), 0u);
}

}  // namespace
}  // namespace trivelet
