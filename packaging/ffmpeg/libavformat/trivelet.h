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
 * Boxes of Trivelet streams: what demuxer and muxer share.
 */

#ifndef AVFORMAT_TRIVELET_H
#define AVFORMAT_TRIVELET_H

#include <string.h>

#include "libavutil/crc.h"
#include "libavutil/intreadwrite.h"

#define TRIVELET_SIGNATURE "\x89TVL\r\n\x1a\n"
#define TRIVELET_SIGNATURE_SIZE 8
#define TRIVELET_BOX_SIZE 16              ///< type, length, crc
#define TRIVELET_MAX_HEAD (1 << 20)       ///< bytes in front of the first GOP

static inline int trivelet_is_type(const uint8_t *box, const char *type)
{
    return !memcmp(box, type, 4);
}

/// 1 if the header of a box is intact; CRC-32C.
static inline int trivelet_is_box(const uint8_t *box)
{
    AVCRC table[1024];

    if (av_crc_init(table, 1, 32, 0x82F63B78, sizeof(table)) < 0)
        return 0;
    return ~av_crc(table, UINT32_MAX, box, 12) == AV_RL32(box + 12);
}

/// Bytes of the head that stands at the beginning of `data`, up to the first box of a GOP; 0 if there is none.
static inline int trivelet_head_size(const uint8_t *data, int size)
{
    int at = TRIVELET_SIGNATURE_SIZE;

    if (size < at || memcmp(data, TRIVELET_SIGNATURE, at))
        return 0;
    while (size - at >= TRIVELET_BOX_SIZE && trivelet_is_box(data + at) && !trivelet_is_type(data + at, "Gop ")) {
        const uint64_t length = AV_RL64(data + at + 4);

        if (length > size - at - TRIVELET_BOX_SIZE)
            break;
        at += TRIVELET_BOX_SIZE + length;
    }
    return at;
}

#endif /* AVFORMAT_TRIVELET_H */
