// SPDX-License-Identifier: Apache-2.0
// OutputMaker: batches as dictionaries of arrays.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/array.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/status.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// Batches that are remembered: one that a loop holds, one that it gets next,
// and one more.
constexpr size_t kMaxMade = 3;

void CheckEntries(const TensorDict& dict, const std::string& parent) {
  absl::Status status;
  dict.ForEachEntry([&](absl::string_view name, EntryKind kind) {
    if (!status.ok() || kind == EntryKind::kTensor) return;
    const std::string key = absl::StrCat(parent, name);
    if (kind == EntryKind::kDict) {
      CheckEntries(*dict.FindDict(name), absl::StrCat(key, "/"));
      return;
    }
    status = InvalidArgument("\"", key,
                             "\": got an entry that is no tensor, want arrays "
                             "alone; leave it out of the batch");
  });
  Check(status);
}

// Whether anything but the batch holds memory of its leaves.
bool IsShown(const TensorDict& rows) {
  absl::InlinedVector<const Tensor*, 16> leaves;
  rows.ForEachLeaf([&](absl::string_view /*key*/, const Tensor& leaf) {
    leaves.push_back(&leaf);
  });
  for (const Tensor* leaf : leaves) {
    if (leaf->buffer().use_count() == 1) continue;
    const auto own = std::count_if(
        leaves.begin(), leaves.end(),
        [&](const Tensor* other) { return other->buffer() == leaf->buffer(); });
    if (leaf->buffer().use_count() > own) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<OutputBatch> OutputMaker::Take() {
  for (size_t i = 0; i < made_.size(); ++i) {
    if (made_[i].use_count() != 1 || IsShown(made_[i]->rows)) continue;
    std::shared_ptr<OutputBatch> batch = std::move(made_[i]);
    made_.erase(made_.begin() + static_cast<std::ptrdiff_t>(i));
    return batch;
  }
  return std::make_shared<OutputBatch>();
}

std::shared_ptr<OutputMaker::Layout> OutputMaker::LayoutOf(
    const TensorDict& rows) {
  CheckEntries(rows, "");
  auto layout = std::make_shared<Layout>();
  layout->levels.push_back({0, nb::object()});
  std::vector<std::string> prefixes = {""};
  rows.ForEachLeaf([&](absl::string_view key, const Tensor& /*leaf*/) {
    const std::vector<std::string> parts = Value(SplitKey(key));
    size_t level = 0;
    std::string prefix;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      absl::StrAppend(&prefix, EscapeKeyComponent(parts[i]), "/");
      size_t next = 0;
      while (next < prefixes.size() && prefixes[next] != prefix) ++next;
      if (next == prefixes.size()) {
        prefixes.push_back(prefix);
        layout->levels.push_back(
            {level, nb::str(parts[i].c_str(), parts[i].size())});
      }
      level = next;
    }
    layout->leaves.push_back(
        {std::string(key), level,
         nb::str(parts.back().c_str(), parts.back().size()), ShapeTuple()});
  });
  return layout;
}

nb::object OutputMaker::TryMake(const std::shared_ptr<OutputBatch>& batch,
                                Layout* layout) {
  const std::vector<Level>& levels = layout->levels;
  if (batch->rows.num_leaves() != static_cast<int64_t>(layout->leaves.size())) {
    return {};
  }
  ArrayMaker arrays(batch);
  absl::InlinedVector<nb::object, 8> dicts(levels.size());
  for (size_t i = 0; i < levels.size(); ++i) {
    dicts[i] = Own(PyDict_New());
    if (i == 0) continue;
    CheckPython(PyDict_SetItem(dicts[levels[i].parent].ptr(),
                               levels[i].name.ptr(), dicts[i].ptr()) == 0);
  }
  for (Leaf& leaf : layout->leaves) {
    const Tensor* tensor = batch->rows.Find(leaf.key);
    if (tensor == nullptr) return {};
    const nb::object array = arrays.Make(*tensor, leaf.key, &leaf.shape);
    CheckPython(PyDict_SetItem(dicts[leaf.level].ptr(), leaf.name.ptr(),
                               array.ptr()) == 0);
  }
  return std::move(dicts[0]);
}

nb::object OutputMaker::Make(const std::shared_ptr<OutputBatch>& batch) {
  std::shared_ptr<Layout> layout = layout_;
  nb::object dict;
  if (layout != nullptr) dict = TryMake(batch, layout.get());
  if (!dict.is_valid()) {
    layout = LayoutOf(batch->rows);
    dict = TryMake(batch, layout.get());
    layout_ = std::move(layout);
  }
  if (made_.size() == kMaxMade) made_.erase(made_.begin());
  made_.push_back(batch);
  return dict;
}

std::shared_ptr<OutputBatch> OutputMaker::WithNumbers(
    absl::string_view key, const ArrayBytes& numbers) const {
  for (size_t i = made_.size(); i-- > 0;) {
    const Tensor* tensor = made_[i]->rows.Find(key);
    if (tensor != nullptr && tensor->dtype() == numbers.dtype() &&
        static_cast<size_t>(tensor->size_bytes()) == numbers.size_bytes() &&
        tensor->is_contiguous() &&
        std::memcmp(tensor->raw_data(), numbers.data(), numbers.size_bytes()) ==
            0) {
      return made_[i];
    }
  }
  return nullptr;
}

}  // namespace rill::python
