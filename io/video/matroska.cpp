// Reads Matroska as far as finding the packets of one track takes: RFC 8794 (EBML), RFC 9559 (Matroska). Payloads are
// passed over, so that opening a film reads a few bytes a packet. Damaged elements are left by looking for the next
// cluster; what was lost with them the stream itself finds out.
#include "io/video/matroska.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/format/container.h"
#include "io/adapters.h"
#include "trivelet/error.h"

namespace trivelet::io {

namespace {

namespace id {
constexpr std::uint32_t kVoid = 0xEC;
constexpr std::uint32_t kCrc = 0xBF;
constexpr std::uint32_t kEbml = 0x1A45DFA3;
constexpr std::uint32_t kSegment = 0x18538067;
constexpr std::uint32_t kSeekHead = 0x114D9B74;
constexpr std::uint32_t kInfo = 0x1549A966;
constexpr std::uint32_t kTimestampScale = 0x2AD7B1;
constexpr std::uint32_t kTracks = 0x1654AE6B;
constexpr std::uint32_t kTrackEntry = 0xAE;
constexpr std::uint32_t kTrackNumber = 0xD7;
constexpr std::uint32_t kTrackType = 0x83;
constexpr std::uint32_t kCodecId = 0x86;
constexpr std::uint32_t kCodecPrivate = 0x63A2;
constexpr std::uint32_t kContentEncodings = 0x6D80;
constexpr std::uint32_t kName = 0x536E;
constexpr std::uint32_t kLanguage = 0x22B59C;
constexpr std::uint32_t kCluster = 0x1F43B675;
constexpr std::uint32_t kTimestamp = 0xE7;
constexpr std::uint32_t kSimpleBlock = 0xA3;
constexpr std::uint32_t kBlockGroup = 0xA0;
constexpr std::uint32_t kBlock = 0xA1;
constexpr std::uint32_t kCues = 0x1C53BB6B;
constexpr std::uint32_t kChapters = 0x1043A770;
constexpr std::uint32_t kAttachments = 0x1941A469;
constexpr std::uint32_t kTags = 0x1254C367;
}  // namespace id

bool is_part_of_segment(std::uint32_t i) {
  return i == id::kSeekHead || i == id::kInfo || i == id::kTracks || i == id::kCluster || i == id::kCues ||
         i == id::kChapters || i == id::kAttachments || i == id::kTags;
}

struct Element {
  std::uint32_t id = 0;
  std::uint64_t begin = 0;    ///< of its content
  std::uint64_t end = 0;      ///< at most the end of the file
  bool open_ended = false;    ///< its size is not known
  bool cut = false;           ///< it would go on behind the end of the file
  std::uint64_t missing = 0;  ///< bytes, then

  /// Where it ends by what it says of itself.
  std::uint64_t whole_end() const { return open_ended ? UINT64_MAX : end + missing; }
};

/// Elements of a file, or of what is in memory, one after the other.
class Elements {
 public:
  explicit Elements(const InputBytes& file) : file_(&file), size_(file.size().value_or(0)) {}
  Elements(const std::uint8_t* data, std::size_t size) : memory_(data), size_(size) {}

  /// The element at `at`; nothing where there is none.
  std::optional<Element> element(std::uint64_t at) {
    Element e;
    std::size_t used = 0;
    const std::uint8_t* p = bytes(at, 12);
    if (p == nullptr) return std::nullopt;
    const int id_bytes = leading_zeros(p[0]) + 1;
    if (id_bytes > 4) return std::nullopt;
    for (; used < static_cast<std::size_t>(id_bytes); ++used) e.id = e.id << 8 | p[used];
    const int size_bytes = leading_zeros(p[used]) + 1;
    if (size_bytes > 8) return std::nullopt;
    std::uint64_t length = p[used++] & (0xFFu >> size_bytes);
    bool all_ones = length == (0xFFu >> size_bytes);
    for (int i = 1; i < size_bytes; ++i, ++used) {
      all_ones = all_ones && p[used] == 0xFF;
      length = length << 8 | p[used];
    }
    e.begin = at + used;
    if (e.begin > size_) return std::nullopt;
    e.open_ended = all_ones;
    e.cut = !all_ones && length > size_ - e.begin;
    if (e.cut) e.missing = length - (size_ - e.begin);
    e.end = all_ones || e.cut ? size_ : e.begin + length;
    return e;
  }

  std::uint64_t number(const Element& e) {
    std::uint64_t v = 0;
    const std::uint8_t* p = bytes(e.begin, 8);
    for (std::uint64_t i = 0; p != nullptr && i < std::min<std::uint64_t>(e.end - e.begin, 8); ++i) v = v << 8 | p[i];
    return v;
  }

