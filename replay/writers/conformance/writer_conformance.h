// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_WRITERS_CONFORMANCE_WRITER_CONFORMANCE_H_
#define RILL_REPLAY_WRITERS_CONFORMANCE_WRITER_CONFORMANCE_H_

#include <functional>
#include <memory>

#include "gtest/gtest.h"
#include "rill/replay/writers/writer.h"

namespace rill {

// Makes a fresh writer for steps with the leaf `step`, int64 [], by which a
// writer that ranks rows ranks them.
using WriterFactory = std::function<std::unique_ptr<Writer>()>;

// The suite that every Writer passes. One that takes no rows shows that it
// refuses them. Use, in the writer's own test:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, WriterConformanceTest,
//                            ::testing::Values(MakeMyWriter));
class WriterConformanceTest : public ::testing::TestWithParam<WriterFactory> {};

}  // namespace rill

#endif  // RILL_REPLAY_WRITERS_CONFORMANCE_WRITER_CONFORMANCE_H_
