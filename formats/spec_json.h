// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_SPEC_JSON_H_
#define RILL_FORMATS_SPEC_JSON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/specs/spec.h"

namespace rill {

// A TensorDictSpec as JSON text and back: domains, bounds, masks, non-tensors,
// all of it. docs/formats/spec_json.md has every byte. Equal specs, leaves in
// the same order, have equal texts.
//
// Thread-safety: thread-safe.
//
// Example (SpecJsonTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(const std::string text, SpecToJson(spec));
//   RILL_ASSIGN_OR_RETURN(const TensorDictSpec back, SpecFromJson(text));

inline constexpr int64_t kSpecJsonVersion = 1;
inline constexpr int64_t kMaxSpecJsonBytes = int64_t{16} << 20;
inline constexpr int64_t kMaxSpecJsonLeaves = 1024;

// INVALID_ARGUMENT names a key or example that is not UTF-8, or the limit above
// that the spec is past.
absl::StatusOr<std::string> SpecToJson(const TensorDictSpec& spec);

// Any text gives a spec or a status, in time and memory that its length bounds.
// DATA_LOSS where it is no JSON of this form (names the member), also where a
// member is missing, unknown or there twice. FAILED_PRECONDITION for a newer
// version. RESOURCE_EXHAUSTED past the limits above.
absl::StatusOr<TensorDictSpec> SpecFromJson(absl::string_view text);

}  // namespace rill

#endif  // RILL_FORMATS_SPEC_JSON_H_
