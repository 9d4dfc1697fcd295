// SPDX-License-Identifier: Apache-2.0
// LeafSpec::Binary: elements are 0 or 1.
#include "rill/specs/domains/element_domain.h"

namespace rill {
namespace tensor_internal {
namespace {

class Binary final : public ElementDomain {
 public:
  std::string ToString(const LeafSpec&) const override { return "{0, 1}"; }

 private:
  Limits LimitsOf(const LeafSpec&) const override { return OptionLimits(1); }
};

constexpr Binary kDomain;

}  // namespace

constinit const LeafDomain& kBinaryDomain = kDomain;

}  // namespace tensor_internal

LeafSpec LeafSpec::Binary(const Shape& shape, DType dtype) {
  return {.dtype = dtype, .shape = shape, .domain = Domain::kBinary};
}

}  // namespace rill
