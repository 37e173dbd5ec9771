// tvldec: Trivelet streams to raw video. It takes the packets of matroskademux and qtdemux, whose times it keeps, or
// the bytes of a .tvl file. A thread decodes a packet (PacketDecoder) while the frames of the previous one
// are shown.
#include "apps/gst/elements.h"

#include <algorithm>
#include <array>
#include <exception>
#include <future>
#include <optional>
#include <vector>

#include "apps/gst/formats.h"
#include "apps/players/player_request.h"
#include "apps/players/player_times.h"
#include "codec/format/container.h"

namespace {

using namespace trivelet;

/// Cuts the bytes of a stream into packets.
class Splitter {
 public:
  void clear() { *this = {}; }

  /// take(data, size) gets each packet that is whole.
  template <class Take>
  void add(const std::uint8_t* data, std::size_t size, const Take& take) {
    bytes_.insert(bytes_.end(), data, data + size);
    std::size_t at = 0;
    while (step(at, take)) {
    }
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  }

 private:
  /// Takes a complete unit at `at` and moves on; false if more bytes are needed.
  template <class Take>
  bool step(std::size_t& at, const Take& take) {
    const std::size_t left = bytes_.size() - at;
    if (!signed_) {
      if (left < sizeof kSignature) return false;
      require(is_tvl(bytes_.data() + at, left), ErrorKind::kBadStream, "this is not a Trivelet stream");
      signed_ = true;
      head_.assign(bytes_.begin() + static_cast<std::ptrdiff_t>(at),
                   bytes_.begin() + static_cast<std::ptrdiff_t>(at + sizeof kSignature));
      at += sizeof kSignature;
      return true;
    }
    Box box;
    if (left < kBoxHeaderBytes) return false;
    require(parse_box_header(bytes_.data() + at, box), ErrorKind::kBadStream, "a damaged packet");
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
    require(box.length < kMost, ErrorKind::kUnsupported, "a packet of " + std::to_string(box.length) + " bytes");
    const std::size_t size = kBoxHeaderBytes + static_cast<std::size_t>(box.length);
    if (left < size) return false;
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(at);
    at += size;
    if (box.is("Gop ")) {
      std::vector<std::uint8_t> packet;
      if (decodes_alone(&*begin + kBoxHeaderBytes, size - kBoxHeaderBytes)) packet = head_;
      packet.insert(packet.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
      begun_ = true;
      take(packet.data(), packet.size());
    } else if (!begun_) {
      require(!box.is("Volm"), ErrorKind::kUnsupported, "a volume, not a video");
      require(head_.size() + size <= kMaxHeaderBytes, ErrorKind::kBadStream, "too much before the first packet");
      head_.insert(head_.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
    }
    return true;
  }

  bool decodes_alone(const std::uint8_t* data, std::size_t size) {
    if (!header_) {
      Box box;
      const std::size_t at = sizeof kSignature + kBoxHeaderBytes;
      require(head_.size() > at && parse_box_header(head_.data() + sizeof kSignature, box) &&
                  box.length <= head_.size() - at,
              ErrorKind::kBadStream, "a stream without a header");
      header_ = parse_stream_header(head_.data() + at, static_cast<std::size_t>(box.length));
    }
    require(size >= 4, ErrorKind::kBadStream, "a packet without a header");
    const auto bytes = static_cast<std::size_t>(data[0] | data[1] << 8 | data[2] << 16) | std::size_t{data[3]} << 24;
    require(bytes >= 8 && bytes <= size, ErrorKind::kBadStream, "a packet without a header");
    return parse_gop_header(*header_, data, bytes).key != GopKey::kOpen;
  }

  bool signed_ = false;
  bool begun_ = false;
  std::optional<StreamHeader> header_;
  std::vector<std::uint8_t> head_;
  std::vector<std::uint8_t> bytes_;
};

/// The description of the pictures for GStreamer, in planes or another format with their samples. Throws Unsupported if
/// their sizes overflow its numbers.
GstVideoInfo video_info_of(const VideoInfo& info, std::optional<GstVideoFormat> format = {}) {
  GstVideoInfo wanted;
  gst_video_info_init(&wanted);
  if (!format) format = gst::format_for(info.format);
  require(*format != GST_VIDEO_FORMAT_UNKNOWN, ErrorKind::kUnsupported,
          "GStreamer has no name for " + trivelet::to_string(info.format));
  require(gst::describe(info, *format, wanted), ErrorKind::kUnsupported,
          "GStreamer does not support pictures of " + std::to_string(info.width) + "x" + std::to_string(info.height) +
              ": their bytes do not fit into its numbers");
  return wanted;
}

/// Decodes a packet while the frames of the previous one are in use.
class Ahead {
 public:
  struct Frames {
    PacketDecoder::Decoded decoded;
    GstClockTime time = GST_CLOCK_TIME_NONE;  ///< of the packet
  };
  ~Ahead() { wait(); }

  /// False if the packet shows nothing. take() comes before the next one.
  bool add(const void* data, std::size_t size, const PlayerRequest& wanted, GstClockTime time) {
    if (!packets_.add(data, size)) return false;
    Frames& into = frames_[next_];
    into.time = time;
    working_ = std::async(std::launch::async, [this, params = request_for(packets_, wanted), &into] {
      return packets_.decode(params, into.decoded);
    });
    return true;
  }
  /// Waits for the packet added last. Null if there is none or it gave no frames. Throws the errors of decoding.
  const Frames* take() {
    if (!working_.valid()) return nullptr;
    const bool good = working_.get();
    const Frames& taken = frames_[next_];
    next_ = 1 - next_;
    return good ? &taken : nullptr;
  }
  void clear() {
    wait();
    working_ = {};
    packets_.clear();
  }
  std::uint64_t gops_decoded() {
    wait();
    const CodecStats stats = packets_.stats();
    return stats.gops + stats.passed_gops;
  }

 private:
  void wait() {
    if (working_.valid()) working_.wait();
  }

  PacketDecoder packets_{[](const VideoInfo& info) { (void)video_info_of(info); }};
  std::array<Frames, 2> frames_;
  std::size_t next_ = 0;
  std::future<bool> working_;
};

}  // namespace

struct TvlDec {
  GstElement parent;
  GstPad* sink;
  GstPad* src;
  int layers;
  int reduce;
  int threads;
  bool is_bytes;
  bool segment_due;
  GstSegment segment;
  GstVideoInfo shown;  ///< the caps that were sent
  bool has_caps;
  bool failed;
  Splitter* splitter;
  Ahead* ahead;
};
struct TvlDecClass {
  GstElementClass parent_class;
};

G_DEFINE_TYPE(TvlDec, tvl_dec, GST_TYPE_ELEMENT)

namespace {

enum Property { kLayers = 1, kReduce, kThreads, kGops };

TvlDec* decoder_of(gpointer object) { return static_cast<TvlDec*>(object); }

void reset(TvlDec* self) {
  self->failed = false;
  self->splitter->clear();
  self->ahead->clear();
}

/// Whether what comes behind takes this format.
bool is_taken(TvlDec* self, const VideoInfo& info, GstVideoFormat format) {
  const GstVideoInfo wanted = video_info_of(info, format);
  GstCaps* allowed = gst_pad_get_allowed_caps(self->src);
  GstCaps* caps = gst_video_info_to_caps(&wanted);
  const bool taken = allowed == nullptr || gst_caps_can_intersect(caps, allowed) != FALSE;
  gst_caps_unref(caps);
  if (allowed != nullptr) gst_caps_unref(allowed);
  return taken;
}

/// In planes, unless only NV12 or P010 is taken.
GstVideoInfo shown_as(TvlDec* self, const VideoInfo& info) {
  const GstVideoFormat interleaved = gst::interleaved_format_for(info.format);
  if (interleaved == GST_VIDEO_FORMAT_UNKNOWN || is_taken(self, info, gst::format_for(info.format)) ||
      !is_taken(self, info, interleaved))
    return video_info_of(info);
  return video_info_of(info, interleaved);
}

/// Caps, then the segment: nothing may come before them.
bool announce(TvlDec* self, const VideoInfo& info) {
  const GstVideoInfo wanted = shown_as(self, info);
  if (!self->has_caps || !gst_video_info_is_equal(&wanted, &self->shown)) {
    GstCaps* caps = gst_video_info_to_caps(&wanted);
    const bool taken = gst_pad_push_event(self->src, gst_event_new_caps(caps)) != FALSE;
    gst_caps_unref(caps);
    if (!taken) return false;
    self->shown = wanted;
    self->has_caps = true;
    if (info.rotation != 0 || info.mirrored) {
      const std::string turn = (info.mirrored ? "flip-rotate-" : "rotate-") + std::to_string(info.rotation);
      gst_pad_push_event(self->src,
                         gst_event_new_tag(gst_tag_list_new(GST_TAG_IMAGE_ORIENTATION, turn.c_str(), nullptr)));
    }
  }
  if (self->segment_due) gst_pad_push_event(self->src, gst_event_new_segment(&self->segment));
  self->segment_due = false;
  return true;
}

GstFlowReturn push_frame(TvlDec* self, const VideoInfo& info, const Gop& gop, int index, GstClockTime time) {
  const FrameTime& at = gop.times()[static_cast<std::size_t>(index)];
  const double tick = info.time_base.value() * static_cast<double>(GST_SECOND);
  const std::int64_t since = player_time(ticks_between(gop.times()[0], at), tick);
  const GstClockTime begin = std::min<GstClockTime>(time, kMostPlayerTime) + static_cast<GstClockTime>(since);
  const auto duration = static_cast<GstClockTime>(player_time(static_cast<double>(at.duration), tick));
  // After a seek into the middle of a GOP: drops the frames before the position.
  if (gst_segment_clip(&self->segment, GST_FORMAT_TIME, begin, begin + duration, nullptr, nullptr) == FALSE)
    return GST_FLOW_OK;
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&self->shown), nullptr);
  GstVideoFrame frame;
  if (buffer == nullptr || !gst_video_frame_map(&frame, &self->shown, buffer, GST_MAP_WRITE)) {
    if (buffer != nullptr) gst_buffer_unref(buffer);
    fail(ErrorKind::kUnsupported, "no memory for a frame");
  }
  gst::copy_out(gop, index, info.format, frame);
  gst_video_frame_unmap(&frame);
  GST_BUFFER_PTS(buffer) = begin;
  GST_BUFFER_DURATION(buffer) = duration;
  if (info.field_order != 0) {
    GST_BUFFER_FLAG_SET(buffer, GST_VIDEO_BUFFER_FLAG_INTERLACED);
    if (info.field_order == 1) GST_BUFFER_FLAG_SET(buffer, GST_VIDEO_BUFFER_FLAG_TFF);
  }
  return gst_pad_push(self->src, buffer);
}

GstFlowReturn push_frames(TvlDec* self, const Ahead::Frames& frames) {
  const VideoInfo& info = frames.decoded.info;
  const Gop& gop = frames.decoded.gop;
  if (gop.frames() == 0) return GST_FLOW_OK;
  if (!announce(self, info)) return GST_FLOW_NOT_NEGOTIATED;
  GstClockTime begin = frames.time;
  if (!GST_CLOCK_TIME_IS_VALID(begin))
    begin = static_cast<GstClockTime>(
        player_time(static_cast<double>(gop.times()[0].pts), info.time_base.value() * static_cast<double>(GST_SECOND)));
  GstFlowReturn flow = GST_FLOW_OK;
  for (int i = 0; i < gop.frames() && flow == GST_FLOW_OK; ++i) flow = push_frame(self, info, gop, i, begin);
  return flow;
}

/// The frames of the previous packet are shown while this one is decoded.
GstFlowReturn decode_packet(TvlDec* self, const void* data, std::size_t size, GstClockTime time) {
  const Ahead::Frames* before = self->ahead->take();
  self->ahead->add(data, size, {self->layers, self->reduce, self->threads}, time);
  return before != nullptr ? push_frames(self, *before) : GST_FLOW_OK;
}

/// An Error ends the pipeline.
template <class Do>
GstFlowReturn guarded(TvlDec* self, const Do& run) {
  try {
    return run();
  } catch (const std::exception& e) {
    GST_ELEMENT_ERROR(self, STREAM, DECODE, ("%s", e.what()), (nullptr));
    self->failed = true;
    return GST_FLOW_ERROR;
  }
}

/// What is still being decoded.
GstFlowReturn drain(TvlDec* self) {
  if (self->failed) return GST_FLOW_ERROR;
  return guarded(self, [self] {
    const Ahead::Frames* last = self->ahead->take();
    return last != nullptr ? push_frames(self, *last) : GST_FLOW_OK;
  });
}

GstFlowReturn chain(GstPad*, GstObject* parent, GstBuffer* buffer) {
  TvlDec* self = decoder_of(parent);
  GstMapInfo map;
  if (!gst_buffer_map(buffer, &map, GST_MAP_READ)) {
    gst_buffer_unref(buffer);
    return GST_FLOW_ERROR;
  }
  const GstFlowReturn flow = guarded(self, [&] {
    // For this kind of track the time is that of decoding.
    if (!self->is_bytes) return decode_packet(self, map.data, map.size, GST_BUFFER_DTS_OR_PTS(buffer));
    GstFlowReturn all = GST_FLOW_OK;
    self->splitter->add(map.data, map.size, [&](const std::uint8_t* packet, std::size_t size) {
      if (all == GST_FLOW_OK) all = decode_packet(self, packet, size, GST_CLOCK_TIME_NONE);
    });
    return all;
  });
  gst_buffer_unmap(buffer, &map);
  gst_buffer_unref(buffer);
  return flow;
}

gboolean sink_event(GstPad* pad, GstObject* parent, GstEvent* event) {
  TvlDec* self = decoder_of(parent);
  switch (GST_EVENT_TYPE(event)) {
    case GST_EVENT_CAPS: {
      drain(self);
      GstCaps* caps = nullptr;
      gst_event_parse_caps(event, &caps);
      self->is_bytes = gst_structure_has_name(gst_caps_get_structure(caps, 0), "video/x-trivelet") != FALSE;
      reset(self);
      gst_event_unref(event);
      return TRUE;  // ours follow with the first frame
    }
    case GST_EVENT_SEGMENT: {
      drain(self);
      gst_event_copy_segment(event, &self->segment);
      if (self->segment.format != GST_FORMAT_TIME) gst_segment_init(&self->segment, GST_FORMAT_TIME);
      self->segment_due = true;
      gst_event_unref(event);
      return TRUE;
    }
    case GST_EVENT_SEGMENT_DONE: drain(self); break;
    case GST_EVENT_EOS:
      drain(self);
      if (!self->failed) break;
      gst_event_unref(event);  // after a failure there is no end of stream, at which a sink would start to play
      return FALSE;
    case GST_EVENT_FLUSH_STOP: reset(self); break;
    default: break;
  }
  return gst_pad_event_default(pad, parent, event);
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  TvlDec* self = decoder_of(object);
  if (id == kLayers) self->layers = g_value_get_int(value);
  if (id == kReduce) self->reduce = g_value_get_int(value);
  if (id == kThreads) self->threads = g_value_get_int(value);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  const TvlDec* self = decoder_of(object);
  if (id == kGops) return g_value_set_uint64(value, self->ahead->gops_decoded());
  g_value_set_int(value, id == kLayers ? self->layers : id == kReduce ? self->reduce : self->threads);
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange change) {
  const GstStateChangeReturn result = GST_ELEMENT_CLASS(tvl_dec_parent_class)->change_state(element, change);
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY) {
    TvlDec* self = decoder_of(element);
    reset(self);
    self->has_caps = false;
    self->segment_due = false;
  }
  return result;
}

