// DICOM: the attributes that say what the pixels are, and where in the file these lie. Everything else of a file is
// head and tail, kept byte for byte.
//
// Uncompressed transfer syntaxes (implicit and explicit little-endian, explicit big-endian) are read here; a file in
// another one is first turned into explicit little-endian (dicom_pixels.cpp).
// Slices are sorted along the normal of their plane. Of a folder with several series one is taken, which has to be named.
// Source: DICOM PS3.5 7 (data set encoding), PS3.3 C.7.6.2 (image plane), C.7.6.16 (frames with geometry of their own).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "io/volume/dicom.h"
#include "io/volume/dicom_elements.h"
#include "io/volume/dicom_pixels.h"

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

bool has_place(const DicomGeometry& g) { return g.orientation.size() == 6 && g.position.size() == 3; }

/// The elements of a data set up to its pixels.
class DataSet {
 public:
  DataSet(VolumeInput& in, DicomFile& d)
      : in_(in), d_(d), walker_(in, d.transfer_syntax != kImplicitLittleEndian, d.big_endian) {}

  void read() {
    DicomWalker::Element e;
    while (d_.pixels_at == 0 && walker_.next(e)) attribute(e);
    d_.largest_slope = std::max(d_.largest_slope, std::fabs(d_.geometry.slope));
  }

 private:
  using Element = DicomWalker::Element;

  std::uint64_t integer(const Element& e) { return integer_of(walker_.value(e), d_.big_endian); }
  double real(const Element& e, double otherwise) { return real_of(walker_.value(e), otherwise); }
  std::string text(const Element& e) { return text_of(walker_.value(e)); }
  std::vector<double> numbers(const Element& e) { return parse_numbers(text(e), "\\").value_or(std::vector<double>{}); }

  void attribute(const Element& e) {
    switch (e.tag) {
      case dicom_tag(0x0008, 0x103E): d_.series_description = text(e); break;
      case dicom_tag(0x0020, 0x000E): d_.series = text(e); break;
      case dicom_tag(0x0020, 0x0011): d_.series_number = text(e); break;
      case dicom_tag(0x0020, 0x0013): d_.number = real(e, 0); break;
      case dicom_tag(0x0028, 0x0002): d_.samples = integer(e); break;
      case dicom_tag(0x0028, 0x0004): d_.photometric = text(e); break;
      case dicom_tag(0x0028, 0x0006): d_.planar = integer(e) == 1; break;
      case dicom_tag(0x0028, 0x0008): {
        const double frames = real(e, 1);
        require(frames >= 1 && frames <= 1e9, ErrorKind::kBadStream,
                in_.name() + ": " + number_text(frames) + " frames");
        d_.frames = static_cast<std::uint64_t>(frames);
        break;
      }
      case dicom_tag(0x0028, 0x0010): d_.rows = integer(e); break;
      case dicom_tag(0x0028, 0x0011): d_.columns = integer(e); break;
      case dicom_tag(0x0028, 0x0100): d_.bits = integer(e); break;
      case dicom_tag(0x0028, 0x0103): d_.is_signed = integer(e) == 1; break;
      case dicom_tag(0x5200, 0x9229):
      case dicom_tag(0x5200, 0x9230): functional_groups(e); break;
      case dicom_tag(0x7FE0, 0x0008):
      case dicom_tag(0x7FE0, 0x0009): d_.real = true; [[fallthrough]];
      case dicom_tag(0x7FE0, 0x0010):
        require(!d_.plain || e.length != kUndefined, ErrorKind::kBadStream,
                in_.name() + ": compressed pixels in an uncompressed transfer syntax");
        d_.pixels_at = in_.position();
        d_.pixel_bytes = e.length;
        break;
      default:
        if (!geometry(e, d_.geometry)) walker_.skip(e);
    }
  }

  /// False: another attribute, which is not read.
  bool geometry(const Element& e, DicomGeometry& g) {
    switch (e.tag) {
      case dicom_tag(0x0018, 0x0050): g.thickness = real(e, 0); return true;
      case dicom_tag(0x0018, 0x0088): g.between = real(e, 0); return true;
      case dicom_tag(0x0020, 0x0032): g.position = numbers(e); return true;
      case dicom_tag(0x0020, 0x0037): g.orientation = numbers(e); return true;
      case dicom_tag(0x0028, 0x0030): g.spacing = numbers(e); return true;
      case dicom_tag(0x0028, 0x1052): g.intercept = real(e, 0); return true;
      case dicom_tag(0x0028, 0x1053): g.slope = real(e, 1); return true;
      default: return false;
    }
  }

