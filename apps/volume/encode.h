// trivelet encode of volumes: the options that are theirs alone, and what those and the others mean for one.
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
