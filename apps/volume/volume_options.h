// trivelet encode of volumes: their own options, and the meaning of the common ones for them.
#pragma once

#include <string>
#include <vector>

#include "apps/video/batch.h"
#include "apps/video/encode_options.h"
#include "apps/volume/volume.h"

namespace trivelet::cli {

/// `verify`: the option --verify, which others exclude.
void add_volume_encode_options(Command& app, EncodeOptions& options, Option verify);
/// Where the input is a video.
void refuse_volume_options(const Command& app);

VolumeTyped typed_volume(const EncodeOptions& options);
/// The series in a folder of DICOM files, if there are several and none was typed; nothing for other inputs.
std::vector<BatchPart> volume_parts(const std::string& path, const EncodeOptions& options, const Common& common);
/// Encodes the volume options.input.
int run_volume(const EncodeOptions& options, const Common& common, const Command& app);

}  // namespace trivelet::cli
