// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_SAMPLER_H_
#define RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_SAMPLER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"

// The sampler that docs/extending.md shows.
std::unique_ptr<rill::Sampler> MakeStratifiedSampler();

#endif  // RILL_DOCS_DOC_EXAMPLES_GUIDES_OWN_SAMPLER_H_
