// Shows a volume in three planes. The mouse moves the voxel in which they meet, the wheel moves through the slices of a
// plane, the right button changes the window of values. Sliders for quality layers and size decode the volume again,
// while the old one is shown.
#include "apps/play/volume_player.h"

#include <SDL.h>
#include <SDL_opengl.h>
#include <backends/imgui_impl_sdl.h>
#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "apps/cli/log.h"
#include "apps/play/renderer.h"
#include "apps/play/volume_planes.h"
#include "apps/play/window.h"
#include "codec/base/limits.h"

namespace trivelet::play {

namespace {

constexpr float kNarrow = 600;  // in windows that are narrower each control of a place has its own line

constexpr KeyHelp kKeys[] = {
    {"left button", "moves the voxel in which the planes meet"},
    {"wheel, up, down", "the next slice"},
    {"right button", "window and level of the values"},
    {"r", "the whole range of values"},
    {"s", "screenshot"},
    {"f", "full screen"},
    {"?", "these keys"},
    {"Escape", "leave full screen, or quit"},
    {"q", "quit"},
};

/// Of the controls.
float panel_height(float width) {
  const float sliders = width < kNarrow ? 5 : 2, lines = width < kNarrow ? 2 : 1;
  return sliders * ImGui::GetFrameHeightWithSpacing() + lines * ImGui::GetTextLineHeight() +
         2 * ImGui::GetStyle().WindowPadding.y;
}

/// The decoded volume. Decodes it in another quality in the background.
class VolumeLoader {
 public:
  VolumeLoader(const std::function<Volume(const Quality&)>& load, const Quality& quality)
      : load_(load), quality_(quality) {
    std::tie(volume_, seconds_) = timed_load(quality);
  }
  ~VolumeLoader() {
    if (decoding_.valid()) decoding_.wait();
  }

  const Volume& volume() const { return volume_; }
  double seconds() const { return seconds_; }  ///< that decoding took
  bool is_decoding() const { return decoding_.valid(); }

  /// Takes a finished volume, and starts to decode the requested quality. True if the volume is another one than
  /// before.
  bool update(const Quality& wanted) {
    bool changed = false;
    if (decoding_.valid() && decoding_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      std::tie(volume_, seconds_) = decoding_.get();
      quality_ = decoding_quality_;
      changed = true;
    }
    if (decoding_.valid() || wanted == quality_) return changed;
    decoding_quality_ = wanted;
    decoding_ = std::async(std::launch::async, [this, wanted] { return timed_load(wanted); });
    return changed;
  }

 private:
  std::pair<Volume, double> timed_load(const Quality& quality) const {
    const auto begun = std::chrono::steady_clock::now();
    Volume volume = load_(quality);
    return {std::move(volume), std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()};
  }

  const std::function<Volume(const Quality&)> load_;
  Volume volume_;
  Quality quality_;  ///< of volume_
  double seconds_ = 0;
  Quality decoding_quality_;
  std::future<std::pair<Volume, double>> decoding_;
};

std::array<int, 3> middle(const std::array<int, 3>& size) { return {size[0] / 2, size[1] / 2, size[2] / 2}; }

class VolumeSession {
 public:
  explicit VolumeSession(const VolumeOptions& options)
      : options_(options),
        quality_(options.quality),
        loader_(options.load, options.quality),
        slices_(loader_.volume(), options.size, options.place.value_or(middle(options.size))),
        black_white_(options.window ? *options.window : slices_.range()) {}

  void run() {
    const bool plain = options_.headless && !options_.overlay;
    const std::array<int, 2> size = plain ? slices_.montage_size() : std::array{1200, 560};
    window_.emplace("trivelet - " + std::filesystem::path(options_.input).filename().string(), size[0], size[1],
                    options_.headless, options_.full_screen);
    pictures_.emplace();
    if (options_.headless) {
      draw_into_file(size, plain, options_.screenshot, options_.overwrite);
      return;
    }
    const auto begun = std::chrono::steady_clock::now();
    while (!quit_) {
      take_events();
      changed_ = loader_.update(quality_) || changed_;
      draw(window_->size(), false);
      SDL_GL_SwapWindow(window_->get());
      SDL_Delay(5);
      const double shown = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      quit_ = quit_ || (options_.quit_after > 0 && shown > options_.quit_after);
    }
  }