  bool is_sequence(const Element& e) const { return e.vr[0] == 0 || (e.vr[0] == 'S' && e.vr[1] == 'Q'); }

  /// Those of all frames together, or an item for each frame.
  void functional_groups(const Element& e) {
    if (!is_sequence(e)) return walker_.skip(e);
    const bool shared = e.tag == dicom_tag(0x5200, 0x9229);
    DicomGeometry frame = d_.geometry;
    const DicomGeometry common = d_.geometry;
    std::uint64_t items = 0;
    const auto end_of_item = [&] {
      if (items == 0) return;
      if (items == 1) d_.geometry = frame;
      if (shared) return;
      if (frame.position.size() == 3 && d_.places.size() < d_.frames)
        d_.places.push_back({frame.position[0], frame.position[1], frame.position[2]});
      d_.one_orientation = d_.one_orientation && frame.orientation == d_.geometry.orientation;
      d_.one_scale = d_.one_scale && frame.slope == d_.geometry.slope && frame.intercept == d_.geometry.intercept;
      d_.largest_slope = std::max(d_.largest_slope, std::fabs(frame.slope));
    };
    walker_.items(
        e,
        [&] {
          end_of_item();
          frame = common;
          ++items;
        },
        [&](const Element& group) {
          switch (group.tag) {
            case dicom_tag(0x0020, 0x9113):  // plane position
            case dicom_tag(0x0020, 0x9116):  // plane orientation
            case dicom_tag(0x0028, 0x9110):  // pixel measures
            case dicom_tag(0x0028, 0x9145):  // pixel value transformation
              if (is_sequence(group)) {
                walker_.items(
                    group, [] {},
                    [&](const Element& inner) {
                      if (!geometry(inner, frame)) walker_.skip(inner);
                    });
                break;
              }
              [[fallthrough]];
            default: walker_.skip(group);
          }
        });
    end_of_item();
  }

  VolumeInput& in_;
  DicomFile& d_;
  DicomWalker walker_;
};

/// A series in a folder: what a user chooses by.
struct Series {
  std::string uid, number, description;
  std::uint64_t files = 0;
  std::uint64_t slices = 0;
};

std::string text_of(const Series& s) {
  const auto short_text = [](const std::string& text) { return printable(text.substr(0, 64)); };
  std::string text = s.number.empty() ? "no number" : "number " + short_text(s.number);
  text += ", " + std::to_string(s.slices) + (s.slices == 1 ? " slice" : " slices");
  if (s.slices != s.files) text += " in " + std::to_string(s.files) + (s.files == 1 ? " file" : " files");
  if (!s.description.empty()) text += ", '" + short_text(s.description) + "'";
  return text + ", UID " + short_text(s.uid);
}

std::vector<Series> series_of(const std::vector<Slice>& slices) {
  std::map<std::string, Series> found;
  for (const Slice& slice : slices) {
    Series& s = found[slice.found.series];
    if (s.files++ == 0) {
      s.uid = slice.found.series;
      s.number = slice.found.series_number;
      s.description = slice.found.series_description;
    }
    s.slices += slice.found.frames;
  }
  std::vector<Series> all;
  for (auto& [uid, s] : found) all.push_back(std::move(s));
  const auto order = [](const Series& s) { return parse_whole(s.number).value_or(~std::uint64_t{0}); };
  std::stable_sort(all.begin(), all.end(), [&](const Series& a, const Series& b) { return order(a) < order(b); });
  return all;
}

