// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/writers/conformance/writer_conformance.h"

#include <memory>

#include "gtest/gtest.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/replay/writers/writer.h"

namespace rill {
namespace {

INSTANTIATE_TEST_SUITE_P(RoundRobin, WriterConformanceTest,
                         ::testing::Values(MakeRoundRobinWriter));
INSTANTIATE_TEST_SUITE_P(Immutable, WriterConformanceTest,
                         ::testing::Values(MakeImmutableWriter));
INSTANTIATE_TEST_SUITE_P(Removing, WriterConformanceTest, ::testing::Values([] {
                           return MakeRemovingWriter();
                         }));
INSTANTIATE_TEST_SUITE_P(TopK, WriterConformanceTest, ::testing::Values([] {
                           return *TopKWriter::Create({.rank_key = "step"});
                         }));

}  // namespace
}  // namespace rill
