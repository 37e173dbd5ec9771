// Videos that are a picture a frame: "shots/%04d.png", or a folder of pictures. Internal to io.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/video/video_format_table.h"

namespace trivelet::io {

/// A name with a number in it: one "%d", "%4d" or "%04d" in the last part of a path, "%%" for a percent sign.
class NumberedName {
 public:
  /// Nothing for names without such a number.
  static std::optional<NumberedName> parse(const std::string& path);
  std::string name(std::uint64_t number) const;
  /// The number in `name`, a last part of a path; nothing if it is not one of these names.
  std::optional<std::uint64_t> number_in(const std::string& name) const;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;  ///< "" or with a slash at the end
  std::string before_;
  std::string after_;
  int digits_ = 1;  ///< at least this many
  char fill_ = ' ';
};

/// True if a file's extension is that of a picture.
bool is_picture_name(const std::string& file);

/// Pictures of one size and format; `path` is a folder or a NumberedName. Those of a folder come in the order of the
/// numbers in their names, 9 before 10. Those of a NumberedName start at the least number and end at a gap.
Reader make_pictures_reader(const std::string& path, const ReaderOptions& options);

/// One file a frame, numbered from 1. They get their names together, in finish().
Writer make_pictures_writer(const NumberedName& names, const VideoInfo& info, const WriterOptions& options);

}  // namespace trivelet::io
