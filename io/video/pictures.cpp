// Sequences of pictures, one file each: their names, reading and writing.

#include "io/video/pictures.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "codec/threads/parallel.h"
#include "io/video/planes.h"

namespace trivelet::io {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPictureExtensions[] = {".png", ".jpg",  ".jpeg", ".tif", ".tiff", ".bmp", ".pgm", ".ppm", ".pnm",
                                              ".pbm", ".webp", ".dpx",  ".exr", ".jp2",  ".j2k", ".tga", ".sgi"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower_extension(const fs::path& file) {
  std::string extension = file.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension;
}

/// Compares numbers in names by value, other characters as bytes.
bool in_natural_order(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
      continue;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    const auto end_of = [](const std::string& s, std::size_t at) {
      while (at < s.size() && is_digit(s[at])) ++at;
      return at;
    };
    const std::size_t i_end = end_of(a, i);
    const std::size_t j_end = end_of(b, j);
    if (i_end - i != j_end - j) return i_end - i < j_end - j;
    const int difference = a.compare(i, i_end - i, b, j, j_end - j);
    if (difference != 0) return difference < 0;
    i = i_end;
    j = j_end;
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path place = folder.empty() ? "." : folder;
  for (fs::directory_iterator i(place, error), end; !error && i != end; i.increment(error)) {
    std::error_code ignored;
    const std::string name = i->path().filename().string();
    if (name.front() != '.' && i->is_regular_file(ignored)) names.push_back(name);
  }
  require(!error, ErrorKind::kIo, "cannot read " + place.string() + ": " + error.message());
  return names;
}

std::vector<std::string> pictures_of_folder(const std::string& folder) {
  std::vector<std::string> names = files_of(folder);
  std::erase_if(names, [](const std::string& name) { return !is_picture_name(name); });
  require(!names.empty(), ErrorKind::kIo, folder + ": a folder without pictures (.png, .jpg, .tif, .pgm, ...)");
  std::sort(names.begin(), names.end(), in_natural_order);
  for (const std::string& name : names)
    require(lower_extension(name) == lower_extension(names.front()), ErrorKind::kUnsupported,
            folder + " holds pictures of several kinds, " + names.front() + " and " + name +
                "; those of one video have the same extension");
  for (std::string& name : names) name = (fs::path(folder) / name).string();
  return names;
}

std::vector<std::string> pictures_by_number(const NumberedName& pattern, const std::string& path) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : files_of(pattern.folder()))
    if (const std::optional<std::uint64_t> number = pattern.number_in(name)) numbers.push_back(*number);
  require(!numbers.empty(), ErrorKind::kIo, "cannot read " + path + ": there is no such picture");
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::string> names;
  for (const std::uint64_t number : numbers) {
    require(number == numbers.front() + names.size(), ErrorKind::kBadStream,
            path + ": " + pattern.name(numbers.front() + names.size()) +
                " is missing, there are pictures up to number " + std::to_string(numbers.back()));
    names.push_back(pattern.name(number));
  }
  return names;
}

class PicturesReader final : public FrameReader {
 public:
  PicturesReader(std::vector<std::string> files, const ReaderOptions& options)
      : files_(std::move(files)), options_(options) {
    const Rational rate = options.frame_rate.num > 0 ? options.frame_rate : Rational{25, 1};
    pool_threads_ = options.threads;
    options_.threads = 1;
    options_.frame_rate = {0, 1};
    const Reader first = open_reader(files_.front(), options_);
    info_ = first->info();
    info_.frames = files_.size();
    set_constant_rate(info_, rate);
    metadata_ = first->metadata();
  }

  const VideoInfo& info() const override { return info_; }
  Metadata metadata() const override { return metadata_; }

  bool read(Gop& gop, int index) override { return read_frames(gop, index, 1) == 1; }

  int read_frames(Gop& gop, int first, int count) override {
    const auto wanted =
        static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(count), files_.size() - next_));
    if (wanted == 0) return 0;
    check_gop(gop, first + wanted - 1, info_);
    if (!pool_) pool_.emplace(pool_threads_);
    pool_->parallel_for(wanted, [&](int i, int) { read_picture(next_ + static_cast<std::size_t>(i), gop, first + i); });
    next_ += static_cast<std::size_t>(wanted);
    return wanted;
  }

  std::uint64_t skip(std::uint64_t count) override {
    const std::uint64_t passed = std::min<std::uint64_t>(count, files_.size() - next_);
    next_ += static_cast<std::size_t>(passed);
    return passed;
  }

  bool unread(int count) override {
    if (static_cast<std::size_t>(count) > next_) return false;
    next_ -= static_cast<std::size_t>(count);
    return true;
  }

 private:
  void read_picture(std::size_t number, Gop& gop, int index) const {
    const std::string& file = files_[number];
    const Reader reader = open_reader(file, options_);
    const VideoInfo& found = reader->info();
    require(found.width == info_.width && found.height == info_.height && found.format == info_.format,
            ErrorKind::kUnsupported,
            file + " is " + describe(found) + ", the first picture was " + describe(info_) +
                "; frames of a video have one size and format (ReaderOptions::pixel_format converts)");
    require(reader->read(gop, index), ErrorKind::kBadStream, file + " holds no picture");
    require(reader->skip(1) == 0, ErrorKind::kUnsupported, file + " holds more than one picture");
    gop.times()[static_cast<std::size_t>(index)] = {static_cast<std::int64_t>(number), 1};
  }

  std::vector<std::string> files_;
  ReaderOptions options_;
  int pool_threads_ = 0;
  std::optional<ThreadPool> pool_;
  VideoInfo info_;
  Metadata metadata_;
  std::size_t next_ = 0;
};

