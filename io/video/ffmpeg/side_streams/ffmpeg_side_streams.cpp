// Opens the file of side streams, chooses its tracks, and goes from one part of a film to the next.

#include "io/video/ffmpeg/side_streams/ffmpeg_side_streams.h"

#include <algorithm>
#include <new>

#include "io/video/ffmpeg/ffmpeg_fields.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_chapters.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_side_target.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_tracks.h"

namespace trivelet::io {

SideStreamCopy::SideStreamCopy(const SideStreamOptions& options)
    : options_(options), offset_us_(options.clock_offset_us) {
  open(options.from);
  if (options_.parts.empty()) return;
  offset_us_ += options_.parts[0].shift_us;
  begin_us_ = options_.parts[0].begin_us;
  end_us_ = options_.parts[0].end_us;
}
SideStreamCopy::~SideStreamCopy() = default;

void SideStreamCopy::close() {
  input_.reset();
  io_.reset();
  source_.reset();
}

void SideStreamCopy::open(const std::string& path) {
  source_.emplace(path);
  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) throw std::bad_alloc();
  context->opaque = &log_;
  io_ = std::make_unique<SourceIo>(*source_);
  context->pb = io_->context();
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "protocol_whitelist", "data", 0);
  av_dict_set(&settings, "export_xmp", "1", 0);  // of MP4: a tag
  int code = avformat_open_input(&context, path.c_str(), nullptr, &settings);
  av_dict_free(&settings);
  io_->rethrow();
  if (code < 0)
    av_fail(code, source_->name() + ": no sound, subtitles or chapters can be read from it", ErrorKind::kBadStream,
            log_.take());
  input_.reset(context);
  code = avformat_find_stream_info(input_.get(), nullptr);
  io_->rethrow();
  if (code < 0) av_fail(code, source_->name() + ": FFmpeg finds no stream parameters", ErrorKind::kBadStream);
  log_.take();  // it does not know our video, and prints a message about it
  video_ = main_video(*input_, options_.stream, source_->name());
  packet_ = make_packet();
}

// What --map asks for; all that is not there is left out.
std::vector<bool> SideStreamCopy::mapped(AVFormatContext& input, int video) const {
  bool only_without = true;
  for (const std::string& specifier : options_.map) only_without = only_without && specifier[0] == '-';
  std::vector<bool> taken(input.nb_streams, only_without);
  for (const std::string& specifier : options_.map) {
    const bool without = specifier[0] == '-';
    bool found = false;
    for (unsigned i = 0; i < input.nb_streams; ++i)
      if (matches(input, *input.streams[i], specifier.substr(without ? 1 : 0), source_->name())) {
        found = true;
        taken[i] = !without;
      }
    require(found || &input != input_.get() || part_ > 0, ErrorKind::kBadArgument,
            source_->name() + " has no track " + specifier + "; its tracks: " + list_tracks(input));
  }
  if (video >= 0) taken[static_cast<std::size_t>(video)] = false;
  return taken;
}

void SideStreamCopy::add_to(AVFormatContext& output) {
  output_ = &output;
  const int video = video_;
  const std::vector<bool> taken = mapped(*input_, video);
  for (unsigned i = 0; i < input_->nb_streams; ++i) {
    AVStream& from = *input_->streams[i];
    from.discard = AVDISCARD_ALL;
    if (static_cast<int>(i) == video) {
      av_dict_copy(&output.streams[0]->metadata, from.metadata, AV_DICT_DONT_OVERWRITE);
      output.streams[0]->disposition = flags_of_text(flags_to_text(from.disposition));
      av_dict_set(&output.streams[0]->metadata, "encoder", nullptr, 0);
    } else if (is_wanted(*input_, i, taken)) {
      add_track(from);
      first_tracks_.emplace_back(from.codecpar->codec_type, static_cast<int>(i));
    }
  }
  const AVDictionaryEntry* tag = nullptr;
  while ((tag = av_dict_get(input_->metadata, "", tag, AV_DICT_IGNORE_SUFFIX)) != nullptr)
    if (!is_of_container(tag->key)) av_dict_set(&output.metadata, tag->key, tag->value, AV_DICT_DONT_OVERWRITE);
  av_dict_copy(&output.metadata, video >= 0 ? program_tags(*input_, video) : nullptr, AV_DICT_DONT_OVERWRITE);
  if (options_.parts.empty()) return add_chapters();
  const bool has_chapters = output.nb_chapters > 0;  // of the joined stream
  for (std::size_t i = 0; i < options_.parts.size(); ++i) {
    SideStreamOptions alone = options_;
    alone.from = options_.parts[i].from;
    alone.parts.clear();
    const SideStreamCopy other(alone);
    if (i > 0) check_part(*other.input_, other.video_, alone.from);
    if (!has_chapters && holds_chapters(output.oformat->name)) add_chapters_of(options_.parts[i], *other.input_);
  }
}