  std::vector<std::uint8_t> content(const Element& e, std::size_t most) {
    std::vector<std::uint8_t> data(static_cast<std::size_t>(std::min<std::uint64_t>(e.end - e.begin, most)));
    data.resize(read_at(e.begin, data.data(), data.size()));
    note(e.begin, data.size());
    return data;
  }
  std::string text(const Element& e) {
    constexpr std::size_t kMost = 256;
    const std::vector<std::uint8_t> data = content(e, kMost);
    return std::string(data.begin(), std::find(data.begin(), data.end(), std::uint8_t{0}));
  }

  /// Where the next cluster may begin, from `at` on; the end of the file if nowhere.
  std::uint64_t next_cluster(std::uint64_t at) const {
    constexpr std::array<std::uint8_t, 4> kId = {0x1F, 0x43, 0xB6, 0x75};
    std::vector<std::uint8_t> window;
    // The window grows, so that the work stays in proportion to the way that is gone.
    for (std::size_t reach = 256; at + kId.size() <= size_; reach = std::min(2 * reach, std::size_t{1} << 18)) {
      window.resize(reach);
      const std::size_t got = read_at(at, window.data(), window.size());
      const auto end = window.begin() + static_cast<std::ptrdiff_t>(got);
      const auto found = std::search(window.begin(), end, kId.begin(), kId.end());
      if (found != end) return at + static_cast<std::uint64_t>(found - window.begin());
      if (got < kId.size()) break;
      at += got - kId.size() + 1;
    }
    return size_;
  }

  /// `count` bytes from `at` on, zeros behind the end of the file; null where the file ends before.
  const std::uint8_t* bytes(std::uint64_t at, std::size_t count) {
    if (at >= size_) return nullptr;
    note(at, count);
    if (at < window_at_ || at + count > window_at_ + window_.size() || window_.empty()) {
      window_.assign(4096, 0);
      window_at_ = at;
      read_at(at, window_.data(), window_.size());
    }
    return window_.data() + (at - window_at_);
  }
  std::uint64_t size() const { return size_; }

  /// What was looked at, in the order of the file. What is a few bytes further on is one range with it.
  const std::vector<ByteRange>& looked_at() const { return looked_at_; }
  void note(std::uint64_t at, std::uint64_t count) {
    constexpr std::uint64_t kGap = 64;  // a range more costs more than so many bytes
    const std::uint64_t end = std::min(size_, at + count);
    if (looked_at_.empty() || at > looked_at_.back().offset + looked_at_.back().size + kGap)
      looked_at_.push_back({at, end - at});
    else
      looked_at_.back().size = std::max(looked_at_.back().size, end - std::min(end, looked_at_.back().offset));
  }

 private:
  std::size_t read_at(std::uint64_t at, void* data, std::size_t size) const {
    if (file_ != nullptr) return file_->read_at(at, data, size);
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - std::min(size_, at)));
    if (n > 0) std::memcpy(data, memory_ + at, n);
    return n;
  }

  static int leading_zeros(std::uint8_t b) { return b == 0 ? 8 : std::countl_zero(b); }

  const InputBytes* file_ = nullptr;
  const std::uint8_t* memory_ = nullptr;
  std::uint64_t size_;
  std::vector<ByteRange> looked_at_;
  std::uint64_t window_at_ = 0;
  std::vector<std::uint8_t> window_;
};

struct Track {
  std::uint64_t number = 0;
  std::uint64_t type = 0;
  bool encoded = false;  ///< compressed or encrypted
  std::string codec;
  std::vector<std::uint8_t> codec_private;
  OtherTrack shown;

  // The BITMAPINFOHEADER: its compression is the FourCC.
  static constexpr std::size_t kBitmapHeader = 40;
  bool is_ours() const {
    return number > 0 && codec == "V_MS/VFW/FOURCC" && codec_private.size() >= kBitmapHeader &&
           std::memcmp(codec_private.data() + 16, "TRVL", 4) == 0;
  }
};

Track parse_track(Elements& elements, const Element& entry) {
  constexpr std::size_t kMostPrivate = kMaxHeaderBytes + Track::kBitmapHeader;
  Track track;
  for (std::uint64_t at = entry.begin; at < entry.end;) {
    const std::optional<Element> e = elements.element(at);
    if (!e || e->whole_end() > entry.whole_end()) break;
    switch (e->id) {
      case id::kTrackNumber: track.number = elements.number(*e); break;
      case id::kTrackType: track.type = elements.number(*e); break;
      case id::kCodecId: track.codec = elements.text(*e); break;
      case id::kCodecPrivate: track.codec_private = elements.content(*e, kMostPrivate); break;
      case id::kContentEncodings: track.encoded = true; break;
      case id::kName: track.shown.name = elements.text(*e); break;
      case id::kLanguage: track.shown.language = elements.text(*e); break;
      default: break;
    }
    at = e->end;
  }
  track.shown.codec = track.codec;
  track.shown.kind = track.type == 1 ? "video" : track.type == 2 ? "sound" : track.type == 17 ? "subtitles" : "other";
  return track;
}

