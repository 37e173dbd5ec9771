// The file that encode --resume keeps beside its output until that is complete. It holds every coded GOP, so that a
// stopped run need not code them again. OUT.resume is a signature and a list of entries: length, CRC-32C, content. An
// incomplete entry, which was being written when the run stopped, ends the list. The first entry identifies program,
// input and options.
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

  /// Reads what an earlier run of this program with the same `identity` left. Throws BadArgument, and leaves the file
  /// unchanged, if the identity differs or the file is not a journal.
  void begin(const std::vector<std::uint8_t>& identity);
  /// A GOP of the journal and the errors that were measured of it; false if the journal does not have it.
  bool take(std::uint64_t number, GopRecord& record, std::vector<double>& errors);

  void add(const GopRecord& record);
  void add_errors(std::uint64_t number, const std::vector<double>& errors);
  /// The output is complete: removes the file.
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
