// What trivelet.h says of volumes, in C++, and the encoding of one for the functions that take one or many.
#pragma once

#include <functional>
#include <memory>

#include "capi/byte_streams.h"
#include "capi/handle.h"
#include "trivelet/volume.h"

namespace trivelet::capi {

tvl_volume_params default_volume_params();
/// Throws BadArgument for what no volume can have.
VolumeDescription to_description(const tvl_volume* given);
VolumeEncoderParams volume_encoder_params(const tvl_volume_params& p);

/// Where the voxels are: in memory that `handle` says, or with a function that gives slices.
struct VoxelInput {
  const tvl_voxels* voxels = nullptr;
  tvl_slice_reader reader = nullptr;
  void* user = nullptr;
};
/// Encodes a volume into `output` and commits it; `backend`: null is the CPU.
VolumeResult encode_into(const Handle& handle, Output& output, const VolumeDescription& volume,
                         const tvl_volume_params& given, const VoxelInput& input, int threads, const Backend* backend);

tvl_batch_params default_batch();
/// Runs work(i) of `at_once` threads, or of the caller's.
void run_batch(const Workers& workers, int at_once, const std::function<void(int)>& work);

}  // namespace trivelet::capi