std::vector<Track> parse_tracks(Elements& elements, const Element& tracks) {
  constexpr std::size_t kMost = 1000;
  std::vector<Track> all;
  for (std::uint64_t at = tracks.begin; at < tracks.end && all.size() < kMost;) {
    const std::optional<Element> e = elements.element(at);
    if (!e || e->whole_end() > tracks.whole_end()) break;
    if (e->id == id::kTrackEntry) all.push_back(parse_track(elements, *e));
    at = e->end;
  }
  return all;
}

/// The segment of a Matroska file; nothing for other files.
std::optional<Element> find_segment(Elements& elements) {
  const std::optional<Element> ebml = elements.element(0);
  if (!ebml || ebml->id != id::kEbml || ebml->open_ended) return std::nullopt;
  const std::optional<Element> segment = elements.element(ebml->end);
  if (!segment || segment->id != id::kSegment) return std::nullopt;
  return segment;
}

/// How many bytes of a packet or CodecPrivate come before the first GOP or index: signature and boxes. Nothing if it
/// does not begin with a signature.
std::size_t head_bytes(const std::vector<std::uint8_t>& data) {
  if (data.size() < sizeof trivelet::kSignature ||
      std::memcmp(data.data(), trivelet::kSignature, sizeof trivelet::kSignature) != 0)
    return 0;
  std::size_t at = sizeof trivelet::kSignature;
  Box box;
  while (at + kBoxHeaderBytes <= data.size() && parse_box_header(data.data() + at, box) && !box.is("Gop ") &&
         !box.is("Indx") && box.length <= data.size() - at - kBoxHeaderBytes)
    at += kBoxHeaderBytes + static_cast<std::size_t>(box.length);
  return at;
}

/// What to do with one element after the other of a segment. Files and pipes are walked alike, so that both find the
/// same packets. No element goes on behind the one it is in: what lies in a packet lies in no other, and all packets
/// together are never larger than the file.
class Walk {
 public:
  enum class Step : std::uint8_t {
    kEnter,      ///< a cluster or block group: go on with its content
    kPart,       ///< another part of the segment
    kTimestamp,  ///< of the cluster
    kBlock,      ///< a packet of some track
    kPass,       ///< nothing of interest
    kLost,       ///< it cannot be there: go on with the next cluster
    kEnd,        ///< the segment is over
  };

  explicit Walk(const Element& segment) : segment_end_(segment.whole_end()) {}

  /// `e`: the element that begins at `at`, if there is one.
  Step step(const std::optional<Element>& e, std::uint64_t at) {
    if (at >= group_end_) group_end_ = 0;
    if (at >= cluster_end_) cluster_end_ = group_end_ = 0;
    if (at >= segment_end_) return Step::kEnd;
    if (!e) return lost();
    if (is_part_of_segment(e->id)) {  // clusters of unknown size end there, and damaged ones
      cluster_end_ = group_end_ = 0;
      if (e->id != id::kCluster) return e->open_ended ? lost() : Step::kPart;
      cluster_end_ = e->whole_end();
      return Step::kEnter;
    }
    const std::uint64_t limit = group_end_ > 0 ? group_end_ : cluster_end_ > 0 ? cluster_end_ : segment_end_;
    if (e->open_ended || e->whole_end() > limit) return lost();
    if (group_end_ > 0) return e->id == id::kBlock ? Step::kBlock : Step::kPass;
    if (cluster_end_ == 0) return Step::kPass;
    if (e->id == id::kTimestamp) return Step::kTimestamp;
    if (e->id == id::kSimpleBlock) return Step::kBlock;
    if (e->id != id::kBlockGroup) return Step::kPass;
    group_end_ = e->whole_end();
    return Step::kEnter;
  }

 private:
  Step lost() {
    cluster_end_ = group_end_ = 0;
    return Step::kLost;
  }

  std::uint64_t segment_end_;
  std::uint64_t cluster_end_ = 0;  ///< 0 = not in a cluster
  std::uint64_t group_end_ = 0;    ///< of a block group; 0 = not in one
};

}  // namespace

