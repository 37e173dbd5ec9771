// Helpers of the CCSDS 122.0 tests: PGM and raw pictures, JSON values of test vectors, PSNR, random pictures.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"

namespace ccsds_test {

/// A picture with 32-bit samples, and its bytes in the codec's layout.
struct Picture {
  int width = 0, height = 0, bits = 8;
  bool is_signed = false;
  std::vector<std::int32_t> samples;
  std::vector<std::byte> bytes;

  int bytes_per_sample() const { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }
  trivelet::VolumeView view() {
    const int size = bytes_per_sample();
    bytes.resize(samples.size() * static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < samples.size(); ++i)
      std::memcpy(bytes.data() + i * static_cast<std::size_t>(size), &samples[i],
                  static_cast<std::size_t>(size));  // little-endian
    trivelet::VolumeView v;
    v.data = bytes.data();
    v.shape = {1, height, width};
    v.bytes_per_sample = size;
    v.is_signed = is_signed;
    v.row_stride = static_cast<std::ptrdiff_t>(width) * size;
    return v;
  }
};

inline std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::vector<std::byte> out(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
  return out;
}

inline Picture unpack(const std::byte* data, int width, int height, int bits, bool is_signed, int size,
                      bool big_endian) {
  Picture p{width, height, bits, is_signed, {}, {}};
  for (int i = 0; i < width * height; ++i) {
    std::uint32_t v = 0;
    for (int k = 0; k < size; ++k)
      v |= std::to_integer<std::uint32_t>(data[i * size + k]) << 8 * (big_endian ? size - 1 - k : k);
    if (is_signed && size < 4 && v >> (8 * size - 1)) v |= ~std::uint32_t{0} << 8 * size;
    p.samples.push_back(static_cast<std::int32_t>(v));
  }
  return p;
}

/// Reads P5 of 8 or 16 bits without comments; `bits` comes from the test vector.
inline Picture read_pgm(const std::filesystem::path& path, int bits) {
  const std::vector<std::byte> data = read_file(path);
  const std::string head(reinterpret_cast<const char*>(data.data()), std::min<std::size_t>(data.size(), 64));
  int width = 0, height = 0, most = 0, used = 0;
  if (std::sscanf(head.c_str(), "P5 %d %d %d%n", &width, &height, &most, &used) != 3) return {};
  return unpack(data.data() + used + 1, width, height, bits, false, most > 255 ? 2 : 1, true);
}

inline Picture of(const trivelet::ccsds122::Decoded& d) {
  return unpack(d.samples.data(), d.width, d.height, d.bits, d.is_signed, d.bytes_per_sample, false);
}

inline double psnr(const Picture& a, const Picture& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    const double e = static_cast<double>(a.samples[i]) - static_cast<double>(b.samples[i]);
    sum += e * e;
  }
  if (sum == 0) return 999;
  const double peak = std::exp2(a.bits) - 1;
  return 10 * std::log10(peak * peak * static_cast<double>(a.samples.size()) / sum);
}

/// The value of "key" in a small JSON text, without quotes; empty if it is missing.
inline std::string json_value(const std::string& text, const std::string& key) {
  std::size_t at = text.find('"' + key + "\":");
  if (at == std::string::npos) return {};
  at = text.find_first_not_of(" \n", at + key.size() + 3);
  if (text[at] == '"') return text.substr(at + 1, text.find('"', at + 1) - at - 1);
  if (text[at] == '[' || text[at] == '{') return text.substr(at, text.find_first_of("]}", at) - at + 1);
  return text.substr(at, text.find_first_of(",\n}", at) - at);
}
inline int json_int(const std::string& text, const std::string& key) {
  return std::atoi(json_value(text, key).c_str());
}

inline std::filesystem::path vectors_folder() {
  namespace fs = std::filesystem;
  const char* root = std::getenv("TRIVELET_DATA_ROOT");
  std::vector<fs::path> candidates;
  if (root)
    candidates = {fs::path(root) / "ccsds122" / "vectors", fs::path(root) / "vectors",
                  fs::path(root) / ".." / "ccsds122" / "vectors", fs::path(root)};
  candidates.push_back(fs::path(__FILE__).parent_path() / ".." / ".." / ".." / "shared" / "ccsds122" / "vectors");
  for (const fs::path& c : candidates)
    if (fs::exists(c / "manifest.json")) return c;
  return {};
}

