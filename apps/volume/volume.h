// Volumes in the program: what a .tvl stream of a volume carries besides pictures, one kind of reader for volume files
// and such streams, and the actions of encode, decode, verify, compare and info for them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/cli/json.h"
#include "apps/cluster/processes.h"
#include "apps/video/video.h"
#include "io/volume/volume_io.h"
#include "trivelet/volume.h"

namespace trivelet::cli {

/// The stream's description of its volume and of the original files.
struct VolumeInStream {
  VolumeStreamInfo coded;
  io::Envelope envelope;
  io::VolumeInfo info;
  std::vector<std::string> remarks;  ///< on the files (io::VolumeReader::remarks)
};
/// Empty for a stream of a video.
std::optional<VolumeInStream> volume_in(const StreamInfo& stream);
/// The same for a file; empty if it is not a .tvl stream.
std::optional<VolumeInStream> volume_in(const std::string& path, const Common& common);

/// The backend for volumes of this profile by --device; null: the CPU. Throws Unsupported if a GPU is named and the
/// profile is the predictive one, or if there is none. `auto` prints its choice. `max_memory`: of the GPU, bytes; 0 =
/// all. `slabs`: approximate number, 0 = unknown.
std::shared_ptr<const Backend> volume_backend(const std::string& device, std::size_t max_memory, Profile profile,
                                              std::uint64_t slabs);
/// The same to decode a file that holds a volume.
std::shared_ptr<const Backend> volume_backend(const std::string& device, std::size_t max_memory,
                                              const std::string& path, const Common& common);

/// "x,y,z,w,h,d" within the volume.
VoxelRegion parse_region(const std::string& text, const io::VolumeInfo& info);

/// Stored scalars, slice by slice of volume by volume, from a volume file or from a stream.
class VolumeSource {
 public:
  virtual ~VolumeSource() = default;
  virtual const io::VolumeInfo& info() const = 0;
  /// The next slice; false at the end.
  virtual bool read(std::byte* slice) = 0;
};
std::unique_ptr<VolumeSource> open_volume_source(const std::string& path, const io::VolumeOptions& options,
                                                 const Common& common);

struct VolumeDecoding {
  int reduce = 0;
  std::string slices;  ///< "A:B" along the third axis
  std::string region;  ///< "x,y,z,w,h,d"
  int max_layers = 0;
  int max_planes = 0;
  bool keep_partial = false;  ///< 0 where the stream is damaged
};
/// What it asks of the stream in a file.
VolumeDecoderParams volume_decoder_params(const VolumeDecoding& decoding, const std::string& path,
                                          const Common& common);
/// Decodes a stream of a volume. `info()` describes the selected part.
std::unique_ptr<VolumeSource> decode_volume(const std::string& path, const VolumeDecoding& decoding,
                                            const Common& common, std::shared_ptr<const Backend> backend = nullptr);

/// What of a folder of DICOM files is read.
struct SeriesChoice {
  std::string name;            ///< --series
  bool only_matching = false;  ///< --only-matching
  bool is_typed() const { return !name.empty() || only_matching; }
};
void add_series_options(Command& app, SeriesChoice& series, const char* group = nullptr);

/// Whether a command treats the input as a volume: a file or folder of one, or --type is given.
struct VolumeTyped {
  std::string size;    ///< --size
  std::string type;    ///< --type
  std::string format;  ///< --format
  bool allow_outside = false;
  SeriesChoice series{};
};
/// The --size that has three numbers or more; empty when there is none.
std::string volume_size(const InputOptions& input);
bool wants_volume(const std::string& path, const VolumeTyped& input);
io::VolumeOptions volume_options(const VolumeTyped& input, const Common& common);

/// A slice in 8 bits, grey or R, G, B, whose sides are at most `size`. slice < 0: the middle one along z.
struct VolumeThumbnail {
  VideoInfo video;
  Gop frame;
};
VolumeThumbnail volume_thumbnail(const std::string& path, const VolumeInStream& volume, int size, int slice,
                                 const Common& common);

struct VolumeCoding {
  VolumeEncoderParams params;
  double max_error_hu = -1;  ///< in units of slope and intercept; < 0 = not given
  bool verify = true;        ///< if the output can be read back
  bool must_verify = false;  ///< else refuse
  std::string device = "auto";
  std::size_t gpu_memory = 0;  ///< 0 = all
};
int encode_volume_to(const std::string& input, const std::string& output, const VolumeTyped& typed,
                     const VolumeCoding& coding, const Common& common);
/// The processes that decode it, if there are several.
struct VolumeWorkers {
  Processes* processes = nullptr;
  std::function<void()> call;  ///< the others, to help_decode_volume()
};
/// What all but the first do, or why they cannot.
void help_decode_volume(Processes& processes, const std::string& input, const VolumeDecoding& decoding,
                        const Common& common, const std::function<std::shared_ptr<const Backend>()>& prepare);
int decode_volume_to(const std::string& input, const std::string& output, const VolumeDecoding& decoding,
                     const Common& common, std::shared_ptr<const Backend> backend, const VolumeWorkers& workers = {});
/// The others of `workers` decode pieces, as by help_decode_volume(); this process compares.
int verify_volume(const std::string& input, const std::string& against, const VolumeTyped& typed, const Common& common,
                  std::shared_ptr<const Backend> backend, const VolumeWorkers& workers = {});

/// The description of a volume for `info`: names and values. `coded`: of a stream, otherwise null. `show_private` adds
/// the texts of its header, which may name the patient.
std::vector<std::pair<std::string, std::string>> volume_rows(const io::VolumeInfo& info, const VolumeStreamInfo* coded,
                                                             const io::Envelope& envelope, bool show_private);
void put_volume(Json& json, const io::VolumeInfo& info, const VolumeStreamInfo* coded, const io::Envelope& envelope,
                bool show_private);

int compare_volumes(const std::string& a, const std::string& b, const VolumeTyped& typed, bool json,
                    const std::string& csv, double min_psnr, const Common& common);

}  // namespace trivelet::cli
