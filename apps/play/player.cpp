// The module that shows pictures and plays sound: SDL for the window, keys and the sound card, OpenGL for pictures, Dear
// ImGui for what is drawn over them.
//
// One loop: what was pressed, the time, the frame of that time if it is decoded, the overlay. The sound is the clock;
// without it (none in the file, muted by another speed, paused) the computer's. The clock never waits for pictures, unless
// nothing could be shown at all: what is late is passed over, and with a budget less of it is decoded.
#define GL_GLEXT_PROTOTYPES
#include "apps/play/player.h"

#include <SDL.h>
#include <SDL_opengl.h>
#include <backends/imgui_impl_sdl.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "apps/cli/log.h"
#include "apps/play/frame_store.h"
#include "apps/play/renderer.h"
#include "apps/play/sound.h"
#include "apps/play/volume_player.h"
#include "apps/play/window.h"

namespace trivelet::play {

namespace {

using Time = std::chrono::steady_clock;

constexpr double kShortStep = 5;  // seconds, as ffplay and mpv
constexpr double kLongStep = 60;
constexpr double kOverlaySeconds = 2.5;  // that it stays after the mouse moved

std::string clock_text(double seconds) {
  const auto s = static_cast<long long>(std::max(0.0, seconds) * 10);
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld.%lld", s / 36000, s / 600 % 60, s / 10 % 60, s % 10);
  return text.data();
}

/// Decodes less where the time does not suffice: layers first, then resolution, then frames.
class Budget {
 public:
  Budget(bool on, const FrameStore& store) : on_(on), store_(store) {}

  Quality apply(Quality q) const {
    const int layers = q.layers > 0 ? q.layers : store_.stream().layers;
    if (level_ >= 1) q.layers = std::max(1, layers * 3 / 4);
    if (level_ >= 2) q.layers = std::max(1, layers / 2);
    if (level_ >= 3) q.reduce = std::min(q.reduce + 1, store_.most_reduce());
    if (level_ >= 4) q.reduce = std::min(q.reduce + 1, store_.most_reduce());
    if (level_ >= 5) q.temporal = std::min(q.temporal + 1, store_.most_temporal());
    if (level_ >= 6) q.temporal = std::min(q.temporal + 1, store_.most_temporal());
    return q;
  }
  /// A GOP that lasts `length` seconds took so long.
  void decoded(double seconds, double length) {
    if (!on_ || length <= 0) return;
    if (seconds > 0.9 * length) {
      level_ = std::min(level_ + 1, kMost);
      calm_ = 0;
    } else if (seconds < 0.4 * length && ++calm_ >= kCalm) {
      level_ = std::max(0, level_ - 1);
      calm_ = 0;
    }
  }
  int level() const { return level_; }

 private:
  static constexpr int kMost = 6;
  static constexpr int kCalm = 4;  // GOPs, so that it does not go to and fro
  bool on_;
  const FrameStore& store_;
  int level_ = 0;
  int calm_ = 0;
};

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options),
        store_(options.input, options.decoding, options.backend),
        budget_(options.budget, store_),
        quality_(options.quality) {
    if (!options.compare.empty()) other_.emplace(options.compare, options.decoding, options.backend);
    const VideoInfo& video = store_.stream().video;
    const Area whole = fit(video, 1 << 20, 1 << 20);
    const double scale = std::max(whole.width, whole.height) / static_cast<double>(std::max(video.width, video.height));
    width_ = std::max(1, static_cast<int>(whole.width / scale + 0.5));
    height_ = std::max(1, static_cast<int>(whole.height / scale + 0.5));
    begin_ = store_.times().front();
  }

