// ReadPlan: a stream with only the planned ranges decodes to the same samples. The plan is little more than the decoder
// reads, and the decoder reads nothing else.
#include "trivelet/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codec/format/container.h"
#include "codec/format/front_table.h"
#include "codec/format/stream_layout.h"
#include "tests/support/boxes.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"
#include "trivelet/edit.h"

namespace trivelet {
namespace {

using namespace test;
using Stream = std::vector<std::byte>;

/// Remembers which bytes were read.
class CountingSource final : public ByteSource {
 public:
  explicit CountingSource(const Stream& stream) : of_(stream.data(), stream.size()), read_(stream.size()) {}
  std::size_t read(void* data, std::size_t size) override {
    const std::size_t n = of_.read(data, size);
    std::fill_n(read_.begin() + static_cast<std::ptrdiff_t>(at_), n, true);
    at_ += n;
    return n;
  }
  bool seekable() const override { return true; }
  void seek(std::uint64_t position) override {
    of_.seek(position);
    at_ = static_cast<std::size_t>(position);
  }
  std::uint64_t size() const override { return of_.size(); }
  const std::vector<bool>& bytes() const { return read_; }

 private:
  MemorySource of_;
  std::size_t at_ = 0;
  std::vector<bool> read_;
};

// Gives a plan what it asks for. Returns how often it asked.
int fetch(ReadPlan& plan, const Stream& stream) {
  int rounds = 0;
  for (std::vector<ByteRange> wanted = plan.next(); !wanted.empty() && rounds < 20; wanted = plan.next(), ++rounds)
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(i == 0 || wanted[i - 1].offset + wanted[i - 1].size < wanted[i].offset);
      plan.give(wanted[i].offset, stream.data() + wanted[i].offset, static_cast<std::size_t>(wanted[i].size));
    }
  return rounds;
}

// What is read is planned; what is planned is read, but for the guess at beginning and end and a sixth.
void check_ranges(const ReadPlan& plan, const CountingSource& counted, std::size_t stream_bytes) {
  std::vector<bool> planned(stream_bytes);
  for (const ByteRange& r : plan.ranges())
    for (std::uint64_t i = r.offset; i < r.offset + r.size; ++i) planned[static_cast<std::size_t>(i)] = true;
  std::size_t not_planned = 0;
  for (std::size_t i = 0; i < stream_bytes; ++i) not_planned += counted.bytes()[i] && !planned[i];
  EXPECT_EQ(not_planned, 0U);
  const auto read = std::count(counted.bytes().begin(), counted.bytes().end(), true);
  const auto asked = std::count(planned.begin(), planned.end(), true);
  EXPECT_LE(static_cast<double>(asked), 1.15 * static_cast<double>(read) + 1536);
}

struct Pictures {
  std::vector<Gop> gops;
  bool operator==(const Pictures& other) const {
    if (gops.size() != other.gops.size()) return false;
    for (std::size_t i = 0; i < gops.size(); ++i)
      if (gops[i].frames() != other.gops[i].frames() || compare(gops[i], other.gops[i]).squared != 0 ||
          gops[i].times()[0].pts != other.gops[i].times()[0].pts)
        return false;
    return true;
  }
};

// Of a region what lies inside.
Pictures decoded(ByteSource& source, const DecoderParams& params) {
  Decoder decoder(source, params);
  Pictures out;
  Gop gop = decoder.make_gop();
  while (decoder.pull(gop)) {
    Gop copy = gop;
    const PictureRegion& r = params.region;
    if (r.width > 0)
      for (int c = 0; c < copy.components(); ++c) {
        const MutableVolumeView v = copy.plane(c);
        for (int f = 0; f < v.shape.frames; ++f)
          for (int y = 0; y < v.shape.height; ++y)
            for (int x = 0; x < v.shape.width; ++x)
              if (x < r.x || y < r.y || x >= r.x + r.width || y >= r.y + r.height)
                std::memset(v.row(f, y) + x * v.bytes_per_sample, 0, static_cast<std::size_t>(v.bytes_per_sample));
      }
    out.gops.push_back(std::move(copy));
  }
  return out;
}

void check_video(const Stream& stream, const DecoderParams& params, int most_rounds) {
  CountingSource counted(stream);
  const Pictures wanted = decoded(counted, params);
  ReadPlan plan(stream.size(), params);
  EXPECT_LE(fetch(plan, stream), most_rounds);
  EXPECT_TRUE(decoded(plan.source(), params) == wanted);
  check_ranges(plan, counted, stream.size());
}

TEST(Plan, PartsOfAVideo) {
  EncoderParams dense;
  dense.motion = Motion::kOff;
  EncoderParams fast{.lossless = true, .profile = Profile::kFast};
  EncoderParams motion{.motion = Motion::kOn, .layers = 3};
  OneOf some(kSanitized ? 3 : 1);
  for (const EncoderParams& given : {dense, fast, motion}) {
    EncoderParams p = given;
    p.gop_frames = 8;
    const Stream stream = encode(make_clip(video(112, 96, "yuv420p"), 24, 8, Pattern::kTexture, 5), p);
    const int rounds = p.motion == Motion::kOn ? 4 : 3;
    int i = 0;
    for (const DecoderParams& d :
         {DecoderParams{}, DecoderParams{.reduce = 2}, DecoderParams{.temporal_reduce = 2},
          DecoderParams{.reduce = 1, .temporal_reduce = 1, .max_layers = 2}, DecoderParams{.max_layers = 1},
          DecoderParams{.max_planes = 3}, DecoderParams{.max_bytes = 9000}, DecoderParams{.max_bits_per_pixel = 0.3},
          DecoderParams{.first_frame = 9, .end_frame = 12}, DecoderParams{.reduce = 1, .first_frame = 17}}) {
      SCOPED_TRACE(i++);
      if (some()) check_video(stream, d, rounds);
    }
  }
}

TEST(Plan, Regions) {
  for (const bool checks : {false, true}) {
    EncoderParams p{.lossless = true, .motion = Motion::kOff};
    p.gop_frames = 4;
    p.block_size = 32;
    p.part_checks = checks;
    const Stream stream = encode(make_clip(video(200, 150, "gray"), 8, 4, Pattern::kTexture, 5), p);
    DecoderParams d;
    d.region = {70, 40, 20, 10};
    check_video(stream, d, 5);
    d.reduce = 1;
    d.region = {5, 30, 40, 8};
    check_video(stream, d, 5);
    if (!checks) continue;
    ReadPlan plan(stream.size(), d);
    fetch(plan, stream);
    std::uint64_t bytes = 0;
    for (const ByteRange& r : plan.ranges()) bytes += r.size;
    EXPECT_LT(bytes, stream.size() / 2);
  }
}

TEST(Plan, Volumes) {
  VolumeDescription ct{.voxel = {VoxelType::kI16}, .width = 110, .height = 100, .slices = 16};
  std::vector<std::byte> voxels(ct.bytes());
  for (std::size_t i = 0; i < voxels.size() / 2; ++i) {
    const auto v =
        static_cast<std::int16_t>(300 * std::sin(0.03 * static_cast<double>(i % 110)) +
                                  50 * std::cos(0.001 * static_cast<double>(i)) + static_cast<double>(i * 7919 % 5));
    std::memcpy(voxels.data() + 2 * i, &v, 2);
  }
  const auto decoded_volume = [](ByteSource& source, const VolumeDecoderParams& params) {
    VolumeDecoder decoder(source, params);
    std::vector<std::byte> out(decoder.output().bytes());
    for (std::uint64_t z = 0; z < decoder.output().all_slices(); ++z)
      EXPECT_TRUE(decoder.read(out.data() + z * decoder.output().slice_bytes()));
    return out;
  };
  for (const VolumeTransform transform : {VolumeTransform::kWavelet, VolumeTransform::kPrediction}) {
    MemorySlices slices(ct, voxels.data());
    VolumeEncoderParams p;
    p.transform = transform;
    p.block_size = 32;
    p.slab = 8;
    MemorySink sink;
    encode_volume(slices, p, sink);
    std::vector<VolumeDecoderParams> requests(3);
    requests[1].region = VoxelRegion{60, 50, 9, 20, 10, 4};
    requests[2].region = VoxelRegion{0, 0, 3, 110, 100, 2};
    if (transform == VolumeTransform::kWavelet) {
      requests.resize(5);
      requests[3].reduce = 2;
      requests[4].max_layers = 2;
    }
    for (const VolumeDecoderParams& request : requests) {
      CountingSource counted(sink.bytes);
      const std::vector<std::byte> wanted = decoded_volume(counted, request);
      ReadPlan plan(sink.bytes.size(), request);
      EXPECT_LE(fetch(plan, sink.bytes), 5);
      EXPECT_TRUE(decoded_volume(plan.source(), request) == wanted);
      check_ranges(plan, counted, sink.bytes.size());
    }
  }
}

struct TestVolume {
  VolumeDescription ct{.voxel = {VoxelType::kI16}, .width = 110, .height = 100, .slices = 16};
  std::vector<std::byte> voxels = std::vector<std::byte>(ct.bytes());
  TestVolume() {
    for (std::size_t i = 0; i < voxels.size() / 2; ++i) {
      const auto v = static_cast<std::int16_t>(300 * std::sin(0.03 * static_cast<double>(i % 110)) +
                                               static_cast<double>((i * 2654435761U >> 9) % 5));
      std::memcpy(voxels.data() + 2 * i, &v, 2);
    }
  }
  /// Made once each, for several tests take it.
  const Stream& coded(bool front_table, int block_size = 128, int layers = 2, bool predicted = false) {
    static std::map<std::tuple<bool, int, int, bool>, Stream> made;
    Stream& stream = made[{front_table, block_size, layers, predicted}];
    if (stream.empty()) stream = encode_with(front_table, block_size, layers, predicted);
    return stream;
  }
  Stream encode_with(bool front_table, int block_size, int layers, bool predicted) {
    MemorySlices slices(ct, voxels.data());
    VolumeEncoderParams p;
    p.transform = predicted ? VolumeTransform::kPrediction : VolumeTransform::kWavelet;
    p.slab = 8;
    p.block_size = block_size;
    p.layers = predicted ? 0 : layers;
    p.front_table = front_table;
    p.verify = false;
    MemorySink sink;
    MemoryReadBack again(sink);
    encode_volume(slices, p, sink, &again);
    return sink.bytes;
  }
};

StreamHeader header_of(const Stream& stream) {
  MemorySource source(stream.data(), stream.size());
  std::uint64_t bytes_read = 0;
  StreamInput in(source, bytes_read);
  StreamLayout layout;
  layout.read(in);
  return layout.header;
}

std::vector<std::byte> voxels_of(ByteSource& source, const VolumeDecoderParams& params = {}) {
  VolumeDecoder decoder(source, params);
  const std::size_t slice = decoder.output().slice_bytes();
  std::vector<std::byte> out(decoder.output().bytes());
  for (std::uint64_t z = 0; z < decoder.output().all_slices(); ++z) EXPECT_TRUE(decoder.read(out.data() + z * slice));
  return out;
}

TEST(Plan, AFrontTableSavesARound) {
  TestVolume volume;
  const Stream& with = volume.coded(true);
  const Stream& without = volume.coded(false);
  ASSERT_GT(with.size(), without.size());
  EXPECT_LT(with.size() - without.size(), 1000U);
  for (const int reduce : {0, 1, 2}) {
    VolumeDecoderParams request;
    request.reduce = reduce;
    CountingSource counted(with);
    const std::vector<std::byte> wanted = voxels_of(counted, request);
    ReadPlan plan(with.size(), request);
    EXPECT_EQ(fetch(plan, with), 2);
    EXPECT_TRUE(voxels_of(plan.source(), request) == wanted);
    check_ranges(plan, counted, with.size());
    ReadPlan longer(without.size(), request);
    EXPECT_EQ(fetch(longer, without), 3);
    MemorySource plain(without.data(), without.size());
    EXPECT_TRUE(voxels_of(plain, request) == wanted);
  }
}

// The heads of chunks in it tell where the parts of a region are.
TEST(Plan, AFrontTableSavesTwoRoundsOfRegions) {
  TestVolume volume;
  for (const bool predicted : {false, true})
    for (const int layers : {1, 4}) {
      if (predicted && layers > 1) continue;  // it has none
      const Stream& with = volume.coded(true, 32, layers, predicted);
      const Stream& without = volume.coded(false, 32, layers, predicted);
      EXPECT_LT(with.size() - without.size(), with.size() / 25);
      for (const VoxelRegion& region : {VoxelRegion{40, 35, 9, 20, 20, 4}, VoxelRegion{0, 0, 0, 1, 1, 16}}) {
        if (kSanitized && !full() && (region.width == 1) != (layers == 4)) continue;
        VolumeDecoderParams request;
        request.region = region;
        CountingSource counted(with);
        const std::vector<std::byte> wanted = voxels_of(counted, request);
        ReadPlan plan(with.size(), request);
        plan.give(0, with.data(), 4096);  // more than is asked for of so small a stream
        EXPECT_EQ(fetch(plan, with), 1);
        EXPECT_TRUE(voxels_of(plan.source(), request) == wanted);
        ReadPlan alone(with.size(), request);
        fetch(alone, with);
        check_ranges(alone, counted, with.size());
        ReadPlan longer(without.size(), request);
        EXPECT_GE(fetch(longer, without), 4);
      }
    }
}

// A head that is there in part, and damaged checks, take the rounds that they would take without copies.
TEST(Plan, HeadsThatSayTooLittle) {
  TestVolume volume;
  const Stream& stream = volume.coded(false, 32, 4, false);
  VolumeDecoderParams request;
  request.region = VoxelRegion{40, 35, 9, 20, 20, 4};
  MemorySource all(stream.data(), stream.size());
  const std::vector<std::byte> wanted = voxels_of(all, request);
  for (std::size_t given = 600; given < stream.size(); given += 1 + given / (full() ? 15 : 4)) {
    ReadPlan plan(stream.size(), request);
    plan.give(0, stream.data(), given);
    fetch(plan, stream);
    EXPECT_TRUE(voxels_of(plan.source(), request) == wanted) << given;
  }
  Stream damaged = volume.coded(true, 32, 4, false);
  const char name[] = "part";
  for (auto at = damaged.begin();;) {
    at = std::search(at, damaged.end(), reinterpret_cast<const std::byte*>(name),
                     reinterpret_cast<const std::byte*>(name) + 4);
    if (at == damaged.end()) break;
    at += 16;
    *at ^= std::byte{0x42};
  }
  ReadPlan plan(damaged.size(), request);
  fetch(plan, damaged);
  EXPECT_TRUE(voxels_of(plan.source(), request) == wanted);
}

// Wherever it is damaged, it is as if it were not there, and a verifier says so; it is not carried into other streams.
TEST(Plan, ADamagedFrontTableIsPassedOver) {
  TestVolume volume;
  const Stream& stream = volume.coded(true);
  MemorySource intact(stream.data(), stream.size());
  EXPECT_TRUE(verify_stream(intact, {}).damage.empty());
  VolumeDecoderParams reduced;
  reduced.reduce = 1;
  const char name[] = "tocF";
  const auto box = std::search(stream.begin(), stream.end(), reinterpret_cast<const std::byte*>(name),
                               reinterpret_cast<const std::byte*>(name) + 4) -
                   stream.begin();
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, stream.data() + box + 4, 8);
  ASSERT_LT(bytes, stream.size());
  OneOf some(kSanitized ? 9 : 3);
  for (std::size_t i = 0; i < bytes; i += 1 + i / 8) {
    if (!some()) continue;
    Stream damaged = stream;
    damaged[static_cast<std::size_t>(box) + 16 + i] ^= std::byte{0x24};
    MemorySource source(damaged.data(), damaged.size());
    EXPECT_TRUE(voxels_of(source) == volume.voxels);
    source.seek(0);
    EXPECT_FALSE(verify_stream(source, {}).damage.empty());
    ReadPlan plan(damaged.size(), reduced);
    EXPECT_EQ(fetch(plan, damaged), 3);
  }
  // Bytes of the stream that it has copies of, which a verifier looks at, and a decoder does not.
  Stream lost = stream;
  lost[lost.size() - 50] ^= std::byte{1};
  MemorySource source(lost.data(), lost.size());
  EXPECT_TRUE(voxels_of(source) == volume.voxels);
  source.seek(0);
  EXPECT_FALSE(verify_stream(source, {}).damage.empty());
  // Of a stream that became longer it is not the table any more.
  Stream longer = stream;
  longer.resize(longer.size() + 7);
  ReadPlan plan(longer.size(), DecoderParams{.reduce = 1});
  fetch(plan, longer);
  EXPECT_EQ(plan.ranges(), (std::vector<ByteRange>{{0, longer.size()}}));
}

