// When the volumes of a DICOM series were taken, and what follows for the step of a fourth axis. Internal to io.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "io/volume/volume_io.h"

namespace trivelet::io {

/// What a file or a frame says of its time, in seconds. NaN: nothing.
struct DicomTimes {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  double offset = kUnknown;     ///< Temporal Position Time Offset
  double reference = kUnknown;  ///< Frame Reference Time, of PET
  double trigger = kUnknown;    ///< Trigger Time, or the delay after the heart's trigger
  double acquired = kUnknown;   ///< Acquisition Date and Time, from any day
  double resolution = 0;        ///< Temporal Resolution; 0 = unknown
  double repetition = 0;        ///< Repetition Time; 0 = unknown
  double echo = 0;              ///< Echo Time; 0 = unknown
};

/// Seconds of a value of type DT, YYYYMMDDHHMMSS.F with a part left out, from any day; NaN for other texts.
double seconds_of_date_time(std::string_view text);
/// The same of values of types DA and TM; without a date, within the day.
double seconds_of_date_and_time(std::string_view date, std::string_view time);

/// Sets the step of the fourth axis if it is known. `times`: of a picture at the same place in each volume.
/// `is_3d`: volumes are not made of slices that were taken one after the other, so that Repetition Time is not their
/// distance.
void set_time_step(const std::vector<DicomTimes>& times, bool is_3d, VolumeInfo& info,
                   std::vector<std::string>& remarks);

}  // namespace trivelet::io
