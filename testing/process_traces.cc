// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/process_traces.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rill {

std::vector<pid_t> ChildProcesses() {
  std::vector<pid_t> children;
  const std::string mine = absl::StrCat("PPid:\t", getpid());
  for (const std::string& name : NamesIn("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(name, &pid)) continue;
    std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
    for (std::string line; std::getline(status, line);) {
      if (line == mine) children.push_back(pid);
    }
  }
  return children;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> MappingsOf(absl::string_view text) {
  std::vector<std::string> lines;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (absl::StrContains(line, text)) lines.push_back(line);
  }
  return lines;
}

}  // namespace rill
