// DICOM: the attributes that say what the pixels are, and where in the file these lie. Everything else of a file is
// head and tail, kept byte for byte.
//
// Uncompressed transfer syntaxes (implicit and explicit little-endian, explicit big-endian) are read here; a file in
// another one is first turned into explicit little-endian (dicom_pixels.cpp).
// Slices are sorted along the normal of their plane. Of a folder with several series one is taken, which has to be
// named. Source: DICOM PS3.5 7 (data set encoding), PS3.3 C.7.6.2 (image plane), C.7.6.16 (frames with geometry of
// their own).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "codec/base/limits.h"
#include "io/volume/dicom.h"
#include "io/volume/dicom_elements.h"
#include "io/volume/dicom_pixels.h"
#include "io/volume/dicom_samples.h"
#include "io/volume/dicom_series.h"

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

/// The elements of a data set up to its pixels.
class DataSet {
 public:
  DataSet(VolumeInput& in, DicomFile& d) : in_(in), d_(d), walker_(in, d.explicit_vr, d.big_endian) {}

  void read() {
    DicomWalker::Element e;
    while (d_.pixels_at == 0 && walker_.next(e)) attribute(e);
    d_.is_cut = d_.pixels_at == 0 && !in_.ahead(1).empty();
    d_.largest_slope = std::max(d_.largest_slope, std::fabs(d_.geometry.slope));
    const double acquired = seconds_of_date_and_time(acquisition_date_, acquisition_time_);
    d_.frame_times.push_back(d_.geometry.times);
    for (DicomTimes& times : d_.frame_times)
      if (std::isnan(times.acquired)) times.acquired = acquired;
    d_.geometry.times = d_.frame_times.back();
    d_.frame_times.pop_back();
  }

 private:
  using Element = DicomWalker::Element;

  std::uint64_t integer(const Element& e) { return integer_of(walker_.value(e), d_.big_endian); }
  double real(const Element& e, double otherwise) { return real_of(walker_.value(e), otherwise); }
  std::string text(const Element& e) { return text_of(walker_.value(e)); }
  /// None if one of them is not finite.
  std::vector<double> numbers(const Element& e) {
    const std::vector<double> found = parse_numbers(text(e), "\\").value_or(std::vector<double>{});
    const bool finite = std::all_of(found.begin(), found.end(), [](double v) { return std::isfinite(v); });
    return finite ? found : std::vector<double>{};
  }

  void attribute(const Element& e) {
    switch (e.tag) {
      case dicom_tag(0x0008, 0x0008): d_.is_mosaic = text(e).find("MOSAIC") != std::string::npos; break;
      // How many tiles there are, where Image Type does not say that there are any.
      case dicom_tag(0x0019, 0x0010): is_siemens_ = text(e) == "SIEMENS MR HEADER"; break;
      case dicom_tag(0x0019, 0x100A): d_.is_mosaic |= integer(e) > 1 && is_siemens_; break;
      case dicom_tag(0x0065, 0x0010): is_uih_ = text(e) == "Image Private Header"; break;
      case dicom_tag(0x0065, 0x1050): d_.is_mosaic |= real(e, 0) > 1 && is_uih_; break;
      case dicom_tag(0x0008, 0x0018): d_.instance = text(e); break;
      case dicom_tag(0x0008, 0x0022): acquisition_date_ = text(e); break;
      case dicom_tag(0x0008, 0x0032): acquisition_time_ = text(e); break;
      case dicom_tag(0x0018, 0x0023): d_.is_3d = text(e) == "3D"; break;
      case dicom_tag(0x0008, 0x103E): d_.series_description = text(e); break;
      case dicom_tag(0x0020, 0x000E): d_.series = text(e); break;
      case dicom_tag(0x0020, 0x0011): d_.series_number = text(e); break;
      case dicom_tag(0x0020, 0x0013): d_.number = real(e, 0); break;
      case dicom_tag(0x0028, 0x0002): d_.samples = integer(e); break;
      case dicom_tag(0x0028, 0x3000):
        d_.has_lut = true;
        walker_.skip(e);
        break;
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
      case dicom_tag(0x0028, 0x0101): d_.stored_bits = integer(e); break;
      case dicom_tag(0x0028, 0x0102): d_.high_bit = integer(e); break;
      case dicom_tag(0x0028, 0x0103):
        d_.is_signed = integer(e) == 1;
        d_.knows_sign = true;
        break;
      case dicom_tag(0x3004, 0x000C): d_.frame_offsets = numbers(e); break;
      case dicom_tag(0x5200, 0x9229):
      case dicom_tag(0x5200, 0x9230): functional_groups(e); break;
      case dicom_tag(0x5600, 0x0020):
        d_.is_spectrum = true;
        walker_.skip(e);
        break;
      case dicom_tag(0x7FE0, 0x0008):
      case dicom_tag(0x7FE0, 0x0009): d_.real = true; [[fallthrough]];
      case dicom_tag(0x7FE0, 0x0010):
        require(!d_.plain || e.length != kUndefined, ErrorKind::kBadStream,
                in_.name() + ": compressed pixels in an uncompressed transfer syntax");
        d_.in_words = e.vr[0] == 'O' && e.vr[1] == 'W';
        d_.pixels_at = in_.position();
        d_.pixel_bytes = e.length;
        break;
      default:
        if (!geometry(e, d_.geometry) && !time(e, d_.geometry.times)) walker_.skip(e);
    }
  }

