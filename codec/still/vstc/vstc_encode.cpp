// VSTC's encoder: searches the blocks in a wavefront, each with the contexts of its row, then writes one codeword.
//
// A block needs the one to its left and the row above up to the block above and to the right, so row y stays two blocks
// behind row y - 1. Costs come from contexts that have adapted to the row so far and started from those of the row
// above after its second block. So a wavefront makes the same decisions as one thread. The stream is coded afterwards
// with contexts that adapt from block to block.
#include <atomic>
#include <cstring>
#include <string>

#include "codec/base/limits.h"
#include "codec/still/vstc/vstc.h"
#include "codec/still/vstc/vstc_search.h"
#include "codec/still/vstc/vstc_wave.h"

namespace trivelet::vstc {

namespace {

std::vector<Plane> padded_source(const still::Image& image, const Picture& picture) {
  std::vector<Plane> planes = picture.planes;
  const int most = (1 << image.format.bits) - 1;
  const std::byte* from = image.samples.data();
  for (Plane& p : planes) {
    for (int y = 0; y < p.coded_height; ++y) {
      Sample* row = p.at(0, y);
      if (y >= p.height) {
        std::copy_n(p.at(0, p.height - 1), p.coded_width, row);
        continue;
      }
      if (image.format.bytes_per_sample() == 1) {
        for (int x = 0; x < p.width; ++x) row[x] = std::to_integer<Sample>(from[x]);
        from += p.width;
      } else {
        std::memcpy(row, from, 2 * static_cast<std::size_t>(p.width));
        from += 2 * p.width;
      }
      for (int x = 0; x < p.width; ++x)
        if (row[x] > most)
          fail(ErrorKind::kBadArgument,
               "sample " + std::to_string(row[x]) + " does not fit " + count_of(image.format.bits, "bit"));
      std::fill(row + p.width, row + p.coded_width, row[p.width - 1]);
    }
  }
  return planes;
}

/// Serialises contexts for messages between processes.
std::vector<Token> pack(const Contexts& contexts) {
  std::vector<Token> out(sizeof contexts / sizeof(Token));
  std::memcpy(out.data(), &contexts, sizeof contexts);
  return out;
}
Contexts unpack(const std::vector<Token>& data) {
  Contexts out;
  require(data.size() * sizeof(Token) == sizeof out, ErrorKind::kInternal,
          "a message between processes has a wrong size");
  std::memcpy(static_cast<void*>(&out), data.data(), sizeof out);
  return out;
}

class Encoder {
 public:
  Encoder(const still::Image& image, const Params& params, int threads)
      : params_(params),
        picture_(image.width, image.height, image.format, params.log2_block),
        source_(padded_source(image, picture_)),
        wide_(picture_.blocks_wide),
        high_(picture_.blocks_high),
        tokens_(static_cast<std::size_t>(wide_) * static_cast<std::size_t>(high_)),
        row_start_(static_cast<std::size_t>(high_)),
        done_(static_cast<std::size_t>(high_)) {
    row_start_[0] = start_contexts(params.qp);
    for (int i = 0; i < threads; ++i) searches_.push_back(std::make_unique<Search>(picture_, source_, params));
  }

  /// Searches all rows with the threads of the pool.
  void search(ThreadPool& pool) {
    pool.parallel_for(high_, [&](int y, int worker) {
      try {
        row(
            y, *searches_[static_cast<std::size_t>(worker)], [&](int x) { wait(y, x); },
            [&](int x) { announce(y, x); });
      } catch (...) {
        // Releases the waiting rows below; their results are discarded with this exception.
        for (auto& d : done_) {
          d.store(wide_);
          d.notify_all();
        }
        throw;
      }
    });
  }

