// StreamVerifier and verify_stream() of edit.h: checks of boxes, index and end, which a Decoder alone does not make.
#include "codec/base/limits.h"
#include "trivelet/edit.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/base/hash.h"
#include "codec/format/chunk_check.h"
#include "codec/format/container.h"
#include "codec/format/front_table.h"
#include "codec/format/stream_input.h"
#include "codec/format/stream_layout.h"
#include "codec/volume/volume_map.h"
#include "codec/volume/volume_mask.h"

namespace trivelet {

namespace {

/// Who checks the chunks of GOPs.
enum class Chunks : std::uint8_t { kByDecoder, kHere };

/// Checks the boxes of a stream while its bytes pass, so that a pipe is checked during decoding. In a file, the chunks
/// that the decoder checks are skipped: skippable().
class BoxChecker {
 public:
  explicit BoxChecker(Chunks chunks = Chunks::kByDecoder) : chunks_(chunks) {}

  std::vector<std::string> damage;

  std::uint64_t skippable() const { return skip_; }
  void skip(std::uint64_t n) {
    skip_ -= n;
    position_ += n;
    if (skip_ == 0) expect(kBoxHeaderBytes, &BoxChecker::box_header);
  }
  /// As skip() of bytes that are at hand.
  void skip(const std::uint8_t* p, std::size_t n) {
    if (chunks_ == Chunks::kHere) check_chunks(p, n);
    skip(n);
  }
  /// Number of bytes needed next, where none can be skipped.
  std::uint64_t needed() const { return need_ - bytes_.size(); }
  /// Takes at most needed() bytes.
  void feed(const std::uint8_t* p, std::size_t n) {
    bytes_.insert(bytes_.end(), p, p + n);
    position_ += n;
    if (bytes_.size() < need_) return;
    std::vector<std::uint8_t> bytes;
    bytes.swap(bytes_);
    need_ = 0;
    (this->*next_)(bytes);
    if (need_ == 0 && skip_ == 0) expect(kBoxHeaderBytes, &BoxChecker::box_header);
  }
  const std::optional<FrontTable>& front_table() const { return front_table_; }
  /// Records bytes of a pipe that the front table has copies of, because they cannot be read again.
  void pass(std::uint64_t at, const std::uint8_t* p, std::size_t n) {
    if (!front_table_) return;
    for (std::size_t i = first_ahead_; i < front_table_->copies.size(); ++i) {
      const FrontCopy& copy = front_table_->copies[ahead_[i]];
      const std::uint64_t from = std::max(at, copy.offset), end = copy.offset + copy.bytes.size();
      const std::uint64_t to = std::min(at + n, end);
      if (copy.offset >= at + n) break;
      if (from < to && !std::equal(p + (from - at), p + (to - at), copy.bytes.data() + (from - copy.offset)))
        report_copy(copy.offset);
      if (end <= at + n && i == first_ahead_) ++first_ahead_;
    }
  }
  /// Tells the size of the stream at its end.
  void passed(std::uint64_t bytes) {
    if (front_table_ && front_table_->stream_bytes != bytes) report_size(bytes);
  }
  void report_copy(std::uint64_t offset) {
    const std::string what = "the front table has other bytes than the stream at byte " + std::to_string(offset);
    if (std::find(damage.begin(), damage.end(), what) == damage.end()) report(what);
  }
  void report_size(std::uint64_t bytes) {
    report("the front table is of a stream of " + count_of(front_table_->stream_bytes, "byte") + ", this one has " +
           std::to_string(bytes));
  }
  std::uint64_t bytes() const { return position_; }  ///< that have been checked
  bool at_end() const { return ended_; }             ///< the end box was seen; nothing may follow
  bool lost() const { return lost_; }                ///< the following bytes cannot be divided into boxes

  void finish() {
    if (lost_) return;
    if (!ended_) report("the stream ends at byte " + std::to_string(position_) + " without its end box");
    if (ended_ && header_.video.frames > frames_)
      report("the stream header promises " + count_of(header_.video.frames, "frame") + ", the stream has " +
             std::to_string(frames_));
    if (pictures_ > 0 && !mask_.empty()) check_mask();
    if (ended_ && pictures_ > 0 && pictures_ != frames_)
      report("the volume has " + count_of(pictures_, "slice") + ", the stream " + std::to_string(frames_));
  }

  void behind(std::uint64_t bytes) {
    report((bytes > 0 ? count_of(bytes, "byte", "is", "are") : std::string("there are bytes")) +
           " behind the end of the stream");
  }

