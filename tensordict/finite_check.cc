// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/finite_check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

bool IsFinite(float x) { return std::isfinite(x); }
bool IsFinite(double x) { return std::isfinite(x); }
// The exponent of 16-bit floats is all ones in NaN and in infinities.
bool IsFinite(Float16 x) { return (x.bits & 0x7c00) != 0x7c00; }
bool IsFinite(BFloat16 x) { return (x.bits & 0x7f80) != 0x7f80; }

// A block at a time, without a branch a value: the compiler makes vectors of
// it.
template <typename T>
int64_t FirstOf(const std::byte* data, int64_t count) {
  const T* const values = reinterpret_cast<const T*>(data);
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    bool all_finite = true;
    for (int64_t i = begin; i < end; ++i) {
      all_finite = all_finite & IsFinite(values[i]);
    }
    // Only a block with such a value is searched.
    for (int64_t i = begin; i < end && !all_finite; ++i) {
      if (!IsFinite(values[i])) return i;
    }
  }
  return count;
}

// A key, from its dictionary on; a text is made for errors alone.
struct Place {
  const Place* parent = nullptr;
  absl::string_view key;

  std::string ToString() const {
    return parent == nullptr ? std::string(key)
                             : absl::StrCat(parent->ToString(), "/", key);
  }
};

class Walk {
 public:
  Walk(absl::string_view caller, DimNames dims)
      : caller_(caller), dims_(dims) {}

  absl::Status Dict(const Place* parent, const TensorDict& dict) const {
    absl::Status status;
    dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
      if (!status.ok()) return;
      const Place place = {parent, key};
      if (kind == EntryKind::kTensor) {
        status = Leaf(place, *dict.Find(key), dims_);
      } else if (kind == EntryKind::kDict) {
        status = Dict(&place, *dict.FindDict(key));
      } else if (kind == EntryKind::kRagged) {
        status = Leaf(place, dict.GetRagged(key)->values(), {});
      } else if (kind == EntryKind::kLazyStack) {
        status = Stack(place, *dict.GetLazyStack(key));
      }
    });
    return status;
  }

 private:
  absl::Status Leaf(const Place& place, const Tensor& leaf,
                    DimNames dims) const {
    if (!IsFloatingPoint(leaf.dtype()) && leaf.dtype() != DType::kComplex64 &&
        leaf.dtype() != DType::kComplex128) {
      return absl::OkStatus();
    }
    RILL_ASSIGN_OR_RETURN(Tensor dense, leaf.To(Device::Cpu()));
    RILL_ASSIGN_OR_RETURN(dense, dense.Contiguous());
    const int64_t count = dense.num_elements();
    const int64_t found =
        FirstNotFinite(dense.dtype(), dense.raw_data(), count);
    if (found == count) return absl::OkStatus();
    return NotFinite(caller_, place.ToString(), found, leaf.shape(), dims);
  }

  absl::Status Stack(const Place& place, const LazyStack& stack) const {
    for (int64_t i = 0; i < stack.size(); ++i) {
      RILL_RETURN_IF_ERROR(
          Walk(caller_, {})
              .Dict(nullptr, stack.members()[static_cast<size_t>(i)]))
          << "in member " << i << " of \"" << place.ToString() << "\"";
    }
    return absl::OkStatus();
  }

  const absl::string_view caller_;
  const DimNames dims_;
};

bool IsAskedFor() {
  const char* const text = std::getenv("RILL_CHECK_FINITE");
  return text != nullptr && text[0] != '\0' && absl::string_view(text) != "0";
}

}  // namespace

int64_t FirstNotFinite(DType dtype, const std::byte* data, int64_t count) {
  switch (dtype) {
    case DType::kFloat16:
      return FirstOf<Float16>(data, count);
    case DType::kBFloat16:
      return FirstOf<BFloat16>(data, count);
    case DType::kFloat32:
      return FirstOf<float>(data, count);
    case DType::kFloat64:
      return FirstOf<double>(data, count);
    case DType::kComplex64:
      return FirstOf<float>(data, 2 * count) / 2;
    case DType::kComplex128:
      return FirstOf<double>(data, 2 * count) / 2;
    default:
      return count;
  }
}

absl::Status NotFinite(absl::string_view caller, absl::string_view key,
                       int64_t element, const Shape& shape, DimNames dims) {
  // From a row-major number to an index, from the last dimension on.
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (size_t d = index.size(); d-- > 0;) {
    const int64_t size = shape[static_cast<int>(d)];
    index[d] = element % size;
    element /= size;
  }
  std::vector<std::string> places;
  for (size_t d = 0; d < std::min(dims.size(), index.size()); ++d) {
    places.push_back(absl::StrCat(dims[d], " ", index[d]));
  }
  return InvalidArgument(caller, ": \"", key, "\": got NaN or an infinity at [",
                         absl::StrJoin(index, ", "), "]",
                         places.empty() ? "" : " (",
                         absl::StrJoin(places, ", "), places.empty() ? "" : ")",
                         ", want finite values");
}

absl::Status CheckFinite(absl::string_view caller, const TensorDict& dict,
                         DimNames dims) {
  return Walk(caller, dims).Dict(nullptr, dict);
}

namespace tensordict_internal {

std::atomic<bool> checks_finite = IsAskedFor();

absl::Status CheckFiniteAsAsked(absl::string_view caller,
                                const TensorDict& dict, DimNames dims) {
  RILL_RETURN_IF_ERROR(CheckFinite(caller, dict, dims))
      << "RILL_CHECK_FINITE is set";
  return absl::OkStatus();
}

}  // namespace tensordict_internal
}  // namespace rill
