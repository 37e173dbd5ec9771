// The main function of a program compiled from several test files: PROGRAM [FILE] [--gtest_...] runs the tests of
// FILE.cpp, or all tests.

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

/// The names of that file's tests, in the syntax of --gtest_filter.
std::string tests_of(const std::string& file) {
  std::string names;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::filesystem::path(test.file()).stem() == file)
        names += std::string(suite.name()) + '.' + test.name() + ':';
    }
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 2) {
    std::fprintf(stderr, "usage: %s [FILE] [--gtest_...]\n", argv[0]);
    return 2;
  }
  if (argc == 2) {
    const std::string names = tests_of(argv[1]);
    if (names.empty()) {
      std::fprintf(stderr, "there are no tests of %s.cpp in this program\n", argv[1]);
      return 2;
    }
    GTEST_FLAG_SET(filter, names);
  }
  return RUN_ALL_TESTS();
}
