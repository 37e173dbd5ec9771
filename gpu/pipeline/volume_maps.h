// What batches of volumes share, in both directions: maps as tables on the device, hashes of GOPs, and things that are
// used again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "codec/volume/volume_map.h"
#include "gpu/device/device.h"

namespace trivelet::gpu {

/// Voxels of a GOP, and the hash of its samples: expected, or wanted.
struct HashCheck {
  const void* voxels;
  std::uint64_t count;
  const std::uint16_t* number_of;  ///< by the voxel's bits
  std::uint64_t hash;              ///< expected, if `digest` is null
  std::uint32_t* doubt;            ///< set if another one is found
  std::uint64_t* digest;           ///< where the hash goes; null: it is compared
  std::uint32_t voxel_bytes, sample_bytes;
};

/// A block for each; `checks` is in device memory.
void hash_gops(const HashCheck* checks, std::size_t count, const Stream& stream);

/// What a map says, both ways: on the device, number by number and voxel by voxel.
struct BatchMap {
  VolumeMap map;
  std::uint32_t last = 0;
  DeviceBuffer<std::uint16_t> voxel_of, number_of;  ///< by the number, and by the voxel's bits
};

/// Maps that were used last. Chunks of an array have the same map, or one of a few. Several threads may ask.
class BatchMaps {
 public:
  /// Null if voxels are wider than two bytes, or if two numbers stand for the same one: such a map cannot be inverted.
  std::shared_ptr<const BatchMap> find(const VolumeMap& map);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const BatchMap>> maps_;  ///< that which was used last at the end
};

/// Unused things of a kind.
template <class T>
class SpareParts {
 public:
  std::unique_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) return std::make_unique<T>();
    std::unique_ptr<T> one = std::move(unused_.back());
    unused_.pop_back();
    return one;
  }
  void give_back(std::unique_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    unused_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> unused_;
};

}  // namespace trivelet::gpu
