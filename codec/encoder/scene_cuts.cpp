// Detects scene cuts from histograms and differences of frames, and reads frames so that a GOP ends at a cut.
#include "trivelet/scene_cuts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "codec/threads/parallel.h"
#include "codec/threads/stopwatch.h"
#include "codec/threads/trace.h"

namespace trivelet {

namespace {

// Limit of samples per side. Some thousand samples are enough for a histogram and cost little compared with coding a
// frame.
constexpr int kGrid = 96;
// A cut meets all of these conditions. A missed cut costs bytes in one GOP; a false one costs the headers of one more
// GOP.
constexpr double kLeastDifference = 0.05;  // mean, of the full range: below it even a cut has little to smear
constexpr double kLeastMoved = 0.2;        // share of samples in other bins: a pan keeps samples in their bins
constexpr double kMoreThanUsual = 2.5;     // times the mean difference in this scene: fast motion always differs
constexpr int kUsualFrames = 12;           // for that mean: half a second
// Limit of frames read before they are examined: more than any GOP has.
constexpr int kMostAtOnce = 128;

void copy_frame(const Gop& from, int a, Gop& to, int b) {
  for (int c = 0; c < from.components(); ++c) {
    const VolumeView in = from.plane(c);
    const MutableVolumeView out = to.plane(c);
    const std::size_t bytes = static_cast<std::size_t>(in.shape.width) * static_cast<std::size_t>(in.bytes_per_sample);
    for (int y = 0; y < in.shape.height; ++y) std::memcpy(out.row(b, y), in.row(a, y), bytes);
  }
  to.times()[static_cast<std::size_t>(b)] = from.times()[static_cast<std::size_t>(a)];
}

template <class T>
void look(const VolumeView& v, int index, int offset, std::vector<int>& out) {
  const auto [first_y, step_y] = SceneCuts::rows(v.shape.height);
  const int step_x = std::max(1, v.shape.width / kGrid);
  const int rows = (v.shape.height - first_y + step_y - 1) / step_y;
  const int columns = (v.shape.width - step_x / 2 + step_x - 1) / step_x;
  out.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  int* to = out.data();
  for (int y = first_y; y < v.shape.height; y += step_y) {
    const T* row = reinterpret_cast<const T*>(v.row(index, y));
    for (int x = step_x / 2; x < v.shape.width; x += step_x) *to++ = row[x] + offset;
  }
}

}  // namespace

SceneCuts::Rows SceneCuts::rows(int height) {
  const int step = std::max(1, height / kGrid);
  return {step / 2, step};
}

void SceneCuts::look_at(const Gop& gop, int index, Look& to) const {
  const VolumeView v = gop.plane(0);
  std::vector<int>& samples = to.samples;
  const int offset = format_.is_signed ? 1 << (format_.bits - 1) : 0;
  if (v.bytes_per_sample == 1)
    v.is_signed ? look<std::int8_t>(v, index, offset, samples) : look<std::uint8_t>(v, index, offset, samples);
  else
    v.is_signed ? look<std::int16_t>(v, index, offset, samples) : look<std::uint16_t>(v, index, offset, samples);
  const int shift = std::max(0, format_.bits - 5);
  to.bins.fill(0);
  for (const int s : samples) ++to.bins[static_cast<std::size_t>(std::clamp(s >> shift, 0, kBins - 1))];
}

SceneCuts::Change SceneCuts::compare(const Look& before, const Look& after) const {
  std::int64_t difference = 0;
  for (std::size_t i = 0; i < before.samples.size(); ++i) difference += std::abs(before.samples[i] - after.samples[i]);
  const auto samples = static_cast<double>(before.samples.size());
  Change change;
  for (std::size_t b = 0; b < before.bins.size(); ++b) change.moved += std::abs(after.bins[b] - before.bins[b]);
  change.moved /= 2.0 * samples;
  change.difference = static_cast<double>(difference) / (samples * ((1 << format_.bits) - 1));
  return change;
}

bool SceneCuts::is_cut(const Change& change) const {
  return change.difference > kLeastDifference && change.moved > kLeastMoved &&
         change.difference > kMoreThanUsual * usual_;
}

bool SceneCuts::judge(const Change& change) {
  if (is_cut(change)) {
    usual_ = 0;
    known_ = 0;
    return true;
  }
  ++known_;
  usual_ += (change.difference - usual_) / std::min(known_, kUsualFrames);
  return false;
}

struct SceneReader::Threads {
  explicit Threads(int threads) : pool(threads) {}
  ThreadPool pool;
};

SceneReader::SceneReader(const VideoInfo& info, FramesInput input, int threads)
    : input_(std::move(input)), info_(info), detector_(info.format), threads_(std::make_unique<Threads>(threads)) {
  if (input_.unread) batch_ = kMostAtOnce;
}

SceneReader::SceneReader(const VideoInfo& info, FrameInput input)
    : SceneReader(info,
                  FramesInput{[one = std::move(input)](Gop& gop, int first, int count) {
                                int n = 0;
                                while (n < count && one(gop, first + n)) ++n;
                                return n;
                              },
                              nullptr},
                  1) {}

SceneReader::~SceneReader() = default;

// Copies held frames to the front of `gop`. Frames that do not fit stay held.
int SceneReader::take_held(Gop& gop) {
  if (!held_) return 0;
  const Gop held = std::move(*held_);
  held_.reset();
  const int n = std::min(held.frames(), gop.capacity());
  for (int f = 0; f < n; ++f) copy_frame(held, f, gop, f);
  if (n < held.frames()) give_back(held, n, held.frames());
  return n;
}

void SceneReader::give_back(const Gop& gop, int first, int end) {
  if (input_.unread && input_.unread(end - first)) return;
  Gop rest(info_, end - first);
  rest.set_frames(end - first);
  for (int f = first; f < end; ++f) copy_frame(gop, f, rest, f - first);
  held_ = std::move(rest);
}

// Takes the compared samples of frames [first, end).
void SceneReader::look_at(const Gop& gop, int first, int end) {
  if (first >= end) return;
  const trace::Span span("scene cuts");
  const ScopeTimer timer(seconds_);
  if (looks_.size() < static_cast<std::size_t>(end)) looks_.resize(static_cast<std::size_t>(end));
  threads_->pool.parallel_for(end - first, [&](int i, int) { detector_.look_at(gop, first + i, look_of(first + i)); });
}

// The first frame in [first, end) that begins a scene; `end` if there is none.
int SceneReader::find_cut(int first, int end) {
  const ScopeTimer timer(seconds_);
  for (int f = std::max(first, 1); f < end; ++f)
    if (detector_.judge(detector_.compare(look_of(f - 1), look_of(f)))) return f;
  return end;
}

// Whether a scene begins directly after a full GOP. The mean difference is not updated: only the GOP's key frame
// depends on this.
bool SceneReader::begins_behind_last() {
  if (last_.samples.empty() || !detector_.is_cut(detector_.compare(last_, look_of(0)))) return false;
  ++cuts_;
  return true;
}

bool SceneReader::read(Gop& gop) {
  gop.set_frames(gop.capacity());
  gop.set_begins_scene(std::exchange(cut_before_, false));
  int n = take_held(gop);
  int looked_at = 0;
  bool more = !held_;
  for (;;) {
    look_at(gop, looked_at, n);
    if (looked_at == 0 && n > 0 && !gop.begins_scene()) gop.set_begins_scene(begins_behind_last());
    const int cut = find_cut(looked_at, n);
    if (cut < n) {
      give_back(gop, cut, n);
      ++cuts_;
      cut_before_ = true;
      // With short scenes, frames read ahead would be read several times.
      if (input_.unread) batch_ = std::clamp(2 * cut, 4, kMostAtOnce);
      n = cut;
      break;
    }
    looked_at = n;
    if (!more || n == gop.capacity()) break;
    const int wanted = std::min(batch_, gop.capacity() - n);
    const int got = input_.read(gop, n, wanted);
    more = got == wanted;
    n += got;
    if (input_.unread) batch_ = std::min(2 * batch_, kMostAtOnce);
  }
  gop.set_frames(n);
  if (n == 0) return false;
  std::swap(last_, look_of(n - 1));
  return true;
}

}  // namespace trivelet
