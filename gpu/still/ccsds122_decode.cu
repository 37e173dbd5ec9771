// The decoder: its kernels, a file for each pass.
//
//   parse_kernel   a warp per segment. DC values, AC depths and stages 1 to 3 are read by its first lane, one codeword
//                  after the other, 32 blocks at a time that the warp has brought to shared memory; raw planes and
//                  stage 4 are read by all lanes at once, each at its own place. The bits come by a window that is
//                  loaded two words ahead.
//   place_kernel   a thread per block: planes to coefficients, coefficients to their places in the subbands
//   then the inverse transform (ccsds122_dwt.cu)
//
// Everything a damaged segment may do ends in the same state as on the CPU (ccsds122_parse.cpp): which planes and
// blocks are known is part of the result.
#include "gpu/still/ccsds122_decode.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "codec/still/ccsds122/ccsds122_segment.h"
#include "gpu/still/ccsds122_decode_parse.cuh"
#include "gpu/still/ccsds122_decode_place.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_decode;
using ccsds122::Damage;
using ccsds122::ParseEnd;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A device buffer that only grows.
template <class T>
T* at_least(DeviceBuffer<T>& buffer, std::size_t size) {
  if (buffer.size() < size) {
    buffer = {};
    buffer = DeviceBuffer<T>(size + size / 8);
  }
  return buffer.data();
}
template <class T>
T* at_least(PinnedBuffer<T>& buffer, std::size_t size) {
  if (buffer.size() < size) {
    buffer = {};
    buffer = PinnedBuffer<T>(size + size / 8);
  }
  return buffer.data();
}

}  // namespace

/// Memory of the segments of one parse(), into which SegmentData points.
struct ParsedBatch {
  std::uint64_t first_block = 0, first_plane = 0;
  std::uint32_t blocks = 0;
};

namespace {

// A segment with its blocks at `block` and its planes at `plane` of the arrays.
ccsds122_decode::PlaceJob place_job(const ccsds122::PlacedSegment& p, std::uint64_t block, std::uint64_t plane) {
  const ccsds122::SegmentHeader& h = *p.header;
  const ccsds122::SegmentData& d = *p.data;
  ccsds122_decode::PlaceJob j;
  const auto shift = ccsds122::band_shifts(h.shifts());
  for (int b = 0; b < kBands; ++b) j.shift[b] = static_cast<std::int8_t>(shift[static_cast<std::size_t>(b)]);
  j.first_block = p.first_block;
  j.blocks = h.blocks;
  j.dc_blocks = d.dc_blocks;
  j.dc_ahead = d.dc_ahead;
  j.dc_plane = d.dc_plane == 32 ? ccsds122::DcQuantiser(h.dc_depth, h.ac_depth, shift[kLL3]).q : d.dc_plane;
  j.last_plane = d.last_plane;
  j.partial = d.partial;
  j.refined_blocks = d.refined_blocks;
  j.partly_refined = d.partly_refined;
  j.has_planes = d.has_planes;
  j.real = h.dwt == ccsds122::Dwt::kFloat;
  j.block = block;
  j.plane = plane;
  return j;
}

// Lists the segments of a picture. Those that the host has parsed follow the others in the arrays, which `blocks` and
// `planes` then include.
std::vector<ccsds122_decode::PlaceJob> list_places(const ccsds122::PictureTask& task,
                                                   const std::vector<ParsedBatch>& parsed, std::uint64_t& blocks,
                                                   std::uint64_t& planes) {
  std::vector<ccsds122_decode::PlaceJob> places;
  for (const ccsds122::PlacedSegment& p : task.segments) {
    const ccsds122::SegmentHeader& h = *p.header;
    const ccsds122::SegmentData& d = *p.data;
    if (d.on_device >= 0) {
      const ParsedBatch& at = parsed[static_cast<std::size_t>(d.on_device)];
      places.push_back(place_job(p, at.first_block, at.first_plane));
    } else {
      places.push_back(place_job(p, blocks, planes));
      blocks += d.dc.size();
      if (d.has_planes) planes += std::uint64_t{h.blocks} * static_cast<std::uint64_t>(h.ac_depth);
    }
  }
  return places;
}

}  // namespace

