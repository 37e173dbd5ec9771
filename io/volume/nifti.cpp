// NIfTI-1 and NIfTI-2: a binary header of 348 or 540 bytes in either byte order, extensions, voxels; in one file (.nii)
// or two (.hdr, .img). Also reads pairs of Analyze 7.5, the predecessor of NIfTI-1. Source: nifti1.h and nifti2.h of
// the NIfTI Data Format Working Group.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codec/base/limits.h"
#include "io/volume/volume_input.h"

namespace trivelet::io {

namespace {

constexpr std::size_t kHeader1 = 348;
constexpr std::size_t kHeader2 = kLongestNiftiHeader;

/// Offsets of the fields in the two headers.
struct FieldPlaces {
  std::size_t dim, datatype, pixdim, vox_offset, slope, intercept, qform, sform, quatern, qoffset, srow, units;
};
constexpr FieldPlaces kPlaces1 = {40, 70, 76, 108, 112, 116, 252, 254, 256, 268, 280, 123};
constexpr FieldPlaces kPlaces2 = {16, 12, 104, 168, 176, 184, 344, 348, 352, 376, 400, 500};

class NiftiHeader {
 public:
  NiftiHeader(const std::byte* bytes, bool second, bool big_endian)
      : bytes_(bytes), second_(second), swap_(big_endian != (std::endian::native == std::endian::big)) {}
  const FieldPlaces& at() const { return second_ ? kPlaces2 : kPlaces1; }
  std::int64_t short_at(std::size_t offset) const { return static_cast<std::int16_t>(load<std::uint16_t>(offset)); }
  std::int64_t dim(int i) const {
    const auto n = static_cast<std::size_t>(i);
    return second_ ? static_cast<std::int64_t>(load<std::uint64_t>(at().dim + 8 * n)) : short_at(at().dim + 2 * n);
  }
  /// The codes of qform and sform: 16 bits, in NIfTI-2 32.
  std::int64_t code(std::size_t offset) const {
    return second_ ? static_cast<std::int32_t>(load<std::uint32_t>(offset)) : short_at(offset);
  }
  /// Number i of an array of floats, in NIfTI-2 doubles.
  double real(std::size_t offset, std::size_t i) const {
    return second_ ? std::bit_cast<double>(load<std::uint64_t>(offset + 8 * i))
                   : static_cast<double>(std::bit_cast<float>(load<std::uint32_t>(offset + 4 * i)));
  }
  /// xyzt_units: of distances in the lowest three bits, of times in the three above.
  int units() const {
    return second_ ? static_cast<int>(load<std::uint32_t>(at().units)) : std::to_integer<int>(bytes_[at().units]);
  }
  double vox_offset() const {
    return second_ ? static_cast<double>(static_cast<std::int64_t>(load<std::uint64_t>(at().vox_offset)))
                   : real(at().vox_offset, 0);
  }

