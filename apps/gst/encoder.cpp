// tvlenc: raw video into a .tvl stream for filesink, or into packets for matroskamux. That element takes the codecs
// that it knows; of the caps video/x-wmv it writes any FourCC, CodecPrivate and packets as they are (FORMAT.md
// "In Matroska").
#include "apps/gst/elements.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "apps/gst/formats.h"
#include "apps/players/player_times.h"
#include "trivelet/codec.h"

namespace {

using namespace trivelet;

constexpr int kTicksPerFrame = 1000;  // of the clock: fine enough for any frame times, and exact for even ones

struct Packet {
  PacketInfo info;
  std::vector<std::uint8_t> bytes;
};

/// The packets that are ready, which other threads may write.
class Packets final : public ByteSink {
 public:
  void write(const void* data, std::size_t size) override {
    const auto* p = static_cast<const std::uint8_t*>(data);
    begun_.insert(begun_.end(), p, p + size);
  }
  void end_packet(const PacketInfo& info) override {
    const std::lock_guard lock(mutex_);
    ready_.push_back({info, std::exchange(begun_, {})});
  }
  std::vector<Packet> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(ready_, {});
  }

 private:
  std::vector<std::uint8_t> begun_;  ///< of the thread that writes
  std::mutex mutex_;
  std::vector<Packet> ready_;
};

struct Session {
  explicit Session(const VideoInfo& video, const EncoderParams& params)
      : info(video), encoder(info, params, packets), gop(encoder.make_gop()) {}

  VideoInfo info;
  Packets packets;
  Encoder encoder;
  Gop gop;
  int filled = 0;
  std::int64_t last_pts = INT64_MIN;
  std::int64_t end_pts = 0;          ///< of what was pushed
  std::vector<std::uint8_t> head{};  ///< for packets; empty: the bytes of a file are pushed
};

}  // namespace

enum class Preset { kFast, kMedium, kSlow };

struct TvlEnc {
  GstElement parent;
  GstPad* sink;
  GstPad* src;
  double quality;
  gboolean lossless;
  int bitrate;
  int max_bitrate;
  Preset preset;
  Motion motion;
  int gop_frames;
  int threads;
  GstVideoInfo input;
  GstSegment segment;
  Session* session;
};
struct TvlEncClass {
  GstElementClass parent_class;
};

G_DEFINE_TYPE(TvlEnc, tvl_enc, GST_TYPE_ELEMENT)

namespace {

enum Property { kQuality = 1, kLossless, kBitrate, kMaxBitrate, kPreset, kMotion, kGop, kThreads };

GType preset_type() {
  static const GEnumValue values[] = {
      {static_cast<int>(Preset::kFast), "The fast entropy coder: larger, in a tenth of the time", "fast"},
      {static_cast<int>(Preset::kMedium), "The usual one", "medium"},
      {static_cast<int>(Preset::kSlow), "Smaller, in twice the time", "slow"},
      {0, nullptr, nullptr},
  };
  static const GType type = g_enum_register_static("TvlEncPreset", values);
  return type;
}

GType motion_type() {
  static const GEnumValue values[] = {
      {static_cast<int>(Motion::kOff), "In no GOP", "off"},
      {static_cast<int>(Motion::kOn), "In all GOPs", "on"},
      {static_cast<int>(Motion::kAuto), "In the GOPs that then take fewer bits", "auto"},
      {static_cast<int>(Motion::kDefault), "auto, or off with preset=fast", "default"},
      {0, nullptr, nullptr},
  };
  static const GType type = g_enum_register_static("TvlEncMotion", values);
  return type;
}

TvlEnc* encoder_of(gpointer object) { return static_cast<TvlEnc*>(object); }

GstClockTime clock_time(const Session& s, std::int64_t pts) {
  return static_cast<GstClockTime>(
      player_time(static_cast<double>(pts), s.info.time_base.value() * static_cast<double>(GST_SECOND)));
}

/// A GOP, or the end of the stream, for a muxer.
GstBuffer* buffer_of(Session& s, Packet& packet) {
  const PacketInfo& info = packet.info;
  const bool gop = info.kind == PacketInfo::Kind::kGop;
  const std::int64_t begin = gop ? info.begin_pts : s.end_pts;
  if (gop) s.end_pts = info.end_pts;
  if (gop && info.key) packet.bytes.insert(packet.bytes.begin(), s.head.begin(), s.head.end());
  GstBuffer* buffer = gst_buffer_new_memdup(packet.bytes.data(), packet.bytes.size());
  // Without a duration: matroskamux writes no key flags for those that have one.
  GST_BUFFER_PTS(buffer) = GST_BUFFER_DTS(buffer) = clock_time(s, begin);
  if (!gop || !info.key) GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT);
  return buffer;
}

