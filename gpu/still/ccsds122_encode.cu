// The encoder: its kernels, a file for each pass, in the order in which they run:
//
//   transpose, check samples      only when asked for
//   transform                     ccsds122_dwt.cu
//   gather_kernel                 ccsds122_encode_gather.cuh: a thread per block: 64 coefficients to sign word and bit
//   planes; depths per segment
//   measure_kernel                16 lanes per gaggle: code parameters, options, and the length of every piece
//   layout_kernel                 a block per segment: prefix sums over the pieces in the order of the stream
//   offsets_kernel                prefix sum over the segments
//   write_kernel                  16 lanes per gaggle: the codes, straight to their places
//
// A piece is what one gaggle contributes to DC values, AC depths, or a stage of a plane. Bytes that must move per
// sample, beside the transform: 4 read and about 1 + depth / 8 written by gather, as much read again twice.
#include "gpu/still/ccsds122_encode.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "codec/still/ccsds122/ccsds122_rate.h"
#include "codec/still/ccsds122/ccsds122_segment.h"
#include "gpu/still/ccsds122_encode_gather.cuh"
#include "gpu/still/ccsds122_encode_layout.cuh"
#include "gpu/still/ccsds122_encode_measure.cuh"
#include "gpu/still/ccsds122_encode_write.cuh"

namespace trivelet::gpu {

PlaneMasks make_plane_masks(const std::array<int, ccsds122::kBands>& shift) {
  PlaneMasks masks;
  for (int b = 0; b < 32; ++b) {
    PlaneMask& m = masks.plane[b];
    m.all = ccsds122::eligible_mask(shift.data(), b);
    for (int n = 0; n < 16; ++n)
      if (m.all >> (4 * n) & 15) m.nibble |= 1U << n;
    m.grand = static_cast<std::uint16_t>(grandchildren_flags(m.nibble));
    m.family = static_cast<std::uint16_t>((m.nibble >> 12 & 7) | m.grand);
  }
  return masks;
}

// --------------------------------------------------------------------------------------------------------------- host

using namespace ccsds122_encode;

struct Ccsds122Encoder::State {
  ccsds122::Params params;
  int width = 0, height = 0;  // as coded
  SampleType format = SampleType::kU8;
  bool check_range = false;
  std::vector<ccsds122::SegmentPlan> plan;
  std::vector<SegmentIn> in;
  std::array<int, kBands> shift{};

  Ccsds122Transform transform;
  CoderArgs args{};
  DevicePicture picture;  // given to start()

  DeviceBuffer<std::byte> turned;
  std::ptrdiff_t turned_stride = 0;
  DeviceBuffer<SegmentIn> d_in;
  DeviceBuffer<SegmentOut> d_out;
  DeviceBuffer<Summary> d_summary;
  DeviceBuffer<std::uint32_t> d_lengths, d_note, d_pieces, d_raw_at, d_marks, d_counts, d_stream;
  DeviceBuffer<std::int32_t> d_dc;
  DeviceBuffer<std::uint8_t> d_depth, d_options;
  DeviceBuffer<std::uint64_t> d_sign, d_plane;
  DeviceBuffer<std::int8_t> d_parameter;
  PinnedBuffer<Summary> summary;
  PinnedBuffer<std::uint32_t> lengths;
  std::vector<std::uint32_t> segment_bytes;
  std::uint64_t total = 0;

