// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/layout_difference.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

// "float32[4]", or "none".
std::string TextOf(const LeafSpec* leaf) {
  if (leaf == nullptr) return "none";
  return absl::StrCat(DTypeName(leaf->dtype), leaf->shape.ToString());
}

}  // namespace

std::string LayoutDifference(const TensorDictSpec& got,
                             const TensorDictSpec& want) {
  std::string text;
  int64_t more = -1;  // Leaves that differ, less the one that is named.
  // The first difference is named, further ones are counted.
  const auto compare = [&](absl::string_view key, const LeafSpec* left,
                           const LeafSpec* right) {
    if (left != nullptr && right != nullptr && left->dtype == right->dtype &&
        left->shape == right->shape) {
      return;
    }
    if (++more > 0) return;
    text = absl::StrCat("leaf \"", key, "\": got ", TextOf(left), ", want ",
                        TextOf(right));
  };
  // All leaves that are wanted, then those that are too many.
  for (const TensorDictSpec::Leaf& leaf : want.leaves()) {
    compare(leaf.key, got.Find(leaf.key), &leaf.spec);
  }
  for (const TensorDictSpec::Leaf& leaf : got.leaves()) {
    if (want.Find(leaf.key) == nullptr) compare(leaf.key, &leaf.spec, nullptr);
  }
  if (more > 0) absl::StrAppend(&text, ", and ", more, " more leaves differ");
  return text;
}

}  // namespace rill
