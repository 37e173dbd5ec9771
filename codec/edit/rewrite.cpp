// rewrite() of edit.h: writes a smaller stream by copying chunks; the last layer kept may be truncated.
#include "codec/base/limits.h"
#include "trivelet/edit.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codec/base/hash.h"
#include "codec/edit/rewrite_choice.h"
#include "codec/edit/rewrite_source.h"
#include "codec/format/chunk.h"
#include "codec/format/front_table.h"
#include "codec/format/stream_geometry.h"
#include "codec/format/stream_writer.h"
#include "codec/rate/layer_cut.h"
#include "codec/volume/volume_cuts.h"

namespace trivelet {

namespace {

// Writes the kept parts of a RewriteSource with the chosen layers.
class Rewriter {
 public:
  Rewriter(RewriteSource& source, const LayerChoice& choice, ByteSink& sink, RewriteResult& result)
      : source_(source), header_(source.header()), choice_(choice), out_(sink), result_(result) {
    errors_hold_ = source.knows_errors();
    result_.layers = choice.whole;
    result_.part_of_next = choice.fraction > 0;
  }

  /// `again` reads the sink back, for a front table.
  void run(ReadBack* again) {
    out_.write_header(header_);
    if (choice_.table_bytes > 0) out_.write_box(empty_front_table(choice_.table_bytes));
    write_boxes(source_.boxes());
    write_cuts();
    for (std::size_t i = 0; i < source_.gops().size(); ++i) write_gop(i);
    out_.write_end(result_.frames, index_);
    result_.bytes = out_.position();
    // The first layer of every GOP at least tells where its segments begin, even if its share of the bytes is smaller.
    require(choice_.limit == 0 || result_.bytes <= choice_.limit, ErrorKind::kBadArgument,
            "a target of " + count_of(choice_.limit, "byte") + " is too small: the least of every GOP takes " +
                std::to_string(result_.bytes) + "; raise it, or leave levels or frames out");
    if (choice_.table_bytes > 0) write_front_table(*again, choice_.table_bytes);
    if (errors_hold_ && result_.frames > 0) result_.mean_squared_error = squared_error_ / samples_;
  }

 private:
  /// The chunks of a GOP of the new stream, which point into `bytes` and `cut`.
  struct Chunks {
    std::vector<std::uint8_t> bytes;             // copied from the source
    std::vector<std::size_t> at;                 // offset of each chunk in `bytes`
    std::vector<std::vector<std::uint8_t>> cut;  // the truncated layer behind the whole ones; may be empty
    std::vector<std::pair<const std::uint8_t*, std::size_t>> out;
  };

  // Whole layers have the source's errors; the others that of the last whole one.
  void write_cuts() {
    if (result_.cuts.cuts.empty()) return;
    VolumeCuts cuts = result_.cuts;
    for (std::size_t l = whole(); l < cuts.cuts.size(); ++l)
      cuts.cuts[l] = choice_.whole > 0 && choice_.fraction == 0 ? cuts.cuts[l - 1] : VolumeCuts::Cut{};
    out_.write_box({"volq", serialise(cuts)});
  }

  // Boxes that depend on the coded data are kept only if none of it is dropped.
  void write_boxes(const std::vector<ExtraBox>& boxes) {
    const bool all = source_.is_whole() && choice_.whole == header_.layers;
    for (const ExtraBox& box : boxes)
      if (all || !is_bound(box.type)) out_.write_box(box);
  }

  std::size_t whole() const { return static_cast<std::size_t>(choice_.whole); }

  // Reads the chunks that may be needed.
  void read_chunks(const SourceGop& g, Chunks& chunks) {
    const int layers = std::min<int>(header_.layers, choice_.whole + (choice_.fraction > 0 ? 1 : 0));
    chunks.at.assign(g.header.chunks.size(), 0);
    source_.for_chunks(g.header, [&](int l, int, int, std::size_t i) {
      if (l >= layers || g.header.chunks[i].size == 0) return;
      chunks.at[i] = chunks.bytes.size();
      source_.read_chunk_bytes(g, i, chunks.bytes);
      chunks.bytes.insert(chunks.bytes.end(), kChunkPadding, 0);
    });
    chunks.bytes.insert(chunks.bytes.end(), kChunkPadding, 0);
  }

  // The bytes that the truncated layer of GOP `number` may take.
  std::uint64_t budget_of(std::size_t number) const {
    const std::vector<SourceGop>& gops = source_.gops();
    const auto share = static_cast<double>(gops[number].layers[whole()]);
    if (choice_.limit == 0) return static_cast<std::uint64_t>(std::max(0.0, choice_.fraction * share));
    // The remaining bytes are shared with the GOPs to come.
    double tail = 2.0 * kBoxHeaderBytes + kEndPayloadBytes + 8;
    double rest = 0;
    for (std::size_t i = 0; i < gops.size(); ++i) tail += end_bytes(source_, i);
    for (std::size_t i = number; i < gops.size(); ++i) {
      tail += static_cast<double>(header_bytes(source_, gops[i], choice_.whole));
      for (std::size_t l = 0; l < whole(); ++l) tail += static_cast<double>(gops[i].layers[l]);
      rest += static_cast<double>(gops[i].layers[whole()]);
    }
    const double left = static_cast<double>(choice_.limit) - static_cast<double>(out_.position()) - tail;
    return static_cast<std::uint64_t>(std::max(0.0, rest > 0 ? left * share / rest : 0));
  }

