// The HDF5 filter: stores every chunk as a volume stream. HDF5 finds the filter by HDF5_PLUGIN_PATH and its number.
//
// Client data are 32-bit words from the user. Missing words are 0; without any the filter is lossless:
//   0     their version, 1
//   1     0 lossless, 1 max_error, 2 quality, 3 psnr, 4 bits per voxel, 5 ratio of bytes before to bytes after
//   2, 3  the value for word 1, a binary64, low word first
//   4     transform: 0 what is smaller, 1 wavelet, 2 prediction; + 16 * effort: 0 medium, 1 fast, 2 slow;
//         + 256 * profile: 0 dense, 1 fast
//   5     block size, 0 = 128
//   6     slices of a GOP, 0 = chosen
//   7     quality layers, 0 = chosen
// When a dataset is created, the filter appends a description of its chunks:
//   8     type of scalars as in trivelet.h; + 256 where they are big endian
//   9     how many extents follow: those of a chunk
// Axes longer than 1, at most four, become volumes, slices, rows and columns.
//
// The filter is not linked with HDF5: Python wheels bring a private copy, and a second copy could not access its
// datasets. So functions are looked up in the library that calls the filter.

#include <H5PLextern.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "trivelet/trivelet.h"

namespace {

constexpr H5Z_filter_t kFilter = 480;  // from 256..511, the range for testing, until a number is assigned
constexpr unsigned kVersion = 1;
constexpr std::size_t kUser = 8;   // words from the user
constexpr std::size_t kShape = 2;  // words before the extents
constexpr std::size_t kAxes = 4;

/// Why the filter refuses a dataset.
struct Refusal {
  std::string text;
};

std::string text_of(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

/// The HDF5 library that called.
class Hdf5 {
 public:
  /// `caller`: the return address of the callback.
  explicit Hdf5(const void* caller) {
    Dl_info found = {};
    if (dladdr(caller, &found) != 0) library_ = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library_ == nullptr) library_ = dlopen(nullptr, RTLD_LAZY);  // HDF5 is linked into the program itself
  }
  ~Hdf5() {
    if (library_ != nullptr) dlclose(library_);
  }
  Hdf5(const Hdf5&) = delete;
  Hdf5& operator=(const Hdf5&) = delete;

  template <typename Symbol>
  Symbol& get(const char* name) const {
    void* found = library_ == nullptr ? nullptr : dlsym(library_, name);
    if (found == nullptr) throw Refusal{std::string("what called the filter has no ") + name};
    return *reinterpret_cast<Symbol*>(found);
  }

  /// Pushes an error on HDF5's stack; programs show its innermost text.
  void report(const std::string& text) const {
    try {
      get<decltype(H5Epush2)>("H5Epush2")(H5E_DEFAULT, __FILE__, "trivelet", __LINE__, get<hid_t>("H5E_ERR_CLS_g"),
                                          get<hid_t>("H5E_PLINE_g"), get<hid_t>("H5E_CANTFILTER_g"), "Trivelet: %s",
                                          text.c_str());
    } catch (const Refusal&) {
      // HDF5 still sees the failed result if this fails.
    }
  }

 private:
  void* library_ = nullptr;
};

/// Runs `work`. Exceptions become HDF5 errors with the result `failed`.
template <typename Result, typename Work>
Result answer(const Hdf5& hdf5, Result failed, const Work& work) {
  try {
    return work();
  } catch (const Refusal& refusal) {
    hdf5.report(refusal.text);
  } catch (const std::exception& error) {
    hdf5.report(error.what());
  }
  return failed;
}

// ---------------------------------------------------------------------------------------------------- client data

struct Chunk {
  tvl_volume volume = {};
  tvl_volume_params params = {};
  std::string settings;  // of `params`: axis names, in the form the Python package uses

