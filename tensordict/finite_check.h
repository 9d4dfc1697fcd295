// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_FINITE_CHECK_H_
#define RILL_TENSORDICT_FINITE_CHECK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill {

// The place of the first element that is NaN or an infinity; `count` where
// there is none, as of all dtypes but floating point and complex ones. Memory
// of the host. Cost: a pass, 256 elements without a branch.
int64_t FirstNotFinite(DType dtype, const std::byte* data, int64_t count);

// What the first dimensions of a batch are, for errors: "lane", "step"; "row".
using DimNames = absl::Span<const absl::string_view>;

// INVALID_ARGUMENT, beginning with `caller`, names the key and the index of
// such an element, and what the index says by `dims`:
//   "next/reward": got NaN or an infinity at [3, 17, 0] (lane 3, step 17), want
//   finite values
absl::Status NotFinite(absl::string_view caller, absl::string_view key,
                       int64_t element, const Shape& shape, DimNames dims = {});

// NotFinite of the first such element of a leaf, also in members of LazyStacks
// and in ragged rows. Leaves on a device are copied to the host.
// Thread-safety: thread-compatible.
absl::Status CheckFinite(absl::string_view caller, const TensorDict& dict,
                         DimNames dims = {});

namespace tensordict_internal {
extern std::atomic<bool> checks_finite;
absl::Status CheckFiniteAsAsked(absl::string_view caller,
                                const TensorDict& dict, DimNames dims);
}  // namespace tensordict_internal

// The check of a whole run, which the environment variable RILL_CHECK_FINITE
// switches on (set, and neither empty nor "0"; read when the program starts,
// and so by worker processes too). docs/design.md, section 9, lists the calls
// that look. Without it: one relaxed load.
inline absl::Status CheckFiniteIfAsked(absl::string_view caller,
                                       const TensorDict& dict,
                                       DimNames dims = {}) {
  if (!tensordict_internal::checks_finite.load(std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  return tensordict_internal::CheckFiniteAsAsked(caller, dict, dims);
}

// Switches it on or off while it lives, for tests; scopes nest.
class ScopedFiniteCheck {
 public:
  explicit ScopedFiniteCheck(bool is_on = true)
      : before_(tensordict_internal::checks_finite.exchange(is_on)) {}
  ~ScopedFiniteCheck() { tensordict_internal::checks_finite = before_; }
  ScopedFiniteCheck(const ScopedFiniteCheck&) = delete;
  ScopedFiniteCheck& operator=(const ScopedFiniteCheck&) = delete;

 private:
  const bool before_;
};

}  // namespace rill

#endif  // RILL_TENSORDICT_FINITE_CHECK_H_
