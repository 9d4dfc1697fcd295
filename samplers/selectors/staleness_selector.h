// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_SELECTORS_STALENESS_SELECTOR_H_
#define RILL_SAMPLERS_SELECTORS_STALENESS_SELECTOR_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "rill/samplers/sampler.h"
#include "rill/samplers/selector.h"

namespace rill {

// Prefers the rows of newer policies, with replacement: TorchRL's
// StalenessAwareSampler. An anchor of policy version v has the staleness
//   s = max(current version - v, 0)
// and is drawn with probability weight(s) / sum of the weights of all anchors.
// Versions come with the writes (WriteEvent::policy_versions); a row that was
// written without one has version 0.
//
// FAILED_PRECONDITION of Plan where every anchor is too stale or weighs 0,
// INVALID_ARGUMENT where a weight is negative or not finite.
//
// Thread-safety: thread-compatible.
// Cost: a plan O(distinct versions + batch x log versions), a row written
//   O(log versions); 32 bytes a row.
struct StalenessOptions {
  // Staler anchors are not drawn; -1: all are.
  int64_t max_staleness = -1;
  // >= 0 and finite; null: 1 / (s + 1). Called once a plan and version, under
  // the sampler's lock, so it must not call the buffer.
  std::function<double(int64_t staleness)> weight = nullptr;
  // The learner's version, called once a plan as `weight` is; null: the highest
  // that was ever written. Plans are reproducible where its values are.
  std::function<int64_t()> current_version = nullptr;
};
std::unique_ptr<Selector> MakeStalenessSelector(
    const StalenessOptions& options = {});

// Samples transitions. Name: "StalenessAwareSampler". Thread-safe.
//
// Example (StalenessSelectorTest.Example runs it):
//   std::unique_ptr<Sampler> sampler =
//       MakeStalenessAwareSampler({.max_staleness = 10});
std::unique_ptr<Sampler> MakeStalenessAwareSampler(
    const StalenessOptions& options = {});

}  // namespace rill

#endif  // RILL_SAMPLERS_SELECTORS_STALENESS_SELECTOR_H_
