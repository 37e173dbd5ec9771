// The tracks of an output for those of the file of side streams.

#include "io/video/ffmpeg/side_streams/ffmpeg_side_target.h"

#include <cstring>
#include <new>
#include <string_view>

#include "io/video/ffmpeg/ffmpeg_fields.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_tracks.h"

namespace trivelet::io {

namespace {

/// The codec of text subtitles in a container; NONE if there are several.
AVCodecID text_subtitles_of(std::string_view muxer) {
  if (muxer == "matroska") return AV_CODEC_ID_SUBRIP;
  if (muxer == "mp4" || muxer == "mov") return AV_CODEC_ID_MOV_TEXT;
  return AV_CODEC_ID_NONE;
}

/// AAC without the configuration that such files have once for all packets; what it is coded with nobody knows.
bool lacks_configuration(const AVFormatContext& input, const AVCodecParameters& codec) {
  const std::string_view demuxer = input.iformat->name;
  return codec.codec_id == AV_CODEC_ID_AAC && codec.extradata_size == 0 &&
         (demuxer == "flv" || demuxer.starts_with("mov") || demuxer.starts_with("matroska"));
}

}  // namespace

void SideStreamCopy::add_track(AVStream& from) {
  const AVCodecParameters& codec = *from.codecpar;
  const std::string_view muxer = output_->oformat->name;
  const bool attachment = codec.codec_type == AVMEDIA_TYPE_ATTACHMENT;
  if (from.disposition & AV_DISPOSITION_ATTACHED_PIC) return add_cover(from);
  if (const std::string script = script_of(from); !script.empty()) {
    remarks_.push_back("data of a script (" + script + ", track " + std::to_string(from.index) +
                       "), which are no text");
    return;
  }
  if (codec.codec_type == AVMEDIA_TYPE_AUDIO && !options_.sound_codec.empty()) return add_recoded(from);
  const bool held = attachment ? muxer == "matroska" : holds_codec(*output_->oformat, codec);
  if (!held && add_converted(from)) return;
  const std::string refusal = !held || attachment                   ? ""
                              : lacks_configuration(*input_, codec) ? "its configuration is missing"
                                                                    : refusal_of(*output_->oformat, codec);
  if (!held || codec.codec_type == AVMEDIA_TYPE_DATA || !refusal.empty()) {
    const bool known = codec.codec_id != AV_CODEC_ID_NONE || attachment;
    remarks_.push_back(std::string(kind_of(from)) + " (" +
                       (attachment ? tag_of(from.metadata, "filename") + ", "
                        : known    ? std::string(avcodec_get_name(codec.codec_id)) + ", "
                                   : "") +
                       "track " + std::to_string(from.index) + "): " +
                       (known ? std::string(muxer) + " cannot hold it" : "this FFmpeg does not know how it is coded") +
                       (refusal.empty() ? "" : " (" + refusal + ")"));
    return;
  }
  auto target = std::make_unique<Target>();
  target->from = &from;
  target->to = avformat_new_stream(output_, nullptr);
  if (target->to == nullptr || avcodec_parameters_copy(target->to->codecpar, &codec) < 0) throw std::bad_alloc();
  target->to->codecpar->codec_tag = 0;
  target->to->time_base = from.time_base;
  target->to->avg_frame_rate = from.avg_frame_rate;
  target->to->sample_aspect_ratio = from.sample_aspect_ratio;
  target->to->disposition = from.disposition;
  av_dict_copy(&target->to->metadata, from.metadata, 0);
  if (attachment) return;
  from.discard = AVDISCARD_DEFAULT;
  targets_[from.index] = std::move(target);
}

// Matroska has covers as attachments, MP4 as a track of one packet.
void SideStreamCopy::add_cover(AVStream& from) {
  const AVPacket& picture = from.attached_pic;
  AVStream* to = nullptr;
  if (std::string_view(output_->oformat->name) == "matroska" && picture.size > 0 &&
      (from.codecpar->codec_id == AV_CODEC_ID_MJPEG || from.codecpar->codec_id == AV_CODEC_ID_PNG)) {
    to = avformat_new_stream(output_, nullptr);
    if (to == nullptr) throw std::bad_alloc();
    const bool png = from.codecpar->codec_id == AV_CODEC_ID_PNG;
    to->codecpar->codec_type = AVMEDIA_TYPE_ATTACHMENT;
    to->codecpar->codec_id = from.codecpar->codec_id;
    const auto size = static_cast<std::size_t>(picture.size);
    to->codecpar->extradata = static_cast<std::uint8_t*>(av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE));
    if (to->codecpar->extradata == nullptr) throw std::bad_alloc();
    std::memcpy(to->codecpar->extradata, picture.data, size);
    to->codecpar->extradata_size = picture.size;
    av_dict_copy(&to->metadata, from.metadata, 0);  // name, title and so on of a cover of Matroska's
    av_dict_set(&to->metadata, "filename", png ? "cover.png" : "cover.jpg", AV_DICT_DONT_OVERWRITE);
    av_dict_set(&to->metadata, "mimetype", png ? "image/png" : "image/jpeg", AV_DICT_DONT_OVERWRITE);
  } else {
    remarks_.push_back("the cover (track " + std::to_string(from.index) + "): " + output_->oformat->name +
                       " files get none here");
  }
}

