// Volumes at the program's edges: what a .tvl stream of a volume carries besides pictures, one kind of reader for
// volume files and such streams, and the actions of encode, decode, verify, compare and info for them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/cli/json.h"
#include "apps/video/video.h"
#include "codec/volume_cuts.h"
#include "codec/volume_map.h"
#include "io/volume/volume_io.h"
#include "trivelet/codec.h"

namespace trivelet::cli {

/// The boxes of a stream that holds a volume (FORMAT.md "Volumes").
inline constexpr const char* kMapBox = "Volm";
inline constexpr const char* kEnvelopeBox = "volh";
inline constexpr const char* kCutsBox = "volq";

/// What the boxes say; nothing for a stream that holds a video.
struct VolumeBoxes {
  VolumeMap map;
  io::Envelope envelope;
  VolumeCuts cuts;  ///< empty when the stream does not tell
  io::VolumeInfo info;
};
std::optional<VolumeBoxes> volume_boxes(const StreamInfo& stream);
/// The same for a file; nothing for what is no .tvl stream.
std::optional<VolumeBoxes> volume_boxes(const std::string& path);

/// Whether the pictures of the stream are those that were coded: lossless, and nothing was cut off afterwards.
bool has_exact_pictures(const StreamInfo& stream);

/// Volumes are coded on the CPU: Unsupported when --device asks for a GPU.
void refuse_gpu(const std::string& device);

/// A box of voxels: half open ranges along x, y, z.
struct VoxelRegion {
  std::uint64_t x = 0, y = 0, z = 0, width = 0, height = 0, depth = 0;
};
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
};
/// Decodes a stream of a volume. `info()` is of what is selected.
std::unique_ptr<VolumeSource> decode_volume(const std::string& path, const VolumeDecoding& decoding,
                                            const Common& common);

/// True when encode, compare and so on shall take the input for a volume: a file or folder of one, or typed so.
struct VolumeTyped {
  std::string size;    ///< --size
  std::string type;    ///< --type
  std::string format;  ///< --format
};
/// The --size that has three numbers or more; empty when there is none.
std::string volume_size(const InputOptions& input);
bool wants_volume(const std::string& path, const VolumeTyped& input);
io::VolumeOptions volume_options(const VolumeTyped& input);

struct VolumeCoding {
  std::string transform = "auto";  ///< auto, wavelet, prediction
  double max_error = -1;           ///< stored units; < 0 = not asked for
  double max_error_hu = -1;        ///< units of slope and intercept
  double ratio = 0;                ///< 0 = not asked for
  bool no_verify = false;
  int slab = 0;  ///< slices transformed together; 0 = chosen
};

/// Encodes as `params` says (lossless or a lossy target); `preset` decides how much is tried.
int encode_volume(const std::string& input, const std::string& output, const VolumeTyped& typed,
                  const VolumeCoding& coding, const EncoderParams& params, const std::string& preset,
                  const Command& app, const Common& common);
int decode_volume_to(const std::string& input, const std::string& output, const VolumeDecoding& decoding,
                     const Common& common);
int verify_volume(const std::string& input, const std::string& against, const VolumeTyped& typed, const Common& common);

/// What `info` says about a volume: names and values. `show_private` adds the texts of its header, which may name the
/// patient. `exact_pictures`: the map's bound holds, has_exact_pictures().
std::vector<std::pair<std::string, std::string>> volume_rows(const io::VolumeInfo& info, const VolumeMap* map,
                                                             bool exact_pictures, const io::Envelope& envelope,
                                                             bool show_private);
void put_volume(Json& json, const io::VolumeInfo& info, const VolumeMap* map, bool exact_pictures,
                const io::Envelope& envelope, bool show_private);

/// Distance of two volumes in stored units.
struct VolumeError {
  std::uint64_t scalars = 0;
  std::uint64_t different = 0;
  double squared = 0;
  double max = 0;
  double least = 0;  ///< of the first volume
  double largest = 0;
  void add(const VolumeError& other);
  /// Peak: largest - least of the first volume.
  double psnr() const;
};
VolumeError compare_scalars(const std::byte* a, const VoxelFormat& fa, const std::byte* b, const VoxelFormat& fb,
                            std::size_t scalars);
int compare_volumes(const std::string& a, const std::string& b, const VolumeTyped& typed, bool json,
                    const std::string& csv, double min_psnr, const Common& common);

}  // namespace trivelet::cli
