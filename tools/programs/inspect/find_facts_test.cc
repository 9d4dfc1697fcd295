// SPDX-License-Identifier: Apache-2.0
// The first part that inspect says of rows: text and JSON of directories that
// are made here.
#include "rill/tools/programs/inspect/find_facts.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/run/run_checkpoint.h"
#include "rill/replay/torchrl/torchrl.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/prioritized_slice_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/inspect/json_report.h"
#include "rill/tools/programs/inspect/saved.h"
#include "rill/tools/programs/inspect/test_steps.h"
#include "rill/tools/programs/inspect/text_report.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill::inspect {
namespace {

using formats_internal::CopyTree;
using formats_internal::WriteInPlace;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Saved Inspect(const std::string& path, const FactOptions& options = {}) {
  absl::StatusOr<Saved> saved = OpenSaved(path);
  RILL_EXPECT_OK(saved.status());
  if (!saved.ok()) return {};
  AddFacts(path, options, &*saved);
  return *std::move(saved);
}

// The text up to the manifest's fields.
std::string Head(const std::string& path) {
  const std::string text = *TextReport(Inspect(path), "d");
  return text.substr(0, text.find("  lane_capacity "));
}

// The JSON behind the parts.
std::string Tail(const Saved& saved) {
  const std::string json = *JsonReport(saved);
  const size_t at = json.find("\"rows\":{\"live\"");
  return at == std::string::npos ? json : json.substr(at);
}

std::unique_ptr<Storage> MakeStorage(const std::string& path, int64_t lanes,
                                     int64_t lane_slots) {
  return *MemmapStorage::Create({.directory = path,
                                 .capacity = lanes * lane_slots,
                                 .lanes = lanes,
                                 .layout = StorageLayout::kRows});
}

TEST(FindFactsTest, LiveStorageDirectory) {
  const std::string path = FreshPath("live");
  const auto storage = MakeStorage(path, 2, 8);
  RILL_ASSERT_OK(storage->Extend(MakeSteps(2, 5, 0, 2)).status());
  EXPECT_EQ(
      Head(path),
      absl::StrCat(R"(d: directory of Rill, kind storage_directory, version 1
  rows      10 live of 16 slots in 2 lanes
  cursors   5 5 steps appended, oldest live 0 0
  writer    process )",
                   getpid(), R"( has it open
  episodes  4 complete of 2 steps, 2 begun or cut
  returns   min 2, mean 3, max 4
  age       oldest row 4 steps back
  policy    versions 0 to 4
)"));
  EXPECT_EQ(
      Tail(Inspect(path)),
      absl::StrCat(
          R"("rows":{"live":10,"slots":16,"lanes":2,"cursors":[5,5],)"
          R"("oldest":[0,0],"read":10},"episodes":{"complete":4,"partial":2,)"
          R"("lengths":{"count":4,"min":2,"mean":2,"max":2},)"
          R"("returns":{"count":4,"min":2,"mean":3,"max":4}},)"
          R"("age":{"steps":4,"policy_versions":[0,4]},"writer":"process )",
          getpid(), R"("})"));
}

TEST(FindFactsTest, ClosedStorageHasNoWriter) {
  const std::string path = FreshPath("closed");
  RILL_ASSERT_OK(
      MakeStorage(path, 1, 8)->Extend(MakeSteps(1, 3, 0, 3)).status());
  const Saved saved = Inspect(path);
  ASSERT_TRUE(saved.facts.has_value());
  EXPECT_EQ(saved.facts->writer, "");
  EXPECT_THAT(saved.damage, IsEmpty());
  EXPECT_EQ(Head(path),
            R"(d: directory of Rill, kind storage_directory, version 1
  rows      3 live of 8 slots in 1 lane
  cursors   3 steps appended, oldest live 0
  episodes  1 complete of 3 steps, 0 begun or cut
  returns   min 3, mean 3, max 3
  age       oldest row 2 steps back
  policy    versions 0 to 2
)");
}

TEST(FindFactsTest, WrappedRingHasLostItsOldestRows) {
  const std::string path = FreshPath("wrapped");
  RILL_ASSERT_OK(
      MakeStorage(path, 1, 8)->Extend(MakeSteps(1, 13, 0, 3)).status());
  EXPECT_EQ(Head(path),
            R"(d: directory of Rill, kind storage_directory, version 1
  rows      8 live of 8 slots in 1 lane
  cursors   13 steps appended, oldest live 5
  episodes  2 complete of 3 steps, 2 begun or cut
  returns   min 3, mean 3, max 3
  age       oldest row 7 steps back
  policy    versions 5 to 12
)");
}

