// Vectorised loops of volume_shift.h.
#include "codec/volume/volume_shift.h"

#include <cstring>

namespace trivelet {

namespace {

template <class T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class U, bool kSwap>
U in_order(U v) {
  if constexpr (kSwap) return static_cast<U>(v << 8 | v >> 8);
  return v;
}

// The shift is passed by value, so that the compiler knows that no store aliases it.
template <class U, class T, bool kSwap>
void to_samples(ScalarShift s, const std::byte* from, std::byte* to, std::size_t n) {
  const auto sign = static_cast<U>(s.sign), offset = static_cast<U>(s.offset), last = static_cast<U>(s.last_key);
  for (std::size_t i = 0; i < n; ++i) {
    const auto key = static_cast<U>(in_order<U, kSwap>(load<U>(from + i * sizeof(U))) ^ sign);
    const U above = key < offset ? offset : key;
    const auto sample = static_cast<T>((above > last ? last : above) - offset);
    std::memcpy(to + i * sizeof(T), &sample, sizeof sample);
  }
}

template <class U, class T, bool kSwap>
void to_stored(ScalarShift s, const std::byte* from, std::byte* to, std::size_t n) {
  const auto sign = static_cast<U>(s.sign), offset = static_cast<U>(s.offset);
  const auto last = static_cast<U>(s.last_key - s.offset);
  for (std::size_t i = 0; i < n; ++i) {
    const U sample = load<T>(from + i * sizeof(T));
    const auto key = static_cast<U>((sample > last ? last : sample) + offset);
    const U bits = in_order<U, kSwap>(static_cast<U>(key ^ sign));
    std::memcpy(to + i * sizeof(U), &bits, sizeof bits);
  }
}

// Calls f.operator()<U, T, kSwap>().
template <class F>
void by_form(const ScalarShift& s, int bytes_per_sample, const F& f) {
  if (!s.wide) return f.template operator()<std::uint8_t, std::uint8_t, false>();
  if (bytes_per_sample == 1) {
    s.swap ? f.template operator()<std::uint16_t, std::uint8_t, true>()
           : f.template operator()<std::uint16_t, std::uint8_t, false>();
    return;
  }
  s.swap ? f.template operator()<std::uint16_t, std::uint16_t, true>()
         : f.template operator()<std::uint16_t, std::uint16_t, false>();
}

}  // namespace

void shift_to_samples(const ScalarShift& s, const std::byte* stored, std::byte* samples, int bytes_per_sample,
                      std::size_t n) {
  by_form(s, bytes_per_sample, [&]<class U, class T, bool kSwap>() { to_samples<U, T, kSwap>(s, stored, samples, n); });
}

void shift_to_stored(const ScalarShift& s, const std::byte* samples, int bytes_per_sample, std::byte* stored,
                     std::size_t n) {
  by_form(s, bytes_per_sample, [&]<class U, class T, bool kSwap>() { to_stored<U, T, kSwap>(s, samples, stored, n); });
}

}  // namespace trivelet
