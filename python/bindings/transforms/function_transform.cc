// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/function_transform.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// The tensors of `batch` where `made` has them in their places still, else
// copies of its arrays. So nothing is kept that Python code may write to.
TensorDict ResultOf(const nb::object& made, const TensorDict& batch) {
  InputReader reader(batch.batch_shape().rank());
  const TensorDict given = reader.Read(made.ptr(), /*is_step=*/false)->rows;
  TensorDict result(given.batch_shape());
  absl::Status status;
  given.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (!status.ok()) return;
    const Tensor* was = batch.Find(key);
    if (was != nullptr && was->raw_data() == leaf.raw_data() &&
        was->dtype() == leaf.dtype() && was->shape() == leaf.shape() &&
        was->is_contiguous()) {
      status = result.Set(key, *was);
      return;
    }
    absl::StatusOr<Tensor> copy = leaf.Clone();
    status = copy.ok() ? result.Set(key, *std::move(copy)) : copy.status();
  });
  Check(status);
  return result;
}

FunctionTransform::Function FunctionOf(const std::string& who,
                                       const nb::object& function) {
  if (function.is_none()) return nullptr;
  return [who, function = SharedObject(function)](TensorDict* batch) {
    return CallPython(who, [&] {
      auto shown = std::make_shared<OutputBatch>();
      shown->rows = TensorDict(batch->batch_shape());
      absl::Status status;
      batch->ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
        if (!status.ok()) return;
        absl::StatusOr<Tensor> view = ReadOnly(leaf);
        status =
            view.ok() ? shown->rows.Set(key, *std::move(view)) : view.status();
      });
      Check(status);
      OutputMaker maker;
      const nb::object dict = maker.Make(shown);
      const nb::object made = CallObject(function.get(), dict);
      *batch = ResultOf(made.is_none() ? dict : made, *batch);
    });
  };
}

TransformPart Make(const std::string& name, const nb::object& forward,
                   const nb::object& inverse) {
  return {
      Value(FunctionTransform::Create({.name = name,
                                       .forward = FunctionOf(name, forward),
                                       .inverse = FunctionOf(name, inverse)}))};
}

}  // namespace

void BindFunctionTransform(nb::module_& module) {
  module.def("function_transform", &Make, nb::arg("name"),
             nb::arg("forward").none(), nb::arg("inverse").none());
}

}  // namespace rill::python
