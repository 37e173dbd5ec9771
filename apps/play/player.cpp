// The module that shows pictures and plays sound: SDL for the window, keys and the sound card, OpenGL for pictures,
// Dear ImGui for the controls.
//
// One loop: input, the time, the frame of that time if it is decoded, the overlay. The sound is the clock. Without it
// (none in the file, another speed, paused) the computer's clock is used. The clock waits for pictures at its start and
// after a seek, and never in between: of late frames the newest is shown, and with a budget the quality is reduced. The
// window is drawn when something in it changed, because without a GPU drawing costs as much as decoding.
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

class Session {
 public:
  explicit Session(const Options& options)
      : options_(options),
        store_(options.input, options.decoding, options.backend, options.budget),
        quality_(options.quality) {
    if (!options.compare.empty()) other_.emplace(options.compare, options.decoding, options.backend, options.budget);
    const VideoInfo& video = store_.stream().video;
    const Area whole = fit(video, 1 << 20, 1 << 20);
    const double scale = std::max(whole.width, whole.height) / static_cast<double>(std::max(video.width, video.height));
    width_ = std::max(1, static_cast<int>(whole.width / scale + 0.5));
    height_ = std::max(1, static_cast<int>(whole.height / scale + 0.5));
    begin_ = store_.times().front();
  }

  void run() {
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
    screen_.emplace(options_.gpu);
    if (other_) other_screen_.emplace(options_.gpu);
    if (options_.headless) {
      shoot(begin_ + options_.screenshot_at, options_.screenshot);
      refuse_damage(options_.input, store_);
      return;
    }
    if (!store_.stream().complete) cli::log::warn("'{}' is cut short: its end is missing", options_.input);
    open_sound();
    position_ = begin_ + options_.start;
    seek(position_);
    set_paused(false);
    begun_ = Time::now();
    while (!quit_) step();
    if (options_.stats) say_stats();
    refuse_damage(options_.input, store_);
    if (other_) refuse_damage(options_.compare, *other_);
  }

 private:
  // ------------------------------------------------------------------------------------------------------- the clock

  void open_sound() {
    if (options_.mute || store_.side_streams().tracks.empty()) return;
    const io::MatroskaSource film(options_.input);
    sound_ = Sound::open(options_.input, static_cast<double>(film.clock_offset_us()) * 1e-6);
    if (!sound_) cli::log::warn("'{}': its sound cannot be played here", options_.input);
  }
  bool sound_leads() const { return sound_ && speed_ == 1 && !sound_->ended(); }

