// Maps the scalars of a volume (8..64 bits, integers and floats) to the codec's samples (1..16 bits) and back.
//
// Every stored scalar has a *key*: an unsigned integer of the scalar's width that keeps the order of the values (signed
// integers: sign bit flipped; IEEE floats: sign bit flipped, all bits of negative ones inverted). A map turns keys into
// *numbers* 0, 1, 2, …:
//
//   affine    key = offset + scale * number        (scale: the common factor of all differences; 2E + 1 times that
//                                                   when every value may err by E)
//   palette   key = table[number]                   (table: the keys that occur, ascending; some of them when every
//                                                   value may err)
//   real      value = offset + scale * number       (floats that may err; offset and scale are real)
//
// Numbers of more than 16 bits are split into planes, the first holding the 16 most significant bits. A voxel of
// several channels (RGB, complex) has planes for each. Planes are the components of the coded picture. FORMAT.md
// "Volumes" is normative; the box there is what serialise() writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trivelet/volume.h"

namespace trivelet {

inline constexpr std::size_t kMaxPalette = 65536;

/// The boxes of a stream that holds a volume (FORMAT.md "Volumes").
inline constexpr const char* kMapBox = "Volm";
inline constexpr const char* kEnvelopeBox = "volh";
inline constexpr const char* kCutsBox = "volq";

struct VolumeMap {
  using Kind = VolumeMapKind;
  using Order = VolumeOrder;
  using Prediction = VolumePrediction;  // volume_predict.h
  VoxelFormat format;
  Kind kind = Kind::kAffine;
  Order order = Order::kFile;
  Prediction prediction = Prediction::kNone;
  std::uint64_t offset = 0;  ///< affine: the key of number 0
  std::uint64_t scale = 1;   ///< affine
  double real_offset = 0;
  double real_scale = 1;
  std::uint64_t last = 0;                ///< the largest number
  std::uint64_t last_key = 0;            ///< affine: larger keys are clamped to it
  double max_error = 0;                  ///< bound of every value's error
  std::vector<std::uint64_t> palette{};  ///< ascending keys
  std::uint64_t slices = 1;              ///< extent of the third axis
  std::uint64_t volumes = 1;             ///< product of the further extents

  int bits() const;    ///< of a number
  int planes() const;  ///< components per channel, 1..4
  int plane_bits() const { return bits() < 16 ? bits() : 16; }
  /// The key of a number; numbers above `last` are clamped to it.
  std::uint64_t key(std::uint64_t number) const;
  double value(std::uint64_t number) const;
  bool exact() const { return max_error == 0; }
  /// The format of the coded picture. Throws Unsupported when channels and planes make more than four components.
  PixelFormat pixel_format() const;
  /// The position of a slice (counted volume by volume) in the coded sequence.
  std::uint64_t frame_of(std::uint64_t slice) const {
    return order == Order::kFile ? slice : slice % slices * volumes + slice / slices;
  }
  bool operator==(const VolumeMap&) const = default;
};

std::vector<std::uint8_t> serialise(const VolumeMap& map);
/// Throws BadStream or Unsupported.
VolumeMap parse_volume_map(const std::uint8_t* bytes, std::size_t size);
/// The map in a stream's boxes; empty if it holds no volume. Throws as parse_volume_map().
std::optional<VolumeMap> volume_map_of(const std::vector<ExtraBox>& boxes);

/// Survey of the values that occur in a volume. It takes all voxels, in pieces of any size.
class VolumeAnalysis {
 public:
  explicit VolumeAnalysis(const VoxelFormat& format);
  void add(const std::byte* stored, std::size_t voxels) {
    add_scalars(stored, voxels * static_cast<std::size_t>(format_.channels));
  }
  void add_scalars(const std::byte* stored, std::size_t scalars);
  /// Narrow scalars (8 and 16 bits), of which a device found out which bit patterns occur: bit n % 32 of word n / 32.
  void add_patterns(const std::uint32_t* words, std::size_t scalars);
  /// Merges the survey of another part of the volume.
  void add(const VolumeAnalysis& other);

  const VoxelFormat& format() const { return format_; }
  std::uint64_t scalars() const { return scalars_; }
  std::uint64_t min_key() const { return min_; }
  std::uint64_t max_key() const { return max_; }
  /// The greatest common divisor of all differences of keys; 1 if only one value occurs.
  std::uint64_t common_scale() const;
  /// The number of distinct keys; 0 if more than kMaxPalette.
  std::size_t distinct() const;
  std::vector<std::uint64_t> keys() const;  ///< ascending; only if distinct() > 0
  std::uint64_t not_finite() const { return not_finite_; }
  double min_value() const { return min_value_; }  ///< over finite values
  double max_value() const { return max_value_; }

 private:
  template <class U>
  void add_keys(const std::byte* stored, std::size_t scalars);
  std::uint64_t& slot_of(std::uint64_t key);
  void add_key(std::uint64_t key);
  void find_range();

  VoxelFormat format_;
  std::uint64_t scalars_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
  std::uint64_t max_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t gcd_ = 0;
  std::uint64_t not_finite_ = 0;
  double min_value_ = 0;
  double max_value_ = 0;
  std::vector<std::uint8_t> seen_;  // narrow scalars: which keys occur
  // Wide scalars: hash table with open addressing, holding key + 1; empty after too many keys.
  std::vector<std::uint64_t> table_;
  std::size_t used_ = 0;
  bool has_last_ = false;  // key ~0 occurs, for which key + 1 overflows
};

/// The map that restores every scalar bit for bit: a palette if `palette`, else affine. Throws Unsupported when a
/// palette is requested and there are too many distinct values.
VolumeMap exact_map(const VolumeAnalysis& analysis, bool palette);
/// The map with which no value errs by more than `max_error` (stored units). Throws BadArgument when the resolution of
/// the type does not allow it, or for floats that are not finite (these are marked first, see volume_mask.h).
VolumeMap bounded_map(const VolumeAnalysis& analysis, double max_error);
/// The map that keeps some of the values that occur; every other one is within `max_error` of one of these. Empty if
/// there are more than kMaxPalette different values, or values that are not finite.
std::optional<VolumeMap> bounded_palette(const VolumeAnalysis& analysis, double max_error);
/// For floats: approximately the least bound that their resolution allows.
double least_bound(const VolumeAnalysis& analysis);

/// Applies a map. Thread-safe after construction.
class VolumeMapper {
 public:
  explicit VolumeMapper(VolumeMap map);
  const VolumeMap& map() const { return map_; }
  /// Maps the stored scalars of a picture to frame `frame` of `gop`, row by row.
  void to_samples(const std::byte* stored, Gop& gop, int frame) const;
  /// The inverse. Numbers above `last` are clamped to it.
  void to_stored(const Gop& gop, int frame, std::byte* stored) const;

 private:
  std::uint64_t number(std::uint64_t key) const;
  bool is_shift() const;

  VolumeMap map_;
  std::vector<std::uint16_t> samples_;  // table for narrow scalars in one plane without a shift, by stored bits
  std::vector<std::uint16_t> stored_;   // its inverse, by number
};

}  // namespace trivelet
