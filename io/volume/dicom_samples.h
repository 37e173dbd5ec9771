// Converts between the samples in a DICOM file and scalars. Internal to io.
//
// Streams have the values of samples, interleaved by pixel. DICOM also allows colour planes, 8-bit samples in
// big-endian words, one chroma pair for two pixels, and values in a part of a word's bits with arbitrary other bits.
// The files of a series may have different byte orders. Reading takes these apart, and writing restores them bit by
// bit. Sources: DICOM PS3.5 8.1 (Bits Stored, High Bit), D (byte order), PS3.3 C.7.6.3.1.2 and .3 (colours, planes).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "io/volume/dicom.h"

namespace trivelet::io {

struct DicomSamples {
  std::uint64_t pixels = 0;  ///< pixels of a frame
  std::uint64_t frames = 0;
  unsigned samples = 1;  ///< samples of a pixel
  unsigned bytes = 1;    ///< bytes of a sample
  unsigned stored = 8;   ///< bits of the value within a sample
  unsigned shift = 0;    ///< bits below the value
  bool big_endian = false;
  bool is_signed = false;
  std::uint8_t order = 0;  ///< SampleOrder

  std::uint64_t frame_bytes() const { return pixels * samples * bytes; }
  /// Bytes of a frame in the file.
  std::uint64_t file_frame_bytes() const {
    return order & kOrderHalfChroma ? pixels / 2 * 4 * bytes : frame_bytes() + (has_pad() ? 1 : 0);
  }
  /// Whether the last word of the only frame has an unused byte.
  bool has_pad() const { return (order & kOrderSwapped) != 0 && frame_bytes() % 2 != 0; }
  /// Whether words have bits outside the values.
  bool has_unused() const { return stored < 8 * bytes || has_pad(); }
};

/// `order`: the flags in the stream, or those of dicom_order().
DicomSamples dicom_samples(const DicomFile& d, std::uint8_t order);
/// The order of uncompressed samples according to the header. Throws Unsupported for orders without a reader.
std::uint8_t dicom_order(const DicomFile& d, const std::string& name);

/// Delivers the scalars of the input's samples.
class SampleFeed final : public Feed {
 public:
  SampleFeed(VolumeInput& in, const DicomSamples& samples);
  ~SampleFeed() override;
  std::size_t read(std::byte* data, std::size_t size) override;
  /// After the last sample: stores the order of the samples and the bits outside the values.
  void finish(VolumeFile& file) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes scalars in the file's own layout. `file`: its head, order and unused bits.
std::unique_ptr<Packer> make_sample_writer(Packer::Sink sink, const VolumeFile& file);

}  // namespace trivelet::io
