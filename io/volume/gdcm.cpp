// Compressed DICOM files made uncompressed by GDCM, in memory. Compiled when GDCM is found.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <gdcmImageChangeTransferSyntax.h>
#include <gdcmImageReader.h>
#include <gdcmImageWriter.h>
#include <gdcmTrace.h>
#pragma GCC diagnostic pop

#include <sstream>

#include "io/adapters.h"

namespace trivelet::io {

namespace {

bool decompress(const std::string& file, std::string& plain) {
  gdcm::Trace::SetWarning(false);
  gdcm::Trace::SetError(false);
  gdcm::Trace::SetDebug(false);
  std::istringstream in(file);
  gdcm::ImageReader reader;
  reader.SetStream(in);
  if (!reader.Read()) return false;
  gdcm::ImageChangeTransferSyntax change;
  change.SetTransferSyntax(gdcm::TransferSyntax::ExplicitVRLittleEndian);
  change.SetInput(reader.GetImage());
  if (!change.Change()) return false;
  std::ostringstream out;
  gdcm::ImageWriter writer;
  writer.SetStream(out);
  writer.SetFile(reader.GetFile());
  writer.SetImage(change.GetOutput());
  if (!writer.Write()) return false;
  plain = out.str();
  return true;
}

}  // namespace

const GdcmAdapter trivelet_gdcm = {decompress};

}  // namespace trivelet::io
