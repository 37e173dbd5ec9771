// Opens volumes: detects the format, reads the header, and delivers the scalars of the files one after the other.
#include "io/volume/volume_io.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "codec/base/limits.h"
#include "codec/rate/spool.h"
#include "io/source.h"
#include "io/volume/dicom_samples.h"
#include "io/volume/volume_input.h"

namespace trivelet::io {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxExtent = 65536;  // of a picture; the stream format's limit

class LayoutReader final : public VolumeReader {
 public:
  explicit LayoutReader(VolumeLayout layout) : layout_(std::move(layout)) {
    for (const FileLayout& f : layout_.files) check_size(f);
    find_anywhere();
    rewind();
  }

  const VolumeInfo& info() const override { return layout_.info; }
  const std::vector<std::string>& remarks() const override { return layout_.remarks; }

  void rewind() override {
    envelope_ = {};
    head_bytes_ = tail_bytes_ = 0;
    envelope_.format = layout_.info.format;
    open(0);
  }

  void read(std::byte* data, std::size_t bytes) override {
    while (bytes > 0) {
      while (left_ == 0) {
        require(envelope_.files.size() < layout_.files.size(), ErrorKind::kInternal,
                "more voxels wanted than there are");
        next_file();
      }
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, left_));
      (unpacked_ ? *unpacked_ : *input_).read_exactly(data, n, "voxels");
      left_ -= n;
      data += n;
      bytes -= n;
    }
  }

  bool reads_anywhere() const override { return anywhere_ != nullptr; }

  void read_at(std::uint64_t position, std::byte* data, std::size_t bytes) const override {
    require(anywhere_ && position <= layout_.info.bytes() && bytes <= layout_.info.bytes() - position,
            ErrorKind::kInternal, "voxels are wanted where there are none");
    position += with_voxels_->head_bytes;
    const std::size_t got = anywhere_->read_at(position, data, bytes);
    require(got == bytes, ErrorKind::kBadStream,
            with_voxels_->name + ": ends at byte " + std::to_string(position + got) + ", " +
                count_of(bytes - got, "byte") + " of the voxels are missing");
  }

  Envelope envelope() override {
    while (envelope_.files.size() < layout_.files.size()) {
      if (anywhere_ && left_ > 0) input_->jump(std::exchange(left_, 0));
      require(left_ == 0, ErrorKind::kInternal, "voxels are left");
      next_file();
    }
    return envelope_;
  }

 private:
  /// Files that are shorter than their header promises are refused before memory is taken.
  static void check_size(const FileLayout& f) {
    constexpr std::uint64_t kMostDeflated = 1032;  // most bytes for each byte of deflate (zlib's technical notes)
    const std::unique_ptr<Feed> feed = f.voxel_bytes > 0 && !f.converted ? f.open() : nullptr;
    const auto size = feed ? feed->size() : std::nullopt;
    if (!size) return;
    const bool packed = begins_like_gzip(*feed) || f.packing != Packing::kNone;
    const std::uint64_t voxels = f.samples ? f.samples->file_frame_bytes() * f.samples->frames : f.voxel_bytes;
    const std::uint64_t wanted = (packed ? 0 : f.head_bytes) + voxels;
    require(wanted / (packed ? kMostDeflated : 1) <= *size, ErrorKind::kBadStream,
            f.name + ": ends at byte " + std::to_string(*size) + (packed ? ", compressed" : "") + ", where " +
                std::to_string(wanted) + " are promised");
  }

  static bool begins_like_gzip(Feed& feed) {
    std::byte begin[2] = {};
    return feed.read(begin, 2) == 2 && begin[0] == std::byte{0x1f} && begin[1] == std::byte{0x8b};
  }

  void find_anywhere() {
    const auto has_voxels = [](const FileLayout& f) { return f.voxel_bytes > 0; };
    if (std::count_if(layout_.files.begin(), layout_.files.end(), has_voxels) != 1) return;
    const FileLayout& f = *std::find_if(layout_.files.begin(), layout_.files.end(), has_voxels);
    if (f.converted || f.samples || f.packing != Packing::kNone) return;
    std::unique_ptr<Feed> feed = f.open();
    if (!feed->seekable() || begins_like_gzip(*feed)) return;
    with_voxels_ = &f;
    anywhere_ = std::move(feed);
  }

  void open(std::size_t index) {
    at_ = index;
    const FileLayout& f = layout_.files.at(index);
    unpacked_.reset();
    input_.reset();  // its thread may already read the data of the next one
    // Data of a separate file that is packed by gzip are unpacked below, not as a whole.
    if (f.packing == Packing::kGzip && f.head_bytes == 0)
      input_ = std::make_unique<VolumeInput>(f.open(), f.name);
    else
      input_ = open_input(f.open, f.name, current_.gzip, layout_.limits);
    current_.name = f.name;
    current_.packing = f.packing;
    current_.voxel_bytes = f.voxel_bytes;
    current_.head.clear();
    current_.tail.clear();
    current_.order = 0;
    current_.unused.clear();
    if (f.voxel_bytes == 0)
      current_.head = input_->rest("header", kMaxHeadBytes);
    else
      input_->append(current_.head, f.head_bytes, "header");
    if (f.packing != Packing::kNone && f.voxel_bytes > 0)
      unpacked_ = std::make_unique<VolumeInput>(
          make_inflater(*input_, f.packing == Packing::kZlib, f.voxel_bytes, layout_.limits), f.name);
    samples_ = nullptr;
    if (f.samples) {
      auto feed = std::make_unique<SampleFeed>(*input_, *f.samples);
      samples_ = feed.get();
      unpacked_ = std::make_unique<VolumeInput>(std::move(feed), f.name);
    }
    left_ = f.voxel_bytes;
  }

  // Closes the current file, keeping its tail, and opens the one after.
  void next_file() {
    if (unpacked_) {
      require(unpacked_->ahead(1).empty(), ErrorKind::kBadStream,
              input_->name() + ": holds more compressed voxels than its header says");
      if (samples_) samples_->finish(current_);
      unpacked_.reset();
    }
    current_.tail = input_->rest("data behind the voxels", kMaxTailBytes - tail_bytes_);
    tail_bytes_ += current_.tail.size();
    head_bytes_ += current_.head.size() + current_.unused.size();
    require(head_bytes_ <= kMaxHeadBytes, ErrorKind::kUnsupported,
            input_->name() + ": with it headers of more than " + std::to_string(kMaxHeadBytes) + " bytes");
    envelope_.files.push_back(std::move(current_));
    current_ = {};
    if (at_ + 1 < layout_.files.size()) open(at_ + 1);
  }

  VolumeLayout layout_;
  Envelope envelope_;           // of the files that are done
  std::size_t head_bytes_ = 0;  // of these
  std::size_t tail_bytes_ = 0;
  VolumeFile current_;
  std::size_t at_ = 0;  // the file that is open
  std::unique_ptr<VolumeInput> input_;
  std::unique_ptr<VolumeInput> unpacked_;
  SampleFeed* samples_ = nullptr;  // the input of unpacked_, if there is one
  std::uint64_t left_ = 0;         // bytes of voxels in the current file
  const FileLayout* with_voxels_ = nullptr;
  std::unique_ptr<Feed> anywhere_;  // null: read in order
};

