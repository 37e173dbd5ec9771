// What encode --resume keeps beside its output until that is finished: every GOP that was coded, so that a run that was
// stopped need not code it again. OUT.resume is a signature and a row of entries: length, CRC-32C, content; what stands
// behind the first that is not whole was on its way when the run was stopped. The first entry says of which program,
// input and options the others are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "codec/encoder/encoder_part.h"

namespace trivelet::cli {

class EncodeJournal {
 public:
  /// Opens or creates `path`. Throws Io, also when another process uses it.
  explicit EncodeJournal(const std::string& path);
  ~EncodeJournal();
  EncodeJournal(const EncodeJournal&) = delete;
  EncodeJournal& operator=(const EncodeJournal&) = delete;

  /// Takes up what a run of this very program left whose `identity` was the same; throws BadArgument, and leaves the
  /// file as it is, if it was another one, or if the file is no such journal.
  void begin(const std::vector<std::uint8_t>& identity);
  /// A GOP that is there, and the errors that were measured of it; false if there is none.
  bool take(std::uint64_t number, GopRecord& record, std::vector<double>& errors);

  void add(const GopRecord& record);
  void add_errors(std::uint64_t number, const std::vector<double>& errors);
  /// The output is complete: nothing is left of it.
  void remove();
  const std::string& path() const { return path_; }

 private:
  struct Place {
    std::uint64_t record = 0;  ///< where its content begins, and how long it is
    std::uint64_t length = 0;
    std::vector<double> errors;
  };
  bool read(std::uint64_t at, void* data, std::size_t size) const;
  bool read_entry(std::uint64_t at, std::vector<std::uint8_t>& content) const;
  void append(const std::vector<std::uint8_t>& content);
  void write(const std::vector<std::uint8_t>& bytes);

  std::string path_;
  int file_ = -1;
  std::uint64_t end_ = 0;
  std::map<std::uint64_t, Place> places_;
};

}  // namespace trivelet::cli
