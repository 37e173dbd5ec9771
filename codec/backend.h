// THE SEAM between the codec and what computes it: whole GOPs in, coded GOPs out, and back.
//
// A backend transforms, quantises and codes. Everything else (files, rate decisions, container) exists once and never
// asks which backend is at work; all backends give the same bytes. An encoder or decoder may work ahead: push() can
// return before the work is done, pull() delivers in the order of the pushes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/format/chunk.h"
#include "codec/format/stream_geometry.h"
#include "codec/threads/parallel.h"
#include "trivelet/coefficients.h"

namespace trivelet {

struct BackendOptions {
  int threads = 0;
  SimdLevel simd = SimdLevel::kBest;
  Effort effort = Effort::kMedium;
  Workers workers{};
  /// Every GOP is coded once, and how the next one begins is decided before it is known whether this one moves.
  bool lookahead = false;
  /// GOPs that the CPU may have in work beside each other (gop_lanes.h): they are pushed one after the other, each
  /// once.
  int lanes = 1;
  /// CodedGop::samples are wanted of GOPs that were pulled long ago, of as many as GopEncoder::depth() says; else only
  /// until the GOP is given back.
  bool keeps_samples = false;
};

/// What an encoder decides about a GOP before it is coded.
struct GopChoices {
  float step = 1;                         ///< quantiser step; ignored for lossless streams
  std::vector<std::uint8_t> frame_gains;  ///< GopHeader::frame_gains
  Motion motion = Motion::kOff;           ///< streams with motion only
  GopKey key = GopKey::kFirst;            ///< of a GOP with motion; open: that before has left a key frame, …
  GopKey key_if_closed = GopKey::kFirst;  ///< … or would if it moved, and this is the key if it turns out not to
  int levels = 0;                         ///< temporal ones of a GOP with motion
  /// There is a target, for which the GOP may be coded again. Fast profile: deliver PassTables, a part per plane, and
  /// no layers.
  bool passes = false;
  /// Dense profile: the refinement of the last plane is not coded. It brings twice the square of the step a byte, less
  /// than a target asks for that is about met by the planes before.
  bool spare_last_pass = false;
  /// Lossy coefficients are rounded to what they are worth in steps like this one (rounding.h); 0: they are not.
  float rounding_step = 0;
  /// The key, told whether the GOP before has left one.
  GopKey key_behind(bool left_key) const { return key == GopKey::kOpen && !left_key ? key_if_closed : key; }
  /// With which key its motion is searched then: what is open but for the GOP before is searched as open, which can be
  /// done before that is known, and becomes a closed one (without_before() of motion_search.h) where frames have the
  /// same places.
  GopKey search_key(bool left_key) const { return key_behind(left_key) == GopKey::kFirst ? GopKey::kFirst : key; }
};

/// What the two directions of a backend share: GOPs in flight, and the time they take.
class GopWorker {
 public:
  virtual ~GopWorker() = default;
  /// GOPs it likes to have in flight before the first pull.
  virtual int depth() const = 0;
  /// Whether the next pull() has nothing to wait for; false where that is not known.
  virtual bool is_ready() { return false; }
  virtual double seconds_transform() const = 0;
  virtual double seconds_coder() const = 0;
  /// The same of all threads together.
  virtual double busy_transform() const { return seconds_transform(); }
  virtual double busy_coder() const { return seconds_coder(); }
  /// The threads of the host that do the work; null where a device does it, or lanes of such threads (gop_lanes.h).
  virtual const ThreadPool* pool() const { return nullptr; }
  virtual bool has_lanes() const { return false; }
};

class GopEncoder : public GopWorker {
 public:
  /// GOPs that may have been pulled and still be used by other threads; 0: a pulled one is used before anything else is
  /// asked.
  virtual int outstanding() const { return 0; }
  /// `gop` may be read until it is pulled, or until wait_for_samples() returns.
  virtual void push(const Gop& gop, const GopChoices& choices) = 0;
  /// Coefficients come with their frame gains and motion, whatever choices say.
  virtual void push(CoefficientGop& coefficients, const GopChoices& choices) = 0;
  /// Coefficients of a GOP, not coded.
  virtual void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) = 0;
  /// Codes the samples of the last push once more: the same GOP and frame gains, with choices.passes both times.
  virtual void push_again(const Gop& gop, const GopChoices& choices) { push(gop, choices); }
  /// The mean squared error of what a decoder makes of the GOP coded last, with choices.passes, rounding_step or
  /// motion, when its segments end at these cuts (rate_control.h). Negative where there is no faster way than to decode
  /// it.
  virtual double squared_error(const Gop&, const GopChoices&, const std::vector<std::uint8_t>& /*cuts*/) { return -1; }
  /// False when nothing is pending. Grids in `out` stay valid as long as the encoder.
  virtual bool pull(CodedGop& out) = 0;
  /// Returns when no sample of any GOP pushed is going to be read any more.
  virtual void wait_for_samples() noexcept {}
};

class GopDecoder : public GopWorker {
 public:
  /// `received` and the bytes it points to must stay alive until pulled. With `damage` given, blocks that contradict
  /// themselves become zero and are named there; otherwise they throw BadStream.
  virtual void push(const LayeredGop& received, std::vector<std::string>* damage) = 0;
  /// Decodes into samples (of the reduced size); sets gop.frames().
  virtual bool pull(Gop& gop) = 0;
  /// The same; `gop` may come back with other memory of the kind that Backend::allocate makes.
  virtual bool exchange(Gop& gop) { return pull(gop); }
  virtual bool pull(CoefficientGop& coefficients) = 0;
  virtual void inverse(CoefficientGop& coefficients, Gop& gop) = 0;
};

struct Backend {
  const char* name;
  std::function<std::unique_ptr<GopEncoder>(const StreamHeader&, const BackendOptions&)> make_encoder;
  std::function<std::unique_ptr<GopDecoder>(const StreamHeader&, const Reduction&, const BackendOptions&)> make_decoder;
  /// Memory from which an encoder takes samples, and in which a decoder leaves them, without a copy in between; null:
  /// any memory is as good.
  SampleAllocator allocate = nullptr;
  /// The geometry of GOPs of so many frames, which takes milliseconds to make, where it is kept for more streams than
  /// one; `header`: StreamHeader::of_gop(). Null: every stream makes its own. Any thread may ask.
  std::function<std::shared_ptr<const StreamGeometry>(const StreamHeader&, int frames)> geometry = nullptr;
};

const Backend& cpu_backend();

/// Whether `a` can take the place of `b`: room for as many frames of the same size, not lying anywhere.
inline bool are_alike(const Gop& a, const Gop& b) {
  if (a.capacity() != b.capacity() || a.components() != b.components()) return false;
  for (int c = 0; c < a.components(); ++c) {
    const VolumeView v = a.plane(c), w = b.plane(c);
    if (v.frames || v.shape.height != w.shape.height || v.shape.width != w.shape.width ||
        v.bytes_per_sample != w.bytes_per_sample)
      return false;
  }
  return true;
}

}  // namespace trivelet
