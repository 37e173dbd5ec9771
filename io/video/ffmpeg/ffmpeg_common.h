// Owners, error text and pixel layouts shared by the FFmpeg reader and writer. Internal to io: no FFmpeg type leaves
// it.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/display.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/adapters.h"
#include "io/video/ffmpeg/ffmpeg_messages.h"
#include "trivelet/metadata.h"
#include "trivelet/types.h"

namespace trivelet::io {

struct FreeFrame {
  void operator()(AVFrame* p) const { av_frame_free(&p); }
};
struct FreePacket {
  void operator()(AVPacket* p) const { av_packet_free(&p); }
};
struct FreeCodec {
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
};
struct FreeScaler {
  void operator()(SwsContext* p) const { sws_freeContext(p); }
};
struct FreeIo {
  void operator()(AVIOContext* p) const {
    if (p != nullptr) av_freep(&p->buffer);
    avio_context_free(&p);
  }
};
using FramePtr = std::unique_ptr<AVFrame, FreeFrame>;
using PacketPtr = std::unique_ptr<AVPacket, FreePacket>;
using CodecPtr = std::unique_ptr<AVCodecContext, FreeCodec>;
using ScalerPtr = std::unique_ptr<SwsContext, FreeScaler>;
using IoPtr = std::unique_ptr<AVIOContext, FreeIo>;

FramePtr make_frame();
PacketPtr make_packet();

/// Throws an Error of the fitting kind: Io for errors of the system, Unsupported for features that FFmpeg lacks,
/// otherwise `kind`. The text ends with FFmpeg's text for the code, or with `reason` if there is one.
[[noreturn]] void av_fail(int code, const std::string& what, ErrorKind kind, const std::string& reason = {});

/// The format of types.h that holds the same samples without loss; nothing for floating point, Bayer, hardware
/// surfaces. Palettes depend on the frame: see unpack_format().
std::optional<PixelFormat> same_samples(AVPixelFormat format);
/// Like same_samples(), for pictures with a palette too: with alpha only if a used colour has some.
std::optional<PixelFormat> unpack_format(const AVFrame& frame);
/// True for FFmpeg's yuvj formats, which mean full range.
bool implies_full_range(AVPixelFormat format);
/// Copies the samples of a picture into frame `index`, whatever their layout. The format must be unpack_format().
void unpack(const AVFrame& frame, Gop& gop, int index);

/// FFmpeg's planar format of native byte order, or AV_PIX_FMT_NONE.
AVPixelFormat planar_av_format(const PixelFormat& format);
/// The first of `candidates` (ended by NONE; null = any) that can carry the samples of `format`, planar ones first.
AVPixelFormat find_av_format(const PixelFormat& format, bool full_range, const AVPixelFormat* candidates);
/// The inverse of unpack(), for formats of find_av_format().
void pack(const Gop& gop, int index, AVFrame& frame);
/// True for pixels of one bit, black or white (PBM, XBM).
bool is_bilevel(AVPixelFormat format);
/// pack() of grey samples of 8 bits into pixels of one bit. False where one is neither 0 nor 255.
bool pack_bilevel(const Gop& gop, int index, AVFrame& frame);

/// What `stream` or its first frame says of HDR: the display it was mastered on and its light level, and back.
Metadata hdr_of(const AVStream& stream, const AVFrame& frame);
void add_hdr(AVStream& stream, const Metadata& metadata);

/// The functions of FfmpegAdapter.
Reader make_ffmpeg_reader(const std::string& path, Source source, const std::string& demuxer,
                          const ReaderOptions& options);
Writer make_ffmpeg_writer(const std::string& path, const VideoInfo& info, const std::string& muxer,
                          const WriterOptions& options);
std::unique_ptr<FrameConverter> make_ffmpeg_converter(const std::string& user, const VideoInfo& from,
                                                      const VideoInfo& to);
std::optional<VideoInfo> nearest_ffmpeg_format(const VideoInfo& from, const Holds& holds);
bool ffmpeg_writes_picture(const std::string& path, const std::string& muxer);
bool ffmpeg_output_holds(const std::string& path, const VideoInfo& info, const std::string& muxer,
                         const WriterOptions& options);
std::unique_ptr<StreamOutput> make_ffmpeg_matroska_output(const std::string& path, bool overwrite,
                                                          const SideStreamOptions& side_streams);

inline AVRational to_av(Rational r) { return {r.num, r.den}; }
inline Rational from_av(AVRational r) { return {r.num, r.den}; }

}  // namespace trivelet::io
