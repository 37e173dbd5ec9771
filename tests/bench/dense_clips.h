// Loads raw clips and transforms them, for the programs that train and measure the dense coder.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "codec/transform/dwt.h"
#include "codec/transform/tree.h"
#include "trivelet/types.h"

namespace trivelet::bench {

/// NAME=FILE:WIDTHxHEIGHT:FORMAT, a headerless planar file; FORMAT as in types.h (yuv420p, gray, gray16, s16).
struct Clip {
  std::string name;
  VideoInfo info;
  std::vector<unsigned char> bytes;
  std::size_t frame_bytes = 0;
  int frames = 0;
  bool is_signed = false;
};

inline Clip load_clip(const std::string& text) {
  Clip c;
  char name[256], path[1024], format[64];
  if (std::sscanf(text.c_str(), "%255[^=]=%1023[^:]:%dx%d:%63s", name, path, &c.info.width, &c.info.height, format) !=
      5) {
    std::fprintf(stderr, "not NAME=FILE:WIDTHxHEIGHT:FORMAT: %s\n", text.c_str());
    std::exit(2);
  }
  c.name = name;
  if (std::string(format) == "s16") {
    c.info.format = parse_pixel_format("gray16");
    c.info.format.is_signed = true;
  } else {
    c.info.format = parse_pixel_format(format);
  }
  std::FILE* f = std::fopen(path, "rb");
  if (!f) {
    std::perror(path);
    std::exit(2);
  }
  std::fseek(f, 0, SEEK_END);
  c.bytes.resize(static_cast<std::size_t>(std::ftell(f)));
  std::rewind(f);
  if (std::fread(c.bytes.data(), 1, c.bytes.size(), f) != c.bytes.size()) std::exit(2);
  std::fclose(f);
  for (int i = 0; i < c.info.format.components(); ++i)
    c.frame_bytes += static_cast<std::size_t>(c.info.component_width(i)) *
                     static_cast<std::size_t>(c.info.component_height(i)) *
                     static_cast<std::size_t>(c.info.format.bytes_per_sample());
  c.frames = static_cast<int>(c.bytes.size() / c.frame_bytes);
  return c;
}

/// A table file of train_dense without quotes and line ends.
inline std::string read_table_text(const std::string& path) {
  std::FILE* f = std::fopen(path.c_str(), "rb");
  if (!f) {
    std::perror(path.c_str());
    std::exit(2);
  }
  std::string text;
  for (int c = std::fgetc(f); c != EOF; c = std::fgetc(f))
    if (c > ' ' && c != '"') text += static_cast<char>(c);
  std::fclose(f);
  return text;
}

/// The coefficients of one component of one GOP.
template <class T>
struct Volume {
  std::vector<T> memory;
  Field<T> field;
  Decomposition d;
};

struct Setup {
  int gop = 32;
  int temporal_levels = 4;
  int spatial_levels = -1;
  Layout layout = Layout::kT2d;
};

/// The command line of the programs of the dense coder: `--steps 6,12`, `--lossless`, `--dyadic`, `--levels N`,
/// `--temporal N`, `--gop N`, `--block N`, files of clips, and one option of the program's own with a text.
struct CommandLine {
  std::vector<float> steps = {6, 12, 24, 44};
  Setup setup;
  int block = 128;
  bool lossless = false;
  std::string text;
  std::vector<Clip> clips;

  CommandLine(int argc, char** argv, const std::string& own) {
    for (int i = 1; i < argc; ++i) {
      const std::string a = argv[i];
      if (a == "--steps") {
        steps.clear();
        for (char* p = std::strtok(argv[++i], ","); p; p = std::strtok(nullptr, ","))
          steps.push_back(std::strtof(p, nullptr));
      } else if (a == "--lossless") {
        lossless = true;
        steps = {1};
      } else if (a == "--dyadic") {
        setup.layout = Layout::kDyadic;
      } else if (a == "--levels") {
        setup.spatial_levels = std::atoi(argv[++i]);
      } else if (a == "--temporal") {
        setup.temporal_levels = std::atoi(argv[++i]);
      } else if (a == "--gop") {
        setup.gop = std::atoi(argv[++i]);
      } else if (a == "--block") {
        block = std::atoi(argv[++i]);
      } else if (a == own) {
        text = argv[++i];
      } else {
        clips.push_back(load_clip(a));
      }
    }
  }
};

/// Calls f(volume) for every component of every GOP. T = float: 9/7; int32: reversible 5/3.
template <class T, class F>
void for_volumes(const Clip& clip, const Setup& setup, ThreadPool& pool, F f) {
  const PixelFormat& format = clip.info.format;
  for (int first = 0; first < clip.frames; first += setup.gop) {
    const int frames = std::min(setup.gop, clip.frames - first);
    if (first > 0 && 2 * frames < setup.gop) break;
    std::size_t at = 0;
    for (int c = 0; c < format.components(); ++c) {
      const int w = clip.info.component_width(c);
      const int h = clip.info.component_height(c);
      Volume<T> v;
      v.field.shape = {frames, h, w};
      v.memory.resize(v.field.shape.samples());
      v.field.data = v.memory.data();
      v.field.row_stride = w;
      v.field.frame_stride = static_cast<std::ptrdiff_t>(w) * h;
      v.d.layout = setup.layout;
      int levels = setup.spatial_levels >= 0                            ? setup.spatial_levels
                   : clip.info.height >= 720 || clip.info.width >= 1280 ? 5
                                                                        : 4;
      levels -= format.is_chroma(c) && format.log2_chroma_w > 0;
      v.d.spatial_levels = levels;
      v.d.temporal_levels = std::min(setup.temporal_levels, setup.layout == Layout::kDyadic ? levels : 8);
      v.d.spatial = v.d.temporal = std::is_same_v<T, float> ? Wavelet::kCdf97 : Wavelet::kCdf53;
      BasicVolumeView<const std::byte> samples;
      samples.data = reinterpret_cast<const std::byte*>(clip.bytes.data()) +
                     static_cast<std::size_t>(first) * clip.frame_bytes + at;
      samples.shape = v.field.shape;
      samples.bytes_per_sample = format.bytes_per_sample();
      samples.is_signed = format.is_signed;
      samples.row_stride = static_cast<std::ptrdiff_t>(w) * samples.bytes_per_sample;
      samples.frame_stride = static_cast<std::ptrdiff_t>(clip.frame_bytes);
      forward_transform<T>(samples, format.is_signed ? 0 : 1 << (format.bits - 1), v.field, v.d, pool,
                           SimdLevel::kBest);
      f(v);
      at += static_cast<std::size_t>(w) * static_cast<std::size_t>(h) *
            static_cast<std::size_t>(format.bytes_per_sample());
    }
  }
}

}  // namespace trivelet::bench
