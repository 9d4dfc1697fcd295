// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/server/server_config.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A config of one table with these fields.
std::string OneTable(absl::string_view fields) {
  return absl::StrCat(R"({"tables": {"replay": {)", fields, "}}}");
}

std::unique_ptr<ReplayBuffer> MakeTable(absl::string_view fields) {
  auto config = ServerConfig::Parse(OneTable(fields));
  RILL_EXPECT_OK(config.status());
  if (!config.ok()) return nullptr;
  auto buffer = ReplayBuffer::Create(std::move(config->tables["replay"]));
  RILL_EXPECT_OK(buffer.status());
  return buffer.ok() ? *std::move(buffer) : nullptr;
}

// The text of the header.
TEST(ServerConfigTest, EveryFieldIsTaken) {
  RILL_ASSERT_OK_AND_ASSIGN(const ServerConfig config, ServerConfig::Parse(R"({
    "listen": "127.0.0.1:7070",
    "checkpoint": {"directory": "checkpoint", "every_seconds": 600},
    "metrics_file": "replay.prom",
    "tables": {
      "replay": {
        "capacity": 1000000,
        "lanes": 8,
        "batch_size": 256,
        "seed": 1,
        "sampler": {"kind": "prioritized", "alpha": 0.6, "beta": 0.4},
        "unit": {"kind": "n_step", "steps": 3, "gamma": 0.99},
        "rate_limiter": {"samples_per_insert": 4, "min_size": 1000,
                         "error_buffer": 8000, "timeout_seconds": 1}
      }
    }
  })"));
  EXPECT_EQ(config.listen, "127.0.0.1:7070");
  EXPECT_EQ(config.checkpoint_directory, "checkpoint");
  EXPECT_EQ(config.checkpoint_every, absl::Minutes(10));
  EXPECT_EQ(config.metrics_file, "replay.prom");
  ASSERT_EQ(config.tables.size(), 1);
  const ReplayBuffer::Options& table = config.tables.at("replay");
  EXPECT_EQ(table.storage->capacity(), 1000000);
  EXPECT_EQ(table.storage->lanes().count, 8);
  EXPECT_EQ(table.batch_size, 256);
  EXPECT_EQ(table.seed, 1);
  EXPECT_EQ(table.rate_limit_timeout, absl::Seconds(1));
  EXPECT_EQ(table.rate_limiter->options().samples_per_insert, 4);
  EXPECT_EQ(table.rate_limiter->options().min_size_to_sample, 1000);
}

TEST(ServerConfigTest, ATableWantsItsCapacityAlone) {
  const auto table = MakeTable(R"("capacity": 50)");
  ASSERT_NE(table, nullptr);
  RILL_ASSERT_OK(table->Extend(NumberedSteps(1, 10)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, table->Sample(4));
  ExpectWholeSteps(batch, 50);
}

TEST(ServerConfigTest, EachSamplerAndUnitMakesATable) {
  for (const char* const sampler :
       {R"({"kind": "uniform"})",
        R"({"kind": "prioritized", "epsilon": 1e-6, "stratified": true})",
        R"({"kind": "without_replacement", "drop_last": true})",
        R"({"kind": "fifo"})", R"({"kind": "lifo"})", R"({"kind": "min_heap"})",
        R"({"kind": "max_heap"})"}) {
    SCOPED_TRACE(sampler);
    const auto table =
        MakeTable(absl::StrCat(R"("capacity": 50, "sampler": )", sampler));
    ASSERT_NE(table, nullptr);
    RILL_ASSERT_OK(table->Extend(NumberedSteps(1, 10)));
    RILL_EXPECT_OK(table->Sample(4).status());
  }
  for (const char* const kind : {"uniform", "prioritized"}) {
    for (const char* const unit :
         {R"({"kind": "n_step", "steps": 2})",
          R"({"kind": "slices", "length": 2})",
          R"({"kind": "sequences", "length": 2, "burn_in": 1, "period": 2})"}) {
      SCOPED_TRACE(absl::StrCat(kind, " ", unit));
      const auto table =
          MakeTable(absl::StrCat(R"("capacity": 50, "sampler": {"kind": ")",
                                 kind, R"("}, "unit": )", unit));
      ASSERT_NE(table, nullptr);
      RILL_ASSERT_OK(table->Extend(NumberedSteps(1, 10)));
      RILL_EXPECT_OK(table->Sample(12).status());
    }
  }
}

TEST(ServerConfigTest, OrdersAreThoseOfTheirNames) {
  const auto fifo = MakeTable(R"("capacity": 50, "sampler": {"kind": "fifo"})");
  const auto lifo = MakeTable(R"("capacity": 50, "sampler": {"kind": "lifo"})");
  for (ReplayBuffer* const table : {fifo.get(), lifo.get()}) {
    RILL_ASSERT_OK(table->Extend(NumberedSteps(1, 10)));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, table->Sample(1));
    EXPECT_EQ(batch.Find("action")->data<int64_t>()[0],
              table == fifo.get() ? 0 : 9);
  }
}

