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
 * Trivelet muxer: the packets one after the other are the stream.
 */

#include <trivelet/trivelet.h>

#include "avformat.h"
#include "internal.h"
#include "version_major.h"
#if LIBAVFORMAT_VERSION_MAJOR >= 61
#include "mux.h"
#endif
#include "trivelet.h"

typedef struct TriveletMuxer {
    tvl_decoder *packets;  ///< knows the head
    uint64_t frames;       ///< of the GOPs so far
    int is_part;           ///< not all GOPs of a stream are there, so that its index does not fit
    int is_ended;
} TriveletMuxer;

static int write_header(AVFormatContext *s)
{
    TriveletMuxer *m = s->priv_data;
    const AVCodecParameters *par = s->streams[0]->codecpar;
    int size;

    if (s->nb_streams != 1 || par->codec_id != AV_CODEC_ID_TRIVELET) {
        av_log(s, AV_LOG_ERROR, "A Trivelet file holds one video stream of Trivelet; sound and subtitles go into .mkv\n");
        return AVERROR(EINVAL);
    }
    // Others pad extradata.
    size = trivelet_head_size(par->extradata, par->extradata_size);
    if (size == 0) {
        av_log(s, AV_LOG_ERROR, "The codec's extradata is not the head of a Trivelet stream\n");
        return AVERROR(EINVAL);
    }
    m->packets = tvl_decoder_new();
    if (!m->packets)
        return AVERROR(ENOMEM);
    if (tvl_decoder_open_packets(m->packets, par->extradata, size, NULL) != TVL_OK) {
        av_log(s, AV_LOG_ERROR, "%s\n", tvl_decoder_error(m->packets));
        return AVERROR_INVALIDDATA;
    }
    avpriv_set_pts_info(s->streams[0], 64, s->streams[0]->time_base.num, s->streams[0]->time_base.den);
    avio_write(s->pb, par->extradata, size);
    return 0;
}

static int write_packet(AVFormatContext *s, AVPacket *pkt)
{
    TriveletMuxer *m = s->priv_data;
    const int head = trivelet_head_size(pkt->data, pkt->size);
    tvl_packet about;

    tvl_packet_init(&about, sizeof(about));
    if (tvl_decoder_look_at_packet(m->packets, pkt->data, pkt->size, &about) != TVL_OK) {
        av_log(s, AV_LOG_ERROR, "%s\n", tvl_decoder_error(m->packets));
        return AVERROR_INVALIDDATA;
    }
    if (about.kind == TVL_PACKET_GOP) {
        m->is_part |= about.first_frame != m->frames;
        m->frames   = about.first_frame + about.frames;
    } else if (about.kind == TVL_PACKET_END) {
        if (m->is_part)
            return 0;
        m->is_ended = 1;
    }
    avio_write(s->pb, pkt->data + head, pkt->size - head);
    return 0;
}

static int write_trailer(AVFormatContext *s)
{
    TriveletMuxer *m = s->priv_data;

    if (!m->is_ended)
        av_log(s, AV_LOG_WARNING, "The file has no index and no end, for these are not all packets of a stream; "
               "\"trivelet extract\" cuts streams\n");
    return 0;
}

static void deinit(AVFormatContext *s)
{
    TriveletMuxer *m = s->priv_data;

    tvl_decoder_free(m->packets);
    m->packets = NULL;
}

#if LIBAVFORMAT_VERSION_MAJOR >= 61
const FFOutputFormat ff_trivelet_muxer = {
    .p.name         = "trivelet",
    .p.long_name    = NULL_IF_CONFIG_SMALL("Trivelet wavelet video"),
    .p.extensions   = "tvl",
    .p.audio_codec  = AV_CODEC_ID_NONE,
    .p.video_codec  = AV_CODEC_ID_TRIVELET,
    .p.flags        = AVFMT_VARIABLE_FPS,
#else
const AVOutputFormat ff_trivelet_muxer = {
    .name           = "trivelet",
    .long_name      = NULL_IF_CONFIG_SMALL("Trivelet wavelet video"),
    .extensions     = "tvl",
    .audio_codec    = AV_CODEC_ID_NONE,
    .video_codec    = AV_CODEC_ID_TRIVELET,
    .flags          = AVFMT_VARIABLE_FPS,
#endif
    .priv_data_size = sizeof(TriveletMuxer),
    .write_header   = write_header,
    .write_packet   = write_packet,
    .write_trailer  = write_trailer,
    .deinit         = deinit,
};
