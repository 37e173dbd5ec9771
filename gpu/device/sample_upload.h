// Uploads the samples of GOPs from host memory to the device.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/device/device.h"
#include "trivelet/types.h"

namespace trivelet::gpu {

/// Copies the samples of a GOP to the device, of each component without gaps from its place of `sample_origin` on.
void upload(const Gop& gop, const std::vector<std::size_t>& sample_origin, std::byte* samples, const Stream& stream);

/// True if the device can read all samples of the GOP in place.
bool is_page_locked(const Gop& gop);

}  // namespace trivelet::gpu
