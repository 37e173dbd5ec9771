#include "codec/edit/rewrite.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "codec/backend.h"
#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/frame_times.h"
#include "codec/base/hash.h"
#include "codec/base/limits.h"
#include "codec/format/chunk_check.h"
#include "codec/format/container.h"
#include "codec/format/front_table.h"
#include "codec/format/stream_input.h"
#include "codec/format/stream_layout.h"
#include "codec/format/stream_writer.h"
#include "codec/rate/layer_cut.h"
#include "codec/volume/volume_map.h"

namespace trivelet {

namespace {

struct SourceGop {
  GopInfo info;
  GopHeader header;
  std::uint64_t body = 0;             // offset of the first chunk in the source
  std::vector<std::uint64_t> layers;  // bytes of the chunks that are kept, by layer
  std::vector<ExtraBox> behind;       // boxes that belong to it
};

class Rewriter {
 public:
  Rewriter(ByteSource& source, const RewriteParams& params, ByteSink& sink, ReadBack* again)
      : params_(params), in_(source, bytes_read_), out_(sink), again_(again) {
    const int targets = (params.target_bytes > 0) + (params.bits_per_pixel > 0) + (params.bit_rate > 0) +
                        (params.psnr > 0) + (params.layers > 0);
    require(targets <= 1, ErrorKind::kBadArgument,
            "a stream has one target: a size, bits per pixel, a bit rate, a PSNR or a number of layers");
    require(source.seekable(), ErrorKind::kBadArgument,
            "the index at the end of the stream is needed first, and a pipe cannot be read from its end; use a file");
    StreamLayout layout;
    layout.limits = params.limits;
    layout.read(in_);
    header_ = layout.header;
    info_ = std::move(layout.info);
    if (!layout.has_front_table) again_ = nullptr;
    promised_frames_ = layout.promised_frames;
    index_offset_ = layout.index_offset;
  }

  RewriteResult run() {
    check_limits();
    if (!info_.header_damage.empty()) report(info_.header_damage);
    take_boxes();
    check_levels();
    read_gops();
    choose();
    if (limit_ == 0 && table_room_ > kept_bytes() / 16) table_room_ = 0;
    result_.bits = header_.video.format.bits;
    result_.index_damage = info_.index_damage;
    result_.layers = whole_;
    result_.part_of_next = fraction_ > 0;
    out_.write_header(header_);
    if (table_room_ > 0) out_.write_box(empty_front_table(table_room_));
    write_kept(others_);
    write_cuts();
    for (std::size_t i = 0; i < gops_.size(); ++i) write_gop(i);
    out_.write_end(result_.frames, index_);
    result_.bytes = out_.position();
    // The first layer of every GOP says at least where its segments begin, whatever its share of the bytes is.
    require(limit_ == 0 || result_.bytes <= limit_, ErrorKind::kBadArgument,
            "a target of " + std::to_string(limit_) + " bytes is too small: the least of every GOP takes " +
                std::to_string(result_.bytes) + "; raise it, or leave levels or frames out");
    if (table_room_ > 0) write_front_table(*again_, table_room_);
    if (known_ && result_.frames > 0) result_.mean_squared_error = squared_error_ / samples_;
    return result_;
  }

 private:
  // What the layers of the new stream are worth: those that were kept whole what they were, those that were left out
  // what the last one kept is.
  void write_cuts() {
    if (result_.cuts.cuts.empty()) return;
    VolumeCuts cuts = result_.cuts;
    for (std::size_t l = static_cast<std::size_t>(whole_); l < cuts.cuts.size(); ++l)
      cuts.cuts[l] = whole_ > 0 && fraction_ == 0 ? cuts.cuts[l - 1] : VolumeCuts::Cut{};
    out_.write_box({"volq", serialise(cuts)});
  }

  // Those that depend on what is coded only if nothing of it is left out.
  void write_kept(const std::vector<ExtraBox>& boxes) {
    const bool all = !dropped_ && gops_.size() == info_.gops.size() && whole_ == header_.layers &&
                     params_.reduce == 0 && params_.temporal_reduce == 0;
    for (const ExtraBox& box : boxes)
      if (all || !is_bound(box.type)) out_.write_box(box);
  }

