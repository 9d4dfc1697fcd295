// SPDX-License-Identifier: Apache-2.0
// Stack and Cat of dictionaries. A join checks all dictionaries against the
// first. It writes into `out` where that can hold the result, else into a new
// dictionary. Entries are walked by name, with the same place tried first,
// since dictionaries of one source have one order.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// Whether the shapes are equal, but for dimension `free_dim` if >= 0.
bool SameShape(const Shape& a, const Shape& b, int free_dim) {
  if (a.rank() != b.rank()) return false;
  for (int d = 0; d < a.rank(); ++d) {
    if (d != free_dim && a[d] != b[d]) return false;
  }
  return true;
}

absl::Status CheckDim(absl::string_view caller,
                      absl::Span<const TensorDict> dicts, int dim, int limit,
                      const TensorDict* out) {
  if (out == nullptr) {
    return InvalidArgument(caller, ": out is null");
  }
  if (dicts.empty()) {
    return InvalidArgument(caller,
                           ": number of dictionaries: got 0, want at least 1");
  }
  if (dim >= 0 && dim < limit) return absl::OkStatus();
  return InvalidArgument(caller, ": dimension for batch shape ",
                         dicts[0].batch_shape().ToString(), ": got ", dim,
                         ", want one in [0, ", limit, ")");
}

