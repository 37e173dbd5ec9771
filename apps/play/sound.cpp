// Decodes a sound track with FFmpeg and plays it with SDL.

#include "apps/play/sound.h"

#include <SDL.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libswresample/swresample.h>
}

#include "apps/play/track_name.h"
#include "trivelet/error.h"

namespace trivelet::play {

namespace {

constexpr int kRate = 48000;
constexpr int kChannels = 2;
constexpr std::size_t kFrameBytes = kChannels * sizeof(float);
constexpr double kQueued = 0.4;  // seconds that wait in the device's queue
constexpr int kDevicePiece = 1024;

}  // namespace

struct Sound::State {
  AVFormatContext* input = nullptr;
  AVCodecContext* codec = nullptr;
  SwrContext* converter = nullptr;
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  int track = -1;                  // number in the file
  int chosen = 0;                  // place among the tracks of sound
  std::vector<std::string> names;  // of the tracks of sound
  float volume = 1;
  double offset = 0;
  SDL_AudioDeviceID device = 0;
  bool muted = false;
  bool ended = false;
  double skip_until = 0;                                         // earlier samples are dropped
  double queued_end = -std::numeric_limits<double>::infinity();  // time of the stream at the end of the queue
  // The device takes pieces; between them the clock runs by itself.
  mutable Uint32 last_queue = 0;
  mutable std::chrono::steady_clock::time_point last_change;
  bool paused = true;
  std::vector<float> samples;

  ~State() {
    if (device != 0) SDL_CloseAudioDevice(device);
    swr_free(&converter);
    av_frame_free(&frame);
    av_packet_free(&packet);
    avcodec_free_context(&codec);
    avformat_close_input(&input);
  }

  bool open(const std::string& path, int place) {
    av_log_set_level(AV_LOG_FATAL);  // FFmpeg does not know our pictures, and would print a message
    if (avformat_open_input(&input, path.c_str(), nullptr, nullptr) < 0) return false;
    if (avformat_find_stream_info(input, nullptr) < 0) return false;
    const AVCodec* decoder = nullptr;
    for (unsigned i = 0; i < input->nb_streams; ++i) {
      if (input->streams[i]->codecpar->codec_type != AVMEDIA_TYPE_AUDIO) continue;
      if (static_cast<int>(names.size()) == place) track = static_cast<int>(i);
      names.push_back(track_name(*input->streams[i]));
    }
    track = av_find_best_stream(input, AVMEDIA_TYPE_AUDIO, track, -1, &decoder, 0);
    if (track < 0 || decoder == nullptr) return false;
    for (int i = 0; i < track; ++i) chosen += input->streams[i]->codecpar->codec_type == AVMEDIA_TYPE_AUDIO;
    for (unsigned i = 0; i < input->nb_streams; ++i)
      if (static_cast<int>(i) != track) input->streams[i]->discard = AVDISCARD_ALL;
    codec = avcodec_alloc_context3(decoder);
    if (codec == nullptr || avcodec_parameters_to_context(codec, input->streams[track]->codecpar) < 0) return false;
    codec->pkt_timebase = input->streams[track]->time_base;
    if (avcodec_open2(codec, decoder, nullptr) < 0) return false;
    AVChannelLayout stereo = AV_CHANNEL_LAYOUT_STEREO;
    if (swr_alloc_set_opts2(&converter, &stereo, AV_SAMPLE_FMT_FLT, kRate, &codec->ch_layout, codec->sample_fmt,
                            codec->sample_rate, 0, nullptr) < 0 ||
        swr_init(converter) < 0)
      return false;
    SDL_AudioSpec wanted = {};
    wanted.freq = kRate;
    wanted.format = AUDIO_F32SYS;
    wanted.channels = kChannels;
    wanted.samples = kDevicePiece;
    device = SDL_OpenAudioDevice(nullptr, 0, &wanted, nullptr, 0);
    return device != 0;
  }

