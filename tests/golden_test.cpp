// The golden streams must decode to the samples they always decoded to, with every instruction set and number of
// threads, from a file and from a pipe, where nothing can be looked up in the index. A line of golden/golden.txt is the
// MD5 of the samples, the name of the stream and options of "trivelet decode".

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "io/md5.h"
#include "io/video/planes.h"
#include "tests/boxes.h"

namespace trivelet {
namespace {

using namespace test;

struct Way {
  SimdLevel simd;
  int threads;
  bool pipe;
};

std::vector<Way> ways() {
  std::vector<Way> all = {{SimdLevel::kScalar, 1, false},
                          {SimdLevel::kBest, 1, false},
                          {SimdLevel::kBest, 2, false},
                          {SimdLevel::kScalar, 2, true}};
  if (detected_simd() > SimdLevel::kAvx2) all.push_back({SimdLevel::kAvx2, 2, false});
  return all;
}

DecoderParams parse_options(std::istream& line) {
  DecoderParams p;
  const std::map<std::string, int DecoderParams::*> numbers = {{"--reduce", &DecoderParams::reduce},
                                                               {"--temporal-reduce", &DecoderParams::temporal_reduce},
                                                               {"--max-layers", &DecoderParams::max_layers},
                                                               {"--max-planes", &DecoderParams::max_planes}};
  for (std::string option; line >> option;)
    if (option == "--keep-partial")
      p.keep_partial = true;
    else if (!numbers.count(option) || !(line >> p.*numbers.at(option)))
      ADD_FAILURE() << "golden.txt: " << option;
  return p;
}

std::string decoded_md5(ByteSource& source, const DecoderParams& params) {
  io::Md5 digest;
  Decoder decoder(source, params);
  Gop gop = decoder.make_gop();
  while (decoder.pull(gop))
    for (int f = 0; f < gop.frames(); ++f)
      io::write_planes(gop, f, [&](const void* data, std::size_t size) { digest.update(data, size); });
  return digest.hex();
}

TEST(Golden, StreamsDecodeToTheSamplesTheyAlwaysDecodedTo) {
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "golden";
  std::ifstream list(folder / "golden.txt");
  std::set<std::string> listed;
  for (std::string line; std::getline(list, line);) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string md5, name;
    words >> md5 >> name;
    listed.insert(name);
    DecoderParams params = parse_options(words);
    std::ifstream in(folder / (name + ".tvl"), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    for (const Way& way : ways()) {
      params.simd = way.simd;
      params.threads = way.threads;
      MemorySource file(bytes.data(), bytes.size());
      Pipe pipe(bytes.data(), bytes.size());
      EXPECT_EQ(decoded_md5(way.pipe ? static_cast<ByteSource&>(pipe) : file, params), md5)
          << to_string(way.simd) << ", " << way.threads << " threads" << (way.pipe ? ", from a pipe" : "");
    }
  }
  std::set<std::string> streams;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".tvl") streams.insert(entry.path().stem().string());
  EXPECT_EQ(listed, streams);
  EXPECT_FALSE(streams.empty());
}

}  // namespace
}  // namespace trivelet
