// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_CONFORMANCE_POLICY_CONFORMANCE_H_
#define RILL_COLLECTORS_CONFORMANCE_POLICY_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A fresh policy, always the same, and what it acts on.
struct PolicySubject {
  std::shared_ptr<Policy> policy;
  // [lanes], at least 4 lanes, not all of them equal. It has the leaf of the
  // root that belongs to each leaf of recurrent state.
  TensorDict root;
  LeafSpec action = {};  // Of a lane.
  // False: it acts on batches of as many lanes as `root` only.
  bool takes_fewer_lanes = true;
  // The leaf of the root that has the legal options (EnvSpec::legal_actions),
  // with some that are not; empty: all are legal.
  std::string mask_key = {};
};
using PolicyFactory = std::function<PolicySubject()>;

// Every Policy passes this suite, by its action and all of its outputs:
// - each is written in place, inside its spec, for all lanes;
// - nothing else of the step is written;
// - what is remembered is in the root: other calls in between make no
//   difference, and a fresh policy goes on from the root and the context;
// - without exploration a lane depends on its own row alone, but for rounding.
//
// Use, in the policy's own test:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, PolicyConformanceTest,
//                            ::testing::Values(MakeMyPolicy));
class PolicyConformanceTest : public ::testing::TestWithParam<PolicyFactory> {};

}  // namespace rill

#endif  // RILL_COLLECTORS_CONFORMANCE_POLICY_CONFORMANCE_H_