GstFlowReturn push_packets(TvlEnc* self) {
  Session& s = *self->session;
  GstFlowReturn flow = GST_FLOW_OK;
  for (Packet& packet : s.packets.take()) {
    if (flow != GST_FLOW_OK) break;
    flow = gst_pad_push(self->src, s.head.empty() ? gst_buffer_new_memdup(packet.bytes.data(), packet.bytes.size())
                                                  : buffer_of(s, packet));
  }
  return flow;
}

GstFlowReturn encode_gop(TvlEnc* self) {
  Session& s = *self->session;
  if (s.filled == 0) return GST_FLOW_OK;
  s.gop.set_frames(s.filled);
  s.encoder.push(s.gop);
  s.gop.set_frames(0);
  s.filled = 0;
  return push_packets(self);
}

EncoderParams params_of(const TvlEnc* self) {
  EncoderParams params;
  params.quality = self->quality;
  params.lossless = self->lossless != FALSE;
  params.threads = self->threads;
  params.gop_frames = self->gop_frames;
  params.bit_rate = 1000.0 * self->bitrate;
  params.max_rate = 1000.0 * self->max_bitrate;
  if (self->preset == Preset::kFast) params.profile = Profile::kFast;
  if (self->preset == Preset::kSlow) params.effort = Effort::kSlow;
  params.motion = self->motion;
  return params;
}

/// Whether what comes behind is a muxer, and not a file.
bool wants_packets(TvlEnc* self) {
  GstCaps* allowed = gst_pad_get_allowed_caps(self->src);
  if (allowed == nullptr) return false;
  const GstStructure* first = gst_caps_is_empty(allowed) ? nullptr : gst_caps_get_structure(allowed, 0);
  const bool wants = first != nullptr && gst_structure_has_name(first, "video/x-wmv") != FALSE;
  gst_caps_unref(allowed);
  return wants;
}

/// Caps and segment of what is pushed.
void announce(TvlEnc* self) {
  Session& s = *self->session;
  if (!wants_packets(self)) {
    GstCaps* caps = gst_caps_new_empty_simple("video/x-trivelet");
    gst_pad_push_event(self->src, gst_event_new_caps(caps));
    gst_caps_unref(caps);
    gst_segment_init(&self->segment, GST_FORMAT_BYTES);
    gst_pad_push_event(self->src, gst_event_new_segment(&self->segment));
    return;
  }
  s.head = s.packets.take().at(0).bytes;
  GstBuffer* head = gst_buffer_new_memdup(s.head.data(), s.head.size());
  GstCaps* caps =
      gst_caps_new_simple("video/x-wmv", "wmvversion", G_TYPE_INT, 3, "format", G_TYPE_STRING, "TRVL", "width",
                          G_TYPE_INT, s.info.width, "height", G_TYPE_INT, s.info.height, "framerate", GST_TYPE_FRACTION,
                          s.info.frame_rate.num, std::max(1, s.info.frame_rate.den), "pixel-aspect-ratio",
                          GST_TYPE_FRACTION, std::max(1, s.info.sample_aspect.num),
                          std::max(1, s.info.sample_aspect.den), "codec_data", GST_TYPE_BUFFER, head, nullptr);
  gst_pad_push_event(self->src, gst_event_new_caps(caps));
  gst_caps_unref(caps);
  gst_buffer_unref(head);
  if (self->segment.format != GST_FORMAT_TIME) gst_segment_init(&self->segment, GST_FORMAT_TIME);
  gst_pad_push_event(self->src, gst_event_new_segment(&self->segment));
}

