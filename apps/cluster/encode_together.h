// Encoding by the processes that mpirun started: the first one deals out GOPs, all code them and tell it how long they
// have become, and it tells where they begin in the file, into which each writes its own. What is no file that all see
// the first one writes, in order, from what it is sent. The stream is byte for byte that of one process
// (codec/encoder/encoder_part.h).
//
// Of files of raw frames the first process looks only where GOPs end, and who codes a GOP reads it; films with key
// frames all decode (kept_frames.h); the frames of other inputs are read by the first process, once, and sent.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "apps/cluster/encode_journal.h"
#include "apps/cluster/job_call.h"
#include "apps/cluster/kept_frames.h"
#include "apps/video/video.h"
#include "codec/encoder/encoder_part.h"
#include "io/video/part_writer.h"

namespace trivelet::cli {

/// Where frames come from.
enum class Reading : std::uint8_t { kSent, kDirect, kKept };

/// What a process codes with.
struct Share {
  std::shared_ptr<const Backend> backend;  ///< null: the CPU
  std::unique_ptr<PartEncoder> encoder;
  /// Fills `gop` with its frames, the first of which is that of this number. Null: they are sent.
  std::function<void(Gop& gop, std::uint64_t first_frame)> read;
  std::unique_ptr<KeptFrames> kept{};  ///< from which it reads then, and others
  /// Where it writes what it codes; null: the first process does.
  std::unique_ptr<io::SharedFile> output{};
};

/// Reads GOPs of which each begins behind the one before.
std::function<void(Gop& gop, std::uint64_t first_frame)> read_from(std::shared_ptr<VideoInput> input);

/// What the others are called with (worker_group.h). `output`: who sees it writes what it
/// codes where it belongs; without a path nobody does.
std::vector<std::uint8_t> pack_call(const StreamHeader& header, Reading reading, const io::SharedOutput& output);

/// In the others: waits for what is to be done, does it, and waits for the first one to end. `prepare` is asked for its
/// share in a stream with this header; `reading`: as the call says.
void help_encode(Processes& processes, const std::string& job,
                 const std::function<Share(const StreamHeader& header, Reading reading)>& prepare);

/// Where GOPs come from.
struct Dealing {
  VideoInput& input;
  bool plain_gops = false;  ///< as long as they may be, whatever the scenes
  Reading reading = Reading::kSent;
  KeptFrames* kept = nullptr;                  ///< with kKept, of the first process
  int threads = 0;                             ///< that look for scenes
  std::function<void(std::uint64_t)> written;  ///< told how many frames are
  EncodeJournal* journal = nullptr;            ///< of what is coded; null: none is wanted
  std::function<void(std::uint64_t)>
      skip{};  ///< leaves out so many bytes that who coded them writes; null: nobody does
};

struct Together {
  double finding = 0;        ///< seconds that the first process took to find where GOPs end, with what it read for that
  double writing = 0;        ///< seconds that it took to write
  std::uint64_t taken = 0;   ///< GOPs of the journal
  std::uint64_t placed = 0;  ///< GOPs that were written by who coded them
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> coded{};  ///< GOPs, of each process
};
/// In the first process, after Summons::call(). Throws what went wrong in any of them, when all have stopped.
Together encode_together(Processes& processes, Share& own, Dealing& dealing, ByteSink& sink);

}  // namespace trivelet::cli
