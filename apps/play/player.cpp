// The module that shows pictures and plays sound: SDL for the window, keys and the sound card, OpenGL for pictures,
// Dear ImGui for the controls.
//
// One loop: input, the time, the frame of that time if it is decoded, the controls. The clock waits for pictures at its
// start and after a seek, and never in between: of late frames the newest is shown, and with a budget the quality is
// reduced. The window is drawn when something in it changed, because without a GPU drawing costs as much as decoding.
#define GL_GLEXT_PROTOTYPES
#include "apps/play/player.h"

#include <SDL.h>
#include <SDL_opengl.h>
#include <backends/imgui_impl_sdl.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "apps/cli/log.h"
#include "apps/play/play_clock.h"
#include "apps/play/play_controls.h"
#include "apps/play/renderer.h"
#include "apps/play/sound.h"
#include "apps/play/subtitles.h"
#include "apps/play/video_view.h"
#include "apps/play/volume_player.h"
#include "apps/play/window.h"
#include "codec/base/limits.h"

namespace trivelet::play {

namespace {

using Time = std::chrono::steady_clock;

constexpr double kShortStep = 5;  // seconds, as ffplay and mpv
constexpr double kLongStep = 60;

double seconds_since(Time::time_point begun) { return std::chrono::duration<double>(Time::now() - begun).count(); }

/// Frames that were shown or late, and drawings of the window.
class PlayStatistics {
 public:
  /// Frames from this one on are to be shown.
  void begin_at(std::size_t frame) { next_frame_ = frame; }
  /// Counts `frame`, if it is decoded, as shown, and those due before it that were not shown as late.
  void count(std::size_t frame, bool decoded) {
    if (frame < next_frame_) return;
    late_ += frame - next_frame_;
    next_frame_ = frame;
    if (!decoded) return;
    ++shown_;
    ++next_frame_;
  }
  void note_drawing(double seconds) {
    ++drawn_;
    draw_seconds_ += seconds;
    usual_draw_seconds_ += (seconds - usual_draw_seconds_) / 16;
  }
  void note_budget(int level) { most_budget_ = std::max(most_budget_, level); }

  std::uint64_t late() const { return late_; }
  double usual_draw_seconds() const { return usual_draw_seconds_; }
  void say(const Work& work, bool budget) const {
    cli::log::info(
        "{} frames shown, {} late ({:.2f} %); {} GOPs decoded in {:.2f} s; the window drawn {} times in {:.2f} s{}",
        shown_, late_,
        100.0 * static_cast<double>(late_) / static_cast<double>(std::max<std::uint64_t>(1, shown_ + late_)), work.gops,
        work.seconds, drawn_, draw_seconds_, budget ? fmt::format("; budget -{} at most", most_budget_) : "");
  }

 private:
  std::size_t next_frame_ = 0;  ///< that was not counted yet
  std::uint64_t shown_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t drawn_ = 0;
  double draw_seconds_ = 0;
  double usual_draw_seconds_ = 0;  ///< of the last frames
  int most_budget_ = 0;
};

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options),
        view_(options.input, options),
        store_(view_.store()),
        controls_(options.quality, options.overlay),
        clock_(view_.begin(), store_.times().back()) {
    if (!options.compare.empty()) other_.emplace(options.compare, options);
    const VideoInfo& video = store_.stream().video;
    const Area whole = fit(video, 1 << 20, 1 << 20);
    const double scale = std::max(whole.width, whole.height) / static_cast<double>(std::max(video.width, video.height));
    width_ = std::max(1, static_cast<int>(whole.width / scale + 0.5));
    height_ = std::max(1, static_cast<int>(whole.height / scale + 0.5));
  }

