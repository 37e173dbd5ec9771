// VSTC's decoder: parses and reconstructs block by block (VSTC.md).
#include <string>

#include "codec/base/limits.h"
#include "codec/still/vstc/vstc.h"
#include "codec/still/vstc/vstc_io.h"
#include "codec/still/vstc/vstc_picture.h"
#include "codec/still/vstc/vstc_syntax.h"

namespace trivelet::vstc {

still::Image decode(std::span<const std::byte> bytes, const DecodeParams& params, ThreadPool&) {
  const still::File file = still::read_file(bytes);
  const still::Header& h = file.header;
  require(h.codec == still::Codec::kVstc, ErrorKind::kUnsupported, "the stream is of another codec than vstc");
  const int log2_block = h.parameters[0], qp = h.parameters[1];
  require(h.format.bits >= 8 && h.format.bits <= 12, ErrorKind::kBadStream,
          count_of(h.format.bits, "bit") + " per sample; vstc has 8 to 12");
  require(log2_block >= 4 && log2_block <= 6, ErrorKind::kBadStream,
          "block size 2^" + std::to_string(log2_block) + " is not defined; 4 to 6 are");
  require(qp <= 51, ErrorKind::kBadStream, "QP " + std::to_string(qp) + " is above 51");
  constexpr std::uint64_t kBytesOfSample = 8;  // bytes of memory: the picture and its cells
  still::check_cost(h, bytes.size(), kBytesOfSample, params.limits);

  Picture picture(h.width, h.height, h.format, log2_block);
  dense::RangeDecoder coder;
  coder.start(file.payload.data(), file.payload.size());
  Contexts contexts = start_contexts(qp);
  DecodingIo io(coder, contexts);
  Syntax<DecodingIo> syntax(io, picture);
  Reconstructor reconstructor(picture, qp, kernels(params.simd));
  std::vector<Token> tokens;
  // The parser fills cells, which the reconstruction must not see as available references. So a block's cells are
  // cleared between parsing and reconstruction.
  for (int by = 0; by < picture.blocks_high; ++by)
    for (int bx = 0; bx < picture.blocks_wide; ++bx) {
      tokens.clear();
      TokenWriter writer{tokens};
      syntax.block(bx, by, writer);
      const Token* at = tokens.data();
      for (Tree& tree : picture.trees) {
        const int k = tree.log2_block, x = bx << k, y = by << k;
        for (int cy = y; cy < std::min(y + (1 << k), tree.height); cy += 4)
          for (int cx = x; cx < std::min(x + (1 << k), tree.width); cx += 4) tree.cell(cx, cy).coded = 0;
        at = reconstructor.tree(tree, x, y, k, k, at);
      }
    }
  return picture.image(h.width, h.height);
}

}  // namespace trivelet::vstc
