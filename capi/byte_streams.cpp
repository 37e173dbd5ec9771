#include "capi/byte_streams.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace trivelet::capi {

namespace {

// Memory of the caller, as far as it reaches; what is beyond is counted, that the caller may know how much to bring.
class BufferOutput final : public Output {
 public:
  BufferOutput(const Handle& handle, void* data, std::uint64_t capacity)
      : handle_(handle), data_(static_cast<std::byte*>(data)), capacity_(capacity) {}
  void write(const void* data, std::size_t size) override {
    handle_.check_cancelled();
    const std::uint64_t room = capacity_ - std::min(capacity_, size_);
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(room, size));
    if (n > 0) std::memcpy(data_ + size_, data, n);
    size_ += size;
  }
  std::unique_ptr<ReadBack> read_back() override { return std::make_unique<Back>(*this); }
  void commit() override {
    if (size_ > capacity_) throw BufferTooSmall("bytes", capacity_, size_);
  }
  std::uint64_t size() const override { return size_; }

 private:
  class Back final : public ReadBack {
   public:
    explicit Back(BufferOutput& output) : output_(output) {}
    std::unique_ptr<ByteSource> open() override {
      output_.commit();
      return std::make_unique<MemorySource>(output_.data_, static_cast<std::size_t>(output_.size_));
    }
    void replace(std::uint64_t position, const void* data, std::size_t size) override {
      std::memcpy(output_.data_ + position, data, size);
    }

   private:
    BufferOutput& output_;
  };
  const Handle& handle_;
  std::byte* data_;
  std::uint64_t capacity_;
  std::uint64_t size_ = 0;
};

class KeptOutput final : public Output {
 public:
  KeptOutput(const Handle& handle, std::vector<std::byte>& kept) : handle_(handle), kept_(kept) { kept_.clear(); }
  void write(const void* data, std::size_t size) override {
    handle_.check_cancelled();
    const auto* p = static_cast<const std::byte*>(data);
    kept_.insert(kept_.end(), p, p + size);
  }
  std::unique_ptr<ReadBack> read_back() override { return std::make_unique<Back>(kept_); }
  std::uint64_t size() const override { return kept_.size(); }

 private:
  class Back final : public ReadBack {
   public:
    explicit Back(std::vector<std::byte>& kept) : kept_(kept) {}
    std::unique_ptr<ByteSource> open() override { return std::make_unique<MemorySource>(kept_.data(), kept_.size()); }
    void replace(std::uint64_t position, const void* data, std::size_t size) override {
      std::memcpy(kept_.data() + position, data, size);
    }

   private:
    std::vector<std::byte>& kept_;
  };
  const Handle& handle_;
  std::vector<std::byte>& kept_;
};

class FileOutput final : public Output {
 public:
  FileOutput(const Handle& handle, const tvl_sink& sink) : handle_(handle), file_(sink.path, sink.overwrite != 0) {}
  void write(const void* data, std::size_t size) override {
    handle_.check_cancelled();
    file_.write(data, size);
    size_ += size;
  }
  std::unique_ptr<ReadBack> read_back() override { return FileReadBack::of(file_); }
  void commit() override { file_.commit(); }
  std::uint64_t size() const override { return size_; }

 private:
  const Handle& handle_;
  FileSink file_;
  std::uint64_t size_ = 0;
};

class CallbackOutput final : public Output {
 public:
  CallbackOutput(const Handle& handle, const tvl_sink& sink) : handle_(handle), sink_(sink) {}
  void write(const void* data, std::size_t size) override {
    handle_.check_cancelled();
    if (size == 0) return;  // data may be null then
    const int result = sink_.write(sink_.user, data, size);
    require(result == 0, ErrorKind::kIo,
            "the caller's write function returned " + std::to_string(result) + " for " + std::to_string(size) +
                " bytes at byte " + std::to_string(size_));
    size_ += size;
  }
  std::uint64_t size() const override { return size_; }

 private:
  const Handle& handle_;
  tvl_sink sink_;
  std::uint64_t size_ = 0;
};

// Gathers packets; the caller gets each when it is whole.
class PacketOutput final : public Output {
 public:
  PacketOutput(const Handle& handle, const tvl_sink& sink) : handle_(handle), sink_(sink) {}
  void write(const void* data, std::size_t size) override {
    handle_.check_cancelled();
    const auto* p = static_cast<const std::byte*>(data);
    packet_.insert(packet_.end(), p, p + size);
    size_ += size;
  }
  void end_packet(const PacketInfo& packet) override {
    const tvl_packet info = to_packet(packet);
    const int result = sink_.packet(sink_.user, &info, packet_.data(), packet_.size());
    require(result == 0, ErrorKind::kIo,
            "the caller's packet function returned " + std::to_string(result) + " for a packet of " +
                std::to_string(packet_.size()) + " bytes");
    packet_.clear();
  }
  std::uint64_t size() const override { return size_; }

