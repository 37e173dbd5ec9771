// Encodes sound again, as Opus or FLAC.

#include "io/video/ffmpeg/side_streams/ffmpeg_sound.h"

#include "codec/base/limits.h"
#include "io/video/ffmpeg/ffmpeg_bytes.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

namespace trivelet::io {

namespace {

/// Bytes that libavformat reads again.
class MemoryIo final : public CustomIo {
 public:
  MemoryIo(const std::uint8_t* data, std::size_t size)
      : CustomIo(this, read, nullptr, nullptr), data_(data), left_(size) {}

 private:
  static int read(void* opaque, std::uint8_t* data, int size) {
    auto& self = *static_cast<MemoryIo*>(opaque);
    const std::size_t n = std::min(self.left_, static_cast<std::size_t>(size));
    std::copy_n(self.data_, n, data);
    self.data_ += n;
    self.left_ -= n;
    return n == 0 ? AVERROR_EOF : static_cast<int>(n);
  }

  const std::uint8_t* data_;
  std::size_t left_;
};

struct FreeBytes {
  void operator()(std::uint8_t* p) const { av_free(p); }
};
using Bytes = std::unique_ptr<std::uint8_t, FreeBytes>;

constexpr std::int64_t kTestTime = 1000;  // milliseconds

/// A file of one packet of Opus at kTestTime, with 10 ms of codec delay. Null if it cannot be written.
Bytes write_test_file(int& size) {
  constexpr std::uint8_t kHead[] = {'O', 'p', 'u', 's', 'H', 'e', 'a', 'd', 1, 1, 0xE0, 1, 0x80, 0xBB, 0, 0, 0, 0, 0};
  AVFormatContext* context = nullptr;
  if (avformat_alloc_output_context2(&context, nullptr, "matroska", nullptr) < 0) return nullptr;
  const FormatPtr format(context);
  AVStream* const track = avformat_new_stream(context, nullptr);
  const PacketPtr packet = make_packet();
  if (track == nullptr || av_new_packet(packet.get(), 1) < 0) throw std::bad_alloc();
  AVCodecParameters& codec = *track->codecpar;
  codec.codec_type = AVMEDIA_TYPE_AUDIO;
  codec.codec_id = AV_CODEC_ID_OPUS;
  codec.sample_rate = 48000;
  codec.initial_padding = 480;
  av_channel_layout_default(&codec.ch_layout, 1);
  codec.extradata = static_cast<std::uint8_t*>(av_mallocz(sizeof kHead + AV_INPUT_BUFFER_PADDING_SIZE));
  if (codec.extradata == nullptr || avio_open_dyn_buf(&context->pb) < 0) throw std::bad_alloc();
  std::copy(std::begin(kHead), std::end(kHead), codec.extradata);
  codec.extradata_size = sizeof kHead;
  track->time_base = {1, 1000};
  packet->data[0] = 0;
  packet->pts = packet->dts = kTestTime;
  packet->duration = 20;
  const bool written = avformat_write_header(context, nullptr) >= 0 && av_write_frame(context, packet.get()) >= 0 &&
                       av_write_trailer(context) >= 0;
  std::uint8_t* data = nullptr;
  size = avio_close_dyn_buf(context->pb, &data);
  context->pb = nullptr;
  return Bytes(written ? data : (av_free(data), nullptr));
}

/// Whether FFmpeg's reader of Matroska gives the time that its writer got.
bool matroska_keeps_times() {
  int size = 0;
  const Bytes file = write_test_file(size);
  if (!file) return true;
  MemoryIo io(file.get(), static_cast<std::size_t>(size));
  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) throw std::bad_alloc();
  context->pb = io.context();
  if (avformat_open_input(&context, "", av_find_input_format("matroska"), nullptr) < 0) return true;
  const InputPtr input(context);
  const PacketPtr packet = make_packet();
  return av_read_frame(context, packet.get()) < 0 || packet->pts == kTestTime;
}

/// One to eight channels of Opus. What is placed otherwise, as 5.1 with channels at the side, is mixed into these.
constexpr std::uint64_t kOpusLayouts[] = {AV_CH_LAYOUT_MONO,    AV_CH_LAYOUT_STEREO,       AV_CH_LAYOUT_SURROUND,
                                          AV_CH_LAYOUT_QUAD,    AV_CH_LAYOUT_5POINT0_BACK, AV_CH_LAYOUT_5POINT1_BACK,
                                          AV_CH_LAYOUT_6POINT1, AV_CH_LAYOUT_7POINT1};

/// Opus supports few rates, and uses 48000 inside.
int rate_for(const AVCodec& codec, int rate) {
  if (codec.supported_samplerates == nullptr) return rate;
  for (const int* r = codec.supported_samplerates; *r != 0; ++r)
    if (*r == rate) return rate;
  return codec.supported_samplerates[0];
}

/// The format of `codec` that keeps the most of `from`: one with as many bits, otherwise the widest.
AVSampleFormat format_for(const AVCodec& codec, AVSampleFormat from, int raw_bits) {
  const int bits = raw_bits > 0                                              ? raw_bits
                   : from == AV_SAMPLE_FMT_FLT || from == AV_SAMPLE_FMT_FLTP ? 24
                                                                             : 8 * av_get_bytes_per_sample(from);
  AVSampleFormat best = AV_SAMPLE_FMT_NONE;
  for (const AVSampleFormat* f = codec.sample_fmts; f != nullptr && *f != AV_SAMPLE_FMT_NONE; ++f) {
    const auto width = [](AVSampleFormat s) { return 8 * av_get_bytes_per_sample(s); };
    if (best == AV_SAMPLE_FMT_NONE ||
        (width(best) < bits ? width(*f) > width(best) : width(*f) >= bits && width(*f) < width(best)))
      best = *f;
  }
  return best;
}

}  // namespace

