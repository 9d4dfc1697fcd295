// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_TENSOR_TEXT_H_
#define RILL_LIBTORCH_TENSOR_TEXT_H_

#include <string>

#include "ATen/core/Tensor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rill {

// A tensor in an error: "Float[64, 4] on cpu". Thread-safety: thread-safe.
inline std::string TextOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return absl::StrCat(c10::toString(tensor.scalar_type()), "[",
                      absl::StrJoin(tensor.sizes(), ", "), "] on ",
                      tensor.device().str());
}

}  // namespace rill

#endif  // RILL_LIBTORCH_TENSOR_TEXT_H_
