// The side streams of a film: sound, subtitles, chapters and whatever else a file has beside the pictures of one video.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trivelet::io {

struct OtherTrack {
  std::string kind;      ///< "video", "sound", "subtitles", "other"
  std::string codec;     ///< as the container or FFmpeg calls it: "A_AAC", "aac"
  std::string language;  ///< "" = not said
  std::string name;
};

struct SideStreams {
  std::vector<OtherTrack> tracks;
  bool chapters = false;
  bool attachments = false;
  bool tags = false;  ///< title, artist …

  bool empty() const { return tracks.empty() && !chapters && !attachments && !tags; }
};
/// "sound (aac), subtitles (subrip), chapters"; "" when there is nothing.
std::string to_string(const SideStreams& side_streams);

/// A file whose tracks continue those of another one.
struct SideStreamPart {
  std::string from;
  std::int64_t clock_offset_us = 0;   ///< added to its times, as SideStreamOptions has it, and
  std::int64_t shift_us = 0;          ///< this, by which its pictures are shifted, too
  std::int64_t begin_us = INT64_MIN;  ///< packets that end before, or
  std::int64_t end_us = INT64_MAX;    ///< begins then or later in the output, is left out
};

/// What to take over from another file, beside its video.
struct SideStreamOptions {
  std::string from{};                ///< the file; "" = nothing
  std::int64_t clock_offset_us = 0;  ///< added to its times
  std::string stream{};              ///< its video, in FFmpeg's words ("v:1", "3"); "" = the best
  std::vector<std::string> map{};    ///< only tracks of these, in FFmpeg's words ("a:0", "-s"); empty = all
  bool sound = true;
  std::string sound_codec{};       ///< "opus", "flac"; "" = as it is
  bool after_first_frame = false;  ///< leave out earlier packets
  bool before_last_frame = false;  ///< leave out later packets
  /// If not empty, `from` and `clock_offset_us` are those of the first part, and the others have the same tracks, as
  /// far as they have any.
  std::vector<SideStreamPart> parts{};
};

}  // namespace trivelet::io
