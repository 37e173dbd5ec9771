// Decoder of codec.h: checks the request, gives GOPs to the backend and delivers frames.

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "codec/base/fuzzing.h"
#include "codec/base/gop_hash.h"
#include "codec/base/limits.h"
#include "codec/cpu/gop_lanes.h"
#include "codec/decoder/decoder_state.h"
#include "codec/format/container.h"
#include "codec/threads/trace.h"
#include "codec/volume/volume_map.h"

namespace trivelet {

namespace {

// The first frame of a GOP that remains after a temporal reduction.
std::uint64_t first_kept(GopKey key, int levels) {
  return key == GopKey::kFirst ? 0 : (std::uint64_t{1} << levels) - 1;
}

// The run of each GOP.
std::vector<std::uint64_t> runs_of(const std::vector<GopInfo>& gops, std::uint64_t first_frame) {
  std::vector<std::uint64_t> runs;
  std::uint64_t run = 0;
  for (const GopInfo& g : gops) {
    if (g.key != GopKey::kOpen && g.first_frame > first_frame) ++run;
    runs.push_back(run);
  }
  return runs;
}

}  // namespace

bool is_tvl(const void* data, std::size_t size) {
  return size >= sizeof kSignature && std::memcmp(data, kSignature, sizeof kSignature) == 0;
}

void Decoder::State::report(const std::string& what) {
  if (!params.keep_partial) fail(ErrorKind::kBadStream, what);
  if (stats.damage.size() < kMostDamage) stats.damage.push_back(what);
  if (new_damage.size() < kMostDamage) new_damage.push_back(what);
}

void Decoder::State::add_new(std::vector<std::string> lines) {
  for (std::string& line : lines)
    if (new_damage.size() < kMostDamage) new_damage.push_back(std::move(line));
}

void Decoder::State::count_damaged(Packet& packet) {
  if (!packet.counted_damaged) ++stats.damaged_gops;
  packet.counted_damaged = true;
}

bool Decoder::State::may_move(int gop_frames) const {
  const auto is_open = [](const GopInfo& g) { return g.key == GopKey::kOpen; };
  // Without an index, a stream of one frame has one GOP; if there are more, they are checked as they come.
  const bool may_follow =
      info.has_index ? std::any_of(info.gops.begin(), info.gops.end(), is_open) : header.video.frames != 1 || open_gop;
  return header.motion && (gop_frames > 1 || may_follow);
}

std::uint64_t Decoder::State::memory_needed(int gop_frames) const {
  StreamHeader h = header;
  h.gop_frames = static_cast<std::uint16_t>(gop_frames);
  // The samples of two GOPs, one decoded and one written, as many compressed bytes as one GOP has samples, and 4 bytes
  // for each coefficient of the components that are in memory at once. The coder works on whole blocks, even if the
  // picture covers little of them: the decoding state of each thread.
  const bool predictive = h.profile == Profile::kPredictive;  // three frames of a block and tables, no coefficients
  const std::uint64_t state_bytes = predictive ? 64 : h.profile == Profile::kDense ? 640 : 30 * 8 + 3 * 8 + 6 * 2 + 4;
  const auto threads = static_cast<std::uint64_t>(
      params.threads > 0 ? params.threads : std::max(1u, std::thread::hardware_concurrency()));
  std::uint64_t largest_block = 0;
  std::uint64_t samples = 0, together = 0;
  const bool moves = may_move(gop_frames);
  const int least = std::min(reduction.temporal, h.least_levels());  // levels that are dropped
  for (int c = 0; c < static_cast<int>(h.components.size()); ++c) {
    const Shape s = h.component_shape(c, gop_frames + (moves ? 1 : 0));
    const std::uint64_t own = static_cast<std::uint64_t>(low_length(s.frames, least)) *
                              static_cast<std::uint64_t>(low_length(s.height, reduction.spatial)) *
                              static_cast<std::uint64_t>(low_length(s.width, reduction.spatial));
    samples += own;
    together = h.colour_transform && c < 3 ? samples : std::max(together, own);
    largest_block = std::max(largest_block, grid_size(s, h.decomposition(c), h.block_size()).words);
  }
  // Motion: the cells, the key frame at each level, and of each thread a frame and one as it was before.
  const auto places = static_cast<std::uint64_t>(low_length(gop_frames + 1, least));
  const std::uint64_t motion = moves ? MotionGrid(h.video.width, h.video.height).cells() * sizeof(MotionCell) *
                                               static_cast<unsigned>(gop_frames) +
                                           4 * (h.temporal_levels + (h.predicted_keys ? 1u : 0u)) * (samples / places) +
                                           2 * 4 * threads * (together / places)
                                     : 0;
  return geometry_memory(h) + largest_block * state_bytes * threads + motion + (predictive ? 0 : 4 * together) +
         3 * samples * static_cast<unsigned>(h.video.format.bytes_per_sample());
}

void Decoder::State::check_frames(int gop_frames, GopKey key) {
  const bool is_first_open = key == GopKey::kOpen && !std::exchange(open_gop, true);
  if (gop_frames <= checked_frames && !is_first_open) return;
  gop_frames = std::max(gop_frames, checked_frames);
  check_memory(params.limits, memory_needed(gop_frames), "decoding", ", or decode at a lower resolution");
  const std::uint64_t samples = header.samples(gop_frames);
  check_limit(samples, params.limits.samples, "samples", "GOPs of " + count_of(samples, "sample"));
  checked_frames = gop_frames;
}

void Decoder::State::check_request() {
  const DecoderParams& p = params;
  const int most = header.max_reduce() - header.dropped_spatial;
  require(p.reduce >= 0 && p.reduce <= most, ErrorKind::kBadArgument,
          "this stream can be reduced 0.." + std::to_string(most) + " times, not " + std::to_string(p.reduce) +
              no_smaller(header.profile));
  if (header.layout == Layout::kDyadic) {
    require(p.temporal_reduce == 0, ErrorKind::kBadArgument,
            "in a dyadic stream time is reduced together with the picture; use a spatial reduction alone");
    const int total = p.reduce + header.dropped_spatial;
    reduction = {total, std::min<int>(total, header.temporal_levels)};
  } else {
    const int levels = header.temporal_levels - header.dropped_temporal;
    require(p.temporal_reduce >= 0 && p.temporal_reduce <= levels, ErrorKind::kBadArgument,
            "this stream's frame rate can be halved 0.." + std::to_string(levels) + " times, not " +
                std::to_string(p.temporal_reduce) + no_smaller(header.profile));
    reduction = {p.reduce + header.dropped_spatial, p.temporal_reduce + header.dropped_temporal};
  }
  require(p.max_bytes == 0 || p.max_bits_per_pixel == 0, ErrorKind::kBadArgument,
          "one limit at a time: bytes or bits per pixel");
  require(p.max_bytes == 0 || in.seekable(), ErrorKind::kBadArgument,
          "a limit for all bytes needs to know the size of the stream, which a pipe does not tell; limit the bits per "
          "pixel instead");
  require(p.max_planes >= 0 && p.max_planes <= 30, ErrorKind::kBadArgument,
          "planes must be 1..30 (0 = all), not " + std::to_string(p.max_planes));
  require(p.max_layers >= 0 && p.max_layers <= header.layers, ErrorKind::kBadArgument,
          "this stream has " + count_of(header.layers, "layer") + ", not " + std::to_string(p.max_layers));
  require(
      header.profile != Profile::kPredictive || (p.max_bytes == 0 && p.max_bits_per_pixel == 0 && p.max_planes == 0),
      ErrorKind::kUnsupported, "this stream is of the predictive profile, which has no lower quality in it");
  require(p.first_frame < p.end_frame, ErrorKind::kBadArgument, "an empty range of frames");
  require(p.turn < p.turns, ErrorKind::kBadArgument,
          "turn " + std::to_string(p.turn) + " of " + std::to_string(p.turns));
  require(p.turns == 1 || info.has_index, ErrorKind::kBadArgument,
          "runs of a stream without an index cannot be shared");
  if (has_region()) {
    const PictureRegion& r = p.region;
    const int width = low_length(header.video.width, reduction.spatial);
    const int height = low_length(header.video.height, reduction.spatial);
    require(r.x >= 0 && r.y >= 0 && r.height > 0 && r.x < width && r.width <= width - r.x && r.y < height &&
                r.height <= height - r.y,
            ErrorKind::kBadArgument,
            "a region of " + std::to_string(r.width) + "x" + std::to_string(r.height) + " at " + std::to_string(r.x) +
                "," + std::to_string(r.y) + " leaves the pictures of " + std::to_string(width) + "x" +
                std::to_string(height));
    require(p.max_bytes == 0 && p.max_bits_per_pixel == 0, ErrorKind::kBadArgument,
            "a region excludes limits of bytes: these count whole pictures");
  }
  check_frames(largest_gop(), GopKey::kFirst);
}

Decoder::Decoder(ByteSource& source, const DecoderParams& params, const Backend* backend)
    : state_(std::make_unique<State>(source, params)) {
  State& s = *state_;
  s.read(s.in);
  // GOPs are as long as the index says, so that no memory is taken for longer ones; a longer one is damage.
  if (s.info.has_index) s.header.gop_frames = static_cast<std::uint16_t>(s.largest_gop());
  s.check_request();
  if (!s.info.header_damage.empty()) s.report(s.info.header_damage);
  s.output = reduced_video(s.header.video, s.reduction);
  VideoInfo& o = s.output;
  if (params.turns > 1) s.runs = runs_of(s.info.gops, params.first_frame);
  const int t = s.reduction.temporal;
  // The number of frames that pull() will deliver, if it can be known.
  std::uint64_t frames = 0;
  auto count = [&](std::uint64_t first, std::uint64_t n, GopKey key) {
    for (std::uint64_t f = first_kept(key, t); f < n; f += std::uint64_t{1} << t)
      if (first + f >= params.first_frame && first + f < params.end_frame) ++frames;
  };
  if (s.info.has_index) {
    for (std::size_t i = 0; i < s.info.gops.size(); ++i) {
      const GopInfo& g = s.info.gops[i];
      if (s.in_turn(i)) count(g.first_frame, static_cast<std::uint64_t>(g.frames), g.key);
    }
  } else {
    // Number of kept frames before frame x of a stream whose GOPs are all full.
    auto kept_before = [&](std::uint64_t x) {
      const std::uint64_t length = s.header.gop_frames;
      const bool key_last = s.header.motion && length % (std::uint64_t{1} << s.header.temporal_levels) == 0;
      const std::uint64_t round = key_last ? 0 : (std::uint64_t{1} << t) - 1;
      return x / length * ((length + round) >> t) + ((x % length + round) >> t);
    };
    const std::uint64_t all = s.header.video.frames;
    frames = kept_before(std::min(all, params.end_frame)) - kept_before(std::min(all, params.first_frame));
  }
  o.frames = frames;
  if (s.info.has_index) {
    check_limit(frames, params.limits.frames, "frames", "a stream of " + count_of(frames, "frame"));
    std::uint64_t samples = 0;  // of a frame
    for (int c = 0; c < o.format.components(); ++c)
      samples += static_cast<std::uint64_t>(o.component_width(c)) * static_cast<std::uint64_t>(o.component_height(c));
    constexpr std::uint64_t kEmpty = 1024;  // samples that are skipped in the time of one coded sample
    // Of a long film the product exceeds what a size_t of 32 bits holds.
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    check_work(params.limits, samples > kMost / std::max<std::uint64_t>(1, frames) ? kMost : frames * samples,
               s.info.file_bytes, kEmpty);
  }

  const bool needs_cpu = s.header.profile == Profile::kPredictive;
  const Backend& b = backend && !needs_cpu ? *backend : cpu_backend();
  BackendOptions options{params.threads, params.simd, Effort::kMedium, params.workers};
  const std::uint64_t gop_memory = s.memory_needed(s.header.gop_frames);
  if (params.reads_ahead)
    options.lanes = lanes_for(s.header, options, decoding_memory(s.header, s.reduction), s.info.gops.size());
  if (params.limits.memory > 0)  // one GOP fits the limit, as was checked
    options.lanes = static_cast<int>(
        std::clamp<std::uint64_t>(params.limits.memory / gop_memory, 1, static_cast<std::uint64_t>(options.lanes)));
  s.backend = b.make_decoder(s.header, s.reduction, options);
  s.allocate = b.allocate;
  s.make_geometry = b.geometry;
  s.stats.damage = std::exchange(s.found, {});
  s.stats.stream_bytes = s.bytes_read;
}

Decoder::~Decoder() = default;

const StreamInfo& Decoder::info() const { return state_->info; }
const VideoInfo& Decoder::output() const { return state_->output; }
const CodecStats& Decoder::stats() const { return state_->stats; }

int Decoder::gop_frames() const { return state_->capacity(); }

std::uint64_t Decoder::first_frame_of_gop() const { return state_->delivered_first; }

bool Decoder::is_gop_damaged() const { return state_->delivered_damaged; }

const std::vector<std::string>& Decoder::gop_damage() const { return state_->new_damage; }

Gop Decoder::make_gop() const { return Gop(state_->output, state_->capacity(), state_->allocate); }

Decoder::State::ReadPacket Decoder::State::read_next() {
  ReadPacket read;
  try {
    const trace::Span span("read packet");
    read.packet = spare.try_pop().value_or(nullptr);
    if (!read.packet) read.packet = std::make_unique<Packet>();
    if (!next(*read.packet)) read.packet.reset();
  } catch (...) {
    read.error = std::current_exception();
    read.packet.reset();
  }
  read.damage = std::exchange(found, {});
  read.bytes = bytes_read;
  return read;
}

void Decoder::State::complete(ReadPacket& read, MotionReaders* readers) {
  if (!read.packet) return;
  const bool moves = !read.packet->head.motion.empty();
  try {
    if (moves && readers) readers->finish(read.packet->motion);
    complete(*read.packet, readers != nullptr);
  } catch (...) {
    read.error = std::current_exception();
    read.packet.reset();
  }
  std::vector<std::string> damage = std::exchange(found, {});
  read.damage.insert(read.damage.end(), std::make_move_iterator(damage.begin()), std::make_move_iterator(damage.end()));
}

// Reads packets to the end of the stream, or until `to` is stopped.
void Decoder::State::read_all(StageQueue<ReadPacket>& to, int gops) {
  std::deque<ReadPacket> received;  // not completed yet
  std::optional<MotionReaders> readers;
  if (gops > 1) readers.emplace(gops);
  const auto is_done = [&](const ReadPacket& read) {
    return !read.packet || read.packet->head.motion.empty() || !readers || readers->is_done(read.packet->motion);
  };
  for (bool more = true; more;) {
    received.push_back(read_next());
    ReadPacket& last = received.back();
    more = last.packet || last.error;
    if (readers && last.packet && !last.packet->head.motion.empty()) readers->begin(last.packet->motion);
    while (!received.empty() &&
           (!more || received.size() >= static_cast<std::size_t>(gops) || is_done(received.front()))) {
      complete(received.front(), readers ? &*readers : nullptr);
      if (!to.push(std::move(received.front()))) return;
      received.pop_front();
    }
  }
}

Decoder::State::Reader::Reader(State& s, std::size_t ahead, int gops) : packets(ahead) {
  worker.begin([this, &s, gops] {
    try {
      s.read_all(packets, gops);
    } catch (...) {  // out of memory: pop() throws it
      packets.close(std::current_exception());
    }
  });
}

Decoder::State::Reader::~Reader() { packets.stop(); }

// The thread that calls pull() reads a pipe: another thread could not be ended while it waits for data. Without an
// index info() returns what reading finds.
void Decoder::State::begin_reading() {
  if (std::exchange(reading_begun, true) || !in.seekable() || !info.has_index || !kThreadsAhead || params.workers.run)
    return;
  constexpr int kMostAhead = 4;
  constexpr int kMostMotion = 8;  // GOPs whose motion is decoded at once, where the backend takes several GOPs
  const int depth = backend->depth();
  const int threads = params.threads > 0 ? params.threads : static_cast<int>(std::thread::hardware_concurrency());
  int gops = header.motion && depth > 1 ? std::clamp(threads, 1, kMostMotion) : 1;
  if (params.limits.memory > 0) {  // of which vectors may take an eighth
    const std::uint64_t bytes = MotionGrid(header.video.width, header.video.height).cells() * sizeof(MotionCell) *
                                std::max<std::uint64_t>(1, header.gop_frames);
    gops = static_cast<int>(
        std::clamp<std::uint64_t>(params.limits.memory / 8 / bytes, 1, static_cast<std::uint64_t>(gops)));
  }
  try {
    reader.emplace(*this, static_cast<std::size_t>(std::clamp(depth, 1, kMostAhead)), gops);
  } catch (const std::system_error&) {  // the system starts no more threads
  }
}

template <class F>
auto Decoder::State::in_stages(const F& f) {
  struct Add {
    State& s;
    StageTime before{s.backend->seconds_transform(), s.backend->busy_transform()};
    double busy_coder = s.backend->busy_coder();
    StageTime all{};
    ~Add() {
      DecoderStages& to = s.stats.decoding;
      const auto add = [](StageTime& stage, double seconds, double busy) {
        stage.seconds += seconds;
        stage.busy += busy;
      };
      if (s.backend->pool()) {
        const double seconds = s.backend->seconds_transform() - before.seconds;
        const double busy = s.backend->busy_transform() - before.busy;
        add(to.transform, seconds, busy);
        add(to.coder, all.seconds - seconds, all.busy - busy);
      } else if (s.backend->has_lanes()) {
        const auto [transform, coder] =
            shared_out(all.seconds, s.backend->busy_transform() - before.busy, s.backend->busy_coder() - busy_coder);
        add(to.transform, transform.seconds, transform.busy);
        add(to.coder, coder.seconds, coder.busy);
      } else {
        add(to.wait, all.seconds, all.busy);
      }
    }
  } add{*this};
  const StageTimer timer(add.all, [this] { return backend->pool() ? backend->pool()->times() : ThreadPool::Times(); });
  return f();
}

void Decoder::State::read_ahead() {
  begin_reading();
  const int depth = params.reads_ahead ? backend->depth() : 1;
  for (bool ready = false; !later && !all_read && !ready && static_cast<int>(flying.size()) < depth;) {
    std::optional<ReadPacket> read =
        timed(reader ? &DecoderStages::wait : &DecoderStages::read, [&]() -> std::optional<ReadPacket> {
          if (reader) return reader->packets.pop();
          ReadPacket next = read_next();
          complete(next, nullptr);
          return next;
        });
    stats.stream_bytes = read->bytes;
    for (const std::string& line : read->damage)
      if (stats.damage.size() < kMostDamage) stats.damage.push_back(line);
    later = read->error;
    all_read = !read->packet && !later;
    if (!read->packet) {
      end_damage = std::move(read->damage);
      return;
    }
    read->packet->read_damage = std::move(read->damage);
    if (read->packet->counted_damaged) ++stats.damaged_gops;
    read->packet->damage.clear();
    const trace::Span span("submit");
    in_stages([&] { backend->push(read->packet->received, params.keep_partial ? &read->packet->damage : nullptr); });
    flying.push_back(std::move(read->packet));
    ready = backend->is_ready();  // finished GOPs can be written while new ones begin
  }
}

void Decoder::State::refuse_differences() {
  if (params.differences || looked_for_volume) return;
  const std::optional<VolumeMap> map = volume_map_of(info.boxes);
  require(!map || map->prediction == VolumePrediction::kNone, ErrorKind::kUnsupported,
          "this stream holds a volume coded by prediction: its samples are differences, not pictures; decode it as a "
          "volume (VolumeDecoder)");
  looked_for_volume = true;
}

template <class Take>
std::unique_ptr<Decoder::State::Packet> Decoder::State::decode(const Take& take) {
  refuse_differences();
  read_ahead();
  if (flying.empty()) {
    if (later) std::rethrow_exception(std::exchange(later, nullptr));
    add_new(std::exchange(end_damage, {}));
    return nullptr;
  }
  std::unique_ptr<Packet> packet = std::move(flying.front());
  flying.pop_front();
  add_new(std::exchange(packet->read_damage, {}));
  {
    const trace::Span span("decode");
    const bool taken = in_stages([&] { return take(*backend); });
    require(taken, ErrorKind::kInternal, "the backend lost a GOP");
  }
  if (std::exchange(key_damaged, !packet->damage.empty()) && packet->head.key == GopKey::kOpen) {
    packet->damage.push_back("the key frame before them is damaged");
    key_damaged = key_damaged || packet->head.predicts_keys;
  }
  std::sort(packet->damage.begin(), packet->damage.end());  // threads find damage in any order
  for (const std::string& d : packet->damage) {
    report("frames from " + std::to_string(packet->head.first_frame) + ": " + d);
    count_damaged(*packet);
    packet->whole = false;
  }
  return packet;
}

bool Decoder::State::next(Packet& packet) {
  while (!at_end) {
    if (!info.has_index && expected_frame >= params.end_frame) return false;  // a pipe need not be read to its end
    Box box;
    std::uint64_t offset = 0;
    if (open_next_packet(box, offset) && receive(packet, box.length, offset)) return true;
  }
  return false;
}

void Decoder::State::verify(const Gop& gop, Packet& packet) {
  const GopHeader& g = packet.head;
  if (!(packet.whole && g.has_hash && params.verify_hash)) return;
  const bool same = timed(&DecoderStages::hash, [&] { return checks_are_believed || hash_samples(gop) == g.hash; });
  if (!same) {
    report("frames " + std::to_string(g.first_frame) + ".." +
           std::to_string(g.first_frame + static_cast<std::uint64_t>(g.frames) - 1) +
           ": the decoded samples do not have the hash of the originals");
    count_damaged(packet);
  }
}

namespace {

// Times of the frames that remain after a temporal reduction. A last frame can extend into the next GOP, whose frames
// are assumed to have its duration.
std::vector<FrameTime> reduced_times(const std::vector<FrameTime>& times, GopKey key, int levels) {
  std::vector<FrameTime> out;
  const std::size_t step = std::size_t{1} << levels;
  const auto first = static_cast<std::size_t>(first_kept(key, levels));
  const std::size_t end = times.size() + first;
  for (std::size_t i = first; i < times.size(); i += step) {
    FrameTime t = times[i];
    for (std::size_t j = i + 1; j < std::min(i + step, end); ++j)
      t.duration = static_cast<std::int64_t>(static_cast<std::uint64_t>(t.duration) +
                                             static_cast<std::uint64_t>(times[std::min(j, times.size() - 1)].duration));
    out.push_back(t);
  }
  return out;
}

// Moves every step-th frame from `first` on to the front of a GOP.
void move_frames(Gop& gop, int first, int step) {
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int from = first, to = 0; from < gop.frames(); from += step, ++to)
      for (int y = 0; y < v.shape.height && from > to; ++y) std::memcpy(v.row(to, y), v.row(from, y), v.row_bytes());
  }
}

