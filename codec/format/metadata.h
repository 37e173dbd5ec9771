// The boxes of metadata (FORMAT.md "Metadata"), as a stream holds them.
#pragma once

#include <vector>

#include "trivelet/metadata.h"
#include "trivelet/stream_info.h"

namespace trivelet {

/// A box for each kind that there is. Throws BadArgument for what the format cannot hold.
std::vector<ExtraBox> metadata_boxes(const Metadata& metadata);
/// What they say; a box that does not keep to the format is as if it were not there. Other boxes are passed over.
Metadata read_metadata(const std::vector<ExtraBox>& boxes);

}  // namespace trivelet