 private:
  using Handler = void (BoxChecker::*)(const std::vector<std::uint8_t>&);

  void report(const std::string& what) {
    if (damage.size() < 100) damage.push_back(what);
  }
  void lose(const std::string& what) {
    report(what);
    lost_ = true;
    skip_ = ~std::uint64_t{0} - position_;
  }
  void expect(std::uint64_t n, Handler handler) {
    need_ = n;
    next_ = handler;
  }
  // What the decoder reports where it decodes.
  void report_gop(const std::string& what) {
    unknown_gop_ = true;
    if (chunks_ == Chunks::kHere) report("the GOP packet at byte " + std::to_string(box_at_) + " " + what);
  }
  std::string place() const { return "the box '" + std::string(box_.type) + "' at byte " + std::to_string(box_at_); }

  void signature(const std::vector<std::uint8_t>&) {}  // the decoder checks it

  void box_header(const std::vector<std::uint8_t>& bytes) {
    const bool behind_gop = box_.is("Gop ");
    box_at_ = position_ - kBoxHeaderBytes;
    if (!parse_box_header(bytes.data(), box_)) {
      lose("damaged box header at byte " + std::to_string(box_at_));
      return;
    }
    const auto take = [&](std::uint64_t most, Handler handler) {
      checked_ = handler;
      handler = &BoxChecker::checked;
      if (box_.length > most) {
        report(place() + " has " + count_of(box_.length, "byte") + ", at most " + std::to_string(most) + " make sense");
        skip_ = box_.length;
      } else if (box_.length > 0) {
        expect(box_.length, handler);
      } else {
        (this->*handler)({});
      }
    };
    skip_ = 0;
    if (box_.is("Head")) {
      if (have_header_) report(place() + " is a second stream header");
      take(kMaxHeaderBytes, &BoxChecker::head);
    } else if (box_.is("Gop ")) {
      if (indexed_) report(place() + " stands behind the index");
      if (box_.length < 8)
        lose(place() + " is too short");
      else
        expect(4, &BoxChecker::gop_size);
    } else if (box_.is("part")) {
      if (!behind_gop) report(place() + " does not follow a GOP");
      take(behind_gop ? kMaxExtraBytes : 0, &BoxChecker::part);
    } else if (box_.is(kFrontTableBox)) {
      if (box_at_ != after_head_) report(place() + " does not follow the header directly");
      take(kMaxExtraBytes, &BoxChecker::table);
    } else if (box_.is("Volm")) {
      take(kMaxExtraBytes, &BoxChecker::map);
    } else if (box_.is("Mask")) {
      take(kMaxExtraBytes, &BoxChecker::mask);
    } else if (box_.is("Indx")) {
      if (indexed_) report(place() + " is a second index");
      index_at_ = box_at_;
      // A number has at most 10 bytes; twice the sum allows for later versions.
      take(2 * (15 + gops_.size() * (71 + 12 * std::uint64_t{header_.layers})), &BoxChecker::index);
      indexed_ = true;
    } else if (box_.is("Done")) {
      take(kEndPayloadBytes, &BoxChecker::end);
    } else {
      take(kMaxExtraBytes, &BoxChecker::other);
    }
  }

  // Every payload except a GOP's ends in a checksum.
  void checked(const std::vector<std::uint8_t>& bytes) {
    if (crc_matches(bytes.data(), bytes.size()))
      (this->*checked_)(bytes);
    else if (box_.is("Indx"))
      report("the index at byte " + std::to_string(box_at_) + " is damaged (its checksum does not match)");
    else if (box_.is("Done"))
      report("the end of the stream, at byte " + std::to_string(box_at_) + ", is damaged");
    else
      report(place() + " is damaged");
    ended_ = ended_ || box_.is("Done");
  }

  void other(const std::vector<std::uint8_t>&) {}

  void table(const std::vector<std::uint8_t>& bytes) {
    if (box_at_ != after_head_ || bytes[0] != kFrontTableVersion) return;
    front_table_ = parse_front_table(bytes.data(), bytes.size() - kBoxCrcBytes);
    if (!front_table_) return report(place() + " is damaged");
    const std::vector<FrontCopy>& copies = front_table_->copies;
    ahead_.resize(copies.size());
    std::iota(ahead_.begin(), ahead_.end(), std::size_t{0});
    std::sort(ahead_.begin(), ahead_.end(), [&](auto a, auto b) { return copies[a].offset < copies[b].offset; });
  }

