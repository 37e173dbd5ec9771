// Shaders and textures that draw a frame of any pixel format.

#define GL_GLEXT_PROTOTYPES
#include "apps/play/renderer.h"

#include <SDL_opengl.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <string>

#include "apps/cli/log.h"
#include "trivelet/error.h"

namespace trivelet::play {

namespace {

constexpr const char* kVertexShader = R"(#version 330 core
uniform vec4 area;    // left, bottom, right, top of the clip space
uniform ivec2 turn;   // cosine and sine of the rotation
uniform float mirror; // -1: before it left and right change places
out vec2 place;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(mix(area.xy, area.zw, corner), 0.0, 1.0);
  vec2 centred = vec2(corner.x, 1.0 - corner.y) - 0.5;
  place = vec2(mirror * (turn.x * centred.x + turn.y * centred.y), turn.x * centred.y - turn.y * centred.x) + 0.5;
}
)";

// Planes are luma, two of chroma, alpha; or G, B, R, alpha. A texture's 1 is the largest value of its type, `scale`
// makes it that of the sample.
// What differs between formats is chosen before it is compiled: OpenGL on a processor goes through all branches.
//   MODEL     0 grey, 1 YUV, 2 RGB
//   ALPHA     1: there is such a plane
//   TRANSFER  0 as it is, 16 PQ, 18 HLG
//   WIDE      1: BT.2020 primaries
constexpr const char* kFragmentShader = R"(
uniform sampler2D planes[4];
uniform float scale;
uniform mat3 to_rgb;
uniform vec3 offset;
uniform vec2 chroma_shift;  // where chroma samples lie, in parts of the picture
uniform vec2 chroma_part;   // how much of their planes the picture covers: less than 1 if its size is odd
in vec2 place;
out vec4 colour;

#if TRANSFER != 0
vec3 pq_to_light(vec3 v) {  // SMPTE ST 2084, 1 = 203 cd/m2
  vec3 p = pow(max(v, 0.0), vec3(1.0 / 78.84375));
  return pow(max(p - 0.8359375, 0.0) / (18.8515625 - 18.6875 * p), vec3(1.0 / 0.1593017578125)) * (10000.0 / 203.0);
}
vec3 hlg_to_light(vec3 v) {  // ARIB STD-B67 on a screen of 1000 cd/m2
  vec3 scene = mix(v * v / 3.0, (exp((v - 0.55991073) / 0.17883277) + 0.28466892) / 12.0, step(0.5, v));
  float y = dot(scene, vec3(0.2627, 0.6780, 0.0593));
  return scene * pow(max(y, 1e-6), 0.2) * (1000.0 / 203.0);
}
vec3 to_screen(vec3 light) {  // Reinhard's curve, which leaves 1000 cd/m2 at white
#if WIDE
  light = mat3(1.6605, -0.1246, -0.0182, -0.5876, 1.1329, -0.1006, -0.0728, -0.0083, 1.1187) * light;
#endif
  light = max(light, 0.0);
  float peak = max(max(light.r, light.g), light.b);
  const float white = 1000.0 / 203.0;
  light *= (1.0 + peak / (white * white)) / (1.0 + peak);
  return pow(min(light, 1.0), vec3(1.0 / 2.2));
}

#endif

void main() {
#if MODEL == 0
  vec3 rgb = vec3((texture(planes[0], place).r * scale - offset.x) * to_rgb[0].r);
#elif MODEL == 1
  vec2 chroma = (place + chroma_shift) * chroma_part;
  vec3 v = vec3(texture(planes[0], place).r, texture(planes[1], chroma).r, texture(planes[2], chroma).r);
  vec3 rgb = to_rgb * (v * scale - offset);
#else
  vec3 rgb = vec3(texture(planes[2], place).r, texture(planes[0], place).r, texture(planes[1], place).r) * scale;
#endif
#if TRANSFER == 16
  rgb = to_screen(pq_to_light(rgb));
#elif TRANSFER == 18
  rgb = to_screen(hlg_to_light(rgb));
#endif
#if ALPHA
  float board = mod(floor(gl_FragCoord.x / 8.0) + floor(gl_FragCoord.y / 8.0), 2.0) * 0.2 + 0.4;
  rgb = mix(vec3(board), rgb, texture(planes[3], place).r * scale);
#endif
  colour = vec4(rgb, 1.0);
}
)";

