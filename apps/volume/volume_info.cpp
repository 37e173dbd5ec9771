// What `trivelet info` says about a volume. Texts of the header, which may name the patient, only when asked for.

#include <spdlog/fmt/fmt.h>

#include "apps/volume/volume.h"

namespace trivelet::cli {

namespace {

double value_at(std::uint64_t number, const VolumeMap& map) {
  // One number through the map's own arithmetic.
  VideoInfo video;
  video.width = video.height = 1;
  VolumeMap one = map;
  one.format.channels = 1;
  one.prediction = VolumeMap::Prediction::kNone;
  video.format = one.pixel_format();
  Gop gop(video, 1);
  gop.set_frames(1);
  const int planes = one.planes();
  for (int p = 0; p < planes; ++p) {
    const int low = one.bits() - 16;
    const int shift = planes == 1 ? 0 : std::max(0, low - 16 * p);
    const auto sample = static_cast<std::uint16_t>(number >> shift);
    MutableVolumeView v = gop.plane(p);
    if (v.bytes_per_sample == 1)
      *v.data = static_cast<std::byte>(sample);
    else
      *reinterpret_cast<std::uint16_t*>(v.data) = planes > 1 && p > 0 && p == planes - 1 && low % 16 != 0
                                                      ? static_cast<std::uint16_t>(sample & ((1 << (low % 16)) - 1))
                                                      : sample;
  }
  std::byte stored[8];
  VolumeMapper(one).to_stored(gop, 0, stored);
  return scalar_value(stored, map.format.type, map.format.big_endian);
}

const char* kind_name(const VolumeMap& map) {
  switch (map.kind) {
    case VolumeMap::Kind::kPalette: return "table of the values that occur";
    case VolumeMap::Kind::kReal: return "steps of a real scale";
    case VolumeMap::Kind::kAffine: break;
  }
  return "offset and scale";
}

constexpr const char* kPredictions[] = {"none", "in the slice", "across slices"};

}  // namespace

std::vector<std::pair<std::string, std::string>> volume_rows(const io::VolumeInfo& info, const VolumeMap* map,
                                                             bool exact_pictures, const io::Envelope& envelope,
                                                             bool show_private) {
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
  if (map) {
    std::string values = fmt::format("{:g}..{:g}, {} bits, {}", value_at(0, *map), value_at(map->last, *map),
                                     map->bits(), kind_name(*map));
    rows.emplace_back("values", values);
    if (map->prediction != VolumeMap::Prediction::kNone)
      rows.emplace_back("prediction", kPredictions[static_cast<int>(map->prediction)]);
    if (map->order == VolumeMap::Order::kFourthAxis) rows.emplace_back("order", "along the fourth axis");
    if (exact_pictures && !map->exact())
      rows.emplace_back("max error", fmt::format("{:g}, for every voxel", map->max_error));
  }
  if (show_private)
    for (const std::string& line : io::header_texts(envelope)) rows.emplace_back("header", line);
  return rows;
}

void put_volume(Json& json, const io::VolumeInfo& info, const VolumeMap* map, bool exact_pictures,
                const io::Envelope& envelope, bool show_private) {
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
  if (map) {
    json.member("min", value_at(0, *map));
    json.member("max", value_at(map->last, *map));
    json.member("bits", map->bits());
    json.member("map", kind_name(*map));
    json.member("prediction", kPredictions[static_cast<int>(map->prediction)]);
    json.member("along_fourth_axis", map->order == VolumeMap::Order::kFourthAxis);
    if (exact_pictures) json.member("max_error", map->max_error);
  }
  if (show_private) {
    json.begin_array("header");
    for (const std::string& line : io::header_texts(envelope)) json.value(line);
    json.end_array();
  }
  json.end_object();
}

}  // namespace trivelet::cli
