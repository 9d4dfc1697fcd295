// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_ENVS_PYTHON_POLICY_H_
#define RILL_PYTHON_BINDINGS_ENVS_PYTHON_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nanobind/nanobind.h"
#include "rill/envs/policies/policy.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/objects.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::python {

// A Python function as a policy. It gets a dict of arrays [lanes, ...], copies
// of the root, and gives a list of arrays: the leaves of the action, then those
// of `outputs`, in their order. Floats of another width become those of the
// leaf, and shorter integers int64; all else that differs is INVALID_ARGUMENT.
// An exception comes back as the same one (exception.h).
//
// Thread-safety: thread-compatible. The interpreter's lock is held in the call
//   of the function and around it, not while the root is copied. A policy may
//   end on any thread, with or without the lock.
class PythonPolicy final : public Policy {
 public:
  // The lock is held.
  PythonPolicy(nanobind::object function, const TensorDictSpec& action,
               TensorDictSpec outputs);
  ~PythonPolicy() override;

  const TensorDictSpec& output_spec() const override { return outputs_; }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override;

 private:
  void Write(const nanobind::object& made, const TensorDict& step) const;

  const SharedObject function_;
  const TensorDictSpec outputs_;
  std::vector<std::string> keys_;
  OutputMaker roots_;
};

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_ENVS_PYTHON_POLICY_H_
