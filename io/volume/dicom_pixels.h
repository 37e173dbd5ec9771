// Transfer syntaxes of DICOM, and decompression of files with compressed pixels. Internal to io.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/volume/dicom.h"

namespace trivelet::io {

enum class DicomCoding {
  kPlain,
  kDeflated,   ///< the whole data set
  kRunLength,  ///< only the pixels; also the codings below
  kJpeg,
  kJpegLs,
  kJpeg2000,
  kUnknown,  ///< a standard syntax without a decoder here
};
struct DicomSyntax {
  std::string_view uid, name;
  DicomCoding coding;
};
/// Null for syntaxes that are not in the standard.
const DicomSyntax* dicom_syntax(std::string_view uid);
/// UID and name of the syntax, for messages.
std::string syntax_text(const std::string& uid);
/// Throws Unsupported unless samples have 8, 16 or 32 bits.
void check_bits(const DicomFile& found, const std::string& name);

/// What opening a file tells of its codestreams.
struct DicomCodestreams {
  bool has_end = true;  ///< they end with their delimiter
  /// They were coded with loss and have more bits than Bits Stored: decoders give numbers, which exceed it a little.
  bool exceed_stored_bits = false;
  /// What they say of their colours, RGB or YBR_FULL, if the header says otherwise; it is changed. "" = nothing.
  std::string colours{};
};

/// The same file in explicit little-endian with uncompressed, interleaved pixels. Only attributes about the coding of
/// the pixels differ. Pixels are decoded when they are read. Throws Unsupported for syntaxes without a decoder.
/// `*about` is written whenever the file is opened.
Opener decompressed_dicom(const FileToRead& file, const DicomFile& found, std::shared_ptr<DicomCodestreams> about);

}  // namespace trivelet::io
