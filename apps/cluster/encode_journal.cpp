// Reads and writes the file of encode --resume.

#include "apps/cluster/encode_journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "codec/base/bytes.h"

namespace trivelet::cli {

namespace {

constexpr std::size_t kHead = sizeof(std::uint64_t) + sizeof(std::uint32_t);
// The last byte is the version of the format of entries.
constexpr std::array<std::uint8_t, 8> kJournalSignature = {0x89, 'T', 'V', 'L', 'J', '\n', 0x1a, 2};
constexpr std::uint8_t kIdentity = 0, kRecord = 1, kErrors = 2;  // first byte of an entry

// Another build may code differently, or write GOPs with another meaning.
void put_program(ByteWriter& out) {
  std::ifstream program("/proc/self/exe", std::ios::binary);
  std::vector<char> piece(std::size_t{1} << 20);
  std::uint64_t bytes = 0;
  std::uint32_t sum = 0;
  while (program.read(piece.data(), static_cast<std::streamsize>(piece.size())), program.gcount() > 0) {
    sum = crc32c(piece.data(), static_cast<std::size_t>(program.gcount()), sum);
    bytes += static_cast<std::uint64_t>(program.gcount());
  }
  require(bytes > 0 && !program.bad(), ErrorKind::kIo,
          "cannot read /proc/self/exe, which --resume needs to recognise files of the same program");
  out.varint(bytes);
  out.fixed(sum);
}

}  // namespace

EncodeJournal::EncodeJournal(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  require(file_ >= 0, ErrorKind::kIo, "cannot create " + path + ": " + std::strerror(errno));
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(file_);
    fail(ErrorKind::kIo, "another process is writing " + path);
  }
}

EncodeJournal::~EncodeJournal() { ::close(file_); }

bool EncodeJournal::read(std::uint64_t at, void* data, std::size_t size) const {
  auto* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::pread(file_, to, size, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    require(got >= 0, ErrorKind::kIo, "cannot read " + path_ + ": " + std::strerror(errno));
    if (got == 0) return false;
    to += got;
    at += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool EncodeJournal::read_entry(std::uint64_t at, std::vector<std::uint8_t>& content) const {
  std::uint8_t head[kHead];
  const off_t size = ::lseek(file_, 0, SEEK_END);
  if (!read(at, head, kHead)) return false;
  const auto length = load_little_endian<std::uint64_t>(head);
  if (length == 0 || size < 0 || length > static_cast<std::uint64_t>(size) - at - kHead) return false;
  content.resize(static_cast<std::size_t>(length));
  return read(at + kHead, content.data(), content.size()) &&
         has_crc32c(content.data(), content.size(), load_little_endian<std::uint32_t>(head + sizeof length));
}

void EncodeJournal::begin(const std::vector<std::uint8_t>& identity) {
  ByteWriter own;
  own.fixed(kIdentity);
  put_program(own);
  own.bytes.insert(own.bytes.end(), identity.begin(), identity.end());
  const off_t size = ::lseek(file_, 0, SEEK_END);
  require(size >= 0, ErrorKind::kIo, "cannot read " + path_ + ": " + std::strerror(errno));
  std::array<std::uint8_t, kJournalSignature.size()> signature{};
  const auto begun =
      std::min(signature.size(), static_cast<std::size_t>(size));  // the rest of an entry that a run was writing when
                                                                   // it stopped
  require(read(0, signature.data(), begun) &&
              std::equal(signature.begin(), signature.begin() + begun, kJournalSignature.begin()),
          ErrorKind::kBadArgument,
          path_ + " is not a journal of this version of the program; remove the file, or choose another output");
  std::vector<std::uint8_t> content;
  if (read_entry(kJournalSignature.size(), content)) {
    require(content == own.bytes, ErrorKind::kBadArgument,
            path_ +
                " was left by a run with another input or other options, or by another build of the program; start "
                "that one again, or remove the file");
    for (end_ = kJournalSignature.size() + kHead + content.size(); read_entry(end_, content);
         end_ += kHead + content.size()) {
      if (content[0] == kRecord) {
        const std::uint64_t number = GopRecord::parse({content.begin() + 1, content.end()}).number;
        places_[number].record = end_;
        places_[number].length = content.size();
      } else if (content[0] == kErrors) {
        ByteReader in(content.data() + 1, content.size() - 1, "errors of a GOP");
        std::uint64_t number = 0;
        in.varint(number);
        std::vector<double> errors(in.left() / sizeof(double));
        for (double& e : errors) in.real(e);
        places_[number].errors = std::move(errors);
      }
    }
  }
  require(::ftruncate(file_, static_cast<off_t>(end_)) == 0, ErrorKind::kIo,
          "cannot write " + path_ + ": " + std::strerror(errno));
  if (end_ > 0) return;
  write({kJournalSignature.begin(), kJournalSignature.end()});
  append(own.bytes);
}

bool EncodeJournal::take(std::uint64_t number, GopRecord& record, std::vector<double>& errors) {
  const auto found = places_.find(number);
  std::vector<std::uint8_t> content;
  if (found == places_.end() || found->second.length == 0 || !read_entry(found->second.record, content)) return false;
  record = GopRecord::parse({content.begin() + 1, content.end()});
  errors = found->second.errors;
  return true;
}

void EncodeJournal::append(const std::vector<std::uint8_t>& content) {
  std::vector<std::uint8_t> all(kHead);
  store_little_endian(static_cast<std::uint64_t>(content.size()), all.data());
  store_little_endian(crc32c(content.data(), content.size()), all.data() + sizeof(std::uint64_t));
  all.insert(all.end(), content.begin(), content.end());
  write(all);
}

void EncodeJournal::write(const std::vector<std::uint8_t>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(end_ + done));
    if (n < 0 && errno == EINTR) continue;
    require(n >= 0, ErrorKind::kIo, "cannot write " + path_ + ": " + std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
  end_ += bytes.size();
}

void EncodeJournal::add(const GopRecord& record) {
  std::vector<std::uint8_t> content = record.serialise();
  content.insert(content.begin(), kRecord);
  append(content);
}

void EncodeJournal::add_errors(std::uint64_t number, const std::vector<double>& errors) {
  ByteWriter out;
  out.fixed(kErrors);
  out.varint(number);
  for (const double e : errors) out.real(e);
  append(out.bytes);
}

void EncodeJournal::remove() { ::unlink(path_.c_str()); }

}  // namespace trivelet::cli
