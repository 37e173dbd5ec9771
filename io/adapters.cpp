// The adapters linked, as in tests. A program that loads them defines the same functions, and the linker takes its own.
#include "io/adapters.h"

namespace trivelet::io {

#ifdef TRIVELET_HAVE_FFMPEG
const FfmpegAdapter* ffmpeg_adapter(const std::string&) { return &trivelet_ffmpeg; }
bool have_ffmpeg() { return true; }
#else
const FfmpegAdapter* ffmpeg_adapter(const std::string&) { return nullptr; }
bool have_ffmpeg() { return false; }
#endif

#ifdef TRIVELET_HAVE_GDCM
const GdcmAdapter* gdcm_adapter(const std::string&) { return &trivelet_gdcm; }
#else
const GdcmAdapter* gdcm_adapter(const std::string&) { return nullptr; }
#endif

}  // namespace trivelet::io
