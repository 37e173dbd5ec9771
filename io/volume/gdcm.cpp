// Decodes codestreams of JPEG, JPEG-LS and JPEG 2000 by GDCM. Compiled if GDCM is found; called in a child process
// (dicom_pixels.cpp), because it may crash.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <gdcmImage.h>
#include <gdcmSequenceOfFragments.h>
#include <gdcmTrace.h>
#pragma GCC diagnostic pop

#include "io/adapters.h"

namespace trivelet::io {

namespace {

bool decode(const DicomFrame& f, const std::byte* data, std::size_t size, std::vector<std::byte>& pixels) {
  gdcm::Trace::SetWarning(false);
  gdcm::Trace::SetError(false);
  gdcm::Trace::SetDebug(false);
  const auto allocated = static_cast<unsigned short>(f.bits <= 8 ? 8 : f.bits <= 16 ? 16 : 32);
  const auto stored = static_cast<unsigned short>(f.bits);
  const gdcm::PixelFormat format(static_cast<unsigned short>(f.samples), allocated, stored,
                                 static_cast<unsigned short>(stored - 1), f.is_signed ? 1 : 0);
  gdcm::Image image;
  image.SetNumberOfDimensions(2);
  image.SetDimension(0, f.columns);
  image.SetDimension(1, f.rows);
  image.SetPixelFormat(format);
  image.SetPhotometricInterpretation(f.samples == 1 ? gdcm::PhotometricInterpretation::MONOCHROME2
                                     : f.is_ybr     ? gdcm::PhotometricInterpretation::YBR_FULL
                                                    : gdcm::PhotometricInterpretation::RGB);
  image.SetPlanarConfiguration(0);
  image.SetTransferSyntax(gdcm::TransferSyntax::GetTSType(f.coding.c_str()));
  gdcm::Fragment fragment;
  fragment.SetByteValue(reinterpret_cast<const char*>(data), gdcm::VL(static_cast<std::uint32_t>(size)));
  const gdcm::SmartPointer<gdcm::SequenceOfFragments> fragments = new gdcm::SequenceOfFragments;
  fragments->AddFragment(fragment);
  gdcm::DataElement element(gdcm::Tag(0x7fe0, 0x0010));
  element.SetVR(gdcm::VR::OB);
  element.SetValue(*fragments);
  image.SetDataElement(element);
  if (image.GetBufferLength() != pixels.size()) return false;
  if (!image.GetBuffer(reinterpret_cast<char*>(pixels.data()))) return false;
  // The properties that GDCM found in the codestream: if sizes differ, the pixels are not the requested ones.
  return image.GetPixelFormat().GetBitsAllocated() == allocated &&
         image.GetPixelFormat().GetSamplesPerPixel() == f.samples && image.GetColumns() == f.columns &&
         image.GetRows() == f.rows;
}

}  // namespace

const GdcmAdapter trivelet_gdcm = {decode};

}  // namespace trivelet::io
