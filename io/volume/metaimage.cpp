// MetaImage: lines "Key = Value". The last one, ElementDataFile, names the file of the voxels: LOCAL = after it.
// Source: "MetaIO", itk.org/Wiki/ITK/MetaIO/Documentation; the meaning of TransformMatrix as in ITK's reader.
#include <algorithm>
#include <cmath>

#include "codec/base/limits.h"
#include "io/volume/volume_input.h"

namespace trivelet::io {

namespace {

struct MetaType {
  const char* name;
  VoxelType type;
};
constexpr MetaType kMetaTypes[] = {
    {"MET_CHAR", VoxelType::kI8},        {"MET_UCHAR", VoxelType::kU8},  {"MET_SHORT", VoxelType::kI16},
    {"MET_USHORT", VoxelType::kU16},     {"MET_INT", VoxelType::kI32},   {"MET_UINT", VoxelType::kU32},
    {"MET_LONG", VoxelType::kI32},       {"MET_ULONG", VoxelType::kU32}, {"MET_LONG_LONG", VoxelType::kI64},
    {"MET_ULONG_LONG", VoxelType::kU64}, {"MET_FLOAT", VoxelType::kF32}, {"MET_DOUBLE", VoxelType::kF64}};

struct MetaHeader {
  std::string type, data_file;
  std::vector<std::uint64_t> size;
  std::vector<double> spacing, offset, matrix;
  std::vector<std::string> listed;
  std::uint64_t axes = 0;
  std::uint64_t channels = 1;
  double header_size = 0;
  double slope = 1, intercept = 0;
  double millimetres = 1;    ///< in a unit of its distances
  std::string unknown_unit;  ///< its name, if it is not one of length that is known
  bool big_endian = false;
  bool compressed = false;
  bool binary = true;
};

bool parse_flag(const std::string& value) {
  return !value.empty() && (value[0] == 'T' || value[0] == 't' || value[0] == '1');
}

MetaHeader read_meta_header(VolumeInput& in, const Limits& limits) {
  MetaHeader h;
  std::string line;
  for (;;) {
    require(in.line(line), ErrorKind::kBadStream, in.name() + ": the header ends without ElementDataFile");
    require(in.position() <= kMaxHeadBytes, ErrorKind::kBadStream, in.name() + ": a header without end");
    const std::size_t equals = line.find_first_of("=:");  // MetaIO takes either
    if (equals == std::string::npos) continue;            // empty, or a remark
    const std::string key(trim(std::string_view(line).substr(0, equals)));
    const std::string value(trim(std::string_view(line).substr(equals + 1)));
    const auto bad_value = [&]() {
      fail(ErrorKind::kBadStream, in.name() + ": '" + key + " = " + value.substr(0, 60) + "' makes no sense");
    };
    const auto numbers = [&] {
      auto n = parse_numbers(value);
      if (!n) bad_value();
      return *std::move(n);
    };
    const auto whole = [&] {
      const auto n = parse_whole(value);
      if (!n) bad_value();
      return *n;
    };
    if (key == "NDims") {
      h.axes = whole();
      if (h.axes < 1 || h.axes > 10) bad_value();
    } else if (key == "DimSize") {
      h.size.clear();
      for (const double v : numbers()) {
        // Trackers write files of their positions alone.
        require(v != 0, ErrorKind::kUnsupported,
                in.name() + ": holds no pixels ('DimSize = " + value.substr(0, 60) + "')");
        if (!(v >= 1 && v <= 1e15 && v == std::floor(v))) bad_value();
        h.size.push_back(static_cast<std::uint64_t>(v));
      }
    } else if (key == "ElementType") {
      h.type = value;
    } else if (key == "ElementNumberOfChannels") {
      h.channels = whole();
      if (h.channels < 1 || h.channels > 1000) bad_value();
    } else if (key == "ElementByteOrderMSB" || key == "BinaryDataByteOrderMSB") {
      h.big_endian = parse_flag(value);
    } else if (key == "BinaryData") {
      h.binary = parse_flag(value);
    } else if (key == "CompressedData") {
      h.compressed = parse_flag(value);
    } else if (key == "ElementSpacing" || (key == "ElementSize" && h.spacing.empty())) {
      h.spacing = numbers();
    } else if (key == "Offset" || key == "Position" || key == "Origin") {
      h.offset = numbers();
    } else if (key == "TransformMatrix" || key == "Rotation" || key == "Orientation") {
      h.matrix = numbers();
    } else if (key == "ElementToIntensityFunctionSlope" || key == "ElementToIntensityFunctionOffset") {
      const std::vector<double> n = numbers();
      if (n.size() != 1 || !std::isfinite(n[0])) bad_value();
      (key.ends_with("Slope") ? h.slope : h.intercept) = n[0];
    } else if (key == "DistanceUnits") {
      const std::optional<double> millimetres = millimetres_in(value);
      h.millimetres = millimetres.value_or(1);
      if (!millimetres && value != "?") h.unknown_unit = value;  // "?": what the library writes for none
    } else if (key == "HeaderSize") {
      const std::vector<double> n = numbers();
      if (n.size() != 1 || !(n[0] >= -1 && n[0] <= 1e15) || n[0] != std::floor(n[0])) bad_value();
      h.header_size = n[0];
    } else if (key == "ElementDataFile") {
      h.data_file = value;
      if (value.rfind("LIST", 0) == 0) h.listed = listed_files(in, limits);
      return h;
    }
  }
}

std::vector<std::string> data_files(const MetaHeader& h, const VolumeInfo& info, const std::string& name) {
  if (!h.listed.empty()) return h.listed;
  if (h.data_file.find('%') == std::string::npos) return {h.data_file};
  // "name%03d.raw first last step": a slice each
  const std::size_t space = std::min(h.data_file.find(' '), h.data_file.size());
  const auto numbers = parse_numbers(std::string_view(h.data_file).substr(space)).value_or(std::vector<double>{});
  const double first = numbers.empty() ? 1 : numbers[0];
  const double step = numbers.size() > 2 ? numbers[2] : 1;
  const double last = numbers.size() > 1 ? numbers[1] : first + step * (static_cast<double>(info.all_slices()) - 1);
  require(step > 0 && first == std::floor(first) && step == std::floor(step) && std::fabs(first) < 1e9 && step < 1e9 &&
              last >= first && (last - first) / step < 100000,
          ErrorKind::kBadStream, name + ": '" + h.data_file + "' does not count up to 100000 files");
  std::vector<std::string> names;
  for (double i = 0; i <= (last - first) / step; ++i)
    names.push_back(numbered_name(h.data_file.substr(0, space), static_cast<std::int64_t>(first + i * step)));
  return names;
}

/// Row i of TransformMatrix is the direction of axis i; coordinates grow to the left and to the back. A picture lies in
/// a plane of z = 0. The header may leave the matrix or the offset out.
void set_affine(VolumeInfo& info, const MetaHeader& h) {
  const std::size_t n = h.size.size();
  const bool has_matrix = h.matrix.size() == n * n;
  const bool has_offset = h.offset.size() == n;
  if (!has_matrix && !has_offset) return;
  const double sign[3] = {-1, -1, 1};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < 3; ++i) {
      const double v = has_matrix && i < n && row < n ? h.matrix[i * n + row] : i == row ? 1 : 0;
      info.affine[4 * row + i] = sign[row] * v * info.spacing[i];
    }
    info.affine[4 * row + 3] = has_offset && row < n ? sign[row] * h.offset[row] : 0;
  }
  info.has_affine = true;
  drop_bad_affine(info);
}

}  // namespace