/// Leaves the slices of the series with this UID or number; of a single series if it is "".
void choose_series(std::vector<Slice>& slices, const std::string& wanted, const FileToRead& first) {
  const std::vector<Series> all = series_of(slices);
  std::vector<const Series*> chosen;
  const auto number = parse_whole(wanted);
  for (const Series& s : all)
    if (s.uid == wanted) chosen = {&s};
  if (chosen.empty())
    for (const Series& s : all)
      if (wanted.empty() || (number && parse_whole(s.number) == number)) chosen.push_back(&s);
  if (chosen.size() == 1) {
    std::erase_if(slices, [uid = chosen[0]->uid](const Slice& s) { return s.found.series != uid; });
    return;
  }
  constexpr std::size_t kMostListed = 100;
  std::string list;
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i) list += "\n  " + text_of(all[i]);
  if (all.size() > kMostListed) list += "\n  and " + std::to_string(all.size() - kMostListed) + " more";
  const std::string here = first.path + (slices.size() > 1 ? " and the files beside it" : "");
  const std::string how = "; VolumeOptions::series takes one, by its UID or number:" + list;
  // Of a stored header nobody chooses.
  const ErrorKind kind = first.may_unpack ? ErrorKind::kBadArgument : ErrorKind::kBadStream;
  if (wanted.empty()) fail(kind, here + " belong to " + std::to_string(all.size()) + " series" + how);
  if (chosen.empty()) fail(kind, here + " hold no series '" + printable(wanted.substr(0, 64)) + "'" + how);
  fail(kind,
       here + " hold " + std::to_string(chosen.size()) + " series with the number " + std::to_string(*number) + how);
}

/// The matrix from the first slice's corner, `step` from each slice to the next.
void set_affine(VolumeInfo& info, const DicomGeometry& g, const std::vector<double>& corner,
                const std::vector<double>& step) {
  const double sign[3] = {-1, -1, 1};
  for (std::size_t row = 0; row < 3; ++row) {
    info.affine[4 * row] = sign[row] * g.orientation[row] * info.spacing[0];
    info.affine[4 * row + 1] = sign[row] * g.orientation[row + 3] * info.spacing[1];
    info.affine[4 * row + 2] = sign[row] * step[row];
    info.affine[4 * row + 3] = sign[row] * corner[row];
  }
  info.has_affine = true;
  drop_bad_affine(info);
}

/// Frames of one file, in their order: volumes if their places come again and again, and the matrix if these are on a
/// line. Returns how many volumes.
std::uint64_t place_frames(VolumeInfo& info, const DicomFile& d) {
  constexpr double kSame = 1e-3;
  const auto& places = d.places;
  const std::size_t n = places.size();
  if (n != d.frames || n < 2 || !d.one_orientation || d.geometry.orientation.size() != 6) return 1;
  const auto apart = [](const std::array<double, 3>& a, const std::array<double, 3>& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
  };
  std::size_t slices = 1;
  while (slices < n && !(apart(places[slices], places[0]) <= kSame)) ++slices;
  for (std::size_t i = slices; i < n; ++i)
    if (n % slices != 0 || !(apart(places[i], places[i % slices]) <= kSame)) return 1;
  if (slices < 2) return 1;
  const auto& a = places[0];
  std::vector<double> step(3);
  for (std::size_t i = 0; i < 3; ++i) step[i] = (places[slices - 1][i] - a[i]) / static_cast<double>(slices - 1);
  const double length = std::sqrt(dot(step, step));
  for (std::size_t i = 0; i < slices; ++i) {
    const auto t = static_cast<double>(i);
    const std::array<double, 3> due = {a[0] + t * step[0], a[1] + t * step[1], a[2] + t * step[2]};
    if (!(apart(places[i], due) <= kSame + 0.01 * length)) return n / slices;
  }
  info.spacing[2] = std::fabs(dot(normal_of(d.geometry.orientation), step));
  if (!(info.spacing[2] > kSame)) info.spacing[2] = length;
  set_affine(info, d.geometry, {a[0], a[1], a[2]}, step);
  return n / slices;
}

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
  d.data_at = in.position();
  if (d.transfer_syntax.empty()) {  // not said: explicit where the first element has a type
    const std::string_view first = in.ahead(6);
    const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
    const bool typed = first.size() == 6 && is_letter(first[4]) && is_letter(first[5]);
    d.transfer_syntax = typed ? kExplicitLittleEndian : kImplicitLittleEndian;
  }
  const DicomSyntax* syntax = dicom_syntax(d.transfer_syntax);
  require(syntax != nullptr, ErrorKind::kUnsupported,
          in.name() + ": unknown " + syntax_text(d.transfer_syntax) + "; convert the file to one of the standard's");
  d.big_endian = d.transfer_syntax == kExplicitBigEndian;
  d.plain = syntax->coding == DicomCoding::kPlain;
  d.readable = syntax->coding != DicomCoding::kDeflated && !syntax->name.ends_with("deflated");
  if (d.readable) DataSet(in, d).read();
  return d;
}

