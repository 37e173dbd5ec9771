// Decoded GOPs of a stream around the current position. A thread decodes them: first what is shown next, and what was
// shown stays for steps back. A request for another position or quality takes effect with the next GOP.
//
// The thread decodes GOP after GOP, so that each is decoded once, even if it depends on the one before. Only if a GOP
// would be late does it skip ahead, to the first closed GOP that it can decode in time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apps/play/budget.h"
#include "apps/play/player.h"
#include "apps/video/video.h"
#include "codec/threads/worker.h"

namespace trivelet::play {

struct DecodedGop {
  std::uint64_t number = 0;  ///< another one for each, from 1
  Quality wanted;            ///< the requested quality
  Quality quality;           ///< the quality that the budget chose
  VideoInfo info;
  Gop gop;             ///< no frames if the reduced rate has none in this GOP
  double seconds = 0;  ///< that decoding took
};

/// What decoding took.
struct Work {
  std::uint64_t gops = 0;  ///< that were decoded, each as often as it was
  double seconds = 0;
};

class FrameStore {
 public:
  /// With `budget`, the quality is reduced if a GOP would be late.
  FrameStore(const std::string& path, const DecoderParams& params, std::shared_ptr<const Backend> backend, bool budget);
  ~FrameStore();
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;

  const StreamInfo& stream() const { return stream_; }
  const io::SideStreams& side_streams() const { return file_.side_streams; }
  int most_reduce() const { return most_reduce_; }
  int most_temporal() const { return most_temporal_; }

  /// The times of all frames at the full rate, in seconds of the stream's clock, and the end of the last one.
  const std::vector<double>& times() const { return times_; }
  double end() const { return end_; }
  /// The frame that is shown at a time, and the GOP it is in.
  std::size_t frame_at(double time) const;
  std::size_t gop_of(std::size_t frame) const;
  std::size_t gops() const { return stream_.gops.size(); }
  /// Seconds that a GOP lasts.
  double length_of(std::size_t gop) const;

  /// The position in the stream, and how its clock runs.
  struct Wanted {
    double time = 0;
    double speed = 0;      ///< seconds of the stream in a real second; 0: a still picture, in exactly the requested
                           ///< quality
    bool waiting = false;  ///< the clock waits until the GOP is decoded
    Quality quality;
  };
  /// Decodes the missing GOPs from that time on.
  void want(const Wanted& wanted);
  /// The GOP in the requested quality or, until it is decoded, in another one; null if there is none.
  std::shared_ptr<const DecodedGop> find(std::size_t gop) const;
  /// The last one up to `gop` that is there and has frames; null if there is none.
  std::shared_ptr<const DecodedGop> find_before(std::size_t gop) const;
  /// True if it is decoded in the requested quality, or in that of the budget.
  bool is_ready(std::size_t gop) const;
  /// Waits for that. Throws the errors of decoding.
  void wait_for(std::size_t gop);
  /// The level of the budget: 0 decodes everything.
  int budget_level() const;
  Work work() const;
  /// What was found damaged, a line each; a hundred at most.
  std::vector<std::string> damage() const;
  /// Throws the errors of decoding.
  void check() const;

 private:
  void read_times();
  void run();
  bool is_good(std::size_t gop) const;
  std::size_t most_ahead() const;
  std::size_t cost(std::size_t gop, const Quality& quality) const;
  bool choose(std::size_t& gop) const;
  void decode(std::size_t gop, const Wanted& wanted);
  void begin(std::size_t gop, const Quality& quality);
  void learn(const Wanted& wanted, double seconds, std::uint64_t gops, double length);
  void note_damage(const std::vector<std::string>& lines);
  Gop take_memory();
  void keep(std::size_t gop, std::shared_ptr<DecodedGop> decoded);
  void drop_farthest();

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
  std::uint64_t numbers_ = 0;
  std::vector<Gop> spare_;  ///< memory of GOPs that were dropped, for `decoder_`

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::shared_ptr<DecodedGop>> decoded_;
  std::size_t decoded_bytes_ = 0;
  bool asked_ = false;  ///< for anything yet
  Wanted wanted_;
  std::size_t wanted_gop_ = 0;
  Budget budget_;
  double seconds_a_gop_ = 0;  ///< the last one; 0: in this quality none was decoded yet
  Work work_;
  std::vector<std::string> damage_;
  bool stopping_ = false;
  std::exception_ptr error_;
  Worker worker_{"decode"};  ///< last: it ends first
};

}  // namespace trivelet::play
