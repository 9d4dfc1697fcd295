// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_CONVERT_STORAGE_ROWS_H_
#define RILL_TOOLS_PROGRAMS_CONVERT_STORAGE_ROWS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/programs/inspect/saved.h"

namespace rill::convert {

// Between the directory of a MemmapStorage (docs/formats/storage_directory.md)
// and dictionaries.

// Whether one lies at `path`.
bool IsStorage(const std::string& path);

// Its live rows, the oldest of a lane first: [T] of one lane, [L, T] of lanes
// that hold as many each, else [rows] lane after lane. A directory is filled
// piece by piece, the other forms need the memory. FAILED_PRECONDITION while
// somebody writes; else the errors of MemmapStorage::Open and of saving.
// Returns what it wrote, in words. On an error `out` is as before.
absl::StatusOr<std::string> SaveRows(const std::string& in,
                                     const std::string& out, inspect::Form to);

// A storage of just the steps of `steps`, [T] or [L, T] of tensors, in `out`,
// where nothing may be. Errors as MemmapStorage::Create and Extend; nothing is
// left then.
absl::Status MakeStorage(const TensorDict& steps, const std::string& out,
                         StorageLayout layout);

}  // namespace rill::convert

#endif  // RILL_TOOLS_PROGRAMS_CONVERT_STORAGE_ROWS_H_
