// --preset slow: tries temporal transforms and GOP lengths on the beginning of the video.
#pragma once

#include "apps/video/video.h"

namespace trivelet::cli {

/// Codes the first frames of `video` with each choice that `app` does not say was typed, and returns `params` with the
/// one that needs the fewest bytes for what it brings. Reads from `video`, which is of no use afterwards.
EncoderParams best_transform(const Command& app, EncoderParams params, VideoInput& video);

}  // namespace trivelet::cli
