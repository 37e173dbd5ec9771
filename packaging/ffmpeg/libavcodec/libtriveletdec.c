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
 * Trivelet decoder, through libtrivelet.
 *
 * A packet is a GOP. Its frames are decoded together into buffers of the
 * caller, and handed out one by one.
 */

#include <trivelet/trivelet.h>

#include "libavutil/common.h"
#include "libavutil/mastering_display_metadata.h"
#include "libavutil/mathematics.h"
#include "libavutil/mem.h"
#include "libavutil/opt.h"
#include "libavutil/pixdesc.h"

#include "avcodec.h"
#include "codec_internal.h"
#include "decode.h"
#include "internal.h"

#ifdef CODEC_LONG_NAME
#define TRIVELET_LONG_NAME CODEC_LONG_NAME("libtrivelet Trivelet wavelet video")
#else
#define TRIVELET_LONG_NAME .p.long_name = NULL_IF_CONFIG_SMALL("libtrivelet Trivelet wavelet video")
#endif

typedef struct TriveletDecoder {
    const AVClass *class;
    int layers;
    int reduce_rate;

    tvl_decoder *decoder;
    int is_open;
    tvl_video video;
    AVRational time_base; ///< of the stream
    AVPacket *pkt;
    AVFrame **frames;     ///< of the last packet
    int capacity;
    int count;            ///< frames that were decoded
    int next;             ///< the one that is handed out next
    uint64_t damaged;     ///< GOPs up to now
} TriveletDecoder;

static int error_of(AVCodecContext *avctx, tvl_result result)
{
    TriveletDecoder *s = avctx->priv_data;

    av_log(avctx, AV_LOG_ERROR, "%s\n", tvl_decoder_error(s->decoder));
    switch (result) {
    case TVL_BAD_ARGUMENT:  return AVERROR(EINVAL);
    case TVL_BAD_STREAM:    return AVERROR_INVALIDDATA;
    case TVL_UNSUPPORTED:   return AVERROR_PATCHWELCOME;
    case TVL_OUT_OF_MEMORY: return AVERROR(ENOMEM);
    default:                return AVERROR_EXTERNAL;
    }
}

static void say(void *avctx, int32_t level, const char *text)
{
    av_log(avctx, level ? AV_LOG_WARNING : AV_LOG_VERBOSE, "%s\n", text);
}

static int set_format(AVCodecContext *avctx)
{
    TriveletDecoder *s = avctx->priv_data;
    const tvl_video *v = &s->video;
    char name[32];
    int ret;

    if (tvl_video_format(v, name, sizeof(name)) != TVL_OK || v->is_signed ||
        (avctx->pix_fmt = av_get_pix_fmt(name)) == AV_PIX_FMT_NONE) {
        av_log(avctx, AV_LOG_ERROR, "No pixel format for samples of %d bits%s (%s)\n",
               v->bits, v->is_signed ? " with a sign" : "", name);
        return AVERROR_PATCHWELCOME;
    }
    if (v->alpha == 2)
        av_log(avctx, AV_LOG_WARNING, "The colours are premultiplied by alpha\n");
    // The library rounds up as lowres does.
    ret = ff_set_dimensions(avctx, v->width << avctx->lowres, v->height << avctx->lowres);
    if (ret < 0)
        return ret;
    if (v->sample_aspect_num > 0)
        ff_set_sar(avctx, (AVRational){ v->sample_aspect_num, v->sample_aspect_den });
    if (v->frame_rate_num > 0)
        avctx->framerate = (AVRational){ v->frame_rate_num, v->frame_rate_den };
    avctx->color_primaries        = v->primaries;
    avctx->color_trc              = v->transfer;
    avctx->colorspace             = v->matrix;
    avctx->color_range            = v->range;
    avctx->chroma_sample_location = v->chroma_location;
    avctx->bits_per_raw_sample    = v->bits;
    avctx->field_order            = v->field_order == 1 ? AV_FIELD_TT
                                  : v->field_order == 2 ? AV_FIELD_BB : AV_FIELD_PROGRESSIVE;
    s->time_base = (AVRational){ v->time_base_num, v->time_base_den };
    return 0;
}

