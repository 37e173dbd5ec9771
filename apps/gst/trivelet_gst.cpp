// A plug-in for GStreamer 1: tvldec and tvlenc, and the type of .tvl files.
#include <cstring>

#include "apps/gst/elements.h"
#include "codec/format/container.h"

namespace {

void find_type(GstTypeFind* find, gpointer) {
  constexpr guint kBytes = sizeof trivelet::kSignature;
  const guint8* data = gst_type_find_peek(find, 0, kBytes);
  if (data != nullptr && std::memcmp(data, trivelet::kSignature, kBytes) == 0)
    gst_type_find_suggest_empty_simple(find, GST_TYPE_FIND_MAXIMUM, "video/x-trivelet");
}

gboolean init(GstPlugin* plugin) {
  GstCaps* caps = gst_caps_new_empty_simple("video/x-trivelet");
  const gboolean found =
      gst_type_find_register(plugin, "video/x-trivelet", GST_RANK_PRIMARY, find_type, "tvl", caps, nullptr, nullptr);
  gst_caps_unref(caps);
  return found && gst_element_register(plugin, "tvldec", GST_RANK_PRIMARY, tvl_dec_get_type()) &&
         gst_element_register(plugin, "tvlenc", GST_RANK_PRIMARY, tvl_enc_get_type());
}

}  // namespace

#define PACKAGE "trivelet"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, trivelet, "Trivelet, a 3D wavelet codec", init,
                  TRIVELET_VERSION, "Apache-2.0", "Trivelet", "Trivelet")