  void add(const AVFrame* decoded) {
    const auto capacity =
        static_cast<std::size_t>(swr_get_out_samples(converter, decoded != nullptr ? decoded->nb_samples : 0));
    samples.resize((capacity + 1) * kChannels);
    auto* out = reinterpret_cast<std::uint8_t*>(samples.data());
    const int got = swr_convert(converter, &out, static_cast<int>(capacity),
                                decoded != nullptr ? const_cast<const std::uint8_t**>(decoded->extended_data) : nullptr,
                                decoded != nullptr ? decoded->nb_samples : 0);
    if (got <= 0) return;
    double begin = queued_end;
    if (decoded != nullptr && decoded->best_effort_timestamp != AV_NOPTS_VALUE)
      begin = static_cast<double>(decoded->best_effort_timestamp) * av_q2d(codec->pkt_timebase) + offset;
    const auto count = static_cast<std::size_t>(got);
    const double early = std::max(0.0, (skip_until - begin) * kRate);
    const auto dropped = static_cast<std::size_t>(std::min(early, static_cast<double>(count)));
    // Steps of loudness sound alike by the cube, as in mpv.
    const float factor = muted ? 0.0F : volume * volume * volume;
    if (factor < 1)
      for (float& sample : samples) sample *= factor;
    SDL_QueueAudio(device, samples.data() + dropped * kChannels, static_cast<Uint32>((count - dropped) * kFrameBytes));
    queued_end = begin + static_cast<double>(count) / kRate;
  }

  double queued_seconds() const {
    const Uint32 bytes = SDL_GetQueuedAudioSize(device);
    if (bytes != last_queue) {
      last_queue = bytes;
      last_change = std::chrono::steady_clock::now();
    }
    return static_cast<double>(bytes) / static_cast<double>(kFrameBytes) / kRate;
  }
};

Sound::Sound() : state_(std::make_unique<State>()) {}
Sound::~Sound() = default;

std::unique_ptr<Sound> Sound::open(const std::string& path, double offset, int track) {
  std::unique_ptr<Sound> sound(new Sound);
  sound->state_->offset = offset;
  if (!sound->state_->open(path, track)) return nullptr;
  return sound;
}

void Sound::seek(double time) {
  State& s = *state_;
  SDL_ClearQueuedAudio(s.device);
  const double at = time - s.offset;
  avformat_seek_file(s.input, -1, INT64_MIN, static_cast<std::int64_t>(at * AV_TIME_BASE),
                     static_cast<std::int64_t>(at * AV_TIME_BASE), 0);
  avcodec_flush_buffers(s.codec);
  s.skip_until = time;
  s.queued_end = -std::numeric_limits<double>::infinity();
  s.ended = false;
  fill();
}

void Sound::pause(bool paused) {
  state_->paused = paused;
  state_->last_change = std::chrono::steady_clock::now();
  SDL_PauseAudioDevice(state_->device, paused ? 1 : 0);
}

void Sound::mute(bool muted) {
  // What is queued sounds to its end: less than half a second.
  state_->muted = muted;
}
bool Sound::muted() const { return state_->muted; }
void Sound::set_volume(double volume) { state_->volume = static_cast<float>(std::clamp(volume, 0.0, 1.0)); }
double Sound::volume() const { return static_cast<double>(state_->volume); }
const std::vector<std::string>& Sound::names() const { return state_->names; }
int Sound::track() const { return state_->chosen; }

void Sound::fill() {
  State& s = *state_;
  while (!s.ended && s.queued_seconds() < kQueued) {
    const int code = avcodec_receive_frame(s.codec, s.frame);
    if (code == 0) {
      s.add(s.frame);
      continue;
    }
    if (code != AVERROR(EAGAIN)) {
      s.add(nullptr);
      s.ended = true;
      return;
    }
    av_packet_unref(s.packet);
    if (av_read_frame(s.input, s.packet) < 0)
      avcodec_send_packet(s.codec, nullptr);
    else if (s.packet->stream_index == s.track)
      avcodec_send_packet(s.codec, s.packet);  // damaged packets are silence
  }
}

// What left the queue last is a piece that is heard from then on.
double Sound::now() const {
  const State& s = *state_;
  const double taken = s.queued_end - s.queued_seconds();
  if (s.paused) return taken;
  constexpr double kPiece = static_cast<double>(kDevicePiece) / kRate;
  const double since = std::chrono::duration<double>(std::chrono::steady_clock::now() - s.last_change).count();
  return std::max(s.skip_until, taken - kPiece + std::min(since, kPiece));
}

bool Sound::ended() const { return state_->ended && SDL_GetQueuedAudioSize(state_->device) == 0; }

}  // namespace trivelet::play
