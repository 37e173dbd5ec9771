// Decoded GOPs of a stream around the place that is shown, made by a thread: what is shown next is decoded first, what was
// shown stays for steps back. A request for another place or quality takes effect with the next GOP.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "apps/play/player.h"
#include "apps/video/video.h"

namespace trivelet::play {

struct DecodedGop {
  Quality quality;
  VideoInfo info;
  Gop gop;             ///< no frames where the reduced rate has none in this GOP
  double seconds = 0;  ///< that decoding took
};

class FrameStore {
 public:
  FrameStore(const std::string& path, const DecoderParams& params, std::shared_ptr<const Backend> backend);
  ~FrameStore();
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;

  const StreamInfo& stream() const { return stream_; }
  const io::Company& company() const { return file_.company; }
  int most_reduce() const { return most_reduce_; }
  int most_temporal() const { return most_temporal_; }

  /// When all frames begin, in seconds of the stream's clock, at the full rate; and when the last one ends.
  const std::vector<double>& times() const { return times_; }
  double end() const { return end_; }
  /// The frame that is shown at a time, and the GOP it is in.
  std::size_t frame_at(double time) const;
  std::size_t gop_of(std::size_t frame) const;
  std::size_t gops() const { return stream_.gops.size(); }
  /// Seconds that a GOP lasts.
  double length_of(std::size_t gop) const;

  /// Decodes from this GOP on, what is not there yet.
  void want(std::size_t gop, const Quality& quality);
  /// The GOP, as it was wanted or, until it is there, in another quality; null if there is none.
  std::shared_ptr<const DecodedGop> find(std::size_t gop) const;
  /// Whether it is there as it was wanted.
  bool is_ready(std::size_t gop) const;
  /// Waits for that. Throws what decoding threw.
  void wait_for(std::size_t gop);
  /// Throws what decoding threw.
  void check() const;

 private:
  void read_times();
  void work();
  bool choose(std::size_t& gop) const;
  void decode(std::size_t gop, const Quality& quality);
  void keep(std::size_t gop, std::shared_ptr<const DecodedGop> decoded);

  DecoderParams params_;
  std::shared_ptr<const Backend> backend_;
  cli::StreamFile file_;
  StreamInfo stream_;
  int most_reduce_ = 0;
  int most_temporal_ = 0;
  std::vector<double> times_;
  std::vector<std::size_t> first_frames_;  ///< of every GOP, into times_
  double end_ = 0;

  // Of the thread alone.
  std::unique_ptr<Decoder> decoder_;
  Quality decoder_quality_;
  std::size_t decoder_next_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::shared_ptr<const DecodedGop>> decoded_;
  std::size_t wanted_ = 0;
  Quality quality_;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace trivelet::play
