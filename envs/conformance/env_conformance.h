// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_CONFORMANCE_ENV_CONFORMANCE_H_
#define RILL_ENVS_CONFORMANCE_ENV_CONFORMANCE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"

namespace rill {

// Makes a fresh environment; called several times.
using EnvFactory = std::function<absl::StatusOr<std::unique_ptr<Env>>()>;

// The suite that every Env passes: CheckEnv, and checks that need several
// environments. Use, in the environment's own test:
//
//   INSTANTIATE_TEST_SUITE_P(CartPole, EnvConformanceTest, ::testing::Values(
//       [] { return MakeCartPole({.lanes = 3}); }));
//
// Several lanes test more than one, and episodes that end within 200 random
// steps test more than endless ones. What it refuses: counting_env_test.cc, and
// env_checker_test.cc.
class EnvConformanceTest : public ::testing::TestWithParam<EnvFactory> {};

}  // namespace rill

#endif  // RILL_ENVS_CONFORMANCE_ENV_CONFORMANCE_H_
