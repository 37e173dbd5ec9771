// NRRD: a text header, then the voxels after an empty line, or in other files (detached header, .nhdr). Source:
// "Definition of NRRD File Format", teem.sourceforge.net/nrrd/format.html.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "codec/base/limits.h"
#include "io/volume/nrrd_encoding.h"
#include "io/volume/volume_input.h"

namespace trivelet::io {

namespace {

struct Type {
  const char* names;  // between commas
  VoxelType type;
};
constexpr Type kTypes[] = {
    {",signed char,int8,int8_t,", VoxelType::kI8},
    {",uchar,unsigned char,uint8,uint8_t,", VoxelType::kU8},
    {",short,short int,signed short,signed short int,int16,int16_t,", VoxelType::kI16},
    {",ushort,unsigned short,unsigned short int,uint16,uint16_t,", VoxelType::kU16},
    {",int,signed int,int32,int32_t,", VoxelType::kI32},
    {",uint,unsigned int,uint32,uint32_t,", VoxelType::kU32},
    {",longlong,long long,long long int,signed long long,signed long long int,int64,int64_t,", VoxelType::kI64},
    {",ulonglong,unsigned long long,unsigned long long int,uint64,uint64_t,", VoxelType::kU64},
    {",float,", VoxelType::kF32},
    {",double,", VoxelType::kF64},
};

VoxelType parse_type(const std::string& text, const std::string& name) {
  const std::string listed = ',' + lower(text) + ',';
  for (const Type& t : kTypes)
    if (std::string_view(t.names).find(listed) != std::string_view::npos) return t.type;
  fail(ErrorKind::kUnsupported, name + ": NRRD type '" + text + "' cannot be coded");
}

/// "mm" "mm" "" "s": what stands between quotation marks.
std::vector<std::string> parse_quoted(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t begin = text.find('"'); begin != std::string_view::npos; begin = text.find('"')) {
    const std::size_t end = text.find('"', begin + 1);
    if (end == std::string_view::npos) break;
    out.emplace_back(trim(text.substr(begin + 1, end - begin - 1)));
    text.remove_prefix(end + 1);
  }
  return out;
}

/// "(1,0,0) none (0,0,2)": a vector per axis, empty for none.
std::vector<std::vector<double>> parse_vectors(std::string_view text) {
  std::vector<std::vector<double>> out;
  while (!(text = trim(text)).empty()) {
    if (text.front() != '(') {
      const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
      out.emplace_back();
      text.remove_prefix(end);
      continue;
    }
    const std::size_t close = text.find(')');
    if (close == std::string_view::npos) return {};
    const auto numbers = parse_numbers(text.substr(1, close - 1), ",");
    out.push_back(numbers.value_or(std::vector<double>{}));
    text.remove_prefix(close + 1);
  }
  return out;
}

struct NrrdHeader {
  std::string type, encoding, data_file, space;
  std::vector<std::string> listed;  // data file: LIST
  std::vector<std::uint64_t> sizes;
  std::vector<double> spacings;
  std::vector<std::vector<double>> directions;
  std::vector<double> origin;
  std::vector<std::string> kinds;
  std::string space_unit;          ///< "" = not named
  std::vector<std::string> units;  ///< of the axes; "" = not named
  std::uint64_t dimension = 0;
  bool big_endian = false;
  bool has_endian = false;
  std::uint64_t line_skip = 0;
  double byte_skip = 0;
};

std::string without_spaces(std::string_view name) {
  std::string packed;
  for (const char c : name)
    if (c != ' ') packed += c;
  return packed;
}

/// Spaces in names may be left out.
bool field_is(const std::string& field, std::string_view name) { return without_spaces(field) == without_spaces(name); }

struct NrrdField {
  std::string name;
  std::string value;
};

// The field of a header line; nullopt: a comment or a key/value pair.
std::optional<NrrdField> field_in(std::string_view line, const std::string& file) {
  if (line.front() == '#') return std::nullopt;
  const std::size_t colon = line.find(": ");
  const std::size_t key = line.find(":=");
  if (key != std::string_view::npos && (colon == std::string_view::npos || key < colon)) return std::nullopt;
  const std::size_t end = line.find(':');
  require(end != std::string_view::npos, ErrorKind::kBadStream,
          file + ": header line '" + printable(line.substr(0, 60)) + "' is no 'field: value'");
  return NrrdField{lower(trim(line.substr(0, end))), std::string(trim(line.substr(end + 1)))};
}

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = trim(text)).empty()) {
    const std::size_t n = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(lower(text.substr(0, n)));
    text.remove_prefix(n);
  }
  return words;
}