std::int64_t delay_to_add(const AVFormatContext& output, const AVStream& track) {
  const AVCodecParameters& codec = *track.codecpar;
  const std::string_view muxer = output.oformat->name;
  if ((muxer != "matroska" && muxer != "webm") || codec.codec_id != AV_CODEC_ID_OPUS || codec.initial_padding <= 0)
    return 0;
  static const bool keeps = matroska_keeps_times();
  return keeps ? 0 : av_rescale_q(codec.initial_padding, {1, 48000}, track.time_base);
}

SoundCoder::SoundCoder(const AVStream& from, const std::string& codec, bool global_header, std::string name)
    : name_(std::move(name)), base_(from.time_base) {
  const AVCodec* decoder = avcodec_find_decoder(from.codecpar->codec_id);
  require(decoder != nullptr, ErrorKind::kUnsupported,
          name_ + ": this FFmpeg has no decoder for " + avcodec_get_name(from.codecpar->codec_id));
  decoder_.reset(avcodec_alloc_context3(decoder));
  if (!decoder_) throw std::bad_alloc();
  decoder_->opaque = &log_;
  decoder_->pkt_timebase = from.time_base;
  int code = avcodec_parameters_to_context(decoder_.get(), from.codecpar);
  if (code >= 0) code = avcodec_open2(decoder_.get(), decoder, nullptr);
  if (code < 0) av_fail(code, name_ + ": its sound cannot be decoded", ErrorKind::kUnsupported, log_.take());
  require(decoder_->sample_rate > 0 && decoder_->ch_layout.nb_channels > 0, ErrorKind::kBadStream,
          name_ + ": the sound has no rate or no channels");
  open_encoder(codec, global_header);
  frame_ = make_frame();
  packet_ = make_packet();
}

void SoundCoder::open_encoder(const std::string& codec, bool global_header) {
  const AVCodec* encoder =
      codec == "opus" ? avcodec_find_encoder_by_name("libopus") : avcodec_find_encoder(AV_CODEC_ID_FLAC);
  require(encoder != nullptr, ErrorKind::kUnsupported, "this FFmpeg has no encoder for " + codec);
  encoder_.reset(avcodec_alloc_context3(encoder));
  if (!encoder_) throw std::bad_alloc();
  AVCodecContext& c = *encoder_;
  c.opaque = &log_;
  c.sample_rate = rate_for(*encoder, decoder_->sample_rate);
  c.sample_fmt = format_for(*encoder, decoder_->sample_fmt, decoder_->bits_per_raw_sample);
  if (c.sample_fmt == AV_SAMPLE_FMT_S32) c.bits_per_raw_sample = 24;
  c.time_base = {1, c.sample_rate};
  // Channels without places get the usual ones; Opus knows one way of placing so many (RFC 7845, 5.1.1.2).
  const int channels = decoder_->ch_layout.nb_channels;
  if (codec == "opus" && channels <= static_cast<int>(std::size(kOpusLayouts)))
    av_channel_layout_from_mask(&c.ch_layout, kOpusLayouts[channels - 1]);
  else if (decoder_->ch_layout.order == AV_CHANNEL_ORDER_UNSPEC)
    av_channel_layout_default(&c.ch_layout, decoder_->ch_layout.nb_channels);
  else if (av_channel_layout_copy(&c.ch_layout, &decoder_->ch_layout) < 0)
    throw std::bad_alloc();
  if (codec == "opus") c.bit_rate = 64000 * std::int64_t{channels};
  if (global_header) c.flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  const int code = avcodec_open2(&c, encoder, nullptr);
  if (code < 0)
    av_fail(code,
            name_ + ": " + codec + " does not take " + count_of(channels, "channel") + " at " +
                std::to_string(decoder_->sample_rate) + " Hz",
            ErrorKind::kUnsupported, log_.take());
  SwrContext* resampler = nullptr;
  AVChannelLayout in = {};
  if (decoder_->ch_layout.order == AV_CHANNEL_ORDER_UNSPEC)
    av_channel_layout_default(&in, decoder_->ch_layout.nb_channels);
  else
    av_channel_layout_copy(&in, &decoder_->ch_layout);
  const int made = swr_alloc_set_opts2(&resampler, &c.ch_layout, c.sample_fmt, c.sample_rate, &in, decoder_->sample_fmt,
                                       decoder_->sample_rate, 0, nullptr);
  av_channel_layout_uninit(&in);
  resampler_.reset(resampler);
  fifo_.reset(av_audio_fifo_alloc(c.sample_fmt, c.ch_layout.nb_channels, 1));
  if (made < 0 || !fifo_) throw std::bad_alloc();
  if (swr_init(resampler) < 0) fail(ErrorKind::kUnsupported, name_ + ": its sound cannot be resampled for " + codec);
}

