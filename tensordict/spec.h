// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_SPEC_H_
#define RILL_TENSORDICT_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// What one leaf may hold: dtype, the shape behind the batch shape, and a
// domain. Made by Unbounded, Bounded, Categorical, Binary. Bounds count as
// rounded to the dtype: 0.1 admits the float32 that is nearest to 0.1.
// Thread-safety: thread-compatible.
struct LeafSpec {
  enum class Domain : uint8_t { kUnbounded, kBounded, kCategorical, kBinary };

  DType dtype = DType::kFloat32;
  Shape shape;  // Trailing: without the batch dimensions.
  Domain domain = Domain::kUnbounded;
  double low = 0;  // kBounded: inclusive, the same for all elements.
  double high = 0;
  int64_t num_categories = 0;  // kCategorical: values 0 .. n - 1.

  static LeafSpec Unbounded(DType dtype, const Shape& shape);
  static LeafSpec Bounded(DType dtype, const Shape& shape, double low,
                          double high);
  static LeafSpec Categorical(int64_t num_categories,
                              DType dtype = DType::kInt64,
                              const Shape& shape = {});
  static LeafSpec Binary(const Shape& shape, DType dtype = DType::kBool);

  // INVALID_ARGUMENT if the domain is empty (low > high, NaN, no category, no
  // member of the dtype) or the dtype has no arithmetic where it needs it.
  absl::Status CheckDomain() const;
  // OK if dtype and the shape behind `batch_shape` fit. Does not read values.
  absl::Status CheckLayout(absl::string_view key, const Shape& batch_shape,
                           const Tensor& tensor) const;
  // CheckLayout, then every value against the domain; names the first that is
  // outside. NaN is outside every bounded domain.
  absl::Status CheckValues(absl::string_view key, const Shape& batch_shape,
                           const Tensor& tensor) const;

  // A random member / zeros, of shape batch_shape + shape. Random: uniform over
  // the domain; standard normal where unbounded floating point, uniform over
  // [-100, 100] (as far as the dtype goes) where unbounded integer; bounded on
  // one side only: the bound and a standard exponential away from it. Element i
  // is a function of (rng, batch, i) alone. INVALID_ARGUMENT for dtypes without
  // arithmetic.
  absl::StatusOr<Tensor> Random(const Shape& batch_shape, const Rng& rng,
                                uint64_t batch) const;
  absl::StatusOr<Tensor> Zero(const Shape& batch_shape) const;

  // batch_shape + shape. INVALID_ARGUMENT past the limits of Shape.
  absl::StatusOr<Shape> FullShape(const Shape& batch_shape) const;

  std::string ToString() const;  // "float32[4] in [-1, 1]"
  friend bool operator==(const LeafSpec&, const LeafSpec&) = default;
};

// What a dictionary must hold: an ordered list of leaves by key, the run-time
// form of a schema. Everything that builds a pipeline checks specs before the
// first byte moves.
// Thread-safety: thread-compatible.
class TensorDictSpec {
 public:
  struct Leaf {
    std::string key;
    LeafSpec spec;
    friend bool operator==(const Leaf&, const Leaf&) = default;
  };

  TensorDictSpec() = default;

  // The layout (dtypes, trailing shapes, unbounded domains) of a dictionary.
  static TensorDictSpec Of(const TensorDict& dict);

  // Adds or replaces. INVALID_ARGUMENT, spec unchanged, if the key is
  // malformed, one key would be both a leaf and a dictionary, or the leaf's
  // CheckDomain fails.
  absl::Status Set(absl::string_view key, LeafSpec spec);
  // Null where missing.
  const LeafSpec* Find(absl::string_view key) const;
  // No effect where missing.
  void Erase(absl::string_view key);
  const std::vector<Leaf>& leaves() const { return leaves_; }
  bool empty() const { return leaves_.empty(); }

  // Same keys, dtypes and trailing shapes: INVALID_ARGUMENT names the keys that
  // are missing, those that are too many, and the first leaf that differs with
  // both sides. `caller` starts the message ("ReplayBuffer::Extend").
  absl::Status CheckLayout(absl::string_view caller,
                           const TensorDict& dict) const;
  // The same, and values inside their domains; more keys are allowed where
  // `allow_extra`. Only the values of host tensors can be read: device leaves
  // are copied to the host first.
  absl::Status CheckValues(absl::string_view caller, const TensorDict& dict,
                           bool allow_extra = false) const;

  absl::StatusOr<TensorDict> Random(const Shape& batch_shape, const Rng& rng,
                                    uint64_t batch) const;
  // Uninitialised / zeroed tensors of every leaf, all in one allocation.
  absl::StatusOr<TensorDict> Empty(const Shape& batch_shape,
                                   const Tensor::Options& options) const;
  absl::StatusOr<TensorDict> Zero(const Shape& batch_shape) const;

  std::string ToString() const;
  friend bool operator==(const TensorDictSpec&,
                         const TensorDictSpec&) = default;

 private:
  std::vector<Leaf> leaves_;
};

}  // namespace rill

#endif  // RILL_TENSORDICT_SPEC_H_