// Sets a field of how the voxels are stored. nullopt: it is none of these; false: the value makes no sense.
std::optional<bool> set_storage(NrrdHeader& h, const std::string& field, const std::string& value) {
  if (field == "type") {
    h.type = value;
  } else if (field == "encoding") {
    h.encoding = lower(value);
  } else if (field == "dimension") {
    const auto n = parse_whole(value);
    if (!n || *n < 1 || *n > 16) return false;
    h.dimension = *n;
  } else if (field == "sizes") {
    h.sizes.clear();
    const auto numbers = parse_numbers(value);
    if (!numbers) return false;
    for (const double v : *numbers) {
      if (!(v >= 1 && v <= 1e15 && v == std::floor(v))) return false;
      h.sizes.push_back(static_cast<std::uint64_t>(v));
    }
  } else if (field == "endian") {
    h.has_endian = true;
    h.big_endian = lower(value) == "big";
    return h.big_endian || lower(value) == "little";
  } else if (field_is(field, "line skip")) {
    const auto n = parse_whole(value);
    if (!n) return false;
    h.line_skip = *n;
  } else if (field_is(field, "byte skip")) {
    const auto numbers = parse_numbers(value);
    if (!numbers || numbers->size() != 1 || !((*numbers)[0] >= -1 && (*numbers)[0] <= 1e15) ||
        (*numbers)[0] != std::floor((*numbers)[0]))
      return false;
    h.byte_skip = (*numbers)[0];
  } else if (field_is(field, "data file")) {
    h.data_file = value;
  } else {
    return std::nullopt;
  }
  return true;
}

// Sets a field of the space that the voxels fill; others are passed over.
void set_space(NrrdHeader& h, const std::string& field, const std::string& value) {
  if (field == "spacings") {
    h.spacings = parse_numbers(value).value_or(std::vector<double>{});
  } else if (field == "space") {
    h.space = lower(value);
  } else if (field_is(field, "space units")) {
    const std::vector<std::string> units = parse_quoted(value);
    h.space_unit = units.empty() ? std::string(trim(value)) : units[0];
  } else if (field == "units") {
    h.units = parse_quoted(value);
  } else if (field_is(field, "space directions")) {
    h.directions = parse_vectors(value);
  } else if (field_is(field, "space origin")) {
    const auto vectors = parse_vectors(value);
    if (!vectors.empty()) h.origin = vectors[0];
  } else if (field == "kinds") {
    for (std::string& kind : words_in(value)) h.kinds.push_back(std::move(kind));
  }
}

/// `is_stored`: the header from a stream, which may be older than the refusal of fields that stand there twice.
NrrdHeader read_header(VolumeInput& in, const Limits& limits, bool is_stored) {
  NrrdHeader h;
  std::set<std::string> seen;
  std::string line;
  in.line(line);
  bool ended = false;
  while (!ended && in.line(line)) {
    require(in.position() <= kMaxHeadBytes, ErrorKind::kBadStream, in.name() + ": a header without end");
    const std::string_view text = trim(line);
    if (text.empty()) {
      ended = true;
      continue;
    }
    const std::optional<NrrdField> field = field_in(text, in.name());
    if (!field) continue;
    require(seen.insert(without_spaces(field->name)).second || is_stored, ErrorKind::kBadStream,
            in.name() + ": the field '" + printable(field->name.substr(0, 60)) +
                "' stands there twice, so its meaning is open; delete one of the two lines");
    const std::string& value = field->value;
    const std::optional<bool> stored = set_storage(h, field->name, value);
    require(stored.value_or(true), ErrorKind::kBadStream,
            in.name() + ": '" + field->name + ": " + value.substr(0, 60) + "' makes no sense");
    if (!stored) set_space(h, field->name, value);
    if (field_is(field->name, "data file") && (value == "LIST" || value.rfind("LIST ", 0) == 0)) {
      h.listed = listed_files(in, limits);  // up to the end
      ended = true;
    }
  }
  require(ended || !h.data_file.empty(), ErrorKind::kBadStream,
          in.name() + ": the header is cut: neither an empty line nor a data file follows");
  return h;
}