  void run() {
    open_window();
    open_subtitles();
    if (options_.headless) {
      shoot(view_.begin() + options_.screenshot_at, options_.screenshot);
      view_.refuse_damage();
      return;
    }
    if (!store_.stream().complete) cli::log::warn("'{}' is cut short: its end is missing", options_.input);
    open_sound();
    seek(view_.begin() + options_.start);
    set_paused(false);
    begun_ = Time::now();
    while (!quit_) step();
    if (options_.stats) statistics_.say(store_.work(), options_.budget);
    view_.refuse_damage();
    if (other_) other_->refuse_damage();
  }

 private:
  void open_window() {
    // The largest window that is no larger than most screens.
    const auto shrunk = [this](double width, double height) -> std::array<int, 2> {
      const double shrink = options_.headless ? 1 : std::min({1.0, width / width_, height / height_});
      return {std::max(64, static_cast<int>(width_ * shrink)), std::max(64, static_cast<int>(height_ * shrink))};
    };
    const auto [width, height] = shrunk(1600, 900);
    window_.emplace("trivelet - " + std::filesystem::path(options_.input).filename().string(), width, height,
                    options_.headless, options_.full_screen);
    // If the CPU draws, each pixel costs as much as a third of decoding one.
    if (window_->is_drawn_by_processor() && !options_.headless) window_->resize(shrunk(1280, 720));
    renderer_.emplace();
    view_.create_picture(options_.gpu);
    if (other_) other_->create_picture(options_.gpu);
  }

  /// Seconds to add to the times of a film's other tracks.
  double film_offset() const {
    return static_cast<double>(io::MatroskaSource(options_.input).clock_offset_us()) * 1e-6;
  }

  void open_subtitles() {
    if (!store_.side_streams().tracks.empty()) subtitles_ = Subtitles::open(options_.input, film_offset());
    const std::size_t count = subtitles_ ? subtitles_->names().size() : 0;
    if (options_.subtitles == 0) return;
    require(static_cast<std::size_t>(options_.subtitles) <= count, ErrorKind::kBadArgument,
            fmt::format("--subtitles {}: the film has {} of text", options_.subtitles, count_of(count, "track")));
    subtitles_->choose(options_.subtitles - 1, view_.begin());
  }

  void next_sound() {
    const Sound* now = clock_.sound();
    if (now == nullptr || now->names().size() < 2) {
      controls_.say(now == nullptr ? "no sound" : "one sound track: " + now->names().front());
      return;
    }
    const int wanted = (now->track() + 1) % static_cast<int>(now->names().size());
    std::unique_ptr<Sound> next = Sound::open(options_.input, film_offset(), wanted);
    const std::string which = fmt::format("sound {} of {}: {}", wanted + 1, now->names().size(),
                                          now->names()[static_cast<std::size_t>(wanted)]);
    if (!next) {
      controls_.say(which + ": cannot be played here");
      return;
    }
    next->set_volume(now->volume());
    next->mute(now->muted());
    const double time = clock_.now();
    clock_.set_sound(std::move(next));
    seek(time);
    controls_.say(which);
  }

  void next_subtitles() {
    if (!subtitles_) {
      controls_.say("no subtitles");
      return;
    }
    const std::size_t count = subtitles_->names().size();
    const int next = subtitles_->chosen() + 1 < static_cast<int>(count) ? subtitles_->chosen() + 1 : -1;
    subtitles_->choose(next, clock_.now());
    controls_.say(next < 0 ? "no subtitles"
                           : fmt::format("subtitles {} of {}: {}", next + 1, count,
                                         subtitles_->names()[static_cast<std::size_t>(next)]));
  }

  void change_volume(double by) {
    const Sound* sound = clock_.sound();
    if (sound == nullptr) return;
    clock_.set_volume(std::clamp(sound->volume() + by, 0.0, 1.0));
    controls_.say(fmt::format("volume {:.0f} %", 100 * sound->volume()));
  }

  void open_sound() {
    if (options_.mute || store_.side_streams().tracks.empty()) return;
    std::unique_ptr<Sound> sound = Sound::open(options_.input, film_offset(), options_.sound - 1);
    if (sound)
      require(options_.sound <= static_cast<int>(sound->names().size()), ErrorKind::kBadArgument,
              fmt::format("--sound {}: the film has {}", options_.sound, count_of(sound->names().size(), "track")));
    else
      cli::log::warn("'{}': its sound cannot be played here", options_.input);
    clock_.set_sound(std::move(sound));
  }

