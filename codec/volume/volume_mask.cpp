// Finds, codes and restores marked scalars. Marks are coded with an adaptive binary range coder whose contexts are
// neighbouring marks (FORMAT.md "Mask").
#include "codec/volume/volume_mask.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/entropy/dense/dense_model.h"
#include "codec/entropy/dense/range_coder.h"
#include "codec/format/container.h"

namespace trivelet {

namespace {

constexpr std::uint8_t kMaskVersion = 1;
constexpr std::uint64_t kGroupSlices = 32;
constexpr std::uint64_t kMaxGroupSlices = 128;
constexpr std::uint32_t kEven = 32768;  // probability of an equiprobable bit
constexpr int kMarkBits = 8;
constexpr std::int64_t kBitsBeyondEnd = 16;

[[noreturn]] void bad_mask(const std::string& message) {
  fail(ErrorKind::kBadStream, "mask of the volume: " + message);
}

std::size_t scalars_of_slice(const VolumeDescription& v) {
  return v.slice_bytes() / static_cast<std::size_t>(bytes_of(v.voxel.type));
}

/// Contexts of a channel.
struct MaskContexts {
  dense::State same;
  std::array<dense::State, 2> above;
  std::array<dense::State, 32> set;
  dense::State like;
};

/// Visits the decisions of a slice in order, for reading or writing: decide(state, value) returns value() or reads the
/// codeword; plain(value) handles a number of kMarkBits.
template <class Bits>
void code_slice(const VolumeDescription& v, std::vector<MaskContexts>& contexts, std::span<const std::uint8_t> before,
                std::span<std::uint8_t> marks, Bits& bits) {
  const auto channels = static_cast<std::size_t>(v.voxel.channels);
  const auto width = static_cast<std::size_t>(v.width);
  const auto height = static_cast<std::size_t>(v.height);
  const std::size_t row_scalars = width * channels;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    MaskContexts& x = contexts[channel];
    const auto equal = [&](std::size_t begin, std::size_t count, const std::uint8_t* other, std::size_t other_begin) {
      for (std::size_t i = 0; i < count; ++i)
        if (marks[begin + i * channels] != (other ? other[other_begin + i * channels] : 0)) return false;
      return true;
    };
    const auto copy = [&](std::size_t begin, std::size_t count, const std::uint8_t* other, std::size_t other_begin) {
      for (std::size_t i = 0; i < count; ++i)
        marks[begin + i * channels] = other ? other[other_begin + i * channels] : std::uint8_t{0};
    };
    if (bits.decide(x.same, [&] { return equal(channel, width * height, before.data(), channel); })) {
      if constexpr (Bits::kReading) copy(channel, width * height, before.data(), channel);
      continue;
    }
    bool repeated = false;
    for (std::size_t y = 0; y < height; ++y) {
      const std::size_t row = y * row_scalars + channel;
      const std::uint8_t* up = y > 0 ? marks.data() : nullptr;
      const std::size_t up_row = y > 0 ? row - row_scalars : 0;
      bits.reserve(1);
      repeated = bits.decide(x.above[repeated], [&] { return equal(row, width, up, up_row); });
      if (repeated) {
        if constexpr (Bits::kReading) copy(row, width, up, up_row);
        continue;
      }
      bits.reserve(width * (2 + kMarkBits));
      std::uint8_t left = 0;
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t at = row + c * channels;
        const std::uint8_t above = up ? up[at - row_scalars] : std::uint8_t{0};
        const std::uint8_t above_left = up && c > 0 ? up[at - row_scalars - channels] : std::uint8_t{0};
        const std::uint8_t above_right = up && c + 1 < width ? up[at - row_scalars + channels] : std::uint8_t{0};
        const std::uint8_t old = before[at];
        const int context =
            (left != 0) + 2 * (above != 0) + 4 * (above_left != 0) + 8 * (above_right != 0) + 16 * (old != 0);
        std::uint8_t mark = marks[at];
        if (!bits.decide(x.set[static_cast<std::size_t>(context)], [&] { return mark != 0; })) {
          mark = 0;
        } else {
          const std::uint8_t expected = left != 0 ? left : above != 0 ? above : old != 0 ? old : std::uint8_t{1};
          if (bits.decide(x.like, [&] { return mark == expected; }))
            mark = expected;
          else
            mark = static_cast<std::uint8_t>(bits.plain(mark - 1) + 1);
        }
        if constexpr (Bits::kReading) marks[at] = mark;
        left = mark;
      }
      bits.check();
    }
  }
  bits.check();
}

