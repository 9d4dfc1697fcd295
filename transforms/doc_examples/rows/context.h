// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_DOC_EXAMPLES_ROWS_CONTEXT_H_
#define RILL_TRANSFORMS_DOC_EXAMPLES_ROWS_CONTEXT_H_

#include <cmath>

#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package use and do not declare.
namespace rill::doc_examples {

absl::StatusOr<TensorDict> Rollout();

}  // namespace rill::doc_examples

#endif  // RILL_TRANSFORMS_DOC_EXAMPLES_ROWS_CONTEXT_H_
