// Divides a volume into pieces, and decodes them in several processes.

#include "apps/cluster/volume_share.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "apps/cluster/messages.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

namespace {

// Pieces of each process that are decoded ahead.
constexpr int kMostAhead = 2;

std::vector<std::uint8_t> decode_piece(const VolumePiece& piece, VolumeDecoderParams params, const PieceDecoder& open) {
  params.region = piece.region;
  params.first_volume = piece.volume;
  params.volumes = 1;
  const std::unique_ptr<VolumeDecoder> decoder = open(params);
  const std::size_t slice = decoder->output().slice_bytes();
  std::vector<std::uint8_t> slices(slice * static_cast<std::size_t>(piece.region.depth));
  for (std::size_t at = 0; at < slices.size(); at += slice)
    require(decoder->read(reinterpret_cast<std::byte*>(slices.data() + at)), ErrorKind::kBadStream,
            "the stream ends before slice " + std::to_string(piece.region.z + at / slice));
  return slices;
}

/// One process: every n-th piece.
template <class Take>
void decode_share(const std::vector<VolumePiece>& pieces, int rank, int size, const VolumeDecoderParams& params,
                  const PieceDecoder& open, const Take& take) {
  for (auto p = static_cast<std::size_t>(rank); p < pieces.size(); p += static_cast<std::size_t>(size))
    if (!take(p, decode_piece(pieces[p], params, open))) return;
}

}  // namespace

std::vector<VolumePiece> volume_pieces(const VolumeDecoder& decoder, const VolumeDecoderParams& params) {
  if (params.reduce > 0 || decoder.info().order != VolumeOrder::kFile) return {};
  const VolumeDescription& out = decoder.output();
  const std::uint64_t begin = decoder.selection().z, end = begin + out.slices;
  const auto slab = static_cast<std::uint64_t>(std::max(1, decoder.stream().gop_frames));
  std::vector<VolumePiece> pieces;
  for (std::uint64_t v = 0; v < out.volumes; ++v)
    for (std::uint64_t z = begin; z < end;) {
      const std::uint64_t next = out.volumes > 1 ? end : std::min(end, (z / slab + 1) * slab);
      VoxelRegion region = decoder.selection();
      region.z = z;
      region.depth = next - z;
      pieces.push_back({params.first_volume + v, region});
      z = next;
    }
  return pieces;
}

void decode_no_pieces(Processes& processes, const std::exception_ptr& error) {
  report_failure(processes, Channel::kResults, error);
  MessageWriter(MessageKind::kEnded).send(processes, 0, Channel::kResults);
}

void decode_pieces_for_others(Processes& processes, const std::vector<VolumePiece>& pieces,
                              const VolumeDecoderParams& params, const PieceDecoder& open) {
  if (processes.at_work) processes.at_work();
  int room = kMostAhead;
  const auto obey = [&](const Processes::Message& m) {
    if (MessageReader(m).kind() == MessageKind::kStop) throw Stopped();
    ++room;
  };
  run_and_report(processes, Channel::kResults, [&] {
    decode_share(pieces, processes.rank(), processes.size(), params, open,
                 [&](std::size_t p, const std::vector<std::uint8_t>& slices) {
                   while (std::optional<Processes::Message> m = processes.try_receive(Channel::kTasks)) obey(*m);
                   while (room == 0) obey(processes.receive(Channel::kTasks));
                   --room;
                   MessageWriter(MessageKind::kPiece).number(p).append(slices).send(processes, 0, Channel::kResults);
                   return true;
                 });
  });
  MessageWriter(MessageKind::kEnded).send(processes, 0, Channel::kResults);
}

struct GatheredSlices::State {
  State(Processes& p, std::vector<VolumePiece> all, VolumeDecoderParams params, PieceDecoder open_one)
      : processes(p), pieces(std::move(all)), open(std::move(open_one)), workers(p) {
    workers.set_ended(0);
    decoding.begin([this, params = std::move(params)] {
      if (processes.at_work) processes.at_work();
      try {
        decode_share(pieces, 0, processes.size(), params, open,
                     [this](std::size_t, std::vector<std::uint8_t> slices) { return own.push(std::move(slices)); });
        own.close();
      } catch (...) {
        own.close(std::current_exception());
      }
    });
  }

  ~State() {
    own.stop();
    decoding.wait();
    workers.stop(Channel::kTasks, 1);
    while (!workers.all_ended()) hear(processes.receive(Channel::kResults));
  }

  void hear(Processes::Message m) {
    MessageReader message(std::move(m));
    if (!workers.take(message) || message.kind() != MessageKind::kPiece) return;
    const std::uint64_t number = message.number();
    waiting[number] = message.rest();
  }

  /// Receives the next piece into `piece`.
  void fetch() {
    const std::size_t n = next++;
    const int owner = static_cast<int>(n % static_cast<std::size_t>(processes.size()));
    while (std::optional<Processes::Message> m = processes.try_receive(Channel::kResults)) hear(std::move(*m));
    if (owner == 0) {
      std::optional<std::vector<std::uint8_t>> slices = own.pop();
      require(slices.has_value(), ErrorKind::kInternal, "a piece of the volume is missing");
      piece = std::move(*slices);
    } else {
      while (!waiting.contains(n)) {
        require(!workers.ended(owner), ErrorKind::kInternal, "a piece of the volume is missing");
        hear(processes.receive(Channel::kResults));
      }
      piece = std::move(waiting.extract(n).mapped());
      MessageWriter(MessageKind::kRoom).send(processes, owner, Channel::kTasks);
    }
    at = 0;
  }

  Processes& processes;
  std::vector<VolumePiece> pieces;
  PieceDecoder open;
  StageQueue<std::vector<std::uint8_t>> own{kMostAhead};
  std::map<std::size_t, std::vector<std::uint8_t>> waiting;
  WorkerStates workers;
  std::size_t next = 0;             ///< piece
  std::vector<std::uint8_t> piece;  ///< the piece whose slices are delivered
  std::size_t at = 0;               ///< in it
  Worker decoding{"decode"};        ///< last: it ends first
};

GatheredSlices::GatheredSlices(Processes& processes, std::vector<VolumePiece> pieces, const VolumeDecoderParams& params,
                               PieceDecoder open)
    : state_(std::make_unique<State>(processes, std::move(pieces), params, std::move(open))) {}

GatheredSlices::~GatheredSlices() = default;

bool GatheredSlices::read(std::byte* slice) {
  State& s = *state_;
  if (s.at == s.piece.size()) {
    if (s.next == s.pieces.size()) return false;
    s.fetch();
  }
  const std::size_t size = s.piece.size() / static_cast<std::size_t>(s.pieces[s.next - 1].region.depth);
  std::memcpy(slice, s.piece.data() + s.at, size);
  s.at += size;
  return true;
}

}  // namespace trivelet::cli
