// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ONNX_DOC_EXAMPLES_CONTEXT_H_
#define RILL_ONNX_DOC_EXAMPLES_CONTEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/onnx/onnx_model.h"
#include "rill/onnx/onnx_policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

// Names that the examples of this package use and do not declare.
namespace rill::doc_examples {

extern std::string path;
extern Tensor observation;

}  // namespace rill::doc_examples

#endif  // RILL_ONNX_DOC_EXAMPLES_CONTEXT_H_
