// Films between key frames, decoded by several processes: each decodes every n-th stretch and keeps its frames until
// somebody codes them, who gets them from there. The first process sees, in order, of each frame the rows that tell
// where scenes change, and which stretch it is of; every frame is decoded once and goes from one process to another at
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
  /// `name`: of the film, for warnings. `reader` has stretches (FrameReader::stretches()). `most_frames` are kept: more
  /// than a GOP and what is read ahead to find its end.
  KeptFrames(Processes& processes, std::string name, std::unique_ptr<io::FrameReader> reader, std::size_t most_frames);
  /// Waits until the first process says that no frames are wanted any more; in the first one says so.
  ~KeptFrames();
  KeptFrames(const KeptFrames&) = delete;
  KeptFrames& operator=(const KeptFrames&) = delete;

  /// Begins to decode, and to answer others.
  void start();
  /// For a process that cannot take part: it is not waited for.
  static void stand_aside(Processes& processes);
  /// Fills `gop` with its frames, the first of which is that of this number; they are kept no longer.
  void read(Gop& gop, std::uint64_t first_frame);

  // In the first process:
  /// Frames in order, of which only what SceneCuts looks at is there. Throws what went wrong in whoever decodes them.
  FramesInput looks();
  /// looks() ends.
  void stop_looking();
  /// No frames are wanted any more, by anybody. Returns how many each process decoded.
  const std::vector<std::uint64_t>& end();

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // stretch, and frame in it
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
  std::vector<std::uint64_t> begins_{0};  ///< of stretches whose end was seen: the numbers of their first frames
  // Of the thread that looks.
  std::map<std::uint64_t, std::deque<Look>> arrived_;  ///< by stretch
  std::uint64_t stretch_ = 0;
  std::uint64_t seen_ = 0;  ///< frames of it
  std::deque<Look> delivered_, again_;
  WorkerStates workers_;  ///< that decode
  std::vector<std::uint64_t> decoded_;
  Worker decoder_{"read"}, server_{"hand over"};  ///< last: they end first
};

}  // namespace trivelet::cli