TEST(FindFactsTest, AfterClearThereAreNoRows) {
  const std::string path = FreshPath("cleared");
  const auto storage = MakeStorage(path, 1, 8);
  RILL_ASSERT_OK(storage->Extend(MakeSteps(1, 5, 0, 2)).status());
  RILL_ASSERT_OK(storage->Clear());
  const std::string text = Head(path);
  EXPECT_THAT(text, HasSubstr("  rows      0 live of 8 slots in 1 lane\n"));
  EXPECT_THAT(text, HasSubstr("  episodes  0 complete, 0 begun or cut\n"));
  EXPECT_THAT(text, Not(HasSubstr("returns")));
}

TEST(FindFactsTest, NothingWrittenYetIsSaid) {
  const std::string path = FreshPath("unwritten");
  const auto storage = MakeStorage(path, 1, 8);
  EXPECT_THAT(OpenSaved(path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("that no row was written to")));
}

TEST(FindFactsTest, NewestRowsAreLookedAtWhereThereAreTooMany) {
  const std::string path = FreshPath("many");
  RILL_ASSERT_OK(
      MakeStorage(path, 2, 16)->Extend(MakeSteps(2, 16, 0, 4)).status());
  const Saved saved = Inspect(path, {.max_rows = 14});
  EXPECT_EQ(saved.facts->rows_read, 14);
  EXPECT_EQ(saved.facts->live(), 32);
  EXPECT_EQ(saved.facts->episodes->lengths.count, 2);
  EXPECT_EQ(saved.facts->episodes->partial, 2);
  EXPECT_THAT(*TextReport(saved, "d"),
              HasSubstr("the newest 14 rows for what follows; --all for all"));
}

