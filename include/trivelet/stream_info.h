// What a .tvl stream says about itself: its header, its index, and boxes of others in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trivelet/metadata.h"
#include "trivelet/parameters.h"
#include "trivelet/types.h"

namespace trivelet {

/// A box of the stream beside the pictures, between its header and the first GOP: FORMAT.md "Volumes", or of an
/// application's own (then its type begins with a small letter; its fourth character is a capital letter if it no
/// longer holds when something of the coded pictures is left out).
struct ExtraBox {
  std::string type;                   ///< 4 characters of ASCII
  std::vector<std::uint8_t> payload;  ///< without the checksum behind it
};

/// What a quality layer of a GOP costs and brings.
struct LayerInfo {
  std::uint64_t bytes = 0;      ///< of its chunks
  std::uint16_t error = 65535;  ///< mean squared error after this layer, as FORMAT.md "Indx" codes it; 65535 = unknown
};

struct GopInfo {
  std::uint64_t offset = 0;  ///< of the GOP packet in the file
  std::uint64_t bytes = 0;
  std::uint64_t first_frame = 0;
  int frames = 0;
  GopKey key = GopKey::kFirst;    ///< kFirst in GOPs without motion, too
  std::int64_t begin_pts = 0;     ///< of its first frame
  std::int64_t end_pts = 0;       ///< where its last frame ends
  std::vector<LayerInfo> layers;  ///< where the index was rebuilt, their errors are not known
};

/// What the stream header (and, for a seekable source, the index) says.
struct StreamInfo {
  VideoInfo video;
  int format_major = 0;
  int format_minor = 0;
  Profile profile = Profile::kFast;
  FastMode fast_mode = FastMode::kStaged;
  bool lossless = false;
  Decomposition decomposition;  ///< of the full-size components
  bool motion = false;          ///< GOPs may be transformed along their motion
  int gop_frames = 0;
  int block_size = 0;
  int layers = 0;
  std::string settings;                   ///< of the encoder, may be empty
  std::string writer;                     ///< name and version of the writing library
  Metadata metadata;                      ///< what `boxes` say of it
  std::vector<ExtraBox> boxes{};          ///< those that are intact
  std::vector<ExtraBox> damaged_boxes{};  ///< that may be skipped, with the wrong checksum behind them
  bool has_index = false;                 ///< `gops` came from the index (or a scan), else it is empty
  bool complete = false;                  ///< the end of the stream was found
  std::string header_damage;              ///< seekable sources: what is lost between the header and the first GOP
  std::string index_damage;  ///< seekable sources: why `gops` was rebuilt from the packets; empty: it is the index
  std::vector<GopInfo> gops;
  std::uint64_t file_bytes = 0;  ///< 0 when not seekable
};

}  // namespace trivelet