// Two copies of a byte, even the same, make it none.
TEST(Plan, AFrontTableHasEachByteOnce) {
  FrontTable table{1000, {{100, {1, 2, 3}}, {103, {4}}, {97, {5, 6, 7}}}};
  const auto parsed = [&table] {
    const std::vector<std::uint8_t> bytes = serialise(table, 60);
    return parse_front_table(bytes.data(), bytes.size());
  };
  ASSERT_TRUE(parsed());
  EXPECT_EQ(parsed()->copies[2].bytes, (std::vector<std::uint8_t>{5, 6, 7}));
  for (const FrontCopy& copy :
       {FrontCopy{102, {3}}, FrontCopy{96, {0, 5}}, FrontCopy{101, {2}}, FrontCopy{1000, {1}}}) {
    table.copies.push_back(copy);
    EXPECT_FALSE(parsed()) << copy.offset;
    table.copies.pop_back();
  }
}

// A table whose copies are not what the stream has is damage, whether the stream can be read again or passes by.
TEST(Plan, FalseCopiesOfAFrontTableAreFound) {
  TestVolume volume;
  const Stream& coded = volume.coded(true);
  const auto* const first = reinterpret_cast<const std::uint8_t*>(coded.data());
  const std::vector<std::uint8_t> right(first, first + coded.size());
  const std::vector<test::BoxAt> boxes = test::list_boxes(right.data(), right.size());
  const auto box = std::find_if(boxes.begin(), boxes.end(), [](auto& b) { return b.type == kFrontTableBox; });
  ASSERT_NE(box, boxes.end());
  const auto damage_of = [&](bool pipe, FrontTable table) {
    std::vector<std::uint8_t> stream = right;
    std::vector<std::uint8_t> bytes = serialise(table, box->length - kBoxCrcBytes);
    bytes.resize(box->length);
    test::repair_crc(bytes.data(), bytes.size());
    std::copy(bytes.begin(), bytes.end(), stream.begin() + static_cast<std::ptrdiff_t>(box->payload()));
    MemorySource file(stream.data(), stream.size());
    test::Pipe passing(stream.data(), stream.size(), 64);
    return verify_stream(pipe ? static_cast<ByteSource&>(passing) : file, {}).damage;
  };
  const FrontTable table = parse_front_table(right.data() + box->payload(), box->length - kBoxCrcBytes).value();
  ASSERT_GT(table.copies.size(), 2u);
  for (const bool pipe : {false, true}) {
    SCOPED_TRACE(pipe);
    EXPECT_EQ(damage_of(pipe, table), std::vector<std::string>());
    for (std::size_t i = 0; i < table.copies.size(); ++i) {
      FrontTable wrong = table;
      wrong.copies[i].bytes[i % wrong.copies[i].bytes.size()] ^= 1;
      EXPECT_EQ(damage_of(pipe, wrong),
                (std::vector<std::string>{"the front table has other bytes than the stream at byte " +
                                          std::to_string(wrong.copies[i].offset)}));
    }
    FrontTable shorter = table;
    --shorter.stream_bytes;
    shorter.copies.resize(1);
    shorter.copies[0] = FrontCopy{shorter.stream_bytes - 1, {right[right.size() - 2]}};
    EXPECT_EQ(damage_of(pipe, shorter).size(), 1u);
  }
}

