// What pictures in files have that FFmpeg's demuxers and decoders leave out. Internal to io.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/source.h"
#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

/// A file of one picture, as it is found by its own bytes.
struct PictureFile {
  bool is_heif = false;       ///< AVIF, HEIC
  bool in_tiles = false;      ///< HEIF: the picture is put together from others
  bool is_jxl = false;        ///< JPEG XL
  bool is_cut = false;        ///< JPEG XL: a box ends behind the file
  bool unsaid_alpha = false;  ///< BMP: the header says nothing of the fourth byte of a pixel
  bool lacks_lines = false;   ///< BMP: of which FFmpeg makes black ones without a word
  std::string unread;         ///< what FFmpeg does not read: "a BigTIFF picture"
  bool misread = false;       ///< and takes for something else
  std::string advice = "convert it first, for example to PNG";
  std::uint64_t orientation = 0;  ///< as TIFF and Exif number it; 0 and 1: as it is
  std::uint8_t primaries = 0;     ///< PNG: code points (ITU-T H.273) of its colours; 0 = not said
  std::uint8_t transfer = 0;
  std::vector<std::string> left_out = {};  ///< "rotation", "2 more pictures"
};

/// HEIF pictures, TIFF, PNG, JPEG, JPEG 2000, JPEG XL, GIF, WebP, PSD, BMP, FITS, and films of MP4. Nothing for other
/// files, and for standard input.
std::optional<PictureFile> picture_file(const std::string& path);

PictureFile describe_jxl(const InputBytes& file);
PictureFile describe_bmp(const InputBytes& file);
PictureFile describe_mp4(const InputBytes& file);

/// Adds how many pixels an inch has. Programs that know nothing of it write 72.
void name_density(double across, double down, PictureFile& picture);

/// What turns a picture for display: left and right change places, then it is turned clockwise.
struct Turn {
  int degrees = 0;
  bool mirrored = false;
};
/// Of an orientation as TIFF and Exif number it; nothing for other numbers.
std::optional<Turn> turn_of(std::uint64_t orientation);

/// What FFmpeg's decoder of TIFF passes over, so that another picture comes out without a word: "in tiles"; "" if it
/// reads this one right. Of a picture's packet, which is its file. Cameras' pictures (DNG) are read in tiles, too.
std::string misread_tiff(const AVPacket& packet);

/// The same of its decoder of Photoshop's pictures.
std::string misread_psd(const AVPacket& packet);

/// The same of its decoder of Targa.
std::string misread_targa(const AVPacket& packet);

/// What is left out of the picture in a file, if it is known, that FFmpeg has decoded: what FFmpeg does not read or
/// converts, and what it hands over that no stream of ours has a place for.
std::vector<std::string> left_out_of(const std::optional<PictureFile>& file, const AVFrame& frame,
                                     const AVCodecParameters& coded, const std::string& demuxer);

}  // namespace trivelet::io
