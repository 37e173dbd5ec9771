// Messages about the damaged slices of a volume that is decoded nevertheless.
#pragma once

#include <string>

#include "trivelet/volume.h"

namespace trivelet::cli {

/// After all slices were read: names the damaged ones, and throws BadStream if there are any or the header was damaged.
void report_damage(const VolumeDecoder& decoder, const std::string& input);

}  // namespace trivelet::cli
