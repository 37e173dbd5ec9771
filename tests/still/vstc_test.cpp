// VSTC: building blocks, round trips over shapes and formats, the same bytes for all instruction sets and threads,
// damage.
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "codec/base/hash.h"
#include "codec/still/vstc/vstc.h"
#include "codec/still/vstc/vstc_kernels.h"
#include "codec/still/vstc/vstc_model.h"
#include "tests/support/one_of.h"

using namespace trivelet;
using still::Image;

namespace {

PixelFormat format_of(ColourModel model, int bits, int subsampled = 0) {
  PixelFormat f;
  f.model = model;
  f.bits = bits;
  f.log2_chroma_w = f.log2_chroma_h = subsampled;
  return f;
}

/// Slopes, an edge, a texture and a little noise.
Image picture(int width, int height, const PixelFormat& format) {
  Image image;
  image.width = width;
  image.height = height;
  image.format = format;
  image.allocate();
  const double peak = (1 << format.bits) - 1;
  std::uint32_t state = 7;
  for (int c = 0; c < image.components(); ++c)
    for (int y = 0; y < format.component_height(height, c); ++y)
      for (int x = 0; x < format.component_width(width, c); ++x) {
        state = state * 1664525U + 1013904223U;
        double v = 0.3 + 0.002 * x + 0.003 * y + 0.1 * c;
        if (2 * x + y > 60) v += 0.25;
        if (x > 30 && y > 20) v += 0.12 * std::sin(0.9 * x + 0.4 * y);
        v += 0.00001 * (state >> 21);
        image.set_sample(c, x, y, static_cast<int>(std::clamp(v, 0.0, 1.0) * peak));
      }
  return image;
}

double mean_square(const Image& a, const Image& b) {
  double sum = 0;
  std::size_t count = 0;
  for (int c = 0; c < a.components(); ++c)
    for (int y = 0; y < a.format.component_height(a.height, c); ++y)
      for (int x = 0; x < a.format.component_width(a.width, c); ++x, ++count) {
        const double d = a.sample(c, x, y) - b.sample(c, x, y);
        sum += d * d;
      }
  return sum / static_cast<double>(count);
}

std::vector<SimdLevel> levels() {
  std::vector<SimdLevel> out;
  for (const SimdLevel l : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512})
    if (l <= detected_simd()) out.push_back(l);
  return out;
}

std::vector<std::byte> coded(const Image& image, const vstc::Params& params, int threads = 1) {
  ThreadPool pool(threads);
  return vstc::encode(image, params, pool).bytes;
}
Image decoded(const std::vector<std::byte>& bytes, SimdLevel simd = SimdLevel::kBest) {
  ThreadPool pool(1);
  vstc::DecodeParams params;
  params.simd = simd;
  return vstc::decode(bytes, params, pool);
}

/// Puts the check sum right.
void seal(std::vector<std::byte>& bytes) {
  const std::uint32_t crc = crc32c(bytes.data(), bytes.size() - 4);
  for (std::size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<std::byte>(crc >> 8 * i);
}

TEST(VstcTransform, MatricesAreOrthogonalAndPinned) {
  std::uint32_t crc = 0;
  for (const bool sine : {false, true})
    for (int k = 0; k <= 6; ++k) {
      const int n = 1 << k;
      const vstc::Coefficient* m = vstc::matrix_of(k, sine);
      crc = crc32c(m, static_cast<std::size_t>(n * n) * sizeof *m, crc);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j) {
          double product = 0;
          for (int x = 0; x < n; ++x) product += m[i * n + x] * m[j * n + x];
          // Rows have the norm 64 sqrt(n); rounding turns them by less than a hundredth.
          EXPECT_NEAR(product / (4096.0 * n), i == j ? 1 : 0, 0.0125) << n << " " << i << " " << j << " " << sine;
        }
    }
  EXPECT_EQ(crc, 3269597105u) << "the matrices are part of the format";
}

