#include "apps/play/play_controls.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

namespace trivelet::play {

namespace {

constexpr double kVisibleSeconds = 2.5;  // after the mouse moved

std::string clock_text(double seconds) {
  const auto s = static_cast<long long>(std::max(0.0, seconds) * 10);
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld.%lld", s / 36000, s / 600 % 60, s / 10 % 60, s % 10);
  return text.data();
}

/// Bytes of the layers of a GOP that a quality decodes.
std::uint64_t bytes_of(const GopInfo& gop, const Quality& quality) {
  std::uint64_t bytes = 0;
  for (std::size_t l = 0; l < gop.layers.size(); ++l)
    if (quality.layers == 0 || l < static_cast<std::size_t>(quality.layers)) bytes += gop.layers[l].bytes;
  return bytes;
}

}  // namespace

bool PlayControls::are_visible() const {
  return pinned_ || std::chrono::duration<double>(Time::now() - mouse_moved_).count() < kVisibleSeconds;
}

Quality PlayControls::quality(const FrameStore& store, bool dragging) const {
  Quality q = quality_;
  if (dragging) {
    q.reduce = std::min(std::max(q.reduce, 2), store.most_reduce());
    q.layers = std::max(1, store.stream().layers / 2);
  }
  return q;
}

void PlayControls::set_split(double split) { split_ = std::clamp(split, 0.0, 1.0); }

PlayControls::TimeLine PlayControls::describe(const PlayClock& clock, const VideoView& view, bool compares,
                                              std::uint64_t late) {
  const ImGuiIO& io = ImGui::GetIO();
  // The last line is broken if the window is narrower than its longest form.
  constexpr float kLine = 17, kLongestLine = 680, kMostLines = 3;
  const float height = 101 + kLine * std::min(kMostLines, std::ceil(kLongestLine / io.DisplaySize.x));
  ImGui::SetNextWindowPos({0, io.DisplaySize.y - height});
  ImGui::SetNextWindowSize({io.DisplaySize.x, height});
  ImGui::SetNextWindowBgAlpha(0.7F);
  ImGui::Begin("controls", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
  if (compares) {
    const float x = static_cast<float>(split_) * io.DisplaySize.x;
    ImGui::GetBackgroundDrawList()->AddLine({x, 0}, {x, io.DisplaySize.y}, IM_COL32(255, 255, 255, 160));
  }
  const double time = clock.now();
  const TimeLine line = describe_times(clock, view);
  describe_sliders(view.store(), compares);
  describe_figures(time, view, line.dragging, late);
  ImGui::End();
  return line;
}

PlayControls::TimeLine PlayControls::describe_times(const PlayClock& clock, const VideoView& view) {
  const FrameStore& store = view.store();
  const double time = clock.now();
  const double whole = store.end() - view.begin();
  ImGui::Text("%s%s / %s   frame %zu of %zu%s", clock.is_paused() ? "|| " : "> ",
              clock_text(time - view.begin()).c_str(), clock_text(whole).c_str(), store.frame_at(time),
              store.times().size(), clock.speed() != 1 ? "   other speed, no sound" : "");
  auto part = static_cast<float>((time - view.begin()) / whole);
  ImGui::SetNextItemWidth(-1);
  TimeLine line;
  if (ImGui::SliderFloat("##time", &part, 0, 1, "")) line.seek = view.begin() + static_cast<double>(part) * whole;
  line.dragging = ImGui::IsItemActive();
  return line;
}

void PlayControls::describe_sliders(const FrameStore& store, bool compares) {
  const int all = store.stream().layers;
  int layers = quality_.layers > 0 ? quality_.layers : all;
  // Names are inside the sliders, so that three fit into a small window.
  const float column = (ImGui::GetContentRegionAvail().x - 2 * ImGui::GetStyle().ItemSpacing.x) / 3;
  ImGui::SetNextItemWidth(column);
  const std::string format = "layers %d / " + std::to_string(all);
  if (ImGui::SliderInt("##layers", &layers, 1, all, format.c_str())) quality_.layers = layers == all ? 0 : layers;
  ImGui::SameLine();
  ImGui::SetNextItemWidth(column);
  ImGui::SliderInt("##size", &quality_.reduce, 0, store.most_reduce(), "size 1 / 2^%d");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(column);
  if (compares) {
    auto split = static_cast<float>(split_);
    if (ImGui::SliderFloat("##split", &split, 0, 1, "split")) split_ = static_cast<double>(split);
  } else {
    ImGui::SliderInt("##rate", &quality_.temporal, 0, store.most_temporal(), "rate 1 / 2^%d");
  }
}

void PlayControls::describe_figures(double time, const VideoView& view, bool dragging, std::uint64_t late) {
  const FrameStore& store = view.store();
  const std::size_t gop = view.gop_at(time);
  const std::shared_ptr<const DecodedGop> decoded = store.find(gop);
  const double length = store.length_of(gop);
  if (decoded && decoded->seconds > 0) decode_seconds_ = decoded->seconds;
  const GopInfo& coded = store.stream().gops[gop];
  const std::uint64_t bytes = bytes_of(coded, decoded ? decoded->quality : quality(store, dragging));
  const int level = store.budget_level();
  const VideoInfo& shown = view.picture().info();
  ImGui::TextWrapped("%.2f Mbit/s   %dx%d   decoding %.1f ms a frame, %.0f %% of the time   late %llu%s",
                     8e-6 * static_cast<double>(bytes) / length, shown.width, shown.height,
                     1e3 * decode_seconds_ / std::max(1, coded.frames), 100 * decode_seconds_ / length,
                     static_cast<unsigned long long>(late),
                     level > 0 ? ("   budget: -" + std::to_string(level)).c_str() : "");
}

}  // namespace trivelet::play