  /// Searches the rows of one member of a team. The member before sends what a row needs from the one above: the lowest
  /// samples and cells of its blocks, and the initial contexts.
  void search_rows(Team& team) {
    const int rank = team.rank(), size = team.size(), before = (rank + size - 1) % size, after = (rank + 1) % size;
    for (int y = rank; y < high_; y += size) {
      int arrived = 0;
      row(
          y, *searches_[0],
          [&](int x) {
            if (y == 0) return;
            for (; arrived < std::min(x + 2, wide_); ++arrived) {
              if (arrived == start_block()) row_start_[static_cast<std::size_t>(y)] = unpack(team.receive(before));
              edge(arrived, y - 1, Unpacking{team.receive(before)});
            }
          },
          [&](int x) {
            if (y + 1 == high_) return;
            // The contexts are sent first, so that they have arrived when the block has.
            if (x == start_block()) team.send(pack(row_start_[static_cast<std::size_t>(y + 1)]), after);
            Packing packing;
            edge(x, y, packing);
            team.send(std::move(packing.data), after);
          });
    }
    // Sends the chosen trees to rank 0, which assembles the picture.
    for (int y = 0; y < high_; ++y) {
      const int owner = y % size;
      if (owner == 0) continue;
      for (int x = 0; x < wide_; ++x) {
        if (rank == owner) team.send(tokens(x, y), 0);
        if (rank == 0) tokens(x, y) = team.receive(owner);
      }
    }
    if (rank == 0) {
      for (Tree& tree : picture_.trees) std::fill(tree.cells.begin(), tree.cells.end(), Cell{});
      Reconstructor reconstructor(picture_, params_.qp, kernels(params_.simd));
      for (int y = 0; y < high_; ++y)
        for (int x = 0; x < wide_; ++x) rebuild(x, y, reconstructor);
    }
  }

  /// Searches on a device, a wavefront (blocks of equal x + 2 y) at a time.
  void search_waves(const MakeWaveSearch& make) {
    const std::unique_ptr<WaveSearch> device = make(picture_, source_, params_);
    Reconstructor reconstructor(picture_, params_.qp, kernels(params_.simd));
    std::vector<Contexts> contexts(static_cast<std::size_t>(high_));
    for (int wave = 0; wave < wide_ + 2 * (high_ - 1); ++wave) {
      std::vector<WaveSearch::Job> jobs;
      for (int y = 0; y < high_; ++y) {
        const int x = wave - 2 * y;
        if (x < 0 || x >= wide_) continue;
        Contexts& own = contexts[static_cast<std::size_t>(y)];
        if (x == 0) own = row_start_[static_cast<std::size_t>(y)];
        jobs.push_back({x, y, &own, &tokens(x, y)});
      }
      // Narrow pictures have empty wavefronts.
      if (jobs.empty()) continue;
      device->search(jobs);
      for (const WaveSearch::Job& job : jobs) {
        rebuild(job.bx, job.by, reconstructor);
        Contexts& own = contexts[static_cast<std::size_t>(job.by)];
        AdaptingIo io(own, nullptr);
        TokenReader reader{job.tokens->data()};
        Syntax<AdaptingIo>(io, picture_).block(job.bx, job.by, reader);
        if (job.bx == start_block() && job.by + 1 < high_) row_start_[static_cast<std::size_t>(job.by + 1)] = own;
        if (params_.block_searched) params_.block_searched();
      }
    }
  }

  std::vector<std::byte> stream(const still::Image& image, Statistics& statistics) {
    dense::RangeEncoder coder;
    coder.start();
    Contexts contexts = start_contexts(params_.qp), copy = contexts;
    CodingIo io(coder, contexts);
    Syntax<CodingIo> syntax(io, picture_);
    statistics.decisions[0].assign(2 * kContexts, 0);
    statistics.decisions[1].assign(2 * kContexts, 0);
    std::uint32_t* const counts[2] = {statistics.decisions[0].data(), statistics.decisions[1].data()};
    AdaptingIo counting(copy, counts);
    Syntax<AdaptingIo> counter(counting, picture_);
    for (int y = 0; y < high_; ++y)
      for (int x = 0; x < wide_; ++x) {
        TokenReader reader{tokens(x, y).data()}, again = reader;
        syntax.block(x, y, reader);
        counter.block(x, y, again);
      }
    coder.finish();
    still::Header header;
    header.codec = still::Codec::kVstc;
    header.width = image.width;
    header.height = image.height;
    header.format = image.format;
    header.parameters = {static_cast<std::uint8_t>(params_.log2_block), static_cast<std::uint8_t>(params_.qp)};
    return still::write_file(header, {coder.data(), coder.size()});
  }

