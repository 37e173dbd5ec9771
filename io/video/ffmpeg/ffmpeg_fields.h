// What containers say of a film beside its packets: tags, flags of tracks, chapters. Internal to io.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

std::string tag_of(const AVDictionary* tags, const char* key);
/// Whether a container that writes the one reads the other.
bool is_same_value(std::string_view key, std::string_view a, std::string_view b);

/// Name and provider of the program of a transport stream that has this track. Other containers have them as tags of
/// the file. Null if there are none, or no program.
const AVDictionary* program_tags(const AVFormatContext& input, int track);
/// Names of the programs that do not have this track; "" if they have none.
std::string names_of_other_programs(const AVFormatContext& input, int track);

/// Tags that describe the file they are in, and are not taken into another: brands, programs that wrote it.
bool is_of_container(std::string_view key);
/// The same for a track: its author, its number of bytes.
bool is_of_coding(std::string_view key);

/// The flags of a track in FFmpeg's words, "default+forced"; and back. Covers are no flag here.
std::string flags_to_text(int disposition);
int flags_of_text(std::string_view text);

/// The fields that a file should have, to find those that its container cannot hold.
class WantedFields {
 public:
  WantedFields() = default;
  /// Of `output`, before its header is written: muxers change tags as they go.
  explicit WantedFields(const AVFormatContext& output);

  /// What the finished file at `path` does not have of it, a sentence; "" if nothing is lost, or if the file cannot be
  /// read again.
  std::string lost(const std::string& path) const;

 private:
  using Tags = std::vector<std::pair<std::string, std::string>>;
  struct Track {
    Tags tags;
    int disposition = 0;
    std::vector<std::pair<std::string, std::string>> colour;  ///< of a video: ffprobe's name of a field, its value
  };
  static Tags tags_of(const AVDictionary* tags);
  static Tags colour_of(const AVCodecParameters& codec);
  static std::string not_in(const Tags& wanted, const Tags& found, const std::string& where, const std::string& date);

  std::string muxer_;
  Tags tags_;
  std::vector<Track> tracks_;
  std::vector<std::string> chapters_;  ///< their titles
};

}  // namespace trivelet::io
