// Marked scalars of a volume: those whose value must not err, such as NaN, infinities and fill values. They are outside
// the map. The stream's box `Mask` tells which scalar has which of a few values (FORMAT.md "Mask"), and volume_fill.h
// fills their places before coding. Volumes without marked scalars have no such box.
//
// A mark is a byte for each scalar, in the order of the slice: 0 = none, else 1 + the index of the value in the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trivelet/volume.h"

namespace trivelet {

inline constexpr const char* kMaskBox = "Mask";
inline constexpr std::size_t kMaxMarkedValues = 255;

/// Finds the marked scalars of slices.
class VolumeMarker {
 public:
  /// `fill_values`: values to mark beside non-finite ones. Throws BadArgument for values that the type cannot hold.
  VolumeMarker(const VoxelFormat& format, const std::vector<double>& fill_values);
  /// Marks these scalars; false if none is marked. `marks` has one byte for each. Throws Unsupported for too many
  /// values.
  bool find(const std::byte* stored, std::span<std::uint8_t> marks);
  /// The values found so far, as stored bits.
  const std::vector<std::uint64_t>& values() const { return values_; }

 private:
  template <class U>
  bool find_bits(const std::byte* stored, std::span<std::uint8_t> marks);
  std::uint8_t mark_of(std::uint64_t bits);

  VoxelFormat format_;
  std::vector<std::uint64_t> fills_;  // fill values as bits
  std::vector<std::uint64_t> values_;
};

/// Encodes marks slice by slice.
class MaskEncoder {
 public:
  explicit MaskEncoder(const VolumeDescription& volume);
  ~MaskEncoder();
  void add(std::span<const std::uint8_t> marks);
  bool any() const { return any_; }
  /// The content of the box, after the last slice. Throws Unsupported if it is too long.
  std::vector<std::uint8_t> finish(const std::vector<std::uint64_t>& values);

 private:
  struct Coder;
  void end_group();
  std::unique_ptr<Coder> coder_;
  VolumeDescription volume_;
  std::vector<std::uint8_t> before_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint8_t> codewords_;
  int slices_ = 0;          // slices of the current group so far
  bool group_any_ = false;  // the group has a mark
  bool any_ = false;
};

/// Decodes marks.
class MaskDecoder {
 public:
  /// Reads the content of the box. Throws BadStream or Unsupported.
  MaskDecoder(const VolumeDescription& volume, const std::uint8_t* bytes, std::size_t size);
  ~MaskDecoder();
  MaskDecoder(MaskDecoder&&) noexcept;
  MaskDecoder& operator=(MaskDecoder&&) noexcept;
  const std::vector<std::uint64_t>& values() const { return values_; }
  /// The marks of a slice (counted volume by volume), one for each scalar; empty if there are none. Valid until the
  /// next call. Slices in ascending order are decoded once. Throws BadStream.
  std::span<const std::uint8_t> marks(std::uint64_t slice);

 private:
  struct Coder;
  struct Group {
    std::size_t at = 0, size = 0;
  };
  VolumeDescription volume_;
  std::vector<std::uint64_t> values_;
  std::uint64_t group_slices_ = 1;
  std::vector<Group> groups_;
  std::vector<std::uint8_t> codewords_;
  std::unique_ptr<Coder> coder_;
  std::uint64_t next_ = 0;  // next slice for coder_
  std::vector<std::uint8_t> marks_;
};

/// The mask in a stream's boxes; empty if no scalar is marked. Throws as MaskDecoder().
std::optional<MaskDecoder> volume_mask_of(const std::vector<ExtraBox>& boxes, const VolumeDescription& volume);

/// Restores marked values in decoded slices.
class MaskOverlay {
 public:
  MaskOverlay(const VoxelFormat& format, const std::vector<std::uint64_t>& values);
  /// Overwrites the scalar at `stored`.
  void put(std::uint8_t mark, std::byte* stored) const;

 private:
  std::size_t bytes_;  // bytes of a scalar
  std::vector<std::byte> values_;
};

/// The bits of a value as a scalar of this type, rounded and clamped. NaN only for floats.
std::uint64_t scalar_bits_of(double value, VoxelType type);
/// Stores the bits in the format's byte order.
void store_scalar(std::uint64_t bits, const VoxelFormat& format, std::byte* stored);

}  // namespace trivelet
