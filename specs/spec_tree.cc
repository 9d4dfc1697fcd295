// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/spec_tree.h"

#include <algorithm>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "rill/tensordict/key.h"

namespace rill {

SpecTree::SpecTree(const TensorDictSpec& spec) {
  std::vector<std::string> paths = {""};
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) Add(leaf.key, &paths);
}

SpecTree::SpecTree(absl::Span<const std::string> keys) {
  std::vector<std::string> paths = {""};
  for (const std::string& key : keys) Add(key, &paths);
}

// Adds the dictionaries on the way to `key` that are not there yet, then its
// leaf. `paths` are the dictionaries so far, the root first; the number of one
// is its place.
void SpecTree::Add(absl::string_view key, std::vector<std::string>* paths) {
  size_t parent = 0;
  absl::string_view rest = key;
  for (;;) {
    absl::string_view head, tail;
    SplitKeyHead(rest, &head, &tail);
    // The last component is the leaf.
    if (tail.empty()) break;
    rest = tail;
    // A path keeps its "/", so that "a" and "ab" differ.
    const absl::string_view path = key.substr(0, key.size() - tail.size());
    const auto found = std::find(paths->begin(), paths->end(), path);
    if (found == paths->end()) {
      dicts_.push_back({parent, std::string(head)});
      paths->emplace_back(path);
      parent = paths->size() - 1;
    } else {
      parent = static_cast<size_t>(found - paths->begin());
    }
  }
  leaves_.push_back({parent, std::string(rest)});
}

// Dictionaries come after their parents, so one pass finds all of them. A
// missing one is null, and so is what is below it.
bool SpecTree::Find(const TensorDict& dict,
                    std::vector<const Tensor*>* tensors) const {
  absl::InlinedVector<const TensorDict*, 8> dicts = {&dict};
  // The entries of all known dictionaries are counted, and those that are
  // wanted. They are equal only if nothing else is there.
  int64_t wanted = 0;
  int64_t entries = dict.num_entries();
  for (const Node& node : dicts_) {
    const TensorDict* const parent = dicts[node.parent];
    const TensorDict* const found =
        parent == nullptr ? nullptr : parent->FindDict(node.name);
    dicts.push_back(found);
    if (found == nullptr) continue;
    ++wanted;
    entries += found->num_entries();
  }
  tensors->resize(leaves_.size());
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const TensorDict* const parent = dicts[leaves_[i].parent];
    const Tensor* const tensor =
        parent == nullptr ? nullptr : parent->Find(leaves_[i].name);
    (*tensors)[i] = tensor;
    wanted += tensor != nullptr ? 1 : 0;
  }
  // Every entry of a known dictionary is a known tensor or a known dictionary.
  return entries == wanted;
}

}  // namespace rill
