// What a DICOM file says about its pixels. Internal to io.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/volume/volume_input.h"

namespace trivelet::io {

struct DicomFile {
  std::string transfer_syntax;
  bool plain = false;  ///< pixels are not compressed; else nothing below is known
  bool big_endian = false;
  bool is_signed = false;
  bool planar = false;  ///< colours one after the other, not interleaved
  bool real = false;    ///< Float or Double Float Pixel Data
  std::uint64_t samples = 1, frames = 1, rows = 0, columns = 0, bits = 0;
  double slope = 1, intercept = 0, thickness = 0, tilt = 0, number = 0;
  std::string series;
  std::vector<double> position, orientation, spacing;  ///< as the attributes have them
  std::uint64_t pixels_at = 0;                         ///< place of the pixels in the file, 0 = none
  std::uint64_t pixel_bytes = 0;
};

/// Reads up to the pixels.
DicomFile read_dicom(VolumeInput& in);

/// The file with its pixels uncompressed, by GDCM. Unsupported without it, or for what GDCM cannot read.
Opener decompressed_dicom(const FileToRead& file, const std::string& transfer_syntax);

}  // namespace trivelet::io