/// A data file that the header `header` names. Empty if there is no such file. Outside of the header's folder, by its
/// name or by a link, it is refused, because it may be any file of the user.
Opener open_beside(const std::string& header, const std::string& name, bool allow_outside) {
  std::error_code error;
  const fs::path folder = fs::path(header).parent_path();
  const fs::path beside = folder / name;
  const auto refuse = [&](const char* where) {
    fail(ErrorKind::kUnsupported,
         header + ": its data file '" + printable(name.substr(0, 200)) + "' is " + where +
             " another folder, so it may be any file of yours; VolumeOptions::allow_outside lets it be read");
  };
  if (!allow_outside) {
    const fs::path named = fs::absolute(beside, error).lexically_normal();
    const bool inside = !error && named.has_filename() && name.find('\\') == std::string::npos &&
                        named.parent_path() == fs::absolute(folder / "x", error).lexically_normal().parent_path();
    if (!inside) refuse("in");
  }
  const fs::path real = fs::canonical(beside, error);
  if (error || !fs::is_regular_file(real, error)) return {};
  if (!allow_outside) {
    const fs::path own = fs::canonical(folder.empty() ? fs::path(".") : folder, error);
    if (error || real.parent_path() != own) refuse("a link to");
  }
  return file_opener(real.string());
}

}  // namespace

