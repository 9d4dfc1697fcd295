// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_DOC_EXAMPLES_CONTEXT_H_
#define RILL_TENSORDICT_DOC_EXAMPLES_CONTEXT_H_

#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const Tensor reward;
extern const Tensor mask;
extern const Tensor two;
extern const Tensor three;
extern const TensorDict batch;
extern const TensorDict first;
extern const TensorDict second;
extern const TensorDict step;

}  // namespace rill::doc_examples

#endif  // RILL_TENSORDICT_DOC_EXAMPLES_CONTEXT_H_