TEST(VstcModel, ScansVisitEveryPositionAfterItsContext) {
  for (int kw = 0; kw <= 6; ++kw)
    for (int kh = 0; kh <= 6; ++kh) {
      const int w = 1 << kw, h = 1 << kh;
      const vstc::Scan& scan = vstc::scan_of(kw, kh);
      std::set<int> seen;
      for (int i = 0; i < w * h; ++i) {
        seen.insert(scan.position[i]);
        ASSERT_EQ(scan.rank[scan.position[i]], i);
        const int x = scan.position[i] & (w - 1), y = scan.position[i] >> kw;
        for (const auto& [dx, dy] : {std::pair{1, 0}, {2, 0}, {0, 1}, {0, 2}, {1, 1}})
          if (x + dx < w && y + dy < h) {
            ASSERT_GT(scan.rank[(y + dy) * w + x + dx], i);
          }
      }
      ASSERT_EQ(static_cast<int>(seen.size()), w * h);
    }
}

TEST(VstcModel, GroupsOfTheLastPositionCoverEverySide) {
  for (int v = 0; v < 64; ++v) {
    const int g = vstc::last_group(v), start = vstc::last_group_start(g);
    EXPECT_LE(start, v);
    EXPECT_LT(v, start + (1 << vstc::last_group_bits(g)));
    for (int k = 0; k <= 6; ++k) {
      if (v < 1 << k) {
        EXPECT_LT(g, vstc::last_groups(k));
      }
    }
  }
}

TEST(VstcKernels, EveryInstructionSetComputesTheSame) {
  std::uint32_t state = 3;
  const auto random = [&](int range) {
    state = state * 1664525U + 1013904223U;
    return static_cast<int>((state >> 8) % static_cast<unsigned>(2 * range + 1)) - range;
  };
  constexpr int kLanes = 128, kStride = kLanes + vstc::kSheetPad;
  const vstc::Kernels& scalar = vstc::kernels(SimdLevel::kScalar);
  for (const SimdLevel level : levels()) {
    const vstc::Kernels& other = vstc::kernels(level);
    for (int k = 0; k <= 6; ++k)
      for (const bool sine : {false, true}) {
        if (sine && (k == 0 || k > vstc::kMaxSineLog2)) continue;
        std::vector<std::int16_t> in(64 * kStride), a(in.size()), b(in.size());
        for (auto& v : in) v = static_cast<std::int16_t>(random(4095));
        const int shift = k == 0 ? -3 : k + 3;
        scalar.forward(in.data(), kStride, 64, kLanes, vstc::matrix_of(k, sine), k, !sine, shift, a.data(), kStride);
        other.forward(in.data(), kStride, 64, kLanes, vstc::matrix_of(k, sine), k, !sine, shift, b.data(), kStride);
        EXPECT_EQ(a, b) << to_string(level) << " " << k << " " << sine;
        std::vector<std::uint64_t> la(64 * 2), lb(64 * 2);
        scalar.find_large(a.data(), kStride, 64, 2, 700, la.data());
        other.find_large(a.data(), kStride, 64, 2, 700, lb.data());
        EXPECT_EQ(la, lb);
      }
    for (int kw = 2; kw <= 6; ++kw)
      for (int kh = 2; kh <= 6; ++kh) {
        std::vector<std::uint16_t> ref(4 * 64 + 1);
        for (auto& v : ref) v = static_cast<std::uint16_t>(random(2047) + 2047);
        std::vector<std::int16_t> a(64 * 64), b(64 * 64);
        for (int mode = 0; mode < vstc::kModes; ++mode)
          for (const bool edges : {false, true}) {
            scalar.predict(ref.data() + 128, mode, kw, kh, 12, edges, a.data(), 64);
            other.predict(ref.data() + 128, mode, kw, kh, 12, edges, b.data(), 64);
            ASSERT_EQ(a, b) << to_string(level) << " mode " << mode;
          }
        std::vector<std::int16_t> values(static_cast<std::size_t>(1) << (kw + kh));
        for (auto& v : values) v = static_cast<std::int16_t>(random(32767));
        scalar.inverse(values.data(), kw, kh, vstc::matrix_of(kw, false), vstc::matrix_of(kh, kh < 6), 8, a.data(), 64);
        other.inverse(values.data(), kw, kh, vstc::matrix_of(kw, false), vstc::matrix_of(kh, kh < 6), 8, b.data(), 64);
        ASSERT_EQ(a, b);
      }
  }
}

