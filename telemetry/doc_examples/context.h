// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TELEMETRY_DOC_EXAMPLES_CONTEXT_H_
#define RILL_TELEMETRY_DOC_EXAMPLES_CONTEXT_H_

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/telemetry/svg_plot.h"

// Names that the examples of this package use and do not declare.
namespace rill::doc_examples {

extern const std::string run_dir;
extern const absl::Time now;
extern const double total_seconds, loss;
extern const std::vector<CurvePoint> episodes;

}  // namespace rill::doc_examples

#endif  // RILL_TELEMETRY_DOC_EXAMPLES_CONTEXT_H_
