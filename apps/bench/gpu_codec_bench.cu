// Measures the codec on a GPU: raw frames to chunks and back, with several GOPs in flight, and compares bytes and
// samples with the CPU's.

#include "apps/bench/gpu_codec_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <utility>

#include "codec/base/hash.h"
#include "codec/format/container.h"
#include "codec/motion/motion_field.h"
#include "codec/rate/rate_control.h"
#include "codec/threads/parallel.h"
#include "gpu/pipeline/pipeline.h"
#include "trivelet/cuda.h"

namespace trivelet::gpu {
namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

/// A parsed stream.
struct Packet {
  GopHeader header;
  std::vector<std::uint8_t> body;  // chunks and padding
};
struct Parsed {
  StreamHeader header;
  std::vector<Packet> packets;
};

Parsed parse(const std::vector<std::byte>& stream) {
  Parsed p;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(stream.data());
  for (std::size_t at = sizeof kSignature; at + kBoxHeaderBytes <= stream.size();) {
    Box box;
    require(parse_box_header(bytes + at, box), ErrorKind::kInternal, "bench: a damaged box");
    at += kBoxHeaderBytes;
    const auto length = static_cast<std::size_t>(box.length);
    if (box.is("Head")) p.header = parse_stream_header(bytes + at, length);
    if (box.is("Gop ")) {
      std::uint32_t n = 0;
      std::memcpy(&n, bytes + at, 4);
      Packet packet;
      packet.header = parse_gop_header(p.header, bytes + at, n);
      packet.body.assign(bytes + at + n, bytes + at + length);
      packet.body.resize(packet.body.size() + 16);
      p.packets.push_back(std::move(packet));
    }
    at += length;
  }
  return p;
}

// The geometries of the GOPs that packets hold.
class Geometries {
 public:
  explicit Geometries(const StreamHeader& header) : header_(header) {}
  const StreamGeometry& of(const GopHeader& gop) {
    auto& geometry = made_[GopKind(gop.frames, gop.motion_levels(), gop.key)];
    if (!geometry)
      geometry = std::make_unique<StreamGeometry>(header_.describe_gop(gop.motion_levels(), gop.key), gop.frames);
    return *geometry;
  }