  // -------------------------------------------------------------------------------------------------------- the time

  /// The clock waits at the time until its picture is decoded.
  void seek(double time) {
    time = clock_.seek(time);
    statistics_.begin_at(store_.frame_at(time));
    if (subtitles_) subtitles_->seek(time);
  }
  void set_paused(bool paused) {
    clock_.set_paused(paused);
    if (!paused && clock_.position() >= store_.times().back()) seek(view_.begin());
  }
  void set_speed(double speed) {
    const double time = clock_.now();
    clock_.set_speed(speed);
    seek(time);
  }
  void step_frames(int count) {
    if (!clock_.is_paused()) set_paused(true);
    const std::size_t frame = store_.frame_at(clock_.position());
    const auto last = static_cast<std::ptrdiff_t>(store_.times().size()) - 1;
    const std::ptrdiff_t wanted = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(frame) + count, 0, last);
    seek(store_.times()[static_cast<std::size_t>(wanted)]);
  }

  // ------------------------------------------------------------------------------------------------------ the picture

  double time_in_other(double time) const { return time - view_.begin() + other_->begin(); }

  /// True if the picture is another one than before.
  bool update_picture(double time) {
    const bool stands = clock_.is_standing(), waits = clock_.is_waiting();
    const double speed = stands ? 0 : clock_.speed();
    const Quality quality = controls_.quality(store_, clock_.is_dragging());
    store_.want({time, speed, waits, quality});
    if (other_) other_->store().want({time_in_other(time), speed, waits, other_->possible(quality)});
    const std::size_t frame = store_.frame_at(time);
    const std::size_t gop = store_.gop_of(frame);
    const bool ready = store_.is_ready(gop);
    if (waits && !ready && !store_.find(gop)) return false;
    bool changed = view_.show(time, waits || stands);
    if (other_) changed = other_->show(time_in_other(time), waits || stands) || changed;
    if (!stands && clock_.speed() <= 1) statistics_.count(frame, store_.find(gop) != nullptr);
    if (waits && ((ready && has_start(gop)) || stands)) clock_.start();
    return changed;
  }

  /// Whether the clock may begin with a GOP that is there. Where the budget had to drop something, that GOP has taken
  /// longer than it lasts, and the next one would be late: it is waited for.
  bool has_start(std::size_t gop) const {
    return store_.budget_level() == 0 || gop + 1 >= store_.gops() || store_.is_ready(gop + 1);
  }

  void draw(int width, int height) {
    glViewport(0, 0, width, height);
    glClearColor(0, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    const Area area = fit(store_.stream().video, width, height);
    renderer_->draw(view_.picture(), area, 0, other_ ? controls_.split() : 1);
    if (other_) renderer_->draw(other_->picture(), area, controls_.split(), 1);
  }

  /// What is drawn over the picture of a time.
  void draw_over(double time, bool controls) {
    begin_overlay();
    const std::string text = subtitles_ ? subtitles_->text_at(time) : "";
    if (!text.empty()) describe_subtitle(text, controls ? PlayControls::height() : 0);
    controls_.describe_words();
    if (controls) draw_controls();
    end_overlay();
  }

  void draw_controls() {
    const PlayControls::TimeLine line = controls_.describe(clock_, view_, other_.has_value(), statistics_.late());
    if (line.seek) seek(*line.seek);
    if (line.volume) clock_.set_volume(*line.volume);
    if (!line.dragging && clock_.is_dragging()) seek(clock_.now());
    clock_.set_dragging(line.dragging);
  }

  // ----------------------------------------------------------------------------------------------------- screenshots

  /// Waits for the frame of a time in the requested quality and writes it in its own size, as it is shown.
  void shoot(double time, const std::string& path) {
    require(time >= view_.begin() && time < store_.end(), ErrorKind::kBadArgument,
            "a screenshot at " + std::to_string(time - view_.begin()) + " s: the video lasts " +
                std::to_string(store_.end() - view_.begin()) + " s");
    const Quality& quality = controls_.chosen_quality();
    store_.want({time, 0, false, quality});
    if (other_) other_->store().want({time_in_other(time), 0, false, other_->possible(quality)});
    store_.wait_for(view_.gop_at(time));
    view_.show(time, true);
    if (other_) {
      other_->store().wait_for(other_->gop_at(time_in_other(time)));
      other_->show(time_in_other(time), true);
    }
    const Canvas canvas(width_, height_);
    draw(width_, height_);
    if (options_.headless && (options_.overlay || options_.subtitles > 0)) {
      clock_.hold(time);
      if (subtitles_) subtitles_->seek(time);
      ImGui::GetIO().DisplaySize = {static_cast<float>(width_), static_cast<float>(height_)};
      draw_over(time, options_.overlay);
    }
    write_picture(path, read_pixels(width_, height_), width_, height_, options_.overwrite);
  }

  void shoot_now() {
    const std::string name = free_picture_name(options_.input);
    if (name.empty()) return;
    try {
      shoot(clock_.now(), name);
      cli::log::info("{}", name);
    } catch (const Error& e) {  // the film continues
      cli::log::error("{}", e.what());
    }
    redraw_ = kSettle;
  }

  // ------------------------------------------------------------------------------------------------------------ input

  void key(const SDL_Keysym& pressed) {
    switch (pressed.sym) {
      case SDLK_ESCAPE: quit_ = quit_ || !window_->leave_full_screen(); break;
      case SDLK_q: quit_ = true; break;
      case SDLK_SPACE:
      case SDLK_p: set_paused(!clock_.is_paused()); break;
      case SDLK_LEFT: seek(clock_.now() - kShortStep); break;
      case SDLK_RIGHT: seek(clock_.now() + kShortStep); break;
      case SDLK_DOWN: seek(clock_.now() - kLongStep); break;
      case SDLK_UP: seek(clock_.now() + kLongStep); break;
      case SDLK_HOME: seek(view_.begin()); break;
      case SDLK_END: seek(store_.end()); break;
      case SDLK_PERIOD: step_frames(1); break;
      case SDLK_COMMA: step_frames(-1); break;
      case SDLK_LEFTBRACKET: set_speed(clock_.speed() / 1.1); break;
      case SDLK_RIGHTBRACKET: set_speed(clock_.speed() * 1.1); break;
      case SDLK_BACKSPACE: set_speed(1); break;
      case SDLK_m: clock_.toggle_mute(); break;
      case SDLK_9: change_volume(-0.05); break;
      case SDLK_0: change_volume(0.05); break;
      case SDLK_a: next_sound(); break;
      case SDLK_t: next_subtitles(); break;
      case SDLK_F1: controls_.toggle_keys(); break;
      case SDLK_s: shoot_now(); break;
      case SDLK_o: controls_.toggle_pinned(); break;
      case SDLK_f: window_->toggle(); break;
      default: break;
    }
  }

  void take_events() {
    SDL_Event event;
    while (SDL_PollEvent(&event) != 0) {
      redraw_ = kSettle;
      ImGui_ImplSDL2_ProcessEvent(&event);
      const bool taken = ImGui::GetIO().WantCaptureMouse;
      if (event.type == SDL_QUIT) quit_ = true;
      if (event.type == SDL_KEYDOWN) key(event.key.keysym);
      // By the sign that the keyboard has, wherever it is.
      if (event.type == SDL_TEXTINPUT && event.text.text[0] == '?') controls_.toggle_keys();
      if (event.type == SDL_MOUSEWHEEL && !taken) change_volume(0.05 * event.wheel.y);
      if (event.type == SDL_MOUSEMOTION) controls_.note_mouse();
      if (event.type == SDL_MOUSEMOTION && (event.motion.state & SDL_BUTTON_LMASK) != 0 && !taken && other_)
        controls_.set_split(static_cast<double>(event.motion.x) / std::max(1, window_->size()[0]));
      if (event.type == SDL_MOUSEBUTTONDOWN && event.button.clicks == 2 && !taken) key({SDL_SCANCODE_F, SDLK_f, 0, 0});
    }
  }

  // ------------------------------------------------------------------------------------------------------------- loop

  void step() {
    take_events();
    store_.check();
    if (other_) other_->store().check();
    clock_.fill_sound();
    double time = clock_.now();
    clock_.follow(time);
    if (subtitles_) subtitles_->fill(time);
    if (time >= store_.end() && !clock_.is_paused()) {
      if (options_.loop) {
        seek(view_.begin());
        time = view_.begin();
      } else {
        quit_ = true;
      }
    }
    if (options_.quit_after > 0 && seconds_since(begun_) > options_.quit_after) quit_ = true;
    statistics_.note_budget(store_.budget_level());
    const bool controls = clock_.is_dragging() || controls_.are_visible();
    const bool words = controls_.has_words();
    if (words != words_drawn_) redraw_ = std::max(redraw_, 1);
    words_drawn_ = words;
    const bool old = seconds_since(drawn_at_) > (controls ? 0.1 : 1.0);
    const double shown = time + lead();
    if (update_picture(shown) || controls != controls_drawn_ || old) redraw_ = std::max(redraw_, 1);
    if (redraw_ > 0) {
      --redraw_;
      draw_window(controls);
    }
    wait_for_next(shown);
  }

  /// Seconds before its time at which a picture is begun, so that it is drawn in time.
  double lead() const {
    constexpr double kMost = 0.02;
    return clock_.is_running() ? std::min(statistics_.usual_draw_seconds(), kMost) * clock_.speed() : 0;
  }

  void draw_window(bool controls) {
    const Time::time_point begun = Time::now();
    const std::array<int, 2> size = window_->size();
    draw(size[0], size[1]);
    draw_over(clock_.now(), controls);
    SDL_GL_SwapWindow(window_->get());
    controls_drawn_ = controls;
    drawn_at_ = Time::now();
    statistics_.note_drawing(std::chrono::duration<double>(drawn_at_ - begun).count());
  }

  /// Waits until the next frame is due or there is input. Not for long, because decoding sends no event when it is
  /// done.
  void wait_for_next(double time) const {
    if (redraw_ > 0) return;
    constexpr double kLongest = 0.01;
    double left = kLongest;
    const std::size_t next = store_.frame_at(time) + 1;
    if (!clock_.is_paused() && !clock_.is_waiting() && next < store_.times().size())
      left = std::clamp((store_.times()[next] - time) / clock_.speed(), 0.001, kLongest);
    SDL_WaitEventTimeout(nullptr, static_cast<int>(left * 1000));
  }

  static constexpr int kSettle = 3;  // drawings after an event, until the controls look as they should

  const Options& options_;
  std::optional<Window> window_;  ///< before what is on its graphics card
  std::optional<Renderer> renderer_;
  VideoView view_;
  FrameStore& store_;               ///< of view_
  std::optional<VideoView> other_;  ///< beside view_
  int width_ = 0;                   ///< of a picture as it is shown in its own size
  int height_ = 0;
  PlayControls controls_;
  PlayClock clock_;
  std::unique_ptr<Subtitles> subtitles_{};  ///< null if there are none
  PlayStatistics statistics_;
  Time::time_point begun_ = Time::now();
  bool quit_ = false;
  int redraw_ = kSettle;  ///< drawings that are due
  bool controls_drawn_ = false;
  bool words_drawn_ = false;
  Time::time_point drawn_at_ = Time::now();
};

void run(const Options& options) { Session(options).run(); }

}  // namespace

const Player trivelet_play = {run, show_volume};

}  // namespace trivelet::play