  /// A value of type FD.
  double binary_real(const Element& e) {
    std::string value = walker_.value(e);
    if (value.size() != 8) return DicomTimes::kUnknown;
    if (d_.big_endian) std::reverse(value.begin(), value.end());
    std::uint64_t bits = 0;
    for (std::size_t i = 8; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(value[i]);
    return std::bit_cast<double>(bits);
  }

  /// Reads an attribute of the time; false for other attributes.
  bool time(const Element& e, DicomTimes& t) {
    constexpr double kMillisecond = 1e-3;
    switch (e.tag) {
      case dicom_tag(0x0008, 0x002A):
      case dicom_tag(0x0018, 0x9074): t.acquired = seconds_of_date_time(text(e)); return true;
      case dicom_tag(0x0018, 0x0080): t.repetition = kMillisecond * real(e, 0); return true;
      case dicom_tag(0x0018, 0x0081): t.echo = kMillisecond * real(e, 0); return true;
      case dicom_tag(0x0018, 0x9082): t.echo = kMillisecond * binary_real(e); return true;
      case dicom_tag(0x0018, 0x1060): t.trigger = kMillisecond * real(e, DicomTimes::kUnknown); return true;
      case dicom_tag(0x0020, 0x9153): t.trigger = kMillisecond * binary_real(e); return true;
      case dicom_tag(0x0020, 0x930D): t.offset = binary_real(e); return true;
      case dicom_tag(0x0020, 0x0110): t.resolution = kMillisecond * real(e, 0); return true;
      case dicom_tag(0x0054, 0x1300): t.reference = kMillisecond * real(e, DicomTimes::kUnknown); return true;
      default: return false;
    }
  }

  /// Reads an attribute of the geometry; false for other attributes.
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

  /// Functional groups: shared by all frames, or an item for each frame.
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
      if (d_.frame_times.size() < d_.frames) d_.frame_times.push_back(frame.times);
      d_.one_orientation = d_.one_orientation && frame.orientation == d_.geometry.orientation;
      d_.one_slope = d_.one_slope && frame.slope == d_.geometry.slope;
      d_.one_intercept = d_.one_intercept && frame.intercept == d_.geometry.intercept;
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
            case dicom_tag(0x0018, 0x9112):  // MR timing
            case dicom_tag(0x0018, 0x9114):  // MR echo
            case dicom_tag(0x0018, 0x9118):  // cardiac synchronization
            case dicom_tag(0x0020, 0x9111):  // frame content
            case dicom_tag(0x0020, 0x9310):  // temporal position
              if (is_sequence(group)) {
                walker_.items(
                    group, [] {},
                    [&](const Element& inner) {
                      if (!geometry(inner, frame) && !time(inner, frame.times)) walker_.skip(inner);
                    });
                break;
              }
              [[fallthrough]];
            default: walker_.skip(group);
          }
        });
    end_of_item();
  }

  std::string acquisition_date_, acquisition_time_;
  bool is_siemens_ = false;  ///< of private elements
  bool is_uih_ = false;
  VolumeInput& in_;
  DicomFile& d_;
  DicomWalker walker_;
};

