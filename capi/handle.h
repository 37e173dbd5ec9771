// What the handles of trivelet.h have in common: the text of the last error, the log, cancelling, and the way from
// exceptions to results. Nothing of C++ passes the interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string>

#include "trivelet/error.h"
#include "trivelet/parameters.h"
#include "trivelet/trivelet.h"

namespace trivelet::capi {

class Cancelled final : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled by the caller"; }
};

class BufferTooSmall final : public std::exception {
 public:
  BufferTooSmall(const std::string& what, std::uint64_t capacity, std::uint64_t needed)
      : text_("room for " + std::to_string(capacity) + " " + what + " where there are " + std::to_string(needed)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

struct Handle {
  std::atomic<bool> cancelled{false};
  tvl_log log = nullptr;
  void* log_user = nullptr;
  tvl_runner runner = nullptr;
  void* runner_user = nullptr;
  int memory = TVL_CPU;  ///< where samples and voxels of the caller are: the host, or a GPU's number
  void* cuda_stream = nullptr;
  char error[1024] = "";

  void check_cancelled() const {
    if (cancelled.load(std::memory_order_relaxed)) throw Cancelled();
  }
  /// For what is opened now.
  Workers workers() const {
    Workers w;
    w.check = [this] { check_cancelled(); };
    if (runner)
      w.run = [run = runner, user = runner_user](int count, const std::function<void(int)>& task) {
        run(
            user, count,
            [](void* context, std::int32_t i) { (*static_cast<const std::function<void(int)>*>(context))(i); },
            const_cast<void*>(static_cast<const void*>(&task)));
      };
    return w;
  }
  void say(int level, const std::string& text) const {
    if (log) log(log_user, level, text.c_str());
  }
};

inline tvl_result result_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBadArgument: return TVL_BAD_ARGUMENT;
    case ErrorKind::kIo: return TVL_IO;
    case ErrorKind::kBadStream: return TVL_BAD_STREAM;
    case ErrorKind::kUnsupported: return TVL_UNSUPPORTED;
    case ErrorKind::kMismatch: return TVL_MISMATCH;
    case ErrorKind::kInternal: break;
  }
  return TVL_INTERNAL;
}

/// f(), whose exceptions become a result and, in `error`, a text.
template <std::size_t kSize, class F>
tvl_result to_result(char (&error)[kSize], const F& f) noexcept {
  const auto failed = [&error](tvl_result result, const char* text) {
    std::snprintf(error, kSize, "%s", text);
    return result;
  };
  error[0] = '\0';
  try {
    f();
    return TVL_OK;
  } catch (const Cancelled& e) {
    return failed(TVL_CANCELLED, e.what());
  } catch (const BufferTooSmall& e) {
    return failed(TVL_BUFFER_TOO_SMALL, e.what());
  } catch (const Error& e) {
    return failed(result_of(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    return failed(TVL_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return failed(TVL_INTERNAL, e.what());
  } catch (...) {
    return failed(TVL_INTERNAL, "unknown error");
  }
}

/// A call on a handle: f(), unless it was cancelled before.
template <class F>
tvl_result call(Handle* handle, const F& f) noexcept {
  if (!handle) return TVL_BAD_ARGUMENT;
  const tvl_result result = to_result(handle->error, [&] {
    handle->check_cancelled();
    f();
  });
  if (result == TVL_CANCELLED) handle->cancelled.store(false, std::memory_order_relaxed);
  return result;
}

/// The same, of what leaves nothing open when it fails: unless it was refused by check(), before anything was done.
template <class H, class Check, class F>
tvl_result call_or_close(H* handle, const Check& check, const F& f) noexcept {
  bool begun = false;
  const tvl_result result = call(handle, [&] {
    check();
    begun = true;
    f();
  });
  if (handle && result != TVL_OK && (begun || result == TVL_CANCELLED)) handle->close();
  return result;
}

/// The same, of what goes on after other errors than being cancelled, which may have stopped in the middle of a GOP.
template <class H, class F>
tvl_result call_or_close_cancelled(H* handle, const F& f) noexcept {
  const tvl_result result = call(handle, f);
  if (handle && result == TVL_CANCELLED) handle->close();
  return result;
}

template <class T>
const T* not_null(const T* p, const char* what) {
  require(p != nullptr, ErrorKind::kBadArgument, std::string(what) + " is NULL");
  return p;
}
template <class T>
T* not_null(T* p, const char* what) {
  require(p != nullptr, ErrorKind::kBadArgument, std::string(what) + " is NULL");
  return p;
}

// Structures grow at their end: what an older caller's does not have is as `defaults` say.

/// `given` as the library knows it; `defaults` for null.
template <class T>
T read_struct(const T* given, const T& defaults, const char* what) {
  T known = defaults;
  if (!given) return known;
  require(given->struct_size >= sizeof given->struct_size, ErrorKind::kBadArgument,
          std::string(what) + " was not set up by its _init function");
  require(given->struct_size <= sizeof known, ErrorKind::kUnsupported,
          std::string(what) + " of " + std::to_string(given->struct_size) +
              " bytes was made for a later library, whose " + "members this one does not know; it has " +
              std::to_string(sizeof known));
  std::memcpy(&known, given, static_cast<std::size_t>(given->struct_size));
  known.struct_size = sizeof known;
  return known;
}

/// `known` into the caller's, as far as that reaches. Members of a later library stay as they are.
template <class T>
void write_struct(T* out, const T& known, const char* what) {
  const std::uint64_t size = not_null(out, what)->struct_size;
  require(size >= sizeof size, ErrorKind::kBadArgument, std::string(what) + " was not set up by its _init function");
  std::memcpy(out, &known, static_cast<std::size_t>(size < sizeof known ? size : sizeof known));
  out->struct_size = size;
}

/// The _init functions: members of a later library become 0.
template <class T>
void init_struct(T* out, std::uint64_t size, T defaults) {
  if (!out || size < sizeof size) return;
  std::memset(static_cast<void*>(out), 0, static_cast<std::size_t>(size));
  defaults.struct_size = size;
  std::memcpy(out, &defaults, static_cast<std::size_t>(size < sizeof defaults ? size : sizeof defaults));
}

}  // namespace trivelet::capi