struct WritingBits {
  static constexpr bool kReading = false;
  dense::RangeEncoder& coder;
  void reserve(std::size_t decisions) { coder.reserve(decisions); }
  template <class Value>
  bool decide(dense::State& state, const Value& value) {
    const bool bit = value();
    coder.put(bit, dense::probability(state));
    dense::update(state, bit);
    return bit;
  }
  int plain(int value) {
    for (int i = kMarkBits - 1; i >= 0; --i) coder.put((value >> i & 1) != 0, kEven);
    return value;
  }
  void check() {}
};

struct ReadingBits {
  static constexpr bool kReading = true;
  dense::RangeDecoder& coder;
  std::size_t values;
  void reserve(std::size_t) {}
  template <class Value>
  bool decide(dense::State& state, const Value&) {
    const bool bit = coder.get(dense::probability(state));
    dense::update(state, bit);
    return bit;
  }
  int plain(int) {
    int value = 0;
    for (int i = 0; i < kMarkBits; ++i) value = 2 * value + (coder.get(kEven) ? 1 : 0);
    if (static_cast<std::size_t>(value) >= values)
      bad_mask("a mark " + std::to_string(value + 1) + " of " + count_of(values, "value"));
    return value;
  }
  void check() {
    if (coder.beyond_end() > kBitsBeyondEnd) bad_mask("a codeword that ends too early");
  }
};

bool is_finite_bits(std::uint64_t bits, VoxelType type) {
  constexpr std::uint64_t kExponent32 = 0x7f800000u, kExponent64 = 0x7ff0000000000000u;
  const std::uint64_t exponent = type == VoxelType::kF32 ? kExponent32 : kExponent64;
  return (bits & exponent) != exponent;
}

template <class U>
U load_scalar(const std::byte* p, bool big_endian) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < sizeof(U); ++i)
    v |= std::to_integer<std::uint64_t>(p[i]) << (8 * (big_endian ? sizeof(U) - 1 - i : i));
  return static_cast<U>(v);
}

template <class F>
auto by_scalar_width(VoxelType type, const F& f) {
  switch (bytes_of(type)) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

}  // namespace

std::uint64_t scalar_bits_of(double value, VoxelType type) {
  if (type == VoxelType::kF64) return std::bit_cast<std::uint64_t>(value);
  if (type == VoxelType::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const int bits = 8 * bytes_of(type);
  const double least = is_signed(type) ? -std::ldexp(1.0, bits - 1) : 0;
  const double end = std::ldexp(1.0, is_signed(type) ? bits - 1 : bits);
  const double rounded = std::nearbyint(value);
  const std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  if (rounded >= end) return is_signed(type) ? all >> 1 : all;
  if (rounded <= least) return is_signed(type) ? std::uint64_t{1} << (bits - 1) : 0;
  return (rounded < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(rounded))
                      : static_cast<std::uint64_t>(rounded)) &
         all;
}

void store_scalar(std::uint64_t bits, const VoxelFormat& format, std::byte* stored) {
  const int n = bytes_of(format.type);
  for (int i = 0; i < n; ++i) stored[i] = static_cast<std::byte>(bits >> (8 * (format.big_endian ? n - 1 - i : i)));
}

// ------------------------------------------------------------------------------------------------------------- marker

VolumeMarker::VolumeMarker(const VoxelFormat& format, const std::vector<double>& fill_values) : format_(format) {
  for (const double value : fill_values) {
    if (is_real(format.type) && !std::isfinite(value)) continue;  // marked in any case
    const std::uint64_t bits = scalar_bits_of(value, format.type);
    std::byte stored[8];
    store_scalar(bits, format, stored);
    const double held = scalar_value(stored, format.type, format.big_endian);
    // A float rounds to the nearest one: 1e20 is not representable in 32 bits.
    require(is_real(format.type) ? std::isfinite(held) : held == value, ErrorKind::kBadArgument,
            "a fill value of " + std::to_string(value) + ", which " + to_string(format.type) + " cannot hold");
    fills_.push_back(bits);
    if (is_real(format.type) && held == 0)
      fills_.push_back(scalar_bits_of(std::signbit(value) ? 0.0 : -0.0, format.type));  // the zero of the other sign
  }
}

