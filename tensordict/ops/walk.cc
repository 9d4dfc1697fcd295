// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/walk.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::ops_internal {
namespace {

using Function = absl::FunctionRef<absl::StatusOr<Tensor>(
    absl::string_view key, absl::Span<const Tensor> tensors)>;
// The partner in each of the others; null where it has none.
using Dicts = std::vector<const TensorDict*>;

bool IsNonTensor(EntryKind kind) {
  return kind == EntryKind::kNonTensor || kind == EntryKind::kNonTensorStack;
}

class Walk {
 public:
  Walk(absl::string_view caller, const MapOptions& options, Function fn)
      : caller_(caller), options_(options), fn_(fn) {}

  // `prefix` is the way to `dict`.
  absl::StatusOr<TensorDict> Level(const TensorDict& dict, const Dicts& others,
                                   const std::string& prefix,
                                   const Shape& batch_shape) {
    TensorDict result(batch_shape);
    for (const std::string& name : dict.Keys()) {
      const std::string key = absl::StrCat(prefix, name);
      RILL_RETURN_IF_ERROR(Entry(dict, others, name, key, &result));
    }
    if (options_.same_keys) {
      for (const TensorDict* other : others) {
        RILL_RETURN_IF_ERROR(CheckNoOther(dict, *other));
      }
    }
    return result;
  }

 private:
  absl::Status Entry(const TensorDict& dict, const Dicts& others,
                     const std::string& name, const std::string& key,
                     TensorDict* result) {
    const Shape& shape = result->batch_shape();
    const int old_rank = dict.batch_shape().rank();
    if (const Tensor* tensor = dict.Find(name)) {
      std::vector<Tensor> tensors = {*tensor};
      RILL_RETURN_IF_ERROR(AddTensors(others, name, key, &tensors));
      RILL_ASSIGN_OR_RETURN(Tensor mapped, Call(key, tensors));
      if (!mapped.is_valid()) return absl::OkStatus();
      RILL_RETURN_IF_ERROR(result->Set(name, std::move(mapped)))
          << "in " << caller_ << ", at key \"" << key << "\"";
      return absl::OkStatus();
    }
    if (const TensorDict* nested = dict.FindDict(name)) {
      Dicts inside;
      for (const TensorDict* other : others) {
        inside.push_back(other == nullptr ? nullptr : other->FindDict(name));
        if (inside.back() != nullptr) continue;
        RILL_RETURN_IF_ERROR(Missing(key, nested));
      }
      RILL_ASSIGN_OR_RETURN(
          TensorDict mapped,
          Level(*nested, inside, absl::StrCat(key, "/"),
                shape.Concat(nested->batch_shape().Suffix(old_rank))));
      return result->Set(name, std::move(mapped));
    }
    return Rare(dict, others, name, key, result);
  }

