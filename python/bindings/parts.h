// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_PARTS_H_
#define RILL_PYTHON_BINDINGS_PARTS_H_

#include <memory>

#include "rill/base/status_macros.h"
#include "rill/python/bindings/status.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/sampler.h"

namespace rill::python {

// A sampler until a buffer takes it, for good.
struct SamplerPart {
  std::unique_ptr<Sampler> sampler;
  // Its own, whose exponents may be changed as long as the buffer lives; null
  // of others.
  PrioritizedSelector* priorities = nullptr;

  std::unique_ptr<Sampler> Take() {
    if (sampler == nullptr) {
      throw StatusError{FailedPrecondition(
          "ReplayBuffer: sampler: got one that a buffer has already, want one "
          "of its own")};
    }
    return std::move(sampler);
  }
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_PARTS_H_