enum class Content { kNoise, kSmooth, kSparse, kConstant, kExtreme };

/// A random picture whose samples use the whole range of `bits` bits, with the statistics of `content`.
inline Picture random_picture(std::mt19937& rng, int width, int height, int bits, bool is_signed, Content content) {
  Picture p{width, height, bits, is_signed, {}, {}};
  p.samples.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  const double low = is_signed ? -std::exp2(bits - 1) : 0,
               high = is_signed ? std::exp2(bits - 1) - 1 : std::exp2(bits) - 1;
  std::uniform_real_distribution<double> unit(0, 1);
  const double fx = unit(rng) * 0.2, fy = unit(rng) * 0.2, noise = unit(rng) * 0.1, value = unit(rng);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double v = value;
      switch (content) {
        case Content::kNoise: v = unit(rng); break;
        case Content::kSmooth: v = 0.5 + 0.4 * std::sin(fx * x) * std::cos(fy * y) + noise * (unit(rng) - 0.5); break;
        case Content::kSparse: v = unit(rng) < 0.01 ? unit(rng) : 0.5; break;
        case Content::kConstant: break;
        case Content::kExtreme: v = unit(rng) < 0.5 ? 0 : 1; break;
      }
      v = std::min(high, std::max(low, std::floor(low + v * (high - low) + 0.5)));
      p.samples[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] =
          static_cast<std::int32_t>(v);
    }
  return p;
}

/// A random picture with random parameters from everything that the standard allows.
struct Case {
  Picture picture;
  trivelet::ccsds122::Params params;
  bool lossless = false;
};

inline std::string describe(const Case& c) {
  const trivelet::ccsds122::Params& p = c.params;
  std::string s = std::to_string(c.picture.width) + "x" + std::to_string(c.picture.height) +
                  (p.is_signed ? " s" : " u") + std::to_string(p.bits) +
                  (p.dwt == trivelet::ccsds122::Dwt::kFloat ? " float" : " integer") +
                  " S=" + std::to_string(p.segment_blocks) + " word=" + std::to_string(p.word_bytes) +
                  " bytes=" + std::to_string(p.segment_bytes) + " total=" + std::to_string(p.total_bytes) +
                  " dcstop=" + std::to_string(p.dc_stop) + " stop=" + std::to_string(p.bit_plane_stop) + "/" +
                  std::to_string(p.stage_stop) + " fill=" + std::to_string(p.use_fill) +
                  " opt=" + std::to_string(p.optimal_dc) + std::to_string(p.optimal_ac) +
                  " all=" + std::to_string(p.every_header) + " t=" + std::to_string(p.transpose) + " w=";
  if (p.custom_weights)
    for (const int w : p.weights) s += std::to_string(w);
  return s;
}

inline Case make_case(std::mt19937& rng, int usual = 100) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  Case c;
  trivelet::ccsds122::Params& p = c.params;
  p.dwt = pick(0, 2) ? trivelet::ccsds122::Dwt::kInteger : trivelet::ccsds122::Dwt::kFloat;
  p.is_signed = pick(0, 2) == 0;
  const int most = p.dwt == trivelet::ccsds122::Dwt::kInteger ? 25 : p.is_signed ? 28 : 27;
  p.bits = pick(0, 3) ? pick(1, 16) : pick(1, most);
  const int wide = pick(0, 9) ? pick(17, usual) : pick(17, 300), high = pick(0, 9) ? pick(17, usual) : pick(17, 300);
  c.picture = random_picture(rng, wide, high, p.bits, p.is_signed, static_cast<Content>(pick(0, 4)));
  switch (pick(0, 3)) {
    case 0: p.segment_blocks = 16; break;
    case 1: p.segment_blocks = static_cast<std::uint32_t>(std::max(16, (wide + 7) / 8)); break;
    case 2: p.segment_blocks = trivelet::ccsds122::kMaxSegmentBlocks; break;
    default: p.segment_blocks = static_cast<std::uint32_t>(pick(16, 300)); break;
  }
  p.word_bytes = pick(0, 1) ? 1 : pick(1, 8);
  p.optimal_dc = pick(0, 2) != 0;
  p.optimal_ac = pick(0, 2) != 0;
  p.every_header = pick(0, 3) == 0;
  p.transpose = pick(0, 3) == 0;
  if (pick(0, 3) == 0) {
    p.custom_weights = true;
    // At most 2 above 20 bits, so that weighted coefficients fit into 31 bits.
    for (auto& w : p.weights) w = static_cast<std::uint8_t>(pick(0, p.bits > 20 ? 2 : 3));
  }
  const double samples = static_cast<double>(wide) * high;
  switch (pick(0, 6)) {
    case 0:
      p.segment_bytes = static_cast<std::uint32_t>(pick(0, 1) ? pick(32, 200) : pick(200, 20000));
      p.use_fill = pick(0, 2) == 0;
      p.shorten_last = pick(0, 1) != 0;
      break;
    case 1:
      p.total_bytes = static_cast<std::uint64_t>(samples * (1 + pick(0, 7)) / 8 + 24 * (samples / 1024 + 4));
      break;
    case 2: p.dc_stop = pick(0, 3) == 0; break;
    case 3:
      p.bit_plane_stop = pick(0, 1) ? pick(0, 6) : pick(0, 31);
      p.stage_stop = pick(0, 3);
      break;
    default: break;
  }
  c.lossless = p.dwt == trivelet::ccsds122::Dwt::kInteger && !p.segment_bytes && !p.total_bytes && !p.dc_stop &&
               p.bit_plane_stop == 0 && p.stage_stop == 3;
  return c;
}

