// Input bytes of volume files, and the results of the readers of headers. Internal to io.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/volume/volume_io.h"

namespace trivelet::io {

/// A source of bytes in order.
class Feed {
 public:
  virtual ~Feed() = default;
  /// Up to `size` bytes, at least one, 0 at the end.
  virtual std::size_t read(std::byte* data, std::size_t size) = 0;
  virtual std::optional<std::uint64_t> size() const { return std::nullopt; }
  /// True if the two functions below work: for a file.
  virtual bool seekable() const { return false; }
  virtual void seek(std::uint64_t) {}
  /// Up to `size` bytes from a place, fewer only at the end; any thread may.
  virtual std::size_t read_at(std::uint64_t, std::byte*, std::size_t) const { return 0; }
};
using Opener = std::function<std::unique_ptr<Feed>()>;

Opener file_opener(const std::string& path);
Opener memory_opener(std::shared_ptr<const std::vector<std::byte>> bytes);

/// A feed with a buffer. `name` is for messages.
class VolumeInput {
 public:
  VolumeInput(std::unique_ptr<Feed> feed, std::string name);

  /// The buffered bytes, at least `wanted` unless the end is nearer.
  std::string_view ahead(std::size_t wanted);
  void consume(std::size_t bytes);
  std::size_t read(std::byte* data, std::size_t size);
  /// Throws BadStream with `what` if there are fewer.
  void read_exactly(std::byte* data, std::size_t size, const char* what);
  /// Appends exactly `size` bytes to `out`, growing it as they arrive.
  void append(std::vector<std::byte>& out, std::uint64_t size, const char* what);
  void skip(std::uint64_t size, const char* what);
  /// The same without reading, if the feed is seekable; missing bytes are not noticed.
  void jump(std::uint64_t size);
  /// A line with its line feed. False at the end of input.
  bool line(std::string& out);
  /// Everything up to the end. BadStream when it is more than `limit` bytes.
  std::vector<std::byte> rest(const char* what, std::size_t limit);
  std::uint64_t position() const { return position_; }
  const std::string& name() const { return name_; }
  Feed& feed() { return *feed_; }

