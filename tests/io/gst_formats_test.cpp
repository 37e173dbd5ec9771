// The GStreamer caps of pictures, and sizes that caps cannot express.
#include "apps/gst/formats.h"

#include <gtest/gtest.h>

namespace trivelet::gst {
namespace {

VideoInfo pictures(int width, int height) {
  VideoInfo info;
  info.width = width;
  info.height = height;
  info.format.log2_chroma_w = info.format.log2_chroma_h = 1;
  return info;
}

TEST(GstFormats, KnowsPicturesOfAUsualSize) {
  GstVideoInfo told;
  gst_video_info_init(&told);
  ASSERT_TRUE(describe(pictures(96, 64), GST_VIDEO_FORMAT_I420, told));
  EXPECT_EQ(GST_VIDEO_INFO_SIZE(&told), 96u * 64u * 3u / 2u);
  EXPECT_EQ(describe(told).width, 96);
  EXPECT_EQ(describe(told).format, pictures(1, 1).format);
}

// A stream of 65536x21846 is valid, and its picture has more bytes than GStreamer counts.
TEST(GstFormats, RefusesPicturesThatItCannotCount) {
  GstVideoInfo told;
  gst_video_info_init(&told);
  EXPECT_FALSE(describe(pictures(65536, 21846), GST_VIDEO_FORMAT_I420, told));
}

}  // namespace
}  // namespace trivelet::gst