  double now() const {
    if (paused_ || waiting_ || dragging_) return position_;
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
  /// The clock waits at the time until its picture is decoded.
  void seek(double time) {
    time = std::clamp(time, begin_, store_.times().back());
    hold(time);
    if (sound_) {
      sound_->pause(true);
      sound_->seek(time);
    }
    waiting_ = true;
    next_frame_ = store_.frame_at(time);
  }
  void go_on() {
    hold(position_);
    waiting_ = false;
    if (sound_) sound_->pause(paused_ || speed_ != 1 || dragging_);
  }
  void set_paused(bool paused) {
    hold(now());
    paused_ = paused;
    if (sound_ && !waiting_) sound_->pause(paused || speed_ != 1);
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

  /// The quality to decode now. While the time line is dragged, a fast one.
  Quality current() const {
    Quality q = quality_;
    if (dragging_) {
      q.reduce = std::min(std::max(q.reduce, 2), store_.most_reduce());
      q.layers = std::max(1, store_.stream().layers / 2);
    }
    return q;
  }

  struct Screen {
    explicit Screen(int gpu) : picture(gpu) {}
    Picture picture;
    std::uint64_t gop = 0;  ///< DecodedGop::number; 0: nothing is shown
    int frame = 0;
  };

  /// Makes a decoded frame the picture: that of `time` or, unless `exact`, the last one before it. True if the picture
  /// changed.
  static bool show(const FrameStore& store, Screen& screen, double time, bool exact) {
    std::size_t gop = store.gop_of(store.frame_at(time));
    std::shared_ptr<const DecodedGop> decoded = exact ? store.find(gop) : store.find_before(gop);
    while (decoded && decoded->gop.frames() == 0 && gop > 0) decoded = store.find(--gop);
    if (!decoded || decoded->gop.frames() == 0) return false;
    int frame = 0;
    const double unit = decoded->info.time_base.value();
    constexpr double kRounding = 1e-4;
    while (frame + 1 < decoded->gop.frames() &&
           static_cast<double>(decoded->gop.times()[static_cast<std::size_t>(frame) + 1].pts) * unit <=
               time + kRounding)
      ++frame;
    if (screen.gop == decoded->number && screen.frame == frame) return false;
    screen.picture.upload(decoded->info, decoded->gop, frame);
    screen.gop = decoded->number;
    screen.frame = frame;
    return true;
  }

  double time_in_other(double time) const { return time - begin_ + other_->times().front(); }

  /// True if the picture is another one than before.
  bool update_picture(double time) {
    const bool stands = paused_ || dragging_;
    const Quality quality = current();
    store_.want({time, stands ? 0 : speed_, waiting_, quality});
    if (other_) other_->want({time_in_other(time), stands ? 0 : speed_, waiting_, clamp_to(*other_, quality)});
    const std::size_t frame = store_.frame_at(time);
    const bool ready = store_.is_ready(store_.gop_of(frame));
    if (waiting_ && !ready && !store_.find(store_.gop_of(frame))) return false;
    bool changed = show(store_, *screen_, time, waiting_ || stands);
    if (other_) changed = show(*other_, *other_screen_, time_in_other(time), waiting_ || stands) || changed;
    if (!stands && speed_ <= 1) count(frame, store_.find(store_.gop_of(frame)) != nullptr);
    if (waiting_ && ((ready && has_start(store_.gop_of(frame))) || stands)) go_on();
    return changed;
  }

  /// Whether the clock may begin with a GOP that is there. Where the budget had to drop something, that GOP has taken
  /// longer than it lasts, and the next one would be late: it is waited for.
  bool has_start(std::size_t gop) const {
    return store_.budget_level() == 0 || gop + 1 >= store_.gops() || store_.is_ready(gop + 1);
  }

  /// Counts the frames that were shown, and those that were due before the time of `frame`.
  void count(std::size_t frame, bool there) {
    if (frame < next_frame_) return;
    late_ += frame - next_frame_;
    next_frame_ = frame;
    if (!there) return;
    ++shown_;
    ++next_frame_;
  }

  /// Throws BadStream when something that was played is damaged.
  static void refuse_damage(const std::string& path, const FrameStore& store) {
    const std::vector<std::string> damage = store.damage();
    if (damage.empty()) return;
    const std::string more = damage.size() > 1 ? fmt::format(" (and {} more)", damage.size() - 1) : "";
    fail(ErrorKind::kBadStream, fmt::format("'{}' is damaged: {}{}; the intact part was shown", path, damage[0], more));
  }

  void say_stats() const {
    const Work work = store_.work();
    cli::log::info(
        "{} frames shown, {} late ({:.2f} %); {} GOPs decoded in {:.2f} s; the window drawn {} times in {:.2f} s{}",
        shown_, late_,
        100.0 * static_cast<double>(late_) / static_cast<double>(std::max<std::uint64_t>(1, shown_ + late_)), work.gops,
        work.seconds, drawn_, draw_seconds_, options_.budget ? fmt::format("; budget -{} at most", most_budget_) : "");
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
    renderer_->draw(screen_->picture, area, 0, other_ ? split_ : 1);
    if (other_) renderer_->draw(other_screen_->picture, area, split_, 1);
  }

  // --------------------------------------------------------------------------------------------------------- overlay

  void overlay() {
    const ImGuiIO& io = ImGui::GetIO();
    // The last line is broken if the window is narrower than its longest form.
    constexpr float kLine = 17, kLongestLine = 680, kMostLines = 3;
    const float height = 101 + kLine * std::min(kMostLines, std::ceil(kLongestLine / io.DisplaySize.x));
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
    // Names are inside the sliders, so that three fit into a small window.
    const float column = (ImGui::GetContentRegionAvail().x - 2 * ImGui::GetStyle().ItemSpacing.x) / 3;
    ImGui::SetNextItemWidth(column);
    const std::string of_all = "layers %d / " + std::to_string(all);
    if (ImGui::SliderInt("##layers", &layers, 1, all, of_all.c_str())) quality_.layers = layers == all ? 0 : layers;
    ImGui::SameLine();
    ImGui::SetNextItemWidth(column);
    ImGui::SliderInt("##size", &quality_.reduce, 0, store_.most_reduce(), "size 1 / 2^%d");
    ImGui::SameLine();
    ImGui::SetNextItemWidth(column);
    if (other_) {
      auto split = static_cast<float>(split_);
      if (ImGui::SliderFloat("##split", &split, 0, 1, "split")) split_ = static_cast<double>(split);
    } else {
      ImGui::SliderInt("##rate", &quality_.temporal, 0, store_.most_temporal(), "rate 1 / 2^%d");
    }
    const std::size_t gop = store_.gop_of(store_.frame_at(time));
    const std::shared_ptr<const DecodedGop> decoded = store_.find(gop);
    const double length = store_.length_of(gop);
    if (decoded && decoded->seconds > 0) decode_seconds_ = decoded->seconds;
    std::uint64_t bytes = 0;
    const GopInfo& coded = store_.stream().gops[gop];
    const Quality q = decoded ? decoded->quality : current();
    for (std::size_t l = 0; l < coded.layers.size() && (q.layers == 0 || l < static_cast<std::size_t>(q.layers)); ++l)
      bytes += coded.layers[l].bytes;
    const int level = store_.budget_level();
    ImGui::TextWrapped("%.2f Mbit/s   %dx%d   decoding %.1f ms a frame, %.0f %% of the time   late %llu%s",
                       8e-6 * static_cast<double>(bytes) / length, screen_->picture.info().width,
                       screen_->picture.info().height, 1e3 * decode_seconds_ / std::max(1, coded.frames),
                       100 * decode_seconds_ / length, static_cast<unsigned long long>(late_),
                       level > 0 ? ("   budget: -" + std::to_string(level)).c_str() : "");
    ImGui::End();
  }

  // ----------------------------------------------------------------------------------------------------- screenshots

  /// Waits for the frame of a time in the requested quality and writes it in its own size, as it is shown.
  void shoot(double time, const std::string& path) {
    require(time >= begin_ && time < store_.end(), ErrorKind::kBadArgument,
            "a screenshot at " + std::to_string(time - begin_) + " s: the video lasts " +
                std::to_string(store_.end() - begin_) + " s");
    const std::size_t gop = store_.gop_of(store_.frame_at(time));
    store_.want({time, 0, false, quality_});
    if (other_) other_->want({time_in_other(time), 0, false, clamp_to(*other_, quality_)});
    store_.wait_for(gop);
    show(store_, *screen_, time, true);
    if (other_) {
      other_->wait_for(other_->gop_of(other_->frame_at(time_in_other(time))));
      show(*other_, *other_screen_, time_in_other(time), true);
    }
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
      } catch (const Error& e) {  // the film continues
        cli::log::error("{}", e.what());
      }
      redraw_ = kSettle;
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
      redraw_ = kSettle;
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
    if (sound_leads()) hold(time);  // when the sound ends, the computer's clock takes over
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
    most_budget_ = std::max(most_budget_, store_.budget_level());
    const bool moved = std::chrono::duration<double>(Time::now() - mouse_moved_).count() < kOverlaySeconds;
    const bool controls = pinned_ || dragging_ || moved;
    const bool old = std::chrono::duration<double>(Time::now() - drawn_at_).count() > (controls ? 0.1 : 1.0);
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
    return paused_ || waiting_ || dragging_ ? 0 : std::min(usual_draw_seconds_, kMost) * speed_;
  }

  void draw_window(bool controls) {
    const Time::time_point begun = Time::now();
    const std::array<int, 2> size = window_->size();
    draw(size[0], size[1]);
    begin_overlay();
    if (controls) overlay();
    end_overlay();
    SDL_GL_SwapWindow(window_->get());
    controls_drawn_ = controls;
    drawn_at_ = Time::now();
    ++drawn_;
    const double seconds = std::chrono::duration<double>(drawn_at_ - begun).count();
    draw_seconds_ += seconds;
    usual_draw_seconds_ += (seconds - usual_draw_seconds_) / 16;
  }

  /// Waits until the next frame is due or there is input. Not for long, because decoding sends no event when it is
  /// done.
  void wait_for_next(double time) const {
    if (redraw_ > 0) return;
    constexpr double kLongest = 0.01;
    double left = kLongest;
    const std::size_t next = store_.frame_at(time) + 1;
    if (!paused_ && !waiting_ && next < store_.times().size())
      left = std::clamp((store_.times()[next] - time) / speed_, 0.001, kLongest);
    SDL_WaitEventTimeout(nullptr, static_cast<int>(left * 1000));
  }

  static constexpr int kSettle = 3;  // drawings after an event, until the controls look as they should

  const Options& options_;
  FrameStore store_;
  std::optional<FrameStore> other_;
  Quality quality_;
  int width_ = 0;  ///< of a picture as it is shown in its own size
  int height_ = 0;
  double begin_ = 0;
  std::optional<Window> window_;
  std::optional<Renderer> renderer_;
  std::optional<Screen> screen_;
  std::optional<Screen> other_screen_;
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

  bool waiting_ = false;        ///< for the picture at which the clock starts
  std::size_t next_frame_ = 0;  ///< that was not counted yet
  int redraw_ = kSettle;        ///< so many times
  bool controls_drawn_ = false;
  Time::time_point drawn_at_ = Time::now();
  std::uint64_t drawn_ = 0;
  double draw_seconds_ = 0;
  double usual_draw_seconds_ = 0;  ///< of the last frames
  double decode_seconds_ = 0;      ///< of the GOP that was shown last
  int most_budget_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t late_ = 0;
};

void run(const Options& options) { Session(options).run(); }

}  // namespace

const Player trivelet_play = {run, show_volume};

}  // namespace trivelet::play
