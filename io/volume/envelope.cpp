// Envelopes: the bytes around the voxels of volume files, serialised for the stream and restored to files.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "io/volume/dicom_samples.h"
#include "io/volume/volume_input.h"

namespace trivelet::io {

namespace {

constexpr std::uint8_t kEnvelopeVersion = 1;
constexpr std::size_t kMaxFiles = 1000000;
constexpr int kOrderBit = 3;  // the first bit of the sample order in a file's flags

bool has_unused(std::uint8_t order) { return (order & (kOrderValues | kOrderSigns)) != 0; }

[[noreturn]] void bad(const std::string& what) { fail(ErrorKind::kBadStream, "header of the volume's file: " + what); }

void put_bytes(std::vector<std::byte>& out, const std::byte* data, std::size_t size) {
  put_varint(out, size);
  out.insert(out.end(), data, data + size);
}
void put_text(std::vector<std::byte>& out, const std::string& text) {
  put_bytes(out, reinterpret_cast<const std::byte*>(text.data()), text.size());
}

class Fields {
 public:
  Fields(VolumeInput& in, std::uint64_t most) : in_(in), most_(most) {}
  std::uint64_t varint() {
    const std::optional<std::uint64_t> v = take_varint([this] {
      std::byte b{};
      in_.read_exactly(&b, 1, "header");
      return std::to_integer<std::uint8_t>(b);
    });
    if (!v) bad("a number of more than 64 bits, or of more bytes than it needs");
    return *v;
  }
  std::vector<std::byte> bytes() {
    std::vector<std::byte> out;
    const std::uint64_t size = varint();
    total_ += size;
    if (size > kMaxHeadBytes || total_ > kMaxHeadBytes) bad("more than " + std::to_string(kMaxHeadBytes) + " bytes");
    out.reserve(static_cast<std::size_t>(std::min(size, most_)));  // growing a vector would take twice the memory
    in_.append(out, size, "header");
    return out;
  }
  std::string text() {
    const std::vector<std::byte> b = bytes();
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }

