// Parts of the program that wrap large libraries of others (FFmpeg, GDCM, MPI) and are loaded when they are first
// needed: linked, these 150 shared libraries would take 70 ms of every start.
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
