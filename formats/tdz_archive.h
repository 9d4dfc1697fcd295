// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_TDZ_ARCHIVE_H_
#define RILL_FORMATS_TDZ_ARCHIVE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/formats/memmap_options.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A TensorDict in one file that TorchRL's TensorDict.load_memmap opens too: a
// zip file of what memmap_directory.h writes. Files are stored as they are,
// every tensor at a multiple of 64 bytes, so the archive can be mapped. `unzip`
// makes a directory of it. docs/formats/tdz.md has every byte.
//
// Thread-safety: thread-safe for different files.
// Differs from TorchRL: saves are atomic and their bytes depend on the
//   dictionary only (the date is 1980-01-01); they never compress. Deflated
//   entries are inflated when they are loaded, not when they are touched. bzip2
//   and lzma are refused.
//
// Example (TdzArchiveTest.Example runs it):
//   RILL_RETURN_IF_ERROR(SaveTdz(steps, "steps.tdz"));
//   RILL_ASSIGN_OR_RETURN(TensorDict loaded, LoadTdz("steps.tdz"));

// Replaces what is at `path`. Errors as SaveMemmapDirectory; on any error what
// was there stays.
absl::Status SaveTdz(const TensorDict& dict, const std::string& path);

// Maps the file once; the tensors are views into it, and nothing is read until
// it is touched. A tensor that does not lie at a multiple of its element's size
// (other tools do not align) is copied into memory of its own. A deflated one
// is inflated there. With kMapShared both are INVALID_ARGUMENT. Deflated
// tensors together take at most 1032 times the file's size. The checksums of
// what was deflated and of meta.json files are checked, those of other tensors
// are not: they are out of date where somebody wrote through a shared mapping.
// NOT_FOUND where the file or its meta.json is missing. DATA_LOSS where the
// file is no zip file, was cut short, or contradicts itself. INVALID_ARGUMENT
// where it has contents that are refused. Each names the file and both sides.
absl::StatusOr<TensorDict> LoadTdz(const std::string& path,
                                   const LoadMemmapOptions& options = {});

// The same for a lazy stack, of which each member is a dictionary of its own.
absl::Status SaveTdzLazyStack(const LazyStack& stack, const std::string& path);
absl::StatusOr<LazyStack> LoadTdzLazyStack(
    const std::string& path, const LoadMemmapOptions& options = {});

}  // namespace rill

#endif  // RILL_FORMATS_TDZ_ARCHIVE_H_
