// The state of a Decoder beyond the layout of the stream. packet_reader.cpp reads the chunks of GOPs into it,
// decoder.cpp decodes them.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/backend.h"
#include "codec/base/lasting_failure.h"
#include "codec/decoder/motion_sections.h"
#include "codec/decoder/region.h"
#include "codec/format/chunk_check.h"
#include "codec/format/container.h"
#include "codec/format/given_bytes.h"
#include "codec/format/stream_input.h"
#include "codec/format/stream_layout.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/stage_timer.h"
#include "codec/threads/worker.h"
#include "trivelet/codec.h"

namespace trivelet {

struct Decoder::State : StreamLayout {
  static constexpr std::size_t kMostSpare = 64;
  static constexpr std::size_t kMostDamage = 100;  ///< lines in CodecStats

  /// A GOP on its way through the backend.
  struct Packet {
    GopHeader head;
    std::shared_ptr<const StreamGeometry> geometry;
    LayeredGop received;
    MotionSections motion;
    std::string where;                     ///< the packet's name in messages
    std::vector<std::uint8_t> bytes;       ///< chunks, each followed by padding
    std::vector<std::string> damage;       ///< found by the backend
    std::vector<std::string> read_damage;  ///< found by reading it and what was missing before it
    bool counted_damaged = false;
    bool whole = false;  ///< everything was wanted and received
  };

  /// The key frame that a GOP leaves to an open GOP.
  struct KeyLeft {
    std::uint64_t end = 0;  ///< number of the frame after it; 0: no key frame
    bool intact = false;
    bool whole = false;  ///< all that it depends on was received, and its GOP
  };

  /// GOPs of the index whose keys are predicted from one another, up to the first one that is wanted whole, or the
  /// last. Kept, because a look for the end from each of them would take the square of their number.
  struct GopChain {
    std::size_t begin = 1;
    std::size_t end = 0;
  };

  /// The next result of reading, and the damage found on the way.
  struct ReadPacket {
    std::unique_ptr<Packet> packet;  ///< null at the end
    std::exception_ptr error;        ///< in place of a packet; later packets may be readable
    std::vector<std::string> damage;
    std::uint64_t bytes = 0;  ///< read so far
  };
  /// A thread that reads packets while earlier ones are decoded. While it runs, only it uses the reading half below.
  struct Reader {
    /// Reads `ahead` packets ahead. With more than one of `gops` as many threads decode the motion of a GOP each.
    Reader(State& s, std::size_t ahead, int gops);
    ~Reader();
    StageQueue<ReadPacket> packets;
    Worker worker{"read packets"};  ///< last member: its thread ends first
  };

  DecoderParams params;
  CodecStats stats;
  VideoInfo output;
  Reduction reduction;
  std::unique_ptr<GopDecoder> backend;
  SampleAllocator allocate;
  decltype(Backend::geometry) make_geometry;
  std::deque<std::unique_ptr<Packet>> flying;  ///< in the order of the stream
  std::exception_ptr later;                    ///< error of reading ahead, thrown after the GOPs before it
  LastingFailure failure;                      ///< of pull() and exchange()
  bool key_damaged = false;                    ///< of the GOP decoded last, according to the backend
  std::uint64_t delivered_first = 0;           ///< first frame of the GOP delivered last
  bool delivered_damaged = false;              ///< that GOP is
  std::vector<std::string> new_damage;         ///< since the GOP delivered before it
  std::vector<std::string> end_damage;         ///< found behind the last packet
  bool looked_for_volume = false;              ///< none found, or one that is not predicted
  bool all_read = false;
  bool reading_begun = false;

