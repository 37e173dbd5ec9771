// A track of the output that gets the packets of one of the file of side streams. Internal to io.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "codec/base/frame_times.h"
#include "io/md5.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_decode_times.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_side_streams.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_sound.h"

namespace trivelet::io {

inline constexpr AVRational kMicroseconds = {1, 1'000'000};

struct SideStreamCopy::Target {
  AVStream* from = nullptr;
  AVStream* to = nullptr;
  CodecPtr decoder;  ///< of subtitles that change their form
  CodecPtr encoder;
  std::unique_ptr<SoundCoder> sound;        ///< that is encoded again
  std::optional<DecodeTimes> decode_times;  ///< of pictures of which a container does not tell them
  std::int64_t last_dts = AV_NOPTS_VALUE;
  bool is_read = false;  ///< a packet of it
  bool is_written = false;
  bool has_script = false;            ///< among its text
  std::int64_t heard_again_us = 0;    ///< of what an edit list leaves out
  std::optional<std::int64_t> delay;  ///< added to times, which a reader takes off again; null: not yet looked for
  // Of a file in parts, in microseconds: when the last packet began and ended, of this part and those before, and of
  // those before alone.
  std::int64_t begin_us = INT64_MIN;
  std::int64_t end_us = INT64_MIN;
  std::int64_t covered_begin_us = INT64_MIN;
  std::int64_t covered_end_us = INT64_MIN;
  // Of sound whose packets muxers leave alone (they remove headers of WavPack), to compare it with the finished file:
  int index = -1;  ///< in the output; -1: not compared
  AVCodecID codec = AV_CODEC_ID_NONE;
  Md5 digest;

  /// Packets across the cut between two parts of a film are in both.
  bool is_covered(std::int64_t us, std::int64_t duration_us) const {
    if (from->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && duration_us > 0)
      return add_times(us, duration_us / 2) < covered_end_us;
    return us <= covered_begin_us;
  }
};

}  // namespace trivelet::io