FileToRead file_to_read(const std::string& path, bool allow_outside) {
  FileToRead f;
  f.path = path;
  f.name = base_name(path);
  f.open = file_opener(path);
  f.neighbour = [path, allow_outside](const std::string& name) { return open_beside(path, name, allow_outside); };
  return f;
}

namespace {

/// The data of standard input, in a temporary file. Only the newest feed of one file is read.
class SpoolFeed final : public Feed {
 public:
  SpoolFeed(std::shared_ptr<Spool> spool, std::uint64_t size) : spool_(std::move(spool)), size_(size) {}
  std::size_t read(std::byte* data, std::size_t size) override {
    spool_->seek(static_cast<long>(at_));
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - at_));
    const std::size_t got = std::fread(data, 1, wanted, spool_->file());
    require(got == wanted, ErrorKind::kIo, "cannot read the temporary file of standard input");
    at_ += got;
    return got;
  }
  std::optional<std::uint64_t> size() const override { return size_; }

 private:
  std::shared_ptr<Spool> spool_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
};

/// Standard input: volumes are read twice, so small ones go into memory and others into a temporary file.
FileToRead standard_input(const Limits& limits) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  constexpr std::size_t kMostInMemory = std::size_t{32} << 20;  // about a slab
  InputBytes source("-");
  std::vector<std::byte> bytes;
  std::shared_ptr<Spool> spool;
  std::uint64_t spooled = 0;
  for (;;) {
    const std::size_t at = bytes.size();
    check_memory(limits, at + kPiece, "a volume from standard input");
    bytes.resize(at + kPiece);
    const std::size_t got = source.read(bytes.data() + at, kPiece);
    bytes.resize(at + got);
    if (spool || bytes.size() > kMostInMemory) {
      if (!spool) spool = std::make_shared<Spool>("");
      require(std::fwrite(bytes.data(), 1, bytes.size(), spool->file()) == bytes.size(), ErrorKind::kIo,
              "cannot write standard input to a temporary file; is the disk full?");
      spooled += bytes.size();
      bytes.clear();
    }
    if (got < kPiece) break;
  }
  FileToRead f;
  f.path = f.name = "standard input";
  if (spool) {
    spool->rewind();
    bytes = {};
    f.open = [spool, spooled] { return std::make_unique<SpoolFeed>(spool, spooled); };
  } else {
    f.open = memory_opener(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  }
  f.neighbour = [](const std::string&) -> Opener { return {}; };
  return f;
}

/// A reader of a volume that is not too large.
std::unique_ptr<VolumeReader> limited(VolumeLayout layout, const VolumeOptions& options) {
  const Limits& limits = options.limits;
  if (options.values_as_axis && layout.info.voxel.channels > 1 && layout.info.format != "dicom")
    put_values_first(layout.info, layout.remarks);
  const VolumeInfo& v = layout.info;
  const std::string size = std::to_string(v.width) + "x" + std::to_string(v.height);
  const std::uint64_t scalars = static_cast<std::uint64_t>(v.width) * static_cast<std::uint64_t>(v.height) *
                                static_cast<std::uint64_t>(v.voxel.channels);
  check_limit(v.all_slices(), limits.frames, "frames", "a volume of " + count_of(v.all_slices(), "slice"));
  check_limit(scalars, limits.samples, "samples", "slices of " + size + ", " + count_of(scalars, "sample"));
  check_memory(limits, v.slice_bytes(), "a slice of " + size);
  check_limit(layout.files.size(), limits.files, "files", "a volume of " + count_of(layout.files.size(), "file"));
  layout.limits = limits;
  return std::make_unique<LayoutReader>(std::move(layout));
}

}  // namespace

namespace {

/// The name of the header beside a file that is the .img of a pair; "" for every other file.
std::string header_of_image(const std::string& path) {
  for (const std::string& header : pair_header_names(path)) {
    std::error_code ignored;
    if (!fs::is_regular_file(header, ignored)) continue;
    bool gzip = false;
    if (is_nifti_pair(open_input(file_opener(header), header, gzip, {})->ahead(kLongestNiftiHeader))) return header;
  }
  return {};
}

}  // namespace

