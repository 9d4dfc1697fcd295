// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_TRANSFORM_CONFORMANCE_H_
#define RILL_TRANSFORMS_CONFORMANCE_TRANSFORM_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/tensors/shape.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// The facts of a transform that the suite must know.
struct TransformUnderTest {
  // A fresh one; all are equal.
  std::function<std::unique_ptr<BatchTransform>()> make;
  TensorDictSpec batch_spec;  // Of the batches for Forward.
  // How far Inverse of Forward's result may be from the batch that Forward got:
  // a share of the value. None: Inverse does not undo Forward.
  std::optional<double> inverse_tolerance = std::nullopt;
  // Inverse takes batches as Forward makes them, not as batch_spec says.
  bool inverts_results = false;
  // Leaves that are not named in its options go through it.
  bool keeps_other_leaves = true;
  // Shapes of batches that it takes, beside [n]: some rows, two dimensions, no
  // rows.
  std::vector<Shape> shapes = {{5}, {2, 3}, {0}};
};

// The behaviour that transforms/batch_transform.h promises.
// values/unary_test.cc has transforms that it refuses.
class TransformConformanceTest
    : public ::testing::TestWithParam<std::function<TransformUnderTest()>> {
 protected:
  void SetUp() override { under_test_ = GetParam()(); }
  std::unique_ptr<BatchTransform> MakeTransform() const {
    return under_test_.make();
  }
  const TensorDictSpec& batch_spec() const { return under_test_.batch_spec; }
  // The spec of batches for Inverse.
  TensorDictSpec inverse_batch_spec() const;
  const TransformUnderTest& under_test() const { return under_test_; }
  const std::vector<Shape>& shapes() const { return under_test_.shapes; }

 private:
  TransformUnderTest under_test_;
};

// A transform of these options, and its batches: what most tests hand over.
template <typename Transform>
TransformUnderTest InABuffer(
    const typename Transform::Options& options, TensorDictSpec batch_spec,
    std::optional<double> inverse_tolerance = std::nullopt) {
  return {.make = [options] { return *Transform::Create(options); },
          .batch_spec = std::move(batch_spec),
          .inverse_tolerance = inverse_tolerance};
}

}  // namespace rill

// Runs the suite over a transform; the argument is an expression for a
// TransformUnderTest, evaluated in each test:
//   INSTANTIATE_TRANSFORM_CONFORMANCE(ToDevice, ToDeviceUnderTest());
#define INSTANTIATE_TRANSFORM_CONFORMANCE(prefix, ...)               \
  INSTANTIATE_TEST_SUITE_P(                                          \
      prefix, TransformConformanceTest,                              \
      ::testing::Values(std::function<::rill::TransformUnderTest()>( \
          []() -> ::rill::TransformUnderTest { return __VA_ARGS__; })))

#endif  // RILL_TRANSFORMS_CONFORMANCE_TRANSFORM_CONFORMANCE_H_
