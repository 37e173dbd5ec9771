// Reads subtitles with FFmpeg, a few seconds ahead of the picture.

#include "apps/play/subtitles.h"

#include <algorithm>
#include <limits>

#include "apps/play/track_name.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

namespace trivelet::play {

namespace {

constexpr double kSecondsAhead = 5;
constexpr double kLongest = 10;   // seconds: how long before a time its subtitle may have begun
constexpr int kMostPackets = 64;  // read at a time, so that no picture waits
constexpr std::size_t kMostLines = 4096;

/// The text of "ReadOrder,Layer,Style,Name,MarginL,MarginR,MarginV,Effect,Text", without its {commands}.
std::string text_of(const std::string& ass) {
  std::size_t at = 0;
  for (int comma = 0; comma < 8; ++comma) {
    at = ass.find(',', at);
    if (at == std::string::npos) return {};
    ++at;
  }
  std::string text;
  for (; at < ass.size(); ++at) {
    if (ass[at] == '{') {
      const std::size_t end = ass.find('}', at);
      if (end == std::string::npos) break;
      at = end;
    } else if (ass[at] == '\\' && at + 1 < ass.size() && (ass[at + 1] == 'N' || ass[at + 1] == 'n')) {
      text += '\n';
      ++at;
    } else if (ass[at] != '\r') {
      text += ass[at];
    }
  }
  return text;
}

struct Line {
  double begin = 0, end = 0;
  std::string text{};
};

}  // namespace

struct Subtitles::State {
  AVFormatContext* input = nullptr;
  AVCodecContext* codec = nullptr;
  AVPacket* packet = av_packet_alloc();
  double offset = 0;
  std::vector<int> tracks;  // numbers in the file
  std::vector<std::string> names;
  int chosen = -1;
  double read_to = -std::numeric_limits<double>::infinity();
  bool ended = false;
  std::vector<Line> lines;

  ~State() {
    av_packet_free(&packet);
    avcodec_free_context(&codec);
    avformat_close_input(&input);
  }

  bool open(const std::string& path) {
    av_log_set_level(AV_LOG_FATAL);
    if (avformat_open_input(&input, path.c_str(), nullptr, nullptr) < 0) return false;
    for (unsigned i = 0; i < input->nb_streams; ++i) {
      const AVStream& stream = *input->streams[i];
      const AVCodecDescriptor* kind = avcodec_descriptor_get(stream.codecpar->codec_id);
      if (stream.codecpar->codec_type == AVMEDIA_TYPE_SUBTITLE && kind != nullptr &&
          (kind->props & AV_CODEC_PROP_TEXT_SUB) != 0 && avcodec_find_decoder(stream.codecpar->codec_id) != nullptr) {
        tracks.push_back(static_cast<int>(i));
        names.push_back(track_name(stream));
      } else if (stream.codecpar->codec_type != AVMEDIA_TYPE_VIDEO) {
        input->streams[i]->discard = AVDISCARD_ALL;  // pictures tell how far the file was read
      }
    }
    return !tracks.empty();
  }

  void choose(int track) {
    avcodec_free_context(&codec);
    lines.clear();
    chosen = -1;
    if (track < 0) return;
    const AVStream* stream = input->streams[tracks[static_cast<std::size_t>(track)]];
    const AVCodec* decoder = avcodec_find_decoder(stream->codecpar->codec_id);
    codec = avcodec_alloc_context3(decoder);
    if (codec == nullptr || avcodec_parameters_to_context(codec, stream->codecpar) < 0) return;
    codec->pkt_timebase = stream->time_base;
    if (avcodec_open2(codec, decoder, nullptr) == 0) chosen = track;
  }

  void take() {
    const AVStream& stream = *input->streams[packet->stream_index];
    if (packet->pts == AV_NOPTS_VALUE) return;
    const double unit = av_q2d(stream.time_base);
    const double begin = static_cast<double>(packet->pts) * unit + offset;
    read_to = std::max(read_to, begin);
    if (packet->stream_index != tracks[static_cast<std::size_t>(chosen)] || lines.size() >= kMostLines) return;
    AVSubtitle subtitle = {};
    int got = 0;
    if (avcodec_decode_subtitle2(codec, &subtitle, &got, packet) < 0 || got == 0) return;
    Line line{begin, begin + static_cast<double>(packet->duration) * unit};
    for (unsigned i = 0; i < subtitle.num_rects; ++i)
      if (const char* ass = subtitle.rects[i]->ass) line.text += (line.text.empty() ? "" : "\n") + text_of(ass);
    avsubtitle_free(&subtitle);
    if (!line.text.empty()) lines.push_back(std::move(line));
  }
};

Subtitles::Subtitles() : state_(std::make_unique<State>()) {}
Subtitles::~Subtitles() = default;

std::unique_ptr<Subtitles> Subtitles::open(const std::string& path, double offset) {
  std::unique_ptr<Subtitles> subtitles(new Subtitles);
  subtitles->state_->offset = offset;
  if (!subtitles->state_->open(path)) return nullptr;
  return subtitles;
}

const std::vector<std::string>& Subtitles::names() const { return state_->names; }
int Subtitles::chosen() const { return state_->chosen; }

void Subtitles::choose(int track, double time) {
  state_->choose(track);
  seek(time);
}

void Subtitles::seek(double time) {
  State& s = *state_;
  if (s.chosen < 0) return;
  const auto at = static_cast<std::int64_t>((time - kLongest - s.offset) * AV_TIME_BASE);
  avformat_seek_file(s.input, -1, INT64_MIN, at, at, 0);
  s.lines.clear();
  s.read_to = -std::numeric_limits<double>::infinity();
  s.ended = false;
  fill(time);
}

void Subtitles::fill(double time) {
  State& s = *state_;
  if (s.chosen < 0) return;
  std::erase_if(s.lines, [&](const Line& line) { return line.end < time - kLongest; });
  for (int i = 0; i < kMostPackets && !s.ended && s.read_to < time + kSecondsAhead; ++i) {
    av_packet_unref(s.packet);
    if (av_read_frame(s.input, s.packet) < 0)
      s.ended = true;
    else
      s.take();
  }
}

std::string Subtitles::text_at(double time) const {
  std::string text;
  for (const Line& line : state_->lines)
    if (line.begin <= time && time < line.end) text += (text.empty() ? "" : "\n") + line.text;
  return text;
}

}  // namespace trivelet::play