 private:
  VolumeInput& in_;
  std::uint64_t most_;  // upper bound of the bytes
  std::uint64_t total_ = 0;
};

}  // namespace

std::vector<std::uint8_t> serialise(const Envelope& envelope) {
  std::vector<std::byte> plain;
  put_text(plain, envelope.format);
  put_varint(plain, envelope.files.size());
  for (const VolumeFile& f : envelope.files) {
    put_text(plain, f.name);
    put_varint(plain, (f.gzip ? 1u : 0u) | static_cast<unsigned>(f.packing) << 1 |
                          static_cast<unsigned>(f.order) << kOrderBit);
    put_varint(plain, f.voxel_bytes);
    put_bytes(plain, f.head.data(), f.head.size());
    put_bytes(plain, f.tail.data(), f.tail.size());
    if (has_unused(f.order)) put_bytes(plain, f.unused.data(), f.unused.size());
  }
  require(plain.size() <= kMaxHeadBytes, ErrorKind::kUnsupported,
          "headers of " + count_of(plain.size(), "byte") + "; the limit is " + std::to_string(kMaxHeadBytes));
  std::vector<std::uint8_t> out = {kEnvelopeVersion, 0};
  if (have_zlib()) {
    std::vector<std::uint8_t> packed = {kEnvelopeVersion, 1};
    Deflater deflater(
        [&packed](const void* data, std::size_t size) {
          const auto* p = static_cast<const std::uint8_t*>(data);
          packed.insert(packed.end(), p, p + size);
        },
        true);
    deflater.write(plain.data(), plain.size());
    deflater.finish();
    if (packed.size() < plain.size() + 2) return packed;
  }
  const auto* p = reinterpret_cast<const std::uint8_t*>(plain.data());
  out.insert(out.end(), p, p + plain.size());
  return out;
}

Envelope parse_envelope(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) bad("it is empty");
  require(bytes[0] == kEnvelopeVersion, ErrorKind::kUnsupported,
          "header of the volume's file: version " + std::to_string(bytes[0]) + "; this library knows " +
              std::to_string(kEnvelopeVersion));
  if (bytes[1] > 1) bad("packing " + std::to_string(bytes[1]));
  const auto* p = reinterpret_cast<const std::byte*>(bytes) + 2;
  VolumeInput stored(memory_opener(std::make_shared<const std::vector<std::byte>>(p, p + (size - 2)))(),
                     "header of the volume's file");
  std::unique_ptr<VolumeInput> unpacked;
  if (bytes[1] == 1) unpacked = std::make_unique<VolumeInput>(make_inflater(stored, true, 0, {}), stored.name());
  VolumeInput& in = unpacked ? *unpacked : stored;
  constexpr std::uint64_t kDeflated = 1032;  // most bytes for each byte of deflate
  Fields fields(in, size * kDeflated);
  Envelope e;
  e.format = fields.text();
  const std::uint64_t files = fields.varint();
  if (files < 1 || files > kMaxFiles) bad(count_of(files, "file"));
  for (std::uint64_t i = 0; i < files; ++i) {
    VolumeFile f;
    f.name = fields.text();
    const std::uint64_t flags = fields.varint();
    const std::uint64_t packing = flags >> 1 & 3;
    if (flags >= 512 || packing > 2) bad("flags " + std::to_string(flags));
    f.gzip = (flags & 1) != 0;
    f.packing = static_cast<Packing>(packing);
    f.order = static_cast<std::uint8_t>(flags >> kOrderBit);
    constexpr unsigned kColours = kOrderPlanes | kOrderHalfChroma, kBits = kOrderValues | kOrderSigns;
    if ((f.order != 0 && (e.format != "dicom" || packing != 0)) || (f.order & kColours) == kColours ||
        (f.order & kBits) == kBits)
      bad("flags " + std::to_string(flags));
    f.voxel_bytes = fields.varint();
    f.head = fields.bytes();
    f.tail = fields.bytes();
    if (has_unused(f.order)) f.unused = fields.bytes();
    e.files.push_back(std::move(f));
  }
  if (!in.ahead(1).empty()) bad("bytes behind its end");
  return e;
}

// -------------------------------------------------------------------------------------------------------------- files

namespace {

namespace fs = std::filesystem;

/// Replaces the number of "CompressedDataSize = 123 " in the header of a MetaImage. The line keeps its length if that
/// fits.
void set_compressed_size(std::vector<std::byte>& head, std::uint64_t size) {
  std::string text(reinterpret_cast<const char*>(head.data()), head.size());
  std::size_t at = text.rfind("CompressedDataSize", 0) == 0 ? 0 : text.find("\nCompressedDataSize");
  if (at == std::string::npos) return;
  at = text.find('=', at);
  const std::size_t line_end = at == std::string::npos ? at : text.find('\n', at);
  if (line_end == std::string::npos) return;
  std::size_t first = at + 1;
  while (first < line_end && (text[first] == ' ' || text[first] == '\t')) ++first;
  std::size_t last = first;
  while (last < line_end && text[last] >= '0' && text[last] <= '9') ++last;
  std::string number = std::to_string(size);
  std::size_t room = last;  // blanks after the number may be overwritten
  while (room < line_end && text[room] == ' ' && room - first < number.size()) ++room;
  if (number.size() < last - first && room == last && last < line_end && text[last] == ' ')
    number.append(last - first - number.size(), ' ');
  text.replace(first, std::max(room, last) - first, number);
  head = to_bytes(text);
}

std::string with_extension(const std::string& path, const std::string& extension) {
  const std::string name = lower(path);
  std::size_t end = path.size();
  if (name.ends_with(".gz")) end -= 3;
  if (end >= 4 && name[end - 4] == '.') end -= 4;
  return path.substr(0, end) + extension;
}

}  // namespace

