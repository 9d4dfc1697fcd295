// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_LEARNING_CENTRAL_DIFFERENCES_H_
#define RILL_EXAMPLES_LEARNING_CENTRAL_DIFFERENCES_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace rill::learning {

struct CentralDifferences {
  // Errors: third derivatives times step^2, rounding 1e-16 |loss| / step.
  double step = 1e-5;
  double tolerance = 1e-7;
  size_t stride = 1;  // Every so many parameters are tried.
};

// Expects of each element of `gradient` that it is
//
//   (loss(p + step) - loss(p - step)) / (2 step)
//
// where p is that element of `parameters`, which `loss` reads. Leaves the
// parameters as they were. For tests: they fail at the first wrong element.
inline void ExpectGradientOf(absl::FunctionRef<double()> loss,
                             absl::Span<double> parameters,
                             absl::Span<const double> gradient,
                             const CentralDifferences& differences = {}) {
  ASSERT_EQ(parameters.size(), gradient.size());
  for (size_t i = 0; i < parameters.size(); i += differences.stride) {
    const double kept = parameters[i];
    parameters[i] = kept + differences.step;
    const double above = loss();
    parameters[i] = kept - differences.step;
    const double below = loss();
    parameters[i] = kept;
    ASSERT_NEAR(gradient[i], (above - below) / (2 * differences.step),
                differences.tolerance)
        << "parameter " << i;
  }
}

}  // namespace rill::learning

#endif  // RILL_EXAMPLES_LEARNING_CENTRAL_DIFFERENCES_H_
