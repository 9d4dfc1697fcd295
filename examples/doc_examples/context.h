// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DOC_EXAMPLES_CONTEXT_H_
#define RILL_EXAMPLES_DOC_EXAMPLES_CONTEXT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/learning/mlp.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

using learning::AlignedVector;
using learning::Mlp;

extern const TensorDict dict;
extern Policy& policy;
absl::Status Learn(const TensorDict& batch);

}  // namespace rill::doc_examples

#endif  // RILL_EXAMPLES_DOC_EXAMPLES_CONTEXT_H_