// Another stream that is made of one gets a table of its own, where it can be written and is worth its bytes.
TEST(Plan, FrontTablesOfRewrittenStreams) {
  TestVolume volume;
  VolumeDecoderParams reduced;
  reduced.reduce = 1;
  const auto rounds_of = [&](const Stream& stream, const RewriteParams& params, bool again) {
    MemorySource from(stream.data(), stream.size());
    MemorySink sink;
    MemoryReadBack back(sink);
    const RewriteResult result = rewrite(from, params, sink, again ? &back : nullptr);
    EXPECT_EQ(result.bytes, sink.bytes.size());
    EXPECT_TRUE(params.target_bytes == 0 || result.bytes <= params.target_bytes);
    MemorySource cut(sink.bytes.data(), sink.bytes.size());
    EXPECT_TRUE(verify_stream(cut, {}).damage.empty());
    cut.seek(0);
    ReadPlan plan(sink.bytes.size(), reduced);
    const int rounds = fetch(plan, sink.bytes);
    EXPECT_TRUE(voxels_of(plan.source(), reduced) == voxels_of(cut, reduced));
    return rounds;
  };
  const Stream& with = volume.coded(true);
  const std::uint64_t most = 20 * front_table_room(header_of(with), 2, false);
  EXPECT_EQ(rounds_of(with, {}, true), 2);
  EXPECT_EQ(rounds_of(with, {.target_bytes = most}, true), 2);
  EXPECT_EQ(rounds_of(with, {.target_bytes = most / 2}, true), 3);
  EXPECT_EQ(rounds_of(with, {}, false), 3);
  EXPECT_EQ(rounds_of(volume.coded(false), {}, true), 3);
}

