#include "apps/play/play_controls.h"

#include <imgui.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "apps/play/window.h"
#include "codec/base/limits.h"

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
  ImGui::SetNextWindowPos({0, io.DisplaySize.y - height()});
  ImGui::SetNextWindowSize({io.DisplaySize.x, height()});
  ImGui::SetNextWindowBgAlpha(0.75F);
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
  ImGui::Text("%s / %s", clock_text(time - view.begin()).c_str(), clock_text(whole).c_str());
  ImGui::SameLine();
  ImGui::TextDisabled("frame %zu of %zu%s%s", store.frame_at(time), store.times().size(),
                      clock.is_paused() ? ", paused" : "",
                      clock.speed() != 1 ? fmt::format(", {:.2g} times as fast, no sound", clock.speed()).c_str() : "");
  TimeLine line;
  if (const Sound* sound = clock.sound()) {
    const float width = 8 * ImGui::GetFontSize();
    ImGui::SameLine(std::max(0.0F, ImGui::GetWindowWidth() - width - ImGui::GetStyle().WindowPadding.x));
    ImGui::SetNextItemWidth(width);
    auto volume = static_cast<float>(sound->muted() ? 0 : 100 * sound->volume());
    if (ImGui::SliderFloat("##volume", &volume, 0, 100, sound->muted() ? "muted" : "volume %.0f %%"))
      line.volume = static_cast<double>(volume) / 100;
  }
  auto part = static_cast<float>((time - view.begin()) / whole);
  ImGui::SetNextItemWidth(-1);
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
  const std::string format = "%d of " + count_of(all, "layer");
  if (ImGui::SliderInt("##layers", &layers, 1, all, format.c_str())) quality_.layers = layers == all ? 0 : layers;
  ImGui::SameLine();
  ImGui::SetNextItemWidth(column);
  ImGui::SliderInt("##size", &quality_.reduce, 0, store.most_reduce(),
                   fmt::format("size 1/{}", 1 << quality_.reduce).c_str());
  ImGui::SameLine();
  ImGui::SetNextItemWidth(column);
  if (compares) {
    auto split = static_cast<float>(split_);
    if (ImGui::SliderFloat("##split", &split, 0, 1, "split")) split_ = static_cast<double>(split);
  } else {
    ImGui::SliderInt("##rate", &quality_.temporal, 0, store.most_temporal(),
                     fmt::format("rate 1/{}", 1 << quality_.temporal).c_str());
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
  const std::string less = level > 0 ? fmt::format("   quality lowered: {}", level) : "";
  ImGui::TextDisabled("%dx%d   %.2f Mbit/s   decoding %.1f ms a frame, %.0f %% of the time   late %llu%s", shown.width,
                      shown.height, 8e-6 * static_cast<double>(bytes) / length,
                      1e3 * decode_seconds_ / std::max(1, coded.frames), 100 * decode_seconds_ / length,
                      static_cast<unsigned long long>(late), less.c_str());
}

float PlayControls::height() {
  const ImGuiStyle& style = ImGui::GetStyle();
  return 3 * ImGui::GetFrameHeightWithSpacing() + ImGui::GetTextLineHeight() + 2 * style.WindowPadding.y;
}

void PlayControls::say(std::string words) {
  words_ = std::move(words);
  said_ = Time::now();
}

bool PlayControls::has_words() const {
  return keys_ || (!words_.empty() && std::chrono::duration<double>(Time::now() - said_).count() < kVisibleSeconds);
}

void PlayControls::describe_words() const {
  static constexpr KeyHelp kKeys[] = {
      {"space", "pause"},
      {"left, right", "5 seconds back, forward"},
      {"down, up", "a minute back, forward"},
      {", .", "a frame back, forward"},
      {"[ ]", "slower, faster"},
      {"backspace", "normal speed"},
      {"9 0, wheel", "quieter, louder"},
      {"m", "mute"},
      {"a", "next sound track"},
      {"t", "next subtitles, or none"},
      {"f", "full screen"},
      {"o", "keep the controls"},
      {"s", "screenshot"},
      {"?", "these keys"},
      {"Escape", "leave full screen, or quit"},
      {"q", "quit"},
  };
  if (!has_words()) return;
  if (keys_) {
    describe_keys(kKeys);
    return;
  }
  ImGui::SetNextWindowPos({16, 16});
  ImGui::SetNextWindowBgAlpha(0.75F);
  ImGui::Begin("words", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_AlwaysAutoResize);
  ImGui::TextUnformatted(words_.c_str());
  ImGui::End();
}

}  // namespace trivelet::play
