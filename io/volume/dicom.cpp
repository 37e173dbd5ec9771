// DICOM: the attributes that say what the pixels are, and where in the file these lie. Everything else of a file is
// head and tail, kept byte for byte.
//
// Uncompressed transfer syntaxes (implicit and explicit little-endian, explicit big-endian) are read here; a file in
// another one is first turned into explicit little-endian by GDCM, if the build has it (gdcm.cpp).
// Slices are sorted along the normal of their plane. Source: DICOM PS3.5 7 (data set encoding), PS3.3 C.7.6.2 (image
// plane).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "io/adapters.h"
#include "io/volume/dicom.h"
#include "io/volume/dicom_elements.h"

namespace trivelet::io {

namespace {

std::string text_of(std::string value) {
  while (!value.empty() && (value.back() == '\0' || value.back() == ' ')) value.pop_back();
  return std::string(trim(value));
}

std::uint64_t integer_of(const std::string& value, bool big_endian) {
  if (value.size() < 2) return 0;
  const auto a = static_cast<unsigned char>(value[0]);
  const auto b = static_cast<unsigned char>(value[1]);
  return static_cast<std::uint64_t>(big_endian ? a << 8 | b : b << 8 | a);
}

double real_of(const std::string& value, double otherwise) {
  const auto n = parse_numbers(text_of(value), "\\");
  return n && !n->empty() && std::isfinite((*n)[0]) ? (*n)[0] : otherwise;
}

struct Slice {
  FileToRead file;
  DicomFile found;
  double position = 0;
  bool converted = false;  ///< from compressed pixels
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

std::vector<double> normal_of(const std::vector<double>& o) {
  return {o[1] * o[5] - o[2] * o[4], o[2] * o[3] - o[0] * o[5], o[0] * o[4] - o[1] * o[3]};
}

bool has_place(const DicomFile& d) { return d.orientation.size() == 6 && d.position.size() == 3; }

}  // namespace

bool is_dicom(std::string_view begin) { return begin.size() >= 132 && begin.substr(128, 4) == "DICM"; }

DicomFile read_dicom(VolumeInput& in) {
  DicomFile d;
  require(is_dicom(in.ahead(132)), ErrorKind::kBadStream, in.name() + ": is no DICOM file ('DICM' at byte 128)");
  in.skip(132, "preamble");
  DicomWalker::Element e;
  {
    DicomWalker meta(in, true, false);
    while (true) {
      const std::string_view next = in.ahead(2);
      if (next.size() < 2 || next[0] != 2 || next[1] != 0) break;  // group 0002 alone
      require(meta.next(e), ErrorKind::kBadStream, in.name() + ": ends inside its meta information");
      if (e.tag == dicom_tag(0x0002, 0x0010))
        d.transfer_syntax = text_of(meta.value(e));
      else
        meta.skip(e);
    }
  }
  const std::string& syntax = d.transfer_syntax;
  const bool implicit = syntax == "1.2.840.10008.1.2";
  d.big_endian = syntax == "1.2.840.10008.1.2.2";
  d.plain = implicit || d.big_endian || syntax == "1.2.840.10008.1.2.1";
  if (!d.plain) return d;
  DicomWalker walker(in, !implicit, d.big_endian);
  while (walker.next(e)) {
    const auto integer = [&] { return integer_of(walker.value(e), d.big_endian); };
    const auto numbers = [&] { return parse_numbers(text_of(walker.value(e)), "\\").value_or(std::vector<double>{}); };
    switch (e.tag) {
      case dicom_tag(0x0018, 0x0050): d.thickness = real_of(walker.value(e), 0); break;
      case dicom_tag(0x0018, 0x1120): d.tilt = real_of(walker.value(e), 0); break;
      case dicom_tag(0x0020, 0x000E): d.series = text_of(walker.value(e)); break;
      case dicom_tag(0x0020, 0x0013): d.number = real_of(walker.value(e), 0); break;
      case dicom_tag(0x0020, 0x0032): d.position = numbers(); break;
      case dicom_tag(0x0020, 0x0037): d.orientation = numbers(); break;
      case dicom_tag(0x0028, 0x0002): d.samples = integer(); break;
      case dicom_tag(0x0028, 0x0006): d.planar = integer() == 1; break;
      case dicom_tag(0x0028, 0x0008): {
        const double frames = real_of(walker.value(e), 1);
        require(frames >= 1 && frames <= 1e9, ErrorKind::kBadStream,
                in.name() + ": " + number_text(frames) + " frames");
        d.frames = static_cast<std::uint64_t>(frames);
        break;
      }
      case dicom_tag(0x0028, 0x0010): d.rows = integer(); break;
      case dicom_tag(0x0028, 0x0011): d.columns = integer(); break;
      case dicom_tag(0x0028, 0x0030): d.spacing = numbers(); break;
      case dicom_tag(0x0028, 0x0100): d.bits = integer(); break;
      case dicom_tag(0x0028, 0x0103): d.is_signed = integer() == 1; break;
      case dicom_tag(0x0028, 0x1052): d.intercept = real_of(walker.value(e), 0); break;
      case dicom_tag(0x0028, 0x1053): d.slope = real_of(walker.value(e), 1); break;
      case dicom_tag(0x7FE0, 0x0008):
      case dicom_tag(0x7FE0, 0x0009): d.real = true; [[fallthrough]];
      case dicom_tag(0x7FE0, 0x0010):
        require(e.length != kUndefined, ErrorKind::kBadStream,
                in.name() + ": compressed pixels in an uncompressed transfer syntax");
        d.pixels_at = in.position();
        d.pixel_bytes = e.length;
        return d;
      default: walker.skip(e);
    }
  }
  return d;
}

VolumeLayout dicom_layout(const std::vector<FileToRead>& files) {
  VolumeLayout layout;
  std::vector<Slice> slices;
  std::uint64_t converted = 0;
  for (const FileToRead& file : files) {
    Slice s;
    s.file = file;
    s.found = [&] {
      VolumeInput in(s.file.open(), s.file.path);
      return read_dicom(in);
    }();
    if (!s.found.plain) {
      require(file.may_unpack, ErrorKind::kBadStream,
              file.path + ": a stored header of compressed pixels (transfer syntax " +
                  printable(s.found.transfer_syntax.substr(0, 64)) + ")");
      s.file.open = decompressed_dicom(file, s.found.transfer_syntax);
      VolumeInput in(s.file.open(), s.file.path);
      s.found = read_dicom(in);
      s.converted = true;
      ++converted;
    }
    if (s.found.pixels_at == 0) {
      require(files.size() > 1, ErrorKind::kBadStream, file.path + ": holds no pixels");
      layout.remarks.push_back(file.name + ": holds no pixels and is left out");
      continue;
    }
    slices.push_back(std::move(s));
  }
  require(!slices.empty(), ErrorKind::kBadStream, files.front().path + ": no file holds pixels");
  if (converted > 0)
    layout.remarks.push_back(std::to_string(converted) +
                             " files had compressed pixels; they come back uncompressed (explicit little-endian)");

  const DicomFile first = slices.front().found;
  std::map<std::string, std::size_t> series;
  for (const Slice& s : slices) ++series[s.found.series];
  if (series.size() > 1) {
    std::string list;
    for (const auto& [uid, count] : series) list += "\n  " + std::to_string(count) + " files of series " + uid;
    fail(ErrorKind::kBadStream, slices.front().file.path + " and the files beside it belong to " +
                                    std::to_string(series.size()) + " series; keep one in the folder:" + list);
  }
  VolumeInfo& info = layout.info;
  info.format = "dicom";
  require(first.samples >= 1 && first.samples <= 4, ErrorKind::kUnsupported,
          slices.front().file.path + ": " + std::to_string(first.samples) + " samples per pixel");
  if (first.real && (first.bits == 32 || first.bits == 64)) {
    info.voxel.type = first.bits == 32 ? VoxelType::kF32 : VoxelType::kF64;
  } else {
    require(first.bits == 8 || first.bits == 16 || first.bits == 32, ErrorKind::kUnsupported,
            slices.front().file.path + ": " + std::to_string(first.bits) +
                " bits allocated per sample; 8, 16 and 32 can be coded");
    info.voxel.type = static_cast<VoxelType>((first.bits == 8    ? 0
                                              : first.bits == 16 ? 2
                                                                 : 4) +
                                             (first.is_signed ? 1 : 0));
  }
  info.voxel.big_endian = first.big_endian && first.bits > 8;
  const bool planar = first.planar && first.samples > 1;
  info.voxel.channels = planar ? 1 : static_cast<int>(first.samples);
  info.slope = first.slope;
  info.intercept = first.intercept;
  if (first.spacing.size() == 2 && first.spacing[0] > 0 && first.spacing[1] > 0) {
    info.spacing[0] = first.spacing[1];
    info.spacing[1] = first.spacing[0];
  }
  std::uint64_t frames = 0;
  bool same_scale = true;
  for (const Slice& s : slices) {
    const DicomFile& d = s.found;
    require(d.rows == first.rows && d.columns == first.columns && d.bits == first.bits &&
                d.is_signed == first.is_signed && d.samples == first.samples && d.planar == first.planar &&
                d.big_endian == first.big_endian && d.real == first.real,
            ErrorKind::kBadStream,
            s.file.path + ": " + std::to_string(d.columns) + " x " + std::to_string(d.rows) + " pixels of " +
                std::to_string(d.bits) + " bits, others of the series have " + std::to_string(first.columns) + " x " +
                std::to_string(first.rows) + " of " + std::to_string(first.bits) + ", or another sign or byte order");
    frames += d.frames * (planar ? d.samples : 1);
    same_scale = same_scale && d.slope == first.slope && d.intercept == first.intercept;
  }
  if (!same_scale) layout.remarks.push_back("the rescale slope differs from slice to slice (kept with every file)");

  // Along the normal of the slices if all say where they are, else by number.
  const bool placed = slices.size() > 1 && std::all_of(slices.begin(), slices.end(), [&](const Slice& s) {
                        return has_place(s.found) && s.found.frames == 1;
                      });
  std::uint64_t volumes = 1;
  if (placed) {
    const std::vector<double> normal = normal_of(first.orientation);
    for (Slice& s : slices) s.position = dot(normal, s.found.position);
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return a.position != b.position ? a.position < b.position : a.found.number < b.found.number;
    });
    // Several volumes: every position as many times.
    constexpr double kSame = 1e-3;
    std::size_t positions = 1;
    for (std::size_t i = 1; i < slices.size(); ++i)
      if (slices[i].position - slices[i - 1].position > kSame) ++positions;
    if (positions < slices.size() && slices.size() % positions == 0) {
      volumes = slices.size() / positions;
      bool regular = true;
      for (std::size_t i = 0; i < slices.size(); ++i)
        if (i % volumes != 0 && slices[i].position - slices[i - 1].position > kSame) regular = false;
      if (regular) {
        std::vector<Slice> sorted;
        for (std::uint64_t v = 0; v < volumes; ++v)
          for (std::size_t z = 0; z < positions; ++z) sorted.push_back(slices[z * volumes + v]);
        slices = std::move(sorted);
      } else {
        volumes = 1;
        layout.remarks.push_back("some positions have more slices than others");
      }
    }
    const std::size_t n = slices.size() / volumes;
    std::vector<double> gaps;
    for (std::size_t i = 1; i < n; ++i) gaps.push_back(slices[i].position - slices[i - 1].position);
    if (!gaps.empty()) {
      std::vector<double> sorted = gaps;
      std::sort(sorted.begin(), sorted.end());
      const double usual = sorted[sorted.size() / 2];
      if (usual > kSame) info.spacing[2] = usual;
      if (sorted.back() - sorted.front() > 0.01 * usual)
        layout.remarks.push_back("the distance between slices is not the same everywhere: " +
                                 number_text(std::round(1000 * sorted.front()) / 1000) + " to " +
                                 number_text(std::round(1000 * sorted.back()) / 1000) + " mm");
      for (std::size_t i = 0; i < gaps.size(); ++i)
        if (const double times = gaps[i] / usual; times > 1.9 && std::fabs(times - std::round(times)) < 0.05)
          layout.remarks.push_back(std::to_string(static_cast<int>(std::round(times)) - 1) +
                                   " slices seem to be missing between " + slices[i].file.name + " and " +
                                   slices[i + 1].file.name);
      // The line through the corners of the slices leaves the normal when the gantry was tilted.
      const std::vector<double>& a = slices[0].found.position;
      const std::vector<double>& b = slices[n - 1].found.position;
      const std::vector<double> way = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
      const double length = std::sqrt(dot(way, way));
      const double along = length > 0 ? std::min(1.0, dot(way, normal) / length) : 1;
      const double degrees = std::acos(std::clamp(along, -1.0, 1.0)) * 180 / 3.14159265358979323846;
      if (degrees > 0.1)
        layout.remarks.push_back("the slices are shifted against each other: the volume is tilted by " +
                                 number_text(std::round(10 * degrees) / 10) + " degrees");
      const double sign[3] = {-1, -1, 1};
      for (std::size_t row = 0; row < 3; ++row) {
        info.affine[4 * row] = sign[row] * first.orientation[row] * info.spacing[0];
        info.affine[4 * row + 1] = sign[row] * first.orientation[row + 3] * info.spacing[1];
        info.affine[4 * row + 2] = sign[row] * way[row] / static_cast<double>(n - 1);
        info.affine[4 * row + 3] = sign[row] * a[row];
      }
      info.has_affine = true;
      drop_bad_affine(info);
    }
  } else {
    std::stable_sort(slices.begin(), slices.end(),
                     [](const Slice& a, const Slice& b) { return a.found.number < b.found.number; });
    if (first.thickness > 0) info.spacing[2] = first.thickness;
  }
  set_extents(info, {first.columns, first.rows, frames / volumes, volumes}, slices.front().file.path);
  for (const Slice& s : slices) {
    FileLayout f;
    f.name = s.file.name;
    f.open = s.file.open;
    f.head_bytes = s.found.pixels_at;
    f.converted = s.converted;
    f.voxel_bytes = static_cast<std::uint64_t>(info.slice_bytes()) * s.found.frames * (planar ? first.samples : 1);
    require(f.voxel_bytes <= s.found.pixel_bytes, ErrorKind::kBadStream,
            s.file.path + ": " + std::to_string(s.found.pixel_bytes) + " bytes of pixels where " +
                std::to_string(f.voxel_bytes) + " are due");
    layout.files.push_back(std::move(f));
  }
  return layout;
}

Opener decompressed_dicom(const FileToRead& file, const std::string& transfer_syntax) {
  const GdcmAdapter* gdcm = gdcm_adapter(file.path);
  require(gdcm != nullptr, ErrorKind::kUnsupported,
          file.path + ": its pixels are compressed (transfer syntax " + transfer_syntax +
              "), and this build has no GDCM to decompress them");
  return [gdcm, file, transfer_syntax]() -> std::unique_ptr<Feed> {
    std::string bytes;
    {
      const std::unique_ptr<Feed> feed = file.open();
      std::vector<std::byte> piece(std::size_t{1} << 20);
      while (const std::size_t n = feed->read(piece.data(), piece.size()))
        bytes.append(reinterpret_cast<const char*>(piece.data()), n);
    }
    std::string plain;
    require(gdcm->decompress(bytes, plain), ErrorKind::kUnsupported,
            file.path + ": GDCM cannot decompress its pixels (transfer syntax " + transfer_syntax + ")");
    return memory_opener(std::make_shared<const std::vector<std::byte>>(to_bytes(plain)))();
  };
}

}  // namespace trivelet::io
