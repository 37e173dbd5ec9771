// Conformance streams must always decode to the same samples, with every instruction set and number of threads, from a
// file and from a pipe, where the index cannot be used. A line of conformance/streams.txt has the MD5 of the samples
// (of the scalars of a volume), the stream's name and options of "trivelet decode". A line of conformance/refused.txt
// has a stream that is refused and a word of the refusal.
//
// Built twice. The second build decodes the videos with the emulated GPU kernels.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "io/md5.h"
#include "io/video/planes.h"
#include "tests/support/boxes.h"
#include "tests/support/one_of.h"
#include "trivelet/volume.h"
#if defined(TRIVELET_CUDA_EMULATION)
#include "codec/backend.h"
#include "gpu/device/device.h"
#include "trivelet/cuda.h"
#endif

namespace trivelet {
namespace {

using namespace test;

#if !defined(TRIVELET_CUDA_EMULATION)
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

#endif

std::filesystem::path folder() { return std::filesystem::path(__FILE__).parent_path().parent_path() / "conformance"; }

std::string bytes_of(const std::filesystem::path& path) {
  std::string bytes(std::filesystem::file_size(path), 0);
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

struct Line {
  std::string md5, name;
  DecoderParams params{};
  std::optional<VoxelRegion> region{};
  bool is_volume() const { return name.starts_with("volume_"); }
};

VoxelRegion parse_region(const std::string& text) {
  std::istringstream in(text);
  std::uint64_t n[6] = {};
  for (std::uint64_t& v : n) {
    EXPECT_TRUE(in >> v) << text;
    in.ignore(1, ',');
  }
  return {n[0], n[1], n[2], n[3], n[4], n[5]};
}

Line parse_line(const std::string& text) {
  static const std::map<std::string, int DecoderParams::*> kNumbers = {
      {"--reduce", &DecoderParams::reduce},
      {"--temporal-reduce", &DecoderParams::temporal_reduce},
      {"--max-layers", &DecoderParams::max_layers},
      {"--max-planes", &DecoderParams::max_planes}};
  std::istringstream words(text);
  Line line;
  words >> line.md5 >> line.name;
  std::string value;
  for (std::string option; words >> option;)
    if (option == "--keep-partial")
      line.params.keep_partial = true;
    else if (option == "--region" && words >> value)
      line.region = parse_region(value);
    else if (!kNumbers.count(option) || !(words >> line.params.*kNumbers.at(option)))
      ADD_FAILURE() << "streams.txt: " << option;
  return line;
}

std::vector<Line> lines() {
  std::vector<Line> all;
  std::ifstream list(folder() / "streams.txt");
  for (std::string text; std::getline(list, text);) all.push_back(parse_line(text));
  return all;
}

std::string md5_of_video(ByteSource& source, const DecoderParams& params, const Backend* backend = nullptr) {
  io::Md5 digest;
  Decoder decoder(source, params, backend);
  Gop gop = decoder.make_gop();
  while (decoder.pull(gop))
    for (int f = 0; f < gop.frames(); ++f)
      io::write_planes(gop, f, [&](const void* data, std::size_t size) { digest.update(data, size); });
  return digest.hex();
}

#if defined(TRIVELET_CUDA_EMULATION)

TEST(Conformance, TheEmulatedGpuDecodesTheSame) {
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  test::OneOf sample(11);  // the CPU decodes them all
  int decoded = 0;
  for (const Line& line : lines()) {
    SCOPED_TRACE(line.name);
    if (line.is_volume() || !sample()) continue;
    const std::string bytes = bytes_of(folder() / (line.name + ".tvl"));
    MemorySource file(bytes.data(), bytes.size());
    EXPECT_EQ(md5_of_video(file, line.params, cuda.get()), line.md5);
    ++decoded;
  }
  EXPECT_GT(decoded, 8);
}

#else

/// The streams of a folder, by their names.
std::set<std::string> streams_in(const std::filesystem::path& path) {
  std::set<std::string> streams;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.path().extension() == ".tvl") streams.insert(entry.path().stem().string());
  EXPECT_FALSE(streams.empty());
  return streams;
}

std::string md5_of_volume(ByteSource& source, const Line& line) {
  VolumeDecoderParams params;
  params.region = line.region;
  params.reduce = line.params.reduce;
  params.max_layers = line.params.max_layers;
  params.max_planes = line.params.max_planes;
  params.threads = line.params.threads;
  params.simd = line.params.simd;
  VolumeDecoder decoder(source, params);
  std::vector<std::byte> slice(decoder.output().slice_bytes());
  io::Md5 digest;
  while (decoder.read(slice.data())) digest.update(slice.data(), slice.size());
  return digest.hex();
}

TEST(Conformance, StreamsDecodeToTheSamplesTheyAlwaysDecodedTo) {
  std::set<std::string> listed;
  test::OneOf chosen(test::kSanitized ? 3 : 1);  // of the ways, which all are compared in the release build
  for (Line& line : lines()) {
    SCOPED_TRACE(line.name);
    listed.insert(line.name);
    const std::string bytes = bytes_of(folder() / (line.name + ".tvl"));
    for (const Way& way : ways()) {
      if (!chosen()) continue;
      line.params.simd = way.simd;
      line.params.threads = way.threads;
      MemorySource file(bytes.data(), bytes.size());
      Pipe pipe(bytes.data(), bytes.size());
      if (line.is_volume() && way.pipe) continue;  // not read from there
      EXPECT_EQ(line.is_volume() ? md5_of_volume(file, line)
                                 : md5_of_video(way.pipe ? static_cast<ByteSource&>(pipe) : file, line.params),
                line.md5)
          << to_string(way.simd) << ", " << way.threads << " threads" << (way.pipe ? ", from a pipe" : "");
    }
  }
  EXPECT_EQ(listed, streams_in(folder()));
}

TEST(Conformance, WhatIsNotKnownIsRefusedByName) {
  std::ifstream list(folder() / "refused.txt");
  std::set<std::string> listed;
  for (std::string name, words; list >> name && std::getline(list >> std::ws, words);) {
    SCOPED_TRACE(name);
    listed.insert(name);
    const std::string bytes = bytes_of(folder() / "refused" / (name + ".tvl"));
    MemorySource file(bytes.data(), bytes.size());
    try {
      if (name.starts_with("volume_"))
        VolumeDecoder(file, {});
      else
        Decoder(file, {});
      ADD_FAILURE() << "taken";
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::kUnsupported || e.kind() == ErrorKind::kBadStream) << e.what();
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(listed, streams_in(folder() / "refused"));
}

#endif

}  // namespace
}  // namespace trivelet
