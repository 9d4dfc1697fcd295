// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TOOLS_PROGRAMS_INSPECT_ELEMENT_TEXT_H_
#define RILL_TOOLS_PROGRAMS_INSPECT_ELEMENT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensors/tensor.h"

namespace rill::inspect {

// The elements of a tensor as text.
// Thread-safety: thread-safe. Errors are those of Tensor::Contiguous.

// Appends the elements, row-major, as a JSON list. A reader of doubles and of
// 64-bit integers reads numbers back exactly. "NaN", "Infinity" and "-Infinity"
// are strings, bool is true and false, complex is [re, im].
absl::Status AppendJsonValues(const Tensor& tensor, std::string* json);

// Appends one number, as such an element.
void AppendJsonNumber(double value, std::string* json);

// Appends a JSON string; `text` is UTF-8.
void AppendJsonString(absl::string_view text, std::string* json);

// For people. Empty texts where there is nothing to say: no elements, or
// complex ones, which have no order.
struct Summary {
  std::string min;  // Of what is not NaN; integers are exact.
  std::string max;
  std::string mean;
  int64_t nans = 0;
  std::string first;  // Elements at the beginning.
};
absl::StatusOr<Summary> Summarize(const Tensor& tensor);

// The summary of several tensors of one dtype, as of one that holds them all.
// Thread-safety: thread-compatible.
class Summaries {
 public:
  absl::Status Add(const Tensor& tensor);
  Summary Get() const;

 private:
  using Number = std::variant<bool, int64_t, uint64_t, double>;

  template <typename T>
  void AddSpan(absl::Span<const T> elements);

  std::optional<Number> min_, max_;  // All of one type.
  double sum_ = 0;
  int64_t count_ = 0;  // Of what is not NaN.
  int64_t nans_ = 0;
  int64_t total_ = 0;
  std::string first_;
  size_t shown_ = 0;  // Elements in first_.
};

}  // namespace rill::inspect

#endif  // RILL_TOOLS_PROGRAMS_INSPECT_ELEMENT_TEXT_H_
