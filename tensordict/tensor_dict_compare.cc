// SPDX-License-Identifier: Apache-2.0
// TensorDict's comparison and text.
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/element.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"

namespace rill {
namespace {

using tensordict_internal::DispatchDType;
using tensordict_internal::ElementText;
using tensordict_internal::kIsComplex;
using tensordict_internal::kIsReal;
using tensordict_internal::LoadElement;

struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

// Elements whose bits differ.
template <typename T>
bool AreClose(T a, T b, const Tolerance& tolerance) {
  if constexpr (kIsReal<T>) {
    const double x = tensordict_internal::AsDouble(a);
    const double y = tensordict_internal::AsDouble(b);
    return x == y || std::fabs(x - y) <=
                         tolerance.absolute + tolerance.relative * std::fabs(y);
  } else if constexpr (kIsComplex<T>) {
    const std::complex<double> x(a), y(b);
    return x == y || std::abs(x - y) <=
                         tolerance.absolute + tolerance.relative * std::abs(y);
  } else {
    return false;
  }
}

absl::Status CheckTolerances(absl::string_view caller, double absolute,
                             double relative) {
  if (absolute >= 0 && relative >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": tolerances: got absolute ", absolute,
                   " and relative ", relative, ", want both >= 0"));
}

std::string IndexText(const Shape& shape, int64_t flat) {
  std::vector<int64_t> index(shape.rank());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
}

// OK, or the first difference of two contiguous host tensors of one layout.
// Without `tolerance` bits count.
absl::Status CompareElements(absl::string_view caller, absl::string_view key,
                             const Tensor& got, const Tensor& want,
                             const Tolerance* tolerance) {
  int64_t differing = 0;
  int64_t first = -1;
  std::string values;
  DispatchDType(got.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < got.num_elements(); ++i) {
      const std::byte* a = got.raw_data() + i * sizeof(T);
      const std::byte* b = want.raw_data() + i * sizeof(T);
      if (std::memcmp(a, b, sizeof(T)) == 0) continue;
      const T x = LoadElement<T>(a);
      const T y = LoadElement<T>(b);
      if (tolerance != nullptr && AreClose(x, y, *tolerance)) continue;
      if (differing++ > 0) continue;
      first = i;
      values = absl::StrCat("got ", ElementText(x), ", want ", ElementText(y));
    }
  });
  if (differing == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(caller, ": \"", key, "\" differs first at ",
                   IndexText(got.shape(), first), ": ", values, " (", differing,
                   " of ", got.num_elements(), " elements differ)"));
}

absl::Status CompareLeaves(absl::string_view caller, absl::string_view key,
                           const Tensor& got, const Tensor& want,
                           const Tolerance* tolerance) {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape())) {
    return absl::FailedPreconditionError(
        absl::StrCat(caller, ": \"", key, "\": got ", DTypeName(got.dtype()),
                     got.shape().ToString(), ", want ", DTypeName(want.dtype()),
                     want.shape().ToString()));
  }
  // The fast way: a comparison of runs. Only a difference is looked for element
  // by element.
  RILL_ASSIGN_OR_RETURN(const bool equal, got.BitEquals(want));
  if (equal) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(Tensor a, got.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(a, a.Contiguous());
  RILL_ASSIGN_OR_RETURN(Tensor b, want.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(b, b.Contiguous());
  return CompareElements(caller, key, a, b, tolerance);
}

}  // namespace

struct TensorDict::Internal::Comparison {
  absl::string_view caller;
  const Tolerance* tolerance = nullptr;

  absl::Status Run(const TensorDict& got, const TensorDict& want,
                   const Path* up) const {
    const std::string at =
        up == nullptr ? "" : absl::StrCat(" of \"", up->ToString(), "\"");
    if (!(got.batch_shape_ == want.batch_shape_)) {
      return absl::FailedPreconditionError(absl::StrCat(
          caller, ": batch shape", at, ": got ", got.batch_shape_.ToString(),
          ", want ", want.batch_shape_.ToString()));
    }
    bool same_keys = got.entries_.size() == want.entries_.size();
    // The order of entries does not matter; FindHere tries the same place
    // first.
    for (size_t i = 0; same_keys && i < want.entries_.size(); ++i) {
      same_keys = FindHere(got, want.entries_[i].name, i) != nullptr;
    }
    if (!same_keys) {
      return absl::FailedPreconditionError(
          absl::StrCat(caller, ": keys", at, ": got ", KeysText(got), ", want ",
                       KeysText(want)));
    }
    for (size_t i = 0; i < want.entries_.size(); ++i) {
      const Entry& entry = want.entries_[i];
      const Path path = {up, entry.name};
      RILL_RETURN_IF_ERROR(
          RunEntry(*FindHere(got, entry.name, i), entry, path));
    }
    return absl::OkStatus();
  }

  absl::Status RunEntry(const Entry& got, const Entry& want,
                        const Path& path) const {
    if (got.kind() != want.kind()) {
      return Differs(path, Entry::KindText(got.kind()),
                     Entry::KindText(want.kind()));
    }
    if (const Tensor* leaf = got.tensor()) {
      return CompareLeaves(caller, path.ToString(), *leaf, *want.tensor(),
                           tolerance);
    }
    switch (got.kind()) {
      case EntryKind::kTensor:
        break;
      case EntryKind::kDict:
        return Run(*got.dict(), *want.dict(), &path);
      case EntryKind::kNonTensor:
        if (*got.non_tensor() == *want.non_tensor()) break;
        return Differs(path, got.non_tensor()->json, want.non_tensor()->json);
      case EntryKind::kNonTensorStack:
        return RunValues(*got.non_tensor_stack(), *want.non_tensor_stack(),
                         path);
      case EntryKind::kLazyStack:
        return RunStacks(*got.lazy_stack(), *want.lazy_stack(), path);
      case EntryKind::kRagged:
        return RunRows(*got.ragged(), *want.ragged(), path);
    }
    return absl::OkStatus();
  }

