// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_DOC_EXAMPLES_CONTEXT_H_
#define RILL_SPECS_DOC_EXAMPLES_CONTEXT_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/schema.h"
#include "rill/specs/spec.h"
#include "rill/specs/struct_schema.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const Tensor legal;
extern const Tensor mask;
extern const TensorDict batch;
extern const TensorDictSpec scout;
extern const TensorDictSpec tank;
extern TensorDict rollout;

// A simulator's.
struct State {
  std::array<float, 4> x;
  float reward;
};
extern const std::vector<State> states;

namespace specs_struct_schema_h {

struct Step {
  float reward;
};
using StepSchema = StructSchema<Step, Member<"next/reward", &Step::reward, 1>>;
extern const Step step;

}  // namespace specs_struct_schema_h
}  // namespace rill::doc_examples

#endif  // RILL_SPECS_DOC_EXAMPLES_CONTEXT_H_
