// The step of the fourth axis of DICOM series. A clock counts if it runs forward and at an equal pace, or on average at
// that of Repetition Time. Without a clock it is Temporal Resolution, or Repetition Time. Sources: DICOM PS3.3
// C.7.6.16.2.2 and .13 (frame content, temporal position), C.8.9.4 (Frame Reference Time), C.8.3.1 (Repetition Time);
// PS3.5 6.2 (DA, TM, DT).
#include "io/volume/dicom_times.h"

#include <algorithm>
#include <optional>

#include "io/volume/volume_input.h"

namespace trivelet::io {

namespace {

constexpr double kMillisecond = 1e-3;
constexpr double kSamePace = 0.02;  // clocks of scanners count in steps of 2.5 ms and more
constexpr double kDay = 86400;

/// A part of `digits` as a number; nothing if it has other characters.
std::optional<int> part_of(std::string_view digits) {
  const bool is_number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  const auto value = is_number ? parse_whole(digits) : std::nullopt;
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

/// Days from 0000-03-01 in the Gregorian calendar.
double days_of(int year, int month, int day) {
  const int y = month > 2 ? year : year - 1;
  const int m = (month + 9) % 12;
  return 365.0 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
}

/// The pace of a clock; NaN if it does not run forward everywhere.
struct Clock {
  double mean = DicomTimes::kUnknown;
  bool is_even = false;
};
Clock clock_of(const std::vector<DicomTimes>& times, double DicomTimes::*member) {
  const double all = times.back().*member - times.front().*member;
  Clock clock{all / static_cast<double>(times.size() - 1), true};
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double step = times[i].*member - times[i - 1].*member;
    if (!(step > 0)) return {};
    clock.is_even = clock.is_even && std::fabs(step - clock.mean) <= kSamePace * clock.mean + kMillisecond;
  }
  return clock;
}

double rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

}  // namespace

double seconds_of_date_and_time(std::string_view date, std::string_view time) {
  std::string digits;
  for (const char c : trim(time))
    if (c != ':') digits += c;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::string_view whole = std::string_view(digits).substr(0, point);
  if (whole.size() < 2 || whole.size() > 6 || whole.size() % 2 != 0) return DicomTimes::kUnknown;
  double seconds = 0;
  const double unit[3] = {3600, 60, 1};
  for (std::size_t i = 0; i < whole.size(); i += 2) {
    const std::optional<int> part = part_of(whole.substr(i, 2));
    if (!part) return DicomTimes::kUnknown;
    seconds += unit[i / 2] * *part;
  }
  if (point + 1 < digits.size()) {
    const std::string_view fraction = std::string_view(digits).substr(point + 1, 6);
    const std::optional<int> part = part_of(fraction);
    if (!part) return DicomTimes::kUnknown;
    seconds += *part / std::pow(10.0, static_cast<double>(fraction.size()));
  }
  date = trim(date);
  if (date.size() != 8) return seconds;
  const std::optional<int> year = part_of(date.substr(0, 4)), month = part_of(date.substr(4, 2)),
                           day = part_of(date.substr(6, 2));
  if (!year || !month || !day) return seconds;
  return kDay * days_of(*year, *month, *day) + seconds;
}

double seconds_of_date_time(std::string_view text) {
  text = trim(text);
  const std::size_t zone = text.find_first_of("+-");  // the same in all files of a series
  text = text.substr(0, zone);
  if (text.size() < 14) return DicomTimes::kUnknown;
  return seconds_of_date_and_time(text.substr(0, 8), text.substr(8));
}

void set_time_step(const std::vector<DicomTimes>& times, bool is_3d, VolumeInfo& info,
                   std::vector<std::string>& remarks) {
  if (times.size() < 2) return;
  const DicomTimes& first = times.front();
  const auto differ = [&](double DicomTimes::*member) {
    return std::any_of(times.begin(), times.end(), [&](const DicomTimes& t) { return t.*member != first.*member; });
  };
  if (differ(&DicomTimes::echo)) return;  // an axis of echoes
  const auto set = [&info](double seconds) {
    info.spacing[3] = rounded(seconds);
    info.fourth_unit = FourthUnit::kSeconds;
  };
  const double repetition = differ(&DicomTimes::repetition) ? 0 : first.repetition;
  bool is_uneven = false;
  for (double DicomTimes::*member :
       {&DicomTimes::offset, &DicomTimes::reference, &DicomTimes::trigger, &DicomTimes::acquired}) {
    const Clock clock = clock_of(times, member);
    if (!(clock.mean > 0)) continue;
    if (repetition > 0 && std::fabs(clock.mean - repetition) <= kSamePace * repetition) return set(repetition);
    if (clock.is_even) return set(clock.mean);
    is_uneven = true;
  }
  if (is_uneven)
    remarks.push_back("the volumes were not taken at equal distances in time: other formats get no time step");
  else if (first.resolution > 0)
    set(first.resolution);
  else if (repetition > 0 && !is_3d)
    set(repetition);
}

}  // namespace trivelet::io
