// Checks a finished stream, and with --verify decodes it and compares it with the input.

#include <spdlog/fmt/fmt.h>

#include "apps/video/encode_job.h"
#include "apps/video/metrics.h"
#include "codec/threads/parallel.h"
#include "codec/threads/prefetch.h"

namespace trivelet::cli {

namespace {

Prefetch decode_ahead(Decoder& decoder) {
  return Prefetch([&decoder] { return decoder.make_gop(); }, 2, [&decoder](Gop& gop) { return decoder.pull(gop); });
}

/// Decodes `path` and compares its samples with the digest of the input. Returns the result as text.
std::string verify_lossless(const std::string& path, const Common& common, const std::string& wanted) {
  const StreamFile file = open_stream_file(path);
  Decoder decoder(*file.source, decoder_params(common));
  Digest digest(decoder.output());
  Prefetch decoded = decode_ahead(decoder);
  while (const Gop* gop = decoded.next()) digest.add(*gop);
  require(digest.result() == wanted, ErrorKind::kMismatch, "the decoded samples differ from the input");
  return "lossless, verified";
}

/// Decodes `path`, whose GOPs carry hashes of the input. Returns the result as text.
std::string verify_hashes(const std::string& path, const Common& common) {
  const StreamFile file = open_stream_file(path);
  Decoder decoder(*file.source, decoder_params(common));
  Prefetch decoded = decode_ahead(decoder);
  while (decoded.next()) {
  }
  return "lossless, verified";
}

/// Decodes `path` and measures its PSNR against the input, which is read again. Returns the result as text.
std::string verify_lossy(const std::string& path, const EncodeOptions& options, const Common& common) {
  VideoInput original(options.input, reader_options(options.reading, common), common,
                      frame_range(options.frames, options.input));
  VideoInput coded(path, {}, common);
  require_comparable(original.info(), coded.info());
  const int capacity = buffer_frames(original.info());
  const auto read_ahead = [capacity](VideoInput& video) {
    return Prefetch([&video, capacity] { return Gop(video.info(), capacity); }, 2,
                    [&video](Gop& gop) { return video.read(gop); });
  };
  Prefetch a = read_ahead(original);
  Prefetch b = read_ahead(coded);
  ThreadPool pool(common.threads);
  VideoError error(original.info());
  for (;;) {
    const Gop* x = a.next();
    const Gop* y = b.next();
    require((x ? x->frames() : 0) == (y ? y->frames() : 0), ErrorKind::kMismatch,
            "the stream has another number of frames than the input");
    if (!x) break;
    error.add(*x, *y, pool);
  }
  return "PSNR " + format_psnr(error.psnr()) + ", verified";
}

}  // namespace

void check_written(const std::string& path, const std::string& output, std::uint64_t frames) {
  std::string wrong;
  try {
    const StreamInfo stream = probe(*open_stream_file(path).source, kNoLimits);
    std::uint64_t found = 0;
    for (const GopInfo& gop : stream.gops) found += static_cast<std::uint64_t>(gop.frames);
    wrong = !stream.header_damage.empty() ? stream.header_damage : stream.index_damage;
    if (!stream.damaged_boxes.empty()) wrong = "the box '" + stream.damaged_boxes.front().type + "' is damaged";
    if (wrong.empty() && stream.has_index && found != frames)
      wrong = fmt::format("its index has {}, but {} were coded", count_of(found, "frame"), frames);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream && e.kind() != ErrorKind::kUnsupported) throw;
    wrong = e.what();
  }
  require(wrong.empty(), ErrorKind::kMismatch, "'" + output + "' cannot be read again, nothing is kept: " + wrong);
}

std::string verify(EncodeJob& job) {
  const std::string& path = job.sink->temporary_path();
  Common unlimited = job.common;
  unlimited.limitless = true;  // limits of decoding do not apply to a stream that was just encoded
  try {
    const std::string result = job.digest            ? verify_lossless(path, unlimited, job.digest->result())
                               : job.params.lossless ? verify_hashes(path, unlimited)
                                                     : verify_lossy(path, job.options, unlimited);
    const int tracks = job.sink->verify_sound();
    return tracks == 0 ? result
                       : result + ", " + count_of(static_cast<std::uint64_t>(tracks), "track") + " of sound too";
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kMismatch && e.kind() != ErrorKind::kBadStream) throw;
    fail(ErrorKind::kMismatch, "verification of '" + job.options.output + "' failed, nothing is kept: " + e.what());
  }
}

}  // namespace trivelet::cli