TEST(VstcKernels, InverseUndoesForward) {
  const vstc::Kernels& k = vstc::kernels(SimdLevel::kScalar);
  std::uint32_t state = 9;
  for (int kw = 2; kw <= 6; ++kw)
    for (int kh = 2; kh <= 6; ++kh)
      for (const bool sine : {false, true}) {
        const int w = 1 << kw, h = 1 << kh;
        const bool across = sine && kw <= vstc::kMaxSineLog2, down = sine && kh <= vstc::kMaxSineLog2;
        const std::ptrdiff_t stride = 64 + vstc::kSheetPad;
        std::vector<std::int16_t> in(64 * stride), first(in.size()), turned(in.size()), last(in.size());
        for (int y = 0; y < h; ++y)
          for (int x = 0; x < w; ++x) {
            state = state * 1664525U + 1013904223U;
            in[y * stride + x] = static_cast<std::int16_t>(static_cast<int>(state >> 23) - 256);
          }
        k.forward(in.data(), stride, h, w, vstc::matrix_of(kh, down), kh, !down, kh - 1, first.data(), stride);
        k.transpose(first.data(), stride, w, h, 1, turned.data(), stride);
        k.forward(turned.data(), stride, w, h, vstc::matrix_of(kw, across), kw, !across, kw + 6, last.data(), stride);
        std::vector<std::int16_t> values(static_cast<std::size_t>(w * h)), out(values.size());
        for (int y = 0; y < h; ++y)
          for (int x = 0; x < w; ++x) values[y * w + x] = last[x * stride + y];
        k.inverse(values.data(), kw, kh, vstc::matrix_of(kw, across), vstc::matrix_of(kh, down), 8, out.data(), w);
        for (int y = 0; y < h; ++y)
          for (int x = 0; x < w; ++x) ASSERT_NEAR(out[y * w + x], in[y * stride + x], 8) << kw << " " << kh;
      }
}

TEST(Vstc, EverySizeAndFormatComesBack) {
  const std::pair<int, int> sizes[] = {{1, 1}, {3, 5}, {4, 4}, {17, 33}, {64, 64}, {65, 21}, {7, 70}};
  const PixelFormat formats[] = {format_of(ColourModel::kGrey, 8), format_of(ColourModel::kGrey, 12),
                                 format_of(ColourModel::kYuv, 8, 1), format_of(ColourModel::kYuv, 10, 0),
                                 format_of(ColourModel::kRgb, 8)};
  test::OneOf chosen(test::kSanitized ? 17 : 8);
  int i = 0;
  for (const auto& [w, h] : sizes)
    for (const PixelFormat& f : formats) {
      if (!chosen()) continue;
      const Image image = picture(w, h, f);
      vstc::Params p;
      p.log2_block = 4 + i++ % 3;
      p.effort = vstc::Effort::kFast;
      for (const int qp : {12, 30}) {
        p.qp = qp;
        const std::vector<std::byte> bytes = coded(image, p);
        const Image back = decoded(bytes);
        ASSERT_EQ(back.width, w);
        ASSERT_EQ(back.height, h);
        ASSERT_EQ(back.format, f);
        // A uniform quantiser of step s leaves s^2 / 12; dead zone and choice of levels at most about four times that.
        const double step = std::exp2((qp - 4) / 6.0 + f.bits - 8);
        EXPECT_LT(mean_square(image, back), step * step / 3 + 0.5)
            << w << "x" << h << " " << to_string(f) << " QP " << qp;
        for (const SimdLevel level : levels()) EXPECT_EQ(decoded(bytes, level).samples, back.samples);
      }
    }
}

TEST(Vstc, FlatPicturesCostNothing) {
  Image image = picture(200, 150, format_of(ColourModel::kGrey, 8));
  for (int y = 0; y < 150; ++y)
    for (int x = 0; x < 200; ++x) image.set_sample(0, x, y, 128);
  const std::vector<std::byte> bytes = coded(image, {});
  EXPECT_LT(bytes.size(), 40u);
  EXPECT_EQ(decoded(bytes).samples, image.samples);
}

TEST(Vstc, BytesDependNeitherOnThreadsNorOnInstructionSet) {
  for (const PixelFormat& f : {format_of(ColourModel::kGrey, 8), format_of(ColourModel::kYuv, 8, 1)}) {
    const Image image = picture(45, 34, f);
    vstc::Params p;
    p.log2_block = 4;
    p.qp = 26;
    p.simd = SimdLevel::kScalar;
    const std::vector<std::byte> reference = coded(image, p);
    test::OneOf chosen(test::kSanitized ? 5 : 1);
    for (const SimdLevel level : levels())
      for (const int threads : {1, 3}) {
        if (!chosen()) continue;
        p.simd = level;
        EXPECT_TRUE(coded(image, p, threads) == reference) << to_string(level) << " " << threads;
      }
  }
}

