// Several decoders of one file at once, each a stretch between key frames. Internal to io.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "codec/threads/worker.h"
#include "io/video/ffmpeg/ffmpeg_decoder.h"

namespace trivelet::io {

/// What is kept of a picture when its decoder continues: the frame itself, or its copy in DevicePictures with the frame
/// without samples.
struct DecodedPicture {
  FramePtr frame;
  std::shared_ptr<const void> kept;
};

/// Delivers the pictures of all stretches in display order, each once. A decoder continues past the key frame at the
/// end of its stretch until all pictures that are shown before it are decoded.
class SegmentDecoders {
 public:
  using Open = std::function<std::unique_ptr<PictureDecoder>()>;
  using Take = std::function<DecodedPicture(const AVFrame&)>;
  struct Options {
    int decoders = 2;
    std::function<bool()> is_full;  ///< no more pictures should be kept than there are; may be called by any thread
  };
  /// Several threads call `open`, which opens at the beginning of the file, and `take`.
  SegmentDecoders(std::vector<PictureDecoder::Entry> entries, Open open, Take take, Options options);
  ~SegmentDecoders();
  SegmentDecoders(const SegmentDecoders&) = delete;
  SegmentDecoders& operator=(const SegmentDecoders&) = delete;

  /// The next picture; nothing at the end. Throws the error of a decoder when its stretch is due.
  std::optional<DecodedPicture> next();

 private:
  struct Segment {
    std::deque<DecodedPicture> pictures;
    bool done = false;
    std::exception_ptr error;
  };
  void work();
  void decode(PictureDecoder& decoder, std::size_t number);
  bool put(std::size_t number, DecodedPicture picture);

  std::vector<PictureDecoder::Entry> entries_;
  Open open_;
  Take take_;
  Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Segment> segments_;
  std::size_t begun_ = 0;    ///< segments that have a decoder
  std::size_t current_ = 0;  ///< the one that is delivered
  bool stopped_ = false;
  std::list<Worker> workers_;  ///< last: they end first
};

}  // namespace trivelet::io
