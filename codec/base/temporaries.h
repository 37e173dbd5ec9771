// Temporary files of several processes that write one output together. (For one process see trivelet/streams.h.)
#pragma once

#include <string>

namespace trivelet {

/// Makes remove_temporaries() also remove the temporary file of `path` that another process wrote with a FileSink and
/// left behind. The file is not removed while that process runs.
void remove_with_temporaries(const std::string& path);

}  // namespace trivelet
