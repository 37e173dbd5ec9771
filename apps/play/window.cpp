// The window of the player: SDL, OpenGL and Dear ImGui.

#define GL_GLEXT_PROTOTYPES
#include "apps/play/window.h"

#include <SDL_opengl.h>
#include <backends/imgui_impl_opengl3.h>
#include <backends/imgui_impl_sdl.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "io/video/video_io.h"

namespace trivelet::play {

namespace {

constexpr float kTextSize = 17, kLargeSize = 30;  // pixels, on a screen of 96 dots an inch

/// A font of the system without serifs; "" if there is none of these.
std::string system_font() {
  for (const char* path :
       {"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
        "/usr/share/fonts/truetype/freefont/FreeSans.ttf", "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
        "/usr/share/fonts/TTF/DejaVuSans.ttf", "/System/Library/Fonts/Supplemental/Arial.ttf"}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return {};
}

/// The first font is that of the controls, the second that of subtitles.
void load_fonts(float scale) {
  ImFontAtlas& fonts = *ImGui::GetIO().Fonts;
  // Latin, Greek, Cyrillic, punctuation, currencies.
  static constexpr ImWchar kRanges[] = {0x20, 0x052F, 0x1E00, 0x1EFF, 0x2000, 0x206F, 0x20A0, 0x20CF, 0};
  const std::string path = system_font();
  for (const float size : {kTextSize, kLargeSize}) {
    if (path.empty() || fonts.AddFontFromFileTTF(path.c_str(), std::round(size * scale), nullptr, kRanges) == nullptr) {
      ImFontConfig config;
      config.SizePixels = std::round(size * scale);
      fonts.AddFontDefault(&config);
    }
  }
}

void set_style(float scale) {
  ImGui::StyleColorsDark();
  ImGuiStyle& style = ImGui::GetStyle();
  style.WindowBorderSize = 0;
  style.WindowRounding = 8;
  style.FrameRounding = style.GrabRounding = 4;
  style.WindowPadding = {14, 10};
  style.FramePadding = {8, 4};
  style.ItemSpacing = {10, 7};
  style.GrabMinSize = 14;
  const ImVec4 accent(0.20F, 0.50F, 0.66F, 1);
  style.Colors[ImGuiCol_WindowBg] = {0.07F, 0.08F, 0.09F, 1};
  style.Colors[ImGuiCol_FrameBg] = {1, 1, 1, 0.13F};
  style.Colors[ImGuiCol_FrameBgHovered] = style.Colors[ImGuiCol_FrameBgActive] = {1, 1, 1, 0.22F};
  style.Colors[ImGuiCol_SliderGrab] = style.Colors[ImGuiCol_SliderGrabActive] = accent;
  style.Colors[ImGuiCol_TextDisabled] = {0.68F, 0.70F, 0.72F, 1};
  style.ScaleAllSizes(scale);
}

[[noreturn]] void fail_sdl(const std::string& what) { fail(ErrorKind::kUnsupported, what + ": " + SDL_GetError()); }

}  // namespace

Window::Window(const std::string& title, int width, int height, bool hidden, bool full_screen) {
#ifdef __linux__
  // The library of Wayland prints an error if its folder is not named.
  if (std::getenv("XDG_RUNTIME_DIR") == nullptr && std::getenv("SDL_VIDEODRIVER") == nullptr)
    SDL_SetHint(SDL_HINT_VIDEODRIVER, "x11,kmsdrm,offscreen,dummy");
#endif
  if (SDL_Init(SDL_INIT_VIDEO | SDL_INIT_EVENTS) != 0) fail_sdl("no display to play on");
  // Without a display SDL takes drivers that draw into memory.
  const char* const driver = SDL_GetCurrentVideoDriver();
  const std::string_view name = driver != nullptr ? driver : "";
  if (!hidden && std::getenv("SDL_VIDEODRIVER") == nullptr && (name == "offscreen" || name == "dummy")) {
    close();
    fail(ErrorKind::kUnsupported, "no display to play on; --headless --screenshot FILE draws a picture into a file");
  }
  SDL_InitSubSystem(SDL_INIT_AUDIO);  // without a sound device films are silent
  SDL_GL_SetAttribute(SDL_GL_CONTEXT_MAJOR_VERSION, 3);
  SDL_GL_SetAttribute(SDL_GL_CONTEXT_MINOR_VERSION, 3);
  SDL_GL_SetAttribute(SDL_GL_CONTEXT_PROFILE_MASK, SDL_GL_CONTEXT_PROFILE_CORE);
  const Uint32 flags = SDL_WINDOW_OPENGL | SDL_WINDOW_RESIZABLE | (hidden ? SDL_WINDOW_HIDDEN : SDL_WINDOW_SHOWN) |
                       (full_screen ? SDL_WINDOW_FULLSCREEN_DESKTOP : 0);
  window_ = SDL_CreateWindow(title.c_str(), SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, width, height, flags);
  context_ = window_ != nullptr ? SDL_GL_CreateContext(window_) : nullptr;
  if (context_ == nullptr) {
    const std::string reason = SDL_GetError();
    close();
    fail(ErrorKind::kUnsupported, "no window with OpenGL 3.3: " + reason);
  }
  SDL_GL_SetSwapInterval(hidden ? 0 : 1);
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  float dots = 96;
  if (hidden || SDL_GetDisplayDPI(SDL_GetWindowDisplayIndex(window_), nullptr, &dots, nullptr) != 0) dots = 96;
  const float scale = std::clamp(dots / 96, 1.0F, 3.0F);
  load_fonts(scale);
  set_style(scale);
  ImGui_ImplSDL2_InitForOpenGL(window_, context_);
  ImGui_ImplOpenGL3_Init("#version 330 core");
}

Window::~Window() {
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplSDL2_Shutdown();
  ImGui::DestroyContext();
  close();
}

std::array<int, 2> Window::size() const {
  std::array<int, 2> size = {};
  SDL_GL_GetDrawableSize(window_, size.data(), size.data() + 1);
  return size;
}

void Window::resize(std::array<int, 2> size) {
  SDL_SetWindowSize(window_, size[0], size[1]);
  SDL_SetWindowPosition(window_, SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED);
}

bool Window::is_drawn_by_processor() const {
  const auto* text = reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  const std::string_view renderer = text != nullptr ? text : "";
  return renderer.find("llvmpipe") != std::string_view::npos || renderer.find("softpipe") != std::string_view::npos ||
         renderer.find("Software") != std::string_view::npos;
}

bool Window::is_full_screen() const { return (SDL_GetWindowFlags(window_) & SDL_WINDOW_FULLSCREEN_DESKTOP) != 0; }
bool Window::leave_full_screen() {
  const bool was_full = is_full_screen();
  if (was_full) toggle();
  return was_full;
}
void Window::toggle() { SDL_SetWindowFullscreen(window_, is_full_screen() ? 0 : SDL_WINDOW_FULLSCREEN_DESKTOP); }

void Window::close() {
  if (context_ != nullptr) SDL_GL_DeleteContext(context_);
  if (window_ != nullptr) SDL_DestroyWindow(window_);
  SDL_Quit();
}

Canvas::Canvas(int width, int height) {
  glGenFramebuffers(1, &buffer_);
  glGenTextures(1, &texture_);
  glBindTexture(GL_TEXTURE_2D, texture_);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glBindFramebuffer(GL_FRAMEBUFFER, buffer_);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture_, 0);
  require(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, ErrorKind::kUnsupported,
          "OpenGL has no frame buffer of " + std::to_string(width) + "x" + std::to_string(height));
}

Canvas::~Canvas() {
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  glDeleteFramebuffers(1, &buffer_);
  glDeleteTextures(1, &texture_);
}

void begin_overlay() {
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplSDL2_NewFrame();
  ImGui::NewFrame();
}

void end_overlay() {
  ImGui::Render();
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
}

void describe_keys(std::span<const KeyHelp> keys) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({size.x / 2, size.y / 2}, ImGuiCond_Always, {0.5F, 0.5F});
  ImGui::SetNextWindowBgAlpha(0.85F);
  ImGui::Begin("keys", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_AlwaysAutoResize);
  const float column = 9 * ImGui::GetFontSize();
  for (const KeyHelp& line : keys) {
    ImGui::TextUnformatted(line.key);
    ImGui::SameLine(column);
    ImGui::TextDisabled("%s", line.what);
  }
  ImGui::End();
}

