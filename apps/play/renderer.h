// Draws pictures in an OpenGL 3.3 context. Planes of 1 to 16 bits become textures, and a shader converts them to RGB by
// their colour tags. HDR is mapped to the range of an ordinary screen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trivelet/cuda.h"
#include "trivelet/types.h"

namespace trivelet::play {

/// A place in the window, in pixels from its lower left corner.
struct Area {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

/// The planes of a picture on the graphics card.
class Picture {
 public:
  /// `gpu`: the GPU in whose memory the frames are; -1: host memory.
  explicit Picture(int gpu);
  ~Picture();
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  void upload(const VideoInfo& info, const Gop& gop, int frame);
  bool empty() const { return info_.width == 0; }
  const VideoInfo& info() const { return info_; }
  unsigned texture(int plane) const { return textures_[plane]; }

 private:
  void share();
  void upload_plane(int component, const VolumeView& plane, int frame);

  int gpu_;
  VideoInfo info_;
  unsigned textures_[4] = {};
  std::unique_ptr<gpu::Textures> shared_;  ///< null: frames pass through the host
  std::vector<std::byte> fetched_;         ///< a plane, on its way from a GPU
};

class Renderer {
 public:
  /// Throws Unsupported when the context cannot do it.
  Renderer();
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  /// Draws the picture, turned as it says, into `area`; only the columns from `left` to `right` of it, 0..1.
  void draw(const Picture& picture, const Area& area, double left = 0, double right = 1);

 private:
  unsigned program_for(const VideoInfo& info);

  std::map<std::string, unsigned> programs_;  ///< by the definitions in the shader
  unsigned vertices_ = 0;
};

/// Where a picture of `info` is as large as it can be in a window.
Area fit(const VideoInfo& info, int width, int height);

/// The pixels of the frame buffer, from the top left, R G B.
std::vector<std::uint8_t> read_pixels(int width, int height);

}  // namespace trivelet::play
