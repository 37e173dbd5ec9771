// What a DICOM file says about its pixels. Internal to io.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "io/volume/volume_input.h"

namespace trivelet::io {

/// Where a picture lies and what its values mean: attributes of the file, or of its frames (functional groups).
struct DicomGeometry {
  double slope = 1, intercept = 0;
  double thickness = 0, between = 0;                   ///< of slices, 0 = not said
  std::vector<double> position, orientation, spacing;  ///< as the attributes have them
};

inline constexpr char kImplicitLittleEndian[] = "1.2.840.10008.1.2";
inline constexpr char kExplicitLittleEndian[] = "1.2.840.10008.1.2.1";
inline constexpr char kDeflatedLittleEndian[] = "1.2.840.10008.1.2.1.99";
inline constexpr char kExplicitBigEndian[] = "1.2.840.10008.1.2.2";

struct DicomFile {
  std::string transfer_syntax;  ///< one of dicom_syntax(); guessed where the file does not say it
  std::string photometric;      ///< RGB, YBR_FULL_422, …
  bool plain = false;     ///< pixels are not compressed; else they are known to be there, and what is said before them
  bool readable = false;  ///< the data set is not compressed as a whole; else nothing below is known
  bool explicit_vr = true;  ///< elements of the data set have types, whatever the syntax says
  bool big_endian = false;
  bool is_signed = false;
  bool planar = false;                          ///< colours one after the other, not interleaved
  bool real = false;                            ///< Float or Double Float Pixel Data
  bool in_words = false;                        ///< pixels are of type OW: 8-bit samples two to a word
  bool is_mosaic = false;                       ///< every picture has the slices of a volume as tiles
  bool has_lut = false;                         ///< a table that says what values mean
  std::string instance;                         ///< SOP Instance UID
  std::uint64_t stored_bits = 0, high_bit = 0;  ///< of a sample, 0 = not said
  std::vector<double> frame_offsets;            ///< of a dose, along the normal
  std::uint64_t samples = 1, frames = 1, rows = 0, columns = 0, bits = 0;
  double number = 0;
  std::string series, series_number, series_description;
  DicomGeometry geometry;                     ///< of the first frame
  std::vector<std::array<double, 3>> places;  ///< of all frames, where each says its own
  bool one_orientation = true;                ///< of all frames
  bool one_scale = true;
  double largest_slope = 0;     ///< of all frames, without its sign
  std::uint64_t meta_at = 0;    ///< place of the meta information: 132, or 0 in files without a preamble
  std::uint64_t data_at = 0;    ///< place of the data set behind the meta information
  bool is_cut = false;          ///< ends inside an element before the pixels
  std::uint64_t pixels_at = 0;  ///< place of the pixels in the file, 0 = none
  std::uint64_t pixel_bytes = 0;
};

/// Reads up to the pixels.
DicomFile read_dicom(VolumeInput& in);

}  // namespace trivelet::io
