// Encoder and decoder of the dct still codec (DCT.md): adaptive coding of the levels of one transform.
#include "codec/still/dct/dct.h"

#include <bit>
#include <cmath>
#include <string>

#include "codec/base/limits.h"
#include "codec/entropy/dense/range_coder.h"
#include "codec/still/dct/dct_scan.h"
#include "codec/still/vstc/vstc_model.h"

namespace trivelet::dct {

namespace {

using vstc::Context;

constexpr int kClasses = 12;
constexpr int kMaxLength = 31;
constexpr std::uint32_t kMaxLevel = 1 << 30;
double step_of(int qp, int bits) { return std::exp2((qp - 4) / 6.0 + bits - 8); }

/// The running mean of a class of numbers, and their contexts.
struct Numbers {
  Context length[kClasses][kMaxLength + 1];
  Context top[kClasses][kMaxLength + 1];
  std::uint32_t mean = 0;

  int kind() const { return std::min(kClasses - 1, static_cast<int>(std::bit_width(mean >> 3))); }
  void see(std::uint32_t v) {
    const int target = static_cast<int>(16 * std::min<std::uint32_t>(v, 65535));
    mean = static_cast<std::uint32_t>(static_cast<int>(mean) + ((target - static_cast<int>(mean)) >> 3));
  }
};

struct Coder {
  dense::RangeEncoder coder;
  bool bit(Context& c, bool value) {
    coder.reserve(1);
    coder.put(value, c.probability());
    c.update(value);
    return value;
  }
  bool plain(bool value) {
    coder.reserve(1);
    coder.put(value, 32768);
    return value;
  }
};

struct Decoder {
  dense::RangeDecoder coder;
  bool bit(Context& c, bool) {
    const bool value = coder.get(c.probability());
    c.update(value);
    return value;
  }
  bool plain(bool) { return coder.get(32768); }
};

/// Both directions: codes v, or returns the decoded value.
template <class Io>
std::uint32_t code_number(Io& io, Numbers& n, std::uint32_t v) {
  const auto c = static_cast<std::size_t>(n.kind());
  const int wanted = std::bit_width(v + 1) - 1;
  int k = 0;
  while (k < kMaxLength && io.bit(n.length[c][k], k < wanted)) ++k;
  std::uint32_t value = 1;
  for (int i = k - 1; i >= 0; --i) {
    const bool b = (v + 1) >> i & 1;
    value = 2 * value + (i == k - 1 ? io.bit(n.top[c][k], b) : io.plain(b));
  }
  n.see(value - 1);
  return value - 1;
}

}  // namespace

std::vector<std::int32_t> Transform::levels(const still::Image& image, int component, double step, std::uint64_t kept) {
  const int w = image.format.component_width(image.width, component),
            h = image.format.component_height(image.height, component);
  const double middle = 1 << (image.format.bits - 1);
  std::vector<double> plane(static_cast<std::size_t>(w) * static_cast<std::size_t>(h));
  double* value = plane.data();
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) *value++ = image.sample(component, x, y) - middle;
  forward(plane.data(), w, h);
  std::vector<std::int32_t> out(kept);
  value = plane.data();
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x, ++value) {
      const std::uint64_t place = scan_place(x, y, w, h);
      if (place < kept) out[place] = level_of(*value, step);
    }
  return out;
}

void Transform::samples(std::span<const std::int32_t> levels, double step, still::Image& image, int component) {
  const int w = image.format.component_width(image.width, component),
            h = image.format.component_height(image.height, component);
  const double middle = 1 << (image.format.bits - 1), most = (1 << image.format.bits) - 1;
  std::vector<double> plane(static_cast<std::size_t>(w) * static_cast<std::size_t>(h));
  double* value = plane.data();
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x, ++value) {
      const std::uint64_t place = scan_place(x, y, w, h);
      if (place < levels.size()) *value = levels[place] * step;
    }
  inverse(plane.data(), w, h);
  value = plane.data();
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) image.set_sample(component, x, y, sample_of(*value++, middle, most));
}