struct Ccsds122Decoder::State {
  Stream stream;
  Event marks[2] = {Event(true), Event(true)};
  Times times;
  SegmentArrays arrays{};
  DeviceBuffer<std::uint64_t> d_stream, d_sign, d_significant, d_plane;
  DeviceBuffer<std::int32_t> d_dc;
  DeviceBuffer<std::uint8_t> d_depth, d_families;
  DeviceBuffer<std::uint32_t> d_options;
  DeviceBuffer<ccsds122_decode::ParseJob> d_jobs;
  DeviceBuffer<ccsds122_decode::ParseResult> d_results;
  DeviceBuffer<ccsds122_decode::PlaceJob> d_places;
  DeviceBuffer<PlaceTile> d_tiles;
  DeviceBuffer<std::byte> d_picture, d_turned;
  PinnedBuffer<std::byte> staging;
  std::unique_ptr<Ccsds122Transform> transform;
  std::vector<ParsedBatch> parsed;       ///< by SegmentData::on_device
  std::uint64_t blocks = 0, planes = 0;  ///< used of the arrays

  float elapsed() const {
    marks[1].synchronize();
    return marks[1].since(marks[0]);
  }

  /// Copies what the host has parsed behind the rest of the arrays, which grow with their contents.
  void upload(const ccsds122::PictureTask& task, const std::vector<ccsds122_decode::PlaceJob>& places,
              std::uint64_t all_blocks, std::uint64_t all_planes);
  /// Writes all segments of a picture into the bands of the transform.
  void place(const ccsds122::PictureTask& task);
  /// Transforms the bands into samples, in `staging`.
  const std::byte* inverse(const ccsds122::PictureTask& task, const MutableVolumeView& out);
};

Ccsds122Decoder::Ccsds122Decoder() : state_(std::make_unique<State>()) {}
Ccsds122Decoder::~Ccsds122Decoder() = default;
Ccsds122Decoder::Times Ccsds122Decoder::times() const { return state_->times; }

void Ccsds122Decoder::begin(std::span<const std::byte> bytes) {
  State& s = *state_;
  s.parsed.clear();
  s.blocks = s.planes = 0;
  const std::size_t words = bytes.size() / 8 + 2;
  s.arrays.stream = at_least(s.d_stream, words);
  s.arrays.stream_words = words;
  // Behind the last byte there are zeros (ccsds122::kReadPadding of them).
  check(cudaMemcpyAsync(s.d_stream.data(), bytes.data(), words * 8, cudaMemcpyHostToDevice, s.stream.get()),
        "cudaMemcpyAsync");
}