void describe_subtitle(const std::string& text, float above) {
  const ImFont* font = ImGui::GetIO().Fonts->Fonts.back();
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const float size = std::clamp(screen.y / 22, font->FontSize / 2, 2 * font->FontSize);
  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  float y = screen.y - above - size * 1.2F * static_cast<float>(lines.size()) - size / 2;
  for (const std::string& line : lines) {
    const float width = font->CalcTextSizeA(size, screen.x, 0, line.c_str()).x;
    const ImVec2 at((screen.x - width) / 2, y);
    const float edge = std::max(1.0F, size / 16);
    for (int i = 0; i < 9; ++i)
      list.AddText(font, size,
                   {at.x + static_cast<float>(i % 3 - 1) * edge, at.y + static_cast<float>(i / 3 - 1) * edge},
                   IM_COL32(0, 0, 0, 220), line.c_str());
    list.AddText(font, size, at, IM_COL32_WHITE, line.c_str());
    y += size * 1.2F;
  }
}

std::string free_picture_name(const std::string& input) {
  const std::string stem = std::filesystem::path(input).stem().string();
  std::error_code ignored;
  for (int i = 1; i < 10000; ++i) {
    std::string name = stem + "-" + std::to_string(i) + ".png";
    if (!std::filesystem::exists(name, ignored)) return name;
  }
  return {};
}

void write_picture(const std::string& path, const std::vector<std::uint8_t>& rgb, int width, int height,
                   bool overwrite) {
  VideoInfo info;
  info.width = width;
  info.height = height;
  info.format = {ColourModel::kRgb, 8};
  info.colour = {1, 13, 0, 2, 0};
  io::WriterOptions options;
  options.overwrite = overwrite;
  const auto writer = io::open_writer(path, info, options);
  Gop gop(info, 1);
  gop.set_frames(1);
  constexpr std::array<std::size_t, 3> kChannel = {1, 2, 0};  // planes are G, B, R
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y) {
      auto* row = reinterpret_cast<std::uint8_t*>(gop.plane(c).row(0, y));
      const std::uint8_t* from = rgb.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width) * 3;
      for (int x = 0; x < width; ++x)
        row[x] = from[static_cast<std::size_t>(x) * 3 + kChannel[static_cast<std::size_t>(c)]];
    }
  writer->write(gop, 0);
  writer->finish();
}

}  // namespace trivelet::play