/// The coordinates of the patient that a header names; none of others.
struct PatientSpace {
  bool left = false, right = false, mixed = false;
  explicit PatientSpace(const std::string& space)
      : left(space == "left-posterior-superior" || space == "lps"),
        right(space == "right-anterior-superior" || space == "ras"),
        mixed(space == "left-anterior-superior" || space == "las") {}
  bool is_known() const { return left || right || mixed; }
};

void set_affine(VolumeInfo& info, const NrrdHeader& h, std::size_t first_axis) {
  info.has_other_place = !h.origin.empty() || !h.directions.empty();
  // The three spatial axes must be the first three for a matrix from our coordinates.
  if (h.directions.size() < first_axis + 3 || (h.origin.size() != 3 && !h.origin.empty())) return;
  for (std::size_t i = 0; i < 3; ++i)
    if (h.directions[first_axis + i].size() != 3) return;
  const PatientSpace space(h.space);
  if (!space.is_known()) return;
  const bool left = space.left, right = space.right;
  const double sign[3] = {right ? 1.0 : -1.0, left ? -1.0 : 1.0, 1.0};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < 3; ++i) info.affine[4 * row + i] = sign[row] * h.directions[first_axis + i][row];
    info.affine[4 * row + 3] = h.origin.empty() ? 0 : sign[row] * h.origin[row];
  }
  info.has_affine = true;
  info.has_other_place = false;
  drop_bad_affine(info);
}

/// The unit of distance, of the space or of the first axis of it.
void set_units(VolumeLayout& layout, const NrrdHeader& h, std::size_t first_axis) {
  VolumeInfo& info = layout.info;
  const auto unit_of = [&](std::size_t axis) { return axis < h.units.size() ? h.units[axis] : std::string(); };
  const std::string unit = h.space_unit.empty() ? unit_of(first_axis) : h.space_unit;
  const std::size_t end = std::min(first_axis + 3, h.sizes.size());
  bool is_same = true;
  for (std::size_t axis = first_axis; axis < end && h.space_unit.empty(); ++axis)
    is_same = is_same && unit_of(axis) == unit;
  if (const std::optional<double> millimetres = millimetres_in(unit); millimetres && is_same)
    scale_distances(info, *millimetres);
  else if (!unit.empty() || !is_same)
    set_unknown_unit(layout, h.space_unit.empty() ? "units" : "space units", unit);
  else
    info.knows_distance_unit = info.has_affine;  // the patient's spaces are in millimetres
  constexpr std::pair<std::string_view, double> kTimes[] = {{"s", 1}, {"sec", 1}, {"ms", 1e-3}, {"us", 1e-6}};
  info.fourth_unit = FourthUnit::kUnknown;
  for (const auto& [name, seconds] : kTimes)
    if (unit_of(first_axis + 3) == name) {
      info.spacing[3] *= seconds;
      info.fourth_unit = FourthUnit::kSeconds;
    }
}

void set_geometry(VolumeInfo& info, const NrrdHeader& h, std::size_t first_axis) {
  for (std::size_t i = 0; i < 4 && first_axis + i < h.sizes.size(); ++i) {
    const std::size_t axis = first_axis + i;
    double d = axis < h.spacings.size() ? std::fabs(h.spacings[axis]) : 0;
    if (axis < h.directions.size()) {
      double sum = 0;
      for (const double v : h.directions[axis]) sum += v * v;
      if (sum > 0) d = std::sqrt(sum);
    }
    if (d > 0 && std::isfinite(d)) info.spacing[i] = d;
  }
  set_affine(info, h, first_axis);
}

