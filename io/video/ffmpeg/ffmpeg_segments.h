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

/// What is left of a picture when its decoder goes on: the frame itself, or what DevicePictures keeps of it, and the
/// frame without its samples.
struct DecodedPicture {
  FramePtr frame;
  std::shared_ptr<const void> kept;
};

/// Delivers the pictures of all stretches in the order in which they are shown, each once: a decoder goes on behind the
/// key frame where its stretch ends until all that is shown before that is there.
class SegmentDecoders {
 public:
  using Open = std::function<std::unique_ptr<PictureDecoder>()>;
  using Take = std::function<DecodedPicture(const AVFrame&)>;
  struct Options {
    int decoders = 2;
    std::function<bool()> is_full;  ///< no more pictures should be kept than there are; may be called by any thread
  };
  /// `open`, which is at the beginning of the file, and `take` are called by several threads.
  SegmentDecoders(std::vector<PictureDecoder::Entry> entries, Open open, Take take, Options options);
  ~SegmentDecoders();
  SegmentDecoders(const SegmentDecoders&) = delete;
  SegmentDecoders& operator=(const SegmentDecoders&) = delete;

  /// The next picture; nothing at the end. Throws what a decoder threw where its stretch comes.
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
