// What 'decode' calls the output of one of many inputs: as the file was named that the stream was made of, if it can be
// that kind of file again.

#include <algorithm>
#include <array>
#include <filesystem>

#include "apps/video/decode_job.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"

namespace trivelet::cli {

namespace {

/// Of a video: its former extension if files of that kind hold exactly what the stream does, else mkv.
std::string video_extension(const std::string& path, const std::string& former, const Common& common) {
  if (former == "y4m") return former;
  constexpr std::array kExactPictures = {"png", "ppm", "pgm", "tif", "tiff", "bmp"};
  const bool is_picture =
      former == "pbm" || std::find(kExactPictures.begin(), kExactPictures.end(), former) != kExactPictures.end();
  if (!is_picture || is_matroska_name(path)) return "mkv";
  const StreamFile file = open_stream_file(path);
  const StreamInfo info = probe(*file.source, limits(common));
  if (info.gops.size() != 1 || info.gops[0].frames != 1) return "mkv";
  return former == "pbm" && !info.lossless ? "pgm" : former;  // black and white has become greys
}

}  // namespace

std::string batch_output_name(const std::string& path, const std::string& name, const std::string& extension,
                              const Common& common) {
  const std::filesystem::path stem = std::filesystem::path(name).stem();
  const std::string bare = stem.stem().string() + ".";
  if (!extension.empty()) return bare + extension;
  const auto volume = volume_in(path, common);
  if (!volume) {
    const std::string former = stem.has_extension() ? stem.extension().string().substr(1) : "";
    return bare + video_extension(path, former, common);
  }
  const io::Envelope& envelope = volume->envelope;
  if (envelope.format == "dicom" || io::has_volume_name(stem.string()) || envelope.files.empty()) return stem.string();
  return stem.string() + "." + io::volume_extension(envelope.files.front().name);
}

}  // namespace trivelet::cli
