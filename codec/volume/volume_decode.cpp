// VolumeDecoder of volume.h. It decodes GOP by GOP and crops to the requested region. If the fourth axis was coded
// first the slices are held in memory, because they are delivered in another order.

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/base/lasting_failure.h"
#include "codec/base/limits.h"
#include "codec/format/container.h"
#include "codec/format/stream_layout.h"
#include "codec/threads/parallel.h"
#include "codec/threads/prefetch.h"
#include "codec/transform/dwt.h"
#include "codec/volume/volume_cuts.h"
#include "codec/volume/volume_map.h"
#include "codec/volume/volume_mask.h"
#include "codec/volume/volume_predict.h"
#include "codec/volume/volume_request.h"
#include "trivelet/volume.h"

namespace trivelet {

std::optional<VolumeStreamInfo> volume_stream_info(const StreamInfo& stream) {
  const std::optional<VolumeMap> map = volume_map_of(stream.boxes);
  if (!map) return std::nullopt;
  VolumeStreamInfo info;
  for (const ExtraBox& box : stream.boxes) {
    if (box.type == kEnvelopeBox) info.envelope = box.payload;
    if (box.type == kCutsBox) info.cuts = parse_volume_cuts(box.payload.data(), box.payload.size());
  }
  if (info.cuts.cuts.size() != static_cast<std::size_t>(stream.layers)) info.cuts = {};
  info.volume = {map->format, stream.video.width, stream.video.height, map->slices, map->volumes};
  const std::uint64_t slices = info.volume.all_slices();
  require(stream.video.frames == 0 || stream.video.frames == slices, ErrorKind::kBadStream,
          "the stream has " + count_of(stream.video.frames, "picture") + ", its volume " + count_of(slices, "slice"));
  require(stream.video.format == map->pixel_format(), ErrorKind::kBadStream,
          "the pictures of the stream are not what its map of the volume makes");
  info.map = map->kind;
  info.order = map->order;
  info.prediction = map->prediction;
  info.bits = map->bits();
  info.least = map->value(0);
  info.largest = map->value(map->last);
  info.max_error = map->max_error;
  if (const std::optional<MaskDecoder> mask = volume_mask_of(stream.boxes, info.volume))
    for (const std::uint64_t bits : mask->values()) {
      std::byte stored[8];
      store_scalar(bits, map->format, stored);
      info.marked.push_back(scalar_value(stored, map->format.type, map->format.big_endian));
    }
  info.has_bound = stream.lossless && std::all_of(stream.gops.begin(), stream.gops.end(), [](const GopInfo& g) {
                     return g.layers.empty() || g.layers.back().error == 0;
                   });
  return info;
}

struct VolumeDecoder::State {
  const Backend* backend = nullptr;

  State(ByteSource& s, const VolumeDecoderParams& p) : source(s), params(p) {}

  ByteSource& source;
  VolumeDecoderParams params;
  VolumeStreamInfo info;
  VolumeMap map;
  Decomposition decomposition;
  std::uint64_t slab = 1;  // frames of a GOP
  bool in_order = true;
  // The requested region and the volume that it is part of, both after the reduction.
  VoxelRegion selection;
  VolumeDescription whole;
  VolumeDescription output;
  std::array<std::uint64_t, 3> step = {1, 1, 1};
  bool cuts_rows = false;

  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<VolumeMapper> mapper;
  std::vector<std::byte> picture;  // a decoded slice, if only a part of it is requested
  int picture_width = 0;
  std::optional<MaskDecoder> mask;
  std::optional<MaskOverlay> overlay;
  std::vector<std::byte> held;  // all slices, if they are delivered in another order
  std::uint64_t given = 0;
  std::uint64_t seen = 0;  // frames of the stream up to here, after reduction, including skipped ones
  const Gop* gop = nullptr;
  int at = 0;               // next frame of `gop`
  std::vector<int> frames;  // frames of `gop` to deliver together
  std::unique_ptr<ThreadPool> pool;

