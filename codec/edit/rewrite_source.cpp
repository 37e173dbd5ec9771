// Reads and checks the source of rewrite(); drops GOPs, levels and boxes that the new stream does not keep.
#include "codec/edit/rewrite_source.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/hash.h"
#include "codec/base/limits.h"
#include "codec/format/chunk_check.h"
#include "codec/format/front_table.h"
#include "codec/format/stream_layout.h"
#include "codec/volume/volume_cuts.h"
#include "codec/volume/volume_map.h"

namespace trivelet {

namespace {

std::string place_of(const GopInfo& info) { return "GOP packet at byte " + std::to_string(info.offset); }

}  // namespace

RewriteSource::RewriteSource(ByteSource& source, const RewriteParams& params, RewriteResult& result)
    : params_(params), result_(result), in_(source, bytes_read_) {
  require(source.seekable(), ErrorKind::kBadArgument,
          "the index at the end of the stream is needed first, and a pipe cannot be read from its end; use a file");
  StreamLayout layout;
  layout.limits = params.limits;
  layout.read(in_);
  header_ = layout.header;
  info_ = std::move(layout.info);
  has_front_table_ = layout.has_front_table;
  promised_frames_ = layout.promised_frames;
  index_offset_ = layout.index_offset;
  check_limits();
  if (!info_.header_damage.empty()) report(info_.header_damage);
  take_boxes();
  check_levels();
  read_gops();
  result_.bits = header_.video.format.bits;
  result_.index_damage = info_.index_damage;
}

bool RewriteSource::is_whole() const {
  return !drops_levels_ && gops_.size() == info_.gops.size() && params_.reduce == 0 && params_.temporal_reduce == 0;
}

void RewriteSource::check_limits() const {
  std::uint64_t frames = 0;
  for (const GopInfo& g : info_.gops) frames += static_cast<std::uint64_t>(g.frames);
  check_limit(frames, params_.limits.frames, "frames", "a stream of " + count_of(frames, "frame"));
  const std::uint64_t samples = header_.samples(longest_gop(info_.gops));
  check_limit(samples, params_.limits.samples, "samples", "GOPs of " + count_of(samples, "sample"));
}
void RewriteSource::check_memory(std::uint64_t needed) const {
  trivelet::check_memory(params_.limits, needed, "taking a part of this stream");
}

// Copies the boxes between stream header and first GOP.
void RewriteSource::take_boxes() {
  for (const ExtraBox& box : info_.damaged_boxes) {
    if (box.type == "volq")  // stays the same size with all errors unknown
      result_.cuts.cuts.resize(header_.layers);
    else if (box.type != kFrontTableBox)  // is dropped in any case
      report("the box '" + box.type + "' before the first GOP is damaged");
  }
  for (ExtraBox& box : info_.boxes) {
    if (box.type == "volq") {
      result_.cuts = parse_volume_cuts(box.payload.data(), box.payload.size());
      if (result_.cuts.cuts.size() != header_.layers) {
        result_.cuts = {};
        result_.cuts.cuts.resize(header_.layers);
      }
    } else {
      if (box.type == "Volm") check_volume(parse_volume_map(box.payload.data(), box.payload.size()));
      boxes_.push_back(std::move(box));
    }
  }
}

void RewriteSource::check_levels() {
  require(header_.profile != Profile::kPredictive ||
              (params_.target_bytes == 0 && params_.bits_per_pixel == 0 && params_.bit_rate == 0 && params_.psnr == 0),
          ErrorKind::kUnsupported,
          "this stream is of the predictive profile, which has one quality alone: nothing can be taken out of it but "
          "frames");
  const int most = header_.max_reduce() - header_.dropped_spatial;
  require(params_.reduce >= 0 && params_.reduce <= most, ErrorKind::kBadArgument,
          "this stream can be reduced 0.." + std::to_string(most) + " times, not " + std::to_string(params_.reduce) +
              no_smaller(header_.profile));
  const int slower = header_.layout == Layout::kT2d ? header_.temporal_levels - header_.dropped_temporal : 0;
  require(params_.temporal_reduce >= 0 && params_.temporal_reduce <= slower, ErrorKind::kBadArgument,
          "this stream's frame rate can be halved 0.." + std::to_string(slower) + " times, not " +
              std::to_string(params_.temporal_reduce) + no_smaller(header_.profile));
  header_.dropped_spatial = static_cast<std::uint8_t>(header_.dropped_spatial + params_.reduce);
  header_.dropped_temporal = static_cast<std::uint8_t>(header_.dropped_temporal + params_.temporal_reduce);
}

void RewriteSource::check_volume(const VolumeMap& map) {
  slices_ = map.slices * map.volumes;
  require(!params_.keep_partial, ErrorKind::kUnsupported,
          "damaged parts of a volume cannot be left out: its slices would no longer fit its header");
  require(map.prediction == VolumeMap::Prediction::kNone, ErrorKind::kUnsupported,
          "this volume is coded by prediction: every voxel depends on all before it, so nothing can be taken out; "
          "encode it with the wavelet transform");
  // The file header of the volume would no longer match.
  require(params_.reduce == 0 && params_.temporal_reduce == 0 && params_.first_frame == 0 &&
              params_.end_frame == std::numeric_limits<std::uint64_t>::max(),
          ErrorKind::kUnsupported,
          "a volume's stream is not cut into smaller volumes; decoding gives a region, some slices or a smaller one");
}

bool RewriteSource::keeps(const GopHeader& g, int band, int distance) const {
  if (distance < header_.dropped_spatial) return false;
  if (header_.layout == Layout::kDyadic) return true;
  const int levels = g.temporal_bands(header_) - 1;
  return band <= levels - std::min<int>(levels, header_.dropped_temporal);
}

// Sections stand from the coarsest temporal level on, behind that of predicted keys, which all frame rates need.
bool RewriteSource::keeps_motion(const GopHeader& g, std::size_t section) const {
  return section + header_.dropped_temporal < g.motion.size() || (g.predicts_keys && section == 0);
}

bool RewriteSource::is_wanted(const GopInfo& info) const {
  return info.first_frame < params_.end_frame &&
         info.first_frame + static_cast<std::uint64_t>(info.frames) > params_.first_frame;
}

// Damage throws, unless intact parts are to be kept anyway.
void RewriteSource::report(const std::string& what) {
  if (!params_.keep_partial) bad(what);
  if (result_.damage.size() < 100) result_.damage.push_back(what);
}

// Reads the header of the GOP packet of index entry `info`.
SourceGop RewriteSource::read_gop_header(const GopInfo& info, const std::string& where) {
  SourceGop g;
  g.info = info;
  in_.seek(info.offset);
  std::vector<std::uint8_t> bytes;
  Box box;
  if (!in_.append(bytes, kBoxHeaderBytes) || !parse_box_header(bytes.data(), box) || !box.is("Gop ") ||
      box.length + kBoxHeaderBytes != info.bytes)
    bad("there is no intact " + where);
  bytes.clear();
  if (box.length > in_.size() - in_.position()) bad(where + " is cut: the stream ends inside it");
  if (!in_.append(bytes, 4)) bad(where + " is damaged");
  const auto n = load_little_endian<std::uint32_t>(bytes.data());
  if (n < 8 || n > kMaxHeaderBytes || n > box.length || !in_.append(bytes, n - 4)) bad(where + " is damaged");
  g.header = parse_gop_header(header_, bytes.data(), bytes.size());
  g.body = in_.position();
  if (g.header.first_frame != info.first_frame || g.header.frames != info.frames || g.header.key != info.key ||
      (g.header.predicts_keys && info.key == GopKey::kOpen) != info.predicts_keys)
    bad(where + " holds other frames than the index says");
  const std::uint64_t samples = header_.samples(g.header.frames);
  if (g.header.body_bytes != box.length - n || g.header.body_bytes > 8 * samples + kMaxHeaderBytes)
    bad(where + ": its chunks have " + count_of(g.header.body_bytes, "byte"));
  return g;
}

// Collects unknown boxes behind a GOP. Checksums of parts are dropped, and a front table is not valid there.
void RewriteSource::read_boxes_behind(std::size_t number, SourceGop& g) {
  const std::uint64_t end = number + 1 < info_.gops.size() ? info_.gops[number + 1].offset : index_offset_;
  for (std::uint64_t at = g.info.offset + g.info.bytes; at + kBoxHeaderBytes <= end;) {
    in_.seek(at);
    std::uint8_t head[kBoxHeaderBytes];
    Box box;
    if (in_.read(head, sizeof head) < sizeof head || !parse_box_header(head, box) ||
        box.length > end - at - kBoxHeaderBytes) {
      report("damaged box header at byte " + std::to_string(at));
      return;
    }
    if (is_stream_box(box.type)) return;  // with a lost index: belongs to a damaged GOP
    require(!box.critical(), ErrorKind::kUnsupported,
            std::string("unknown critical box '") + box.type + "' at byte " + std::to_string(at));
    at += kBoxHeaderBytes + box.length;
    if (box.is("part") || box.is(kFrontTableBox)) continue;
    ExtraBox kept;
    kept.type = box.type;
    check_memory(box.length);
    if (!in_.append(kept.payload, box.length)) bad("the stream ends inside the box '" + kept.type + "'");
    if (!crc_matches(kept.payload.data(), kept.payload.size())) {
      report("the box '" + kept.type + "' at byte " + std::to_string(at - box.length) + " is damaged");
      continue;
    }
    kept.payload.resize(kept.payload.size() - kBoxCrcBytes);
    g.behind.push_back(std::move(kept));
  }
}

// Reads a chunk of a GOP and checks it.
void RewriteSource::read_chunk_bytes(const SourceGop& g, std::size_t i, std::vector<std::uint8_t>& bytes) {
  const ChunkEntry& c = g.header.chunks[i];
  const std::size_t at = bytes.size();
  in_.seek(g.body + c.offset);
  if (!in_.append(bytes, c.size)) bad("the stream ends inside a GOP");
  if (is_intact(c, bytes.data() + at)) return;
  const std::size_t distances = header_.spatial_levels + std::size_t{1};
  const std::size_t bands = static_cast<std::size_t>(g.header.temporal_bands(header_));
  bad(place_of(g.info) + ": the chunk of layer " + std::to_string(i / distances / bands) + ", temporal band " +
      std::to_string(i / distances % bands) + ", distance " + std::to_string(header_.spatial_levels - i % distances) +
      " has a wrong checksum");
}

void RewriteSource::read_section(const SourceGop& g, std::size_t i, std::vector<std::uint8_t>& bytes) {
  const ChunkEntry& c = g.header.motion[i];
  if (c.size == 0) return;
  const std::size_t at = bytes.size();
  in_.seek(g.body + c.offset);
  if (!in_.append(bytes, c.size)) bad("the stream ends inside a GOP");
  if (!is_intact(c, bytes.data() + at)) bad(place_of(g.info) + ": the motion has a wrong checksum");
}
// The first GOP needed for the range: an open one needs the GOP before.
std::size_t RewriteSource::first_gop() const {
  std::size_t i = 0;
  while (i < info_.gops.size() && !is_wanted(info_.gops[i])) ++i;
  while (i > 0 && i < info_.gops.size() && info_.gops[i].key == GopKey::kOpen) --i;
  return i;
}

// GOPs before the range are kept for open GOPs in it, unless damage lies between.
void RewriteSource::leave_out_leads() {
  const auto first = std::find_if(gops_.begin(), gops_.end(), [this](const SourceGop& g) { return is_wanted(g.info); });
  if (first == gops_.begin() || (first != gops_.end() && first->info.key == GopKey::kOpen)) return;
  for (auto g = gops_.begin(); g != first; ++g) result_.frames -= static_cast<std::uint64_t>(g->info.frames);
  gops_.erase(gops_.begin(), first);
  if (!gops_.empty()) result_.first_frame = gops_.front().info.first_frame;
}

// `last`: the GOP before that is kept; null if there is none.
SourceGop RewriteSource::read_gop(std::size_t number, const GopInfo* last) {
  const GopInfo& info = info_.gops[number];
  SourceGop g = read_gop_header(info, place_of(info));
  if (info.key == GopKey::kOpen && (!last || last + 1 != &info))
    bad(place_of(info) + ": it is predicted from the GOP before, which is missing");
  g.layers.assign(header_.layers, 0);
  std::vector<std::uint8_t> bytes;
  for_chunks(g.header, [&](int l, int b, int d, std::size_t i) {
    ChunkEntry& c = g.header.chunks[i];
    if (keeps(g.header, b, d)) {
      g.layers[static_cast<std::size_t>(l)] += c.size;
      // Damage must be known before the first byte is written, since damaged GOPs are dropped.
      bytes.clear();
      if (params_.keep_partial && c.size > 0) read_chunk_bytes(g, i, bytes);
    } else if (c.size > 0) {
      c.size = 0;
      drops_levels_ = true;
    }
  });
  for (std::size_t i = 0; i < g.header.motion.size(); ++i) {
    ChunkEntry& section = g.header.motion[i];
    if (section.size > 0 && !keeps_motion(g.header, i)) {
      section.size = 0;
      drops_levels_ = true;
    }
    bytes.clear();
    if (params_.keep_partial) read_section(g, i, bytes);
  }
  read_boxes_behind(number, g);
  return g;
}

void RewriteSource::read_gops() {
  std::uint64_t headers = 0;  // bytes of memory
  std::uint64_t next = 0;     // expected next frame, as far as GOPs are contiguous
  const std::size_t first = first_gop();
  const GopInfo* last = nullptr;
  for (std::size_t number = 0; number < info_.gops.size(); ++number) {
    const GopInfo& info = info_.gops[number];
    const auto [from, to] = std::minmax(next, info.first_frame);
    if (from < to && from < params_.end_frame && to > params_.first_frame)
      report(place_of(info) + ": begins with frame " + std::to_string(info.first_frame) + ", expected " +
             std::to_string(next));
    next = info.first_frame + static_cast<std::uint64_t>(info.frames);
    if (number < first || info.first_frame >= params_.end_frame) continue;
    try {
      SourceGop g = read_gop(number, last);
      headers += g.header.chunks.size() * sizeof(ChunkEntry) + g.layers.size() * 8 + sizeof(SourceGop);
      for (const ExtraBox& box : g.behind) headers += box.payload.size();
      check_memory(headers);
      if (gops_.empty()) result_.first_frame = info.first_frame;
      result_.frames += static_cast<std::uint64_t>(info.frames);
      gops_.push_back(std::move(g));
      last = &info;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kBadStream) throw;
      report(e.what());
    }
  }
  leave_out_leads();
  check_frames(next);
  result_.gops = gops_.size();
  if (header_.video.frames > 0) header_.video.frames = result_.frames;
  find_errors();
}

