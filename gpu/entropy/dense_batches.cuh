// Goes through a segment of the dense profile: finds plane by plane what has a decision, and passes it on in batches.
#pragma once

#include "gpu/entropy/dense.cuh"

namespace trivelet::gpu {

/// A queue of the indices to decide, in order, until a batch is full.
struct Queue {
  static constexpr u32 kBatch = 32,
                       kStep = 128;  // a step looks at four bytes per lane
  u32 index[kBatch + kStep];
};

/// A bit for each of four bytes: byte > plane in `active` and not byte > plane + 1 in `finished`.
__device__ __forceinline__ u32 undecided(u32 active, u32 finished, int plane) {
  u32 hits = 0;
  TRIVELET_UNROLL
  for (int i = 0; i < 4; ++i)
    hits |= static_cast<u32>(static_cast<int>(active >> (8 * i) & 255) > plane &&
                             static_cast<int>(finished >> (8 * i) & 255) <= plane + 1)
            << i;
  return hits;
}

/// Finds the indices to decide in [first, end), `first` a multiple of 4, and passes them on in batches:
/// process(indices, n). asked(i): whether a lane's indices i .. i + 3 have a decision, a bit each. `filled` is the old
/// length of the queue. The rest of the last batch stays in it, and its length is returned, unless `flush` passes it
/// on, too. Process is called in one place, because it is long and the instruction cache limits.
template <class Asked, class Process>
__device__ __forceinline__ u32 collect(Queue& queue, u32 filled, u32 first, u32 end, bool flush, int lane, Asked asked,
                                       Process process) {
  for (u32 base = first;; base += Queue::kStep) {
    const u32 i = base + 4 * static_cast<u32>(lane);
    u32 hits = i < end ? asked(i) : 0;
    if (i < end && end - i < 4) hits &= (1u << (end - i)) - 1;
    const bool last = base + Queue::kStep >= end;
    if (__any_sync(kAllLanes, hits != 0)) {
      const u32 n = count_bits(hits);
      u32 at = filled + sum_before(n, lane);
      filled = __shfl_sync(kAllLanes, at + n, 31);
      for (; hits; hits &= hits - 1) queue.index[at++] = i + static_cast<u32>(__ffs(static_cast<int>(hits)) - 1);
      __syncwarp();
    }
    const u32 least = last && flush ? 1 : Queue::kBatch;
    u32 done = 0;
    while (filled - done >= least) {
      const u32 n = filled - done < Queue::kBatch ? filled - done : Queue::kBatch;
      process(queue.index + done, n);
      done += n;
    }
    if (done > 0) {
      const u32 left = filled - done;
      const u32 mine = static_cast<u32>(lane) < left ? queue.index[done + static_cast<u32>(lane)] : 0;
      __syncwarp();
      if (static_cast<u32>(lane) < left) queue.index[lane] = mine;
      __syncwarp();
      filled = left;
    }
    if (last) return filled;
  }
}

__device__ __forceinline__ u32 load_bytes(const u8* bytes, u32 at) { return *reinterpret_cast<const u32*>(bytes + at); }

/// The passes of a segment. `Coder` has children(indices, n), singles(...), significance(...), refinement(...) for n
/// indices of groups of the level above, of groups, or of quads, and begin() before each kind. kByFrame: entries of a
/// batch depend on each other only as neighbours in the frame; only frames of less than four quads are not separated.
template <class V, class Coder>
__device__ __forceinline__ void first_pass(const DenseSegment<V>& s, int plane, int lane, Queue& queue, Coder& coder) {
  const DenseLevel& d = *s.d;
  const u32 per_frame = 1u << (2 * d.log2_groups);
  if (s.up_d) {
    coder.begin();
    if (s.k >= 2) {
      const u32 count = static_cast<u32>(s.orientations * s.up_d->groups_t) << (2 * s.up_d->log2_groups);
      collect(
          queue, 0, 0, count, true, lane,
          [&](u32 i) { return undecided(load_bytes(s.up_group, i), load_bytes(s.up_closed, i), plane); },
          [&](const u32* indices, u32 n) { coder.children(indices, n); });
    } else {
      // A group's context uses those of the earlier orientations.
      const u32 count = static_cast<u32>(d.groups_t) * per_frame, end = static_cast<u32>(s.orientations) * count;
      u32 filled = 0;
      for (u32 first = 0; first < end; first += count)
        filled = collect(
            queue, filled, first, first + count, Coder::kByFrame || first + count == end, lane,
            [&](u32 i) {
              u32 hits = 0;
              for (u32 j = 0; j < 4 && i + j < first + count; ++j)
                hits |= static_cast<u32>(s.up_group[single_parent(s, i + j)] > plane && s.group[i + j] <= plane + 1)
                        << j;
              return hits;
            },
            [&](const u32* indices, u32 n) { coder.singles(indices, n); });
    }
    __syncwarp();
  }
  coder.begin();
  const u32 frames = static_cast<u32>(s.orientations * d.frames), end = frames * per_frame;
  const auto asked = [&](u32 i) {
    if (d.depth == 1) return undecided(load_bytes(s.group, i), load_bytes(s.all, i), plane);
    u32 hits = 0;
    for (u32 j = 0; j < 4 && i + j < end; ++j) {
      const Place p = place(i + j, d.log2_groups, d.frames);
      const int group =
          s.group[(static_cast<u32>(p.o * d.groups_t + p.t / 2) << (2 * d.log2_groups)) + ((i + j) & (per_frame - 1))];
      hits |= static_cast<u32>(group > plane && s.all[i + j] <= plane + 1) << j;
    }
    return hits;
  };
  // Frames of fewer than four quads would not begin at multiples of 4.
  const u32 step = Coder::kByFrame && per_frame >= 4 ? per_frame : end;
  for (u32 first = 0; first < end; first += step)
    collect(queue, 0, first, first + step, true, lane, asked,
            [&](const u32* indices, u32 n) { coder.significance(indices, n); });
  __syncwarp();
}
template <class V, class Coder>
__device__ __forceinline__ void second_pass(const DenseSegment<V>& s, int plane, int lane, Queue& queue, Coder& coder) {
  const u32 count = static_cast<u32>(s.orientations * s.d->frames) << (2 * s.d->log2_groups);
  coder.begin();
  collect(
      queue, 0, 0, count, true, lane, [&](u32 i) { return undecided(load_bytes(s.any, i), 0, plane + 1); },
      [&](const u32* indices, u32 n) { coder.refinement(indices, n); });
  __syncwarp();
}

}  // namespace trivelet::gpu