// The rows that a table of five keeps of ten with rewards 0, 1, ..., sorted.
std::vector<int64_t> KeptBy(absl::string_view writer) {
  const auto table =
      MakeTable(absl::StrCat(R"("capacity": 5, "writer": )", writer));
  if (table == nullptr) return {};
  RILL_EXPECT_OK(table->Extend(NumberedSteps(1, 10)).status());
  auto rows = table->ReadAll();
  RILL_EXPECT_OK(rows.status());
  const auto actions = rows->Flat<int64_t>("action");
  RILL_EXPECT_OK(actions.status());
  std::vector<int64_t> kept(actions->begin(), actions->end());
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(ServerConfigTest, EachWriterKeepsItsRows) {
  EXPECT_THAT(KeptBy(R"({"kind": "round_robin"})"), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(KeptBy(R"({"kind": "top_k", "k": 2, "rank_key": "action"})"),
              ElementsAre(8, 9));
  EXPECT_THAT(KeptBy(R"({"kind": "top_k", "reduction": "max"})"), SizeIs(5));
  EXPECT_THAT(KeptBy(R"({"kind": "removing"})"), ElementsAre(5, 6, 7, 8, 9));
  for (const char* const remover :
       {"fifo", "lifo", "uniform", "min_heap", "max_heap"}) {
    EXPECT_THAT(KeptBy(absl::StrCat(R"({"kind": "removing", "remover": ")",
                                    remover, R"("})")),
                SizeIs(5));
  }
}

TEST(ServerConfigTest, RowsInFilesOutliveTheTable) {
  const std::string fields = absl::StrCat(
      R"("capacity": 50, "storage": {"kind": "memmap", "directory": ")",
      ::testing::TempDir(), R"(/config_rows"})");
  {
    const auto table = MakeTable(fields);
    ASSERT_NE(table, nullptr);
    RILL_ASSERT_OK(table->Extend(NumberedSteps(1, 10)));
    // Its owner is this table.
    EXPECT_THAT(ServerConfig::Parse(OneTable(fields)),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  const auto table = MakeTable(fields);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->size(), 10);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, table->Sample(4));
  ExpectWholeSteps(batch, 50);
}

TEST(ServerConfigTest, WrongFieldsAreNamedByTheirPath) {
  const auto refuses = [](const std::string& text, const char* says) {
    EXPECT_THAT(ServerConfig::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(says)));
  };
  const auto table_refuses = [&](const char* fields, const char* says) {
    refuses(OneTable(fields), says);
  };
  refuses("[]", "got [], want an object");
  refuses("{}", "tables: got none");
  refuses(R"({"tables": {}})", "tables: got none");
  refuses(R"({"tables": {"a": 5}})", "tables.a: got 5, want an object");
  refuses(R"({"tables": {"a": {"capacity": 5}}, "lisen": ""})",
          "lisen: is unknown, want one of checkpoint, listen, metrics_file");
  refuses(R"({"checkpoint": {}})", "checkpoint.directory: is missing");
  refuses(R"({"checkpoint": {"directory": "a", "every_seconds": 0}})",
          "checkpoint.every_seconds: got 0, want above 0");
  table_refuses("", "tables.replay.capacity: is missing");
  table_refuses(R"("capacity": "many")", "capacity: got \"many\"");
  table_refuses(R"("capacity": 1.5)", "capacity: got 1.5");
  table_refuses(R"("capacity": 18446744073709551615)", "a whole number");
  table_refuses(R"("capacity": 5, "lanes": 2)", "table \"replay\": ");
  table_refuses(R"("capacity": 5, "batch_size": -1)", "batch_size");
  table_refuses(R"("capacity": 5, "capcity": 5)",
                "tables.replay.capcity: is unknown");
  table_refuses(R"("capacity": 5, "sampler": {})", "sampler.kind: is missing");
  table_refuses(R"("capacity": 5, "sampler": {"kind": "best"})",
                "sampler.kind: got best, want uniform, prioritized");
  table_refuses(R"("capacity": 5, "sampler": {"kind": "uniform", "alpha": 1})",
                "sampler.alpha: is unknown");
  table_refuses(
      R"("capacity": 5, "sampler": {"kind": "prioritized", "alpha": -1})",
      "alpha");
  table_refuses(R"("capacity": 5, "unit": {"kind": "pairs"})",
                "unit.kind: got pairs");
  table_refuses(R"("capacity": 5, "unit": {"kind": "n_step", "steps": 0})",
                "num_steps");
  table_refuses(R"("capacity": 5, "sampler": {"kind": "fifo"},
                   "unit": {"kind": "slices", "length": 2})",
                "sampler.kind: got fifo, want uniform or prioritized");
  table_refuses(R"("capacity": 5, "storage": {"kind": "disk"})",
                "storage.kind: got disk, want memory or memmap");
  table_refuses(R"("capacity": 5, "storage": {"kind": "memmap"})",
                "storage.directory: is missing");
  table_refuses(
      R"("capacity": 5, "storage": {"kind": "memory", "directory": "a"})",
      "storage.directory: is unknown");
  table_refuses(R"("capacity": 5, "writer": {"kind": "none"})",
                "writer.kind: got none, want round_robin, top_k or removing");
  table_refuses(
      R"("capacity": 5, "writer": {"kind": "top_k", "reduction": "first"})",
      "writer.reduction: got first");
  table_refuses(
      R"("capacity": 5, "writer": {"kind": "removing", "remover": "best"})",
      "writer.remover: got best, want fifo, lifo");
  table_refuses(R"("capacity": 4, "lanes": 2, "writer": {"kind": "removing"},
                   "unit": {"kind": "slices", "length": 2})",
                "table \"replay\": ");
  table_refuses(R"("capacity": 5, "rate_limiter": {"samples_per_insert": 2})",
                "rate_limiter.error_buffer: is missing");
  table_refuses(R"("capacity": 5, "rate_limiter": {"timeout_seconds": 0})",
                "rate_limiter.timeout_seconds: got 0");
  EXPECT_THAT(ServerConfig::Parse("{"), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace rill
