// A module for VLC 3 that decodes Trivelet streams in Matroska. VLC does the rest: sound, subtitles, seeking.
//
// A packet is a GOP and is decoded when it arrives (PacketDecoder). VLC gets buffers for the pictures of
// one GOP, as many as it can have, so that the next is decoded while they are shown. Samples for which VLC has no name
// lose their lowest bits.
//
// --trivelet-layers and --trivelet-reduce decode less.

#include <vlc_common.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include <vlc_block.h>
#include <vlc_codec.h>
#include <vlc_plugin.h>

#include "apps/players/player_request.h"
#include "apps/players/player_times.h"

namespace {

using namespace trivelet;

/// VLC's name of planes, and how many bits its samples have.
struct Chroma {
  vlc_fourcc_t code = 0;
  int bits = 8;
};

std::optional<Chroma> chroma_of(const PixelFormat& f) {
  const int bits = f.bits <= 8 ? 8 : f.bits <= 10 ? 10 : 12;
  const auto pick = [bits](vlc_fourcc_t eight, vlc_fourcc_t ten, vlc_fourcc_t twelve) {
    return Chroma{bits == 8 ? eight : bits == 10 ? ten : twelve, bits};
  };
  if (f.model == ColourModel::kGrey) return pick(VLC_CODEC_GREY, VLC_CODEC_GREY_10L, VLC_CODEC_GREY_12L);
  if (f.model == ColourModel::kRgb) {
    if (bits == 12) return Chroma{VLC_CODEC_GBR_PLANAR_10L, 10};
    return pick(VLC_CODEC_GBR_PLANAR, VLC_CODEC_GBR_PLANAR_10L, 0);
  }
  if (f.log2_chroma_w == 1 && f.log2_chroma_h == 1) return pick(VLC_CODEC_I420, VLC_CODEC_I420_10L, VLC_CODEC_I420_12L);
  if (f.log2_chroma_w == 1 && f.log2_chroma_h == 0) return pick(VLC_CODEC_I422, VLC_CODEC_I422_10L, VLC_CODEC_I422_12L);
  if (f.log2_chroma_w == 0 && f.log2_chroma_h == 0) return pick(VLC_CODEC_I444, VLC_CODEC_I444_10L, VLC_CODEC_I444_12L);
  if (f.log2_chroma_w == 2 && f.log2_chroma_h == 0 && bits == 8) return Chroma{VLC_CODEC_I411, 8};
  return std::nullopt;
}

void describe(decoder_t* vlc, const VideoInfo& info, const Chroma& chroma) {
  es_format_t& out = vlc->fmt_out;
  out.i_codec = chroma.code;
  video_format_t& v = out.video;
  video_format_Setup(&v, chroma.code, info.width, info.height, info.width, info.height,
                     info.sample_aspect.num > 0 ? info.sample_aspect.num : 1,
                     info.sample_aspect.num > 0 ? info.sample_aspect.den : 1);
  v.i_frame_rate = static_cast<unsigned>(std::max(info.frame_rate.num, 0));
  v.i_frame_rate_base = static_cast<unsigned>(std::max(info.frame_rate.den, 1));
  v.b_color_range_full = info.colour.range == 2;
  v.orientation = info.rotation == 90    ? (info.mirrored ? ORIENT_ANTI_TRANSPOSED : ORIENT_ROTATED_90)
                  : info.rotation == 180 ? (info.mirrored ? ORIENT_VFLIPPED : ORIENT_ROTATED_180)
                  : info.rotation == 270 ? (info.mirrored ? ORIENT_TRANSPOSED : ORIENT_ROTATED_270)
                  : info.mirrored        ? ORIENT_HFLIPPED
                                         : ORIENT_NORMAL;
  switch (info.colour.matrix) {
    case 1: v.space = COLOR_SPACE_BT709; break;
    case 5:
    case 6: v.space = COLOR_SPACE_BT601; break;
    case 9:
    case 10: v.space = COLOR_SPACE_BT2020; break;
    default: break;
  }
}

/// Copies a plane into VLC's, whose samples have `bits` bits in the lower part of bytes or words.
void copy_plane(const VolumeView& from, int frame, int shift, bool bytes, plane_t& to) {
  for (int y = 0; y < std::min(from.shape.height, to.i_lines); ++y) {
    const std::byte* in = from.row(frame, y);
    std::uint8_t* out = to.p_pixels + static_cast<std::ptrdiff_t>(y) * to.i_pitch;
    if (shift == 0) {
      std::memcpy(out, in, from.row_bytes());
      continue;
    }
    for (int x = 0; x < from.shape.width; ++x) {
      int v = from.bytes_per_sample == 1 ? static_cast<int>(in[x]) : reinterpret_cast<const std::uint16_t*>(in)[x];
      v = shift > 0 ? v >> shift : v << -shift;
      if (bytes)
        out[x] = static_cast<std::uint8_t>(v);
      else
        reinterpret_cast<std::uint16_t*>(out)[x] = static_cast<std::uint16_t>(v);
    }
  }
}

/// Pictures that VLC is to have room for, beside its own. The pictures of a longer GOP wait until VLC has shown some.
int extra_pictures(const VideoInfo& info, const Gop& gop) {
  // VLC 3 keeps all pictures of an output in one pool of at most 64 (src/misc/picture_pool.c) and opens no output where
  // it would need more. Its own are about ten.
  constexpr std::size_t kMostPictures = 48;
  constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  std::size_t bytes = 1;
  for (int c = 0; c < gop.components(); ++c)
    bytes += gop.plane(c).row_bytes() * static_cast<std::size_t>(info.component_height(c));
  return static_cast<int>(std::min({static_cast<std::size_t>(gop.capacity()), kMostPictures, kMostBytes / bytes}));
}

void show(decoder_t* vlc, const VideoInfo& info, const Gop& gop, mtime_t time) {
  const std::optional<Chroma> chroma = chroma_of(info.format);
  require(chroma.has_value(), ErrorKind::kUnsupported, "VLC has no name for " + trivelet::to_string(info.format));
  describe(vlc, info, *chroma);
  vlc->i_extra_picture_buffers = extra_pictures(info, gop);
  if (decoder_UpdateVideoFormat(vlc) != 0) return;
  for (int f = 0; f < gop.frames(); ++f) {
    picture_t* picture = decoder_NewPicture(vlc);
    if (picture == nullptr) return;
    const int planes = std::min(picture->i_planes, gop.components());
    for (int c = 0; c < planes; ++c)
      copy_plane(gop.plane(c), f, info.format.bits - chroma->bits, chroma->bits == 8, picture->p[c]);
    const double since = ticks_between(gop.times()[0], gop.times()[static_cast<std::size_t>(f)]);
    picture->date = std::min<mtime_t>(time, kMostPlayerTime) + player_time(since, info.time_base.value() * CLOCK_FREQ);
    picture->b_progressive = info.field_order == 0;
    decoder_QueueVideo(vlc, picture);
  }
}

struct State {
  PacketDecoder packets;
  PacketDecoder::Decoded decoded;
};

State& state_of(decoder_t* vlc) { return *reinterpret_cast<State*>(vlc->p_sys); }

int decode(decoder_t* vlc, block_t* block) {
  if (block == nullptr) return VLCDEC_SUCCESS;
  const std::unique_ptr<block_t, void (*)(block_t*)> owner(block, [](block_t* b) { block_Release(b); });
  State& s = state_of(vlc);
  try {
    if (!s.packets.add(block->p_buffer, block->i_buffer)) return VLCDEC_SUCCESS;
    // Matroska's time for this kind of track is that of decoding.
    const mtime_t time = block->i_pts > VLC_TS_INVALID ? block->i_pts : block->i_dts;
    const PlayerRequest wanted = {static_cast<int>(var_InheritInteger(vlc, "trivelet-layers")),
                                  static_cast<int>(var_InheritInteger(vlc, "trivelet-reduce")), 0};
    if (s.packets.decode(request_for(s.packets, wanted), s.decoded)) show(vlc, s.decoded.info, s.decoded.gop, time);
  } catch (const std::exception& e) {
    msg_Err(vlc, "%s", e.what());
  }
  return VLCDEC_SUCCESS;
}

void flush(decoder_t* vlc) { state_of(vlc).packets.clear(); }

int open_decoder(vlc_object_t* object) {
  auto* vlc = reinterpret_cast<decoder_t*>(object);
  if (vlc->fmt_in.i_codec != VLC_FOURCC('T', 'R', 'V', 'L')) return VLC_EGENERIC;
  auto* state = new (std::nothrow) State;
  if (state == nullptr) return VLC_ENOMEM;
  vlc->p_sys = reinterpret_cast<decoder_sys_t*>(state);
  vlc->pf_decode = decode;
  vlc->pf_flush = flush;
  return VLC_SUCCESS;
}

void close_decoder(vlc_object_t* object) {
  auto* vlc = reinterpret_cast<decoder_t*>(object);
  msg_Dbg(vlc, "%llu GOPs decoded", static_cast<unsigned long long>(state_of(vlc).packets.stats().gops));
  delete &state_of(vlc);
}

}  // namespace

// clang-format off
vlc_module_begin()
  set_shortname("Trivelet")
  set_description("Trivelet video decoder")
  set_capability("video decoder", 100)
  set_category(CAT_INPUT)
  set_subcategory(SUBCAT_INPUT_VCODEC)
  add_integer("trivelet-layers", 0, "Quality layers", "Decode only this many quality layers; 0 = all", false)
  add_integer("trivelet-reduce", 0, "Halvings", "Number of times to halve width and height", false)
  set_callbacks(open_decoder, close_decoder)
vlc_module_end()
    // clang-format on