  State(int w, int h, SampleType f, const ccsds122::Params& p);
  void make_room(int planes, std::uint64_t capacity);
  void transform_picture(const Stream& stream);
  void code(const Stream& stream);
  bool spread(const Stream& stream);
};

namespace {

VolumeView view_of(int width, int height, SampleType format) {
  VolumeView v;
  v.shape = {1, height, width};
  v.bytes_per_sample = sample_bytes(format);
  v.is_signed = format == SampleType::kS8 || format == SampleType::kS16 || format == SampleType::kS32;
  return v;
}

}  // namespace

Ccsds122Encoder::State::State(int w, int h, SampleType f, const ccsds122::Params& p)
    : params(p),
      width(p.transpose ? h : w),
      height(p.transpose ? w : h),
      format(f),
      transform((width + 7) / 8, (height + 7) / 8) {
  check_range = ccsds122::samples_need_check(view_of(w, h, f), p);
  plan = ccsds122::plan_segments(p, width, height);
  shift = ccsds122::band_shifts(plan.front().header.shifts());
  std::uint32_t gaggle = 0;
  for (const ccsds122::SegmentPlan& s : plan) {
    SegmentIn i;
    i.first = static_cast<std::uint32_t>(s.first);
    i.blocks = s.blocks;
    i.first_gaggle = gaggle;
    i.gaggles = (s.blocks + kGaggle - 1) / kGaggle;
    gaggle += i.gaggles;
    ccsds122::SegmentHeader header = s.header;
    header.dc_depth = 32;  // 0 in the stream
    header.ac_depth = 0;
    const std::vector<std::byte> bytes = ccsds122::write_header(header);
    i.header_bytes = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(i.header, bytes.data(), bytes.size());
    i.byte_limit = s.header.byte_limit;
    in.push_back(i);
  }
  const std::uint64_t blocks = static_cast<std::uint64_t>(transform.bands().blocks_wide) *
                               static_cast<std::uint64_t>(transform.bands().blocks_high);
  require(blocks < std::uint64_t{1} << 31, ErrorKind::kUnsupported,
          "a picture of " + std::to_string(blocks) + " blocks is too large for the device");

  CoderArgs& a = args;
  a.bands = transform.bands();
  std::copy(shift.begin(), shift.end(), a.shift);
  a.masks = make_plane_masks(shift);
  a.blocks = static_cast<std::uint32_t>(blocks);
  a.gaggles = gaggle;
  a.segments = static_cast<std::uint32_t>(plan.size());
  a.segment_blocks = p.segment_blocks;
  a.segment_gaggles = (p.segment_blocks + kGaggle - 1) / kGaggle;
  a.last_plane = p.bit_plane_stop;
  a.last_stage = p.stage_stop + 1;
  a.no_ac = p.dc_stop;
  a.optimal_dc = p.optimal_dc;
  a.optimal_ac = p.optimal_ac;
  a.count = p.total_bytes != 0;
  a.fill = p.use_fill;
  a.limited = p.segment_bytes || p.total_bytes;
  a.word_bytes = static_cast<std::uint32_t>(p.word_bytes);

  d_in = DeviceBuffer<SegmentIn>(in.size());
  d_out = DeviceBuffer<SegmentOut>(in.size());
  d_summary = DeviceBuffer<Summary>(1);
  d_lengths = DeviceBuffer<std::uint32_t>(in.size());
  d_dc = DeviceBuffer<std::int32_t>(blocks);
  d_depth = DeviceBuffer<std::uint8_t>(blocks);
  d_sign = DeviceBuffer<std::uint64_t>(blocks);
  d_parameter = DeviceBuffer<std::int8_t>(std::size_t{2} * gaggle);
  summary = PinnedBuffer<Summary>(1);
  lengths = PinnedBuffer<std::uint32_t>(in.size());
  a.in = d_in.data();
  a.out = d_out.data();
  a.summary = d_summary.data();
  a.lengths = d_lengths.data();
  a.dc = d_dc.data();
  a.depth = d_depth.data();
  a.sign = d_sign.data();
  a.parameter = d_parameter.data();
  if (p.transpose) {
    const std::ptrdiff_t sample = sample_bytes(f);
    turned_stride = (width + 15) / 16 * 16 * sample;
    turned = DeviceBuffer<std::byte>(static_cast<std::size_t>(turned_stride) * static_cast<std::size_t>(height));
  }
  // Coefficients have a few bits more than samples, streams about as many. If a buffer turns out too small, the picture
  // is coded again.
  const std::uint64_t samples = blocks * 64;
  std::uint64_t room = samples * static_cast<std::uint64_t>(p.bits + 2) / 8 + blocks * 8 + in.size() * 64;
  if (p.segment_bytes) room = std::min<std::uint64_t>(room, std::uint64_t{p.segment_bytes + 64} * in.size());
  if (p.use_fill) room = std::uint64_t{p.segment_bytes + 64} * in.size();
  if (p.total_bytes) room = std::min(room, p.total_bytes + 64);
  make_room(std::min(ccsds122::kMaxPlanes, p.bits + 7), room);
}

void Ccsds122Encoder::State::make_room(int planes, std::uint64_t capacity) {
  CoderArgs& a = args;
  if (planes != a.planes) {
    a.planes = planes;
    const std::size_t n = static_cast<std::size_t>(planes), lists = static_cast<std::size_t>(list_count(planes));
    d_plane = {};
    d_note = {};
    d_plane = DeviceBuffer<std::uint64_t>(checked_mul(n, a.blocks));
    d_note = DeviceBuffer<std::uint32_t>(checked_mul(n, a.blocks));
    d_options = DeviceBuffer<std::uint8_t>(n * a.gaggles);
    d_pieces = DeviceBuffer<std::uint32_t>(lists * a.gaggles);
    d_raw_at = DeviceBuffer<std::uint32_t>((n + 1) * a.segments);
    if (a.count) {
      d_marks = DeviceBuffer<std::uint32_t>(lists * a.segments);
      d_counts = DeviceBuffer<std::uint32_t>(4 * n * a.segments);
    }
    a.plane = d_plane.data();
    a.note = d_note.data();
    a.options = d_options.data();
    a.pieces = d_pieces.data();
    a.raw_at = d_raw_at.data();
    a.marks = d_marks.data();
    a.counts = d_counts.data();
  }
  if (capacity > a.capacity) {
    d_stream = {};
    d_stream = DeviceBuffer<std::uint32_t>((capacity + 3) / 4 + 2);
    a.stream = d_stream.data();
    a.capacity = capacity;
  }
}

void Ccsds122Encoder::State::transform_picture(const Stream& stream) {
  DevicePicture p = picture;
  check(cudaMemsetAsync(d_summary.data(), 0, sizeof(Summary), stream.get()), "cudaMemsetAsync");
  if (check_range) {
    const ccsds122::SampleLimits limits(params.bits, params.is_signed);
    const dim3 grid((static_cast<unsigned>(p.width) + 127) / 128,
                    static_cast<unsigned>(std::min((p.height + 15) / 16, 4096)));
    const auto go = [&](auto kernel) {
      launch("check_kernel", kernel, grid, dim3(128), 0, stream.get(), p, static_cast<std::int32_t>(limits.low),
             static_cast<std::int32_t>(limits.high), d_summary.data());
    };
    switch (p.format) {
      case SampleType::kU8: go(check_kernel<std::uint8_t>); break;
      case SampleType::kS8: go(check_kernel<std::int8_t>); break;
      case SampleType::kU16: go(check_kernel<std::uint16_t>); break;
      case SampleType::kS16: go(check_kernel<std::int16_t>); break;
      default: go(check_kernel<std::int32_t>); break;
    }
  }
  if (params.transpose) {
    const MutableDevicePicture to{turned.data(), p.format, width, height, turned_stride};
    transpose_picture(p, to, stream);
    p = {turned.data(), p.format, width, height, turned_stride};
  }
  transform.forward(p, params.dwt, params.bits, stream);
}

void Ccsds122Encoder::State::code(const Stream& stream) {
  const CoderArgs& a = args;
  copy(d_in.data(), in.data(), in.size(), cudaMemcpyHostToDevice, stream);
  check(cudaMemsetAsync(d_out.data(), 0, d_out.size() * sizeof(SegmentOut), stream.get()), "cudaMemsetAsync");
  check(cudaMemsetAsync(d_stream.data(), 0, d_stream.size() * 4, stream.get()), "cudaMemsetAsync");
  if (a.count) check(cudaMemsetAsync(d_counts.data(), 0, d_counts.size() * 4, stream.get()), "cudaMemsetAsync");
  const auto blocks = [](std::uint64_t threads) {
    return dim3(static_cast<unsigned>((threads + kCoderThreads - 1) / kCoderThreads));
  };
  launch("gather_kernel", gather_kernel, blocks(a.blocks), dim3(kCoderThreads), 0, stream.get(), a);
  launch("measure_kernel", measure_kernel, blocks(std::uint64_t{kGaggle} * a.gaggles), dim3(kCoderThreads), 0,
         stream.get(), a);
  if (a.segment_gaggles <= 64 || a.gaggles <= 64)
    launch("layout_kernel", layout_kernel<32>, dim3(a.segments), dim3(32), 0, stream.get(), a);
  else
    launch("layout_kernel", layout_kernel<1024>, dim3(a.segments), dim3(1024), 0, stream.get(), a);
  if (!a.count || spread(stream)) {
    launch("offsets_kernel", offsets_kernel, dim3(1), dim3(kOffsetThreads), 0, stream.get(), a);
    launch("write_kernel", write_kernel, blocks(std::uint64_t{kGaggle} * a.gaggles), dim3(kCoderThreads), 0,
           stream.get(), a);
  }
  copy(summary.data(), d_summary.data(), 1, cudaMemcpyDeviceToHost, stream);
  copy(lengths.data(), d_lengths.data(), in.size(), cudaMemcpyDeviceToHost, stream);
}

/// Chooses the byte limits for total_bytes, as ccsds122_encode.cpp does on the CPU. False: the planes did not fit.
bool Ccsds122Encoder::State::spread(const Stream& stream) {
  const CoderArgs& a = args;
  const std::size_t planes = static_cast<std::size_t>(a.planes), lists = static_cast<std::size_t>(list_count(a.planes));
  std::vector<SegmentOut> out(in.size());
  std::vector<std::uint32_t> marks(d_marks.size()), counts(d_counts.size());
  copy(out.data(), d_out.data(), out.size(), cudaMemcpyDeviceToHost, stream);
  copy(marks.data(), d_marks.data(), marks.size(), cudaMemcpyDeviceToHost, stream);
  copy(counts.data(), d_counts.data(), counts.size(), cudaMemcpyDeviceToHost, stream);
  copy(summary.data(), d_summary.data(), 1, cudaMemcpyDeviceToHost, stream);
  stream.synchronize();
  if (summary.data()->depth > a.planes || summary.data()->faults) return false;

  const auto list_of = [&](int b) { return static_cast<std::size_t>(2 + 4 * (a.planes - 1 - b)); };
  const auto quantiser = [&](const SegmentOut& o) {
    return ccsds122::DcQuantiser(std::max(o.dc_depth, 1), o.ac_depth, shift[kLL3]);
  };
  const auto stage0 = [&](const SegmentOut& o, int b) { return b < quantiser(o).q && b >= shift[kLL3]; };
  // The lowest plane that is coded: two below the one in which the budget is spent.
  const int last = params.dc_stop ? ccsds122::kMaxPlanes + 1 : params.bit_plane_stop;
  int lowest = summary.data()->depth, extra = 2;
  std::uint64_t spent = 0;
  for (int b = lowest - 1; b >= last; --b) {
    if (spent > 8 * params.total_bytes && --extra < 0) break;
    lowest = b;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (b >= out[i].ac_depth) continue;
      const std::uint32_t* m = marks.data() + i * lists;
      const std::uint32_t before = b + 1 == out[i].ac_depth ? m[1] : m[list_of(b + 1) + 3];
      spent += m[list_of(b) + 3] - before - (stage0(out[i], b) ? in[i].blocks : 0);
    }
  }
  std::vector<std::vector<ccsds122::CutPoint>> points(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const SegmentOut& o = out[i];
    const std::uint32_t* m = marks.data() + i * lists;
    double gain = 0;
    points[i].push_back({m[0], gain});
    in[i].end_bits = m[0];
    if (params.dc_stop || params.bit_plane_stop >= o.ac_depth) continue;
    std::uint32_t at = m[1];
    for (int b = o.ac_depth - 1; b >= params.bit_plane_stop; --b) {
      const bool coded = b >= lowest;
      if (stage0(o, b)) {
        at += in[i].blocks;
        gain += ccsds122::stage_gain(0, b, in[i].blocks);
      }
      const int stages = b == params.bit_plane_stop ? params.stage_stop + 1 : 4;
      for (int stage = 0; stage < stages; ++stage) {
        if (coded) {
          at = m[list_of(b) + static_cast<std::size_t>(stage)];
          const std::size_t n = (i * planes + static_cast<std::size_t>(b)) * 4 + static_cast<std::size_t>(stage);
          gain += ccsds122::stage_gain(stage + 1, b, counts[n]);
        }
        points[i].push_back({at, gain});
      }
      if (!coded) break;
    }
    in[i].end_bits = at;
  }
  const std::vector<std::uint32_t> limits = ccsds122::allocate_bytes(points, params.total_bytes, params.word_bytes);
  for (std::size_t i = 0; i < in.size(); ++i) {
    ccsds122::SegmentHeader header = plan[i].header;
    header.dc_depth = 32;
    header.ac_depth = 0;
    header.byte_limit = in[i].byte_limit = limits[i];
    const std::vector<std::byte> bytes = ccsds122::write_header(header);
    std::memcpy(in[i].header, bytes.data(), bytes.size());
  }
  copy(d_in.data(), in.data(), in.size(), cudaMemcpyHostToDevice, stream);
  stream.synchronize();  // `in` is pageable and may change before the next picture
  return true;
}

