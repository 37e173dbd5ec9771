// Copies the packets of side streams, with their times on the clock of the output.

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/base/frame_times.h"
#include "codec/base/limits.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_side_target.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_tracks.h"

namespace trivelet::io {

namespace {

/// Microseconds of a packet of sound and its neighbours that an edit list of MP4 leaves out, if they are more than the
/// packet itself: so many encoders put before the sound.
std::int64_t left_out_by_edits(const AVFormatContext& input, const AVStream& from, const AVPacket& packet) {
  if (std::string_view(input.iformat->name).substr(0, 3) != "mov" || from.codecpar->sample_rate <= 0) return 0;
  std::size_t size = 0;
  const std::uint8_t* const data = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, &size);
  if (data == nullptr || size < 4) return 0;
  const std::int64_t us =
      av_rescale_q(load_little_endian<std::uint32_t>(data), {1, from.codecpar->sample_rate}, kMicroseconds);
  return us > av_rescale_q(packet.duration, from.time_base, kMicroseconds) ? us : 0;
}

/// The bytes of a packet of sound that are in all containers: AAC of a transport stream has a header of its own.
void add_sound(Md5& digest, const AVPacket& packet, AVCodecID codec) {
  const std::uint8_t* data = packet.data;
  int size = packet.size;
  if (codec == AV_CODEC_ID_AAC && size > 7 && data[0] == 0xff && (data[1] & 0xf6) == 0xf0) {
    const int header = (data[1] & 1) != 0 ? 7 : 9;
    data += header;
    size -= header;
  }
  if (size > 0) digest.update(data, static_cast<std::size_t>(size));
}

}  // namespace

void SideStreamCopy::write_until(std::int64_t us) {
  while (!ended_ && !targets_.empty()) {
    if (!pending_) {
      av_packet_unref(packet_.get());
      const int code = av_read_frame(input_.get(), packet_.get());
      io_->rethrow();
      if (code == AVERROR_EOF) {
        if (next_part()) continue;
        ended_ = true;
        return;
      }
      if (code < 0)
        av_fail(code, source_->name() + ": its sound or subtitles are damaged", ErrorKind::kBadStream, log_.take());
      pending_ = true;
    }
    const AVPacket& p = *packet_;
    const std::int64_t time = p.dts != AV_NOPTS_VALUE ? p.dts : p.pts;
    const AVRational base = input_->streams[p.stream_index]->time_base;
    const std::int64_t at =
        time == AV_NOPTS_VALUE ? INT64_MIN : add_times(av_rescale_q(time, base, kMicroseconds), offset_us_);
    if (at >= us && at < end_us_) return;
    pending_ = false;
    Target* const target = target_of(p);
    const std::int64_t duration = av_rescale_q(p.duration, base, kMicroseconds);
    const bool passed =
        at != INT64_MIN && (add_times(at, duration) <= begin_us_ || (target && target->is_covered(at, duration)));
    if (target != nullptr) target->is_read = true;
    if (target == nullptr || passed || at >= end_us_) continue;
    if (at != INT64_MIN) {
      target->begin_us = std::max(target->begin_us, at);
      target->end_us = std::max(target->end_us, add_times(at, duration));
    }
    write(*target, *packet_);
  }
}

void SideStreamCopy::finish(std::int64_t us) {
  if (options_.before_last_frame) end_us_ = us;
  write_until(options_.before_last_frame ? us : INT64_MAX);
  for (const auto& [index, target] : targets_)
    if (target->decode_times) target->decode_times->finish([&t = *target, this](AVPacket& p) { send(t, p); });
  for (const auto& [index, target] : targets_)
    if (target->sound) target->sound->finish([&t = *target, this](AVPacket& coded) { send_recoded(t, coded); });
  for (const auto& [index, target] : targets_)
    if (target->heard_again_us > 0)
      remarks_.push_back("sound (track " + std::to_string(index) + "): " +
                         count_of(static_cast<std::uint64_t>((target->heard_again_us + 500) / 1000), "millisecond") +
                         " that an edit list leaves out are heard");
  for (const auto& [index, target] : targets_)
    if (!target->is_written && begin_us_ == INT64_MIN && !target->encoder && target->from)
      remarks_.push_back(
          std::string(kind_of(*target->from)) + " (track " + std::to_string(index) +
          (target->is_read ? "): nothing of it is in the time of the pictures" : "): FFmpeg finds nothing in it"));
}

void SideStreamCopy::write(Target& target, AVPacket& packet) {
  if (target.encoder) return write_converted(target, packet);
  const AVRational base = target.from->time_base;
  const std::int64_t offset = av_rescale_q(offset_us_, kMicroseconds, base);
  if (packet.pts != AV_NOPTS_VALUE) packet.pts = add_times(packet.pts, offset);
  if (packet.dts != AV_NOPTS_VALUE) packet.dts = add_times(packet.dts, offset);
  if (target.from->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && !target.sound &&
      (output_->oformat->flags & AVFMT_TS_NEGATIVE) == 0)
    target.heard_again_us = add_times(target.heard_again_us, left_out_by_edits(*input_, *target.from, packet));
  if (target.sound) return target.sound->add(&packet, [&](AVPacket& coded) { send_recoded(target, coded); });
  av_packet_rescale_ts(&packet, base, target.to->time_base);
  const AVCodecParameters& codec = *target.from->codecpar;
  if (codec.codec_type == AVMEDIA_TYPE_VIDEO && packet.dts == AV_NOPTS_VALUE && !target.decode_times)
    target.decode_times.emplace(codec.video_delay);
  if (target.decode_times && packet.pts != AV_NOPTS_VALUE)
    return target.decode_times->add(packet, [&](AVPacket& p) { send(target, p); });
  send(target, packet);
}