  void run() {
    // The largest window that is no larger than most screens.
    const double shrink = options_.headless ? 1 : std::min({1.0, 1600.0 / width_, 900.0 / height_});
    window_.emplace("trivelet - " + std::filesystem::path(options_.input).filename().string(),
                    std::max(64, static_cast<int>(width_ * shrink)), std::max(64, static_cast<int>(height_ * shrink)),
                    options_.headless, options_.full_screen);
    renderer_.emplace();
    pictures_.emplace();
    if (other_) other_picture_.emplace();
    if (options_.headless) {
      shoot(begin_ + options_.screenshot_at, options_.screenshot);
      return;
    }
    open_sound();
    position_ = begin_ + options_.start;
    seek(position_);
    set_paused(false);
    begun_ = Time::now();
    while (!quit_) step();
    if (options_.stats)
      cli::log::info(
          "{} frames shown, {} late ({:.2f} %)", shown_, late_,
          100.0 * static_cast<double>(late_) / static_cast<double>(std::max<std::uint64_t>(1, shown_ + late_)));
  }

 private:
  // ------------------------------------------------------------------------------------------------------- the clock

  void open_sound() {
    if (options_.mute || store_.company().tracks.empty()) return;
    const io::MatroskaSource film(options_.input);
    sound_ = Sound::open(options_.input, static_cast<double>(film.clock_offset_us()) * 1e-6);
    if (!sound_) cli::log::warn("'{}': its sound cannot be played here", options_.input);
  }
  bool sound_leads() const { return sound_ && speed_ == 1 && !sound_->ended(); }

