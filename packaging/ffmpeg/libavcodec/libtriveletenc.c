/*
 * This file is part of FFmpeg.
 *
 * FFmpeg is free software; you can redistribute it and/or
 * modify it under the terms of the GNU Lesser General Public
 * License as published by the Free Software Foundation; either
 * version 2.1 of the License, or (at your option) any later version.
 *
 * FFmpeg is distributed in the hope that it will be useful,
 * but WITHOUT ANY WARRANTY; without even the implied warranty of
 * MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the GNU
 * Lesser General Public License for more details.
 *
 * You should have received a copy of the GNU Lesser General Public
 * License along with FFmpeg; if not, write to the Free Software
 * Foundation, Inc., 51 Franklin Street, Fifth Floor, Boston, MA 02110-1301 USA
 */

/**
 * @file
 * Trivelet encoder, through libtrivelet.
 *
 * Packets are GOPs. The last one holds the index of the stream.
 */

#include <trivelet/trivelet.h>

#include "libavutil/avstring.h"
#include "libavutil/common.h"
#include "libavutil/fifo.h"
#include "libavutil/mastering_display_metadata.h"
#include "libavutil/mathematics.h"
#include "libavutil/mem.h"
#include "libavutil/opt.h"
#include "libavutil/pixdesc.h"

#include "avcodec.h"
#include "codec_internal.h"
#include "encode.h"
#include "internal.h"

#ifdef CODEC_LONG_NAME
#define TRIVELET_LONG_NAME CODEC_LONG_NAME("libtrivelet Trivelet wavelet video")
#else
#define TRIVELET_LONG_NAME .p.long_name = NULL_IF_CONFIG_SMALL("libtrivelet Trivelet wavelet video")
#endif

typedef struct TriveletEncoder {
    const AVClass *class;
    double quality;
    double psnr;
    double bits_per_pixel;
    int lossless;
    int profile;
    int motion;
    int key_prediction;
    int layers;
    int device;

    tvl_encoder *encoder;
    AVFifo *packets;    ///< AVPacket*, made and not taken yet
    AVFrame *frame;     ///< waits for the one behind it, whose time says how long it is shown
    AVFrame *next;
    int64_t duration;   ///< of the frame before `frame`
    int finished;
    int failed;         ///< AVERROR of the packet function
} TriveletEncoder;

static int error_of(AVCodecContext *avctx, tvl_result result)
{
    TriveletEncoder *s = avctx->priv_data;

    if (s->failed < 0)
        return s->failed;
    av_log(avctx, AV_LOG_ERROR, "%s\n", tvl_encoder_error(s->encoder));
    switch (result) {
    case TVL_BAD_ARGUMENT:  return AVERROR(EINVAL);
    case TVL_IO:            return AVERROR(EIO);
    case TVL_UNSUPPORTED:   return AVERROR_PATCHWELCOME;
    case TVL_OUT_OF_MEMORY: return AVERROR(ENOMEM);
    default:                return AVERROR_EXTERNAL;
    }
}

static void say(void *avctx, int32_t level, const char *text)
{
    av_log(avctx, level ? AV_LOG_WARNING : AV_LOG_VERBOSE, "%s\n", text);
}