  // What stands between the stream header and the first GOP is copied.
  void take_boxes() {
    for (const ExtraBox& box : info_.damaged_boxes) {
      if (box.type == "volq")  // nothing is known, and takes as many bytes
        result_.cuts.cuts.resize(header_.layers);
      else if (box.type != kFrontTableBox)  // which is left out anyway
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
        others_.push_back(std::move(box));
      }
    }
  }

  void check_levels() {
    require(header_.profile != Profile::kPredictive || (params_.target_bytes == 0 && params_.bits_per_pixel == 0 &&
                                                        params_.bit_rate == 0 && params_.psnr == 0),
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

  void check_volume(const VolumeMap& map) {
    pictures_ = map.slices * map.volumes;
    require(!params_.keep_partial, ErrorKind::kUnsupported,
            "damaged parts of a volume cannot be left out: its slices would no longer fit its header");
    require(map.prediction == VolumeMap::Prediction::kNone, ErrorKind::kUnsupported,
            "this volume is coded by prediction: every voxel depends on all before it, so nothing can be taken out; "
            "encode it with the wavelet transform");
    // Its file header would no longer fit.
    require(params_.reduce == 0 && params_.temporal_reduce == 0 && params_.first_frame == 0 &&
                params_.end_frame == std::numeric_limits<std::uint64_t>::max(),
            ErrorKind::kUnsupported,
            "a volume's stream is not cut into smaller volumes; decoding gives a region, some slices or a smaller one");
  }

  bool kept(int band, int distance) const {
    return distance >= header_.dropped_spatial &&
           (header_.layout == Layout::kDyadic || band < header_.temporal_bands() - header_.dropped_temporal);
  }
  template <class F>
  void for_chunks(const F& f) const {
    std::size_t i = 0;
    for (int l = 0; l < header_.layers; ++l)
      for (int b = 0; b < header_.temporal_bands(); ++b)
        for (int d = header_.spatial_levels; d >= 0; --d, ++i) f(l, b, d, i);
  }

  // Damage: an Error, unless what is intact is to be kept all the same.
  void report(const std::string& what) {
    if (!params_.keep_partial) bad(what);
    if (result_.damage.size() < 100) result_.damage.push_back(what);
  }

  bool wanted(std::uint64_t from, std::uint64_t to) const {
    return from < to && from < params_.end_frame && to > params_.first_frame;
  }

  // The header of the GOP packet that `info` tells of.
  SourceGop read_gop_head(const GopInfo& info, const std::string& where) {
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
    if (g.header.first_frame != info.first_frame || g.header.frames != info.frames || g.header.key != info.key)
      bad(where + " holds other frames than the index says");
    const std::uint64_t samples = header_.samples(g.header.frames);
    if (g.header.body_bytes != box.length - n || g.header.body_bytes > 8 * samples + kMaxHeaderBytes)
      bad(where + ": its chunks have " + std::to_string(g.header.body_bytes) + " bytes");
    return g;
  }

  // What nobody here knows and belongs to a GOP, up to the next one; of checks of parts none are written, and a front
  // table is none where it stands.
  void read_boxes_behind(std::size_t number, SourceGop& g) {
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
      if (is_stream_box(box.type)) return;  // where the index is lost: of a GOP that is damaged
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

  // A chunk of a GOP, checked.
  void read_chunk_bytes(const SourceGop& g, std::size_t i, std::vector<std::uint8_t>& bytes) {
    const ChunkEntry& c = g.header.chunks[i];
    const std::size_t at = bytes.size();
    in_.seek(g.body + c.offset);
    if (!in_.append(bytes, c.size)) bad("the stream ends inside a GOP");
    if (is_intact(c, bytes.data() + at)) return;
    const std::size_t distances = header_.spatial_levels + std::size_t{1};
    const std::size_t bands = static_cast<std::size_t>(header_.temporal_bands());
    bad(place_of(g.info) + ": the chunk of layer " + std::to_string(i / distances / bands) + ", temporal band " +
        std::to_string(i / distances % bands) + ", distance " + std::to_string(header_.spatial_levels - i % distances) +
        " has a wrong checksum");
  }

  /// Section i of motion, from the coarsest temporal level on.
  bool keeps_motion(std::size_t i) const {
    return i < static_cast<std::size_t>(header_.temporal_levels - header_.dropped_temporal);
  }
  void read_section(const SourceGop& g, std::size_t i, std::vector<std::uint8_t>& bytes) {
    const ChunkEntry& c = g.header.motion[i];
    if (c.size == 0) return;
    const std::size_t at = bytes.size();
    in_.seek(g.body + c.offset);
    if (!in_.append(bytes, c.size)) bad("the stream ends inside a GOP");
    if (!is_intact(c, bytes.data() + at)) bad(place_of(g.info) + ": the motion has a wrong checksum");
  }
  static std::uint64_t motion_bytes(const SourceGop& g) {
    std::uint64_t bytes = 0;
    for (const ChunkEntry& c : g.header.motion) bytes += c.size;
    return bytes;
  }

  void check_limits() const {
    std::uint64_t frames = 0;
    for (const GopInfo& g : info_.gops) frames += static_cast<std::uint64_t>(g.frames);
    check_limit(frames, params_.limits.frames, "frames", "a stream of " + std::to_string(frames) + " frames");
    const std::uint64_t samples = header_.samples(header_.gop_frames);
    check_limit(samples, params_.limits.samples, "samples", "GOPs of " + std::to_string(samples) + " samples");
  }
  void check_memory(std::uint64_t needed) const {
    trivelet::check_memory(params_.limits, needed, "taking a part of this stream");
  }

  static std::string place_of(const GopInfo& info) { return "GOP packet at byte " + std::to_string(info.offset); }

  // The GOP that those of the range begin with: an open one needs the one before.
  std::size_t first_gop() const {
    std::size_t i = 0;
    const auto is_wanted = [this](const GopInfo& g) {
      return wanted(g.first_frame, g.first_frame + static_cast<std::uint64_t>(g.frames));
    };
    while (i < info_.gops.size() && !is_wanted(info_.gops[i])) ++i;
    while (i > 0 && i < info_.gops.size() && info_.gops[i].key == GopKey::kOpen) --i;
    return i;
  }

  // GOPs before the range are kept for open ones in it: not if what lies between them is damaged.
  void leave_out_leads() {
    const auto first = std::find_if(gops_.begin(), gops_.end(), [this](const SourceGop& g) {
      return wanted(g.info.first_frame, g.info.first_frame + static_cast<std::uint64_t>(g.info.frames));
    });
    if (first == gops_.begin() || (first != gops_.end() && first->info.key == GopKey::kOpen)) return;
    for (auto g = gops_.begin(); g != first; ++g) result_.frames -= static_cast<std::uint64_t>(g->info.frames);
    gops_.erase(gops_.begin(), first);
    if (!gops_.empty()) result_.first_frame = gops_.front().info.first_frame;
  }

  void read_gops() {
    std::uint64_t headers = 0;  // bytes of memory
    std::uint64_t next = 0;     // frame, as far as the GOPs before follow each other
    const std::size_t first = first_gop();
    const GopInfo* last = nullptr;  // that is kept
    for (std::size_t number = 0; number < info_.gops.size(); ++number) {
      const GopInfo& info = info_.gops[number];
      const std::uint64_t end = info.first_frame + static_cast<std::uint64_t>(info.frames);
      const auto [from, to] = std::minmax(next, info.first_frame);
      if (wanted(from, to))
        report(place_of(info) + ": begins with frame " + std::to_string(info.first_frame) + ", expected " +
               std::to_string(next));
      next = end;
      if (number < first || info.first_frame >= params_.end_frame) continue;
      try {
        SourceGop g = read_gop_head(info, place_of(info));
        if (info.key == GopKey::kOpen && (!last || last + 1 != &info))
          bad(place_of(info) + ": it is predicted from the GOP before, which is missing");
        g.layers.assign(header_.layers, 0);
        std::vector<std::uint8_t> bytes;
        for_chunks([&](int l, int b, int d, std::size_t i) {
          ChunkEntry& c = g.header.chunks[i];
          if (kept(b, d)) {
            g.layers[static_cast<std::size_t>(l)] += c.size;
            // What is to be left out must be known before the first byte is written.
            bytes.clear();
            if (params_.keep_partial && c.size > 0) read_chunk_bytes(g, i, bytes);
          } else if (c.size > 0) {
            c.size = 0;
            dropped_ = true;
          }
        });
        for (std::size_t i = 0; i < g.header.motion.size(); ++i) {
          ChunkEntry& section = g.header.motion[i];
          if (section.size > 0 && !keeps_motion(i)) {
            section.size = 0;
            dropped_ = true;
          }
          bytes.clear();
          if (params_.keep_partial) read_section(g, i, bytes);
        }
        read_boxes_behind(number, g);
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
    if (next < params_.end_frame) {
      if (!info_.complete)
        report("the stream is not complete: its end is missing after frame " + std::to_string(next));
      else if (next < promised_frames_)
        report("the stream should have " + std::to_string(promised_frames_) + " frames, the last one found is " +
               std::to_string(next));
    }
    if (pictures_ > 0 && pictures_ != result_.frames)
      bad("the volume has " + std::to_string(pictures_) + " slices, the stream " + std::to_string(result_.frames));
    require(!gops_.empty() || result_.damage.empty(), ErrorKind::kBadStream,
            result_.damage.empty() ? "" : "nothing is intact: " + result_.damage.front());
    require(!gops_.empty(), ErrorKind::kBadArgument, "no GOP of the stream has a frame in the range");
    result_.gops = gops_.size();
    if (header_.video.frames > 0) header_.video.frames = result_.frames;
    known_ = !dropped_ && params_.reduce == 0 && params_.temporal_reduce == 0;
    for (const SourceGop& g : gops_)
      known_ = known_ && g.info.layers.size() == header_.layers &&
               std::none_of(g.info.layers.begin(), g.info.layers.end(),
                            [](const LayerInfo& l) { return l.error == kErrorUnknown; });
  }

  // Of the layers that stay whole.
  std::uint64_t kept_bytes() const {
    std::uint64_t bytes = 0;
    for (const SourceGop& g : gops_) bytes = std::accumulate(g.layers.begin(), g.layers.begin() + whole_, bytes);
    return bytes;
  }

  double samples_of(const SourceGop& g) const { return static_cast<double>(header_.samples(g.header.frames)); }
  // Squared error of all samples with so many whole layers.
  double error_with(const SourceGop& g, int layers) const {
    return samples_of(g) * error_of(g.info.layers[static_cast<std::size_t>(layers - 1)].error);
  }

  // How many layers stay whole, and how much of the next one may stay.
  void choose() {
    whole_ = header_.layers;
    fraction_ = 0;
    if (again_) table_room_ = front_table_room(header_, gops_.size(), false);
    if (params_.layers > 0) {
      require(params_.layers <= header_.layers, ErrorKind::kBadArgument,
              "this stream has " + std::to_string(header_.layers) + " layers, not " + std::to_string(params_.layers));
      whole_ = params_.layers;
      return;
    }
    const std::vector<VolumeCuts::Cut>& cuts = result_.cuts.cuts;
    if (params_.psnr > 0 && !cuts.empty() &&
        std::all_of(cuts.begin(), cuts.end(), [](const VolumeCuts::Cut& c) { return c.known(); })) {
      // Measured: the first layer that is good enough, as a whole.
      whole_ = 1;
      while (whole_ < header_.layers && psnr_of(result_.cuts, static_cast<std::size_t>(whole_ - 1)) < params_.psnr)
        ++whole_;
      return;
    }
    if (params_.psnr > 0) {
      require(known_, ErrorKind::kBadArgument,
              (info_.index_damage.empty() ? std::string("the index of this stream tells no errors")
                                          : info_.index_damage + "; only it knew the errors of the layers") +
                  ", so a PSNR cannot be aimed at; give a size");
      const double peak = (1 << header_.video.format.bits) - 1;
      double samples = 0;
      for (const SourceGop& g : gops_) samples += samples_of(g);
      const double wanted = peak * peak / std::pow(10.0, params_.psnr / 10) * samples;
      double before = 0;
      for (int layers = 1; layers <= header_.layers; ++layers) {
        double sum = 0;
        for (const SourceGop& g : gops_) sum += error_with(g, layers);
        if (sum <= wanted) {
          whole_ = layers;
          if (layers > 1 && before > sum) {  // part of the last one will do
            whole_ = layers - 1;
            fraction_ = std::clamp((before - wanted) / (before - sum), 0.0, 1.0);
          }
          break;
        }
        before = sum;
      }
      return;
    }
    double target = 0;
    const VideoInfo& v = header_.video;
    const int time = header_.dropped_temporal;
    double pictures = 0;
    for (const SourceGop& g : gops_) pictures += low_length(g.header.frames, time);
    if (params_.target_bytes > 0) target = static_cast<double>(params_.target_bytes);
    if (params_.bits_per_pixel > 0)
      target = params_.bits_per_pixel * static_cast<double>(low_length(v.width, header_.dropped_spatial)) *
               low_length(v.height, header_.dropped_spatial) * pictures / 8;
    if (params_.bit_rate > 0) {
      require(v.frame_rate.num > 0, ErrorKind::kBadArgument, "a bit rate needs a frame rate, and the stream has none");
      if (!gops_.empty())
        target = params_.bit_rate / 8 *
                 seconds_lasting(v, gops_.front().header.times.front(), {end_of(gops_.back().header.times), 0},
                                 static_cast<double>(result_.frames));
    }
    if (target == 0) return;
    constexpr double kMost = 0x1p62;  // times of frames may say that they last for ages
    limit_ = static_cast<std::uint64_t>(std::min(target, kMost));
    if (table_room_ > limit_ / 16) table_room_ = 0;
    // Head, end, and per GOP its header, which is shorter when layers are empty.
    double fixed = sizeof kSignature + 3.0 * kBoxHeaderBytes + static_cast<double>(serialise(header_).size()) +
                   kEndPayloadBytes + 8;
    if (table_room_ > 0) fixed += size_of(empty_front_table(table_room_));
    for (const ExtraBox& box : others_) fixed += size_of(box);
    if (!result_.cuts.cuts.empty()) fixed += size_of({"volq", serialise(result_.cuts)});
    for (std::size_t i = 0; i < gops_.size(); ++i) fixed += static_cast<double>(head_bytes(gops_[i], 0)) + end_bytes(i);
    require(fixed < target, ErrorKind::kBadArgument,
            "a target of " + std::to_string(limit_) + " bytes is too small: the heads alone take " +
                std::to_string(static_cast<std::uint64_t>(fixed)));
    double taken = fixed;
    for (whole_ = 0; whole_ < header_.layers; ++whole_) {
      double layer = 0;
      for (const SourceGop& g : gops_)
        layer += static_cast<double>(g.layers[static_cast<std::size_t>(whole_)] + head_bytes(g, whole_ + 1) -
                                     head_bytes(g, whole_));
      if (taken + layer > target) {
        fraction_ = (target - taken) / layer;
        break;
      }
      taken += layer;
    }
  }

  // Of the box, header and motion of a GOP whose chunks are those of so many layers.
  std::uint64_t head_bytes(const SourceGop& g, int layers) const {
    GopHeader h = g.header;
    for_chunks([&](int l, int, int, std::size_t i) {
      if (l >= layers) h.chunks[i].size = 0;
    });
    return serialise(header_, h).size() + kBoxHeaderBytes + motion_bytes(g);
  }
  static double size_of(const ExtraBox& box) {
    return static_cast<double>(kBoxHeaderBytes + box.payload.size() + kBoxCrcBytes);
  }
  // The boxes behind a GOP, and its entry of the index, of less than 256 MiB in a layer.
  double end_bytes(std::size_t i) const {
    const SourceGop& g = gops_[i];
    const std::int64_t before = i > 0 ? end_of(gops_[i - 1].header.times) : 0;
    double bytes = static_cast<double>(index_entry_bound(header_.layers, (std::uint64_t{1} << 28) - 1, before,
                                                         g.header.times[0].pts, end_of(g.header.times)));
    for (const ExtraBox& box : g.behind) bytes += size_of(box);
    return bytes;
  }

  // Part of layer `whole_` of a GOP whose chunks are in `bytes`.
  std::vector<std::vector<std::uint8_t>> part_of_layer(const SourceGop& g, const std::vector<std::uint8_t>& bytes,
                                                       std::uint64_t budget) {
    if (!geometry_) check_memory(geometry_memory(header_) + bytes.size());
    const StreamHeader header = header_.of_gop(!g.header.motion.empty(), g.header.key);
    if (!geometry_ || geometry_->frames() != g.header.frames || geometry_key_last_ != header.key_last)
      geometry_ = std::make_unique<StreamGeometry>(header, g.header.frames);
    geometry_key_last_ = header.key_last;
    LayeredGop full;
    full.frames = g.header.frames;
    geometry_->clear(full);
    for_chunks([&](int l, int b, int d, std::size_t i) {
      if (l > whole_) return;
      const ChunkEntry& c = g.header.chunks[i];
      read_chunk(header_, bytes.data() + at_[i], static_cast<std::size_t>(c.size), l, b, d, full);
    });
    return cut_layer(header_, full, whole_, budget);
  }

  void write_gop(std::size_t number) {
    const SourceGop& g = gops_[number];
    // Chunks that may be needed, as they are in the source.
    const int layers = std::min<int>(header_.layers, whole_ + (fraction_ > 0 ? 1 : 0));
    std::vector<std::uint8_t> bytes;
    at_.assign(g.header.chunks.size(), 0);
    for_chunks([&](int l, int, int, std::size_t i) {
      if (l >= layers || g.header.chunks[i].size == 0) return;
      at_[i] = bytes.size();
      read_chunk_bytes(g, i, bytes);
      bytes.insert(bytes.end(), kChunkPadding, 0);
    });
    bytes.insert(bytes.end(), kChunkPadding, 0);

    std::vector<std::vector<std::uint8_t>> cut;
    if (fraction_ > 0) {
      double budget = fraction_ * static_cast<double>(g.layers[static_cast<std::size_t>(whole_)]);
      if (limit_ > 0) {  // what is really left, shared with the GOPs to come
        double tail = 2.0 * kBoxHeaderBytes + kEndPayloadBytes + 8;
        double rest = 0;
        for (std::size_t i = 0; i < gops_.size(); ++i) tail += end_bytes(i);
        for (std::size_t i = number; i < gops_.size(); ++i) {
          tail += static_cast<double>(head_bytes(gops_[i], whole_));
          for (int l = 0; l < whole_; ++l) tail += static_cast<double>(gops_[i].layers[static_cast<std::size_t>(l)]);
          rest += static_cast<double>(gops_[i].layers[static_cast<std::size_t>(whole_)]);
        }
        const double room = static_cast<double>(limit_) - static_cast<double>(out_.position()) - tail;
        budget = rest > 0 ? room * static_cast<double>(g.layers[static_cast<std::size_t>(whole_)]) / rest : 0;
      }
      cut = part_of_layer(g, bytes, static_cast<std::uint64_t>(std::max(0.0, budget)));
    }

    GopHeader h = g.header;
    GopInfo info;
    info.layers.assign(header_.layers, {});
    h.body_bytes = motion_bytes(g);
    bool same = !dropped_;
    std::vector<std::pair<const std::uint8_t*, std::size_t>> chunks;
    const std::size_t per_layer = h.chunks.size() / header_.layers;
    for_chunks([&](int l, int, int, std::size_t i) {
      ChunkEntry& c = h.chunks[i];
      const std::uint8_t* data = bytes.data() + at_[i];
      if (l >= whole_) {
        const bool some = l == whole_ && !cut.empty();
        same = same && c.size == 0;
        data = some ? cut[i % per_layer].data() : nullptr;
        c.size = some ? cut[i % per_layer].size() : 0;
        if (c.size > 0) c.crc = crc32c(data, static_cast<std::size_t>(c.size));
      }
      h.body_bytes += c.size;
      info.layers[static_cast<std::size_t>(l)].bytes += c.size;
      chunks.emplace_back(data, static_cast<std::size_t>(c.size));
    });
    h.has_hash = h.has_hash && same;
    h.index = number;
    h.first_frame = written_frames_;
    for (std::size_t l = 0; l < static_cast<std::size_t>(whole_) && !dropped_; ++l)
      info.layers[l].error = g.info.layers[l].error;
    if (known_) {
      // A layer in part brings its share of the gain.
      const auto whole = static_cast<std::size_t>(whole_);
      double error = whole > 0 ? error_of(g.info.layers[whole - 1].error) : 0;
      for (std::size_t l = 0; l < header_.layers; ++l) {
        if (l < whole) {
          info.layers[l].error = g.info.layers[l].error;
          continue;
        }
        if (l == whole && whole > 0 && g.layers[l] > 0) {
          const double share =
              std::min(1.0, static_cast<double>(info.layers[l].bytes) / static_cast<double>(g.layers[l]));
          error += share * (error_of(g.info.layers[l].error) - error);
        }
        info.layers[l].error = whole > 0 ? error_code(error) : kErrorUnknown;
      }
      if (whole == 0) known_ = false;
      squared_error_ += samples_of(g) * error;
      samples_ += samples_of(g);
    }
    info.offset = out_.begin_gop(header_, h);
    info.first_frame = written_frames_;
    info.frames = h.frames;
    info.key = h.key;
    info.begin_pts = h.times[0].pts;
    info.end_pts = end_of(h.times);
    std::vector<std::uint8_t> motion;
    for (std::size_t i = 0; i < h.motion.size(); ++i) read_section(g, i, motion);
    out_.write(motion.data(), motion.size());
    for (const auto& [data, size] : chunks)
      if (size > 0) out_.write(data, size);
    info.bytes = out_.position() - info.offset;
    write_kept(g.behind);
    index_.push_back(info);
    written_frames_ += static_cast<std::uint64_t>(h.frames);
  }

  RewriteParams params_;
  std::uint64_t bytes_read_ = 0;
  StreamInput in_;
  StreamWriter out_;
  ReadBack* again_;             // null when the new stream gets no front table
  std::size_t table_room_ = 0;  // for the content of the table
  StreamInfo info_;
  StreamHeader header_;
  std::uint64_t promised_frames_ = 0;
  std::uint64_t index_offset_ = 0;
  std::uint64_t pictures_ = 0;  // of a volume
  std::vector<ExtraBox> others_;
  std::vector<SourceGop> gops_;
  bool dropped_ = false;  // something that was in the source is left out by levels
  bool known_ = false;    // the errors of all layers
  int whole_ = 0;
  double fraction_ = 0;
  std::uint64_t limit_ = 0;
  std::unique_ptr<StreamGeometry> geometry_;
  bool geometry_key_last_ = false;
  std::vector<std::size_t> at_;  // of the chunks in the bytes of the GOP in work
  std::vector<GopInfo> index_;
  std::uint64_t written_frames_ = 0;
  double squared_error_ = 0;
  double samples_ = 0;
  RewriteResult result_;
};

}  // namespace

RewriteResult rewrite(ByteSource& source, const RewriteParams& params, ByteSink& sink, ReadBack* again) {
  return Rewriter(source, params, sink, again).run();
}

}  // namespace trivelet