void finalize(GObject* object) {
  TvlDec* self = decoder_of(object);
  delete self->splitter;
  delete self->ahead;
  G_OBJECT_CLASS(tvl_dec_parent_class)->finalize(object);
}

GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE(
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS("video/x-unknown, fourcc=(string)TRVL; video/x-gst-fourcc-TRVL; video/x-trivelet"));

}  // namespace

static void tvl_dec_class_init(TvlDecClass* type) {
  GObjectClass* object = G_OBJECT_CLASS(type);
  GstElementClass* element = GST_ELEMENT_CLASS(type);
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  element->change_state = change_state;
  const auto flags = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_property(
      object, kLayers,
      g_param_spec_int("layers", "Layers", "Decode only this many quality layers; 0 = all", 0, 16, 0, flags));
  g_object_class_install_property(
      object, kReduce,
      g_param_spec_int("reduce", "Halvings", "Number of times to halve width and height", 0, 8, 0, flags));
  g_object_class_install_property(
      object, kThreads, g_param_spec_int("threads", "Threads", "Threads; 0 = one per core", 0, 1024, 0, flags));
  g_object_class_install_property(
      object, kGops,
      g_param_spec_uint64("gops-decoded", "GOPs", "Number of GOPs decoded; to be read while nothing flows", 0,
                          G_MAXUINT64, 0, static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
  GstCaps* caps = gst_caps_from_string(gst::raw_caps());
  gst_element_class_add_pad_template(element, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
  gst_element_class_add_static_pad_template(element, &sink_template);
  gst_element_class_set_static_metadata(element, "Trivelet video decoder", "Codec/Decoder/Video",
                                        "Decodes Trivelet streams", "Trivelet");
}

static void tvl_dec_init(TvlDec* self) {
  self->is_bytes = true;  // filesrc says nothing
  self->splitter = new Splitter;
  self->ahead = new Ahead;
  gst_segment_init(&self->segment, GST_FORMAT_TIME);
  self->sink = gst_pad_new_from_static_template(&sink_template, "sink");
  gst_pad_set_chain_function(self->sink, chain);
  gst_pad_set_event_function(self->sink, sink_event);
  gst_element_add_pad(GST_ELEMENT(self), self->sink);
  self->src = gst_pad_new_from_template(gst_element_class_get_pad_template(GST_ELEMENT_GET_CLASS(self), "src"), "src");
  gst_pad_use_fixed_caps(self->src);
  gst_element_add_pad(GST_ELEMENT(self), self->src);
}
