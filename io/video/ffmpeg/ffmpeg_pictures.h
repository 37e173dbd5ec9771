// The pictures of a video in display order: decoded on the CPU or on a GPU, by one decoder or by several of the same
// file at once. Internal to io.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_segments.h"

namespace trivelet::io {

/// Opens decoders of one file. Thread-safe.
class DecoderOpener {
 public:
  DecoderOpener(const std::string& path, const std::string& demuxer, const ReaderOptions& options)
      : path_(path), demuxer_(demuxer), options_(options) {}

  std::unique_ptr<PictureDecoder> open(Source source, AVBufferRef* device, int threads) const {
    return std::make_unique<PictureDecoder>(path_, std::move(source), demuxer_, options_, threads, device, complaints_);
  }
  Source open_file() const { return std::make_unique<InputBytes>(path_); }
  bool is_file() const { return path_ != "-"; }
  /// What all decoders complained of; see Complaints.
  std::string complaints() const { return complaints_->summary(); }

 private:
  const std::string path_, demuxer_;
  const ReaderOptions options_;
  const std::shared_ptr<Complaints> complaints_ = std::make_shared<Complaints>();
};

class PictureStream {
 public:
  /// Decodes the first picture, which next() then delivers. `name` begins messages. Throws for files without one.
  PictureStream(const std::string& name, const std::string& path, Source source, const std::string& demuxer,
                const ReaderOptions& options);

  /// To be called once the format of the samples is known. From then on several decoders, if the options ask for them
  /// and the file has several key frames.
  void start(const PixelFormat& format);

  /// Makes the next picture the current one. False at the end.
  bool next();
  /// The current picture is also the next one.
  void hold() { held_ = true; }
  const AVFrame& frame() const { return *frame_; }
  AVPixelFormat sample_format() const { return decoder_->sample_format(*frame_); }
  bool on_device() const { return device_ != nullptr; }
  /// Reads the samples of the current picture from the device; they are there after wait().
  void read_from_device(Gop& gop, int index);
  void wait() const;

  /// Pictures delivered since begin_delivery() can be returned. The current one stays the same.
  void begin_delivery() { delivered_.clear(); }
  void note_delivered();
  /// Returns the last pictures: next() delivers them again. False if that is not possible.
  bool unread(int count);

  /// See FrameReader.
  std::size_t stretches();
  void go_to(std::size_t stretch);

  /// The decoder that opened the file, and what it knows of it.
  const PictureDecoder& decoder() const { return *decoder_; }
  std::string complaints() const { return opener_.complaints(); }

 private:
  void start_on_cpu(Source source);
  void try_device(Source& source);
  std::string start_on_device(Source source);
  bool decodes_same(const AVFrame& frame, const PixelFormat& format) const;
  std::vector<PictureDecoder::Entry> find_entries(AVBufferRef* device) const;
  std::shared_ptr<const void> keep(const AVFrame& frame) const;
  bool decode_next();

  const std::string name_;
  const ReaderOptions options_;
  const DecoderOpener opener_;
  PixelFormat format_;  ///< of pictures on the device
  BufferPtr device_;    ///< null: the CPU decodes
  std::unique_ptr<PictureDecoder> decoder_;
  DecodedPicture picture_;    ///< of segments_
  AVFrame* frame_ = nullptr;  ///< the decoder's, or picture_'s
  bool held_ = false;
  std::vector<PictureDecoder::Entry> entries_;  ///< of stretches()
  std::optional<std::int64_t> end_pts_;         ///< of the current stretch
  std::deque<DecodedPicture> delivered_;        ///< since begin_delivery()
  std::deque<DecodedPicture> again_;            ///< returned by unread()
  std::unique_ptr<SegmentDecoders> segments_;   ///< last: its threads use the rest
};

}  // namespace trivelet::io
