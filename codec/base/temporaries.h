// Temporary files of several processes that make one output together. Those of one process: trivelet/streams.h.
#pragma once

#include <string>

namespace trivelet {

/// Has remove_temporaries() also remove the temporary file that another process was writing for a FileSink of `path`
/// and has left behind: one that works together with this one and ends first. While that process lives nothing is
/// removed.
void remove_with_temporaries(const std::string& path);

}  // namespace trivelet