static int open_stream(AVCodecContext *avctx, const uint8_t *head, int size)
{
    TriveletDecoder *s = avctx->priv_data;
    tvl_decode_params p;
    tvl_result result;
    int ret;

    tvl_decode_params_init(&p, sizeof(p));
    p.reduce          = avctx->lowres;
    p.temporal_reduce = s->reduce_rate;
    p.max_layers      = s->layers;
    p.threads         = avctx->thread_count;
    p.keep_partial    = !!(avctx->flags & AV_CODEC_FLAG_OUTPUT_CORRUPT);
    p.verify_hash     = !!(avctx->err_recognition & AV_EF_CRCCHECK);
    result = tvl_decoder_open_packets(s->decoder, head, size, &p);
    if (result != TVL_OK)
        return error_of(avctx, result);
    tvl_video_init(&s->video, sizeof(s->video));
    result = tvl_decoder_video(s->decoder, &s->video);
    if (result != TVL_OK)
        return error_of(avctx, result);
    ret = set_format(avctx);
    s->is_open = ret >= 0;
    s->damaged = 0;
    return ret;
}

static av_cold int trivelet_init(AVCodecContext *avctx)
{
    TriveletDecoder *s = avctx->priv_data;

    s->pkt     = av_packet_alloc();
    s->decoder = tvl_decoder_new();
    if (!s->pkt || !s->decoder)
        return AVERROR(ENOMEM);
    tvl_decoder_set_log(s->decoder, say, avctx);
    return avctx->extradata_size > 0 ? open_stream(avctx, avctx->extradata, avctx->extradata_size) : 0;
}

static void drop_frames(TriveletDecoder *s)
{
    for (int i = 0; i < s->capacity; i++)
        av_frame_unref(s->frames[i]);
    s->count = s->next = 0;
}

static int make_frames(TriveletDecoder *s, int count)
{
    AVFrame **frames;

    if (count <= s->capacity)
        return 0;
    frames = av_realloc_array(s->frames, count, sizeof(*frames));
    if (!frames)
        return AVERROR(ENOMEM);
    s->frames = frames;
    for (; s->capacity < count; s->capacity++)
        if (!(s->frames[s->capacity] = av_frame_alloc()))
            return AVERROR(ENOMEM);
    return 0;
}

/// HDR, which is the stream's and goes to each frame.
static int set_hdr(TriveletDecoder *s, AVFrame *frame)
{
    tvl_metadata m;

    tvl_metadata_init(&m, sizeof(m));
    if (tvl_decoder_metadata(s->decoder, &m) != TVL_OK)
        return 0;
    if (m.has_mastering_display) {
        AVMasteringDisplayMetadata *display = av_mastering_display_metadata_create_side_data(frame);
        if (!display)
            return AVERROR(ENOMEM);
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 2; k++)
                display->display_primaries[i][k] = av_make_q(m.chromaticity[2 * i + k], 50000);
        display->white_point[0] = av_make_q(m.chromaticity[6], 50000);
        display->white_point[1] = av_make_q(m.chromaticity[7], 50000);
        display->max_luminance  = av_make_q(m.max_luminance, 10000);
        display->min_luminance  = av_make_q(m.min_luminance, 10000);
        display->has_primaries = display->has_luminance = 1;
    }
    if (m.has_content_light) {
        AVContentLightMetadata *light = av_content_light_metadata_create_side_data(frame);
        if (!light)
            return AVERROR(ENOMEM);
        light->MaxCLL  = m.max_content_light;
        light->MaxFALL = m.max_frame_average;
    }
    return 0;
}

/**
 * Sets the times of the frames of a packet. The packet's own time is the first
 * frame's, which a container may have rounded or shifted; the GOP knows the
 * distances.
 */
