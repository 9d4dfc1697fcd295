// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_DOC_EXAMPLES_STEPS_CONTEXT_H_
#define RILL_TRANSFORMS_DOC_EXAMPLES_STEPS_CONTEXT_H_

#include "rill/base/status_macros.h"
#include "rill/specs/spec.h"

// Names that the examples of this package use and do not declare.
namespace rill::doc_examples {

extern const TensorDictSpec spec;

}  // namespace rill::doc_examples

#endif  // RILL_TRANSFORMS_DOC_EXAMPLES_STEPS_CONTEXT_H_
