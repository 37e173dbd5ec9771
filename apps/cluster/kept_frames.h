// Films with an index of key frames, decoded by several processes. Each process decodes every n-th stretch between key
// frames and keeps the frames until the process that encodes them requests them. The first process receives, in order,
// the rows of each frame that show scene cuts, and the number of its stretch. Every frame is decoded once and sent at
// most once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "apps/cluster/messages.h"
#include "codec/threads/worker.h"
#include "io/video/video_io.h"
#include "trivelet/scene_cuts.h"

namespace trivelet::cli {

class KeptFrames {
 public:
  /// `name`: of the film, for warnings. `reader` has stretches (FrameReader::stretches()). Keeps at most `most_frames`,
  /// which must be more than a GOP and the frames that are read ahead to find its end.
  KeptFrames(Processes& processes, std::string name, std::unique_ptr<io::FrameReader> reader, std::size_t most_frames);
  /// Waits until the first process needs no more frames; in the first process, ends the need.
  ~KeptFrames();
  KeptFrames(const KeptFrames&) = delete;
  KeptFrames& operator=(const KeptFrames&) = delete;

  /// Starts to decode, and to answer other processes.
  void start();
  /// For a process that cannot take part, so that the others do not wait for it.
  static void stand_aside(Processes& processes);
  /// Fills `gop` with its frames, of which `first` is the number of the first one. They are then dropped here.
  void read(Gop& gop, std::uint64_t first_frame);

  // In the first process:
  /// Frames in order, with only the rows that SceneCuts compares. Throws the error of the process that decodes them.
  FramesInput looks();
  /// looks() ends.
  void stop_looking();
  /// No process needs more frames. Returns the number of frames that each process decoded.
  const std::vector<std::uint64_t>& end();

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // stretch, and frame in the stretch
  using Look = std::unique_ptr<MessageReader>;            ///< of a frame; null: the end of a stretch
  void decode();
  bool keep(const Place& place);
  void serve();
  void locate(int asker, std::uint64_t first, std::uint64_t count);
  void hand_over(int asker, std::uint64_t at, Place place, std::uint64_t count);
  void receive_look();
  bool next_look(Look& look);
  int read_looks(Gop& gop, int first, int count);
  bool unread_looks(int count);

  Processes& processes_;
  const std::string name_;
  const std::unique_ptr<io::FrameReader> reader_;
  const std::size_t most_frames_;
  const SceneCuts::Rows rows_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Place, std::shared_ptr<Gop>> kept_;
  bool stopped_ = false;
  std::vector<std::uint64_t> begins_{0};  ///< of complete stretches: the numbers of their first frames
  // used by the thread that finds scene cuts
  std::map<std::uint64_t, std::deque<Look>> arrived_;  ///< by stretch
  std::uint64_t stretch_ = 0;
  std::uint64_t seen_ = 0;  ///< frames of it
  std::deque<Look> delivered_, again_;
  WorkerStates workers_;  ///< that decode
  std::vector<std::uint64_t> decoded_;
  Worker decoder_{"read"}, server_{"hand over"};  ///< last: they end first
};

}  // namespace trivelet::cli