  Chunk() {
    tvl_volume_init(&volume, sizeof volume);
    tvl_volume_params_init(&params, sizeof params);
  }
};

void set_shape(Chunk& chunk, const unsigned* extents, std::size_t rank) {
  std::vector<unsigned> axes;
  std::copy_if(extents, extents + rank, std::back_inserter(axes), [](unsigned n) { return n > 1; });
  if (axes.size() > kAxes)
    throw Refusal{"chunks with " + std::to_string(axes.size()) + " axes longer than 1; at most 4"};
  if (axes.empty()) axes.push_back(1);
  chunk.settings = std::string("axes tzyx").erase(5, kAxes - axes.size());
  axes.insert(axes.begin(), kAxes - axes.size(), 1);
  const std::uint64_t most = tvl_limit_of(TVL_LIMIT_SIZE);
  if (axes[2] > most || axes[3] > most)
    throw Refusal{"chunks of " + std::to_string(axes[2]) + " rows and " + std::to_string(axes[3]) +
                  " columns; at most " + std::to_string(most)};
  chunk.volume.volumes = axes[0];
  chunk.volume.slices = axes[1];
  chunk.volume.height = static_cast<std::int32_t>(axes[2]);
  chunk.volume.width = static_cast<std::int32_t>(axes[3]);
}

void set_params(Chunk& chunk, const unsigned* words) {
  tvl_volume_params& params = chunk.params;
  const double value = std::bit_cast<double>(std::uint64_t{words[3]} << 32 | words[2]);
  const bool in_range = words[1] == 0   ? value == 0
                        : words[1] == 1 ? value >= 0 && value < HUGE_VAL
                        : words[1] == 2 ? value >= 0 && value <= 100
                                        : value > 0 && value < HUGE_VAL;
  if (words[1] > 5 || !in_range)
    throw Refusal{
        "mode " + std::to_string(words[1]) + " with the value " + text_of(value) +
        "; there are lossless (0, without a value), max_error (1, from 0 on), quality (2, 0 to 100), psnr, bpp "
        "and ratio (3, 4, 5, above 0)"};
  if (words[1] == 1) params.max_error = value;
  if (words[1] == 2) params.quality = value;
  if (words[1] == 3) params.psnr = value;
  if (words[1] == 4) params.bits_per_voxel = value;
  if (words[1] == 5)
    params.total_bytes =
        static_cast<std::uint64_t>(std::max(1.0, static_cast<double>(tvl_volume_bytes(&chunk.volume)) / value));
  const unsigned transform = words[4] & 15, effort = words[4] >> 4 & 15, profile = words[4] >> 8;
  if (transform > 2 || effort > 2 || profile > 1)
    throw Refusal{"transform " + std::to_string(transform) + ", effort " + std::to_string(effort) + ", profile " +
                  std::to_string(profile) + "; at most 2, 2, 1"};
  params.transform = static_cast<std::int32_t>(transform);
  params.effort = std::array{TVL_EFFORT_MEDIUM, TVL_EFFORT_FAST, TVL_EFFORT_SLOW}[effort];
  params.profile = std::array{TVL_PROFILE_DENSE, TVL_PROFILE_FAST}[profile];
  for (const std::size_t i : {5, 6, 7})
    if (words[i] > 256)
      throw Refusal{"word " + std::to_string(i) + " of the client data is " + std::to_string(words[i])};
  if (words[5] != 0) params.block_size = static_cast<std::int32_t>(words[5]);
  params.slab = static_cast<std::int32_t>(words[6]);
  params.layers = static_cast<std::int32_t>(words[7]);
}

/// One thread unless the environment sets a number, because programs that read in parallel run a process per core.
std::int32_t threads() {
  const char* asked = std::getenv("TRIVELET_THREADS");
  if (asked == nullptr) return 1;
  char* end = nullptr;
  const long number = std::strtol(asked, &end, 10);
  if (end == asked || *end != 0 || number < 0 || number > 1024)
    throw Refusal{std::string("TRIVELET_THREADS is '") + asked + "'; it must be 0, one for each core, to 1024"};
  return static_cast<std::int32_t>(number);
}

/// Decodes the words of a dataset.
Chunk chunk_of(const unsigned* words, std::size_t count) {
  if (count < kUser + kShape || count - kUser - kShape != words[kUser + 1] || (words[kUser] & 255) > TVL_F64 ||
      words[kUser] >> 9 != 0 || words[0] != kVersion)
    throw Refusal{"client data of " + std::to_string(count) +
                  " words that do not tell type and shape of the chunks, or of a later version of the filter"};
  Chunk chunk;
  chunk.volume.type = static_cast<std::int32_t>(words[kUser] & 255);
  chunk.volume.big_endian = static_cast<std::int32_t>(words[kUser] >> 8);
  set_shape(chunk, words + kUser + kShape, count - kUser - kShape);
  set_params(chunk, words);
  chunk.params.threads = threads();
  return chunk;
}

unsigned type_of(const Hdf5& hdf5, hid_t type) {
  const H5T_class_t kind = hdf5.get<decltype(H5Tget_class)>("H5Tget_class")(type);
  const std::size_t size = hdf5.get<decltype(H5Tget_size)>("H5Tget_size")(type);
  const bool whole = kind == H5T_INTEGER && (size == 1 || size == 2 || size == 4 || size == 8);
  const H5T_order_t order =
      whole || kind == H5T_FLOAT ? hdf5.get<decltype(H5Tget_order)>("H5Tget_order")(type) : H5T_ORDER_NONE;
  if ((!whole && !(kind == H5T_FLOAT && (size == 4 || size == 8))) || (order != H5T_ORDER_LE && order != H5T_ORDER_BE))
    throw Refusal{"a type of HDF5's class " + std::to_string(kind) + " with " + std::to_string(size) +
                  " bytes; there are integers of 8 to 64 bits and floats of 32 and 64"};
  const unsigned big_endian = order == H5T_ORDER_BE && size > 1 ? 256 : 0;
  if (!whole) return (size == 4 ? TVL_F32 : TVL_F64) + big_endian;
  const bool is_signed = hdf5.get<decltype(H5Tget_sign)>("H5Tget_sign")(type) == H5T_SGN_2;
  return 2 * static_cast<unsigned>(std::countr_zero(size)) + (is_signed ? 1 : 0) + big_endian;
}

/// All words of a new dataset: the user's and the description of its chunks.
std::vector<unsigned> words_of(const Hdf5& hdf5, hid_t properties, hid_t type, unsigned& flags) {
  std::vector<unsigned> words(kUser + kShape + H5S_MAX_RANK);
  std::size_t count = words.size();
  if (hdf5.get<decltype(H5Pget_filter_by_id2)>("H5Pget_filter_by_id2")(properties, kFilter, &flags, &count,
                                                                       words.data(), 0, nullptr, nullptr) < 0)
    throw Refusal{"no client data"};
  // In a copied dataset (h5repack) the user's words are followed by the original's description.
  if (count > kUser && (count < kUser + kShape || count - kUser - kShape != words[kUser + 1]))
    throw Refusal{std::to_string(count) + " words of client data; at most 8"};
  std::fill(words.begin() + static_cast<std::ptrdiff_t>(std::min(count, kUser)), words.end(), 0u);
  if (count == 0) words[0] = kVersion;
  if (words[0] != kVersion)
    throw Refusal{"client data of version " + std::to_string(words[0]) + "; this filter knows 1"};

  std::array<hsize_t, H5S_MAX_RANK> extents = {};
  const int rank = hdf5.get<decltype(H5Pget_chunk)>("H5Pget_chunk")(properties, H5S_MAX_RANK, extents.data());
  if (rank < 1) throw Refusal{"a dataset without chunks"};
  words[kUser] = type_of(hdf5, type);
  words[kUser + 1] = static_cast<unsigned>(rank);
  std::transform(extents.begin(), extents.begin() + rank, words.begin() + kUser + kShape,
                 [](hsize_t n) { return static_cast<unsigned>(n); });  // HDF5 limits chunks to 4 GiB
  words.resize(kUser + kShape + static_cast<std::size_t>(rank));
  return words;
}

// ------------------------------------------------------------------------------------------------------ streams

using Encoder = std::unique_ptr<tvl_encoder, decltype(&tvl_encoder_free)>;
using Decoder = std::unique_ptr<tvl_decoder, decltype(&tvl_decoder_free)>;

/// Encodes into the encoder's memory.
void encode(const Encoder& encoder, const Chunk& chunk, void* scalars) {
  if (encoder == nullptr) throw std::bad_alloc();
  tvl_volume_params params = chunk.params;
  params.settings = chunk.settings.c_str();
  const tvl_voxels voxels = {scalars, 0, 0, 0};
  if (tvl_encoder_write_volume(encoder.get(), &chunk.volume, &params, &voxels, nullptr, nullptr, nullptr) != TVL_OK)
    throw Refusal{tvl_encoder_error(encoder.get())};
}

/// `scalars` must hold the whole chunk.
void decode(const void* stream, std::size_t bytes, const Chunk& chunk, void* scalars) {
  const Decoder decoder(tvl_decoder_new(), tvl_decoder_free);
  if (decoder == nullptr) throw std::bad_alloc();
  const auto check = [&](tvl_result result) {
    if (result != TVL_OK) throw Refusal{tvl_decoder_error(decoder.get())};
  };
  tvl_source source;
  tvl_source_init(&source, sizeof source);
  source.data = stream;
  source.size = bytes;
  tvl_volume_decode_params params;
  tvl_volume_decode_params_init(&params, sizeof params);
  params.threads = chunk.params.threads;
  check(tvl_decoder_open_volume(decoder.get(), &source, &params));
  tvl_volume found;
  tvl_volume_init(&found, sizeof found);
  check(tvl_decoder_volume(decoder.get(), &found, nullptr, nullptr));
  const tvl_volume& wanted = chunk.volume;
  const auto shape = [](const tvl_volume& v) {
    return std::to_string(v.volumes) + "x" + std::to_string(v.slices) + "x" + std::to_string(v.height) + "x" +
           std::to_string(v.width) + ", type " + std::to_string(v.type) + (v.big_endian != 0 ? " big endian" : "");
  };
  if (found.channels != 1 || shape(found) != shape(wanted))
    throw Refusal{"the stream's volume is " + shape(found) + "; the dataset's chunks are " + shape(wanted)};
  const tvl_voxels voxels = {scalars, 0, 0, 0};
  std::uint64_t slices = 0;
  check(tvl_decoder_read_slices(decoder.get(), &voxels, wanted.volumes * wanted.slices, &slices));
  if (slices != wanted.volumes * wanted.slices) throw Refusal{"the stream ends early"};
}

// ---------------------------------------------------------------------------------------------------- callbacks

/// Whether chunks of this shape and type can be filtered. "No" is an error even for an optional filter, so that data
/// are not stored uncompressed without notice.
htri_t can_apply(hid_t properties, hid_t type, hid_t) {
  const Hdf5 hdf5(__builtin_return_address(0));
  return answer<htri_t>(hdf5, -1, [&] {
    unsigned flags = 0;
    const std::vector<unsigned> words = words_of(hdf5, properties, type, flags);
    Chunk chunk = chunk_of(words.data(), words.size());
    // The encoder decides what it refuses. A single voxel is tested, which satisfies every size limit.
    set_shape(chunk, nullptr, 0);
    if (words[1] >= 4) chunk.params.bits_per_voxel = -1, chunk.params.total_bytes = 0;
    std::uint64_t voxel = 0;
    encode(Encoder(tvl_encoder_new(), tvl_encoder_free), chunk, &voxel);
    return 1;
  });
}

herr_t set_local(hid_t properties, hid_t type, hid_t) {
  const Hdf5 hdf5(__builtin_return_address(0));
  return answer<herr_t>(hdf5, -1, [&] {
    unsigned flags = 0;
    const std::vector<unsigned> words = words_of(hdf5, properties, type, flags);
    return hdf5.get<decltype(H5Pmodify_filter)>("H5Pmodify_filter")(properties, kFilter, flags, words.size(),
                                                                    words.data());
  });
}

std::size_t filter(unsigned flags, std::size_t count, const unsigned* words, std::size_t bytes, std::size_t* capacity,
                   void** buffer) {
  const Hdf5 hdf5(__builtin_return_address(0));
  return answer<std::size_t>(hdf5, 0, [&] {
    const Chunk chunk = chunk_of(words, count);
    const std::size_t whole = tvl_volume_bytes(&chunk.volume);
    const auto allocate = [&](std::size_t size) {
      void* memory = hdf5.get<decltype(H5allocate_memory)>("H5allocate_memory")(size, false);
      if (memory == nullptr) throw std::bad_alloc();
      return memory;
    };
    auto& free_memory = hdf5.get<decltype(H5free_memory)>("H5free_memory");
    void* result = nullptr;
    std::size_t size = whole;
    if ((flags & H5Z_FLAG_REVERSE) != 0) {
      result = allocate(whole);
      try {
        decode(*buffer, bytes, chunk, result);
      } catch (...) {
        free_memory(result);
        throw;
      }
    } else {
      if (bytes != whole)
        throw Refusal{"a chunk of " + std::to_string(bytes) + " bytes; it should have " + std::to_string(whole) +
                      ", so let no other filter stand before this one"};
      const Encoder encoder(tvl_encoder_new(), tvl_encoder_free);
      encode(encoder, chunk, *buffer);
      const void* stream = nullptr;
      std::uint64_t stream_bytes = 0;
      if (tvl_encoder_stream(encoder.get(), &stream, &stream_bytes) != TVL_OK)
        throw Refusal{tvl_encoder_error(encoder.get())};
      size = stream_bytes;
      result = allocate(size);
      std::memcpy(result, stream, size);
    }
    free_memory(*buffer);
    *buffer = result;
    *capacity = size;
    return size;
  });
}

const H5Z_class2_t kClass = {H5Z_CLASS_T_VERS, kFilter, 1, 1, "Trivelet", can_apply, set_local, filter};

}  // namespace

H5PL_type_t H5PLget_plugin_type() { return H5PL_TYPE_FILTER; }
const void* H5PLget_plugin_info() { return &kClass; }
