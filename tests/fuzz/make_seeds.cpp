// make_seeds FOLDER: writes seeds for each fuzzer into a folder of its name: small streams of every kind, videos and
// volumes, with option bytes in front; boxes and chunks of such streams for header_fuzz; sections of motion; tiny
// pictures of the still codecs; short video files.

#include <filesystem>
#include <fstream>
#include <random>

#include "codec/entropy/labels/label_block.h"
#include "codec/entropy/mixed/mixed_block.h"
#include "codec/format/container.h"
#include "codec/motion/motion_field.h"
#include "codec/predict/prediction_block.h"
#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/dct/dct.h"
#include "codec/still/vstc/vstc.h"
#include "tests/fuzz/header_params.h"
#include "tests/support/boxes.h"
#include "tests/support/support.h"
#include "trivelet/volume.h"

using namespace trivelet;
using namespace trivelet::test;

namespace {

bool write(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(out.flush());
}

// The selecting byte, then what header_fuzz puts the checksum behind.
Bytes header_input(int what, Profile profile, const std::uint8_t* from, const std::uint8_t* to) {
  Bytes out(1 + static_cast<std::size_t>(to - from), static_cast<std::uint8_t>(what));
  if (profile == Profile::kDense) out[0] |= 8;
  std::copy(from, to, out.begin() + 1);
  return out;
}

// Seeds of a stream like those that header_fuzz reads GOP headers and chunks for.
bool write_header_seeds(const std::filesystem::path& folder, bool dyadic, Profile profile) {
  CodingParams p = fuzz::header_params(dyadic, profile);
  p.quality = 20;
  const auto stream = encode(make_clip(video(70, 41, "yuv420p"), 10, 5, Pattern::kTexture, 9), p);
  const auto* s = reinterpret_cast<const std::uint8_t*>(stream.data());
  const std::string suffix = std::string(dyadic ? "_dyadic" : "") + (profile == Profile::kDense ? "_dense" : "_fast");
  bool ok = true;
  StreamHeader header;
  for (const BoxAt& b : list_boxes(s, stream.size())) {
    const std::uint8_t* from = s + b.payload();
    const std::uint8_t* crc = s + b.end() - 4;
    if (b.type == "Head") {
      header = parse_stream_header(from, b.length);
      ok &= write(folder / ("head" + suffix), header_input(0, profile, from, crc));
    } else if (b.type == "Indx") {
      ok &= write(folder / ("index" + suffix), header_input(3 | header.layers << 4, profile, from, crc));
    } else if (b.type == "Done") {
      ok &= write(folder / ("end" + suffix), header_input(4, profile, from, crc));
      ok &= write(folder / ("box" + suffix), header_input(5, profile, s + b.at, s + b.at + 12));
    } else {
      const std::size_t n = static_cast<std::size_t>(load(from, 4));
      ok &= write(folder / ("gop" + suffix), header_input(dyadic ? 2 : 1, profile, from, from + n - 4));
      // The coarsest chunk, a finer one, the coarsest of the next layer.
      const GopHeader g = parse_gop_header(header, from, n);
      Bytes chunks = header_input(dyadic ? 7 : 6, profile, from, from);
      std::size_t at = n;
      const std::size_t layer = g.chunks.size() / header.layers;
      for (std::size_t i = 0; i < g.chunks.size(); ++i) {
        const std::uint8_t* chunk = from + at;
        if (i < 2 || i == layer) chunks.insert(chunks.end(), chunk, chunk + g.chunks[i].size);
        at += g.chunks[i].size;
      }
      ok &= write(folder / ("chunks" + suffix), chunks);
    }
  }
  return ok;
}

/// Small pictures behind the option bytes of vstc_fuzz and dct_fuzz.
bool write_still_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "vstc");
  std::filesystem::create_directories(folder / "dct");
  ThreadPool pool(1);
  const auto transform = dct::make_own_transform(pool);
  bool ok = true;
  for (int i = 0; i < 12; ++i) {
    const int kind = i % 4, bits = 8 + i % 5, qp = 5 + 7 * (i % 6);
    still::Image image;
    image.width = 4 + i % 8;
    image.height = 12 - i;
    image.format.model = kind == 0 ? ColourModel::kGrey : kind == 3 ? ColourModel::kRgb : ColourModel::kYuv;
    image.format.log2_chroma_w = image.format.log2_chroma_h = kind == 1;
    image.format.bits = bits;
    image.allocate();
    for (int c = 0; c < image.components(); ++c)
      for (int y = 0; y < image.format.component_height(image.height, c); ++y)
        for (int x = 0; x < image.format.component_width(image.width, c); ++x)
          image.set_sample(c, x, y, (x * x * 7 + y * 19 * (x > 3) + 40 * c) << (bits - 8) & ((1 << bits) - 1));
    const auto put = [&](const char* codec, const std::vector<std::byte>& file, Bytes head) {
      const auto payload = still::read_file(file).payload;
      head.insert(head.end(), payload.begin(), payload.end());
      ok &= write(folder / codec / ("seed" + std::to_string(i)), head);
    };
    const auto width = static_cast<std::uint8_t>(image.width - 1), height = static_cast<std::uint8_t>(image.height - 1);
    vstc::Params p;
    p.qp = qp;
    p.log2_block = 4 + i % 3;
    p.effort = vstc::Effort::kFast;
    put("vstc", vstc::encode(image, p, pool).bytes,
        {static_cast<std::uint8_t>(kind << 1 | i % 3 << 3), width, height, static_cast<std::uint8_t>(qp),
         static_cast<std::uint8_t>(bits - 8)});
    put("dct", dct::encode(image, {.qp = qp, .keep = 1}, *transform),
        {static_cast<std::uint8_t>(kind | (bits - 8) << 2), width, height, static_cast<std::uint8_t>(qp)});
  }
  return ok;
}

