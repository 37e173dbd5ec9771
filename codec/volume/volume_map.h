// From the scalars of a volume (8..64 bits, integers and floats) to the codec's samples (1..16 bits), and exactly back.
//
// Every stored scalar has a *key*: an unsigned integer of the scalar's width that keeps the order of the values (signed
// integers: sign bit flipped; IEEE floats: sign bit flipped, all bits of negative ones inverted). A map turns keys into
// *numbers* 0, 1, 2, …:
//
//   affine    key = offset + scale * number        (scale: what all differences have in common; 2E + 1 times that when
//                                                   every value may err by E)
//   palette   key = table[number]                   (table: the keys that occur, ascending)
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
  std::uint64_t offset = 0;  ///< a key (affine)
  std::uint64_t scale = 1;   ///< affine
  double real_offset = 0;
  double real_scale = 1;
  std::uint64_t last = 0;                ///< the largest number
  std::uint64_t last_key = 0;            ///< affine: keys above are limited to it
  double max_error = 0;                  ///< no value is further from the original than this
  std::vector<std::uint64_t> palette{};  ///< ascending keys
  std::uint64_t slices = 1;              ///< along the third axis
  std::uint64_t volumes = 1;             ///< along all further ones

  int bits() const;    ///< of a number
  int planes() const;  ///< components per channel, 1..4
  int plane_bits() const { return bits() < 16 ? bits() : 16; }
  /// What a number stands for, those above `last` for what that does.
  std::uint64_t key(std::uint64_t number) const;
  double value(std::uint64_t number) const;
  bool exact() const { return max_error == 0; }
  /// Of the coded picture. Unsupported when channels and planes make more than four components.
  PixelFormat pixel_format() const;
  /// Place of a slice (volume by volume) in the coded sequence.
  std::uint64_t frame_of(std::uint64_t slice) const {
    return order == Order::kFile ? slice : slice % slices * volumes + slice / slices;
  }
  bool operator==(const VolumeMap&) const = default;
};

std::vector<std::uint8_t> serialise(const VolumeMap& map);
/// Throws BadStream or Unsupported.
VolumeMap parse_volume_map(const std::uint8_t* bytes, std::size_t size);
/// The map in a stream's boxes; nothing when it holds no volume. Throws as parse_volume_map().
std::optional<VolumeMap> volume_map_of(const std::vector<ExtraBox>& boxes);

/// What occurs in a volume; from all its voxels, in any pieces.
class VolumeAnalysis {
 public:
  explicit VolumeAnalysis(const VoxelFormat& format);
  void add(const std::byte* stored, std::size_t voxels) {
    add_scalars(stored, voxels * static_cast<std::size_t>(format_.channels));
  }
  void add_scalars(const std::byte* stored, std::size_t scalars);
  /// What another one of the same format has seen.
  void add(const VolumeAnalysis& other);

  const VoxelFormat& format() const { return format_; }
  std::uint64_t scalars() const { return scalars_; }
  std::uint64_t min_key() const { return min_; }
  std::uint64_t max_key() const { return max_; }
  /// What all differences of keys are multiples of; 1 when there is nothing but one value.
  std::uint64_t common_scale() const;
  /// How many different keys there are, 0 when more than kMaxPalette.
  std::size_t distinct() const;
  std::vector<std::uint64_t> keys() const;  ///< ascending; only when distinct() > 0
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
  std::vector<std::uint8_t> seen_;    // narrow scalars: by key
  std::vector<std::uint64_t> table_;  // wide scalars: open addressing, key + 1; empty when given up
  std::size_t used_ = 0;
  bool has_last_ = false;  // the last key of the wide table is ~0, which key + 1 cannot say
};

/// The map with which every scalar comes back bit for bit: a palette if `palette`, else affine. Unsupported when a
/// palette is wanted and there are too many different values.
VolumeMap exact_map(const VolumeAnalysis& analysis, bool palette);
/// A palette is worth trying: fewer values occur than lie between the least and the largest.
bool palette_may_pay(const VolumeAnalysis& analysis);
/// The map with which no value errs by more than `max_error` (stored units). BadArgument when the type's own resolution
/// does not allow it, or when floats are not finite, which are marked (volume_mask.h) before.
VolumeMap bounded_map(const VolumeAnalysis& analysis, double max_error);
/// Of floats: a bound that their resolution allows, about the least.
double least_bound(const VolumeAnalysis& analysis);

/// Applies a map. Thread safe once made.
class VolumeMapper {
 public:
  explicit VolumeMapper(VolumeMap map);
  const VolumeMap& map() const { return map_; }
  /// Stored scalars of a picture into frame `frame` of `gop`, row by row.
  void to_samples(const std::byte* stored, Gop& gop, int frame) const;
  /// The inverse. Numbers above `last` are limited to it.
  void to_stored(const Gop& gop, int frame, std::byte* stored) const;

 private:
  std::uint64_t number(std::uint64_t key) const;
  bool is_shift() const;

  VolumeMap map_;
  std::vector<std::uint16_t> samples_;  // narrow scalars, one plane, no shift: by stored bits
  std::vector<std::uint16_t> stored_;   // likewise: by number
};

}  // namespace trivelet
