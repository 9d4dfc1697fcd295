// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/async_dqn/resources.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rill::async_dqn {
namespace {

// The number behind `name` in a file of /proc; 0 where there is none.
int64_t NumberIn(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    int64_t number = 0;
    if (word == name && file >> number) return number;
  }
  return 0;
}

int64_t LinesOf(const std::string& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

int64_t EntriesOf(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

}  // namespace

// The kernel lists children by the thread that started them, so all threads are
// asked.
std::vector<pid_t> ChildProcesses() {
  std::vector<pid_t> children;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  }
  return children;
}

Resources ReadResources() {
  const std::vector<pid_t> children = ChildProcesses();
  int64_t children_kb = 0;
  for (const pid_t pid : children) {
    children_kb +=
        NumberIn(absl::StrCat("/proc/", pid, "/smaps_rollup"), "Pss:");
  }
  // The kernel counts in KiB.
  return {.resident_mb = NumberIn("/proc/self/status", "VmRSS:") / 1024.0,
          .children_mb = children_kb / 1024.0,
          .descriptors = EntriesOf("/proc/self/fd"),
          .mappings = LinesOf("/proc/self/maps"),
          .processes = 1 + static_cast<int64_t>(children.size())};
}

std::string FormatResources(const Resources& resources) {
  return absl::StrFormat(
      "resident %.1f MB  workers %.1f MB  descriptors %d  mappings %d  "
      "processes %d",
      resources.resident_mb, resources.children_mb, resources.descriptors,
      resources.mappings, resources.processes);
}

}  // namespace rill::async_dqn
