// Boxes, packets and index of a stream (packet_writer.h).
#include "codec/encoder/packet_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "codec/base/frame_times.h"
#include "codec/base/hash.h"
#include "codec/base/limits.h"
#include "codec/format/chunk_check.h"
#include "codec/format/container.h"
#include "codec/format/metadata.h"

namespace trivelet {

PacketWriter::PacketWriter(EncoderContext& context, ByteSink& sink) : context_(context), sink_(sink) {
  const CodingParams& p = context.params;
  if (p.max_rate > 0) bound_.emplace(context.header.video, p.max_rate, p.rate_window);
}

void PacketWriter::write(const void* data, std::size_t size) {
  context_.timed(&EncoderStages::write, true, [&] { sink_.write(data, size); });
  position_ += size;
  const std::lock_guard lock(mutex_);
  counts_.bytes += size;
}

void PacketWriter::end_packet(const PacketInfo& packet) {
  context_.timed(&EncoderStages::write, true, [&] { sink_.end_packet(packet); });
}

void PacketWriter::write_box(const char* type, const std::vector<std::uint8_t>& payload) {
  std::uint8_t head[kBoxHeaderBytes];
  write_box_header(type, payload.size(), head);
  write(head, sizeof head);
  write(payload.data(), payload.size());
}

void PacketWriter::check_boxes(const std::vector<ExtraBox>& boxes) const {
  for (auto box = boxes.begin(); box != boxes.end(); ++box)
    require(!is_known_extra_box(box->type) ||
                std::none_of(boxes.begin(), box, [&](const ExtraBox& before) { return before.type == box->type; }),
            ErrorKind::kBadArgument, "two boxes '" + box->type + "'; a stream has one");
}

void PacketWriter::write_head() {
  write(kSignature, sizeof kSignature);
  write_box("Head", serialise(context_.header));
  std::vector<ExtraBox> boxes = metadata_boxes(context_.params.metadata);
  boxes.insert(boxes.end(), context_.params.boxes.begin(), context_.params.boxes.end());
  check_boxes(boxes);
  for (const ExtraBox& box : boxes) {
    require(box.type.size() == 4 && !is_stream_box(box.type) && box.type != "part" &&
                box.payload.size() <= kMaxExtraBytes - kBoxCrcBytes,
            ErrorKind::kBadArgument, "an extra box '" + box.type + "' of " + count_of(box.payload.size(), "byte"));
    const BoxEnds ends = box_around(box.type.c_str(), box.payload);
    write(ends.header, sizeof ends.header);
    write(box.payload.data(), box.payload.size());
    write(ends.crc, sizeof ends.crc);
  }
  end_packet({PacketInfo::Kind::kHead});
}

GopHeader PacketWriter::packet_header(const PendingGop& p) {
  GopHeader g;
  g.index = p.number;
  g.first_frame = p.first_frame;
  g.frames = p.frames;
  g.step = p.step;
  g.has_hash = p.has_hash;
  g.hash = p.hash;
  g.times = p.times;
  g.frame_gains = p.frame_gains;
  if (p.motion) {
    g.key = p.motion->places.key;
    g.predicts_keys = p.motion->predicts_keys;
    for (const auto& section : p.motion->sections) g.motion.push_back(chunk_entry(section));
  }
  g.body_bytes = p.motion_bytes();
  return g;
}

std::uint64_t PacketWriter::head_bytes(const PendingGop& p) const {
  GopHeader head = packet_header(p);
  head.layer_top.assign(context_.header.layers, 0);
  return serialise(context_.header, head).size() + kBoxHeaderBytes + p.motion_bytes();
}

std::uint64_t PacketWriter::bytes_allowed(const PendingGop& p) const {
  if (!bound_) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t packet = bound_->bytes_allowed(p.times);
  const std::uint64_t head = head_bytes(p);
  return packet - std::min(packet, head);
}

void PacketWriter::write_packet(const PendingGop& p, const LayeredGop& layers, const GopChunks& chunks,
                                const std::vector<double>& errors) {
  const StreamHeader& header = context_.header;
  GopHeader g = packet_header(p);
  set_planes(header, layers, g);
  g.chunks = chunks.entries;
  GopInfo info;
  info.layers.resize(header.layers);
  const std::size_t per_layer = chunks.bytes.size() / header.layers;
  for (std::size_t i = 0; i < chunks.bytes.size(); ++i) {
    g.body_bytes += chunks.bytes[i].size();
    info.layers[i / per_layer].bytes += chunks.bytes[i].size();
  }
  for (std::size_t l = 0; l < errors.size(); ++l) info.layers[l].error = error_code(errors[l]);
  if (header.lossless && errors.empty()) info.layers.back().error = 0;  // exact, unless measured otherwise
  const std::vector<std::uint8_t> head = serialise(header, g);
  info.offset = position_;
  info.first_frame = p.first_frame;
  info.frames = p.frames;
  info.key = g.key;
  info.predicts_keys = g.key == GopKey::kOpen && g.predicts_keys;
  info.begin_pts = g.times[0].pts;
  info.end_pts = end_of(g.times);
  std::uint8_t box[kBoxHeaderBytes];
  write_box_header("Gop ", head.size() + g.body_bytes, box);
  write(box, sizeof box);
  write(head.data(), head.size());
  if (p.motion)
    for (const auto& section : p.motion->sections) write(section.data(), section.size());
  for (const auto& c : chunks.bytes) write(c.data(), c.size());
  info.bytes = position_ - info.offset;
  if (bound_) bound_->add(p.times, info.bytes);
  const bool divided = std::any_of(layers.components.begin(), layers.components.end(),
                                   [](const auto& c) { return c.blocks.size() > 1; });
  if (context_.params.part_checks && divided)
    write_box("part", context_.timed(&EncoderStages::pack, true,
                                     [&] { return serialise_checks(header, g.index, layers, chunks.bytes); }));
  end_packet(packet_info(g));
  index_.push_back(info);
  frames_ += static_cast<std::uint64_t>(p.frames);
  const std::lock_guard lock(mutex_);
  counts_.gops += 1;
}

void PacketWriter::write_divided(const PendingGop& p, const LayeredGop& layers, const std::vector<double>& errors) {
  GopChunks chunks;
  context_.timed(&EncoderStages::pack, false, [&] { make_chunks(context_.header, layers, chunks, &context_.pool); });
  write_packet(p, layers, chunks, errors);
}

void PacketWriter::write_end() {
  StreamEnd end;
  end.frames = frames_;
  end.index_offset = position_;
  write_box("Indx", serialise_index(index_));
  write_box("Done", serialise(end));
  end_packet({PacketInfo::Kind::kEnd});
}

GopInfo PacketWriter::take_entry() {
  GopInfo entry = std::move(index_.back());
  index_.pop_back();
  return entry;
}

PacketWriter::Counts PacketWriter::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace trivelet