  void head(const std::vector<std::uint8_t>& bytes) {
    if (have_header_) return;
    header_ = parse_stream_header(bytes.data(), bytes.size());  // the decoder has parsed it before
    after_head_ = box_at_ + kBoxHeaderBytes + bytes.size();
    have_header_ = true;
  }

  void gop_size(const std::vector<std::uint8_t>& bytes) {
    gop_bytes_ = bytes;
    const auto n = load_little_endian<std::uint32_t>(bytes.data());
    if (n < 8 || n > kMaxHeaderBytes || n > box_.length) {
      report_gop("is damaged");
      skip_ = box_.length - 4;
    } else {
      expect(n - 4, &BoxChecker::gop_header);
    }
  }

  void gop_header(const std::vector<std::uint8_t>& bytes) {
    gop_bytes_.insert(gop_bytes_.end(), bytes.begin(), bytes.end());
    skip_ = box_.length - gop_bytes_.size();
    try {
      gop_ = parse_gop_header(header_, gop_bytes_.data(), gop_bytes_.size());
    } catch (const Error& e) {
      report_gop(std::string("is damaged: ") + e.what());
      return;
    }
    if (chunks_ == Chunks::kHere) begin_chunks();
    if (gop_.index != gops_.size() && !unknown_gop_)
      report(place() + " is number " + std::to_string(gop_.index) + ", expected " + std::to_string(gops_.size()));
    gops_.push_back(describe_gop(header_, gop_, box_at_, kBoxHeaderBytes + box_.length));
    frames_ = gop_.first_frame + static_cast<std::uint64_t>(gop_.frames);
  }

  // The sections of motion and the chunks fill the packet in this order.
  void begin_chunks() {
    entries_ = gop_.motion;
    entries_.insert(entries_.end(), gop_.chunks.begin(), gop_.chunks.end());
    std::reverse(entries_.begin(), entries_.end());
    chunk_bytes_ = 0;
    chunk_crc_ = 0;
    if (gop_.body_bytes != skip_) {
      entries_.clear();
      report_gop("is damaged: its chunks do not fill it");
    }
  }
  void check_chunks(const std::uint8_t* p, std::size_t n) {
    while (!entries_.empty()) {
      const ChunkEntry& entry = entries_.back();
      const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(n, entry.size - chunk_bytes_));
      chunk_crc_ = crc32c(p, take, chunk_crc_);
      chunk_bytes_ += take;
      p += take;
      n -= take;
      if (chunk_bytes_ < entry.size) return;
      if (chunk_crc_ != entry.crc && entry.size > 0) {
        entries_.clear();  // one line for each packet
        return report("the GOP packet at byte " + std::to_string(box_at_) + ", frames " +
                      std::to_string(gop_.first_frame) + ":" + std::to_string(frames_) + ", has a wrong checksum");
      }
      entries_.pop_back();
      chunk_bytes_ = 0;
      chunk_crc_ = 0;
    }
  }

  void part(const std::vector<std::uint8_t>& bytes) {
    const bool known = !bytes.empty() && bytes[0] == 1;
    if (known && !unknown_gop_ && !parse_checks(gop_, bytes.data(), bytes.size())) report(place() + " is damaged");
  }

  void map(const std::vector<std::uint8_t>& bytes) {
    try {
      const VolumeMap map = parse_volume_map(bytes.data(), bytes.size() - kBoxCrcBytes);
      pictures_ = map.slices * map.volumes;
      volume_ = {map.format, header_.video.width, header_.video.height, map.slices, map.volumes};
    } catch (const Error& e) {
      report(place() + ": " + e.what());
    }
  }

  void mask(const std::vector<std::uint8_t>& bytes) { mask_ = bytes; }  // kept, because the map may follow it

  void check_mask() {
    try {
      MaskDecoder decoder(volume_, mask_.data(), mask_.size() - kBoxCrcBytes);
      for (std::uint64_t s = 0; s < volume_.all_slices(); ++s) (void)decoder.marks(s);
    } catch (const Error& e) {
      report(std::string("the box 'Mask': ") + e.what());
    }
  }

