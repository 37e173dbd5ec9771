// Conversion between the samples of DICOM files and scalars (see dicom_samples.h).
#include "io/volume/dicom_samples.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "codec/base/bytes.h"

namespace trivelet::io {

namespace {

using Bytes = std::vector<std::byte>;

/// Bits beside the values, word after word, as runs: a count and the bits. The last run has no bits.
class RunsOut {
 public:
  void add(std::uint32_t bits) {
    if (bits == bits_) {
      ++run_;
      return;
    }
    put();
    bits_ = bits;
    run_ = 1;
  }
  /// Empty if there are too many to keep.
  std::optional<Bytes> finish() const {
    RunsOut copy = *this;
    if (copy.bits_ != 0) copy.put();
    if (copy.too_many_) return std::nullopt;
    return std::move(copy.out_);
  }

 private:
  void put() {
    if (run_ == 0 || too_many_) return;
    put_varint(out_, run_);
    put_varint(out_, bits_);
    if (out_.size() <= kMaxHeadBytes) return;
    too_many_ = true;
    out_ = {};
  }

  Bytes out_;
  std::uint64_t run_ = 0;
  std::uint32_t bits_ = 0;
  bool too_many_ = false;
};

class RunsIn {
 public:
  explicit RunsIn(const Bytes& bytes) : bytes_(bytes) {}
  std::uint32_t next() {
    while (run_ == 0) {
      if (at_ == bytes_.size()) return 0;
      run_ = varint();
      bits_ = static_cast<std::uint32_t>(varint());
    }
    --run_;
    return bits_;
  }

 private:
  std::uint64_t varint() {
    const auto v = take_varint([this] {
      require(at_ < bytes_.size(), ErrorKind::kBadStream, "the bits beside Bits Stored end inside of a number");
      return std::to_integer<std::uint8_t>(bytes_[at_++]);
    });
    require(v.has_value(), ErrorKind::kBadStream, "the bits beside Bits Stored have a number of more than 64 bits");
    return *v;
  }

