// Frames that lie one after the other in a file: one by one, or several at once by FrameFile.
#include "io/video/plain_frames.h"

#include <string>

namespace trivelet::io {

void PlainFrameReader::set_time(Gop& gop, int index) {
  gop.times()[static_cast<std::size_t>(index)] = {static_cast<std::int64_t>(frame_++), 1};
}

bool PlainFrameReader::read(Gop& gop, int index) {
  check_gop(gop, index, info_);
  if (!read_samples(gop, index)) return false;
  check_samples(gop, index, info_.format, source_->name(), frame_);
  set_time(gop, index);
  file_->elsewhere();
  return true;
}

int PlainFrameReader::read_frames(Gop& gop, int first, int count) {
  int done = 0;
  if (count > 0) check_gop(gop, first + count - 1, info_);
  while (done < count) {
    const int plain = file_->read(gop, first + done, count - done);
    for (int i = 0; i < plain; ++i) set_time(gop, first + done + i);
    done += plain;
    if (done < count && !read(gop, first + done)) break;
    if (done < count) ++done;
  }
  return done;
}

int PlainFrameReader::look(Gop& gop, int first, int count, int row, int step) {
  if (count < 1) return 0;
  check_gop(gop, first + count - 1, info_);
  const int done = file_->look(gop, first, count, row, step);
  for (int i = 0; i < done; ++i) set_time(gop, first + i);
  // What is wrong with the next one, or whether there is none, is found by reading it.
  require(done == count || !read(gop, first + done), ErrorKind::kUnsupported,
          "frame " + std::to_string(frame_) + " is not where those before it say, and can only be read behind them");
  return done;
}

bool PlainFrameReader::unread(int count) {
  if (!file_->unread(count)) return false;
  frame_ -= static_cast<std::uint64_t>(count);
  return true;
}

std::uint64_t PlainFrameReader::skip(std::uint64_t count) {
  file_->elsewhere();
  for (std::uint64_t done = 0; done < count; ++done, ++frame_)
    if (!skip_frame()) return done;
  return count;
}

}  // namespace trivelet::io
