// What a DICOM file says about its pixels: encoding, geometry and meaning. Internal to io.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "io/volume/dicom_times.h"
#include "io/volume/volume_input.h"

namespace trivelet::io {

/// Position and time of a picture and meaning of its values: attributes of the file or of a frame (functional groups).
struct DicomGeometry {
  double slope = 1, intercept = 0;
  double thickness = 0, between = 0;                   ///< of slices; 0 = unknown
  std::vector<double> position, orientation, spacing;  ///< as in the attributes
  DicomTimes times;
};

inline constexpr char kImplicitLittleEndian[] = "1.2.840.10008.1.2";
inline constexpr char kExplicitLittleEndian[] = "1.2.840.10008.1.2.1";
inline constexpr char kDeflatedLittleEndian[] = "1.2.840.10008.1.2.1.99";
inline constexpr char kExplicitBigEndian[] = "1.2.840.10008.1.2.2";

struct DicomFile {
  std::string transfer_syntax;  ///< one of dicom_syntax(); guessed if the file does not say
  std::string photometric;      ///< RGB, YBR_FULL_422, …
  /// Pixels are not compressed; else only their presence and the elements before them are known.
  bool plain = false;
  bool readable = false;    ///< the data set is not compressed as a whole; else nothing below is known
  bool explicit_vr = true;  ///< elements have types, whatever the syntax says
  bool big_endian = false;
  bool is_signed = false;
  bool knows_sign = false;                      ///< the header tells it
  bool planar = false;                          ///< colour planes one after the other, not interleaved
  bool real = false;                            ///< pixels are Float or Double Float Pixel Data
  bool in_words = false;                        ///< pixels have type OW: two 8-bit samples in a word
  bool is_mosaic = false;                       ///< every picture holds the slices of a volume as tiles
  bool has_lut = false;                         ///< a lookup table gives the meaning of values
  std::string instance;                         ///< SOP Instance UID
  std::uint64_t stored_bits = 0, high_bit = 0;  ///< Bits Stored and High Bit; 0 = unknown
  std::vector<double> frame_offsets;            ///< of a dose grid, along the normal
  std::uint64_t samples = 1, frames = 1, rows = 0, columns = 0, bits = 0;
  double number = 0;
  std::string series, series_number, series_description;
  DicomGeometry geometry;                     ///< of the first frame
  std::vector<std::array<double, 3>> places;  ///< of all frames, if each has its own
  std::vector<DicomTimes> frame_times;        ///< of all frames of a file that has functional groups
  bool is_3d = false;                         ///< MR Acquisition Type
  bool one_orientation = true;                ///< all frames have the same orientation
  bool one_slope = true, one_intercept = true;
  double largest_slope = 0;     ///< largest magnitude over all frames
  std::uint64_t meta_at = 0;    ///< offset of the meta information: 132, or 0 without a preamble
  std::uint64_t data_at = 0;    ///< offset of the data set behind the meta information
  bool is_cut = false;          ///< the file ends inside an element before the pixels
  bool is_spectrum = false;     ///< Spectroscopy Data stands in the place of pixels
  std::uint64_t pixels_at = 0;  ///< offset of the pixels in the file; 0 = none
  std::uint64_t pixel_bytes = 0;
};

/// Parses a file up to its pixels.
DicomFile read_dicom(VolumeInput& in);

}  // namespace trivelet::io