/// The head is extradata, and stands before each key GOP, as in Matroska.
static int take_packet(void *user, const tvl_packet *info, const void *data, uint64_t size)
{
    AVCodecContext *avctx = user;
    TriveletEncoder *s = avctx->priv_data;
    const int head = info->key ? avctx->extradata_size : 0;
    AVPacket *pkt;

    if (size > INT_MAX - AV_INPUT_BUFFER_PADDING_SIZE - head) {
        av_log(avctx, AV_LOG_ERROR, "A packet of %"PRIu64" bytes is too large\n", size);
        return s->failed = AVERROR(ENOMEM);
    }
    if (info->kind == TVL_PACKET_HEAD) {
        avctx->extradata = av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE);
        if (!avctx->extradata)
            return s->failed = AVERROR(ENOMEM);
        memcpy(avctx->extradata, data, size);
        avctx->extradata_size = size;
        return 0;
    }
    pkt = av_packet_alloc();
    if (!pkt || (s->failed = av_new_packet(pkt, head + size)) < 0) {
        av_packet_free(&pkt);
        return s->failed = AVERROR(ENOMEM);
    }
    memcpy(pkt->data, avctx->extradata, head);
    memcpy(pkt->data + head, data, size);
    if (info->kind == TVL_PACKET_GOP) {
        pkt->pts      = info->pts;
        pkt->duration = info->duration;
        pkt->flags    = info->key ? AV_PKT_FLAG_KEY : 0;
    } else {
        pkt->pts = s->frame->pts + s->duration;
    }
    pkt->dts = pkt->pts;
    if ((s->failed = av_fifo_write(s->packets, &pkt, 1)) < 0)
        av_packet_free(&pkt);
    return s->failed;
}

static int set_video(AVCodecContext *avctx, tvl_video *v)
{
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(avctx->pix_fmt);
    char name[32];

    av_strlcpy(name, desc->name, sizeof(name));
    if (desc->comp[0].depth > 8 && strlen(name) > 2) // the byte order is the machine's
        name[strlen(name) - 2] = 0;
    tvl_video_init(v, sizeof(*v));
    if (tvl_video_set_format(v, name) != TVL_OK) {
        av_log(avctx, AV_LOG_ERROR, "Pixel format %s is not supported\n", desc->name);
        return AVERROR_PATCHWELCOME;
    }
    v->width           = avctx->width;
    v->height          = avctx->height;
    v->time_base_num   = avctx->time_base.num;
    v->time_base_den   = avctx->time_base.den;
    v->primaries       = avctx->color_primaries;
    v->transfer        = avctx->color_trc;
    v->matrix          = avctx->colorspace;
    v->range           = avctx->color_range;
    v->chroma_location = avctx->chroma_sample_location;
    v->field_order     = avctx->field_order == AV_FIELD_TT || avctx->field_order == AV_FIELD_TB ? 1
                       : avctx->field_order == AV_FIELD_BB || avctx->field_order == AV_FIELD_BT ? 2 : 0;
    v->frame_rate_num = avctx->framerate.num > 0 ? avctx->framerate.num : 0;
    v->frame_rate_den = avctx->framerate.num > 0 ? avctx->framerate.den : 1;
    v->sample_aspect_num = avctx->sample_aspect_ratio.num > 0 ? avctx->sample_aspect_ratio.num : 0;
    v->sample_aspect_den = avctx->sample_aspect_ratio.num > 0 ? avctx->sample_aspect_ratio.den : 1;
    return 0;
}

static av_cold int trivelet_init(AVCodecContext *avctx)
{
    TriveletEncoder *s = avctx->priv_data;
    tvl_encode_params p;
    tvl_video v;
    tvl_sink sink;
    tvl_result result;
    int ret = set_video(avctx, &v);

    if (ret < 0)
        return ret;
    s->packets = av_fifo_alloc2(8, sizeof(AVPacket *), AV_FIFO_FLAG_AUTO_GROW);
    s->frame   = av_frame_alloc();
    s->next    = av_frame_alloc();
    s->encoder = tvl_encoder_new();
    if (!s->packets || !s->frame || !s->next || !s->encoder)
        return AVERROR(ENOMEM);
    tvl_encoder_set_log(s->encoder, say, avctx);

    tvl_encode_params_init(&p, sizeof(p));
    p.lossless = s->lossless;
    p.profile  = s->profile;
    p.motion   = s->motion;
    p.key_prediction = s->key_prediction;
    p.layers   = s->layers;
    p.device   = s->device;
    p.threads  = avctx->thread_count;
    p.psnr           = s->psnr;
    p.bits_per_pixel = s->bits_per_pixel;
    p.bit_rate       = avctx->bit_rate;
    if (s->quality >= 0)
        p.quality = s->quality;
    if (avctx->gop_size > 0)
        p.gop_frames = FFMIN(avctx->gop_size, (int)tvl_limit_of(TVL_LIMIT_GOP_FRAMES));
    if (avctx->keyint_min > 0)
        p.key_interval = avctx->keyint_min;
    tvl_sink_init(&sink, sizeof(sink));
    sink.packet = take_packet;
    sink.user   = avctx;
    result = tvl_encoder_open(s->encoder, &v, &p, &sink);
    if (result != TVL_OK)
        return error_of(avctx, result);
    return 0;
}

