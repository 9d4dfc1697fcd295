// SPDX-License-Identifier: Apache-2.0
#include "rill/testing/wrong_parts.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace rill::testing_internal {
namespace {

constexpr char kVariable[] = "RILL_RUNS_WRONG_PARTS";

std::string FullName(const std::string& suite, const Refusal& refusal) {
  return absl::StrCat("Wrong/", suite, ".", refusal.test, "/", refusal.name);
}

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> part;
  while (const size_t size = fread(part.data(), 1, part.size(), pipe)) {
    output.append(part.data(), size);
  }
  pclose(pipe);
  return output;
}

// What the program says of these tests. Nothing of the test runner's own is
// handed on: neither shards nor the files of its results.
std::string Run(const std::vector<std::string>& names) {
  std::array<char, 4096> path = {};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) <= 0) return "";
  return OutputOf(absl::StrCat(
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX"
      " -u GTEST_SHARD_STATUS_FILE -u GTEST_OUTPUT -u XML_OUTPUT_FILE"
      " -u TEST_TOTAL_SHARDS -u TEST_SHARD_STATUS_FILE"
      " -u TEST_PREMATURE_EXIT_FILE -u TESTBRIDGE_TEST_ONLY ",
      kVariable, "=1 '", path.data(), "' '--gtest_filter=",
      absl::StrJoin(names, ":"), "' --gtest_color=no 2>&1"));
}

// What `output` says of a test, up to the next one.
absl::string_view PartOf(absl::string_view output, const std::string& name) {
  const size_t begin = output.find(absl::StrCat("[ RUN      ] ", name, "\n"));
  if (begin == absl::string_view::npos) return "";
  output.remove_prefix(begin);
  return output.substr(0, output.find("\n[ RUN      ] "));
}

}  // namespace

bool RunsWrongParts() { return std::getenv(kVariable) != nullptr; }

std::string Unrefused(const std::string& suite,
                      const std::vector<Refusal>& refusals) {
  std::vector<std::string> names;
  for (const Refusal& one : refusals) names.push_back(FullName(suite, one));
  const std::string output = Run(names);
  std::string wrong;
  for (const Refusal& one : refusals) {
    const std::string name = FullName(suite, one);
    const absl::string_view part = PartOf(output, name);
    if (part.empty()) {
      absl::StrAppend(&wrong, one.name, ": ", suite, " has no test ", one.test,
                      ", or the program ended before it\n");
    } else if (absl::StrContains(part, absl::StrCat("[       OK ] ", name))) {
      absl::StrAppend(&wrong, one.name, ": ", one.test, " lets it pass\n");
    } else if (!absl::StrContains(part, absl::StrCat("[  FAILED  ] ", name))) {
      absl::StrAppend(&wrong, one.name, ": the program ended in ", one.test,
                      ":\n", part.substr(0, 2000), "\n");
    } else if (!absl::StrContains(part, one.says)) {
      absl::StrAppend(&wrong, one.name, ": ", one.test, " does not say <",
                      one.says, "> but:\n", part.substr(0, 2000), "\n");
    }
  }
  return wrong;
}

}  // namespace rill::testing_internal