bool is_volume(const std::string& path) {
  if (path == "-") return false;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return is_folder_of_slices(path);
  if (!fs::is_regular_file(path, ignored)) return false;
  try {
    if (!header_of_image(path).empty()) return true;
    return !volume_format_by_content(file_to_read(path)).empty();
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<VolumeReader> open_volume(const std::string& path, const VolumeOptions& options) {
  const bool raw = options.format == "raw" || (options.format.empty() && !options.size.empty());
  require(raw || (options.size.empty() && options.type.empty()), ErrorKind::kBadArgument,
          path + ": only raw volumes take a size and a type");
  std::error_code ignored;
  if (path != "-" && fs::is_directory(path, ignored)) {
    require(options.format.empty() || options.format == "dicom", ErrorKind::kBadArgument,
            path + ": a folder can only hold DICOM files, not " + options.format);
    return limited(folder_layout(path, options), options);
  }
  if (path != "-" && (options.format.empty() || options.format == "nifti") && !raw) {
    if (const std::string header = header_of_image(path); !header.empty()) {
      (void)open_beside(path, base_name(header), options.allow_outside);  // the user named the voxels, not the header
      return open_volume(header, options);
    }
  }
  FileToRead file = path == "-" ? standard_input(options.limits) : file_to_read(path, options.allow_outside);
  file.limits = options.limits;
  std::string format = raw ? "raw" : options.format;
  if (format.empty()) format = volume_format_by_content(file);
  require(options.series.empty() || format == "dicom", ErrorKind::kBadArgument,
          file.path + ": only DICOM files are of series (VolumeOptions::series)");
  require(!format.empty() || unread_volume(path).empty(), ErrorKind::kUnsupported,
          file.path + ": is called like a volume of " + unread_volume(path) +
              ", which is not read; convert it first, for example to .nii.gz");
  // An empty file, and one whose name says that it is a volume, are damaged; of others nothing is known.
  const bool is_damaged =
      format.empty() && (has_volume_name(path) || VolumeInput(file.open(), file.path).ahead(1).empty());
  require(!format.empty(), is_damaged ? ErrorKind::kBadStream : ErrorKind::kUnsupported,
          file.path +
              ": is neither NIfTI, NRRD, MetaImage nor DICOM; raw scalars need VolumeOptions::size and "
              "VolumeOptions::type");
  return limited(volume_layout(file, format, options), options);
}

std::unique_ptr<VolumeReader> open_volume(const std::byte* data, std::size_t size, const std::string& format,
                                          const Limits& limits) {
  FileToRead f;
  f.limits = limits;
  f.path = f.name = "memory";
  f.open = memory_opener(std::make_shared<const std::vector<std::byte>>(data, data + size));
  f.neighbour = [](const std::string&) -> Opener { return {}; };
  const std::string known = format.empty() ? volume_format_by_content(f) : format;
  return std::make_unique<LayoutReader>(volume_layout(f, known, {}));
}

namespace {

/// The header of a file; the length is that of the whole.
class HeadFeed final : public Feed {
 public:
  explicit HeadFeed(const VolumeFile& file) : file_(file) {}
  std::size_t read(std::byte* data, std::size_t size) override {
    const std::size_t n = std::min(size, file_.head.size() - at_);
    std::copy_n(file_.head.data() + at_, n, data);
    at_ += n;
    return n;
  }
  std::optional<std::uint64_t> size() const override {
    return file_.head.size() + file_.voxel_bytes + file_.tail.size();
  }

 private:
  const VolumeFile& file_;
  std::size_t at_ = 0;
};

Opener head_opener(const VolumeFile& file) {
  return [&file] { return std::make_unique<HeadFeed>(file); };
}

}  // namespace

VolumeInfo volume_info(const Envelope& envelope, std::vector<std::string>* remarks) {
  if (envelope.format == "raw") {
    VolumeInfo info;
    info.knows_distance_unit = false;
    info.fourth_unit = FourthUnit::kUnknown;
    return info;
  }
  // The headers only, in memory; files are found by their names.
  std::unordered_map<std::string_view, const VolumeFile*> by_name;
  for (const VolumeFile& file : envelope.files) by_name.emplace(file.name, &file);
  std::vector<FileToRead> files;
  for (const VolumeFile& file : envelope.files) {
    FileToRead f;
    f.path = f.name = file.name;
    f.open = head_opener(file);
    f.neighbour = [&by_name](const std::string& name) -> Opener {
      const auto other = by_name.find(base_name(name));
      return other == by_name.end() ? Opener{} : head_opener(*other->second);
    };
    f.may_unpack = false;
    f.order = file.order;
    files.push_back(std::move(f));
  }
  require(!files.empty(), ErrorKind::kBadStream, "a volume without files");
  const std::string format = envelope.format.rfind("nifti", 0) == 0 ? "nifti" : envelope.format;
  require(format == "nifti" || format == "nrrd" || format == "metaimage" || format == "dicom", ErrorKind::kBadStream,
          "the header of a volume in an unknown format, '" + format.substr(0, 40) + "'");
  VolumeLayout layout = format == "dicom" ? dicom_layout(files) : volume_layout(files.front(), format, {});
  if (remarks) *remarks = std::move(layout.remarks);
  return layout.info;
}

VolumeInfo volume_info(const Envelope& envelope, const VolumeDescription& coded, std::vector<std::string>* remarks) {
  std::vector<std::string> said;
  VolumeInfo info = volume_info(envelope, &said);
  if (coded.voxel.channels == 1 && info.voxel.channels > 1 && info.format != "dicom") put_values_first(info, said);
  static_cast<VolumeDescription&>(info) = coded;
  if (remarks) *remarks = std::move(said);
  return info;
}

// ---------------------------------------------------------------------------------------------------------------- raw

VoxelFormat parse_voxel_format(const std::string& name) {
  std::string text = lower(name);
  VoxelFormat f;
  if (text.size() > 2 && text.ends_with("be")) f.big_endian = true;
  if (text.size() > 2 && (text.ends_with("be") || text.ends_with("le"))) text.resize(text.size() - 2);
  for (int i = 0; i < kVoxelTypes; ++i) {
    f.type = static_cast<VoxelType>(i);
    const std::string full = trivelet::to_string(f.type);
    const std::string bits = std::to_string(8 * bytes_of(f.type));
    const char letter = full[0];
    if (text == full || text == letter + bits || (letter == 'i' && text == "s" + bits)) return f;
  }
  fail(ErrorKind::kBadArgument,
       "unknown type '" + name + "'; known: u8 s8 u16 s16 u32 s32 u64 s64 f32 f64, and with be behind for big-endian");
}

VolumeLayout raw_layout(const FileToRead& file, const VolumeOptions& options) {
  require(options.size.size() >= 2, ErrorKind::kBadArgument,
          file.path + ": raw volumes do not tell their size; give it (VolumeOptions::size)");
  require(!options.type.empty(), ErrorKind::kBadArgument,
          file.path + ": raw volumes do not tell their type; give it (VolumeOptions::type: u8, s16, u16be, f32, …)");
  VolumeLayout layout;
  layout.info.format = "raw";
  layout.info.knows_distance_unit = false;
  layout.info.fourth_unit = FourthUnit::kUnknown;
  layout.info.voxel = parse_voxel_format(options.type);
  set_extents(layout.info, options.size, file.path);
  remark_on_further_axes(layout, options.size);
  FileLayout f;
  f.name = file.name;
  f.open = file.open;
  f.voxel_bytes = layout.info.bytes();
  layout.files.push_back(std::move(f));
  return layout;
}

// ------------------------------------------------------------------------------------------------------------- shared

std::string values_axis_remark(std::uint64_t values) {
  return "the first axis has " + count_of(values, "value") +
         " and is none of space: files of other formats have it first as well, with neither the directions nor the "
         "origin of the others";
}

void put_values_first(VolumeInfo& info, std::vector<std::string>& remarks) {
  const auto values = static_cast<std::uint64_t>(info.voxel.channels);
  const std::vector<std::uint64_t> size = {values, static_cast<std::uint64_t>(info.width),
                                           static_cast<std::uint64_t>(info.height), info.slices, info.volumes};
  set_extents(info, size, "the volume");
  info.voxel.channels = 1;
  info.spacing = {1, info.spacing[0], info.spacing[1], info.spacing[2]};
  info.fourth_unit = FourthUnit::kUnknown;
  info.has_affine = info.has_other_place = false;
  remarks.push_back(values_axis_remark(values));
}

void set_extents(VolumeInfo& info, const std::vector<std::uint64_t>& size, const std::string& name) {
  const auto text = [&size] {
    std::string all;
    for (const std::uint64_t n : size) all += (all.empty() ? "" : " x ") + std::to_string(n);
    return all;
  };
  require(!size.empty() && size.size() <= 16, ErrorKind::kBadStream,
          name + ": a volume of " + std::to_string(size.size()) + " axes; must be 1..16");
  // Leading axes of one voxel stay: the pictures then have a single column, and nothing is lost.
  std::uint64_t total = 1;
  for (const std::uint64_t n : size) {
    require(n >= 1 && n <= std::uint64_t{1} << 40, ErrorKind::kBadStream,
            name + ": an axis of " + count_of(n, "voxel") + " (size " + text() + ")");
    require(total <= (std::uint64_t{1} << 48) / n, ErrorKind::kBadStream,
            name + ": " + text() + " are more than 2^48 voxels");
    total *= n;
  }
  const std::uint64_t height = size.size() > 1 ? size[1] : 1;
  require(size[0] <= kMaxExtent && height <= kMaxExtent, ErrorKind::kUnsupported,
          name + ": slices of " + std::to_string(size[0]) + " x " + std::to_string(height) + "; at most " +
              std::to_string(kMaxExtent) + " either way");
  require(size[0] * height <= std::uint64_t{1} << 31, ErrorKind::kUnsupported,
          name + ": slices of " + text() + " voxels; at most 2^31");
  info.width = static_cast<int>(size[0]);
  info.height = static_cast<int>(height);
  info.slices = size.size() > 2 ? size[2] : 1;
  info.volumes = 1;
  for (std::size_t i = 3; i < size.size(); ++i) info.volumes *= size[i];
}

void remark_on_further_axes(VolumeLayout& layout, const std::vector<std::uint64_t>& size) {
  std::string sizes;
  std::size_t axes = 0, last = 0;
  for (std::size_t i = 3; i < size.size(); ++i) {
    if (size[i] == 1) continue;
    sizes += (axes > 0 ? " x " : "") + std::to_string(size[i]);
    ++axes;
    last = i;
  }
  if (axes == 0 || last == 3) return;
  layout.info.spacing[3] = 1;
  layout.info.fourth_unit = FourthUnit::kUnknown;
  layout.remarks.push_back(
      axes == 1 ? "an axis of " + sizes + " after the fourth one is the fourth one in files of other formats"
                : "the axes after the third one, " + sizes + ", are put together: files of other formats have one of " +
                      std::to_string(layout.info.volumes) + " in their place, without a step");
}

std::optional<double> millimetres_in(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"m", 1000},        {"meter", 1000},         {"meters", 1000},
      {"cm", 10},         {"centimeter", 10},      {"centimeters", 10},
      {"mm", 1},          {"millimeter", 1},       {"millimeters", 1},
      {"um", 0.001},      {"micrometre", 0.001},   {"micron", 0.001},
      {"microns", 0.001}, {"micrometer", 0.001},   {"micrometers", 0.001},
      {"nm", 0.000001},   {"nanometer", 0.000001}, {"nanometers", 0.000001}};
  text = trim(text);
  if (!text.empty() && text.front() == '"') text.remove_prefix(1);
  std::string unit = lower(text.substr(0, text.find_first_of("\" \t")));
  // The micro sign, in UTF-8 and in Latin-1, and the Greek letter mean the same as u.
  for (const std::string_view sign : {"\xC2\xB5", "\xB5", "\xCE\xBC"})
    if (unit.rfind(sign, 0) == 0) unit.replace(0, sign.size(), "u");
  for (const auto& [name, millimetres] : kUnits)
    if (unit == name) return millimetres;
  return std::nullopt;
}

