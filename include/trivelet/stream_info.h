// What a .tvl stream says about itself: header, index, and additional boxes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trivelet/metadata.h"
#include "trivelet/parameters.h"
#include "trivelet/types.h"

namespace trivelet {

/// A box between the stream header and the first GOP: either one of FORMAT.md "Volumes" or an application's. The type
/// of an application's box begins with a lower-case letter. Its fourth character is upper-case if the box becomes
/// invalid when coded data is dropped.
struct ExtraBox {
  std::string type;                   ///< 4 characters of ASCII
  std::vector<std::uint8_t> payload;  ///< without the checksum
};

/// Size and error of a quality layer of a GOP.
struct LayerInfo {
  std::uint64_t bytes = 0;  ///< of this layer's chunks
  /// Mean squared error up to this layer, coded as in FORMAT.md "Indx"; 65535 = unknown.
  std::uint16_t error = 65535;
};

struct GopInfo {
  std::uint64_t offset = 0;  ///< of the GOP packet from the stream's first byte
  std::uint64_t bytes = 0;
  std::uint64_t first_frame = 0;
  int frames = 0;
  GopKey key = GopKey::kFirst;    ///< kFirst also without motion
  bool predicts_keys = false;     ///< kOpen: its keys are predicted from the GOP before, so that one needs its key, too
  std::int64_t begin_pts = 0;     ///< presentation time of its first frame
  std::int64_t end_pts = 0;       ///< end of its last frame
  std::vector<LayerInfo> layers;  ///< errors are unknown if the index was rebuilt
};

/// The contents of the stream header and, for a seekable source, of the index.
struct StreamInfo {
  VideoInfo video;
  int format_major = 0;
  int format_minor = 0;
  Profile profile = Profile::kFast;
  FastMode fast_mode = FastMode::kStaged;
  bool lossless = false;
  Decomposition decomposition;  ///< of the full-size components
  bool motion = false;          ///< GOPs may be motion-compensated
  int gop_frames = 0;
  int block_size = 0;
  int layers = 0;
  std::string settings;           ///< text from the encoder; may be empty
  std::string writer;             ///< name and version of the writing library
  Metadata metadata;              ///< parsed from `boxes`
  std::vector<ExtraBox> boxes{};  ///< the intact ones
  /// Those with a wrong checksum, kept behind the payload, that a reader may skip.
  std::vector<ExtraBox> damaged_boxes{};
  bool has_index = false;     ///< `gops` comes from the index or a scan; else it is empty
  bool complete = false;      ///< the end of the stream was found
  std::string header_damage;  ///< seekable sources: what is lost between header and first GOP
  std::string index_damage;   ///< seekable sources: why a scan rebuilt `gops`; empty: the index is intact
  std::vector<GopInfo> gops;
  std::uint64_t file_bytes = 0;  ///< 0 if the source is not seekable
};

}  // namespace trivelet
