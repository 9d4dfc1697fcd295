// SPDX-License-Identifier: Apache-2.0
//
// inspect: see --help.

#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tools/programs/inspect/find_facts.h"
#include "rill/tools/programs/inspect/json_report.h"
#include "rill/tools/programs/inspect/saved.h"
#include "rill/tools/programs/inspect/text_report.h"

namespace rill::inspect {
namespace {

constexpr char kUsage[] =
    "usage: inspect PATH [--json] [--values] [--all]\n"
    "Says what a saved dictionary, a storage's directory, a saved buffer or a\n"
    "replay buffer of TorchRL's holds: rows, episodes, returns, priorities.\n"
    "  --json    as JSON (docs/formats/inspect.md)\n"
    "  --values  the elements too: all in JSON, else a summary\n"
    "  --all     all rows for episodes, returns and leaves, not the newest\n"
    "What is damaged is said, with the rest, and the exit status is 1.\n";

// `damage` is a line of error beside the report.
absl::StatusOr<std::string> Report(int argc, char** argv, std::string* damage) {
  std::string path;
  bool json = false, values = false;
  FactOptions facts;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "--help" || word == "-h") return kUsage;
    if (word == "--json") {
      json = true;
    } else if (word == "--values") {
      values = true;
    } else if (word == "--all") {
      facts.max_rows = std::numeric_limits<int64_t>::max();
    } else if (word.substr(0, 2) == "--" || !path.empty() || word.empty()) {
      return InvalidArgument("inspect: got \"", word,
                             "\", want one path, --json, --values and --all");
    } else {
      path = std::string(word);
    }
  }
  if (path.empty()) {
    return InvalidArgument(
        "inspect: got no path; say \"inspect PATH\", or --help");
  }
  RILL_ASSIGN_OR_RETURN(Saved saved, OpenSaved(path));
  facts.leaves = !json;
  // Never fails: what it cannot read is damage that is shown.
  AddFacts(path, facts, &saved);
  if (saved.is_damaged()) {
    *damage = absl::StrCat("DATA_LOSS: inspect: \"", path,
                           "\": parts are damaged, as shown");
  }
  if (!json) return TextReport(saved, path, {.values = values});
  RILL_ASSIGN_OR_RETURN(std::string text,
                        JsonReport(saved, {.values = values}));
  text.push_back('\n');
  return text;
}

int Main(int argc, char** argv) {
  std::string damage;
  const absl::StatusOr<std::string> report = Report(argc, argv, &damage);
  if (!report.ok()) {
    std::fprintf(stderr, "%s\n",
                 OneLine(report.status().ToString(
                             absl::StatusToStringMode::kWithNoExtraData))
                     .c_str());
    return 1;
  }
  // A full disk or a closed pipe must not look like success.
  if (std::fwrite(report->data(), 1, report->size(), stdout) !=
          report->size() ||
      std::fflush(stdout) != 0) {
    std::fprintf(stderr, "inspect: the report could not be written\n");
    return 1;
  }
  if (damage.empty()) return 0;
  std::fprintf(stderr, "%s\n", OneLine(damage).c_str());
  return 1;
}

}  // namespace
}  // namespace rill::inspect

int main(int argc, char** argv) { return rill::inspect::Main(argc, argv); }