bool set_caps(TvlEnc* self, GstCaps* caps) {
  GstVideoInfo input;
  if (!gst_video_info_from_caps(&input, caps)) return false;
  if (self->session != nullptr) {
    if (gst_video_info_is_equal(&input, &self->input)) return true;
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("a stream has one format; it changed"), (nullptr));
    return false;
  }
  self->input = input;
  VideoInfo info = gst::describe(input);
  constexpr std::int32_t kMostTicks = INT32_MAX / kTicksPerFrame;
  if (info.frame_rate.num > 0 && info.frame_rate.num < kMostTicks)
    info.time_base = {info.frame_rate.den, info.frame_rate.num * kTicksPerFrame};
  else
    info.time_base = {1, 1'000'000};
  try {
    self->session = new Session(info, params_of(self));
  } catch (const std::exception& e) {
    GST_ELEMENT_ERROR(self, STREAM, ENCODE, ("%s", e.what()), (nullptr));
    return false;
  }
  return true;
}

FrameTime time_of(Session& s, const GstBuffer* buffer) {
  const double ticks = 1 / (s.info.time_base.value() * static_cast<double>(GST_SECOND));
  FrameTime time{s.last_pts == INT64_MIN ? 0 : s.last_pts + kTicksPerFrame, kTicksPerFrame};
  if (GST_BUFFER_PTS_IS_VALID(buffer)) time.pts = player_time(static_cast<double>(GST_BUFFER_PTS(buffer)), ticks);
  if (GST_BUFFER_DURATION_IS_VALID(buffer))
    time.duration = player_time(static_cast<double>(GST_BUFFER_DURATION(buffer)), ticks);
  // A thousandth of a frame beside is rounding to nanoseconds.
  if (time.duration == kTicksPerFrame - 1 || time.duration == kTicksPerFrame + 1) time.duration = kTicksPerFrame;
  if (s.last_pts != INT64_MIN && time.pts <= s.last_pts) time.pts = s.last_pts + 1;
  s.last_pts = time.pts;
  return time;
}

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
  TvlEnc* self = encoder_of(parent);
  const std::unique_ptr<GstBuffer, void (*)(GstBuffer*)> owner(buffer, [](GstBuffer* b) { gst_buffer_unref(b); });
  if (self->session == nullptr) return GST_FLOW_NOT_NEGOTIATED;
  if (self->session->last_pts == INT64_MIN) announce(self);
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, &self->input, buffer, GST_MAP_READ)) {
    GST_ELEMENT_ERROR(self, STREAM, ENCODE, ("a frame cannot be read"), (nullptr));
    return GST_FLOW_ERROR;
  }
  Session& s = *self->session;
  gst::copy_in(frame, s.gop, s.filled);
  gst_video_frame_unmap(&frame);
  try {
    s.gop.times()[static_cast<std::size_t>(s.filled)] = time_of(s, buffer);
    ++s.filled;
    return s.filled < s.gop.capacity() ? GST_FLOW_OK : encode_gop(self);
  } catch (const std::exception& e) {
    GST_ELEMENT_ERROR(self, STREAM, ENCODE, ("%s", e.what()), (nullptr));
    return GST_FLOW_ERROR;
  }
}

void close(TvlEnc* self) {
  delete self->session;
  self->session = nullptr;
}

/// Writes the remaining frames and the index.
void end_stream(TvlEnc* self) {
  if (self->session == nullptr) return;
  try {
    if (encode_gop(self) == GST_FLOW_OK) {
      self->session->encoder.finish();
      push_packets(self);
    }
  } catch (const std::exception& e) {
    GST_ELEMENT_ERROR(self, STREAM, ENCODE, ("%s", e.what()), (nullptr));
  }
  close(self);
}