class PicturesWriter final : public FrameWriter {
 public:
  PicturesWriter(const NumberedName& names, const VideoInfo& info, const WriterOptions& options)
      : names_(names), info_(info), options_(options), pool_(options.threads) {
    options_.threads = 1;
    options_.side_streams = {};
    for (std::uint64_t n = 1; n <= info.frames && !options.overwrite; ++n)
      require(::access(names.name(n).c_str(), F_OK) != 0, ErrorKind::kBadArgument,
              names.name(n) + " exists and is not to be overwritten");
    first_ = open_writer(names_.name(1), info_, options_);
  }

  void write(const Gop& gop, int index) override {
    files_.push_back(nullptr);
    write_picture(gop, index, files_.size() - 1);
  }

  void write_frames(const Gop& gop) override {
    const std::size_t before = files_.size();
    files_.resize(before + static_cast<std::size_t>(gop.frames()));
    pool_.parallel_for(gop.frames(), [&](int i, int) { write_picture(gop, i, before + static_cast<std::size_t>(i)); });
  }

  void finish() override {
    for (const Writer& file : files_) file->finish();
  }

 private:
  void write_picture(const Gop& gop, int index, std::size_t number) {
    Writer file = number == 0 ? std::move(first_) : open_writer(names_.name(number + 1), info_, options_);
    file->write(gop, index);
    file->complete();
    files_[number] = std::move(file);
  }

  NumberedName names_;
  VideoInfo info_;
  WriterOptions options_;
  ThreadPool pool_;
  Writer first_;  ///< opened early, so that an impossible output is refused before anything is decoded
  std::vector<Writer> files_;
};

}  // namespace

std::optional<NumberedName> NumberedName::parse(const std::string& path) {
  NumberedName parsed;
  const std::size_t slash = path.find_last_of('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  parsed.folder_ = path.substr(0, begin);
  bool numbered = false;
  for (std::size_t i = begin; i < path.size(); ++i) {
    std::string& part = numbered ? parsed.after_ : parsed.before_;
    if (path[i] != '%') {
      part += path[i];
      continue;
    }
    if (path.compare(i, 2, "%%") == 0) {
      part += path[i++];
      continue;
    }
    std::size_t at = i + 1;
    const char fill = at < path.size() && path[at] == '0' ? '0' : ' ';
    int digits = 0;
    while (at < path.size() && is_digit(path[at]) && digits < 100) digits = 10 * digits + (path[at++] - '0');
    if (at >= path.size() || path[at] != 'd' || digits > 18 || numbered) return std::nullopt;
    numbered = true;
    parsed.digits_ = std::max(1, digits);
    parsed.fill_ = fill;
    i = at;
  }
  return numbered ? std::optional(parsed) : std::nullopt;
}

std::string NumberedName::name(std::uint64_t number) const {
  std::string digits = std::to_string(number);
  const auto width = static_cast<std::size_t>(digits_);
  if (digits.size() < width) digits.insert(0, width - digits.size(), fill_);
  return folder_ + before_ + digits + after_;
}

std::optional<std::uint64_t> NumberedName::number_in(const std::string& name) const {
  if (name.size() <= before_.size() + after_.size() || name.size() - before_.size() - after_.size() > 18 ||
      name.compare(0, before_.size(), before_) != 0)
    return std::nullopt;
  std::uint64_t number = 0;
  for (std::size_t i = before_.size(); i < name.size() - after_.size(); ++i) {
    if (is_digit(name[i]))
      number = 10 * number + static_cast<unsigned>(name[i] - '0');
    else if (name[i] != ' ')
      return std::nullopt;
  }
  return this->name(number) == folder_ + name ? std::optional(number) : std::nullopt;
}

bool is_picture_name(const std::string& name) {
  const std::string extension = lower_extension(name);
  return std::find(std::begin(kPictureExtensions), std::end(kPictureExtensions), extension) !=
         std::end(kPictureExtensions);
}

Reader make_pictures_reader(const std::string& path, const ReaderOptions& options) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return std::make_unique<PicturesReader>(pictures_of_folder(path), options);
  const std::optional<NumberedName> pattern = NumberedName::parse(path);
  require(pattern.has_value(), ErrorKind::kBadArgument,
          path + ": a sequence of pictures has one %d or %04d in its name, %% for a percent sign");
  return std::make_unique<PicturesReader>(pictures_by_number(*pattern, path), options);
}

Writer make_pictures_writer(const NumberedName& names, const VideoInfo& info, const WriterOptions& options) {
  return std::make_unique<PicturesWriter>(names, info, options);
}

}  // namespace trivelet::io
