// How the samples of a DICOM file lie in it, and the way from there to scalars and back. Internal to io.
//
// The stream has the values of the samples, those of a pixel together. The standard allows more: colours in planes,
// 8-bit samples in big-endian words, a colour for two pixels, values in some bits of a word with anything in the
// others. What is taken apart on reading is put together again on writing, bit by bit.
// Source: DICOM PS3.5 8.1 (Bits Stored, High Bit), D (byte order), PS3.3 C.7.6.3.1.2 and .3 (colours, planes).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "io/volume/dicom.h"

namespace trivelet::io {

struct DicomSamples {
  std::uint64_t pixels = 0;  ///< of a frame
  std::uint64_t frames = 0;
  unsigned samples = 1;  ///< of a pixel
  unsigned bytes = 1;    ///< of a sample
  unsigned stored = 8;   ///< bits of a sample that are its value
  unsigned shift = 0;    ///< bits below these
  bool big_endian = false;
  bool is_signed = false;
  std::uint8_t order = 0;  ///< SampleOrder

  std::uint64_t frame_bytes() const { return pixels * samples * bytes; }
  /// Of a frame in the file.
  std::uint64_t file_frame_bytes() const {
    return order & kOrderHalfChroma ? pixels / 2 * 4 * bytes : frame_bytes() + (has_pad() ? 1 : 0);
  }
  /// Whether the last word of the only frame has a byte behind the last sample.
  bool has_pad() const { return (order & kOrderSwapped) != 0 && frame_bytes() % 2 != 0; }
  /// Whether words have bits that are no part of a value.
  bool has_unused() const { return stored < 8 * bytes || has_pad(); }
};

/// `order`: of what the stream says of the file, or dicom_order().
DicomSamples dicom_samples(const DicomFile& d, std::uint8_t order);
/// The order of uncompressed samples that the header promises. Unsupported for what nothing here reads.
std::uint8_t dicom_order(const DicomFile& d, const std::string& name);

/// Scalars of the samples that follow in the input.
class SampleFeed final : public Feed {
 public:
  SampleFeed(VolumeInput& in, const DicomSamples& samples);
  ~SampleFeed() override;
  std::size_t read(std::byte* data, std::size_t size) override;
  /// After the last one: the order of the samples, and the bits beside the values.
  void finish(VolumeFile& file) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Scalars as the file had them. `file`: its head, order and unused bits.
std::unique_ptr<Packer> make_sample_writer(Packer::Sink sink, const VolumeFile& file);

}  // namespace trivelet::io