unsigned compile(unsigned type, const char* text) {
  const unsigned shader = glCreateShader(type);
  glShaderSource(shader, 1, &text, nullptr);
  glCompileShader(shader);
  int good = 0;
  glGetShaderiv(shader, GL_COMPILE_STATUS, &good);
  if (good == 0) {
    std::array<char, 1024> log = {};
    glGetShaderInfoLog(shader, log.size() - 1, nullptr, log.data());
    fail(ErrorKind::kUnsupported, std::string("OpenGL does not compile the shader: ") + log.data());
  }
  return shader;
}

/// Kr and Kb of ITU-T H.273; pictures that do not say are BT.601 below 720 lines and BT.709 from there on.
std::array<double, 2> luma_weights(const VideoInfo& info) {
  switch (info.colour.matrix) {
    case 1: return {0.2126, 0.0722};
    case 4: return {0.30, 0.11};
    case 5:
    case 6: return {0.299, 0.114};
    case 7: return {0.212, 0.087};
    case 9:
    case 10: return {0.2627, 0.0593};
    default: break;
  }
  if (info.height < 720) return {0.299, 0.114};
  return {0.2126, 0.0722};
}

struct Matrix {
  std::array<float, 9> columns{};
  std::array<float, 3> offset{};
};

Matrix matrix_of(const VideoInfo& info) {
  const auto [kr, kb] = luma_weights(info);
  const double kg = 1 - kr - kb;
  const double most = (1 << info.format.bits) - 1;
  const double unit = info.format.bits >= 8 ? (1 << (info.format.bits - 8)) : 1.0 / (1 << (8 - info.format.bits));
  const bool full = info.colour.range == 2 || info.format.model == ColourModel::kRgb ||
                    (info.format.model == ColourModel::kGrey && info.colour.range == 0);
  const double luma = full ? 1 : most / (219 * unit);
  const double chroma = full ? 1 : most / (224 * unit);
  const double middle = (1 << info.format.bits) / 2 / most;
  Matrix m;
  m.offset = {static_cast<float>(full ? 0 : 16 * unit / most), static_cast<float>(middle), static_cast<float>(middle)};
  const std::array<double, 9> columns = {luma,
                                         luma,
                                         luma,
                                         0,
                                         -2 * kb * (1 - kb) / kg * chroma,
                                         2 * (1 - kb) * chroma,
                                         2 * (1 - kr) * chroma,
                                         -2 * kr * (1 - kr) / kg * chroma,
                                         0};
  for (std::size_t i = 0; i < columns.size(); ++i) m.columns[i] = static_cast<float>(columns[i]);
  return m;
}

/// From the middle of a chroma sample's luma samples to where it lies, in parts of the picture.
std::array<float, 2> chroma_shift(const VideoInfo& info) {
  const int location = info.colour.chroma_location;  // 1 left, 2 centre, 3 top left, 4 top, 5 bottom left, 6 bottom
  std::array<float, 2> shift = {0, 0};
  const bool left = location == 0 || location == 1 || location == 3 || location == 5;
  const float x = static_cast<float>((1 << info.format.log2_chroma_w) - 1) / 2 / static_cast<float>(info.width);
  const float y = static_cast<float>((1 << info.format.log2_chroma_h) - 1) / 2 / static_cast<float>(info.height);
  if (left) shift[0] = x;
  if (location == 3 || location == 4) shift[1] = y;
  if (location >= 5) shift[1] = -y;
  return shift;
}

std::array<float, 2> chroma_part(const VideoInfo& info) {
  if (info.format.model != ColourModel::kYuv) return {1, 1};
  return {static_cast<float>(info.width) / static_cast<float>(info.component_width(1) << info.format.log2_chroma_w),
          static_cast<float>(info.height) / static_cast<float>(info.component_height(1) << info.format.log2_chroma_h)};
}

}  // namespace