  void index(const std::vector<std::uint8_t>& bytes) {
    try {
      const std::vector<GopInfo> said = parse_index(bytes.data(), bytes.size(), header_.layers);
      if (unknown_gop_) return;
      const bool same = std::equal(said.begin(), said.end(), gops_.begin(), gops_.end(), [](auto& a, auto& b) {
        return a.offset == b.offset && a.bytes == b.bytes && a.first_frame == b.first_frame && a.frames == b.frames &&
               a.key == b.key && a.predicts_keys == b.predicts_keys && a.begin_pts == b.begin_pts &&
               a.end_pts == b.end_pts &&
               std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                          [](auto& x, auto& y) { return x.bytes == y.bytes; });
      });
      if (!same) report("the index at byte " + std::to_string(box_at_) + " is not that of the packets");
    } catch (const Error& e) {
      report("the index at byte " + std::to_string(box_at_) + " is damaged (" + e.what() + ")");
    }
  }

  void end(const std::vector<std::uint8_t>& bytes) {
    ended_ = true;
    StreamEnd end;
    if (!parse_stream_end(bytes.data(), bytes.size(), end))
      report("the end of the stream, at byte " + std::to_string(box_at_) + ", is damaged");
    else if (!indexed_)
      report("the stream has no index");
    else if (end.index_offset != index_at_ || (!unknown_gop_ && end.frames != frames_))
      report("the end of the stream, at byte " + std::to_string(box_at_) + ", does not fit what is before it");
  }

  Chunks chunks_;
  std::vector<ChunkEntry> entries_;  // of the current GOP, the next one last
  std::uint64_t chunk_bytes_ = 0;    // of the next one that have passed
  std::uint32_t chunk_crc_ = 0;      // theirs
  std::uint64_t position_ = 0;
  std::uint64_t need_ = sizeof kSignature;
  std::uint64_t skip_ = 0;
  Handler next_ = &BoxChecker::signature;
  Handler checked_ = nullptr;  // handler of the payload if its checksum is right
  std::vector<std::uint8_t> bytes_;
  Box box_;
  std::uint64_t box_at_ = 0;
  std::vector<std::uint8_t> gop_bytes_;
  StreamHeader header_;
  GopHeader gop_;
  std::vector<GopInfo> gops_;
  std::uint64_t frames_ = 0;    // end of the last GOP
  std::uint64_t pictures_ = 0;  // slices of the volume; 0 = a video
  VolumeDescription volume_;
  std::vector<std::uint8_t> mask_;  // payload of the mask box
  std::uint64_t index_at_ = 0;
  bool have_header_ = false;
  std::uint64_t after_head_ = 0;
  std::optional<FrontTable> front_table_;
  std::vector<std::size_t> ahead_;  // copies in the front table, in stream order
  std::size_t first_ahead_ = 0;     // earlier ones have passed
  bool unknown_gop_ = false;        // a GOP could not be read, so the index cannot be compared
  bool indexed_ = false;
  bool ended_ = false;
  bool lost_ = false;
};

/// Shows a checker what the decoder reads from a pipe.
class WatchedPipe final : public ByteSource {
 public:
  WatchedPipe(ByteSource& source, BoxChecker& checker) : source_(source), checker_(checker) {}
  std::size_t read(void* data, std::size_t size) override {
    const std::size_t got = source_.read(data, size);
    const auto* p = static_cast<const std::uint8_t*>(data);
    checker_.pass(bytes_, p, got);
    bytes_ += got;
    for (std::size_t at = 0; at < got && !checker_.at_end() && !checker_.lost();) {
      const bool skip = checker_.skippable() > 0;
      const std::uint64_t n = std::min<std::uint64_t>(got - at, skip ? checker_.skippable() : checker_.needed());
      if (skip)
        checker_.skip(p + at, static_cast<std::size_t>(n));
      else
        checker_.feed(p + at, static_cast<std::size_t>(n));
      at += static_cast<std::size_t>(n);
    }
    return got;
  }
  bool seekable() const override { return false; }
  void seek(std::uint64_t) override { fail(ErrorKind::kInternal, "seek in a pipe"); }
  std::uint64_t size() const override { fail(ErrorKind::kInternal, "the size of a pipe"); }
  std::uint64_t bytes() const { return bytes_; }  ///< that have passed