TEST(Plan, WithoutAnIndexEverythingIsWanted) {
  const Stream whole = encode(make_clip(video(64, 48, "gray"), 8, 4, Pattern::kTexture, 5),
                              EncoderParams{.gop_frames = 4, .motion = Motion::kOff});
  const Stream cut(whole.begin(), whole.end() - 30);
  ReadPlan plan(cut.size(), DecoderParams{.reduce = 1});
  fetch(plan, cut);
  EXPECT_EQ(plan.ranges(), (std::vector<ByteRange>{{0, cut.size()}}));
}

TEST(Plan, AVolumeWithoutAnIndexTakesTwoRounds) {
  TestVolume volume;
  const Stream& whole = volume.coded(false);
  const Stream cut(whole.begin(), whole.end() - 30);
  ReadPlan plan(cut.size(), VolumeDecoderParams{});
  EXPECT_EQ(fetch(plan, cut), 2);
  EXPECT_EQ(plan.ranges(), (std::vector<ByteRange>{{0, cut.size()}}));
  EXPECT_TRUE(voxels_of(plan.source()) == volume.voxels);
}

TEST(Plan, SaysWhatIsWrong) {
  const Stream stream = encode(make_clip(video(64, 48, "gray"), 8, 4, Pattern::kTexture, 5),
                               EncoderParams{.gop_frames = 4, .motion = Motion::kOff});
  ReadPlan plan(stream.size(), DecoderParams{.reduce = 9});
  EXPECT_THROW(fetch(plan, stream), Error);
  ReadPlan other(stream.size(), DecoderParams{});
  EXPECT_THROW(other.give(stream.size() - 1, stream.data(), 2), Error);
  std::byte b[4];
  EXPECT_THROW((void)other.source().read(b, 4), Error);
  ReadPlan volume(stream.size(), VolumeDecoderParams{});
  EXPECT_THROW(fetch(volume, stream), Error);
  // Any byte changed: an Error, or a plan; never a crash or an endless one.
  for (std::size_t at = 0; at < stream.size(); at += 1 + at / 40) {
    Stream damaged = stream;
    damaged[at] ^= std::byte{0x15};
    ReadPlan tried(damaged.size(), DecoderParams{.reduce = 1, .keep_partial = at % 2 == 0});
    try {
      EXPECT_LT(fetch(tried, damaged), 10);
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported ||
                  e.kind() == ErrorKind::kBadArgument)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace trivelet
