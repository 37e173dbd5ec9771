// What a track of a film is called in the player.
#pragma once

#include <string>

extern "C" {
#include <libavformat/avformat.h>
}

namespace trivelet::play {

/// Its language and title: "deu, Commentary".
inline std::string track_name(const AVStream& stream) {
  std::string name;
  for (const char* key : {"language", "title"})
    if (const AVDictionaryEntry* entry = av_dict_get(stream.metadata, key, nullptr, 0))
      name += (name.empty() ? "" : ", ") + std::string(entry->value);
  return name.empty() ? "no name" : name;
}

}  // namespace trivelet::play