/// Colours in planes in uncompressed files of streams from before sample orders were stored.
bool has_old_planes(const DicomSlice& s) {
  return !s.file.may_unpack && s.found.planar && s.found.samples > 1 && !(s.file.order & kOrderPlanes);
}

void set_type(VolumeInfo& info, const DicomSlice& s) {
  const DicomFile& d = s.found;
  require(d.samples >= 1 && d.samples <= 4, ErrorKind::kUnsupported,
          s.file.path + ": " + count_of(d.samples, "sample") + " per pixel");
  require(d.rows > 0 && d.columns > 0, ErrorKind::kBadStream,
          s.file.path + ": Rows (0028,0010) or Columns (0028,0011) are missing or 0");
  info.format = "dicom";
  if (d.real && (d.bits == 32 || d.bits == 64)) {
    info.voxel.type = d.bits == 32 ? VoxelType::kF32 : VoxelType::kF64;
  } else {
    check_bits(d, s.file.path);
    info.voxel.type = static_cast<VoxelType>((d.bits == 8 ? 0 : d.bits == 16 ? 2 : 4) + (d.is_signed ? 1 : 0));
  }
  info.voxel.channels = has_old_planes(s) ? 1 : static_cast<int>(d.samples);
  info.slope = d.geometry.slope;
  info.intercept = d.geometry.intercept;
  const std::vector<double>& spacing = d.geometry.spacing;
  if (spacing.size() == 2 && spacing[0] > 0 && spacing[1] > 0) {
    info.spacing[0] = spacing[1];
    info.spacing[1] = spacing[0];
  }
  if (d.geometry.thickness > 0) info.spacing[2] = d.geometry.thickness;
  if (d.geometry.between > 0) info.spacing[2] = d.geometry.between;
}

/// A remark on slices that are so; it names them unless all are.
void remark_on_some(const std::vector<DicomSlice>& slices, const std::function<bool(const DicomFile&)>& is_so,
                    const std::string& what, std::vector<std::string>& remarks) {
  std::vector<std::string> names;
  for (const DicomSlice& s : slices)
    if (is_so(s.found)) names.push_back(s.file.name);
  if (names.empty()) return;
  remarks.push_back((names.size() == slices.size() ? "" : names_of(names) + ": ") + what);
}

/// Remarks on what Photometric Interpretation and tables make of values.
void remark_on_meaning(const std::vector<DicomSlice>& slices, std::vector<std::string>& remarks) {
  std::map<std::string, std::vector<std::string>> by_colours;
  for (const DicomSlice& s : slices)
    if (!s.found.photometric.empty()) by_colours[s.found.photometric].push_back(s.file.name);
  if (by_colours.size() > 1) {
    std::string kinds;
    for (const auto& [colours, names] : by_colours)
      kinds += (kinds.empty() ? "" : "; ") + printable(colours) + " in " + names_of(names);
    remarks.push_back("Photometric Interpretation, which says what values mean, is not the same in all files: " +
                      kinds);
  }
  for (const auto& [colours, names] : by_colours)
    if (colours.rfind("YBR", 0) == 0)
      remark_on_some(
          slices, [&c = colours](const DicomFile& d) { return d.photometric == c; },
          "colours are " + printable(colours) + ", luminance and two differences, not red, green and blue", remarks);
  remark_on_some(
      slices, [](const DicomFile& d) { return d.photometric == "PALETTE COLOR"; },
      "values are indices into the palette in the header, not brightness", remarks);
  const auto is_above = [](const DicomFile& d) {
    return !d.real && d.stored_bits > 0 && d.high_bit + 1 > d.stored_bits && d.high_bit < d.bits;
  };
  if (const auto above = std::find_if(slices.begin(), slices.end(), [&](const auto& s) { return is_above(s.found); });
      above != slices.end())
    remark_on_some(slices, is_above,
                   "with Bits Stored " + std::to_string(above->found.stored_bits) + " and High Bit " +
                       std::to_string(above->found.high_bit) +
                       " values are the upper bits of words; some programs take the words as they are",
                   remarks);
  remark_on_some(
      slices, [](const DicomFile& d) { return d.is_mosaic; },
      "pictures are mosaics, with the slices of a volume as tiles; they are not divided", remarks);
  remark_on_some(
      slices, [](const DicomFile& d) { return d.has_lut; },
      "a table in the header (Modality LUT Sequence) says what values mean; other formats have none", remarks);
}

