// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_WATCH_ENV_TEXT_CANVAS_H_
#define RILL_TOOLS_PROGRAMS_WATCH_ENV_TEXT_CANVAS_H_

#include <string>

#include "rill/tools/programs/watch_env/scene.h"

namespace rill::watch_env {

// A scene in plain characters for a terminal whose cells are twice as high as
// wide. Lines are - | / and \ as they slope, discs are o. Every line ends
// behind its last character. Shapes outside of the corners are left out.
// `columns` > 0.
// Thread-safety: thread-safe.
std::string DrawText(const Scene& scene, int columns);

}  // namespace rill::watch_env

#endif  // RILL_TOOLS_PROGRAMS_WATCH_ENV_TEXT_CANVAS_H_