VolumeLayout dicom_layout(const std::vector<FileToRead>& files, const std::string& series) {
  VolumeLayout layout;
  std::vector<Slice> slices;
  const auto find = [](Slice& s) {
    VolumeInput in(s.file.open(), s.file.path);
    s.found = read_dicom(in);
  };
  const auto convert = [&find](Slice& s) {
    require(s.file.may_unpack, ErrorKind::kBadStream,
            s.file.path + ": a stored header of compressed pixels (transfer syntax " +
                printable(s.found.transfer_syntax.substr(0, 64)) + ")");
    s.file.open = decompressed_dicom(s.file, s.found);
    find(s);
    s.converted = true;
  };
  for (const FileToRead& file : files) {
    Slice s;
    s.file = file;
    find(s);
    if (!s.found.readable) convert(s);
    if (s.found.pixels_at == 0) {
      require(files.size() > 1, ErrorKind::kBadStream, file.path + ": holds no pixels");
      layout.remarks.push_back(file.name + ": holds no pixels and is left out");
      continue;
    }
    slices.push_back(std::move(s));
  }
  require(!slices.empty(), ErrorKind::kBadStream, files.front().path + ": no file holds pixels");
  choose_series(slices, series, files.front());
  std::uint64_t converted = 0;
  for (Slice& s : slices) {
    if (!s.found.plain) convert(s);
    require(s.found.pixels_at > 0, ErrorKind::kBadStream, s.file.path + ": holds no pixels once they are uncompressed");
    if (s.converted) ++converted;
  }
  if (converted > 0)
    layout.remarks.push_back(std::to_string(converted) +
                             " files had compressed pixels; they come back uncompressed (explicit little-endian)");

  const DicomFile first = slices.front().found;
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
  const DicomGeometry& geometry = first.geometry;
  info.slope = geometry.slope;
  info.intercept = geometry.intercept;
  if (geometry.spacing.size() == 2 && geometry.spacing[0] > 0 && geometry.spacing[1] > 0) {
    info.spacing[0] = geometry.spacing[1];
    info.spacing[1] = geometry.spacing[0];
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
    same_scale =
        same_scale && d.one_scale && d.geometry.slope == geometry.slope && d.geometry.intercept == geometry.intercept;
    info.largest_slope = std::max(info.largest_slope, d.largest_slope);
  }
  if (!same_scale) layout.remarks.push_back("the rescale slope differs from slice to slice (kept with every file)");

  // Along the normal of the slices if all say where they are, else by number.
  const bool placed = slices.size() > 1 && std::all_of(slices.begin(), slices.end(), [&](const Slice& s) {
                        return has_place(s.found.geometry) && s.found.frames == 1;
                      });
  std::uint64_t volumes = 1;
  if (placed) {
    const std::vector<double> normal = normal_of(geometry.orientation);
    for (Slice& s : slices) s.position = dot(normal, s.found.geometry.position);
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
      const std::vector<double>& a = slices[0].found.geometry.position;
      const std::vector<double>& b = slices[n - 1].found.geometry.position;
      const std::vector<double> way = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
      const double length = std::sqrt(dot(way, way));
      const double along = length > 0 ? std::min(1.0, dot(way, normal) / length) : 1;
      const double degrees = std::acos(std::clamp(along, -1.0, 1.0)) * 180 / 3.14159265358979323846;
      if (degrees > 0.1)
        layout.remarks.push_back("the slices are shifted against each other: the volume is tilted by " +
                                 number_text(std::round(10 * degrees) / 10) + " degrees");
      const auto gaps_between = static_cast<double>(n - 1);
      set_affine(info, geometry, a, {way[0] / gaps_between, way[1] / gaps_between, way[2] / gaps_between});
    }
  } else {
    std::stable_sort(slices.begin(), slices.end(),
                     [](const Slice& a, const Slice& b) { return a.found.number < b.found.number; });
    if (geometry.thickness > 0) info.spacing[2] = geometry.thickness;
    if (geometry.between > 0) info.spacing[2] = geometry.between;
    if (slices.size() == 1 && !planar) volumes = place_frames(info, first);
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

}  // namespace trivelet::io