/// Gives `frame` to the library; it is shown for `duration`.
static int encode_frame(AVCodecContext *avctx, const AVFrame *frame, int64_t duration)
{
    TriveletEncoder *s = avctx->priv_data;
    const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get(avctx->pix_fmt);
    const int packed = !(desc->flags & AV_PIX_FMT_FLAG_PLANAR) && desc->nb_components == 2;
    tvl_frame in = { 0 };
    tvl_result result;

    for (int c = 0; c < desc->nb_components; c++) {
        const int plane = packed ? 0 : c;

        in.planes[c].data          = frame->data[plane] + (packed ? desc->comp[c].offset : 0);
        in.planes[c].row_stride    = frame->linesize[plane];
        in.planes[c].sample_stride = packed ? desc->comp[c].step : 0;
    }
    in.pts      = frame->pts;
    in.duration = s->duration = duration;
    result = tvl_encoder_write(s->encoder, &in, 1);
    return result == TVL_OK ? 0 : error_of(avctx, result);
}

/// The frame's own duration may be in another time base.
static int64_t last_duration(AVCodecContext *avctx)
{
    TriveletEncoder *s = avctx->priv_data;

    if (s->duration > 0)
        return s->duration;
    if (avctx->framerate.num > 0)
        return FFMAX(1, av_rescale_q(1, av_inv_q(avctx->framerate), avctx->time_base));
    return 1;
}

static int finish(AVCodecContext *avctx)
{
    TriveletEncoder *s = avctx->priv_data;
    tvl_result result;
    int ret;

    s->finished = 1;
    if (s->frame->buf[0] && (ret = encode_frame(avctx, s->frame, last_duration(avctx))) < 0)
        return ret;
    result = tvl_encoder_finish(s->encoder);
    return result == TVL_OK ? 0 : error_of(avctx, result);
}

static int trivelet_receive_packet(AVCodecContext *avctx, AVPacket *pkt)
{
    TriveletEncoder *s = avctx->priv_data;
    AVPacket *made;
    int ret;

    while (av_fifo_can_read(s->packets) == 0) {
        if (s->finished)
            return AVERROR_EOF;
        ret = ff_encode_get_frame(avctx, s->next);
        if (ret == AVERROR_EOF) {
            ret = finish(avctx);
            if (ret < 0)
                return ret;
            continue;
        }
        if (ret < 0)
            return ret;
        if (s->frame->buf[0]) {
            if (s->next->pts <= s->frame->pts) {
                av_log(avctx, AV_LOG_ERROR, "Time %"PRId64" does not follow %"PRId64"\n", s->next->pts, s->frame->pts);
                av_frame_unref(s->next);
                return AVERROR(EINVAL);
            }
            ret = encode_frame(avctx, s->frame, s->next->pts - s->frame->pts);
            if (ret < 0)
                return ret;
            av_frame_unref(s->frame);
        }
        av_frame_move_ref(s->frame, s->next);
    }
    av_fifo_read(s->packets, &made, 1);
    av_packet_move_ref(pkt, made);
    av_packet_free(&made);
    return 0;
}

static av_cold int trivelet_close(AVCodecContext *avctx)
{
    TriveletEncoder *s = avctx->priv_data;
    AVPacket *pkt;

    tvl_encoder_free(s->encoder);
    s->encoder = NULL;
    while (s->packets && av_fifo_read(s->packets, &pkt, 1) >= 0)
        av_packet_free(&pkt);
    av_fifo_freep2(&s->packets);
    av_frame_free(&s->frame);
    av_frame_free(&s->next);
    return 0;
}

