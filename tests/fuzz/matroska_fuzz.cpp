// Fuzzes the reader of streams in Matroska files: an option byte, then the file. Only a stream or an Error of a damaged
// or unsupported file is allowed. The stream is not longer than the file, is the same whether read at once, in pieces,
// backwards or as from a pipe, and is accepted or refused like any other.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "io/video/matroska.h"
#include "trivelet/codec.h"

namespace {

using namespace trivelet;

void must(bool ok) {
  if (!ok) std::abort();
}

void probe_found(io::MatroskaSource& source) {
  try {
    probe(source);
  } catch (const Error& e) {
    must(e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported);
  }
}

/// What is found in a file, read in every way that there is; nothing where it is refused.
std::optional<std::vector<std::byte>> read_film(const std::string& path, std::size_t file_size, std::size_t piece) {
  try {
    io::MatroskaSource source(path);
    must(source.size() <= file_size);
    (void)source.clock_offset_us();
    must(io::to_string(source.side_streams()).size() < 1000 * file_size);
    std::vector<std::byte> whole(static_cast<std::size_t>(source.size()));
    must(source.read(whole.data(), whole.size()) == whole.size());
    std::byte more;
    must(source.read(&more, 1) == 0);
    std::vector<std::byte> part(piece);
    for (std::size_t at = 0; at < whole.size(); at += piece) {
      const std::size_t from = (whole.size() - at - 1) / piece * piece;  // the last piece first
      source.seek(from);
      const std::size_t wanted = std::min(piece, whole.size() - from);
      must(source.read(part.data(), wanted) == wanted);
      must(std::equal(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(wanted),
                      whole.begin() + static_cast<std::ptrdiff_t>(from)));
    }
    source.seek(0);
    probe_found(source);
    return whole;
  } catch (const Error& e) {
    must(e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported);
    return std::nullopt;
  }
}

std::optional<std::vector<std::byte>> read_pipe(const std::string& path, std::size_t piece_size) {
  try {
    io::MatroskaPipe pipe(path);
    std::vector<std::byte> all, piece(piece_size);
    while (const std::size_t got = pipe.read(piece.data(), piece.size()))
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got));
    return all;
  } catch (const Error& e) {
    must(e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported);
    return std::nullopt;
  }
}

int fuzz_film(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  must(file >= 0 && ::write(file, data + 1, size - 1) == static_cast<ssize_t>(size - 1));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  (void)io::bytes_missing_at_end(io::InputBytes(path));  // also of MP4 and AVI
  (void)io::holds_stream(path);  // knows fewer than the reader finds: it does not look behind damage
  must(read_film(path, size - 1, 1u + data[0]) == read_pipe(path, 1u + data[0]));
  ::close(file);
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { return fuzz_film(data, size); }
