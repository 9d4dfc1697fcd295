// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_UNIT_TRANSFORM_CONFORMANCE_H_
#define RILL_TRANSFORMS_CONFORMANCE_UNIT_TRANSFORM_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rill/slots/sample_plan.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// The facts of a unit's transform that the suite must know.
struct UnitTransformUnderTest {
  // A fresh one; all are equal.
  std::function<std::unique_ptr<UnitTransform>()> make;
  // The spec of the stored rows.
  TensorDictSpec rows;
  // The plan of its unit for these anchors, any number of them, of a storage of
  // kRows rows.
  std::function<SamplePlan(const std::vector<Slot>& anchors)> plan;
  // The stored leaves that Apply may change.
  std::vector<std::string> changes;

  static constexpr int64_t kRows = 40;
};

// The behaviour that transforms/unit_transform.h promises.
// units/slice_marks_test.cc has transforms that it refuses.
class UnitTransformConformanceTest
    : public ::testing::TestWithParam<std::function<UnitTransformUnderTest()>> {
 protected:
  void SetUp() override;
  const UnitTransformUnderTest& under_test() const { return under_test_; }

  std::unique_ptr<UnitTransform> unit_;
  std::optional<FakeSampleReader> reader_;  // Of random rows.

 private:
  UnitTransformUnderTest under_test_;
};

}  // namespace rill

// Runs the suite over a transform; the argument is an expression for a
// UnitTransformUnderTest, evaluated in each test:
//   INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(ThreeSteps, UnderTest(3));
#define INSTANTIATE_UNIT_TRANSFORM_CONFORMANCE(prefix, ...)              \
  INSTANTIATE_TEST_SUITE_P(                                              \
      prefix, UnitTransformConformanceTest,                              \
      ::testing::Values(std::function<::rill::UnitTransformUnderTest()>( \
          []() -> ::rill::UnitTransformUnderTest { return __VA_ARGS__; })))

#endif  // RILL_TRANSFORMS_CONFORMANCE_UNIT_TRANSFORM_CONFORMANCE_H_
