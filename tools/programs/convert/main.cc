// SPDX-License-Identifier: Apache-2.0
//
// convert: see --help.

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/storage/storage_layout.h"
#include "rill/tools/programs/convert/convert.h"
#include "rill/tools/programs/inspect/saved.h"
#include "rill/tools/programs/inspect/text_report.h"

namespace rill::convert {
namespace {

constexpr char kUsage[] =
    "usage: convert IN OUT [--to=directory|tdz|consolidated|rows|columns]\n"
    "Rewrites a saved dictionary, or the rows of a storage's directory, in\n"
    "another form. Without --to OUT's ending decides: .tdz; .bin or .td for a\n"
    "consolidated file; none for a memmap directory. Replaces OUT only if it\n"
    "was saved in that form before. rows and columns make a storage of that\n"
    "layout where nothing is.\n";

std::optional<StorageLayout> LayoutFromName(absl::string_view name) {
  if (name == "rows") return StorageLayout::kRows;
  if (name == "columns") return StorageLayout::kColumns;
  return std::nullopt;
}

absl::StatusOr<std::string> Run(int argc, char** argv) {
  std::vector<std::string> paths;
  absl::string_view to;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (word == "--help" || word == "-h") return kUsage;
    if (absl::ConsumePrefix(&word, "--to=")) {
      to = word;
    } else if (word.substr(0, 2) == "--") {
      return InvalidArgument("convert: got \"", word,
                             "\", want IN, OUT and --to=");
    } else {
      paths.emplace_back(word);
    }
  }
  if (paths.size() != 2 || paths[0].empty() || paths[1].empty()) {
    return InvalidArgument("convert: got ", paths.size(),
                           " paths, want IN and OUT; or --help");
  }
  if (const std::optional<StorageLayout> layout = LayoutFromName(to)) {
    RILL_ASSIGN_OR_RETURN(const std::string done,
                          ConvertToStorage(paths[0], paths[1], *layout));
    return absl::StrCat(inspect::OneLine(done), "\n");
  }
  // "--to=" with nothing behind it is a name that is refused, and no --to is
  // the ending's choice.
  RILL_ASSIGN_OR_RETURN(const inspect::Form form, to.data() != nullptr
                                                      ? FormFromName(to)
                                                      : FormFromPath(paths[1]));
  RILL_ASSIGN_OR_RETURN(const std::string done,
                        Convert(paths[0], paths[1], form));
  return absl::StrCat(inspect::OneLine(done), "\n");
}

int Main(int argc, char** argv) {
  const absl::StatusOr<std::string> done = Run(argc, argv);
  if (!done.ok()) {
    std::fprintf(
        stderr, "%s\n",
        inspect::OneLine(
            done.status().ToString(absl::StatusToStringMode::kWithNoExtraData))
            .c_str());
    return 1;
  }
  std::fputs(done->c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace rill::convert

int main(int argc, char** argv) { return rill::convert::Main(argc, argv); }
