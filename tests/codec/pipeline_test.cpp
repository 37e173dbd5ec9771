// Stages that run in parallel: their queues, reading ahead in the decoder, and the encoder's output stage. An error in
// one stage ends all of them, and stays.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include "codec/backend.h"
#include "codec/encoder/encoder_part.h"
#include "codec/format/container.h"
#include "codec/threads/prefetch.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/trace.h"
#include "tests/support/one_of.h"
#include "tests/support/short_gops.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

using test::Clip;
using test::Pattern;
using test::short_gop_params;
using test::short_gops;

constexpr int kFrames = 79;  // in 20 GOPs, more than all stages hold

int threads_of_process() {
  int n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++n;
  return n;
}

/// A thread that was joined may be listed for a moment longer.
bool threads_fall_to(int count) {
  for (int i = 0; i < 200 && threads_of_process() > count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return threads_of_process() <= count;
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Queue, KeepsOrderAndEndsWithTheError) {
  StageQueue<int> queue(2);
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(queue.push(i));
    queue.close(std::make_exception_ptr(Error(ErrorKind::kIo, "the end")));
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.pop(), i);
  EXPECT_EQ(error_of([&] { (void)queue.pop(); }), "the end");
  EXPECT_EQ(error_of([&] { (void)queue.try_pop(); }), "the end") << "again, for it stays wrong";
  writer.join();
}

TEST(Queue, StopWakesBothSides) {
  StageQueue<int> full(1);
  EXPECT_TRUE(full.push(1));
  std::thread writer([&] { EXPECT_FALSE(full.push(2)); });
  StageQueue<int> empty(1);
  std::thread reader([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  full.stop();
  empty.stop();
  writer.join();
  reader.join();
  EXPECT_EQ(full.pop(), std::nullopt);
}

TEST(Queue, OrderedOneSortsWhatThreadsFinish) {
  OrderedQueue<int> queue(3);
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t n = next++; n < 200; n = next++) EXPECT_TRUE(queue.put(n, static_cast<int>(3 * n)));
    });
  for (std::uint64_t n = 0; n < 200; ++n) EXPECT_EQ(queue.take(n), static_cast<int>(3 * n));
  for (std::thread& t : threads) t.join();
  std::thread late([&] { EXPECT_EQ(queue.take(200), std::nullopt); });
  queue.stop();
  late.join();
  EXPECT_FALSE(queue.put(200, 0));
}

TEST(ReadAhead, DeliversInOrderWithAsManyGopsAsItMay) {
  const VideoInfo info = test::video(4, 4, "gray");
  for (const int most : {2, 3, 5}) {
    std::atomic<int> made{0};
    int filled = 0;
    Prefetch gops([&] { return ++made, Gop(info, 1); }, most,
                  [&](Gop& gop) {
                    gop.set_frames(1);
                    gop.times()[0].pts = filled;
                    return filled++ < 50;
                  });
    for (int i = 0; i < 50; ++i) {
      Gop* gop = gops.next();
      ASSERT_NE(gop, nullptr);
      EXPECT_EQ(gop->times()[0].pts, i);
    }
    EXPECT_EQ(gops.next(), nullptr);
    EXPECT_EQ(gops.next(), nullptr);
    EXPECT_LE(made, most);
    EXPECT_GE(made, 1);
  }
}

TEST(ReadAhead, ErrorsComeBehindWhatWasReadBefore) {
  const int before = threads_of_process();
  const VideoInfo info = test::video(4, 4, "gray");
  {
    int filled = 0;
    Prefetch gops([&] { return Gop(info, 1); }, 3,
                  [&](Gop&) {
                    require(filled < 7, ErrorKind::kIo, "the disk is gone");
                    return ++filled, true;
                  });
    for (int i = 0; i < 7; ++i) EXPECT_NE(gops.next(), nullptr);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(error_of([&] { (void)gops.next(); }), "the disk is gone");
  }
  {  // left while its thread waits for room
    Prefetch gops([&] { return Gop(info, 1); }, 2, [](Gop&) { return true; });
    EXPECT_NE(gops.next(), nullptr);
  }
  {  // there is no memory for Gops
    Prefetch gops([]() -> Gop { fail(ErrorKind::kUnsupported, "no memory"); }, 2, [](Gop&) { return true; });
    EXPECT_EQ(error_of([&] { (void)gops.next(); }), "no memory");
  }
  EXPECT_TRUE(threads_fall_to(before));
}

