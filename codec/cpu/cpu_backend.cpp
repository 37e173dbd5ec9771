// The CPU backend. It picks the predictive coder, one transform coder, or several of them side by side where there are
// many threads (gop_lanes.h). With TRIVELET_DECODE_ONLY a program that encodes nothing is linked without encoders.
#include "codec/cpu/cpu_backend.h"

#include "codec/cpu/gop_lanes.h"
#include "codec/cpu/prediction_backend.h"
#include "trivelet/error.h"

namespace trivelet {

namespace {

#if defined(TRIVELET_DECODE_ONLY)
std::unique_ptr<GopEncoder> make_cpu_encoder(const StreamHeader&, const BackendOptions&) {
  fail(ErrorKind::kUnsupported, "this program was built to decode only");
}
#else
std::unique_ptr<GopEncoder> make_cpu_encoder(const StreamHeader& h, const BackendOptions& o) {
  if (h.profile == Profile::kPredictive) return make_predictive_encoder(h, o);
  return o.lanes > 1 ? make_encoder_lanes(h, o) : make_transform_encoder(h, o);
}
#endif
std::unique_ptr<GopDecoder> make_cpu_decoder(const StreamHeader& h, const Reduction& r, const BackendOptions& o) {
  if (h.profile == Profile::kPredictive) return make_predictive_decoder(h, o);
  return o.lanes > 1 ? make_decoder_lanes(h, r, o) : make_transform_decoder(h, r, o);
}

}  // namespace

const Backend& cpu_backend() {
  static const Backend backend{"cpu", make_cpu_encoder, make_cpu_decoder};
  return backend;
}

}  // namespace trivelet
