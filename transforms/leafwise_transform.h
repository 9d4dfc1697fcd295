// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_LEAFWISE_TRANSFORM_H_
#define RILL_TRANSFORMS_LEAFWISE_TRANSFORM_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// The base of transforms that are one step of arithmetic on some leaves. A
// transform then has only a name, keys and the step; there is no code to run.
//
// Shapes: as the step says (row_steps.h).
// Thread-safety: immutable. A step that no row can be mapped by is an error of
//   ForwardSpec, PlanSteps and Forward.
//
// Example (LeafwiseTransformTest.Example runs it):
//   class CentReward final : public LeafwiseTransform {
//    public:
//     CentReward() : LeafwiseTransform({"next/reward"}, {.scale = {0.01}}) {}
//     absl::string_view name() const override { return "CentReward"; }
//   };
class LeafwiseTransform : public RowwiseTransform {
 public:
  absl::string_view name() const override = 0;

 protected:
  LeafwiseTransform(std::vector<std::string> keys, const RowStep& step);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_LEAFWISE_TRANSFORM_H_
