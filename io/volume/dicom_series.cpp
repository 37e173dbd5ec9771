// Orders the slices of a DICOM series and finds their geometry. Values are never averaged, because one tilted or
// duplicated slice would shift all others. Sources: DICOM PS3.3 C.7.6.2 (image plane), C.7.6.16 (frames with geometry
// of their own), C.8.8.3 (offsets of frames).
#include "io/volume/dicom_series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "codec/base/limits.h"

namespace trivelet::io {

namespace {

constexpr double kSame = 1e-3;             // tolerance in millimetres, and in components of direction vectors
constexpr double kRounding = 1e-9;         // of sums of doubles
constexpr std::size_t kMostNamed = 8;      // files named in a remark
constexpr std::size_t kMostGroups = 1000;  // different kinds of files

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
double length_of(const std::vector<double>& v) { return std::sqrt(dot(v, v)); }

std::vector<double> normal_of(const std::vector<double>& o) {
  return {o[1] * o[5] - o[2] * o[4], o[2] * o[3] - o[0] * o[5], o[0] * o[4] - o[1] * o[3]};
}

bool has_place(const DicomGeometry& g) { return g.orientation.size() == 6 && g.position.size() == 3; }

bool near(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= kSame)) return false;
  return true;
}

bool same_samples(const DicomFile& a, const DicomFile& b) {
  return a.rows == b.rows && a.columns == b.columns && a.bits == b.bits && a.is_signed == b.is_signed &&
         a.samples == b.samples && a.real == b.real;
}
bool same_plane(const DicomFile& a, const DicomFile& b) {
  return near(a.geometry.orientation, b.geometry.orientation) && has_place(a.geometry) == has_place(b.geometry) &&
         near(a.geometry.spacing, b.geometry.spacing);
}

/// What copies of one picture share. The instance alone does not say it: programs that remove names may give all files
/// the same UID.
std::string picture_of(const DicomFile& d) {
  std::string text = d.instance + ' ' + number_text(d.number);
  for (const double v : d.geometry.position) text += ' ' + number_text(v);
  return text;
}

/// The first slice of the largest group of equal ones.
std::size_t usual_of(const std::vector<DicomSlice>& slices,
                     const std::function<bool(const DicomFile&, const DicomFile&)>& alike) {
  std::vector<std::pair<std::size_t, std::size_t>> groups;  // the first slice and the size of each group
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& g) { return alike(slices[g.first].found, slices[i].found); });
    if (group != groups.end())
      ++group->second;
    else if (groups.size() < kMostGroups)
      groups.emplace_back(i, 1);
  }
  return std::max_element(groups.begin(), groups.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// Moves slices that do not match behind the others, or drops them, with one remark for each reason.
class Misfits {
 public:
  Misfits(std::vector<DicomSlice>& slices, bool only_matching) : slices_(slices), drop_(only_matching) {}

  void add(std::size_t slice, const std::string& reason) {
    if (!odd_.insert(slice).second) return;
    by_reason_[reason].push_back(slices_[slice].file.name);
  }
  /// Returns how many remain in front.
  std::size_t take_out(std::size_t matching, std::vector<std::string>& remarks) {
    std::vector<DicomSlice> front, back;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const bool odd = odd_.count(i) > 0;
      if (odd && drop_) continue;
      (odd || i >= matching ? back : front).push_back(std::move(slices_[i]));
    }
    const std::size_t n = front.size();
    std::move(back.begin(), back.end(), std::back_inserter(front));
    slices_ = std::move(front);
    for (const auto& [reason, names] : by_reason_)
      remarks.push_back(names_of(names) + ": " + reason +
                        (drop_ ? "; left out"
                               : std::string("; stacked behind the volume, where ") +
                                     (names.size() == 1 ? "it has" : "they have") +
                                     " no place in space (VolumeOptions::only_matching leaves such files out)"));
    return n;
  }

 private:
  std::vector<DicomSlice>& slices_;
  bool drop_;
  std::set<std::size_t> odd_;
  std::map<std::string, std::vector<std::string>> by_reason_;
};

