// The choices that describe how a stream is coded, and the versions of library and format.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace trivelet {

/// Version of the library and of the stream format it writes.
inline constexpr const char* kLibraryVersion = "0.1.0";
inline constexpr int kFormatMajor = 0;
inline constexpr int kFormatMinor =
    9;  ///< the candidate for 1.0; streams of 0.9 and later are read, those before are not

/// Filters along one axis.
enum class Wavelet : std::uint8_t {
  kHaar = 0,    ///< float Haar; reversible: S-transform
  kCdf53 = 1,   ///< Cohen-Daubechies-Feauveau 5/3
  kCdf97 = 2,   ///< CDF 9/7, float only
  kRev137 = 3,  ///< 13/7-T, reversible integer only
  kMotion = 4,  ///< 5/3 along the motion: what GOPs with motion have along time. Nothing to ask for, see Motion
};

/// Whether GOPs are transformed along the motion in them.
enum class Motion : std::uint8_t {
  kOff = 0,
  kOn = 1,    ///< all of them
  kAuto = 2,  ///< those where it pays
};

/// Where the key frame of a GOP with motion stands, the only one that is not predicted from others along time.
enum class GopKey : std::uint8_t {
  kFirst = 0,  ///< it is the first frame
  kLast = 1,   ///< it is the last one
  kOpen = 2,   ///< the last one, and frames may be predicted from the key frame of the GOP before
};

/// In which order the axes are split.
enum class Layout : std::uint8_t {
  kT2d = 0,     ///< all temporal levels first, then a 2D pyramid on every temporal-subband frame
  kDyadic = 1,  ///< level l splits rows and columns and, for l <= temporal_levels, time too
};

/// How a volume is decomposed. Levels that find a length of 1 leave it as it is.
struct Decomposition {
  Layout layout = Layout::kT2d;
  int temporal_levels = 0;  ///< 0..8; in kDyadic at most spatial_levels
  int spatial_levels = 0;   ///< 0..8
  Wavelet temporal = Wavelet::kCdf97;
  Wavelet spatial = Wavelet::kCdf97;
  bool key_last = false;  ///< the first frame is not one of the GOP: the lowest temporal band is without it. t+2D
};

/// How coefficients are coded; or, without any transform, samples.
enum class Profile : std::uint8_t {
  kFast = 0,   ///< bit-sliced, addressable by population counts
  kDense = 1,  ///< adaptive range coder with contexts: about a sixth fewer bytes, at a tenth of the speed
  /// Lossless only, without layers or smaller pictures in it: samples predicted from their neighbours in the frame and
  /// in the two before it. Usually the fewest bytes, at several times the speed of kDense.
  kPredictive = 2,
};

/// How long an encoder looks for what makes few bytes. The predictive profile: for weights of its neighbours;
/// with motion: for that.
enum class Effort : std::uint8_t { kFast = 0, kMedium = 1, kSlow = 2 };

/// How the fast profile sends new significance: kRaw bit by bit; kStaged first a flag per group of siblings.
enum class FastMode : std::uint8_t { kRaw = 0, kStaged = 1 };

/// How an encoder or decoder has its work done, where the caller wants a say in it. The bytes are the same.
struct Workers {
  /// Calls task(0) .. task(count - 1), each once, in any threads and order, beside each other or not; returns when all
  /// have returned, which never throw. Null: threads of the library. With one it starts no threads of its own, and
  /// `threads` is the most tasks of a call.
  std::function<void(int count, const std::function<void(int)>& task)> run{};
  /// Called often, many times a GOP, by every thread that works. What it throws ends the call that is running; the
  /// encoder or decoder is then good for nothing but to be destroyed.
  std::function<void()> check{};
};

/// Which instruction set the CPU kernels use. Every level gives the same bytes; the scalar code is the reference.
enum class SimdLevel {
  kScalar = 0,
  kAvx2 = 1,    ///< AVX2 and BMI2
  kAvx512 = 2,  ///< AVX-512 F, BW, DQ, VL and BMI2
  kBest = 99,   ///< whatever this machine has
};

/// The best level this machine and this build have.
SimdLevel detected_simd();

/// "scalar", "avx2", "avx512", "auto"; parse throws BadArgument for other names.
std::string to_string(SimdLevel level);
SimdLevel parse_simd(const std::string& name);

}  // namespace trivelet
