// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_CONVERT_CONVERT_H_
#define RILL_TOOLS_PROGRAMS_CONVERT_CONVERT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/storage/storage_layout.h"
#include "rill/tools/programs/inspect/saved.h"

namespace rill::convert {

// "directory", "tdz", "consolidated". INVALID_ARGUMENT for others.
absl::StatusOr<inspect::Form> FormFromName(absl::string_view name);

// The form that the ending of a path asks for: ".tdz"; ".bin", ".td" for a
// consolidated file; none for a directory. INVALID_ARGUMENT for others.
absl::StatusOr<inspect::Form> FormFromPath(absl::string_view path);

// Writes the dictionary at `in`, of any form, or the live rows of a
// MemmapStorage to `out` as `to`, and says what it did. SaveRows in
// storage_rows.h says which shape rows get. `out` may be nothing, an empty
// directory, or what was saved in the same form, which is replaced; else
// FAILED_PRECONDITION says what is there. INVALID_ARGUMENT where `in` has
// several dictionaries or entries that are not loaded, for those would be lost.
// So too where one path lies in the other, or the form `to` has no place for an
// entry of `in`. Else the errors of loading and saving. On any error `out` is
// as before. Thread-safety: thread-safe for different `out`.
//
// Example (ConvertTest.Example runs it):
//   RILL_RETURN_IF_ERROR(
//       Convert("steps", "steps.tdz", inspect::Form::kTdz).status());
absl::StatusOr<std::string> Convert(const std::string& in,
                                    const std::string& out, inspect::Form to);

// The same into the directory of a MemmapStorage; nothing may be at `out`.
// INVALID_ARGUMENT where `in` is no dictionary of steps [T] or [L, T].
absl::StatusOr<std::string> ConvertToStorage(const std::string& in,
                                             const std::string& out,
                                             StorageLayout layout);

}  // namespace rill::convert

#endif  // RILL_TOOLS_PROGRAMS_CONVERT_CONVERT_H_
