// Writes JSON with indentation, and makes texts valid UTF-8.

#include "apps/cli/json.h"

#include <cmath>
#include <cstdio>

namespace trivelet::cli {

void Json::new_line() {
  if (compact_) return;
  text_ += '\n';
  text_.append(2 * has_items_.size(), ' ');
}

void Json::item(std::string_view key) {
  if (!has_items_.empty()) {
    if (has_items_.back()) text_ += compact_ ? ", " : ",";
    has_items_.back() = true;
    new_line();
  }
  if (!key.empty()) {
    put(key);
    text_ += ": ";
  }
}

void Json::open(std::string_view key, char bracket) {
  item(key);
  text_ += bracket;
  has_items_.push_back(false);
}

void Json::close(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) new_line();
  text_ += bracket;
}

namespace {

/// Bytes of the UTF-8 character at the beginning of `text`, 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (byte(i) >> 6 != 2) return 0;
  // Longer than needed, surrogates, beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

}  // namespace

void Json::put(std::string_view v) {
  const auto escape = [this](unsigned character) {
    char text[8];
    std::snprintf(text, sizeof text, "\\u%04x", character);
    text_ += text;
  };
  text_ += '"';
  while (!v.empty()) {
    const std::size_t length = utf8_length(v);
    if (length == 2 && static_cast<unsigned char>(v[0]) == 0xc2 && static_cast<unsigned char>(v[1]) < 0xa0) {
      escape(static_cast<unsigned char>(v[1]));  // control characters do nothing to a terminal
      v.remove_prefix(2);
      continue;
    }
    if (length != 1) {
      text_ += length == 0 ? std::string_view("\\ufffd") : v.substr(0, length);
      v.remove_prefix(length == 0 ? 1 : length);
      continue;
    }
    const char c = v.front();
    v.remove_prefix(1);
    switch (c) {
      case '"': text_ += "\\\""; break;
      case '\\': text_ += "\\\\"; break;
      case '\n': text_ += "\\n"; break;
      case '\r': text_ += "\\r"; break;
      case '\t': text_ += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          escape(static_cast<unsigned char>(c));
        else
          text_ += c;
    }
  }
  text_ += '"';
}

void Json::put(double v) {
  if (!std::isfinite(v)) {
    text_ += "null";
    return;
  }
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", v);
  text_ += digits;
}

}  // namespace trivelet::cli
