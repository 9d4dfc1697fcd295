// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/replaceable.h"

#include <vector>

#include "absl/status/statusor.h"
#include "rill/base/file.h"
#include "rill/base/new_directory.h"
#include "rill/base/status_macros.h"

namespace rill {

absl::Status CheckReplaceable(absl::string_view caller,
                              const std::string& directory,
                              absl::string_view marker) {
  if (!PathExists(directory)) {
    return CheckNewDirectory(caller, "directory", directory);
  }
  if (!IsDirectory(directory)) {
    return FailedPrecondition(
        caller, ": \"", directory,
        "\": got a file, want nothing or a saved directory; name "
        "another");
  }
  // Its files go on changing, and who has it open would lose them.
  constexpr absl::string_view kLive = "rill.commit";
  if (PathExists(JoinPath(directory, kLive))) {
    return FailedPrecondition(
        caller, ": \"", directory, "\": got \"", kLive,
        "\" there, so a storage lives in it, want nothing or a "
        "saved directory; name another");
  }
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        ListDirectory(directory));
  if (names.empty() || PathExists(JoinPath(directory, marker))) {
    return absl::OkStatus();
  }
  return FailedPrecondition(
      caller, ": \"", directory, "\": got ", names.size(), " files without \"",
      marker, "\" (\"", names.front(),
      "\" among them), want nothing or what was saved before; name another");
}

}  // namespace rill