  const Bytes& bytes_;
  std::size_t at_ = 0;
  std::uint64_t run_ = 0;
  std::uint32_t bits_ = 0;
};

template <typename Word>
Word load(const std::byte* p, bool big_endian) {
  Word v = 0;
  for (std::size_t i = 0; i < sizeof v; ++i)
    v = static_cast<Word>(v |
                          static_cast<Word>(std::to_integer<Word>(p[big_endian ? sizeof v - 1 - i : i]) << (8 * i)));
  return v;
}
template <typename Word>
void store(std::byte* p, Word v, bool big_endian) {
  for (std::size_t i = 0; i < sizeof v; ++i)
    p[big_endian ? sizeof v - 1 - i : i] = static_cast<std::byte>(v >> (8 * i));
}

/// Calls f with a word of the sample size.
template <typename F>
void with_word(unsigned bytes, F f) {
  switch (bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

/// Extracts the bits of the value from a word, and converts them to the value.
template <typename Word>
struct Value {
  explicit Value(const DicomSamples& s)
      : mask(static_cast<Word>(static_cast<Word>(~Word{0}) >> (8 * sizeof(Word) - s.stored))),
        top(s.is_signed ? static_cast<Word>((mask >> 1) + 1) : Word{0}),
        shift(s.shift) {}
  Word of(Word word) const {
    const Word v = static_cast<Word>(word >> shift) & mask;
    return (v & top) != 0 ? static_cast<Word>(v | static_cast<Word>(~mask)) : v;
  }
  Word in_place(Word value) const { return static_cast<Word>((value & mask) << shift); }
  /// Clamps to the range of the bits; after lossy coding values may exceed it.
  Word nearest(Word value) const {
    using Signed = std::make_signed_t<Word>;
    if (top == 0) return std::min(value, mask);
    const auto most = static_cast<Signed>(mask >> 1);
    return static_cast<Word>(std::clamp(static_cast<Signed>(value), static_cast<Signed>(-most - 1), most));
  }

  Word mask, top;
  unsigned shift;
};

void copy_planes(const DicomSamples& s, const std::byte* planes, std::byte* pixels, bool to_planes) {
  with_word(s.bytes, [&](auto word) {
    constexpr std::size_t kBytes = sizeof word;
    for (std::size_t c = 0; c < s.samples; ++c)
      for (std::size_t i = 0; i < s.pixels; ++i) {
        auto* plane = const_cast<std::byte*>(planes) + (c * s.pixels + i) * kBytes;
        std::byte* pixel = pixels + (i * s.samples + c) * kBytes;
        to_planes ? std::memcpy(plane, pixel, kBytes) : std::memcpy(pixel, plane, kBytes);
      }
  });
}

/// Converts between Y Y Cb Cr for two pixels and Y Cb Cr Y Cb Cr.
void copy_half_chroma(const DicomSamples& s, std::byte* halved, std::byte* pixels, bool to_halved) {
  const std::size_t n = s.bytes;
  const auto copy = [n](std::byte* to, const std::byte* from) { std::memcpy(to, from, n); };
  for (std::uint64_t i = 0; i < s.pixels / 2; ++i, halved += 4 * n, pixels += 6 * n) {
    if (to_halved) {
      copy(halved, pixels);
      copy(halved + n, pixels + 3 * n);
      std::memcpy(halved + 2 * n, pixels + n, 2 * n);
    } else {
      copy(pixels, halved);
      copy(pixels + 3 * n, halved + n);
      std::memcpy(pixels + n, halved + 2 * n, 2 * n);
      std::memcpy(pixels + 4 * n, halved + 2 * n, 2 * n);
    }
  }
}

void reverse_words(Bytes& bytes, std::size_t word) {
  for (std::size_t i = 0; i + word <= bytes.size(); i += word) std::reverse(bytes.data() + i, bytes.data() + i + word);
}

void swap_pairs(Bytes& bytes) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) std::swap(bytes[i], bytes[i + 1]);
}

}  // namespace

DicomSamples dicom_samples(const DicomFile& d, std::uint8_t order) {
  DicomSamples s;
  s.pixels = d.rows * d.columns;
  s.frames = d.frames;
  s.samples = static_cast<unsigned>(d.samples);
  s.bytes = static_cast<unsigned>(d.bits / 8);
  s.stored = static_cast<unsigned>(d.bits);
  if (!d.real && d.stored_bits >= 1 && d.stored_bits <= d.bits) {
    s.stored = static_cast<unsigned>(d.stored_bits);
    // High Bit should be Bits Stored - 1; files from before that rule may have the value elsewhere.
    if (d.high_bit + 1 >= d.stored_bits && d.high_bit < d.bits)
      s.shift = static_cast<unsigned>(d.high_bit + 1 - d.stored_bits);
  }
  s.big_endian = d.big_endian;
  s.is_signed = d.is_signed;
  s.order = order;
  return s;
}

std::uint8_t dicom_order(const DicomFile& d, const std::string& name) {
  std::uint8_t order = 0;
  const std::uint64_t pixels = d.rows * d.columns * d.frames;
  if (d.samples == 3 && (d.photometric == "YBR_FULL_422" || d.photometric == "YBR_PARTIAL_422") &&
      d.pixel_bytes < pixels * 3 * (d.bits / 8)) {
    require(!d.planar && d.columns % 2 == 0, ErrorKind::kUnsupported,
            name + ": " + d.photometric + (d.planar ? " in planes" : " of an odd number of columns") +
                "; convert the file first");
    order |= kOrderHalfChroma;
  }
  require(d.photometric != "YBR_PARTIAL_420", ErrorKind::kUnsupported,
          name + ": uncompressed colours in YBR_PARTIAL_420; convert the file first");
  if (d.planar && d.samples > 1) order |= kOrderPlanes;
  if (d.big_endian && d.bits == 8 && d.in_words) {
    const DicomSamples s = dicom_samples(d, order);
    require(s.file_frame_bytes() % 2 == 0 || s.frames == 1, ErrorKind::kUnsupported,
            name + ": several frames of an odd number of 8-bit samples in big-endian words; convert the file first");
    order |= kOrderSwapped;
  }
  return order;
}

struct SampleFeed::State {
  VolumeInput& in;
  DicomSamples samples;
  Bytes stored, frame;
  std::size_t at = 0;
  std::uint64_t done = 0;
  RunsOut beside_zeros, beside_signs;

  void next_frame() {
    stored.resize(static_cast<std::size_t>(samples.file_frame_bytes()));
    in.read_exactly(stored.data(), stored.size(), "voxels");
    if (samples.order & kOrderSwapped) swap_pairs(stored);
    const auto last = std::to_integer<std::uint32_t>(stored.back());
    if (samples.order & (kOrderPlanes | kOrderHalfChroma)) {
      frame.resize(static_cast<std::size_t>(samples.frame_bytes()));
      if (samples.order & kOrderPlanes)
        copy_planes(samples, stored.data(), frame.data(), false);
      else
        copy_half_chroma(samples, stored.data(), frame.data(), false);
    } else {
      frame.swap(stored);
      frame.resize(static_cast<std::size_t>(samples.frame_bytes()));
    }
    if (samples.has_unused()) with_word(samples.bytes, [this](auto word) { split<decltype(word)>(); });
    if (samples.order & kOrderReversed) reverse_words(frame, samples.bytes);
    if (samples.has_pad()) {  // treated as the bits of one more sample
      beside_zeros.add(last);
      beside_signs.add(last);
    }
    at = 0;
    ++done;
  }

