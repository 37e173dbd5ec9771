// NVIDIA's nvJPEG2000 on raw 4:2:0 frames: rate, distortion and speed, for comparison with Trivelet on the same frames.
//
//   nvjpeg2000 CLIP_WIDTHxHEIGHT.yuv [--rates 0.1,0.25,…] [--in-flight N] [--seconds S]
//
// For HTJ2K and J2K and every rate (bits per luma pixel, all planes counted) it finds the quantisation step by
// bisection on the first frames, codes and decodes all frames, and prints a line of CSV: codec, step, frames, bits per
// pixel, PSNR of all planes, PSNR of luma, frames a second encoding and decoding. For the speeds N threads, each with
// its stream, code the frames repeatedly for S seconds, from page-locked memory to host memory and back (S = 0: no
// speeds). Settings: 9/7 wavelet, five levels, blocks of 64x64, one tile, no layers. A frame is one picture of three
// components, or three grey pictures where the library refuses subsampled components; standard error says which.
//
// Not part of the build: see nvjpeg2000.sh.
#include <cuda_runtime_api.h>
#include <nvjpeg2k.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(nvjpeg2kStatus_t status, const char* what) {
  if (status != NVJPEG2K_STATUS_SUCCESS)
    throw std::runtime_error(std::string(what) + ": nvJPEG2000 status " + std::to_string(status));
}
void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

struct Plane {
  int width, height;
  std::size_t offset;  ///< in a frame
  std::size_t bytes() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(height); }
};

struct Clip {
  std::vector<Plane> planes;
  std::size_t frame_bytes = 0;
  int frames = 0;
  std::uint8_t* samples = nullptr;  ///< page-locked
  const std::uint8_t* frame(int f) const { return samples + static_cast<std::size_t>(f) * frame_bytes; }
};

Clip load(const std::string& path) {
  Clip clip;
  int width = 0, height = 0;
  for (std::size_t i = path.size(); i-- > 0;)
    if (std::sscanf(path.c_str() + i, "_%dx%d", &width, &height) == 2) break;
  if (width < 32 || height < 32) throw std::runtime_error(path + ": the name must end in _WIDTHxHEIGHT.yuv");
  for (int c = 0; c < 3; ++c) {
    const Plane p{c ? (width + 1) / 2 : width, c ? (height + 1) / 2 : height, clip.frame_bytes};
    clip.planes.push_back(p);
    clip.frame_bytes += p.bytes();
  }
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot read " + path);
  clip.frames = static_cast<int>(static_cast<std::size_t>(file.tellg()) / clip.frame_bytes);
  if (clip.frames < 1) throw std::runtime_error(path + " holds no frame");
  const std::size_t size = clip.frame_bytes * static_cast<std::size_t>(clip.frames);
  check(cudaMallocHost(reinterpret_cast<void**>(&clip.samples), size), "page-locked memory");
  file.seekg(0);
  file.read(reinterpret_cast<char*>(clip.samples), static_cast<std::streamsize>(size));
  return clip;
}

struct Settings {
  bool ht = true;
  bool together = true;  // one picture of three components; else three grey ones
  double step = 0.1;
};

