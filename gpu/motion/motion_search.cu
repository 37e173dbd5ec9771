// The search for motion of a GOP on the device, level by level. All frames of a level and all regions of a frame are
// searched at once (motion_regions.cu), in pictures of all frames (motion_pictures.cu).
#include "gpu/motion/motion_search.h"

#include <algorithm>

#include "gpu/device/sample_upload.h"
#include "gpu/motion/motion.h"
#include "gpu/motion/motion_parts.h"

namespace trivelet::gpu {

using namespace motion_parts;

DeviceMotionSearch::DeviceMotionSearch(const StreamHeader& header, int device, std::size_t memory)
    : header_(header),
      device_(device),
      grid_(header.video.width, header.video.height),
      height_(header.video.height),
      width_(header.video.width),
      factor_(small_factor(height_, width_)),
      small_height_((height_ + factor_ - 1) / factor_),
      small_width_((width_ + factor_ - 1) / factor_),
      coarse_blocks_(std::max(1, kBlock / (kSmallSide * factor_))),
      places_(static_cast<std::size_t>(header.gop_frames) + 1) {
  constexpr std::size_t kAligned = 64;
  stride_ = (static_cast<std::size_t>(width_ + 2 * kPad) + kAligned - 1) / kAligned * kAligned;
  plane_ = checked_mul(stride_, static_cast<std::size_t>(height_ + 2 * kPad));
  const std::size_t cells = grid_.cells(),
                    coarse = static_cast<std::size_t>(coarse_blocks_ * coarse_blocks_) *
                             static_cast<std::size_t>((grid_.rows + kMotionRoot - 1) / kMotionRoot) *
                             static_cast<std::size_t>((grid_.columns + kMotionRoot - 1) / kMotionRoot);
  const std::size_t small = static_cast<std::size_t>(small_height_) * static_cast<std::size_t>(small_width_);
  const std::size_t components = header.components.size();
  std::size_t integers = 0;
  for (std::size_t c = 0; c < components; ++c) integers += samples_of(static_cast<int>(c));
  const std::size_t sample_bytes =
      checked_mul(integers, static_cast<std::size_t>(header.video.format.bytes_per_sample()) * (places_ - 1));
  const std::size_t roots = static_cast<std::size_t>((grid_.rows + kMotionRoot - 1) / kMotionRoot) *
                            static_cast<std::size_t>((grid_.columns + kMotionRoot - 1) / kMotionRoot);
  const std::size_t nodes = checked_mul(places_ / 2 + 2, roots * kNodes);
  const std::size_t bytes = is_deep() ? 2 : 1;
  const std::size_t fixed =
      sample_bytes + 4 * integers + bytes * checked_mul(places_, plane_ + small) + sizeof(NodeMotion) * nodes +
      places_ * (4 * components * cells + 2 * (sizeof(MotionCell) * cells + 2 * sizeof(MotionVector) * coarse));
  const std::size_t picture = checked_mul(plane_, bytes * kPlanes);
  const std::size_t low = places_ / 2 + 1;
  pictures_ = memory < fixed ? 0 : std::min(low, (memory - fixed) / picture);
  if (!has_room()) return;
  held_.assign(pictures_, -1);
  samples_ = DeviceBuffer<std::byte>(sample_bytes);
  integers_ = DeviceBuffer<std::int32_t>(integers);
  whole_ = DeviceBuffer<std::byte>(bytes * places_ * plane_);
  quarters_ = DeviceBuffer<std::byte>(bytes * pictures_ * plane_ * kPlanes);
  small_ = DeviceBuffer<std::byte>(bytes * places_ * small);
  nodes_ = DeviceBuffer<NodeMotion>(nodes);
  sums_ = DeviceBuffer<std::int32_t>(components * places_ * cells);
  coarse_ = DeviceBuffer<MotionVector>(places_ * 2 * coarse);
  cells_ = DeviceBuffer<MotionCell>(places_ * cells);
  closed_coarse_ = DeviceBuffer<MotionVector>(places_ * 2 * coarse);
  closed_cells_ = DeviceBuffer<MotionCell>(places_ * cells);
  host_cells_ = PinnedBuffer<MotionCell>((places_ + static_cast<std::size_t>(header.temporal_levels)) * cells);
  prices_ = DeviceBuffer<int>(bit_prices().size());
  contexts_ = DeviceBuffer<MotionContexts>(1);
  copy(prices_.data(), bit_prices().data(), bit_prices().size(), cudaMemcpyHostToDevice, stream_);
  const MotionContexts start;
  copy(contexts_.data(), &start, 1, cudaMemcpyHostToDevice, stream_);
  stream_.synchronize();
}

std::size_t DeviceMotionSearch::samples_of(int component) const {
  const Shape s = header_.component_shape(component, 1);
  return checked_mul(static_cast<std::size_t>(s.height), static_cast<std::size_t>(s.width));
}

std::size_t DeviceMotionSearch::device_bytes() const {
  return samples_.size() + 4 * (integers_.size() + sums_.size() + prices_.size()) + whole_.size() + quarters_.size() +
         small_.size() + sizeof(NodeMotion) * nodes_.size() +
         sizeof(MotionVector) * (coarse_.size() + closed_coarse_.size()) +
         sizeof(MotionCell) * (cells_.size() + closed_cells_.size()) + sizeof(MotionContexts);
}

void DeviceMotionSearch::upload_samples(const Gop& gop) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  require(has_room() && static_cast<std::size_t>(gop.frames()) < places_ && places_ <= kMostPlaces,
          ErrorKind::kInternal, "a search for motion without room for it");
  samples_read_.hold(stream_);
  read_by_next_.hold(stream_);
  frames_ = gop.frames();
  sample_origin_.assign(1, 0);
  for (int c = 0; c < gop.components(); ++c)
    sample_origin_.push_back(sample_origin_.back() +
                             samples_of(c) *
                                 static_cast<std::size_t>(header_.video.format.bytes_per_sample() * frames_));
  upload(gop, sample_origin_, samples_.data(), stream_);
  uploaded_.record(stream_);
}

