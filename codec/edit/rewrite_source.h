// The source of a rewritten stream: header, boxes, the GOPs that are kept, and their checked chunks.
//
// Construction reads everything but the chunks and drops what the parameters exclude: GOPs outside the range, levels,
// and, with keep_partial, damaged GOPs. Chunks are read on demand. One thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codec/format/container.h"
#include "codec/format/stream_input.h"
#include "trivelet/edit.h"

namespace trivelet {

struct VolumeMap;

/// A GOP of the source that is kept.
struct SourceGop {
  GopInfo info;                       ///< its entry in the index of the source
  GopHeader header;                   ///< dropped chunks and sections have size 0
  std::uint64_t body = 0;             ///< offset of the first chunk in the source
  std::vector<std::uint64_t> layers;  ///< bytes of the kept chunks by layer
  std::vector<ExtraBox> behind;       ///< boxes that follow it
};

class RewriteSource {
 public:
  /// Throws as rewrite() does. Writes frames, damage and cuts into `result`, which must outlive it.
  RewriteSource(ByteSource& source, const RewriteParams& params, RewriteResult& result);

  const RewriteParams& params() const { return params_; }
  /// The header of the new stream, without the dropped levels.
  const StreamHeader& header() const { return header_; }
  const StreamInfo& info() const { return info_; }
  const std::vector<SourceGop>& gops() const { return gops_; }
  /// The boxes between header and first GOP, except "volq", which is in RewriteResult::cuts.
  const std::vector<ExtraBox>& boxes() const { return boxes_; }
  bool has_front_table() const { return has_front_table_; }
  /// Whether dropping levels drops coded data.
  bool drops_levels() const { return drops_levels_; }
  /// All GOPs are kept, with all their levels.
  bool is_whole() const;
  /// Whether the index has the errors of all layers and they are valid for the new stream.
  bool knows_errors() const { return knows_errors_; }

  /// Calls f(layer, temporal band, distance, index of the chunk) for all chunks of a GOP in their order.
  template <class F>
  void for_chunks(const GopHeader& g, const F& f) const {
    std::size_t i = 0;
    for (int l = 0; l < header_.layers; ++l)
      for (int b = 0; b < g.temporal_bands(header_); ++b)
        for (int d = header_.spatial_levels; d >= 0; --d, ++i) f(l, b, d, i);
  }
  /// Appends chunk `i` of a GOP to `bytes`. Throws BadStream when its checksum is wrong.
  void read_chunk_bytes(const SourceGop& g, std::size_t i, std::vector<std::uint8_t>& bytes);
  /// The same for section `i` of its motion.
  void read_section(const SourceGop& g, std::size_t i, std::vector<std::uint8_t>& bytes);
  void check_memory(std::uint64_t needed) const;
  double samples_of(const SourceGop& g) const { return static_cast<double>(header_.samples(g.header.frames)); }

 private:
  void check_limits() const;
  void take_boxes();
  void check_levels();
  void check_volume(const VolumeMap& map);
  bool keeps(const GopHeader& g, int band, int distance) const;
  bool keeps_motion(const GopHeader& g, std::size_t section) const;
  bool is_wanted(const GopInfo& info) const;
  void report(const std::string& what);
  std::size_t first_gop() const;
  SourceGop read_gop_header(const GopInfo& info, const std::string& where);
  void read_boxes_behind(std::size_t number, SourceGop& g);
  SourceGop read_gop(std::size_t number, const GopInfo* last);
  void leave_out_leads();
  void read_gops();
  void check_frames(std::uint64_t next);
  void find_errors();

  RewriteParams params_;
  RewriteResult& result_;
  std::uint64_t bytes_read_ = 0;
  StreamInput in_;
  StreamInfo info_;
  StreamHeader header_;
  std::uint64_t promised_frames_ = 0;
  std::uint64_t index_offset_ = 0;
  std::uint64_t slices_ = 0;  // slices of a volume
  bool has_front_table_ = false;
  std::vector<ExtraBox> boxes_;
  std::vector<SourceGop> gops_;
  bool drops_levels_ = false;
  bool knows_errors_ = false;
};

}  // namespace trivelet
