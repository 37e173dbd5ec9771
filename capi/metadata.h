// Metadata of trivelet.h, from and to that of C++.
#pragma once

#include <vector>

#include "trivelet/metadata.h"
#include "trivelet/trivelet.h"

namespace trivelet::capi {

tvl_metadata default_metadata();
/// Null: none.
Metadata to_metadata(const tvl_metadata* given);

/// Of a stream, with the tables that the structure points to.
struct GivenMetadata {
  tvl_metadata all;
  std::vector<tvl_chapter> chapters;
  std::vector<tvl_entry> entries;
};
/// Points into `metadata`, and in `out` into its own tables.
void give_metadata(const Metadata& metadata, GivenMetadata& out);

}  // namespace trivelet::capi
