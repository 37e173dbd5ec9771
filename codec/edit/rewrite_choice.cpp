// Chooses the layers of a rewritten stream from its target: bytes, or an error from the index.
#include "codec/edit/rewrite_choice.h"
#include "codec/base/limits.h"
#include "codec/volume/volume_cuts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "codec/base/frame_times.h"
#include "codec/format/front_table.h"
#include "codec/transform/dwt.h"

namespace trivelet {

namespace {

double size_of(const ExtraBox& box) { return static_cast<double>(kBoxHeaderBytes + box.payload.size() + kBoxCrcBytes); }

// The squared error of all GOPs with the first `layers` layers.
double error_with(const RewriteSource& source, int layers) {
  double sum = 0;
  for (const SourceGop& g : source.gops())
    sum += source.samples_of(g) * error_of(g.info.layers[static_cast<std::size_t>(layers - 1)].error);
  return sum;
}

// For volumes with measured errors: keeps whole layers up to the first one that is good enough.
void choose_measured(double psnr, const VolumeCuts& cuts, LayerChoice& choice) {
  const int layers = static_cast<int>(cuts.cuts.size());
  choice.whole = 1;
  while (choice.whole < layers && psnr_of(cuts, static_cast<std::size_t>(choice.whole - 1)) < psnr) ++choice.whole;
}

// With the errors that the index predicts; the last layer may be truncated.
void choose_by_error(const RewriteSource& source, double psnr, LayerChoice& choice) {
  const StreamInfo& info = source.info();
  require(source.knows_errors(), ErrorKind::kBadArgument,
          (info.index_damage.empty() ? std::string("the index of this stream tells no errors")
                                     : info.index_damage + "; only it knew the errors of the layers") +
              ", so a PSNR cannot be aimed at; give a size");
  const double peak = (1 << source.header().video.format.bits) - 1;
  double samples = 0;
  for (const SourceGop& g : source.gops()) samples += source.samples_of(g);
  const double wanted = peak * peak / std::pow(10.0, psnr / 10) * samples;
  double before = 0;
  for (int layers = 1; layers <= source.header().layers; ++layers) {
    const double sum = error_with(source, layers);
    if (sum <= wanted) {
      choice.whole = layers;
      if (layers > 1 && before > sum) {
        choice.whole = layers - 1;
        choice.fraction = std::clamp((before - wanted) / (before - sum), 0.0, 1.0);
      }
      return;
    }
    before = sum;
  }
}

// The byte target from a size, bits per pixel or a bit rate; 0 without such a target.
double wanted_bytes(const RewriteSource& source, const RewriteResult& result) {
  const RewriteParams& p = source.params();
  const StreamHeader& header = source.header();
  const VideoInfo& v = header.video;
  double pictures = 0;
  for (const SourceGop& g : source.gops()) pictures += low_length(g.header.frames, header.dropped_temporal);
  if (p.bits_per_pixel > 0)
    return p.bits_per_pixel * static_cast<double>(low_length(v.width, header.dropped_spatial)) *
           low_length(v.height, header.dropped_spatial) * pictures / 8;
  if (p.bit_rate > 0) {
    require(v.frame_rate.num > 0, ErrorKind::kBadArgument, "a bit rate needs a frame rate, and the stream has none");
    return p.bit_rate / 8 *
           seconds_lasting(v, source.gops().front().header.times.front(),
                           {end_of(source.gops().back().header.times), 0}, static_cast<double>(result.frames));
  }
  return static_cast<double>(p.target_bytes);
}

// Bytes of the new stream without chunks: header, end, boxes, and the header of each GOP, which is shorter with empty
// layers.
double bytes_without_chunks(const RewriteSource& source, const RewriteResult& result, std::size_t table_bytes) {
  double fixed = sizeof kSignature + 3.0 * kBoxHeaderBytes + static_cast<double>(serialise(source.header()).size()) +
                 kEndPayloadBytes + 8;
  if (table_bytes > 0) fixed += size_of(empty_front_table(table_bytes));
  for (const ExtraBox& box : source.boxes()) fixed += size_of(box);
  if (!result.cuts.cuts.empty()) fixed += size_of({"volq", serialise(result.cuts)});
  for (std::size_t i = 0; i < source.gops().size(); ++i)
    fixed += static_cast<double>(header_bytes(source, source.gops()[i], 0)) + end_bytes(source, i);
  return fixed;
}

void choose_by_bytes(const RewriteSource& source, const RewriteResult& result, double target, LayerChoice& choice) {
  constexpr double kMost = 0x1p62;  // presentation times may claim an absurd duration
  choice.limit = static_cast<std::uint64_t>(std::min(target, kMost));
  if (choice.table_bytes > choice.limit / 16) choice.table_bytes = 0;
  double taken = bytes_without_chunks(source, result, choice.table_bytes);
  require(taken < target, ErrorKind::kBadArgument,
          "a target of " + count_of(choice.limit, "byte") + " is too small: the heads alone take " +
              std::to_string(static_cast<std::uint64_t>(taken)));
  int& whole = choice.whole;
  for (whole = 0; whole < source.header().layers; ++whole) {
    double layer = 0;
    for (const SourceGop& g : source.gops())
      layer += static_cast<double>(g.layers[static_cast<std::size_t>(whole)] + header_bytes(source, g, whole + 1) -
                                   header_bytes(source, g, whole));
    if (taken + layer > target) {
      choice.fraction = (target - taken) / layer;
      return;
    }
    taken += layer;
  }
}

// The bytes of the layers that stay whole.
std::uint64_t kept_bytes(const RewriteSource& source, int whole) {
  std::uint64_t bytes = 0;
  for (const SourceGop& g : source.gops()) bytes = std::accumulate(g.layers.begin(), g.layers.begin() + whole, bytes);
  return bytes;
}

}  // namespace

std::uint64_t motion_bytes(const SourceGop& g) {
  std::uint64_t bytes = 0;
  for (const ChunkEntry& c : g.header.motion) bytes += c.size;
  return bytes;
}

std::uint64_t header_bytes(const RewriteSource& source, const SourceGop& g, int layers) {
  GopHeader h = g.header;
  source.for_chunks(h, [&](int l, int, int, std::size_t i) {
    if (l >= layers) h.chunks[i].size = 0;
  });
  return serialise(source.header(), h).size() + kBoxHeaderBytes + motion_bytes(g);
}

double end_bytes(const RewriteSource& source, std::size_t i) {
  constexpr std::uint64_t kMostOfLayer = (std::uint64_t{1} << 28) - 1;
  const SourceGop& g = source.gops()[i];
  const std::int64_t before = i > 0 ? end_of(source.gops()[i - 1].header.times) : 0;
  double bytes = static_cast<double>(
      index_entry_bound(source.header().layers, kMostOfLayer, before, g.header.times[0].pts, end_of(g.header.times)));
  for (const ExtraBox& box : g.behind) bytes += size_of(box);
  return bytes;
}

LayerChoice choose_layers(const RewriteSource& source, const RewriteResult& result, bool with_table) {
  const RewriteParams& p = source.params();
  LayerChoice choice;
  choice.whole = source.header().layers;
  if (with_table) choice.table_bytes = front_table_room(source.header(), source.gops().size(), false);
  const std::vector<VolumeCuts::Cut>& cuts = result.cuts.cuts;
  if (p.layers > 0) {
    require(p.layers <= source.header().layers, ErrorKind::kBadArgument,
            "this stream has " + count_of(source.header().layers, "layer") + ", not " + std::to_string(p.layers));
    choice.whole = p.layers;
  } else if (p.psnr > 0 && !cuts.empty() &&
             std::all_of(cuts.begin(), cuts.end(), [](const VolumeCuts::Cut& c) { return c.known(); })) {
    choose_measured(p.psnr, result.cuts, choice);
  } else if (p.psnr > 0) {
    choose_by_error(source, p.psnr, choice);
  } else if (const double target = wanted_bytes(source, result); target > 0) {
    choose_by_bytes(source, result, target, choice);
  }
  if (choice.limit == 0 && choice.table_bytes > kept_bytes(source, choice.whole) / 16) choice.table_bytes = 0;
  return choice;
}

}  // namespace trivelet