std::string samples_text(const DicomFile& d) {
  return std::to_string(d.columns) + " x " + std::to_string(d.rows) + " pixels of " +
         (d.samples > 1 ? std::to_string(d.samples) + " times " : "") + count_of(d.bits, "bit") +
         (d.is_signed ? ", signed" : "");
}

/// The matrix whose origin is the corner of the first slice and whose third column is `step`.
void set_affine(VolumeInfo& info, const DicomGeometry& g, const std::vector<double>& corner,
                const std::vector<double>& step) {
  const double sign[3] = {-1, -1, 1};
  for (std::size_t row = 0; row < 3; ++row) {
    info.affine[4 * row] = sign[row] * g.orientation[row] * info.spacing[0];
    info.affine[4 * row + 1] = sign[row] * g.orientation[row + 3] * info.spacing[1];
    info.affine[4 * row + 2] = sign[row] * step[row];
    info.affine[4 * row + 3] = sign[row] * corner[row];
  }
  info.has_affine = true;
  drop_bad_affine(info);
}

/// The same for slices of one position. Their thickness, which set_type() took for the distance, is the step.
void set_affine_of_one(VolumeInfo& info, const DicomGeometry& g, const std::vector<double>& corner) {
  std::vector<double> step = normal_of(g.orientation);
  if (!(length_of(step) > kSame)) return;
  for (double& v : step) v *= info.spacing[2];
  set_affine(info, g, corner, step);
}

std::string rounded(double v, double parts) { return number_text(std::round(parts * v) / parts); }

double apart(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// Whether two files of several frames have the same positions; if so, each is one volume or several.
bool same_places(const DicomFile& a, const DicomFile& b) {
  const auto near_place = [](const auto& x, const auto& y) { return apart(x, y) <= kSame; };
  return a.frames == b.frames && a.one_orientation == b.one_orientation && near(a.frame_offsets, b.frame_offsets) &&
         (a.frame_offsets.empty() || near(a.geometry.position, b.geometry.position)) &&
         std::equal(a.places.begin(), a.places.end(), b.places.begin(), b.places.end(), near_place);
}

/// Whether each of the first `count` files has frames at the same known positions.
bool are_volumes(const std::vector<DicomSlice>& slices, std::size_t count) {
  const DicomFile& first = slices.front().found;
  return first.frames > 1 && (first.places.size() == first.frames || first.frame_offsets.size() == first.frames) &&
         std::all_of(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](const DicomSlice& s) { return same_places(s.found, first); });
}

/// All frames of the first `count` files as those of one; no places if one of them has none.
DicomFile joined_frames(const std::vector<DicomSlice>& slices, std::size_t count) {
  DicomFile all = slices.front().found;
  all.frame_offsets.clear();
  all.frames = 0;
  bool placed = true;
  std::vector<std::array<double, 3>> places;
  for (std::size_t i = 0; i < count; ++i) {
    const DicomFile& d = slices[i].found;
    all.frames += d.frames;
    all.one_orientation = all.one_orientation && d.one_orientation;
    if (d.places.size() == d.frames)
      places.insert(places.end(), d.places.begin(), d.places.end());
    else if (d.frames == 1 && has_place(d.geometry))
      places.push_back({d.geometry.position[0], d.geometry.position[1], d.geometry.position[2]});
    else
      placed = false;
  }
  all.places = placed ? std::move(places) : std::vector<std::array<double, 3>>{};
  return all;
}

/// Takes out files whose frames lie elsewhere than more than half of all frames. Changes nothing if there is no such
/// majority.
void take_out_other_places(std::vector<DicomSlice>& slices, std::size_t& matching, bool only_matching,
                           std::vector<std::string>& remarks) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < matching; ++i) all += slices[i].found.frames;
  for (std::size_t i = 0; i < std::min(matching, kMostGroups); ++i) {
    const DicomFile& usual = slices[i].found;
    std::uint64_t frames = 0;
    for (std::size_t k = 0; k < matching; ++k) frames += same_places(slices[k].found, usual) ? usual.frames : 0;
    if (2 * frames <= all || (usual.places.empty() && usual.frame_offsets.empty())) continue;
    const DicomFile kept = usual;
    Misfits misfits(slices, only_matching);
    for (std::size_t k = 0; k < matching; ++k)
      if (!same_places(slices[k].found, kept)) misfits.add(k, "its frames lie elsewhere than most of the series");
    matching = misfits.take_out(matching, remarks);
    return;
  }
}

