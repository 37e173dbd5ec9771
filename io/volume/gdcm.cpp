// Compressed DICOM files made uncompressed by GDCM, in memory.
#include "io/volume/dicom.h"

#ifdef TRIVELET_HAVE_GDCM
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
#endif

namespace trivelet::io {

#ifdef TRIVELET_HAVE_GDCM

bool have_gdcm() { return true; }

Opener decompressed_dicom(const FileToRead& file, const std::string& transfer_syntax) {
  return [file, transfer_syntax]() -> std::unique_ptr<Feed> {
    gdcm::Trace::SetWarning(false);
    gdcm::Trace::SetError(false);
    gdcm::Trace::SetDebug(false);
    std::string bytes;
    {
      const std::unique_ptr<Feed> feed = file.open();
      std::vector<std::byte> piece(std::size_t{1} << 20);
      while (const std::size_t n = feed->read(piece.data(), piece.size()))
        bytes.append(reinterpret_cast<const char*>(piece.data()), n);
    }
    std::istringstream in(std::move(bytes));
    gdcm::ImageReader reader;
    reader.SetStream(in);
    gdcm::ImageChangeTransferSyntax change;
    change.SetTransferSyntax(gdcm::TransferSyntax::ExplicitVRLittleEndian);
    bool done = reader.Read();
    if (done) {
      change.SetInput(reader.GetImage());
      done = change.Change();
    }
    std::ostringstream out;
    if (done) {
      gdcm::ImageWriter writer;
      writer.SetStream(out);
      writer.SetFile(reader.GetFile());
      writer.SetImage(change.GetOutput());
      done = writer.Write();
    }
    require(done, ErrorKind::kUnsupported,
            file.path + ": GDCM cannot decompress its pixels (transfer syntax " + transfer_syntax + ")");
    const std::string plain = out.str();
    return memory_opener(std::make_shared<const std::vector<std::byte>>(to_bytes(plain)))();
  };
}

#else

bool have_gdcm() { return false; }

Opener decompressed_dicom(const FileToRead& file, const std::string& transfer_syntax) {
  fail(ErrorKind::kUnsupported, file.path + ": its pixels are compressed (transfer syntax " + transfer_syntax +
                                    "), and this build has no GDCM to decompress them");
}

#endif

}  // namespace trivelet::io