bool holds_stream(const std::string& path) {
  struct stat status = {};
  const bool known = path == "-" ? ::fstat(STDIN_FILENO, &status) == 0 : ::stat(path.c_str(), &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) return false;
  try {
    const InputBytes file(path);
    constexpr std::uint8_t kBegin[] = {id::kEbml >> 24, id::kEbml >> 16 & 0xFF, id::kEbml >> 8 & 0xFF,
                                       id::kEbml & 0xFF};
    std::uint8_t begin[sizeof kBegin] = {};
    (void)file.read_at(0, begin, sizeof begin);
    if (std::memcmp(begin, kBegin, sizeof begin) != 0) return false;
    Elements elements(file);
    const std::optional<Element> segment = find_segment(elements);
    for (std::uint64_t at = segment ? segment->begin : elements.size(); at < elements.size();) {
      const std::optional<Element> e = elements.element(at);
      if (!e || e->id == id::kCluster) return false;
      if (e->id == id::kTracks) {
        const std::vector<Track> tracks = parse_tracks(elements, *e);
        return std::any_of(tracks.begin(), tracks.end(), [](const Track& t) { return t.is_ours(); });
      }
      at = e->end;
    }
  } catch (const Error&) {  // opening it reports the error
  }
  return false;
}

std::optional<bool> begins_with_stream(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint8_t kBegin[] = {id::kEbml >> 24, id::kEbml >> 16 & 0xFF, id::kEbml >> 8 & 0xFF, id::kEbml & 0xFF};
  if (std::memcmp(data, kBegin, std::min(size, sizeof kBegin)) != 0) return false;
  Elements elements(data, size);
  const std::optional<Element> segment = find_segment(elements);
  if (!segment) return std::nullopt;
  for (std::uint64_t at = segment->begin; at < size;) {
    const std::optional<Element> e = elements.element(at);
    if (!e) return std::nullopt;
    if (e->id == id::kCluster) return false;
    if (e->cut) return std::nullopt;
    if (e->id == id::kTracks) {
      const std::vector<Track> tracks = parse_tracks(elements, *e);
      return std::any_of(tracks.begin(), tracks.end(), [](const Track& t) { return t.is_ours(); });
    }
    at = e->end;
  }
  return std::nullopt;
}

namespace {

std::uint64_t missing_in_matroska(const InputBytes& file) {
  Elements elements(file);
  const std::optional<Element> segment = find_segment(elements);
  if (!segment) return 0;
  if (segment->cut) return segment->missing;
  // A segment of unknown size, as recorded: its last element may have begun.
  for (std::uint64_t at = segment->begin; at < segment->end;) {
    const std::optional<Element> e = elements.element(at);
    if (!e || (!is_part_of_segment(e->id) && e->id != id::kVoid && e->id != id::kCrc)) return 0;
    if (e->cut) return e->missing;
    at = e->end;
  }
  return 0;
}

std::uint64_t big_endian(const std::uint8_t* p, int bytes) {
  std::uint64_t v = 0;
  for (int i = 0; i < bytes; ++i) v = v << 8 | p[i];
  return v;
}

/// The box that is cut at the end of an MP4 file.
struct CutBox {
  std::uint64_t missing = 0;
  bool has_index = false;  ///< all of it stands before, and the box has samples
};

CutBox cut_box_of_mp4(const InputBytes& file) {
  const std::uint64_t size = file.size().value_or(0);
  bool has_index = false, has_fragments = false;
  std::array<std::uint8_t, 16> head;
  for (std::uint64_t at = 0; at < size;) {
    if (file.read_at(at, head.data(), head.size()) < 8) return {};
    const std::string_view name(reinterpret_cast<const char*>(head.data()) + 4, 4);
    std::uint64_t length = big_endian(head.data(), 4);
    if (length == 0) return {};  // up to the end
    if (length == 1) length = big_endian(head.data() + 8, 8);
    if (length < 8) return {};
    if (length > size - at) {  // appended bytes are no box
      if (name != "mdat" && name != "moov" && name != "moof") return {};
      return {length - (size - at), name == "mdat" && has_index && !has_fragments};
    }
    has_index = has_index || name == "moov";
    has_fragments = has_fragments || name == "moof";
    at += length;
  }
  return {};
}

bool is_mp4(const std::uint8_t* head) { return std::memcmp(head + 4, "ftyp", 4) == 0; }

}  // namespace

