// Division of a byte target among the coded GOPs (see byte_plan.h).
#include "codec/rate/byte_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "codec/base/limits.h"
#include "codec/format/container.h"
#include "trivelet/error.h"

namespace trivelet {

namespace {

// Assumed bytes of a layer before they are known; the varint in the index then has room for twice as much.
constexpr std::uint64_t kLayerBytes = std::uint64_t{1} << 20;

// GOPs that remain for each GOP truncated in parallel, so that later ones can use the bytes that these leave.
constexpr std::size_t kLeftForEach = 3;

}  // namespace

BytePlan::BytePlan(const StreamHeader& header, std::vector<WaitingGop> gops, std::uint64_t total)
    : layers_(header.layers), gops_(std::move(gops)), total_(total) {
  std::vector<RateCurve> curves;
  for (const WaitingGop& g : gops_) curves.push_back(g.curve);
  slope_ = slope_for(curves, static_cast<double>(total) * kBodyShare);
}

// Bytes of the end of the stream and of index entries to come.
std::uint64_t BytePlan::tail(const std::vector<GopInfo>& index, std::uint64_t position) const {
  std::vector<GopInfo> so_far = index;
  so_far.push_back(gops_[index.size()].info);
  GopInfo& worst = so_far.back();
  worst.offset = position;
  worst.bytes = std::uint64_t{1} << 40;
  worst.layers.assign(static_cast<std::size_t>(layers_), {kLayerBytes, 0});
  std::uint64_t bytes = serialise_index(so_far).size() + 2 * kBoxHeaderBytes + kEndPayloadBytes;
  for (std::size_t j = index.size() + 1; j < gops_.size(); ++j)
    bytes += index_entry_bound(layers_, kLayerBytes, gops_[j - 1].info.end_pts, gops_[j].info.begin_pts,
                               gops_[j].info.end_pts);
  return bytes;
}

// log2 of the slope at which the parts of the GOPs from `first` on take `room` bytes.
double BytePlan::slope_of_room(std::size_t first, double room) const {
  std::vector<RateCurve> curves;
  double fixed = 0;
  for (std::size_t i = first; i < gops_.size(); ++i) {
    curves.push_back(gops_[i].curve);
    fixed += gops_[i].curve.fixed_bytes();
  }
  return slope_for(curves, room + fixed);
}

std::vector<std::uint64_t> BytePlan::next(const std::vector<GopInfo>& index, std::uint64_t position) const {
  const std::size_t first = index.size();
  const std::size_t left = gops_.size() - first;
  if (left == 0) return {};
  double wanted = 0;
  std::uint64_t needed = position + tail(index, position);
  for (std::size_t i = first; i < gops_.size(); ++i) needed += gops_[i].head + gops_[i].least;
  require(total_ >= needed, ErrorKind::kBadArgument,
          "a target of " + count_of(total_, "byte") + " is too small: " + std::to_string(needed) +
              " are needed for heads, motion and index alone; raise the target, lower EncoderParams::layers or do "
              "without EncoderParams::motion");
  const auto room = static_cast<double>(total_ - needed);
  // At this slope a GOP of which all is sent gets no more than that, which those behind it might not need either.
  const double slope = slope_of_room(first, room);
  for (std::size_t i = first; i < gops_.size(); ++i) wanted += gops_[i].curve.body_bytes(slope);
  std::vector<std::uint64_t> bytes;
  for (std::size_t i = first; i < first + std::max<std::size_t>(1, left / kLeftForEach); ++i) {
    const double share = left == 1    ? 1.0
                         : wanted > 0 ? gops_[i].curve.body_bytes(slope) / wanted
                                      : 1.0 / static_cast<double>(left);
    bytes.push_back(gops_[i].least + static_cast<std::uint64_t>(room * share));
  }
  return bytes;
}

}  // namespace trivelet
