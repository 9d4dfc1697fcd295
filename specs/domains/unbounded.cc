// SPDX-License-Identifier: Apache-2.0
// LeafSpec::Unbounded: all values of the dtype.
#include "rill/specs/domains/element_domain.h"

namespace rill {
namespace tensor_internal {
namespace {

class Unbounded final : public ElementDomain {
 public:
  std::string ToString(const LeafSpec&) const override { return ""; }
  // Bits stay as they are, NaN too.
  void Project(const LeafSpec&, const Shape&, const Tensor&) const override {}
  // Integers are drawn from [-100, 100], cut to the dtype.
  void Random(const LeafSpec& spec, const Shape&, const Rng& rng,
              uint64_t batch, const Tensor& out) const override {
    FillRandom(spec, {.least = -100, .most = 100}, rng, batch, out);
  }

 private:
  Limits LimitsOf(const LeafSpec&) const override { return {}; }
};

constexpr Unbounded kDomain;

}  // namespace

constinit const LeafDomain& kUnboundedDomain = kDomain;

}  // namespace tensor_internal

LeafSpec LeafSpec::Unbounded(DType dtype, const Shape& shape) {
  return {.dtype = dtype, .shape = shape};
}

}  // namespace rill