 private:
  const Handle& handle_;
  tvl_sink sink_;
  std::vector<std::byte> packet_;
  std::uint64_t size_ = 0;
};

class CallbackSource final : public ByteSource {
 public:
  explicit CallbackSource(const tvl_source& source) : source_(source) {}
  std::size_t read(void* data, std::size_t size) override {
    const std::int64_t n = source_.read(source_.user, data, size);
    require(n >= 0 && static_cast<std::uint64_t>(n) <= size, ErrorKind::kIo,
            "the caller's read function returned " + std::to_string(n) + " for " + std::to_string(size) + " bytes");
    return static_cast<std::size_t>(n);
  }
  bool seekable() const override { return source_.seek != nullptr; }
  void seek(std::uint64_t position) override {
    require(position <= source_.size, ErrorKind::kIo,
            "seek to " + std::to_string(position) + " in " + std::to_string(source_.size) + " bytes");
    const int result = source_.seek(source_.user, position);
    require(result == 0, ErrorKind::kIo,
            "the caller's seek function returned " + std::to_string(result) + " for byte " + std::to_string(position));
  }
  std::uint64_t size() const override { return source_.size; }

 private:
  tvl_source source_;
};

// Looks at the handle whenever bytes are read.
class HandleSource final : public ByteSource {
 public:
  HandleSource(const Handle& handle, std::unique_ptr<ByteSource> of) : handle_(handle), of_(std::move(of)) {}
  std::size_t read(void* data, std::size_t size) override {
    handle_.check_cancelled();
    return of_->read(data, size);
  }
  bool seekable() const override { return of_->seekable(); }
  void seek(std::uint64_t position) override { of_->seek(position); }
  std::uint64_t size() const override { return of_->size(); }

 private:
  const Handle& handle_;
  std::unique_ptr<ByteSource> of_;
};

}  // namespace

tvl_sink default_sink() {
  tvl_sink s{};
  s.struct_size = sizeof s;
  return s;
}

tvl_packet to_packet(const PacketInfo& packet) {
  tvl_packet p{};
  p.struct_size = sizeof p;
  p.kind = packet.kind == PacketInfo::Kind::kHead  ? TVL_PACKET_HEAD
           : packet.kind == PacketInfo::Kind::kGop ? TVL_PACKET_GOP
                                                   : TVL_PACKET_END;
  p.key = packet.key;
  p.first_frame = packet.first_frame;
  p.frames = packet.frames;
  p.pts = packet.begin_pts;
  p.duration = ticks_between(packet.begin_pts, packet.end_pts);
  return p;
}

tvl_source default_source() {
  tvl_source s{};
  s.struct_size = sizeof s;
  return s;
}

std::unique_ptr<Output> open_output(const Handle& handle, const tvl_sink* given, std::vector<std::byte>& kept) {
  const tvl_sink sink = read_struct(given, default_sink(), "tvl_sink");
  const int ways = (sink.path != nullptr) + (sink.data != nullptr) + (sink.write != nullptr) + (sink.packet != nullptr);
  require(ways <= 1, ErrorKind::kBadArgument, "a tvl_sink with more than one of path, data, write and packet");
  if (sink.packet) return std::make_unique<PacketOutput>(handle, sink);
  if (sink.path) return std::make_unique<FileOutput>(handle, sink);
  if (sink.write) return std::make_unique<CallbackOutput>(handle, sink);
  if (sink.data) return open_output(handle, sink.data, sink.capacity);
  return std::make_unique<KeptOutput>(handle, kept);
}

std::unique_ptr<Output> open_output(const Handle& handle, void* data, std::uint64_t capacity) {
  require(data != nullptr || capacity == 0, ErrorKind::kBadArgument,
          "memory at NULL for " + std::to_string(capacity) + " bytes");
  return std::make_unique<BufferOutput>(handle, data, capacity);
}

std::unique_ptr<ByteSource> open_source(const Handle& handle, const tvl_source* given) {
  const tvl_source source = read_struct(not_null(given, "source"), default_source(), "tvl_source");
  const int ways = (source.path != nullptr) + (source.data != nullptr) + (source.read != nullptr);
  require(ways == 1, ErrorKind::kBadArgument,
          "a tvl_source with " + std::to_string(ways) + " of path, data and read; it needs one");
  std::unique_ptr<ByteSource> of;
  if (source.path)
    of = std::make_unique<FileSource>(source.path);
  else if (source.data)
    of = std::make_unique<MemorySource>(source.data, static_cast<std::size_t>(source.size));
  else
    of = std::make_unique<CallbackSource>(source);
  return std::make_unique<HandleSource>(handle, std::move(of));
}

}  // namespace trivelet::capi