Picture::Picture(int gpu) : gpu_(gpu) {
  glGenTextures(4, textures_);
  for (const unsigned texture : textures_) {
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  }
}

Picture::~Picture() {
  shared_.reset();
  glDeleteTextures(4, textures_);
}

// Where OpenGL is not on the GPU that decodes, frames go through the host.
void Picture::share() {
  static std::once_flag said;
  const auto count = static_cast<std::size_t>(info_.format.components());
  try {
    shared_ = gpu::share_textures(gpu_, std::span<const unsigned>(textures_).first(count));
    std::call_once(said, [] { cli::log::debug("frames are copied into textures on the GPU"); });
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kUnsupported) throw;
    std::call_once(said, [&] { cli::log::debug("{}: frames are copied through the host", e.what()); });
  }
}

void Picture::upload(const VideoInfo& info, const Gop& gop, int frame) {
  const bool same = info_.width == info.width && info_.height == info.height && info_.format == info.format;
  info_ = info;
  if (!same) {
    shared_.reset();
    const bool wide = info.format.bytes_per_sample() == 2;
    for (int c = 0; c < info.format.components(); ++c) {
      glBindTexture(GL_TEXTURE_2D, textures_[c]);
      glTexImage2D(GL_TEXTURE_2D, 0, wide ? GL_R16 : GL_R8, info.component_width(c), info.component_height(c), 0,
                   GL_RED, wide ? GL_UNSIGNED_SHORT : GL_UNSIGNED_BYTE, nullptr);
    }
    if (gpu_ >= 0) share();
  }
  if (shared_) return shared_->fill(gop, frame);
  for (int c = 0; c < info.format.components(); ++c) upload_plane(c, gop.plane(c), frame);
}

void Picture::upload_plane(int component, const VolumeView& plane, int frame) {
  const std::byte* rows = plane.row(frame, 0);
  std::ptrdiff_t pitch = plane.row_stride;
  if (gpu_ >= 0) {
    pitch = static_cast<std::ptrdiff_t>(plane.row_bytes());
    const auto height = static_cast<std::size_t>(plane.shape.height);
    fetched_.resize(plane.row_bytes() * height);
    gpu::copy_from_device(gpu_, {fetched_.data(), pitch}, {const_cast<std::byte*>(rows), plane.row_stride},
                          plane.row_bytes(), height, nullptr);
    gpu::wait_for(gpu_, nullptr);
    rows = fetched_.data();
  }
  glBindTexture(GL_TEXTURE_2D, textures_[component]);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glPixelStorei(GL_UNPACK_ROW_LENGTH, static_cast<int>(pitch / plane.bytes_per_sample));
  glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, plane.shape.width, plane.shape.height, GL_RED,
                  plane.bytes_per_sample == 2 ? GL_UNSIGNED_SHORT : GL_UNSIGNED_BYTE, rows);
  glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
}

Renderer::Renderer() { glGenVertexArrays(1, &vertices_); }

Renderer::~Renderer() {
  glDeleteVertexArrays(1, &vertices_);
  for (const auto& [defines, program] : programs_) glDeleteProgram(program);
}

unsigned Renderer::program_for(const VideoInfo& info) {
  const int transfer = info.colour.transfer == 16 || info.colour.transfer == 18 ? info.colour.transfer : 0;
  const std::string defines = "#version 330 core\n#define MODEL " +
                              std::to_string(static_cast<int>(info.format.model)) + "\n#define ALPHA " +
                              (info.format.alpha ? "1" : "0") + "\n#define TRANSFER " + std::to_string(transfer) +
                              "\n#define WIDE " + (info.colour.primaries == 9 ? "1" : "0") + "\n";
  const auto [found, is_new] = programs_.try_emplace(defines, 0);
  if (!is_new) return found->second;
  const unsigned vertex = compile(GL_VERTEX_SHADER, kVertexShader);
  const unsigned fragment = compile(GL_FRAGMENT_SHADER, (defines + kFragmentShader).c_str());
  const unsigned program = glCreateProgram();
  found->second = program;
  glAttachShader(program, vertex);
  glAttachShader(program, fragment);
  glLinkProgram(program);
  glDeleteShader(vertex);
  glDeleteShader(fragment);
  int good = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &good);
  require(good != 0, ErrorKind::kUnsupported, "OpenGL does not link the shader");
  return program;
}

