// SPDX-License-Identifier: Apache-2.0
//
// inspect: see --help.

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/examples/inspect/json_report.h"
#include "rill/examples/inspect/saved.h"
#include "rill/examples/inspect/text_report.h"

namespace rill::inspect {
namespace {

constexpr char kUsage[] =
    "usage: inspect PATH [--json] [--values]\n"
    "Says what a saved dictionary or a directory of Rill's holds.\n"
    "  --json    as JSON (docs/formats/inspect.md)\n"
    "  --values  the elements too: all in JSON, else a summary\n";

absl::StatusOr<std::string> Report(int argc, char** argv) {
  std::string path;
  bool json = false, values = false;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (word == "--help" || word == "-h") return kUsage;
    if (word == "--json") {
      json = true;
    } else if (word == "--values") {
      values = true;
    } else if (word.substr(0, 2) == "--" || !path.empty() || word.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "inspect: got \"", word, "\", want one path, --json and --values"));
    } else {
      path = std::string(word);
    }
  }
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "inspect: got no path; say \"inspect PATH\", or --help");
  }
  RILL_ASSIGN_OR_RETURN(const Saved saved, OpenSaved(path));
  if (!json) return TextReport(saved, path, {.values = values});
  RILL_ASSIGN_OR_RETURN(std::string text,
                        JsonReport(saved, {.values = values}));
  text.push_back('\n');
  return text;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<std::string> report = Report(argc, argv);
  if (!report.ok()) {
    std::fprintf(stderr, "%s\n",
                 OneLine(report.status().ToString(
                             absl::StatusToStringMode::kWithNoExtraData))
                     .c_str());
    return 1;
  }
  if (std::fwrite(report->data(), 1, report->size(), stdout) !=
          report->size() ||
      std::fflush(stdout) != 0) {
    std::fprintf(stderr, "inspect: the report could not be written\n");
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace rill::inspect

int main(int argc, char** argv) { return rill::inspect::Main(argc, argv); }