bool SideStreamCopy::is_wanted(const AVFormatContext& input, unsigned index, const std::vector<bool>& taken) const {
  const AVStream& stream = *input.streams[index];
  return taken[index] && !is_track_of_chapters(input, stream) &&
         (stream.codecpar->codec_type != AVMEDIA_TYPE_AUDIO || options_.sound);
}

// Maps the tracks of a later part to those of the first part: the n-th of a kind to the n-th; -1: none.
std::map<int, int> SideStreamCopy::follow(AVFormatContext& input, int video) const {
  const std::vector<bool> taken = mapped(input, video);
  std::map<int, int> all;
  std::map<AVMediaType, std::size_t> seen;
  for (unsigned i = 0; i < input.nb_streams; ++i) {
    if (static_cast<int>(i) == video || !is_wanted(input, i, taken)) continue;
    const AVMediaType kind = input.streams[i]->codecpar->codec_type;
    std::size_t left = seen[kind]++;
    const auto same = std::find_if(first_tracks_.begin(), first_tracks_.end(),
                                   [&](const auto& first) { return first.first == kind && left-- == 0; });
    all[static_cast<int>(i)] = same != first_tracks_.end() ? same->second : -1;
  }
  return all;
}

void SideStreamCopy::check_part(AVFormatContext& input, int video, const std::string& name) {
  const std::map<int, int> followed = follow(input, video);
  std::map<int, bool> goes_on;
  for (const auto& [index, first] : followed) {
    const AVStream& stream = *input.streams[index];
    const auto target = targets_.find(first);
    goes_on[first] = true;
    if (first < 0 && stream.codecpar->codec_type != AVMEDIA_TYPE_ATTACHMENT)
      remarks_.push_back(name_of_track(stream) + " of '" + name + "', for '" + options_.from + "' has no such track");
    if (first < 0 || target == targets_.end()) continue;
    require(is_alike(*input_->streams[first]->codecpar, *stream.codecpar), ErrorKind::kBadArgument,
            "'" + name + "' does not fit '" + options_.from + "': " + name_of_track(stream) + " and " +
                name_of_track(*input_->streams[first]) + "; --only-video or --map leaves tracks out");
  }
  for (const auto& [first, target] : targets_)
    if (!goes_on[first])
      remarks_.push_back(name_of_track(*input_->streams[first]) + " in the time of '" + name + "', which has none");
}

void SideStreamCopy::begin(std::int64_t us) {
  if (options_.after_first_frame) begin_us_ = us;
}

bool SideStreamCopy::next_part() {
  if (part_ + 1 >= options_.parts.size()) return false;
  const SideStreamPart& part = options_.parts[++part_];
  close();
  open(part.from);
  offset_us_ = part.clock_offset_us + part.shift_us;
  begin_us_ = part.begin_us;
  end_us_ = part.end_us;
  followed_ = follow(*input_, video_);
  for (auto& [first, target] : targets_) {
    target->from = nullptr;
    target->covered_begin_us = target->begin_us;
    target->covered_end_us = target->end_us;
  }
  for (unsigned i = 0; i < input_->nb_streams; ++i) {
    AVStream& stream = *input_->streams[i];
    const auto follows = followed_.find(static_cast<int>(i));
    const auto target = follows != followed_.end() ? targets_.find(follows->second) : targets_.end();
    stream.discard = target != targets_.end() ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    if (target != targets_.end()) target->second->from = &stream;
  }
  return true;
}

SideStreamCopy::Target* SideStreamCopy::target_of(const AVPacket& packet) {
  int first = packet.stream_index;
  if (part_ > 0) {
    const auto follows = followed_.find(first);
    first = follows != followed_.end() ? follows->second : -1;
  }
  const auto found = targets_.find(first);
  return found != targets_.end() ? found->second.get() : nullptr;
}

}  // namespace trivelet::io
