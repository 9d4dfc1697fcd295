// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/kills/part_rows.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr char kProducer[] = "producer";
constexpr char kStart[] = "start";
constexpr char kNumber[] = "number";
constexpr char kCheck[] = "check";

int64_t CheckOf(const RowOrigin& origin, int64_t number) {
  return (origin.producer * 1'000'003 + origin.start) * 1'000'003 + number;
}

}  // namespace

absl::StatusOr<TensorDict> MakeRows(const RowOrigin& origin, int64_t first,
                                    int64_t count) {
  TensorDict rows({1, count});
  const auto set = [&](const char* key, const auto& value_of) -> absl::Status {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(value_of(first + i));
    RILL_ASSIGN_OR_RETURN(Tensor leaf, Tensor::From(values, {1, count}));
    return rows.Set(key, std::move(leaf));
  };
  RILL_RETURN_IF_ERROR(
      set(kProducer, [&](int64_t) { return origin.producer; }));
  RILL_RETURN_IF_ERROR(set(kStart, [&](int64_t) { return origin.start; }));
  RILL_RETURN_IF_ERROR(set(kNumber, [&](int64_t number) { return number; }));
  RILL_RETURN_IF_ERROR(
      set(kCheck, [&](int64_t number) { return CheckOf(origin, number); }));
  return rows;
}

absl::Status CheckRows(const TensorDict& rows) {
  return VisitRuns(rows, [](const RowOrigin&, int64_t, int64_t) {});
}

absl::Status VisitRuns(
    const TensorDict& rows,
    absl::FunctionRef<void(const RowOrigin&, int64_t first, int64_t last)>
        visit) {
  RILL_ASSIGN_OR_RETURN(const auto producers, rows.Flat<int64_t>(kProducer));
  RILL_ASSIGN_OR_RETURN(const auto starts, rows.Flat<int64_t>(kStart));
  RILL_ASSIGN_OR_RETURN(const auto numbers, rows.Flat<int64_t>(kNumber));
  RILL_ASSIGN_OR_RETURN(const auto checks, rows.Flat<int64_t>(kCheck));
  size_t first = 0;
  const auto origin_of = [&](size_t row) {
    return RowOrigin{.producer = producers[row], .start = starts[row]};
  };
  for (size_t row = 0; row < numbers.size(); ++row) {
    if (checks[row] != CheckOf(origin_of(row), numbers[row])) {
      return DataLoss("VisitRuns: row ", numbers[row], " of producer ",
                      producers[row], ", start ", starts[row], ": got check ",
                      checks[row], ", want ",
                      CheckOf(origin_of(row), numbers[row]));
    }
    const bool is_last = row + 1 == numbers.size() ||
                         origin_of(row + 1) != origin_of(row) ||
                         numbers[row + 1] != numbers[row] + 1;
    if (!is_last) continue;
    visit(origin_of(row), numbers[first], numbers[row]);
    first = row + 1;
  }
  return absl::OkStatus();
}

}  // namespace rill