static const enum AVPixelFormat pix_fmts[] = {
    AV_PIX_FMT_YUV420P,   AV_PIX_FMT_YUV422P,   AV_PIX_FMT_YUV444P,
    AV_PIX_FMT_YUV440P,   AV_PIX_FMT_YUV411P,   AV_PIX_FMT_YUV410P,
    AV_PIX_FMT_YUV420P9,  AV_PIX_FMT_YUV422P9,  AV_PIX_FMT_YUV444P9,
    AV_PIX_FMT_YUV420P10, AV_PIX_FMT_YUV422P10, AV_PIX_FMT_YUV444P10, AV_PIX_FMT_YUV440P10,
    AV_PIX_FMT_YUV420P12, AV_PIX_FMT_YUV422P12, AV_PIX_FMT_YUV444P12, AV_PIX_FMT_YUV440P12,
    AV_PIX_FMT_YUV420P14, AV_PIX_FMT_YUV422P14, AV_PIX_FMT_YUV444P14,
    AV_PIX_FMT_YUV420P16, AV_PIX_FMT_YUV422P16, AV_PIX_FMT_YUV444P16,
    AV_PIX_FMT_YUVA420P,   AV_PIX_FMT_YUVA422P,   AV_PIX_FMT_YUVA444P,
    AV_PIX_FMT_YUVA420P9,  AV_PIX_FMT_YUVA422P9,  AV_PIX_FMT_YUVA444P9,
    AV_PIX_FMT_YUVA420P10, AV_PIX_FMT_YUVA422P10, AV_PIX_FMT_YUVA444P10,
    AV_PIX_FMT_YUVA422P12, AV_PIX_FMT_YUVA444P12,
    AV_PIX_FMT_YUVA420P16, AV_PIX_FMT_YUVA422P16, AV_PIX_FMT_YUVA444P16,
    AV_PIX_FMT_GBRP,   AV_PIX_FMT_GBRP9,   AV_PIX_FMT_GBRP10,
    AV_PIX_FMT_GBRP12, AV_PIX_FMT_GBRP14,  AV_PIX_FMT_GBRP16,
    AV_PIX_FMT_GBRAP,  AV_PIX_FMT_GBRAP10, AV_PIX_FMT_GBRAP12, AV_PIX_FMT_GBRAP16,
    AV_PIX_FMT_GRAY8,  AV_PIX_FMT_GRAY9,   AV_PIX_FMT_GRAY10,
    AV_PIX_FMT_GRAY12, AV_PIX_FMT_GRAY14,  AV_PIX_FMT_GRAY16,
    AV_PIX_FMT_YA8,    AV_PIX_FMT_YA16,
    AV_PIX_FMT_NONE
};

