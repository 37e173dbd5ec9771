// YCoCg-R on the device (codec/transform/colour.h): samples of planes G, B, R to the values of three components and
// back.
#pragma once

#include "gpu/transform/dwt.h"

namespace trivelet::gpu {

/// `values[c]`: as many values as a plane has samples, without gaps. T is float or std::int32_t.
template <class T>
void forward_colour(const std::byte* const (&samples)[3], SampleFormat format, std::size_t count, std::int32_t offset,
                    T* const (&values)[3], const Stream& stream);

template <class T>
void inverse_colour(const T* const (&values)[3], std::size_t count, float gain, std::int32_t offset,
                    std::int32_t max_sample, std::byte* const (&samples)[3], SampleFormat format, const Stream& stream);

}  // namespace trivelet::gpu