std::uint8_t VolumeMarker::mark_of(std::uint64_t bits) {
  auto at = std::find(values_.begin(), values_.end(), bits);
  if (at == values_.end()) {
    require(values_.size() < kMaxMarkedValues, ErrorKind::kUnsupported,
            "more than " + std::to_string(kMaxMarkedValues) +
                " different values that are not finite; code this volume losslessly");
    at = values_.insert(at, bits);
  }
  return static_cast<std::uint8_t>(at - values_.begin() + 1);
}

template <class U>
bool VolumeMarker::find_bits(const std::byte* stored, std::span<std::uint8_t> marks) {
  const bool real = is_real(format_.type);
  bool any = false;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const std::uint64_t bits = load_scalar<U>(stored + i * sizeof(U), format_.big_endian);
    const bool marked = (real && !is_finite_bits(bits, format_.type)) ||
                        (!fills_.empty() && std::find(fills_.begin(), fills_.end(), bits) != fills_.end());
    marks[i] = marked ? mark_of(bits) : std::uint8_t{0};
    any |= marked;
  }
  return any;
}

bool VolumeMarker::find(const std::byte* stored, std::span<std::uint8_t> marks) {
  return by_scalar_width(format_.type, [&](auto u) { return find_bits<decltype(u)>(stored, marks); });
}

// ------------------------------------------------------------------------------------------------------------ encoder

struct MaskEncoder::Coder {
  dense::RangeEncoder range;
  std::vector<MaskContexts> contexts;
};

MaskEncoder::MaskEncoder(const VolumeDescription& volume) : coder_(std::make_unique<Coder>()), volume_(volume) {}
MaskEncoder::~MaskEncoder() = default;

void MaskEncoder::add(std::span<const std::uint8_t> marks) {
  if (slices_ == 0) {
    coder_->range.start();
    coder_->contexts.assign(static_cast<std::size_t>(volume_.voxel.channels), {});
    before_.assign(marks.size(), 0);
    group_any_ = false;
  }
  group_any_ |= std::any_of(marks.begin(), marks.end(), [](std::uint8_t m) { return m != 0; });
  any_ |= group_any_;
  WritingBits bits{coder_->range};
  bits.reserve(static_cast<std::size_t>(volume_.voxel.channels));
  // Marks are only read here (kReading is false).
  code_slice(volume_, coder_->contexts, before_, {const_cast<std::uint8_t*>(marks.data()), marks.size()}, bits);
  before_.assign(marks.begin(), marks.end());
  if (static_cast<std::uint64_t>(++slices_) == kGroupSlices) end_group();
}

void MaskEncoder::end_group() {
  slices_ = 0;
  if (!group_any_) {
    sizes_.push_back(0);
    return;
  }
  // Not shorter than what was written: a decoder treats reading far beyond the end as damage.
  const std::size_t put = std::max<std::size_t>(1, coder_->range.mark().bytes);
  coder_->range.finish();
  const std::size_t size = coder_->range.size();
  codewords_.insert(codewords_.end(), coder_->range.data(), coder_->range.data() + size);
  codewords_.resize(codewords_.size() + (size < put ? put - size : 0));
  sizes_.push_back(std::max(size, put));
}

std::vector<std::uint8_t> MaskEncoder::finish(const std::vector<std::uint64_t>& values) {
  if (slices_ > 0) end_group();
  ByteWriter w;
  w.fixed(kMaskVersion);
  w.varint(values.size());
  for (const std::uint64_t value : values) w.fixed(value);
  w.varint(kGroupSlices);
  for (const std::uint64_t size : sizes_) w.varint(size);
  require(w.bytes.size() + codewords_.size() + kBoxCrcBytes <= kMaxExtraBytes, ErrorKind::kUnsupported,
          "the places of values that are not finite take " + count_of(codewords_.size(), "byte") + "; at most " +
              std::to_string(kMaxExtraBytes) + " can be kept. Code this volume losslessly");
  w.bytes.insert(w.bytes.end(), codewords_.begin(), codewords_.end());
  return std::move(w.bytes);
}

// ------------------------------------------------------------------------------------------------------------ decoder

