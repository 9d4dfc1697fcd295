// SPDX-License-Identifier: Apache-2.0
// The part of file.h that puts new content in the place of old: build it
// beside, sync it, exchange the two names, sync the directory, remove the old.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/file_error.h"
#include "rill/base/parallel_for.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

using base_internal::FileDescriptor;
using base_internal::FileError;
using base_internal::ParentDirectory;

// A name beside `path` that nobody else uses.
std::string TemporaryName(std::string path) {
  static std::atomic<uint64_t> counter{0};
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::string name;
  do {
    name = absl::StrCat(path, ".tmp-", getpid(), "-", counter.fetch_add(1));
  } while (PathExists(name));
  return name;
}

absl::Status SyncNow(absl::string_view function, const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return FileError(errno, function, "open", path);
  if (fsync(file.get()) != 0) return FileError(errno, function, "sync", path);
  return absl::OkStatus();
}

absl::Status SyncPath(absl::string_view function, const std::string& path) {
  RILL_RETURN_IF_ERROR(FaultPoint("file.sync", path));
  return SyncNow(function, path);
}

// Every file and directory below `path`, children first.
absl::Status ListTree(const std::string& path,
                      std::vector<std::string>* paths) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return FileError(errno, "ReplaceDirectory", "look up", path);
  }
  if (S_ISDIR(info.st_mode)) {
    RILL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          ListDirectory(path));
    for (const std::string& name : names) {
      RILL_RETURN_IF_ERROR(ListTree(JoinPath(path, name), paths));
    }
  } else if (!S_ISREG(info.st_mode)) {
    // A link, a pipe or a socket has no bytes of its own: the sync of the
    // directory that names it is enough.
    return absl::OkStatus();
  }
  paths->push_back(path);
  return absl::OkStatus();
}

