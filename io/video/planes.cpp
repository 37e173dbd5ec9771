// Reads and writes the planes of raw frames, several frames at once.

#include "io/video/planes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

#include "codec/base/limits.h"

namespace trivelet::io {

static_assert(std::endian::native == std::endian::little, "raw samples are moved as they lie in memory");

namespace {

std::size_t row_bytes(const VolumeView& view) {
  return static_cast<std::size_t>(view.shape.width) * static_cast<std::size_t>(view.bytes_per_sample);
}

bool rows_touch(const VolumeView& view) { return view.row_stride == static_cast<std::ptrdiff_t>(row_bytes(view)); }

/// All bits that occur in a row of unsigned samples.
template <class T>
unsigned used_bits(const std::byte* row, int width) {
  T all = 0;
  for (int x = 0; x < width; ++x) {
    T sample;
    std::memcpy(&sample, row + static_cast<std::size_t>(x) * sizeof(T), sizeof(T));
    all = static_cast<T>(all | sample);
  }
  return all;
}

bool row_fits(const VolumeView& view, int index, int y, const PixelFormat& format) {
  const std::byte* row = view.row(index, y);
  const unsigned bits = format.bytes_per_sample() == 1 ? used_bits<std::uint8_t>(row, view.shape.width)
                                                       : used_bits<std::uint16_t>(row, view.shape.width);
  return bits >> format.bits == 0;
}

bool any_samples_fit(const PixelFormat& format) {
  return format.is_signed || format.bits == 8 * format.bytes_per_sample();
}

/// A piece of a file and its destination.
struct Piece {
  std::uint64_t at;
  std::byte* to;
  std::size_t size;
  int frame;
};

}  // namespace

void check_dimensions(std::int64_t width, std::int64_t height, ErrorKind kind, const std::string& where) {
  const std::string size = std::to_string(width) + "x" + std::to_string(height);
  require(width >= 1 && height >= 1 && width <= kMaxDimension && height <= kMaxDimension, kind,
          where + ": the frame size " + size + " is outside 1x1..65536x65536");
  require(static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height) <= kMaxPixels, kind,
          where + ": the frame size " + size + " exceeds 2^31 pixels");
}

std::size_t frame_bytes(const VideoInfo& info) {
  std::size_t bytes = 0;
  for (int c = 0; c < info.format.components(); ++c)
    bytes += static_cast<std::size_t>(info.component_width(c)) * static_cast<std::size_t>(info.component_height(c)) *
             static_cast<std::size_t>(info.format.bytes_per_sample());
  return bytes;
}

void set_constant_rate(VideoInfo& info, Rational frame_rate) {
  info.frame_rate = frame_rate;
  info.time_base = {frame_rate.den, frame_rate.num};
}

std::string describe(const VideoInfo& info) {
  return std::to_string(info.width) + "x" + std::to_string(info.height) + " " + to_string(info.format);
}

void check_gop(const Gop& gop, int index, const VideoInfo& info) {
  require(index >= 0 && index < gop.capacity(), ErrorKind::kBadArgument,
          "a GOP of " + count_of(gop.capacity(), "frame") + " has no frame " + std::to_string(index));
  bool same = gop.components() == info.format.components();
  for (int c = 0; same && c < gop.components(); ++c) {
    const VolumeView view = gop.plane(c);
    same = view.shape.width == info.component_width(c) && view.shape.height == info.component_height(c) &&
           view.bytes_per_sample == info.format.bytes_per_sample();
  }
  require(same, ErrorKind::kBadArgument, "the GOP was not made for frames of " + describe(info));
}

std::size_t read_planes(InputBytes& source, Gop& gop, int index) {
  std::size_t done = 0;
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView view = gop.plane(c);
    const VolumeView constant = static_cast<const Gop&>(gop).plane(c);
    const bool whole = rows_touch(constant);
    const std::size_t piece = row_bytes(constant) * (whole ? static_cast<std::size_t>(view.shape.height) : 1);
    for (int y = 0; y < (whole ? 1 : view.shape.height); ++y) {
      const std::size_t got = source.read(view.row(index, y), piece);
      done += got;
      if (got < piece) return done;
    }
  }
  return done;
}

FrameFile::FrameFile(InputBytes& source, const VideoInfo& info, std::string_view head, int threads)
    : source_(source), format_(info.format), head_(head), frame_bytes_(frame_bytes(info)), threads_(threads) {}

// The number of complete frames among the next `count`, with correct headers.
int FrameFile::whole_frames(int count) const {
  if (!source_.size() || count < 1) return 0;
  const std::uint64_t begin = source_.position(), step = head_.size() + frame_bytes_;
  const std::uint64_t left = *source_.size() - std::min(*source_.size(), begin);
  int whole = 0;
  for (std::string found(head_.size(), 0); whole < count && left / step > static_cast<std::uint64_t>(whole); ++whole)
    if (source_.read_at(begin + static_cast<std::uint64_t>(whole) * step, found.data(), found.size()) < found.size() ||
        found != head_)
      break;
  return whole;
}