/// Whether an axis of this kind has values. Teem takes all of these names, in upper and lower case.
bool is_kind_of_values(const std::string& name) {
  constexpr std::string_view kNames[] = {"list", "point", "normal",     "complex",    "rgb",
                                         "rgba", "hsv",   "quaternion", "3-gradient", "3-normal"};
  constexpr std::string_view kParts[] = {"color", "vector", "matrix", "tensor"};
  const std::string kind = lower(name);
  return std::find(std::begin(kNames), std::end(kNames), kind) != std::end(kNames) ||
         std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return kind.find(part) != std::string::npos; });
}

/// Whether the first axis is one of values (colours, components, directions of diffusion) and not of space.
bool begins_with_values(const NrrdHeader& h) {
  if (h.sizes.size() < 2) return false;
  // Where no axis has a direction that says nothing of the first one.
  const bool no_direction =
      h.directions.size() == h.sizes.size() && h.directions[0].empty() &&
      std::any_of(h.directions.begin(), h.directions.end(), [](const auto& d) { return !d.empty(); });
  return no_direction || (!h.kinds.empty() && is_kind_of_values(h.kinds[0]));
}

/// Of axes of values that stand among those of space.
void remark_on_axes(VolumeLayout& layout, const NrrdHeader& h) {
  if (!layout.info.has_other_place || !PatientSpace(h.space).is_known()) return;
  std::size_t directions = 0;
  for (const auto& d : h.directions) directions += d.size() == 3 ? 1 : 0;
  const auto values = std::find_if(h.directions.begin(), h.directions.end(), [](const auto& d) { return d.empty(); });
  if (directions < 3 || values == h.directions.end()) return;
  layout.info.has_other_place = false;  // which this says, too
  layout.remarks.push_back("axis " + std::to_string(values - h.directions.begin() + 1) +
                           " has values and stands among those of space: files of other formats have the axes in the "
                           "same order, with neither their directions nor their origin");
}

/// Of directions without a place, which other formats cannot leave out.
void remark_on_origin(VolumeLayout& layout, const NrrdHeader& h) {
  if (layout.info.has_affine && h.origin.empty())
    layout.remarks.push_back("has directions and no 'space origin': in files of other formats the first voxel is at 0");
}

/// Of more values than a voxel has here.
void remark_on_values(VolumeLayout& layout, const NrrdHeader& h) {
  if (!begins_with_values(h) || h.sizes[0] < 2) return;
  layout.info.has_other_place = false;  // which this says, too
  layout.remarks.push_back(values_axis_remark(h.sizes[0]));
}

/// Names of the data files, in order.
std::vector<std::string> data_files(const NrrdHeader& h, const std::string& name, const Limits& limits) {
  if (!h.listed.empty()) return h.listed;
  // "name%03d.raw first last step [subdim]"
  const std::size_t space = h.data_file.find(' ');
  if (h.data_file.find('%') == std::string::npos || space == std::string::npos) return {h.data_file};
  const auto numbers = parse_numbers(std::string_view(h.data_file).substr(space));
  if (!numbers || numbers->size() < 3) return {h.data_file};
  const double first = (*numbers)[0];
  const double last = (*numbers)[1];
  const double step = (*numbers)[2];
  require(step != 0 && first == std::floor(first) && step == std::floor(step) && std::fabs(first) < 1e9 &&
              std::fabs(step) < 1e9 && (last - first) / step >= 0 && (last - first) / step < 100000,
          ErrorKind::kBadStream, name + ": '" + h.data_file + "' does not count up to 100000 files");
  const auto count = static_cast<std::uint64_t>((last - first) / step) + 1;
  check_limit(count, limits.files, "files", name + ": " + std::to_string(count) + " data files");
  std::vector<std::string> names;
  for (double i = 0; i <= (last - first) / step; ++i)
    names.push_back(numbered_name(h.data_file.substr(0, space), static_cast<std::int64_t>(first + i * step)));
  return names;
}