 private:
  template <class T>
  T load(std::size_t offset) const {
    T v = 0;
    for (std::size_t i = 0; i < sizeof v; ++i) {
      const std::size_t from = swap_ ? sizeof v - 1 - i : i;
      v = static_cast<T>(v | static_cast<T>(static_cast<T>(bytes_[offset + from]) << (8 * i)));
    }
    return v;
  }
  const std::byte* bytes_;
  bool second_;
  bool swap_;
};

struct Kind {
  bool known = false;
  bool second = false;
  bool big_endian = false;
  bool single = false;  ///< header and voxels in one file
  bool analyze = false;
};

Kind recognise(std::string_view b) {
  Kind k;
  if (b.size() < kHeader1) return k;
  const auto u32 = [&b](bool big) {
    std::uint32_t v = 0;
    for (int i = 0; i < 4; ++i)
      v |= static_cast<std::uint32_t>(static_cast<unsigned char>(b[static_cast<std::size_t>(i)]))
           << (8 * (big ? 3 - i : i));
    return v;
  };
  for (const bool big : {false, true}) {
    if (u32(big) == kHeader1) {
      k.big_endian = big;
      const std::string_view magic = b.substr(344, 4);
      k.single = magic == std::string_view("n+1\0", 4);
      k.known = k.single || magic == std::string_view("ni1\0", 4);
      // Analyze has no magic; a number of axes and a size that make sense must do.
      if (!k.known && magic == std::string_view("\0\0\0\0", 4)) {
        const NiftiHeader h(reinterpret_cast<const std::byte*>(b.data()), false, big);
        k.known = k.analyze = h.dim(0) >= 1 && h.dim(0) <= 7 && h.dim(1) >= 1 && h.short_at(72) > 0;
      }
    } else if (u32(big) == kHeader2 && b.size() >= kHeader2) {
      k.big_endian = big;
      k.second = true;
      const std::string_view magic = b.substr(4, 8);
      k.single = magic == std::string_view("n+2\0\r\n\032\n", 8);
      k.known = k.single || magic == std::string_view("ni2\0\r\n\032\n", 8);
    }
    if (k.known) return k;
  }
  return k;
}

VoxelFormat voxel_format(std::int64_t datatype, const std::string& name) {
  switch (datatype) {
    case 2: return {VoxelType::kU8, false, 1};
    case 4: return {VoxelType::kI16, false, 1};
    case 8: return {VoxelType::kI32, false, 1};
    case 16: return {VoxelType::kF32, false, 1};
    case 32: return {VoxelType::kF32, false, 2};
    case 64: return {VoxelType::kF64, false, 1};
    case 128: return {VoxelType::kU8, false, 3};
    case 256: return {VoxelType::kI8, false, 1};
    case 512: return {VoxelType::kU16, false, 1};
    case 768: return {VoxelType::kU32, false, 1};
    case 1024: return {VoxelType::kI64, false, 1};
    case 1280: return {VoxelType::kU64, false, 1};
    case 1792: return {VoxelType::kF64, false, 2};
    case 2304: return {VoxelType::kU8, false, 4};
    default:
      fail(ErrorKind::kUnsupported,
           name + ": NIfTI data type " + std::to_string(datatype) + " (bits, 128-bit floats) cannot be coded");
  }
}

void set_spacing(VolumeInfo& info, const NiftiHeader& h) {
  for (std::size_t i = 0; i < 4; ++i) {
    const double d = std::fabs(h.real(h.at().pixdim, i + 1));
    info.spacing[i] = d > 0 && std::isfinite(d) ? d : 1;
  }
}

/// Analyze has neither codes nor a matrix nor units: behind byte 251 are an orientation and the name of the origin,
/// where SPM writes a voxel, counted from 1. What the axes mean is up to the reader (SPM flips the first one).
void remark_on_origin(VolumeLayout& layout, const NiftiHeader& h) {
  constexpr std::size_t kOrigin = 253;
  std::string voxel;
  bool any = false;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t v = h.short_at(kOrigin + 2 * static_cast<std::size_t>(i));
    if (v <= -h.dim(i + 1) || v >= 2 * h.dim(i + 1)) return;  // a name, no voxel
    any = any || v != 0;
    voxel += (i > 0 ? ", " : "") + std::to_string(v);
  }
  if (any)
    layout.remarks.push_back("the origin that SPM keeps in Analyze (voxel " + voxel +
                             ") is not read: headers of other formats get no position");
}

void set_affine(VolumeInfo& info, const NiftiHeader& h) {
  const FieldPlaces& at = h.at();
  if (h.code(at.sform) > 0) {
    for (std::size_t i = 0; i < 12; ++i) info.affine[i] = h.real(at.srow, i);
    info.has_affine = true;
  } else if (h.code(at.qform) > 0) {
    double b = h.real(at.quatern, 0);
    double c = h.real(at.quatern, 1);
    double d = h.real(at.quatern, 2);
    // Of half a turn only the rounding of b, c and d is left for a, and its root would be a turn of its own: the
    // library of the format (nifti1_io, nifti_quatern_to_mat44) takes none below this.
    constexpr double kHalfTurn = 1e-7;
    const double squared = 1 - b * b - c * c - d * d;
    const double a = squared < kHalfTurn ? 0 : std::sqrt(squared);
    if (const double length = std::sqrt(b * b + c * c + d * d); squared < kHalfTurn && length > 0) {
      b /= length;
      c /= length;
      d /= length;
    }
    const double flip = h.real(at.pixdim, 0) < 0 ? -1 : 1;
    const double rotation[9] = {
        a * a + b * b - c * c - d * d, 2 * (b * c - a * d),           2 * (b * d + a * c),
        2 * (b * c + a * d),           a * a + c * c - b * b - d * d, 2 * (c * d - a * b),
        2 * (b * d - a * c),           2 * (c * d + a * b),           a * a + d * d - b * b - c * c};
    for (std::size_t row = 0; row < 3; ++row) {
      info.affine[4 * row] = rotation[3 * row] * info.spacing[0];
      info.affine[4 * row + 1] = rotation[3 * row + 1] * info.spacing[1];
      info.affine[4 * row + 2] = rotation[3 * row + 2] * info.spacing[2] * flip;
      info.affine[4 * row + 3] = h.real(at.qoffset, row);
    }
    info.has_affine = true;
  }
  drop_bad_affine(info);
  const int distances = h.units() & 7, times = h.units() & 0x38;
  scale_distances(info, distances == 1 ? 1000 : distances == 3 ? 0.001 : 1);
  info.knows_distance_unit = distances >= 1 && distances <= 3;
  info.spacing[3] *= times == 16 ? 0.001 : times == 24 ? 0.000001 : 1;
  const bool is_time = times == 8 || times == 16 || times == 24, is_other = times == 32 || times == 40 || times == 48;
  info.fourth_unit = is_time    ? FourthUnit::kSeconds
                     : is_other ? FourthUnit{static_cast<std::uint8_t>(times)}
                                : FourthUnit::kUnknown;
}

void set_place(VolumeLayout& layout, const NiftiHeader& h, bool analyze) {
  set_spacing(layout.info, h);
  if (!analyze) return set_affine(layout.info, h);
  layout.info.knows_distance_unit = false;
  layout.info.fourth_unit = FourthUnit::kUnknown;
  remark_on_origin(layout, h);
}

/// Names the .img of a .hdr may have.
std::vector<std::string> image_names(const std::string& header) {
  const bool gz = lower(header).ends_with(".gz");
  std::string stem = gz ? header.substr(0, header.size() - 3) : header;
  std::string extension = ".img";
  if (lower(stem).ends_with(".hdr")) {
    if (stem.ends_with(".HDR")) extension = ".IMG";
    stem.resize(stem.size() - 4);
  }
  return {stem + extension + (gz ? ".gz" : ""), stem + extension + (gz ? "" : ".gz")};
}

}  // namespace