  /// D + lambda R of the reconstructed picture and a stream of `bytes`.
  Joint joint(std::size_t bytes) const {
    std::int64_t squares = 0;
    for (std::size_t i = 0; i < source_.size(); ++i)
      for (int y = 0; y < source_[i].height; ++y) {
        const Sample *a = source_[i].at(0, y), *b = picture_.planes[i].at(0, y);
        for (int x = 0; x < source_[i].width; ++x) {
          const int d = static_cast<int>(a[x]) - b[x];
          squares += std::int64_t{d} * d;
        }
      }
    const Joint lambda = SearchConstants(params_.qp, picture_.format.bits).lambda;
    return (squares << 16) + lambda * static_cast<Joint>(8 * kBit * bytes);
  }

  Statistics statistics() const {
    Statistics sum;
    for (const auto& s : searches_) sum.add(s->statistics());
    return sum;
  }

 private:
  std::vector<Token>& tokens(int x, int y) {
    return tokens_[static_cast<std::size_t>(y) * static_cast<std::size_t>(wide_) + static_cast<std::size_t>(x)];
  }
  /// Reconstructs samples and cells of a block from its tokens.
  void rebuild(int x, int y, Reconstructor& reconstructor) {
    const Token* at = tokens(x, y).data();
    for (Tree& tree : picture_.trees) {
      const int k = tree.log2_block;
      at = reconstructor.tree(tree, x << k, y << k, k, k, at);
    }
  }
  /// The block of a row after which the contexts for the next row are saved.
  int start_block() const { return std::min(1, wide_ - 1); }

  struct Packing {
    std::vector<Token> data{};
    void visit(Sample& v) { data.push_back(static_cast<Token>(v)); }
    void visit(Cell& c) {
      data.push_back(static_cast<Token>(c.log2_w << 8 | c.log2_h));
      data.push_back(static_cast<Token>(c.mode));
    }
  };
  struct Unpacking {
    std::vector<Token> data;
    std::size_t at = 0;
    Token next() {
      require(at < data.size(), ErrorKind::kInternal, "a message between processes is too short");
      return data[at++];
    }
    void visit(Sample& v) { v = static_cast<Sample>(next()); }
    void visit(Cell& c) {
      const Token size = next();
      c = {1, static_cast<std::uint8_t>(size >> 8), static_cast<std::uint8_t>(size & 0xFF),
           static_cast<std::uint8_t>(next())};
    }
  };
  /// Transfers the lowest row of samples and cells of a block.
  template <class Io>
  void edge(int bx, int by, Io&& io) {
    for (Tree& tree : picture_.trees) {
      const int k = tree.log2_block, y = std::min((by + 1) << k, tree.height) - 1;
      const int from = bx << k, to = std::min((bx + 1) << k, tree.width);
      if (y < by << k) continue;
      for (int x = from; x < to; x += 4) io.visit(tree.cell(x, y));
      for (int p = 0; p < tree.planes; ++p)
        for (int x = from; x < to; ++x)
          io.visit(*picture_.planes[static_cast<std::size_t>(tree.first_plane + p)].at(x, y));
    }
  }

  template <class Wait, class Announce>
  void row(int y, Search& search, const Wait& wait_for, const Announce& done) {
    Contexts contexts;
    AdaptingIo io(contexts, nullptr);
    Syntax<AdaptingIo> syntax(io, picture_);
    for (int x = 0; x < wide_; ++x) {
      wait_for(x);
      if (x == 0) contexts = row_start_[static_cast<std::size_t>(y)];
      std::vector<Token>& t = tokens(x, y);
      t.clear();
      search.block(x, y, contexts, t);
      TokenReader reader{t.data()};
      syntax.block(x, y, reader);
      if (x == start_block() && y + 1 < high_) row_start_[static_cast<std::size_t>(y + 1)] = contexts;
      done(x);
      if (params_.block_searched) params_.block_searched();
    }
  }

