#include "apps/cluster/volume_share.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

namespace {

constexpr int kToFirst = 1;  // channels
constexpr int kToOthers = 2;

enum class Note : std::uint8_t { kPiece, kFailed, kEnded, kRoom, kStop };

ByteWriter note(Note what) {
  ByteWriter out;
  out.fixed(static_cast<std::uint8_t>(what));
  return out;
}

// Pieces of each process that are decoded before they are wanted.
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

/// Of one process: every n-th piece.
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
  ByteWriter m = note(Note::kFailed);
  put_error(m, error);
  processes.send(0, kToFirst, std::move(m.bytes));
  processes.send(0, kToFirst, note(Note::kEnded).bytes);
}

void decode_pieces_for_others(Processes& processes, const std::vector<VolumePiece>& pieces,
                              const VolumeDecoderParams& params, const PieceDecoder& open) {
  if (processes.at_work) processes.at_work();
  int room = kMostAhead;
  const auto obey = [&](const Processes::Message& m) {
    if (static_cast<Note>(m.bytes.at(0)) == Note::kStop) throw Stopped();
    ++room;
  };
  try {
    decode_share(pieces, processes.rank(), processes.size(), params, open,
                 [&](std::size_t p, const std::vector<std::uint8_t>& slices) {
                   while (std::optional<Processes::Message> m = processes.try_receive(kToOthers)) obey(*m);
                   while (room == 0) obey(processes.receive(kToOthers));
                   --room;
                   ByteWriter m = note(Note::kPiece);
                   m.varint(p);
                   m.bytes.insert(m.bytes.end(), slices.begin(), slices.end());
                   processes.send(0, kToFirst, std::move(m.bytes));
                   return true;
                 });
  } catch (const Stopped&) {
  } catch (...) {
    ByteWriter m = note(Note::kFailed);
    put_error(m, std::current_exception());
    processes.send(0, kToFirst, std::move(m.bytes));
  }
  processes.send(0, kToFirst, note(Note::kEnded).bytes);
}

struct GatheredSlices::State {
  State(Processes& p, std::vector<VolumePiece> all, VolumeDecoderParams params, PieceDecoder open_one)
      : processes(p), pieces(std::move(all)), open(std::move(open_one)), ended(static_cast<std::size_t>(p.size())) {
    ended[0] = true;
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
    for (int i = 1; i < processes.size(); ++i) processes.send(i, kToOthers, note(Note::kStop).bytes);
    while (!std::all_of(ended.begin(), ended.end(), [](bool e) { return e; })) {
      const Processes::Message m = processes.receive(kToFirst);
      if (static_cast<Note>(m.bytes.at(0)) == Note::kEnded) ended.at(static_cast<std::size_t>(m.from)) = true;
    }
  }

  void hear(const Processes::Message& m) {
    ByteReader in(m.bytes.data(), m.bytes.size(), "a message of another process");
    std::uint8_t what = 0;
    in.fixed(what);
    if (static_cast<Note>(what) == Note::kEnded) ended.at(static_cast<std::size_t>(m.from)) = true;
    if (static_cast<Note>(what) == Note::kFailed) throw_error(in, processes, m.from);
    if (static_cast<Note>(what) != Note::kPiece) return;
    std::uint64_t number = 0;
    in.varint(number);
    waiting[number].assign(m.bytes.end() - static_cast<std::ptrdiff_t>(in.left()), m.bytes.end());
  }

  /// The piece that comes next into `piece`.
  void fetch() {
    const std::size_t n = next++;
    const int owner = static_cast<int>(n % static_cast<std::size_t>(processes.size()));
    while (std::optional<Processes::Message> m = processes.try_receive(kToFirst)) hear(*m);
    if (owner == 0) {
      std::optional<std::vector<std::uint8_t>> slices = own.pop();
      require(slices.has_value(), ErrorKind::kInternal, "a piece of the volume is missing");
      piece = std::move(*slices);
    } else {
      while (!waiting.contains(n)) {
        require(!ended[static_cast<std::size_t>(owner)], ErrorKind::kInternal, "a piece of the volume is missing");
        hear(processes.receive(kToFirst));
      }
      piece = std::move(waiting.extract(n).mapped());
      processes.send(owner, kToOthers, note(Note::kRoom).bytes);
    }
    at = 0;
  }

  Processes& processes;
  std::vector<VolumePiece> pieces;
  PieceDecoder open;
  StageQueue<std::vector<std::uint8_t>> own{kMostAhead};
  std::map<std::size_t, std::vector<std::uint8_t>> waiting;
  std::vector<bool> ended;
  std::size_t next = 0;             ///< piece
  std::vector<std::uint8_t> piece;  ///< that is handed out
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
