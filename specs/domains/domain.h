// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_DOMAINS_DOMAIN_H_
#define RILL_SPECS_DOMAINS_DOMAIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/element.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// LeafSpec asks this of its domain; for the .cc files of this package.
namespace rill::tensor_internal {

// The values that one choice or element goes through when members are counted:
// low, low + 1, ...; of masked choices the allowed options.
struct Digit {
  int64_t low = 0;
  uint64_t count = 0;  // 2^64, the whole of int64, counts as 2^64 - 1.
  std::vector<int64_t> allowed = {};  // Empty without a mask.
  int64_t group = 0;                  // Elements of a one-hot choice.
};

// The values of LeafSpec::Encode or EncodeInts; the other ones are empty. Two
// types, since int64 above 2^53 would be rounded as double.
struct Numbers {
  absl::Span<const double> reals = {};
  absl::Span<const int64_t> ints = {};

  size_t size() const { return reals.size() + ints.size(); }
  double AsReal(size_t i) const {
    return reals.empty() ? static_cast<double>(ints[i]) : reals[i];
  }
  // Number i as a whole one, if it is one of int64.
  std::optional<int64_t> AsWhole(size_t i) const;
  absl::Status Refuse(size_t i, absl::string_view want) const;
};

// A domain's part of LeafSpec, which has the contracts. Numbers, sizes and
// tensors of a domain are in the spec, so that there is one object a domain.
// Tensors are contiguous, on the host, and of batch_shape + spec.shape.
// LeafSpec checks layouts, and that a mask fits the batch shape, before it
// calls. Specs are checked in all calls but ToString and CheckDomain.
//
// Thread-safety: immutable.
class LeafDomain {
 public:
  // "[-1, 1]"; empty where there is nothing to say.
  virtual std::string ToString(const LeafSpec& spec) const = 0;
  // The domain has members, and the dtype, which has arithmetic where the
  // domain needs it, holds them.
  virtual absl::Status CheckDomain(const LeafSpec& spec) const = 0;
  virtual absl::Status CheckValues(absl::string_view key, const LeafSpec& spec,
                                   const Shape& batch_shape,
                                   const Tensor& tensor) const = 0;
  // In place; bools are 0 or 1.
  virtual void Project(const LeafSpec& spec, const Shape& batch_shape,
                       const Tensor& tensor) const = 0;
  virtual void Random(const LeafSpec& spec, const Shape& batch_shape,
                      const Rng& rng, uint64_t batch,
                      const Tensor& out) const = 0;
  // The digits of the members of an empty batch shape; the last one is the
  // fastest. None for infinitely many members.
  virtual std::optional<std::vector<Digit>> Digits(
      const LeafSpec& spec) const = 0;
  // One number an element unless overridden, as many as are wanted. Bounds are
  // LeafSpec's to check in the result.
  virtual absl::Status Encode(const LeafSpec& spec, const Shape& batch_shape,
                              const Numbers& numbers, const Tensor& out) const;
  // Values that differ from element to element or row to row. These are the
  // bounds, of the spec's shape, or the mask, of batch_shape + lead + options.
  // They are in full also where the spec has scalars or no mask. None unless
  // overridden.
  virtual absl::StatusOr<std::vector<Tensor>> Parts(
      const LeafSpec& spec, const Shape& batch_shape) const;

 protected:
  ~LeafDomain() = default;
};

extern const LeafDomain& kUnboundedDomain;
extern const LeafDomain& kBoundedDomain;
extern const LeafDomain& kBinaryDomain;
extern const LeafDomain& kCategoricalDomain;  // And MultiCategorical.
extern const LeafDomain& kOneHotDomain;       // And MultiOneHot.

const LeafDomain& DomainOf(const LeafSpec& spec);

// The spec's bounds by element and mask, where it has them, fit the rest of it:
// a change of the public members may break what the factories make.
absl::Status CheckTables(const LeafSpec& spec);
// The dtype has none of the domain's members, or not all options.
absl::Status CannotHold(const LeafSpec& spec);
// `"key": element 3 of shape [2, 4]: got 7, want a value in [0, 1]`.
absl::Status Outside(absl::string_view key, absl::string_view what,
                     absl::string_view got, absl::string_view want);
// "element 3 of shape [2, 4]".
std::string ElementName(const Tensor& tensor, int64_t i);
// An own copy on the host.
absl::StatusOr<Tensor> HostCopy(const Tensor& tensor);
// Bytes that are neither 0 nor 1 become 1, so that reading bools is safe.
void NormaliseBools(const Tensor& tensor);

}  // namespace rill::tensor_internal

#endif  // RILL_SPECS_DOMAINS_DOMAIN_H_
