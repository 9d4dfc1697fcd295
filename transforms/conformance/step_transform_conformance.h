// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_STEP_TRANSFORM_CONFORMANCE_H_
#define RILL_TRANSFORMS_CONFORMANCE_STEP_TRANSFORM_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// The facts of a transform that the suite must know.
struct StepTransformUnderTest {
  // A fresh one; all are equal.
  std::function<std::unique_ptr<StepTransform>()> make;
  TensorDictSpec step_spec;  // Of whole steps before the transform.
  // Values are those of a clock too: two runs differ.
  bool reads_clock = false;
};

// The behaviour that transforms/step_transform.h promises. step_counter_test.cc
// has transforms that it refuses.
class StepTransformConformanceTest
    : public ::testing::TestWithParam<std::function<StepTransformUnderTest()>> {
 protected:
  void SetUp() override { under_test_ = GetParam()(); }
  std::unique_ptr<StepTransform> MakeTransform() const {
    return under_test_.make();
  }
  const TensorDictSpec& step_spec() const { return under_test_.step_spec; }
  bool reads_clock() const { return under_test_.reads_clock; }

 private:
  StepTransformUnderTest under_test_;
};

// A transform of these options, and steps before it: what most tests hand over.
template <typename Transform>
StepTransformUnderTest BesideAnEnvironment(
    const typename Transform::Options& options, TensorDictSpec step_spec) {
  return {.make = [options] { return *Transform::Create(options); },
          .step_spec = std::move(step_spec)};
}

}  // namespace rill

// Runs the suite over a transform; the argument is an expression for a
// StepTransformUnderTest, evaluated in each test:
//   INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(Counter, CounterUnderTest());
#define INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(prefix, ...)              \
  INSTANTIATE_TEST_SUITE_P(                                              \
      prefix, StepTransformConformanceTest,                              \
      ::testing::Values(std::function<::rill::StepTransformUnderTest()>( \
          []() -> ::rill::StepTransformUnderTest { return __VA_ARGS__; })))

#endif  // RILL_TRANSFORMS_CONFORMANCE_STEP_TRANSFORM_CONFORMANCE_H_