void Ccsds122Decoder::parse(std::span<ccsds122::ParseTask> tasks) {
  if (tasks.empty()) return;
  State& s = *state_;
  // Arrays lose their contents when they grow, so the segments of one stream are parsed in one call.
  require(s.parsed.empty(), ErrorKind::kInternal, "a stream is parsed once");
  std::vector<ccsds122_decode::ParseJob> jobs(tasks.size());
  std::uint64_t gaggles = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const ccsds122::SegmentHeader& h = *tasks[i].header;
    ccsds122_decode::ParseJob& j = jobs[i];
    j.start = tasks[i].bits.position;
    j.end = tasks[i].bits.end;
    j.block = s.blocks;
    j.plane = s.planes;
    j.gaggle = static_cast<std::uint32_t>(gaggles);
    j.blocks = h.blocks;
    j.dc_depth = h.dc_depth;
    j.ac_depth = h.ac_depth;
    j.stop_plane = h.bit_plane_stop;
    j.stop_stage = h.stage_stop + 1;
    j.dc_stop = h.dc_stop;
    const auto shift = ccsds122::band_shifts(h.shifts());
    for (int b = 0; b < kBands; ++b) j.shift[b] = static_cast<std::int8_t>(shift[static_cast<std::size_t>(b)]);
    tasks[i].data.on_device = static_cast<std::int32_t>(i);
    s.parsed.push_back({j.block, j.plane, h.blocks});
    s.blocks += h.blocks;
    s.planes += std::uint64_t{h.blocks} * static_cast<std::uint64_t>(h.ac_depth);
    gaggles += (h.blocks + 15) / 16;
  }
  const std::size_t n = s.blocks;
  s.arrays.dc = at_least(s.d_dc, n);
  s.arrays.depth = at_least(s.d_depth, n);
  s.arrays.families = at_least(s.d_families, n);
  s.arrays.sign = at_least(s.d_sign, n);
  s.arrays.significant = at_least(s.d_significant, n);
  s.arrays.plane = at_least(s.d_plane, s.planes);
  s.arrays.options = at_least(s.d_options, gaggles);
  at_least(s.d_jobs, jobs.size());
  at_least(s.d_results, jobs.size());
  copy(s.d_jobs.data(), jobs.data(), jobs.size(), cudaMemcpyHostToDevice, s.stream);
  s.marks[0].record(s.stream);
  launch("parse_kernel", parse_kernel, dim3(static_cast<unsigned>((jobs.size() + kParseWarps - 1) / kParseWarps)),
         dim3(32 * kParseWarps), 0, s.stream.get(), s.arrays, s.d_jobs.data(), s.d_results.data(),
         static_cast<std::uint32_t>(jobs.size()));
  s.marks[1].record(s.stream);
  std::vector<ccsds122_decode::ParseResult> results(jobs.size());
  copy(results.data(), s.d_results.data(), jobs.size(), cudaMemcpyDeviceToHost, s.stream);
  s.stream.synchronize();
  s.times.parse = s.elapsed();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const ccsds122_decode::ParseResult& r = results[i];
    ccsds122::ParseTask& t = tasks[i];
    t.end = static_cast<ParseEnd>(r.end);
    t.position = r.position;
    t.message = ccsds122::describe(static_cast<Damage>(r.damage), r.stage, r.plane);
    t.data.dc_plane = r.dc_plane;
    t.data.dc_blocks = r.dc_blocks;
    t.data.dc_ahead = r.dc_ahead;
    t.data.last_plane = r.last_plane;
    t.data.partial = r.partial != 0;
    t.data.refined_blocks = r.refined_blocks;
    t.data.partly_refined = r.partly_refined;
    t.data.dc_sum = r.dc_sum;
    t.data.has_planes = r.has_planes != 0;
  }
}

void Ccsds122Decoder::State::upload(const ccsds122::PictureTask& task,
                                    const std::vector<ccsds122_decode::PlaceJob>& places, std::uint64_t all_blocks,
                                    std::uint64_t all_planes) {
  const auto grow = [&](auto& buffer, std::size_t used, std::size_t size) {
    using T = std::remove_pointer_t<decltype(buffer.data())>;
    if (buffer.size() >= size) return buffer.data();
    DeviceBuffer<T> larger(size);
    copy(larger.data(), buffer.data(), used, cudaMemcpyDeviceToDevice, stream);
    stream.synchronize();
    buffer = std::move(larger);
    return buffer.data();
  };
  arrays.dc = grow(d_dc, blocks, all_blocks);
  arrays.depth = grow(d_depth, blocks, all_blocks);
  arrays.sign = grow(d_sign, blocks, all_blocks);
  arrays.plane = grow(d_plane, planes, all_planes);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ccsds122::SegmentData& d = *task.segments[i].data;
    const ccsds122_decode::PlaceJob& j = places[i];
    if (d.on_device >= 0 || d.dc.empty()) continue;
    copy(arrays.dc + j.block, d.dc.data(), d.dc.size(), cudaMemcpyHostToDevice, stream);
    copy(arrays.depth + j.block, d.depth.data(), d.depth.size(), cudaMemcpyHostToDevice, stream);
    if (!d.has_planes) continue;
    const std::size_t n = j.blocks;
    copy(arrays.sign + j.block, d.sign.get(), n, cudaMemcpyHostToDevice, stream);
    const std::size_t depth = static_cast<std::size_t>(task.segments[i].header->ac_depth);
    copy(arrays.plane + j.plane, d.planes.get(), n * depth, cudaMemcpyHostToDevice, stream);
  }
}

