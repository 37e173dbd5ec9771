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
 * Trivelet demuxer, through libtrivelet: header, times and index are read by
 * the library, packets are cut here. A packet is a box of a GOP and those
 * behind it; the head stands before key frames once more, as in Matroska. The
 * last packet is the index.
 */

#include <trivelet/trivelet.h>

#include "libavutil/avstring.h"
#include "libavutil/display.h"
#include "libavutil/mem.h"
#include "libavutil/mastering_display_metadata.h"
#include "libavutil/pixdesc.h"

#include "avformat.h"
#include "demux.h"
#include "internal.h"
#include "trivelet.h"

typedef struct TriveletDemuxer {
    tvl_decoder *packets;                ///< knows the head
    uint8_t box[TRIVELET_BOX_SIZE];      ///< the next box, whose header was read
    int has_box;
    int64_t box_at;
    int64_t end;                         ///< time when the last frame so far ends
    int is_ended;
} TriveletDemuxer;

static int probe(const AVProbeData *p)
{
    if (p->buf_size < 12 || memcmp(p->buf, TRIVELET_SIGNATURE, TRIVELET_SIGNATURE_SIZE))
        return 0;
    return trivelet_is_type(p->buf + 8, "Head") ? AVPROBE_SCORE_MAX : AVPROBE_SCORE_EXTENSION;
}

static int error_of(AVFormatContext *s, tvl_decoder *decoder, tvl_result result)
{
    av_log(s, AV_LOG_ERROR, "%s\n", tvl_decoder_error(decoder));
    switch (result) {
    case TVL_UNSUPPORTED:   return AVERROR_PATCHWELCOME;
    case TVL_OUT_OF_MEMORY: return AVERROR(ENOMEM);
    case TVL_IO:            return AVERROR(EIO);
    default:                return AVERROR_INVALIDDATA;
    }
}

/// Reads the header of the next box. AVERROR_EOF at the end.
static int next_box(AVFormatContext *s)
{
    TriveletDemuxer *d = s->priv_data;
    int ret;

    if (d->has_box)
        return 0;
    d->box_at = avio_tell(s->pb);
    ret = avio_read(s->pb, d->box, TRIVELET_BOX_SIZE);
    if (ret < TRIVELET_BOX_SIZE)
        return ret < 0 ? ret : ret == 0 ? AVERROR_EOF : AVERROR_INVALIDDATA;
    d->has_box = 1;
    return trivelet_is_box(d->box) ? 0 : AVERROR_INVALIDDATA;
}

/// Goes to the next intact header of a GOP or of the index.
static int resync(AVFormatContext *s)
{
    TriveletDemuxer *d = s->priv_data;
    int64_t passed = 0;

    if (!d->has_box)
        return AVERROR_EOF;
    do {
        memmove(d->box, d->box + 1, TRIVELET_BOX_SIZE - 1);
        d->box[TRIVELET_BOX_SIZE - 1] = avio_r8(s->pb);
        d->box_at++;
        passed++;
        if (avio_feof(s->pb))
            return AVERROR_EOF;
    } while (!(trivelet_is_type(d->box, "Gop ") || trivelet_is_type(d->box, "Indx")) || !trivelet_is_box(d->box));
    av_log(s, AV_LOG_WARNING, "Passed over %"PRId64" damaged bytes\n", passed);
    return 0;
}

/// Puts the next box behind what `pkt` holds.
static int append_box(AVFormatContext *s, AVPacket *pkt)
{
    TriveletDemuxer *d = s->priv_data;
    const uint64_t length = AV_RL64(d->box + 4);
    const int at = pkt->size;
    int ret;

    if (length > INT_MAX / 2 - at)
        return AVERROR_INVALIDDATA;
    ret = av_grow_packet(pkt, TRIVELET_BOX_SIZE);
    if (ret < 0)
        return ret;
    memcpy(pkt->data + at, d->box, TRIVELET_BOX_SIZE);
    d->has_box = 0;
    if (length == 0)
        return 0;
    ret = av_append_packet(s->pb, pkt, length);
    if (ret >= 0 && ret < length)
        pkt->flags |= AV_PKT_FLAG_CORRUPT;
    return FFMIN(ret, 0);
}

