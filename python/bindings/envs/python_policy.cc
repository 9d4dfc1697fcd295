// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/envs/python_policy.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/exception.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/status.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

// Whether no value of a policy's loses its meaning.
bool MayBecome(DType from, DType to) {
  if (IsFloatingPoint(from)) return IsFloatingPoint(to);
  return to == DType::kInt64 &&
         (from == DType::kUInt8 || from == DType::kInt8 ||
          from == DType::kInt16 || from == DType::kInt32);
}

// A copy of `root`, in the memory of an earlier one where it fits.
absl::Status Copy(const TensorDict& root, TensorDict* to) {
  if (to->num_leaves() == root.num_leaves()) return to->CopyFrom(root);
  RILL_ASSIGN_OR_RETURN(*to, root.Clone());
  return absl::OkStatus();
}

}  // namespace

PythonPolicy::PythonPolicy(nb::object function, const TensorDictSpec& action,
                           TensorDictSpec outputs)
    : function_(std::move(function)), outputs_(std::move(outputs)) {
  keys_ = action.LeafKeys();
  for (std::string& key : outputs_.LeafKeys()) keys_.push_back(std::move(key));
}

PythonPolicy::~PythonPolicy() {
  if (Py_IsInitialized() == 0) {
    new auto(std::move(roots_));  // Its objects are gone.
    return;
  }
  const Locked lock;
  roots_ = OutputMaker();
}

absl::StatusOr<int64_t> PythonPolicy::Act(const TensorDict& root,
                                          const ActContext& /*context*/,
                                          TensorDict* step) {
  RILL_RETURN_IF_ERROR(CallPython("policy", [&] {
    const std::shared_ptr<OutputBatch> shown = roots_.Take();
    absl::Status copied;
    {
      const Unlocked unlocked;
      copied = Copy(root, &shown->rows);
    }
    Check(std::move(copied));
    Write(CallObject(function_.get(), roots_.Make(shown)), *step);
  }));
  return 0;
}

void PythonPolicy::Write(const nb::object& made, const TensorDict& step) const {
  const nb::list arrays(made);
  if (nb::len(arrays) != keys_.size()) {
    throw StatusError{InvalidArgument("policy: got ", nb::len(arrays),
                                      " arrays, want ", keys_.size())};
  }
  for (size_t i = 0; i < keys_.size(); ++i) {
    const Tensor leaf = Value(step.Get(keys_[i]));
    const nb::object array = arrays[i];
    Tensor given = TensorOf(array, keys_[i], leaf.dtype());
    if (given.dtype() != leaf.dtype() &&
        MayBecome(given.dtype(), leaf.dtype())) {
      given = Value(Cast(given, leaf.dtype()));
    }
    // A number is the action of one lane.
    if (given.rank() == 0 && leaf.num_elements() == 1) {
      given = Value(given.ViewAs(leaf.shape()));
    }
    if (given.dtype() != leaf.dtype() || given.shape() != leaf.shape()) {
      throw StatusError{InvalidArgument(
          "policy: \"", keys_[i], "\": got ", DTypeName(given.dtype()),
          given.shape().ToString(), ", want ", DTypeName(leaf.dtype()),
          leaf.shape().ToString())};
    }
    Check(leaf.CopyFrom(given));
  }
}

}  // namespace rill::python
