// Three planes of a volume, in the layout of 'view --montage': along z, y and x; the vertical axis of the last two is
// z, drawn upwards. The mouse moves the voxel in which they meet, the wheel moves through the slices of a plane, the
// right button changes the window of values. Sliders for quality layers and size decode the volume again, while the old
// one is shown.
#define GL_GLEXT_PROTOTYPES
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
#include <limits>

#include "apps/cli/log.h"
#include "apps/play/renderer.h"
#include "apps/play/window.h"

namespace trivelet::play {

namespace {

constexpr int kGap = 2;              // pixels between planes, as in 'view'
constexpr float kPanelHeight = 118;  // of the controls, in pixels
constexpr float kNarrow = 600;       // in windows that are narrower each control of a place has its own line
constexpr float kNarrowPanelHeight = 190;

float panel_height(float width) { return width < kNarrow ? kNarrowPanelHeight : kPanelHeight; }

/// The axes of a plane: across it, up or down, along.
struct Plane {
  int across;
  int down;
  int along;
  bool upwards;  ///< the second axis is drawn so
};
constexpr std::array<Plane, 3> kPlanes = {Plane{0, 1, 2, false}, Plane{0, 2, 1, true}, Plane{1, 2, 0, true}};

class VolumeSession {
 public:
  explicit VolumeSession(const VolumeOptions& options) : options_(options), quality_(options.quality) {
    const auto begun = std::chrono::steady_clock::now();
    volume_ = options_.load(quality_);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    shown_quality_ = quality_;
    for (std::size_t a = 0; a < 3; ++a)
      place_[a] = options.place ? std::clamp((*options.place)[a], 0, options.size[a] - 1) : options.size[a] / 2;
    if (options.window) {
      low_ = (*options.window)[0];
      high_ = (*options.window)[1];
    } else {
      usual_window();
    }
  }

  void run() {
    const std::array<int, 2> own = montage_size();
    const bool plain = options_.headless && !options_.overlay;
    const int width = plain ? own[0] : 1200;
    const int height = plain ? own[1] : 560;
    Window window("trivelet - " + std::filesystem::path(options_.input).filename().string(), width, height,
                  options_.headless, options_.full_screen);
    window_ = &window;
    glGenTextures(3, textures_.data());
    if (options_.headless) {
      const Canvas canvas(width, height);
      draw(width, height, plain);
      write_picture(options_.screenshot, read_pixels(width, height), width, height, options_.overwrite);
    } else {
      const auto begun = std::chrono::steady_clock::now();
      while (!quit_) {
        take_events();
        take_decoded();
        const std::array<int, 2> size = window.size();
        draw(size[0], size[1], false);
        SDL_GL_SwapWindow(window.get());
        SDL_Delay(5);
        const double shown = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
        quit_ = quit_ || (options_.quit_after > 0 && shown > options_.quit_after);
      }
    }
    glDeleteTextures(3, textures_.data());
    if (decoding_.valid()) decoding_.wait();
  }

 private:
  // ----------------------------------------------------------------------------------------------------- the volume

  int extent(int axis) const { return volume_.size[static_cast<std::size_t>(axis)]; }
  /// Where the planes cut the decoded volume: the voxel that corresponds to one of the whole volume.
  int cut(int axis) const {
    const auto a = static_cast<std::size_t>(axis);
    return static_cast<int>(std::int64_t{place_[a]} * volume_.size[a] / options_.size[a]);
  }
  float value(const std::array<int, 3>& at) const {
    return volume_.values[(static_cast<std::size_t>(at[2]) * static_cast<std::size_t>(volume_.size[1]) +
                           static_cast<std::size_t>(at[1])) *
                              static_cast<std::size_t>(volume_.size[0]) +
                          static_cast<std::size_t>(at[0])];
  }

  /// What occurs in the three planes, as 'view' takes it.
  void usual_window() {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const Plane& plane : kPlanes)
      for_plane(plane, [&](int, int, float v) {
        if (!std::isfinite(v)) return;
        low = std::min(low, static_cast<double>(v));
        high = std::max(high, static_cast<double>(v));
      });
    low_ = std::isfinite(low) ? low : 0;
    high_ = low_ < high ? high : low_ + 1;
  }

