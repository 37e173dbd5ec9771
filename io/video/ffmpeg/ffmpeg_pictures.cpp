#include "io/video/ffmpeg/ffmpeg_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

// The least length of stretches that are decoded separately: at the end of each some pictures are decoded twice.
constexpr double kLeastSegment = 1.5;  // seconds

// All decoders of these make the same samples.
constexpr std::array kExactCodecs = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1, AV_CODEC_ID_VP9,
                                     AV_CODEC_ID_VP8};

/// The frame without its samples: times and side data.
FramePtr without_samples(const AVFrame& frame) {
  FramePtr out = make_frame();
  out->width = frame.width;
  out->height = frame.height;
  out->format = frame.format;
  if (av_frame_copy_props(out.get(), &frame) < 0) throw std::bad_alloc();
  return out;
}

FramePtr copy_of(const AVFrame& frame) {
  FramePtr out = make_frame();
  const int code = av_frame_ref(out.get(), &frame);
  if (code < 0) throw std::bad_alloc();
  return out;
}

}  // namespace

PictureStream::PictureStream(const std::string& name, const std::string& path, Source source,
                             const std::string& demuxer, const ReaderOptions& options)
    : name_(name), options_(options), opener_(path, demuxer, options) {
  if (options.device_decoding != DeviceDecoding::kNever) try_device(source);
  if (!decoder_) start_on_cpu(std::move(source));
}

void PictureStream::start_on_cpu(Source source) {
  decoder_ = opener_.open(std::move(source), nullptr, options_.threads);
  held_ = decode_next();
  require(held_, ErrorKind::kBadStream,
          name_ + ": the video stream has no frame" +
              (decoder_->damage().empty() ? "" : " that can be decoded: " + decoder_->damage()));
}

/// Begins on the device of ReaderOptions::pictures, or leaves `source` as it was and the rest to the CPU.
void PictureStream::try_device(Source& source) {
  const bool must = options_.device_decoding == DeviceDecoding::kAlways;
  require(!must || options_.pictures, ErrorKind::kUnsupported, name_ + ": there is no GPU to decode on");
  require(!must || !options_.recover, ErrorKind::kBadArgument,
          name_ + ": a GPU does not tell of damage, from which to recover; decode on the CPU");
  const bool can_open_again = source && source->size().has_value() && opener_.is_file();
  if (!options_.pictures || options_.recover || !can_open_again) {
    require(!must, ErrorKind::kUnsupported, name_ + ": a GPU decodes files, not pipes nor pictures in a row");
    return;
  }
  const std::string why_not = start_on_device(std::move(source));
  if (why_not.empty()) return;
  require(!must, ErrorKind::kUnsupported, name_ + ": the GPU does not decode it: " + why_not);
  decoder_.reset();
  device_.reset();
  source = opener_.open_file();
}

/// Why the first picture is not on the device; "" if it is.
std::string PictureStream::start_on_device(Source source) {
  try {
    device_ = open_cuda_device(options_.pictures->device());
    decoder_ = opener_.open(std::move(source), device_.get(), 1);
    const AVCodecID codec = decoder_->stream().codecpar->codec_id;
    if (std::find(kExactCodecs.begin(), kExactCodecs.end(), codec) == kExactCodecs.end())
      return std::string(avcodec_get_name(codec)) + " leaves it to decoders how they round";
    held_ = decode_next();
    if (!held_ || !PictureDecoder::on_device(*frame_)) return avcodec_get_name(codec) + std::string(" of this kind");
    const AVPixelFormat samples = sample_format();
    const std::optional<PixelFormat> format = same_samples(samples);
    if (!format || format->model == ColourModel::kGrey) return av_get_pix_fmt_name(samples);
    if (!options_.pixel_format.empty() && samples_of(options_.pixel_format) != *format)
      return "converting to " + options_.pixel_format + " is the CPU's";
    return decodes_same(*frame_, *format) ? "" : "its first picture is not the one that the CPU decodes";
  } catch (const Error& e) {  // the CPU finds faults of the file itself again
    return e.what();
  }
}

