// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace rill {
namespace {

constexpr int kCannotMount = 77;

bool WriteText(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool is_written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return is_written;
}

// A mount namespace of one's own, in which one is root.
bool EnterNamespace() {
  const std::string user = "0 " + std::to_string(getuid()) + " 1";
  const std::string group = "0 " + std::to_string(getgid()) + " 1";
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  WriteText("/proc/self/setgroups", "deny");
  return WriteText("/proc/self/uid_map", user) &&
         WriteText("/proc/self/gid_map", group);
}

[[noreturn]] void RunChild(
    const std::string& directory, int64_t bytes,
    const std::function<void(const std::string&)>& test) {
  const std::string options = "size=" + std::to_string(bytes);
  if (!EnterNamespace() ||
      mount("tmpfs", directory.c_str(), "tmpfs", 0, options.c_str()) != 0) {
    _exit(kCannotMount);
  }
  test(directory);
  std::fflush(nullptr);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

void RunOnSmallDisk(int64_t bytes,
                    const std::function<void(const std::string&)>& test) {
  std::string directory = ::testing::TempDir() + "/small_disk_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) RunChild(directory, bytes, test);
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  rmdir(directory.c_str());
  ASSERT_FALSE(WIFSIGNALED(how)) << "signal " << WTERMSIG(how);
  if (WEXITSTATUS(how) == kCannotMount) {
    GTEST_SKIP() << "cannot mount a tmpfs here";
  }
  EXPECT_EQ(WEXITSTATUS(how), 0) << "failed as shown above";
}

}  // namespace rill
