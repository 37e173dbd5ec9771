// Volumes in files: NIfTI, NRRD, MetaImage, DICOM and raw scalars.
//
//   auto in = open_volume("brain.nii.gz", {});
//   while (…) in->read(buffer, bytes);           // scalars as they are stored, slice by slice
//   Envelope rest = in->envelope();              // all other bytes of the file or files
//   …
//   VolumeWriter out(rest, "again.nii.gz", {});  // the same files again, byte for byte (before compression by gzip)
//   out.write(buffer, bytes); out.finish();
//
// A volume file is a head (header, extensions), the scalars, and a tail. Head and tail are kept unchanged and never
// interpreted when they are written again. Readers work on streams: a .gz is never unpacked as a whole. Sizes are
// checked against limits before memory is taken. Errors as in io.h. Objects are not thread safe; use one per thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/video/video_io.h"
#include "trivelet/limits.h"
#include "trivelet/volume.h"

namespace trivelet::io {

/// What the header says.
/// What the fourth number of VolumeInfo::spacing is in, as NIfTI numbers it.
enum class FourthUnit : std::uint8_t { kUnknown = 0, kSeconds = 8, kHertz = 32, kPpm = 40, kRadians = 48 };

struct VolumeInfo : VolumeDescription {
  std::string format;  ///< "nifti-1", "nifti-2", "nrrd", "metaimage", "dicom", "raw"
  double slope = 1;    ///< meaning of a stored value: slope * stored + intercept
  double intercept = 0;
  double largest_slope = 0;       ///< without its sign, if slices have slopes of their own; 0 = as `slope`
  bool has_other_scales = false;  ///< slices have slopes and intercepts of their own, which are not `slope`
  bool has_other_place = false;   ///< the header gives a place in coordinates that are not known to be the patient's
  bool has_affine = false;
  /// Rows of the matrix from (x, y, z, 1) to millimetres to the right, front and top of the patient.
  std::array<double, 12> affine{};
  /// Between voxels along x, y, z, t, in millimetres and seconds; 1 if unknown, the number in the header if no unit is
  /// named.
  std::array<double, 4> spacing = {1, 1, 1, 1};
  bool knows_distance_unit = true;  ///< false: `spacing` of x, y, z and `affine` are the header's numbers, of no unit
  FourthUnit fourth_unit = FourthUnit::kSeconds;
};

/// How the scalars lie in a file.
enum class Packing : std::uint8_t { kNone = 0, kGzip = 1, kZlib = 2 };

/// How the samples in a DICOM file differ from the values in the stream: flags (dicom_samples.h).
inline constexpr std::uint8_t kOrderPlanes = 1;      ///< colours in planes
inline constexpr std::uint8_t kOrderHalfChroma = 2;  ///< Y Y Cb Cr for two pixels
inline constexpr std::uint8_t kOrderSwapped = 4;     ///< 8-bit samples in big-endian words
inline constexpr std::uint8_t kOrderValues = 8;      ///< values are in Bits Stored; the other bits are 0, or `unused`
inline constexpr std::uint8_t kOrderSigns = 16;      ///< the same, but those above are copies of the sign
inline constexpr std::uint8_t kOrderReversed = 32;   ///< bytes of samples in the other order than in the stream

/// One file: head, scalars, tail.
struct VolumeFile {
  std::string name;                  ///< as it was found, without its folder
  bool gzip = false;                 ///< the whole file was compressed by gzip
  Packing packing = Packing::kNone;  ///< of the scalars only
  std::uint64_t voxel_bytes = 0;     ///< unpacked, 0 = a header of its own
  std::vector<std::byte> head;
  std::vector<std::byte> tail;
  std::uint8_t order = 0;         ///< flags kOrder...
  std::vector<std::byte> unused;  ///< bits of samples that are no part of their values (codec/FORMAT.md, volh)
};

/// Everything of a volume but its scalars.
struct Envelope {
  std::string format;  ///< VolumeInfo::format
  std::vector<VolumeFile> files;
};

/// One file: a header of text, then the voxels.
Envelope text_envelope(const std::string& format, const std::string& head, Packing packing, std::uint64_t voxel_bytes);

/// Compressed by zlib when the build has it. `parse_envelope` throws BadStream or Unsupported.
std::vector<std::uint8_t> serialise(const Envelope& envelope);
Envelope parse_envelope(const std::uint8_t* bytes, std::size_t size);

/// Header files, folders, and how many bytes of them are taken into memory.
inline constexpr std::size_t kMaxHeadBytes = std::size_t{256} << 20;
/// A limit for the bytes after the voxels of all files of a volume, too: packed, or in one file that is named
/// repeatedly, a few bytes of input can give thousands of times as many.
inline constexpr std::size_t kMaxTailBytes = std::size_t{64} << 20;

/// Names the files without a Series Instance UID, which are one series.
inline constexpr char kSeriesWithoutUid[] = "none";

struct VolumeOptions {
  std::string format{};               ///< "" = by content and name; "nifti", "nrrd", "metaimage", "dicom", "raw"
  std::vector<std::uint64_t> size{};  ///< raw: 3 or more numbers, x first
  std::string type{};                 ///< raw: "u8", "s16", "u16be", "f32", …; little-endian unless "be" follows
  /// DICOM: the series to read if there are several: its UID, its number, or kSeriesWithoutUid.
  std::string series{};
  /// DICOM: leave out files of the folder that do not belong to the volume of the others: another orientation, spacing,
  /// size or type, and duplicates. Each is named in the remarks. If not set, they follow the others.
  bool only_matching = false;
  /// Headers may name data files in other folders than their own, and folders of DICOM files may hold links to other
  /// folders. If not set, the author of an input cannot have other files of the user coded into the stream.
  bool allow_outside = false;
  /// Values of a voxel become the first axis, as of put_values_first(); not of DICOM.
  bool values_as_axis = false;
  Limits limits{};  ///< all of them; throws Unsupported
};

/// Whether more than half of the files of a folder are DICOM files; hidden ones and a DICOMDIR do not count.
bool is_dicom_folder(const std::string& folder);
/// A series in a folder of DICOM files.
struct SeriesInFolder {
  std::string uid, number, description;
  std::vector<std::string> files;  ///< their names
  std::uint64_t slices = 0;
};
/// The series in a folder, in the order of their numbers: those of DICOM files with pixels. Errors as of open_volume().
std::vector<SeriesInFolder> series_in_folder(const std::string& folder, const VolumeOptions& options);

/// Makes the values of a voxel, of which only a few bits can be coded together, the first axis: a volume of N values a
/// voxel and W x H x D voxels has N x W x H voxels and D volumes. It has no place in space then, which a remark says.
void put_values_first(VolumeInfo& info, std::vector<std::string>& remarks);

class VolumeReader {
 public:
  virtual ~VolumeReader() = default;
  virtual const VolumeInfo& info() const = 0;
  /// The next stored scalars, at most to the end of the volume. Throws BadStream if the file ends before.
  virtual void read(std::byte* data, std::size_t bytes) = 0;
  /// Back to the first scalar.
  virtual void rewind() = 0;
  /// True if scalars may be read by read_at() instead, by several threads at once: for one file that is not packed.
  virtual bool reads_anywhere() const = 0;
  /// Scalars from a byte of the volume.
  virtual void read_at(std::uint64_t position, std::byte* data, std::size_t bytes) const = 0;
  /// After the last scalar was read; at any time if reads_anywhere().
  virtual Envelope envelope() = 0;
  /// Warnings for the user: gaps between slices, tilt, bytes that were left out.
  virtual const std::vector<std::string>& remarks() const = 0;
};

/// True for files and folders that open_volume() reads without a given format: by content for files with a signature,
/// by extension for MetaImage and header files. "-" is examined, without consuming it, only if it is a file.
bool is_volume(const std::string& path);
/// Opens a file, a folder of DICOM files, or "-" (which is kept: up to 32 MiB in memory, more in a temporary file).
std::unique_ptr<VolumeReader> open_volume(const std::string& path, const VolumeOptions& options);
/// A volume in memory, for tests: the content of one file.
std::unique_ptr<VolumeReader> open_volume(const std::byte* data, std::size_t size, const std::string& format,
                                          const Limits& limits = {});

/// What the files of an envelope say about the volume, and VolumeReader::remarks() of it if `remarks` is not null.
VolumeInfo volume_info(const Envelope& envelope, std::vector<std::string>* remarks = nullptr);
/// The same of a stream: sizes are those of what is coded, and values that are its first axis are so here. The header
/// adds what pictures do not have.
VolumeInfo volume_info(const Envelope& envelope, const VolumeDescription& coded,
                       std::vector<std::string>* remarks = nullptr);

/// "u8", "int16", "s16be", "float32", …
VoxelFormat parse_voxel_format(const std::string& name);
/// Whether the build reads and writes .gz.
bool have_zlib();

/// Writes the files of an envelope with scalars in between. One file: `path`, packed by gzip if it ends in .gz. A
/// header and its data: `path` is the header's name, or for NIfTI that of the .img file; NIfTI's data have the same
/// name, other data the name in the header, beside the header. DICOM: `path` is a folder, created if necessary; of one
/// file it is the file's name, unless it is a folder or ends in '/'.
class VolumeWriter {
 public:
  VolumeWriter(Envelope envelope, const std::string& path, bool overwrite);
  ~VolumeWriter();
  VolumeWriter(const VolumeWriter&) = delete;
  VolumeWriter& operator=(const VolumeWriter&) = delete;
  void write(const std::byte* data, std::size_t bytes);
  /// Throws BadArgument when scalars are missing. Gives the files their names.
  void finish();
  /// Bytes of all files before compression by gzip.
  std::uint64_t bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// An envelope with a new header for the volume, for `extension` "nii", "nii.gz", "nrrd", "mha" or "raw". Unsupported
/// when the format has no such type.
Envelope make_envelope(const VolumeInfo& info, const std::string& extension);
/// The envelope of a volume whose voxels are no longer the original ones. DICOM files get the attributes and new
/// instance UIDs that the standard requires. Headers of other formats have no place for that and stay.
Envelope mark_lossy(Envelope envelope, double ratio);
/// The texts in the header of the first file, a line each, for users. They may name the patient.
std::vector<std::string> header_texts(const Envelope& envelope);
/// The part after the first dot that matters: "nii.gz", "mha", … in lower case.
std::string volume_extension(const std::string& path);
/// Whether that is the extension of a volume file.
bool has_volume_name(const std::string& path);
/// The format of a volume of which the extension tells that it is none that is read: "FreeSurfer's MGH"; "" for others.
std::string unread_volume(const std::string& path);
/// The formats that make_envelope() can write.
bool can_make(const std::string& extension);

}  // namespace trivelet::io
