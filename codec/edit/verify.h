// Whether a stream is what its writer made: every checksum and hash, the order of its boxes, the index against the
// packets it tells of, and the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trivelet/codec.h"

namespace trivelet {

struct VerifyResult {
  std::uint64_t frames = 0;
  std::uint64_t gops = 0;
  std::uint64_t damaged_gops = 0;
  std::vector<std::string> damage;  ///< what and where, a line each, about a hundred at most; empty: intact
};

/// A decoder that looks at everything else in the stream, too. Pull all GOPs, then finish().
class StreamVerifier {
 public:
  /// Damage is collected, so `params.keep_partial` does not matter; nothing may be selected or reduced. Throws what
  /// Decoder throws.
  StreamVerifier(ByteSource& source, DecoderParams params, const Backend* backend = nullptr);
  ~StreamVerifier();
  const StreamInfo& info() const;
  const VideoInfo& output() const;
  Gop make_gop() const;
  bool pull(Gop& gop);
  VerifyResult finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// All of it at once.
VerifyResult verify_stream(ByteSource& source, const DecoderParams& params, const Backend* backend = nullptr);

/// What is wrong with the boxes of a seekable stream, without decoding and without a look into the chunks.
std::vector<std::string> check_boxes(ByteSource& source);

}  // namespace trivelet
