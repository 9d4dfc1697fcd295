// SPDX-License-Identifier: Apache-2.0
// The simulator that docs/environments.md shows, as it stands there.
#include "rill/docs/doc_examples/own_simulator.h"

#include "gtest/gtest.h"
#include "rill/envs/conformance/env_conformance.h"

namespace rill {

INSTANTIATE_TEST_SUITE_P(Ball, EnvConformanceTest,
                         ::testing::Values([] { return MakeBall(3); }));

}  // namespace rill
