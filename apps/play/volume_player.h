// Shows a volume in three planes that meet in a voxel. Internal to the module.
#pragma once

#include "apps/play/player.h"

namespace trivelet::play {

void show_volume(const VolumeOptions& options);

}  // namespace trivelet::play