// Converts a frame of `from` to integers.
std::vector<std::int32_t*> DeviceMotionSearch::integers_of(const DeviceMotionSearch& from, int frame) {
  const auto bytes = static_cast<std::size_t>(header_.video.format.bytes_per_sample());
  std::vector<const std::byte*> samples;
  std::vector<std::int32_t*> integers;
  std::vector<std::size_t> counts;
  std::int32_t* at = integers_.data();
  for (int c = 0; c < static_cast<int>(header_.components.size()); ++c) {
    counts.push_back(samples_of(c));
    samples.push_back(from.samples_.data() + from.sample_origin_[static_cast<std::size_t>(c)] +
                      static_cast<std::size_t>(frame) * counts.back() * bytes);
    integers.push_back(at);
    at += counts.back();
  }
  integers_from_samples(header_, samples, counts, 0, integers, stream_);
  return integers;
}

// A picture of the first of these integers.
template <class T>
void DeviceMotionSearch::load_picture(int place, int down) {
  const Padded padded{height_, width_, static_cast<std::ptrdiff_t>(stride_), static_cast<std::ptrdiff_t>(plane_)};
  motion_parts::load_picture(integers_.data(), down, header_.video.format.bits, padded,
                             at<T>(whole_, static_cast<std::size_t>(place) * plane_), stream_);
}

// Pictures of the GOP; the one at place 0 of an open GOP exists already.
template <class T>
void DeviceMotionSearch::load(GopKey key, bool with_before) {
  const Padded padded{height_, width_, static_cast<std::ptrdiff_t>(stride_), static_cast<std::ptrdiff_t>(plane_)};
  const PixelFormat& f = header_.video.format;
  for (int i = 0; i < frames_; ++i) {
    const int place = i + first_place(key);
    const std::vector<std::int32_t*> integers = integers_of(*this, i);
    load_picture<T>(place, 0);
    for (int c = 0; c < static_cast<int>(integers.size()); ++c) {
      const Shape s = header_.component_shape(c, 1);
      const bool chroma = f.is_chroma(c);
      sum_cells(
          integers[static_cast<std::size_t>(c)], s.height, s.width, cell_size(chroma ? f.log2_chroma_h : 0),
          cell_size(chroma ? f.log2_chroma_w : 0), grid_,
          sums_.data() + (static_cast<std::size_t>(c) * places_ + static_cast<std::size_t>(place)) * grid_.cells(),
          stream_);
    }
  }
  const int first = with_before || key == GopKey::kFirst ? 0 : 1, count = frames_ + first_place(key);
  shrink(at<T>(whole_, static_cast<std::size_t>(first) * plane_), count - first, padded, factor_, small_height_,
         small_width_,
         at<T>(small_, static_cast<std::size_t>(first) * static_cast<std::size_t>(small_height_) *
                           static_cast<std::size_t>(small_width_)),
         stream_);
  std::fill(held_.begin(), held_.end(), -1);
}