/// Motion of all kinds behind the option bytes of motion_fuzz.
bool write_motion_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::mt19937 random(11);
  bool ok = true;
  for (int i = 0; i < 14; ++i) {
    const bool large = i == 9, keys = i > 9;
    const auto w = static_cast<std::uint8_t>(large ? 180 : 7 + 13 * i);
    const auto h = static_cast<std::uint8_t>(5 + 4 * i);
    const int levels = 1 + i % 3, frames = 1 + (i * 2 + 3) % 7, components = 1 + i % 4;
    const int which_key = i % 4 == 3 ? 2 : 0;  // open, or first
    GopMotion m({frames, static_cast<GopKey>(which_key), levels}, 1 + w * (large ? 3 : 1) / 2, 1 + h % 48);
    if (keys) m.predict_keys();
    for (MotionField& f : m.fields)
      for (MotionCell& c : f) {
        c.mode = static_cast<MotionMode>(random() % 4);
        c.log2_cells = static_cast<std::uint8_t>(i % 4);
        if (i % 2 == 0 && &c != f.data()) c = f[0];
        for (MotionVector& v : c.vector)
          v = {static_cast<std::int16_t>(random() % 200), static_cast<std::int16_t>(random() % 100)};
        for (std::int8_t& p : c.plain) p = static_cast<std::int8_t>(static_cast<int>(random() % 64) - 32);
      }
    Bytes out = {w, h, static_cast<std::uint8_t>((frames - 1) + 7 * (levels - 1) + 21 * which_key),
                 static_cast<std::uint8_t>((components - 1) | (i % 8) << 2 | (keys ? 64 : 0) | (large ? 128 : 0))};
    for (int level = levels - (m.predicts_keys ? 0 : 1); level >= 0; --level) {
      const std::vector<std::uint8_t> bytes = encode_motion(m, level, components);
      out.push_back(static_cast<std::uint8_t>(bytes.size()));
      out.push_back(static_cast<std::uint8_t>(bytes.size() >> 8));
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
    ok &= write(folder / ((i < 10 ? "seed0" : "seed") + std::to_string(i)), out);
  }
  return ok;
}