/// Places files in the order of their numbers, of which some have several frames. Returns how many volumes they form.
std::uint64_t place_files_of_frames(std::vector<DicomSlice>& slices, std::size_t& matching, bool only_matching,
                                    VolumeInfo& info, std::vector<std::string>& remarks) {
  if (!are_volumes(slices, matching)) {
    // Parts of one volume.
    VolumeInfo joined = info;
    std::vector<std::string> said;
    const std::uint64_t volumes = place_frames(joined, joined_frames(slices, matching), said);
    if (joined.has_affine && said.empty()) {
      info = joined;
      return volumes;
    }
    take_out_other_places(slices, matching, only_matching, remarks);
  }
  if (are_volumes(slices, matching)) return matching * place_frames(info, slices.front().found, remarks);
  remarks.push_back(
      "files of several frames, which do not have the same places, stand one behind the other in the order of their "
      "numbers");
  return 1;
}

/// Sorts by position; slices at one position by number.
void sort_along_normal(std::vector<DicomSlice>& slices, std::size_t matching) {
  std::vector<std::pair<std::size_t, DicomSlice>> sorted;  // with the index of the position
  const auto end = slices.begin() + static_cast<std::ptrdiff_t>(matching);
  std::stable_sort(slices.begin(), end,
                   [](const DicomSlice& a, const DicomSlice& b) { return a.position < b.position; });
  for (std::size_t i = 0; i < matching; ++i) {
    const bool next = i > 0 && slices[i].position - sorted[i - 1].second.position > kSame;
    const std::size_t number = i == 0 ? 0 : sorted[i - 1].first + (next ? 1 : 0);
    sorted.emplace_back(number, std::move(slices[i]));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.found.number < b.second.found.number;
  });
  for (std::size_t i = 0; i < matching; ++i) slices[i] = std::move(sorted[i].second);
}

/// The slices in excess of the usual count at a position, which lies at first..end: those of a number that is there
/// already, then the last ones.
std::vector<std::size_t> excess_slices(const std::vector<DicomSlice>& slices, std::size_t first, std::size_t end,
                                       std::size_t usual) {
  std::vector<std::size_t> kept, excess;
  for (std::size_t i = first; i < end; ++i) {
    const bool again = !kept.empty() && slices[kept.back()].found.number == slices[i].found.number;
    (again && end - first - excess.size() > usual ? excess : kept).push_back(i);
  }
  while (kept.size() > usual) {
    excess.push_back(kept.back());
    kept.pop_back();
  }
  return excess;
}

/// Sorts the slices into volumes, as many as slices at most positions, and returns the number. Slices in excess of
/// that are misfits. One volume if there are fewer slices at a position.
std::size_t divide_volumes(std::vector<DicomSlice>& slices, std::size_t& matching, bool only_matching,
                           std::vector<std::string>& remarks) {
  std::vector<std::size_t> first;  // first slice of each position
  for (std::size_t i = 0; i < matching; ++i)
    if (i == 0 || slices[i].position - slices[i - 1].position > kSame) first.push_back(i);
  const std::size_t positions = first.size();
  first.push_back(matching);
  std::map<std::size_t, std::size_t> counts;  // of slices at a position -> positions
  for (std::size_t p = 0; p < positions; ++p) ++counts[first[p + 1] - first[p]];
  const auto usual =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::size_t volumes = usual == counts.begin() ? usual->first : 1;
  if (counts.size() > 1) {
    Misfits misfits(slices, only_matching);
    for (std::size_t p = 0; p < positions; ++p)
      for (const std::size_t i : excess_slices(slices, first[p], first[p + 1], volumes))
        misfits.add(i, "at a position that another file has already, which not all have as often");
    matching = misfits.take_out(matching, remarks);
  }
  std::vector<DicomSlice> sorted;
  for (std::size_t v = 0; v < volumes; ++v)
    for (std::size_t p = 0; p < positions; ++p) sorted.push_back(std::move(slices[p * volumes + v]));
  std::move(sorted.begin(), sorted.end(), slices.begin());
  return volumes;
}