Ccsds122Encoder::Ccsds122Encoder(int width, int height, SampleType format, const ccsds122::Params& params) {
  require(format != SampleType::kF32, ErrorKind::kBadArgument, "the encoder takes integer samples");
  ccsds122::check_parameters(view_of(width, height, format), params);
  state_ = std::make_unique<State>(width, height, format, params);
}
Ccsds122Encoder::~Ccsds122Encoder() = default;
Ccsds122Encoder::Ccsds122Encoder(Ccsds122Encoder&&) noexcept = default;
Ccsds122Encoder& Ccsds122Encoder::operator=(Ccsds122Encoder&&) noexcept = default;

void Ccsds122Encoder::start(const DevicePicture& picture, const Stream& stream) {
  start_transform(picture, stream);
  state_->code(stream);
}

void Ccsds122Encoder::start_transform(const DevicePicture& picture, const Stream& stream) {
  State& s = *state_;
  const bool turned = s.params.transpose;
  require(picture.format == s.format && picture.width == (turned ? s.height : s.width) &&
              picture.height == (turned ? s.width : s.height),
          ErrorKind::kBadArgument, "a picture of another size or type");
  s.picture = picture;
  s.transform_picture(stream);
}
void Ccsds122Encoder::start_coding(const Stream& stream) { state_->code(stream); }