std::uint64_t bytes_missing_at_end(const InputBytes& file) {
  std::array<std::uint8_t, 12> head{};
  if (!file.size() || file.read_at(0, head.data(), head.size()) < head.size()) return 0;
  if (is_mp4(head.data())) return cut_box_of_mp4(file).missing;
  if (std::memcmp(head.data(), "RIFF", 4) == 0 && std::memcmp(head.data() + 8, "AVI ", 4) == 0) {
    const std::uint64_t whole = load_little_endian<std::uint32_t>(head.data() + 4) + std::uint64_t{8};
    return whole > *file.size() ? whole - *file.size() : 0;
  }
  return missing_in_matroska(file);
}

bool lacks_samples_alone(const InputBytes& file) {
  std::array<std::uint8_t, 12> head{};
  if (!file.size() || file.read_at(0, head.data(), head.size()) < head.size() || !is_mp4(head.data())) return false;
  return cut_box_of_mp4(file).has_index;
}

/// Finds the packets.
class MatroskaSource::Parser {
 public:
  explicit Parser(MatroskaSource& source) : source_(source), elements_(source.file_) {}

  void parse() {
    const std::optional<Element> segment = find_segment(elements_);
    require(segment.has_value(), ErrorKind::kBadStream, source_.file_.name() + " is no Matroska file");
    Walk walk(*segment);
    std::uint64_t timestamp = 0;
    for (std::uint64_t at = segment->begin; at < elements_.size();) {
      const std::optional<Element> e = elements_.element(at);
      const Walk::Step step = walk.step(e, at);
      if (step == Walk::Step::kEnd) break;
      if (step == Walk::Step::kLost) {
        at = elements_.next_cluster(at + 1);
        continue;
      }
      if (step == Walk::Step::kEnter && e->id == id::kCluster) timestamp = 0;
      if (step == Walk::Step::kTimestamp) timestamp = elements_.number(*e);
      if (step == Walk::Step::kBlock) block(*e, timestamp);
      if (step == Walk::Step::kPart) part(*e);
      at = step == Walk::Step::kEnter ? e->begin : e->end;
    }
    require(track_.has_value(), ErrorKind::kBadStream, source_.file_.name() + " has no track of a Trivelet stream");
    require(!source_.head_.empty(), ErrorKind::kBadStream,
            source_.file_.name() + ": its Trivelet track has no header, neither in CodecPrivate nor before a GOP");
    source_.structure_ = elements_.looked_at();
  }

 private:
  void part(const Element& e) {
    if (e.id == id::kChapters) source_.side_streams_.chapters = true;
    if (e.id == id::kAttachments) source_.side_streams_.attachments = true;
    if (e.id == id::kTracks && !track_) tracks(e);
    if (e.id == id::kInfo)
      for (std::uint64_t at = e.begin; at < e.end;) {
        const std::optional<Element> field = elements_.element(at);
        if (!field) break;
        if (field->id == id::kTimestampScale) scale_ns_ = elements_.number(*field);
        source_.tick_ns_ = scale_ns_;
        at = field->end;
      }
  }

  void tracks(const Element& e) {
    for (Track& track : parse_tracks(elements_, e)) {
      if (track_ || !track.is_ours()) {
        source_.side_streams_.tracks.push_back(track.shown);
        continue;
      }
      require(!track.encoded, ErrorKind::kUnsupported,
              source_.file_.name() + ": the Trivelet track is compressed or encrypted by Matroska; write it without");
      source_.head_.assign(track.codec_private.begin() + Track::kBitmapHeader, track.codec_private.end());
      source_.head_.resize(head_bytes(source_.head_));
      source_.size_ = source_.head_.size();
      track_ = std::move(track);
    }
  }

  void block(const Element& e, std::uint64_t timestamp) {
    const std::uint8_t* p = elements_.bytes(e.begin, 12);
    if (!track_ || p == nullptr) return;
    const int length = p[0] == 0 ? 9 : std::countl_zero(p[0]) + 1;
    std::uint64_t number = p[0] & (0xFFu >> std::min(length, 8));
    for (int i = 1; i < std::min(length, 8); ++i) number = number << 8 | p[i];
    const std::uint64_t payload = e.begin + static_cast<std::uint64_t>(length) + 3;
    if (length > 8 || number != track_->number || payload > e.end) return;
    const auto relative = static_cast<std::int16_t>(p[length] << 8 | p[length + 1]);
    const int flags = p[length + 2];
    require((flags & 0x06) == 0, ErrorKind::kUnsupported,
            source_.file_.name() + ": the packets of the Trivelet track are laced; write it without lacing");
    if (source_.pieces_.empty()) {
      // Beyond some centuries it is no time.
      constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
      const std::uint64_t ticks = timestamp + static_cast<std::uint64_t>(static_cast<std::int64_t>(relative));
      if (scale_ns_ > 0 && ticks < kMost / scale_ns_)
        source_.first_block_ns_ = static_cast<std::int64_t>(ticks * scale_ns_);
    }
    packet(payload, e.end - payload, e.cut);
  }

