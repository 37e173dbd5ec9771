// gzip and zlib in files of volumes. Members that fit into memory with their contents are unpacked and packed in one
// call by libdeflate, if it is available, which takes half to a third of zlib's time. zlib does all others, in threads
// of its own.
#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "codec/base/fuzzing.h"
#include "codec/base/limits.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"
#include "io/volume/volume_input.h"
#ifdef TRIVELET_HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef TRIVELET_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

namespace trivelet::io {

#ifdef TRIVELET_HAVE_LIBDEFLATE

bool have_libdeflate() { return true; }

namespace {

/// Unpacks the data from `input`'s position to the end of the file, if they give at most `unpacked` bytes. The input is
/// then at its end. Returns nothing, and leaves the input unchanged, if that needs more memory than kWholeBytes, or if
/// the data are damaged or several members: then zlib reports that, or continues.
std::optional<std::vector<std::byte>> unpack_whole(VolumeInput& input, bool zlib_format, std::uint64_t unpacked,
                                                   const Limits& limits) {
  const std::optional<std::uint64_t> size = input.feed().size();
  if (!size || *size < input.position()) return std::nullopt;
  const std::uint64_t left = *size - input.position();
  constexpr std::uint64_t kMostTimes = 1032;  // that deflate can make of a byte
  if (left > kWholeBytes || unpacked > kWholeBytes - left || unpacked > limits.unpacked || unpacked / kMostTimes > left)
    return std::nullopt;
  const std::string_view packed = input.ahead(static_cast<std::size_t>(left));
  if (packed.size() < left) return std::nullopt;
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor) return std::nullopt;
  std::vector<std::byte> out(static_cast<std::size_t>(unpacked));
  std::size_t taken = 0;
  std::size_t made = 0;
  const auto decompress = zlib_format ? libdeflate_zlib_decompress_ex : libdeflate_gzip_decompress_ex;
  if (decompress(decompressor.get(), packed.data(), packed.size(), out.data(), out.size(), &taken, &made) !=
      LIBDEFLATE_SUCCESS)
    return std::nullopt;
  const std::string_view behind = packed.substr(taken);
  if (!zlib_format && behind.starts_with("\x1f\x8b")) return std::nullopt;
  input.consume(taken);
  out.resize(made);
  return out;
}

/// Of a .gz file, which says at its end how much there is in it.
std::optional<std::vector<std::byte>> unpack_file(VolumeInput& input, const Limits& limits) {
  const std::optional<std::uint64_t> size = input.feed().size();
  if (!size || *size < 4 || *size > kWholeBytes) return std::nullopt;
  const std::string_view all = input.ahead(static_cast<std::size_t>(*size));
  if (all.size() < *size) return std::nullopt;
  std::uint64_t unpacked = 0;
  for (std::size_t i = 0; i < 4; ++i)
    unpacked |= static_cast<std::uint64_t>(static_cast<unsigned char>(all[all.size() - 4 + i])) << (8 * i);
  return unpack_whole(input, false, unpacked, limits);
}

}  // namespace

#else

bool have_libdeflate() { return false; }

namespace {
std::optional<std::vector<std::byte>> unpack_whole(VolumeInput&, bool, std::uint64_t, const Limits&) {
  return std::nullopt;
}
std::optional<std::vector<std::byte>> unpack_file(VolumeInput&, const Limits&) { return std::nullopt; }
}  // namespace

#endif

#ifdef TRIVELET_HAVE_ZLIB

bool have_zlib() { return true; }

namespace {

constexpr std::size_t kPackedBuffer = std::size_t{64} << 10;  // of packed bytes
constexpr int kGzipWindow = 15 + 16;                          // zlib's way to ask for the gzip format
constexpr int kZlibWindow = 15;
constexpr int kBareWindow = -15;  // deflate without a frame

class InflateFeed final : public Feed {
 public:
  InflateFeed(VolumeInput& input, int window, const Limits& limits)
      : input_(input), window_(window), most_(limits.unpacked) {
    const int result = inflateInit2(&stream_, window);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    require(result == Z_OK, ErrorKind::kInternal, "zlib: cannot begin");
  }
  ~InflateFeed() override { inflateEnd(&stream_); }
  InflateFeed(const InflateFeed&) = delete;
  InflateFeed& operator=(const InflateFeed&) = delete;