  void wait(int y, int x) {
    if (y == 0) return;
    std::atomic<int>& above = done_[static_cast<std::size_t>(y - 1)];
    const int needed = std::min(x + 2, wide_);
    for (int have = above.load(); have < needed; have = above.load()) above.wait(have);
  }
  void announce(int y, int x) {
    done_[static_cast<std::size_t>(y)].store(x + 1);
    done_[static_cast<std::size_t>(y)].notify_all();
  }

  Params params_;
  Picture picture_;
  std::vector<Plane> source_;
  int wide_, high_;
  std::vector<std::vector<Token>> tokens_;
  std::vector<Contexts> row_start_;
  std::vector<std::atomic<int>> done_;  ///< number of finished blocks of each row
  std::vector<std::unique_ptr<Search>> searches_;
};

}  // namespace

void Statistics::add(const Statistics& other) {
  trials += other.trials;
  plain_trials += other.plain_trials;
  predictions += other.predictions;
}

namespace {
void check(const still::Image& image, const Params& params) {
  still::check_image(image, 8, 12);
  require(params.qp >= 0 && params.qp <= 51, ErrorKind::kBadArgument,
          "QP must be 0 to 51, not " + std::to_string(params.qp));
  require(params.log2_block >= 4 && params.log2_block <= 6, ErrorKind::kBadArgument,
          "blocks have 16, 32 or 64 samples a side, not " + std::to_string(1 << params.log2_block));
}
}  // namespace

namespace {
struct Result {
  Encoded encoded;
  Joint joint = kNever;
};

/// The best choice for each block need not be the best for those behind it: kFull tries kMedium, too.
template <class Run>
Encoded best_of(const Params& params, const Run& run) {
  Result first = run(params);
  if (params.effort != Effort::kFull) return std::move(first.encoded);
  Params less = params;
  less.effort = Effort::kMedium;
  Result second = run(less);
  Result& better = second.joint < first.joint ? second : first;
  better.encoded.statistics.add((&better == &first ? second : first).encoded.statistics);
  return std::move(better.encoded);
}

Result encode_once(const still::Image& image, const Params& params, ThreadPool& pool) {
  Team* const team = params.team && params.team->size() > 1 ? params.team : nullptr;
  Params own = params;
  own.team = team && params.sharing != Sharing::kRows ? team : nullptr;
  Encoder encoder(image, own, team ? 1 : pool.threads());
  if (!team) {
    encoder.search(pool);
  } else if (own.team) {
    ThreadPool alone(1);
    encoder.search(alone);
  } else {
    encoder.search_rows(*team);
  }
  Result out;
  out.encoded.statistics = encoder.statistics();
  if (team && team->rank() != 0) return out;
  out.encoded.bytes = encoder.stream(image, out.encoded.statistics);
  out.joint = encoder.joint(out.encoded.bytes.size());
  return out;
}
}  // namespace

std::uint64_t searched_blocks(const still::Image& image, const Params& params) {
  const std::uint64_t side = std::uint64_t{1} << params.log2_block;
  const auto blocks = [&](int size) { return (static_cast<std::uint64_t>(size) + side - 1) / side; };
  return blocks(image.width) * blocks(image.height) * (params.effort == Effort::kFull ? 2 : 1);
}

Encoded encode_waves(const still::Image& image, const Params& params, const MakeWaveSearch& make) {
  check(image, params);
  return best_of(params, [&](Params own) {
    own.team = nullptr;
    Encoder encoder(image, own, 1);
    encoder.search_waves(make);
    Result out;
    out.encoded.bytes = encoder.stream(image, out.encoded.statistics);
    out.joint = encoder.joint(out.encoded.bytes.size());
    return out;
  });
}

Encoded encode(const still::Image& image, const Params& params, ThreadPool& pool) {
  check(image, params);
  return best_of(params, [&](const Params& own) { return encode_once(image, own, pool); });
}

}  // namespace trivelet::vstc
