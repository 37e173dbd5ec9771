// trivelet ccsds compare: two greyscale pictures, either of them a .c122 stream.

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "apps/cli/json.h"
#include "apps/still/ccsds.h"
#include "apps/still/ccsds_image.h"
#include "codec/still/ccsds122/ccsds122.h"

namespace trivelet::cli {

namespace {

struct CompareOptions {
  std::string a, b;
  CcsdsInput reading;
  bool json = false;
  double min_psnr = -std::numeric_limits<double>::infinity();
};

CcsdsImage load(const std::string& path, const CcsdsInput& reading, const Common& common) {
  if (path.size() > 5 && path.ends_with(".c122")) {
    ThreadPool pool(common.threads);
    ccsds122::DecodeParams params;
    params.limits = limits(common);
    const ccsds122::Decoded d = ccsds122::decode(read_bytes(path), params, pool);
    require(d.intact(), ErrorKind::kBadStream, path + " is damaged or cut");
    return image_of(d);
  }
  return read_ccsds_image(path, reading, common);
}

std::int64_t sample_of(const CcsdsImage& image, std::size_t i) {
  const int size = image.bytes_per_sample();
  const std::byte* p = image.bytes.data() + i * static_cast<std::size_t>(size);
  if (size == 1) return image.is_signed ? static_cast<std::int8_t>(*p) : static_cast<std::int64_t>(*p);
  if (size == 2) {
    std::uint16_t v;
    std::memcpy(&v, p, 2);
    return image.is_signed ? static_cast<std::int16_t>(v) : static_cast<std::int64_t>(v);
  }
  std::int32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

int run_compare(const CompareOptions& o, const Common& common) {
  const CcsdsImage a = load(o.a, o.reading, common), b = load(o.b, o.reading, common);
  require(a.width == b.width && a.height == b.height, ErrorKind::kMismatch,
          fmt::format("{} is {}x{}, {} is {}x{}", o.a, a.width, a.height, o.b, b.width, b.height));
  require(a.bits == b.bits && a.is_signed == b.is_signed, ErrorKind::kMismatch,
          fmt::format("{} has {} bits{}, {} has {}{}; --bits sets the bits of a file without that information", o.a,
                      a.bits, a.is_signed ? " signed" : "", o.b, b.bits, b.is_signed ? " signed" : ""));
  const std::size_t count = static_cast<std::size_t>(a.width) * static_cast<std::size_t>(a.height);
  std::uint64_t different = 0;
  std::int64_t largest = 0;
  double squared = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t d = sample_of(a, i) - sample_of(b, i);
    different += d != 0;
    largest = std::max(largest, d < 0 ? -d : d);
    squared += static_cast<double>(d) * static_cast<double>(d);
  }
  const double mse = squared / static_cast<double>(count), peak = std::exp2(a.bits) - 1;
  const double psnr = mse > 0 ? 10 * std::log10(peak * peak / mse) : std::numeric_limits<double>::infinity();
  if (o.json) {
    Json json;
    json.begin_object();
    json.member("a", o.a);
    json.member("b", o.b);
    json.member("width", a.width);
    json.member("height", a.height);
    json.member("bits", a.bits);
    json.member("identical", different == 0);
    json.member("psnr", psnr);
    json.member("mse", mse);
    json.member("max_error", static_cast<std::uint64_t>(largest));
    json.member("different", different);
    json.end_object();
    fmt::print("{}", json.text());
  } else {
    fmt::print("{:<12} {}x{}, {} bits{}\n", "picture", a.width, a.height, a.bits, a.is_signed ? " signed" : "");
    if (different == 0)
      fmt::print("identical\n");
    else
      fmt::print("{:<12} {:.4f} dB\n{:<12} {}\n{:<12} {} of {} samples\n", "PSNR", psnr, "max error", largest,
                 "different", different, count);
  }
  require(psnr >= o.min_psnr, ErrorKind::kMismatch, fmt::format("PSNR {:.4f} is below {} dB", psnr, o.min_psnr));
  return kExitDone;
}

}  // namespace

Action define_ccsds_compare(Command& app, Common& common) {
  auto o = std::make_shared<CompareOptions>();
  app.add_option("A", o->a, "Picture or .c122 stream").required();
  app.add_option("B", o->b, "The other picture, of the same size and depth").required();
  app.add_flag("--json", o->json, "Print JSON; the PSNR of identical pictures is null");
  app.add_option("--min-psnr", o->min_psnr, "Exit code 6 if the PSNR is below DB; inf = must be identical")
      .type_name("DB");
  add_ccsds_input_options(app, o->reading);
  add_work_options(app, common);
  add_limit_options(app, common);
  add_log_options(app, common);
  app.add_footer("PSNR: peak 2^bits - 1. Exit code 6 when size or depth differ.");
  return [o, &common] { return run_compare(*o, common); };
}

}  // namespace trivelet::cli
