// The tracks of a file: which is the video, what they are called, what containers can hold of them. Internal to io.
#pragma once

#include <string>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

/// "video", "sound", "subtitles", "cover", "attachment", "other".
const char* kind_of(const AVStream& stream);
/// "sound (aac, 48000 Hz, 2 channels)".
std::string name_of_track(const AVStream& stream);
/// "0 video (h264), 1 sound (aac, eng)".
std::string list_tracks(const AVFormatContext& input);
/// The name of what a packet of FLV holds where its demuxer takes data of a script for text: "onCuePoint". "" for text.
std::string name_of_script(const AVFormatContext& input, const AVPacket& packet);

/// The stream that is the video of the file: by a specifier of FFmpeg ("v:1", "3"), which must match one, otherwise one
/// of ours, otherwise the one that the program ffmpeg takes; -1 if there is none. `name`: of the file, for messages.
int main_video(AVFormatContext& input, const std::string& specifier, const std::string& name);
/// Which of several videos this is, a sentence; "" of a single one.
std::string choice_of_video(const AVFormatContext& input, int video);
/// Its side streams.
SideStreams side_streams_of(AVFormatContext& input, int video);

/// Whether a specifier of FFmpeg's means the stream; "0:" before it is the file.
bool matches(AVFormatContext& input, AVStream& stream, const std::string& specifier, const std::string& name);
/// MP4 has its chapters as a track of text, too.
bool is_track_of_chapters(const AVFormatContext& input, const AVStream& stream);
/// True if a decoder of one decodes the packets of the other.
bool is_alike(const AVCodecParameters& a, const AVCodecParameters& b);
/// Whether the muxer writes packets of the codec.
bool holds_codec(const AVOutputFormat& muxer, const AVCodecParameters& codec);
/// Why it does not begin a file with such a track, although it holds the codec: AAC of which nothing says the rate. ""
/// if it does, or if it takes no track alone.
std::string refusal_of(const AVOutputFormat& muxer, const AVCodecParameters& codec);

}  // namespace trivelet::io