  // The truncated layer.
  std::vector<std::vector<std::uint8_t>> part_of_layer(const SourceGop& g, const Chunks& chunks, std::uint64_t budget) {
    if (!geometry_) source_.check_memory(geometry_memory(header_) + chunks.bytes.size());
    const StreamHeader header = header_.describe_gop(g.header.motion_levels(), g.header.key);
    const GopKind kind(g.header.frames, g.header.motion_levels(), g.header.key);
    if (!geometry_ || geometry_kind_ != kind) geometry_ = std::make_unique<StreamGeometry>(header, g.header.frames);
    geometry_kind_ = kind;
    LayeredGop full;
    full.frames = g.header.frames;
    geometry_->clear(full);
    source_.for_chunks(g.header, [&](int l, int b, int d, std::size_t i) {
      if (l > choice_.whole) return;
      const ChunkEntry& c = g.header.chunks[i];
      read_chunk(header_, chunks.bytes.data() + chunks.at[i], static_cast<std::size_t>(c.size), l, b, d, full);
    });
    return cut_layer(header_, full, choice_.whole, budget);
  }

  // Enters the chunks into the new GOP's header and index entry. Returns whether they equal the source's.
  bool place_chunks(Chunks& chunks, GopHeader& h, GopInfo& info) const {
    bool same = !source_.drops_levels();
    const std::size_t per_layer = h.chunks.size() / header_.layers;
    source_.for_chunks(h, [&](int l, int, int, std::size_t i) {
      ChunkEntry& c = h.chunks[i];
      const std::uint8_t* data = chunks.bytes.data() + chunks.at[i];
      if (l >= choice_.whole) {
        const bool some = l == choice_.whole && !chunks.cut.empty();
        same = same && c.size == 0;
        data = some ? chunks.cut[i % per_layer].data() : nullptr;
        c.size = some ? chunks.cut[i % per_layer].size() : 0;
        if (c.size > 0) c.crc = crc32c(data, static_cast<std::size_t>(c.size));
      }
      h.body_bytes += c.size;
      info.layers[static_cast<std::size_t>(l)].bytes += c.size;
      chunks.out.emplace_back(data, static_cast<std::size_t>(c.size));
    });
    return same;
  }

  // The errors of the new GOP's layers: a truncated layer brings a proportional share of its gain.
  void place_errors(const SourceGop& g, GopInfo& info) {
    for (std::size_t l = 0; l < whole() && !source_.drops_levels(); ++l) info.layers[l].error = g.info.layers[l].error;
    if (!errors_hold_) return;
    double error = whole() > 0 ? error_of(g.info.layers[whole() - 1].error) : 0;
    for (std::size_t l = whole(); l < header_.layers; ++l) {
      if (l == whole() && whole() > 0 && g.layers[l] > 0) {
        const double share =
            std::min(1.0, static_cast<double>(info.layers[l].bytes) / static_cast<double>(g.layers[l]));
        error += share * (error_of(g.info.layers[l].error) - error);
      }
      info.layers[l].error = whole() > 0 ? error_code(error) : kErrorUnknown;
    }
    if (whole() == 0) errors_hold_ = false;
    squared_error_ += source_.samples_of(g) * error;
    samples_ += source_.samples_of(g);
  }

  void write_gop(std::size_t number) {
    const SourceGop& g = source_.gops()[number];
    Chunks chunks;
    read_chunks(g, chunks);
    if (choice_.fraction > 0) chunks.cut = part_of_layer(g, chunks, budget_of(number));
    GopHeader h = g.header;
    GopInfo info;
    info.layers.assign(header_.layers, {});
    h.body_bytes = motion_bytes(g);
    const bool same = place_chunks(chunks, h, info);
    h.has_hash = h.has_hash && same;
    h.index = number;
    h.first_frame = written_frames_;
    place_errors(g, info);
    info.offset = out_.begin_gop(header_, h);
    info.first_frame = written_frames_;
    info.frames = h.frames;
    info.key = h.key;
    info.predicts_keys = h.key == GopKey::kOpen && h.predicts_keys;
    info.begin_pts = h.times[0].pts;
    info.end_pts = end_of(h.times);
    std::vector<std::uint8_t> motion;
    for (std::size_t i = 0; i < h.motion.size(); ++i) source_.read_section(g, i, motion);
    out_.write(motion.data(), motion.size());
    for (const auto& [data, size] : chunks.out)
      if (size > 0) out_.write(data, size);
    info.bytes = out_.position() - info.offset;
    write_boxes(g.behind);
    index_.push_back(info);
    written_frames_ += static_cast<std::uint64_t>(h.frames);
  }

  RewriteSource& source_;
  const StreamHeader& header_;
  const LayerChoice choice_;
  StreamWriter out_;
  RewriteResult& result_;
  bool errors_hold_ = false;  // the errors of all layers are known and valid
  std::unique_ptr<StreamGeometry> geometry_;
  GopKind geometry_kind_;
  std::vector<GopInfo> index_;
  std::uint64_t written_frames_ = 0;
  double squared_error_ = 0;
  double samples_ = 0;
};

}  // namespace

RewriteResult rewrite(ByteSource& source, const RewriteParams& params, ByteSink& sink, ReadBack* again) {
  const int targets = (params.target_bytes > 0) + (params.bits_per_pixel > 0) + (params.bit_rate > 0) +
                      (params.psnr > 0) + (params.layers > 0);
  require(targets <= 1, ErrorKind::kBadArgument,
          "a stream has one target: a size, bits per pixel, a bit rate, a PSNR or a number of layers");
  RewriteResult result;
  RewriteSource from(source, params, result);
  const LayerChoice choice = choose_layers(from, result, again && from.has_front_table());
  Rewriter(from, choice, sink, result).run(again);
  return result;
}

}  // namespace trivelet
