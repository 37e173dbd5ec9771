// trivelet encode of a video: turns the command line into parameters of the encoder.
#pragma once

#include "apps/video/encode_options.h"
#include "apps/video/video.h"
#include "codec/format/stream_layout.h"

namespace trivelet::cli {

EncoderParams typed_params(const EncodeOptions& options, const Common& common, const Command& app);

/// Uses --device as typed, because the options are those of this process.
bool asks_for_gpu(const Command& app);

/// --transform auto: whether prediction may be chosen. It is smaller and faster, except for colours, which it codes one
/// by one, and for --preset fast, whose wavelet takes half the time. The other conditions are options that only a
/// wavelet has.
bool may_predict(const Command& app, const EncodeOptions& options);
void choose_prediction(const Command& app, const EncodeOptions& options, EncoderParams& params);

/// --joinable: no GOP depends on those before it, so that the parts equal the whole. `first`: the file of --pin-from.
void make_joinable(const Command& app, const EncodeOptions& options, const std::optional<StreamLayout>& first,
                   EncoderParams& params);

/// Most GOPs in flight on a GPU, if that is known before the input is; 0 if it is not, or if several GOPs are searched
/// for motion at once.
std::uint64_t few_gops_of(const EncoderParams& params);
/// Must be called before the first use of GPUs, because they are started for the expected number of GOPs.
void expect_gops(const EncodeOptions& options, const Common& common, const Command& app);

}  // namespace trivelet::cli
