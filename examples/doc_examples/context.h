// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_DOC_EXAMPLES_CONTEXT_H_
#define RILL_EXAMPLES_DOC_EXAMPLES_CONTEXT_H_

#include <string>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const TensorDict dict;
extern const std::vector<double> uniforms;

}  // namespace rill::doc_examples

#endif  // RILL_EXAMPLES_DOC_EXAMPLES_CONTEXT_H_