int FrameFile::look(Gop& gop, int first, int count, int row, int step) {
  const int whole = whole_frames(count);
  const MutableVolumeView view = gop.plane(0);
  if (whole == 0) return 0;
  const std::uint64_t begin = source_.position(), frame_step = head_.size() + frame_bytes_;
  if (!pool_) pool_.emplace(threads_);
  // About a hundred system calls a frame: one thread would be slower than several GPUs.
  pool_->parallel_for(whole, [&](int f, int) {
    const std::uint64_t frame = begin + static_cast<std::uint64_t>(f) * frame_step + head_.size();
    for (int y = row; y < view.shape.height; y += step)
      require(source_.read_at(frame + static_cast<std::uint64_t>(y) * view.row_bytes(), view.row(first + f, y),
                              view.row_bytes()) == view.row_bytes(),
              ErrorKind::kIo, source_.name() + " became shorter while it was read");
  });
  source_.seek(begin + static_cast<std::uint64_t>(whole) * frame_step);
  behind_ += static_cast<std::uint64_t>(whole);
  return whole;
}

int FrameFile::read(Gop& gop, int first, int count) {
  // One system call copies this much with one thread: small enough to divide the frames of a GOP evenly.
  constexpr std::size_t kPiece = std::size_t{1} << 19;
  const std::uint64_t begin = source_.position(), step = head_.size() + frame_bytes_;
  const int whole = whole_frames(count);
  if (whole == 0) return 0;
  std::vector<Piece> pieces;
  for (int f = 0; f < whole; ++f) {
    std::uint64_t at = begin + static_cast<std::uint64_t>(f) * step + head_.size();
    for (int c = 0; c < gop.components(); ++c) {
      const MutableVolumeView view = gop.plane(c);
      const std::size_t row = view.row_bytes();
      const bool touch = view.row_stride == static_cast<std::ptrdiff_t>(row);
      const int rows =
          touch ? std::clamp(static_cast<int>(kPiece / std::max<std::size_t>(row, 1)), 1, view.shape.height) : 1;
      for (int y = 0; y < view.shape.height; y += rows) {
        const std::size_t size = row * static_cast<std::size_t>(std::min(rows, view.shape.height - y));
        pieces.push_back({at, view.row(first + f, y), size, f});
        at += size;
      }
    }
  }
  std::atomic<int> good{whole};  // frames before the first that is not
  const auto spoil = [&](int frame) {
    for (int seen = good; frame < seen && !good.compare_exchange_weak(seen, frame);) {
    }
  };
  if (!pool_) pool_.emplace(threads_);
  pool_->parallel_for(static_cast<int>(pieces.size()), [&](int i, int) {
    const Piece& p = pieces[static_cast<std::size_t>(i)];
    if (source_.read_at(p.at, p.to, p.size) < p.size) spoil(p.frame);
  });
  if (!any_samples_fit(format_))
    pool_->parallel_for(good, [&](int f, int) {
      if (!samples_fit(gop, first + f, format_)) spoil(f);
    });
  source_.seek(begin + static_cast<std::uint64_t>(good.load()) * step);
  behind_ += static_cast<std::uint64_t>(good.load());
  return good;
}

bool FrameFile::unread(int count) {
  if (static_cast<std::uint64_t>(count) > behind_) return false;
  behind_ -= static_cast<std::uint64_t>(count);
  source_.seek(source_.position() - static_cast<std::uint64_t>(count) * (head_.size() + frame_bytes_));
  return true;
}

void write_planes(const Gop& gop, int index, const std::function<void(const void*, std::size_t)>& sink) {
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView view = gop.plane(c);
    if (rows_touch(view)) {
      sink(view.row(index, 0), row_bytes(view) * static_cast<std::size_t>(view.shape.height));
    } else {
      for (int y = 0; y < view.shape.height; ++y) sink(view.row(index, y), row_bytes(view));
    }
  }
}

bool samples_fit(const Gop& gop, int index, const PixelFormat& format) {
  for (int c = 0; c < gop.components() && !any_samples_fit(format); ++c) {
    const VolumeView view = gop.plane(c);
    for (int y = 0; y < view.shape.height; ++y)
      if (!row_fits(view, index, y, format)) return false;
  }
  return true;
}

void check_samples(const Gop& gop, int index, const PixelFormat& format, const std::string& name, std::uint64_t frame) {
  if (any_samples_fit(format)) return;
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView view = gop.plane(c);
    for (int y = 0; y < view.shape.height; ++y)
      require(row_fits(view, index, y, format), ErrorKind::kBadStream,
              name + ": frame " + std::to_string(frame) + ", component " + std::to_string(c) + ", row " +
                  std::to_string(y) + ": a sample exceeds the " + count_of(format.bits, "bit") + " of " +
                  to_string(format));
  }
}

}  // namespace trivelet::io