/// Remarks on the meaning of values that other formats cannot store.
void remark_on_values(const std::vector<DicomSlice>& slices, VolumeInfo& info, std::vector<std::string>& remarks) {
  bool one_slope = true, one_intercept = true;
  for (const DicomSlice& s : slices) {
    const DicomFile& d = s.found;
    one_slope = one_slope && d.one_slope && d.geometry.slope == info.slope;
    one_intercept = one_intercept && d.one_intercept && d.geometry.intercept == info.intercept;
    info.largest_slope = std::max(info.largest_slope, d.largest_slope);
  }
  if (!one_slope || !one_intercept) {  // none would be right for all
    info.slope = 1;
    info.intercept = 0;
    info.has_other_scales = true;
    const std::string what = one_intercept ? "slope differs"
                             : one_slope   ? "intercept differs"
                                           : "slope and intercept differ";
    remarks.push_back(
        "the rescale " + what +
        " from slice to slice: DICOM files keep what they have, other formats get the stored values without "
        "slope and intercept");
  }
  if (std::any_of(slices.begin(), slices.end(),
                  [](const DicomSlice& s) { return !s.found.knows_sign && !s.found.real; }))
    remarks.push_back("Pixel Representation (0028,0103) is missing, values are taken as unsigned");
  remark_on_meaning(slices, remarks);
}

/// Remarks on files whose pixels were compressed.
void remark_on_codestreams(const std::vector<DicomSlice>& slices, std::vector<std::string>& remarks) {
  std::uint64_t converted = 0;
  std::vector<std::string> endless;
  std::map<std::string, std::vector<std::string>> by_colours;
  for (const DicomSlice& s : slices) {
    if (s.converted) ++converted;
    if (!s.has_end) endless.push_back(s.file.name);
    if (!s.colours.empty()) by_colours[s.colours].push_back(s.file.name);
  }
  if (converted > 0)
    remarks.push_back((converted == 1 ? "a file" : std::to_string(converted) + " files") +
                      " had compressed pixels, which come back uncompressed (explicit little-endian)");
  for (const auto& [colours, names] : by_colours)
    remarks.push_back(names_of(names) + ": the markers of the codestreams say that colours are " + colours +
                      ", Photometric Interpretation says otherwise and is corrected");
  if (!endless.empty())
    remarks.push_back(names_of(endless) +
                      ": compressed pixels end without their delimiter (Sequence Delimitation Item); was the "
                      "file cut?");
}

/// `big_endian`: the order of bytes in the stream.
FileLayout file_layout(const DicomSlice& s, bool big_endian) {
  const DicomFile& d = s.found;
  FileLayout f;
  f.name = s.file.name;
  f.open = s.file.open;
  f.head_bytes = d.pixels_at;
  f.converted = s.converted;
  const bool from_stream = !s.file.may_unpack;
  std::uint8_t order = s.file.order;
  if (!from_stream) order = dicom_order(d, s.file.path);
  if (!from_stream && d.bits > 8 && d.big_endian != big_endian) order |= kOrderReversed;
  const DicomSamples samples = dicom_samples(d, order);
  f.voxel_bytes = samples.frame_bytes() * samples.frames;
  const std::uint64_t due = samples.file_frame_bytes() * samples.frames;
  require(
      due <= d.pixel_bytes, ErrorKind::kBadStream,
      s.file.path + ": " + count_of(d.pixel_bytes, "byte") + " of pixels where " + std::to_string(due) + " are due");
  if (!from_stream && (samples.order != 0 || samples.has_unused())) f.samples = std::make_shared<DicomSamples>(samples);
  return f;
}