// ---------------------------------------------------------------------------------------------------- busy stages

/// The CPU encoder in the role of a device: several GOPs in flight, some with outstanding outputs. It reports finished
/// GOPs at once, or not if it is `silent`.
class DeepEncoder final : public GopEncoder {
 public:
  DeepEncoder(const StreamHeader& header, const BackendOptions& options, bool silent)
      : coder_(cpu_backend().make_encoder(header, options)), silent_(silent) {}
  bool is_ready() override { return !silent_ && !done_.empty(); }
  int depth() const override { return 6; }
  int outstanding() const override { return 3; }
  void push(const Gop& gop, const GopChoices& choices) override {
    EXPECT_LT(static_cast<int>(done_.size()), depth());
    coder_->push(gop, choices);
    CodedGop coded;
    EXPECT_TRUE(coder_->pull(coded));
    coded.samples = [copy = gop](Gop& to, int first) {
      for (int c = 0; c < copy.components(); ++c) {
        const VolumeView v = copy.plane(c);
        const MutableVolumeView out = to.plane(c);
        for (int t = 0; t < out.shape.frames; ++t)
          for (int y = 0; y < v.shape.height; ++y) std::memcpy(out.row(t, y), v.row(first + t, y), v.row_bytes());
      }
    };
    done_.push_back(std::move(coded));
  }
  void push(CoefficientGop&, const GopChoices&) override { FAIL(); }
  void transform(const Gop&, const GopChoices&, CoefficientGop&) override { FAIL(); }
  bool pull(CodedGop& out) override {
    if (done_.empty()) return false;
    out = std::move(done_.front());
    done_.pop_front();
    return true;
  }
  double seconds_transform() const override { return 0; }
  double seconds_coder() const override { return 0; }

 private:
  std::unique_ptr<GopEncoder> coder_;
  bool silent_;
  std::deque<CodedGop> done_;
};

Backend deep_backend(bool silent = false) {
  Backend b = cpu_backend();
  b.make_encoder = [=](const StreamHeader& h, const BackendOptions& o) {
    return std::make_unique<DeepEncoder>(h, o, silent);
  };
  return b;
}

/// A disk that is full after so many bytes.
class FullSink final : public ByteSink {
 public:
  explicit FullSink(std::size_t most) : most_(most) {}
  void write(const void* data, std::size_t size) override {
    require(bytes.size() + size <= most_, ErrorKind::kIo, "no space left");
    const auto* p = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), p, p + size);
  }
  std::vector<std::byte> bytes;

 private:
  std::size_t most_;
};

void encode_to(ByteSink& sink, const Clip& clip, const EncoderParams& params, const Backend* backend) {
  Encoder encoder(clip.info, params, sink, backend);
  for (const Gop& g : clip.gops) encoder.push(g);
  encoder.finish();
  EXPECT_EQ(encoder.stats().gops, clip.gops.size());
}

TEST(Stages, DividingBesideCodingWritesTheSameBytes) {
  const Clip clip = short_gops(kFrames);
  for (const Profile profile : {Profile::kFast, Profile::kDense})
    for (const bool lossless : {false, true}) {
      MemorySink expected;
      encode_to(expected, clip, short_gop_params(2, profile, lossless), nullptr);
      for (const bool silent : {false, true}) {
        const Backend deep = deep_backend(silent);
        MemorySink sink;
        encode_to(sink, clip, short_gop_params(2, profile, lossless), &deep);
        EXPECT_TRUE(expected.bytes == sink.bytes) << static_cast<int>(profile) << lossless << silent;
      }
    }
}

// Several GOPs are measured at once, each of which may depend on the one before.
TEST(Stages, ErrorsAlongMotionAreTheSameBesideEachOther) {
  const Clip clip = short_gops(kFrames);
  const Backend deep = deep_backend();
  for (const bool lossless : {false, true}) {
    EncoderParams p = short_gop_params(2, Profile::kDense, lossless);
    p.motion = Motion::kOn;
    p.key_interval = 20;
    MemorySink expected, sink;
    encode_to(expected, clip, p, nullptr);
    p.threads = 12;
    encode_to(sink, clip, p, &deep);
    EXPECT_TRUE(expected.bytes == sink.bytes) << lossless;
  }
}

