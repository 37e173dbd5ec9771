// trivelet ccsds: CCSDS 122.0-B-2 still images: encode, decode, info. compare and bench are in ccsds_compare.cpp and
// apps/bench/ccsds_bench.cpp.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/still/ccsds.h"
#include "apps/still/ccsds_image.h"
#include "apps/still/still_codec.h"
#include "codec/still/ccsds122/ccsds122.h"

namespace trivelet::cli {

namespace {

using ccsds122::Dwt;
using ccsds122::SegmentReport;
using ccsds122::SegmentState;

struct EncodeOptions {
  std::vector<std::string> files;
  std::string index, device = "auto";
  CcsdsInput reading;
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
  std::vector<std::string> files;
  std::string index, device = "auto", extension = "pgm";
  bool strict = false;
};

struct InfoOptions {
  std::string input;
  bool json = false;
};

std::uint64_t blocks_of(int size) { return static_cast<std::uint64_t>((size + 7) / 8); }

ccsds122::Params make_params(const EncodeOptions& o, const CcsdsImage& image, const Common& common) {
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
  FileSink file(path, overwrite);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

int run_encode(const EncodeOptions& o, const Common& common) {
  const std::vector<FileJob> jobs = make_file_jobs(o.files, ".c122");
  require(jobs.size() == 1 || o.index.empty(), ErrorKind::kBadArgument, "--index is for one picture");
  const DeviceChoice device = choose_device(o.device);
  run_file_jobs(jobs, device, common.threads, [&](const FileJob& job, Ccsds122Codec& codec) {
    const CcsdsImage image = read_ccsds_image(job.input, o.reading, common);
    const ccsds122::Params params = make_params(o, image, common);
    const ccsds122::Encoded e = codec.encode(image.view(), params);
    write_file(job.output, e.bytes, common.overwrite);
    if (!o.index.empty()) write_file(o.index, ccsds122::write_index(e.segment_bytes), common.overwrite);
    const double samples = static_cast<double>(image.width) * image.height;
    log::info("{}{}x{}, {} bits: {} bytes in {} segments, {:.4f} bits per pixel, {:.1f} Mpixel/s",
              jobs.size() > 1 ? job.output + ": " : "", image.width, image.height, image.bits, e.bytes.size(),
              e.segment_bytes.size(), 8 * static_cast<double>(e.bytes.size()) / samples,
              samples / 1e6 / (e.seconds.dwt + e.seconds.coder));
  });
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

/// Decodes a stream into job.output, and says what is damaged; `name` of the stream, in messages. False = not intact.
bool decode_stream(const std::vector<std::byte>& stream, const FileJob& job, const std::string& name,
                   const ccsds122::DecodeParams& params, Ccsds122Codec& codec, const Common& common) {
  const ccsds122::Decoded d = codec.decode(stream, params);
  write_ccsds_image(job.output, image_of(d), common.overwrite);
  for (const SegmentReport& s : d.segments)
    if (s.state != SegmentState::kComplete)
      log::warn("{}segment {} at byte {} is {}: {}", name, s.header.count, s.offset, state_name(s.state), s.message);
  if (!d.ended) log::warn("{}the stream ends before its last segment", name);
  if (d.trailing_bytes) log::warn("{}{} bytes after the last segment were ignored", name, d.trailing_bytes);
  const double samples = static_cast<double>(d.width) * d.height;
  log::info("{}{}x{}, {} bits{}: {:.1f} Mpixel/s", name, d.width, d.height, d.bits, d.is_signed ? " signed" : "",
            samples / 1e6 / (d.seconds.dwt + d.seconds.coder));
  return d.intact();
}

ccsds122::DecodeParams decode_params(const Common& common) {
  ccsds122::DecodeParams params;
  params.simd = parse_simd(common.simd);
  params.limits = limits(common);
  return params;
}

int run_decode(const DecodeOptions& o, const Common& common) {
  const std::vector<FileJob> jobs = make_file_jobs(o.files, "." + o.extension);
  require(jobs.size() == 1 || o.index.empty(), ErrorKind::kBadArgument, "--index is for one stream");
  const DeviceChoice device = choose_device(o.device);
  ccsds122::DecodeParams params = decode_params(common);
  params.keep_damaged = !o.strict;
  std::vector<std::uint32_t> lengths;
  if (!o.index.empty()) lengths = ccsds122::read_index(read_bytes(o.index));
  params.segment_bytes = lengths;
  std::atomic<bool> intact = true;
  run_file_jobs(jobs, device, common.threads, [&](const FileJob& job, Ccsds122Codec& codec) {
    const std::string name = jobs.size() > 1 ? job.input + ": " : "";
    if (!decode_stream(read_bytes(job.input), job, name, params, codec, common)) intact = false;
  });
  return intact ? kExitDone : kExitBadStream;
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

int run_info(const InfoOptions& o, const std::vector<std::byte>& stream, const Common& common) {
  ThreadPool pool(1);
  const std::vector<SegmentReport> segments = ccsds122::inspect(stream, decode_params(common), pool);
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

// -------------------------------------------------------------------------------------------------------- options

Action define_ccsds_encode(Command& app, Common& common) {
  auto o = std::make_shared<EncodeOptions>();
  app.add_option(
         "FILES", o->files,
         "IN OUT: a picture (.pgm, .raw, or anything FFmpeg reads: .png, .tif) and the stream to write (.c122);\n"
         "or IN... FOLDER")
      .required()
      .expected(2, 1 << 20);
  app.add_option("--dwt", o->dwt, "Wavelet: integer (lossless possible) or float")
      .one_of({"integer", "float"})
      .show_default();
  auto lossless = app.add_flag("--lossless", o->lossless, "Code everything: the default with the integer DWT");
  auto bpp = app.add_option("--bpp", o->bpp, "Bits per pixel of the whole stream, divided among the segments by slope")
                 .positive();
  auto bytes = app.add_option("--segment-bytes", o->segment_bytes, "SegByteLimit: most bytes of each segment");
  app.add_option("--bit-plane-stop", o->bit_plane_stop, "Lowest bit plane to code").range(0, 31);
  app.add_option("--stage-stop", o->stage_stop, "Last stage of that plane").range(1, 4).show_default();
  app.add_flag("--dc-stop", o->dc_stop, "Code the DC values only");
  app.add_flag("--fill", o->fill, "Pad every segment with zeros to --segment-bytes").needs(bytes);
  lossless.excludes(bpp).excludes(bytes);
  bpp.excludes(bytes);
  auto size = app.add_option("--segment-size", o->segment_size, "Blocks of 8x8 per segment, 16..1048576 (default 256)")
                  .range(16, 1 << 20);
  auto strip = app.add_flag("--strip", o->strip, "One row of blocks per segment");
  auto frame = app.add_flag("--frame", o->frame, "The whole picture in one segment");
  size.excludes(strip).excludes(frame);
  strip.excludes(frame);
  app.add_flag("--transpose", o->transpose, "Code the transposed picture");
  app.add_option("--word-bytes", o->word_bytes, "Coded word length").range(1, 8).show_default();
  app.add_option("--custom-weights", o->weights,
                 "Weight exponents: ten digits 0..3, HH1 HL1 LH1 HH2 HL2 LH2 HH3 HL3 LH3 LL3");
  app.add_option("--opt", o->selection, "How DC and AC-depth codes are chosen")
      .one_of({"heuristic", "optimal"})
      .show_default();
  app.add_flag("--all-headers", o->every_header, "All header parts in every segment");
  app.add_option("--index", o->index, "Also write the segment lengths to this file (for parallel decoding)");
  add_ccsds_input_options(app, o->reading);
  add_device_option(app, o->device);
  add_limit_options(app, common);
  add_work_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_encode(*o, common); };
}

Action define_ccsds_decode(Command& app, Common& common) {
  auto o = std::make_shared<DecodeOptions>();
  app.add_option("FILES", o->files,
                 "IN OUT: a stream (- = standard input) and the picture to write (.pgm, .raw little-endian, .png);\n"
                 "or IN... FOLDER")
      .required()
      .expected(2, 1 << 20);
  app.add_option("--to", o->extension, "Kind of the pictures in FOLDER").one_of({"pgm", "raw", "png"}).show_default();
  app.add_option("--index", o->index, "Segment lengths written by the encoder");
  app.add_flag("--strict", o->strict, "Fail at the first damaged segment, write nothing");
  add_device_option(app, o->device);
  add_limit_options(app, common);
  add_work_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  app.add_footer("Damaged and missing segments are filled and reported; the exit code is then 4.");
  return [o, &common] { return run_decode(*o, common); };
}

Action define_ccsds_info(Command& app, Common& common) {
  auto o = std::make_shared<InfoOptions>();
  app.add_option("IN", o->input, "Stream; - = standard input").required();
  app.add_flag("--json", o->json, "Print JSON, with every segment and header");
  add_limit_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_info(*o, read_bytes(o->input), common); };
}

}  // namespace

int encode_ccsds(const std::vector<std::string>& files, double bpp, const CcsdsInput& reading,
                 const std::string& device, const Common& common) {
  EncodeOptions o;
  o.files = files;
  o.bpp = bpp;
  o.reading = reading;
  o.device = device;
  return run_encode(o, common);
}

int decode_ccsds(const std::string& input, const std::vector<std::byte>& stream, const std::string& output,
                 const std::string& device, const Common& common) {
  Ccsds122Codec codec(choose_device(device), common.threads, 1);
  ccsds122::DecodeParams params = decode_params(common);
  params.keep_damaged = true;
  return decode_stream(stream, {input, output}, "", params, codec, common) ? kExitDone : kExitBadStream;
}

int describe_ccsds(const std::string& input, const std::vector<std::byte>& stream, bool json, const Common& common) {
  return run_info({input, json}, stream, common);
}

Action define_ccsds(Command& app, Common& common) {
  static constexpr Subcommand kCommands[] = {
      {"encode", "Encode a greyscale picture into a CCSDS 122.0-B-2 stream", define_ccsds_encode},
      {"decode", "Decode a stream into a picture", define_ccsds_decode},
      {"info", "List the segments and headers of a stream", define_ccsds_info},
      {"compare", "Compare two pictures or streams: PSNR, largest error", define_ccsds_compare},
      {"bench", "Time the stages in memory and check the result", define_ccsds_bench},
  };
  return define_subcommands(app, common, kCommands);
}

}  // namespace trivelet::cli