/// The number of volumes along a fourth axis, which slices that follow the volumes leave no place for.
std::uint64_t fourth_axis(std::uint64_t volumes, bool followed, std::vector<std::string>& remarks) {
  if (volumes < 2 || !followed) return volumes;
  remarks.push_back("the " + count_of(volumes, "volume") +
                    " stand one behind the other along the third axis, because files that fit none of them "
                    "follow (VolumeOptions::only_matching leaves these out and keeps the fourth axis)");
  return 1;
}

bool is_as_usual(double gap, double usual) { return std::fabs(gap - usual) <= 0.01 * usual; }

/// The most frequent distance; of several the one nearest to the middle of all.
double usual_gap(std::vector<double> gaps) {
  std::sort(gaps.begin(), gaps.end());
  const std::size_t middle = gaps.size() / 2;
  const auto from_middle = [middle](std::size_t i) { return i < middle ? middle - i : i - middle; };
  std::size_t best = middle, most = 0, first = 0, end = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    while (gaps[first] < gaps[i] && !is_as_usual(gaps[first], gaps[i])) ++first;
    end = std::max(end, i + 1);
    while (end < gaps.size() && is_as_usual(gaps[end], gaps[i])) ++end;
    if (end - first < most || (end - first == most && from_middle(i) >= from_middle(best))) continue;
    best = i;
    most = end - first;
  }
  return gaps[best];
}

void remark_on_gaps(const std::vector<DicomSlice>& slices, const std::vector<double>& gaps, double usual,
                    std::vector<std::string>& remarks) {
  const auto is_odd = [usual](double gap) { return !is_as_usual(gap, usual); };
  const auto odd = std::find_if(gaps.begin(), gaps.end(), is_odd);
  if (odd != gaps.end()) {
    const auto [least, most] = std::minmax_element(gaps.begin(), gaps.end());
    const auto at = static_cast<std::size_t>(odd - gaps.begin());
    const auto others = static_cast<std::size_t>(std::count_if(gaps.begin(), gaps.end(), is_odd));
    const std::string how = 2 * others < gaps.size()
                                ? "mostly " + rounded(usual, 1000)
                                : rounded(usual, 1000) + " is taken, the distance of " +
                                      std::to_string(gaps.size() - others) + " of " + count_of(gaps.size(), "pair");
    remarks.push_back("the distance between slices is not the same everywhere: " + rounded(*least, 1000) + " to " +
                      rounded(*most, 1000) + " mm, " + how + ", first another between " +
                      printable(slices[at].file.name) + " and " + printable(slices[at + 1].file.name) +
                      "; files of other formats have one distance for all");
  }
  for (std::size_t i = 0; i < gaps.size(); ++i)
    if (const double times = gaps[i] / usual; times > 1.9 && std::fabs(times - std::round(times)) < 0.05)
      remarks.push_back(count_of(static_cast<std::uint64_t>(std::round(times - 1)), "slice", "seems", "seem") +
                        " to be missing between " + printable(slices[i].file.name) + " and " +
                        printable(slices[i + 1].file.name));
}

/// Whether slices lie at equal steps from the first one.
bool is_line(const std::vector<DicomSlice>& slices, std::size_t count, const std::vector<double>& step,
             double tolerance) {
  const std::vector<double>& first = slices[0].found.geometry.position;
  for (std::size_t i = 1; i < count; ++i) {
    const std::vector<double>& place = slices[i].found.geometry.position;
    std::vector<double> off(3);
    for (std::size_t axis = 0; axis < 3; ++axis)
      off[axis] = place[axis] - first[axis] - static_cast<double>(i) * step[axis];
    if (!(length_of(off) <= tolerance)) return false;
  }
  return true;
}