static int64_t read_avio(void *user, void *data, uint64_t size)
{
    AVFormatContext *s = user;
    int64_t done = 0;

    while (done < size) {
        const int n = avio_read(s->pb, (uint8_t *)data + done, FFMIN(size - done, 1 << 20));
        if (n == AVERROR_EOF || n == 0)
            break;
        if (n < 0)
            return n;
        done += n;
    }
    return done;
}

static int seek_avio(void *user, uint64_t position)
{
    AVFormatContext *s = user;
    const int64_t at = avio_seek(s->pb, position, SEEK_SET);

    return at < 0 ? (int)at : 0;
}

/// The index is a help: without it packets are read one after the other.
static int read_index(AVFormatContext *s, AVStream *st)
{
    const int64_t begin = avio_tell(s->pb);
    tvl_decoder *decoder = tvl_decoder_new();
    tvl_source source;
    tvl_stream_info info;
    tvl_gop gop;

    if (!decoder)
        return AVERROR(ENOMEM);
    tvl_source_init(&source, sizeof(source));
    source.read = read_avio;
    source.seek = seek_avio;
    source.user = s;
    source.size = avio_size(s->pb);
    tvl_stream_info_init(&info, sizeof(info));
    if (avio_seek(s->pb, 0, SEEK_SET) < 0) {
        tvl_decoder_free(decoder);
        return AVERROR(EIO);
    }
    if (tvl_decoder_open(decoder, &source, NULL) == TVL_OK && tvl_decoder_stream(decoder, &info) == TVL_OK)
        for (uint64_t i = 0; i < info.gops; i++) {
            tvl_gop_init(&gop, sizeof(gop));
            if (tvl_decoder_gop(decoder, i, &gop) != TVL_OK)
                break;
            av_add_index_entry(st, gop.offset, gop.pts, FFMIN(gop.bytes, INT_MAX), 0, gop.key ? AVINDEX_KEYFRAME : 0);
            if (i == 0)
                st->start_time = gop.pts;
            st->duration = gop.pts + gop.duration - st->start_time;
        }
    else
        av_log(s, AV_LOG_WARNING, "No index: %s\n", tvl_decoder_error(decoder));
    tvl_decoder_free(decoder);
    return avio_seek(s->pb, begin, SEEK_SET) < 0 ? AVERROR(EIO) : 0;
}

static int set_metadata(AVFormatContext *s, AVStream *st)
{
    TriveletDemuxer *d = s->priv_data;
    tvl_metadata m;

    st->disposition = AV_DISPOSITION_DEFAULT; // unless the stream says otherwise
    tvl_metadata_init(&m, sizeof(m));
    if (tvl_decoder_metadata(d->packets, &m) != TVL_OK)
        return 0;
    for (uint64_t i = 0; i < m.entry_count; i++) {
        const char *key = m.entries[i].key;

        if (!strcmp(key, "disposition")) {
            st->disposition = 0;
            for (const char *word = m.entries[i].value; *word;) {
                char *one = av_get_token(&word, "+");
                const int flag = one ? av_disposition_from_string(one) : 0;

                st->disposition |= FFMAX(flag, 0);
                av_free(one);
                word += *word == '+';
            }
        } else if (av_strstart(key, "track_", &key))
            av_dict_set(&st->metadata, key, m.entries[i].value, 0);
        else
            av_dict_set(strcmp(key, "timecode") && strcmp(key, "language") ? &s->metadata : &st->metadata, key,
                        m.entries[i].value, 0);
    }
    for (uint64_t i = 0; i < m.chapter_count; i++)
        if (!avpriv_new_chapter(s, i, (AVRational){ m.chapter_time_base_num, m.chapter_time_base_den },
                                m.chapters[i].begin, m.chapters[i].end, m.chapters[i].title))
            return AVERROR(ENOMEM);
    return 0;
}

static int32_t *new_display_matrix(AVStream *st)
{
#if LIBAVFORMAT_VERSION_MAJOR >= 61
    AVPacketSideData *data = av_packet_side_data_new(&st->codecpar->coded_side_data, &st->codecpar->nb_coded_side_data,
                                                     AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t), 0);

    return data ? (int32_t *)data->data : NULL;