void set_unknown_unit(VolumeLayout& layout, const std::string& field, const std::string& name) {
  layout.info.knows_distance_unit = false;
  layout.remarks.push_back("its unit of distance ('" + field + "'), " + printable(name.substr(0, 40)) +
                           ", is not known: headers of other formats get the numbers without a unit");
}

void scale_distances(VolumeInfo& info, double millimetres) {
  for (std::size_t i = 0; i < 3; ++i) info.spacing[i] *= millimetres;
  for (double& v : info.affine) v *= millimetres;
}

void drop_bad_affine(VolumeInfo& info) {
  for (const double v : info.affine)
    if (!std::isfinite(v)) info.has_affine = false;
  if (!info.has_affine) info.affine = {};
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += c < 32 || c == 127 ? '?' : c;  // other alphabets too: encodings differ
  return out;
}

std::optional<std::vector<double>> parse_numbers(std::string_view text, std::string_view also) {
  std::vector<double> numbers;
  std::size_t at = 0;
  const auto separates = [also](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || also.find(c) != std::string_view::npos;
  };
  while (at < text.size()) {
    if (separates(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !separates(text[end])) ++end;
    std::string_view word = text.substr(at, end - at);
    if (word.front() == '+') word.remove_prefix(1);
    double value = 0;
    const auto result = std::from_chars(word.data(), word.data() + word.size(), value);
    if (result.ec != std::errc() || result.ptr != word.data() + word.size()) return std::nullopt;
    numbers.push_back(value);
    at = end;
  }
  return numbers;
}

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  text = trim(text);
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string number_text(double value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, result.ptr};
}

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