Bytes text(const std::string& s) { return Bytes(s.begin(), s.end()); }
Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Bytes ramp(std::size_t size) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::uint8_t>(i * 37 % 251);
  return out;
}

/// A stream for every fuzzer of whole streams that reads videos. `options` are those of decode_fuzz.
bool write_stream_seeds(const std::filesystem::path& folder, const std::string& name, const Bytes& options,
                        const Bytes& stream, unsigned i) {
  const auto byte = [](unsigned v) { return static_cast<std::uint8_t>(v); };
  bool ok = write(folder / "decode" / name, options + stream);
  ok &= write(folder / "gpu" / name, Bytes{byte((i % 3) << 4), 0} + stream);
  ok &= write(folder / "verify" / name, Bytes{byte(i % 2 * 2), 0} + stream);
  ok &= write(folder / "layout" / name, Bytes{byte(i % 2 * 2), 0} + stream);
  ok &= write(folder / "region" / name, Bytes{byte(128 | (i & 3) << 2), 0, byte(i), byte(i * 5), 3, byte(i)} + stream);
  ok &= write(folder / "plan" / name,
              Bytes{byte(128 | (i & 1) << 6 | (i & 3) << 2), 0, byte(i), byte(i * 5), 3, byte(i)} + stream);
  ok &= write(folder / "rewrite" / name,
              Bytes{byte(32 | (i % 6) << 2), byte(i * 40 + 90), 1, byte(i % 5), 0, 0} + stream);
  return ok;
}

