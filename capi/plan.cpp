// tvl_plan of trivelet.h.
#include <algorithm>
#include <memory>
#include <string>

#include "capi/decoder.h"
#include "capi/request.h"
#include "trivelet/plan.h"

struct tvl_plan : trivelet::capi::Handle {
  std::unique_ptr<trivelet::ReadPlan> plan;
};

using namespace trivelet;
using namespace trivelet::capi;

namespace {

ReadPlan& begun(tvl_plan& p) {
  require(p.plan != nullptr, ErrorKind::kBadArgument, "no plan was begun; call tvl_plan_begin");
  return *p.plan;
}

// Callbacks of a source over what was given.
int64_t read_given(void* user, void* data, uint64_t size) {
  auto* p = static_cast<tvl_plan*>(user);
  std::int64_t n = -1;
  (void)to_result(p->error,
                  [&] { n = static_cast<std::int64_t>(p->plan->source().read(data, static_cast<std::size_t>(size))); });
  return n;
}
int seek_given(void* user, uint64_t position) {
  auto* p = static_cast<tvl_plan*>(user);
  return to_result(p->error, [&] { p->plan->source().seek(position); });
}

}  // namespace

extern "C" {

tvl_plan* tvl_plan_new(void) { return new (std::nothrow) tvl_plan; }

void tvl_plan_free(tvl_plan* plan) { delete plan; }

const char* tvl_plan_error(const tvl_plan* plan) { return plan ? plan->error : "the plan is NULL"; }

tvl_result tvl_plan_begin(tvl_plan* plan, uint64_t stream_bytes, const tvl_decode_params* params) {
  return call(plan, [&] {
    plan->plan.reset();
    plan->plan = std::make_unique<ReadPlan>(stream_bytes, decoder_params(params));
  });
}

tvl_result tvl_plan_begin_index(tvl_plan* plan, uint64_t stream_bytes) {
  return call(plan, [&] {
    plan->plan.reset();
    plan->plan = std::make_unique<ReadPlan>(stream_bytes);
  });
}

tvl_result tvl_plan_begin_volume(tvl_plan* plan, uint64_t stream_bytes, const tvl_volume_decode_params* params) {
  return call(plan, [&] {
    plan->plan.reset();
    plan->plan = std::make_unique<ReadPlan>(stream_bytes, volume_decoder_params(params));
  });
}

tvl_result tvl_plan_next(tvl_plan* plan, tvl_range* ranges, uint64_t capacity, uint64_t* count) {
  if (count) *count = 0;
  return call(plan, [&] {
    (void)not_null(count, "count");
    const std::vector<ByteRange> wanted = begun(*plan).next();
    *count = wanted.size();
    if (wanted.size() > capacity) throw BufferTooSmall("ranges", capacity, wanted.size());
    if (wanted.empty()) return;
    std::transform(wanted.begin(), wanted.end(), not_null(ranges, "ranges"), [](const ByteRange& r) {
      return tvl_range{r.offset, r.size};
    });
  });
}

tvl_result tvl_plan_give(tvl_plan* plan, uint64_t offset, const void* data, uint64_t size) {
  return call(plan, [&] {
    if (size > 0) begun(*plan).give(offset, not_null(data, "data"), static_cast<std::size_t>(size));
  });
}

tvl_result tvl_plan_source(tvl_plan* plan, tvl_source* source) {
  return call(plan, [&] {
    ReadPlan& p = begun(*plan);
    tvl_source out = default_source();
    out.size = p.source().size();
    out.read = read_given;
    out.seek = seek_given;
    out.user = plan;
    p.source().seek(0);
    write_struct(source, out, "tvl_source");
  });
}

}  // extern "C"
