// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_SAMPLERS_DOC_EXAMPLES_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/slots/sample_plan.h"
#include "rill/storage/storage.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const std::unique_ptr<Storage> storage;
extern const std::vector<float> td_errors;
extern const int64_t draw;
extern const int64_t step;
extern PrioritizedSelector* const selector;
extern std::unique_ptr<Sampler> sampler;
std::unique_ptr<Sampler> MakeMySampler();

}  // namespace rill::doc_examples

#endif  // RILL_SAMPLERS_DOC_EXAMPLES_CONTEXT_H_