/// Volumes of every kind of map, order and transform.
bool write_volume_seeds(const std::filesystem::path& folder) {
  struct Kind {
    const char* name;
    VolumeDescription shape;
    VolumeTransform transform;
    bool palette, fourth_axis;
    double max_error, bits_per_voxel;
    bool front_table = false;
  };
  constexpr auto kWavelet = VolumeTransform::kWavelet;
  const Kind kinds[] = {
      {"bytes", {{VoxelType::kU8}, 9, 7, 5, 1}, kWavelet, false, false, 0, 0},
      {"ct", {{VoxelType::kI16}, 8, 8, 6, 1}, kWavelet, false, false, 0, 0},
      {"palette", {{VoxelType::kU16, true}, 7, 9, 4, 1}, kWavelet, true, false, 0, 0},
      {"labels", {{VoxelType::kU8}, 12, 10, 4, 1}, VolumeTransform::kPredictionAcross, false, false, 0, 0},
      {"in_slice", {{VoxelType::kI16}, 11, 6, 3, 1}, VolumeTransform::kPredictionInSlice, false, false, 0, 0},
      {"planes", {{VoxelType::kI32}, 5, 6, 4, 1}, kWavelet, false, false, 0, 0},
      {"colour", {{VoxelType::kU8, false, 3}, 6, 5, 3, 1}, kWavelet, false, false, 0, 0},
      {"time", {{VoxelType::kI16}, 6, 6, 3, 4}, kWavelet, false, true, 0, 0},
      {"times", {{VoxelType::kU8}, 6, 6, 3, 3}, kWavelet, false, false, 0, 0},
      {"bound", {{VoxelType::kF32}, 8, 6, 4, 1}, kWavelet, false, false, 0.5, 0},
      {"rate", {{VoxelType::kU16}, 10, 9, 4, 1}, kWavelet, false, false, 0, 24},
      {"holes", {{VoxelType::kF32}, 11, 8, 5, 1}, kWavelet, false, false, 0.5, 0},
      {"holes_in_two", {{VoxelType::kF32, true, 2}, 9, 7, 2, 2}, VolumeTransform::kPrediction, false, false, 0.5, 0},
      {"front_table", {{VoxelType::kU8}, 6, 5, 4, 1}, kWavelet, false, false, 0, 0, true},
  };
  bool ok = true;
  unsigned i = 0;
  for (const Kind& k : kinds) {
    std::vector<std::byte> voxels;
    for (std::uint64_t n = 0; n < k.shape.bytes() / static_cast<std::size_t>(bytes_of(k.shape.voxel.type)); ++n) {
      std::uint64_t v = n * n / 7 % 90 + n % 9;
      if (k.shape.voxel.type == VoxelType::kF32) v = std::bit_cast<std::uint32_t>(static_cast<float>(v) / 3);
      if (std::string(k.name).starts_with("holes") && (n % 11 < n / 88 || n % 13 == 5))
        v = n % 13 == 5 ? 0x7f800000u : 0x7fc00000u;
      const int bytes = bytes_of(k.shape.voxel.type);
      for (int b = 0; b < bytes; ++b)
        voxels.push_back(static_cast<std::byte>(v >> 8 * (k.shape.voxel.big_endian ? bytes - 1 - b : b)));
    }
    VolumeEncoderParams p;
    p.threads = 1;
    p.block_size = 32;
    p.slab = 3 + static_cast<int>(i % 2);
    p.effort = VolumeEffort::kFast;
    p.transform = k.transform;
    p.palette = k.palette;
    p.fourth_axis_first = k.fourth_axis;
    p.max_error = k.max_error;
    if (k.bits_per_voxel > 0) p.bits_per_voxel = k.bits_per_voxel;
    p.front_table = k.front_table;
    if (k.front_table) {
      p.layers = 1;
      p.slice_levels = p.depth_levels = 1;
    }
    MemorySlices slices(k.shape, voxels.data());
    MemorySink sink;
    MemoryReadBack again(sink);
    encode_volume(slices, p, sink, &again);
    const auto* s = reinterpret_cast<const std::uint8_t*>(sink.bytes.data());
    const auto byte = static_cast<std::uint8_t>(i);
    ok &=
        write(folder / "volume_stream" / k.name, Bytes{0, 0, byte, 2, 1, 3, byte, 1} + Bytes(s, s + sink.bytes.size()));
    ok &= write(folder / "gpu" / (std::string("volume_") + k.name), Bytes{0, 0x18} + Bytes(s, s + sink.bytes.size()));
    if (k.front_table) ok &= write_stream_seeds(folder, k.name, {0, 0x30}, Bytes(s, s + sink.bytes.size()), i);
    for (const BoxAt& b : list_boxes(s, sink.bytes.size())) {
      const Bytes payload(s + b.payload(), s + b.end() - kBoxCrcBytes);
      if (b.type == "Volm") ok &= write(folder / "map" / (std::string("of_") + k.name), payload);
      if (b.type == "Mask")
        ok &= write(
            folder / "mask" / k.name,
            Bytes{static_cast<std::uint8_t>(k.shape.voxel.channels - 1), static_cast<std::uint8_t>(k.shape.width - 1),
                  static_cast<std::uint8_t>(k.shape.height - 1), static_cast<std::uint8_t>(k.shape.all_slices() - 1)} +
                payload);
      if (b.type == "tocF") ok &= write(folder / "front_table" / k.name, payload);
      if (b.type == "volq") ok &= write(folder / "cuts" / k.name, payload);
    }
    ++i;
  }
  return ok;
}