void SideStreamCopy::send_recoded(Target& target, AVPacket& packet) {
  av_packet_rescale_ts(&packet, target.sound->encoder().time_base, target.to->time_base);
  send(target, packet);
}

void SideStreamCopy::write_converted(Target& target, AVPacket& packet) {
  if (const std::string script = name_of_script(*input_, packet); !script.empty()) {
    if (std::exchange(target.has_script, true)) return;
    remarks_.push_back("data of a script (" + script + ") among the text of track " +
                       std::to_string(packet.stream_index));
    return;
  }
  AVSubtitle subtitle = {};
  int there = 0;
  if (avcodec_decode_subtitle2(target.decoder.get(), &subtitle, &there, &packet) < 0 || there == 0) {
    log_.take();
    return;
  }
  const std::unique_ptr<AVSubtitle, void (*)(AVSubtitle*)> owner(&subtitle, avsubtitle_free);
  if (subtitle.num_rects == 0) return;
  std::array<std::uint8_t, 1 << 16> text;
  const int size = avcodec_encode_subtitle(target.encoder.get(), text.data(), static_cast<int>(text.size()), &subtitle);
  if (size <= 0) {
    log_.take();
    return;
  }
  const PacketPtr out = make_packet();
  if (av_new_packet(out.get(), size) < 0) throw std::bad_alloc();
  std::memcpy(out->data, text.data(), static_cast<std::size_t>(size));
  const std::int64_t offset = av_rescale_q(offset_us_, kMicroseconds, target.from->time_base);
  out->pts = add_times(packet.pts, offset);
  out->dts = out->pts;
  out->duration = packet.duration;
  av_packet_rescale_ts(out.get(), target.from->time_base, target.to->time_base);
  send(target, *out);
}

void SideStreamCopy::send(Target& target, AVPacket& packet) {
  packet.stream_index = target.to->index;
  packet.pos = -1;
  if (!target.delay) target.delay = delay_to_add(*output_, *target.to);
  if (packet.pts != AV_NOPTS_VALUE) packet.pts = add_times(packet.pts, *target.delay);
  if (packet.dts != AV_NOPTS_VALUE) packet.dts = add_times(packet.dts, *target.delay);
  if (packet.dts == AV_NOPTS_VALUE) packet.dts = packet.pts;
  // Rounded to a coarser clock two times may fall together.
  if (target.last_dts != AV_NOPTS_VALUE && packet.dts <= target.last_dts &&
      !(output_->oformat->flags & AVFMT_TS_NONSTRICT))
    packet.dts = add_times(target.last_dts, 1);
  if (packet.pts != AV_NOPTS_VALUE && packet.pts < packet.dts) packet.pts = packet.dts;
  target.last_dts = packet.dts;
  target.is_written = true;
  if (target.to->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && target.to->codecpar->codec_id != AV_CODEC_ID_WAVPACK) {
    target.index = target.to->index;
    target.codec = target.to->codecpar->codec_id;
    add_sound(target.digest, packet, target.codec);
  }
  const int code = av_interleaved_write_frame(output_, &packet);
  if (code < 0)
    av_fail(code,
            std::string("cannot write ") + (target.from ? kind_of(*target.from) : "sound") + " of " + source_->name() +
                " into " + output_->oformat->name,
            ErrorKind::kUnsupported);
}

int SideStreamCopy::verify_sound(const std::string& path) const {
  std::map<int, const Target*> wanted;
  for (const auto& [first, target] : targets_)
    if (target->index >= 0) wanted[target->index] = target.get();
  if (wanted.empty()) return 0;
  SideStreamOptions again;
  again.from = path;
  const SideStreamCopy file(again);
  std::map<int, Md5> found;
  for (unsigned i = 0; i < file.input_->nb_streams; ++i)
    if (!wanted.contains(static_cast<int>(i))) file.input_->streams[i]->discard = AVDISCARD_ALL;
  for (;;) {
    av_packet_unref(file.packet_.get());
    const int code = av_read_frame(file.input_.get(), file.packet_.get());
    file.io_->rethrow();
    if (code < 0) break;  // what is missing at its end is no match
    const auto target = wanted.find(file.packet_->stream_index);
    if (target != wanted.end()) add_sound(found[target->first], *file.packet_, target->second->codec);
  }
  for (const auto& [index, target] : wanted) {
    Md5 written = target->digest;
    require(written.hex() == found[index].hex(), ErrorKind::kMismatch,
            "the sound of track " + std::to_string(index) + " differs from what was written");
  }
  return static_cast<int>(wanted.size());
}

}  // namespace trivelet::io
