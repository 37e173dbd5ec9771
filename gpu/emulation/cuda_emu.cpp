// The threads of the emulated blocks: a fibre each, which runs until it waits for others. A thread that none has waited
// for yet begins on the stack of one that has ended, so that kernels without barriers never change stacks.
//
// No part of what is tested, and half of the time that emulated kernels take: compiled without sanitizers and
// optimised, where the kernels are not (CMakeLists.txt). ASan is told of every change of stacks all the same.

#include "gpu/emulation/cuda_emu.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(TRIVELET_EMU_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

#include <array>
#include <utility>
#include <vector>

namespace trivelet::emu {
namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr unsigned kLanes = Block::kLanes;

/// Where a thread of execution goes on: its registers are on its stack, or in a ucontext_t where nothing shorter is
/// known.
#if defined(__x86_64__)
struct Context {
  void* stack_pointer = nullptr;

  /// Makes it begin with a call of `entry`, which never returns.
  void begin(std::byte* stack, std::size_t bytes, void (*entry)()) {
    auto top = reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t{15};
    const std::uintptr_t frame[8] = {0, 0, 0, 0, 0, 0, reinterpret_cast<std::uintptr_t>(entry), 0};
    top -= sizeof frame;
    std::memcpy(reinterpret_cast<void*>(top), frame, sizeof frame);
    stack_pointer = reinterpret_cast<void*>(top);
  }
  static void change(Context& from, const Context& to) { change_stack(&from.stack_pointer, to.stack_pointer); }

 private:
  // What a call must leave as it was, by the System V ABI, but for the control words of floating point, which nobody
  // changes. swapcontext() asks the kernel each time, and under ASan forgets what it knows of the whole stack: together
  // that is ten times as long as the kernels themselves take.
  [[gnu::naked, gnu::noinline]] static void change_stack(void**, void*) {
    asm("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
        "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret");
  }
};
#else
struct Context {
  ucontext_t context{};

  void begin(std::byte* stack, std::size_t bytes, void (*entry)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = bytes;
    context.uc_link = nullptr;
    makecontext(&context, entry, 0);
  }
  static void change(Context& from, const Context& to) { swapcontext(&from.context, &to.context); }
};
#endif

struct Fibre {
  Context context;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  dim3 thread;
  bool begun = false, done = false;
  std::vector<PendingCopy> copies;
  std::size_t committed = 0;  // of them
  void* fake_stack = nullptr;
};

struct alignas(128) Shared {
  std::byte bytes[128];
};

struct Warp {
  std::uint64_t slot[2][kLanes];
  unsigned long generation;
  unsigned mask, arrived, left;
};

struct NamedBarrier {
  unsigned long generation = 0;
  unsigned arrived = 0, threads = 0;
};

}  // namespace

struct Block::State {
  void run(std::size_t threads) {
    warps_.assign((threads + kLanes - 1) / kLanes, Warp{});
    named_ = {};
    alive_ = threads_ = threads;
    at_barrier_ = 0;
    for (std::size_t i = 0; i < threads; ++i) {
      fibres_[i]->begun = fibres_[i]->done = false;
      fibres_[i]->copies.clear();
      fibres_[i]->committed = 0;
    }
    if (threads % kLanes != 0) warps_.back().left = ~0u << threads % kLanes;
    while (alive_ > 0) {
      const unsigned long before = progress_;
      seen_ = 0;
      resume(*next_of_round());
      if (progress_ == before) wrong("deadlock: threads wait for others that never come");
    }
  }

  /// The thread that is next in this round, made the current one; nullptr behind the last.
  Fibre* next_of_round() {
    while (seen_ < threads_) {
      current_ = backwards_ ? threads_ - 1 - seen_ : seen_;
      ++seen_;
      Fibre& f = *fibres_[current_];
      if (f.done) continue;
      threadIdx = f.thread;
      return &f;
    }
    return nullptr;
  }

  static void begin(Fibre& f) {
    if (f.begun) return;
    f.begun = true;
    f.context.begin(f.stack.get(), kStackBytes, &entry);
  }

  /// Returns at the end of the round: threads go on with the next one by themselves, as to come back here in between
  /// would be as many changes again.
  void resume(Fibre& f) {
    begin(f);
    from_main_ = true;
#if defined(TRIVELET_EMU_ASAN)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, f.stack.get(), kStackBytes);
    Context::change(main_, f.context);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
    Context::change(main_, f.context);
#endif
  }

  void yield() {
    Fibre& f = *fibres_[current_];
    leave(f, next_of_round(), &f.fake_stack);
#if defined(TRIVELET_EMU_ASAN)
    __sanitizer_finish_switch_fiber(f.fake_stack, nullptr, nullptr);
#endif
  }

  /// To another thread, or at the end of a round to who launched them.
  [[gnu::no_sanitize_address]] void leave(Fibre& f, Fibre* next, [[maybe_unused]] void** fake_stack) {
    if (next) begin(*next);
    from_main_ = false;
#if defined(TRIVELET_EMU_ASAN)
    next ? __sanitizer_start_switch_fiber(fake_stack, next->stack.get(), kStackBytes)
         : __sanitizer_start_switch_fiber(fake_stack, main_stack_, main_stack_bytes_);
#endif
    Context::change(f.context, next ? next->context : main_);
  }

