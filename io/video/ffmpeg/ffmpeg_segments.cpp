// Runs several decoders of one file in threads, and delivers their pictures in order.

#include "io/video/ffmpeg/ffmpeg_segments.h"

#include <algorithm>
#include <utility>

namespace trivelet::io {

namespace {

// The number of pictures of the delivered stretch that may wait, however many are kept in all: the next one to deliver
// is always decoded.
constexpr std::size_t kLead = 32;

}  // namespace

SegmentDecoders::SegmentDecoders(std::vector<PictureDecoder::Entry> entries, Open open, Take take, Options options)
    : entries_(std::move(entries)),
      open_(std::move(open)),
      take_(std::move(take)),
      options_(std::move(options)),
      segments_(entries_.size()) {
  const int decoders = std::clamp(options_.decoders, 1, static_cast<int>(entries_.size()));
  for (int i = 0; i < decoders; ++i) {
    Worker& worker = workers_.emplace_back("decode");
    if (i == 0) {
      worker.begin([this] { work(); });
    } else if (!worker.try_begin([this] { work(); })) {
      break;  // the threads there are do it all
    }
  }
}

SegmentDecoders::~SegmentDecoders() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

std::optional<DecodedPicture> SegmentDecoders::next() {
  std::unique_lock lock(mutex_);
  for (; current_ < segments_.size(); ++current_) {
    Segment& segment = segments_[current_];
    changed_.wait(lock, [&] { return segment.done || !segment.pictures.empty(); });
    if (!segment.pictures.empty()) {
      DecodedPicture picture = std::move(segment.pictures.front());
      segment.pictures.pop_front();
      lock.unlock();
      changed_.notify_all();
      return picture;
    }
    if (segment.error) std::rethrow_exception(segment.error);
    changed_.notify_all();  // another one is delivered from here on
  }
  return std::nullopt;
}

void SegmentDecoders::work() {
  std::unique_ptr<PictureDecoder> decoder;
  for (;;) {
    std::size_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_ || begun_ == segments_.size()) return;
      number = begun_++;
    }
    std::exception_ptr error;
    try {
      if (!decoder) decoder = open_();
      decode(*decoder, number);
    } catch (...) {
      error = std::current_exception();
      decoder.reset();
    }
    {
      const std::lock_guard lock(mutex_);
      segments_[number].error = error;
      segments_[number].done = true;
    }
    changed_.notify_all();
  }
}

void SegmentDecoders::decode(PictureDecoder& decoder, std::size_t number) {
  if (number > 0) decoder.seek(entries_[number]);
  const bool last = number + 1 == entries_.size();
  while (const AVFrame* frame = decoder.next()) {
    if (!last && frame->best_effort_timestamp >= entries_[number + 1].pts) return;
    if (!put(number, take_(*frame))) return;
  }
}

/// False if no more are needed.
bool SegmentDecoders::put(std::size_t number, DecodedPicture picture) {
  {
    std::unique_lock lock(mutex_);
    Segment& segment = segments_[number];
    changed_.wait(lock, [&] {
      return stopped_ || !options_.is_full() || (number == current_ && segment.pictures.size() < kLead);
    });
    if (stopped_) return false;
    segment.pictures.push_back(std::move(picture));
  }
  changed_.notify_all();
  return true;
}

}  // namespace trivelet::io