  // Without the repetition of the stream's header. `is_cut`: more of it is missing at the end of the file.
  void packet(std::uint64_t at, std::uint64_t bytes, bool is_cut) {
    const std::uint8_t* p = elements_.bytes(at, sizeof trivelet::kSignature);
    if (p != nullptr && bytes >= sizeof trivelet::kSignature &&
        std::memcmp(p, trivelet::kSignature, sizeof trivelet::kSignature) == 0) {
      std::vector<std::uint8_t> start(
          static_cast<std::size_t>(std::min<std::uint64_t>(bytes, std::max(kMaxHeaderBytes, source_.head_.size()))));
      start.resize(source_.file_.read_at(at, start.data(), start.size()));
      if (source_.head_.empty()) {
        start.resize(head_bytes(start));
        source_.size_ = start.size();
        source_.head_ = start;
      }
      const std::vector<std::uint8_t>& head = source_.head_;
      elements_.note(at, std::min<std::uint64_t>(bytes, head.size()));
      const bool same = start.size() >= head.size() && std::equal(head.begin(), head.end(), start.begin());
      // Truncated within it: skipped to the end.
      const bool cut = is_cut && bytes < head.size();
      require(same || cut, ErrorKind::kBadStream,
              source_.file_.name() + ": the packet at byte " + std::to_string(at) +
                  " belongs to another stream than those before; files can only be joined by 'join'");
      const std::uint64_t passed = std::min<std::uint64_t>(bytes, head.size());
      at += passed;
      bytes -= passed;
    }
    if (bytes > 0 && !source_.head_.empty()) source_.add(at, bytes);  // before any header nothing has its place
  }

  MatroskaSource& source_;
  Elements elements_;
  std::optional<Track> track_;
  std::uint64_t scale_ns_ = 1'000'000;
};

MatroskaSource::MatroskaSource(const std::string& path) : file_(path) {
  require(file_.size().has_value(), ErrorKind::kUnsupported,
          file_.name() + ": a pipe; MatroskaPipe reads such Matroska in its order");
  Parser(*this).parse();
}

void MatroskaSource::add(std::uint64_t at, std::uint64_t bytes) {
  pieces_.push_back({size_, at, bytes});
  size_ += bytes;
}

std::size_t MatroskaSource::read(void* data, std::size_t size) {
  auto* out = static_cast<std::uint8_t*>(data);
  std::size_t done = 0;
  if (position_ < head_.size()) {
    done = std::min(size, head_.size() - static_cast<std::size_t>(position_));
    std::memcpy(out, head_.data() + position_, done);
    position_ += done;
  }
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), position_,
                                [](std::uint64_t position, const Piece& p) { return position < p.begin; });
  if (piece != pieces_.begin()) --piece;
  for (; done < size && piece != pieces_.end() && position_ >= piece->begin; ++piece) {
    const std::uint64_t into = position_ - piece->begin;
    if (into >= piece->bytes) continue;
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size - done, piece->bytes - into));
    const std::size_t got = file_.read_at(piece->at + into, out + done, wanted);
    done += got;
    position_ += got;
    if (got < wanted) break;
  }
  return done;
}

std::vector<ByteRange> MatroskaSource::places(std::uint64_t begin, std::uint64_t bytes) const {
  std::vector<ByteRange> found;
  const std::uint64_t end = std::min(size_, begin + std::min(bytes, size_));
  for (const Piece& p : pieces_) {
    const std::uint64_t from = std::max(begin, p.begin);
    const std::uint64_t to = std::min(end, p.begin + p.bytes);
    if (from < to) found.push_back({p.at + (from - p.begin), to - from});
  }
  return found;
}

namespace {

/// The next element in a pipe, with positions counted from the beginning; nothing at the end.
std::optional<Element> next_element(InputBytes& pipe) {
  const std::string_view ahead = pipe.peek(12);
  std::array<std::uint8_t, 12> bytes{};
  std::memcpy(bytes.data(), ahead.data(), ahead.size());
  Elements elements(bytes.data(), bytes.size());
  std::optional<Element> e = elements.element(0);
  if (!e || e->begin > ahead.size()) return std::nullopt;
  // Elements ended it with the bytes that they know.
  e->begin += pipe.position();
  e->end += pipe.position() + e->missing;
  e->cut = false;
  e->missing = 0;
  return e;
}

/// Skips to the content of the segment.
Element enter_segment(InputBytes& pipe) {
  const std::optional<Element> ebml = next_element(pipe);
  const bool known = ebml && ebml->id == id::kEbml && !ebml->open_ended;
  if (known) pipe.skip(ebml->end - pipe.position());
  const std::optional<Element> segment = known ? next_element(pipe) : std::nullopt;
  require(segment && segment->id == id::kSegment, ErrorKind::kBadStream, pipe.name() + " is no Matroska file");
  pipe.skip(segment->begin - pipe.position());
  return *segment;
}

}  // namespace