 private:
  ByteSource& source_;
  BoxChecker& checker_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

namespace {

// Compares the front table's copies with the originals.
void check_front_table(StreamInput& in, BoxChecker& checker) {
  const FrontTable& table = *checker.front_table();
  if (table.stream_bytes != in.size()) return checker.report_size(in.size());
  std::vector<std::uint8_t> bytes;
  for (const FrontCopy& copy : table.copies) {
    in.seek(copy.offset);
    bytes.clear();
    if (!in.append(bytes, copy.bytes.size()) || bytes != copy.bytes) checker.report_copy(copy.offset);
  }
}

}  // namespace

std::vector<std::string> check_boxes(ByteSource& source) {
  std::uint64_t bytes_read = 0;
  source.seek(0);
  StreamInput in(source, bytes_read);
  BoxChecker checker;
  std::vector<std::uint8_t> buffer(1 << 16);
  while (!checker.lost() && !checker.at_end()) {
    if (checker.skippable() > 0) {
      const std::uint64_t n = std::min(checker.skippable(), in.size() - in.position());
      if (n == 0) break;
      in.skip(n);
      checker.skip(n);
    } else {
      const std::size_t n =
          in.read(buffer.data(), static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), checker.needed())));
      if (n == 0) break;
      checker.feed(buffer.data(), n);
    }
  }
  checker.finish();
  if (checker.at_end() && in.position() < in.size()) checker.behind(in.size() - in.position());
  if (checker.front_table()) check_front_table(in, checker);
  return std::move(checker.damage);
}

struct StreamVerifier::State {
  ByteSource& source;
  BoxChecker checker;
  WatchedPipe pipe;
  std::unique_ptr<Decoder> decoder;
  VerifyResult result;

  explicit State(ByteSource& s) : source(s), pipe(s, checker) {}
};

StreamVerifier::StreamVerifier(ByteSource& source, DecoderParams params, const Backend* backend)
    : state_(std::make_unique<State>(source)) {
  params.keep_partial = true;  // find and locate all damage; do not use the front table's copies
  params.differences = true;   // deliver residuals of predicted volumes, to which their hashes apply
  ByteSource& from = source.seekable() ? source : static_cast<ByteSource&>(state_->pipe);
  state_->decoder = std::make_unique<Decoder>(from, params, backend);
}

StreamVerifier::~StreamVerifier() = default;

const StreamInfo& StreamVerifier::info() const { return state_->decoder->info(); }
const VideoInfo& StreamVerifier::output() const { return state_->decoder->output(); }
Gop StreamVerifier::make_gop() const { return state_->decoder->make_gop(); }

bool StreamVerifier::pull(Gop& gop) {
  if (!state_->decoder->pull(gop)) return false;
  state_->result.frames += static_cast<std::uint64_t>(gop.frames());
  return true;
}

VerifyResult StreamVerifier::finish() {
  State& s = *state_;
  VerifyResult& result = s.result;
  const CodecStats& stats = s.decoder->stats();
  result.gops = stats.gops;
  result.damaged_gops = stats.damaged_gops;
  result.damage = stats.damage;
  std::vector<std::string> more;
  if (s.source.seekable()) {
    more = check_boxes(s.source);
  } else {
    std::uint8_t byte;
    s.checker.finish();
    if (s.checker.at_end() && s.source.read(&byte, 1) == 1)
      s.checker.behind(0);
    else
      s.checker.passed(s.pipe.bytes());
    more = std::move(s.checker.damage);
  }
  for (std::string& line : more)
    if (std::find(result.damage.begin(), result.damage.end(), line) == result.damage.end())
      result.damage.push_back(std::move(line));
  return result;
}

struct CheckedSource::State {
  BoxChecker checker{Chunks::kHere};
  WatchedPipe pipe;

  explicit State(ByteSource& source) : pipe(source, checker) {}
};

CheckedSource::CheckedSource(ByteSource& source) : state_(std::make_unique<State>(source)) {}
CheckedSource::~CheckedSource() = default;
std::size_t CheckedSource::read(void* data, std::size_t size) { return state_->pipe.read(data, size); }
bool CheckedSource::seekable() const { return false; }
void CheckedSource::seek(std::uint64_t position) { state_->pipe.seek(position); }
std::uint64_t CheckedSource::size() const { return state_->pipe.size(); }

std::vector<std::string> CheckedSource::finish() {
  BoxChecker& checker = state_->checker;
  checker.finish();
  if (checker.at_end() && checker.bytes() < state_->pipe.bytes())
    checker.behind(state_->pipe.bytes() - checker.bytes());
  else
    checker.passed(state_->pipe.bytes());
  return std::move(checker.damage);
}

VerifyResult verify_stream(ByteSource& source, const DecoderParams& params, const Backend* backend) {
  StreamVerifier verifier(source, params, backend);
  Gop gop = verifier.make_gop();
  while (verifier.pull(gop)) {
  }
  return verifier.finish();
}

}  // namespace trivelet
