// The CPU backend of the predictive profile: the blocks of a GOP are coded in parallel, one GOP at a time.
#pragma once

#include <memory>

#include "codec/backend.h"

namespace trivelet {

std::unique_ptr<GopEncoder> make_predictive_encoder(const StreamHeader& header, const BackendOptions& options);
std::unique_ptr<GopDecoder> make_predictive_decoder(const StreamHeader& header, const BackendOptions& options);

/// The same backend with checks: the encoder reads every codeword again and compares its tokens, and decodes every 16th
/// block. Throws Mismatch where a result differs.
const Backend& checked_prediction();

}  // namespace trivelet