bool is_nifti(std::string_view begin) { return recognise(begin).known; }

bool is_nifti_pair(std::string_view begin) {
  const Kind kind = recognise(begin);
  return kind.known && !kind.single;
}

std::vector<std::string> pair_header_names(const std::string& image) {
  const bool gz = lower(image).ends_with(".gz");
  const std::string stem = gz ? image.substr(0, image.size() - 3) : image;
  if (!lower(stem).ends_with(".img")) return {};
  const std::string header = stem.substr(0, stem.size() - 4) + (stem.ends_with(".IMG") ? ".HDR" : ".hdr");
  return {header + (gz ? ".gz" : ""), header + (gz ? "" : ".gz")};
}

VolumeLayout nifti_layout(const FileToRead& file) {
  bool gzip = false;
  const auto input = open_input(file.open, file.path, gzip, file.limits);
  const std::string_view begin = input->ahead(kHeader2);
  const Kind kind = recognise(begin);
  require(kind.known, ErrorKind::kBadStream, file.path + ": is no NIfTI file");
  const std::size_t header_bytes = kind.second ? kHeader2 : kHeader1;
  const NiftiHeader h(reinterpret_cast<const std::byte*>(begin.data()), kind.second, kind.big_endian);

  VolumeLayout layout;
  VolumeInfo& info = layout.info;
  info.format = kind.second ? "nifti-2" : "nifti-1";
  const std::int64_t axes = h.dim(0);
  require(axes >= 1 && axes <= 7, ErrorKind::kBadStream,
          file.path + ": dim[0] = " + std::to_string(axes) + "; must be 1..7");
  std::vector<std::uint64_t> size;
  for (int i = 1; i <= axes; ++i) {
    require(h.dim(i) >= 1, ErrorKind::kBadStream,
            file.path + ": dim[" + std::to_string(i) + "] = " + std::to_string(h.dim(i)) +
                "; a volume needs at least one voxel each way" +
                (h.dim(i) < 0 && !kind.second ? " (NIfTI-1 holds at most 32767, larger ones need NIfTI-2)" : ""));
    size.push_back(static_cast<std::uint64_t>(h.dim(i)));
  }
  set_extents(info, size, file.path);
  info.voxel = voxel_format(h.short_at(h.at().datatype), file.path);
  info.voxel.big_endian = kind.big_endian;
  if (const std::int64_t bits = h.short_at(h.at().datatype + 2);
      bits != 0 && bits != static_cast<std::int64_t>(8 * info.voxel.bytes()))
    layout.remarks.push_back("bitpix is " + std::to_string(bits) + ", but its data type has " +
                             count_of(8 * info.voxel.bytes(), "bit") + ", which are taken");
  const double slope = h.real(h.at().slope, 0);
  if (slope != 0 && std::isfinite(slope) && std::isfinite(h.real(h.at().intercept, 0))) {
    info.slope = slope;
    info.intercept = h.real(h.at().intercept, 0);
  }
  set_place(layout, h, kind.analyze);
  remark_on_further_axes(layout, size);

  double offset = h.vox_offset();
  if (kind.single && offset == 0) offset = static_cast<double>(header_bytes + 4);
  require(offset >= (kind.single ? static_cast<double>(header_bytes) : 0.0) &&
              offset <= static_cast<double>(kMaxHeadBytes) && offset == std::floor(offset),
          ErrorKind::kBadStream,
          file.path + ": the voxels begin at byte " + number_text(offset) + " (vox_offset), which cannot be");
  FileLayout voxels;
  voxels.head_bytes = static_cast<std::uint64_t>(offset);
  voxels.voxel_bytes = info.bytes();
  if (kind.single) {
    voxels.name = file.name;
    voxels.open = file.open;
    layout.files.push_back(std::move(voxels));
    return layout;
  }
  FileLayout header;
  header.name = file.name;
  header.open = file.open;
  layout.files.push_back(std::move(header));
  for (const std::string& name : image_names(file.name)) {
    voxels.open = file.neighbour(name);
    voxels.name = name;
    if (voxels.open) break;
  }
  require(static_cast<bool>(voxels.open), ErrorKind::kIo,
          file.path + ": its voxels should be in '" + image_names(file.name).front() + "' beside it, which is missing");
  layout.files.push_back(std::move(voxels));
  return layout;
}