void SideStreamCopy::add_recoded(AVStream& from) {
  const AVCodecID id = options_.sound_codec == "opus" ? AV_CODEC_ID_OPUS : AV_CODEC_ID_FLAC;
  require(avformat_query_codec(output_->oformat, id, FF_COMPLIANCE_EXPERIMENTAL) == 1, ErrorKind::kUnsupported,
          std::string(output_->oformat->name) + " cannot hold sound coded by " + options_.sound_codec);
  auto target = std::make_unique<Target>();
  target->from = &from;
  target->sound = std::make_unique<SoundCoder>(from, options_.sound_codec,
                                               (output_->oformat->flags & AVFMT_GLOBALHEADER) != 0, source_->name());
  const AVCodecContext& encoder = target->sound->encoder();
  target->to = avformat_new_stream(output_, nullptr);
  if (target->to == nullptr || avcodec_parameters_from_context(target->to->codecpar, &encoder) < 0)
    throw std::bad_alloc();
  target->to->time_base = encoder.time_base;
  target->to->disposition = from.disposition;
  av_dict_copy(&target->to->metadata, from.metadata, 0);
  av_dict_set(&target->to->metadata, "encoder", nullptr, 0);
  from.discard = AVDISCARD_DEFAULT;
  targets_[from.index] = std::move(target);
}

/// What the first packet of a track of FLV's is called, unless it is text.
std::string SideStreamCopy::script_of(const AVStream& track) const {
  if (std::string_view(input_->iformat->name) != "flv" || track.codecpar->codec_id != AV_CODEC_ID_TEXT) return {};
  SideStreamOptions alone = options_;
  alone.parts.clear();
  const SideStreamCopy again(alone);
  do av_packet_unref(again.packet_.get());
  while (av_read_frame(again.input_.get(), again.packet_.get()) >= 0 && again.packet_->stream_index != track.index);
  again.io_->rethrow();
  return name_of_script(*input_, *again.packet_);
}

bool SideStreamCopy::add_converted(AVStream& from) {
  const AVCodecID form = text_subtitles_of(output_->oformat->name);
  const AVCodecDescriptor* described = avcodec_descriptor_get(from.codecpar->codec_id);
  if (from.codecpar->codec_type != AVMEDIA_TYPE_SUBTITLE || form == AV_CODEC_ID_NONE || described == nullptr ||
      (described->props & AV_CODEC_PROP_TEXT_SUB) == 0)
    return false;
  const AVCodec* decoder = avcodec_find_decoder(from.codecpar->codec_id);
  const AVCodec* encoder = avcodec_find_encoder(form);
  if (decoder == nullptr || encoder == nullptr) return false;
  auto target = std::make_unique<Target>();
  target->from = &from;
  target->decoder.reset(avcodec_alloc_context3(decoder));
  target->encoder.reset(avcodec_alloc_context3(encoder));
  if (!target->decoder || !target->encoder) throw std::bad_alloc();
  AVCodecContext& in = *target->decoder;
  AVCodecContext& out = *target->encoder;
  in.opaque = &log_;
  out.opaque = &log_;
  in.pkt_timebase = from.time_base;
  if (avcodec_parameters_to_context(&in, from.codecpar) < 0 || avcodec_open2(&in, decoder, nullptr) < 0) return false;
  if (in.subtitle_header != nullptr) {
    out.subtitle_header = static_cast<std::uint8_t*>(av_mallocz(static_cast<std::size_t>(in.subtitle_header_size) + 1));
    if (out.subtitle_header == nullptr) throw std::bad_alloc();
    std::memcpy(out.subtitle_header, in.subtitle_header, static_cast<std::size_t>(in.subtitle_header_size));
    out.subtitle_header_size = in.subtitle_header_size;
  }
  out.time_base = {1, 1000};
  if (avcodec_open2(&out, encoder, nullptr) < 0) return false;
  target->to = avformat_new_stream(output_, nullptr);
  if (target->to == nullptr || avcodec_parameters_from_context(target->to->codecpar, &out) < 0) throw std::bad_alloc();
  target->to->time_base = {1, 1000};
  target->to->disposition = from.disposition;
  av_dict_copy(&target->to->metadata, from.metadata, 0);
  from.discard = AVDISCARD_DEFAULT;
  targets_[from.index] = std::move(target);
  return true;
}

}  // namespace trivelet::io