#else
    return (int32_t *)av_stream_new_side_data(st, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t));
#endif
}

static int set_stream(AVFormatContext *s, AVStream *st, const tvl_video *v)
{
    AVCodecParameters *par = st->codecpar;
    char name[32];

    par->codec_type      = AVMEDIA_TYPE_VIDEO;
    par->codec_id        = AV_CODEC_ID_TRIVELET;
    par->codec_tag       = MKTAG('T', 'R', 'V', 'L');
    par->width           = v->width;
    par->height          = v->height;
    par->format          = tvl_video_format(v, name, sizeof(name)) == TVL_OK ? av_get_pix_fmt(name) : AV_PIX_FMT_NONE;
    par->bits_per_raw_sample = v->bits;
    par->color_primaries = v->primaries;
    par->color_trc       = v->transfer;
    par->color_space     = v->matrix;
    par->color_range     = v->range;
    par->chroma_location = v->chroma_location;
    par->field_order     = v->field_order == 1 ? AV_FIELD_TT : v->field_order == 2 ? AV_FIELD_BB : AV_FIELD_PROGRESSIVE;
    if (v->sample_aspect_num > 0)
        par->sample_aspect_ratio = st->sample_aspect_ratio = av_make_q(v->sample_aspect_num, v->sample_aspect_den);
    if (v->frame_rate_num > 0)
        st->avg_frame_rate = st->r_frame_rate = av_make_q(v->frame_rate_num, v->frame_rate_den);
    st->nb_frames  = v->frames;
    ffstream(st)->need_parsing = AVSTREAM_PARSE_NONE;
    avpriv_set_pts_info(st, 64, v->time_base_num, v->time_base_den);
    if (v->rotation || v->mirrored) {
        int32_t *matrix = new_display_matrix(st);

        if (!matrix)
            return AVERROR(ENOMEM);
        av_display_rotation_set(matrix, v->rotation);
        if (v->mirrored)
            av_display_matrix_flip(matrix, 1, 0);
    }
    return 0;
}

/// Signature and boxes up to the first GOP, which are the codec's extradata.
static int read_head(AVFormatContext *s, AVPacket *head)
{
    TriveletDemuxer *d = s->priv_data;
    int ret = av_get_packet(s->pb, head, TRIVELET_SIGNATURE_SIZE);

    if (ret < TRIVELET_SIGNATURE_SIZE)
        return AVERROR_INVALIDDATA;
    while ((ret = next_box(s)) >= 0 && !trivelet_is_type(d->box, "Gop ") && !trivelet_is_type(d->box, "Indx")) {
        if (AV_RL64(d->box + 4) > TRIVELET_MAX_HEAD - head->size) {
            av_log(s, AV_LOG_ERROR, "More than %d bytes before the first GOP\n", TRIVELET_MAX_HEAD);
            return AVERROR_INVALIDDATA;
        }
        ret = append_box(s, head);
        if (ret < 0)
            return ret;
    }
    return ret == AVERROR_EOF ? 0 : ret;
}

static int read_header(AVFormatContext *s)
{
    TriveletDemuxer *d = s->priv_data;
    AVStream *st = avformat_new_stream(s, NULL);
    AVPacket *head = av_packet_alloc();
    tvl_video v;
    tvl_result result;
    int ret;

    d->packets = tvl_decoder_new();
    if (!st || !head || !d->packets) {
        ret = AVERROR(ENOMEM);
        goto end;
    }
    ret = read_head(s, head);
    if (ret < 0)
        goto end;
    result = tvl_decoder_open_packets(d->packets, head->data, head->size, NULL);
    tvl_video_init(&v, sizeof(v));
    if (result == TVL_OK)
        result = tvl_decoder_video(d->packets, &v);
    if (result != TVL_OK) {
        ret = error_of(s, d->packets, result);
        goto end;
    }
    ret = ff_alloc_extradata(st->codecpar, head->size);
    if (ret < 0)
        goto end;
    memcpy(st->codecpar->extradata, head->data, head->size);
    if ((ret = set_stream(s, st, &v)) < 0 || (ret = set_metadata(s, st)) < 0)
        goto end;
    if (s->pb->seekable & AVIO_SEEKABLE_NORMAL)
        ret = read_index(s, st);
end:
    av_packet_free(&head);
    return ret;
}