template <class T>
std::vector<int> DeviceMotionSearch::hold(const std::vector<int>& wanted) {
  const Padded padded{height_, width_, static_cast<std::ptrdiff_t>(stride_), static_cast<std::ptrdiff_t>(plane_)};
  std::vector<int> picture_at(places_, -1);
  const auto keep = [&](std::size_t picture, int place) {
    held_[picture] = place;
    picture_at[static_cast<std::size_t>(place)] = static_cast<int>(picture);
  };
  const auto is_wanted = [&](int place) { return std::find(wanted.begin(), wanted.end(), place) != wanted.end(); };
  for (std::size_t i = 0; i < held_.size(); ++i)
    if (held_[i] >= 0 && is_wanted(held_[i])) keep(i, held_[i]);
  std::size_t next = 0;
  for (const int place : wanted) {
    if (picture_at[static_cast<std::size_t>(place)] >= 0) continue;
    // Those of no place are taken first.
    for (next = 0; next < held_.size() && held_[next] >= 0; ++next) {
    }
    if (next == held_.size())
      for (next = 0; is_wanted(held_[next]); ++next) {
      }
    keep(next, place);
    interpolate(at<T>(whole_, static_cast<std::size_t>(place) * plane_), padded,
                at<T>(quarters_, next * kPlanes * plane_), stream_);
  }
  return picture_at;
}

template <class T>
void DeviceMotionSearch::search_level(int level, const MotionSearchParams& params) {
  SearchOfLevel s;
  s.places = gop_places_;
  s.grid = grid_;
  s.level = level;
  s.picture = {height_, width_, static_cast<std::ptrdiff_t>(stride_), static_cast<std::ptrdiff_t>(plane_)};
  s.whole = whole_.data();
  s.quarters = quarters_.data();
  s.blocks = {small_height_,
              small_width_,
              factor_,
              coarse_blocks_,
              (grid_.rows + kMotionRoot - 1) / kMotionRoot * coarse_blocks_,
              (grid_.columns + kMotionRoot - 1) / kMotionRoot * coarse_blocks_};
  s.coarse = coarse_.data();
  s.sums = sums_.data();
  s.sums_places = static_cast<int>(places_);
  s.components = static_cast<int>(header_.components.size());
  s.bits = params.bits;
  for (int c = 0; c < s.components; ++c) {
    const Shape shape = header_.component_shape(c, 1);
    const PixelFormat& f = header_.video.format;
    s.component_height[c] = shape.height;
    s.component_width[c] = shape.width;
    if (f.is_chroma(c)) s.scale[c] = {f.log2_chroma_w, f.log2_chroma_h};
  }
  s.cells = cells_.data();
  s.nodes = nodes_.data();
  s.tree = {height_,
            width_,
            factor_,
            coarse_blocks_,
            search_lambda(params, level),
            enough_per_cell(params.effort),
            prices_.data(),
            contexts_.data()};
  const bool closes = finds_closed(params, gop_places_) && level < params.levels;  // its first key is not predicted
  s.closed = MotionPlaces(gop_places_.frames(), GopKey::kLast, gop_places_.levels);
  s.closed_coarse = closed_coarse_.data();
  s.closed_cells = closed_cells_.data();
  if (level == gop_places_.levels - 1) {
    search_coarsely(at<T>(small_, 0), gop_places_, s.blocks,
                    searches_keys(params) ? CoarseFrames::kAllAndKeys : CoarseFrames::kAll, coarse_.data(), stream_);
    if (closes)
      search_coarsely(at<T>(small_, 0), s.closed, s.blocks, CoarseFrames::kFirstOfLevels, closed_coarse_.data(),
                      stream_);
  }
  const auto hold_for = [&](const std::vector<int>& wanted) {
    const std::vector<int> held = hold<T>(wanted);
    for (std::size_t i = 0; i < held.size(); ++i) s.held[i] = static_cast<std::int16_t>(held[i]);
    return held;
  };
  const std::vector<int> high = motion_frames(level, gop_places_);
  std::size_t end = 0;
  const std::vector<int> for_closed = references_of({1 << level}, level, s.closed, pictures_, end);
  bool closed = !closes;  // it is done with the first frames that have this reference
  end = 0;
  for (std::size_t first = 0; first < high.size(); first = end) {
    const std::vector<int> held = hold_for(references_of(high, level, gop_places_, pictures_, end));
    const auto is_held = [&](int place) { return held[static_cast<std::size_t>(place)] >= 0; };
    const bool beside = !closed && std::all_of(for_closed.begin(), for_closed.end(), is_held);
    s.first = static_cast<int>(first);
    s.count = static_cast<int>(end - first);
    search_frames<T>(s, beside, stream_);
    closed = closed || beside;
  }
  if (closed) return;
  (void)hold_for(for_closed);
  s.count = 0;
  search_frames<T>(s, true, stream_);
}