static void set_times(AVCodecContext *avctx, const tvl_frame *out, int64_t packet_time)
{
    TriveletDecoder *s = avctx->priv_data;
    const AVRational to = avctx->pkt_timebase.num > 0 ? avctx->pkt_timebase : s->time_base;

    for (int i = 0; i < s->count; i++) {
        AVFrame *frame = s->frames[i];
        const int64_t since = packet_time == AV_NOPTS_VALUE ? 0 : out[0].pts;

        frame->pts = av_rescale_q(out[i].pts - since, s->time_base, to);
        if (packet_time != AV_NOPTS_VALUE)
            frame->pts += packet_time;
        frame->pkt_dts = AV_NOPTS_VALUE;
#if LIBAVUTIL_VERSION_MAJOR >= 58
        frame->duration = av_rescale_q(out[i].duration, s->time_base, to);
#else
        frame->pkt_duration = av_rescale_q(out[i].duration, s->time_base, to);
#endif
    }
}

static int decode_packet(AVCodecContext *avctx, const AVPacket *pkt)
{
    TriveletDecoder *s = avctx->priv_data;
    const AVPixFmtDescriptor *desc;
    tvl_packet about;
    tvl_decode_stats stats;
    tvl_frame *out;
    tvl_result result;
    uint64_t wanted = 0, count = 0;
    int ret;

    drop_frames(s);
    if (!s->is_open && (ret = open_stream(avctx, pkt->data, pkt->size)) < 0)
        return ret;
    tvl_packet_init(&about, sizeof(about));
    if (tvl_decoder_look_at_packet(s->decoder, pkt->data, pkt->size, &about) == TVL_OK &&
        about.kind != TVL_PACKET_GOP)
        return 0;
    result = tvl_decoder_packet(s->decoder, pkt->data, pkt->size, &wanted);
    if (result != TVL_OK)
        return error_of(avctx, result);
    if (wanted == 0) // an open GOP whose references were jumped over
        return 0;
    ret = make_frames(s, wanted);
    if (ret < 0)
        return ret;
    out = av_calloc(wanted, sizeof(*out));
    if (!out)
        return AVERROR(ENOMEM);
    desc = av_pix_fmt_desc_get(avctx->pix_fmt);
    for (int i = 0; i < wanted; i++) {
        ret = ff_get_buffer(avctx, s->frames[i], 0);
        if (ret < 0)
            goto end;
        for (int c = 0; c < desc->nb_components; c++) {
            // Grey with alpha is the one format whose components share a plane.
            const int packed = !(desc->flags & AV_PIX_FMT_FLAG_PLANAR) && desc->nb_components == 2;
            const int plane  = packed ? 0 : c;

            out[i].planes[c].data          = s->frames[i]->data[plane] + (packed ? desc->comp[c].offset : 0);
            out[i].planes[c].row_stride    = s->frames[i]->linesize[plane];
            out[i].planes[c].sample_stride = packed ? desc->comp[c].step : 0;
        }
    }
    result = tvl_decoder_read(s->decoder, out, wanted, &count);
    s->count = count;
    if (result != TVL_OK) {
        ret = error_of(avctx, result);
        s->count = 0;
        goto end;
    }
    tvl_decode_stats_init(&stats, sizeof(stats));
    tvl_decoder_stats(s->decoder, &stats);
    set_times(avctx, out, pkt->pts != AV_NOPTS_VALUE ? pkt->pts : pkt->dts);
    for (int i = 0; i < s->count; i++) {
        AVFrame *frame   = s->frames[i];
        const int is_key = i == 0 && about.key;

        frame->pict_type = is_key ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_B;
#if LIBAVUTIL_VERSION_MAJOR >= 58
        frame->flags &= ~AV_FRAME_FLAG_KEY;
        if (is_key)
            frame->flags |= AV_FRAME_FLAG_KEY;
        if (s->video.field_order != 0)
            frame->flags |= AV_FRAME_FLAG_INTERLACED;
        if (s->video.field_order == 1)
            frame->flags |= AV_FRAME_FLAG_TOP_FIELD_FIRST;
#else
        frame->key_frame        = is_key;
        frame->interlaced_frame = s->video.field_order != 0;
        frame->top_field_first  = s->video.field_order == 1;
#endif
        if (stats.damaged_gops > s->damaged)
            frame->flags |= AV_FRAME_FLAG_CORRUPT;
        if ((ret = set_hdr(s, frame)) < 0)
            goto end;
    }
    s->damaged = stats.damaged_gops;
end:
    if (ret < 0)
        drop_frames(s);
    av_free(out);
    return ret;
}