/// The step between slices of the usual distance. If the gantry was tilted, the line through the corners is not along
/// the normal. Where rounded positions differ a little from even ones, it is a part of the way to the last slice: the
/// step of two neighbours would be wrong by the sum of all roundings there.
std::vector<double> usual_step(const std::vector<DicomSlice>& slices, const std::vector<double>& gaps, double usual) {
  std::vector<double> parts[3];
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    if (!is_as_usual(gaps[i], usual)) continue;
    const std::vector<double>& a = slices[i].found.geometry.position;
    const std::vector<double>& b = slices[i + 1].found.geometry.position;
    for (std::size_t axis = 0; axis < 3; ++axis) parts[axis].push_back(b[axis] - a[axis]);
  }
  std::vector<double> step(3);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::sort(parts[axis].begin(), parts[axis].end());
    step[axis] = parts[axis][parts[axis].size() / 2];
  }
  const std::size_t count = gaps.size() + 1;
  if (is_line(slices, count, step, kSame)) return step;
  std::vector<double> even(3);
  for (std::size_t axis = 0; axis < 3; ++axis)
    even[axis] = (slices[count - 1].found.geometry.position[axis] - slices[0].found.geometry.position[axis]) /
                 static_cast<double>(gaps.size());
  return is_line(slices, count, even, 0.01 * usual) ? even : step;
}

}  // namespace

std::string names_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
    text += (i > 0 ? ", " : "") + printable(names[i]);
  if (names.size() > kMostNamed) text += " and " + std::to_string(names.size() - kMostNamed) + " more";
  return text;
}

std::size_t match_slices(std::vector<DicomSlice>& slices, bool only_matching, std::vector<std::string>& remarks) {
  if (slices.size() == 1) return 1;
  const DicomSlice usual = slices[usual_of(slices, same_samples)];
  {
    Misfits misfits(slices, only_matching);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (same_samples(slices[i].found, usual.found)) continue;
      const std::string what = samples_text(slices[i].found) + ", the volume has " + samples_text(usual.found);
      require(only_matching, ErrorKind::kUnsupported,
              slices[i].file.path + ": " + what + "; VolumeOptions::only_matching leaves such files out");
      misfits.add(i, what);
    }
    misfits.take_out(slices.size(), remarks);
  }
  const DicomFile plane = slices[usual_of(slices, same_plane)].found;
  std::set<std::string> pictures;  // that fit
  Misfits misfits(slices, only_matching);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const DicomFile& d = slices[i].found;
    if (has_place(plane.geometry) && !has_place(d.geometry))
      misfits.add(i, "does not say where it lies, as those of the volume do");
    else if (!near(d.geometry.orientation, plane.geometry.orientation))
      misfits.add(i, "another orientation than the volume");
    else if (!near(d.geometry.spacing, plane.geometry.spacing))
      misfits.add(i, "another pixel spacing than the volume");
    else if (!d.instance.empty() && !pictures.insert(picture_of(d)).second)
      misfits.add(i, "there twice, with the same SOP Instance UID as another file");
  }
  return misfits.take_out(slices.size(), remarks);
}

std::uint64_t place_slices(std::vector<DicomSlice>& slices, std::size_t& matching, bool only_matching, VolumeInfo& info,
                           std::vector<std::string>& remarks) {
  const auto end = [&] { return slices.begin() + static_cast<std::ptrdiff_t>(matching); };
  const DicomGeometry geometry = slices.front().found.geometry;
  // Sorts along the normal if all slices have positions, else by number.
  const bool placed = std::all_of(
      slices.begin(), end(), [](const DicomSlice& s) { return has_place(s.found.geometry) && s.found.frames == 1; });
  if (!placed) {
    std::stable_sort(slices.begin(), end(),
                     [](const DicomSlice& a, const DicomSlice& b) { return a.found.number < b.found.number; });
    const auto has_frames = [](const DicomSlice& s) { return s.found.frames > 1; };
    if (std::any_of(slices.begin(), end(), has_frames)) {
      const std::uint64_t volumes = place_files_of_frames(slices, matching, only_matching, info, remarks);
      return fourth_axis(volumes, matching < slices.size(), remarks);
    }
    if (matching > 1)
      remarks.push_back(
          "files that do not say where they lie (Image Position) are stacked in the order of their numbers; the volume "
          "has no place in space");
    return 1;
  }
  const std::vector<double> normal = normal_of(geometry.orientation);
  for (DicomSlice& s : slices)
    if (s.found.geometry.position.size() == 3) s.position = dot(normal, s.found.geometry.position);
  sort_along_normal(slices, matching);
  const std::size_t volumes = divide_volumes(slices, matching, only_matching, remarks);
  const std::uint64_t axis = fourth_axis(volumes, matching < slices.size(), remarks);
  std::vector<double> gaps;
  for (std::size_t i = 1; i < matching / volumes; ++i) gaps.push_back(slices[i].position - slices[i - 1].position);
  if (gaps.empty()) {
    set_affine_of_one(info, geometry, slices[0].found.geometry.position);
    return axis;
  }
  const double usual = usual_gap(gaps);
  if (!(usual > kSame)) return axis;
  info.spacing[2] = usual;
  remark_on_gaps(slices, gaps, usual, remarks);
  const std::vector<double> step = usual_step(slices, gaps, usual);
  if (std::fabs(dot(step, normal) - usual) > kRounding * usual) info.spacing[2] = dot(step, normal);
  const double along = std::clamp(dot(step, normal) / length_of(step), -1.0, 1.0);
  const double degrees = std::acos(along) * 180 / 3.14159265358979323846;
  if (degrees > 0.1)
    remarks.push_back("the slices are shifted against each other: the volume is tilted by " + rounded(degrees, 10) +
                      " degrees");
  set_affine(info, geometry, slices[0].found.geometry.position, step);
  return axis;
}

