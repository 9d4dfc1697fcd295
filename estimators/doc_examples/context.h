// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ESTIMATORS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_ESTIMATORS_DOC_EXAMPLES_CONTEXT_H_

#include "rill/base/status_macros.h"
#include "rill/estimators/next_state_value.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

// Names that the examples of this package use and do not declare.
namespace rill::doc_examples {

extern const Tensor reward, value, next_value, done, terminated;
extern TensorDict batch, state;
extern const Critic critic;

}  // namespace rill::doc_examples

#endif  // RILL_ESTIMATORS_DOC_EXAMPLES_CONTEXT_H_
