// Lossless coding of a volume by CharLS (JPEG-LS) and OpenJPEG, slice by slice: bytes and seconds.
//
//   volume_peers VOLUME                 one line per coder: name, bytes, seconds of processor time to encode and decode
//   volume_peers VOLUME --raw OUT.raw   the samples both get, as 16-bit or 8-bit little-endian planes, for
//                                       coders that are programs of their own; prints width, height, bits
//
// The samples are what a user of these coders would choose: integers minus the least value, with as many bits as the
// range needs (neither coder exploits values that never occur). Every slice is decoded and compared.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "codec/volume/volume_map.h"
#include "io/volume/volume_io.h"
#ifdef TRIVELET_HAVE_CHARLS
#include <charls/charls.h>
#endif
#ifdef TRIVELET_HAVE_OPENJPEG
#include <openjpeg.h>
#endif

using namespace trivelet;

namespace {

struct Picture {
  int width = 0, height = 0, bits = 0;
  std::vector<std::uint16_t> samples;
};

struct Result {
  double bytes = 0, encode = 0, decode = 0;
  bool same = true;
};

#if defined(TRIVELET_HAVE_CHARLS) || defined(TRIVELET_HAVE_OPENJPEG)
double now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }  // CPU time
#endif

#ifdef TRIVELET_HAVE_CHARLS
void run_charls(const Picture& p, Result& r) {
  std::vector<std::uint8_t> narrow;
  const void* data = p.samples.data();
  std::size_t size = 2 * p.samples.size();
  if (p.bits <= 8) {
    narrow.assign(p.samples.begin(), p.samples.end());
    data = narrow.data();
    size = narrow.size();
  }
  double t = now();
  charls::jpegls_encoder encoder;
  encoder.frame_info(
      {static_cast<std::uint32_t>(p.width), static_cast<std::uint32_t>(p.height), std::max(2, p.bits), 1});
  std::vector<std::uint8_t> coded(encoder.estimated_destination_size());
  encoder.destination(coded);
  coded.resize(encoder.encode(data, size));
  r.encode += now() - t;
  r.bytes += static_cast<double>(coded.size());
  t = now();
  charls::jpegls_decoder decoder(coded, true);
  std::vector<std::uint8_t> back(decoder.destination_size());
  decoder.decode(back);
  r.decode += now() - t;
  r.same = r.same && back.size() == size && std::memcmp(back.data(), data, size) == 0;
}
#endif

#ifdef TRIVELET_HAVE_OPENJPEG
struct Memory {
  std::vector<std::uint8_t> bytes;
  std::size_t at = 0;
};
OPJ_SIZE_T put(void* from, OPJ_SIZE_T n, void* user) {
  auto& m = *static_cast<Memory*>(user);
  if (m.bytes.size() < m.at + n) m.bytes.resize(m.at + n);
  std::memcpy(m.bytes.data() + m.at, from, n);
  m.at += n;
  return n;
}
OPJ_SIZE_T get(void* to, OPJ_SIZE_T n, void* user) {
  auto& m = *static_cast<Memory*>(user);
  n = std::min<OPJ_SIZE_T>(n, m.bytes.size() - m.at);
  if (n == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, m.bytes.data() + m.at, n);
  m.at += n;
  return n;
}
OPJ_OFF_T skip(OPJ_OFF_T n, void* user) {
  static_cast<Memory*>(user)->at += static_cast<std::size_t>(n);
  return n;
}
OPJ_BOOL seek(OPJ_OFF_T n, void* user) {
  static_cast<Memory*>(user)->at = static_cast<std::size_t>(n);
  return OPJ_TRUE;
}
opj_stream_t* stream(Memory& m, bool input) {
  opj_stream_t* s = opj_stream_create(1 << 20, input);
  opj_stream_set_user_data(s, &m, nullptr);
  opj_stream_set_user_data_length(s, m.bytes.size());
  opj_stream_set_read_function(s, get);
  opj_stream_set_write_function(s, put);
  opj_stream_set_skip_function(s, skip);
  opj_stream_set_seek_function(s, seek);
  return s;
}

