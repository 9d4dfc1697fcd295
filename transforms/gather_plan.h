// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_GATHER_PLAN_H_
#define RILL_TRANSFORMS_GATHER_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "rill/transforms/row_map.h"

namespace rill {

// What a chain of transforms makes of rows that a gather reads: each leaf of
// the batch comes from one leaf of the rows through maps of rows. A storage's
// reader does it while it gathers, a few rows at a time, and makes no batch
// between the transforms.
struct GatherPlan {
  struct Leaf {
    std::string key;   // In the batch.
    std::string from;  // Of the rows.
    std::vector<std::shared_ptr<const RowMap>> maps = {};
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

}  // namespace rill

#endif  // RILL_TRANSFORMS_GATHER_PLAN_H_
