// Copies the side streams of a film: other tracks without coding them again, chapters, attachments, tags. Internal to
// io.
//
// Text subtitles are converted if the two containers use different forms (SubRip in Matroska, mov_text in MP4).
// remarks() names what the output cannot hold; it is left out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_bytes.h"
#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

class SideStreamCopy {
 public:
  explicit SideStreamCopy(const SideStreamOptions& options);
  ~SideStreamCopy();
  SideStreamCopy(const SideStreamCopy&) = delete;
  SideStreamCopy& operator=(const SideStreamCopy&) = delete;

  /// Adds tracks, chapters and tags to `output`, which has its video and lives longer, before its header is written.
  void add_to(AVFormatContext& output);
  /// The video shows its first frame then; nothing was written yet.
  void begin(std::int64_t us);
  /// Writes the packets before `us` in the time of the video. Throws the errors of reading, and those of av_fail().
  void write_until(std::int64_t us);
  /// The last frame ends then: writes the rest.
  void finish(std::int64_t us);

  /// Compares the sound in the finished file with what was written into it, byte for byte. Returns the number of
  /// tracks. Throws Mismatch.
  int verify_sound(const std::string& path) const;

  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  struct Target;

  void open(const std::string& path);
  void close();
  bool next_part();
  void check_part(AVFormatContext& input, int video, const std::string& name);
  void add_chapters_of(const SideStreamPart& part, const AVFormatContext& input);
  bool is_wanted(const AVFormatContext& input, unsigned index, const std::vector<bool>& taken) const;
  std::map<int, int> follow(AVFormatContext& input, int video) const;
  Target* target_of(const AVPacket& packet);
  void add_track(AVStream& from);
  void add_cover(AVStream& from);
  std::vector<bool> mapped(AVFormatContext& input, int video) const;
  std::string script_of(const AVStream& track) const;
  bool add_converted(AVStream& from);
  void add_recoded(AVStream& from);
  void add_chapters();
  std::int64_t shift_of_muxer() const;
  void write(Target& target, AVPacket& packet);
  void write_converted(Target& target, AVPacket& packet);
  void send_recoded(Target& target, AVPacket& packet);
  void send(Target& target, AVPacket& packet);

  SideStreamOptions options_;
  std::size_t part_ = 0;  ///< of options_.parts, that is read
  std::optional<InputBytes> source_;
  ErrorLog log_;
  std::unique_ptr<SourceIo> io_;
  InputPtr input_;
  AVFormatContext* output_ = nullptr;
  std::map<int, std::unique_ptr<Target>> targets_;         ///< by the index of their stream in the first part
  std::vector<std::pair<AVMediaType, int>> first_tracks_;  ///< what is wanted of it
  std::map<int, int> followed_;                            ///< in later parts: an index, and that of the first part
  PacketPtr packet_;
  bool pending_ = false;  ///< packet_ is read and not yet written
  bool ended_ = false;
  std::int64_t offset_us_ = 0;  ///< added to the times that are read
  std::int64_t begin_us_ = INT64_MIN;
  std::int64_t end_us_ = INT64_MAX;
  int video_ = -1;
  std::vector<std::string> remarks_;
};

}  // namespace trivelet::io
