// trivelet ccsds: CCSDS 122.0-B-2 still images: encode, decode, info, bench.

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "apps/ccsds_image.h"
#include "apps/json.h"
#include "codec/still/ccsds122.h"

namespace trivelet::cli {

namespace {

using ccsds122::Dwt;
using ccsds122::SegmentReport;
using ccsds122::SegmentState;

struct EncodeOptions {
  std::string input, output, index;
  StillInput reading;
  std::string dwt = "integer";
  bool lossless = false;
  double bpp = 0;
  std::uint32_t segment_bytes = 0;
  int bit_plane_stop = 0;
  int stage_stop = 4;
  bool dc_stop = false;
  bool fill = false;
  std::uint32_t segment_size = 0;
  bool strip = false;
  bool frame = false;
  bool transpose = false;
  int word_bytes = 1;
  std::string weights;
  std::string selection = "optimal";
  bool every_header = false;
};

struct DecodeOptions {
  std::string input, output, index;
  bool strict = false;
};

struct InfoOptions {
  std::string input;
  bool json = false;
};

struct BenchOptions {
  std::string input;
  StillInput reading;
  int size = 4096;
  int repeat = 5;
  int segment_size = 256;
  bool json = false;
};

std::uint64_t blocks_of(int size) { return static_cast<std::uint64_t>((size + 7) / 8); }

ccsds122::Params make_params(const EncodeOptions& o, const StillImage& image, const Common& common) {
  ccsds122::Params p;
  p.dwt = o.dwt == "float" ? Dwt::kFloat : Dwt::kInteger;
  require(!o.lossless || p.dwt == Dwt::kInteger, ErrorKind::kBadArgument, "--lossless needs --dwt integer");
  p.bits = image.bits;
  p.is_signed = image.is_signed;
  p.transpose = o.transpose;
  p.word_bytes = o.word_bytes;
  if (!o.weights.empty()) {
    std::string digits;
    for (const char c : o.weights)
      if (c != ',' && c != ' ') digits += c;
    require(digits.size() == 10 && digits.find_first_not_of("0123") == std::string::npos, ErrorKind::kBadArgument,
            "--custom-weights takes ten digits 0..3 in the order HH1 HL1 LH1 HH2 HL2 LH2 HH3 HL3 LH3 LL3, not '" +
                o.weights + "'");
    p.custom_weights = true;
    for (std::size_t i = 0; i < 10; ++i) p.weights[i] = static_cast<std::uint8_t>(digits[i] - '0');
  }
  const std::uint64_t across = blocks_of(o.transpose ? image.height : image.width);
  const std::uint64_t all = blocks_of(image.width) * blocks_of(image.height);
  std::uint64_t blocks = o.segment_size ? o.segment_size : 256;
  if (o.strip) blocks = across;
  if (o.frame) blocks = std::min<std::uint64_t>(all, ccsds122::kMaxSegmentBlocks);
  p.segment_blocks = static_cast<std::uint32_t>(o.segment_size ? blocks : std::max<std::uint64_t>(blocks, 16));
  p.optimal_dc = p.optimal_ac = o.selection == "optimal";
  p.every_header = o.every_header;
  p.dc_stop = o.dc_stop;
  p.bit_plane_stop = o.bit_plane_stop;
  p.stage_stop = o.stage_stop - 1;
  p.segment_bytes = o.segment_bytes;
  p.use_fill = o.fill;
  if (o.bpp > 0)
    p.total_bytes = static_cast<std::uint64_t>(o.bpp * static_cast<double>(image.width) * image.height / 8);
  p.simd = parse_simd(common.simd);
  return p;
}

void write_file(const std::string& path, const std::vector<std::byte>& bytes, bool overwrite) {
  io::OutputFile file(path, overwrite);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

int run_encode(const EncodeOptions& o, const Common& common) {
  const StillImage image = read_still(o.input, o.reading, common.threads);
  const ccsds122::Params params = make_params(o, image, common);
  ThreadPool pool(common.threads);
  const ccsds122::Encoded e = ccsds122::encode(image.view(), params, pool);
  write_file(o.output, e.bytes, common.overwrite);
  if (!o.index.empty()) write_file(o.index, ccsds122::write_index(e.segment_bytes), common.overwrite);
  const double samples = static_cast<double>(image.width) * image.height;
  spdlog::info("{}x{}, {} bits: {} bytes in {} segments, {:.4f} bits per pixel, {:.1f} Mpixel/s", image.width,
               image.height, image.bits, e.bytes.size(), e.segment_bytes.size(),
               8 * static_cast<double>(e.bytes.size()) / samples, samples / 1e6 / (e.seconds.dwt + e.seconds.coder));
  return kExitDone;
}

const char* state_name(SegmentState s) {
  switch (s) {
    case SegmentState::kComplete: return "complete";
    case SegmentState::kCut: return "cut";
    case SegmentState::kDamaged: return "damaged";
    case SegmentState::kMissing: return "missing";
  }
  return "?";
}

int run_decode(const DecodeOptions& o, const Common& common) {
  const std::vector<std::byte> stream = read_bytes(o.input);
  ThreadPool pool(common.threads);
  ccsds122::DecodeParams params;
  params.simd = parse_simd(common.simd);
  params.keep_damaged = !o.strict;
  std::vector<std::uint32_t> lengths;
  if (!o.index.empty()) lengths = ccsds122::read_index(read_bytes(o.index));
  params.segment_bytes = lengths;
  const ccsds122::Decoded d = ccsds122::decode(stream, params, pool);
  StillImage image;
  image.width = d.width;
  image.height = d.height;
  image.bits = d.bits;
  image.is_signed = d.is_signed;
  image.bytes = d.samples;
  write_still(o.output, image, common.overwrite);
  for (const SegmentReport& s : d.segments)
    if (s.state != SegmentState::kComplete)
      spdlog::warn("segment {} at byte {} is {}: {}", s.header.count, s.offset, state_name(s.state), s.message);
  if (!d.ended) spdlog::warn("the stream ends before its last segment");
  if (d.trailing_bytes) spdlog::warn("{} bytes after the last segment were ignored", d.trailing_bytes);
  const double samples = static_cast<double>(d.width) * d.height;
  spdlog::info("{}x{}, {} bits{}: {:.1f} Mpixel/s", d.width, d.height, d.bits, d.is_signed ? " signed" : "",
               samples / 1e6 / (d.seconds.dwt + d.seconds.coder));
  return d.intact() ? kExitDone : kExitBadStream;
}

// ----------------------------------------------------------------------------------------------------------- info

void put_header(Json& json, const ccsds122::SegmentHeader& h, bool all) {
  json.member("start", h.start);
  json.member("end", h.end);
  json.member("count", static_cast<int>(h.count));
  json.member("bit_depth_dc", h.dc_depth);
  json.member("bit_depth_ac", h.ac_depth);
  if (h.end) json.member("pad_rows", h.pad_rows);
  if (all || h.part2) {
    json.member("seg_byte_limit", h.byte_limit ? h.byte_limit : ccsds122::kMaxSegmentBytes);
    json.member("dc_stop", h.dc_stop);
    json.member("bit_plane_stop", h.bit_plane_stop);
    json.member("stage_stop", h.stage_stop + 1);
    json.member("use_fill", h.use_fill);
  }
  if (all || h.part3) {
    json.member("segment_size", h.blocks);
    json.member("optimal_dc", h.optimal_dc);
    json.member("optimal_ac", h.optimal_ac);
  }
  if (all || h.part4) {
    json.member("dwt", h.dwt == Dwt::kInteger ? "integer" : "float");
    json.member("signed", h.is_signed);
    json.member("bits", h.bits);
    json.member("image_width", h.width);
    json.member("transpose", h.transpose);
    json.member("word_bytes", h.word_bytes);
    json.member("custom_weights", h.custom_weights);
    json.begin_array("weights");
    for (const int w : h.shifts()) json.value(w);
    json.end_array();
  }
}

int run_info(const InfoOptions& o, const Common& common) {
  const std::vector<std::byte> stream = read_bytes(o.input);
  ThreadPool pool(1);
  ccsds122::DecodeParams params;
  params.simd = parse_simd(common.simd);
  const std::vector<SegmentReport> segments = ccsds122::inspect(stream, params, pool);
  const ccsds122::SegmentHeader& h = segments.front().header;
  std::uint64_t blocks = 0;
  bool intact = true;
  for (const SegmentReport& s : segments) {
    blocks += s.header.blocks;
    intact = intact && s.state == SegmentState::kComplete;
  }
  intact = intact && segments.back().header.end;
  const std::uint64_t across = blocks_of(h.width);
  int width = h.width, height = static_cast<int>((blocks + across - 1) / across * 8) - segments.back().header.pad_rows;
  if (h.transpose) std::swap(width, height);
  const double bpp = 8 * static_cast<double>(stream.size()) / (static_cast<double>(width) * height);
  if (o.json) {
    Json json;
    json.begin_object();
    json.member("file", o.input);
    json.member("type", "ccsds122");
    json.member("bytes", stream.size());
    json.member("width", width);
    json.member("height", height);
    json.member("bits_per_pixel", bpp);
    json.member("intact", intact);
    json.begin_object("first_header");
    put_header(json, h, true);
    json.end_object();
    json.begin_array("segments");
    for (const SegmentReport& s : segments) {
      json.begin_object();
      json.member("offset", s.offset);
      json.member("bytes", s.bytes);
      json.member("blocks", s.header.blocks);
      json.member("first_block", s.first_block);
      json.member("state", state_name(s.state));
      if (!s.message.empty()) json.member("message", s.message);
      json.member("limited", s.limited);
      json.member("last_plane", s.last_plane);
      put_header(json, s.header, false);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    fmt::print("{}", json.text());
  } else {
    fmt::print("{:<12} {}\n", "file", o.input);
    fmt::print("{:<12} {}x{}, {} bits {}{}\n", "picture", width, height, h.bits, h.is_signed ? "signed" : "unsigned",
               h.transpose ? ", coded transposed" : "");
    fmt::print("{:<12} {} bytes, {:.4f} bits per pixel\n", "size", stream.size(), bpp);
    fmt::print("{:<12} {} DWT, {} segments of {} blocks, words of {} bytes{}\n", "coding",
               h.dwt == Dwt::kInteger ? "integer" : "float", segments.size(), h.blocks, h.word_bytes,
               h.custom_weights ? ", custom weights" : "");
    fmt::print("{:<12} {}\n", "state", intact ? "complete" : "damaged or cut");
    if (common.verbose) {
      fmt::print("\n{:>7} {:>12} {:>9} {:>8} {:>4} {:>4} {:>6} {}\n", "segment", "offset", "bytes", "blocks", "DC",
                 "AC", "plane", "state");
      for (std::size_t i = 0; i < segments.size(); ++i) {
        const SegmentReport& s = segments[i];
        fmt::print("{:>7} {:>12} {:>9} {:>8} {:>4} {:>4} {:>6} {}{}\n", i, s.offset, s.bytes, s.header.blocks,
                   s.header.dc_depth, s.header.ac_depth, s.last_plane, state_name(s.state),
                   s.message.empty() ? "" : ": " + s.message);
      }
    }
  }
  return intact ? kExitDone : kExitBadStream;
}

// ---------------------------------------------------------------------------------------------------------- bench

/// Something like a photograph: waves at every scale and a little noise.
StillImage synthetic_image(int size) {
  StillImage image;
  image.width = image.height = size;
  image.bits = 8;
  image.bytes.resize(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
  std::vector<float> wave(static_cast<std::size_t>(size) * 4);
  for (std::size_t i = 0; i < wave.size(); ++i) {
    const auto x = static_cast<float>(i);
    wave[i] = 30 * std::sin(x / 97) + 16 * std::sin(x / 23 + 1) + 6 * std::sin(x / 5 + 2);
  }
  std::uint32_t state = 1;
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      state = state * 1664525U + 1013904223U;
      const auto at = [&](int i) { return wave[static_cast<std::size_t>(i)]; };
      const float v = 128 + at(x + y) + at(2 * size + x - y) * 0.7F + static_cast<float>(state >> 29);
      image.bytes[static_cast<std::size_t>(y) * static_cast<std::size_t>(size) + static_cast<std::size_t>(x)] =
          static_cast<std::byte>(std::clamp(static_cast<int>(v), 0, 255));
    }
  return image;
}

struct Timing {
  std::string name;
  int threads = 1;
  double encode = 1e30, decode = 1e30, decode_indexed = 1e30;
  ccsds122::StageSeconds encode_stages, decode_stages;
  std::size_t bytes = 0;
};

Timing time_codec(const StillImage& image, const std::string& name, const ccsds122::Params& params, int threads,
                  int repeat) {
  using Clock = std::chrono::steady_clock;
  ThreadPool pool(threads);
  Timing t;
  t.name = name;
  t.threads = pool.threads();
  for (int i = 0; i < repeat; ++i) {
    auto start = Clock::now();
    const ccsds122::Encoded e = ccsds122::encode(image.view(), params, pool);
    const double encode = std::chrono::duration<double>(Clock::now() - start).count();
    if (encode < t.encode) {
      t.encode = encode;
      t.encode_stages = e.seconds;
    }
    t.bytes = e.bytes.size();
    ccsds122::DecodeParams dp;
    dp.simd = params.simd;
    for (const bool indexed : {false, true}) {
      if (indexed) dp.segment_bytes = e.segment_bytes;
      start = Clock::now();
      const ccsds122::Decoded d = ccsds122::decode(e.bytes, dp, pool);
      const double decode = std::chrono::duration<double>(Clock::now() - start).count();
      require(d.intact() && d.width == image.width && d.height == image.height, ErrorKind::kMismatch,
              "the stream just written does not decode");
      if (params.dwt == Dwt::kInteger)
        require(d.samples == image.bytes, ErrorKind::kMismatch, "the lossless stream does not decode to the picture");
      if (indexed) {
        t.decode_indexed = std::min(t.decode_indexed, decode);
      } else if (decode < t.decode) {
        t.decode = decode;
        t.decode_stages = d.seconds;
      }
    }
  }
  return t;
}

int run_bench(const BenchOptions& o, const Common& common) {
  const StillImage image = o.input.empty() ? synthetic_image(o.size) : read_still(o.input, o.reading, common.threads);
  const double mpixel = static_cast<double>(image.width) * image.height / 1e6;
  std::vector<Timing> timings;
  std::vector<int> counts{1};
  if (common.threads != 1) counts.push_back(common.threads);
  for (const int threads : counts) {
    ccsds122::Params p;
    p.bits = image.bits;
    p.is_signed = image.is_signed;
    p.segment_blocks = static_cast<std::uint32_t>(o.segment_size);
    p.simd = parse_simd(common.simd);
    timings.push_back(time_codec(image, "integer lossless", p, threads, o.repeat));
    p.dwt = Dwt::kFloat;
    p.total_bytes = static_cast<std::uint64_t>(mpixel * 1e6 / 8);
    timings.push_back(time_codec(image, "float 1 bpp", p, threads, o.repeat));
  }
  const auto share = [](const ccsds122::StageSeconds& s) { return s.dwt / (s.dwt + s.coder); };
  if (o.json) {
    Json json;
    json.begin_object();
    json.member("width", image.width);
    json.member("height", image.height);
    json.member("bits", image.bits);
    json.member("segment_size", o.segment_size);
    json.member("simd", to_string(resolve_simd(parse_simd(common.simd))));
    json.begin_array("cases");
    for (const Timing& t : timings) {
      json.begin_object();
      json.member("name", t.name);
      json.member("threads", t.threads);
      json.member("bytes", t.bytes);
      json.member("encode_mpixel_s", mpixel / t.encode);
      json.member("encode_dwt_mpixel_s", mpixel / t.encode_stages.dwt);
      json.member("encode_coder_mpixel_s", mpixel / t.encode_stages.coder);
      json.member("encode_dwt_share", share(t.encode_stages));
      json.member("decode_mpixel_s", mpixel / t.decode);
      json.member("decode_dwt_mpixel_s", mpixel / t.decode_stages.dwt);
      json.member("decode_coder_mpixel_s", mpixel / t.decode_stages.coder);
      json.member("decode_dwt_share", share(t.decode_stages));
      json.member("decode_indexed_mpixel_s", mpixel / t.decode_indexed);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    fmt::print("{}", json.text());
    return kExitDone;
  }
  fmt::print("{}x{}, {} bits, segments of {} blocks, {}; Mpixel/s, best of {}\n", image.width, image.height, image.bits,
             o.segment_size, to_string(resolve_simd(parse_simd(common.simd))), o.repeat);
  fmt::print("{:<18} {:>7} {:>6} | {:>8} {:>7} {:>7} {:>9} | {:>8} {:>7} {:>7} {:>9} {:>10}\n", "case", "threads",
             "bpp", "encode", "DWT", "coder", "DWT share", "decode", "DWT", "coder", "DWT share", "with index");
  for (const Timing& t : timings)
    fmt::print(
        "{:<18} {:>7} {:>6.3f} | {:>8.1f} {:>7.1f} {:>7.1f} {:>8.1f}% | {:>8.1f} {:>7.1f} {:>7.1f} {:>8.1f}% "
        "{:>10.1f}\n",
        t.name, t.threads, 8 * static_cast<double>(t.bytes) / (mpixel * 1e6), mpixel / t.encode,
        mpixel / t.encode_stages.dwt, mpixel / t.encode_stages.coder, 100 * share(t.encode_stages), mpixel / t.decode,
        mpixel / t.decode_stages.dwt, mpixel / t.decode_stages.coder, 100 * share(t.decode_stages),
        mpixel / t.decode_indexed);
  return kExitDone;
}

// -------------------------------------------------------------------------------------------------------- options

Action define_ccsds_encode(CLI::App& app, Common& common) {
  auto o = std::make_shared<EncodeOptions>();
  app.add_option("IN", o->input, "Picture: .pgm, .raw, or anything FFmpeg reads (.png, .tif)")->required();
  app.add_option("OUT", o->output, "Stream to write (.c122)")->required();
  app.add_option("--dwt", o->dwt, "Wavelet: integer (lossless possible) or float")
      ->check(CLI::IsMember({"integer", "float"}))
      ->capture_default_str();
  auto* lossless = app.add_flag("--lossless", o->lossless, "Code everything: the default with the integer DWT");
  auto* bpp = app.add_option("--bpp", o->bpp, "Bits per pixel of the whole stream, spread over the segments by need")
                  ->check(CLI::PositiveNumber);
  auto* bytes = app.add_option("--segment-bytes", o->segment_bytes, "SegByteLimit: most bytes of every segment");
  app.add_option("--bit-plane-stop", o->bit_plane_stop, "Lowest bit plane to code")->check(CLI::Range(0, 31));
  app.add_option("--stage-stop", o->stage_stop, "Last stage of that plane")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  app.add_flag("--dc-stop", o->dc_stop, "Code the DC values only");
  app.add_flag("--fill", o->fill, "Pad every segment with zeros to --segment-bytes")->needs(bytes);
  lossless->excludes(bpp)->excludes(bytes);
  bpp->excludes(bytes);
  auto* size = app.add_option("--segment-size", o->segment_size, "Blocks of 8x8 per segment, 16..1048576 (default 256)")
                   ->check(CLI::Range(16, 1 << 20));
  auto* strip = app.add_flag("--strip", o->strip, "One row of blocks per segment");
  auto* frame = app.add_flag("--frame", o->frame, "The whole picture in one segment");
  size->excludes(strip)->excludes(frame);
  strip->excludes(frame);
  app.add_flag("--transpose", o->transpose, "Code the transposed picture");
  app.add_option("--word-bytes", o->word_bytes, "Coded word length")->check(CLI::Range(1, 8))->capture_default_str();
  app.add_option("--custom-weights", o->weights,
                 "Weight exponents: ten digits 0..3, HH1 HL1 LH1 HH2 HL2 LH2 HH3 HL3 LH3 LL3");
  app.add_option("--opt", o->selection, "Choice of DC and AC-depth codes")
      ->check(CLI::IsMember({"heuristic", "optimal"}))
      ->capture_default_str();
  app.add_flag("--all-headers", o->every_header, "All header parts in every segment");
  app.add_option("--index", o->index, "Also write the segment lengths to this file (for parallel decoding)");
  add_still_input_options(app, o->reading);
  add_work_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_encode(*o, common); };
}

Action define_ccsds_decode(CLI::App& app, Common& common) {
  auto o = std::make_shared<DecodeOptions>();
  app.add_option("IN", o->input, "Stream; - = standard input")->required();
  app.add_option("OUT", o->output, "Picture: .pgm, .raw (little-endian), .png")->required();
  app.add_option("--index", o->index, "Segment lengths written by the encoder");
  app.add_flag("--strict", o->strict, "Fail at the first damaged segment, write nothing");
  add_work_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  app.footer("Damaged and missing segments are filled and reported; the exit code is then 4.");
  return [o, &common] { return run_decode(*o, common); };
}

Action define_ccsds_info(CLI::App& app, Common& common) {
  auto o = std::make_shared<InfoOptions>();
  app.add_option("IN", o->input, "Stream; - = standard input")->required();
  app.add_flag("--json", o->json, "Print JSON, with every segment and header");
  add_log_options(app, common);
  return [o, &common] { return run_info(*o, common); };
}

Action define_ccsds_bench(CLI::App& app, Common& common) {
  auto o = std::make_shared<BenchOptions>();
  app.add_option("IN", o->input, "Picture; default: a synthetic one");
  app.add_option("--side", o->size, "Side of the synthetic picture")
      ->check(CLI::Range(64, 32768))
      ->capture_default_str();
  app.add_option("--repeat", o->repeat, "Best of so many runs")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--segment-size", o->segment_size, "Blocks per segment")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  app.add_flag("--json", o->json, "Print JSON");
  add_still_input_options(app, o->reading);
  add_work_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_bench(*o, common); };
}

}  // namespace

Action define_ccsds(CLI::App& app, Common& common) {
  struct Command {
    const char* name;
    const char* help;
    Action (*define)(CLI::App&, Common&);
  };
  static constexpr std::array<Command, 4> kCommands = {{
      {"encode", "Encode a greyscale picture into a CCSDS 122.0-B-2 stream", define_ccsds_encode},
      {"decode", "Decode a stream into a picture", define_ccsds_decode},
      {"info", "List the segments and headers of a stream", define_ccsds_info},
      {"bench", "Time the stages in memory and check the result", define_ccsds_bench},
  }};
  app.require_subcommand(1);
  auto actions = std::make_shared<std::vector<std::pair<CLI::App*, Action>>>();
  for (const Command& c : kCommands) {
    CLI::App* command = app.add_subcommand(c.name, c.help);
    actions->emplace_back(command, c.define(*command, common));
    command->set_help_flag("-h,--help", "This help")->group("Common");
  }
  return [actions] {
    for (const auto& [command, action] : *actions)
      if (command->parsed()) return action();
    return kExitUsage;
  };
}

}  // namespace trivelet::cli
