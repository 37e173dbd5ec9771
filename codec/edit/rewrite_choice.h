// Chooses which layers of a stream a smaller one keeps: whole layers, and a part of the next one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/edit/rewrite_source.h"

namespace trivelet {

struct LayerChoice {
  int whole = 0;                ///< layers that stay whole
  double fraction = 0;          ///< share of the next layer to keep, in bytes
  std::uint64_t limit = 0;      ///< bytes that the new stream must not exceed; 0: none
  std::size_t table_bytes = 0;  ///< reserved for the content of a front table; 0: there is none
};

/// `with_table`: the new stream may have a front table. Throws BadArgument for a target that cannot be met.
LayerChoice choose_layers(const RewriteSource& source, const RewriteResult& result, bool with_table);

/// Bytes of the box, the header and the motion of a GOP that keeps the chunks of `layers` layers.
std::uint64_t header_bytes(const RewriteSource& source, const SourceGop& g, int layers);
/// Upper bound for the boxes behind GOP `i` and its index entry, in bytes.
double end_bytes(const RewriteSource& source, std::size_t i);
/// Bytes of the motion sections of a GOP.
std::uint64_t motion_bytes(const SourceGop& g);

}  // namespace trivelet
