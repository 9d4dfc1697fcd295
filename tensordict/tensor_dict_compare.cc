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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/element.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using tensor_internal::DispatchDType;
using tensor_internal::ElementText;
using tensor_internal::kIsComplex;
using tensor_internal::kIsReal;
using tensor_internal::LoadElement;

using Tolerance = tensor_internal::Comparison::Tolerance;

// Elements whose bits differ.
template <typename T>
bool AreClose(T a, T b, const Tolerance& tolerance) {
  if constexpr (kIsReal<T>) {
    const double x = tensor_internal::AsDouble(a);
    const double y = tensor_internal::AsDouble(b);
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

std::string IndexText(const Shape& shape, int64_t flat) {
  std::vector<int64_t> index(shape.rank());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return absl::StrCat("[", absl::StrJoin(index, ", "), "]");
}

}  // namespace

namespace tensor_internal {

absl::StatusOr<Comparison> Comparison::Close(absl::string_view caller,
                                             double absolute, double relative) {
  if (absolute >= 0 && relative >= 0) {
    return Comparison{caller, Tolerance{absolute, relative}};
  }
  return InvalidArgument(caller, ": tolerances: got absolute ", absolute,
                         " and relative ", relative, ", want both >= 0");
}

absl::Status Comparison::Differs(const EntryPath& path, absl::string_view got,
                                 absl::string_view want) const {
  return FailedPrecondition(caller, ": \"", path.ToString(), "\": got ", got,
                            ", want ", want);
}

absl::Status Comparison::DiffersAt(const EntryPath& path, const Shape& shape,
                                   int64_t flat, absl::string_view text) const {
  return FailedPrecondition(caller, ": \"", path.ToString(),
                            "\" differs first at ", IndexText(shape, flat),
                            ": ", text);
}

absl::Status Comparison::Tensors(const Tensor& got, const Tensor& want,
                                 const EntryPath& path) const {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape())) {
    const auto text = [](const Tensor& tensor) {
      return absl::StrCat(DTypeName(tensor.dtype()), tensor.shape().ToString());
    };
    return Differs(path, text(got), text(want));
  }
  // The fast way: a comparison of runs. Only a difference is looked for element
  // by element.
  RILL_ASSIGN_OR_RETURN(const bool equal, got.BitEquals(want));
  if (equal) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(Tensor a, got.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(a, a.Contiguous());
  RILL_ASSIGN_OR_RETURN(Tensor b, want.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(b, b.Contiguous());
  int64_t differing = 0;
  int64_t first = -1;
  std::string values;
  DispatchDType(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      const std::byte* at_a = a.raw_data() + i * sizeof(T);
      const std::byte* at_b = b.raw_data() + i * sizeof(T);
      if (std::memcmp(at_a, at_b, sizeof(T)) == 0) continue;
      const T x = LoadElement<T>(at_a);
      const T y = LoadElement<T>(at_b);
      if (tolerance.has_value() && AreClose(x, y, *tolerance)) continue;
      if (differing++ > 0) continue;
      first = i;
      values = absl::StrCat("got ", ElementText(x), ", want ", ElementText(y));
    }
  });
  if (differing == 0) return absl::OkStatus();
  return DiffersAt(path, a.shape(), first,
                   absl::StrCat(values, " (", differing, " of ",
                                a.num_elements(), " elements differ)"));
}

}  // namespace tensor_internal

absl::Status TensorDict::Internal::CompareDicts(const TensorDict& got,
                                                const TensorDict& want,
                                                const Path* up,
                                                const Comparison& comparison) {
  const auto differs = [&](absl::string_view what, absl::string_view text,
                           absl::string_view want_text) {
    return FailedPrecondition(
        comparison.caller, ": ", what,
        up == nullptr ? "" : absl::StrCat(" of \"", up->ToString(), "\""),
        ": got ", text, ", want ", want_text);
  };
  if (!(got.batch_shape_ == want.batch_shape_)) {
    return differs("batch shape", got.batch_shape_.ToString(),
                   want.batch_shape_.ToString());
  }
  bool same_keys = got.entries_.size() == want.entries_.size();
  // The order of entries does not matter; FindHere tries the same place first.
  for (size_t i = 0; same_keys && i < want.entries_.size(); ++i) {
    same_keys = FindHere(got, want.entries_[i].name, i) != nullptr;
  }
  if (!same_keys) return differs("keys", KeysText(got), KeysText(want));
  for (size_t i = 0; i < want.entries_.size(); ++i) {
    const Entry& entry = want.entries_[i];
    RILL_RETURN_IF_ERROR(CompareEntries(*FindHere(got, entry.name, i), entry,
                                        {up, entry.name}, comparison));
  }
  return absl::OkStatus();
}

absl::Status TensorDict::Internal::CompareEntries(
    const Entry& got, const Entry& want, const Path& path,
    const Comparison& comparison) {
  if (got.kind() != want.kind()) {
    return comparison.Differs(path, Entry::KindText(got.kind()),
                              Entry::KindText(want.kind()));
  }
  if (const Tensor* leaf = got.tensor()) {
    return comparison.Tensors(*leaf, *want.tensor(), path);
  }
  if (const TensorDict* nested = got.dict()) {
    return CompareDicts(*nested, *want.dict(), &path, comparison);
  }
  return got.other()->Compare(*want.other(), comparison, path);
}

absl::Status TensorDict::CheckEqual(const TensorDict& other) const {
  return Internal::CompareDicts(*this, other, nullptr,
                                {"TensorDict::CheckEqual"});
}

absl::Status TensorDict::CheckClose(const TensorDict& other, double absolute,
                                    double relative) const {
  RILL_ASSIGN_OR_RETURN(const auto close,
                        tensor_internal::Comparison::Close(
                            "TensorDict::CheckClose", absolute, relative));
  return Internal::CompareDicts(*this, other, nullptr, close);
}

bool TensorDict::AllClose(const TensorDict& other, double absolute,
                          double relative) const {
  return CheckClose(other, absolute, relative).ok();
}

std::string TensorDict::Internal::EntryText(const Entry& entry) {
  if (const Tensor* tensor = entry.tensor()) return tensor->DebugString();
  if (const TensorDict* nested = entry.dict()) return nested->DebugString();
  return entry.other()->DebugString();
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
