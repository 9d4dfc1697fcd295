// SPDX-License-Identifier: Apache-2.0
// A library for arrow_python_test.py to call: null, or what went wrong.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "arrow/c/abi.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/arrow/arrow_c_data.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

std::optional<TensorDict> imported;

const char* TextOf(const absl::Status& status) {
  static std::string text;
  text = status.ToString();
  return status.ok() ? nullptr : text.c_str();
}

// x float32 [3, 2] of 0, 1, ...; next/y int64 [3].
absl::Status Export(ArrowSchema* schema, ArrowArray* array) {
  TensorDict dict({3});
  RILL_ASSIGN_OR_RETURN(
      Tensor x, Tensor::From(std::vector<float>{0, 1, 2, 3, 4, 5}, {3, 2}));
  RILL_RETURN_IF_ERROR(dict.Set("x", std::move(x)));
  RILL_ASSIGN_OR_RETURN(Tensor y,
                        Tensor::From(std::vector<int64_t>{7, 8, 9}, {3}));
  RILL_RETURN_IF_ERROR(dict.Set("next/y", std::move(y)));
  return ExportToC(dict, schema, array);
}

absl::Status Import(ArrowSchema* schema, ArrowArray* array) {
  RILL_ASSIGN_OR_RETURN(imported, ImportFromC(schema, array));
  return absl::OkStatus();
}

// The sum of the int64 leaf z.
absl::Status Sum(int64_t* sum) {
  RILL_ASSIGN_OR_RETURN(const auto values, imported->Flat<int64_t>("z"));
  *sum = 0;
  for (const int64_t value : values) *sum += value;
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill

extern "C" const char* rill_export(ArrowSchema* schema, ArrowArray* array) {
  return rill::TextOf(rill::Export(schema, array));
}
extern "C" const char* rill_import(ArrowSchema* schema, ArrowArray* array) {
  return rill::TextOf(rill::Import(schema, array));
}
extern "C" const char* rill_sum(int64_t* sum) {
  return rill::TextOf(rill::Sum(sum));
}
extern "C" void rill_forget() { rill::imported.reset(); }
