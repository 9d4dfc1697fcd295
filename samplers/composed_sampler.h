// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_COMPOSED_SAMPLER_H_
#define RILL_SAMPLERS_COMPOSED_SAMPLER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"

namespace rill {

// A sampler of two independent choices: which anchors make a batch (the
// selector) and what an anchor becomes (the unit, and with it the arithmetic on
// its rows). `name` is Sampler::name(): a state is loaded only into a sampler
// of the same name.
//
// INVALID_ARGUMENT where one of the three is missing, or the two do not fit:
//
//   unit           selector wants   else
//   picks_by_rule  picks_by_unit    the unit's rule (SliceStarts::kRows,
//                                   kRecent) would be lost without notice
//   any other      nothing
//
// Thread-safety: the sampler is thread-safe, its parts are behind one mutex.
// Cost: that of the parts, and O(rows) of a plan or an event for generations; a
//   plan is free of allocation once its memory is warm, where the parts are.
//
// Example (ComposedSamplerTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       std::unique_ptr<Sampler> sampler,
//       MakeSampler(MakeUniformSelector(), MakeTransitionUnit(), "Mine"));
absl::StatusOr<std::unique_ptr<Sampler>> MakeSampler(
    std::unique_ptr<Selector> selector, SampleUnit unit,
    absl::string_view name);

}  // namespace rill

#endif  // RILL_SAMPLERS_COMPOSED_SAMPLER_H_
