// Chapters from one container to another, with the times of the pictures.

#include "io/video/ffmpeg/side_streams/ffmpeg_chapters.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "codec/base/frame_times.h"
#include "io/video/ffmpeg/ffmpeg_fields.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_side_target.h"

namespace trivelet::io {

bool holds_chapters(std::string_view muxer) {
  return muxer == "matroska" || muxer == "webm" || muxer == "mp4" || muxer == "mov" || muxer == "nut";
}

AVChapter* new_chapter(AVFormatContext& output) {
  void* grown = av_realloc_array(output.chapters, output.nb_chapters + std::size_t{1}, sizeof *output.chapters);
  if (grown == nullptr) throw std::bad_alloc();
  output.chapters = static_cast<AVChapter**>(grown);
  auto* chapter = static_cast<AVChapter*>(av_mallocz(sizeof(AVChapter)));
  if (chapter == nullptr) throw std::bad_alloc();
  output.chapters[output.nb_chapters++] = chapter;
  return chapter;
}

/// By how much a muxer that writes no times below 0 shifts all tracks, since one of them begins before.
std::int64_t SideStreamCopy::shift_of_muxer() const {
  if ((output_->oformat->flags & AVFMT_TS_NEGATIVE) != 0 || options_.after_first_frame) return 0;
  std::int64_t first = 0;
  const auto look_at = [&](std::int64_t time, AVRational unit, std::int64_t delay_us) {
    if (time == AV_NOPTS_VALUE) return;  // INT64_MIN
    first = std::min(first, add_times(av_rescale_q(time, unit, kMicroseconds), add_times(delay_us, offset_us_)));
  };
  if (video_ >= 0) look_at(input_->streams[video_]->start_time, input_->streams[video_]->time_base, 0);
  for (const auto& [index, target] : targets_) {
    AVStream* const from = input_->streams[index];
    const std::int64_t delay = av_rescale_q(delay_to_add(*output_, *target->to), target->to->time_base, kMicroseconds);
    look_at(from->start_time, from->time_base, delay);
    // Of sound in MP4 it is the time of what is heard; packets may begin before.
    const AVIndexEntry* const packet = avformat_index_get_entry(from, 0);
    if (packet != nullptr && from->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && !target->sound)
      look_at(packet->timestamp, from->time_base, delay);
  }
  return first == INT64_MIN ? 0 : -first;
}

void SideStreamCopy::add_chapters_of(const SideStreamPart& part, const AVFormatContext& input) {
  const std::int64_t shift = shift_of_muxer();
  for (unsigned i = 0; i < input.nb_chapters; ++i) {
    const AVChapter& from = *input.chapters[i];
    if (from.start == AV_NOPTS_VALUE || from.time_base.num <= 0 || from.time_base.den <= 0) continue;
    const std::int64_t offset = add_times(part.clock_offset_us, part.shift_us);
    const std::int64_t begin = add_times(av_rescale_q(from.start, from.time_base, kMicroseconds), offset);
    const std::int64_t end = add_times(av_rescale_q(from.end, from.time_base, kMicroseconds), offset);
    // Chapters across the cut between two parts of a film are in both, or all are; files round their times.
    constexpr std::int64_t kRounding = 1000;
    const std::int64_t at = std::max<std::int64_t>(0, add_times(begin, shift));
    const auto is_same = [&](const AVChapter* c) {
      return std::abs(c->start - at) <= kRounding && tag_of(c->metadata, "title") == tag_of(from.metadata, "title");
    };
    if (end <= part.begin_us || begin >= part.end_us ||
        std::any_of(output_->chapters, output_->chapters + output_->nb_chapters, is_same))
      continue;
    AVChapter* to = new_chapter(*output_);
    to->id = static_cast<std::int64_t>(output_->nb_chapters);
    to->time_base = kMicroseconds;
    to->start = at;
    to->end = std::max(at, add_times(end, shift));
    av_dict_copy(&to->metadata, from.metadata, 0);
  }
}

void SideStreamCopy::add_chapters() {
  if (input_->nb_chapters == 0) return;
  if (!holds_chapters(output_->oformat->name)) {
    remarks_.push_back(std::string("chapters: ") + output_->oformat->name + " cannot hold them");
    return;
  }
  // As the pictures are: muxers that shift tracks do not shift chapters.
  const std::int64_t shift_us = add_times(offset_us_, shift_of_muxer());
  for (unsigned i = 0; i < input_->nb_chapters; ++i) {
    const AVChapter& from = *input_->chapters[i];
    AVChapter* to = new_chapter(*output_);
    const std::int64_t shift = shift_us != 0 ? av_rescale_q(shift_us, kMicroseconds, from.time_base) : 0;
    to->id = from.id;
    to->time_base = from.time_base;
    to->start = std::max<std::int64_t>(std::min<std::int64_t>(0, from.start), add_times(from.start, shift));
    to->end = std::max(to->start, add_times(from.end, shift));
    av_dict_copy(&to->metadata, from.metadata, 0);
  }
}

}  // namespace trivelet::io