struct MaskDecoder::Coder {
  dense::RangeDecoder range;
  std::vector<MaskContexts> contexts;
  std::vector<std::uint8_t> before;
};

MaskDecoder::MaskDecoder(const VolumeDescription& volume, const std::uint8_t* bytes, std::size_t size)
    : volume_(volume), coder_(std::make_unique<Coder>()) {
  ByteReader in(bytes, size, "mask of the volume");
  std::uint8_t version = 0;
  in.fixed(version);
  require(version == kMaskVersion, ErrorKind::kUnsupported,
          "mask of the volume: version " + std::to_string(version) + "; this library knows " +
              std::to_string(kMaskVersion));
  std::uint64_t n = 0;
  in.varint(n);
  if (n < 1 || n > kMaxMarkedValues) bad_mask(count_of(n, "value") + "; must be 1..255");
  values_.resize(static_cast<std::size_t>(n));
  const int width = 8 * bytes_of(volume.voxel.type);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    in.fixed(values_[i]);
    if ((width < 64 && values_[i] >> width != 0) ||
        std::find(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(i), values_[i]) !=
            values_.begin() + static_cast<std::ptrdiff_t>(i))
      bad_mask("value " + std::to_string(i + 1) + " is none of the type, or there twice");
  }
  in.varint(group_slices_);
  if (group_slices_ < 1 || group_slices_ > kMaxGroupSlices)
    bad_mask("groups of " + count_of(group_slices_, "slice") + "; must be 1..128");
  const std::uint64_t groups = volume.all_slices() / group_slices_ + (volume.all_slices() % group_slices_ != 0);
  if (groups > in.left()) bad_mask("it ends before the sizes of " + count_of(groups, "group"));
  groups_.resize(static_cast<std::size_t>(groups));
  std::size_t at = 0;
  std::vector<std::uint64_t> sizes(groups_.size());
  for (std::uint64_t& s : sizes) in.varint(s);
  const std::size_t left = in.left();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (sizes[i] > left - at)
      bad_mask("a codeword of " + count_of(sizes[i], "byte") + "; " + std::to_string(left - at) + " are left");
    groups_[i] = {at, static_cast<std::size_t>(sizes[i])};
    at += groups_[i].size;
  }
  codewords_ = in.rest();
  codewords_.resize(at);  // drops the reserve
}
MaskDecoder::~MaskDecoder() = default;
MaskDecoder::MaskDecoder(MaskDecoder&&) noexcept = default;
MaskDecoder& MaskDecoder::operator=(MaskDecoder&&) noexcept = default;

std::span<const std::uint8_t> MaskDecoder::marks(std::uint64_t slice) {
  const Group& group = groups_.at(static_cast<std::size_t>(slice / group_slices_));
  if (group.size == 0) return {};
  const std::uint64_t first = slice / group_slices_ * group_slices_;
  if (slice + 1 == next_ && !marks_.empty()) return marks_;
  if (marks_.empty() || next_ <= first || next_ > slice) {
    next_ = first;
    coder_->range.start(codewords_.data() + group.at, group.size);
    coder_->contexts.assign(static_cast<std::size_t>(volume_.voxel.channels), {});
    marks_.assign(scalars_of_slice(volume_), 0);
  }
  ReadingBits bits{coder_->range, values_.size()};
  for (; next_ <= slice; ++next_) {
    coder_->before = marks_;
    code_slice(volume_, coder_->contexts, coder_->before, marks_, bits);
  }
  return marks_;
}

std::optional<MaskDecoder> volume_mask_of(const std::vector<ExtraBox>& boxes, const VolumeDescription& volume) {
  for (const ExtraBox& box : boxes)
    if (box.type == kMaskBox) return MaskDecoder(volume, box.payload.data(), box.payload.size());
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------------------------ overlay

MaskOverlay::MaskOverlay(const VoxelFormat& format, const std::vector<std::uint64_t>& values)
    : bytes_(static_cast<std::size_t>(bytes_of(format.type))), values_(values.size() * bytes_) {
  for (std::size_t i = 0; i < values.size(); ++i) store_scalar(values[i], format, values_.data() + i * bytes_);
}

void MaskOverlay::put(std::uint8_t mark, std::byte* stored) const {
  if (mark != 0) std::memcpy(stored, values_.data() + (mark - 1) * bytes_, bytes_);
}

}  // namespace trivelet