void Ccsds122Decoder::State::place(const ccsds122::PictureTask& task) {
  const DeviceBands& bands = transform->bands();
  std::uint64_t all_blocks = blocks, all_planes = planes;
  const std::vector<ccsds122_decode::PlaceJob> places = list_places(task, parsed, all_blocks, all_planes);
  if (all_blocks > blocks) upload(task, places, all_blocks, all_planes);
  std::vector<PlaceTile> tiles;
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::uint32_t m = 0; m < places[i].blocks; m += kPlaceThreads)
      tiles.push_back({static_cast<std::uint32_t>(i), m});
  at_least(d_places, places.size());
  at_least(d_tiles, tiles.size());
  copy(d_places.data(), places.data(), places.size(), cudaMemcpyHostToDevice, stream);
  copy(d_tiles.data(), tiles.data(), tiles.size(), cudaMemcpyHostToDevice, stream);
  const bool real = task.header.dwt == ccsds122::Dwt::kFloat;
  if (task.fill) {
    check(cudaMemsetAsync(bands.data[0], 0, transform->bytes(), stream.get()), "cudaMemsetAsync");
    const dim3 grid((static_cast<unsigned>(bands.blocks_wide) + 127) / 128,
                    static_cast<unsigned>(std::min(bands.blocks_high, 4096)));
    launch("fill_kernel", fill_kernel, grid, dim3(128), 0, stream.get(), bands, coefficient_bits(task.constant, real));
  }
  marks[0].record(stream);
  launch("place_kernel", place_kernel, dim3(static_cast<unsigned>(tiles.size())), dim3(kPlaceThreads), 0, stream.get(),
         arrays, d_places.data(), d_tiles.data(), bands, task.constant);
  marks[1].record(stream);
  stream.synchronize();  // the lists are pageable
  times.place = elapsed();
}

const std::byte* Ccsds122Decoder::State::inverse(const ccsds122::PictureTask& task, const MutableVolumeView& out) {
  const ccsds122::SegmentHeader& h = task.header;
  const int bytes = out.bytes_per_sample;
  const int width = h.transpose ? out.shape.height : out.shape.width;  // as coded
  const int height = h.transpose ? out.shape.width : out.shape.height;
  const auto stride_of = [&](int w) { return static_cast<std::ptrdiff_t>((w + 15) / 16 * 16) * bytes; };
  const SampleType format = sample_type_of(bytes, h.is_signed);
  MutableDevicePicture picture{nullptr, format, width, height, stride_of(width)};
  picture.data = at_least(d_picture, static_cast<std::size_t>(picture.row_stride) * static_cast<std::size_t>(height));
  marks[0].record(stream);
  transform->inverse(h.dwt, h.bits, task.low, task.high, picture, stream);
  if (h.transpose) {
    MutableDevicePicture turned{nullptr, format, height, width, stride_of(height)};
    turned.data = at_least(d_turned, static_cast<std::size_t>(turned.row_stride) * static_cast<std::size_t>(width));
    transpose_picture({picture.data, format, width, height, picture.row_stride}, turned, stream);
    picture = turned;
  }
  marks[1].record(stream);
  const std::size_t row = static_cast<std::size_t>(out.shape.width) * static_cast<std::size_t>(bytes);
  const std::size_t rows = static_cast<std::size_t>(out.shape.height);
  std::byte* samples = at_least(staging, row * rows);
  check(cudaMemcpy2DAsync(samples, row, picture.data, static_cast<std::size_t>(picture.row_stride), row, rows,
                          cudaMemcpyDeviceToHost, stream.get()),
        "cudaMemcpy2DAsync");
  stream.synchronize();
  times.transform = elapsed();
  return samples;
}

void Ccsds122Decoder::picture(const ccsds122::PictureTask& task, const MutableVolumeView& out, ThreadPool& pool,
                              ccsds122::StageSeconds& seconds) {
  State& s = *state_;
  auto start = std::chrono::steady_clock::now();
  if (!s.transform || s.transform->bands().blocks_wide != task.blocks_wide ||
      s.transform->bands().blocks_high != task.blocks_high) {
    s.transform.reset();
    s.transform = std::make_unique<Ccsds122Transform>(task.blocks_wide, task.blocks_high);
  }
  s.place(task);
  seconds.coder += seconds_since(start);

  start = std::chrono::steady_clock::now();
  const std::byte* samples = s.inverse(task, out);
  const std::size_t row = static_cast<std::size_t>(out.shape.width) * static_cast<std::size_t>(out.bytes_per_sample);
  pool.parallel_for((out.shape.height + 63) / 64, [&](int strip, int) {
    for (int y = 64 * strip; y < std::min(64 * strip + 64, out.shape.height); ++y)
      std::memcpy(out.row(0, y), samples + static_cast<std::size_t>(y) * row, row);
  });
  seconds.dwt += seconds_since(start);
}

}  // namespace trivelet::gpu
