#include "io/ffmpeg_common.h"
#include "io/formats.h"
namespace trivelet::io {
Writer make_ffmpeg_writer(const std::string& path, const VideoInfo&, const std::string&, const WriterOptions&) {
  fail(ErrorKind::kUnsupported, path + ": writing through FFmpeg is not there yet");
}
}  // namespace trivelet::io
