// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_STORAGE_FACTS_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_STORAGE_FACTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "rill/formats/manifest.h"
#include "rill/slots/slot.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/tools/programs/inspect/facts.h"
#include "rill/tools/programs/inspect/find_facts.h"
#include "rill/tools/programs/inspect/saved.h"

namespace rill::inspect {

// AddFacts (find_facts.h) of a directory that a storage lives in / was saved
// to. Thread-safety: thread-safe for different `saved`.
void AddStorageDirectory(const std::string& path, const FactOptions& options,
                         Saved* saved);
void AddSavedStorage(const std::string& path, int64_t max_rows, Saved* saved);

// From the fields "lanes" and `capacity`, which is that of all lanes where it
// is "capacity", else of one. DATA_LOSS where there is none such.
absl::StatusOr<Lanes> LanesOf(const Manifest& manifest,
                              const std::string& capacity);
// `written` and `oldest` of rings.
void SetMarks(const storage_internal::LaneRings& rings, Facts* facts);

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_STORAGE_FACTS_H_