 private:
  // -------------------------------------------------------------------------------------------------------- drawing

  void draw(const std::array<int, 2>& size, bool plain) {
    if (changed_) pictures_->upload(slices_, black_white_);
    changed_ = false;
    glViewport(0, 0, size[0], size[1]);
    glClearColor(0, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    begin_overlay();
    const ImVec2 shown = ImGui::GetIO().DisplaySize;
    pictures_->lay_out(slices_, shown.x, shown.y - panel_height(shown.x), plain);
    pictures_->draw(*ImGui::GetBackgroundDrawList(), slices_, !plain);
    if (!plain) panel();
    if (keys_ && !plain) describe_keys(kKeys);
    end_overlay();
  }

  void draw_into_file(const std::array<int, 2>& size, bool plain, const std::string& path, bool overwrite) {
    const Canvas canvas(size[0], size[1]);
    ImGui::GetIO().DisplaySize = {static_cast<float>(size[0]), static_cast<float>(size[1])};
    draw(size, plain);
    write_picture(path, read_pixels(size[0], size[1]), size[0], size[1], overwrite);
  }

  void panel() {
    const ImGuiIO& io = ImGui::GetIO();
    ImGui::SetNextWindowPos({0, io.DisplaySize.y - panel_height(io.DisplaySize.x)});
    ImGui::SetNextWindowSize({io.DisplaySize.x, panel_height(io.DisplaySize.x)});
    ImGui::Begin("controls", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
    // Names are inside the sliders.
    const bool narrow = io.DisplaySize.x < kNarrow;
    const float space = ImGui::GetStyle().ItemSpacing.x, whole = ImGui::GetContentRegionAvail().x;
    const float third = (whole - 2 * space) / 3, half = (whole - space) / 2;
    place_sliders(narrow, narrow ? whole : third);
    window_controls(narrow ? half : third);
    if (!narrow) ImGui::SameLine();
    quality_sliders(narrow ? half : (third - space) / 2);
    const std::array<int, 3>& place = slices_.place();
    ImGui::PushTextWrapPos(0);
    ImGui::TextDisabled("value %.6g at %d, %d, %d   %dx%dx%d   decoded in %.2f s%s   ?: keys",
                        static_cast<double>(slices_.value()), place[0], place[1], place[2], slices_.extent(0),
                        slices_.extent(1), slices_.extent(2), loader_.seconds(),
                        loader_.is_decoding() ? "   decoding ..." : "");
    ImGui::PopTextWrapPos();
    ImGui::End();
  }

  void place_sliders(bool narrow, float width) {
    constexpr std::array<std::array<const char*, 2>, 3> kNames = {{{"##x", "x %d"}, {"##y", "y %d"}, {"##z", "z %d"}}};
    for (std::size_t a = 0; a < 3; ++a) {
      ImGui::SetNextItemWidth(width);
      int voxel = slices_.place()[a];
      if (ImGui::SliderInt(kNames[a][0], &voxel, 0, options_.size[a] - 1, kNames[a][1]))
        move(static_cast<int>(a), voxel);
      if (a < 2 && !narrow) ImGui::SameLine();
    }
  }

  void quality_sliders(float width) {
    int layers = quality_.layers > 0 ? quality_.layers : options_.layers;
    const std::string format = "%d of " + count_of(options_.layers, "layer");
    ImGui::SetNextItemWidth(width);
    if (ImGui::SliderInt("##layers", &layers, 1, options_.layers, format.c_str()))
      quality_.layers = layers == options_.layers ? 0 : layers;
    ImGui::SameLine();
    ImGui::SetNextItemWidth(width);
    ImGui::SliderInt("##size", &quality_.reduce, 0, options_.most_reduce,
                     ("size 1/" + std::to_string(1 << quality_.reduce)).c_str());
  }

  void window_controls(float width) {
    auto level = static_cast<float>((black_white_[0] + black_white_[1]) / 2);
    auto range = static_cast<float>(black_white_[1] - black_white_[0]);
    const float step = std::max(range / 200, 1e-6F);
    ImGui::SetNextItemWidth(width);
    bool moved = ImGui::DragFloat("##level", &level, step, 0, 0, "level %.5g");
    ImGui::SameLine();
    ImGui::SetNextItemWidth(width);
    moved = ImGui::DragFloat("##window", &range, step, 0, 0, "window %.5g") || moved;
    if (moved) set_window(static_cast<double>(level), static_cast<double>(range));
  }

  void set_window(double level, double width) {
    width = std::max(width, 1e-9);
    black_white_ = {level - width / 2, level + width / 2};
    changed_ = true;
  }

  // ---------------------------------------------------------------------------------------------------------- input

  void take_events() {
    SDL_Event event;
    while (SDL_PollEvent(&event) != 0) {
      ImGui_ImplSDL2_ProcessEvent(&event);
      if (event.type == SDL_QUIT) quit_ = true;
      if (event.type == SDL_KEYDOWN) key(event.key.keysym.sym);
      if (event.type == SDL_TEXTINPUT && event.text.text[0] == '?') keys_ = !keys_;
      if (ImGui::GetIO().WantCaptureMouse) continue;
      if (event.type == SDL_MOUSEBUTTONDOWN && event.button.button == SDL_BUTTON_LEFT)
        move_to(static_cast<float>(event.button.x), static_cast<float>(event.button.y));
      if (event.type == SDL_MOUSEMOTION && (event.motion.state & SDL_BUTTON_LMASK) != 0)
        move_to(static_cast<float>(event.motion.x), static_cast<float>(event.motion.y));
      if (event.type == SDL_MOUSEMOTION && (event.motion.state & SDL_BUTTON_RMASK) != 0) {
        const double width = black_white_[1] - black_white_[0];
        set_window((black_white_[0] + black_white_[1]) / 2 + event.motion.yrel * width / 300,
                   width * std::exp2(static_cast<double>(event.motion.xrel) / 150));
      }
      if (event.type == SDL_MOUSEWHEEL) scroll(event.wheel.y);
    }
  }

  void key(SDL_Keycode pressed) {
    switch (pressed) {
      case SDLK_ESCAPE: quit_ = quit_ || !window_->leave_full_screen(); break;
      case SDLK_q: quit_ = true; break;
      case SDLK_F1: keys_ = !keys_; break;
      case SDLK_f: window_->toggle(); break;
      case SDLK_r:
        black_white_ = slices_.range();
        changed_ = true;
        break;
      case SDLK_UP: move(2, slices_.place()[2] + 1); break;
      case SDLK_DOWN: move(2, slices_.place()[2] - 1); break;
      case SDLK_s: shoot(); break;
      default: break;
    }
  }

  void move(int axis, int voxel) {
    slices_.set_place(axis, voxel);
    changed_ = true;
  }

  /// To the voxel under a point of the window.
  void move_to(float x, float y) {
    std::array<float, 2> place;
    const int p = pictures_->plane_at(x, y, place);
    if (p < 0) return;
    const Plane& plane = kPlanes[static_cast<std::size_t>(p)];
    slices_.set_part(plane.across, place[0]);
    slices_.set_part(plane.down, place[1]);
    changed_ = true;
  }

  /// Through the slices of the plane under the mouse.
  void scroll(int count) {
    int x = 0;
    int y = 0;
    SDL_GetMouseState(&x, &y);
    std::array<float, 2> place;
    const int p = pictures_->plane_at(static_cast<float>(x), static_cast<float>(y), place);
    if (p < 0) return;
    const int axis = kPlanes[static_cast<std::size_t>(p)].along;
    move(axis, slices_.place()[static_cast<std::size_t>(axis)] + count);
  }

  /// The planes, a pixel a voxel, under the first free name.
  void shoot() {
    const std::string name = free_picture_name(options_.input);
    if (name.empty()) return;
    try {
      draw_into_file(slices_.montage_size(), true, name, false);
      cli::log::info("{}", name);
    } catch (const Error& e) {
      cli::log::error("{}", e.what());
    }
  }

  const VolumeOptions& options_;
  Quality quality_;  ///< as the sliders say
  VolumeLoader loader_;
  VolumeSlices slices_;
  std::array<double, 2> black_white_;  ///< the values that are drawn black and white
  bool changed_ = true;                ///< what the planes show
  bool quit_ = false;
  bool keys_ = false;             ///< are shown
  std::optional<Window> window_;  ///< before what is on its graphics card
  std::optional<PlanePictures> pictures_;
};

}  // namespace

void show_volume(const VolumeOptions& options) { VolumeSession(options).run(); }

}  // namespace trivelet::play