/// Behind the four option bytes of video_fuzz.
bool write_video_seeds(const std::filesystem::path& folder) {
  bool ok = true;
  const char* chromas[] = {"420jpeg", "422", "mono10", "444alpha", "420p10", "411", "440", "410"};
  const std::size_t sizes[] = {36, 48, 48, 96, 72, 40, 48, 30};
  for (std::size_t i = 0; i < std::size(chromas); ++i) {
    const Bytes head = text("YUV4MPEG2 W6 H4 F30000:1001 It A1:1 C" + std::string(chromas[i]) + " XCOLORRANGE=FULL\n");
    Bytes planes = ramp(sizes[i]);
    if (sizes[i] != 96)
      for (std::size_t k = 1; k < planes.size(); k += 2) planes[k] &= 3;
    const Bytes frame = text("FRAME\n") + planes, other = text("FRAME Ip\n") + planes;
    const auto option = static_cast<std::uint8_t>(i % 2 * 4);
    ok &= write(folder / "y4m" / chromas[i], Bytes{option, 0, 0, 0} + head + frame + (i % 3 ? frame : other) + frame);
    ok &= write(folder / "raw" / ("seed" + std::to_string(i)),
                Bytes{option, 5, 3, static_cast<std::uint8_t>(i)} + Bytes(200, static_cast<std::uint8_t>(i == 1)));
  }
  const auto picture = [&](const std::string& head, std::size_t bytes) { return text(head) + ramp(bytes); };
  const Bytes options = {4, 0, 0, 0};
  ok &= write(folder / "pnm" / "grey", options + picture("P5\n# comment\n5 4\n255\n", 20));
  ok &= write(folder / "pnm" / "colour", options + picture("P6 3 2 255\n", 18) + picture("P6 3 2 255\n", 18));
  ok &= write(folder / "pnm" / "deep", options + text("P5 2 2 4095\n") + Bytes{15, 255, 0, 1, 7, 7, 1, 0});
  ok &= write(folder / "pnm" / "bits", options + text("P5 3 1 1\n") + Bytes{0, 1, 1});
  return ok;
}

/// The side index, and tiny differences of volumes.
bool write_small_seeds(const std::filesystem::path& folder) {
  bool ok = true;
  for (std::uint32_t n = 0; n < 3; ++n) {
    const std::vector<std::byte> index = ccsds122::write_index(std::vector<std::uint32_t>(n * 3, 1000 * n));
    const auto* p = reinterpret_cast<const std::uint8_t*>(index.data());
    ok &= write(folder / "ccsds_index" / ("seed" + std::to_string(n)), Bytes(p, p + index.size()));
  }
  for (unsigned i = 0; i < 9; ++i)
    ok &= write(folder / "predict" / ("seed" + std::to_string(i)),
                Bytes{static_cast<std::uint8_t>(i * 2), static_cast<std::uint8_t>(i % 3),
                      static_cast<std::uint8_t>(0x54 + i), static_cast<std::uint8_t>(i)} +
                    ramp(60));
  return ok;
}

