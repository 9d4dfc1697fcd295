// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_TENSORS_DOC_EXAMPLES_CONTEXT_H_

#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/eigen_view.h"
#include "rill/tensors/tensor.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const Tensor tensor;
extern const Tensor observation;

}  // namespace rill::doc_examples

#endif  // RILL_TENSORS_DOC_EXAMPLES_CONTEXT_H_
