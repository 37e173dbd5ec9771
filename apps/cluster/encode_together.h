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

/// Where frames come from.
enum class Reading : std::uint8_t { kSent, kDirect, kKept };

/// What a worker encodes with.
struct WorkerSetup {
  std::shared_ptr<const Backend> backend;  ///< null: the CPU
  std::unique_ptr<PartEncoder> encoder;
  /// Fills `gop` with its frames from this number on. Null: frames are sent.
  std::function<void(Gop& gop, std::uint64_t first_frame)> read;
  std::unique_ptr<KeptFrames> kept{};  ///< which `read` uses, with Reading::kKept
  /// Where it writes its GOPs. Null: the first process writes them.
  std::unique_ptr<io::SharedFile> output{};
};

/// Reads GOPs in ascending order.
std::function<void(Gop& gop, std::uint64_t first_frame)> read_from(std::shared_ptr<VideoInput> input);

/// The details of the call to the others (job_call.h). `output`: workers that see this file write into it; without a
/// path none does.
std::vector<std::uint8_t> pack_call(const StreamHeader& header, Reading reading, const io::SharedOutput& output);

/// In the others: waits for a call, encodes, and waits for the first process to end. `prepare`: makes the setup for a
/// stream with this header; `reading`: of the call.
void help_encode(Processes& processes, const std::string& job,
                 const std::function<WorkerSetup(const StreamHeader& header, Reading reading)>& prepare);

/// Where GOPs come from, and what the first process does with them.
struct Distribution {
  VideoInput& input;
  bool plain_gops = false;  ///< all of the greatest length, whatever the scenes
  Reading reading = Reading::kSent;
  KeptFrames* kept = nullptr;                  ///< of the first process, with kKept
  int threads = 0;                             ///< for finding scenes
  std::function<void(std::uint64_t)> written;  ///< called with the number of frames that are done
  EncodeJournal* journal = nullptr;            ///< of encoded GOPs; null: none is wanted
  /// Leaves out so many bytes, which a worker writes. Null: workers write nothing.
  std::function<void(std::uint64_t)> skip{};
};

struct EncodeTotals {
  double finding = 0;            ///< CPU seconds of the first process to find where GOPs end, with reading for it
  double writing = 0;            ///< seconds of the first process
  std::uint64_t taken = 0;       ///< GOPs of the journal
  std::uint64_t positioned = 0;  ///< GOPs that their workers wrote
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> coded{};  ///< GOPs, of each process
};
/// In the first process, after JobCall::call(). Throws what went wrong in any process, when all have stopped.
EncodeTotals encode_together(Processes& processes, WorkerSetup& own, Distribution& distribution, ByteSink& sink);

}  // namespace trivelet::cli
