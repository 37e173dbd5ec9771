// The motion of GOPs on its way from bytes to vectors: the sections of a packet, read and checked, and threads that
// decode those of several GOPs at once. The sections of a GOP follow each other, and regions of one section differ in
// size, so that threads which share a GOP wait for each other most of the time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codec/motion/motion.h"
#include "codec/threads/parallel.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"

namespace trivelet {

/// The sections of a GOP's motion.
struct MotionSections {
  std::shared_ptr<GopMotion> motion;  ///< their bytes, and the fields to decode them into
  int top = 0;                        ///< coarsest level; that above all others is the level of predicted keys
  int last = 0;                       ///< finest level
  int components = 0;                 ///< of the stream
  std::vector<std::string> wrong;     ///< by section: what reading found, empty if it is intact

  // By decode()
  std::vector<std::string> damage;  ///< what is wrong, a line for each damaged level
  bool intact = true;

  /// Begins with a GOP of this shape; its memory may be that of an earlier one that nobody uses any more. `last_level`
  /// is the finest level to be decoded; with `keys` there are predicted keys.
  void begin(const MotionPlaces& places, int width, int height, int last_level, bool keys);
  /// Decodes all sections on the threads of `pool`, if it is not null. A damaged level and the finer ones, which depend
  /// on it, get zero motion, and so do keys.
  void decode(ThreadPool* pool);
};

/// Threads that decode sections, those of a GOP each.
class MotionReaders {
 public:
  /// Starts fewer threads if the system has no more. Without any, begin() decodes.
  explicit MotionReaders(int threads);
  /// Waits for the sections that threads work on. Others stay as they are.
  ~MotionReaders();
  MotionReaders(const MotionReaders&) = delete;
  MotionReaders& operator=(const MotionReaders&) = delete;

  /// The caller leaves the sections alone until finish() returns, or this is destroyed.
  void begin(MotionSections& sections);
  /// Whether finish() would return at once.
  bool is_done(const MotionSections& sections);
  /// Waits for sections that were begun. Throws what decoding threw, which is not damage.
  void finish(const MotionSections& sections);

 private:
  /// Sections that were begun.
  struct Begun {
    MotionSections* sections = nullptr;
    bool done = false;
    std::exception_ptr error;
  };

  void run();
  void decode(Begun& begun);
  Begun& find(const MotionSections& sections);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Begun> begun_;
  StageQueue<Begun*> waiting_;
  std::list<Worker> workers_;  ///< last member: they use the others
};

}  // namespace trivelet
