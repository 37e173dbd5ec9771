// Puts the records of workers in order, divides a byte target, and writes GOPs or sends their positions.

#include "apps/cluster/record_writer.h"

#include "codec/threads/stopwatch.h"
#include "codec/threads/trace.h"

namespace trivelet::cli {

namespace {

/// The layers at which a GOP is to be measured, if any.
void send_measuring(Processes& processes, int worker, std::uint64_t number, const std::vector<std::size_t>& layers) {
  MessageWriter m(MessageKind::kMeasure);
  m.number(number).number(layers.size());
  for (const std::size_t l : layers) m.number(l);
  m.send(processes, worker, Channel::kAnswers);
}

}  // namespace

void ByteBudgets::add(int worker, GopRecord record) {
  frames_ += static_cast<std::uint64_t>(record.info.frames);
  waiting_.emplace(record.number, std::pair(worker, std::move(record.waiting)));
}

bool ByteBudgets::send(const StreamAssembly& assembly) {
  if (waiting_.empty()) return true;
  if (!plan_) {
    std::vector<WaitingGop> all;
    for (auto& [number, gop] : waiting_) {
      workers_.push_back(gop.first);
      all.push_back(std::move(gop.second));
    }
    const StreamHeader& header = encoder_.header();
    const FrameTime begin{all.front().info.begin_pts, 0}, end{all.back().info.end_pts, 0};
    const double wanted = bytes_wanted(header.video, encoder_.params(), static_cast<double>(frames_), begin, end);
    plan_.emplace(header, std::move(all), static_cast<std::uint64_t>(wanted));
  }
  if (assembly.next() < sent_) return false;
  const std::vector<std::uint64_t> budgets = plan_->next(assembly.index(), assembly.bytes());
  for (const std::uint64_t bytes : budgets) {
    MessageWriter(MessageKind::kBudget)
        .number(sent_)
        .number(bytes)
        .real(plan_->slope())
        .send(processes_, workers_[sent_], Channel::kTasks);
    ++sent_;
  }
  return budgets.empty();
}

RecordWriter::RecordWriter(Processes& processes, const PartEncoder& encoder, Distribution& distribution, ByteSink& sink)
    : processes_(processes),
      encoder_(encoder),
      distribution_(distribution),
      sink_(sink),
      budgets_(processes, encoder) {}

void RecordWriter::begin() {
  assembly_.emplace(encoder_.header(), encoder_.head(), sink_, distribution_.skip);
  take_journal();
}

void RecordWriter::take_journal() {
  GopRecord record;
  std::vector<double> errors;
  for (; distribution_.journal && distribution_.journal->take(taken_, record, errors); ++taken_) {
    // Not measured: it is encoded again, and so are the GOPs after it, for which measuring is undecided.
    MeasuringPlan plan = assembly_->plan();
    const bool open = record.info.key == GopKey::kOpen;
    const bool measured =
        record.asks ? !plan.layers(record.predicted, open, record.must_close).empty() : !record.measured_at.empty();
    if (measured && errors.empty()) return;
    if (taken_ == 0) seed_ = record.seed;
    if (!assembly_->add(record).empty()) assembly_->measured(taken_, errors);
  }
}

void RecordWriter::add_errors(MessageReader& message) {
  const std::uint64_t number = message.number();
  std::vector<double> errors(message.left() / sizeof(double));
  for (double& e : errors) e = message.real();
  if (number < taken_) return;  // it was encoded again with its run
  if (distribution_.journal) distribution_.journal->add_errors(number, errors);
  assembly_->measured(number, std::move(errors));
}

void RecordWriter::add(int worker, GopRecord record) {
  const std::uint64_t number = record.number;
  if (number == 0 && !record.seed.empty()) seed_ = record.seed;
  if (record.waits) {
    budgets_.add(worker, std::move(record));
    if (distribution_.written) distribution_.written(budgets_.frames());
    return;
  }
  if (number < assembly_->next()) {  // the journal has it; it was encoded again with its run
    if (record.asks) send_measuring(processes_, worker, number, {});
    return;
  }
  if (distribution_.journal) distribution_.journal->add(record);
  early_.emplace(number, std::pair(worker, std::move(record)));
  write();
}

void RecordWriter::write() {
  const trace::Span span("write");
  const ScopeTimer timer(seconds_);
  for (auto first = early_.begin(); first != early_.end() && first->first == assembly_->next();
       first = early_.begin()) {
    const auto& [worker, record] = first->second;
    const std::vector<std::size_t> layers = assembly_->add(record);
    if (record.bytes.empty()) {
      ++positioned_;
      MessageWriter(MessageKind::kPosition)
          .number(record.number)
          .number(assembly_->position_of(record.number))
          .send(processes_, worker, Channel::kPositions);
    }
    if (record.asks) send_measuring(processes_, worker, record.number, layers);
    early_.erase(first);
  }
  if (distribution_.written && budgets_.gops() == 0) distribution_.written(assembly_->frames());
}

}  // namespace trivelet::cli
