// Initial contexts, cost table and scan orders of VSTC (VSTC.md, section 6).
#include "codec/still/vstc/vstc_model.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "codec/still/vstc/vstc_kernels.h"
#include "codec/still/vstc/vstc_tables.h"

namespace trivelet::vstc {

namespace {

constexpr int kTableQp[4] = {22, 27, 32, 37};

std::vector<std::uint16_t> make_positions(int log2_w, int log2_h) {
  const int w = 1 << log2_w, h = 1 << log2_h;
  std::vector<std::uint16_t> order;
  const auto put = [&](int x, int y) { order.push_back(static_cast<std::uint16_t>(y * w + x)); };
  if (w == 1 || h == 1) {
    for (int i = 0; i < w * h; ++i) order.push_back(static_cast<std::uint16_t>(i));
  } else if (w == 2 || h == 2) {
    // Z order: the four samples of each 2x2 square, square by square.
    for (int i = 0; i < w * h; ++i) {
      const int square = i >> 2, dx = i & 1, dy = i >> 1 & 1;
      put((w > 2 ? 2 * square : 0) + dx, (w > 2 ? 0 : 2 * square) + dy);
    }
  } else {
    for (int d = 0; d < w + h - 1; ++d)
      for (int i = 0; i <= d; ++i) {
        const int x = d % 2 == 0 ? i : d - i, y = d - x;
        if (x < w && y < h) put(x, y);
      }
  }
  return order;
}

struct Scans {
  std::vector<std::uint16_t> memory[49];
  Scan scan[49];
  Scans() {
    for (int kw = 0; kw <= 6; ++kw)
      for (int kh = 0; kh <= 6; ++kh) {
        std::vector<std::uint16_t>& m = memory[kw * 7 + kh];
        m = make_positions(kw, kh);
        const std::size_t n = m.size();
        m.resize(2 * n);
        for (std::size_t i = 0; i < n; ++i) m[n + m[i]] = static_cast<std::uint16_t>(i);
        scan[kw * 7 + kh] = {m.data(), m.data() + n};
      }
  }
};

}  // namespace

const Scan& scan_of(int log2_w, int log2_h) {
  static const Scans scans;
  return scans.scan[log2_w * 7 + log2_h];
}

Contexts start_contexts(int qp) {
  qp = std::clamp(qp, kTableQp[0], kTableQp[3]);
  const int i = std::min((qp - kTableQp[0]) / 5, 2);
  Contexts out;
  for (std::size_t set = 0; set < 2; ++set)
    for (std::size_t c = 0; c < kContexts; ++c) {
      const int a = kStart[i][set][c], b = kStart[i + 1][set][c];
      const int p = (a * (kTableQp[i + 1] - qp) + b * (qp - kTableQp[i])) / 5;
      out[set][c].fast = out[set][c].slow = static_cast<std::uint16_t>(p);
    }
  return out;
}

Cost cost_of(std::uint32_t p) {
  struct Table {
    std::array<Cost, 4096> of{};
    Table() {
      for (int i = 0; i < 4096; ++i)
        of[static_cast<std::size_t>(i)] = static_cast<Cost>(std::lround(-kBit * std::log2((i + 0.5) / 4096)));
    }
  };
  static const Table table;
  return table.of[p >> 4];
}

const Coefficient* matrix_of(int log2_n, bool sine) {
  struct Matrices {
    std::vector<Coefficient> of[2][7];
    Matrices() {
      for (int k = 0; k <= 6; ++k) {
        const int n = 1 << k;
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j) {
            const double pi = std::numbers::pi;
            const double c = i == 0 ? 64 : 64 * std::numbers::sqrt2 * std::cos(pi * (2 * j + 1) * i / (2 * n));
            const double s = 64 * std::sqrt(4.0 * n / (2 * n + 1)) * std::sin(pi * (2 * i + 1) * (j + 1) / (2 * n + 1));
            of[0][k].push_back(static_cast<Coefficient>(std::lround(c)));
            of[1][k].push_back(static_cast<Coefficient>(std::lround(s)));
          }
      }
    }
  };
  static const Matrices matrices;
  return matrices.of[sine][log2_n].data();
}

}  // namespace trivelet::vstc
