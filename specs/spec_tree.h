// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_SPEC_TREE_H_
#define RILL_SPECS_SPEC_TREE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The dictionaries and leaves that a list of keys names, taken apart once, so
// that the tensors of a batch are found without splitting keys.
// Thread-safety: immutable.
class SpecTree {
 public:
  explicit SpecTree(const TensorDictSpec& spec);
  explicit SpecTree(absl::Span<const std::string> keys);

  // The tensors of `dict`, one for each leaf, null where it is missing. False
  // if `dict` holds any other entry. Cost: O(leaves); no allocation once
  // `tensors` has that size.
  bool Find(const TensorDict& dict, std::vector<const Tensor*>* tensors) const;

 private:
  // An entry of the dictionary number `parent`: 0 is the root, i + 1 is
  // dicts_[i].
  struct Node {
    size_t parent = 0;
    std::string name;
  };

  void Add(absl::string_view key, std::vector<std::string>* paths);

  std::vector<Node> dicts_;  // Each after its parent.
  std::vector<Node> leaves_;
};

}  // namespace rill

#endif  // RILL_SPECS_SPEC_TREE_H_
