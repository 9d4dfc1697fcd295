// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_WATCH_ENV_SVG_H_
#define RILL_TOOLS_PROGRAMS_WATCH_ENV_SVG_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/tools/programs/watch_env/scene.h"

namespace rill::watch_env {

// Scenes as SVG documents, 480 pixels wide.
// Thread-safety: thread-safe.

std::string SvgFrame(const Scene& scene);

// The scenes one after another, again and again, in one document: no program
// but the browser is needed. All are of one size, that of the first.
std::string SvgAnimation(absl::Span<const Scene> scenes,
                         absl::Duration per_scene);

}  // namespace rill::watch_env

#endif  // RILL_TOOLS_PROGRAMS_WATCH_ENV_SVG_H_
