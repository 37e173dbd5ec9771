// The description of a volume by `trivelet info`. Texts of the header, which may name the patient, only on request.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "apps/volume/volume.h"

namespace trivelet::cli {

namespace {

const char* name_of(VolumeMapKind map) {
  switch (map) {
    case VolumeMapKind::kPalette: return "table of the values that occur";
    case VolumeMapKind::kReal: return "steps of a real scale";
    case VolumeMapKind::kAffine: break;
  }
  return "offset and scale";
}

constexpr const char* kPredictions[] = {"none", "in the slice", "across slices"};

/// Each once, for NaN has many bit patterns.
std::string marked_text(const std::vector<double>& values) {
  std::string text;
  std::vector<std::string> seen;
  for (const double v : values) {
    std::string one = std::isnan(v) ? "NaN" : fmt::format("{:g}", v);
    if (std::find(seen.begin(), seen.end(), one) != seen.end()) continue;
    text += (text.empty() ? "" : ", ") + one;
    seen.push_back(std::move(one));
  }
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> volume_rows(const io::VolumeInfo& info, const VolumeStreamInfo* coded,
                                                             const io::Envelope& envelope, bool show_private) {
  std::vector<std::pair<std::string, std::string>> rows;
  std::string size = fmt::format("{}x{}x{}", info.width, info.height, info.slices);
  if (info.volumes > 1) size += fmt::format("x{}", info.volumes);
  size += fmt::format(", {}{}", trivelet::to_string(info.voxel.type), info.voxel.big_endian ? " big-endian" : "");
  if (info.voxel.channels > 1) size += fmt::format(", {} channels", info.voxel.channels);
  rows.emplace_back("volume", size);
  if (!info.format.empty())
    rows.emplace_back("from",
                      info.format + (envelope.files.size() > 1 ? ", " + count_of(envelope.files.size(), "file") : ""));
  rows.emplace_back("spacing", fmt::format("{:g} x {:g} x {:g}", info.spacing[0], info.spacing[1], info.spacing[2]));
  if (info.slope != 1 || info.intercept != 0)
    rows.emplace_back("scale", fmt::format("value = {:g} * stored + {:g}", info.slope, info.intercept));
  if (coded) {
    rows.emplace_back("values",
                      fmt::format("{:g}..{:g}, {}, {}", coded->least, coded->largest,
                                  count_of(static_cast<std::uint64_t>(coded->bits), "bit"), name_of(coded->map)));
    if (coded->prediction != VolumePrediction::kNone)
      rows.emplace_back("prediction", kPredictions[static_cast<int>(coded->prediction)]);
    if (coded->order == VolumeOrder::kFourthAxis) rows.emplace_back("order", "along the fourth axis");
    if (coded->has_bound && !coded->exact())
      rows.emplace_back("max error", fmt::format("{:g}, for every voxel", coded->max_error));
    if (!coded->marked.empty()) rows.emplace_back("marked", marked_text(coded->marked) + ", exact");
  }
  if (show_private)
    for (const std::string& line : io::header_texts(envelope)) rows.emplace_back("header", line);
  return rows;
}

void put_volume(Json& json, const io::VolumeInfo& info, const VolumeStreamInfo* coded, const io::Envelope& envelope,
                bool show_private) {
  json.begin_object("volume");
  json.member("width", info.width);
  json.member("height", info.height);
  json.member("slices", info.slices);
  json.member("volumes", info.volumes);
  json.member("scalar", trivelet::to_string(info.voxel.type));
  json.member("big_endian", info.voxel.big_endian);
  json.member("channels", info.voxel.channels);
  json.member("from", info.format);
  json.begin_array("spacing");
  for (const double s : info.spacing) json.value(s);
  json.end_array();
  if (info.has_affine) {
    json.begin_array("affine");
    for (const double a : info.affine) json.value(a);
    json.end_array();
  }
  json.member("slope", info.slope);
  json.member("intercept", info.intercept);
  if (coded) {
    json.member("min", coded->least);
    json.member("max", coded->largest);
    json.member("bits", coded->bits);
    json.member("map", name_of(coded->map));
    json.member("prediction", kPredictions[static_cast<int>(coded->prediction)]);
    json.member("along_fourth_axis", coded->order == VolumeOrder::kFourthAxis);
    if (coded->has_bound) json.member("max_error", coded->max_error);
    if (!coded->marked.empty()) json.member("marked", marked_text(coded->marked));
  }
  if (show_private) {
    json.begin_array("header");
    for (const std::string& line : io::header_texts(envelope)) json.value(line);
    json.end_array();
  }
  json.end_object();
}

}  // namespace trivelet::cli
