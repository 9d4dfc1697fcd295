// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_FAKE_SAMPLE_READER_H_
#define RILL_TRANSFORMS_CONFORMANCE_FAKE_SAMPLE_READER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/unit_transform.h"

namespace rill {

// Drives a unit's transform as a replay buffer does: gathers the leaves that it
// asks for, and no others, from `store`, whose row i is slot i.
// Thread-safety: immutable.
class FakeSampleReader {
 public:
  // The argument of Apply.
  struct Gathered {
    TensorDict rows;
    std::vector<TensorDict> context;
  };

  // `spec` of the store's rows.
  FakeSampleReader(TensorDictSpec spec, TensorDict store);

  // Gathers into `batch` too, reusing its leaves that fit; a batch shape of
  // another size makes it anew.
  absl::StatusOr<Gathered> Gather(const UnitTransform& unit,
                                  const SamplePlan& plan,
                                  TensorDict* batch) const;

  // Gather, then Apply.
  absl::Status ReadInto(const UnitTransform& unit, const SamplePlan& plan,
                        TensorDict* batch) const;
  absl::StatusOr<TensorDict> Read(const UnitTransform& unit,
                                  const SamplePlan& plan) const;

  const TensorDictSpec& spec() const { return spec_; }
  const TensorDict& store() const { return store_; }

 private:
  const TensorDictSpec spec_;
  const TensorDict store_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_CONFORMANCE_FAKE_SAMPLE_READER_H_