/// The time of a picture at the same place in each of several volumes, which follow each other.
void set_times(const std::vector<DicomSlice>& slices, std::uint64_t frames, std::uint64_t volumes, VolumeInfo& info,
               std::vector<std::string>& remarks) {
  std::vector<DicomTimes> times;
  std::uint64_t at = 0;  // of the first frame of a file
  for (const DicomSlice& s : slices) {
    const DicomFile& d = s.found;
    for (; times.size() < volumes && times.size() * (frames / volumes) < at + d.frames;) {
      const std::uint64_t frame = times.size() * (frames / volumes) - at;
      times.push_back(frame < d.frame_times.size() ? d.frame_times[frame] : d.geometry.times);
    }
    at += d.frames;
  }
  set_time_step(times, slices.front().found.is_3d, info, remarks);
}

/// The volume of these slices; the first `matching` belong together.
void lay_out(std::vector<DicomSlice> slices, std::size_t matching, bool only_matching, VolumeLayout& layout) {
  VolumeInfo& info = layout.info;
  set_type(info, slices.front());
  info.voxel.big_endian =
      slices.front().found.bits > 8 &&
      std::all_of(slices.begin(), slices.end(), [](const DicomSlice& s) { return s.found.big_endian; });
  info.fourth_unit = FourthUnit::kUnknown;
  std::uint64_t volumes = 1;
  if (slices.size() > 1)
    volumes = place_slices(slices, matching, only_matching, info, layout.remarks);
  else if (!has_old_planes(slices.front()))
    volumes = place_frames(info, slices.front().found, layout.remarks);
  remark_on_codestreams(slices, layout.remarks);
  remark_on_values(slices, info, layout.remarks);
  const DicomFile& first = slices.front().found;
  std::uint64_t frames = 0;
  for (const DicomSlice& s : slices) frames += s.found.frames * (has_old_planes(s) ? first.samples : 1);
  set_extents(info, {first.columns, first.rows, frames / volumes, volumes}, slices.front().file.path);
  if (volumes > 1) set_times(slices, frames, volumes, info, layout.remarks);
  for (const DicomSlice& s : slices) layout.files.push_back(file_layout(s, info.voxel.big_endian));
}

constexpr std::size_t kPreambleBytes = 132;

bool has_preamble(std::string_view begin) {
  return begin.size() >= kPreambleBytes && begin.substr(kPreambleBytes - 4, 4) == "DICM";
}

/// Whether a file begins with an element of group 0002.
bool begins_with_meta_information(std::string_view begin) {
  if (begin.size() < 8 || begin[0] != 2 || begin[1] != 0 || begin[3] != 0) return false;
  const std::string_view type = begin.substr(4, 2);
  const bool is_implicit_length = begin[2] == 0 && begin.substr(4, 4) == std::string_view("\4\0\0\0", 4);
  return type == "UL" || type == "OB" || type == "UI" || is_implicit_length;
}

/// Whether a data set without meta information is big-endian: the groups that it may begin with are below 0x0100.
bool begins_big_endian(std::string_view begin) { return begin.size() >= 2 && begin[0] == 0 && begin[1] != 0; }

/// What a data set of implicit encoding begins with.
struct FirstElement {
  char element;            ///< of group 0008
  std::string_view value;  ///< begins its value
};
constexpr FirstElement kFirstElements[] = {{0x05, "ISO"},   // Specific Character Set
                                           {0x08, "ORIG"},  // Image Type
                                           {0x08, "DERI"},  //
                                           {0x10, "ACR"},   // Recognition Code, of files before DICOM
                                           {0x12, "19"},    // Instance Creation Date
                                           {0x12, "20"},    //
                                           {0x16, "1.2."},  // SOP Class UID
                                           {0x18, "1."},    // SOP Instance UID
                                           {0x18, "2."},    //
                                           {0x20, "19"},    // Study Date
                                           {0x20, "20"}};