class MatroskaPipe::State : public Walk {
 public:
  using Walk::Walk;
};

MatroskaPipe::MatroskaPipe(const std::string& path)
    : file_(path), walk_(std::make_unique<State>(enter_segment(file_))) {
  while (head_.empty() && next_packet()) {
  }
  require(track_ != 0, ErrorKind::kBadStream, file_.name() + " has no track of a Trivelet stream before its packets");
  require(!head_.empty(), ErrorKind::kBadStream,
          file_.name() + ": its Trivelet track has no header, neither in CodecPrivate nor before a GOP");
}

MatroskaPipe::~MatroskaPipe() = default;

bool MatroskaPipe::next_packet() {
  while (!file_.peek(1).empty()) {
    const std::optional<Element> e = next_element(file_);
    const Walk::Step step = walk_->step(e, file_.position());
    if (step == Walk::Step::kEnd) return false;
    if (step == Walk::Step::kLost) {
      find_cluster();
      continue;
    }
    file_.skip(e->begin - file_.position());
    if (step == Walk::Step::kEnter) continue;
    if (step == Walk::Step::kBlock && block(e->end - e->begin)) return true;
    if (step == Walk::Step::kPart) {
      if (e->id == id::kTracks && track_ == 0) {
        tracks(e->end - e->begin);
        if (!head_.empty()) return true;
      }
      if (e->id == id::kChapters) side_streams_.chapters = true;
      if (e->id == id::kAttachments) side_streams_.attachments = true;
    }
    if (e->end > file_.position()) file_.skip(e->end - file_.position());
  }
  return false;
}

void MatroskaPipe::find_cluster() {
  constexpr std::array<char, 4> kId = {0x1F, 0x43, static_cast<char>(0xB6), 0x75};
  file_.skip(1);
  for (;;) {
    const std::string_view ahead = file_.peek(4096);
    const auto found = std::search(ahead.begin(), ahead.end(), kId.begin(), kId.end());
    const bool last = ahead.size() < 4096;
    file_.skip(found != ahead.end() ? static_cast<std::uint64_t>(found - ahead.begin())
               : last               ? ahead.size()
                                    : ahead.size() - kId.size() + 1);
    if (found != ahead.end() || last) return;
  }
}

void MatroskaPipe::tracks(std::uint64_t length) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  require(
      length <= kMost, ErrorKind::kUnsupported,
      file_.name() + ": " + count_of(length, "byte") + " that describe tracks; the limit is " + std::to_string(kMost));
  std::vector<std::uint8_t> data;
  // Grows with the data that arrive, whatever the length claims.
  while (data.size() < length) {
    const std::size_t have = data.size();
    data.resize(have + static_cast<std::size_t>(std::min<std::uint64_t>(length - have, 65536)));
    const std::size_t got = file_.read(data.data() + have, data.size() - have);
    data.resize(have + got);
    if (got == 0) break;
  }
  Elements elements(data.data(), data.size());
  const std::uint64_t missing = length - data.size();
  for (Track& track : parse_tracks(elements, {id::kTracks, 0, data.size(), false, missing > 0, missing})) {
    if (track_ != 0 || !track.is_ours()) {
      side_streams_.tracks.push_back(track.shown);
      continue;
    }
    require(!track.encoded, ErrorKind::kUnsupported,
            file_.name() + ": the Trivelet track is compressed or encrypted by Matroska; write it without");
    track_ = track.number;
    head_.assign(track.codec_private.begin() + Track::kBitmapHeader, track.codec_private.end());
    head_.resize(head_bytes(head_));
  }
}