  double now() const {
    if (paused_) return position_;
    if (sound_leads()) {
      const double heard = sound_->now();
      if (std::isfinite(heard)) return heard;
    }
    return position_ + std::chrono::duration<double>(Time::now() - since_).count() * speed_;
  }
  void hold(double time) {
    position_ = time;
    since_ = Time::now();
  }
  void seek(double time) {
    time = std::clamp(time, begin_, store_.times().back());
    hold(time);
    if (sound_) {
      sound_->seek(time);
      sound_->pause(paused_ || speed_ != 1);
    }
    last_frame_ = kNone;
  }
  void set_paused(bool paused) {
    hold(now());
    paused_ = paused;
    if (sound_) sound_->pause(paused || speed_ != 1);
    if (!paused && position_ >= store_.times().back()) seek(begin_);
  }
  void set_speed(double speed) {
    const double time = now();
    speed_ = std::clamp(speed, 0.1, 8.0);
    if (std::abs(speed_ - 1) < 0.05) speed_ = 1;
    seek(time);
  }
  void step_frames(int count) {
    if (!paused_) set_paused(true);
    const std::size_t frame = store_.frame_at(position_);
    const auto last = static_cast<std::ptrdiff_t>(store_.times().size()) - 1;
    const std::ptrdiff_t wanted = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(frame) + count, 0, last);
    seek(store_.times()[static_cast<std::size_t>(wanted)]);
  }

  // ------------------------------------------------------------------------------------------------------ the picture

  /// What is decoded now. While the time line is dragged, what is fast.
  Quality current() const {
    Quality q = budget_.apply(quality_);
    if (dragging_) {
      q.reduce = std::min(std::max(q.reduce, 2), store_.most_reduce());
      q.layers = std::max(1, store_.stream().layers / 2);
    }
    return q;
  }

  /// Makes the frame of `time` the picture, if it is there. False if the one before stays.
  static bool show(FrameStore& store, Picture& picture, double time, const Quality& quality) {
    const std::size_t gop = store.gop_of(store.frame_at(time));
    store.want(gop, quality);
    std::shared_ptr<const DecodedGop> decoded = store.find(gop);
    std::size_t from = gop;
    while (decoded && decoded->gop.frames() == 0 && from > 0) decoded = store.find(--from);
    if (!decoded || decoded->gop.frames() == 0) return false;
    int frame = 0;
    const double unit = decoded->info.time_base.value();
    constexpr double kRounding = 1e-4;
    while (frame + 1 < decoded->gop.frames() &&
           static_cast<double>(decoded->gop.times()[static_cast<std::size_t>(frame) + 1].pts) * unit <=
               time + kRounding)
      ++frame;
    picture.upload(decoded->info, decoded->gop, frame);
    return true;
  }

  void update_picture(double time) {
    const Quality quality = current();
    const std::size_t frame = store_.frame_at(time);
    const std::size_t gop = store_.gop_of(frame);
    const bool ready = store_.is_ready(gop);
    if (frame == last_frame_ && ready == last_ready_ && quality == last_quality_) return;
    if (!show(store_, *pictures_, time, quality)) return;
    // Only what is shown counts, and what was passed over since: as long as nothing is there, each look finds more to pass.
    if (!paused_ && last_frame_ != kNone && frame > last_frame_) {
      const auto passed = static_cast<std::uint64_t>(frame - last_frame_ - 1);
      if (quality.temporal == 0 && speed_ <= 1) late_ += passed;
      ++shown_;
    }
    if (other_) show(*other_, *other_picture_, time - begin_ + other_->times().front(), clamp_to(*other_, quality));
    if (ready && gop != measured_gop_) {
      measured_gop_ = gop;
      if (const auto decoded = store_.find(gop)) {
        decode_seconds_ = decoded->seconds;
        budget_.decoded(decoded->seconds, store_.length_of(gop) / speed_);
      }
    }
    last_frame_ = frame;
    last_ready_ = ready;
    last_quality_ = quality;
  }

  static Quality clamp_to(const FrameStore& store, Quality q) {
    q.layers = std::min(q.layers, store.stream().layers);
    q.reduce = std::min(q.reduce, store.most_reduce());
    q.temporal = std::min(q.temporal, store.most_temporal());
    return q;
  }

  void draw(int width, int height) {
    glViewport(0, 0, width, height);
    glClearColor(0, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    const Area area = fit(store_.stream().video, width, height);
    renderer_->draw(*pictures_, area, 0, other_ ? split_ : 1);
    if (other_) renderer_->draw(*other_picture_, area, split_, 1);
  }

  // --------------------------------------------------------------------------------------------------------- overlay

  void overlay() {
    const ImGuiIO& io = ImGui::GetIO();
    const float height = 118;
    ImGui::SetNextWindowPos({0, io.DisplaySize.y - height});
    ImGui::SetNextWindowSize({io.DisplaySize.x, height});
    ImGui::SetNextWindowBgAlpha(0.7F);
    ImGui::Begin("controls", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
    if (other_) {
      const float x = static_cast<float>(split_) * io.DisplaySize.x;
      ImGui::GetBackgroundDrawList()->AddLine({x, 0}, {x, io.DisplaySize.y}, IM_COL32(255, 255, 255, 160));
    }
    const double time = now();
    const double whole = store_.end() - begin_;
    ImGui::Text("%s%s / %s   frame %zu of %zu%s", paused_ ? "|| " : "> ", clock_text(time - begin_).c_str(),
                clock_text(whole).c_str(), store_.frame_at(time), store_.times().size(),
                speed_ != 1 ? "   other speed, no sound" : "");
    auto part = static_cast<float>((time - begin_) / whole);
    ImGui::SetNextItemWidth(-1);
    const bool moved = ImGui::SliderFloat("##time", &part, 0, 1, "");
    const bool dragging = ImGui::IsItemActive();
    if (moved) seek(begin_ + static_cast<double>(part) * whole);
    if (dragging && !dragging_ && sound_) sound_->pause(true);
    if (!dragging && dragging_) seek(now());
    dragging_ = dragging;
    const int all = store_.stream().layers;
    int layers = quality_.layers > 0 ? quality_.layers : all;
    const float column = io.DisplaySize.x / 3 - 70;
    ImGui::SetNextItemWidth(column);
    if (ImGui::SliderInt("layers", &layers, 1, all)) quality_.layers = layers == all ? 0 : layers;
    ImGui::SameLine();
    ImGui::SetNextItemWidth(column);
    ImGui::SliderInt("halvings", &quality_.reduce, 0, store_.most_reduce());
    ImGui::SameLine();
    ImGui::SetNextItemWidth(column);
    if (other_) {
      auto split = static_cast<float>(split_);
      if (ImGui::SliderFloat("split", &split, 0, 1, "")) split_ = static_cast<double>(split);
    } else {
      ImGui::SliderInt("rate", &quality_.temporal, 0, store_.most_temporal(), "1 / 2^%d");
    }
    const std::size_t gop = store_.gop_of(store_.frame_at(time));
    const double length = store_.length_of(gop);
    std::uint64_t bytes = 0;
    const GopInfo& coded = store_.stream().gops[gop];
    const Quality q = current();
    for (std::size_t l = 0; l < coded.layers.size() && (q.layers == 0 || l < static_cast<std::size_t>(q.layers)); ++l)
      bytes += coded.layers[l].bytes;
    ImGui::Text("%.2f Mbit/s   %dx%d   decoding %.1f ms a frame, %.0f %% of the time   late %llu%s",
                8e-6 * static_cast<double>(bytes) / length, pictures_->info().width, pictures_->info().height,
                1e3 * decode_seconds_ / std::max(1, coded.frames), 100 * decode_seconds_ / length,
                static_cast<unsigned long long>(late_),
                budget_.level() > 0 ? ("   budget: -" + std::to_string(budget_.level())).c_str() : "");
    ImGui::End();
  }

  // ----------------------------------------------------------------------------------------------------- screenshots

  /// Waits for the frame of a time in the wanted quality and writes it in its own size, as it is shown.
  void shoot(double time, const std::string& path) {
    require(time >= begin_ && time < store_.end(), ErrorKind::kBadArgument,
            "a screenshot at " + std::to_string(time - begin_) + " s: the video lasts " +
                std::to_string(store_.end() - begin_) + " s");
    const std::size_t gop = store_.gop_of(store_.frame_at(time));
    store_.want(gop, quality_);
    store_.wait_for(gop);
    show(store_, *pictures_, time, quality_);
    if (other_) {
      const double there = time - begin_ + other_->times().front();
      const std::size_t other_gop = other_->gop_of(other_->frame_at(there));
      other_->want(other_gop, clamp_to(*other_, quality_));
      other_->wait_for(other_gop);
      show(*other_, *other_picture_, there, clamp_to(*other_, quality_));
    }
    if (const auto decoded = store_.find(gop)) decode_seconds_ = decoded->seconds;
    const Canvas canvas(width_, height_);
    draw(width_, height_);
    if (options_.overlay && options_.headless) {
      hold(time);
      ImGui::GetIO().DisplaySize = {static_cast<float>(width_), static_cast<float>(height_)};
      begin_overlay();
      overlay();
      end_overlay();
    }
    write_picture(path, read_pixels(width_, height_), width_, height_, options_.overwrite);
  }

  /// The first free name beside the working folder's others.
  void shoot_now() {
    const std::string stem = std::filesystem::path(options_.input).stem().string();
    std::error_code ignored;
    for (int i = 1; i < 10000; ++i) {
      const std::string name = stem + "-" + std::to_string(i) + ".png";
      if (std::filesystem::exists(name, ignored)) continue;
      try {
        shoot(now(), name);
        cli::log::info("{}", name);
      } catch (const Error& e) {  // the film goes on
        cli::log::error("{}", e.what());
      }
      last_frame_ = kNone;
      return;
    }
  }

  // ------------------------------------------------------------------------------------------------------------ input

  void key(const SDL_Keysym& pressed) {
    switch (pressed.sym) {
      case SDLK_q:
      case SDLK_ESCAPE: quit_ = true; break;
      case SDLK_SPACE:
      case SDLK_p: set_paused(!paused_); break;
      case SDLK_LEFT: seek(now() - kShortStep); break;
      case SDLK_RIGHT: seek(now() + kShortStep); break;
      case SDLK_DOWN: seek(now() - kLongStep); break;
      case SDLK_UP: seek(now() + kLongStep); break;
      case SDLK_HOME: seek(begin_); break;
      case SDLK_END: seek(store_.end()); break;
      case SDLK_PERIOD: step_frames(1); break;
      case SDLK_COMMA: step_frames(-1); break;
      case SDLK_LEFTBRACKET: set_speed(speed_ / 1.1); break;
      case SDLK_RIGHTBRACKET: set_speed(speed_ * 1.1); break;
      case SDLK_BACKSPACE: set_speed(1); break;
      case SDLK_m:
        if (sound_) sound_->mute(!sound_->muted());
        break;
      case SDLK_s: shoot_now(); break;
      case SDLK_o: pinned_ = !pinned_; break;
      case SDLK_f: window_->toggle(); break;
      default: break;
    }
  }

  void take_events() {
    SDL_Event event;
    while (SDL_PollEvent(&event) != 0) {
      ImGui_ImplSDL2_ProcessEvent(&event);
      const bool taken = ImGui::GetIO().WantCaptureMouse;
      if (event.type == SDL_QUIT) quit_ = true;
      if (event.type == SDL_KEYDOWN) key(event.key.keysym);
      if (event.type == SDL_MOUSEMOTION) mouse_moved_ = Time::now();
      if (event.type == SDL_MOUSEMOTION && (event.motion.state & SDL_BUTTON_LMASK) != 0 && !taken && other_)
        split_ = std::clamp(static_cast<double>(event.motion.x) / std::max(1, window_->size()[0]), 0.0, 1.0);
      if (event.type == SDL_MOUSEBUTTONDOWN && event.button.clicks == 2 && !taken) key({SDL_SCANCODE_F, SDLK_f, 0, 0});
    }
  }

  void step() {
    take_events();
    store_.check();
    if (other_) other_->check();
    if (sound_ && !paused_ && !dragging_) sound_->fill();
    double time = now();
    if (time >= store_.end() && !paused_) {
      if (options_.loop) {
        seek(begin_);
        time = begin_;
      } else {
        quit_ = true;
      }
    }
    const double played = std::chrono::duration<double>(Time::now() - begun_).count();
    if (options_.quit_after > 0 && played > options_.quit_after) quit_ = true;
    update_picture(time);
    const std::array<int, 2> size = window_->size();
    draw(size[0], size[1]);
    begin_overlay();
    const bool moved = std::chrono::duration<double>(Time::now() - mouse_moved_).count() < kOverlaySeconds;
    if (pinned_ || dragging_ || moved) overlay();
    end_overlay();
    SDL_GL_SwapWindow(window_->get());
    SDL_Delay(2);  // where nothing waits for the screen
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const Options& options_;
  FrameStore store_;
  std::optional<FrameStore> other_;
  Budget budget_;
  Quality quality_;
  int width_ = 0;  ///< of a picture as it is shown in its own size
  int height_ = 0;
  double begin_ = 0;
  std::optional<Window> window_;
  std::optional<Renderer> renderer_;
  std::optional<Picture> pictures_;
  std::optional<Picture> other_picture_;
  std::unique_ptr<Sound> sound_;

  double position_ = 0;  ///< the time at `since_`
  Time::time_point since_ = Time::now();
  Time::time_point begun_ = Time::now();
  bool paused_ = true;
  double speed_ = 1;
  bool dragging_ = false;
  bool pinned_ = options_.overlay;
  bool quit_ = false;
  double split_ = 0.5;
  Time::time_point mouse_moved_ = Time::now();

  std::size_t last_frame_ = kNone;
  bool last_ready_ = false;
  Quality last_quality_;
  std::size_t measured_gop_ = kNone;
  double decode_seconds_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t late_ = 0;
};

void run(const Options& options) { Session(options).run(); }

}  // namespace

const Player trivelet_play = {run, show_volume};

}  // namespace trivelet::play
