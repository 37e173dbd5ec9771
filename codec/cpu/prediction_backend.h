// The backend of the predictive profile on the CPU: the blocks of a GOP in parallel, one GOP at a time.
#pragma once

#include <memory>

#include "codec/backend.h"

namespace trivelet {

std::unique_ptr<GopEncoder> make_predictive_encoder(const StreamHeader& header, const BackendOptions& options);
std::unique_ptr<GopDecoder> make_predictive_decoder(const StreamHeader& header, const BackendOptions& options);

/// The same backend, which checks what it codes: every codeword is read again for the tokens that went in, and every
/// 16th is decoded. Mismatch when that gives anything else.
const Backend& checked_prediction();

}  // namespace trivelet