  // The reading half
  std::uint64_t bytes_read = 0;
  StreamInput in;
  std::vector<std::string> found;  ///< damage since the last packet
  void find_geometry(const GopKind& kind, const StreamHeader& gop_header);
  std::shared_ptr<const StreamGeometry> geometry;  ///< of the GOP read last
  std::vector<std::pair<GopKind, std::shared_ptr<const StreamGeometry>>> geometries;
  KeyLeft key_left;                               ///< of the GOP received last
  bool received_one = false;                      ///< GOP or more
  std::unique_ptr<ThreadPool> motion_pool;        ///< decodes motion where no readers do
  std::size_t next_gop = 0;                       ///< if there is an index
  GopChain chain;                                 ///< by wanted_gop()
  std::vector<std::vector<std::uint8_t>> needed;  ///< with a region: needed_segments() per component
  std::uint64_t expected_frame = 0;
  int checked_frames = 0;           ///< of a GOP, by check_frames()
  bool open_gop = false;            ///< one was checked
  std::vector<std::uint64_t> runs;  ///< of each GOP in the index, if runs are divided among decoders
  bool at_end = false;
  RangeSet* planned = nullptr;  ///< collects the ranges of chunks in place of reading them (plan.cpp)

  StageQueue<std::unique_ptr<Packet>> spare{kMostSpare};  ///< packets reused for their memory
  std::optional<Reader> reader;                           ///< last member: its thread ends first

  State(ByteSource& source, const DecoderParams& p) : params(p), in(source, bytes_read) {
    StreamLayout::limits = p.limits;
    uses_front_table = !p.keep_partial;  // which must find all damage
  }
  ~State() { backend.reset(); }  // the backend may still read packets in flight

  /// Limit of frames of a decoded GOP.
  int capacity() const { return header.most_frames(reduction.temporal); }
  bool has_region() const { return params.region.width > 0; }
  /// Whether only a part of the GOP is decoded; not with motion, whose vectors may point anywhere.
  bool has_region(const GopHeader& g) const { return has_region() && g.motion.empty(); }
  bool wanted(std::uint64_t first_frame, int frames) const {
    return first_frame < params.end_frame && first_frame + static_cast<std::uint64_t>(frames) > params.first_frame;
  }
  bool in_turn(std::size_t gop) const { return runs.empty() || runs[gop] % params.turns == params.turn; }
  bool is_wanted(std::size_t gop) const { return wanted(info.gops[gop].first_frame, info.gops[gop].frames); }
  bool is_open(std::size_t gop) const { return gop < info.gops.size() && info.gops[gop].key == GopKey::kOpen; }
  /// Whether GOP i is wanted, or the open GOP after it is, which needs all of it.
  bool wanted_whole(std::size_t i) const { return is_wanted(i) || (is_open(i + 1) && is_wanted(i + 1)); }
  /// Whether GOP i is wanted and in turn, or GOPs after it need its key frame. They are all in the same run.
  bool wanted_gop(std::size_t i) {
    if (!in_turn(i)) return false;
    if (i < chain.begin || i > chain.end) {
      chain = {i, i};
      while (!wanted_whole(chain.end) && is_open(chain.end + 1) && info.gops[chain.end + 1].predicts_keys) ++chain.end;
    }
    return wanted_whole(chain.end);
  }
  /// Whether a GOP is wanted when the next one, which may need it, is unknown.
  bool wanted_before(std::uint64_t first_frame, int frames) const {
    const std::uint64_t room = header.motion ? header.gop_frames : 0u;
    return first_frame < params.end_frame &&
           first_frame + static_cast<std::uint64_t>(frames) + room > params.first_frame;
  }
  /// Whether any later GOP may be wanted and need the keys of this one, when those are unknown.
  bool keys_wanted_before(const GopHeader& g) const {
    return header.predicted_keys && !info.has_index && !g.motion.empty() && g.first_frame < params.end_frame;
  }
  /// Runs f() and adds its time to a stage.
  template <class F>
  auto timed(StageTime DecoderStages::*stage, const F& f) {
    const StageTimer timer(stats.decoding.*stage,
                           [this] { return motion_pool ? motion_pool->times() : ThreadPool::Times(); });
    return f();
  }
  /// Runs f(), which calls the backend, and divides its time among the backend's stages.
  template <class F>
  auto in_stages(const F& f);
  /// Reports damage: throws an Error, or records it if intact parts are to be delivered.
  void report(const std::string& what);
  void count_damaged(Packet& packet);
  void add_new(std::vector<std::string> lines);