std::vector<std::byte> encode(const still::Image& image, const Params& params, Transform& transform) {
  still::check_image(image, 8, 16);
  require(params.qp >= 0 && params.qp <= 51, ErrorKind::kBadArgument,
          "QP must be 0 to 51, not " + std::to_string(params.qp));
  require(params.keep >= 0 && params.keep <= 1, ErrorKind::kBadArgument,
          "the part to keep must be 0 to 1, not " + std::to_string(params.keep));
  const double step = step_of(params.qp, image.format.bits);
  Coder io;
  io.coder.start();
  Numbers runs, magnitudes;
  for (int c = 0; c < image.components(); ++c) {
    const int w = image.format.component_width(image.width, c), h = image.format.component_height(image.height, c);
    const std::size_t count = static_cast<std::size_t>(w) * static_cast<std::size_t>(h);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        const int v = image.sample(c, x, y);
        if (v >> image.format.bits != 0)
          fail(ErrorKind::kBadArgument,
               "sample " + std::to_string(v) + " does not fit " + count_of(image.format.bits, "bit"));
      }
    struct Pair {
      std::uint32_t run;
      std::int32_t level;
    };
    std::vector<Pair> pairs;
    std::uint32_t run = 0;
    const auto kept = static_cast<std::uint64_t>(std::llround(params.keep * static_cast<double>(count)));
    for (const std::int32_t level : transform.levels(image, c, step, kept)) {
      if (level == 0) {
        ++run;
      } else {
        pairs.push_back({run, level});
        run = 0;
      }
    }
    for (int i = 31; i >= 0; --i) io.plain(pairs.size() >> i & 1);
    runs.mean = magnitudes.mean = 0;
    for (const Pair& p : pairs) {
      code_number(io, runs, p.run);
      code_number(io, magnitudes, static_cast<std::uint32_t>(std::abs(p.level) - 1));
      io.plain(p.level < 0);
    }
  }
  io.coder.finish();
  still::Header header;
  header.codec = still::Codec::kDct;
  header.width = image.width;
  header.height = image.height;
  header.format = image.format;
  header.parameters = {static_cast<std::uint8_t>(params.qp)};
  return still::write_file(header, {io.coder.data(), io.coder.size()});
}

still::Image decode(std::span<const std::byte> bytes, const DecodeParams& params, Transform& transform) {
  const still::File file = still::read_file(bytes);
  const still::Header& header = file.header;
  require(header.codec == still::Codec::kDct, ErrorKind::kUnsupported, "the stream is of another codec than dct");
  require(header.format.bits >= 8, ErrorKind::kBadStream,
          count_of(header.format.bits, "bit") + " per sample; dct has 8 to 16");
  require(header.parameters[0] <= 51, ErrorKind::kBadStream,
          "QP " + std::to_string(header.parameters[0]) + " is above 51");
  // bytes: the picture, its levels, and two copies of a plane in the transform
  constexpr std::uint64_t kBytesOfSample = 24;
  still::check_cost(header, bytes.size(), kBytesOfSample, params.limits);
  still::Image image;
  image.width = header.width;
  image.height = header.height;
  image.format = header.format;
  image.allocate();
  const double step = step_of(header.parameters[0], header.format.bits);
  Decoder io;
  io.coder.start(file.payload.data(), file.payload.size());
  Numbers runs, magnitudes;
  for (int c = 0; c < image.components(); ++c) {
    const int w = image.format.component_width(image.width, c), h = image.format.component_height(image.height, c);
    const std::size_t count = static_cast<std::size_t>(w) * static_cast<std::size_t>(h);
    std::uint64_t pairs = 0;
    for (int i = 0; i < 32; ++i) pairs = 2 * pairs + io.plain(false);
    require(pairs <= count, ErrorKind::kBadStream,
            count_of(pairs, "level") + " in a plane of " + count_of(count, "sample"));
    std::vector<std::int32_t> levels;
    runs.mean = magnitudes.mean = 0;
    for (; pairs > 0; --pairs) {
      const std::uint64_t place = levels.size() + std::uint64_t{code_number(io, runs, 0)};
      if (place >= count) fail(ErrorKind::kBadStream, "a run of zeros leaves the plane");
      const std::uint32_t above = code_number(io, magnitudes, 0);
      if (above >= kMaxLevel) fail(ErrorKind::kBadStream, "a level is above 2^30");
      const auto level = static_cast<std::int32_t>(above + 1);
      levels.resize(place + 1);
      levels[place] = io.plain(false) ? -level : level;
    }
    transform.samples(levels, step, image, c);
  }
  return image;
}

}  // namespace trivelet::dct
