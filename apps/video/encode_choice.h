// trivelet encode of a video: what the command line means for the encoder.
#pragma once

#include "apps/video/encode_options.h"
#include "apps/video/video.h"
#include "codec/format/stream_layout.h"

namespace trivelet::cli {

EncoderParams typed_params(const EncodeOptions& options, const Common& common, const Command& app);

/// By --device as it was typed: what options say is of this process.
bool asks_for_gpu(const Command& app);

/// --transform auto: whether prediction may be chosen. It is smaller and faster, but for colours, which it takes one by
/// one, and for --preset fast, whose wavelet takes half the time. The rest is wishes that only a wavelet grants.
bool may_predict(const Command& app, const EncodeOptions& options);
void choose_prediction(const Command& app, const EncodeOptions& options, EncoderParams& params);

/// --joinable: no GOP depends on those before it, so that parts are what the whole would be. `first`: of --pin-from.
void make_joinable(const Command& app, const EncodeOptions& options, const std::optional<StreamLayout>& first,
                   EncoderParams& params);

/// For how many of them at once a GPU is to start, where that is known before the input is: not where they are searched
/// for motion beside each other (0).
std::uint64_t few_gops_of(const EncoderParams& params);
/// To be called before anything asks for GPUs, for that starts them as they are expected to be used.
void expect_gops(const EncodeOptions& options, const Common& common, const Command& app);

}  // namespace trivelet::cli
