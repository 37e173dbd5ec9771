// Fuzzes the side index of CCSDS 122.0 streams as a file. An accepted index is written back unchanged.

#include <cstdint>
#include <cstdlib>

#include "codec/still/ccsds122/ccsds122.h"

using namespace trivelet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const std::vector<std::uint32_t> lengths = ccsds122::read_index(file);
    const std::vector<std::byte> again = ccsds122::write_index(lengths);
    if (again.size() != size || !std::equal(again.begin(), again.end() - 4, file.begin())) std::abort();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream) std::abort();
  }
  return 0;
}
