// The files of a DICOM series as slices of one volume: which belong to it, in what order, and how far apart. Internal
// to io.
#pragma once

#include <string>
#include <vector>

#include "io/volume/dicom.h"

namespace trivelet::io {

struct DicomSlice {
  FileToRead file;
  DicomFile found;
  double position = 0;     ///< along the normal of the series
  bool converted = false;  ///< from compressed pixels
  bool has_end = true;     ///< these end with their delimiter
};

/// "a.dcm, b.dcm and 3 more"
std::string names_of(const std::vector<std::string>& names);

/// Those that are like most of the others come first: size, type, orientation, spacing, and each instance once. The
/// others are named in the remarks and stand behind, or, with `only_matching`, are left out. Unsupported where their
/// samples cannot be in one volume. Returns how many belong together.
std::size_t match_slices(std::vector<DicomSlice>& slices, bool only_matching, std::vector<std::string>& remarks);

/// Sorts the first `matching` slices of a series of several files, finds the distance and the matrix, and remarks on
/// gaps. Returns how many volumes they are.
std::uint64_t place_slices(std::vector<DicomSlice>& slices, std::size_t& matching, bool only_matching, VolumeInfo& info,
                           std::vector<std::string>& remarks);

/// The same for the frames of one file, in their order.
std::uint64_t place_frames(VolumeInfo& info, const DicomFile& d, std::vector<std::string>& remarks);

}  // namespace trivelet::io
