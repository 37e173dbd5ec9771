// Words, symbols and codewords of bit-plane stages 1 to 3 (CCSDS 122.0-B-2 §4.5.3) as compile-time tables.
//
// A word lists the types (0 or 1) of the not yet significant coefficients of a set; it has 0..4 bits. Here it is
// addressed by a nibble of positions and a nibble of values. A coded word is a *token*:
//
//   0..3    symbol of a 2-bit word       28, 29  a raw bit: 1-bit words and block flags
//   4..11   symbol of a 3-bit word       32..42  option id of word length 2, 3, 4 on first use in stage 1 / 2 / 3:
//   12..27  symbol of a 4-bit word               32 + 4 * (stage - 1) + (length - 2)
#pragma once

#include <array>
#include <cstdint>

namespace trivelet::ccsds122 {

inline constexpr int kRawToken = 28;
inline constexpr int kOptionToken = 32;

/// Kinds of words with different symbol mappings.
enum WordKind : int {
  kQuarterWord = 0,  ///< types[H_ij] and tranH_i
  kChildWord = 1,    ///< types[C_i]
  kOtherWord = 2,    ///< types[P] and tranG
  kFamilyWord = 3,   ///< tranD
};

namespace detail {

inline constexpr std::uint8_t kNone = 255;
inline constexpr std::uint8_t kSymbol2[4] = {0, 2, 1, 3};
inline constexpr std::uint8_t kSymbol3[8] = {1, 4, 0, 5, 2, 6, 3, 7};
inline constexpr std::uint8_t kSymbol3Family[8] = {kNone, 3, 0, 4, 1, 5, 2, 6};
inline constexpr std::uint8_t kSymbol4Child[16] = {10, 1, 3, 6, 2, 5, 9, 12, 0, 8, 7, 13, 4, 14, 11, 15};
inline constexpr std::uint8_t kSymbol4Quarter[16] = {kNone, 1, 3, 6, 2, 5, 9, 11, 0, 8, 7, 12, 4, 13, 10, 14};

struct Code {
  std::uint8_t bits;
  std::uint8_t length;
};
inline constexpr Code kCode2[2][4] = {{{1, 1}, {1, 2}, {1, 3}, {0, 3}}, {{0, 2}, {1, 2}, {2, 2}, {3, 2}}};
inline constexpr Code kCode3[3][8] = {{{1, 1}, {1, 2}, {1, 3}, {0, 5}, {1, 5}, {2, 5}, {6, 6}, {7, 6}},
                                      {{2, 2}, {3, 2}, {2, 3}, {3, 3}, {2, 4}, {3, 4}, {0, 4}, {1, 4}},
                                      {{0, 3}, {1, 3}, {2, 3}, {3, 3}, {4, 3}, {5, 3}, {6, 3}, {7, 3}}};
inline constexpr Code kCode4[4][16] = {{{1, 1},
                                        {1, 2},
                                        {1, 3},
                                        {1, 4},
                                        {0, 7},
                                        {1, 7},
                                        {2, 7},
                                        {3, 7},
                                        {8, 8},
                                        {9, 8},
                                        {10, 8},
                                        {11, 8},
                                        {12, 8},
                                        {13, 8},
                                        {14, 8},
                                        {15, 8}},
                                       {{2, 2},
                                        {3, 2},
                                        {2, 3},
                                        {3, 3},
                                        {2, 4},
                                        {3, 4},
                                        {0, 6},
                                        {1, 6},
                                        {2, 6},
                                        {3, 6},
                                        {4, 6},
                                        {5, 6},
                                        {12, 7},
                                        {13, 7},
                                        {14, 7},
                                        {15, 7}},
                                       {{4, 3},
                                        {5, 3},
                                        {6, 3},
                                        {7, 3},
                                        {4, 4},
                                        {5, 4},
                                        {6, 4},
                                        {7, 4},
                                        {4, 5},
                                        {5, 5},
                                        {6, 5},
                                        {7, 5},
                                        {0, 5},
                                        {1, 5},
                                        {2, 5},
                                        {3, 5}},
                                       {{0, 4},
                                        {1, 4},
                                        {2, 4},
                                        {3, 4},
                                        {4, 4},
                                        {5, 4},
                                        {6, 4},
                                        {7, 4},
                                        {8, 4},
                                        {9, 4},
                                        {10, 4},
                                        {11, 4},
                                        {12, 4},
                                        {13, 4},
                                        {14, 4},
                                        {15, 4}}};

constexpr int count_bits(unsigned x) {
  int n = 0;
  for (; x; x &= x - 1) ++n;
  return n;
}

/// The bits of `value` at the positions of `mask`, packed to the right (pext on 4 bits).
constexpr unsigned extract4(unsigned value, unsigned mask) {
  unsigned out = 0;
  for (int i = 3; i >= 0; --i)
    if (mask >> i & 1) out = out << 1 | (value >> i & 1);
  return out;
}

constexpr std::uint8_t symbol_of(int kind, int length, unsigned word) {
  if (length == 2) return kSymbol2[word];
  if (length == 3) return kind == kFamilyWord ? kSymbol3Family[word] : kSymbol3[word];
  return kind == kChildWord ? kSymbol4Child[word] : kSymbol4Quarter[word];
}

}  // namespace detail

/// Options per word length 2, 3, 4; the last one is "uncoded".
inline constexpr int kOptions[5] = {0, 0, 2, 3, 4};
/// Bits of the option id, and the id of an option (uncoded is all ones).
inline constexpr int option_id_bits(int length) { return length == 2 ? 1 : 2; }
inline constexpr int option_id(int length, int option) {
  return option == kOptions[length] - 1 ? (1 << option_id_bits(length)) - 1 : option;
}

/// token_of[kind][positions * 16 + values] = token | signs << 6 | length class << 9, where signs is the number of ones
/// (each followed by a sign bit for coefficient words) and the class is 0 for raw bits, 1, 2, 3 for lengths 2, 3, 4.
struct TokenTable {
  std::uint16_t entry[4][256];
};
constexpr TokenTable make_token_table() {
  TokenTable t{};
  for (int kind = 0; kind < 4; ++kind)
    for (unsigned mask = 0; mask < 16; ++mask)
      for (unsigned value = 0; value < 16; ++value) {
        const int length = detail::count_bits(mask);
        const unsigned word = detail::extract4(value, mask);
        unsigned token = 0, cls = 0;
        if (length == 1) {
          token = static_cast<unsigned>(kRawToken) + word;
        } else if (length >= 2) {
          constexpr unsigned kBase[5] = {0, 0, 0, 4, 12};
          const std::uint8_t s = detail::symbol_of(kind, length, word);
          token = kBase[length] + (s == detail::kNone ? 0 : s);  // impossible words get any symbol
          cls = static_cast<unsigned>(length) - 1;
        }
        t.entry[kind][mask << 4 | value] =
            static_cast<std::uint16_t>(token | static_cast<unsigned>(detail::count_bits(word)) << 6 | cls << 9);
      }
  return t;
}
inline constexpr TokenTable kTokens = make_token_table();

/// extract4 as a table: [mask * 16 + value].
struct ExtractTable {
  std::uint8_t entry[256];
};
constexpr ExtractTable make_extract_table() {
  ExtractTable t{};
  for (unsigned m = 0; m < 16; ++m)
    for (unsigned v = 0; v < 16; ++v) t.entry[m << 4 | v] = static_cast<std::uint8_t>(detail::extract4(v, m));
  return t;
}
inline constexpr ExtractTable kExtract4 = make_extract_table();

/// The codeword of a token for a set of options: bits | length << 8. Set number: (o2 * 3 + o3) * 4 + o4.
struct CodeTable {
  std::uint16_t entry[24][32];
};
constexpr CodeTable make_code_table() {
  CodeTable t{};
  for (int set = 0; set < 24; ++set) {
    const int o4 = set % 4, o3 = set / 4 % 3, o2 = set / 12;
    auto pack = [](detail::Code c) { return static_cast<std::uint16_t>(c.bits | c.length << 8); };
    for (int i = 0; i < 4; ++i) t.entry[set][i] = pack(detail::kCode2[o2][i]);
    for (int i = 0; i < 8; ++i) t.entry[set][4 + i] = pack(detail::kCode3[o3][i]);
    for (int i = 0; i < 16; ++i) t.entry[set][12 + i] = pack(detail::kCode4[o4][i]);
    t.entry[set][kRawToken] = 0 | 1 << 8;
    t.entry[set][kRawToken + 1] = 1 | 1 << 8;
  }
  return t;
}
inline constexpr CodeTable kCodes = make_code_table();

/// The cost of a token under every option, relative to "uncoded": lanes o2:0, o3:0, o3:1, o4:0, o4:1, o4:2.
struct CostTable {
  alignas(16) std::int16_t entry[32][8];
};
constexpr CostTable make_cost_table() {
  CostTable t{};
  for (int i = 0; i < 4; ++i) t.entry[i][0] = static_cast<std::int16_t>(detail::kCode2[0][i].length - 2);
  for (int i = 0; i < 8; ++i)
    for (int o = 0; o < 2; ++o) t.entry[4 + i][1 + o] = static_cast<std::int16_t>(detail::kCode3[o][i].length - 3);
  for (int i = 0; i < 16; ++i)
    for (int o = 0; o < 3; ++o) t.entry[12 + i][3 + o] = static_cast<std::int16_t>(detail::kCode4[o][i].length - 4);
  return t;
}
inline constexpr CostTable kCosts = make_cost_table();

/// Decoding tables, addressed by the next 8 bits: word | code length << 4 | (code length + ones of the word) << 8, or
/// kSlow for codewords that do not exist. Tables are numbered as kDecodeBase says, plus the option:
///   0 no word, 1 one raw bit, 2 length 2, 4 length 3, 7 length 3 of tranD, 10 length 4 of H, 14 length 4 of C, and
///   18 "option not read yet": every entry is kSlow.
inline constexpr std::uint16_t kSlow = 0x8000;
inline constexpr int kUnreadTable = 18;
inline constexpr std::uint8_t kDecodeBase[4][5] = {
    {0, 1, 2, 4, 10}, {0, 1, 2, 4, 14}, {0, 1, 2, 4, 0}, {0, 1, 2, 7, 0}};
struct DecodeTable {
  std::uint16_t entry[19][256];
};
constexpr DecodeTable make_decode_table() {
  DecodeTable t{};
  for (auto& table : t.entry)
    for (auto& e : table) e = kSlow;
  for (int i = 0; i < 256; ++i) {
    t.entry[0][i] = 0;
    const int bit = i >> 7;
    t.entry[1][i] = static_cast<std::uint16_t>(bit | 1 << 4 | (1 + bit) << 8);
  }
  auto fill = [&](int table, int kind, int length, auto code) {
    for (unsigned word = 0; word < (1U << length); ++word) {
      const std::uint8_t s = detail::symbol_of(kind, length, word);
      if (s == detail::kNone) continue;
      const detail::Code c = code(s);
      const int ones = detail::count_bits(word);
      for (int rest = 0; rest < 1 << (8 - c.length); ++rest)
        t.entry[table][(c.bits << (8 - c.length)) + rest] =
            static_cast<std::uint16_t>(static_cast<int>(word) | c.length << 4 | (c.length + ones) << 8);
    }
  };
  for (int o = 0; o < 2; ++o) fill(2 + o, kOtherWord, 2, [&](int s) { return detail::kCode2[o][s]; });
  for (int o = 0; o < 3; ++o) fill(4 + o, kOtherWord, 3, [&](int s) { return detail::kCode3[o][s]; });
  for (int o = 0; o < 3; ++o) fill(7 + o, kFamilyWord, 3, [&](int s) { return detail::kCode3[o][s]; });
  for (int o = 0; o < 4; ++o) fill(10 + o, kQuarterWord, 4, [&](int s) { return detail::kCode4[o][s]; });
  for (int o = 0; o < 4; ++o) fill(14 + o, kChildWord, 4, [&](int s) { return detail::kCode4[o][s]; });
  return t;
}
inline constexpr DecodeTable kDecode = make_decode_table();

}  // namespace trivelet::ccsds122
