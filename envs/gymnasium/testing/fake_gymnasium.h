// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_GYMNASIUM_TESTING_FAKE_GYMNASIUM_H_
#define RILL_ENVS_GYMNASIUM_TESTING_FAKE_GYMNASIUM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"
#include "rill/envs/gymnasium/gymnasium_env.h"

namespace rill {

// MakeGymnasiumEnv with the stand-in for gymnasium in testdata, which fails
// when told. For tests.
absl::StatusOr<std::unique_ptr<Env>> MakeFakeGymnasiumEnv(
    GymnasiumEnvOptions options);

// Skips all tests of a program where python3 has no NumPy, which the Python
// side of GymnasiumEnv imports. A test registers it:
//
//   const auto* const kNeedsNumpy =
//       ::testing::AddGlobalTestEnvironment(new NeedsNumpy());
class NeedsNumpy : public ::testing::Environment {
 public:
  void SetUp() override;
};

}  // namespace rill

#endif  // RILL_ENVS_GYMNASIUM_TESTING_FAKE_GYMNASIUM_H_