TEST(Vstc, RememberedCostsChangeNothingButTheCount) {
  const Image image = picture(32, 32, format_of(ColourModel::kGrey, 8));
  for (const int qp : {22, 37}) {
    vstc::Params p;
    p.log2_block = 4;
    p.qp = qp;
    ThreadPool pool(1);
    const vstc::Encoded kept = vstc::encode(image, p, pool);
    p.remember = false;
    const vstc::Encoded plain = vstc::encode(image, p, pool);
    EXPECT_EQ(kept.bytes, plain.bytes);
    EXPECT_EQ(kept.statistics.plain_trials, plain.statistics.trials);
    EXPECT_EQ(plain.statistics.plain_trials, plain.statistics.trials);
    EXPECT_LT(kept.statistics.trials, plain.statistics.trials / 2) << "QP " << qp;
  }
}

TEST(Vstc, MoreEffortAndChosenLevelsPay) {
  if (test::kSanitized && !test::full()) GTEST_SKIP() << "sizes and errors, which are looked at in the release build";
  const int side = test::full() ? 128 : 64;
  const Image image = picture(side, side, format_of(ColourModel::kGrey, 8));
  // D + lambda R of the whole picture
  const auto joint = [&](const vstc::Params& p) {
    const std::vector<std::byte> bytes = coded(image, p, 2);
    return mean_square(image, decoded(bytes)) * side * side +
           0.92 * std::exp2((p.qp - 13.74) / 3.428) * 8 * static_cast<double>(bytes.size());
  };
  vstc::Params p;
  p.qp = 30;
  p.log2_block = 4;
  p.effort = vstc::Effort::kFast;
  const double fast = joint(p);
  p.optimise_levels = false;
  EXPECT_GT(joint(p), fast);
  p.optimise_levels = true;
  p.effort = vstc::Effort::kMedium;
  const double medium = joint(p);
  EXPECT_LT(medium, fast);
  p.effort = vstc::Effort::kFull;
  EXPECT_LE(joint(p), medium);
  // A fine step: trials of large residuals must not look cheaper than they are.
  p.qp = 14;
  const double full = joint(p);
  p.effort = vstc::Effort::kMedium;
  EXPECT_LE(full, joint(p));
}

/// A team of threads of this process.
class ThreadTeam final : public vstc::Team {
 public:
  struct Shared {
    explicit Shared(int n) : size(n), values(static_cast<std::size_t>(n)), data(static_cast<std::size_t>(n)) {
      if (n > 1) {
        lower = std::make_unique<Shared>(n / 2);
        upper = std::make_unique<Shared>(n - n / 2);
      }
    }
    void meet() {
      std::unique_lock lock(mutex);
      const int mine = generation;
      if (++arrived == size) {
        arrived = 0;
        ++generation;
        changed.notify_all();
      }
      changed.wait(lock, [&] { return generation != mine; });
    }
    int size;
    std::mutex mutex;
    std::condition_variable changed;
    int arrived = 0, generation = 0;
    std::vector<std::pair<std::int64_t, int>> values;
    std::vector<std::vector<std::int16_t>> data;
    std::map<std::pair<int, int>, std::deque<std::vector<std::int16_t>>> mail;
    std::unique_ptr<Shared> lower, upper;
  };
  ThreadTeam(Shared& shared, int rank) : shared_(shared), rank_(rank) {
    if (shared.size > 1) {
      const bool low = rank < shared.size / 2;
      half_ = std::make_unique<ThreadTeam>(low ? *shared.lower : *shared.upper, low ? rank : rank - shared.size / 2);
    }
  }
  int rank() const override { return rank_; }
  int size() const override { return shared_.size; }
  Team& half() override { return *half_; }
  std::pair<std::int64_t, int> minimum(std::int64_t value, int index) override {
    shared_.values[static_cast<std::size_t>(rank_)] = {value, index};
    shared_.meet();
    const auto least = *std::min_element(shared_.values.begin(), shared_.values.end());
    shared_.meet();
    return least;
  }
  void broadcast(std::vector<std::int16_t>& data, int root) override {
    if (rank_ == root) shared_.data[0] = data;
    shared_.meet();
    data = shared_.data[0];
    shared_.meet();
  }
  void send(std::vector<std::int16_t> data, int to) override {
    std::lock_guard lock(shared_.mutex);
    shared_.mail[{rank_, to}].push_back(std::move(data));
    shared_.changed.notify_all();
  }
  std::vector<std::int16_t> receive(int from) override {
    std::unique_lock lock(shared_.mutex);
    auto& box = shared_.mail[{from, rank_}];
    shared_.changed.wait(lock, [&] { return !box.empty(); });
    std::vector<std::int16_t> data = std::move(box.front());
    box.pop_front();
    return data;
  }

