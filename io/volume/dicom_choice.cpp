// Lists the series of a folder of DICOM files, and keeps the one that was chosen.
#include <algorithm>
#include <map>

#include "io/volume/dicom_series.h"

namespace trivelet::io {

namespace {

std::string text_of(const SeriesInFolder& s) {
  const auto short_text = [](const std::string& text) { return printable(text.substr(0, 64)); };
  std::string text = s.number.empty() ? "no number" : "number " + short_text(s.number);
  text += ", " + std::to_string(s.slices) + (s.slices == 1 ? " slice" : " slices");
  if (s.slices != s.files.size())
    text += " in " + std::to_string(s.files.size()) + (s.files.size() == 1 ? " file" : " files");
  if (!s.description.empty()) text += ", '" + short_text(s.description) + "'";
  return text + (s.uid.empty() ? std::string(", no UID ('") + kSeriesWithoutUid + "')" : ", UID " + short_text(s.uid));
}

}  // namespace

std::vector<SeriesInFolder> series_of(const std::vector<DicomSlice>& slices) {
  std::map<std::string, SeriesInFolder> found;
  for (const DicomSlice& slice : slices) {
    SeriesInFolder& s = found[slice.found.series];
    if (s.files.empty()) {
      s.uid = slice.found.series;
      s.number = slice.found.series_number;
      s.description = slice.found.series_description;
    }
    s.files.push_back(slice.file.name);
    s.slices += slice.found.frames;
  }
  std::vector<SeriesInFolder> all;
  for (auto& [uid, s] : found) all.push_back(std::move(s));
  const auto order = [](const SeriesInFolder& s) { return parse_whole(s.number).value_or(~std::uint64_t{0}); };
  std::stable_sort(all.begin(), all.end(),
                   [&](const SeriesInFolder& a, const SeriesInFolder& b) { return order(a) < order(b); });
  return all;
}

void choose_series(std::vector<DicomSlice>& slices, const std::string& wanted, const FileToRead& first) {
  const std::vector<SeriesInFolder> all = series_of(slices);
  std::vector<const SeriesInFolder*> chosen;
  const auto number = parse_whole(wanted);
  for (const SeriesInFolder& s : all)
    if (!wanted.empty() && (s.uid == wanted || (s.uid.empty() && wanted == kSeriesWithoutUid))) chosen = {&s};
  if (chosen.empty())
    for (const SeriesInFolder& s : all)
      if (wanted.empty() || (number && parse_whole(s.number) == number)) chosen.push_back(&s);
  if (chosen.size() == 1) {
    std::erase_if(slices, [uid = chosen[0]->uid](const DicomSlice& s) { return s.found.series != uid; });
    return;
  }
  constexpr std::size_t kMostListed = 100;
  std::string list;
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i) list += "\n  " + text_of(all[i]);
  if (all.size() > kMostListed) list += "\n  and " + std::to_string(all.size() - kMostListed) + " more";
  const std::string here = first.path + (slices.size() > 1 ? " and the files beside it" : "");
  const std::string how = "; VolumeOptions::series takes one, by its UID or number:" + list;
  // The user cannot choose among stored headers.
  const ErrorKind kind = first.may_unpack ? ErrorKind::kBadArgument : ErrorKind::kBadStream;
  if (wanted.empty()) fail(kind, here + " belong to " + std::to_string(all.size()) + " series" + how);
  if (chosen.empty()) fail(kind, here + " hold no series '" + printable(wanted.substr(0, 64)) + "'" + how);
  fail(kind,
       here + " hold " + std::to_string(chosen.size()) + " series with the number " + std::to_string(*number) + how);
}

}  // namespace trivelet::io
