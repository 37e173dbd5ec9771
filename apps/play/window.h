// The window of the player: SDL, an OpenGL 3.3 context with Dear ImGui, and screenshots.
#pragma once

#include <SDL.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trivelet::play {

class Window {
 public:
  /// Throws Unsupported if there is no display or no OpenGL 3.3.
  Window(const std::string& title, int width, int height, bool hidden, bool full_screen);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  SDL_Window* get() const { return window_; }
  std::array<int, 2> size() const;
  void resize(std::array<int, 2> size);
  /// True if OpenGL reports no GPU.
  bool is_drawn_by_processor() const;
  /// Full screen or not.
  void toggle();
  bool is_full_screen() const;
  /// False if it was none.
  bool leave_full_screen();

 private:
  void close();

  SDL_Window* window_ = nullptr;
  SDL_GLContext context_ = nullptr;
};

/// While it exists, drawing goes into a picture of this size instead of the window.
class Canvas {
 public:
  /// Throws Unsupported for sizes that OpenGL refuses.
  Canvas(int width, int height);
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

 private:
  unsigned buffer_ = 0;
  unsigned texture_ = 0;
};

/// Dear ImGui's controls: the second call draws what was described between the two.
void begin_overlay();
void end_overlay();
/// A line that names a key and what it does.
struct KeyHelp {
  const char* key;
  const char* what;
};
/// The keys, in a window in the middle.
void describe_keys(std::span<const KeyHelp> keys);
/// Text in large letters with a dark edge, whose last line ends `above` the lower edge.
void describe_subtitle(const std::string& text, float above);

/// The first free name for a screenshot in the working folder: the input's with a number, .png. "" if there is none.
std::string free_picture_name(const std::string& input);
/// Writes R G B from the top left, by the name's extension.
void write_picture(const std::string& path, const std::vector<std::uint8_t>& rgb, int width, int height,
                   bool overwrite);

}  // namespace trivelet::play
