// Assembles the files of a DICOM series into a volume: which slices belong to it, their order and distances. Internal
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
  bool converted = false;  ///< converted from compressed pixels
  bool has_end = true;     ///< compressed pixels end with their delimiter
  std::string colours{};   ///< of compressed pixels, if not those that the header says
};

/// For messages: "a.dcm, b.dcm and 3 more".
std::string names_of(const std::vector<std::string>& names);

/// The files that have pixels, with what their headers say. Remarks name the others. Throws if there is none.
std::vector<DicomSlice> read_slices(const std::vector<FileToRead>& files, const VolumeOptions& options,
                                    std::vector<std::string>& remarks);
/// The series that they are of, in the order of their numbers.
std::vector<SeriesInFolder> series_of(const std::vector<DicomSlice>& slices);

/// Keeps the slices of the series with this UID or number; "" requires a single series. `first`: of the files, for
/// messages.
void choose_series(std::vector<DicomSlice>& slices, const std::string& wanted, const FileToRead& first);

/// Moves the largest group of matching slices (size, type, orientation, spacing, distinct instances) to the front.
/// Remarks name the others, which follow, or are dropped with `only_matching`. Throws Unsupported if their samples
/// cannot be in one volume. Returns the number of matching slices.
std::size_t match_slices(std::vector<DicomSlice>& slices, bool only_matching, std::vector<std::string>& remarks);

/// Sorts the first `matching` slices of several files, finds distance and matrix, and remarks on gaps. Returns the
/// number of volumes.
std::uint64_t place_slices(std::vector<DicomSlice>& slices, std::size_t& matching, bool only_matching, VolumeInfo& info,
                           std::vector<std::string>& remarks);

/// The same for the frames of one file, whose order is kept.
std::uint64_t place_frames(VolumeInfo& info, const DicomFile& d, std::vector<std::string>& remarks);

}  // namespace trivelet::io
