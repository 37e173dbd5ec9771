// The table of video formats that need no FFmpeg. A new format is a row here.

#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

constexpr std::string_view kRawExtensions = "yuv raw rgb gray";

bool any_pixel_format(InputBytes&, const ReaderOptions&) { return true; }
bool y4m_as_it_is(InputBytes& source, const ReaderOptions& options) {
  return options.pixel_format.empty() || samples_of(options.pixel_format) == peek_y4m_format(source);
}
bool pnm_as_it_is(InputBytes&, const ReaderOptions& options) { return options.pixel_format.empty(); }

// In the order in which inputs are looked at.
constexpr InputFormat kInputFormats[] = {
    {"y4m", "", false, is_y4m, y4m_as_it_is, "yuv4mpegpipe", make_y4m_reader},
    {"raw rawvideo", kRawExtensions, true, nullptr, any_pixel_format, "", make_raw_reader},
    {"pnm pgm ppm", "", false, is_pnm, pnm_as_it_is, "", make_pnm_reader},
};

constexpr OutputFormat kOutputFormats[] = {
    {"y4m yuv4mpegpipe", "y4m", y4m_holds, make_y4m_writer},
    {"raw rawvideo", kRawExtensions, nullptr, make_raw_writer},
    {"pnm pgm ppm", "pgm ppm pnm", pnm_holds, make_pnm_writer},
    {"null", "", nullptr, make_null_writer},
    {"md5", "", nullptr, make_md5_writer},
    {"framemd5", "framemd5", nullptr, make_framemd5_writer},
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = words.find(' ');
    if (words.substr(0, end) == word) return true;
    words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  }
  return false;
}

}  // namespace

const InputFormat* input_format(std::string_view name) {
  for (const InputFormat& f : kInputFormats)
    if (has_word(f.names, name)) return &f;
  return nullptr;
}
const InputFormat* input_format(InputBytes& source, std::string_view extension) {
  for (const InputFormat& f : kInputFormats)
    if ((f.begins_like && f.begins_like(source)) || has_word(f.extensions, extension)) return &f;
  return nullptr;
}

bool is_sgi(InputBytes& source) {
  // The SGI Image File Format 1.00: magic, RLE or not, bytes of a sample, dimensions.
  const std::string_view head = source.peek(6);
  return head.size() == 6 && head.substr(0, 2) == "\x01\xda" && (head[2] == 0 || head[2] == 1) &&
         (head[3] == 1 || head[3] == 2) && head[4] == 0 && head[5] >= 1 && head[5] <= 3;
}

const OutputFormat* output_format(std::string_view name) {
  for (const OutputFormat& f : kOutputFormats)
    if (has_word(f.names, name)) return &f;
  return nullptr;
}
const OutputFormat* output_format_of_extension(std::string_view extension) {
  for (const OutputFormat& f : kOutputFormats)
    if (has_word(f.extensions, extension)) return &f;
  return nullptr;
}

}  // namespace trivelet::io
