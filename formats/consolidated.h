// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_CONSOLIDATED_H_
#define RILL_FORMATS_CONSOLIDATED_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/formats/memmap_options.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A TensorDict in one file that TorchRL's TensorDict.from_consolidated opens
// too: all tensors one behind the other, then a JSON that says where each one
// is. The smallest and fastest of the three formats, but for dictionaries of
// thousands of entries, members of a stack or values.
// docs/formats/consolidated.md has every byte.
//
// Thread-safety: thread-safe for different files.
// Differs from TorchRL: saves are atomic; nothing in a file is believed before
//   it was checked.
//
// Example (ConsolidatedTest.Example runs it):
//   RILL_RETURN_IF_ERROR(SaveConsolidated(steps, "steps.bin"));
//   RILL_ASSIGN_OR_RETURN(TensorDict loaded, LoadConsolidated("steps.bin"));

// Replaces what is at `path`. INVALID_ARGUMENT where a name means something in
// the JSON, there are too many entries, members or values in one place, or the
// rows of a ragged tensor differ in several dimensions (use SaveTdz);
// RESOURCE_EXHAUSTED on a full disk; on any error what was there stays.
absl::Status SaveConsolidated(const TensorDict& dict, const std::string& path);

// Maps the file once; the tensors are views into it, and nothing is read until
// it is touched. Values that are not tensors come behind the tensors. A tensor
// that does not lie at a multiple of its element's size, or whose rows do not
// lie one behind the other, is copied; with kMapShared it is INVALID_ARGUMENT.
// NOT_FOUND where there is no file; DATA_LOSS where it is none of these, was
// cut short, or contradicts itself; INVALID_ARGUMENT where it asks for what is
// refused.
absl::StatusOr<TensorDict> LoadConsolidated(
    const std::string& path, const LoadMemmapOptions& options = {});

// The same for a lazy stack, of which each member is a dictionary of its own.
absl::Status SaveConsolidatedLazyStack(const LazyStack& stack,
                                       const std::string& path);
absl::StatusOr<LazyStack> LoadConsolidatedLazyStack(
    const std::string& path, const LoadMemmapOptions& options = {});

}  // namespace rill

#endif  // RILL_FORMATS_CONSOLIDATED_H_
