// Scalars of a volume that are no numbers of its map, because they have no value that could err a little: NaN,
// infinities, fill values. They are *marked*: the stream's box `Mask` says which scalar is which of a few values
// (FORMAT.md "Mask"), and the numbers that are coded at their places are made up by volume_fill.h. A volume without any
// has no such box.
//
// Marks are bytes, in a slice in the order of its scalars: 0 = none, else 1 + the place of the value in the table.
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
  /// `fill_values`: marked beside what is not finite. BadArgument for those that the type cannot hold.
  VolumeMarker(const VoxelFormat& format, const std::vector<double>& fill_values);
  /// Whether there are any in these scalars; `marks` has one for each. Unsupported when there are too many values.
  bool find(const std::byte* stored, std::span<std::uint8_t> marks);
  /// Bits of the values found so far.
  const std::vector<std::uint64_t>& values() const { return values_; }

 private:
  template <class U>
  bool find_bits(const std::byte* stored, std::span<std::uint8_t> marks);
  std::uint8_t mark_of(std::uint64_t bits);

  VoxelFormat format_;
  std::vector<std::uint64_t> fills_;  // bits
  std::vector<std::uint64_t> values_;
};

/// Codes marks, slice by slice.
class MaskEncoder {
 public:
  explicit MaskEncoder(const VolumeDescription& volume);
  ~MaskEncoder();
  void add(std::span<const std::uint8_t> marks);
  bool any() const { return any_; }
  /// The content of the box, behind the last slice. Unsupported when it would be too long.
  std::vector<std::uint8_t> finish(const std::vector<std::uint64_t>& values);

 private:
  struct Coder;
  void end_group();
  std::unique_ptr<Coder> coder_;
  VolumeDescription volume_;
  std::vector<std::uint8_t> before_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint8_t> codewords_;
  int slices_ = 0;          // of the group so far
  bool group_any_ = false;  // of its marks
  bool any_ = false;
};

/// Decodes them again.
class MaskDecoder {
 public:
  /// Content of the box. Throws BadStream or Unsupported.
  MaskDecoder(const VolumeDescription& volume, const std::uint8_t* bytes, std::size_t size);
  ~MaskDecoder();
  MaskDecoder(MaskDecoder&&) noexcept;
  MaskDecoder& operator=(MaskDecoder&&) noexcept;
  const std::vector<std::uint64_t>& values() const { return values_; }
  /// Of a slice, counted volume by volume, with one for each scalar; empty when there are none. Valid until the next
  /// call. Slices one after the other are decoded once. Throws BadStream.
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
  std::uint64_t next_ = 0;  // slice that coder_ decodes next
  std::vector<std::uint8_t> marks_;
};

/// The mask in a stream's boxes; nothing when no scalar is marked. Throws as MaskDecoder().
std::optional<MaskDecoder> volume_mask_of(const std::vector<ExtraBox>& boxes, const VolumeDescription& volume);

/// Puts the marked values over what was decoded.
class MaskOverlay {
 public:
  MaskOverlay(const VoxelFormat& format, const std::vector<std::uint64_t>& values);
  /// Over the scalar at `stored`.
  void put(std::uint8_t mark, std::byte* stored) const;

 private:
  std::size_t bytes_;  // of a scalar
  std::vector<std::byte> values_;
};

/// Bits of a value as a scalar of this type, rounded to it; what does not fit is the nearest that does. Not of NaN, but
/// in floats.
std::uint64_t scalar_bits_of(double value, VoxelType type);
/// The bits as they are stored.
void store_scalar(std::uint64_t bits, const VoxelFormat& format, std::byte* stored);

}  // namespace trivelet
