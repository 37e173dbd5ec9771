#include "apps/json.h"

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

void Json::put(std::string_view v) {
  text_ += '"';
  for (const char c : v) {
    switch (c) {
      case '"': text_ += "\\\""; break;
      case '\\': text_ += "\\\\"; break;
      case '\n': text_ += "\\n"; break;
      case '\r': text_ += "\\r"; break;
      case '\t': text_ += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          char escape[8];
          std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
          text_ += escape;
        } else {
          text_ += c;
        }
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
