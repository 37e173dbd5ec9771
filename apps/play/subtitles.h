// The subtitles of a film as text: tracks of SubRip, WebVTT, ASS and what else libavcodec decodes to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace trivelet::play {

class Subtitles {
 public:
  /// Null if `path` has no track of text. No track is chosen. `offset`: seconds to add to the file's times to get those
  /// of the stream.
  static std::unique_ptr<Subtitles> open(const std::string& path, double offset);
  ~Subtitles();
  Subtitles(const Subtitles&) = delete;
  Subtitles& operator=(const Subtitles&) = delete;

  /// Languages and titles of the tracks, in the order of the file.
  const std::vector<std::string>& names() const;
  /// Shows a track from a time on; -1 = none.
  void choose(int track, double time);
  int chosen() const;
  /// Reads on from another time.
  void seek(double time);
  /// Reads a little; to be called some ten times a second. `time` is what is shown.
  void fill(double time);
  /// What is to be read at a time; lines end in '\n'.
  std::string text_at(double time) const;

 private:
  Subtitles();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::play
