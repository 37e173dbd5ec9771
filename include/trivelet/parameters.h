// The coding choices of a stream, and the versions of library and format.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace trivelet {

/// Version of the library and of the stream format it writes.
inline constexpr const char* kLibraryVersion = "0.1.0";
inline constexpr int kFormatMajor = 0;
inline constexpr int kFormatMinor = 9;  ///< the candidate for 1.0; this version reads streams of 0.9 and later

/// Filters along one axis.
enum class Wavelet : std::uint8_t {
  kHaar = 0,    ///< float Haar; reversible: S-transform
  kCdf53 = 1,   ///< Cohen-Daubechies-Feauveau 5/3
  kCdf97 = 2,   ///< CDF 9/7, float only
  kRev137 = 3,  ///< 13/7-T, reversible integer only
  /// 5/3 along motion trajectories, the temporal transform of GOPs with motion. Cannot be requested; see Motion
  kMotion = 4,
};

/// Whether the temporal transform of GOPs is motion-compensated.
enum class Motion : std::uint8_t {
  kOff = 0,
  kOn = 1,       ///< in all GOPs
  kAuto = 2,     ///< in GOPs where it pays
  kDefault = 3,  ///< kAuto in the dense profile, unless EncoderParams::temporal is chosen; else kOff
};

/// Whether keys of GOPs with motion are predicted from those before, where that is estimated to cost less
/// (FORMAT.md "Predicted keys"). Constant quality or lossless.
enum class KeyPrediction : std::uint8_t {
  kOff = 0,
  kOn = 1,    ///< along their motion. Smaller pictures are less exact until the next closed GOP
  kAuto = 2,  ///< from the same places of pictures: exact at every size. kOff where there is no motion or no open GOP,
              ///< with a target and with a bound on the rate
};

/// Position of the key frame in a GOP with motion: the one frame that is not predicted from others in time.
enum class GopKey : std::uint8_t {
  kFirst = 0,  ///< the first frame
  kLast = 1,   ///< the last frame
  kOpen = 2,   ///< the last frame; frames may be predicted from the previous GOP's key frame
};

/// In which order the axes are split.
enum class Layout : std::uint8_t {
  kT2d = 0,     ///< all temporal levels first, then a 2D pyramid on every temporal-subband frame
  kDyadic = 1,  ///< level l splits rows and columns and, for l <= temporal_levels, time too. Written for volumes alone
};

/// How a volume is decomposed. Axes of length 1 are not split.
struct Decomposition {
  Layout layout = Layout::kT2d;
  int temporal_levels = 0;  ///< 0..8; in kDyadic at most spatial_levels
  int spatial_levels = 0;   ///< 0..8
  Wavelet temporal = Wavelet::kCdf97;
  Wavelet spatial = Wavelet::kCdf97;
  bool key_last = false;  ///< t+2D: the first frame belongs to the GOP before, so the lowest temporal band lacks it
};

/// How coefficients (or, in the predictive profile, samples) are coded.
enum class Profile : std::uint8_t {
  kFast = 0,   ///< bit-sliced, with random access by population counts
  kDense = 1,  ///< adaptive range coder with contexts: about a sixth fewer bytes than kFast, at a tenth of the speed
  /// Samples predicted from their neighbours in the frame and in the two previous frames. Lossless only, without layers
  /// or reduced sizes. Usually the fewest bytes, at several times the speed of kDense.
  kPredictive = 2,
};

/// How hard the encoder searches: the predictive profile for prediction weights, GOPs with motion for motion.
enum class Effort : std::uint8_t { kFast = 0, kMedium = 1, kSlow = 2 };

/// How the fast profile codes new significance: kRaw bit by bit; kStaged with a flag for each group of siblings first.
/// Encoders write kStaged. Decoders read kRaw, too, which earlier development versions wrote.
enum class FastMode : std::uint8_t { kRaw = 0, kStaged = 1 };

/// Optional hooks for callers that control the threads of an encoder or decoder. They do not change the bytes.
struct Workers {
  /// Calls task(0) .. task(count - 1) once each, in any thread, in any order, in parallel or not, and returns when all
  /// have returned. Tasks never throw. Null: the library starts its own threads; otherwise it starts none, and
  /// `threads` is the most tasks of a call.
  std::function<void(int count, const std::function<void(int)>& task)> run{};
  /// Every working thread calls it many times a GOP. An exception from it ends the running call; after that the encoder
  /// or decoder can only be destroyed.
  std::function<void()> check{};
};

/// Which instruction set the CPU kernels use. Every level gives the same bytes; the scalar code is the reference.
enum class SimdLevel {
  kScalar = 0,
  kAvx2 = 1,    ///< AVX2 and BMI2
  kAvx512 = 2,  ///< AVX-512 F, BW, DQ, VL and BMI2
  kBest = 99,   ///< the best that this machine has
};

/// The best level of this machine that this build supports.
SimdLevel detected_simd();

/// "scalar", "avx2", "avx512" or "auto". parse_simd throws BadArgument for other names.
std::string to_string(SimdLevel level);
SimdLevel parse_simd(const std::string& name);

}  // namespace trivelet