  /// f(column, row, value) for all of a plane.
  template <class F>
  void for_plane(const Plane& plane, const F& f) const {
    std::array<int, 3> at = {};
    at[static_cast<std::size_t>(plane.along)] = cut(plane.along);
    const int rows = extent(plane.down);
    for (int y = 0; y < rows; ++y) {
      at[static_cast<std::size_t>(plane.down)] = plane.upwards ? rows - 1 - y : y;
      for (int x = 0; x < extent(plane.across); ++x) {
        at[static_cast<std::size_t>(plane.across)] = x;
        f(x, y, value(at));
      }
    }
  }

  /// Starts to decode the requested quality, and takes finished volumes.
  void take_decoded() {
    if (decoding_.valid() && decoding_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      auto [volume, seconds] = decoding_.get();
      volume_ = std::move(volume);
      seconds_ = seconds;
      shown_quality_ = wanted_;
      changed_ = true;
    }
    if (decoding_.valid() || quality_ == shown_quality_) return;
    wanted_ = quality_;
    decoding_ = std::async(std::launch::async, [this, q = quality_] {
      const auto begun = std::chrono::steady_clock::now();
      Volume volume = options_.load(q);
      return std::pair(std::move(volume),
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    });
  }

  // -------------------------------------------------------------------------------------------------------- drawing

  /// The size of the planes side by side, one pixel a voxel.
  std::array<int, 2> montage_size() const {
    std::array<int, 2> size = {-kGap, 0};
    for (const Plane& plane : kPlanes) {
      size[0] += extent(plane.across) + kGap;
      size[1] = std::max(size[1], extent(plane.down));
    }
    return size;
  }

  void upload() {
    for (std::size_t p = 0; p < 3; ++p) {
      const Plane& plane = kPlanes[p];
      const int width = extent(plane.across);
      const int height = extent(plane.down);
      std::vector<std::uint32_t> pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
      for_plane(plane, [&](int x, int y, float v) {
        const double part = (static_cast<double>(v) - low_) / (high_ - low_);
        const auto grey =
            static_cast<std::uint32_t>(std::isfinite(part) ? std::lround(255 * std::clamp(part, 0.0, 1.0)) : 0);
        pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] =
            IM_COL32(grey, grey, grey, 255);
      });
      glBindTexture(GL_TEXTURE_2D, textures_[p]);
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
      glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels.data());
    }
    changed_ = false;
  }

  struct Cell {
    ImVec2 low;
    ImVec2 high;
    bool holds(float x, float y) const { return x >= low.x && x < high.x && y >= low.y && y < high.y; }
  };

  /// Where the planes are drawn: a pixel a voxel, or as large as they can be in their true proportions.
  void lay_out(float width, float height, bool plain) {
    float left = 0;
    const float column = width / 3;
    for (std::size_t p = 0; p < 3; ++p) {
      const Plane& plane = kPlanes[p];
      const auto w = static_cast<float>(extent(plane.across));
      const auto h = static_cast<float>(extent(plane.down));
      if (plain) {
        cells_[p] = {{left, 0}, {left + w, h}};
        left += w + kGap;
        continue;
      }
      const auto true_w = w * static_cast<float>(volume_.spacing[static_cast<std::size_t>(plane.across)]);
      const auto true_h = h * static_cast<float>(volume_.spacing[static_cast<std::size_t>(plane.down)]);
      const float scale = std::min((column - 8) / true_w, (height - 8) / true_h);
      const float x = column * static_cast<float>(p) + (column - true_w * scale) / 2;
      const float y = (height - true_h * scale) / 2;
      cells_[p] = {{x, y}, {x + true_w * scale, y + true_h * scale}};
    }
  }