// Syncs a tree, several files at once: a journal then commits them together,
// which takes about as long as one of them alone.
absl::Status SyncTree(const std::string& path) {
  std::vector<std::string> paths;
  RILL_RETURN_IF_ERROR(ListTree(path, &paths));
  // All points first, in the order of the tree and from this thread, so that a
  // test can say which of them fails.
  for (const std::string& each : paths) {
    RILL_RETURN_IF_ERROR(FaultPoint("file.sync", each));
  }
  constexpr int kMaxThreads = 8;
  std::vector<absl::Status> statuses(paths.size());
  ParallelFor(static_cast<int64_t>(paths.size()), kMaxThreads, [&](int64_t i) {
    statuses[i] = SyncNow("ReplaceDirectory", paths[i]);
  });
  for (const absl::Status& status : statuses) {
    RILL_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

int Rename(const std::string& from, const std::string& to, unsigned int flags) {
  return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0
             ? 0
             : errno;
}

// Exchange where the file system has no such call. A file gets a second name
// first, so that `path` always names the old or the new one; a directory, which
// cannot have two, is moved aside. Where a file cannot either, the old content
// is lost.
int ExchangeInSteps(const std::string& fresh, const std::string& path) {
  const std::string aside = TemporaryName(path);
  const bool is_directory = IsDirectory(path);
  if (is_directory) {
    if (const int error = Rename(path, aside, 0); error != 0) return error;
  } else if (link(path.c_str(), aside.c_str()) != 0) {
    return Rename(fresh, path, 0);
  }
  const int error = Rename(fresh, path, 0);
  if (error == 0) {
    Rename(aside, fresh, 0);
  } else if (is_directory) {
    Rename(aside, path, 0);
  } else {
    unlink(aside.c_str());
  }
  return error;
}

// Exchanges `fresh` and `path`, or moves `fresh` to `path` where nothing is
// there. Afterwards `fresh` names the old content, if any.
absl::Status Exchange(absl::string_view function, const std::string& fresh,
                      const std::string& path, bool replaces) {
  int error =
      Rename(fresh, path, replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE);
  if (error == EINVAL) {  // A file system without these flags.
    error = replaces ? ExchangeInSteps(fresh, path) : Rename(fresh, path, 0);
  }
  if (error != 0) return FileError(error, function, "rename to", path);
  return absl::OkStatus();
}

// Puts the synced `fresh` in the place of `path`. On failure `path` is as
// before. The caller removes what `fresh` names afterwards.
//
// The order matters: content is synced before its name changes, else a crash
// could leave the new name with missing bytes. OK means that the directory is
// synced too. Where that sync fails, the names are exchanged back, so that the
// old content is there after an error; the text says where it is not.
absl::Status PutInPlace(absl::string_view function, const std::string& fresh,
                        const std::string& path) {
  RILL_RETURN_IF_ERROR(FaultPoint("file.rename", path));
  struct stat info;
  const bool replaces = lstat(path.c_str(), &info) == 0;
  RILL_RETURN_IF_ERROR(Exchange(function, fresh, path, replaces));
  const absl::Status synced = SyncPath(function, ParentDirectory(path));
  if (synced.ok()) return synced;
  const absl::Status undone =
      replaces ? Exchange(function, fresh, path, /*replaces=*/true)
               : Exchange(function, path, fresh, /*replaces=*/false);
  if (undone.ok()) return synced;
  return absl::Status(
      synced.code(), absl::StrCat(synced.message(), "; the new content stays: ",
                                  undone.message()));
}

absl::Status WriteNewFile(const std::string& path, absl::string_view content) {
  constexpr absl::string_view kFunction = "WriteFileAtomically";
  RILL_RETURN_IF_ERROR(FaultPoint("file.open", path));
  FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) return FileError(errno, kFunction, "open", path);
  size_t done = 0;
  // Also once for empty content, so that the fault point is reached.
  do {
    RILL_RETURN_IF_ERROR(FaultPoint("file.write", path));
    const ssize_t n =
        write(file.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno != EINTR) {
      return FileError(errno, kFunction, "write", path,
                       static_cast<int64_t>(content.size()));
    }
    if (n > 0) done += n;
  } while (done < content.size());
  RILL_RETURN_IF_ERROR(FaultPoint("file.sync", path));
  if (fsync(file.get()) != 0) {
    return FileError(errno, kFunction, "sync", path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content) {
  if (IsDirectory(path)) {
    return FileError(EISDIR, "WriteFileAtomically", "replace", path);
  }
  const std::string fresh = TemporaryName(path);
  auto remove = absl::MakeCleanup([&] { unlink(fresh.c_str()); });
  RILL_RETURN_IF_ERROR(WriteNewFile(fresh, content));
  return PutInPlace("WriteFileAtomically", fresh, path);
}

absl::Status ReplaceFile(
    const std::string& path,
    const std::function<absl::Status(const std::string&)>& fill) {
  if (IsDirectory(path)) {
    return FileError(EISDIR, "ReplaceFile", "replace", path);
  }
  const std::string fresh = TemporaryName(path);
  auto remove = absl::MakeCleanup([&] { unlink(fresh.c_str()); });
  RILL_RETURN_IF_ERROR(fill(fresh));
  RILL_RETURN_IF_ERROR(SyncPath("ReplaceFile", fresh));
  return PutInPlace("ReplaceFile", fresh, path);
}

absl::Status ReplaceDirectory(
    const std::string& path,
    const std::function<absl::Status(const std::string&)>& fill) {
  if (PathExists(path) && !IsDirectory(path)) {
    return FileError(ENOTDIR, "ReplaceDirectory", "replace", path);
  }
  const std::string fresh = TemporaryName(path);
  RILL_RETURN_IF_ERROR(CreateDirectories(fresh));
  auto remove = absl::MakeCleanup([&] { RemoveAll(fresh).IgnoreError(); });
  RILL_RETURN_IF_ERROR(fill(fresh));
  RILL_RETURN_IF_ERROR(SyncTree(fresh));
  // With a slash at its end, lstat would follow a link instead of seeing it.
  std::string target = path;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  return PutInPlace("ReplaceDirectory", fresh, target);
}

}  // namespace rill
