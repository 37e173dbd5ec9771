// FileSink writes a file that is complete or absent. Data goes to PATH.part, and commit() renames it to PATH.
//
// The temporary file is created exclusively (O_EXCL) and stays locked (flock) while it is written, so that a second
// process that wants the same name gets an error. A file that a crashed process left is not locked. It is removed if it
// is a regular file of the same user with no other name. (A link or a pipe would send the bytes elsewhere. A file of
// another user could be changed by that user until the rename.) After the lock the name is looked up again, because
// another process may have renamed or removed the file between the open and the lock. Without permission to overwrite,
// the rename itself refuses an existing name, so that a file that appeared meanwhile survives.
//
// Data reaches the disk before the name does: fsync of the file, the rename, fsync of the folder. After a crash of the
// system either the old file or the new one exists. The new file gets the permissions of the file that it replaces.
//
// The names of temporaries stand in a list of nodes that are never freed, so that a signal handler may walk it at any
// time.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "codec/base/temporaries.h"
#include "codec/base/wait_until_ready.h"
#include "trivelet/error.h"
#include "trivelet/streams.h"

namespace trivelet {

namespace {

struct Temporary {
  std::atomic<bool> active{false};
  std::atomic<bool> is_foreign{false};  ///< another process writes it; it is removed once that process has ended
  char path[PATH_MAX] = {};
  Temporary* next = nullptr;
};
std::atomic<Temporary*> first_temporary{nullptr};
std::mutex temporaries_mutex;

Temporary* remember(const std::string& path) {
  require(path.size() < PATH_MAX, ErrorKind::kIo, "cannot write " + path + ": " + std::strerror(ENAMETOOLONG));
  const std::lock_guard lock(temporaries_mutex);
  Temporary* node = first_temporary.load();
  while (node != nullptr && node->path[0] != '\0') node = node->next;
  const bool fresh = node == nullptr;
  if (fresh) node = new Temporary;
  std::memcpy(node->path, path.c_str(), path.size() + 1);
  if (fresh) {
    node->next = first_temporary.load();
    first_temporary.store(node);
  }
  return node;
}

void forget(Temporary* node) {
  const std::lock_guard lock(temporaries_mutex);
  node->active.store(false);
  node->is_foreign.store(false);
  node->path[0] = '\0';
}

/// The file that a symbolic link leads to. The rename then replaces the file, not the link.
std::string resolve(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : path;
}

constexpr const char* kPart = ".part";

/// Opens the file that has a temporary's name. It uses system calls only, so that signal handlers may call it.
int open_existing(const char* path) {
  // O_NONBLOCK: opening a pipe must not wait for its reader. Regular files ignore it.
  return ::open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/// Whether `path` is still a name of `file`.
bool is_named(int file, const char* path) {
  struct stat opened = {};
  struct stat named = {};
  return ::fstat(file, &opened) == 0 && ::lstat(path, &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

/// On a file system without locks the answer is no.
bool is_locked_by_another(int file) { return ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

/// Removes the temporary of a process that has ended, which is one that is not locked.
void remove_if_abandoned(const char* path) noexcept {
  const int file = open_existing(path);
  if (file < 0) return;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 && is_named(file, path)) ::unlink(path);
  ::close(file);
}

constexpr std::size_t kBufferSize = std::size_t{1} << 18;

}  // namespace

struct FileSink::State {
  std::string name;  // for messages
  std::string path;
  std::string temporary;
  bool overwrite = false;
  bool is_stdout = false;
  bool seekable = false;
  bool done = false;
  int file = -1;
  Temporary* node = nullptr;
  std::uint64_t start = 0;     // the file offset of position 0 of this sink
  std::uint64_t position = 0;  // the bytes in the buffer included
  std::vector<char> buffer;
  struct stat suspended = {};  // the file's status when its descriptor was closed by suspend()

  [[noreturn]] void give_up(int reason) const {
    fail(ErrorKind::kIo, "cannot write " + name + ": " + std::strerror(reason));
  }

  [[noreturn]] void cannot_create(const std::string& why) const {
    fail(ErrorKind::kIo, "cannot create " + temporary + ": " + why);
  }
  [[noreturn]] void is_being_written() const { fail(ErrorKind::kIo, "another process is writing " + temporary); }

  /// Removes what a process that crashed left at the temporary's name.
  void remove_left() {
    const int left = open_existing(temporary.c_str());
    if (left < 0 && errno == ENOENT) return;
    if (left < 0) cannot_create(std::string("what has that name cannot be written to: ") + std::strerror(errno));
    const struct Closer {
      int file;
      ~Closer() { ::close(file); }
    } closer{left};
    struct stat there = {};
    if (::fstat(left, &there) != 0) give_up(errno);
    if (!S_ISREG(there.st_mode) || there.st_nlink > 1)
      cannot_create("what has that name is a pipe, or a file with other names; remove it");
    if (there.st_uid != ::geteuid()) cannot_create("a file of that name belongs to another user; remove it");
    if (is_locked_by_another(left)) is_being_written();
    if (is_named(left, temporary.c_str()) && ::unlink(temporary.c_str()) != 0) give_up(errno);
  }

  // `replaced`: the file whose place it will take, or null.
  void open_temporary(const struct stat* replaced) {
    temporary = path + kPart;
    node = remember(temporary);
    const mode_t mode = replaced != nullptr ? replaced->st_mode & 0777 : 0666;
    for (int attempt = 0;; ++attempt) {
      if (attempt >= 100) is_being_written();
      file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
      if (file < 0 && errno == EEXIST) {
        remove_left();
        continue;
      }
      if (file < 0 && errno == ENOENT)
        fail(ErrorKind::kIo, "cannot create " + name + ": there is no folder " + path.substr(0, path.rfind('/')));
      if (file < 0) cannot_create(std::strerror(errno));
      if (is_locked_by_another(file)) is_being_written();
      if (is_named(file, temporary.c_str())) break;
      ::close(file);
      file = -1;
    }
    node->active.store(true);
    if (replaced != nullptr) {
      // A file of another owner can be replaced, but only root can give the new file to that owner. The permissions are
      // what matters.
      if (::fchown(file, replaced->st_uid, replaced->st_gid) != 0 && errno != EPERM) give_up(errno);
      if (::fchmod(file, replaced->st_mode & 0777) != 0 && errno != EPERM) give_up(errno);
    }
    seekable = true;
  }

  void write_out(const char* data, std::size_t size) const {
    while (size > 0) {
      const ssize_t written = ::write(file, data, std::min(size, std::size_t{1} << 30));
      if (written < 0 && (errno == EINTR || wait_until_ready(file, POLLOUT))) continue;
      if (written < 0) give_up(errno);
      data += written;
      size -= static_cast<std::size_t>(written);
    }
  }

  void flush() {
    // The buffer is emptied first, so that a write that failed is not tried again.
    std::vector<char> full;
    full.swap(buffer);
    write_out(full.data(), full.size());
    full.clear();
    buffer.swap(full);
  }

  // Closing the descriptor gave up the lock, so the file must prove to be unchanged.
  void resume() {
    file = open_existing(temporary.c_str());
    if (file < 0) give_up(errno);
    struct stat there = {};
    require(!is_locked_by_another(file) && ::fstat(file, &there) == 0 && there.st_ino == suspended.st_ino &&
                there.st_dev == suspended.st_dev && there.st_size == suspended.st_size,
            ErrorKind::kIo, "another process has changed " + temporary);
  }

  // Some file systems and special files do not support fsync.
  static bool synced(int descriptor) {
    return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP || errno == ENOSYS || errno == EROFS;
  }

  std::string folder() const {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }

  void sync_folder(const std::string& folder) const {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;  // the folder may be written to but not read
    const bool done_so = synced(descriptor);
    const int reason = errno;
    ::close(descriptor);
    if (!done_so) give_up(reason);
  }

  void close_and_remove() noexcept {
    if (node != nullptr && node->active.load()) ::unlink(temporary.c_str());
    if (node != nullptr) forget(node);
    node = nullptr;
    if (file >= 0 && !is_stdout) ::close(file);
    file = -1;
  }
};

FileSink::FileSink(const std::string& path, bool overwrite) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.overwrite = overwrite;
  s.name = path;
  if (path == "-") {
    s.name = "standard output";
    s.is_stdout = true;
    s.file = STDOUT_FILENO;
    require(::isatty(s.file) == 0, ErrorKind::kBadArgument,
            "standard output is a terminal; redirect it to a file or a pipe to write binary data");
    struct stat status = {};
    const off_t offset = ::lseek(s.file, 0, SEEK_CUR);
    s.seekable = offset >= 0 && ::fstat(s.file, &status) == 0 && S_ISREG(status.st_mode) &&
                 (::fcntl(s.file, F_GETFL) & O_APPEND) == 0;
    if (s.seekable) s.start = static_cast<std::uint64_t>(offset);
    return;
  }
  require(!path.empty(), ErrorKind::kBadArgument, "the name of the output file is empty");
  s.path = resolve(path);
  struct stat status = {};
  const bool exists = ::stat(s.path.c_str(), &status) == 0;
  require(!exists || !S_ISDIR(status.st_mode), ErrorKind::kIo, "cannot write " + path + ": it is a directory");
  if (exists && !S_ISREG(status.st_mode)) {
    s.file = ::open(s.path.c_str(), O_WRONLY | O_CLOEXEC);
    if (s.file < 0) s.give_up(errno);
    return;
  }
  require(!exists || overwrite, ErrorKind::kBadArgument, path + " exists and is not to be overwritten");
  try {
    s.open_temporary(exists ? &status : nullptr);
  } catch (...) {
    s.close_and_remove();
    throw;
  }
}

FileSink::~FileSink() {
  if (state_) state_->close_and_remove();
}

void FileSink::write(const void* data, std::size_t size) {
  State& s = *state_;
  require(!s.done, ErrorKind::kInternal, "write to " + s.name + " after commit");
  if (size == 0) return;
  if (s.buffer.size() + size > kBufferSize) s.flush();
  const char* bytes = static_cast<const char*>(data);
  if (size >= kBufferSize)
    s.write_out(bytes, size);
  else
    s.buffer.insert(s.buffer.end(), bytes, bytes + size);
  s.position += size;
}

void FileSink::end_packet(const PacketInfo&) {
  if (!state_->seekable) state_->flush();
}

bool FileSink::seekable() const { return state_->seekable; }

std::uint64_t FileSink::position() const { return state_->position; }

void FileSink::seek(std::uint64_t position) {
  State& s = *state_;
  require(s.seekable, ErrorKind::kIo, "cannot seek in " + s.name);
  s.flush();
  if (::lseek(s.file, static_cast<off_t>(s.start + position), SEEK_SET) < 0) s.give_up(errno);
  s.position = position;
}

void FileSink::suspend() {
  State& s = *state_;
  if (s.done || s.temporary.empty()) return;
  s.flush();
  std::vector<char>().swap(s.buffer);
  if (!State::synced(s.file) || ::fstat(s.file, &s.suspended) != 0) s.give_up(errno);
  ::close(s.file);
  s.file = -1;
}

namespace {

/// Returns 0, or sets errno. Without `overwrite` an existing file stays, unless neither the system nor the file system
/// supports such a rename.
int give_name(const char* temporary, const char* path, bool overwrite) {
#if defined(RENAME_NOREPLACE)
  const int failed = ::renameat2(AT_FDCWD, temporary, AT_FDCWD, path, overwrite ? 0 : RENAME_NOREPLACE);
  if (failed == 0 || (errno != EINVAL && errno != ENOSYS)) return failed;
#else
  (void)overwrite;
#endif
  return std::rename(temporary, path);
}

}  // namespace

void FileSink::commit() {
  State& s = *state_;
  if (s.done) return;
  if (s.file < 0)
    s.resume();
  else
    s.flush();
  s.done = true;
  if (s.is_stdout) return;
  if (!s.temporary.empty()) {
    if (!State::synced(s.file)) s.give_up(errno);
    const std::string folder = s.folder();  // nothing may fail for lack of memory once the file has its name
    // The rename comes before the close, because closing gives up the lock.
    const int failed = give_name(s.temporary.c_str(), s.path.c_str(), s.overwrite);
    if (failed != 0 && errno == EEXIST)
      fail(ErrorKind::kBadArgument, s.name + " appeared while it was being written and is not to be overwritten");
    if (failed != 0) s.give_up(errno);
    s.node->active.store(false);
    forget(s.node);
    s.node = nullptr;
    s.sync_folder(folder);
  }
  const int closed = ::close(s.file);
  s.file = -1;
  if (closed != 0 && errno != EINTR) s.give_up(errno);
}

bool FileSink::is_stdout() const { return state_->is_stdout; }

const std::string& FileSink::temporary_path() const { return state_->temporary; }

void remove_temporaries() noexcept {
  const int saved = errno;
  for (const Temporary* node = first_temporary.load(); node != nullptr; node = node->next) {
    if (node->is_foreign.load())
      remove_if_abandoned(node->path);
    else if (node->active.load())
      ::unlink(node->path);
  }
  errno = saved;
}

void remove_with_temporaries(const std::string& path) { remember(resolve(path) + kPart)->is_foreign.store(true); }

}  // namespace trivelet
