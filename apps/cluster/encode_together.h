// Encoding by several processes. The first one finds where GOPs end and distributes them. Every process, the first one
// too, encodes GOPs and sends a record of each. The first process sends back where each GOP begins in the file, and
// the process that encoded it writes it there. An output that not all can write to is written by the first process, in
// order, from bytes that are sent to it. The stream is byte for byte that of one process
// (codec/encoder/encoder_part.h).
//
//   first process: GopFinder -> GopDistributor ----kGop, kBudget----> every process: encode_worker
//                  RecordWriter <----------kRecord, kErrors---------
//                  RecordWriter -----kPosition, kMeasure----------->
//
// Files of raw frames: the first process reads only what tells where GOPs end, and every worker reads the frames of its
// GOPs. Films with key frames: all processes decode (kept_frames.h). Other inputs: the first process reads each frame
// once and sends it.
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

/// Source of the frames.
enum class Reading : std::uint8_t { kSent, kDirect, kKept };

/// The setup of a worker.
struct WorkerSetup {
  std::shared_ptr<const Backend> backend;  ///< null: the CPU
  std::unique_ptr<PartEncoder> encoder;
  /// Fills `gop` with its frames from this number on. Null: frames are sent.
  std::function<void(Gop& gop, std::uint64_t first_frame)> read;
  std::unique_ptr<KeptFrames> kept{};  ///< used by `read` with Reading::kKept
  /// The file into which it writes its GOPs. Null: the first process writes them.
  std::unique_ptr<io::SharedFile> output{};
};

/// Reads GOPs in ascending order.
std::function<void(Gop& gop, std::uint64_t first_frame)> read_from(std::shared_ptr<VideoInput> input);

/// The details of the call to the others (job_call.h). `output`: workers that see this file write into it; without a
/// path none does.
std::vector<std::uint8_t> pack_call(const StreamHeader& header, Reading reading, const io::SharedOutput& output);

/// In the other processes: waits for a call, encodes, and waits for the first process to end. `prepare` makes the setup
/// for a stream with this header; `reading` is that of the call.
void help_encode(Processes& processes, const std::string& job,
                 const std::function<WorkerSetup(const StreamHeader& header, Reading reading)>& prepare);

/// The source of GOPs, and how the first process handles them.
struct Distribution {
  VideoInput& input;
  bool plain_gops = false;  ///< all GOPs have the greatest length, whatever the scenes
  Reading reading = Reading::kSent;
  KeptFrames* kept = nullptr;                  ///< of the first process, with kKept
  int threads = 0;                             ///< for finding scenes
  std::function<void(std::uint64_t)> written;  ///< called with the number of frames done
  EncodeJournal* journal = nullptr;            ///< of encoded GOPs; null: none is kept
  /// Skips this many bytes of the output, which a worker writes. Null: workers write nothing.
  std::function<void(std::uint64_t)> skip{};
};

struct EncodeTotals {
  double finding = 0;            ///< CPU seconds of the first process to find the ends of GOPs, including the reading
                                 ///< for it
  double writing = 0;            ///< seconds of the first process
  std::uint64_t taken = 0;       ///< GOPs of the journal
  std::uint64_t positioned = 0;  ///< GOPs that their workers wrote
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> coded{};  ///< GOPs, of each process
};
/// In the first process, after JobCall::call(). Throws the error of any process when all have stopped.
EncodeTotals encode_together(Processes& processes, WorkerSetup& own, Distribution& distribution, ByteSink& sink);

}  // namespace trivelet::cli