  // With keep_partial. Frames are counted after the reduction.
  struct GopPlace {
    std::uint64_t first = 0;  // frame, before the reduction
    bool is_damaged = false;
    std::vector<std::string> damage;
  };
  std::uint64_t first_seen = 0;  // of the frames that are decoded
  std::uint64_t end_seen = 0;    // of the selected frames
  std::uint64_t lost_end = 0;    // frames from `seen` to here are damaged
  std::string why;               // they are
  std::vector<LostSlices> lost;
  std::uint64_t lost_seen = 0;  // selected frames up to the last one in `lost`
  std::uint64_t selected = 0;   // frames up to `seen`
  std::mutex places_mutex;
  std::deque<GopPlace> places;  // of the GOPs in `gops`, and of the end

  std::unique_ptr<Prefetch> gops;  // last member: its thread uses the decoder

  bool is_predicted() const { return map.prediction != VolumePrediction::kNone; }
  bool is_predictive = false;  // the profile

  LastingFailure failure;  // of an earlier read()

  void read_header();
  void select();
  void reduce();
  void select_frames(DecoderParams& decoding);
  void select_region(DecoderParams& decoding);
  DecoderParams request();
  void begin();
  void begin_gops();
  bool next_picture();
  void note_place(bool is_gop);
  GopPlace take_place();
  void next_place();
  bool next_frame();
  std::uint64_t place_after_reduction(std::uint64_t frame) const {
    return frame / slab * ((slab + step[2] - 1) / step[2]) + frame % slab / step[2];
  }
  void lose(std::uint64_t z, std::uint64_t volume);
  void cut(int frame, std::byte* slice);
  std::uint64_t z_in_stream(std::uint64_t z) const;
  bool is_selected(std::uint64_t z, std::uint64_t volume) const {
    return z >= selection.z && z - selection.z < selection.depth && volume >= params.first_volume &&
           volume - params.first_volume < output.volumes;
  }
  void put_marked(std::uint64_t z, std::uint64_t volume, std::byte* slice);
  void hold_all();
  bool read(std::byte* slice);
  std::uint64_t read(std::byte* slices, std::uint64_t most);
};

void VolumeDecoder::State::read_header() {
  require(source.seekable(), ErrorKind::kBadArgument, "volumes are decoded from seekable sources only");
  source.seek(0);
  const StreamInfo stream = probe(source, params.limits, true);
  std::optional<VolumeStreamInfo> found = volume_stream_info(stream);
  require(found.has_value(), ErrorKind::kBadArgument, "this stream holds a video, not a volume");
  info = std::move(*found);
  map = *volume_map_of(stream.boxes);
  mask = volume_mask_of(stream.boxes, info.volume);
  if (mask) {
    check_memory(params.limits, 3 * info.volume.slice_bytes(), "to hold the marks of slices");
    overlay.emplace(map.format, mask->values());
  }
  decomposition = stream.decomposition;
  is_predictive = stream.profile == Profile::kPredictive;
  slab = static_cast<std::uint64_t>(stream.gop_frames);
  in_order = map.order == VolumeOrder::kFile || info.volume.volumes == 1;
  source.seek(0);
}

void VolumeDecoder::State::select() {
  const VolumeDescription& v = info.volume;
  const auto width = static_cast<std::uint64_t>(v.width);
  const auto height = static_cast<std::uint64_t>(v.height);
  require(
      !(is_predicted() || is_predictive) || (params.reduce == 0 && params.max_layers == 0 && params.max_planes == 0),
      ErrorKind::kUnsupported,
      "this volume is coded by prediction, which has no smaller pictures and no lower quality in it; encode it with "
      "the wavelet transform for those");
  selection = params.region.value_or(VoxelRegion{0, 0, 0, width, height, v.slices});
  const auto inside = [](std::uint64_t first, std::uint64_t count, std::uint64_t size) {
    return count >= 1 && first < size && count <= size - first;
  };
  require(inside(selection.x, selection.width, width) && inside(selection.y, selection.height, height) &&
              inside(selection.z, selection.depth, v.slices),
          ErrorKind::kBadArgument,
          "the region leaves the volume of " + std::to_string(v.width) + "x" + std::to_string(v.height) + "x" +
              std::to_string(v.slices) + " voxels");
  const std::uint64_t volumes =
      params.volumes > 0 ? params.volumes : v.volumes - std::min(v.volumes, params.first_volume);
  require(inside(params.first_volume, volumes, v.volumes), ErrorKind::kBadArgument,
          "volumes " + std::to_string(params.first_volume) + " to " + std::to_string(params.first_volume + volumes) +
              " of " + std::to_string(v.volumes));
  whole = v;
  if (params.reduce != 0) reduce();
  output = whole;
  output.volumes = volumes;
  output.width = static_cast<int>(selection.width);
  output.height = static_cast<int>(selection.height);
  output.slices = selection.depth;
  cuts_rows = output.width < whole.width || output.height < whole.height;
}

/// Halves `whole` and `selection` as often as requested.
void VolumeDecoder::State::reduce() {
  const int levels = params.reduce;
  require(levels >= 0 && levels <= decomposition.spatial_levels, ErrorKind::kBadArgument,
          "this volume can be reduced 0.." + std::to_string(decomposition.spatial_levels) + " times, not " +
              std::to_string(levels));
  const int z_levels = decomposition.layout == Layout::kDyadic ? std::min(levels, decomposition.temporal_levels) : 0;
  require(in_order || z_levels == 0, ErrorKind::kUnsupported,
          "reducing a volume whose fourth axis is transformed would leave out volumes, not slices");
  // Each GOP is halved by itself; a GOP may end inside a volume only if none spans two volumes.
  require(whole.volumes == 1 || whole.slices % slab == 0 || z_levels == 0, ErrorKind::kUnsupported,
          "these volumes cannot be reduced: they do not end where the coded groups of slices do");
  step = {std::uint64_t{1} << levels, std::uint64_t{1} << levels, std::uint64_t{1} << z_levels};
  // The voxel at x is represented by the one at x / step; a range keeps every representative of its voxels.
  const auto z_place = [&](std::uint64_t z) {
    return z / slab * ((slab + step[2] - 1) / step[2]) + z % slab / step[2];
  };
  const std::uint64_t last_x = (selection.x + selection.width - 1) / step[0];
  const std::uint64_t last_y = (selection.y + selection.height - 1) / step[1];
  const std::uint64_t last_z = z_place(selection.z + selection.depth - 1);
  selection.x /= step[0];
  selection.y /= step[1];
  selection.z = z_place(selection.z);
  selection.width = last_x - selection.x + 1;
  selection.height = last_y - selection.y + 1;
  selection.depth = last_z - selection.z + 1;
  whole.width = low_length(whole.width, levels);
  whole.height = low_length(whole.height, levels);
  whole.slices = z_place(whole.slices - 1) + 1;
}

/// Selects the frames of the stream from the first requested slice to the last one. They are whole GOPs if residuals
/// restart with each GOP, or if GOPs are reduced.
void VolumeDecoder::State::select_frames(DecoderParams& decoding) {
  const std::uint64_t left = (slab + step[2] - 1) / step[2];  // frames of a GOP after the reduction
  std::uint64_t first = selection.z;
  std::uint64_t end = selection.z + selection.depth;
  if (in_order) {
    first += params.first_volume * whole.slices;
    end += (params.first_volume + output.volumes - 1) * whole.slices;
  } else {
    first *= whole.volumes;
    end *= whole.volumes;
  }
  end_seen = end;
  const bool groups = step[2] > 1 || map.prediction == VolumePrediction::kAcross;
  if (groups) first = first / left * left;
  if (step[2] > 1) end = (end + left - 1) / left * left;
  seen = first_seen = first;
  decoding.first_frame = first / left * slab + first % left * step[2];
  decoding.end_frame = end / left * slab + end % left * step[2];
}

void VolumeDecoder::State::select_region(DecoderParams& decoding) {
  if (!cuts_rows) return;
  // A residual depends on everything above and to the left.
  const auto begin_of = [this](std::uint64_t first) { return is_predicted() ? 0 : static_cast<int>(first); };
  const int x = begin_of(selection.x);
  const int y = begin_of(selection.y);
  decoding.region = {x, y, static_cast<int>(selection.x + selection.width) - x,
                     static_cast<int>(selection.y + selection.height) - y};
}

DecoderParams VolumeDecoder::State::request() {
  DecoderParams decoding;
  decoding.reduce = params.reduce;
  decoding.max_layers = params.max_layers;
  decoding.max_planes = params.max_planes;
  decoding.threads = params.threads;
  decoding.workers = params.workers;
  decoding.limits = params.limits;
  decoding.simd = params.simd;
  decoding.differences = true;
  decoding.keep_partial = params.keep_partial;
  select_frames(decoding);
  select_region(decoding);
  return decoding;
}

void VolumeDecoder::State::begin() {
  decoder = std::make_unique<Decoder>(source, request(), backend);
  const VideoInfo& coded = decoder->output();
  picture_width = coded.width;
  if (cuts_rows)
    picture.resize(static_cast<std::size_t>(coded.width) * static_cast<std::size_t>(coded.height) * map.format.bytes());
  mapper = std::make_unique<VolumeMapper>(map);
  if (!in_order) hold_all();
}

/// Begins at the first requested slice. Decoding is deferred until the first read(), since a caller may want the
/// headers alone.
void VolumeDecoder::State::begin_gops() {
  gops = std::make_unique<Prefetch>([this] { return decoder->make_gop(); }, 2,
                                    [this](Gop& g) {
                                      const bool is_gop = decoder->pull(g);
                                      if (params.keep_partial) note_place(is_gop);
                                      if (is_gop) unpredict(map.prediction, map.plane_bits(), g);
                                      return is_gop;
                                    },
                                    params.workers.run != nullptr);
}

bool VolumeDecoder::State::next_picture() {
  while (!gop || at == gop->frames()) {
    if (!gops) begin_gops();
    gop = gops->next();
    at = 0;
    if (!gop) return false;
  }
  return true;
}

/// Called by the thread that decodes ahead, which is some GOPs further than `gop`.
void VolumeDecoder::State::note_place(bool is_gop) {
  const std::lock_guard lock(places_mutex);
  places.push_back(
      {is_gop ? decoder->first_frame_of_gop() : 0, is_gop && decoder->is_gop_damaged(), decoder->gop_damage()});
}

VolumeDecoder::State::GopPlace VolumeDecoder::State::take_place() {
  const std::lock_guard lock(places_mutex);
  GopPlace place = std::move(places.front());
  places.pop_front();
  return place;
}

/// Takes the next GOP. Frames missing before it, those of a damaged one, and those after the last one are lost.
void VolumeDecoder::State::next_place() {
  if (!gops) begin_gops();
  gop = gops->next();
  const GopPlace place = take_place();
  if (!gop) {
    lost_end = end_seen;
    why = place.damage.empty() ? "the stream ends before" : place.damage.front();
    return;
  }
  const std::uint64_t first = std::max(place_after_reduction(place.first), first_seen);
  const auto frames_of_gop = static_cast<std::uint64_t>(gop->frames());
  at = first < seen ? static_cast<int>(std::min(seen - first, frames_of_gop)) : 0;
  if (first > seen) {
    lost_end = std::min(first, end_seen);
    why = place.damage.empty() ? "the stream has other frames here" : place.damage.front();
  }
  if (!place.is_damaged) return;
  if (lost_end <= seen) why = place.damage.empty() ? "damaged" : place.damage.back();
  lost_end = std::min(first + frames_of_gop, end_seen);
  gop = nullptr;
}

/// False at the end. Frame `seen` of the stream is frame `at` of `gop`, or is lost.
bool VolumeDecoder::State::next_frame() {
  if (!params.keep_partial) return next_picture();
  while (seen < end_seen && seen >= lost_end && !(gop && at < gop->frames())) next_place();
  return seen < end_seen;
}

/// Notes a selected slice of `whole` as damaged.
void VolumeDecoder::State::lose(std::uint64_t z, std::uint64_t volume) {
  const std::uint64_t first = z_in_stream(z);
  if (lost.empty() || lost_seen + 1 < selected) lost.push_back({first, volume, first, volume, 0, why});
  lost_seen = selected;
  ++lost.back().delivered;
  lost.back().last_slice = std::min(first + step[2], info.volume.slices) - 1;
  lost.back().last_volume = volume;
}

/// Copies the requested part of a frame of `gop`.
void VolumeDecoder::State::cut(int frame, std::byte* slice) {
  if (!cuts_rows) {
    mapper->to_stored(*gop, frame, slice);
    return;
  }
  mapper->to_stored(*gop, frame, picture.data());
  const std::size_t voxel = map.format.bytes();
  const std::size_t row = static_cast<std::size_t>(picture_width) * voxel;
  const std::size_t bytes = static_cast<std::size_t>(selection.width) * voxel;
  const std::byte* from =
      picture.data() + static_cast<std::size_t>(selection.y) * row + static_cast<std::size_t>(selection.x) * voxel;
  for (std::uint64_t y = 0; y < selection.height; ++y, from += row, slice += bytes) std::memcpy(slice, from, bytes);
}

/// The position, in the full volume, of slice z of `whole`.
std::uint64_t VolumeDecoder::State::z_in_stream(std::uint64_t z) const {
  const std::uint64_t left = (slab + step[2] - 1) / step[2];  // frames of a GOP after the reduction
  return step[2] == 1 ? z : z / left * slab + z % left * step[2];
}

/// Restores the marked values in the requested part of slice z of `whole`.
void VolumeDecoder::State::put_marked(std::uint64_t z, std::uint64_t volume, std::byte* slice) {
  if (!mask) return;
  require(volume < info.volume.volumes, ErrorKind::kBadStream, "the stream has more pictures than its volume slices");
  const std::span<const std::uint8_t> marks = mask->marks(volume * info.volume.slices + z_in_stream(z));
  if (marks.empty()) return;
  const auto channels = static_cast<std::size_t>(map.format.channels);
  const auto scalar = static_cast<std::size_t>(bytes_of(map.format.type));
  const std::size_t row_marks = static_cast<std::size_t>(info.volume.width) * channels;
  for (std::uint64_t y = selection.y; y < selection.y + selection.height; ++y) {
    const std::uint8_t* row = marks.data() + static_cast<std::size_t>(y * step[1]) * row_marks;
    for (std::uint64_t x = selection.x; x < selection.x + selection.width; ++x)
      for (std::size_t c = 0; c < channels; ++c, slice += scalar)
        overlay->put(row[static_cast<std::size_t>(x * step[0]) * channels + c], slice);
  }
}

void VolumeDecoder::State::hold_all() {
  const std::uint64_t slices = output.all_slices();
  const StreamInfo& stream = decoder->info();
  std::uint64_t pictures = 0;
  for (const GopInfo& g : stream.gops) pictures += static_cast<std::uint64_t>(g.frames);
  require(params.keep_partial || !stream.has_index || pictures >= slices, ErrorKind::kBadStream,
          "the stream has " + count_of(pictures, "picture") + ", its volume " + count_of(slices, "slice"));
  const std::size_t bytes = checked_mul(static_cast<std::size_t>(slices), output.slice_bytes());
  check_memory(params.limits, bytes, "to hold a volume whose fourth axis was coded first", ", or decode a part");
  held.resize(bytes);
  std::vector<bool> is_there(mask ? static_cast<std::size_t>(slices) : 0);
  while (next_frame()) {
    const bool is_lost = seen < lost_end;
    const int frame = is_lost ? 0 : at++;
    const std::uint64_t z = seen / whole.volumes;
    const std::uint64_t volume = seen++ % whole.volumes;
    if (!is_selected(z, volume) || selected == slices) continue;
    ++selected;
    if (is_lost) {
      lose(z, volume);
      continue;
    }
    const auto place = static_cast<std::size_t>((volume - params.first_volume) * output.slices + (z - selection.z));
    cut(frame, held.data() + place * output.slice_bytes());
    if (mask) is_there[place] = true;
  }
  require(selected == slices, ErrorKind::kBadStream,
          "the stream ends after " + std::to_string(selected) + " of " + count_of(slices, "slice"));
  for (std::uint64_t i = 0; mask && i < slices; ++i)  // in order, so that marks are decoded once
    if (is_there[static_cast<std::size_t>(i)])
      put_marked(selection.z + i % output.slices, params.first_volume + i / output.slices,
                 held.data() + static_cast<std::size_t>(i) * output.slice_bytes());
}

bool VolumeDecoder::State::read(std::byte* slice) {
  if (!in_order) {
    if (given == output.all_slices()) return false;
    std::memcpy(slice, held.data() + static_cast<std::size_t>(given++) * output.slice_bytes(), output.slice_bytes());
    return true;
  }
  for (;;) {
    if (!next_frame()) return false;
    // Of several volumes, deliver the requested slices of each.
    const bool is_lost = seen < lost_end;
    const int frame = is_lost ? 0 : at++;
    const std::uint64_t z = seen % whole.slices;
    const std::uint64_t volume = seen++ / whole.slices;
    if (!is_selected(z, volume)) continue;
    ++selected;
    if (is_lost) {
      lose(z, volume);
      std::memset(slice, 0, output.slice_bytes());
      return true;
    }
    cut(frame, slice);
    put_marked(z, volume, slice);
    return true;
  }
}

std::uint64_t VolumeDecoder::State::read(std::byte* slices, std::uint64_t most) {
  if (!in_order || mask || cuts_rows || params.keep_partial) return read(slices) ? 1 : 0;
  frames.clear();
  while (frames.empty()) {
    if (!next_picture()) return 0;
    for (; at < gop->frames() && frames.size() < most; ++at, ++seen)
      if (is_selected(seen % whole.slices, seen / whole.slices)) frames.push_back(at);
  }
  if (!pool) pool = std::make_unique<ThreadPool>(params.threads, params.workers);
  pool->parallel_for(static_cast<int>(frames.size()), [&](int i, int) {
    const auto n = static_cast<std::size_t>(i);
    mapper->to_stored(*gop, frames[n], slices + n * output.slice_bytes());
  });
  return frames.size();
}

DecoderParams volume_request(ByteSource& source, const VolumeDecoderParams& params) {
  VolumeDecoder::State state(source, params);
  state.read_header();
  state.select();
  return state.request();
}

std::optional<PlainVolume> plain_volume(ByteSource& source, const VolumeDecoderParams& params) {
  PlainVolume plain;
  plain.decoding = volume_request(source, params);
  if (params.region || params.reduce || params.max_layers || params.max_planes || params.first_volume || params.volumes)
    return std::nullopt;
  std::uint64_t bytes_read = 0;
  StreamInput in(source, bytes_read);
  StreamLayout layout;
  layout.limits = params.limits;
  layout.read(in);
  const std::optional<VolumeStreamInfo> info = volume_stream_info(layout.info);
  plain.map = *volume_map_of(layout.info.boxes);
  plain.output = info->volume;
  const bool in_order = plain.map.order == VolumeOrder::kFile || plain.output.volumes == 1;
  if (!in_order || !info->marked.empty() || plain.map.prediction != VolumePrediction::kNone ||
      layout.info.profile == Profile::kPredictive || plain.map.format.channels != 1 || plain.map.planes() != 1)
    return std::nullopt;
  for (const GopInfo& g : layout.info.gops) {
    std::vector<std::uint8_t> head;
    in.seek(g.offset + kBoxHeaderBytes);
    if (!in.append(head, 4)) return std::nullopt;
    const auto n = load_little_endian<std::uint32_t>(head.data());
    if (n < 8 || n > kMaxHeaderBytes || n > g.bytes || !in.append(head, n - 4)) return std::nullopt;
    const GopHeader gop = parse_gop_header(layout.header, head.data(), head.size());
    plain.gops.push_back({gop.frames, gop.has_hash ? std::optional(gop.hash) : std::nullopt});
  }
  source.seek(0);
  return plain;
}

VolumeDecoder::VolumeDecoder(ByteSource& source, const VolumeDecoderParams& params, const Backend* backend)
    : state_(std::make_unique<State>(source, params)) {
  state_->backend = backend;
  state_->read_header();
  state_->select();
  state_->begin();
}

VolumeDecoder::~VolumeDecoder() = default;

const VolumeStreamInfo& VolumeDecoder::info() const { return state_->info; }
const StreamInfo& VolumeDecoder::stream() const { return state_->decoder->info(); }
const VolumeDescription& VolumeDecoder::output() const { return state_->output; }
const VoxelRegion& VolumeDecoder::selection() const { return state_->selection; }
std::array<std::uint64_t, 3> VolumeDecoder::step() const { return state_->step; }
bool VolumeDecoder::read(std::byte* slice) {
  return state_->failure.over([&] { return state_->read(slice); });
}
std::uint64_t VolumeDecoder::read(std::byte* slices, std::uint64_t most) {
  require(most > 0, ErrorKind::kBadArgument, "no slices are wanted");
  return state_->failure.over([&] { return state_->read(slices, most); });
}
const std::vector<LostSlices>& VolumeDecoder::lost() const { return state_->lost; }
const CodecStats& VolumeDecoder::stats() const { return state_->decoder->stats(); }

}  // namespace trivelet
