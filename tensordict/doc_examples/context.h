// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_DOC_EXAMPLES_CONTEXT_H_
#define RILL_TENSORDICT_DOC_EXAMPLES_CONTEXT_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/eigen_view.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/leaf_spec.h"
#include "rill/tensordict/schema.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/struct_schema.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

// Names that the examples of this package take for granted.
namespace rill::doc_examples {

extern const Tensor reward;
extern const Tensor tensor;
extern const Tensor observation;
extern const Tensor legal;
extern const Tensor mask;
extern const Tensor two;
extern const Tensor three;
extern const TensorDict batch;
extern const TensorDict dict;
extern const TensorDict first;
extern const TensorDict second;
extern const TensorDict step;
extern const TensorDictSpec spec;
extern const TensorDictSpec scout;
extern const TensorDictSpec tank;
extern TensorDict rollout;

// A simulator's.
struct State {
  std::array<float, 4> x;
  float reward;
};
extern const std::vector<State> states;

namespace tensordict_struct_schema_h {

struct Step {
  float reward;
};
using StepSchema = StructSchema<Step, Member<"next/reward", &Step::reward, 1>>;
extern const Step step;

}  // namespace tensordict_struct_schema_h
}  // namespace rill::doc_examples

#endif  // RILL_TENSORDICT_DOC_EXAMPLES_CONTEXT_H_