std::uint64_t place_frames(VolumeInfo& info, const DicomFile& d, std::vector<std::string>& remarks) {
  const DicomGeometry& g = d.geometry;
  if (d.frames == 1 && has_place(g)) {
    set_affine_of_one(info, g, g.position);
    return 1;
  }
  if (d.frames > 1 && has_place(g) && d.frame_offsets.size() == d.frames) {  // dose grids: along the normal
    const double step = d.frame_offsets[1] - d.frame_offsets[0];
    bool regular = std::fabs(step) > kSame;
    for (std::size_t i = 1; i < d.frames; ++i)
      regular =
          regular && std::fabs(d.frame_offsets[i] - d.frame_offsets[i - 1] - step) <= kSame + 0.01 * std::fabs(step);
    if (!regular) {
      remarks.push_back("the distance between frames is not the same everywhere");
      return 1;
    }
    const std::vector<double> normal = normal_of(g.orientation);
    info.spacing[2] = std::fabs(step);
    set_affine(info, g, g.position, {normal[0] * step, normal[1] * step, normal[2] * step});
    return 1;
  }
  const auto& places = d.places;
  const std::size_t n = places.size();
  if (!d.one_orientation) remarks.push_back("the frames have several orientations: they are no volume in space");
  if (n != d.frames || n < 2 || !d.one_orientation || g.orientation.size() != 6) return 1;
  std::size_t slices = 1;
  while (slices < n && !(apart(places[slices], places[0]) <= kSame)) ++slices;
  bool repeat = n % slices == 0;
  for (std::size_t i = slices; repeat && i < n; ++i) repeat = apart(places[i], places[i % slices]) <= kSame;
  if (!repeat) {
    remarks.push_back(
        "the frames of several times, echoes or directions do not stand volume by volume: they are stacked in the "
        "order "
        "of the file, and have no place in files of other formats");
    return 1;
  }
  const auto& a = places[0];
  if (slices < 2) {  // one place at several times
    set_affine_of_one(info, g, {a[0], a[1], a[2]});
    return n;
  }
  std::vector<double> step(3);
  for (std::size_t i = 0; i < 3; ++i) step[i] = (places[slices - 1][i] - a[i]) / static_cast<double>(slices - 1);
  const double length = length_of(step);
  for (std::size_t i = 0; i < slices; ++i) {
    const auto t = static_cast<double>(i);
    const std::array<double, 3> due = {a[0] + t * step[0], a[1] + t * step[1], a[2] + t * step[2]};
    if (apart(places[i], due) <= kSame + 0.01 * length) continue;
    remarks.push_back("the frames are not at equal distances on a line: they have no place in files of other formats");
    return n / slices;
  }
  info.spacing[2] = std::fabs(dot(normal_of(g.orientation), step));
  if (!(info.spacing[2] > kSame)) info.spacing[2] = length;
  set_affine(info, g, {a[0], a[1], a[2]}, step);
  return n / slices;
}

}  // namespace trivelet::io