void Ccsds122Encoder::finish(const Stream& stream) {
  State& s = *state_;
  for (;;) {
    stream.synchronize();
    const Summary& sum = *s.summary.data();
    require(!(sum.faults & kBadSample), ErrorKind::kBadArgument,
            "there are samples outside the range of " + std::to_string(s.params.bits) + " bits");
    require(sum.depth <= ccsds122::kMaxPlanes, ErrorKind::kBadArgument,
            "coefficients beyond 31 bits: lower the weights or the bit depth");
    const bool planes = sum.depth > s.args.planes;
    require(planes || !(sum.faults & kTooLong), ErrorKind::kBadArgument,
            "a segment takes more than 2^27 bytes; use smaller segments");
    if (!planes && !(sum.faults & kNoRoom)) break;
    s.make_room(std::max(s.args.planes, sum.depth), planes ? 0 : sum.total);
    start(s.picture, stream);
  }
  s.total = s.summary.data()->total;
  s.segment_bytes.assign(s.lengths.data(), s.lengths.data() + s.in.size());
}

const std::byte* Ccsds122Encoder::bytes() const { return reinterpret_cast<const std::byte*>(state_->d_stream.data()); }
std::size_t Ccsds122Encoder::size() const { return state_->total; }
const std::vector<std::uint32_t>& Ccsds122Encoder::segment_bytes() const { return state_->segment_bytes; }

}  // namespace trivelet::gpu