/// Bytes of `lines` lines at the start of a file.
std::uint64_t bytes_of_lines(const Opener& open, const std::string& name, std::uint64_t start, std::uint64_t lines,
                             const Limits& limits) {
  if (lines == 0) return 0;
  bool gzip = false;
  const auto in = open_input(open, name, gzip, limits);
  in->skip(start, "header");
  std::string line;
  for (std::uint64_t i = 0; i < lines; ++i) {
    require(in->line(line), ErrorKind::kBadStream, name + ": has no " + count_of(lines, "line") + " to skip");
    require(in->position() - start <= kMaxListBytes, ErrorKind::kBadStream, name + ": too many lines to skip");
  }
  return in->position() - start;
}

NrrdEncoding encoding_of(const NrrdHeader& h, const FileToRead& file) {
  const std::optional<NrrdEncoding> found = nrrd_encoding(h.encoding);
  const bool is_read = found && (*found != NrrdEncoding::kBzip2 || have_bzip2());
  require(is_read, ErrorKind::kUnsupported,
          file.path + ": NRRD encoding '" + printable(h.encoding.substr(0, 40)) + "'" +
              (found ? ", for which this build has no libbz2" : "; only raw, gzip, text, hex and bzip2 are read") +
              ": convert it first, for example by 'unu save -f nrrd -e gzip'");
  const bool is_converted = *found != NrrdEncoding::kRaw && *found != NrrdEncoding::kGzip;
  require(!is_converted || file.may_unpack, ErrorKind::kBadStream,
          file.path + ": a stored header of voxels in another encoding than raw and gzip");
  require(!is_converted || h.line_skip == 0, ErrorKind::kUnsupported,
          file.path + ": line skip before voxels in the encoding " + h.encoding);
  require(!is_converted || h.byte_skip == 0, ErrorKind::kUnsupported,
          file.path + ": byte skip before voxels in the encoding " + h.encoding);
  return *found;
}

/// Puts the header in raw encoding before the voxels of this file, in place of its own.
void convert_attached(FileLayout& f, const FileToRead& file, NrrdEncoding encoding, bool swaps, VoxelType type) {
  bool gzip = false;
  const auto in = open_input(f.open, file.path, gzip, file.limits);
  std::vector<std::byte> head;
  in->append(head, f.head_bytes, "header");
  head = raw_nrrd_header(head, swaps);
  const std::uint64_t old_bytes = std::exchange(f.head_bytes, head.size());
  f.open = raw_nrrd(file, f.open, encoding, {type, f.voxel_bytes}, old_bytes, std::move(head));
  f.converted = true;
}

/// Makes the files of text, hex or bzip2 those of raw scalars.
void convert(VolumeLayout& layout, const FileToRead& file, NrrdEncoding encoding) {
  const bool is_text = encoding == NrrdEncoding::kText;
  const VoxelType type = layout.info.voxel.type;
  const bool swaps = is_text && bytes_of(type) > 1;
  for (FileLayout& f : layout.files) {
    if (f.voxel_bytes == 0) {
      bool gzip = false;
      std::vector<std::byte> head = open_input(f.open, file.path, gzip, file.limits)->rest("header", kMaxHeadBytes);
      head = raw_nrrd_header(head, swaps);
      f.open = memory_opener(std::make_shared<const std::vector<std::byte>>(std::move(head)));
    } else if (f.head_bytes == 0) {
      f.open = raw_nrrd(file, f.open, encoding, {type, f.voxel_bytes}, 0, {});
    } else {
      convert_attached(f, file, encoding, swaps, type);
    }
    f.converted = true;
  }
  const std::string what = is_text ? "text" : encoding == NrrdEncoding::kHex ? "hex digits" : "compressed by bzip2";
  layout.remarks.push_back("its voxels are " + what + " and come back raw, under a header that says so");
}