  // Never returns, so ASan must not mark its frame: the next thread on this stack would stumble over the marks.
  [[gnu::no_sanitize_address]] static void entry() {
    State& s = *block.state_;
#if defined(TRIVELET_EMU_ASAN)
    const bool first = s.from_main_;  // the only one that sees the stack of who launched
    __sanitizer_finish_switch_fiber(nullptr, first ? &s.main_stack_ : nullptr, first ? &s.main_stack_bytes_ : nullptr);
#endif
    for (;;) {
      (*s.body_)();
      Fibre& ended = *s.fibres_[s.current_];
      Fibre* const next = s.finish(ended);
      if (next && !next->begun) {
        next->begun = true;
        std::swap(ended.stack, next->stack);
      } else {
        s.leave(ended, next, nullptr);
      }
    }
  }

  Fibre* finish(Fibre& f) {
    f.done = true;
    warps_[current_ / kLanes].left |= 1u << current_ % kLanes;
    --alive_;
    ++progress_;
    release_barrier();
    return next_of_round();
  }

  void release_barrier() {
    if (at_barrier_ == 0 || at_barrier_ != alive_) return;
    at_barrier_ = 0;
    ++barrier_generation_;
  }

  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Warp> warps_;
  std::array<NamedBarrier, 16> named_;
  std::unique_ptr<Shared[]> shared_;
  const std::function<void()>* body_ = nullptr;
  Context main_;
  const void* main_stack_ = nullptr;
  std::size_t main_stack_bytes_ = 0;
  std::size_t threads_ = 0, seen_ = 0;  // those of the block, and how many of them this round has come to
  std::size_t current_ = 0, alive_ = 0, at_barrier_ = 0;
  unsigned long barrier_generation_ = 0, progress_ = 0;
  bool backwards_ = false, from_main_ = false;
};

Block::Block() : state_(std::make_unique<State>()) {}
Block::~Block() = default;

void Block::launch(dim3 grid, dim3 shape, std::size_t shared_bytes, const std::function<void()>& body) {
  State& s = *state_;
  gridDim = grid;
  blockDim = shape;
  s.body_ = &body;
  const std::size_t threads = static_cast<std::size_t>(shape.x) * shape.y * shape.z;
  if (threads == 0 || threads > 1024) wrong("a block has 1 to 1024 threads");
  while (s.fibres_.size() < threads) s.fibres_.push_back(std::make_unique<Fibre>());
  for (std::size_t i = 0; i < threads; ++i) {
    const auto n = static_cast<unsigned>(i);
    s.fibres_[i]->thread = dim3(n % shape.x, n / shape.x % shape.y, n / shape.x / shape.y);
  }
  s.backwards_ = false;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = dim3(x, y, z);
        s.shared_ = std::make_unique<Shared[]>((shared_bytes + sizeof(Shared) - 1) / sizeof(Shared));
        s.run(threads);
        s.backwards_ = !s.backwards_;
      }
}

void* Block::dynamic_shared() const { return state_->shared_.get(); }

void Block::barrier() {
  State& s = *state_;
  ++s.progress_;
  const unsigned long mine = s.barrier_generation_;
  ++s.at_barrier_;
  s.release_barrier();
  while (s.barrier_generation_ == mine) s.yield();
}

void Block::arrive(unsigned number, unsigned threads) {
  NamedBarrier& b = state_->named_.at(number);
  if (b.arrived > 0 && b.threads != threads) wrong("threads meet at a barrier for different numbers of them");
  b.threads = threads;
  ++state_->progress_;
  if (++b.arrived < threads) return;
  b.arrived = 0;
  ++b.generation;
}

void Block::arrive_and_wait(unsigned number, unsigned threads) {
  const unsigned long mine = state_->named_.at(number).generation;
  arrive(number, threads);
  while (state_->named_[number].generation == mine) state_->yield();
}

const std::uint64_t* Block::exchange(unsigned mask, std::uint64_t value) {
  State& s = *state_;
  Warp& w = s.warps_[s.current_ / kLanes];
  const unsigned lane = this->lane(), bit = 1u << lane;
  if (!(mask & bit)) wrong("a lane calls a collective whose mask leaves it out");
  if (w.left & mask) wrong("a collective's mask names a lane that has left");
  if (w.arrived && w.mask != mask) wrong("lanes of a warp meet in collectives of different masks");
  w.mask = mask;
  const unsigned long mine = w.generation;
  std::uint64_t* slots = w.slot[mine & 1];
  slots[lane] = value;
  w.arrived |= bit;
  ++s.progress_;
  if (w.arrived == mask) {
    w.arrived = 0;
    ++w.generation;
  }
  while (w.generation == mine) s.yield();
  return slots;
}

unsigned Block::ballot(unsigned mask, bool predicate) {
  const std::uint64_t* slots = exchange(mask, predicate);
  unsigned votes = 0;
  for (unsigned i = 0; i < kLanes; ++i) votes |= static_cast<unsigned>(slots[i] & 1) << i;
  return votes & mask;
}

unsigned Block::lane() const { return static_cast<unsigned>(state_->current_ % kLanes); }

void Block::begin(const PendingCopy& copy) { state_->fibres_[state_->current_]->copies.push_back(copy); }

void Block::commit_copies() {
  Fibre& f = *state_->fibres_[state_->current_];
  f.committed = f.copies.size();
}

void Block::finish_copies() {
  Fibre& f = *state_->fibres_[state_->current_];
  const auto end = f.copies.begin() + static_cast<std::ptrdiff_t>(f.committed);
  for (auto copy = f.copies.begin(); copy != end; ++copy) std::memcpy(copy->to, copy->value, copy->bytes);
  f.copies.erase(f.copies.begin(), end);
  f.committed = 0;
}

}  // namespace trivelet::emu