/// One of the elements that a data set begins with, in files that have neither a preamble nor meta information.
bool begins_with_data_set(std::string_view begin) {
  if (begin.size() < 12) return false;
  const bool big_endian = begins_big_endian(begin);
  const char group = begin[big_endian ? 1 : 0], element = begin[big_endian ? 3 : 2];
  if (begin[big_endian ? 0 : 1] != 0 || begin[big_endian ? 2 : 3] != 0) return false;
  constexpr std::string_view kGroups = "\x08\x10\x18\x20\x28";
  constexpr std::string_view kRepresentations = " AE AS CS DA DT IS LO LT PN SH SQ ST TM UI UL US UT ";
  if (kGroups.find(group) != std::string_view::npos && begins_with_type(begin.substr(4)) &&
      kRepresentations.find(' ' + std::string(begin.substr(4, 2)) + ' ') != std::string_view::npos)
    return true;
  const bool is_short = begin[5] == 0 && begin[6] == 0 && begin[7] == 0;  // an implicit length
  if (big_endian || group != 8 || !is_short) return false;
  if (element == 0x00 || element == 0x01) return begin[4] == 4;  // Group Length, Length to End
  return std::any_of(std::begin(kFirstElements), std::end(kFirstElements), [&](const FirstElement& first) {
    return element == first.element && begin.substr(8, first.value.size()) == first.value;
  });
}

}  // namespace

bool is_dicom(std::string_view begin) {
  return has_preamble(begin) || begins_with_meta_information(begin) || begins_with_data_set(begin);
}

DicomFile read_dicom(VolumeInput& in) {
  DicomFile d;
  const std::string_view begin = in.ahead(kPreambleBytes);
  require(is_dicom(begin), ErrorKind::kBadStream, in.name() + ": is no DICOM file ('DICM' at byte 128)");
  if (has_preamble(begin)) d.meta_at = kPreambleBytes;
  in.skip(d.meta_at, "preamble");
  DicomWalker::Element e;
  {
    DicomWalker meta(in, true, false);
    while (true) {
      const std::string_view next = in.ahead(2);
      if (next.size() < 2 || next[0] != 2 || next[1] != 0) break;  // only group 0002
      require(meta.next(e), ErrorKind::kBadStream, in.name() + ": ends inside its meta information");
      if (e.tag == dicom_tag(0x0002, 0x0010))
        d.transfer_syntax = text_of(meta.value(e));
      else
        meta.skip(e);
    }
  }
  d.data_at = in.position();
  // Explicit if the first element has a type, because the syntax in some files is wrong.
  const std::string_view first = in.ahead(6);
  d.explicit_vr = first.size() >= 6 && begins_with_type(first.substr(4));
  if (d.transfer_syntax.empty())
    d.transfer_syntax = !d.explicit_vr             ? kImplicitLittleEndian
                        : begins_big_endian(first) ? kExplicitBigEndian
                                                   : kExplicitLittleEndian;
  const DicomSyntax* syntax = dicom_syntax(d.transfer_syntax);
  require(syntax != nullptr, ErrorKind::kUnsupported,
          in.name() + ": unknown " + syntax_text(d.transfer_syntax) + "; convert the file to one of the standard's");
  d.big_endian = d.transfer_syntax == kExplicitBigEndian;
  d.plain = syntax->coding == DicomCoding::kPlain;
  d.readable = syntax->coding != DicomCoding::kDeflated && !syntax->name.ends_with("deflated");
  if (d.readable) DataSet(in, d).read();
  return d;
}

