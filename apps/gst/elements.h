// The elements of the plug-in for GStreamer.
#pragma once

#include <gst/gst.h>

GType tvl_dec_get_type();
GType tvl_enc_get_type();
