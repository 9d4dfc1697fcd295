// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_LENIENT_MANIFEST_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_LENIENT_MANIFEST_H_

#include <string>
#include <vector>

#include "rill/formats/manifest.h"

namespace rill::inspect {

// ReadManifest of any kind and version, of a directory that may be damaged. Each
// file that is missing, of another size or changed adds a line to `damage`. So
// does the manifest itself, which is then empty. Thread-safety: thread-safe.
Manifest ReadLenientManifest(const std::string& directory,
                             std::vector<std::string>* damage);

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_LENIENT_MANIFEST_H_