gboolean sink_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  TvlEnc* self = encoder_of(parent);
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_CAPS: {
      GstCaps* caps = nullptr;
      gst_event_parse_caps(event, &caps);
      const bool good = set_caps(self, caps);
      gst_event_unref(event);
      return good;
    }
    case GST_EVENT_SEGMENT:
      gst_event_copy_segment(event, &self->segment);
      gst_event_unref(event);  // the bytes of a file have a segment of their own
      return TRUE;
    case GST_EVENT_EOS: end_stream(self); break;
    default: break;
  }
  return gst_pad_event_default(pad, parent, event);
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  TvlEnc* self = encoder_of(object);
  switch (id) {
    case kQuality: self->quality = g_value_get_double(value); break;
    case kLossless: self->lossless = g_value_get_boolean(value); break;
    case kBitrate: self->bitrate = g_value_get_int(value); break;
    case kMaxBitrate: self->max_bitrate = g_value_get_int(value); break;
    case kPreset: self->preset = static_cast<Preset>(g_value_get_enum(value)); break;
    case kMotion: self->motion = static_cast<Motion>(g_value_get_enum(value)); break;
    case kGop: self->gop_frames = g_value_get_int(value); break;
    default: self->threads = g_value_get_int(value); break;
  }
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  const TvlEnc* self = encoder_of(object);
  switch (id) {
    case kQuality: g_value_set_double(value, self->quality); break;
    case kLossless: g_value_set_boolean(value, self->lossless); break;
    case kBitrate: g_value_set_int(value, self->bitrate); break;
    case kMaxBitrate: g_value_set_int(value, self->max_bitrate); break;
    case kPreset: g_value_set_enum(value, static_cast<int>(self->preset)); break;
    case kMotion: g_value_set_enum(value, static_cast<int>(self->motion)); break;
    case kGop: g_value_set_int(value, self->gop_frames); break;
    default: g_value_set_int(value, self->threads); break;
  }
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange change) {
  const GstStateChangeReturn result = GST_ELEMENT_CLASS(tvl_enc_parent_class)->change_state(element, change);
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY) close(encoder_of(element));
  return result;
}

void finalize(GObject* object) {
  close(encoder_of(object));
  G_OBJECT_CLASS(tvl_enc_parent_class)->finalize(object);
}

GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS("video/x-trivelet; video/x-wmv, wmvversion=(int)3, format=(string)TRVL"));

}  // namespace

static void tvl_enc_class_init(TvlEncClass* type) {
  GObjectClass* object = G_OBJECT_CLASS(type);
  GstElementClass* element = GST_ELEMENT_CLASS(type);
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  element->change_state = change_state;
  const EncoderParams usual;
  const auto flags = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  const auto add = [object](Property id, GParamSpec* spec) { g_object_class_install_property(object, id, spec); };
  add(kQuality, g_param_spec_double("quality", "Quality", "0..100; 12 more halve the step of the quantiser", 0, 100,
                                    usual.quality, flags));
  add(kLossless, g_param_spec_boolean("lossless", "Lossless", "Exact", FALSE, flags));
  add(kBitrate,
      g_param_spec_int("bitrate", "Bit rate", "Most kbit/s of the whole, which is written at the end; 0 = off", 0,
                       G_MAXINT, 0, flags));
  add(kMaxBitrate,
      g_param_spec_int("max-bitrate", "Bound on the rate", "Most kbit/s of any second: what takes more is cut; 0 = off",
                       0, G_MAXINT, 0, flags));
  add(kPreset,
      g_param_spec_enum("preset", "Preset", "Time and size", preset_type(), static_cast<int>(Preset::kMedium), flags));
  add(kMotion,
      g_param_spec_enum("motion", "Motion", "Motion compensation: half as large, in two to four times the time",
                        motion_type(), static_cast<int>(usual.motion), flags));
  add(kGop, g_param_spec_int("gop", "GOP", "Frames of a GOP; 0 = as suits the video", 0, 128, usual.gop_frames, flags));
  add(kThreads, g_param_spec_int("threads", "Threads", "Threads; 0 = one per core", 0, 1024, 0, flags));
  GstCaps* caps = gst_caps_from_string(gst::raw_caps());
  gst_element_class_add_pad_template(element, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
  gst_element_class_add_static_pad_template(element, &src_template);
  gst_element_class_set_static_metadata(element, "Trivelet video encoder", "Codec/Encoder/Video",
                                        "Encodes Trivelet streams", "Trivelet");
}

static void tvl_enc_init(TvlEnc* self) {
  self->quality = EncoderParams{}.quality;
  self->preset = Preset::kMedium;
  gst_segment_init(&self->segment, GST_FORMAT_TIME);
  self->motion = EncoderParams{}.motion;
  self->gop_frames = EncoderParams{}.gop_frames;
  self->sink =
      gst_pad_new_from_template(gst_element_class_get_pad_template(GST_ELEMENT_GET_CLASS(self), "sink"), "sink");
  gst_pad_set_chain_function(self->sink, chain);
  gst_pad_set_event_function(self->sink, sink_event);
  gst_element_add_pad(GST_ELEMENT(self), self->sink);
  self->src = gst_pad_new_from_static_template(&src_template, "src");
  gst_pad_use_fixed_caps(self->src);
  gst_element_add_pad(GST_ELEMENT(self), self->src);
}