Envelope text_envelope(const std::string& format, const std::string& head, Packing packing, std::uint64_t voxel_bytes) {
  Envelope e;
  e.format = format;
  e.files.emplace_back();
  e.files[0].head = to_bytes(head);
  e.files[0].packing = packing;
  e.files[0].voxel_bytes = voxel_bytes;
  return e;
}

struct VolumeWriter::State {
  Envelope envelope;
  std::string path;
  bool overwrite = false;
  std::vector<std::unique_ptr<FileSink>> done;
  std::unique_ptr<FileSink> file;
  std::unique_ptr<Packer> outer;  // .gz
  std::unique_ptr<Packer> inner;  // the voxels' own packing
  std::vector<std::byte> packed;  // packed voxels whose size goes into the header
  std::size_t at = 0;
  std::uint64_t left = 0;
  std::atomic<std::uint64_t> bytes = 0;  // a thread compresses the data
  std::uint64_t packed_bytes = 0;        // of all files packed by zlib
  bool header_last = false;              // the header needs the packed size of another file's data
  bool opened = false;
  fs::path folder_made;

  VolumeFile& current() { return envelope.files[at]; }
  bool folder() const { return envelope.format == "dicom"; }
  bool size_in_head() { return current().packing == Packing::kZlib; }

  std::string path_of(std::size_t index) const {
    const VolumeFile& f = envelope.files[index];
    if (folder()) {
      if (envelope.files.size() == 1 && !fs::is_directory(path)) return path;
      return (fs::path(path) / f.name).string();
    }
    if (index == 0) return path;
    if (envelope.format.rfind("nifti", 0) == 0) {
      const bool gz = lower(path).ends_with(".gz");
      const std::string extension = f.name.find(".IMG") != std::string::npos ? ".IMG" : ".img";
      return with_extension(path, extension) + (gz ? ".gz" : "");
    }
    return (fs::path(path).parent_path() / f.name).string();
  }

  /// True if an existing file may be replaced. -y is for the named file: a name that comes from the stream may replace
  /// only an older version of the same volume.
  bool replaceable(std::size_t index) const {
    const std::string name = path_of(index);
    if (!overwrite) return false;
    if (name == path || (!folder() && envelope.format.rfind("nifti", 0) == 0)) return true;
    if (folder()) {  // another file of a series
      std::ifstream in(name, std::ios::binary);
      char begin[132] = {};
      in.read(begin, sizeof begin);
      return is_dicom({begin, static_cast<std::size_t>(in.gcount())});
    }
    const std::string there = fs::path(name).filename().string();
    return there.rfind(fs::path(path).stem().string() + ".", 0) == 0;
  }

  void put(const void* data, std::size_t size) {
    bytes += size;
    if (outer)
      outer->write(static_cast<const std::byte*>(data), size);
    else
      file->write(data, size);
  }

  void open() {
    opened = true;
    const std::string name = path_of(at);
    file = std::make_unique<FileSink>(name, overwrite);
    // A file that was compressed without a telling name is compressed again only if the name to write tells so.
    const bool data_alone = current().packing == Packing::kGzip && current().head.empty();
    if (lower(name).ends_with(".gz") && !data_alone)
      outer = make_packer([this](const void* d, std::size_t n) { file->write(d, n); }, false,
                          current().head.size() + current().voxel_bytes + current().tail.size());
    left = current().voxel_bytes;
    if (!size_in_head()) put(current().head.data(), current().head.size());
    if (current().order != 0)
      inner = make_sample_writer([this](const void* d, std::size_t n) { put(d, n); }, current());
    if (current().packing == Packing::kNone || left == 0) return;
    inner = make_packer(
        [this](const void* d, std::size_t n) {
          const auto* p = static_cast<const std::byte*>(d);
          if (size_in_head())
            packed.insert(packed.end(), p, p + n);
          else
            put(d, n);
        },
        current().packing == Packing::kZlib, left);
  }

