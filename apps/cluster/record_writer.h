// Writes in the first process what workers have encoded: records arrive in any order and are written in stream order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "apps/cluster/encode_together.h"
#include "apps/cluster/messages.h"

namespace trivelet::cli {

/// With a target for bytes: encoded GOPs that wait for their budgets. Bytes are divided when all GOPs have arrived.
class ByteBudgets {
 public:
  ByteBudgets(Processes& processes, const PartEncoder& encoder) : processes_(processes), encoder_(encoder) {}

  void add(int worker, GopRecord record);
  std::uint64_t gops() const { return waiting_.size(); }
  std::uint64_t frames() const { return frames_; }
  /// When all GOPs have arrived and `assembly` has the earlier ones, sends the budgets that are known, some of them at
  /// once. Returns whether all GOPs have theirs.
  bool send(const StreamAssembly& assembly);

 private:
  Processes& processes_;
  const PartEncoder& encoder_;
  std::uint64_t frames_ = 0;
  std::map<std::uint64_t, std::pair<int, WaitingGop>> waiting_;  ///< by the numbers of GOPs
  std::optional<BytePlan> plan_;
  std::vector<int> workers_;  ///< the workers that encoded them
  std::uint64_t sent_ = 0;    ///< GOPs that have a budget
};

class RecordWriter {
 public:
  RecordWriter(Processes& processes, const PartEncoder& encoder, Distribution& distribution, ByteSink& sink);

  /// Writes what comes before the first GOP, and the GOPs of the journal.
  void begin();
  void add(int worker, GopRecord record);
  void add_errors(MessageReader& message);
  /// With a target for bytes, when no GOP follows the `gops` that were found: returns whether all have budgets.
  bool send_budgets(std::uint64_t gops) { return budgets_.gops() >= gops && budgets_.send(*assembly_); }
  /// Writes what comes after the last GOP.
  void finish() { assembly_->finish(); }

  /// GOPs of the journal: the first ones.
  std::uint64_t taken() const { return taken_; }
  /// The GOP that is written next.
  std::uint64_t next() const { return assembly_->next(); }
  /// With a target: the seed from GOP 0, for the others; empty until it is known.
  const std::vector<std::uint8_t>& seed() const { return seed_; }
  /// GOPs that their workers write.
  std::uint64_t positioned() const { return positioned_; }
  std::uint64_t frames() const { return assembly_->frames(); }
  std::uint64_t bytes() const { return assembly_->bytes(); }
  /// That writing took.
  double seconds() const { return seconds_; }

 private:
  void take_journal();
  void write();

  Processes& processes_;
  const PartEncoder& encoder_;
  Distribution& distribution_;
  ByteSink& sink_;
  ByteBudgets budgets_;
  std::optional<StreamAssembly> assembly_;
  std::map<std::uint64_t, std::pair<int, GopRecord>> early_;  ///< wait for those before them
  std::vector<std::uint8_t> seed_;
  std::uint64_t taken_ = 0;
  std::uint64_t positioned_ = 0;
  double seconds_ = 0;
};

}  // namespace trivelet::cli