std::string numbered_name(const std::string& pattern, std::int64_t number) {
  const std::size_t percent = pattern.find('%');
  const std::size_t end = percent == std::string::npos ? percent : pattern.find_first_not_of("0123456789", percent + 1);
  require(end != std::string::npos && pattern[end] == 'd' && pattern.find('%', end) == std::string::npos &&
              end - percent <= 3,
          ErrorKind::kBadStream, "'" + pattern + "' is not a pattern of file names like slice%03d.raw");
  std::size_t digits = 0;
  for (std::size_t i = percent + 1; i < end; ++i) digits = 10 * digits + static_cast<std::size_t>(pattern[i] - '0');
  std::string text = std::to_string(number < 0 ? -number : number);
  const char fill = pattern[percent + 1] == '0' ? '0' : ' ';
  while (text.size() + (number < 0) < digits) text.insert(0, 1, fill);
  if (number < 0) text.insert(0, "-");
  return pattern.substr(0, percent) + text + pattern.substr(end + 1);
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::string base_name(const std::string& path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

void add_data_files(VolumeLayout& layout, const FileToRead& file, const std::vector<std::string>& names,
                    std::uint64_t bytes, const AddDataFile& add) {
  FileLayout header;
  header.name = file.name;
  header.open = file.open;
  layout.files.push_back(std::move(header));
  require(!names.empty() && bytes % names.size() == 0, ErrorKind::kBadStream,
          file.path + ": " + count_of(bytes, "byte") + " of voxels cannot be divided among " +
              count_of(names.size(), "file"));
  std::unordered_set<std::string> seen;
  for (const std::string& name : names) {
    // A short header could make much of a small file otherwise; and decoding puts all files into one folder.
    require(seen.insert(base_name(name)).second, ErrorKind::kUnsupported,
            file.path + ": names its data file '" + printable(name.substr(0, 200)) + "' twice");
    const Opener open = file.neighbour(name);
    require(static_cast<bool>(open), ErrorKind::kIo, file.path + ": its data file '" + name + "' is missing");
    if (file.may_unpack && fs::path(name).lexically_normal() != base_name(name))
      layout.remarks.push_back("its data file '" + name + "' is in another folder; decoding puts it beside the header");
    add(name, open, 0, bytes / names.size());
  }
}

bool has_volume_name(const std::string& path) {
  static constexpr std::array<const char*, 7> kKnown{"nii", "nii.gz", "nrrd", "nhdr", "mha", "mhd", "dcm"};
  return std::find(kKnown.begin(), kKnown.end(), volume_extension(path)) != kKnown.end();
}

std::string unread_volume(const std::string& path) {
  static constexpr std::array<std::pair<const char*, const char*>, 5> kKnown{{{"mgh", "FreeSurfer's MGH"},
                                                                              {"mgz", "FreeSurfer's MGH"},
                                                                              {"mgh.gz", "FreeSurfer's MGH"},
                                                                              {"mnc", "MINC"},
                                                                              {"vti", "VTK"}}};
  const std::string extension = volume_extension(path);
  for (const auto& [name, format] : kKnown)
    if (extension == name) return format;
  return {};
}

std::string volume_extension(const std::string& path) {
  const std::string name = lower(base_name(path));
  const std::size_t dot = name.find_last_of('.');
  if (dot == std::string::npos) return {};
  const std::string last = name.substr(dot + 1);
  if (last != "gz" || dot == 0) return last;
  const std::size_t before = name.find_last_of('.', dot - 1);
  return before == std::string::npos ? last : name.substr(before + 1);
}

}  // namespace trivelet::io