void run_openjpeg(const Picture& p, Result& r) {
  opj_image_cmptparm_t parameters{};
  parameters.dx = parameters.dy = 1;
  parameters.w = static_cast<OPJ_UINT32>(p.width);
  parameters.h = static_cast<OPJ_UINT32>(p.height);
  parameters.prec = static_cast<OPJ_UINT32>(p.bits);
  double t = now();
  opj_image_t* image = opj_image_create(1, &parameters, OPJ_CLRSPC_GRAY);
  image->x1 = parameters.w;
  image->y1 = parameters.h;
  for (std::size_t i = 0; i < p.samples.size(); ++i) image->comps[0].data[i] = p.samples[i];
  opj_cparameters_t c;
  opj_set_default_encoder_parameters(&c);
  c.tcp_numlayers = 1;
  c.cp_disto_alloc = 1;
  while (c.numresolution > 1 && std::min(p.width, p.height) < 1 << (c.numresolution - 1)) --c.numresolution;
  Memory m;
  opj_codec_t* codec = opj_create_compress(OPJ_CODEC_J2K);
  opj_stream_t* s = stream(m, false);
  if (!opj_setup_encoder(codec, &c, image) || !opj_start_compress(codec, image, s) || !opj_encode(codec, s) ||
      !opj_end_compress(codec, s))
    throw std::runtime_error("OpenJPEG cannot encode");
  opj_stream_destroy(s);
  opj_destroy_codec(codec);
  opj_image_destroy(image);
  r.encode += now() - t;
  r.bytes += static_cast<double>(m.bytes.size());

  t = now();
  m.at = 0;
  codec = opj_create_decompress(OPJ_CODEC_J2K);
  opj_dparameters_t d;
  opj_set_default_decoder_parameters(&d);
  s = stream(m, true);
  image = nullptr;
  if (!opj_setup_decoder(codec, &d) || !opj_read_header(s, codec, &image) || !opj_decode(codec, s, image))
    throw std::runtime_error("OpenJPEG cannot decode");
  for (std::size_t i = 0; i < p.samples.size(); ++i)
    if (image->comps[0].data[i] != p.samples[i]) r.same = false;
  opj_stream_destroy(s);
  opj_destroy_codec(codec);
  opj_image_destroy(image);
  r.decode += now() - t;
}
#endif

void print(const char* name, const Result& r) {
  std::printf("%s %.0f %.3f %.3f%s\n", name, r.bytes, r.encode, r.decode, r.same ? "" : " DIFFERS");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "volume_peers VOLUME [--raw OUT]\n");
    return 2;
  }
  const auto reader = io::open_volume(argv[1], {});
  const io::VolumeInfo& info = reader->info();
  if (is_real(info.voxel.type) || info.voxel.channels != 1 || bytes_of(info.voxel.type) > 2) {
    std::fprintf(stderr, "only volumes of 8 and 16-bit integers\n");
    return 5;
  }
  const std::size_t pixels = static_cast<std::size_t>(info.width) * static_cast<std::size_t>(info.height);
  std::vector<std::byte> slice(info.slice_bytes());
  VolumeAnalysis analysis(info.voxel);
  for (std::uint64_t z = 0; z < info.all_slices(); ++z) {
    reader->read(slice.data(), slice.size());
    analysis.add(slice.data(), pixels);
  }
  Picture p;
  p.width = info.width;
  p.height = info.height;
  while ((analysis.max_key() - analysis.min_key()) >> p.bits) ++p.bits;
  p.bits = std::max(1, p.bits);
  p.samples.resize(pixels);
  const int least = static_cast<int>(analysis.min_value());
  std::ofstream raw;
  if (argc == 4 && std::string(argv[2]) == "--raw") raw.open(argv[3], std::ios::binary);
  reader->rewind();
  Result jpegls, jpeg2000;
  for (std::uint64_t z = 0; z < info.all_slices(); ++z) {
    reader->read(slice.data(), slice.size());
    for (std::size_t i = 0; i < pixels; ++i)
      p.samples[i] = static_cast<std::uint16_t>(static_cast<int>(scalar_value(slice.data() + i * info.voxel.bytes(),
                                                                              info.voxel.type, info.voxel.big_endian)) -
                                                least);
    if (raw.is_open()) {
      for (const std::uint16_t v : p.samples) {
        raw.put(static_cast<char>(v));
        if (p.bits > 8) raw.put(static_cast<char>(v >> 8));
      }
      continue;
    }
#ifdef TRIVELET_HAVE_CHARLS
    run_charls(p, jpegls);
#endif
#ifdef TRIVELET_HAVE_OPENJPEG
    run_openjpeg(p, jpeg2000);
#endif
  }
  if (raw.is_open()) {
    std::printf("%d %d %d\n", p.width, p.height, p.bits);
    return 0;
  }
  if (jpegls.bytes > 0) print("jpegls", jpegls);
  if (jpeg2000.bytes > 0) print("openjpeg", jpeg2000);
} catch (const std::exception& e) {
  std::fprintf(stderr, "volume_peers: %s\n", e.what());
  return 1;
}