  void close() {
    if (inner) inner->finish();
    inner.reset();
    if (size_in_head()) {
      packed_bytes += packed.size();
      set_compressed_size(current().head, packed.size());
      put(current().head.data(), current().head.size());
      put(packed.data(), packed.size());
      packed.clear();
    }
    put(current().tail.data(), current().tail.size());
    if (outer) outer->finish();
    outer.reset();
    if (envelope.files.size() > 2) file->suspend();  // a series has more files than a process may have open
    done.push_back(std::move(file));
    ++at;
    opened = false;
  }
};

VolumeWriter::VolumeWriter(Envelope envelope, const std::string& path, bool overwrite)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.envelope = std::move(envelope);
  s.path = path;
  // The user names the voxels of a pair; the header is beside them.
  const bool pair = s.envelope.files.size() == 2 && s.envelope.format.rfind("nifti", 0) == 0;
  if (const std::vector<std::string> headers = pair_header_names(path); pair && !headers.empty()) s.path = headers[0];
  s.overwrite = overwrite;
  require(!s.envelope.files.empty(), ErrorKind::kBadStream, "a volume without files");
  require(s.envelope.files.size() == 1 || path != "-", ErrorKind::kBadArgument,
          "a volume of " + count_of(s.envelope.files.size(), "file") + " cannot go to standard output");
  for (std::size_t i = 0; i < s.envelope.files.size(); ++i)
    require((i == 0 && !s.folder()) || is_plain_name(s.envelope.files[i].name), ErrorKind::kBadStream,
            "the volume's file " + std::to_string(i) + " has a name that is none of a file: '" +
                s.envelope.files[i].name.substr(0, 80) + "'");
  s.header_last = s.envelope.files.size() > 1 && s.envelope.files[0].voxel_bytes == 0 &&
                  s.envelope.files[1].packing == Packing::kZlib;
  if (s.header_last) s.at = 1;
  if (s.folder() && (s.envelope.files.size() > 1 || path.ends_with('/'))) {
    std::error_code error;
    fs::create_directories(path, error);
    require(!error && fs::is_directory(path), ErrorKind::kIo,
            "cannot make the folder " + path + (error ? ": " + error.message() : ""));
  }
  // Checks for existing files before any work.
  for (std::size_t i = 0; i < s.envelope.files.size() && s.path != "-"; ++i)
    require(!fs::is_regular_file(s.path_of(i)) || s.replaceable(i), ErrorKind::kBadArgument,
            s.path_of(i) + (overwrite ? " exists, and its name comes from the stream; remove it if it is not needed"
                                      : " exists; -y replaces it"));
}

VolumeWriter::~VolumeWriter() = default;

void VolumeWriter::write(const std::byte* data, std::size_t bytes) {
  State& s = *state_;
  while (bytes > 0) {
    require(s.at < s.envelope.files.size(), ErrorKind::kBadArgument, "more voxels than the volume's files hold");
    if (!s.opened) s.open();
    if (s.left == 0) {
      s.close();
      continue;
    }
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(s.left, bytes));
    s.inner ? s.inner->write(data, n) : s.put(data, n);
    s.left -= n;
    data += n;
    bytes -= n;
  }
}

void VolumeWriter::finish() {
  State& s = *state_;
  while (s.at < s.envelope.files.size()) {
    if (!s.opened) s.open();
    require(s.left == 0, ErrorKind::kBadStream,
            count_of(s.left, "byte") + " of voxels are missing at the end of " + s.path_of(s.at));
    s.close();
  }
  if (s.header_last) {
    s.at = 0;
    set_compressed_size(s.current().head, s.packed_bytes);
    s.current().packing = Packing::kNone;
    s.open();
    s.close();
  }
  for (const auto& f : s.done) f->commit();
}

std::uint64_t VolumeWriter::bytes() const { return state_->bytes; }

}  // namespace trivelet::io