 private:
  StreamHeader header_;
  std::map<GopKind, std::unique_ptr<StreamGeometry>> made_;
};

std::shared_ptr<const GopMotion> read_motion(const StreamHeader& header, const Packet& packet) {
  if (packet.header.motion.empty()) return nullptr;
  int level = packet.header.motion_levels();
  const auto motion = std::make_shared<GopMotion>(MotionPlaces(packet.header.frames, packet.header.key, level),
                                                  header.video.width, header.video.height);
  for (const ChunkEntry& e : packet.header.motion)
    decode_motion(packet.body.data() + e.offset, static_cast<std::size_t>(e.size), --level,
                  static_cast<int>(header.components.size()), *motion);
  return motion;
}

void read_packet(const StreamHeader& header, const Packet& packet, const StreamGeometry& geometry, LayeredGop& out) {
  out.frames = packet.header.frames;
  out.motion = read_motion(header, packet);
  out.follows = packet.header.key == GopKey::kOpen;
  out.step = packet.header.step;
  out.frame_gains = packet.header.frame_gains;
  out.components.resize(static_cast<std::size_t>(geometry.components()));
  for (int c = 0; c < geometry.components(); ++c) {
    auto& component = out.components[static_cast<std::size_t>(c)];
    component.grid = &geometry.grid(c);
    component.blocks.resize(static_cast<std::size_t>(component.grid->blocks()));
    for (auto& block : component.blocks) {
      block.resize(static_cast<std::size_t>(segment_count(*component.grid)));
      for (auto& s : block) {
        s.top = 0;
        s.parts.clear();
      }
    }
  }
  for (int l = 0; l < header.layers; ++l)
    for (int b = 0; b < out.temporal_bands(); ++b)
      for (int d = header.spatial_levels; d >= 0; --d) {
        const ChunkEntry& e = packet.header.chunk(header, l, b, d);
        read_chunk(header, packet.body.data() + e.offset, static_cast<std::size_t>(e.size), l, b, d, out);
      }
}

std::size_t write_chunks(const StreamHeader& header, const LayeredGop& layers, ThreadPool& pool,
                         std::vector<std::vector<std::uint8_t>>& chunks, std::vector<std::uint32_t>& sums) {
  const int distances = header.spatial_levels + 1, bands = layers.temporal_bands();
  chunks.resize(static_cast<std::size_t>(header.layers * bands * distances));
  sums.resize(chunks.size());
  pool.parallel_for(static_cast<int>(chunks.size()), [&](int i, int) {
    const auto n = static_cast<std::size_t>(i);
    chunks[n] = write_chunk(header, layers, i / distances / bands, i / distances % bands,
                            header.spatial_levels - i % distances);
    sums[n] = crc32c(chunks[n].data(), chunks[n].size());
  });
  std::size_t bytes = 0;
  for (const auto& c : chunks) bytes += c.size();
  return bytes;
}

StageTimes median(const std::vector<StageTimes>& all) {
  const auto of = [&](double StageTimes::*m) {
    std::vector<double> v;
    for (const StageTimes& t : all) v.push_back(t.*m);
    return median(v);
  };
  return {of(&StageTimes::upload), of(&StageTimes::kernels), of(&StageTimes::download)};
}

// Frames to chunks by the backend as an encoder has it, which searches for motion: as many GOPs at once as it likes.
CodecFigure bench_with_search(const VideoInfo& info, const std::vector<Gop>& clip, const EncoderParams& params,
                              const StreamHeader& header, const std::vector<GopChoices>& choices,
                              const Backend& backend, const CodecBenchOptions& options, ThreadPool& pool) {
  std::vector<Gop> originals;
  for (const Gop& g : clip) {
    originals.emplace_back(info, g.frames(), page_locked);
    originals.back().set_frames(g.frames());
    for (int c = 0; c < g.components(); ++c)
      std::memcpy(originals.back().plane(c).data, g.plane(c).data,
                  g.plane(c).shape.samples() * static_cast<std::size_t>(g.plane(c).bytes_per_sample));
  }
  BackendOptions backend_options;
  backend_options.threads = options.threads;
  backend_options.effort = params.effort;
  backend_options.lookahead = true;
  const std::unique_ptr<GopEncoder> coder = backend.make_encoder(header, backend_options);
  CodedGop coded;
  LayeredGop layers;
  std::vector<std::vector<std::uint8_t>> chunks;
  std::vector<std::uint32_t> sums;
  int in_flight = 0, most = 0;
  const auto take = [&] {
    if (in_flight == 0) return false;
    require(coder->pull(coded), ErrorKind::kInternal, "bench: a GOP is missing");
    --in_flight;
    if (header.profile == Profile::kDense) {
      RateControl control(header, coded);
      const double unit = header.lossless ? 1 : static_cast<double>(choices[0].step);
      control.divide(control.layers(control.complete(), unit * unit, header.layers), layers);
    } else {
      divide_by_plan(coded, layers);
    }
    write_chunks(header, layers, pool, chunks, sums);
    return true;
  };
  std::vector<double> times;
  for (int repeat = -1; repeat < options.repeat; ++repeat) {
    const int gops = header.profile == Profile::kDense ? 8 : std::max(options.gops, 3 * most);
    options.in_step();
    const double start = seconds();
    for (int i = 0; i < gops; ++i) {
      const std::size_t number = static_cast<std::size_t>(i) % originals.size();
      coder->wait_for_samples();
      coder->push(originals[number], choices[number]);
      ++in_flight;
      while (in_flight >= coder->depth()) take();
      most = std::max(most, in_flight);
    }
    while (take()) {
    }
    options.in_step();
    if (repeat >= 0) times.push_back((seconds() - start) / gops);
  }
  const double time = median(times);
  return {"searched", most, originals.front().frames() / time, 1e3 * time, {}};
}

}  // namespace

double CodecFigure::longest_stage() const { return std::max({alone.upload, alone.kernels, alone.download}); }

