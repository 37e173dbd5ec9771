// Decoding of sections, and the threads for it (motion_sections.h).
#include "codec/decoder/motion_sections.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "codec/base/bad_stream.h"
#include "codec/motion/motion_field.h"
#include "codec/threads/trace.h"

namespace trivelet {

namespace {

constexpr std::size_t kMostWaiting = 64;  // sections, more than any decoder has GOPs ahead

}  // namespace

void MotionSections::begin(const MotionPlaces& places, int width, int height, int last_level, bool keys) {
  if (motion && motion.use_count() == 1) {
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last use in another thread
    motion->reshape(places, width, height, last_level);
  } else {
    motion = std::make_shared<GopMotion>(places, width, height, last_level);
  }
  if (keys) motion->predict_keys();
  for (std::vector<std::uint8_t>& bytes : motion->sections) bytes.clear();
  top = keys ? places.levels : places.levels - 1;
  last = last_level;
  wrong.clear();
  damage.clear();
  intact = true;
}

void MotionSections::decode(ThreadPool* pool) {
  const int levels = motion->places.levels;
  for (int level = top; level >= last; --level) {
    const auto i = static_cast<std::size_t>(top - level);
    try {
      if (!wrong[i].empty()) bad(wrong[i]);
      const std::vector<std::uint8_t>& bytes = motion->sections[i];
      decode_motion(bytes.data(), bytes.size(), level, components, *motion, pool);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kBadStream) throw;
      const int zero = level == levels ? levels : last;  // no level depends on the motion of keys
      for (int l = level; l >= zero; --l)
        for (const int t : motion_frames(l, motion->places))
          motion->fields[static_cast<std::size_t>(t)].assign(motion->grid.cells(), {});
      damage.push_back("the motion of level " + std::to_string(level + 1) + ": " + e.what());
      intact = false;
      if (level < levels) return;
    }
  }
}

MotionReaders::MotionReaders(int threads) : waiting_(kMostWaiting) {
  try {
    for (int i = 0; i < threads; ++i)
      if (!workers_.emplace_back("read vectors").try_begin([this] { run(); })) {
        workers_.pop_back();
        break;
      }
  } catch (...) {
    waiting_.stop();  // else those that were started would wait, and this for them
    throw;
  }
}

MotionReaders::~MotionReaders() { waiting_.stop(); }

void MotionReaders::run() {
  while (const std::optional<Begun*> begun = waiting_.pop()) decode(**begun);
}

void MotionReaders::decode(Begun& begun) {
  std::exception_ptr error;
  try {
    const trace::Span span("read vectors");
    begun.sections->decode(nullptr);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    begun.error = std::move(error);
    begun.done = true;
  }
  changed_.notify_all();
}

MotionReaders::Begun& MotionReaders::find(const MotionSections& sections) {
  return *std::find_if(begun_.begin(), begun_.end(), [&](const Begun& b) { return b.sections == &sections; });
}

void MotionReaders::begin(MotionSections& sections) {
  Begun* begun = nullptr;
  {
    const std::lock_guard lock(mutex_);
    begun = &begun_.emplace_back(Begun{&sections, false, nullptr});
  }
  if (workers_.empty())
    decode(*begun);
  else
    (void)waiting_.push(begun);
}

bool MotionReaders::is_done(const MotionSections& sections) {
  const std::lock_guard lock(mutex_);
  return find(sections).done;
}

void MotionReaders::finish(const MotionSections& sections) {
  std::unique_lock lock(mutex_);
  Begun& begun = find(sections);
  changed_.wait(lock, [&] { return begun.done; });
  const std::exception_ptr error = begun.error;
  begun_.remove_if([&](const Begun& b) { return &b == &begun; });
  if (error) std::rethrow_exception(error);
}

}  // namespace trivelet
