// keep_decoders(): streams of one kind reuse a decoder; streams of another kind, or at the same time, get their own.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "codec/backend.h"
#include "trivelet/codec.h"
#include "trivelet/kept_decoders.h"

namespace trivelet {
namespace {

class KeptDecoders : public testing::Test {
 protected:
  KeptDecoders() {
    Backend counting = cpu_backend();
    counting.make_decoder = [this](const StreamHeader& h, const Reduction& r, const BackendOptions& o) {
      ++made_;
      header_ = h;
      return cpu_backend().make_decoder(h, r, o);
    };
    backend_ = keep_decoders(std::make_shared<const Backend>(std::move(counting)));
  }
  static std::vector<std::byte> stream(int width, int value) {
    VideoInfo info;
    info.width = width;
    info.height = 24;
    info.format = parse_pixel_format("gray");
    EncoderParams params;
    params.motion = Motion::kOff;
    params.lossless = true;
    params.gop_frames = 4;
    params.threads = 1;
    MemorySink sink;
    Encoder encoder(info, params, sink);
    for (int n = 0; n < 3; ++n) {
      Gop gop(info, 4);
      gop.set_frames(4);
      const MutableVolumeView v = gop.plane(0);
      for (int f = 0; f < 4; ++f)
        for (int y = 0; y < 24; ++y)
          for (int x = 0; x < width; ++x) v.row(f, y)[x] = static_cast<std::byte>(value * x + 3 * y + f + n);
      encoder.push(gop);
    }
    encoder.finish();
    return std::move(sink.bytes);
  }
  static std::vector<std::byte> decode(const std::vector<std::byte>& bytes, const Backend* backend,
                                       const DecoderParams& params) {
    MemorySource source(bytes.data(), bytes.size());
    std::vector<std::byte> samples;
    Decoder decoder(source, params, backend);
    Gop gop = decoder.make_gop();
    while (decoder.pull(gop)) {
      const VolumeView v = std::as_const(gop).plane(0);
      for (int f = 0; f < v.shape.frames; ++f)
        for (int y = 0; y < v.shape.height; ++y)
          samples.insert(samples.end(), v.row(f, y), v.row(f, y) + v.shape.width);
    }
    return samples;
  }
  void expect_same(const std::vector<std::byte>& bytes, const DecoderParams& params = {}) const {
    EXPECT_EQ(decode(bytes, backend_.get(), params), decode(bytes, nullptr, params));
  }

  int made_ = 0;
  StreamHeader header_;  ///< for which the last one was made
  std::shared_ptr<const Backend> backend_;
};

TEST_F(KeptDecoders, serve_streams_of_one_kind) {
  for (int value = 1; value < 5; ++value) expect_same(stream(40, value));
  EXPECT_EQ(made_, 1);
  expect_same(stream(48, 1));
  EXPECT_EQ(made_, 2);
  expect_same(stream(40, 6), {.reduce = 1});
  EXPECT_EQ(made_, 3);
  expect_same(stream(40, 7), {.reduce = 1});
  expect_same(stream(40, 8));
  EXPECT_EQ(made_, 3);
}

TEST_F(KeptDecoders, serve_one_at_a_time) {
  const std::vector<std::byte> bytes = stream(40, 1);
  MemorySource first(bytes.data(), bytes.size());
  MemorySource second(bytes.data(), bytes.size());
  {
    Decoder a(first, {}, backend_.get());
    Decoder b(second, {}, backend_.get());
    Gop gop = a.make_gop();
    for (int n = 0; n < 3; ++n) {
      EXPECT_TRUE(a.pull(gop));
      EXPECT_TRUE(b.pull(gop));
    }
  }
  EXPECT_EQ(made_, 2);
  expect_same(bytes);
  EXPECT_EQ(made_, 2);
}

TEST_F(KeptDecoders, are_not_more_than_a_few) {
  const int most = static_cast<int>(kMostKeptDecoders);
  for (int n = 0; n <= most; ++n) expect_same(stream(24 + n, 1));
  EXPECT_EQ(made_, most + 1);
  expect_same(stream(24 + most, 2));
  expect_same(stream(25, 2));
  EXPECT_EQ(made_, most + 1);
  expect_same(stream(24, 2));  // the oldest is gone
  EXPECT_EQ(made_, most + 2);
  expect_same(stream(26, 2));  // and then the next one, but that which was used since
  EXPECT_EQ(made_, most + 3);
  expect_same(stream(25, 3));
  EXPECT_EQ(made_, most + 3);
}

TEST_F(KeptDecoders, share_what_does_not_change) {
  expect_same(stream(40, 1));
  const auto geometry = [this](int frames) { return backend_->geometry(header_, frames); };
  const std::shared_ptr<const StreamGeometry> first = geometry(4);
  EXPECT_GT(first.use_count(), 1);  // it was made for the stream
  EXPECT_EQ(first->frames(), 4);
  EXPECT_EQ(geometry(4), first);
  const std::shared_ptr<const StreamGeometry> shorter = geometry(3);
  EXPECT_EQ(shorter->frames(), 3);
  EXPECT_EQ(geometry(4), first);
  EXPECT_EQ(geometry(3), shorter);
  for (int width = 41; first.use_count() > 1 && width < 100; ++width) expect_same(stream(width, 1));
  EXPECT_EQ(first.use_count(), 1);  // and not kept for ever
  EXPECT_EQ(made_, 8);
  header_.motion = true;
  EXPECT_NE(geometry(4), geometry(4));
}

TEST_F(KeptDecoders, are_not_for_callers_with_threads_of_their_own) {
  const std::vector<std::byte> bytes = stream(40, 1);
  expect_same(bytes);
  EXPECT_EQ(made_, 1);
  Workers workers;
  workers.run = [](int count, const std::function<void(int)>& task) {
    for (int i = 0; i < count; ++i) task(i);
  };
  expect_same(bytes, {.workers = workers});
  EXPECT_EQ(made_, 2);
}

}  // namespace
}  // namespace trivelet
