// How a DICOM file's pixels are coded: the transfer syntaxes, and files of compressed ones made uncompressed. Internal
// to io.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/volume/dicom.h"

namespace trivelet::io {

enum class DicomCoding {
  kPlain,
  kDeflated,   ///< the data set as a whole
  kRunLength,  ///< pixels alone, here and below
  kJpeg,
  kJpegLs,
  kJpeg2000,
  kUnknown,  ///< a syntax of the standard's that nothing here decodes
};
struct DicomSyntax {
  std::string_view uid, name;
  DicomCoding coding;
};
/// Null for what the standard does not know.
const DicomSyntax* dicom_syntax(std::string_view uid);
/// The syntax with its name, for messages.
std::string syntax_text(const std::string& uid);
/// Throws Unsupported unless samples have 8, 16 or 32 bits.
void check_bits(const DicomFile& found, const std::string& name);

/// The same file in explicit little-endian with its pixels uncompressed, colours of a pixel together. Of its attributes
/// those alone differ that say how the pixels are coded. Pixels are decoded when they are read. Unsupported for
/// syntaxes that nothing here decodes. `*has_end` becomes false when a file is opened whose pixels end without their
/// delimiter.
Opener decompressed_dicom(const FileToRead& file, const DicomFile& found, std::shared_ptr<bool> has_end);

}  // namespace trivelet::io