// Drops the surplus frames of a GOP that has fewer levels than the reduction drops.
void drop_more(Gop& gop, const GopHeader& g, int dropped) {
  const int more = dropped - g.motion_levels();
  if (g.motion.empty() || more <= 0) return;
  const int first = static_cast<int>(first_kept(g.key, more));
  move_frames(gop, first, 1 << more);
  gop.set_frames((gop.frames() - first + (1 << more) - 1) >> more);
}

// Moves frames [from, to) of a GOP to its start.
void keep_frames(Gop& gop, int from, int to) {
  if (from > 0) move_frames(gop, from, 1);
  for (int f = from; f < to; ++f)
    gop.times()[static_cast<std::size_t>(f - from)] = gop.times()[static_cast<std::size_t>(f)];
  gop.set_frames(to - from);
}

}  // namespace

bool Decoder::State::pull(Gop& gop, bool may_exchange) {
  new_damage.clear();
  for (;;) {
    std::unique_ptr<Packet> packet =
        decode([&](GopDecoder& from) { return may_exchange ? from.exchange(gop) : from.pull(gop); });
    if (!packet) return false;
    const GopHeader& g = packet->head;
    if (packet->received.no_samples) {
      ++stats.passed_gops;
      (void)spare.push(std::move(packet));
      continue;
    }
    verify(gop, *packet);
    drop_more(gop, g, reduction.temporal);
    const std::vector<FrameTime> times = reduced_times(g.times, g.key, reduction.temporal);
    std::copy(times.begin(), times.end(), gop.times().begin());

    // Drop frames outside the wanted range.
    const std::uint64_t step = std::uint64_t{1} << reduction.temporal;
    const std::uint64_t first = g.first_frame + first_kept(g.key, reduction.temporal);
    int from = 0;
    int to = gop.frames();
    while (from < to && first + static_cast<std::uint64_t>(from) * step < params.first_frame) ++from;
    while (to > from && first + static_cast<std::uint64_t>(to - 1) * step >= params.end_frame) --to;
    if (from < to && (from > 0 || to < gop.frames())) keep_frames(gop, from, to);
    delivered_first = g.first_frame;
    delivered_damaged = packet->counted_damaged;
    (void)spare.push(std::move(packet));
    if (from == to) {
      ++stats.passed_gops;
      continue;
    }

    ++stats.gops;
    stats.frames += static_cast<std::uint64_t>(gop.frames());
    check_limit(stats.frames, params.limits.frames, "frames",
                "a stream of " + count_of(stats.frames, "frame") + " or more");
    for (int c = 0; c < gop.components(); ++c) stats.samples += gop.plane(c).shape.samples();
    return true;
  }
}