bool is_metaimage(std::string_view begin) {
  // ObjectType or NDims, behind a few lines of text: comments, remarks, other fields.
  constexpr int kMostLines = 16;
  const auto is_text = [](char c) { return static_cast<unsigned char>(c) >= ' ' || c == '\t' || c == '\r'; };
  for (int lines = 0; lines < kMostLines && !begin.empty(); ++lines) {
    const std::size_t end = std::min(begin.find('\n'), begin.size());
    const std::string_view line = trim(begin.substr(0, end));
    for (const std::string_view key : {"ObjectType", "NDims"})
      if (line.size() > key.size() && line.substr(0, key.size()) == key)
        return trim(line.substr(key.size())).substr(0, 1) == "=";
    if (!std::all_of(line.begin(), line.end(), is_text)) return false;
    begin.remove_prefix(std::min(end + 1, begin.size()));
  }
  return false;
}

VolumeLayout metaimage_layout(const FileToRead& file) {
  bool gzip = false;
  const auto in = open_input(file.open, file.path, gzip, file.limits);
  const MetaHeader h = read_meta_header(*in, file.limits);
  VolumeLayout layout;
  VolumeInfo& info = layout.info;
  info.format = "metaimage";
  require(h.binary, ErrorKind::kUnsupported, file.path + ": voxels written as text (BinaryData = False) are not read");
  require(h.axes == h.size.size(), ErrorKind::kBadStream,
          file.path + ": DimSize has " + count_of(h.size.size(), "number") + " for NDims = " + std::to_string(h.axes));
  std::string type = h.type;
  if (type.size() > 6 && type.ends_with("_ARRAY")) type.resize(type.size() - 6);
  const auto known =
      std::find_if(std::begin(kMetaTypes), std::end(kMetaTypes), [&](const MetaType& t) { return type == t.name; });
  require(known != std::end(kMetaTypes), ErrorKind::kUnsupported,
          file.path + ": ElementType '" + h.type + "' cannot be coded");
  info.voxel.type = known->type;
  info.voxel.channels = static_cast<int>(h.channels);
  info.voxel.big_endian = h.big_endian && bytes_of(info.voxel.type) > 1;
  if (h.slope != 0) {
    info.slope = h.slope;
    info.intercept = h.intercept;
  }
  set_extents(info, h.size, file.path);
  for (std::size_t i = 0; i < std::min<std::size_t>(4, h.spacing.size()); ++i)
    if (std::fabs(h.spacing[i]) > 0 && std::isfinite(h.spacing[i])) info.spacing[i] = std::fabs(h.spacing[i]);
  set_affine(info, h);
  scale_distances(info, h.millimetres);
  info.fourth_unit = FourthUnit::kUnknown;
  if (!h.unknown_unit.empty()) set_unknown_unit(layout, "DistanceUnits", h.unknown_unit);
  remark_on_further_axes(layout, h.size);
  if (h.channels > kMaxChannels) put_values_first(info, layout.remarks);

  const std::uint64_t bytes = info.bytes();
  const auto add = [&](const std::string& name, const Opener& open, std::uint64_t start, std::uint64_t share) {
    FileLayout f;
    f.name = base_name(name);
    f.open = open;
    f.head_bytes = start;
    f.voxel_bytes = share;
    f.packing = h.compressed ? Packing::kZlib : Packing::kNone;
    if (start == 0 && h.header_size > 0) f.head_bytes = static_cast<std::uint64_t>(h.header_size);
    if (start == 0 && h.header_size < 0) {
      const auto size = open()->size();
      require(!h.compressed && size.has_value() && *size >= share, ErrorKind::kBadStream,
              name + ": is too short for its voxels, or its length is not known");
      f.head_bytes = *size - share;
    }
    require(f.head_bytes <= kMaxHeadBytes, ErrorKind::kBadStream,
            name + ": the voxels begin at byte " + std::to_string(f.head_bytes) + "; the limit is " +
                std::to_string(kMaxHeadBytes));
    layout.files.push_back(std::move(f));
  };
  if (lower(h.data_file) == "local") {
    add(file.name, file.open, in->position(), bytes);
    return layout;
  }
  add_data_files(layout, file, data_files(h, info, file.path), bytes, add);
  return layout;
}