static int read_packet(AVFormatContext *s, AVPacket *pkt)
{
    TriveletDemuxer *d = s->priv_data;
    const AVCodecParameters *par = s->streams[0]->codecpar;
    tvl_packet about;
    int64_t at;
    int ret, head = 0;

    if (d->is_ended)
        return AVERROR_EOF;
    ret = next_box(s);
    while (ret == AVERROR_INVALIDDATA ||
           (ret >= 0 && !trivelet_is_type(d->box, "Gop ") && !trivelet_is_type(d->box, "Indx")))
        ret = resync(s);
    if (ret < 0)
        return ret;
    at = d->box_at;
    d->is_ended = trivelet_is_type(d->box, "Indx");
    do {
        ret = append_box(s, pkt);
        if (ret < 0)
            return ret;
        ret = next_box(s);
    } while (ret >= 0 && !trivelet_is_type(d->box, "Gop ") && !trivelet_is_type(d->box, "Indx"));

    tvl_packet_init(&about, sizeof(about));
    if (tvl_decoder_look_at_packet(d->packets, pkt->data, pkt->size, &about) == TVL_OK &&
        about.kind == TVL_PACKET_GOP) {
        pkt->pts      = pkt->dts = about.pts;
        pkt->duration = about.duration;
        d->end        = about.pts + about.duration;
        if (about.key) {
            pkt->flags |= AV_PKT_FLAG_KEY;
            head = par->extradata_size;
        }
    } else {
        pkt->pts = pkt->dts = d->is_ended ? d->end : AV_NOPTS_VALUE;
    }
    if (head > 0) {
        const int size = pkt->size;

        ret = av_grow_packet(pkt, head);
        if (ret < 0)
            return ret;
        memmove(pkt->data + head, pkt->data, size);
        memcpy(pkt->data, par->extradata, head);
    }
    pkt->stream_index = 0;
    pkt->pos = at;
    return 0;
}

static int read_seek(AVFormatContext *s, int stream_index, int64_t timestamp, int flags)
{
    TriveletDemuxer *d = s->priv_data;
    AVStream *st = s->streams[0];
    int number = av_index_search_timestamp(st, timestamp, flags);
    const AVIndexEntry *entry;

    if (number < 0 && !(flags & AVSEEK_FLAG_BACKWARD))
        number = av_index_search_timestamp(st, timestamp, flags | AVSEEK_FLAG_BACKWARD);
    entry = number < 0 ? NULL : avformat_index_get_entry(st, number);
    if (!entry)
        return AVERROR(ENOSYS);
    if (avio_seek(s->pb, entry->pos, SEEK_SET) < 0)
        return AVERROR(EIO);
    d->has_box  = 0;
    d->is_ended = 0;
    avpriv_update_cur_dts(s, st, entry->timestamp);
    return 0;
}

static int read_close(AVFormatContext *s)
{
    TriveletDemuxer *d = s->priv_data;

    tvl_decoder_free(d->packets);
    d->packets = NULL;
    return 0;
}

#if LIBAVFORMAT_VERSION_MAJOR >= 61
const FFInputFormat ff_trivelet_demuxer = {
    .p.name         = "trivelet",
    .p.long_name    = NULL_IF_CONFIG_SMALL("Trivelet wavelet video"),
    .p.extensions   = "tvl",
    .flags_internal = FF_INFMT_FLAG_INIT_CLEANUP,
#else
const AVInputFormat ff_trivelet_demuxer = {
    .name           = "trivelet",
    .long_name      = NULL_IF_CONFIG_SMALL("Trivelet wavelet video"),
    .extensions     = "tvl",
    .flags_internal = FF_FMT_INIT_CLEANUP,
#endif
    .priv_data_size = sizeof(TriveletDemuxer),
    .read_probe     = probe,
    .read_header    = read_header,
    .read_packet    = read_packet,
    .read_seek      = read_seek,
    .read_close     = read_close,
};