TEST(FindFactsTest, LeavesOfALiveStorageAreATable) {
  const std::string path = FreshPath("leaves");
  const auto storage = MakeStorage(path, 2, 8);
  TensorDict steps = MakeSteps(2, 12, 0, 2);
  float* const x = steps.Find("x")->data<float>();
  x[3] = 100;  // Overwritten since.
  x[4] = std::numeric_limits<float>::quiet_NaN();
  x[5] = -1.5f;
  x[23] = std::numeric_limits<float>::infinity();
  steps.Find("policy_version")->data<int64_t>()[8] = (int64_t{1} << 53) + 1;
  RILL_ASSERT_OK(storage->Extend(steps).status());
  const std::string text = *TextReport(Inspect(path, {.leaves = true}), "d");
  EXPECT_THAT(text, HasSubstr(R"(
leaves of all 16 rows:
  key             dtype    shape  min    max               NaN
  x               float32  [1]    -1.5   inf               1
  next/reward     float32  [1]    1      2                 0
  next/done       bool     [1]    false  true              0
  policy_version  int64    [1]    4      9007199254740993  0
fields and files:
)"));
  EXPECT_THAT(text, Not(HasSubstr("rill_spec")));
  EXPECT_EQ(*JsonReport(Inspect(path, {.leaves = true})),
            *JsonReport(Inspect(path)));
}

TEST(FindFactsTest, LeavesAreOfTheNewestRowsWhereThereAreTooMany) {
  const std::string path = FreshPath("many_leaves");
  RILL_ASSERT_OK(
      MakeStorage(path, 2, 16)->Extend(MakeSteps(2, 16, 0, 4)).status());
  EXPECT_THAT(
      *TextReport(Inspect(path, {.max_rows = 14, .leaves = true}), "d"),
      AllOf(HasSubstr("leaves of the newest 14 rows; --all for all:\n"),
            HasSubstr("policy_version  int64    [1]    9      15    0\n")));
}

// --- Saved ones --------------------------------------------------------------

std::unique_ptr<ReplayBuffer> MakeBuffer(std::shared_ptr<Storage> storage,
                                         std::unique_ptr<Sampler> sampler) {
  return *ReplayBuffer::Create({.storage = std::move(storage),
                                .sampler = std::move(sampler),
                                .batch_size = 2});
}

TEST(FindFactsTest, SavedBufferWithPriorities) {
  const std::string path = FreshPath("buffer");
  std::unique_ptr<Sampler> made = *MakePrioritizedSampler();
  Sampler& sampler = *made;
  const auto buffer =
      MakeBuffer(*DenseStorage::Create({.capacity = 8}), std::move(made));
  RILL_ASSERT_OK(buffer->Extend(MakeSteps(1, 4, 0, 2)).status());
  const std::vector<Draw> draws = {
      {.slot = 0}, {.slot = 1}, {.slot = 2}, {.slot = 3}};
  RILL_ASSERT_OK(sampler.UpdatePriorities(draws, {0.5f, 1.5f, 2, 4}));
  RILL_ASSERT_OK(buffer->Save(path));
  const Saved saved = Inspect(path);
  const std::string text = *TextReport(saved, "d");
  EXPECT_THAT(text,
              StartsWith(R"(d: directory of Rill, kind replay_buffer, version 1
  rows        4 live of 8 slots in 1 lane
  cursors     4 steps appended, oldest live 0
  episodes    2 complete of 2 steps, 0 begun or cut
  returns     min 2, mean 2, max 2
  priorities  min 0.5, mean 2, max 4, total 8
  age         oldest row 3 steps back
  policy      versions 0 to 3
)"));
  // Once, not again for its storage.
  EXPECT_EQ(text.find("live of"), text.rfind("live of"));
  EXPECT_THAT(Tail(saved),
              HasSubstr(R"("priorities":{"count":4,"min":0.5,"mean":2,)"
                        R"("max":4,"total":8})"));
}

TEST(FindFactsTest, StatesOfASavedBufferAreItsParts) {
  const std::string path = FreshPath("states");
  ReplayBuffer::Options options = {
      .storage = *DenseStorage::Create({.capacity = 8}),
      .sampler = MakeUniformSampler(),
      .rate_limiter = *RateLimiter::Create(RateLimiter::MinSize(1))};
  options.transforms.push_back(MakeFakeRowCounter());
  const auto buffer = *ReplayBuffer::Create(std::move(options));
  RILL_ASSERT_OK(buffer->Extend(MakeSteps(1, 4, 0, 2)).status());
  RILL_ASSERT_OK(buffer->Sample(3));
  RILL_ASSERT_OK(buffer->Save(path));
  const std::string json = *JsonReport(Inspect(path), {.values = true});
  EXPECT_THAT(json, HasSubstr(R"("inserts":{"dtype":"int64","shape":[],)"
                              R"("values":[4]})"));
  EXPECT_THAT(json, HasSubstr(R"("type":"RateLimiter","version":1)"));
  EXPECT_THAT(json, HasSubstr(R"("0/rows":{"dtype":"int64","shape":[],)"
                              R"("values":[3]})"));
  EXPECT_THAT(json, HasSubstr(R"("type":"TransformStage","version":1)"));
}

TEST(FindFactsTest, PrioritiesOfSlicesAreFoundToo) {
  const std::string path = FreshPath("slices");
  const auto buffer =
      MakeBuffer(*DenseStorage::Create({.capacity = 8}),
                 *MakePrioritizedSliceSampler({}, {.length = 2}));
  RILL_ASSERT_OK(buffer->Extend(MakeSteps(1, 5, 0, 4)).status());
  RILL_ASSERT_OK(buffer->Save(path));
  const Saved saved = Inspect(path);
  ASSERT_TRUE(saved.facts->priorities.has_value());
  EXPECT_EQ(saved.facts->priorities->count, 5);
  EXPECT_EQ(saved.facts->priorities->total, 5);
}

TEST(FindFactsTest, PrioritiesOfSequencesUnderAnyNameAreFoundToo) {
  const std::string path = FreshPath("sequences");
  const auto buffer = MakeBuffer(
      *DenseStorage::Create({.capacity = 8}),
      *MakeSampler(*PrioritizedSelector::Create(),
                   *MakeSequenceUnit({.length = 2, .period = 2}), "Mine"));
  RILL_ASSERT_OK(buffer->Extend(MakeSteps(1, 11, 0, 4)).status());
  RILL_ASSERT_OK(buffer->Save(path));
  const Saved saved = Inspect(path);
  EXPECT_THAT(saved.damage, IsEmpty());
  ASSERT_TRUE(saved.facts->priorities.has_value());
  EXPECT_EQ(saved.facts->priorities->count, 8);
}

TEST(FindFactsTest, SavedPositionHasCursorsAndPriorities) {
  const std::string path = FreshPath("position");
  std::shared_ptr<Storage> storage = MakeStorage(FreshPath("rows"), 2, 4);
  const auto buffer = MakeBuffer(storage, *MakePrioritizedSampler());
  RILL_ASSERT_OK(buffer->Extend(MakeSteps(2, 6, 0, 2)).status());
  RILL_ASSERT_OK(buffer->SavePosition(path));
  RILL_ASSERT_OK(buffer->Extend(MakeSteps(2, 1, 6, 2)).status());
  EXPECT_THAT(*TextReport(Inspect(path), "d"),
              StartsWith(R"(d: directory of Rill, kind replay_buffer, version 2
  rows        8 live of 8 slots in 2 lanes
  cursors     6 6 steps appended, oldest live 2 2
  priorities  min 1, mean 1, max 1, total 8
  age         oldest row 3 steps back
)"));
}

TEST(FindFactsTest, BuffersOfARunHaveTheRowsOfTheStorageTheyShare) {
  const std::string path = FreshPath("run");
  const std::shared_ptr<Storage> storage =
      *DenseStorage::Create({.capacity = 8});
  const auto actor = MakeBuffer(storage, *MakePrioritizedSampler());
  const auto critic = MakeBuffer(storage, MakeUniformSampler());
  RILL_ASSERT_OK(actor->Extend(MakeSteps(1, 5, 0, 2)).status());
  RILL_ASSERT_OK(RunCheckpoint::Save(
      path, {.buffers = {{"actor", actor.get()}, {"critic", critic.get()}}}));
  const Saved saved = Inspect(path);
  EXPECT_FALSE(saved.is_damaged());
  EXPECT_EQ(saved.parts.at("buffers/0").facts->live(), 5);
  EXPECT_EQ(saved.parts.at("buffers/0").facts->priorities->count, 5);
  EXPECT_EQ(saved.parts.at("buffers/1").facts->live(), 5);
  EXPECT_FALSE(saved.parts.at("buffers/1").facts->priorities.has_value());
}

TEST(FindFactsTest, UniformSamplersHaveNoPriorities) {
  const std::string path = FreshPath("uniform");
  const auto buffer =
      MakeBuffer(*DenseStorage::Create({.capacity = 8}), MakeUniformSampler());
  RILL_ASSERT_OK(buffer->Extend(MakeSteps(1, 4, 0, 2)).status());
  RILL_ASSERT_OK(buffer->Save(path));
  EXPECT_FALSE(Inspect(path).facts->priorities.has_value());
}

// A directory, and a save of it in any number of chunks, against a list of
// steps.
TEST(FindFactsTest, DirectoriesAndSavesAgreeWithAListOfSteps) {
  const Rng rng(5);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    uint32_t draw = 0;
    const auto below = [&](int64_t bound) {
      return rng.UniformInt(static_cast<uint64_t>(round), draw++, bound);
    };
    const int64_t lanes = 1 + below(3), slots = 1 + below(700);
    const int64_t length = 1 + below(9), written = 1 + below(2 * slots);
    const std::string path = FreshPath(absl::StrCat("directory", round));
    const std::string save = FreshPath(absl::StrCat("save", round));
    {
      const auto storage = MakeStorage(path, lanes, slots);
      for (int64_t step = 0; step < written;) {
        const int64_t count = std::min(1 + below(slots), written - step);
        RILL_ASSERT_OK(
            storage->Extend(MakeSteps(lanes, count, step, length)).status());
        step += count;
      }
      RILL_ASSERT_OK(storage->Save(save));
    }
    const int64_t oldest = std::max<int64_t>(written - slots, 0);
    int64_t complete = 0, partial = 0;
    for (int64_t first = 0; first < written; first += length) {
      if (first + length <= oldest) continue;
      const bool is_whole = first >= oldest && first + length <= written;
      // That the row before the oldest one was an end cannot be seen.
      const bool is_seen = first > oldest || oldest == 0;
      (is_whole && is_seen ? complete : partial) += lanes;
    }
    for (const std::string& directory : {path, save}) {
      const Saved saved = Inspect(directory);
      EXPECT_THAT(saved.damage, IsEmpty());
      ASSERT_TRUE(saved.facts.has_value());
      EXPECT_EQ(saved.facts->live(), lanes * (written - oldest));
      EXPECT_EQ(saved.facts->age(), written - oldest - 1);
      EXPECT_EQ(saved.facts->episodes->lengths.count, complete);
      EXPECT_EQ(saved.facts->episodes->partial, partial);
      EXPECT_EQ(saved.facts->policy_versions, std::pair(oldest, written - 1));
      if (complete == 0) continue;
      EXPECT_EQ(saved.facts->episodes->lengths.min, length);
      EXPECT_EQ(saved.facts->episodes->lengths.max, length);
      EXPECT_EQ(saved.facts->episodes->returns->max, length * lanes);
    }
  }
}

// --- TorchRL's ---------------------------------------------------------------

std::string PeerBuffer(absl::string_view name) {
  const std::string path = FreshPath(absl::StrCat("peer_", name));
  RILL_EXPECT_OK(CopyTree(
      absl::StrCat("formats/torchrl/testdata/replay_buffer/", name), path));
  return path;
}

TEST(FindFactsTest, TorchRlBufferWithPriorities) {
  const Saved saved = Inspect(PeerBuffer("a"));
  EXPECT_EQ(saved.form, Form::kTorchRl);
  const std::string text = *TextReport(saved, "d");
  EXPECT_THAT(
      text, AllOf(StartsWith("d: TorchRL replay buffer, batch [5], 2 tensors"),
                  HasSubstr("  rows        5 live of 8 slots in 1 lane\n"),
                  HasSubstr("  priorities  min "),
                  HasSubstr("  sampler     prioritized, alpha 0.7, beta 0.5\n"),
                  HasSubstr("  batch_size  2\n"),
                  HasSubstr("  writer      cursor 5, 5 written\n"),
                  HasSubstr("obs ")));
  EXPECT_THAT(
      *JsonReport(saved),
      AllOf(StartsWith(R"({"batch_shape":[5],"leaves":{"obs":)"),
            HasSubstr(R"("torchrl":{"capacity":8,"cursor":5,"write_count":5,)"
                      R"("batch_size":2,)"),
            HasSubstr(R"("rows":{"live":5,"slots":8,"lanes":1,"cursors":[5],)"
                      R"("oldest":[0],"read":)")));
}

TEST(FindFactsTest, TorchRlLanesAndWrappedRings) {
  const Saved lanes = Inspect(PeerBuffer("f"));
  EXPECT_EQ(lanes.facts->lanes, (Lanes{.count = 2, .capacity = 10}));
  EXPECT_EQ(lanes.facts->live(), 8);
  const Saved wrapped = Inspect(PeerBuffer("b"));
  EXPECT_THAT(wrapped.facts->written, ElementsAre(10));
  EXPECT_THAT(wrapped.facts->oldest, ElementsAre(2));
}

// 13 steps of two lanes of 8 places: the oldest is in the middle.
TEST(FindFactsTest, TorchRlEpisodesAreCountedInTheOrderOfAge) {
  const std::string path = FreshPath("torchrl");
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            DenseStorage::Create({.capacity = 16, .lanes = 2}));
  RILL_ASSERT_OK(storage->Extend(MakeSteps(2, 13, 0, 3)).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TorchRlReplayBuffer buffer,
                            ToTorchRl(*storage, {.batch_size = 4}));
  RILL_ASSERT_OK(WriteTorchRlReplayBuffer(buffer, path));
  const Saved saved = Inspect(path);
  EXPECT_THAT(saved.damage, IsEmpty());
  EXPECT_THAT(saved.facts->written, ElementsAre(13, 13));
  EXPECT_THAT(saved.facts->oldest, ElementsAre(5, 5));
  EXPECT_EQ(saved.facts->episodes->lengths.count, 4);
  EXPECT_EQ(saved.facts->episodes->lengths.min, 3);
  EXPECT_EQ(saved.facts->episodes->lengths.max, 3);
  EXPECT_EQ(saved.facts->episodes->partial, 4);
  EXPECT_EQ(saved.facts->policy_versions, std::pair(int64_t{5}, int64_t{12}));
  const Saved newest = Inspect(path, {.max_rows = 10});
  EXPECT_EQ(newest.facts->rows_read, 10);
  EXPECT_EQ(newest.facts->episodes->lengths.count, 2);
  EXPECT_EQ(newest.facts->policy_versions, std::pair(int64_t{8}, int64_t{12}));
}

// --- Damage ------------------------------------------------------------------

TEST(FindFactsDamageTest, MissingRowsLeaveTheCursors) {
  const std::string path = FreshPath("no_rows");
  RILL_ASSERT_OK(
      MakeStorage(path, 1, 8)->Extend(MakeSteps(1, 5, 0, 2)).status());
  std::filesystem::remove(JoinPath(path, "rows.bin"));
  const Saved saved = Inspect(path);
  EXPECT_TRUE(saved.is_damaged());
  EXPECT_THAT(saved.damage, ElementsAre(HasSubstr("rows.bin")));
  EXPECT_THAT(Head(path),
              AllOf(HasSubstr("  rows     5 live of 8 slots in 1 lane\n"),
                    HasSubstr("  damaged  "), Not(HasSubstr("episodes"))));
  EXPECT_THAT(*JsonReport(saved), HasSubstr("\"damage\":[\""));
}

TEST(FindFactsDamageTest, BrokenRecordLeavesTheRest) {
  const std::string path = FreshPath("no_record");
  RILL_ASSERT_OK(
      MakeStorage(path, 1, 8)->Extend(MakeSteps(1, 5, 0, 2)).status());
  WriteInPlace(JoinPath(path, "rill.commit"), std::string(8192, '\0'));
  const Saved saved = Inspect(path);
  EXPECT_THAT(saved.damage, ElementsAre(HasSubstr("rill.commit")));
  EXPECT_THAT(Head(path), AllOf(HasSubstr("unknown of 8 slots in 1 lane"),
                                HasSubstr("rill.commit")));
}

TEST(FindFactsDamageTest, ManifestThatIsCutLeavesTheFiles) {
  const std::string path = FreshPath("no_manifest");
  RILL_ASSERT_OK(
      MakeStorage(path, 1, 8)->Extend(MakeSteps(1, 5, 0, 2)).status());
  WriteInPlace(JoinPath(path, "rill.json"), "{\"format\":");
  const Saved saved = Inspect(path);
  EXPECT_THAT(saved.damage, ElementsAre(HasSubstr("rill.json")));
  EXPECT_FALSE(saved.facts.has_value());
  EXPECT_THAT(*TextReport(saved, "d"), HasSubstr("  rows.bin "));
}

TEST(FindFactsDamageTest, ChunkThatIsCutIsAGap) {
  const std::string path = FreshPath("cut_chunk");
  const auto buffer = MakeBuffer(*DenseStorage::Create({.capacity = 8}),
                                 *MakePrioritizedSampler());
  RILL_ASSERT_OK(buffer->Extend(MakeSteps(1, 4, 0, 2)).status());
  RILL_ASSERT_OK(buffer->Save(path));
  WriteInPlace(JoinPath(path, "storage/rows/0-0.bin"), "short");
  const Saved saved = Inspect(path);
  EXPECT_TRUE(saved.is_damaged());
  EXPECT_EQ(saved.facts->live(), 4);
  EXPECT_FALSE(saved.facts->episodes.has_value());
  EXPECT_EQ(saved.facts->priorities->count, 4);
  EXPECT_THAT(*TextReport(saved, "d"),
              AllOf(HasSubstr("4 live"), HasSubstr("priorities  min 1"),
                    HasSubstr("0-0.bin\": size: got 5, want ")));
}

TEST(FindFactsDamageTest, TorchRlRowsThatAreCutLeaveTheCounts) {
  const std::string path = PeerBuffer("a");
  WriteInPlace(JoinPath(path, "storage/obs.memmap"), "short");
  const Saved saved = Inspect(path);
  EXPECT_THAT(saved.damage, ElementsAre(HasSubstr("obs.memmap")));
  EXPECT_EQ(saved.facts->live(), 5);
  EXPECT_THAT(*TextReport(saved, "d"),
              AllOf(StartsWith("d: TorchRL replay buffer, damaged\n"
                               "  rows     5 live\n"),
                    HasSubstr("storage/obs.memmap")));
}

}  // namespace
}  // namespace rill::inspect
