// Seeks in a film through GStreamer with our element and prints the picture shown after each seek.
//
//      gstreamer_seek FILM [SECONDS...]
//
// A line per place: the time of the picture in nanoseconds and the MD5 of its bytes. Without places the film is played
// to its end, and the line has the number of GOPs decoded.
#include <gst/gst.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr GstClockTime kPatience = 60 * GST_SECOND;

int fail(const char* what) {
  std::fprintf(stderr, "gstreamer_seek: %s\n", what);
  return 1;
}

/// Waits until the pipeline stands still with a picture; false on an error.
bool wait_for_picture(GstElement* pipeline) {
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message = gst_bus_timed_pop_filtered(
      bus, kPatience, static_cast<GstMessageType>(GST_MESSAGE_ASYNC_DONE | GST_MESSAGE_ERROR));
  gst_object_unref(bus);
  if (message == nullptr) return false;
  const bool done = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ASYNC_DONE;
  if (!done) {
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    std::fprintf(stderr, "%s\n", error->message);
    g_error_free(error);
  }
  gst_message_unref(message);
  return done;
}

bool print_picture(GstElement* sink) {
  GstSample* sample = nullptr;
  g_object_get(sink, "last-sample", &sample, nullptr);
  if (sample == nullptr) return false;
  GstBuffer* buffer = gst_sample_get_buffer(sample);
  GstMapInfo map;
  const bool mapped = gst_buffer_map(buffer, &map, GST_MAP_READ) != FALSE;
  if (mapped) {
    gchar* sum = g_compute_checksum_for_data(G_CHECKSUM_MD5, map.data, map.size);
    std::printf("%llu %s\n", static_cast<unsigned long long>(GST_BUFFER_PTS(buffer)), sum);
    g_free(sum);
    gst_buffer_unmap(buffer, &map);
  }
  gst_sample_unref(sample);
  return mapped;
}

int play(GstElement* pipeline) {
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message =
      gst_bus_timed_pop_filtered(bus, kPatience, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
  gst_object_unref(bus);
  const bool ended = message != nullptr && GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
  if (message != nullptr) gst_message_unref(message);
  if (!ended) return fail("the film does not end");
  GstElement* decoder = gst_bin_get_by_name(GST_BIN(pipeline), "decoder");
  guint64 gops = 0;
  g_object_get(decoder, "gops-decoded", &gops, nullptr);
  gst_object_unref(decoder);
  std::printf("%llu\n", static_cast<unsigned long long>(gops));
  return 0;
}

int run(GstElement* pipeline, int places, char** seconds) {
  GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
  gst_object_unref(sink);  // the pipeline keeps it
  gst_element_set_state(pipeline, GST_STATE_PAUSED);
  if (!wait_for_picture(pipeline)) return fail("the film does not begin");
  for (int i = 0; i < places; ++i) {
    const auto to = static_cast<gint64>(std::atof(seconds[i]) * static_cast<double>(GST_SECOND) + 0.5);
    const auto how = static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE);
    if (gst_element_seek_simple(pipeline, GST_FORMAT_TIME, how, to) == FALSE) return fail("the seek is refused");
    if (!wait_for_picture(pipeline)) return fail("no picture after the seek");
    if (!print_picture(sink)) return fail("the picture cannot be read");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  if (argc < 2) return fail("FILM [SECONDS...]");
  GstElement* pipeline = gst_parse_launch(
      "filesrc name=source ! matroskademux ! tvldec name=decoder ! fakesink name=sink sync=false", nullptr);
  if (pipeline == nullptr) return fail("no pipeline");
  GstElement* source = gst_bin_get_by_name(GST_BIN(pipeline), "source");
  g_object_set(source, "location", argv[1], nullptr);
  gst_object_unref(source);
  const int code = argc == 2 ? play(pipeline) : run(pipeline, argc - 2, argv + 2);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
  return code;
}
