// Worker: jobs run in order in one thread, and wait() throws their errors.

#include "codec/threads/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

namespace trivelet {
namespace {

TEST(Worker, RunsOneThingAfterAnotherInOneThreadOfItsOwn) {
  Worker worker("test");
  EXPECT_FALSE(worker.has_thread());
  worker.wait();  // nothing was begun
  std::thread::id first;
  int sum = 0;  // of the thread until wait(), of this one behind it
  for (int i = 1; i <= 1000; ++i) {
    worker.begin([&] {
      sum += i;
      if (i == 1) first = std::this_thread::get_id();
      EXPECT_EQ(std::this_thread::get_id(), first);
    });
    worker.wait();
  }
  EXPECT_TRUE(worker.has_thread());
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_EQ(sum, 500500);
}

TEST(Worker, ThrowsOnceWhereItIsWaitedForWhatTheWorkThrew) {
  Worker worker("test");
  ASSERT_TRUE(worker.try_begin([] { throw std::runtime_error("lost"); }));
  try {
    worker.wait();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "lost");
  }
  worker.wait();
  bool ran = false;
  worker.begin_or_run([&] { ran = true; });
  worker.wait();
  EXPECT_TRUE(ran);
}

TEST(Worker, EndsWhatWasBegunWhenItIsDestroyed) {
  std::atomic<bool> done = false;
  {
    Worker worker("test");
    worker.begin([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      done = true;
      throw std::runtime_error("dropped");
    });
  }
  EXPECT_TRUE(done);
}

TEST(Worker, GivesBackWhatTheWorkHeldBeforeWaitReturns) {
  Worker worker("test");
  for (int i = 0; i < 200; ++i) {
    const auto held = std::make_shared<int>(i);
    worker.begin([held] { EXPECT_GE(*held, 0); });
    worker.wait();
    EXPECT_EQ(held.use_count(), 1);
  }
}

}  // namespace
}  // namespace trivelet