/// A published test stream with its picture and parameters.
struct Vector {
  std::string name, json;
  Picture picture;
  std::vector<std::byte> stream;
  trivelet::ccsds122::Params params;
};

inline Vector load_vector(const std::filesystem::path& folder, const std::string& name) {
  Vector v;
  v.name = name;
  const std::vector<std::byte> text = read_file(folder / (name + ".json"));
  v.json.assign(reinterpret_cast<const char*>(text.data()), text.size());
  const int bits = json_int(v.json, "bit_depth");
  const std::string image = json_value(v.json, "image");
  if (image.ends_with(".pgm")) {
    v.picture = read_pgm(folder / image, bits);
  } else {
    const std::vector<std::byte> raw = read_file(folder / image);
    v.picture = unpack(raw.data(), json_int(v.json, "width"), json_int(v.json, "height"), bits,
                       json_value(v.json, "signed") == "true", bits <= 16 ? 2 : 4, false);
  }
  v.stream = read_file(folder / json_value(v.json, "bitstream"));

  trivelet::ccsds122::Params& p = v.params;
  p.dwt = json_value(v.json, "dwt") == "integer" ? trivelet::ccsds122::Dwt::kInteger : trivelet::ccsds122::Dwt::kFloat;
  p.bits = bits;
  p.is_signed = v.picture.is_signed;
  p.segment_blocks = static_cast<std::uint32_t>(json_int(v.json, "segment_size_S"));
  p.transpose = json_int(v.json, "TransposeImg") != 0;
  const int word = json_int(v.json, "CodeWordLength");
  p.word_bytes = 1 + (word >> 1) + 4 * (word & 1);
  p.optimal_dc = json_int(v.json, "OptDCSelect") != 0;
  p.optimal_ac = json_int(v.json, "OptACSelect") != 0;
  p.segment_bytes = static_cast<std::uint32_t>(json_int(v.json, "SegByteLimit"));
  p.dc_stop = json_int(v.json, "DCStop") != 0;
  p.bit_plane_stop = json_int(v.json, "BitPlaneStop");
  p.stage_stop = json_int(v.json, "StageStop");
  p.use_fill = json_int(v.json, "UseFill") != 0;
  p.every_header = json_value(v.json, "header_policy").ends_with("in every segment");
  p.custom_weights = json_int(v.json, "CustomWtFlag") != 0;
  if (p.custom_weights) {
    const std::string list = json_value(v.json, "CustomWt_HH1_HL1_LH1_HH2_HL2_LH2_HH3_HL3_LH3_LL3");
    std::size_t i = 0;
    for (const char c : list)
      if (c >= '0' && c <= '9') p.weights[i++] = static_cast<std::uint8_t>(c - '0');
  }
  return v;
}

inline std::vector<std::string> vector_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json" && entry.path().filename() != "manifest.json")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ccsds_test