  absl::Status RunValues(const NonTensorStack& got, const NonTensorStack& want,
                         const Path& path) const {
    if (!(got.shape() == want.shape())) {
      return Differs(path, got.shape().ToString(), want.shape().ToString());
    }
    for (int64_t i = 0; i < got.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(const NonTensor a, got.At(i));
      RILL_ASSIGN_OR_RETURN(const NonTensor b, want.At(i));
      if (a == b) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          caller, ": \"", path.ToString(), "\" differs first at ",
          IndexText(got.shape(), i), ": got ", a.json, ", want ", b.json));
    }
    return absl::OkStatus();
  }

  absl::Status RunStacks(const LazyStack& got, const LazyStack& want,
                         const Path& path) const {
    if (got.size() != want.size() || got.stack_dim() != want.stack_dim()) {
      const auto text = [](const LazyStack& stack) {
        return absl::StrCat(stack.size(), " members along ", stack.stack_dim());
      };
      return Differs(path, text(got), text(want));
    }
    for (size_t i = 0; i < want.members().size(); ++i) {
      const std::string number = absl::StrCat("[", i, "]");
      const Path member = {&path, number};
      RILL_RETURN_IF_ERROR(Run(got.members()[i], want.members()[i], &member));
    }
    return absl::OkStatus();
  }

  absl::Status RunRows(const RaggedTensor& got, const RaggedTensor& want,
                       const Path& path) const {
    if (got.num_rows() != want.num_rows() || got.dtype() != want.dtype()) {
      return Differs(path, got.DebugString(), want.DebugString());
    }
    for (int64_t i = 0; i < want.num_rows(); ++i) {
      RILL_ASSIGN_OR_RETURN(const Tensor a, got.Row(i));
      RILL_ASSIGN_OR_RETURN(const Tensor b, want.Row(i));
      const std::string number = absl::StrCat("[", i, "]");
      const Path row = {&path, number};
      RILL_RETURN_IF_ERROR(
          CompareLeaves(caller, row.ToString(), a, b, tolerance));
    }
    return absl::OkStatus();
  }

  absl::Status Differs(const Path& path, absl::string_view got,
                       absl::string_view want) const {
    return absl::FailedPreconditionError(absl::StrCat(
        caller, ": \"", path.ToString(), "\": got ", got, ", want ", want));
  }
};

absl::Status LazyStack::CheckEqual(const LazyStack& other) const {
  return TensorDict::Internal::Comparison{"LazyStack::CheckEqual"}.RunStacks(
      *this, other, {nullptr, "members"});
}

absl::Status LazyStack::CheckClose(const LazyStack& other, double absolute,
                                   double relative) const {
  RILL_RETURN_IF_ERROR(
      CheckTolerances("LazyStack::CheckClose", absolute, relative));
  const Tolerance tolerance = {absolute, relative};
  return TensorDict::Internal::Comparison{"LazyStack::CheckClose", &tolerance}
      .RunStacks(*this, other, {nullptr, "members"});
}

absl::Status TensorDict::CheckEqual(const TensorDict& other) const {
  return Internal::Comparison{"TensorDict::CheckEqual"}.Run(*this, other,
                                                            nullptr);
}

absl::Status TensorDict::CheckClose(const TensorDict& other, double absolute,
                                    double relative) const {
  RILL_RETURN_IF_ERROR(
      CheckTolerances("TensorDict::CheckClose", absolute, relative));
  const Tolerance tolerance = {absolute, relative};
  return Internal::Comparison{"TensorDict::CheckClose", &tolerance}.Run(
      *this, other, nullptr);
}

bool TensorDict::AllClose(const TensorDict& other, double absolute,
                          double relative) const {
  return CheckClose(other, absolute, relative).ok();
}

std::string TensorDict::Internal::EntryText(const Entry& entry) {
  switch (entry.kind()) {
    case EntryKind::kTensor:
      return entry.tensor()->DebugString();
    case EntryKind::kDict:
      return entry.dict()->DebugString();
    case EntryKind::kNonTensor:
      return entry.non_tensor()->json;
    case EntryKind::kNonTensorStack:
      return entry.non_tensor_stack()->DebugString();
    case EntryKind::kLazyStack:
      return entry.lazy_stack()->DebugString();
    case EntryKind::kRagged:
      break;
  }
  return entry.ragged()->DebugString();
}

std::string TensorDict::DebugString() const {
  const auto add = [](auto&& self, const TensorDict& dict,
                      const std::string& indent) -> std::string {
    std::string text =
        absl::StrCat("TensorDict ", dict.batch_shape_.ToString());
    if (dict.dim_names_ != nullptr) {
      absl::StrAppend(&text, " (", absl::StrJoin(dict.dim_names(), ", "), ")");
    }
    if (dict.device_.has_value()) {
      absl::StrAppend(&text, " on ", dict.device_->ToString());
    }
    if (dict.locked_) absl::StrAppend(&text, " locked");
    if (dict.entries_.empty()) return text + " {}";
    absl::StrAppend(&text, " {\n");
    for (const Entry& entry : dict.entries_) {
      absl::StrAppend(&text, indent, "  ", entry.name, ": ",
                      entry.dict() == nullptr
                          ? Internal::EntryText(entry)
                          : self(self, *entry.dict(), indent + "  "),
                      "\n");
    }
    return absl::StrCat(text, indent, "}");
  };
  return add(add, *this, "");
}

std::ostream& operator<<(std::ostream& os, const TensorDict& dict) {
  return os << dict.DebugString();
}

}  // namespace rill
