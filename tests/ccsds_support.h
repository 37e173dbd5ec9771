// Helpers of the CCSDS 122.0 tests: PGM and raw pictures, the few JSON values of a test vector, PSNR, random pictures.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "codec/still/ccsds122.h"

namespace ccsds_test {

/// A picture in 32-bit samples, and its bytes as the codec takes them.
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
  std::ifstream in(path, std::ios::binary);
  std::vector<char> c((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> out(c.size());
  if (!c.empty()) std::memcpy(out.data(), c.data(), c.size());
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

/// P5 of 8 or 16 bits without comments; `bits` as the vector says.
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

/// The value after "key": in a small JSON text, without quotes; empty when absent.
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
  candidates.push_back(fs::path(__FILE__).parent_path() / ".." / ".." / "shared" / "ccsds122" / "vectors");
  for (const fs::path& c : candidates)
    if (fs::exists(c / "manifest.json")) return c;
  return {};
}

enum class Content { kNoise, kSmooth, kSparse, kConstant, kExtreme };

/// A picture of `bits` bits whose samples use the whole range in the manner of `content`.
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

}  // namespace ccsds_test