void SoundCoder::add(const AVPacket* packet, const Send& send) {
  if (avcodec_send_packet(decoder_.get(), packet) < 0) log_.take();
  while (avcodec_receive_frame(decoder_.get(), frame_.get()) == 0) {
    const bool same = frame_->sample_rate == decoder_->sample_rate &&
                      frame_->ch_layout.nb_channels == decoder_->ch_layout.nb_channels &&
                      frame_->format == decoder_->sample_fmt;
    require(same, ErrorKind::kUnsupported, name_ + ": the format of the sound changes; take it as it is");
    if (frame_->pts != AV_NOPTS_VALUE) {
      const std::int64_t at = av_rescale_q(frame_->pts, base_, encoder_->time_base);
      if (next_pts_ == AV_NOPTS_VALUE) next_pts_ = at;
      // Where nothing sounds, nothing is stored: samples between make times go on.
      const std::int64_t held =
          av_audio_fifo_size(fifo_.get()) + swr_get_delay(resampler_.get(), encoder_->sample_rate);
      const std::int64_t gap = at - next_pts_ - held;
      constexpr int kMostSeconds = 600;
      if (gap > encoder_->sample_rate / 20 && gap < static_cast<std::int64_t>(kMostSeconds) * encoder_->sample_rate)
        if (swr_inject_silence(resampler_.get(),
                               static_cast<int>(av_rescale(gap, decoder_->sample_rate, encoder_->sample_rate))) < 0)
          throw std::bad_alloc();
    } else if (next_pts_ == AV_NOPTS_VALUE) {
      next_pts_ = 0;
    }
    resample(frame_.get());
    encode(false, send);
  }
}

void SoundCoder::finish(const Send& send) {
  add(nullptr, send);
  if (next_pts_ == AV_NOPTS_VALUE) return;
  resample(nullptr);
  encode(true, send);
  avcodec_send_frame(encoder_.get(), nullptr);
  receive(send);
}

void SoundCoder::resample(const AVFrame* frame) {
  const int capacity = swr_get_out_samples(resampler_.get(), frame != nullptr ? frame->nb_samples : 0);
  if (capacity <= 0) return;
  const FramePtr out = make_frame();
  out->format = encoder_->sample_fmt;
  out->nb_samples = capacity;
  out->sample_rate = encoder_->sample_rate;
  if (av_channel_layout_copy(&out->ch_layout, &encoder_->ch_layout) < 0 || av_frame_get_buffer(out.get(), 0) < 0)
    throw std::bad_alloc();
  const int got = swr_convert(resampler_.get(), out->extended_data, capacity,
                              frame != nullptr ? const_cast<const std::uint8_t**>(frame->extended_data) : nullptr,
                              frame != nullptr ? frame->nb_samples : 0);
  if (got < 0) fail(ErrorKind::kBadStream, name_ + ": its sound cannot be resampled");
  if (av_audio_fifo_write(fifo_.get(), reinterpret_cast<void**>(out->extended_data), got) < got) throw std::bad_alloc();
}

void SoundCoder::encode(bool all, const Send& send) {
  const int piece = encoder_->frame_size > 0 ? encoder_->frame_size : 4096;
  for (int there = av_audio_fifo_size(fifo_.get()); there >= piece || (all && there > 0);
       there = av_audio_fifo_size(fifo_.get())) {
    const FramePtr out = make_frame();
    out->format = encoder_->sample_fmt;
    out->nb_samples = std::min(there, piece);
    out->sample_rate = encoder_->sample_rate;
    out->pts = next_pts_;
    if (av_channel_layout_copy(&out->ch_layout, &encoder_->ch_layout) < 0 || av_frame_get_buffer(out.get(), 0) < 0)
      throw std::bad_alloc();
    av_audio_fifo_read(fifo_.get(), reinterpret_cast<void**>(out->extended_data), out->nb_samples);
    next_pts_ += out->nb_samples;
    const int code = avcodec_send_frame(encoder_.get(), out.get());
    if (code < 0) av_fail(code, name_ + ": its sound does not encode", ErrorKind::kUnsupported, log_.take());
    receive(send);
  }
}

void SoundCoder::receive(const Send& send) {
  while (avcodec_receive_packet(encoder_.get(), packet_.get()) == 0) send(*packet_);
}

}  // namespace trivelet::io