 private:
  std::unique_ptr<Feed> feed_;
  std::string name_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t position_ = 0;
};

/// Opens a file; unpacks it when it is a .gz, and says so.
std::unique_ptr<VolumeInput> open_input(const Opener& opener, const std::string& name, bool& gzip,
                                        const Limits& limits);
/// Unpacks a gzip or zlib stream from the input's position, and leaves the input at its end. Large ones are unpacked in
/// a thread: the input then belongs to the feed until that has reached the end or is destroyed. `bytes`: the expected
/// size. Throws Unsupported without zlib, and for more bytes than Limits::unpacked.
std::unique_ptr<Feed> make_inflater(VolumeInput& input, bool zlib_format, std::uint64_t bytes, const Limits& limits);
/// The same of a bare deflate stream (RFC 1951), without a thread.
std::unique_ptr<Feed> make_deflate_reader(VolumeInput& input, const Limits& limits);
/// Packed and unpacked bytes together that are held in memory to be unpacked, or packed, at once.
inline constexpr std::uint64_t kWholeBytes = std::uint64_t{48} << 20;
bool have_libdeflate();

/// Packs into `sink`, which is called in another thread for large data. finish() waits for that thread and throws its
/// error; without it the output is incomplete.
class Packer {
 public:
  using Sink = std::function<void(const void*, std::size_t)>;
  virtual ~Packer() = default;
  virtual void write(const std::byte* data, std::size_t size) = 0;
  virtual void finish() = 0;
};
/// For this many bytes at most.
std::unique_ptr<Packer> make_packer(Packer::Sink sink, bool zlib_format, std::uint64_t bytes);

/// Packs by zlib, here: the same bytes in every build that uses the same one.
class Deflater final : public Packer {
 public:
  Deflater(Sink sink, bool zlib_format);
  ~Deflater() override;
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  void write(const std::byte* data, std::size_t size) override;
  void finish() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct DicomSamples;  // dicom_samples.h

/// One file of a volume: where it is and where its scalars are.
struct FileLayout {
  std::string name;
  Opener open;
  Packing packing = Packing::kNone;
  std::uint64_t head_bytes = 0;  ///< bytes of the file before the scalars; a file without scalars is all header
  std::uint64_t voxel_bytes = 0;
  bool converted = false;                         ///< opening it is the work of reading it
  std::shared_ptr<const DicomSamples> samples{};  ///< null: scalars lie in the file as they are
};

struct VolumeLayout {
  VolumeInfo info;
  std::vector<FileLayout> files;
  std::vector<std::string> remarks;
  Limits limits{};  ///< of the code that opened it
};

/// What is left of a header as names of data files, a line each. Unsupported for more than Limits::files of them,
/// BadStream for more than kMaxListBytes together.
inline constexpr std::size_t kMaxListBytes = std::size_t{16} << 20;
std::vector<std::string> listed_files(VolumeInput& in, const Limits& limits);

/// Finds another file beside the header. Empty for volumes in memory.
using Neighbour = std::function<Opener(const std::string& name)>;

struct FileToRead {
  std::string name;  ///< without its folder
  std::string path;  ///< for messages
  Opener open;
  Neighbour neighbour;
  Limits limits{};
  bool may_unpack = true;  ///< false: a header from a stream, in which pixels are never compressed
  std::uint8_t order = 0;  ///< of samples (VolumeFile), if it is one from a stream
};

bool is_nifti(std::string_view begin);
/// True for a NIfTI or Analyze header whose voxels are in an .img file beside it, by its first kLongestNiftiHeader
/// bytes.
bool is_nifti_pair(std::string_view begin);
inline constexpr std::size_t kLongestNiftiHeader = 540;
/// Names that the header of an .img or .img.gz file may have; none for other names.
std::vector<std::string> pair_header_names(const std::string& image);
bool is_nrrd(std::string_view begin);
bool is_metaimage(std::string_view begin);
bool is_dicom(std::string_view begin);
VolumeLayout nifti_layout(const FileToRead& file);
VolumeLayout nrrd_layout(const FileToRead& file);
VolumeLayout metaimage_layout(const FileToRead& file);
VolumeLayout raw_layout(const FileToRead& file, const VolumeOptions& options);
/// Files in any order, of one series or of several; VolumeOptions::series selects one.
VolumeLayout dicom_layout(const std::vector<FileToRead>& files, const VolumeOptions& options = {});

FileToRead file_to_read(const std::string& path, bool allow_outside = false);
/// The volume of a folder of DICOM files.
VolumeLayout folder_layout(const std::string& folder, const VolumeOptions& options);
/// Folders are volumes, except those of pictures without a DICOM file.
bool is_folder_of_slices(const std::string& folder);

/// The name of the format in the table of formats (volume_format_table.cpp); "" if the file begins like none of them.
std::string volume_format_by_content(const FileToRead& file);
VolumeLayout volume_layout(const FileToRead& file, const std::string& format, const VolumeOptions& options);

Envelope make_nifti(const VolumeInfo& info);
Envelope make_nrrd(const VolumeInfo& info);
Envelope make_metaimage(const VolumeInfo& info);

// Shared by the readers.

/// A remark on a first axis that has the values of a voxel.
std::string values_axis_remark(std::uint64_t values);
/// Checks the extents, sets width … volumes. Missing axes are 1. Throws BadStream.
void set_extents(VolumeInfo& info, const std::vector<std::uint64_t>& size, const std::string& name);
/// A remark if there are axes after the fourth, of which VolumeInfo has only the product; no step is then known. Called
/// once spacing and units are set.
void remark_on_further_axes(VolumeLayout& layout, const std::vector<std::uint64_t>& size);
/// A header whose voxels are in other files, in equal shares: lists it as a file, then calls add(name, opener, offset
/// of the voxels, their bytes) for each of them. Throws if one is missing.
using AddDataFile = std::function<void(const std::string&, const Opener&, std::uint64_t, std::uint64_t)>;
void add_data_files(VolumeLayout& layout, const FileToRead& file, const std::vector<std::string>& names,
                    std::uint64_t bytes, const AddDataFile& add);
/// The millimetres in a unit that a header names at the beginning of `text`; nothing for unknown names.
std::optional<double> millimetres_in(std::string_view text);
/// Distances are in a unit of which the name, in this field, says nothing: a remark, and no unit in other headers.
void set_unknown_unit(VolumeLayout& layout, const std::string& field, const std::string& name);
/// Spacing along x, y, z and matrix of a header whose unit of distance has this many millimetres.
void scale_distances(VolumeInfo& info, double millimetres);
/// A matrix with infinities or NaN is none.
void drop_bad_affine(VolumeInfo& info);
/// Numbers between spaces, tabs or any of `also`; nothing if there is other text.
std::optional<std::vector<double>> parse_numbers(std::string_view text, std::string_view also = "");
std::optional<std::uint64_t> parse_whole(std::string_view text);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
/// For messages: characters that cannot be printed become "?".
std::string printable(std::string_view text);
/// A number in the shortest form that reads back the same.
std::string number_text(double value);
std::vector<std::byte> to_bytes(std::string_view text);
/// Names like "slice%03d.raw" for numbers first, first + step, … last.
std::string numbered_name(const std::string& pattern, std::int64_t number);
/// True for a plain name: not empty, no folder, not hidden.
bool is_plain_name(const std::string& name);
/// The file part of a path.
std::string base_name(const std::string& path);

}  // namespace trivelet::io
