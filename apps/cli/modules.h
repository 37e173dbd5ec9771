// Parts of the program that wrap large third-party libraries (FFmpeg, GDCM, MPI) and are loaded on first use. Linked,
// these 150 shared libraries would add 70 ms to every start.
#pragma once

#include <string>

namespace trivelet::cli {

/// Whether this build has the module: "ffmpeg", "gdcm", "mpi".
bool has_module(const std::string& name);

/// The table of functions that libtrivelet-NAME.so exports as trivelet_NAME; null when this build has no such module.
/// Throws Unsupported when it has but the file or a library of it is missing; `user`, a file or a command, begins the
/// message.
const void* load_module(const std::string& name, const std::string& user);

}  // namespace trivelet::cli