  void draw(int width, int height, bool plain) {
    if (changed_) upload();
    glViewport(0, 0, width, height);
    glClearColor(0, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGuiIO& io = ImGui::GetIO();
    if (options_.headless) io.DisplaySize = {static_cast<float>(width), static_cast<float>(height)};
    begin_overlay();
    lay_out(io.DisplaySize.x, io.DisplaySize.y - panel_height(io.DisplaySize.x), plain);
    ImDrawList* list = ImGui::GetBackgroundDrawList();
    for (std::size_t p = 0; p < 3; ++p) {
      const Cell& cell = cells_[p];
      list->AddImage(reinterpret_cast<ImTextureID>(static_cast<std::uintptr_t>(textures_[p])), cell.low, cell.high);
      if (!plain) draw_cross(*list, p);
    }
    if (!plain) panel();
    end_overlay();
  }

  void draw_cross(ImDrawList& list, std::size_t p) const {
    constexpr std::array<ImU32, 3> kColours = {IM_COL32(255, 90, 90, 150), IM_COL32(90, 230, 90, 150),
                                               IM_COL32(90, 150, 255, 150)};  // of the planes along x, y, z
    const Plane& plane = kPlanes[p];
    const Cell& cell = cells_[p];
    const auto part = [&](int axis) {
      const auto a = static_cast<std::size_t>(axis);
      return (static_cast<float>(place_[a]) + 0.5F) / static_cast<float>(options_.size[a]);
    };
    const float x = cell.low.x + part(plane.across) * (cell.high.x - cell.low.x);
    const float down = plane.upwards ? 1 - part(plane.down) : part(plane.down);
    const float y = cell.low.y + down * (cell.high.y - cell.low.y);
    list.AddLine({x, cell.low.y}, {x, cell.high.y}, kColours[static_cast<std::size_t>(plane.across)]);
    list.AddLine({cell.low.x, y}, {cell.high.x, y}, kColours[static_cast<std::size_t>(plane.down)]);
    list.AddRect(cell.low, cell.high, kColours[static_cast<std::size_t>(plane.along)]);
  }

  void panel() {
    const ImGuiIO& io = ImGui::GetIO();
    ImGui::SetNextWindowPos({0, io.DisplaySize.y - panel_height(io.DisplaySize.x)});
    ImGui::SetNextWindowSize({io.DisplaySize.x, panel_height(io.DisplaySize.x)});
    ImGui::Begin("controls", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
    const bool narrow = io.DisplaySize.x < kNarrow;
    const float full = io.DisplaySize.x;
    const float column = narrow ? full - 40 : full / 3 - 70;
    constexpr std::array<const char*, 3> kNames = {"x", "y", "z"};
    for (std::size_t a = 0; a < 3; ++a) {
      ImGui::SetNextItemWidth(column);
      changed_ = ImGui::SliderInt(kNames[a], &place_[a], 0, options_.size[a] - 1) || changed_;
      if (a < 2 && !narrow) ImGui::SameLine(full / 3 * static_cast<float>(a + 1));
    }
    auto level = static_cast<float>((low_ + high_) / 2);
    auto width = static_cast<float>(high_ - low_);
    const float step = std::max(width / 200, 1e-6F);
    const float half = narrow ? full / 2 - 75 : column;  // beside the longest name
    ImGui::SetNextItemWidth(half);
    bool moved = ImGui::DragFloat("level", &level, step, 0, 0, "%.5g");
    ImGui::SameLine(narrow ? full / 2 : full / 3);
    ImGui::SetNextItemWidth(half);
    moved = ImGui::DragFloat("window", &width, step, 0, 0, "%.5g") || moved;
    if (moved) set_window(static_cast<double>(level), static_cast<double>(width));
    if (!narrow) ImGui::SameLine(full / 3 * 2);
    ImGui::SetNextItemWidth(narrow ? half : column / 2 - 40);
    int layers = quality_.layers > 0 ? quality_.layers : options_.layers;
    if (ImGui::SliderInt("layers", &layers, 1, options_.layers))
      quality_.layers = layers == options_.layers ? 0 : layers;
    ImGui::SameLine(narrow ? full / 2 : 0);
    ImGui::SetNextItemWidth(narrow ? half : column / 2 - 40);
    ImGui::SliderInt("halvings", &quality_.reduce, 0, options_.most_reduce);
    ImGui::TextWrapped("value %.6g at %d, %d, %d   %dx%dx%d   decoded in %.2f s%s",
                       static_cast<double>(value({cut(0), cut(1), cut(2)})), place_[0], place_[1], place_[2], extent(0),
                       extent(1), extent(2), seconds_, decoding_.valid() ? "   decoding ..." : "");
    if (!narrow)
      ImGui::TextDisabled(
          "left button: voxel   wheel: slice   right button: window and level   r: reset   s: screenshot");
    ImGui::End();
  }

  void set_window(double level, double width) {
    width = std::max(width, 1e-9);
    low_ = level - width / 2;
    high_ = level + width / 2;
    changed_ = true;
  }

  // ---------------------------------------------------------------------------------------------------------- input

  void take_events() {
    SDL_Event event;
    while (SDL_PollEvent(&event) != 0) {
      ImGui_ImplSDL2_ProcessEvent(&event);
      if (event.type == SDL_QUIT) quit_ = true;
      if (event.type == SDL_KEYDOWN) key(event.key.keysym.sym);
      if (ImGui::GetIO().WantCaptureMouse) continue;
      if (event.type == SDL_MOUSEBUTTONDOWN && event.button.button == SDL_BUTTON_LEFT)
        put(static_cast<float>(event.button.x), static_cast<float>(event.button.y));
      if (event.type == SDL_MOUSEMOTION && (event.motion.state & SDL_BUTTON_LMASK) != 0)
        put(static_cast<float>(event.motion.x), static_cast<float>(event.motion.y));
      if (event.type == SDL_MOUSEMOTION && (event.motion.state & SDL_BUTTON_RMASK) != 0) {
        const double width = high_ - low_;
        set_window((low_ + high_) / 2 + event.motion.yrel * width / 300,
                   width * std::exp2(static_cast<double>(event.motion.xrel) / 150));
      }
      if (event.type == SDL_MOUSEWHEEL) leaf(event.wheel.y);
    }
  }

  /// The voxel under a point of the window.
  void put(float x, float y) {
    for (std::size_t p = 0; p < 3; ++p) {
      const Cell& cell = cells_[p];
      if (!cell.holds(x, y)) continue;
      const Plane& plane = kPlanes[p];
      const float across = (x - cell.low.x) / (cell.high.x - cell.low.x);
      const float down = (y - cell.low.y) / (cell.high.y - cell.low.y);
      move_to(plane.across, across);
      move_to(plane.down, plane.upwards ? 1 - down : down);
    }
  }
  void move_to(int axis, float part) {
    const auto a = static_cast<std::size_t>(axis);
    place_[a] = std::clamp(static_cast<int>(part * static_cast<float>(options_.size[a])), 0, options_.size[a] - 1);
    changed_ = true;
  }

  void leaf(int count) {
    int x = 0;
    int y = 0;
    SDL_GetMouseState(&x, &y);
    for (std::size_t p = 0; p < 3; ++p)
      if (cells_[p].holds(static_cast<float>(x), static_cast<float>(y))) {
        const auto a = static_cast<std::size_t>(kPlanes[p].along);
        place_[a] = std::clamp(place_[a] + count, 0, options_.size[a] - 1);
        changed_ = true;
      }
  }

  void key(SDL_Keycode pressed) {
    switch (pressed) {
      case SDLK_q:
      case SDLK_ESCAPE: quit_ = true; break;
      case SDLK_f: window_->toggle(); break;
      case SDLK_r:
        usual_window();
        changed_ = true;
        break;
      case SDLK_UP: leaf_z(1); break;
      case SDLK_DOWN: leaf_z(-1); break;
      case SDLK_s: shoot(); break;
      default: break;
    }
  }
  void leaf_z(int count) {
    place_[2] = std::clamp(place_[2] + count, 0, options_.size[2] - 1);
    changed_ = true;
  }

  /// The planes, a pixel a voxel, under the first free name.
  void shoot() {
    const std::string stem = std::filesystem::path(options_.input).stem().string();
    const std::array<int, 2> size = montage_size();
    std::error_code ignored;
    for (int i = 1; i < 10000; ++i) {
      const std::string name = stem + "-" + std::to_string(i) + ".png";
      if (std::filesystem::exists(name, ignored)) continue;
      try {
        const Canvas canvas(size[0], size[1]);
        const bool headless = options_.headless;
        options_.headless = true;  // the canvas says how large it is
        draw(size[0], size[1], true);
        options_.headless = headless;
        write_picture(name, read_pixels(size[0], size[1]), size[0], size[1], false);
        cli::log::info("{}", name);
      } catch (const Error& e) {
        cli::log::error("{}", e.what());
      }
      return;
    }
  }

  VolumeOptions options_;
  Quality quality_;        ///< as the sliders say
  Quality wanted_;         ///< that is being decoded
  Quality shown_quality_;  ///< of volume_
  Volume volume_;
  double seconds_ = 0;
  std::future<std::pair<Volume, double>> decoding_;
  std::array<int, 3> place_{};  ///< a voxel of the whole volume
  double low_ = 0;
  double high_ = 1;
  bool changed_ = true;
  bool quit_ = false;
  Window* window_ = nullptr;
  std::array<unsigned, 3> textures_{};
  std::array<Cell, 3> cells_{};
};

}  // namespace

void show_volume(const VolumeOptions& options) { VolumeSession(options).run(); }

}  // namespace trivelet::play
