// Converts metadata to and from the boxes of a stream (FORMAT.md "Metadata").
#pragma once

#include <vector>

#include "trivelet/metadata.h"
#include "trivelet/stream_info.h"

namespace trivelet {

/// A box for each kind that there is. Throws BadArgument for what the format cannot hold.
std::vector<ExtraBox> metadata_boxes(const Metadata& metadata);
/// The metadata in these boxes. Boxes that violate the format, and other boxes, are ignored.
Metadata read_metadata(const std::vector<ExtraBox>& boxes);

}  // namespace trivelet
