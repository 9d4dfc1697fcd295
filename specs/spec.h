// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_SPEC_H_
#define RILL_SPECS_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The leaves that a dictionary must hold, in order, by key: the run-time form
// of a schema. Everything that builds a pipeline checks specs before the first
// byte moves. Nested dictionaries are in the keys ("next/reward"). TorchRL's
// users know it as Composite.
//
// Entries that are no tensors are in a list of their own: leaves() has tensors
// only. Values of that kind that the spec does not name are allowed everywhere.
//
// Device/Stream: device() is for the checks of pipelines. Dictionaries that are
//   made here lie in host memory, and no check of a dictionary looks at it.
// Thread-safety: thread-compatible.
//
// Example (TensorDictSpecTest.Example runs it):
//   TensorDictSpec spec;
//   RILL_RETURN_IF_ERROR(spec.Set("action", LeafSpec::OneHot(4)));
//   RILL_RETURN_IF_ERROR(spec.Set("next/reward",
//       LeafSpec::Bounded(DType::kFloat32, {1}, -1, 1)));
//   RILL_ASSIGN_OR_RETURN(TensorDict steps, spec.Random({32}, Rng(1), 0));
class TensorDictSpec {
 public:
  struct Leaf {
    std::string key;
    LeafSpec spec;
    friend bool operator==(const Leaf&, const Leaf&) = default;
  };
  struct NonTensorLeaf {
    std::string key;
    // The value that Random, Zero, ... put there. A member is any value, one
    // for all rows or one a row.
    NonTensor example;
    friend bool operator==(const NonTensorLeaf&,
                           const NonTensorLeaf&) = default;
  };

  TensorDictSpec() = default;

  // The layout (dtypes, trailing shapes, unbounded domains) of a dictionary's
  // tensors.
  static TensorDictSpec Of(const TensorDict& dict);

  // Adds or replaces. INVALID_ARGUMENT, spec unchanged, if the key is
  // malformed, one key would be both a leaf and a dictionary, or the leaf's
  // CheckDomain fails.
  absl::Status Set(absl::string_view key, LeafSpec spec);
  // All leaves of `nested` below the key, all or none.
  absl::Status Set(absl::string_view key, const TensorDictSpec& nested);
  absl::Status SetNonTensor(absl::string_view key,
                            NonTensor example = {"null"});
  // Masks a leaf (LeafSpec::WithMask). NOT_FOUND lists the keys there are.
  absl::Status SetMask(absl::string_view key, const Tensor& mask);
  // Null where missing.
  const LeafSpec* Find(absl::string_view key) const;
  // The leaves below a key, the key taken off. NOT_FOUND lists the keys.
  absl::StatusOr<TensorDictSpec> Nested(absl::string_view key) const;
  // No effect where missing.
  void Erase(absl::string_view key);
  const std::vector<Leaf>& leaves() const { return leaves_; }
  // Keys of the leaves, in their order; as TensorDict::LeafKeys.
  std::vector<std::string> LeafKeys() const;
  const std::vector<NonTensorLeaf>& non_tensors() const { return non_tensors_; }
  bool empty() const { return leaves_.empty() && non_tensors_.empty(); }

  // The place of all leaves; none where nobody has said. Specs that are derived
  // from this one keep it.
  std::optional<Device> device() const { return device_; }
  void set_device(std::optional<Device> device) { device_ = device; }

  // Same keys, dtypes and trailing shapes: INVALID_ARGUMENT names the keys that
  // are missing, those that are too many, and the first leaf that differs with
  // both sides. `caller` starts the message ("ReplayBuffer::Extend").
  absl::Status CheckLayout(absl::string_view caller,
                           const TensorDict& dict) const;
  // The same, and values inside their domains; more keys are allowed where
  // `allow_extra`. Device leaves are copied to the host first.
  absl::Status CheckValues(absl::string_view caller, const TensorDict& dict,
                           bool allow_extra = false) const;
  bool Contains(const TensorDict& dict) const {
    return CheckValues("", dict).ok();
  }

  // A random member; each leaf has numbers of its own. RandomInto reuses the
  // leaves of `out` that fit (LeafSpec::RandomInto), sets the others, and
  // leaves further entries. INVALID_ARGUMENT if its batch shape is another;
  // after errors some leaves may be new already.
  absl::StatusOr<TensorDict> Random(const Shape& batch_shape, const Rng& rng,
                                    uint64_t batch) const;
  absl::Status RandomInto(const Shape& batch_shape, const Rng& rng,
                          uint64_t batch, TensorDict* out) const;
  // Uninitialised / zeroed tensors of every leaf, all in one allocation. Ones.
  absl::StatusOr<TensorDict> Empty(const Shape& batch_shape,
                                   const Tensor::Options& options) const;
  absl::StatusOr<TensorDict> Zero(const Shape& batch_shape) const;
  absl::StatusOr<TensorDict> One(const Shape& batch_shape) const;
  // A copy whose leaves are projected (LeafSpec::Project); entries that the
  // spec does not name are shared. NOT_FOUND where a leaf is missing, else
  // errors as CheckLayout, more keys allowed.
  absl::StatusOr<TensorDict> Project(const TensorDict& dict) const;

  // Product of the leaves' numbers of members, none where one has none or it
  // is past int64; and all members, [cardinality], the last leaf fastest, as
  // LeafSpec::Enumerate.
  std::optional<int64_t> Cardinality() const;
  absl::StatusOr<TensorDict> Enumerate(int64_t max_members = 1 << 16) const;

  // The same keys with other leaves; NonTensors are kept. Errors gain the key.
  absl::StatusOr<TensorDictSpec> MapLeaves(
      absl::FunctionRef<absl::StatusOr<LeafSpec>(absl::string_view key,
                                                 const LeafSpec&)>
          fn) const;
  // LeafSpec::Index of every leaf.
  absl::StatusOr<TensorDictSpec> Index(int64_t index) const;

  std::string ToString() const;
  friend bool operator==(const TensorDictSpec&,
                         const TensorDictSpec&) = default;

 private:
  absl::Status CheckKeyIsFree(absl::string_view caller,
                              absl::string_view key) const;
  std::vector<std::string> AllKeys() const;
  absl::Status SetNonTensorsOf(TensorDict* dict) const;

  std::vector<Leaf> leaves_;
  std::vector<NonTensorLeaf> non_tensors_;
  std::optional<Device> device_;
};

}  // namespace rill

#endif  // RILL_SPECS_SPEC_H_