/// A file of gzip data that unpack to bytes to skip and the voxels. An envelope has no place for bytes inside of a
/// compression, so beside a header the file counts as a .gz, whose name it must have, and behind one it comes back raw.
void skip_in_gzip(VolumeLayout& layout, FileLayout& f, const FileToRead& file, const NrrdHeader& h) {
  require(h.line_skip == 0, ErrorKind::kUnsupported, f.name + ": line skip and byte skip in compressed data");
  const bool is_attached = f.head_bytes > 0;
  require(is_attached || lower(f.name).ends_with(".gz"), ErrorKind::kUnsupported,
          f.name + ": byte skip in compressed data of a file whose name does not end in .gz; rename it");
  f.packing = Packing::kNone;
  if (!file.may_unpack) return;
  std::uint64_t skipped = 0;
  if (h.byte_skip > 0) {
    skipped = static_cast<std::uint64_t>(h.byte_skip);
  } else {
    const std::uint64_t all = unpacked_bytes(file, f.open, f.head_bytes);
    require(all >= f.voxel_bytes, ErrorKind::kBadStream,
            f.name + ": unpacks to " + count_of(all, "byte") + " where " + std::to_string(f.voxel_bytes) + " are due");
    skipped = all - f.voxel_bytes;
  }
  if (is_attached) {
    convert_attached(f, file, NrrdEncoding::kGzip, false, layout.info.voxel.type);
    layout.remarks.push_back(
        "its voxels are compressed behind bytes to skip and come back raw, under a header that says so");
  }
  f.head_bytes += skipped;
}

}  // namespace

bool is_nrrd(std::string_view begin) {
  return begin.size() >= 8 && begin.substr(0, 7) == "NRRD000" && begin[7] >= '1' && begin[7] <= '9';
}

VolumeLayout nrrd_layout(const FileToRead& file) {
  bool whole_gzip = false;
  const auto in = open_input(file.open, file.path, whole_gzip, file.limits);
  require(is_nrrd(in->ahead(8)), ErrorKind::kBadStream, file.path + ": is no NRRD file");
  const NrrdHeader h = read_header(*in, file.limits, !file.may_unpack);
  require(h.dimension >= 1 && h.sizes.size() == h.dimension, ErrorKind::kBadStream,
          file.path + ": " + count_of(h.sizes.size(), "size") + " for " + count_of(h.dimension, "dimension"));
  require(!h.type.empty() && !h.encoding.empty(), ErrorKind::kBadStream, file.path + ": type or encoding is missing");
  const NrrdEncoding encoding = encoding_of(h, file);
  const Packing packing = encoding == NrrdEncoding::kGzip ? Packing::kGzip : Packing::kNone;
  VolumeLayout layout;
  VolumeInfo& info = layout.info;
  info.format = "nrrd";
  info.voxel.type = parse_type(h.type, file.path);
  const bool is_text = encoding == NrrdEncoding::kText;
  require(h.has_endian || bytes_of(info.voxel.type) == 1 || is_text, ErrorKind::kBadStream,
          file.path + ": the byte order (endian) of " + h.type + " is missing");
  info.voxel.big_endian = h.big_endian && bytes_of(info.voxel.type) > 1 && !is_text;
  // Values along a line (a map of colours) stay a picture.
  const bool may_be_voxels = h.sizes.size() > 2 && h.sizes[0] >= 2 && h.sizes[0] <= 4;
  const std::size_t first_axis = may_be_voxels && begins_with_values(h) ? 1 : 0;
  if (first_axis > 0) info.voxel.channels = static_cast<int>(h.sizes[0]);
  const std::vector<std::uint64_t> extents(h.sizes.begin() + static_cast<std::ptrdiff_t>(first_axis), h.sizes.end());
  set_extents(info, extents, file.path);
  set_geometry(info, h, first_axis);
  set_units(layout, h, first_axis);
  remark_on_further_axes(layout, extents);
  if (first_axis == 0) remark_on_values(layout, h);
  remark_on_axes(layout, h);
  remark_on_origin(layout, h);

  const std::uint64_t bytes = info.bytes();
  std::uint64_t lines_bytes = 0;  // of all files
  const auto add = [&](const std::string& name, const Opener& open, std::uint64_t start, std::uint64_t share) {
    FileLayout f;
    f.name = base_name(name);
    f.open = open;
    f.voxel_bytes = share;
    f.packing = packing;
    f.head_bytes = start + bytes_of_lines(open, name, start, h.line_skip, file.limits);
    lines_bytes += f.head_bytes - start;
    require(lines_bytes <= kMaxListBytes, ErrorKind::kBadStream,
            file.path + ": more than " + std::to_string(kMaxListBytes) + " bytes of lines to skip in its data files");
    if (h.byte_skip != 0 && encoding == NrrdEncoding::kGzip) {
      skip_in_gzip(layout, f, file, h);
    } else if (h.byte_skip > 0) {
      f.head_bytes += static_cast<std::uint64_t>(h.byte_skip);
    } else if (h.byte_skip < 0) {
      const auto size = open()->size();
      require(size.has_value() && *size >= f.head_bytes + share, ErrorKind::kBadStream,
              name + ": is too short for its voxels, or its length is not known");
      f.head_bytes = *size - share;
    }
    require(f.head_bytes <= kMaxHeadBytes, ErrorKind::kBadStream,
            name + ": the voxels begin at byte " + std::to_string(f.head_bytes) + "; the limit is " +
                std::to_string(kMaxHeadBytes));
    layout.files.push_back(std::move(f));
  };
  if (h.data_file.empty())
    add(file.name, file.open, in->position(), bytes);
  else
    add_data_files(layout, file, data_files(h, file.path, file.limits), bytes, add);
  if (encoding != NrrdEncoding::kRaw && encoding != NrrdEncoding::kGzip) convert(layout, file, encoding);
  return layout;
}