/// Codewords of the predictive profile behind the shape and bits that predictive_fuzz reads.
bool write_predictive_seeds(const std::filesystem::path& folder) {
  const int shapes[][4] = {
      {1, 6, 5, 8}, {3, 20, 24, 8}, {2, 9, 33, 12}, {4, 12, 12, 16}};  // frames, rows, columns, bits
  bool ok = true;
  for (const auto& s : shapes)
    for (const test::Pattern pattern : {test::Pattern::kSmooth, test::Pattern::kTexture}) {
      VideoInfo info;
      info.width = s[2];
      info.height = s[1];
      info.format = {ColourModel::kGrey, s[3], 0, 0, false, false};
      Gop gop(info, s[0]);
      test::fill(gop, s[0], info.format, pattern, 1);
      prediction::Effort effort;
      effort.log2_edge = 3;
      Bytes bytes;
      for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(s[i] - 1));
      prediction::BlockEncoder(SimdLevel::kScalar)
          .encode({std::as_const(gop).plane(0), 0, 0, s[1], s[2], s[3]}, effort, bytes);
      const std::string name = "seed" + std::to_string(s[1]) + (pattern == test::Pattern::kSmooth ? "s" : "t");
      ok &= write(folder / name, bytes);
      bytes.resize(4);
      bytes[2] |= 128;
      effort.moved = true;
      effort.log2_cell = 3;
      prediction::BlockEncoder(SimdLevel::kScalar)
          .encode({std::as_const(gop).plane(0), 0, 0, s[1], s[2], s[3]}, effort, bytes);
      ok &= write(folder / (name + "_moved"), bytes);
      bytes.resize(4);
      bytes[1] |= 128;
      bytes[2] &= 127;
      prediction::AheadEncoder(SimdLevel::kScalar).encode({std::as_const(gop).plane(0), 0, 0, s[1], s[2], s[3]}, bytes);
      ok &= write(folder / (name + "_ahead"), bytes);
      bytes.resize(4);
      bytes[1] &= 127;
      bytes[3] |= 64;
      labels::LabelEncoder().encode({std::as_const(gop).plane(0), 0, 0, s[1], s[2], s[3]}, bytes);
      ok &= write(folder / (name + "_labels"), bytes);
      bytes.resize(4);
      bytes[3] ^= 64 | 32;
      mixed::MixedEncoder().encode({std::as_const(gop).plane(0), 0, 0, s[1], s[2], s[3]}, bytes);
      ok &= write(folder / (name + "_mixed"), bytes);
    }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path headers = std::filesystem::path(argv[1]) / "header";
  for (const char* name :
       {"decode", "header", "gpu", "verify", "layout", "region", "plan", "rewrite", "volume_stream", "map", "cuts",
        "mask", "y4m", "raw", "pnm", "ccsds_index", "predict", "predictive", "front_table"})
    std::filesystem::create_directories(std::filesystem::path(argv[1]) / name);
  for (const bool dyadic : {false, true})
    for (const Profile profile : {Profile::kFast, Profile::kDense})
      if (!write_header_seeds(headers, dyadic, profile)) return 1;
  if (!write_still_seeds(argv[1]) || !write_volume_seeds(argv[1]) || !write_video_seeds(argv[1]) ||
      !write_small_seeds(argv[1]))
    return 1;
  if (!write_predictive_seeds(std::filesystem::path(argv[1]) / "predictive")) return 1;
  if (!write_motion_seeds(std::filesystem::path(argv[1]) / "motion")) return 1;
  struct Kind {
    const char* name;
    int width, height, frames, gop_frames;
    const char* format;
    bool lossless;
    Layout layout;
    int spatial, temporal, layers;
    std::uint16_t options;
    Profile profile = Profile::kFast;
    double bits_per_pixel = 0;
    bool visual = false;
    Motion motion = Motion::kOff;
    KeyPrediction key_prediction = KeyPrediction::kOff;
  };
  constexpr Profile kDense = Profile::kDense;
  const Kind kinds[] = {
      {"grey", 8, 8, 4, 2, "gray", true, Layout::kT2d, 2, 1, 3, 0x3000},
      {"dyadic", 9, 7, 4, 4, "gray", false, Layout::kDyadic, 2, 2, 2, 0x4002},
      {"dyadic_flat", 9, 12, 3, 3, "gray", true, Layout::kDyadic, 3, 1, 1, 0x4000},
      {"rgb", 6, 5, 2, 2, "gbrp10", true, Layout::kT2d, 1, 0, 1, 0x8000},
      {"yuv", 8, 6, 2, 1, "yuv420p", false, Layout::kT2d, 2, 0, 4, 0x0002},
      {"blocks", 40, 34, 1, 1, "gray", false, Layout::kT2d, 0, 0, 1, 0x3010},
      {"thin", 1, 33, 3, 3, "gray16", true, Layout::kDyadic, 1, 1, 2, 0x4000},
      {"rate", 9, 8, 4, 4, "gray", false, Layout::kT2d, 2, 2, 3, 0x4000, Profile::kFast, 16},
      {"dense", 8, 8, 4, 2, "gray", true, Layout::kT2d, 2, 1, 3, 0x3000, kDense},
      {"dense_dyadic", 9, 7, 4, 4, "gray", false, Layout::kDyadic, 2, 2, 2, 0x4002, kDense},
      {"dense_dyadic_flat", 9, 12, 3, 3, "gray", true, Layout::kDyadic, 3, 1, 1, 0x4000, kDense},
      {"dense_gains", 8, 7, 5, 5, "gray", false, Layout::kT2d, 1, 2, 2, 0x3008, kDense},
      {"dense_rgb", 6, 5, 2, 2, "gbrp10", true, Layout::kT2d, 1, 0, 1, 0x8000, kDense},
      {"dense_yuv", 8, 6, 2, 1, "yuv420p", false, Layout::kT2d, 2, 0, 4, 0x0002, kDense, 0, true},
      {"dense_rate", 12, 9, 4, 4, "gray", false, Layout::kT2d, 2, 2, 3, 0x4000, kDense, 14},
      {"dense_rate_dyadic", 9, 8, 4, 4, "gray", false, Layout::kDyadic, 2, 2, 2, 0x4010, kDense, 20},
      {"motion", 24, 17, 6, 4, "gray", false, Layout::kT2d, 2, 2, 2, 0x3002, kDense, 0, false, Motion::kOn},
      {"motion_lossless", 18, 9, 5, 5, "yuv420p", true, Layout::kT2d, 1, 3, 1, 0x3042, kDense, 0, false, Motion::kOn},
      {"motion_fast", 16, 16, 4, 4, "gbrp", false, Layout::kT2d, 2, 2, 2, 0x3010, Profile::kFast, 0, false,
       Motion::kAuto},
      {"motion_keys", 24, 17, 9, 3, "gray", false, Layout::kT2d, 2, 1, 2, 0x3002, kDense, 0, false, Motion::kOn,
       KeyPrediction::kOn},
      {"motion_keys_exact", 18, 9, 8, 4, "yuv420p", true, Layout::kT2d, 1, 1, 1, 0x3042, kDense, 0, false, Motion::kOn,
       KeyPrediction::kOn},
      {"predictive", 40, 33, 5, 3, "yuv420p", true, Layout::kT2d, 0, 0, 1, 0x3000, Profile::kPredictive},
  };
  unsigned i = 0;
  for (const Kind& k : kinds) {
    CodingParams p;
    p.lossless = k.lossless;
    p.layout = k.layout;
    p.profile = k.profile;
    p.bits_per_pixel = k.bits_per_pixel;
    p.visual = k.visual;
    p.motion = k.motion;
    p.key_prediction = k.key_prediction;
    p.spatial_levels = k.spatial;
    p.temporal_levels = k.temporal;
    p.layers = k.layers;
    p.gop_frames = k.gop_frames;
    p.quality = 30;
    p.block_size = 32;
    p.threads = 1;
    const auto stream =
        encode(make_clip(video(k.width, k.height, k.format), k.frames, k.gop_frames, Pattern::kTexture, 9), p);
    const auto* s = reinterpret_cast<const std::uint8_t*>(stream.data());
    const Bytes options = {static_cast<std::uint8_t>(k.options), static_cast<std::uint8_t>(k.options >> 8)};
    if (!write_stream_seeds(argv[1], k.name, options, Bytes(s, s + stream.size()), i++)) return 1;
  }
  // What encoders no longer write.
  const auto conformance = std::filesystem::path(__FILE__).parent_path().parent_path() / "conformance";
  for (const char* name : {"fast_lossless_raw_gray16", "fast_lossy_raw_gbrp", "fast_raw_dyadic_lossy"}) {
    std::ifstream in(conformance / (std::string(name) + ".tvl"), std::ios::binary);
    const Bytes stream{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (stream.empty() || !write_stream_seeds(argv[1], name, {0, 0x30}, stream, i++)) return 1;
  }
  return 0;
}