// Copies `part` to its place: number `index` of dimension `dim`, or from there
// on where the ranks are equal (Cat). Along dimension 0 of dense tensors that
// is one run of bytes.
absl::Status CopyPart(const Tensor& whole, int dim, int64_t index,
                      const Tensor& part) {
  if (dim == 0 && whole.is_host() && part.is_host() && part.is_contiguous() &&
      whole.is_contiguous()) {
    const int64_t bytes = part.size_bytes();
    if (bytes == 0) return absl::OkStatus();
    const int64_t row_bytes = whole.size_bytes() / whole.shape()[0];
    std::memcpy(whole.raw_data() + index * row_bytes, part.raw_data(),
                static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> place =
      whole.rank() == part.rank()
          ? whole.Slice(dim, index, index + part.shape()[dim])
          : whole.Select(dim, index);
  if (!place.ok()) return place.status();
  return place->CopyFrom(part);
}

}  // namespace

struct TensorDict::Internal::Joiner {
  tensor_internal::JoinOp join;
  absl::Span<const TensorDict> dicts;

  // The dimension that may differ.
  int free_dim() const { return join.new_dim ? -1 : join.dim; }

  absl::Status Differs(const Path* up, absl::string_view what, size_t number,
                       absl::string_view got, absl::string_view want) const {
    const std::string at =
        up == nullptr ? "" : absl::StrCat(" of \"", up->ToString(), "\"");
    return InvalidArgument(join.caller, ": ", what, at, ": got ", got,
                           " in dictionary ", number, ", want ", want,
                           " as in dictionary 0");
  }

  // Results of the check for the copy, so that entries are walked once.
  struct Plan {
    static constexpr size_t kMaxRows = 1024;
    // `out` can be written: it fits and shares no buffer with a dictionary.
    bool fits = true;
    // Stack along dimension 0 may copy each leaf as one run of bytes, which
    // start here, dictionary by dictionary.
    bool has_rows = true;
    size_t num_rows = 0;
    std::array<const std::byte*, kMaxRows> rows;

    void Add(const Tensor& leaf, const Tensor* target) {
      // Writing would change what is still to be read.
      if (target != nullptr && target->buffer() == leaf.buffer()) fits = false;
      has_rows = has_rows && num_rows < kMaxRows && leaf.is_host() &&
                 leaf.is_contiguous();
      if (has_rows) rows[num_rows++] = leaf.raw_data();
    }
  };

  absl::Status CheckLeaf(const Tensor& want, const Tensor& got, size_t number,
                         const Path* path) const {
    if (got.dtype() != want.dtype()) {
      return Differs(path, "dtype", number, DTypeName(got.dtype()),
                     DTypeName(want.dtype()));
    }
    if (!SameShape(got.shape(), want.shape(), free_dim())) {
      return Differs(path, "shape", number, got.shape().ToString(),
                     want.shape().ToString());
    }
    if (got.device() != want.device()) {
      return Differs(path, "device", number, got.device().ToString(),
                     want.device().ToString());
    }
    return absl::OkStatus();
  }

  // That dictionary `number` fits the first one, level by level. `target` is
  // the level of `out`, or null if that cannot be reused.
  absl::Status Check(const TensorDict& first, const TensorDict& other,
                     size_t number, const Path* up, const TensorDict* target,
                     Plan* plan) const {
    if (!SameShape(first.batch_shape_, other.batch_shape_, free_dim())) {
      return Differs(up, "batch shape", number, other.batch_shape_.ToString(),
                     first.batch_shape_.ToString());
    }
    if (first.entries_.size() != other.entries_.size()) {
      return Differs(up, "keys", number, KeysText(other), KeysText(first));
    }
    for (size_t i = 0; i < first.entries_.size(); ++i) {
      const Entry& entry = first.entries_[i];
      const Path path = {up, entry.name};
      const Entry* pair = FindHere(other, entry.name, i);
      if (pair == nullptr) {
        return Differs(up, "keys", number, KeysText(other), KeysText(first));
      }
      const Entry* held =
          target == nullptr ? nullptr : FindHere(*target, entry.name, i);
      const Tensor* const leaf = entry.tensor();
      const Tensor* const part = pair->tensor();
      if (leaf != nullptr && part != nullptr) {
        RILL_RETURN_IF_ERROR(CheckLeaf(*leaf, *part, number, &path));
        plan->Add(*part, held == nullptr ? nullptr : held->tensor());
      } else if (pair->family() != entry.family()) {
        return Differs(&path, "kind", number, Entry::KindText(pair->kind()),
                       Entry::KindText(entry.kind()));
      } else if (const TensorDict* nested = entry.dict()) {
        RILL_RETURN_IF_ERROR(Check(*nested, *pair->dict(), number, &path,
                                   held == nullptr ? nullptr : held->dict(),
                                   plan));
      }
    }
    return absl::OkStatus();
  }

  // Writes the result, of batch shape `shape`, to `out`.
  absl::Status Join(const Shape& shape, TensorDict* out) const {
    const ShapeOp op = {join.new_dim ? ShapeOp::kStack : ShapeOp::kRows, shape,
                        dicts[0].batch_shape_.rank(), join.dim};
    Plan plan;
    plan.fits = CanHold(*out, dicts[0], op);
    plan.has_rows = join.new_dim && join.dim == 0;
    const TensorDict* const target = plan.fits ? out : nullptr;
    for (size_t i = 0; i < dicts.size(); ++i) {
      RILL_RETURN_IF_ERROR(
          Check(dicts[0], dicts[i], i, nullptr, target, &plan));
    }
    if (plan.fits) return Fill(plan, op, out);
    RILL_RETURN_IF_ERROR(CheckUnlocked(*out, join.caller));
    RILL_ASSIGN_OR_RETURN(TensorDict fresh, MakeLike(dicts[0], op));
    RILL_RETURN_IF_ERROR(Fill(plan, op, &fresh));
    *out = std::move(fresh);
    return absl::OkStatus();
  }

  absl::Status Fill(const Plan& plan, const ShapeOp& op,
                    TensorDict* out) const {
    Changes changes;
    // Joining these allocates lists; dictionaries of tensors alone skip it.
    if (HasOthers(dicts[0])) {
      std::vector<const TensorDict*> levels;
      for (const TensorDict& dict : dicts) levels.push_back(&dict);
      RILL_RETURN_IF_ERROR(JoinOthers(levels, *out, nullptr, &changes));
    }
    RILL_RETURN_IF_ERROR(plan.has_rows ? CopyRows(plan, *out) : Copy(*out));
    Commit(std::move(changes));
    CopyLabels(dicts[0], op, out);
    return absl::OkStatus();
  }

  static bool HasOthers(const TensorDict& dict) {
    for (const Entry& entry : dict.entries_) {
      if (entry.other() != nullptr ||
          (entry.dict() != nullptr && HasOthers(*entry.dict()))) {
        return true;
      }
    }
    return false;
  }

  // The non-tensor entries of `out`.
  absl::Status JoinOthers(const std::vector<const TensorDict*>& levels,
                          const TensorDict& out, const Path* up,
                          Changes* changes) const {
    for (size_t i = 0; i < levels[0]->entries_.size(); ++i) {
      const Entry& entry = levels[0]->entries_[i];
      if (entry.tensor() != nullptr) continue;
      const Path path = {up, entry.name};
      Entry* target = const_cast<Entry*>(FindHere(out, entry.name, i));
      std::vector<const TensorDict*> nested;
      std::vector<tensor_internal::JoinPart> parts;
      for (const TensorDict* level : levels) {
        const Entry& part = *FindHere(*level, entry.name, i);
        nested.push_back(part.dict());
        parts.push_back({part.other(), &level->batch_shape_});
      }
      if (entry.dict() != nullptr) {
        RILL_RETURN_IF_ERROR(
            JoinOthers(nested, *target->dict(), &path, changes));
        continue;
      }
      absl::StatusOr<tensor_internal::NonTensorPointer> joined =
          entry.other()->Join(join, parts);
      if (!joined.ok()) return WithKey(joined.status(), path);
      changes->push_back({target, *std::move(joined)});
    }
    return absl::OkStatus();
  }

  // `rows` has the leaves of dictionary 0, then those of dictionary 1, and so
  // on: leaf i of each is num_leaves further.
  absl::Status CopyRows(const Plan& plan, const TensorDict& out) const {
    const size_t num_leaves = plan.num_rows / dicts.size();
    size_t leaf = 0;
    return ForEachPair(
        dicts[0], out, [&](const Tensor& like, const Tensor& whole) {
          const auto bytes = static_cast<size_t>(like.size_bytes());
          std::byte* to = whole.raw_data();
          for (size_t i = leaf++; bytes > 0 && i < plan.num_rows;
               i += num_leaves) {
            std::memcpy(to, plan.rows[i], bytes);
            to += bytes;
          }
          return absl::OkStatus();
        });
  }

  absl::Status Copy(const TensorDict& out) const {
    int64_t at = 0;
    for (const TensorDict& dict : dicts) {
      RILL_RETURN_IF_ERROR(
          ForEachPair(dict, out, [&](const Tensor& part, const Tensor& whole) {
            return CopyPart(whole, join.dim, at, part);
          }));
      at += join.new_dim ? 1 : dict.batch_shape_[join.dim];
    }
    return absl::OkStatus();
  }
};

absl::Status StackInto(absl::Span<const TensorDict> dicts, int dim,
                       TensorDict* out) {
  const int limit = dicts.empty() ? 0 : dicts[0].batch_shape().rank() + 1;
  RILL_RETURN_IF_ERROR(CheckDim("Stack", dicts, dim, limit, out));
  const Shape& batch = dicts[0].batch_shape();
  if (batch.rank() == Shape::kMaxRank) {
    return InvalidArgument("Stack: rank of batch shape ", batch.ToString(),
                           ": got ", batch.rank(), ", want less than ",
                           Shape::kMaxRank);
  }
  const Shape shape = batch.WithDim(dim, static_cast<int64_t>(dicts.size()));
  return TensorDict::Internal::Joiner{{"Stack", dim, true}, dicts}.Join(shape,
                                                                        out);
}

absl::Status CatInto(absl::Span<const TensorDict> dicts, int dim,
                     TensorDict* out) {
  const int limit = dicts.empty() ? 0 : dicts[0].batch_shape().rank();
  RILL_RETURN_IF_ERROR(CheckDim("Cat", dicts, dim, limit, out));
  const Shape& batch = dicts[0].batch_shape();
  int64_t size = 0;
  for (const TensorDict& dict : dicts) {
    // A rank that differs is named by Join.
    const int64_t more =
        dim < dict.batch_shape().rank() ? dict.batch_shape()[dim] : 0;
    if (__builtin_add_overflow(size, more, &size)) {
      size = std::numeric_limits<int64_t>::max();  // Too large to allocate.
    }
  }
  const Shape shape = batch.WithSize(dim, size);
  return TensorDict::Internal::Joiner{{"Cat", dim, false}, dicts}.Join(shape,
                                                                       out);
}

absl::StatusOr<TensorDict> Stack(absl::Span<const TensorDict> dicts, int dim) {
  TensorDict out;
  RILL_RETURN_IF_ERROR(StackInto(dicts, dim, &out));
  return out;
}

absl::StatusOr<TensorDict> Cat(absl::Span<const TensorDict> dicts, int dim) {
  TensorDict out;
  RILL_RETURN_IF_ERROR(CatInto(dicts, dim, &out));
  return out;
}

}  // namespace rill
