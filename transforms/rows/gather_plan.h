// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_GATHER_PLAN_H_
#define RILL_TRANSFORMS_ROWS_GATHER_PLAN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/rows/row_map.h"

namespace rill {

// The result of a chain of transforms on rows that a gather reads: each leaf of
// the batch comes from one leaf of the rows through maps of rows. A storage's
// reader does it while it gathers, a few rows at a time, and makes no batch
// between the transforms.
struct GatherPlan {
  struct Leaf {
    std::string key;   // In the batch.
    std::string from;  // Of the rows.
    std::vector<std::shared_ptr<const RowMap>> maps = {};
    // For errors of each map: "transform 0 (Clip) of Compose". PlanGather adds
    // them.
    std::vector<std::string> places = {};
    // The argument of Extend: the leaf as it is before the transform.
    LeafSpec spec = {};
  };
  std::vector<Leaf> leaves;

  // Null where there is none.
  Leaf* Find(const std::string& key) {
    for (Leaf& leaf : leaves) {
      if (leaf.key == key) return &leaf;
    }
    return nullptr;
  }
};

// A transform of batches that says what its Forward does as a part of a
// GatherPlan: it has no state, and keeps the batch's rows. BatchTransforms
// that can be so also derive from this.
// Thread-safety: immutable.
class GatherLink {
 public:
  virtual ~GatherLink() = default;

  // `plan` becomes what it is with Forward behind it. ForwardSpec has passed
  // the spec of its batches.
  virtual void Extend(GatherPlan* plan) const = 0;
};

// The result of `transforms`, one after another, on rows that are sampled.
// `sample` is the spec of the batch that the first one gets: the leaves of the
// rows, and `added`, those that the sample has beside them. Nothing where a
// transform is no GatherLink and no Compose of such, or changes one of `added`.
// Errors of ForwardSpec.
absl::StatusOr<std::optional<GatherPlan>> PlanGather(
    absl::Span<const std::unique_ptr<BatchTransform>> transforms,
    const TensorDictSpec& sample, absl::Span<const std::string> added);

}  // namespace rill

#endif  // RILL_TRANSFORMS_ROWS_GATHER_PLAN_H_