/// True if the first picture of the device equals the CPU's: engines accept some streams that they decode wrongly, for
/// example monochrome ones.
bool PictureStream::decodes_same(const AVFrame& frame, const PixelFormat& format) const {
  VideoInfo info;
  info.width = frame.width;
  info.height = frame.height;
  info.format = format;
  Gop device_gop(info, 1), cpu_gop(info, 1);
  device_gop.set_frames(1);
  cpu_gop.set_frames(1);
  options_.pictures->read(options_.pictures->keep(device_picture(frame, format, name_)), device_gop, 0);
  options_.pictures->wait();
  const std::unique_ptr<PictureDecoder> cpu = opener_.open(opener_.open_file(), nullptr, 1);
  const AVFrame* same = cpu->next();
  if (same == nullptr || same->width != info.width || same->height != info.height || unpack_format(*same) != format)
    return false;
  unpack(*same, cpu_gop, 0);
  for (int c = 0; c < cpu_gop.components(); ++c) {
    const VolumeView a = std::as_const(cpu_gop).plane(c), b = std::as_const(device_gop).plane(c);
    for (int y = 0; y < a.shape.height; ++y)
      if (std::memcmp(a.row(0, y), b.row(0, y), a.row_bytes()) != 0) return false;
  }
  return true;
}

std::vector<PictureDecoder::Entry> PictureStream::find_entries(AVBufferRef* device) const {
  const std::int64_t ticks = std::llround(kLeastSegment / av_q2d(decoder_->stream().time_base));
  return opener_.open(opener_.open_file(), device, 1)->entries(ticks);
}

void PictureStream::start(const PixelFormat& format) {
  format_ = format;
  if (options_.decoders < 2 || options_.recover || !decoder_->reads_file() || !opener_.is_file()) return;
  AVBufferRef* const device = device_.get();
  std::vector<PictureDecoder::Entry> entries = find_entries(device);
  if (entries.empty()) return;
  const int threads = device != nullptr ? 1 : std::max(1, options_.threads / options_.decoders);
  const auto open_one = [this, device, threads] { return opener_.open(opener_.open_file(), device, threads); };
  SegmentDecoders::Take take = [](const AVFrame& frame) { return DecodedPicture{copy_of(frame), nullptr}; };
  if (device != nullptr)
    take = [this, width = frame_->width, height = frame_->height](const AVFrame& frame) {
      const bool fits = frame.width == width && frame.height == height;  // the reader refuses others
      return DecodedPicture{without_samples(frame), fits ? keep(frame) : nullptr};
    };
  SegmentDecoders::Options options;
  options.decoders = options_.decoders;
  options.is_full = [this] { return !device_ || options_.pictures->is_full(); };
  segments_ = std::make_unique<SegmentDecoders>(std::move(entries), open_one, std::move(take), std::move(options));
  held_ = false;
}

std::shared_ptr<const void> PictureStream::keep(const AVFrame& frame) const {
  return options_.pictures->keep(device_picture(frame, format_, name_));
}

bool PictureStream::next() {
  if (!held_) return decode_next();
  held_ = false;
  return true;
}

bool PictureStream::decode_next() {
  if (!again_.empty()) {
    picture_ = std::move(again_.front());
    again_.pop_front();
    frame_ = picture_.frame.get();
    return true;
  }
  if (!segments_) {
    frame_ = decoder_->next();
    if (frame_ != nullptr && end_pts_ && frame_->best_effort_timestamp >= *end_pts_) frame_ = nullptr;
    return frame_ != nullptr;
  }
  std::optional<DecodedPicture> picture = segments_->next();
  if (!picture) return false;
  picture_ = std::move(*picture);
  frame_ = picture_.frame.get();
  return true;
}

void PictureStream::read_from_device(Gop& gop, int index) {
  if (!segments_) picture_.kept = keep(*frame_);
  options_.pictures->read(picture_.kept, gop, index);
  delivered_.push_back({segments_ ? std::move(picture_.frame) : nullptr, picture_.kept});
  if (segments_) frame_ = delivered_.back().frame.get();
}

void PictureStream::wait() const {
  if (device_) options_.pictures->wait();
}

void PictureStream::note_delivered() {
  if (!segments_) return;
  delivered_.push_back(std::move(picture_));
  frame_ = delivered_.back().frame.get();
}

bool PictureStream::unread(int count) {
  if (!segments_ || count > static_cast<int>(delivered_.size())) return false;
  for (; count > 0; --count) {
    again_.push_front(std::move(delivered_.back()));
    delivered_.pop_back();
  }
  return true;
}

std::size_t PictureStream::stretches() {
  if (entries_.empty() && !options_.recover && !device_ && decoder_->reads_file() && opener_.is_file())
    entries_ = find_entries(nullptr);
  return entries_.size();
}

void PictureStream::go_to(std::size_t stretch) {
  if (stretch == 0)
    decoder_ = opener_.open(opener_.open_file(), nullptr, options_.threads);
  else
    decoder_->seek(entries_[stretch]);
  segments_.reset();
  held_ = false;
  end_pts_.reset();
  if (stretch + 1 < entries_.size()) end_pts_ = entries_[stretch + 1].pts;
}

}  // namespace trivelet::io
