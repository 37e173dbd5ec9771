// The dense coder of codec/entropy/dense/dense.h on the device: all code blocks of all components of a GOP at once, the
// same bytes and the same record of distortions.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/plan/dense_plan.h"

namespace trivelet::gpu {

struct DenseEncodeArgs;
struct DenseDecodeArgs;

/// The input of an encoder beside the coefficients of a GOP; all on the device.
struct DenseMeasure {
  const float* inverse_steps;    ///< per subband of all components; none: coefficients are integers
  const double* weights;         ///< per subband
  const double* frame_weights;   ///< in the order of DensePlan
  bool spare_last_pass = false;  ///< GopChoices::spare_last_pass
};

/// Encoder with its device memory. Per GOP: encode(), then download meta(), then total bytes of output().
class DenseGopEncoder {
 public:
  /// `planes`: bit planes that magnitudes can have, 1..30. `capacity`: bytes of output to begin with.
  DenseGopEncoder(const TreePlan& tree, const DensePlan& plan, int planes, int centroid, std::size_t capacity);

  /// C is float, to be quantised here, or std::int16_t or std::int32_t, as they are. Gives work to the stream only.
  template <class C>
  void encode(const C* coefficients, const DenseMeasure& measure, const Stream& stream);
  /// Again, after the output was too small: makes room for `bytes`. Waits for the stream.
  template <class C>
  void encode_larger(std::size_t bytes, const C* coefficients, const DenseMeasure& measure, const Stream& stream);

  /// What comes first, as one run of bytes.
  const std::byte* meta() const { return meta_.data(); }
  std::size_t meta_bytes() const { return meta_.size(); }
  /// Views of a downloaded meta().
  struct Meta {
    std::uint64_t total;         ///< bytes of output; more than the capacity: it was too small
    std::uint64_t pool;          ///< of memory while coding, too
    const std::uint32_t* tops;   ///< [segment]
    const std::uint32_t* sizes;  ///< [segment], bytes; each begins at a multiple of 4, without gaps
    const std::uint32_t* bytes;  ///< [segment * passes + pass]
    const double* gains;         ///< [segment * passes + pass]
    const double* energy;        ///< [segment]
    int passes;
  };
  Meta view(const std::byte* meta) const;
  bool complete(const Meta& meta) const { return meta.total <= capacity_ && meta.pool <= pool_.size(); }
  const std::uint8_t* output() const { return reinterpret_cast<const std::uint8_t*>(output_.data()); }
  std::size_t capacity() const { return capacity_; }
  std::size_t device_bytes() const;

 private:
  bool wide() const { return planes_ > 15; }
  template <class C, class V>
  void run(const C* coefficients, const DenseMeasure& measure, const Stream& stream);
  DenseEncodeArgs args() const;

  const TreePlan* tree_;
  const DensePlan* plan_;
  int planes_, centroid_;
  std::size_t capacity_;
  DeviceBuffer<std::byte> values_, meta_;
  DeviceBuffer<std::uint8_t> bytes_;  // group, open, closed, any, all
  DeviceBuffer<double> frame_sums_;
  DeviceBuffer<std::uint8_t> pool_;
  DeviceBuffer<std::uint32_t> pages_, output_;
};

/// The description of a segment for a decoder: where its joined parts are in the input.
struct DenseSegmentInput {
  std::uint64_t offset = 0;  ///< of the codeword, a multiple of 4
  std::uint32_t size = 0;
  std::uint8_t top = 0;
  std::uint8_t cut = 0;  ///< >= 2 * top: not decoded
  std::uint16_t parts = 0;
};
/// An uploaded part and its destination.
struct DensePartInput {
  std::uint64_t from = 0, to = 0;
  std::uint32_t size = 0, unused = 0;
};

/// Decoder with its device memory.
class DenseGopDecoder {
 public:
  DenseGopDecoder(const TreePlan& tree, const DensePlan& plan, int planes);

  DenseSegmentInput* segments() const { return segments_.data(); }  ///< [segment]
  int planes() const { return planes_; }

  /// `parts` (device): the parts of the codewords, which have `codeword_bytes` bytes in all.
  void decode(const std::uint8_t* bytes, const DensePartInput* parts, std::uint32_t part_count,
              std::size_t codeword_bytes, const Stream& stream);
  /// As ZerotreeDecoder::restore.
  template <class C>
  void restore(C* coefficients, const float* steps, int centroid, const Stream& stream);
  std::size_t device_bytes() const;

 private:
  bool wide() const { return planes_ > 15; }
  template <class V>
  void run(const Stream& stream);
  DenseDecodeArgs args() const;

  const TreePlan* tree_;
  const DensePlan* plan_;
  int planes_, orientations_;
  DeviceBuffer<std::byte> values_;
  DeviceBuffer<std::uint8_t> bytes_;  // group, open, closed, any, all
  DeviceBuffer<DenseSegmentInput> segments_;
  DeviceBuffer<std::uint32_t> states_, progress_;
  DeviceBuffer<std::uint32_t> codewords_;
};

}  // namespace trivelet::gpu
