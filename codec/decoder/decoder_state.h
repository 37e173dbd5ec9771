// What a Decoder holds beside what the stream says about itself: shared by decoder_packets.cpp, which reads the chunks
// of GOPs, and decoder.cpp, which has them decoded.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/backend.h"
#include "codec/base/lasting_failure.h"
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
    std::vector<std::uint8_t> bytes;  ///< chunks, each followed by padding
    std::vector<std::string> damage;  ///< found by the backend
    bool counted_damaged = false;
    bool whole = false;  ///< everything was received and asked for
  };

  /// What is known of the key frame that a GOP leaves to an open one.
  struct KeyLeft {
    std::uint64_t end = 0;  ///< the frame behind it; 0: there is none
    bool intact = false;
    bool whole = false;  ///< of its GOP everything was received
  };

  /// What reading came to next, and what it found on the way.
  struct ReadPacket {
    std::unique_ptr<Packet> packet;  ///< null at the end
    std::exception_ptr error;        ///< instead; what follows may be read all the same
    std::vector<std::string> damage;
    std::uint64_t bytes = 0;  ///< read so far
  };
  /// A thread that reads packets while those before are decoded. Its thread alone then uses the reading half below.
  struct Reader {
    Reader(State& s, std::size_t ahead);
    ~Reader();
    StageQueue<ReadPacket> packets;
    Worker worker{"read packets"};  ///< last: it ends first
  };

  DecoderParams params;
  CodecStats stats;
  VideoInfo output;
  Reduction reduction;
  std::unique_ptr<GopDecoder> backend;
  SampleAllocator allocate;
  decltype(Backend::geometry) make_geometry;
  std::deque<std::unique_ptr<Packet>> flying;  ///< in the order of the stream
  std::exception_ptr later;                    ///< from reading ahead: comes after the GOPs before it
  LastingFailure failure;                      ///< of pull() and exchange()
  bool key_damaged = false;                    ///< the GOP decoded last, as the backend found out
  std::uint64_t delivered_first = 0;           ///< frame of the GOP delivered last
  bool looked_for_volume = false;              ///< and found none, or one whose samples are numbers
  bool all_read = false;
  bool reading_begun = false;

  // The reading half.
  std::uint64_t bytes_read = 0;
  StreamInput in;
  std::vector<std::string> found;  ///< damage, since the last packet
  void find_geometry(const GopKind& kind, const StreamHeader& of_gop);
  std::shared_ptr<const StreamGeometry> geometry, geometry_before;  ///< of the GOP read last, and another
  GopKind geometry_kind, kind_before;
  KeyLeft key_left;                               ///< by the GOP received last
  std::unique_ptr<ThreadPool> motion_pool;        ///< reads it; made for the first GOP that has some
  std::size_t next_gop = 0;                       ///< with an index
  std::vector<std::vector<std::uint8_t>> needed;  ///< with a region: per component, needed_segments()
  std::uint64_t expected_frame = 0;
  std::vector<std::uint64_t> runs;  ///< of each GOP in the index, where runs are shared
  bool at_end = false;
  RangeSet* planned = nullptr;  ///< what would be read of chunks is noted here instead (plan.cpp)

  StageQueue<std::unique_ptr<Packet>> spare{kMostSpare};  ///< their memory is used again
  std::optional<Reader> reader;                           ///< last: it ends first

  State(ByteSource& source, const DecoderParams& p) : params(p), in(source, bytes_read) {
    StreamLayout::limits = p.limits;
    uses_front_table = !p.keep_partial;  // which is to find out what is damaged
  }
  ~State() { backend.reset(); }  // it may be reading what flies

  /// Frames a decoded GOP has at most.
  int capacity() const { return header.most_frames(reduction.temporal); }
  bool has_region() const { return params.region.width > 0; }
  /// Whether only a part of the GOP is decoded: motion may lead anywhere.
  bool has_region(const GopHeader& g) const { return has_region() && g.motion.empty(); }
  bool wanted(std::uint64_t first_frame, int frames) const {
    return first_frame < params.end_frame && first_frame + static_cast<std::uint64_t>(frames) > params.first_frame;
  }
  bool in_turn(std::size_t gop) const { return runs.empty() || runs[gop] % params.turns == params.turn; }
  /// Likewise, and in turn; also that a GOP behind it needs, which is of the same run.
  bool wanted_gop(std::size_t i) const {
    const auto is_wanted = [this](const GopInfo& g) { return wanted(g.first_frame, g.frames); };
    const GopInfo& g = info.gops[i];
    if (!in_turn(i)) return false;
    return is_wanted(g) ||
           (i + 1 < info.gops.size() && info.gops[i + 1].key == GopKey::kOpen && is_wanted(info.gops[i + 1]));
  }
  /// Of a GOP behind which it is not known what comes: it may be needed for that.
  bool wanted_before(std::uint64_t first_frame, int frames) const {
    const std::uint64_t room = header.motion ? header.gop_frames : 0u;
    return first_frame < params.end_frame &&
           first_frame + static_cast<std::uint64_t>(frames) + room > params.first_frame;
  }
  /// f(), and its time to a stage.
  template <class F>
  auto timed(StageTime DecoderStages::*stage, const F& f) {
    const StageTimer timer(stats.decoding.*stage,
                           [this] { return motion_pool ? motion_pool->times() : ThreadPool::Times(); });
    return f();
  }
  /// What the backend does, f(), and its time to the stages that it is.
  template <class F>
  auto in_stages(const F& f);
  /// Damage: an Error, unless what is intact is to be delivered all the same.
  void report(const std::string& what);
  void count_damaged(Packet& packet);

  // decoder_packets.cpp: the reading half
  /// Likewise; it is told with the packet that comes next.
  void report_read(const std::string& what);
  /// Finds the next GOP box of the stream; false at its end.
  bool open_next_packet(Box& box, std::uint64_t& offset);
  /// Reads the wanted chunks of one packet. False when the packet is not wanted or beyond use.
  bool receive(Packet& packet, std::uint64_t payload, std::uint64_t offset);
  /// What of a packet is to be read.
  struct Share {
    int layers = 0;
    int bands = 0;             ///< temporal ones, from the lowest
    int stop_plane = 0;        ///< planes below are not wanted
    std::uint64_t budget = 0;  ///< bytes of chunks
    bool whole = false;        ///< all of it
  };
  /// A chunk in Packet::bytes.
  struct FetchedChunk {
    std::size_t at = 0;
    std::size_t size = 0;
    bool ok = false;  ///< was wanted, is there, and all it leans on
  };
  Share wanted_share(const GopHeader& g, std::uint64_t payload, std::uint64_t head_bytes) const;
  bool fetch_motion(Packet& packet, const std::string& where);
  bool follow_key(Packet& packet, bool intact, const std::string& where);
  bool fetch_chunks(Packet& packet, const Share& share, const std::vector<ChunkChecks>& checks, std::uint64_t body,
                    const std::string& where, std::vector<FetchedChunk>& fetched);
  bool join_chunks(Packet& packet, const std::vector<ChunkChecks>& checks, std::uint64_t body, const std::string& where,
                   std::vector<FetchedChunk>& fetched);
  bool receive_head(GopHeader& g, std::uint64_t payload, const std::string& where, std::uint32_t& n);
  /// Frames of a GOP that follows: what is missing before it is reported if it is wanted.
  void follow(std::uint64_t first_frame, int frames, const std::string& where);
  std::vector<ChunkChecks> read_checks(const GopHeader& g, std::uint64_t end_of_packet);
  std::vector<ChunkChecks> expected_checks(const GopHeader& g, std::uint64_t body) const;
  bool read_parts(Packet& packet, const ChunkEntry& chunk, const ChunkChecks& checks, std::uint64_t body,
                  std::size_t place, int band, int distance);
  void find_needed();
  /// plan.cpp: what stands in front of the chunks of a GOP, and behind them.
  void plan_heads(std::size_t gop, RangeSet& wanted);
  void forget_unneeded(LayeredGop& received) const;

  // decoder.cpp
  void check_request();
  std::uint64_t memory_needed() const;
  /// Unsupported for volumes by prediction, unless their differences are asked for.
  void refuse_differences();
  /// Reads packets until one of the wanted range is received. False at the end.
  bool next(Packet& packet);
  ReadPacket read_next();
  void begin_reading();
  /// Gives the backend as many GOPs as it likes to have.
  void read_ahead();
  /// Takes the result of the oldest by `take(backend)`; null at the end.
  template <class Take>
  std::unique_ptr<Packet> decode(const Take& take);
  bool pull(Gop& gop, bool may_exchange);
  bool pull(CoefficientGop& coefficients);
  void verify(const Gop& gop, Packet& packet);
};

}  // namespace trivelet
