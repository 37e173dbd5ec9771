// Maps of volumes: their box, the survey of values that chooses them, and their application to slices.
#include "codec/volume/volume_map.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/volume/volume_shift.h"

namespace trivelet {

namespace {

[[noreturn]] void bad_map(const std::string& message) { fail(ErrorKind::kBadStream, "map of the volume: " + message); }

int width_bits(VoxelType t) { return 8 * bytes_of(t); }
std::uint64_t mask_of(int bits) { return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1; }

// Converts between the bits of a scalar and its key.
std::uint64_t key_of(std::uint64_t bits, VoxelType t) {
  if (!is_signed(t)) return bits;
  const std::uint64_t sign = std::uint64_t{1} << (width_bits(t) - 1);
  if (is_real(t) && (bits & sign)) return ~bits & mask_of(width_bits(t));
  return bits ^ sign;
}
std::uint64_t bits_of(std::uint64_t key, VoxelType t) {
  if (!is_signed(t)) return key;
  const std::uint64_t sign = std::uint64_t{1} << (width_bits(t) - 1);
  if (is_real(t) && !(key & sign)) return ~key & mask_of(width_bits(t));
  return key ^ sign;
}

double value_of(std::uint64_t bits, VoxelType t) {
  switch (t) {
    case VoxelType::kF32: return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case VoxelType::kF64: return std::bit_cast<double>(bits);
    default: break;
  }
  if (!is_signed(t)) return static_cast<double>(bits);
  const int shift = 64 - width_bits(t);
  return static_cast<double>(static_cast<std::int64_t>(bits << shift) >> shift);
}

template <class U>
U swapped(U v) {
  if constexpr (sizeof(U) == 1) return v;
  if constexpr (sizeof(U) == 2) return static_cast<U>(__builtin_bswap16(v));
  if constexpr (sizeof(U) == 4) return static_cast<U>(__builtin_bswap32(v));
  if constexpr (sizeof(U) == 8) return static_cast<U>(__builtin_bswap64(v));
}

template <class U>
U load(const std::byte* p, bool swap) {
  U v;
  std::memcpy(&v, p, sizeof v);
  return swap ? swapped(v) : v;
}

bool must_swap(bool big_endian) { return big_endian != (std::endian::native == std::endian::big); }

// Calls f with a value of the unsigned type as wide as the scalar.
template <class F>
void by_width(VoxelType t, const F& f) {
  switch (bytes_of(t)) {
    case 1: f(std::uint8_t{}); break;
    case 2: f(std::uint16_t{}); break;
    case 4: f(std::uint32_t{}); break;
    default: f(std::uint64_t{});
  }
}

/// (a + b) / c for b < c <= 2^63, where a + b may be more than 64 bits.
std::uint64_t rounded_quotient(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return a / c + (a % c + b >= c ? 1 : 0);
}

// The distance of neighbouring floats around `magnitude`.
double resolution(VoxelType t, double magnitude) {
  if (t == VoxelType::kF64) return std::nextafter(magnitude, std::numeric_limits<double>::infinity()) - magnitude;
  const auto m = static_cast<float>(magnitude);
  return static_cast<double>(std::nextafter(m, std::numeric_limits<float>::infinity())) - static_cast<double>(m);
}

}  // namespace

std::string to_string(VoxelType type) {
  static constexpr const char* kNames[kVoxelTypes] = {"uint8", "int8",   "uint16", "int16",   "uint32",
                                                      "int32", "uint64", "int64",  "float32", "float64"};
  return kNames[static_cast<int>(type)];
}

double scalar_value(const std::byte* stored, VoxelType type, bool big_endian) {
  double value = 0;
  by_width(type, [&](auto u) { value = value_of(load<decltype(u)>(stored, must_swap(big_endian)), type); });
  return value;
}

// ---------------------------------------------------------------------------------------------------------------- map

int VolumeMap::bits() const { return std::max(1, 64 - std::countl_zero(last)); }
int VolumeMap::planes() const { return (bits() + 15) / 16; }

PixelFormat VolumeMap::pixel_format() const {
  const int components = planes() * format.channels;
  PixelFormat f;
  f.bits = plane_bits();
  f.is_signed = prediction != Prediction::kNone;
  switch (components) {
    case 1: f.model = ColourModel::kGrey; break;
    case 2:
      f.model = ColourModel::kGrey;
      f.alpha = true;
      break;
    case 3:
    case 4:
      f.model = format.channels >= 3 ? ColourModel::kRgb : ColourModel::kYuv;
      f.alpha = components == 4;
      break;
    default:
      fail(ErrorKind::kUnsupported, count_of(format.channels, "value") + " of " + std::to_string(bits()) +
                                        " used bits per voxel; at most 4 planes of 16 bits can be coded");
  }
  return f;
}

namespace {

constexpr std::uint8_t kMapVersion = 1;

// A ByteReader whose errors name the map.
class Fields {
 public:
  Fields(const std::uint8_t* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}
  std::uint8_t byte() {
    if (at_ == end_) bad_map("it ends too early");
    return *at_++;
  }
  std::uint64_t varint() {
    const std::optional<std::uint64_t> v = take_varint([this] { return byte(); });
    if (!v) bad_map("a number of more than 64 bits, or of more bytes than it needs");
    return *v;
  }
  double real() {
    std::uint8_t stored[8];
    for (std::uint8_t& b : stored) b = byte();
    return std::bit_cast<double>(load_little_endian<std::uint64_t>(stored));
  }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace

std::vector<std::uint8_t> serialise(const VolumeMap& m) {
  ByteWriter w;
  w.fixed(kMapVersion);
  for (const int v : {static_cast<int>(m.format.type), m.format.big_endian ? 1 : 0, m.format.channels,
                      static_cast<int>(m.kind), static_cast<int>(m.order), static_cast<int>(m.prediction)})
    w.fixed(static_cast<std::uint8_t>(v));
  w.varint(m.slices);
  w.varint(m.volumes);
  w.real(m.max_error);
  w.varint(m.last);
  switch (m.kind) {
    case VolumeMap::Kind::kAffine:
      w.varint(m.offset);
      w.varint(m.scale);
      w.varint(m.last_key);
      break;
    case VolumeMap::Kind::kPalette: {
      std::uint64_t before = 0;
      for (std::size_t i = 0; i < m.palette.size();) {
        // pairs: a gap, then the length of a run of successive keys
        std::size_t run = 1;
        while (i + run < m.palette.size() && m.palette[i + run] == m.palette[i] + run) ++run;
        w.varint(m.palette[i] - before);
        w.varint(run);
        before = m.palette[i] + run;
        i += run;
      }
      break;
    }
    case VolumeMap::Kind::kReal:
      w.real(m.real_offset);
      w.real(m.real_scale);
      break;
  }
  return std::move(w.bytes);
}

VolumeMap parse_volume_map(const std::uint8_t* bytes, std::size_t size) {
  Fields in(bytes, size);
  VolumeMap m;
  if (const int version = in.byte(); version != kMapVersion)
    fail(ErrorKind::kUnsupported, "map of the volume: version " + std::to_string(version) + "; this library knows " +
                                      std::to_string(kMapVersion));
  const int type = in.byte();
  if (type >= kVoxelTypes) bad_map("type " + std::to_string(type));
  m.format.type = static_cast<VoxelType>(type);
  const int endian = in.byte();
  if (endian > 1) bad_map("byte order " + std::to_string(endian));
  m.format.big_endian = endian == 1;
  m.format.channels = in.byte();
  if (m.format.channels < 1 || m.format.channels > kMaxChannels)
    bad_map(count_of(m.format.channels, "channel") + "; must be 1..4");
  const int kind = in.byte();
  if (kind > 2) bad_map("kind " + std::to_string(kind));
  m.kind = static_cast<VolumeMap::Kind>(kind);
  const int order = in.byte();
  if (order > 1) bad_map("order " + std::to_string(order));
  m.order = static_cast<VolumeMap::Order>(order);
  const int prediction = in.byte();
  if (prediction > 2 || (prediction > 0 && m.format.channels >= 3)) bad_map("prediction " + std::to_string(prediction));
  m.prediction = static_cast<VolumeMap::Prediction>(prediction);
  m.slices = in.varint();
  m.volumes = in.varint();
  if (m.slices < 1 || m.volumes < 1 || m.slices > std::numeric_limits<std::uint64_t>::max() / m.volumes)
    bad_map(count_of(m.slices, "slice") + " of " + count_of(m.volumes, "volume"));
  m.max_error = in.real();
  if (!(m.max_error >= 0) || std::isinf(m.max_error)) bad_map("a maximum error that is no number");
  m.last = in.varint();
  const std::uint64_t keys_end = mask_of(width_bits(m.format.type));
  switch (m.kind) {
    case VolumeMap::Kind::kAffine:
      m.offset = in.varint();
      m.scale = in.varint();
      m.last_key = in.varint();
      if (m.scale < 1 || m.offset > m.last_key || m.last_key > keys_end ||
          m.last > (m.last_key - m.offset) / m.scale + 1)
        bad_map("numbers 0.." + std::to_string(m.last) + " in steps of " + std::to_string(m.scale) +
                " leave the range");
      break;
    case VolumeMap::Kind::kPalette: {
      if (m.last >= kMaxPalette) bad_map("a palette of " + count_of(m.last, "value"));
      std::uint64_t next = 0;
      while (m.palette.size() <= m.last) {
        const std::uint64_t gap = in.varint();
        const std::uint64_t run = in.varint();
        if (run < 1 || run > m.last + 1 - m.palette.size() || gap > keys_end || next > keys_end - gap ||
            run - 1 > keys_end - gap - next || (!m.palette.empty() && next == 0))
          bad_map("a palette that is not ascending");
        next += gap;
        for (std::uint64_t i = 0; i < run; ++i) m.palette.push_back(next + i);
        next += run;
      }
      break;
    }
    case VolumeMap::Kind::kReal:
      m.real_offset = in.real();
      m.real_scale = in.real();
      if (!is_real(m.format.type) || !std::isfinite(m.real_offset) || !std::isfinite(m.real_scale) || m.real_scale <= 0)
        bad_map("a real map without sense");
      break;
  }
  (void)m.pixel_format();
  return m;
}

std::optional<VolumeMap> volume_map_of(const std::vector<ExtraBox>& boxes) {
  std::optional<VolumeMap> map;
  for (const ExtraBox& box : boxes)
    if (box.type == kMapBox) map = parse_volume_map(box.payload.data(), box.payload.size());
  return map;
}

// ----------------------------------------------------------------------------------------------------------- analysis

VolumeAnalysis::VolumeAnalysis(const VoxelFormat& format) : format_(format) {
  if (bytes_of(format.type) <= 2)
    seen_.assign(std::size_t{1} << width_bits(format.type), 0);
  else
    table_.assign(1024, 0);  // grows on demand; volumes of wide scalars rarely have few values
}

// The slot of `key`, or the free one where it belongs.
std::uint64_t& VolumeAnalysis::slot_of(std::uint64_t key) {
  std::size_t at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & (table_.size() - 1);
  while (table_[at] != 0 && table_[at] != key + 1) at = (at + 1) & (table_.size() - 1);
  return table_[at];
}

void VolumeAnalysis::add_key(std::uint64_t key) {
  if (table_.empty()) return;
  if (key == ~std::uint64_t{0}) {
    used_ += has_last_ ? 0 : 1;
    has_last_ = true;
  } else if (std::uint64_t& slot = slot_of(key); slot == 0) {
    slot = key + 1;
    ++used_;
    if (3 * used_ > 2 * table_.size()) {
      const std::vector<std::uint64_t> old = std::exchange(table_, std::vector<std::uint64_t>(2 * table_.size(), 0));
      for (const std::uint64_t k : old)
        if (k != 0) slot_of(k - 1) = k;
    }
  }
  if (used_ > kMaxPalette) table_ = {};
}

template <class U>
void VolumeAnalysis::add_keys(const std::byte* stored, std::size_t scalars) {
  const bool swap = must_swap(format_.big_endian);
  const VoxelType type = format_.type;
  if constexpr (sizeof(U) <= 2) {
    // Integers: the key is the bits with the sign bit flipped.
    const auto sign = static_cast<U>(is_signed(type) ? 1u << (8 * sizeof(U) - 1) : 0u);
    std::uint8_t* seen = seen_.data();
    if (sizeof(U) == 1 && !std::memchr(seen, 0, seen_.size())) return;  // there is no other
    const auto see = [&](std::size_t i) { seen[load<U>(stored + i * sizeof(U), swap) ^ sign] = 1; };
    // Runs of equal scalars (air) are common: skip eight bytes that equal the previous eight.
    constexpr std::size_t kTogether = 8 / sizeof(U);
    std::size_t i = 0;
    for (std::uint64_t last = 0; i + kTogether <= scalars; i += kTogether) {
      const auto these = load<std::uint64_t>(stored + i * sizeof(U), false);
      if (i > 0 && these == last) continue;
      last = these;
      for (std::size_t k = 0; k < kTogether; ++k) see(i + k);
    }
    for (; i < scalars; ++i) see(i);
    return;
  }
  std::uint64_t before = first_;
  for (std::size_t i = 0; i < scalars; ++i) {
    const std::uint64_t bits = load<U>(stored + i * sizeof(U), swap);
    const std::uint64_t key = key_of(bits, type);
    if (is_real(type)) {
      const double v = value_of(bits, type);
      if (!std::isfinite(v)) {
        ++not_finite_;
      } else if (min_value_ > max_value_) {
        min_value_ = max_value_ = v;
      } else {
        min_value_ = std::min(min_value_, v);
        max_value_ = std::max(max_value_, v);
      }
    }
    min_ = std::min(min_, key);
    max_ = std::max(max_, key);
    if (key != before) {
      if (gcd_ != 1) gcd_ = std::gcd(gcd_, key > first_ ? key - first_ : first_ - key);
      add_key(key);
      before = key;
    }
  }
}

void VolumeAnalysis::add_scalars(const std::byte* stored, std::size_t scalars) {
  if (scalars == 0) return;
  const bool wide = bytes_of(format_.type) > 2;
  if (scalars_ == 0 && wide) {
    by_width(format_.type,
             [&](auto u) { first_ = key_of(load<decltype(u)>(stored, must_swap(format_.big_endian)), format_.type); });
    add_key(first_);
    min_value_ = 1;  // above max_value_: no value yet
    max_value_ = 0;
  }
  scalars_ += scalars;
  by_width(format_.type, [&](auto u) { add_keys<decltype(u)>(stored, scalars); });
  if (wide) {
    if (!is_real(format_.type)) {
      min_value_ = value_of(bits_of(min_, format_.type), format_.type);
      max_value_ = value_of(bits_of(max_, format_.type), format_.type);
    }
    return;
  }
  find_range();
}

void VolumeAnalysis::add_patterns(const std::uint32_t* words, std::size_t scalars) {
  require(bytes_of(format_.type) <= 2 && !format_.big_endian, ErrorKind::kInternal,
          "patterns of scalars that are wide or swapped");
  if (scalars == 0) return;
  scalars_ += scalars;
  for (std::size_t pattern = 0; pattern < seen_.size(); ++pattern)
    if (words[pattern / 32] >> pattern % 32 & 1) seen_[static_cast<std::size_t>(key_of(pattern, format_.type))] = 1;
  find_range();
}

// For narrow scalars everything follows from the set of keys.
void VolumeAnalysis::find_range() {
  const auto* first = static_cast<const std::uint8_t*>(std::memchr(seen_.data(), 1, seen_.size()));
  min_ = static_cast<std::uint64_t>(first - seen_.data());
  std::uint64_t high = seen_.size() - 1;
  for (constexpr std::uint64_t kPiece = 64; high > max_ + kPiece; high -= kPiece)
    if (std::memchr(&seen_[static_cast<std::size_t>(high - kPiece + 1)], 1, kPiece)) break;
  while (!seen_[static_cast<std::size_t>(high)]) --high;
  max_ = high;
  min_value_ = value_of(bits_of(min_, format_.type), format_.type);
  max_value_ = value_of(bits_of(max_, format_.type), format_.type);
}

void VolumeAnalysis::add(const VolumeAnalysis& other) {
  if (other.scalars_ == 0) return;
  if (scalars_ == 0) {
    *this = other;
    return;
  }
  scalars_ += other.scalars_;
  if (!seen_.empty()) {
    for (std::size_t k = 0; k < seen_.size(); ++k) seen_[k] |= other.seen_[k];
    return find_range();
  }
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  gcd_ = std::gcd(std::gcd(gcd_, other.gcd_), std::max(first_, other.first_) - std::min(first_, other.first_));
  not_finite_ += other.not_finite_;
  if (min_value_ > max_value_) {  // no value yet
    min_value_ = other.min_value_;
    max_value_ = other.max_value_;
  } else if (other.min_value_ <= other.max_value_) {
    min_value_ = std::min(min_value_, other.min_value_);
    max_value_ = std::max(max_value_, other.max_value_);
  }
  if (other.table_.empty()) table_ = {};
  for (const std::uint64_t k : other.table_)
    if (k != 0) add_key(k - 1);
  if (other.has_last_) add_key(~std::uint64_t{0});
}

std::uint64_t VolumeAnalysis::common_scale() const {
  if (seen_.empty()) return std::max<std::uint64_t>(1, gcd_);
  std::uint64_t g = 0;
  for (std::uint64_t k = min_; k <= max_ && g != 1; ++k)
    if (seen_[static_cast<std::size_t>(k)]) g = std::gcd(g, k - min_);
  return std::max<std::uint64_t>(1, g);
}

std::size_t VolumeAnalysis::distinct() const {
  if (seen_.empty()) return table_.empty() ? 0 : used_;
  return static_cast<std::size_t>(std::count(seen_.begin(), seen_.end(), 1));
}

std::vector<std::uint64_t> VolumeAnalysis::keys() const {
  std::vector<std::uint64_t> keys;
  for (std::size_t k = 0; k < seen_.size(); ++k)
    if (seen_[k]) keys.push_back(k);
  for (const std::uint64_t k : table_)
    if (k != 0) keys.push_back(k - 1);
  if (has_last_) keys.push_back(~std::uint64_t{0});
  std::sort(keys.begin(), keys.end());
  return keys;
}

VolumeMap exact_map(const VolumeAnalysis& a, bool palette) {
  require(a.scalars() > 0, ErrorKind::kBadStream, "a volume without voxels");
  VolumeMap m;
  m.format = a.format();
  if (palette) {
    const std::size_t n = a.distinct();
    require(n > 0, ErrorKind::kUnsupported,
            "a palette holds at most " + std::to_string(kMaxPalette) + " values; this volume has more");
    m.kind = VolumeMap::Kind::kPalette;
    m.palette = a.keys();
    m.last = n - 1;
    return m;
  }
  m.offset = a.min_key();
  m.scale = a.common_scale();
  m.last = (a.max_key() - a.min_key()) / m.scale;
  m.last_key = a.max_key();
  return m;
}

namespace {

double largest_magnitude(const VolumeAnalysis& a) {
  return std::max(std::fabs(a.min_value()), std::fabs(a.max_value()));
}

// Rounding error of a float that was calculated as a multiple of a step, at most.
double rounding_of(const VolumeAnalysis& a) {
  const double largest = largest_magnitude(a);
  return resolution(a.format().type, largest) + 4 * resolution(VoxelType::kF64, largest);
}

}  // namespace

double least_bound(const VolumeAnalysis& a) { return 4 * rounding_of(a); }

VolumeMap bounded_map(const VolumeAnalysis& a, double max_error) {
  require(a.scalars() > 0, ErrorKind::kBadStream, "a volume without voxels");
  require(max_error >= 0 && std::isfinite(max_error), ErrorKind::kBadArgument,
          "a maximum error of " + std::to_string(max_error));
  VolumeMap m;
  m.format = a.format();
  if (!is_real(m.format.type)) {
    const std::uint64_t g = a.common_scale();
    // A step of g (2n + 1): a number represents the middle of 2n + 1 possible values, the furthest n g away.
    const double most = std::floor(max_error / static_cast<double>(g));
    const std::uint64_t range = (a.max_key() - a.min_key()) / g;
    const std::uint64_t n = most >= static_cast<double>(range) ? range : static_cast<std::uint64_t>(most);
    if (n == 0) return exact_map(a, false);
    require(n < (std::uint64_t{1} << 60) / g, ErrorKind::kBadArgument, "a maximum error of more than 60 bits");
    m.offset = a.min_key();
    m.scale = g * (2 * n + 1);
    m.last_key = a.max_key();
    m.last = rounded_quotient(a.max_key() - a.min_key(), g * n, m.scale);
    m.max_error = static_cast<double>(g * n);
    return m;
  }
  require(a.not_finite() == 0, ErrorKind::kBadArgument,
          count_of(a.not_finite(), "voxel", "is", "are") + " not finite, and have no error");
  if (max_error == 0) return exact_map(a, false);
  // Half a step, the rounding of the sum in double and that of the result to the type together stay within the bound.
  const double rounding = rounding_of(a);
  require(max_error > 2 * rounding, ErrorKind::kBadArgument,
          "a maximum error of " + std::to_string(max_error) + " is below the resolution of " +
              to_string(m.format.type) + " for values up to " + std::to_string(largest_magnitude(a)) +
              "; code this volume losslessly");
  m.kind = VolumeMap::Kind::kReal;
  m.real_offset = a.min_value();
  m.real_scale = 2 * (max_error - rounding);
  const double last = std::ceil((a.max_value() - a.min_value()) / m.real_scale);
  require(last < 4.5e15, ErrorKind::kBadArgument,
          "a maximum error of " + std::to_string(max_error) + " divides the range of values into too many steps");
  m.last = static_cast<std::uint64_t>(last);
  m.max_error = max_error;
  return m;
}

namespace {

/// How far the value of key `high` is above that of key `low`.
double distance(std::uint64_t low, std::uint64_t high, VoxelType type) {
  if (!is_real(type)) return static_cast<double>(high - low);
  return value_of(bits_of(high, type), type) - value_of(bits_of(low, type), type);
}

}  // namespace

std::optional<VolumeMap> bounded_palette(const VolumeAnalysis& a, double max_error) {
  if (a.distinct() == 0 || a.not_finite() > 0) return std::nullopt;
  const std::vector<std::uint64_t> keys = a.keys();
  const VoxelType type = a.format().type;
  VolumeMap m;
  m.format = a.format();
  m.kind = VolumeMap::Kind::kPalette;
  // From below: the last value within the bound of the lowest one left stands for all within its bound.
  for (std::size_t i = 0; i < keys.size();) {
    const std::uint64_t first = keys[i];
    while (i + 1 < keys.size() && distance(first, keys[i + 1], type) <= max_error) ++i;
    const std::uint64_t middle = keys[i++];
    double error = distance(first, middle, type);
    while (i < keys.size() && distance(middle, keys[i], type) <= max_error)
      error = std::max(error, distance(middle, keys[i++], type));
    m.palette.push_back(middle);
    m.max_error = std::max(m.max_error, error);
  }
  m.last = m.palette.size() - 1;
  return m;
}

// ------------------------------------------------------------------------------------------------------------- mapper

std::uint64_t VolumeMapper::number(std::uint64_t k) const {
  switch (map_.kind) {
    case VolumeMap::Kind::kAffine: {
      const std::uint64_t half = map_.exact() ? 0 : map_.scale / 2;
      const std::uint64_t limited = std::clamp(k, map_.offset, map_.last_key) - map_.offset;
      return std::min(rounded_quotient(limited, half, map_.scale), map_.last);
    }
    case VolumeMap::Kind::kPalette: {
      auto at = std::lower_bound(map_.palette.begin(), map_.palette.end(), k);
      if (at == map_.palette.end()) return map_.last;
      if (*at != k && at != map_.palette.begin() &&
          distance(at[-1], k, map_.format.type) <= distance(k, *at, map_.format.type))
        --at;
      return static_cast<std::uint64_t>(at - map_.palette.begin());
    }
    case VolumeMap::Kind::kReal: break;
  }
  const double v = value_of(bits_of(k, map_.format.type), map_.format.type);
  const double n = std::floor((v - map_.real_offset) / map_.real_scale + 0.5);
  if (!(n > 0)) return 0;
  return std::min(n < 9e15 ? static_cast<std::uint64_t>(n) : map_.last, map_.last);
}

std::uint64_t VolumeMap::key(std::uint64_t n) const {
  n = std::min(n, last);
  switch (kind) {
    case Kind::kAffine: {
      // The last number may represent values beyond the last key, so it is clamped.
      if (n != 0 && n > (last_key - offset) / scale) return last_key;
      return offset + n * scale;
    }
    case Kind::kPalette: return palette[static_cast<std::size_t>(n)];
    case Kind::kReal: break;
  }
  const double v = real_offset + real_scale * static_cast<double>(n);
  const std::uint64_t bits = format.type == VoxelType::kF32 ? std::bit_cast<std::uint32_t>(static_cast<float>(v))
                                                            : std::bit_cast<std::uint64_t>(v);
  return key_of(bits, format.type);
}

double VolumeMap::value(std::uint64_t n) const { return value_of(bits_of(key(n), format.type), format.type); }

VolumeMapper::VolumeMapper(VolumeMap map) : map_(std::move(map)) {
  if (bytes_of(map_.format.type) > 2 || is_shift()) return;
  const std::size_t values = std::size_t{1} << width_bits(map_.format.type);
  samples_.resize(values);
  for (std::size_t bits = 0; bits < values; ++bits)
    samples_[bits] = static_cast<std::uint16_t>(number(key_of(bits, map_.format.type)));
  stored_.resize(std::size_t{1} << map_.plane_bits());
  for (std::size_t n = 0; n < stored_.size(); ++n)
    stored_[n] = static_cast<std::uint16_t>(bits_of(map_.key(n), map_.format.type));
}

namespace {

// Component of plane p of a channel; colours are stored G, B, R.
int component_of(const VolumeMap& m, int channel, int plane) {
  constexpr int kColours[3] = {2, 0, 1};
  if (m.format.channels >= 3) return channel < 3 ? kColours[channel] : channel;
  return channel * m.planes() + plane;
}

template <class T>
void store_sample(std::byte* row, int x, std::uint64_t v) {
  const auto s = static_cast<T>(v);
  std::memcpy(row + static_cast<std::size_t>(x) * sizeof s, &s, sizeof s);
}

/// Maps a row of narrow scalars with a table. Each side has a distance from scalar to scalar, and a flag for swapped
/// bytes.
template <class From, class To>
void look_up(const std::byte* from, std::size_t from_step, bool swap_from, const std::vector<std::uint16_t>& table,
             std::byte* to, std::size_t to_step, bool swap_to, int n) {
  const std::size_t mask = table.size() - 1;
  for (int x = 0; x < n; ++x, from += from_step, to += to_step) {
    auto v = static_cast<To>(table[load<From>(from, swap_from) & mask]);
    if (swap_to) v = swapped(v);
    std::memcpy(to, &v, sizeof v);
  }
}

ScalarShift shift_of(const VolumeMap& m) {
  ScalarShift s;
  s.wide = bytes_of(m.format.type) == 2;
  s.swap = s.wide && must_swap(m.format.big_endian);
  s.sign = static_cast<std::uint16_t>(is_signed(m.format.type) ? 1u << (width_bits(m.format.type) - 1) : 0u);
  s.offset = static_cast<std::uint16_t>(m.offset);
  s.last_key = static_cast<std::uint16_t>(m.last_key);
  return s;
}

/// Merges rows into a single one if they are contiguous.
template <class View, class F>
void for_rows(const View& v, int frame, const F& f) {
  const auto width = static_cast<std::size_t>(v.shape.width);
  const auto height = static_cast<std::size_t>(v.shape.height);
  const bool together = v.row_stride == static_cast<std::ptrdiff_t>(width) * v.bytes_per_sample;
  if (together) return f(0, v.row(frame, 0), width * height);
  for (std::size_t y = 0; y < height; ++y) f(y * width, v.row(frame, static_cast<int>(y)), width);
}

}  // namespace

bool VolumeMapper::is_shift() const {
  return map_.kind == VolumeMap::Kind::kAffine && map_.scale == 1 && map_.exact() && map_.format.channels == 1 &&
         bytes_of(map_.format.type) <= 2 && map_.last == map_.last_key - map_.offset;
}

void VolumeMapper::to_samples(const std::byte* stored, Gop& gop, int frame) const {
  const VoxelFormat& f = map_.format;
  const bool swap = must_swap(f.big_endian);
  const int planes = map_.planes();
  const int low_bits = map_.bits() - 16;
  if (is_shift()) {
    const ScalarShift shift = shift_of(map_);
    const MutableVolumeView v = gop.plane(0);
    return for_rows(v, frame, [&](std::size_t first, std::byte* row, std::size_t n) {
      shift_to_samples(shift, stored + first * static_cast<std::size_t>(bytes_of(f.type)), row, v.bytes_per_sample, n);
    });
  }
  for (int c = 0; c < f.channels; ++c)
    for (int p = 0; p < planes; ++p) {
      const MutableVolumeView v = gop.plane(component_of(map_, c, p));
      // Plane 0 holds the 16 most significant bits, the last plane the rest.
      const int shift = planes == 1 ? 0 : std::max(0, low_bits - 16 * p);
      const int plane_bits = planes == 1 || p == 0 ? 16 : std::min(16, low_bits - 16 * (p - 1));
      const std::uint64_t mask = mask_of(plane_bits);
      for (int y = 0; y < v.shape.height; ++y) {
        std::byte* row = v.row(frame, y);
        by_width(f.type, [&](auto u) {
          using U = decltype(u);
          const std::size_t step = sizeof(U) * static_cast<std::size_t>(f.channels);
          const std::byte* from = stored +
                                  (static_cast<std::size_t>(y) * static_cast<std::size_t>(v.shape.width)) * step +
                                  static_cast<std::size_t>(c) * sizeof(U);
          if constexpr (sizeof(U) <= 2) {
            v.bytes_per_sample == 1
                ? look_up<U, std::uint8_t>(from, step, swap, samples_, row, 1, false, v.shape.width)
                : look_up<U, std::uint16_t>(from, step, swap, samples_, row, 2, false, v.shape.width);
            return;
          }
          for (int x = 0; x < v.shape.width; ++x, from += step) {
            const std::uint64_t n = number(key_of(load<U>(from, swap), f.type)) >> shift & mask;
            v.bytes_per_sample == 1 ? store_sample<std::uint8_t>(row, x, n) : store_sample<std::uint16_t>(row, x, n);
          }
        });
      }
    }
}

void VolumeMapper::to_stored(const Gop& gop, int frame, std::byte* stored) const {
  const VoxelFormat& f = map_.format;
  const bool swap = must_swap(f.big_endian);
  const int planes = map_.planes();
  const int low_bits = map_.bits() - 16;
  if (is_shift()) {
    const ScalarShift shift = shift_of(map_);
    const VolumeView v = gop.plane(0);
    return for_rows(v, frame, [&](std::size_t first, const std::byte* row, std::size_t n) {
      shift_to_stored(shift, row, v.bytes_per_sample, stored + first * static_cast<std::size_t>(bytes_of(f.type)), n);
    });
  }
  for (int c = 0; c < f.channels; ++c) {
    const VolumeView first = gop.plane(component_of(map_, c, 0));
    std::vector<VolumeView> views;
    for (int p = 0; p < planes; ++p) views.push_back(gop.plane(component_of(map_, c, p)));
    for (int y = 0; y < first.shape.height; ++y)
      by_width(f.type, [&](auto u) {
        using U = decltype(u);
        const std::size_t step = sizeof(U) * static_cast<std::size_t>(f.channels);
        std::byte* to = stored + (static_cast<std::size_t>(y) * static_cast<std::size_t>(first.shape.width)) * step +
                        static_cast<std::size_t>(c) * sizeof(U);
        if constexpr (sizeof(U) <= 2) {
          const std::byte* row = first.row(frame, y);
          first.bytes_per_sample == 1
              ? look_up<std::uint8_t, U>(row, 1, false, stored_, to, step, swap, first.shape.width)
              : look_up<std::uint16_t, U>(row, 2, false, stored_, to, step, swap, first.shape.width);
          return;
        }
        for (int x = 0; x < first.shape.width; ++x, to += step) {
          std::uint64_t n = 0;
          for (int p = 0; p < planes; ++p) {
            const std::byte* row = views[static_cast<std::size_t>(p)].row(frame, y);
            const std::uint64_t s = first.bytes_per_sample == 1
                                        ? load<std::uint8_t>(row + x, false)
                                        : load<std::uint16_t>(row + 2 * static_cast<std::size_t>(x), false);
            const int shift = planes == 1 ? 0 : std::max(0, low_bits - 16 * p);
            n |= s << shift;
          }
          auto bits = static_cast<U>(bits_of(map_.key(n), f.type));
          if (swap) bits = swapped(bits);
          std::memcpy(to, &bits, sizeof bits);
        }
      });
  }
}

}  // namespace trivelet
