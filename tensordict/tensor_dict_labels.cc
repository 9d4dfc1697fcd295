// SPDX-License-Identifier: Apache-2.0
// TensorDict's lock and names of dimensions.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"

namespace rill {

void TensorDict::Lock() { Internal::SetLocked(this, true); }
void TensorDict::Unlock() { Internal::SetLocked(this, false); }

void TensorDict::Internal::SetLocked(TensorDict* dict, bool locked) {
  dict->locked_ = locked;
  for (const Entry& entry : dict->entries_) {
    if (entry.dict() != nullptr) SetLocked(entry.dict(), locked);
  }
}

// The names after an operation; null where none is left, so that dictionaries
// without names carry no list.
TensorDict::Internal::Names TensorDict::Internal::ChangedNames(
    std::vector<std::string> names, const ShapeOp& op) {
  switch (op.kind) {
    case ShapeOp::kCopy:
    case ShapeOp::kSlice:
    case ShapeOp::kRows:
      break;
    case ShapeOp::kSelect:
      names.erase(names.begin() + op.dim);
      break;
    case ShapeOp::kUnsqueeze:
    case ShapeOp::kStack:
      names.insert(names.begin() + op.dim, "");
      break;
    case ShapeOp::kOpaque:
      return nullptr;
  }
  const auto is_empty = [](const std::string& name) { return name.empty(); };
  if (std::all_of(names.begin(), names.end(), is_empty)) return nullptr;
  return std::make_shared<const std::vector<std::string>>(std::move(names));
}

absl::Status TensorDict::SetDimNames(std::vector<std::string> names) {
  if (static_cast<int>(names.size()) != batch_shape_.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("TensorDict::SetDimNames: number of names: got ",
                     names.size(), ", want ", batch_shape_.rank(),
                     " of batch shape ", batch_shape_.ToString()));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && std::find(names.begin() + i + 1, names.end(),
                                       names[i]) != names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("TensorDict::SetDimNames: name: got \"", names[i],
                       "\" twice, want it once"));
    }
  }
  dim_names_ = Internal::ChangedNames(std::move(names), {ShapeOp::kCopy});
  return absl::OkStatus();
}

const std::vector<std::string>& TensorDict::dim_names() const {
  static const auto* const kNone = new std::vector<std::string>;
  return dim_names_ == nullptr ? *kNone : *dim_names_;
}

absl::StatusOr<int> TensorDict::DimNamed(absl::string_view name) const {
  const std::vector<std::string>& names = dim_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end() && !name.empty()) {
    return static_cast<int>(found - names.begin());
  }
  return absl::NotFoundError(absl::StrCat(
      "TensorDict::DimNamed: no dimension \"", name,
      "\", there are: ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

}  // namespace rill