Envelope make_metaimage(const VolumeInfo& info) {
  const auto type = std::find_if(std::begin(kMetaTypes), std::end(kMetaTypes),
                                 [&](const MetaType& t) { return t.type == info.voxel.type; });
  const bool fourth = info.volumes > 1;
  const std::size_t n = fourth ? 4 : 3;
  std::string text =
      "ObjectType = Image\nNDims = " + std::to_string(n) + "\nBinaryData = True\nBinaryDataByteOrderMSB = ";
  text +=
      std::string(info.voxel.big_endian ? "True" : "False") + "\nCompressedData = " + (have_zlib() ? "True" : "False");
  if (have_zlib()) text += "\nCompressedDataSize = 0";
  if (info.has_affine) {
    const double sign[3] = {-1, -1, 1};
    text += "\nTransformMatrix =";
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t row = 0; row < n; ++row) {
        const double v = i < 3 && row < 3 ? sign[row] * info.affine[4 * row + i] / info.spacing[i] : (i == row ? 1 : 0);
        text += std::string(" ") + number_text(v + 0.0);
      }
    text += "\nOffset =";
    for (std::size_t row = 0; row < n; ++row)
      text += std::string(" ") + number_text((row < 3 ? sign[row] * info.affine[4 * row + 3] : 0) + 0.0);
  }
  text += "\nElementSpacing =";
  for (std::size_t i = 0; i < n; ++i) text += std::string(" ") + number_text(info.spacing[i]);
  text += "\nDimSize = " + std::to_string(info.width) + std::string(" ") + std::to_string(info.height) + " " +
          std::to_string(info.slices) + (fourth ? std::string(" ") + std::to_string(info.volumes) : "");
  if (info.slope != 1 || info.intercept != 0)
    text += "\nElementToIntensityFunctionSlope = " + number_text(info.slope) +
            "\nElementToIntensityFunctionOffset = " + number_text(info.intercept);
  if (info.voxel.channels > 1) text += "\nElementNumberOfChannels = " + std::to_string(info.voxel.channels);
  text += std::string("\nElementType = ") + type->name + "\nElementDataFile = LOCAL\n";
  return text_envelope("metaimage", text, have_zlib() ? Packing::kZlib : Packing::kNone, info.bytes());
}

}  // namespace trivelet::io