/// The state of one thread that codes and decodes frames.
class Worker {
 public:
  Worker(const Clip& clip, const Settings& settings) : clip_(clip), settings_(settings) {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    check(cudaMalloc(reinterpret_cast<void**>(&device_), clip.frame_bytes), "device memory");
    check(cudaMallocHost(reinterpret_cast<void**>(&decoded_), clip.frame_bytes), "page-locked memory");
    check(nvjpeg2kEncoderCreateSimple(&encoder_), "encoder");
    check(nvjpeg2kCreateSimple(&library_), "library");
    for (int i = 0; i < pictures(); ++i) {
      nvjpeg2kEncodeState_t state;
      nvjpeg2kDecodeState_t decoding;
      nvjpeg2kStream_t parsed;
      check(nvjpeg2kEncodeStateCreate(encoder_, &state), "encode state");
      check(nvjpeg2kDecodeStateCreate(library_, &decoding), "decode state");
      check(nvjpeg2kStreamCreate(&parsed), "stream handle");
      states_.push_back(state);
      decodings_.push_back(decoding);
      parsed_.push_back(parsed);
      params_.push_back(make_params(i));
    }
    set_step(settings.step);
  }
  ~Worker() {
    cudaStreamSynchronize(stream_);
    for (const auto p : params_) nvjpeg2kEncodeParamsDestroy(p);
    for (const auto s : states_) nvjpeg2kEncodeStateDestroy(s);
    for (const auto d : decodings_) nvjpeg2kDecodeStateDestroy(d);
    for (const auto s : parsed_) nvjpeg2kStreamDestroy(s);
    nvjpeg2kEncoderDestroy(encoder_);
    nvjpeg2kDestroy(library_);
    cudaFree(device_);
    cudaFreeHost(decoded_);
    cudaStreamDestroy(stream_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void set_step(double step) {
    settings_.step = step;
    for (const auto p : params_)
      check(nvjpeg2kEncodeParamsSpecifyQuality(p, NVJPEG2K_QUALITY_TYPE_QUANTIZATION_STEP, step), "step");
  }

  void encode(const std::uint8_t* frame, std::vector<std::vector<unsigned char>>& out) {
    check(cudaMemcpyAsync(device_, frame, clip_.frame_bytes, cudaMemcpyHostToDevice, stream_), "upload");
    out.resize(static_cast<std::size_t>(pictures()));
    for (int i = 0; i < pictures(); ++i) {
      Image image(*this, i);
      check(nvjpeg2kEncode(encoder_, states_[i], params_[i], &image.image, stream_), "encode");
    }
    for (int i = 0; i < pictures(); ++i) {
      std::size_t length = 0;
      check(nvjpeg2kEncodeRetrieveBitstream(encoder_, states_[i], nullptr, &length, stream_), "length");
      out[static_cast<std::size_t>(i)].resize(length);
      check(nvjpeg2kEncodeRetrieveBitstream(encoder_, states_[i], out[static_cast<std::size_t>(i)].data(), &length,
                                            stream_),
            "bitstream");
    }
    check(cudaStreamSynchronize(stream_), "encoding");
  }

  const std::uint8_t* decode(const std::vector<std::vector<unsigned char>>& coded) {
    for (int i = 0; i < pictures(); ++i) {
      const auto& bytes = coded[static_cast<std::size_t>(i)];
      check(nvjpeg2kStreamParse(library_, bytes.data(), bytes.size(), 0, 0, parsed_[i]), "parse");
      Image image(*this, i);
      check(nvjpeg2kDecode(library_, decodings_[i], parsed_[i], &image.image, stream_), "decode");
    }
    check(cudaMemcpyAsync(decoded_, device_, clip_.frame_bytes, cudaMemcpyDeviceToHost, stream_), "download");
    check(cudaStreamSynchronize(stream_), "decoding");
    return decoded_;
  }

 private:
  int pictures() const { return settings_.together ? 1 : 3; }

  struct Image {
    nvjpeg2kImage_t image{};
    void* data[3];
    std::size_t pitch[3];
    Image(const Worker& w, int picture) {
      const int first = w.settings_.together ? 0 : picture;
      const int count = w.settings_.together ? 3 : 1;
      for (int c = 0; c < count; ++c) {
        const Plane& p = w.clip_.planes[static_cast<std::size_t>(first + c)];
        data[c] = w.device_ + p.offset;
        pitch[c] = static_cast<std::size_t>(p.width);
      }
      image.pixel_data = data;
      image.pitch_in_bytes = pitch;
      image.pixel_type = NVJPEG2K_UINT8;
      image.num_components = static_cast<std::uint32_t>(count);
    }
  };

  nvjpeg2kEncodeParams_t make_params(int picture) {
    const int first = settings_.together ? 0 : picture;
    const int count = settings_.together ? 3 : 1;
    nvjpeg2kImageComponentInfo_t info[3];
    for (int c = 0; c < count; ++c) {
      const Plane& p = clip_.planes[static_cast<std::size_t>(first + c)];
      info[c] = {static_cast<std::uint32_t>(p.width), static_cast<std::uint32_t>(p.height), 8, 0};
    }
    nvjpeg2kEncodeConfig_t config{};
    config.stream_type = NVJPEG2K_STREAM_J2K;
    config.color_space = settings_.together ? NVJPEG2K_COLORSPACE_SYCC : NVJPEG2K_COLORSPACE_GRAY;
    config.rsiz = settings_.ht ? NVJPEG2K_RSIZ_HT : 0;
    config.image_width = info[0].component_width;
    config.image_height = info[0].component_height;
    config.num_components = static_cast<std::uint32_t>(count);
    config.image_comp_info = info;
    config.prog_order = settings_.ht ? NVJPEG2K_RPCL : NVJPEG2K_LRCP;
    config.num_layers = 1;
    config.num_resolutions = 6;
    config.code_block_w = 64;
    config.code_block_h = 64;
    config.encode_modes = settings_.ht ? NVJPEG2K_MODE_HT : 0;
    config.irreversible = 1;
    nvjpeg2kEncodeParams_t params;
    check(nvjpeg2kEncodeParamsCreate(&params), "encode params");
    check(nvjpeg2kEncodeParamsSetEncodeConfig(params, &config), "encode configuration");
    return params;
  }

  const Clip& clip_;
  Settings settings_;
  cudaStream_t stream_{};
  std::uint8_t* device_ = nullptr;
  std::uint8_t* decoded_ = nullptr;
  nvjpeg2kEncoder_t encoder_{};
  nvjpeg2kHandle_t library_{};
  std::vector<nvjpeg2kEncodeState_t> states_;
  std::vector<nvjpeg2kDecodeState_t> decodings_;
  std::vector<nvjpeg2kStream_t> parsed_;
  std::vector<nvjpeg2kEncodeParams_t> params_;
};

using Coded = std::vector<std::vector<unsigned char>>;

double bits_per_pixel(const Clip& clip, const std::vector<Coded>& coded) {
  double bytes = 0;
  for (const Coded& c : coded)
    for (const auto& picture : c) bytes += static_cast<double>(picture.size());
  return 8 * bytes / static_cast<double>(clip.planes[0].bytes()) / static_cast<double>(coded.size());
}

std::vector<Coded> encode_all(const Clip& clip, Worker& worker, int frames) {
  std::vector<Coded> coded(static_cast<std::size_t>(frames));
  for (int f = 0; f < frames; ++f) worker.encode(clip.frame(f), coded[static_cast<std::size_t>(f)]);
  return coded;
}

double find_step(const Clip& clip, Worker& worker, double rate) {
  double low = 1e-5, high = 1e3;  // bits fall with the step
  const int frames = clip.frames < 3 ? clip.frames : 3;
  for (int i = 0; i < 22 && high / low > 1.002; ++i) {
    const double step = std::sqrt(low * high);
    worker.set_step(step);
    (bits_per_pixel(clip, encode_all(clip, worker, frames)) > rate ? low : high) = step;
  }
  return high;
}

/// Frames a second when all workers repeat `work` for `seconds`; 0 without workers.
double speed(const Clip& clip, std::vector<std::unique_ptr<Worker>>& workers, double seconds,
             const std::function<void(Worker&, int frame, Coded& scratch)>& work) {
  using Clock = std::chrono::steady_clock;
  if (workers.empty()) return 0;
  std::atomic<long> next{0}, failed{0};
  std::atomic<bool> stop{false};
  double took = 0;
  for (const bool warm : {false, true}) {  // the first round allocates memory
    next = 0;
    stop = false;
    const auto begun = Clock::now();
    std::vector<std::thread> pool;
    for (auto& worker : workers)
      pool.emplace_back([&, w = worker.get()] {
        Coded scratch;
        try {
          while (!stop) work(*w, static_cast<int>(next++ % clip.frames), scratch);
        } catch (const std::exception& e) {
          std::fprintf(stderr, "%s\n", e.what());
          ++failed;
        }
      });
    std::this_thread::sleep_for(std::chrono::duration<double>(warm ? seconds : 0.5));
    stop = true;
    for (std::thread& t : pool) t.join();
    took = std::chrono::duration<double>(Clock::now() - begun).count();
  }
  if (failed > 0) throw std::runtime_error("a thread failed");
  return static_cast<double>(next) / took;
}

double psnr(double squared, double samples) { return 10 * std::log10(255.0 * 255.0 * samples / squared); }

void measure(const Clip& clip, Settings settings, double rate, int threads, double seconds) {
  Worker worker(clip, settings);
  settings.step = find_step(clip, worker, rate);
  worker.set_step(settings.step);
  const std::vector<Coded> coded = encode_all(clip, worker, clip.frames);
  double all = 0, luma = 0;
  for (int f = 0; f < clip.frames; ++f) {
    const std::uint8_t* a = clip.frame(f);
    const std::uint8_t* b = worker.decode(coded[static_cast<std::size_t>(f)]);
    for (std::size_t i = 0; i < clip.frame_bytes; ++i) {
      const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
      all += d * d;
      if (i < clip.planes[0].bytes()) luma += d * d;
    }
  }
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < (seconds > 0 ? threads : 0); ++i) workers.push_back(std::make_unique<Worker>(clip, settings));
  const double encode =
      speed(clip, workers, seconds, [&](Worker& w, int f, Coded& scratch) { w.encode(clip.frame(f), scratch); });
  const double decode =
      speed(clip, workers, seconds, [&](Worker& w, int f, Coded&) { w.decode(coded[static_cast<std::size_t>(f)]); });
  std::printf("%s,%g,%d,%.5f,%.4f,%.4f,%.1f,%.1f\n", settings.ht ? "htj2k" : "j2k", settings.step, clip.frames,
              bits_per_pixel(clip, coded), psnr(all, static_cast<double>(clip.frame_bytes) * clip.frames),
              psnr(luma, static_cast<double>(clip.planes[0].bytes()) * clip.frames), encode, decode);
  std::fflush(stdout);
}

/// Whether a frame can be coded and decoded as one picture with subsampled components.
bool takes_subsampled(const Clip& clip, Settings settings) {
  try {
    settings.together = true;
    Worker worker(clip, settings);
    Coded coded;
    worker.encode(clip.frame(0), coded);
    worker.decode(coded);
    return true;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "one picture of three components: %s\n", e.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<double> rates = {0.1, 0.25, 0.5, 1, 2};
  int threads = 16;
  double seconds = 1;
  try {
    if (argc < 2)
      throw std::runtime_error("usage: nvjpeg2000 CLIP_WIDTHxHEIGHT.yuv [--rates R,…] [--in-flight N] [--seconds S]");
    for (int i = 2; i + 1 < argc; i += 2) {
      const std::string option = argv[i];
      if (option == "--rates") {
        rates.clear();
        std::stringstream list(argv[i + 1]);
        for (std::string word; std::getline(list, word, ',');) rates.push_back(std::stod(word));
      } else if (option == "--in-flight") {
        threads = std::atoi(argv[i + 1]);
      } else if (option == "--seconds") {
        seconds = std::atof(argv[i + 1]);
      } else {
        throw std::runtime_error("unknown option " + option);
      }
    }
    const Clip clip = load(argv[1]);
    for (const bool ht : {true, false}) {
      Settings settings;
      settings.ht = ht;
      settings.together = takes_subsampled(clip, settings);
      std::fprintf(stderr, "%s: %s\n", ht ? "htj2k" : "j2k",
                   settings.together ? "one picture of three components" : "three grey pictures");
      for (const double rate : rates) try {
          measure(clip, settings, rate, threads, seconds);
        } catch (const std::exception& e) {  // other rates may work
          std::fprintf(stderr, "%s at %g bits per pixel: %s\n", ht ? "htj2k" : "j2k", rate, e.what());
        }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "nvjpeg2000: %s\n", e.what());
    return 1;
  }
  return 0;
}