static int trivelet_receive_frame(AVCodecContext *avctx, AVFrame *frame)
{
    TriveletDecoder *s = avctx->priv_data;
    int ret;

    while (s->next == s->count) {
        ret = ff_decode_get_packet(avctx, s->pkt);
        if (ret < 0)
            return ret;
        ret = decode_packet(avctx, s->pkt);
        av_packet_unref(s->pkt);
        if (ret < 0)
            return ret;
    }
    av_frame_move_ref(frame, s->frames[s->next++]);
    return 0;
}

static void trivelet_flush(AVCodecContext *avctx)
{
    TriveletDecoder *s = avctx->priv_data;

    drop_frames(s);
    if (s->is_open)
        tvl_decoder_flush(s->decoder);
}

static av_cold int trivelet_close(AVCodecContext *avctx)
{
    TriveletDecoder *s = avctx->priv_data;

    for (int i = 0; i < s->capacity; i++)
        av_frame_free(&s->frames[i]);
    av_freep(&s->frames);
    av_packet_free(&s->pkt);
    tvl_decoder_free(s->decoder);
    s->decoder = NULL;
    return 0;
}

#define OFFSET(x) offsetof(TriveletDecoder, x)
#define VD AV_OPT_FLAG_VIDEO_PARAM | AV_OPT_FLAG_DECODING_PARAM
static const AVOption options[] = {
    { "layers", "quality layers to decode, 0 = all", OFFSET(layers), AV_OPT_TYPE_INT, { .i64 = 0 }, 0, 16, VD },
    { "reduce_rate", "halve the frame rate so many times", OFFSET(reduce_rate), AV_OPT_TYPE_INT, { .i64 = 0 }, 0, 8, VD },
    { NULL },
};

static const AVClass trivelet_decoder_class = {
    .class_name = "libtrivelet decoder",
    .item_name  = av_default_item_name,
    .option     = options,
    .version    = LIBAVUTIL_VERSION_INT,
};

const FFCodec ff_libtrivelet_decoder = {
    .p.name         = "libtrivelet",
    TRIVELET_LONG_NAME,
    .p.type         = AVMEDIA_TYPE_VIDEO,
    .p.id           = AV_CODEC_ID_TRIVELET,
    .p.capabilities = AV_CODEC_CAP_DR1 | AV_CODEC_CAP_OTHER_THREADS,
    .p.max_lowres   = 8,
    .p.priv_class   = &trivelet_decoder_class,
    .p.wrapper_name = "libtrivelet",
    .priv_data_size = sizeof(TriveletDecoder),
    .init           = trivelet_init,
    .close          = trivelet_close,
    .flush          = trivelet_flush,
    FF_CODEC_RECEIVE_FRAME_CB(trivelet_receive_frame),
    #if LIBAVCODEC_VERSION_MAJOR >= 60 // where it is the rule
    .caps_internal  = FF_CODEC_CAP_INIT_CLEANUP | FF_CODEC_CAP_AUTO_THREADS,
#else
    .caps_internal  = FF_CODEC_CAP_INIT_THREADSAFE | FF_CODEC_CAP_INIT_CLEANUP | FF_CODEC_CAP_AUTO_THREADS,
#endif
};
