// Checksums and hashes, against published values and each other.
#include <gtest/gtest.h>

#include <random>

#include "codec/base/gop_hash.h"
#include "codec/base/hash.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

using namespace test;

// RFC 3720's check value, and the instruction against the tables at every length and offset.
TEST(Hash, Crc32cIsTheSameWithAndWithoutAnInstruction) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c_portable("123456789", 9), 0xE3069283u);
  std::mt19937 random(1);
  std::uint8_t bytes[100];
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random());
  for (std::size_t from = 0; from < 9; ++from)
    for (std::size_t n = 0; from + n <= sizeof bytes; ++n)
      ASSERT_EQ(crc32c(bytes + from, n, 7), crc32c_portable(bytes + from, n, 7)) << from << " " << n;
}

// Test values of the xxHash project, and pieces against the whole.
TEST(Hash, Xxh64IsThatOfXxhash) {
  EXPECT_EQ(XxHash64().digest(), 0xEF46DB3751D8E999u);
  XxHash64 abc;
  abc.update("abc", 3);
  EXPECT_EQ(abc.digest(), 0x44BC2CF5AD770999u);
  const std::vector<std::uint8_t> bytes(200, 77);
  XxHash64 whole, pieces;
  whole.update(bytes.data(), bytes.size());
  for (std::size_t at = 0, n = 1; at < bytes.size(); at += n++)
    pieces.update(bytes.data() + at, std::min(n, bytes.size() - at));
  EXPECT_EQ(whole.digest(), pieces.digest());
}

// What does not fit its bits is named by its place.
TEST(Hash, SamplesOutsideTheirBitsAreNamed) {
  const VideoInfo info = test::video(5, 3, "gray10", 2);
  Gop gop(info, 2);
  gop.set_frames(2);
  const auto set = [&](std::uint16_t value) { std::memcpy(gop.plane(0).row(1, 2) + 2 * 4, &value, 2); };
  set(1023);
  EXPECT_NO_THROW(check_samples(gop, 10));
  set(1024);
  try {
    check_samples(gop, 10);
    ADD_FAILURE() << "taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("1024 of component 0 at frame 1 of the GOP, row 2, column 4"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace trivelet