Envelope make_nifti(const VolumeInfo& info) {
  require(!is_real(info.voxel.type) || info.voxel.channels <= 2, ErrorKind::kUnsupported,
          "NIfTI has no type for " + std::to_string(info.voxel.channels) + " floats per voxel");
  std::int16_t datatype = 0;
  std::int16_t bits = static_cast<std::int16_t>(8 * info.voxel.bytes());
  for (const int code : {2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024, 1280, 1792, 2304}) {
    VoxelFormat f = voxel_format(code, {});
    f.big_endian = info.voxel.big_endian;
    if (f == info.voxel) datatype = static_cast<std::int16_t>(code);
  }
  require(datatype != 0, ErrorKind::kUnsupported,
          "NIfTI has no type for " + std::to_string(info.voxel.channels) + " x " +
              trivelet::to_string(info.voxel.type) + " per voxel");
  const std::uint64_t longest =
      std::max({static_cast<std::uint64_t>(std::max(info.width, info.height)), info.slices, info.volumes});
  const bool second = longest > 32767;
  const FieldPlaces& at = second ? kPlaces2 : kPlaces1;
  const std::size_t size = second ? kHeader2 : kHeader1;
  std::vector<std::byte> b(size + 4);
  const bool big = info.voxel.big_endian;
  const auto put = [&b, big](std::size_t offset, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      b[offset + (big ? bytes - 1 - i : i)] = static_cast<std::byte>(value >> (8 * i));
  };
  const auto put_real = [&](std::size_t offset, std::size_t i, double value) {
    if (second)
      put(offset + 8 * i, std::bit_cast<std::uint64_t>(value), 8);
    else
      put(offset + 4 * i, std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
  };
  put(0, size, 4);
  const std::uint64_t extent[5] = {info.volumes > 1 ? 4u : 3u, static_cast<std::uint64_t>(info.width),
                                   static_cast<std::uint64_t>(info.height), info.slices, info.volumes};
  for (std::size_t i = 0; i < 8; ++i) put(at.dim + (second ? 8 : 2) * i, i < 5 ? extent[i] : 1, second ? 8 : 2);
  put(at.datatype, static_cast<std::uint64_t>(datatype), 2);
  put(at.datatype + 2, static_cast<std::uint64_t>(bits), 2);
  put_real(at.pixdim, 0, 1);
  for (std::size_t i = 0; i < 4; ++i) put_real(at.pixdim, i + 1, info.spacing[i]);
  if (second)
    put(at.vox_offset, size + 4, 8);
  else
    put_real(at.vox_offset, 0, static_cast<double>(size + 4));
  put_real(at.slope, 0, info.slope);
  put_real(at.intercept, 0, info.intercept);
  if (info.has_affine) {
    put(at.sform, 1, second ? 4 : 2);
    for (std::size_t i = 0; i < 12; ++i) put_real(at.srow, i, info.affine[i]);
  }
  constexpr std::uint64_t kMillimetres = 2;
  put(at.units, (info.knows_distance_unit ? kMillimetres : 0) | static_cast<std::uint64_t>(info.fourth_unit),
      second ? 4 : 1);
  const std::string_view magic = second ? std::string_view("n+2\0\r\n\032\n", 8) : std::string_view("n+1\0", 4);
  std::memcpy(b.data() + (second ? 4 : 344), magic.data(), magic.size());
  Envelope e;
  e.format = second ? "nifti-2" : "nifti-1";
  e.files.emplace_back();
  e.files[0].head = std::move(b);
  e.files[0].voxel_bytes = info.bytes();
  return e;
}

}  // namespace trivelet::io
