// Greyscale pictures at the edges of "trivelet ccsds": PGM and raw samples of up to 32 bits, the rest through io.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/cli.h"
#include "codec/still/ccsds122/ccsds122.h"
#include "trivelet/types.h"

namespace trivelet::cli {

/// One greyscale picture: 1, 2 or 4 bytes per sample by its bit depth, native byte order, no padding.
struct CcsdsImage {
  int width = 0;
  int height = 0;
  int bits = 8;
  bool is_signed = false;
  std::vector<std::byte> bytes;

  int bytes_per_sample() const { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }
  VolumeView view() const;
};
CcsdsImage image_of(const ccsds122::Decoded& decoded);

/// How to read a picture that does not describe itself.
struct CcsdsInput {
  std::string size;          ///< raw: "WxH"
  std::string type;          ///< raw: u8 s8 u16le s16le u16be s16be u32le s32le u32be s32be
  int bits = 0;              ///< significant bits; 0 = by the file or the type
  std::string pixel_format;  ///< convert to this one when FFmpeg reads
};
void add_ccsds_input_options(Command& app, CcsdsInput& options);

CcsdsImage read_ccsds_image(const std::string& path, const CcsdsInput& options, const Common& common);
/// By extension: .pgm, .raw (little-endian), .png. Throws Unsupported for depths the format cannot hold.
void write_ccsds_image(const std::string& path, const CcsdsImage& image, bool overwrite);

/// A whole file, or standard input for "-".
std::vector<std::byte> read_bytes(const std::string& path);

}  // namespace trivelet::cli