void Renderer::draw(const Picture& picture, const Area& area, double left, double right) {
  if (picture.empty() || left >= right) return;
  const VideoInfo& info = picture.info();
  std::array<int, 4> window = {};
  glGetIntegerv(GL_VIEWPORT, window.data());
  const unsigned program = program_for(info);
  const auto uniform = [program](const char* name) { return glGetUniformLocation(program, name); };
  glUseProgram(program);
  constexpr std::array<const char*, 4> kPlanes = {"planes[0]", "planes[1]", "planes[2]", "planes[3]"};
  for (int i = 0; i < 4; ++i) {
    glActiveTexture(static_cast<GLenum>(GL_TEXTURE0 + i));
    glBindTexture(GL_TEXTURE_2D, picture.texture(i));
    glUniform1i(uniform(kPlanes[static_cast<std::size_t>(i)]), i);
  }
  const float full = info.format.bytes_per_sample() == 2 ? 65535.0F : 255.0F;
  const Matrix m = matrix_of(info);
  const std::array<float, 2> shift = chroma_shift(info);
  glUniform1f(uniform("scale"), full / static_cast<float>((1 << info.format.bits) - 1));
  glUniformMatrix3fv(uniform("to_rgb"), 1, GL_FALSE, m.columns.data());
  glUniform3fv(uniform("offset"), 1, m.offset.data());
  glUniform2fv(uniform("chroma_shift"), 1, shift.data());
  const std::array<float, 2> covered = chroma_part(info);
  glUniform2fv(uniform("chroma_part"), 1, covered.data());
  const int quarter = info.rotation / 90;
  constexpr std::array<std::array<int, 2>, 4> kTurns = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};
  const auto& turn = kTurns[static_cast<std::size_t>(quarter & 3)];
  glUniform2i(uniform("turn"), turn[0], turn[1]);
  glUniform1f(uniform("mirror"), info.mirrored ? -1.0F : 1.0F);
  const auto clip = [](int at, int size) { return 2.0F * static_cast<float>(at) / static_cast<float>(size) - 1.0F; };
  glUniform4f(uniform("area"), clip(area.x, window[2]), clip(area.y, window[3]), clip(area.x + area.width, window[2]),
              clip(area.y + area.height, window[3]));
  const auto column = [&area](double part) { return area.x + static_cast<int>(part * area.width); };
  glEnable(GL_SCISSOR_TEST);
  glScissor(column(left), area.y, column(right) - column(left), area.height);
  glBindVertexArray(vertices_);
  glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
  glDisable(GL_SCISSOR_TEST);
  glActiveTexture(GL_TEXTURE0);
}

Area fit(const VideoInfo& info, int width, int height) {
  double w = info.width;
  double h = info.height;
  if (info.sample_aspect.num > 0 && info.sample_aspect.den > 0) w *= info.sample_aspect.value();
  if (info.rotation % 180 != 0) std::swap(w, h);
  const double factor = std::min(width / w, height / h);
  Area area;
  area.width = std::max(1, static_cast<int>(w * factor + 0.5));
  area.height = std::max(1, static_cast<int>(h * factor + 0.5));
  area.x = (width - area.width) / 2;
  area.y = (height - area.height) / 2;
  return area;
}

std::vector<std::uint8_t> read_pixels(int width, int height) {
  const auto row = static_cast<std::size_t>(width) * 3;
  std::vector<std::uint8_t> upside_down(row * static_cast<std::size_t>(height));
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, width, height, GL_RGB, GL_UNSIGNED_BYTE, upside_down.data());
  std::vector<std::uint8_t> pixels(upside_down.size());
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y)
    std::copy_n(upside_down.begin() + static_cast<std::ptrdiff_t>((static_cast<std::size_t>(height) - 1 - y) * row),
                row, pixels.begin() + static_cast<std::ptrdiff_t>(y * row));
  return pixels;
}

}  // namespace trivelet::play
