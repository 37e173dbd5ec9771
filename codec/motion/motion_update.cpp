// Scatters differences of high frames to stripes of low frames (motion_update.h).
#include "codec/motion/motion_update.h"

#include <algorithm>

namespace trivelet {

namespace {

constexpr std::int32_t kUnlimitedUpdate = 1 << 30;

}  // namespace

template <class S>
MotionUpdater<S>::MotionUpdater(const LiftedComponent<S>& lifted)
    : lifted_(lifted),
      kernels_(lifted.kernels.template of<S>()),
      limit_(lifted.differences ? kUnlimitedUpdate
                                : motion_update_limit(lifted.component.fraction, lifted.component.bits)),
      scratch_(static_cast<std::size_t>(lifted.pool.threads())) {}

template <class S>
void MotionUpdater<S>::run(int level, bool inverse) {
  constexpr int kStripe = 16;
  const MotionPlaces& places = lifted_.motion.places;
  const int s = 1 << level;
  const int first = first_place(places.key);  // frames of another GOP are not updated
  const int targets = (places.count + 2 * s - 1) / (2 * s) - first;
  const std::vector<FrameRuns> runs = find_runs(level);
  const int stripes = (lifted_.height() + kStripe - 1) / kStripe;
  // A stripe of all frames before the next one: differences that two frames get are in the cache for the second one.
  lifted_.pool.parallel_for(targets * stripes, [&](int i, int worker) {
    const int t = (i % targets + first) * 2 * s;
    const int y0 = i / targets * kStripe;
    const int y1 = std::min(lifted_.height(), y0 + kStripe);
    Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
    const std::size_t samples = static_cast<std::size_t>(y1 - y0) * static_cast<std::size_t>(lifted_.width());
    scratch.sums.resize(std::max(scratch.sums.size(), 2 * samples));
    scratch.changes.assign(static_cast<std::size_t>((lifted_.width() + kChunk - 1) / kChunk), 0);
    const Stripe stripe{y0, y1, scratch.sums.data(), scratch.sums.data() + samples, scratch};
    struct Source {
      int high;
      const FrameRuns* runs;
    };
    Source sources[2];
    int count = 0;
    for (const int high : {t - s, t + s}) {
      if (high < 0 || high >= places.count) continue;
      const int reference = motion_references(high, level, places).number_of(t);
      if (reference < 0) continue;
      sources[count++] = {high, &runs[static_cast<std::size_t>((high - s) / (2 * s) * 2 + reference)]};
    }
    for (int k = 0; k < count; ++k) mark_changes(*sources[k].runs, stripe);
    find_spans(scratch);
    if (scratch.spans.empty()) return;
    for (int y = 0; y < y1 - y0; ++y)
      for (const Span& span : scratch.spans)
        for (std::int32_t* sums : {stripe.sum, stripe.total})
          std::fill_n(sums + y * lifted_.width() + span.begin, span.end - span.begin, 0);
    for (int k = 0; k < count; ++k) scatter_frame(sources[k].high, *sources[k].runs, stripe);
    apply(t, stripe, inverse);
  });
}

// Two sets per high frame: of its cells that use one reference and the other.
template <class S>
std::vector<typename MotionUpdater<S>::FrameRuns> MotionUpdater<S>::find_runs(int level) const {
  const MotionPlaces& places = lifted_.motion.places;
  const std::vector<int> frames = motion_frames(level, places);
  std::vector<FrameRuns> runs(2 * frames.size());
  lifted_.pool.parallel_for(static_cast<int>(frames.size()), [&](int i, int) {
    const int high = frames[static_cast<std::size_t>(i)];
    const MotionReferences references = motion_references(high, level, places);
    const std::vector<std::uint8_t> zeros = find_zeros(high);
    for (int k = 0; k < 2; ++k)
      if (k == 0 || (references.other >= 0 && !references.older))
        find_frame_runs(lifted_.motion.fields[static_cast<std::size_t>(high)], zeros, k,
                        runs[static_cast<std::size_t>(2 * i + k)]);
  });
  return runs;
}

// Whether all differences of a cell are zero, by rows of cells.
template <class S>
std::vector<std::uint8_t> MotionUpdater<S>::find_zeros(int high) const {
  const int rows = (lifted_.height() + lifted_.cell_y - 1) / lifted_.cell_y;
  const int columns = (lifted_.width() + lifted_.cell_x - 1) / lifted_.cell_x;
  std::vector<std::uint8_t> zeros(static_cast<std::size_t>(rows * columns));
  std::vector<S> any(static_cast<std::size_t>(lifted_.width()));  // bits of the column in a row of cells
  for (int cy = 0; cy < rows; ++cy) {
    std::fill(any.begin(), any.end(), S{0});
    const int bottom = std::min(lifted_.height(), (cy + 1) * lifted_.cell_y);
    for (int y = cy * lifted_.cell_y; y < bottom; ++y) kernels_.join(lifted_.row(high, y), any.data(), lifted_.width());
    for (int cx = 0; cx < columns; ++cx) {
      const auto begin = any.begin() + cx * lifted_.cell_x;
      const auto end = any.begin() + std::min(lifted_.width(), (cx + 1) * lifted_.cell_x);
      zeros[static_cast<std::size_t>(cy * columns + cx)] = std::all_of(begin, end, [](S v) { return v == 0; });
    }
  }
  return zeros;
}

template <class S>
void MotionUpdater<S>::find_frame_runs(const MotionField& f, const std::vector<std::uint8_t>& zeros, int reference,
                                       FrameRuns& out) const {
  const MotionScale& scale = lifted_.component.scale;
  const auto r = static_cast<std::size_t>(reference);
  const int columns = (lifted_.width() + lifted_.cell_x - 1) / lifted_.cell_x;
  for (int cy = 0; cy * lifted_.cell_y < lifted_.height(); ++cy) {
    typename FrameRuns::Row line{out.runs.size(), 0, lifted_.height(), 0};
    const MotionCell* const cells = f.data() + lifted_.motion.grid.index(lifted_.cell_row(cy), 0);
    const std::uint8_t* const zero = zeros.data() + cy * columns;
    for (int cx = 0, end = 0; cx < columns; cx = end) {
      const MotionCell& c = cells[lifted_.cell_column(cx)];
      end = cx + 1;
      if (!c.uses(reference)) continue;
      const bool both = c.mode == MotionMode::kBoth;
      const MotionVector v = c.vector[r];
      for (; end < columns && zero[end] == zero[cx]; ++end) {
        const MotionCell& o = cells[lifted_.cell_column(end)];
        if (!o.uses(reference) || o.vector[r] != v || (o.mode == MotionMode::kBoth) != both) break;
      }
      const int right = eighths(v.x, scale.shift_x), down = eighths(v.y, scale.shift_y);
      const int top = cy * lifted_.cell_y + (down >> 3);
      const int bottom =
          std::min(lifted_.height(), (cy + 1) * lifted_.cell_y) + (down >> 3) + ((down & 7) != 0 ? 1 : 0);
      if (top >= lifted_.height() || bottom <= 0) continue;
      line.top = std::min(line.top, top);
      line.bottom = std::max(line.bottom, bottom);
      out.runs.push_back({cx * lifted_.cell_x, std::min(lifted_.width(), end * lifted_.cell_x), right, down,
                          both ? 1 : 2, zero[cx] != 0});
    }
    line.end = out.runs.size();
    out.rows.push_back(line);
  }
}

// Calls act(row of cells, run) for the runs that may reach a stripe.
template <class S>
template <class F>
void MotionUpdater<S>::each_run(const FrameRuns& f, const Stripe& stripe, const F& act) {
  for (std::size_t cy = 0; cy < f.rows.size(); ++cy) {
    const typename FrameRuns::Row& line = f.rows[cy];
    if (line.top >= stripe.y1 || line.bottom <= stripe.y0) continue;
    for (std::size_t i = line.begin; i < line.end; ++i) act(static_cast<int>(cy), f.runs[i]);
  }
}

template <class S>
void MotionUpdater<S>::mark_changes(const FrameRuns& f, const Stripe& stripe) const {
  each_run(f, stripe, [&](int cy, const Run& run) {
    if (run.is_zero) return;
    const int top = cy * lifted_.cell_y, down = run.down >> 3;
    const int bottom = std::min(lifted_.height(), top + lifted_.cell_y) + ((run.down & 7) != 0 ? 1 : 0);
    if (top + down >= stripe.y1 || bottom + down <= stripe.y0) return;
    const int from = std::max(0, run.begin + (run.right >> 3));
    const int to = std::min(lifted_.width(), run.end + (run.right >> 3) + ((run.right & 7) != 0 ? 1 : 0));
    for (int chunk = from / kChunk; chunk * kChunk < to; ++chunk) stripe.s.changes[static_cast<std::size_t>(chunk)] = 1;
  });
}

template <class S>
void MotionUpdater<S>::find_spans(Scratch& s) const {
  s.spans.clear();
  const int chunks = static_cast<int>(s.changes.size());
  for (int i = 0, end = 0; i < chunks; i = end) {
    for (end = i + 1;
         end < chunks && s.changes[static_cast<std::size_t>(end)] == s.changes[static_cast<std::size_t>(i)];)
      ++end;
    if (s.changes[static_cast<std::size_t>(i)])
      s.spans.push_back({i * kChunk, std::min(lifted_.width(), end * kChunk)});
  }
}

// Adds the differences of a high frame to a stripe of its reference. Runs of zeros are cut to the columns that change,
// and a column before, the samples of which may reach them.
template <class S>
void MotionUpdater<S>::scatter_frame(int high, const FrameRuns& f, const Stripe& stripe) const {
  each_run(f, stripe, [&](int cy, const Run& run) {
    if (!run.is_zero) return scatter_run(high, cy * lifted_.cell_y, run, stripe);
    const int right = run.right >> 3;
    for (const Span& span : stripe.s.spans) {
      Run part = run;
      part.begin = std::max(run.begin, span.begin - right - 1);
      part.end = std::min(run.end, span.end - right);
      if (part.begin < part.end) scatter_run(high, cy * lifted_.cell_y, part, stripe);
    }
  });
}

// The same for the cells of a run, which begin in row y.
template <class S>
void MotionUpdater<S>::scatter_run(int high, int y, const Run& run, const Stripe& stripe) const {
  const int bottom = std::min(lifted_.height(), y + lifted_.cell_y);
  const int down = run.down >> 3, far_y = run.down & 7, near_y = 8 - far_y;
  const int far_x = run.right & 7, near_x = 8 - far_x;
  const std::int32_t near[2] = {run.share * near_y * near_x, run.share * near_y * far_x};
  const std::int32_t far[2] = {run.share * far_y * near_x, run.share * far_y * far_x};
  const int end = std::min(stripe.y1, bottom + down + (far_y != 0 ? 1 : 0));
  for (int to = std::max(stripe.y0, y + down); to < end; ++to) {
    const int from = to - down;
    const bool has_near = from < bottom, has_far = far_y != 0 && from > y;
    const std::int32_t weight[4] = {has_near ? near[0] : far[0], has_near ? near[1] : far[1],
                                    has_near && has_far ? far[0] : 0, has_near && has_far ? far[1] : 0};
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(to - stripe.y0) * lifted_.width();
    const int n = run.end - run.begin;
    const auto samples = [&](int row) { return lifted_.row(high, row) + run.begin; };
    scatter_row(samples(has_near ? from : from - 1), has_near && has_far ? samples(from - 1) : nullptr, n,
                run.begin + (run.right >> 3), weight, stripe.sum + at, stripe.total + at);
  }
}

// LiftKernels::scatter() of n samples to position x and on, clipped to the picture.
template <class S>
void MotionUpdater<S>::scatter_row(const S* h, const S* g, int n, int x, const std::int32_t weight[4],
                                   std::int32_t* sum, std::int32_t* total) const {
  const auto times = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b);
  };
  const int beside = weight[1] != 0 || weight[3] != 0 ? 1 : 0;
  const int first = std::clamp(-x, 0, n);
  const int end = std::clamp(lifted_.width() - beside - x, first, n);
  if (end > first)
    kernels_.scatter(h + first, g ? g + first : nullptr, end - first, weight, sum + x + first, total + x + first);
  // Samples next to the clipped ones may reach the picture with one of their weights.
  for (const int i : {first - 1, end})
    for (int k = 0; k < 2 && i >= 0 && i < n; ++k) {
      const int to = x + i + k;
      if (to < 0 || to >= lifted_.width()) continue;
      const std::uint32_t from_g = g ? times(weight[2 + k], g[i]) : 0;
      sum[to] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[to]) + from_g + times(weight[k], h[i]));
      total[to] = wrap_add(total[to], wrap_add(weight[k], g ? weight[2 + k] : 0));
    }
}

template <class S>
void MotionUpdater<S>::apply(int t, const Stripe& stripe, bool inverse) const {
  static const std::vector<std::int32_t> shares = [] {
    std::vector<std::int32_t> all;
    for (std::uint32_t n = 0; n < kMotionShares; ++n) all.push_back(motion_share(n));
    return all;
  }();
  for (int y = stripe.y0; y < stripe.y1; ++y)
    for (const Span& span : stripe.s.spans) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y - stripe.y0) * lifted_.width() + span.begin;
      const int n = span.end - span.begin;
      lifted_.note(kernels_.update(lifted_.row(t, y) + span.begin, stripe.sum + at, stripe.total + at, n, shares.data(),
                                   limit_, inverse));
    }
}

template class MotionUpdater<std::int32_t>;
template class MotionUpdater<std::int16_t>;

}  // namespace trivelet