/// True if it is a packet of the stream, of which left_ bytes follow.
bool MatroskaPipe::block(std::uint64_t length) {
  const std::string_view ahead = file_.peek(12);
  std::array<std::uint8_t, 12> p{};
  std::memcpy(p.data(), ahead.data(), ahead.size());
  const int digits = p[0] == 0 ? 9 : std::countl_zero(p[0]) + 1;
  std::uint64_t number = p[0] & (0xFFu >> std::min(digits, 8));
  for (int i = 1; i < std::min(digits, 8); ++i) number = number << 8 | p[static_cast<std::size_t>(i)];
  const std::uint64_t before = static_cast<std::uint64_t>(digits) + 3;
  if (digits > 8 || number != track_ || track_ == 0 || before > length || before > ahead.size()) return false;
  require((p[static_cast<std::size_t>(digits) + 2] & 0x06) == 0, ErrorKind::kUnsupported,
          file_.name() + ": the packets of the Trivelet track are laced; write it without lacing");
  file_.skip(before);
  left_ = length - before;
  const std::string_view start = file_.peek(
      static_cast<std::size_t>(std::min<std::uint64_t>(left_, head_.empty() ? kMaxHeaderBytes : head_.size())));
  if (start.size() < sizeof trivelet::kSignature ||
      std::memcmp(start.data(), trivelet::kSignature, sizeof trivelet::kSignature) != 0) {
    if (head_.empty()) file_.skip(std::exchange(left_, 0));  // before any header nothing has its place
    return !head_.empty();
  }
  std::vector<std::uint8_t> repeated(start.begin(), start.end());
  if (head_.empty()) {
    repeated.resize(head_bytes(repeated));
    head_ = repeated;
  }
  const bool cut = start.size() < head_.size() && left_ > start.size();
  require(cut || std::equal(head_.begin(), head_.end(), repeated.begin()), ErrorKind::kBadStream,
          file_.name() + ": the packet at byte " + std::to_string(file_.position()) +
              " belongs to another stream than those before; files can only be joined by 'join'");
  const std::uint64_t passed = std::min<std::uint64_t>(left_, repeated.size());
  left_ -= file_.skip(passed);
  return true;
}

std::size_t MatroskaPipe::read(void* data, std::size_t size) {
  auto* out = static_cast<std::uint8_t*>(data);
  std::size_t done = std::min(size, head_.size() - head_read_);
  if (done > 0) std::memcpy(out, head_.data() + head_read_, done);
  head_read_ += done;
  while (done < size) {
    if (left_ == 0 && !next_packet()) break;
    const std::size_t got =
        file_.read(out + done, static_cast<std::size_t>(std::min<std::uint64_t>(left_, size - done)));
    if (got == 0 && left_ > 0) break;
    done += got;
    left_ -= got;
  }
  return done;
}

void MatroskaPipe::seek(std::uint64_t) { fail(ErrorKind::kInternal, "seeking in a pipe"); }

std::int64_t MatroskaSource::clock_offset_us() const {
  if (pieces_.empty()) return 0;
  Box box;
  if (head_.size() < sizeof trivelet::kSignature + kBoxHeaderBytes ||
      !parse_box_header(head_.data() + sizeof trivelet::kSignature, box) ||
      box.length > head_.size() - sizeof trivelet::kSignature - kBoxHeaderBytes)
    return 0;
  try {
    const StreamHeader stream = parse_stream_header(head_.data() + sizeof trivelet::kSignature + kBoxHeaderBytes,
                                                    static_cast<std::size_t>(box.length));
    std::array<std::uint8_t, 4> length = {};
    const std::uint64_t at = pieces_[0].at + kBoxHeaderBytes;
    if (file_.read_at(at, length.data(), length.size()) < length.size()) return 0;
    const auto size = load_little_endian<std::uint32_t>(length.data());
    if (size < 8 || size > kMaxHeaderBytes) return 0;
    std::vector<std::uint8_t> bytes(size);
    if (file_.read_at(at, bytes.data(), bytes.size()) < bytes.size()) return 0;
    const GopHeader gop = parse_gop_header(stream, bytes.data(), bytes.size());
    const double us = static_cast<double>(gop.times[0].pts) * stream.video.time_base.value() * 1e6;
    constexpr double kMost = 1e18;
    if (!(us > -kMost && us < kMost)) return 0;
    const std::int64_t offset = static_cast<std::int64_t>(us) - first_block_ns_ / 1000;
    // Times of a coarse clock are rounded: that is no shift.
    return std::abs(offset) <= static_cast<std::int64_t>(tick_ns_ / 2000) ? 0 : offset;
  } catch (const Error&) {  // damaged: decoding says so
    return 0;
  }
}

std::unique_ptr<StreamOutput> make_matroska_output(const std::string& path, bool overwrite,
                                                   const SideStreamOptions& side_streams) {
  const FfmpegAdapter* ffmpeg = ffmpeg_adapter(path);
  require(ffmpeg != nullptr, ErrorKind::kUnsupported, path + ": this build has no FFmpeg, which writes Matroska");
  return ffmpeg->make_matroska_output(path, overwrite, side_streams);
}

}  // namespace trivelet::io
