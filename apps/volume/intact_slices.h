// The slices of a damaged volume: those that are intact, and zeros where a slab is damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trivelet/volume.h"

namespace trivelet::cli {

/// Delivers as many slices as the volume has. One thread uses it.
class IntactSlices {
 public:
  /// Opens the stream again for another part of the volume; the decoder of the call before is gone by then.
  using Open = std::function<std::unique_ptr<VolumeDecoder>(const VolumeDecoderParams&)>;
  /// `params`: the request; `decoder`: one for it, which says what is delivered and is not kept. Throws Unsupported for
  /// slices that are not in the order of the file, or are reduced in depth.
  IntactSlices(Open open, const VolumeDecoderParams& params, const VolumeDecoder& decoder);

  /// False at the end. Slices of damaged slabs are 0, whatever the type and scale of the values.
  bool read(std::byte* slice);

  /// Slices first..end - 1 of all that were delivered, and what is wrong with the slab of the first.
  struct Lost {
    std::uint64_t first = 0, end = 0;
    std::string why;
  };
  const std::vector<Lost>& lost() const { return lost_; }
  std::uint64_t lost_slices() const;
  /// For messages: where the slices lie in the volume.
  std::string place_of(const Lost& lost) const;

 private:
  void open_at(std::uint64_t slice);
  bool decode(std::byte* slice);
  void lose(std::uint64_t end, const std::string& why);
  std::uint64_t end_of_slab(std::uint64_t slice) const;
  /// The position of a delivered slice in the stream.
  std::uint64_t frame_of(std::uint64_t slice) const;

  Open open_;
  VolumeDecoderParams params_;
  VolumeDescription whole_;
  VolumeDescription output_;
  VoxelRegion selection_;
  std::uint64_t slab_;
  std::uint64_t at_ = 0;           // the slice to deliver next
  std::uint64_t lost_end_ = 0;     // slices before it are damaged, from at_ on
  std::uint64_t decoder_end_ = 0;  // slices before it come from `decoder_`
  bool is_fresh_ = false;          // `decoder_` has delivered none
  std::unique_ptr<VolumeDecoder> decoder_;
  std::vector<Lost> lost_;
  std::size_t times_lost_ = 0;
};

}  // namespace trivelet::cli