  // packet_reader.cpp: the reading half
  /// The same for the reading half: the next packet carries the report.
  void report_read(const std::string& what);
  /// Finds the next GOP box of the stream; false at its end.
  bool open_next_packet(Box& box, std::uint64_t& offset);
  /// Reads the wanted chunks and the sections of motion of one packet, of which complete() has the rest. False if the
  /// packet is not wanted or unusable.
  bool receive(Packet& packet, std::uint64_t payload, std::uint64_t offset);
  /// The part of a packet to read.
  struct Share {
    int layers = 0;
    int bands = 0;             ///< temporal bands, from the lowest
    int stop_plane = 0;        ///< lower planes are not wanted
    std::uint64_t budget = 0;  ///< bytes of chunks
    bool whole = false;        ///< all of the packet
    bool only_keys = false;    ///< of a GOP that no frame is shown of
  };
  /// A chunk in Packet::bytes.
  struct FetchedChunk {
    std::size_t at = 0;
    std::size_t size = 0;
    bool ok = false;  ///< wanted and received, like all it depends on
  };
  Share wanted_share(const GopHeader& g, std::uint64_t payload, std::uint64_t head_bytes) const;
  void fetch_motion(Packet& packet, bool only_keys);
  bool follow_key(Packet& packet, bool intact, const std::string& where);
  bool fetch_chunks(Packet& packet, const Share& share, const std::vector<ChunkChecks>& checks, std::uint64_t body,
                    const std::string& where, std::vector<FetchedChunk>& fetched);
  bool join_chunks(Packet& packet, const std::vector<ChunkChecks>& checks, std::uint64_t body, const std::string& where,
                   std::vector<FetchedChunk>& fetched);
  bool receive_head(GopHeader& g, std::uint64_t payload, const std::string& where, std::uint32_t& n);
  /// Notes the frames of the next GOP. Reports wanted frames that are missing before it.
  void follow(std::uint64_t first_frame, int frames, const std::string& where);
  /// `decoded`: its motion is. Called for received packets in the order of the stream.
  void complete(Packet& packet, bool decoded);
  std::vector<ChunkChecks> read_checks(const GopHeader& g, std::uint64_t end_of_packet);
  std::vector<ChunkChecks> expected_checks(const GopHeader& g, std::uint64_t body) const;
  bool read_parts(Packet& packet, const ChunkEntry& chunk, const ChunkChecks& checks, std::uint64_t body,
                  std::size_t place, int band, int distance);
  void find_needed();
  /// plan.cpp: the ranges before and after the chunks of a GOP.
  void plan_heads(std::size_t gop, RangeSet& wanted);
  void forget_unneeded(LayeredGop& received) const;

  // decoder.cpp
  void check_request();
  /// Whether GOPs of at most so many frames can have motion: one frame alone moves from a GOP before it or not at all.
  bool may_move(int gop_frames) const;
  /// For GOPs of so many frames.
  std::uint64_t memory_needed(int gop_frames) const;
  /// Checks the limits of memory and samples for GOPs of so many frames, unless as many were checked before, and for
  /// the first one that needs a frame before it.
  void check_frames(int gop_frames, GopKey key);
  /// Throws Unsupported for predicted volumes unless the request asks for their differences.
  void refuse_differences();
  /// Reads packets until one in the wanted range is received. False at the end.
  bool next(Packet& packet);
  /// The next packet as it was received; complete() is to follow.
  ReadPacket read_next();
  /// Completes it. `readers`, if not null, have decoded or decode its motion.
  void complete(ReadPacket& read, MotionReaders* readers);
  void read_all(StageQueue<ReadPacket>& to, int gops);
  void begin_reading();
  /// Gives the backend as many GOPs as it can take.
  void read_ahead();
  /// Takes the result of the oldest GOP by `take(backend)`; null at the end.
  template <class Take>
  std::unique_ptr<Packet> decode(const Take& take);
  bool pull(Gop& gop, bool may_exchange);
  bool pull(CoefficientGop& coefficients);
  void verify(const Gop& gop, Packet& packet);
};

}  // namespace trivelet