CodecFigures bench_codec(const VideoInfo& info, const std::vector<Gop>& clip, const EncoderParams& params,
                         const CodecBenchOptions& options) {
  CodecFigures figures;
  const int frames = clip.front().frames();
  ThreadPool pool(options.threads);

  // The streams: those to be decoded, and those that the CPU writes.
  const std::shared_ptr<const Backend> cuda = cuda_backend(options.device, 0);
  MemorySink sink;
  {
    Encoder encoder(info, params, sink, cuda.get());
    for (const Gop& g : clip) encoder.push(g);
    encoder.finish();
  }
  const Parsed parsed = parse(sink.bytes);
  const StreamHeader& header = parsed.header;
  std::size_t body = 0;
  for (const Packet& p : parsed.packets) body += p.body.size();
  figures.bits_per_pixel = 8.0 * static_cast<double>(body) /
                           (static_cast<double>(info.width) * info.height * frames * static_cast<double>(clip.size()));
  if (options.compare) {
    MemorySink reference;
    Encoder encoder(info, params, reference);
    for (const Gop& g : clip) encoder.push(g);
    encoder.finish();
    figures.identical = reference.bytes == sink.bytes;
    MemorySource a(sink.bytes.data(), sink.bytes.size()), b(sink.bytes.data(), sink.bytes.size());
    Decoder on_gpu(a, DecoderParams{}, cuda.get()), on_cpu(b, DecoderParams{});
    Gop x = on_gpu.make_gop(), y = on_cpu.make_gop();
    while (on_cpu.pull(y)) {
      if (!on_gpu.pull(x)) figures.identical = false;
      for (int c = 0; c < y.components(); ++c) {
        const VolumeView u = std::as_const(x).plane(c), v = std::as_const(y).plane(c);
        const std::size_t bytes = v.shape.samples() * static_cast<std::size_t>(v.bytes_per_sample);
        figures.identical = figures.identical && std::memcmp(u.data, v.data, bytes) == 0;
      }
    }
  }

  GopChoices choices;
  choices.step = parsed.packets.front().header.step;
  choices.frame_gains = parsed.packets.front().header.frame_gains;
  if (header.motion && header.profile == Profile::kDense && !header.lossless) choices.rounding_step = choices.step;
  if (header.motion) {
    std::vector<GopChoices> gop_choices;
    for (const Packet& p : parsed.packets) {
      gop_choices.push_back(choices);
      gop_choices.back().key = p.header.key;
      gop_choices.back().levels = p.header.motion_levels();
      gop_choices.back().motion = Motion::kOn;
    }
    figures.rows.push_back(bench_with_search(info, clip, params, header, gop_choices, *cuda, options, pool));
  }
  // Below, it was searched for already.
  std::vector<std::shared_ptr<const GopMotion>> motions;
  for (const Packet& p : parsed.packets) motions.push_back(read_motion(header, p));
  for (const int slots : options.slots) {
    const PipelineOptions pipeline_options{options.device, slots, 0, slots};
    {
      EncodePipeline pipeline(header, pipeline_options);
      // Page-locked originals.
      std::vector<PinnedBuffer<std::byte>> originals;
      for (const Gop& g : clip) {
        std::size_t bytes = 0;
        for (int c = 0; c < g.components(); ++c)
          bytes += g.plane(c).shape.samples() * static_cast<std::size_t>(g.plane(c).bytes_per_sample);
        originals.emplace_back(bytes);
        std::byte* to = originals.back().data();
        for (int c = 0; c < g.components(); ++c) {
          const std::size_t n = g.plane(c).shape.samples() * static_cast<std::size_t>(g.plane(c).bytes_per_sample);
          std::memcpy(to, g.plane(c).data, n);
          to += n;
        }
      }
      // What is left to the host runs beside the device, a thread per GOP; a slot is free again when it is done.
      struct Finishing {
        std::future<void> done;
        CodedGop coded;
        LayeredGop layers;
        PartPlaces places;
        std::vector<std::vector<std::uint8_t>> chunks;
        std::vector<std::uint32_t> sums;
      };
      const bool dense = header.profile == Profile::kDense;
      std::vector<Finishing> finishing(static_cast<std::size_t>(slots));
      std::vector<StageTimes> stages;
      std::size_t taken = 0;
      const auto finish = [&](Finishing& f, const EncodePipeline::Result& r) {
        unpack(header, r, f.places, f.coded);
        if (dense) {
          RateControl control(header, f.coded);
          const double unit = header.lossless ? 1 : static_cast<double>(choices.step);
          control.divide(control.layers(control.complete(), unit * unit, header.layers), f.layers);
          ThreadPool alone(1);
          write_chunks(header, f.layers, alone, f.chunks, f.sums);
        } else {
          divide_by_plan(f.coded, f.layers);
          write_chunks(header, f.layers, pool, f.chunks, f.sums);
        }
      };
      const auto take = [&] {
        EncodePipeline::Result r;
        if (!pipeline.collect(r)) return false;
        stages.push_back(r.times);
        Finishing& f = finishing[taken++ % finishing.size()];
        if (dense)
          f.done = std::async(std::launch::async, [&finish, &f, r] { finish(f, r); });
        else
          finish(f, r);
        return true;
      };
      // The dense profile's layers take the host longer than the device, so the host holds half of the slots.
      const int on_device = dense && slots > 2 ? slots - slots / 2 : slots;
      std::vector<double> times;
      for (int repeat = -1; repeat < options.repeat; ++repeat) {
        const int gops = repeat < 0 ? 2 * slots : std::max(options.gops, 6 * slots);
        taken = 0;
        options.in_step();
        const double start = seconds();
        for (int i = 0; i < gops; ++i) {
          if (pipeline.in_flight() == on_device) take();
          Finishing& f = finishing[static_cast<std::size_t>(i) % finishing.size()];
          if (f.done.valid()) f.done.get();
          const std::size_t number = static_cast<std::size_t>(i) % originals.size();
          pipeline.next_gop();
          pipeline.submit(frames, choices, originals[number].data(), motions[number].get());
        }
        while (take()) {
        }
        for (Finishing& f : finishing)
          if (f.done.valid()) f.done.get();
        options.in_step();
        if (repeat >= 0) times.push_back((seconds() - start) / gops);
        if (repeat < 0) stages.clear();
      }
      CodecFigure f{"encode", slots, frames / median(times), 1e3 * median(times), median(stages)};
      figures.rows.push_back(f);
      figures.device_bytes = std::max(figures.device_bytes, pipeline.device_bytes());
    }
    {
      DecodePipeline pipeline(header, {}, pipeline_options, pool);
      Geometries geometries(header);
      std::vector<StageTimes> stages;
      const auto take = [&] {
        DecodePipeline::Result r;
        if (!pipeline.collect(r)) return false;
        stages.push_back(r.times);
        require(r.damage.empty(), ErrorKind::kInternal, "bench: a damaged block");
        pipeline.give_back(std::move(r.frames));
        return true;
      };
      std::vector<double> times;
      // Meanwhile threads read the chunks of the next GOPs, one thread for each GOP.
      constexpr int kAhead = 12;
      LayeredGop ahead[kAhead];
      std::future<void> reading[kAhead];
      for (int repeat = -1; repeat < options.repeat; ++repeat) {
        const int gops = repeat < 0 ? 2 * slots : std::max(options.gops, 6 * slots);
        options.in_step();
        const double start = seconds();
        const auto read = [&](int i) {
          if (i >= gops) return;
          const Packet& packet = parsed.packets[static_cast<std::size_t>(i) % parsed.packets.size()];
          const StreamGeometry& geometry = geometries.of(packet.header);
          reading[i % kAhead] =
              std::async(std::launch::async, [&, i] { read_packet(header, packet, geometry, ahead[i % kAhead]); });
        };
        for (int i = 0; i < kAhead; ++i) read(i);
        for (int i = 0; i < gops; ++i) {
          reading[i % kAhead].get();
          if (pipeline.in_flight() == slots) take();
          pipeline.submit(ahead[i % kAhead]);
          read(i + kAhead);
        }
        while (take()) {
        }
        options.in_step();
        if (repeat >= 0) times.push_back((seconds() - start) / gops);
        if (repeat < 0) stages.clear();
      }
      figures.device_bytes = std::max(figures.device_bytes, pipeline.device_bytes());
      figures.rows.push_back({"decode", slots, frames / median(times), 1e3 * median(times), median(stages)});
    }
  }
  // Stages are a GOP's own when it is alone.
  for (CodecFigure& f : figures.rows)
    for (const CodecFigure& alone : figures.rows)
      if (alone.slots == 1 && alone.way == f.way) f.alone = alone.alone;
  return figures;
}

}  // namespace trivelet::gpu
