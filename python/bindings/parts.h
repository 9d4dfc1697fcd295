// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_PARTS_H_
#define RILL_PYTHON_BINDINGS_PARTS_H_

#include <memory>
#include <optional>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/python/bindings/status.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/priority_reduction.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/step_transform.h"

namespace rill::python {

// A sampler until a buffer takes it, for good.
struct SamplerPart {
  std::unique_ptr<Sampler> sampler;
  // Its own, whose exponents may be changed as long as the buffer lives; null
  // of others.
  PrioritizedSelector* priorities = nullptr;
  // How several priorities of one row become one.
  PriorityReduction reduction = PriorityReduction::kMax;

  std::unique_ptr<Sampler> Take() {
    if (sampler == nullptr) {
      throw StatusError{FailedPrecondition(
          "ReplayBuffer: sampler: got one that a buffer has already, want one "
          "of its own")};
    }
    return std::move(sampler);
  }
};

// The choice of a sampler, until that takes it for good.
struct SelectorPart {
  const char* name = "";  // The sampler's, over single rows.
  std::unique_ptr<Selector> selector;
  // As SamplerPart.
  PrioritizedSelector* priorities = nullptr;
  PriorityReduction reduction = PriorityReduction::kMax;
};

// A unit until a sampler takes it, for good.
struct UnitPart {
  std::optional<SampleUnit> unit;

  SampleUnit Take() {
    if (!unit.has_value()) {
      throw StatusError{FailedPrecondition(
          "ReplayBuffer: sample_unit: got one that a sampler has already, want "
          "one of its own")};
    }
    SampleUnit taken = *std::move(unit);
    unit.reset();
    return taken;
  }
};

// A writer until a buffer takes it, for good.
struct WriterPart {
  std::unique_ptr<Writer> writer;
};

// A transform until a buffer or an environment takes it, for good.
struct TransformPart {
  std::unique_ptr<BatchTransform> transform = nullptr;
  // One that no batch goes through.
  std::unique_ptr<StepTransform> step = nullptr;

  std::unique_ptr<BatchTransform> Take() {
    if (transform != nullptr) return std::move(transform);
    throw StatusError{InvalidArgument(
        "ReplayBuffer: transform: got ",
        step == nullptr ? "none" : step->name(),
        ", which works beside an environment alone, want one of batches; give "
        "it to rill.envs.TransformedEnv")};
  }
  // For an environment.
  std::unique_ptr<StepTransform> TakeStep() {
    if (step != nullptr) return std::move(step);
    auto* const both = dynamic_cast<StepTransform*>(transform.get());
    if (both == nullptr) {
      throw StatusError{
          InvalidArgument("TransformedEnv: transform: got ",
                          transform == nullptr ? "none" : transform->name(),
                          ", want one with an E in docs/transforms.md")};
    }
    transform.release();
    return std::unique_ptr<StepTransform>(both);
  }
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_PARTS_H_