/// Encodes one stream with several encoders that take runs in turn, each in a thread of its own and as far ahead as
/// allowed. They learn whether a GOP is measured as soon as the ones before it are known.
std::vector<std::byte> by_parts(const Clip& clip, const EncoderParams& params, const Backend& backend, int count) {
  struct Said {
    std::size_t from;
    std::optional<GopRecord> record{};
    GopErrors errors{};
  };
  using Answer = std::pair<std::uint64_t, std::vector<std::size_t>>;
  struct Part {
    explicit Part(std::unique_ptr<PartEncoder> e) : encoder(std::move(e)) {}
    std::unique_ptr<PartEncoder> encoder;
    std::vector<std::pair<const Gop*, GopTask>> tasks{};
    StageQueue<Answer> answers{100};
    std::size_t asked = 0;
  };
  std::vector<std::unique_ptr<Part>> parts;
  for (int i = 0; i < count; ++i)
    parts.push_back(std::make_unique<Part>(std::make_unique<PartEncoder>(clip.info, params, &backend)));
  KeySchedule schedule = parts[0]->encoder->schedule();
  GopTask task;
  std::size_t turn = 0;
  for (const Gop& gop : clip.gops) {
    const KeySchedule::Start start = schedule.next(gop.frames(), gop.begins_scene());
    task.must_close = start.must_close;
    task.run = start.run;
    if (task.run) turn = (turn + 1) % parts.size();
    parts[turn]->tasks.emplace_back(&gop, task);
    ++task.number;
    task.first_frame += static_cast<std::uint64_t>(gop.frames());
  }
  StageQueue<Said> said(100);
  const auto code = [&said](Part& part, std::size_t from) {
    const auto exchange = [&] {
      const std::vector<GopErrors> measured = part.encoder->take_errors();
      while (std::optional<GopRecord> record = part.encoder->next()) {
        if (record->asks) ++part.asked;
        EXPECT_TRUE(said.push({from, std::move(record)}));
      }
      for (const GopErrors& e : measured) EXPECT_TRUE(said.push({from, std::nullopt, e}));
      while (std::optional<Answer> answer = part.answers.try_pop()) {
        part.encoder->settle(answer->first, answer->second);
        --part.asked;
      }
    };
    for (const auto& [gop, gop_task] : part.tasks) {
      Gop copy = part.encoder->make_gop();
      copy = *gop;
      part.encoder->push(std::move(copy), gop_task);
      for (exchange(); part.asked > part.encoder->most_asked(); exchange()) part.encoder->advance();
    }
    part.encoder->flush();
    do exchange();
    while (part.encoder->unsettled() > 0);
    exchange();
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < parts.size(); ++i) threads.emplace_back([&, i] { code(*parts[i], i); });
  MemorySink sink;
  StreamAssembly assembly(parts[0]->encoder->header(), parts[0]->encoder->head(), sink);
  std::map<std::uint64_t, Said> waiting;
  while (assembly.next() < clip.gops.size() || !assembly.settled()) {
    std::optional<Said> one = said.pop();
    if (!one) break;
    if (!one->record) {
      assembly.measured(one->errors.number, one->errors.errors);
      continue;
    }
    const std::uint64_t number = one->record->number;
    waiting.emplace(number, std::move(*one));
    for (auto first = waiting.begin(); first != waiting.end() && first->first == assembly.next();
         first = waiting.erase(first)) {
      const GopRecord& record = *first->second.record;
      const std::vector<std::size_t> layers = assembly.add(record);
      if (!record.asks) continue;
      EXPECT_TRUE(parts[first->second.from]->answers.push({record.number, layers}));
    }
  }
  for (std::thread& t : threads) t.join();
  assembly.finish();
  return std::move(sink.bytes);
}

TEST(Stages, PartsThatAreMeasuredBesideCodingMakeTheWhole) {
  Clip clip = short_gops(kFrames);
  const Clip other = test::make_clip(clip.info, 79, 4, Pattern::kNoise, 5);  // measured again
  for (std::size_t g = 6; g < 12; ++g) {
    Gop gop = other.gops[g];
    std::copy(clip.gops[g].times().begin(), clip.gops[g].times().end(), gop.times().begin());
    clip.gops[g] = std::move(gop);
  }
  for (const Motion motion : {Motion::kOff, Motion::kOn})
    for (const bool lossless : {false, true}) {
      EncoderParams p = short_gop_params(2, Profile::kDense, lossless);
      p.motion = motion;
      p.key_interval = 9;
      p.threads = 12;
      MemorySink expected;
      encode_to(expected, clip, p, nullptr);
      for (const bool silent : {false, true}) {
        if (test::kSanitized && !test::full() && silent != (lossless == (motion == Motion::kOn))) continue;
        EXPECT_TRUE(expected.bytes == by_parts(clip, p, deep_backend(silent), 3))
            << static_cast<int>(motion) << lossless << silent;
      }
    }
}