  absl::Status Rare(const TensorDict& dict, const Dicts& others,
                    const std::string& name, const std::string& key,
                    TensorDict* result) {
    const bool keeps_shape = result->batch_shape() == dict.batch_shape();
    switch (*dict.Kind(name)) {
      case EntryKind::kNonTensor: {
        RILL_ASSIGN_OR_RETURN(NonTensor value, dict.GetNonTensor(name));
        return result->Set(name, std::move(value));
      }
      case EntryKind::kNonTensorStack: {
        RILL_ASSIGN_OR_RETURN(NonTensorStack values,
                              dict.GetNonTensorStack(name));
        return result->Set(name, std::move(values));
      }
      case EntryKind::kRagged:
        break;
      default: {
        RILL_ASSIGN_OR_RETURN(const LazyStack stack, dict.GetLazyStack(name));
        const int old_rank = dict.batch_shape().rank();
        if (!keeps_shape && stack.stack_dim() < old_rank) break;
        return Members(stack, old_rank, others, name, key, result);
      }
    }
    if (!keeps_shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          caller_, ": batch shape: got ", result->batch_shape().ToString(),
          ", want ", dict.batch_shape().ToString(),
          " as the entry's of a shape of its own at key \"", key, "\""));
    }
    RILL_ASSIGN_OR_RETURN(const RaggedTensor rows, dict.GetRagged(name));
    std::vector<Tensor> tensors = {rows.values()};
    for (const TensorDict* other : others) {
      if (other == nullptr || !other->Contains(name)) {
        RILL_RETURN_IF_ERROR(Missing(key, nullptr));
        tensors.push_back(*options_.if_missing);
        continue;
      }
      RILL_ASSIGN_OR_RETURN(const RaggedTensor same, other->GetRagged(name));
      RILL_ASSIGN_OR_RETURN(const bool fits,
                            same.shapes().BitEquals(rows.shapes()));
      if (!fits) {
        return absl::InvalidArgumentError(absl::StrCat(
            caller_, ": shapes of the rows at key \"", key, "\": got ",
            same.DebugString(), ", want those of ", rows.DebugString()));
      }
      tensors.push_back(same.values());
    }
    RILL_ASSIGN_OR_RETURN(const Tensor mapped, Call(key, tensors));
    if (!mapped.is_valid()) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(RaggedTensor changed, rows.WithValues(mapped));
    return result->Set(name, std::move(changed));
  }

  absl::Status Members(const LazyStack& stack, int old_rank,
                       const Dicts& others, const std::string& name,
                       const std::string& key, TensorDict* result) {
    std::vector<LazyStack> stacks;
    for (const TensorDict* other : others) {
      if (other == nullptr || !other->Contains(name)) {
        return NotFound(key);  // There are no members to go on with.
      }
      RILL_ASSIGN_OR_RETURN(stacks.emplace_back(stack),
                            other->GetLazyStack(name));
      if (stacks.back().size() != stack.size() ||
          stacks.back().stack_dim() != stack.stack_dim()) {
        return absl::InvalidArgumentError(absl::StrCat(
            caller_, ": lazy stack at key \"", key, "\": got ",
            stacks.back().size(), " members along ", stacks.back().stack_dim(),
            ", want ", stack.size(), " along ", stack.stack_dim()));
      }
    }
    const Shape& shape = result->batch_shape();
    const bool keeps_shape = stack.stack_dim() < old_rank;
    int64_t next = 0;
    RILL_ASSIGN_OR_RETURN(
        LazyStack mapped,
        stack.MapMembers(
            keeps_shape ? stack.stack_dim()
                        : stack.stack_dim() - old_rank + shape.rank(),
            [&](const TensorDict& member) {
              Dicts inside;
              for (const LazyStack& other : stacks) {
                inside.push_back(next < other.size() ? &other.members()[next]
                                                     : &member);
              }
              ++next;
              const Shape& own = member.batch_shape();
              return Level(
                  member, inside, absl::StrCat(key, "/"),
                  keeps_shape ? own : shape.Concat(own.Suffix(old_rank)));
            }));
    return result->Set(name, std::move(mapped));
  }

  // Those of `others` at `name`, which is `key` from the root.
  absl::Status AddTensors(const Dicts& others, const std::string& name,
                          const std::string& key,
                          std::vector<Tensor>* tensors) {
    for (const TensorDict* other : others) {
      const Tensor* tensor = other == nullptr ? nullptr : other->Find(name);
      if (tensor != nullptr) {
        tensors->push_back(*tensor);
      } else if (other != nullptr && other->Contains(name)) {
        RILL_RETURN_IF_ERROR(other->Get(name).status()) << "in " << caller_;
      } else {
        RILL_RETURN_IF_ERROR(Missing(key, nullptr));
        tensors->push_back(*options_.if_missing);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Call(absl::string_view key,
                              absl::Span<const Tensor> tensors) {
    absl::StatusOr<Tensor> mapped = fn_(key, tensors);
    if (mapped.ok()) return mapped;
    return absl::Status(mapped.status().code(),
                        absl::StrCat(mapped.status().message(), "; in ",
                                     caller_, ", at key \"", key, "\""));
  }

  // An other has nothing at `key`; a dictionary that is empty is no loss.
  absl::Status Missing(absl::string_view key, const TensorDict* nested) {
    if (options_.if_missing.has_value() ||
        (nested != nullptr && nested->empty())) {
      return absl::OkStatus();
    }
    return NotFound(key);
  }
  absl::Status NotFound(absl::string_view key) {
    for (const TensorDict* root : options_.others) {
      if (root->Contains(key)) continue;
      RILL_RETURN_IF_ERROR(root->Get(key).status())
          << "in " << caller_ << ", at key \"" << key << "\"";
    }
    return absl::NotFoundError(
        absl::StrCat(caller_, ": key \"", key, "\": got none on one side"));
  }

  absl::Status CheckNoOther(const TensorDict& dict, const TensorDict& other) {
    for (const std::string& name : other.Keys()) {
      if (dict.Contains(name) || IsNonTensor(*other.Kind(name))) continue;
      const TensorDict* nested = other.FindDict(name);
      if (nested != nullptr && nested->empty()) continue;
      RILL_RETURN_IF_ERROR(dict.Get(name).status()) << "in " << caller_;
    }
    return absl::OkStatus();
  }

  absl::string_view caller_;
  const MapOptions& options_;
  Function fn_;
};

}  // namespace

absl::StatusOr<TensorDict> MapTensors(absl::string_view caller,
                                      const TensorDict& dict,
                                      const MapOptions& options, Function fn) {
  const Dicts others(options.others.begin(), options.others.end());
  if (std::find(others.begin(), others.end(), nullptr) != others.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": one of the others is null"));
  }
  return Walk(caller, options, fn)
      .Level(dict, others, "",
             options.batch_shape.value_or(dict.batch_shape()));
}

std::vector<std::string> KeysOf(const TensorDict& dict,
                                absl::Span<const EntryKind> kinds) {
  std::vector<std::string> keys;
  const auto visit = [&](auto&& self, const TensorDict& level,
                         const std::string& prefix) -> void {
    for (const std::string& name : level.Keys()) {
      const std::string key = absl::StrCat(prefix, name);
      const EntryKind kind = *level.Kind(name);
      if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) {
        keys.push_back(key);
      } else if (kind == EntryKind::kDict) {
        self(self, *level.FindDict(name), absl::StrCat(key, "/"));
      } else if (kind == EntryKind::kLazyStack) {
        const LazyStack stack = *level.GetLazyStack(name);
        for (const TensorDict& member : stack.members()) {
          self(self, member, absl::StrCat(key, "/"));
        }
      }
    }
  };
  visit(visit, dict, "");
  return keys;
}

absl::Status CheckNone(absl::string_view caller, const TensorDict& dict,
                       absl::Span<const EntryKind> kinds) {
  const std::vector<std::string> keys = KeysOf(dict, kinds);
  if (keys.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": entry \"", keys[0],
      "\": got values a row, a lazy stack or a ragged tensor, want a kind that "
      "has this operation; Exclude or convert it first"));
}

}  // namespace rill::ops_internal
