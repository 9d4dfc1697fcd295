// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_COLLECTORS_DOC_EXAMPLES_CONTEXT_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/conformance/policy_conformance.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/workers/worker.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/estimators/reward_to_go.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/step_transform.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern Policy& policy;
extern Sink& buffer;
extern std::unique_ptr<Source> collector;
extern std::unique_ptr<Env> env;
extern std::unique_ptr<StepTransform> step_counter;
PolicySubject MakeMyPolicy();
absl::StatusOr<WorkerParts> MakeWorker(const WorkerContext& context);

}  // namespace rill::doc_examples

#endif  // RILL_COLLECTORS_DOC_EXAMPLES_CONTEXT_H_
