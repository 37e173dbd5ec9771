// Folders of DICOM files: which files are read, and what there is where none is a slice.
#include <algorithm>
#include <filesystem>

#include "codec/base/limits.h"
#include "io/video/pictures.h"
#include "io/volume/dicom_series.h"

namespace trivelet::io {

namespace {

namespace fs = std::filesystem;

/// True if `path` is a link out of its folder, or a broken link.
bool leads_out(const std::string& path, const fs::path& folder) {
  std::error_code error;
  return fs::is_symlink(path, error) && (fs::canonical(path, error).parent_path() != folder || error);
}

/// `others`: names of files that are not read.
std::vector<FileToRead> dicom_files(const std::string& folder, const VolumeOptions& options,
                                    std::vector<std::string>& others) {
  const Limits& limits = options.limits;
  std::vector<std::string> paths;
  std::error_code error, ignored;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (i->is_regular_file(ignored) && i->path().filename().string()[0] != '.') paths.push_back(i->path().string());
  require(!error, ErrorKind::kIo, "cannot read " + folder + ": " + error.message());
  check_limit(paths.size(), limits.files, "files", folder + ": " + count_of(paths.size(), "file"));
  std::sort(paths.begin(), paths.end());
  const fs::path real_folder = fs::canonical(folder, ignored);
  std::vector<FileToRead> files;
  for (const std::string& path : paths) {
    FileToRead f = file_to_read(path);
    f.limits = limits;
    VolumeInput input(f.open(), path);
    if (!is_dicom(input.ahead(4096))) {
      others.push_back(base_name(path));
      continue;
    }
    require(options.allow_outside || !leads_out(path, real_folder), ErrorKind::kUnsupported,
            path +
                ": is a link to another folder, so it may be any file of yours; VolumeOptions::allow_outside lets "
                "it be read");
    files.push_back(std::move(f));
  }
  return files;
}

/// False for what cannot be read, too.
bool begins_like_dicom(const std::string& path) {
  try {
    return is_dicom(VolumeInput(file_opener(path)(), path).ahead(4096));
  } catch (const Error&) {
    return false;
  }
}

/// Folders below one that hold DICOM files, by their names in it.
struct FoldersBelow {
  static constexpr std::size_t kMostOpened = 1000;  // files
  static constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> named;
  std::size_t more = 0;
};

FoldersBelow folders_below(const std::string& folder) {
  FoldersBelow found;
  std::vector<std::string> folders;
  std::size_t opened = 0;
  std::error_code error, ignored;
  fs::path last;
  for (fs::recursive_directory_iterator i(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && i != end && opened < FoldersBelow::kMostOpened; i.increment(error)) {
    const fs::path path = i->path();
    if (i.depth() == 0 || path.parent_path() == last || !i->is_regular_file(ignored)) continue;
    if (path.filename().string()[0] == '.' || path.filename() == "DICOMDIR") continue;
    ++opened;
    if (!begins_like_dicom(path.string())) continue;
    last = path.parent_path();
    folders.push_back(fs::relative(last, folder, ignored).string());
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  found.more = folders.size() - std::min(folders.size(), FoldersBelow::kMostNamed);
  folders.resize(folders.size() - found.more);
  found.named = std::move(folders);
  return found;
}

/// Of a folder without slices: names those below it that hold some, if there are any.
void refuse_folder_of_folders(const std::string& folder) {
  const FoldersBelow below = folders_below(folder);
  if (below.named.empty()) return;
  const std::size_t all = below.named.size() + below.more;
  std::string names = names_of(below.named);
  if (below.more > 0) names += " and " + std::to_string(below.more) + " more";
  fail(ErrorKind::kIo, "cannot read " + folder + ": it holds no slices itself, but its " +
                           (all == 1 ? "folder " + names + " does; open that folder"
                                     : "folders " + names + " do; open one of these folders"));
}

}  // namespace

VolumeLayout folder_layout(const std::string& folder, const VolumeOptions& options) {
  std::vector<std::string> others;
  const std::vector<FileToRead> files = dicom_files(folder, options, others);
  if (files.empty()) {
    refuse_folder_of_folders(folder);
    const auto named = std::find_if(others.begin(), others.end(), has_volume_name);
    if (named != others.end())
      fail(ErrorKind::kIo,
           "cannot read " + folder + ": none of its files is a DICOM file, not even " + printable(*named));
    fail(ErrorKind::kIo, "cannot read " + folder + ": it is a directory without DICOM files or pictures");
  }
  try {
    VolumeLayout layout = dicom_layout(files, options);
    if (!others.empty())
      layout.remarks.push_back(names_of(others) + (others.size() == 1 ? ": is no DICOM file and is left out"
                                                                      : ": are no DICOM files and are left out"));
    return layout;
  } catch (const NoPictures&) {  // a DICOMDIR
    refuse_folder_of_folders(folder);
    throw;
  }
}

bool is_dicom_folder(const std::string& folder) {
  std::size_t slices = 0, all = 0;
  std::error_code error, ignored;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    if (!i->is_regular_file(ignored) || name[0] == '.' || name == "DICOMDIR") continue;
    ++all;
    if (begins_like_dicom(i->path().string())) ++slices;
  }
  return 2 * slices > all;
}

std::vector<SeriesInFolder> series_in_folder(const std::string& folder, const VolumeOptions& options) {
  std::vector<std::string> others, remarks;
  const std::vector<FileToRead> files = dicom_files(folder, options, others);
  if (files.empty()) return {};
  return series_of(read_slices(files, options, remarks));
}

bool is_folder_of_slices(const std::string& folder) {
  bool pictures = false;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::string file = i->path().string();
    std::error_code ignored;
    if (is_picture_name(file))
      pictures = true;
    else if (i->is_regular_file(ignored) && is_volume(file) && volume_format_by_content(file_to_read(file)) == "dicom")
      return true;
  }
  return !pictures;
}

}  // namespace trivelet::io
