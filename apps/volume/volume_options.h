// trivelet encode of volumes: their own options, and the meaning of the common ones for them.
#pragma once

#include "apps/video/encode_options.h"
#include "apps/volume/volume.h"

namespace trivelet::cli {

/// `verify`: the option --verify, which others exclude.
void add_volume_encode_options(Command& app, EncodeOptions& options, Option verify);
/// Where the input is a video.
void refuse_volume_options(const Command& app);

VolumeTyped typed_volume(const EncodeOptions& options);
/// Encodes the volume options.input.
int run_volume(const EncodeOptions& options, const Common& common, const Command& app);

}  // namespace trivelet::cli
