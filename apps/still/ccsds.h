// Subcommands of "trivelet ccsds" that are in other files, and what "trivelet still" does with CCSDS streams.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/still/ccsds_image.h"

namespace trivelet::cli {

Action define_ccsds_bench(Command& app, Common& common);
Action define_ccsds_compare(Command& app, Common& common);

/// "ccsds encode" with its defaults; `bpp` 0 = lossless.
int encode_ccsds(const std::vector<std::string>& files, double bpp, const CcsdsInput& reading,
                 const std::string& device, const Common& common);
/// "ccsds decode" and "ccsds info" with their defaults, of a stream that was read from `input`.
int decode_ccsds(const std::string& input, const std::vector<std::byte>& stream, const std::string& output,
                 const std::string& device, const Common& common);
int describe_ccsds(const std::string& input, const std::vector<std::byte>& stream, bool json, const Common& common);

}  // namespace trivelet::cli