  template <typename Word>
  void split() {
    const Value<Word> value(samples);
    for (std::byte* p = frame.data(); p != frame.data() + frame.size(); p += sizeof(Word)) {
      const Word word = load<Word>(p, samples.big_endian);
      const Word v = value.of(word);
      beside_zeros.add(static_cast<std::uint32_t>(word ^ value.in_place(v)));
      if (value.top != 0 && value.shift == 0) beside_signs.add(static_cast<std::uint32_t>(word ^ v));
      if (v != word) store(p, v, samples.big_endian);
    }
  }
};

SampleFeed::SampleFeed(VolumeInput& in, const DicomSamples& samples)
    : state_(new State{in, samples, {}, {}, 0, 0, {}, {}}) {}
SampleFeed::~SampleFeed() = default;

std::size_t SampleFeed::read(std::byte* data, std::size_t size) {
  State& s = *state_;
  if (s.at == s.frame.size() && s.done < s.samples.frames) s.next_frame();
  const std::size_t n = std::min(size, s.frame.size() - s.at);
  std::copy_n(s.frame.data() + s.at, n, data);
  s.at += n;
  return n;
}

void SampleFeed::finish(VolumeFile& file) const {
  const State& s = *state_;
  file.order = s.samples.order;
  if (!s.samples.has_unused()) return;
  std::optional<Bytes> zeros = s.beside_zeros.finish();
  if (s.samples.is_signed && s.samples.shift == 0) {
    std::optional<Bytes> signs = s.beside_signs.finish();
    if (signs && signs->empty()) return;  // the words are the values
    if (signs && (!zeros || signs->size() < zeros->size())) {
      file.order |= kOrderSigns;
      file.unused = std::move(*signs);
      return;
    }
  } else if (zeros && zeros->empty() && s.samples.shift == 0) {
    return;
  }
  require(zeros.has_value(), ErrorKind::kUnsupported,
          file.name + ": more than " + std::to_string(kMaxHeadBytes) +
              " bytes of bits beside Bits Stored, which change from sample to sample; clear them first");
  file.order |= kOrderValues;
  file.unused = std::move(*zeros);
}

namespace {

class SampleWriter final : public Packer {
 public:
  SampleWriter(Sink sink, const VolumeFile& file) : sink_(std::move(sink)), unused_(file.unused), runs_(unused_) {
    VolumeInput in(memory_opener(std::make_shared<const Bytes>(file.head))(), file.name);
    const DicomFile d = read_dicom(in);
    samples_ = dicom_samples(d, file.order);
    const bool has_words = d.bits == 8 || d.bits == 16 || d.bits == 32 || (d.real && d.bits == 64);
    require(has_words && d.samples >= 1 && d.samples <= 4 && samples_.frame_bytes() > 0 &&
                samples_.frame_bytes() * samples_.frames == file.voxel_bytes &&
                (!samples_.has_pad() || samples_.frames == 1) &&
                (!(file.order & kOrderHalfChroma) || (d.samples == 3 && d.columns % 2 == 0)),
            ErrorKind::kBadStream, file.name + ": its header in the stream promises other voxels");
  }

  void write(const std::byte* data, std::size_t size) override {
    const auto whole = static_cast<std::size_t>(samples_.frame_bytes());
    while (size > 0) {
      const std::size_t n = std::min(size, whole - frame_.size());
      frame_.insert(frame_.end(), data, data + n);
      data += n;
      size -= n;
      if (frame_.size() == whole) put();
    }
  }
  void finish() override {}

 private:
  void put() {
    if (samples_.order & kOrderReversed) reverse_words(frame_, samples_.bytes);
    if (samples_.order & (kOrderValues | kOrderSigns))
      with_word(samples_.bytes, [this](auto word) { join<decltype(word)>(); });
    const auto file_bytes = static_cast<std::size_t>(samples_.file_frame_bytes());
    stored_.resize(file_bytes);
    if (samples_.order & kOrderPlanes)
      copy_planes(samples_, stored_.data(), frame_.data(), true);
    else if (samples_.order & kOrderHalfChroma)
      copy_half_chroma(samples_, stored_.data(), frame_.data(), true);
    else
      stored_.swap(frame_);
    stored_.resize(file_bytes);
    if (samples_.has_pad())
      stored_.back() =
          samples_.order & (kOrderValues | kOrderSigns) ? static_cast<std::byte>(runs_.next()) : std::byte{0};
    if (samples_.order & kOrderSwapped) swap_pairs(stored_);
    sink_(stored_.data(), stored_.size());
    frame_.clear();
  }

  template <typename Word>
  void join() {
    const Value<Word> value(samples_);
    const auto beside = static_cast<Word>(~value.in_place(value.mask));
    const bool signs = (samples_.order & kOrderSigns) != 0;
    for (std::byte* p = frame_.data(); p != frame_.data() + frame_.size(); p += sizeof(Word)) {
      const Word v = value.nearest(load<Word>(p, samples_.big_endian));
      const Word bits = static_cast<Word>(runs_.next()) & beside;
      store(p, static_cast<Word>((signs ? v : value.in_place(v)) ^ bits), samples_.big_endian);
    }
  }

  Sink sink_;
  Bytes unused_;
  RunsIn runs_;
  DicomSamples samples_;
  Bytes frame_, stored_;
};

}  // namespace

std::unique_ptr<Packer> make_sample_writer(Packer::Sink sink, const VolumeFile& file) {
  return std::make_unique<SampleWriter>(std::move(sink), file);
}

}  // namespace trivelet::io