bool Decoder::pull(Gop& gop) {
  return state_->failure.over([&] { return state_->pull(gop, false); });
}

bool Decoder::exchange(Gop& gop) {
  return state_->failure.over([&] { return state_->pull(gop, true); });
}

int Decoder::pull(std::span<MutableFrameView> frames) {
  const auto needed = static_cast<std::size_t>(state_->capacity());
  require(frames.size() >= needed, ErrorKind::kBadArgument,
          "room for " + count_of(frames.size(), "frame") + "; a GOP of this stream needs " + std::to_string(needed));
  Gop gop(state_->output, std::span<const MutableFrameView>(frames));
  if (!pull(gop)) return 0;
  for (int f = 0; f < gop.frames(); ++f)
    frames[static_cast<std::size_t>(f)].time = gop.times()[static_cast<std::size_t>(f)];
  return gop.frames();
}

bool Decoder::pull_coefficients(CoefficientGop& coefficients) {
  return state_->failure.over([&] { return state_->pull(coefficients); });
}

bool Decoder::State::pull(CoefficientGop& coefficients) {
  std::unique_ptr<Packet> packet;
  bool passed = false;  // a GOP before the selected ones, decoded for its key frame
  do {
    passed = passed || packet;
    packet = decode([&](GopDecoder& from) { return from.pull(coefficients); });
    if (!packet) return false;
  } while (packet->head.first_frame + static_cast<std::uint64_t>(packet->head.frames) <= params.first_frame);
  const GopHeader& g = packet->head;
  require(!passed || g.key != GopKey::kOpen, ErrorKind::kBadArgument,
          "the selected frames begin with a GOP that is predicted from the one before, of which its coefficients alone "
          "do not tell; select from an earlier frame than " +
              std::to_string(g.first_frame));
  require(
      g.first_frame >= params.first_frame && g.first_frame + static_cast<std::uint64_t>(g.frames) <= params.end_frame,
      ErrorKind::kBadArgument, "coefficients come in whole GOPs; the selected frames begin or end inside one");
  const int levels = g.motion.empty() ? reduction.temporal : std::min(reduction.temporal, g.motion_levels());
  coefficients.times = reduced_times(g.times, g.key, levels);
  ++stats.gops;
  stats.frames += static_cast<std::uint64_t>(coefficients.frames);
  return true;
}

void Decoder::inverse(CoefficientGop& coefficients, Gop& gop) {
  state_->in_stages([&] { state_->backend->inverse(coefficients, gop); });
  std::copy(coefficients.times.begin(), coefficients.times.end(), gop.times().begin());
}

}  // namespace trivelet
