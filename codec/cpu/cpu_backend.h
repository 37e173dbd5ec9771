// The transform coders of the CPU backend.
#pragma once

#include <memory>

#include "codec/backend.h"

namespace trivelet {

/// For the profiles with a transform.
std::unique_ptr<GopEncoder> make_transform_encoder(const StreamHeader& header, const BackendOptions& options);
std::unique_ptr<GopDecoder> make_transform_decoder(const StreamHeader& header, const Reduction& reduction,
                                                   const BackendOptions& options);

}  // namespace trivelet
