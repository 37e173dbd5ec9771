// Samples and voxels of the caller in memory of a GPU (tvl_decoder_set_memory): the way from it to the host and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "capi/handle.h"
#include "trivelet/cuda.h"

namespace trivelet::capi {

/// Where the caller's memory is. For TVL_CPU `copy_in` and `copy_out` are not to be called.
class CallerMemory {
 public:
  CallerMemory() = default;
  explicit CallerMemory(const Handle& handle) : device_(handle.memory), stream_(handle.cuda_stream) {}
  bool on_device() const { return device_ != TVL_CPU; }
  /// Rows of the caller into memory of the host, and from there; done when wait() returns.
  void copy_in(const void* from, std::ptrdiff_t from_pitch, void* to, std::ptrdiff_t to_pitch, std::size_t row_bytes,
               std::size_t rows) const {
    gpu::copy_from_device(device_, {static_cast<std::byte*>(to), to_pitch},
                          {static_cast<std::byte*>(const_cast<void*>(from)), from_pitch}, row_bytes, rows, stream_);
  }
  void copy_out(const void* from, std::ptrdiff_t from_pitch, void* to, std::ptrdiff_t to_pitch, std::size_t row_bytes,
                std::size_t rows) const {
    gpu::copy_to_device(device_, {static_cast<std::byte*>(to), to_pitch},
                        {static_cast<std::byte*>(const_cast<void*>(from)), from_pitch}, row_bytes, rows, stream_);
  }
  void wait() const {
    if (on_device()) gpu::wait_for(device_, stream_);
  }

 private:
  int device_ = TVL_CPU;
  void* stream_ = nullptr;
};

/// Page-locked memory, for what is on its way to a GPU or from there: copies overlap with it. Locking pages takes
/// longer than copying them, so one who has several volumes keeps it.
struct Staging {
  std::shared_ptr<std::byte> memory;
  std::size_t bytes = 0;
  std::byte* of(std::size_t wanted);
};

/// Those that no thread of a batch uses, kept for the next batch. Several threads may call it.
class Stagings {
 public:
  Staging take();
  void give_back(Staging staging);

 private:
  std::mutex mutex_;
  std::vector<Staging> unused_;
};

/// One of them, as long as this exists.
class TakenStaging {
 public:
  explicit TakenStaging(Stagings& from) : from_(from), staging_(from.take()) {}
  ~TakenStaging() { from_.give_back(std::move(staging_)); }
  TakenStaging(const TakenStaging&) = delete;
  TakenStaging& operator=(const TakenStaging&) = delete;
  Staging* operator->() { return &staging_; }
  Staging& operator*() { return staging_; }

 private:
  Stagings& from_;
  Staging staging_;
};

/// Null for TVL_CPU. Unsupported where there is no such GPU.
std::shared_ptr<const Backend> backend_for(std::int32_t device, std::uint64_t memory);
/// For the _set_memory functions. Unsupported where there is no such GPU.
void set_memory(Handle& handle, std::int32_t device, void* cuda_stream);

}  // namespace trivelet::capi