#define OFFSET(x) offsetof(TriveletEncoder, x)
#define VE AV_OPT_FLAG_VIDEO_PARAM | AV_OPT_FLAG_ENCODING_PARAM
static const AVOption options[] = {
    { "quality", "constant quality, 0 to 100; -1 = 60", OFFSET(quality), AV_OPT_TYPE_DOUBLE, { .dbl = -1 }, -1, 100, VE },
    { "psnr", "PSNR over all samples in dB instead; 0 = none", OFFSET(psnr), AV_OPT_TYPE_DOUBLE, { .dbl = 0 }, 0, 200, VE },
    { "bpp", "bits per pixel at most instead; 0 = none", OFFSET(bits_per_pixel), AV_OPT_TYPE_DOUBLE, { .dbl = 0 }, 0, 1000, VE },
    { "lossless", "every sample comes back", OFFSET(lossless), AV_OPT_TYPE_BOOL, { .i64 = 0 }, 0, 1, VE },
    { "profile", "entropy coder", OFFSET(profile), AV_OPT_TYPE_INT, { .i64 = TVL_PROFILE_DENSE }, TVL_PROFILE_FAST, TVL_PROFILE_PREDICTIVE, VE, "profile" },
        { "fast", "a tenth of the time, a fifth more bytes", 0, AV_OPT_TYPE_CONST, { .i64 = TVL_PROFILE_FAST }, 0, 0, VE, "profile" },
        { "dense", "fewest bytes", 0, AV_OPT_TYPE_CONST, { .i64 = TVL_PROFILE_DENSE }, 0, 0, VE, "profile" },
        { "predictive", "lossless, without layers", 0, AV_OPT_TYPE_CONST, { .i64 = TVL_PROFILE_PREDICTIVE }, 0, 0, VE, "profile" },
    { "motion", "motion compensation", OFFSET(motion), AV_OPT_TYPE_INT, { .i64 = TVL_MOTION_DEFAULT }, TVL_MOTION_OFF, TVL_MOTION_DEFAULT, VE, "motion" },
        { "off", NULL, 0, AV_OPT_TYPE_CONST, { .i64 = TVL_MOTION_OFF }, 0, 0, VE, "motion" },
        { "on", NULL, 0, AV_OPT_TYPE_CONST, { .i64 = TVL_MOTION_ON }, 0, 0, VE, "motion" },
        { "auto", "where it saves bytes", 0, AV_OPT_TYPE_CONST, { .i64 = TVL_MOTION_AUTO }, 0, 0, VE, "motion" },
        { "default", "auto, or off with -profile fast", 0, AV_OPT_TYPE_CONST, { .i64 = TVL_MOTION_DEFAULT }, 0, 0, VE, "motion" },
    { "key_prediction", "keys predicted from those of the GOP before", OFFSET(key_prediction), AV_OPT_TYPE_INT, { .i64 = TVL_KEY_PREDICTION_AUTO }, TVL_KEY_PREDICTION_OFF, TVL_KEY_PREDICTION_AUTO, VE, "key_prediction" },
        { "off", NULL, 0, AV_OPT_TYPE_CONST, { .i64 = TVL_KEY_PREDICTION_OFF }, 0, 0, VE, "key_prediction" },
        { "on", "along motion; smaller pictures are less exact", 0, AV_OPT_TYPE_CONST, { .i64 = TVL_KEY_PREDICTION_ON }, 0, 0, VE, "key_prediction" },
        { "auto", "from the same places, where it saves bytes", 0, AV_OPT_TYPE_CONST, { .i64 = TVL_KEY_PREDICTION_AUTO }, 0, 0, VE, "key_prediction" },
    { "layers", "quality layers; 0 = by size", OFFSET(layers), AV_OPT_TYPE_INT, { .i64 = 0 }, 0, 16, VE },
    { "device", "number of a GPU; -1 = the CPU", OFFSET(device), AV_OPT_TYPE_INT, { .i64 = TVL_CPU }, TVL_CPU, INT_MAX, VE },
    { NULL },
};

static const AVClass trivelet_encoder_class = {
    .class_name = "libtrivelet encoder",
    .item_name  = av_default_item_name,
    .option     = options,
    .version    = LIBAVUTIL_VERSION_INT,
};

static const FFCodecDefault defaults[] = {
    { "b", "0" },
    { "g", "-1" },
    { "keyint_min", "-1" },
    { NULL },
};

const FFCodec ff_libtrivelet_encoder = {
    .p.name         = "libtrivelet",
    TRIVELET_LONG_NAME,
    .p.type         = AVMEDIA_TYPE_VIDEO,
    .p.id           = AV_CODEC_ID_TRIVELET,
    .p.capabilities = AV_CODEC_CAP_DELAY | AV_CODEC_CAP_OTHER_THREADS,
    .p.pix_fmts     = pix_fmts,
    .p.priv_class   = &trivelet_encoder_class,
    .p.wrapper_name = "libtrivelet",
    .priv_data_size = sizeof(TriveletEncoder),
    .defaults       = defaults,
    .init           = trivelet_init,
    .close          = trivelet_close,
    FF_CODEC_RECEIVE_PACKET_CB(trivelet_receive_packet),
    .caps_internal  = FF_CODEC_CAP_INIT_CLEANUP | FF_CODEC_CAP_AUTO_THREADS,
};