GopMotion DeviceMotionSearch::search(const Gop& gop, GopKey key, const std::int32_t* before,
                                     const MotionSearchParams& params) {
  upload_samples(gop);
  if (before) {
    copy(integers_.data(), before, samples_of(0), cudaMemcpyHostToDevice, stream_);
    const int down = header_.lossless ? 0 : kMotionFraction;
    is_deep() ? load_picture<std::int16_t>(0, down) : load_picture<std::uint8_t>(0, down);
  }
  find(key, before != nullptr, params);
  return end();
}

void DeviceMotionSearch::begin(const Gop& gop, GopKey key, DeviceMotionSearch* before,
                               const MotionSearchParams& params) {
  upload_samples(gop);
  if (before) {
    before->uploaded_.hold(stream_);
    (void)integers_of(*before, before->frames_ - 1);
    before->read_by_next_.record(stream_);
    is_deep() ? load_picture<std::int16_t>(0, 0) : load_picture<std::uint8_t>(0, 0);
  }
  find(key, before != nullptr, params);
}

void DeviceMotionSearch::again(GopKey key) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  find(key, false, params_);
}

void DeviceMotionSearch::find(GopKey key, bool with_before, const MotionSearchParams& params) {
  gop_places_ = MotionPlaces(frames_, key, params.levels);
  params_ = params;
  is_deep() ? load<std::int16_t>(key, with_before) : load<std::uint8_t>(key, with_before);
  high_.clear();
  const std::size_t cells = grid_.cells();
  const auto search_at = [&](int level) {
    is_deep() ? search_level<std::int16_t>(level, params) : search_level<std::uint8_t>(level, params);
    for (const int t : motion_frames(level, gop_places_)) high_.push_back(static_cast<std::size_t>(t));
  };
  for (int level = params.levels - 1; level >= 0; --level) search_at(level);
  if (searches_keys(params)) search_at(params.levels);
  for (const std::size_t t : high_)
    copy(host_cells_.data() + t * cells, cells_.data() + t * cells, cells, cudaMemcpyDeviceToHost, stream_);
  closed_levels_ = finds_closed(params, gop_places_) ? params.levels : 0;
  for (std::size_t level = 0; level < static_cast<std::size_t>(closed_levels_); ++level)
    copy(host_cells_.data() + (places_ + level) * cells, closed_cells_.data() + (cells << level), cells,
         cudaMemcpyDeviceToHost, stream_);
  done_.record(stream_);
}

GopMotion DeviceMotionSearch::end(ThreadPool* pool) {
  check(cudaSetDevice(device_), "cudaSetDevice");
  done_.synchronize();
  GopMotion motion;
  motion.places = gop_places_;
  motion.grid = grid_;
  motion.fields.resize(static_cast<std::size_t>(gop_places_.count));
  motion.keys_in_place = params_.keys_in_place;
  if (params_.keys) motion.predict_keys();
  motion.closed.resize(static_cast<std::size_t>(closed_levels_));
  const int high = static_cast<int>(high_.size()), all = high + closed_levels_;
  const auto fill = [&](int i) {
    const std::size_t level = static_cast<std::size_t>(std::max(0, i - high));
    const std::size_t t = i < high ? high_[static_cast<std::size_t>(i)] : places_ + level;
    const MotionCell* cells = host_cells_.data() + t * grid_.cells();
    (i < high ? motion.fields[t] : motion.closed[level]) = MotionField(cells, cells + grid_.cells());
  };
  if (pool)
    pool->parallel_for(all, [&](int i, int) { fill(i); });
  else
    for (int i = 0; i < all; ++i) fill(i);
  return motion;
}

}  // namespace trivelet::gpu