// `next`: one past the last frame of the last GOP.
void RewriteSource::check_frames(std::uint64_t next) {
  if (next < params_.end_frame) {
    if (!info_.complete)
      report("the stream is not complete: its end is missing after frame " + std::to_string(next));
    else if (next < promised_frames_)
      report("the stream should have " + count_of(promised_frames_, "frame") + ", the last one found is " +
             std::to_string(next));
  }
  if (slices_ > 0 && slices_ != result_.frames)
    bad("the volume has " + count_of(slices_, "slice") + ", the stream " + std::to_string(result_.frames));
  require(!gops_.empty() || result_.damage.empty(), ErrorKind::kBadStream,
          result_.damage.empty() ? "" : "nothing is intact: " + result_.damage.front());
  require(!gops_.empty(), ErrorKind::kBadArgument, "no GOP of the stream has a frame in the range");
}

void RewriteSource::find_errors() {
  knows_errors_ = !drops_levels_ && params_.reduce == 0 && params_.temporal_reduce == 0;
  for (const SourceGop& g : gops_)
    knows_errors_ = knows_errors_ && g.info.layers.size() == header_.layers &&
                    std::none_of(g.info.layers.begin(), g.info.layers.end(),
                                 [](const LayerInfo& l) { return l.error == kErrorUnknown; });
}

}  // namespace trivelet