Envelope make_nrrd(const VolumeInfo& info) {
  std::string text = "NRRD0004\ntype: ";
  std::string type = trivelet::to_string(info.voxel.type);
  if (type == "float32") type = "float";
  if (type == "float64") type = "double";
  const bool channels = info.voxel.channels > 1;
  const bool fourth = info.volumes > 1;
  text += type + "\ndimension: " + std::to_string(3 + channels + fourth);
  if (info.has_affine) text += "\nspace: left-posterior-superior";
  text += "\nsizes:" + (channels ? std::string(" ") + std::to_string(info.voxel.channels) : "") + std::string(" ") +
          std::to_string(info.width) + std::string(" ") + std::to_string(info.height) + std::string(" ") +
          std::to_string(info.slices) + (fourth ? std::string(" ") + std::to_string(info.volumes) : "");
  if (info.has_affine) {
    const double sign[3] = {-1, -1, 1};
    const auto vector = [&](std::size_t column) {
      std::string v = "(";
      for (std::size_t row = 0; row < 3; ++row)
        v += std::string(row ? "," : "") + number_text(sign[row] * info.affine[4 * row + column] + 0.0);
      return v + ")";
    };
    text += "\nspace directions:" + std::string(channels ? " none" : "");
    for (std::size_t i = 0; i < 3; ++i) text += " " + vector(i);
    text += std::string(fourth ? " none" : "") + "\nspace origin: " + vector(3);
    // Only axes without a direction may have a spacing.
    if (fourth)
      text += "\nspacings:" + std::string(channels ? " NaN" : "") + " NaN NaN NaN " + number_text(info.spacing[3]);
  } else {
    text += "\nspacings:" + std::string(channels ? " NaN" : "");
    for (std::size_t i = 0; i < (fourth ? 4u : 3u); ++i) text += std::string(" ") + number_text(info.spacing[i]);
  }
  const std::string distance = info.knows_distance_unit ? " \"mm\"" : " \"\"";
  if (info.has_affine && info.knows_distance_unit) text += "\nspace units:" + distance + distance + distance;
  if ((!info.has_affine && info.knows_distance_unit) || (fourth && info.fourth_unit == FourthUnit::kSeconds)) {
    text += "\nunits:" + std::string(channels ? " \"\"" : "");
    for (int i = 0; i < 3; ++i) text += info.has_affine ? " \"\"" : distance;  // not of axes with a direction
    if (fourth) text += info.fourth_unit == FourthUnit::kSeconds ? " \"s\"" : " \"\"";
  }
  text += "\nkinds:" + std::string(channels ? " vector" : "") + " domain domain domain" + (fourth ? " list" : "");
  if (bytes_of(info.voxel.type) > 1) text += std::string("\nendian: ") + (info.voxel.big_endian ? "big" : "little");
  text += std::string("\nencoding: ") + (have_zlib() ? "gzip" : "raw") + "\n\n";
  return text_envelope("nrrd", text, have_zlib() ? Packing::kGzip : Packing::kNone, info.bytes());
}

}  // namespace trivelet::io
