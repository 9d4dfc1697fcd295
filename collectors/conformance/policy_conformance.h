// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_CONFORMANCE_POLICY_CONFORMANCE_H_
#define RILL_COLLECTORS_CONFORMANCE_POLICY_CONFORMANCE_H_

#include <functional>
#include <memory>

#include "gtest/gtest.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A fresh policy, always the same, and what it acts on.
struct PolicySubject {
  std::shared_ptr<Policy> policy;
  TensorDict root;       // [lanes], at least 4 lanes.
  LeafSpec action = {};  // Of a lane.
};
using PolicyFactory = std::function<PolicySubject()>;

// Every Policy passes this suite. Use, in the policy's own test:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, PolicyConformanceTest,
//                            ::testing::Values(MakeMyPolicy));
class PolicyConformanceTest : public ::testing::TestWithParam<PolicyFactory> {};

}  // namespace rill

#endif  // RILL_COLLECTORS_CONFORMANCE_POLICY_CONFORMANCE_H_
