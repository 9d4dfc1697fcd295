// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_SAMPLER_FACTS_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_SAMPLER_FACTS_H_

#include <string>

#include "absl/status/status.h"
#include "rill/slots/slot.h"
#include "rill/tools/programs/inspect/facts.h"

namespace rill::inspect {

// Adds the priorities of live rows from the sampler.state of the saved buffer
// at `path`, where its selector is a prioritized one. For another, or a newer
// version, it adds none. DATA_LOSS where the file is cut or changed, NOT_FOUND
// where it is missing. Thread-safety: thread-safe.
absl::Status AddPriorities(const std::string& path, const Lanes& lanes,
                           Facts* facts);

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_SAMPLER_FACTS_H_
