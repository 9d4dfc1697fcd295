// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_MEMMAP_KEY_H_
#define RILL_FORMATS_MEMMAP_MEMMAP_KEY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// The file name that stands for one component of a key ("a/b c" ->
// "a%2Fb%20c"), without ".memmap". Different components have different names,
// and none leads out of its folder. docs/formats/memmap_directory.md, "Names".
// Thread-safety: thread-safe.
std::string MemmapFileName(absl::string_view component);

// Whether older files may bear the component as it is.
bool MayNameFileItself(absl::string_view component);

// meta.json keeps these names for itself: "shape", "device", "_type".
bool IsReservedMemmapName(absl::string_view component);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_MEMMAP_KEY_H_