TEST(Stages, AFullDiskEndsThemOnce) {
  const int before = threads_of_process();
  const Clip clip = short_gops(kFrames);
  const Backend deep = deep_backend();
  for (const Profile profile : {Profile::kFast, Profile::kDense}) {
    MemorySink whole;
    encode_to(whole, clip, short_gop_params(2, profile), nullptr);
    for (const std::size_t most : {std::size_t{2000}, whole.bytes.size() / 2, whole.bytes.size() - 1}) {
      FullSink sink(most);
      EXPECT_EQ(error_of([&] { encode_to(sink, clip, short_gop_params(2, profile), &deep); }), "no space left");
    }
    // A caller that goes on all the same gets the error again, and no thread waits for ever.
    FullSink sink(whole.bytes.size() / 4);
    Encoder encoder(clip.info, short_gop_params(2, profile), sink, &deep);
    int refused = 0;
    for (const Gop& g : clip.gops) refused += error_of([&] { encoder.push(g); }).empty() ? 0 : 1;
    EXPECT_GT(refused, 1);
    EXPECT_EQ(error_of([&] { encoder.finish(); }), "no space left");
  }
  {  // left in the middle
    MemorySink sink;
    Encoder encoder(clip.info, short_gop_params(2), sink, &deep);
    for (int i = 0; i < 9; ++i) encoder.push(clip.gops[static_cast<std::size_t>(i)]);
  }
  EXPECT_TRUE(threads_fall_to(before));
}

/// A disk that fails after so many bytes.
class FailingSource final : public ByteSource {
 public:
  FailingSource(const std::vector<std::byte>& bytes, std::size_t good)
      : source_(bytes.data(), bytes.size()), good_(good) {}
  std::size_t read(void* data, std::size_t size) override {
    read_ += size;
    require(read_ <= good_, ErrorKind::kIo, "the disk is gone");
    return source_.read(data, size);
  }
  bool seekable() const override { return true; }
  void seek(std::uint64_t position) override { source_.seek(position); }
  std::uint64_t size() const override { return source_.size(); }

 private:
  MemorySource source_;
  std::size_t good_;
  std::size_t read_ = 0;
};

TEST(Stages, AFailingReaderEndsADecoderBehindWhatItRead) {
  const int before = threads_of_process();
  const Clip clip = short_gops(kFrames);
  const std::vector<std::byte> stream = test::encode(clip, short_gop_params(2, Profile::kFast));
  const std::vector<Gop> whole = test::decode(stream, {});
  ASSERT_EQ(whole.size(), clip.gops.size());
  for (const std::size_t good : {stream.size() / 2, stream.size() * 3 / 4}) {
    FailingSource source(stream, good);
    Decoder decoder(source, DecoderParams{.threads = 2});
    Gop gop = decoder.make_gop();
    std::size_t got = 0;
    const std::string error = error_of([&] {
      for (; decoder.pull(gop); ++got) EXPECT_EQ(test::compare(gop, whole[got]).largest, 0);
    });
    EXPECT_EQ(error, "the disk is gone");
    EXPECT_GT(got, 0u);
    EXPECT_LT(got, whole.size());
  }
  {  // left in the middle
    MemorySource source(stream.data(), stream.size());
    Decoder decoder(source, DecoderParams{.threads = 2});
    Gop gop = decoder.make_gop();
    EXPECT_TRUE(decoder.pull(gop));
  }
  EXPECT_TRUE(threads_fall_to(before));
}

TEST(Trace, TellsWhatThreadsDid) {
  { const trace::Span unseen("before"); }
  trace::start();
  trace::name_thread("main");
  { const trace::Span span("work", 7); }
  std::thread([] {
    trace::name_thread("other");
    const trace::Span span("elsewhere");
  }).join();
  const std::string text = trace::json();
  for (const char* wanted : {"\"traceEvents\"", "\"name\":\"work\"", "\"gop\":7", "\"name\":\"elsewhere\"",
                             "{\"name\":\"main\"}", "{\"name\":\"other\"}"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " in " << text;
  EXPECT_EQ(text.find("before"), std::string::npos);
}

}  // namespace
}  // namespace trivelet