namespace {

bool describes_pictures(const DicomFile& d) { return d.rows > 0 && d.columns > 0 && !d.is_spectrum; }

/// What a file is whose data set is complete without pixels.
std::string without_pixels(const DicomFile& d) {
  if (!describes_pictures(d)) return "holds no pixels; it may be a report, a plan, a spectrum or a DICOMDIR";
  return "holds no pixels, although its header describes pictures of " + std::to_string(d.columns) + "x" +
         std::to_string(d.rows) + "; they were taken out, or the file was cut before them";
}

[[noreturn]] void fail_without_pixels(const DicomSlice& s) {
  const DicomFile& d = s.found;
  require(!d.is_cut, ErrorKind::kBadStream, s.file.path + ": ends inside an element, before its pixels");
  const std::string what = s.file.path + ": " + without_pixels(d);
  require(s.file.may_unpack, ErrorKind::kBadStream, what);
  require(!describes_pictures(d), ErrorKind::kUnsupported, what);
  throw NoPictures(ErrorKind::kUnsupported, what);
}

void find_attributes(DicomSlice& s) {
  VolumeInput in(s.file.open(), s.file.path);
  s.found = read_dicom(in);
}

/// Replaces a file by one of uncompressed pixels.
void uncompress(DicomSlice& s) {
  require(s.file.may_unpack, ErrorKind::kBadStream,
          s.file.path + ": a stored header of compressed pixels (transfer syntax " +
              printable(s.found.transfer_syntax.substr(0, 64)) + ")");
  const auto about = std::make_shared<DicomCodestreams>();
  s.file.open = decompressed_dicom(s.file, s.found, about);
  find_attributes(s);
  s.converted = true;
  s.has_end = about->has_end;
  s.colours = about->colours;
  if (!about->exceed_stored_bits) return;
  s.found.stored_bits = s.found.bits;
  s.found.high_bit = s.found.bits - 1;
}

}  // namespace

std::vector<DicomSlice> read_slices(const std::vector<FileToRead>& files, const VolumeOptions& options,
                                    std::vector<std::string>& remarks) {
  std::vector<DicomSlice> slices;
  bool are_stripped = false;
  for (const FileToRead& file : files) {
    DicomSlice s;
    s.file = file;
    try {
      find_attributes(s);
      if (!s.found.readable) uncompress(s);
      if (s.found.pixels_at == 0 && s.found.is_cut) fail_without_pixels(s);
    } catch (const Error& e) {
      const bool is_of_file = e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported;
      if (files.size() == 1 || !file.may_unpack || !is_of_file) throw;
      require(options.only_matching, e.kind(),
              std::string(e.what()) + "; VolumeOptions::only_matching leaves such files out");
      remarks.push_back(std::string(e.what()) + "; it is left out");
      continue;
    }
    if (s.found.pixels_at == 0) {
      if (files.size() == 1) fail_without_pixels(s);
      are_stripped = are_stripped || describes_pictures(s.found);
      remarks.push_back(file.name + ": " + without_pixels(s.found) + "; it is left out");
      continue;
    }
    slices.push_back(std::move(s));
  }
  if (slices.empty()) {
    const std::string what = files.front().path + " and the files beside it hold no pixels";
    require(files.front().may_unpack, ErrorKind::kBadStream, what);
    require(!are_stripped, ErrorKind::kUnsupported, what + ", although headers among them describe pictures");
    throw NoPictures(ErrorKind::kUnsupported, what);
  }
  return slices;
}

VolumeLayout dicom_layout(const std::vector<FileToRead>& files, const VolumeOptions& options) {
  VolumeLayout layout;
  std::vector<DicomSlice> slices = read_slices(files, options, layout.remarks);
  choose_series(slices, options.series, files.front());
  for (DicomSlice& s : slices) {
    if (!s.found.plain) uncompress(s);
    require(s.found.pixels_at > 0, ErrorKind::kBadStream, s.file.path + ": holds no pixels once they are uncompressed");
  }
  const std::size_t matching = match_slices(slices, options.only_matching, layout.remarks);
  lay_out(std::move(slices), matching, options.only_matching, layout);
  return layout;
}

}  // namespace trivelet::io
