// A writer of JSON text: keys and values in order, indented, strings escaped, numbers that JSON lacks become null.
//
//   Json json;
//   json.begin_object();
//   json.member("frames", 96);
//   json.begin_array("gops"); json.value(1); json.end_array();
//   json.end_object();
//   std::fputs(json.text().c_str(), stdout);
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace trivelet::cli {

class Json {
 public:
  /// `compact`: everything on one line.
  explicit Json(bool compact = false) : compact_(compact) {}

  void begin_object(std::string_view key = {}) { open(key, '{'); }
  void end_object() { close('}'); }
  void begin_array(std::string_view key = {}) { open(key, '['); }
  void end_array() { close(']'); }

  template <class T>
  void member(std::string_view key, const T& v) {
    item(key);
    put(v);
  }
  template <class T>
  void value(const T& v) {
    member({}, v);
  }

  /// The finished text, ending in a line feed.
  std::string text() const { return text_ + "\n"; }

 private:
  void open(std::string_view key, char bracket);
  void close(char bracket);
  void item(std::string_view key);  ///< comma, line, key
  void new_line();

  void put(std::string_view v);
  void put(const std::string& v) { put(std::string_view(v)); }
  void put(const char* v) { put(std::string_view(v)); }
  void put(bool v) { text_ += v ? "true" : "false"; }
  void put(double v);
  template <std::integral T>
  void put(T v) {
    text_ += std::to_string(v);
  }

  bool compact_;
  std::string text_;
  std::vector<bool> has_items_;  ///< of every open object and array
};

}  // namespace trivelet::cli
