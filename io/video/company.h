// What a file has beside the pictures of one video, which a film would miss: sound, subtitles, chapters.
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

struct Company {
  std::vector<OtherTrack> tracks;
  bool chapters = false;
  bool attachments = false;
  bool tags = false;  ///< title, artist …

  bool empty() const { return tracks.empty() && !chapters && !attachments && !tags; }
};
/// "sound (aac), subtitles (subrip), chapters"; "" when there is nothing.
std::string to_string(const Company& company);

/// What to take over from another file, beside its video.
struct CompanyOptions {
  std::string from{};                ///< the file; "" = nothing
  std::int64_t clock_offset_us = 0;  ///< added to its times
  std::string stream{};              ///< its video, in FFmpeg's words ("v:1", "3"); "" = the best
  std::vector<std::string> map{};    ///< only tracks of these, in FFmpeg's words ("a:0", "-s"); empty = all
  bool sound = true;
  std::string sound_codec{};  ///< "opus", "flac"; "" = as it is
  bool during_video = false;  ///< leave out what comes before the first frame or after the last
};

}  // namespace trivelet::io