 private:
  Shared& shared_;
  int rank_;
  std::unique_ptr<ThreadTeam> half_;
};

TEST(Vstc, TeamsWriteTheSameStream) {
  for (const PixelFormat& f : {format_of(ColourModel::kGrey, 8), format_of(ColourModel::kYuv, 8, 1)}) {
    const Image image = picture(45, 36, f);
    vstc::Params p;
    p.log2_block = 4;
    p.qp = 28;
    const std::vector<std::byte> reference = coded(image, p);
    test::OneOf chosen(test::kSanitized ? 5 : 1);
    for (const vstc::Sharing sharing : {vstc::Sharing::kRows, vstc::Sharing::kCandidates, vstc::Sharing::kModes})
      for (const int size : {2, 3, 5}) {
        if (!chosen()) continue;
        ThreadTeam::Shared shared(size);
        std::vector<std::vector<std::byte>> out(static_cast<std::size_t>(size));
        std::vector<std::thread> members;
        for (int rank = 0; rank < size; ++rank)
          members.emplace_back([&, rank] {
            ThreadTeam team(shared, rank);
            vstc::Params own = p;
            own.team = &team;
            own.sharing = sharing;
            out[static_cast<std::size_t>(rank)] = coded(image, own);
          });
        for (auto& m : members) m.join();
        EXPECT_TRUE(out[0] == reference) << size << " members, division " << static_cast<int>(sharing);
        for (std::size_t i = 1; i < out.size(); ++i) EXPECT_TRUE(out[i].empty());
      }
  }
}

TEST(Vstc, BadArgumentsAreRefused) {
  const Image image = picture(16, 16, format_of(ColourModel::kGrey, 8));
  ThreadPool pool(1);
  const auto refused = [&](const Image& i, const vstc::Params& p) {
    try {
      vstc::encode(i, p, pool);
    } catch (const Error& e) {
      return e.kind() == ErrorKind::kBadArgument;
    }
    return false;
  };
  vstc::Params p;
  p.qp = 52;
  EXPECT_TRUE(refused(image, p));
  p.qp = 30;
  p.log2_block = 7;
  EXPECT_TRUE(refused(image, p));
  EXPECT_TRUE(refused(picture(16, 16, format_of(ColourModel::kGrey, 16)), {}));
  Image bad = image;
  bad.samples.pop_back();
  EXPECT_TRUE(refused(bad, {}));
  bad = picture(16, 16, format_of(ColourModel::kGrey, 10));
  bad.set_sample(0, 3, 3, 1024);
  EXPECT_TRUE(refused(bad, {}));
}

TEST(Vstc, DamageIsNoticedOrHarmless) {
  const Image image = picture(70, 50, format_of(ColourModel::kYuv, 8, 1));
  const std::vector<std::byte> bytes = coded(image, {});
  const auto kind = [&](const std::vector<std::byte>& b) {
    try {
      decoded(b);
    } catch (const Error& e) {
      return static_cast<int>(e.kind());
    }
    return -1;
  };
  test::OneOf chosen(test::kSanitized ? 3 : 1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!chosen()) continue;
    std::vector<std::byte> b = bytes;
    b[i] ^= std::byte{0x10};
    const int k = kind(b);
    EXPECT_TRUE(k == static_cast<int>(ErrorKind::kBadStream) || k == static_cast<int>(ErrorKind::kUnsupported)) << i;
    seal(b);
    decoded(bytes);
    const int sealed = kind(b);
    EXPECT_TRUE(sealed == -1 || sealed == static_cast<int>(ErrorKind::kBadStream) ||
                sealed == static_cast<int>(ErrorKind::kUnsupported))
        << i;
    b = bytes;
    b.resize(i);
    EXPECT_EQ(kind(b), static_cast<int>(ErrorKind::kBadStream)) << i;
  }
}

}  // namespace