  std::size_t read(std::byte* data, std::size_t size) override {
    if (size == 0) return 0;
    const auto room = static_cast<uInt>(std::min<std::size_t>(size, std::size_t{1} << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = room;
    while (stream_.avail_out == room && !ended_) {
      const std::string_view in = input_.ahead(1);
      require(!in.empty(), ErrorKind::kBadStream, input_.name() + ": the compressed data ends too early");
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      stream_.avail_in = static_cast<uInt>(in.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      input_.consume(in.size() - stream_.avail_in);
      if (result == Z_STREAM_END) {
        // A .gz may have several members, one after the other.
        const std::string_view next = input_.ahead(2);
        if (window_ == kGzipWindow && next.size() >= 2 && next[0] == '\x1f' && next[1] == '\x8b')
          inflateReset(&stream_);
        else
          ended_ = true;
      } else if (result == Z_MEM_ERROR) {  // its window is allocated with the first data
        throw std::bad_alloc();
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail(ErrorKind::kBadStream, input_.name() + ": damaged compressed data" +
                                        (stream_.msg ? std::string(" (") + stream_.msg + ")" : std::string()));
      }
    }
    const std::size_t done = room - stream_.avail_out;
    unpacked_ += done;
    check_limit(unpacked_, most_, "unpacked",
                input_.name() + ": compressed data of " + count_of(unpacked_, "byte") + " or more");
    return done;
  }

 private:
  VolumeInput& input_;
  int window_;
  std::uint64_t most_;
  std::uint64_t unpacked_ = 0;
  bool ended_ = false;
  z_stream stream_ = {};
};

// The queue between the thread that unpacks or packs and the one that reads or writes: the size of pieces, and their
// number. Headers and small files need no thread.
constexpr std::size_t kPiece = std::size_t{512} << 10;
constexpr std::size_t kPieces = 4;
constexpr std::uint64_t kWorthThread = std::uint64_t{1} << 20;

/// Reads another feed ahead, in a thread of its own once enough was read. It may instead get all of it in one call:
/// `whole` is tried before a thread is started or, with `at_first`, before the first byte.
class FeedAhead final : public Feed {
 public:
  using Whole = std::function<std::optional<std::vector<std::byte>>()>;
  FeedAhead(std::unique_ptr<Feed> feed, Whole whole, bool at_first)
      : feed_(std::move(feed)), whole_(std::move(whole)), at_first_(at_first) {}
  ~FeedAhead() override {
    full_.stop();
    free_.stop();
  }
  FeedAhead(const FeedAhead&) = delete;
  FeedAhead& operator=(const FeedAhead&) = delete;

  std::size_t read(std::byte* data, std::size_t size) override {
    if (size == 0) return 0;
    if (whole_ && (at_first_ || read_ >= kWorthThread)) {
      if (auto all = std::exchange(whole_, nullptr)()) {
        piece_ = std::move(*all);
        at_ = static_cast<std::size_t>(std::min<std::uint64_t>(read_, piece_.size()));
        is_whole_ = true;
      }
    }
    if (!is_whole_ && !worker_.has_thread() && !start()) {
      const std::size_t n = feed_->read(data, size);
      read_ += n;
      return n;
    }
    if (!is_whole_ && at_ == piece_.size()) {
      if (!piece_.empty()) (void)free_.push(std::move(piece_));
      at_ = 0;
      piece_.clear();
      if (auto next = full_.pop()) piece_ = std::move(*next);
    }
    const std::size_t n = std::min(size, piece_.size() - at_);
    if (n > 0) std::memcpy(data, piece_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  bool start() {
    if (!kThreadsAhead || alone_ || read_ < kWorthThread) return false;
    alone_ = !worker_.try_begin([this] { run(); });
    return !alone_;
  }

  void run() try {
    for (std::size_t made = 0;;) {
      std::optional<std::vector<std::byte>> piece;
      if (made == kPieces) {
        if (!(piece = free_.pop())) return;
      } else if (!(piece = free_.try_pop())) {
        piece.emplace();
        ++made;
      }
      piece->resize(kPiece);
      const std::size_t n = feed_->read(piece->data(), piece->size());
      if (n == 0) break;
      piece->resize(n);
      if (!full_.push(std::move(*piece))) return;
    }
    full_.close();
  } catch (...) {
    full_.close(std::current_exception());
  }

  std::unique_ptr<Feed> feed_;  ///< the thread's, once there is one
  std::uint64_t read_ = 0;      ///< without it
  Whole whole_;                 ///< if it was not asked yet
  bool at_first_;
  bool is_whole_ = false;
  bool alone_ = false;
  std::vector<std::byte> piece_;  ///< what is being read
  std::size_t at_ = 0;            ///< of it
  StageQueue<std::vector<std::byte>> full_{kPieces};
  StageQueue<std::vector<std::byte>> free_{kPieces + 1};
  Worker worker_{"unpack"};  ///< last: it ends first
};

/// Owns the packed input too.
class GzipFile final : public Feed {
 public:
  GzipFile(std::unique_ptr<VolumeInput> packed, const Limits& limits)
      : packed_(std::move(packed)), inflate_(*packed_, kGzipWindow, limits) {}
  std::size_t read(std::byte* data, std::size_t size) override { return inflate_.read(data, size); }

 private:
  std::unique_ptr<VolumeInput> packed_;
  InflateFeed inflate_;
};

}  // namespace

std::unique_ptr<Feed> make_inflater(VolumeInput& input, bool zlib_format, std::uint64_t bytes, const Limits& limits) {
  return std::make_unique<FeedAhead>(
      std::make_unique<InflateFeed>(input, zlib_format ? kZlibWindow : kGzipWindow, limits),
      [&input, zlib_format, bytes, limits] { return unpack_whole(input, zlib_format, bytes, limits); }, true);
}

std::unique_ptr<Feed> make_deflate_reader(VolumeInput& input, const Limits& limits) {
  return std::make_unique<InflateFeed>(input, kBareWindow, limits);
}

struct Deflater::State {
  Sink sink;
  z_stream stream = {};
  std::vector<Bytef> out = std::vector<Bytef>(kPackedBuffer);

  void run(const std::byte* data, std::size_t size, int flush) {
    int result = Z_OK;
    do {
      const std::size_t piece = std::min<std::size_t>(size, std::size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data));
      stream.avail_in = static_cast<uInt>(piece);
      do {
        stream.next_out = out.data();
        stream.avail_out = static_cast<uInt>(out.size());
        result = deflate(&stream, flush);
        require(result != Z_STREAM_ERROR, ErrorKind::kInternal, "zlib: cannot pack");
        if (const std::size_t n = out.size() - stream.avail_out; n > 0) sink(out.data(), n);
      } while (stream.avail_out == 0);
      data += piece;
      size -= piece;
    } while (size > 0);
  }
};

Deflater::Deflater(Sink sink, bool zlib_format) : state_(std::make_unique<State>()) {
  state_->sink = std::move(sink);
  const int result = deflateInit2(&state_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                  zlib_format ? kZlibWindow : kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  require(result == Z_OK, ErrorKind::kInternal, "zlib: cannot begin");
}
Deflater::~Deflater() { deflateEnd(&state_->stream); }
void Deflater::write(const std::byte* data, std::size_t size) {
  if (size > 0) state_->run(data, size, Z_NO_FLUSH);
}
void Deflater::finish() { state_->run(nullptr, 0, Z_FINISH); }

#ifdef TRIVELET_HAVE_LIBDEFLATE

namespace {

/// Keeps all until it packs it.
class WholePacker final : public Packer {
 public:
  WholePacker(Sink sink, bool zlib_format, std::uint64_t bytes) : sink_(std::move(sink)), zlib_format_(zlib_format) {
    plain_.reserve(static_cast<std::size_t>(bytes));
  }
  void write(const std::byte* data, std::size_t size) override { plain_.insert(plain_.end(), data, data + size); }
  void finish() override {
    constexpr int kLevel = 6;
    const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> c(
        libdeflate_alloc_compressor(kLevel), libdeflate_free_compressor);
    if (!c) throw std::bad_alloc();
    std::vector<std::byte> packed(zlib_format_ ? libdeflate_zlib_compress_bound(c.get(), plain_.size())
                                               : libdeflate_gzip_compress_bound(c.get(), plain_.size()));
    const auto compress = zlib_format_ ? libdeflate_zlib_compress : libdeflate_gzip_compress;
    const std::size_t size = compress(c.get(), plain_.data(), plain_.size(), packed.data(), packed.size());
    require(size > 0, ErrorKind::kInternal, "libdeflate: cannot pack");
    sink_(packed.data(), size);
  }

 private:
  Sink sink_;
  bool zlib_format_;
  std::vector<std::byte> plain_;
};

}  // namespace

#endif

namespace {

/// By zlib, in a thread of its own for enough data.
class PackerAhead final : public Packer {
 public:
  PackerAhead(Sink sink, bool zlib_format) : deflater_(std::move(sink), zlib_format) {}
  ~PackerAhead() override { full_.stop(); }
  PackerAhead(const PackerAhead&) = delete;
  PackerAhead& operator=(const PackerAhead&) = delete;

  void write(const std::byte* data, std::size_t size) override {
    if (!worker_.has_thread() && !start()) {
      deflater_.write(data, size);
      written_ += size;
      return;
    }
    while (size > 0) {
      const std::size_t n = std::min(size, kPiece - piece_.size());
      piece_.insert(piece_.end(), data, data + n);
      data += n;
      size -= n;
      if (piece_.size() == kPiece) push();
    }
  }
  void finish() override {
    if (worker_.has_thread()) {
      if (!piece_.empty()) push();
      full_.close();
      worker_.wait();
    }
    deflater_.finish();
  }

 private:
  bool start() {
    if (!kThreadsAhead || alone_ || written_ < kWorthThread) return false;
    alone_ = !worker_.try_begin([this] { run(); });
    return !alone_;
  }
  void push() {
    if (full_.push(std::move(piece_))) {
      if (auto free = free_.try_pop()) piece_ = std::move(*free);
      piece_.clear();
      return;
    }
    worker_.wait();  // throws the error of the thread
    fail(ErrorKind::kInternal, "packing goes on although it has failed");
  }
  void run() try {
    while (auto piece = full_.pop()) {
      deflater_.write(piece->data(), piece->size());
      (void)free_.push(std::move(*piece));
    }
  } catch (...) {
    full_.stop();
    throw;
  }

  Deflater deflater_;  ///< the thread's, while there is one
  std::uint64_t written_ = 0;
  bool alone_ = false;
  std::vector<std::byte> piece_;
  StageQueue<std::vector<std::byte>> full_{kPieces};
  StageQueue<std::vector<std::byte>> free_{kPieces + 2};
  Worker worker_{"pack"};  ///< last: it ends first
};

}  // namespace

std::unique_ptr<Packer> make_packer(Packer::Sink sink, bool zlib_format, std::uint64_t bytes) {
#ifdef TRIVELET_HAVE_LIBDEFLATE
  if (bytes <= kWholeBytes / 2) return std::make_unique<WholePacker>(std::move(sink), zlib_format, bytes);
#endif
  (void)bytes;
  return std::make_unique<PackerAhead>(std::move(sink), zlib_format);
}

std::unique_ptr<VolumeInput> open_input(const Opener& opener, const std::string& name, bool& gzip,
                                        const Limits& limits) {
  auto input = std::make_unique<VolumeInput>(opener(), name);
  const std::string_view begin = input->ahead(2);
  gzip = begin.size() >= 2 && begin[0] == '\x1f' && begin[1] == '\x8b';
  if (!gzip) return input;
  // Most users need the header only; for all of it the file is opened again.
  const auto whole = [opener, name, limits]() {
    VolumeInput again(opener(), name);
    return unpack_file(again, limits);
  };
  return std::make_unique<VolumeInput>(
      std::make_unique<FeedAhead>(std::make_unique<GzipFile>(std::move(input), limits), whole, false), name);
}

#else

bool have_zlib() { return false; }

namespace {
[[noreturn]] void refuse(const std::string& name) {
  fail(ErrorKind::kUnsupported, name + ": is compressed, and this build has no zlib; unpack it first");
}
}  // namespace

std::unique_ptr<Feed> make_inflater(VolumeInput& input, bool, std::uint64_t, const Limits&) { refuse(input.name()); }
std::unique_ptr<Feed> make_deflate_reader(VolumeInput& input, const Limits&) { refuse(input.name()); }
std::unique_ptr<Packer> make_packer(Packer::Sink, bool, std::uint64_t) { refuse("the output"); }
struct Deflater::State {};
Deflater::Deflater(Sink, bool) { refuse("the output"); }
Deflater::~Deflater() = default;
void Deflater::write(const std::byte*, std::size_t) {}
void Deflater::finish() {}

std::unique_ptr<VolumeInput> open_input(const Opener& opener, const std::string& name, bool& gzip, const Limits&) {
  auto input = std::make_unique<VolumeInput>(opener(), name);
  const std::string_view begin = input->ahead(2);
  gzip = false;
  if (begin.size() >= 2 && begin[0] == '\x1f' && begin[1] == '\x8b') refuse(name);
  return input;
}

#endif

}  // namespace trivelet::io
