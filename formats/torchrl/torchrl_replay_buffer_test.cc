// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/torchrl/torchrl_replay_buffer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <ios>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/file_tree.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::rill::formats_internal::CopyTree;
using ::rill::formats_internal::ListFiles;
using ::rill::formats_internal::WriteInPlace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Form = TorchRlReplayBuffer::Form;

// A copy of what TorchRL wrote: testdata/README.md.
std::string Fixture(const std::string& name) {
  const std::string path = FreshPath(absl::StrCat("torchrl_", name));
  RILL_EXPECT_OK(CopyTree(
      absl::StrCat("formats/torchrl/testdata/replay_buffer/", name), path));
  return path;
}

void Replace(const std::string& path, const std::string& from,
             const std::string& to) {
  const auto text = ReadFile(path);
  RILL_ASSERT_OK(text.status());
  const std::string changed = absl::StrReplaceAll(*text, {{from, to}});
  ASSERT_NE(changed, *text) << path;
  WriteInPlace(path, changed);
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  const auto flat = tensor.Flat<T>();
  RILL_EXPECT_OK(flat.status());
  return flat.ok() ? std::vector<T>(flat->begin(), flat->end())
                   : std::vector<T>();
}
template <typename T = float>
std::vector<T> Values(const TensorDict& rows, const std::string& key) {
  const auto tensor = rows.Get(key);
  RILL_EXPECT_OK(tensor.status());
  return tensor.ok() ? Values<T>(*tensor->Contiguous()) : std::vector<T>();
}

Tensor Floats(const std::vector<float>& values, const Shape& shape) {
  return *Tensor::From<float>(values, shape);
}

std::vector<std::string> Refused(const TorchRlReplayBuffer& buffer) {
  std::vector<std::string> names;
  for (const RefusedEntry& entry : buffer.refused) names.push_back(entry.key);
  return names;
}

TorchRlReplayBuffer Read(const std::string& path,
                         const ReadTorchRlOptions& options = {}) {
  auto buffer = ReadTorchRlReplayBuffer(path, options);
  RILL_EXPECT_OK(buffer.status());
  return buffer.ok() ? *std::move(buffer) : TorchRlReplayBuffer();
}

void ExpectSameTensor(const std::optional<Tensor>& a,
                      const std::optional<Tensor>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a.has_value()) {
    EXPECT_THAT(a->BitEquals(*b), IsOkAndHolds(true));
  }
}

void ExpectSameSampler(const TorchRlSampler& a, const TorchRlSampler& b) {
  ASSERT_EQ(a.index(), b.index());
  if (const auto* x = std::get_if<TorchRlPriorities>(&a)) {
    const auto& y = std::get<TorchRlPriorities>(b);
    EXPECT_EQ(x->alpha, y.alpha);
    EXPECT_EQ(x->beta, y.beta);
    EXPECT_EQ(x->epsilon, y.epsilon);
    EXPECT_EQ(x->max_priority, y.max_priority);
    EXPECT_EQ(x->max_row, y.max_row);
    ExpectSameTensor(x->values, y.values);
  } else if (const auto* x = std::get_if<TorchRlEpoch>(&a)) {
    const auto& y = std::get<TorchRlEpoch>(b);
    EXPECT_EQ(x->num_rows, y.num_rows);
    EXPECT_EQ(x->drop_last, y.drop_last);
    EXPECT_EQ(x->ran_out, y.ran_out);
    ExpectSameTensor(x->remaining, y.remaining);
  } else if (const auto* x = std::get_if<TorchRlStaleness>(&a)) {
    const auto& y = std::get<TorchRlStaleness>(b);
    EXPECT_EQ(x->consumer_version, y.consumer_version);
    EXPECT_EQ(x->max_staleness, y.max_staleness);
  }
}

void ExpectSame(const TorchRlReplayBuffer& a, const TorchRlReplayBuffer& b) {
  EXPECT_EQ(a.form, b.form);
  RILL_EXPECT_OK(a.rows.CheckEqual(b.rows));
  EXPECT_EQ(a.capacity, b.capacity);
  EXPECT_EQ(a.cursor, b.cursor);
  EXPECT_EQ(a.write_count, b.write_count);
  EXPECT_EQ(a.batch_size, b.batch_size);
  EXPECT_EQ(a.consume_after_n_samples, b.consume_after_n_samples);
  ExpectSameSampler(a.sampler, b.sampler);
  ExpectSameTensor(a.generations, b.generations);
  ExpectSameTensor(a.rng_state, b.rng_state);
  ASSERT_EQ(a.top_k.has_value(), b.top_k.has_value());
  if (a.top_k) {
    EXPECT_EQ(a.top_k->rank_key, b.top_k->rank_key);
    ExpectSameTensor(a.top_k->heap, b.top_k->heap);
  }
}

TEST(TorchRlReplayBufferTest, Example) {
  const std::string directory = Fixture("a");
  const std::string other = FreshPath("torchrl_example");
  const auto run = [&]() -> absl::Status {
    RILL_ASSIGN_OR_RETURN(TorchRlReplayBuffer buffer,
                          ReadTorchRlReplayBuffer(directory));
    buffer.sampler = {};
    RILL_RETURN_IF_ERROR(WriteTorchRlReplayBuffer(buffer, other));
    return absl::OkStatus();
  };
  RILL_ASSERT_OK(run());
  EXPECT_EQ(Read(other).sampler.index(), 0);
}

TEST(TorchRlReplayBufferTest, ReadsRowsCursorCountsAndBatchSize) {
  const TorchRlReplayBuffer buffer = Read(Fixture("b"));
  EXPECT_EQ(buffer.form, Form::kTensorDict);
  EXPECT_THAT(Values(buffer.rows, "obs"), ElementsAre(8, 9, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(buffer.capacity, 8);
  EXPECT_EQ(buffer.cursor, 2);
  EXPECT_EQ(buffer.write_count, 10);
  EXPECT_EQ(buffer.batch_size, 2);
  EXPECT_EQ(buffer.consume_after_n_samples, std::nullopt);
  EXPECT_EQ(buffer.sampler.index(), 0);
  ASSERT_TRUE(buffer.rng_state.has_value());
  EXPECT_EQ(buffer.rng_state->shape(), Shape({5056}));
  EXPECT_THAT(buffer.refused, IsEmpty());
}

TEST(TorchRlReplayBufferTest, ReadsOnlyRowsThatWereWritten) {
  const TorchRlReplayBuffer buffer = Read(Fixture("a"));
  EXPECT_THAT(Values(buffer.rows, "obs"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Values<int64_t>(buffer.rows, "index"),
              ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(buffer.capacity, 8);
  EXPECT_EQ(buffer.cursor, 5);
}

TEST(TorchRlReplayBufferTest, ReadsPriorities) {
  const TorchRlReplayBuffer buffer = Read(Fixture("a"));
  const auto& priorities = std::get<TorchRlPriorities>(buffer.sampler);
  EXPECT_EQ(priorities.alpha, 0.7);
  EXPECT_EQ(priorities.beta, 0.5);
  EXPECT_EQ(priorities.epsilon, 1e-8);
  EXPECT_EQ(priorities.max_priority, 1.0);
  EXPECT_EQ(priorities.max_row, 0);
  EXPECT_THAT(Values<double>(priorities.values),
              ElementsAre(1, 1, 1, 1, 1, 0, 0, 0));
}

TEST(TorchRlReplayBufferTest, ReadsWhatIsLeftOfAnEpoch) {
  const TorchRlReplayBuffer buffer = Read(Fixture("c"));
  const auto& epoch = std::get<TorchRlEpoch>(buffer.sampler);
  EXPECT_EQ(epoch.num_rows, 5);
  EXPECT_FALSE(epoch.drop_last);
  EXPECT_FALSE(epoch.ran_out);
  EXPECT_THAT(Values<int64_t>(*epoch.remaining), ElementsAre(2, 1, 3));
  EXPECT_THAT(Values(buffer.rows, "obs"), ElementsAre(0, 1, 2, 3, 4));

  const TorchRlReplayBuffer fresh = Read(Fixture("c2"));
  EXPECT_EQ(std::get<TorchRlEpoch>(fresh.sampler).num_rows, 0);
  EXPECT_EQ(std::get<TorchRlEpoch>(fresh.sampler).remaining, std::nullopt);
}

TEST(TorchRlReplayBufferTest, ReadsTreesOfTensorsByTheirFiles) {
  const TorchRlReplayBuffer buffer = Read(Fixture("d"));
  EXPECT_EQ(buffer.form, Form::kPytree);
  EXPECT_THAT(buffer.rows.LeafKeys(), ElementsAre("x", "y/0", "y/1/z.w"));
  EXPECT_THAT(Values(buffer.rows, "x"), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(Values(buffer.rows, "y/0"), ElementsAre(0, 0, 0));
  EXPECT_THAT(Values(buffer.rows, "y/1/z.w"), ElementsAre(1, 1, 1));
  EXPECT_EQ(buffer.capacity, 8);
}

TEST(TorchRlReplayBufferTest, ReadsASingleTensor) {
  const TorchRlReplayBuffer buffer = Read(Fixture("e"));
  EXPECT_EQ(buffer.form, Form::kPytree);
  EXPECT_THAT(Values(buffer.rows, kTorchRlSingleTensor),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(buffer.rows.batch_shape(), Shape({3}));
}

TEST(TorchRlReplayBufferTest, ReadsLanesStepByStepAndGenerations) {
  const TorchRlReplayBuffer buffer = Read(Fixture("f"));
  EXPECT_EQ(buffer.rows.batch_shape(), Shape({4, 2}));
  EXPECT_THAT(Values(buffer.rows, "obs"), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_EQ(buffer.capacity, 10);
  EXPECT_EQ(buffer.cursor, 4);
  EXPECT_EQ(buffer.write_count, 4);
  EXPECT_THAT(Values<int64_t>(*buffer.generations),
              ElementsAre(0, 0, 0, 0, -1, -1, -1, -1, -1, -1));
}

TEST(TorchRlReplayBufferTest, ReadsTheLargestAndTheirHeap) {
  const TorchRlReplayBuffer buffer = Read(Fixture("h"));
  EXPECT_THAT(Values(buffer.rows, "r"), ElementsAre(3, 5));
  EXPECT_EQ(buffer.top_k->rank_key, "r");
  EXPECT_THAT(Values<float>(buffer.top_k->heap), ElementsAre(3, 0, 5, 1));
  EXPECT_EQ(buffer.write_count, 4);
}

// As TorchRL has them once it has loaded them: in their places again.
TEST(TorchRlReplayBufferTest, ReadsFlatRowsIntoTheirPlaces) {
  const TorchRlReplayBuffer buffer = Read(Fixture("k"));
  EXPECT_EQ(buffer.form, Form::kFlat);
  EXPECT_THAT(Values(buffer.rows, "obs"), ElementsAre(4, 5, 2, 3));
  EXPECT_THAT(Values(buffer.rows, "next/obs"), ElementsAre(5, 6, 3, 4));
  EXPECT_THAT(Values<int64_t>(buffer.rows, "action"), ElementsAre(4, 5, 2, 3));
  EXPECT_THAT(Values<bool>(buffer.rows, "next/done"),
              ElementsAre(false, true, true, false));
  EXPECT_THAT(Values<bool>(buffer.rows, "done"),
              ElementsAre(false, false, false, false));
  EXPECT_EQ(buffer.rows.Find("reward"), nullptr);
  EXPECT_THAT(Values(buffer.rows, "next/reward"), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(buffer.cursor, 2);
}

TEST(TorchRlReplayBufferTest, ReadsNestedRows) {
  const TorchRlReplayBuffer buffer = Read(Fixture("l"));
  EXPECT_EQ(buffer.form, Form::kNested);
  EXPECT_THAT(Values(buffer.rows, "obs"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Values(buffer.rows, "next/obs"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(buffer.rows.Find("obs")->shape(), Shape({6, 1}));
}

TEST(TorchRlReplayBufferTest, WritesWhatItReadsTheSame) {
  for (const char* name : {"a", "b", "c", "c2", "e", "f", "h", "k", "l"}) {
    SCOPED_TRACE(name);
    const std::string path = Fixture(name);
    const TorchRlReplayBuffer buffer = Read(path);
    const std::string copy = FreshPath("torchrl_copy");
    RILL_ASSERT_OK(WriteTorchRlReplayBuffer(buffer, copy));
    ExpectSame(Read(copy), buffer);
    // And over itself, though it is mapped.
    RILL_ASSERT_OK(WriteTorchRlReplayBuffer(buffer, path));
    ExpectSame(Read(path), buffer);
    RILL_ASSERT_OK(RemoveAll(JoinPath(path, "prefetch.pkl")));
    EXPECT_EQ(ListFiles(copy), ListFiles(path));
  }
}

// Where TorchRL leaves nothing uninitialised, files are its own byte for byte,
// both trees of priorities too.
TEST(TorchRlReplayBufferTest, WritesThePeersBytes) {
  for (const char* name : {"a", "b", "f", "h", "k", "l"}) {
    SCOPED_TRACE(name);
    const std::string path = Fixture(name);
    const std::string copy = FreshPath("torchrl_copy");
    RILL_ASSERT_OK(WriteTorchRlReplayBuffer(Read(path), copy));
    for (const std::string& file : ListFiles(copy)) {
      if (!absl::EndsWith(file, ".memmap")) continue;
      EXPECT_EQ(*ReadFile(JoinPath(copy, file)),
                *ReadFile(JoinPath(path, file)))
          << file;
    }
  }
}

TEST(TorchRlReplayBufferTest, WritesStalenessStatesAndEveryForm) {
  TorchRlReplayBuffer buffer{.capacity = 3, .cursor = 2, .write_count = 2};
  buffer.rows = TensorDict({2});
  RILL_ASSERT_OK(buffer.rows.Set("a/b", Floats({1, 2}, {2})));
  RILL_ASSERT_OK(buffer.rows.Set("a/none", Floats({}, {2, 0})));
  buffer.sampler = TorchRlStaleness{.consumer_version = 7, .max_staleness = 3};
  const std::string path = FreshPath("torchrl_forms");
  for (const Form form : {Form::kTensorDict, Form::kPytree}) {
    buffer.form = form;
    RILL_ASSERT_OK(WriteTorchRlReplayBuffer(buffer, path));
    ExpectSame(Read(path), buffer);
  }
}

TEST(TorchRlReplayBufferTest, AddsTheLeafOfTensorDictWriters) {
  TorchRlReplayBuffer buffer = Read(Fixture("f"));
  RILL_ASSERT_OK(buffer.rows.Delete("index"));
  const std::string path = FreshPath("torchrl_index");
  RILL_ASSERT_OK(WriteTorchRlReplayBuffer(buffer, path, {.add_index = true}));
  ExpectSame(Read(path), Read(Fixture("f")));
}

// C13 for our files: rows that were not written take no room, though files have
// the size that TorchRL asks for.
TEST(TorchRlReplayBufferTest, C13UnwrittenRowsTakeNoRoomAndBytesRepeat) {
  TorchRlReplayBuffer buffer{
      .capacity = int64_t{1} << 20, .cursor = 1000, .write_count = 1000};
  buffer.rows = TensorDict({1000});
  RILL_ASSERT_OK(buffer.rows.Set(
      "obs", Floats(std::vector<float>(64'000, 1.5f), {1000, 64})));
  const std::string paths[] = {FreshPath("torchrl_c13"),
                               FreshPath("torchrl_c13_again")};
  for (const std::string& path : paths) {
    RILL_ASSERT_OK(WriteTorchRlReplayBuffer(buffer, path));
    struct stat info;
    ASSERT_EQ(stat(JoinPath(path, "storage/obs.memmap").c_str(), &info), 0);
    EXPECT_EQ(info.st_size, int64_t{256} << 20);
    EXPECT_LT(info.st_blocks * 512, 1 << 20);
  }
  const TorchRlReplayBuffer a = Read(paths[0]);
  ExpectSame(a, Read(paths[1]));
  EXPECT_EQ(ListFiles(paths[0]), ListFiles(paths[1]));
  for (const std::string& file : ListFiles(paths[0])) {
    if (absl::EndsWith(file, "obs.memmap")) continue;
    EXPECT_EQ(*ReadFile(JoinPath(paths[0], file)),
              *ReadFile(JoinPath(paths[1], file)));
  }
  // Behind the rows, where the file still has room, there is nothing.
  for (const std::string& path : paths) {
    std::ifstream file(JoinPath(path, "storage/obs.memmap"), std::ios::binary);
    std::string bytes(1 << 20, 'x');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good());
    EXPECT_EQ(bytes.find_first_not_of('\0', 256'000), std::string::npos);
  }
}

// Saves from before the version was written: (6 + eps) ^ 0.6 at row 5.
TEST(TorchRlReplayBufferTest, C10OldSavesHaveTheLargestPriorityRecomputed) {
  const std::string path = Fixture("a");
  TorchRlReplayBuffer buffer = Read(path);
  auto& priorities = std::get<TorchRlPriorities>(buffer.sampler);
  priorities.alpha = 0.6;
  priorities.values = *priorities.values.Clone();
  const double value = std::pow(6 + 1e-8, 0.6);
  priorities.values.data<double>()[4] = 0.5;
  priorities.values.data<double>()[3] = value;
  priorities.max_priority = value;
  priorities.max_row = 3;
  RILL_ASSERT_OK(WriteTorchRlReplayBuffer(buffer, path));
  const auto read = [&](bool within) {
    return std::get<TorchRlPriorities>(
        Read(path, {.max_priority_within_buffer = within}).sampler);
  };
  EXPECT_EQ(read(true).max_priority, value);  // It says what it is.
  Replace(JoinPath(path, "sampler/sampler_metadata.json"),
          ",\"_schema_version\":1", "");
  EXPECT_NEAR(*read(true).max_priority, 6.0, 1e-12);
  EXPECT_EQ(read(true).max_row, 3);
  EXPECT_EQ(read(false).max_priority, value);
}

TEST(TorchRlReplayBufferTest, CountsThatWentBelowZeroAreMended) {
  const std::string path = Fixture("b");
  Replace(JoinPath(path, "writer/metadata.json"), "10", "-2147483646");
  EXPECT_EQ(Read(path).write_count, (int64_t{1} << 31) + 2);
}

TEST(TorchRlReplayBufferTest, PicklesAreNamedAndTheRestIsRead) {
  const std::string path = Fixture("b");
  WriteInPlace(JoinPath(path, "prefetch.pkl"), "\x80\x04.");
  WriteInPlace(JoinPath(path, "transform.t"), "PK");
  RILL_ASSERT_OK(CreateDirectories(JoinPath(path, "sampler")));
  WriteInPlace(JoinPath(path, "sampler/consuming_sampler.pt"), "PK");
  RILL_ASSERT_OK(CreateDirectories(JoinPath(path, "storage/agent")));
  WriteInPlace(JoinPath(path, "storage/agent/meta.json"),
               R"({"_type":"<class 'tensordict.tensorclass.NonTensorData'>",)"
               R"("_is_non_tensor":true,"_metadata":null})");
  WriteInPlace(JoinPath(path, "storage/agent/other.pickle"), "\x80\x04.");
  Replace(JoinPath(path, "storage/meta.json"),
          "\"obs\":", R"("agent":{"type":"NonTensorData"},"obs":)");
  const TorchRlReplayBuffer buffer = Read(path);
  EXPECT_THAT(Refused(buffer),
              ElementsAre("storage/agent", "sampler/consuming_sampler.pt",
                          "prefetch.pkl", "transform.t"));
  for (const RefusedEntry& entry : buffer.refused) {
    EXPECT_THAT(entry.reason, HasSubstr("pickle")) << entry.key;
  }
  EXPECT_THAT(Values(buffer.rows, "obs"), ElementsAre(8, 9, 2, 3, 4, 5, 6, 7));
}

TEST(TorchRlReplayBufferTest, OtherStoragesAreRefusedByName) {
  EXPECT_THAT(ReadTorchRlReplayBuffer(Fixture("g")),
              IsInvalidArgument("list of compressed"));
  EXPECT_THAT(ReadTorchRlReplayBuffer(Fixture("i")),
              IsInvalidArgument("ensemble"));
  EXPECT_THAT(ReadTorchRlReplayBuffer(FreshPath("torchrl_none")), IsNotFound());
}

TEST(TorchRlReplayBufferTest, SavesThatBrokeOffSaySo) {
  EXPECT_THAT(ReadTorchRlReplayBuffer(Fixture("j")),
              IsDataLoss("buffer_metadata.json"));
  for (const char* file :
       {"storage/meta.json", "storage/obs.memmap", "writer/metadata.json",
        "storage/storage_metadata.json", "sampler/sumtree.memmap",
        "sampler/sampler_metadata.json"}) {
    const std::string path = Fixture("a");
    RILL_ASSERT_OK(RemoveAll(JoinPath(path, file)));
    EXPECT_THAT(ReadTorchRlReplayBuffer(path), IsDataLoss(path)) << file;
  }
  for (const char* name : {"shift", "is_full"}) {
    const std::string path = Fixture("k");
    const std::string storage = JoinPath(path, "storage");
    RILL_ASSERT_OK(RemoveAll(JoinPath(storage, name)));
    Replace(JoinPath(storage, "meta.json"),
            absl::StrCat("\"", name, "\":{\"type\":\"NonTensorData\"},"), "");
    EXPECT_THAT(ReadTorchRlReplayBuffer(path), IsDataLoss(path)) << name;
  }
}

TEST(TorchRlReplayBufferTest, WhatContradictsItselfIsRefused) {
  struct Case {
    const char* fixture;
    const char* file;
    const char* from;
    const char* to;
  };
  const Case cases[] = {
      {"a", "storage/storage_metadata.json", "\"len\": 5", "\"len\": 9"},
      {"a", "storage/storage_metadata.json", "\"len\": 5", "\"len\": -1"},
      {"f", "storage/storage_metadata.json", "\"len\": 8", "\"len\": 7"},
      {"a", "writer/metadata.json", "\"cursor\": 5", "\"cursor\": 8"},
      {"a", "writer/metadata.json", "\"cursor\": 5", "\"cursor\": 0.5"},
      {"a", "sampler/sampler_metadata.json", "8.0", "9.0"},
      {"a", "sampler/sampler_metadata.json", "8.0", "4.0"},
      {"a", "sampler/sampler_metadata.json", "8.0", "8e300"},
      {"a", "sampler/sampler_metadata.json", "1e-08", "NaN"},
      {"a", "sampler/sampler_metadata.json", "[1.0, 0.0]", "[1.0, 8.0]"},
      {"a", "buffer_metadata.json", "2", "-2"},
      {"e", "storage/storage_metadata.json", "[8, 2]", "[]"},
      {"e", "storage/storage_metadata.json", "[8, 2]", "[8, 3]"},
      {"d", "storage/storage_metadata.json", "y.0", "../y.0"},
      {"d", "storage/storage_metadata.json", "[8]", "[7]"},
      {"f", "writer/metadata.json", "[10]", "[11]"},
      {"h", "writer/metadata.json", "[2, 2]", "[4]"},
      {"h", "writer/metadata.json", "torch.float32", "torch.int32"},
      {"k", "storage/is_full/meta.json", "true", "false"},
      {"k", "storage/shift/meta.json", "\"data\":2", "\"data\":-1"},
      {"k", "storage/_storage_shape/meta.json", "[4]", "[5]"},
      {"k", "storage/_storage_shape/meta.json", "[4]", "[0]"},
      {"k", "storage/meta.json", "[6,1]", "[5,1]"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.fixture, "/", c.file, ": ", c.to));
    const std::string path = Fixture(c.fixture);
    const bool is_only_there = std::string(c.to) == "false";
    Replace(JoinPath(path, c.file), is_only_there ? "\"data\":true" : c.from,
            is_only_there ? "\"data\":false" : c.to);
    EXPECT_THAT(ReadTorchRlReplayBuffer(path), IsDataLoss(path));
  }
}

TEST(TorchRlReplayBufferTest, RowsOfListsOutOfRangeAreRefused) {
  const std::string epoch = Fixture("c");
  const int64_t list[] = {2, 5, 3};
  WriteInPlace(JoinPath(epoch, "sampler/_sample_list.memmap"),
               {reinterpret_cast<const char*>(list), sizeof(list)});
  EXPECT_THAT(ReadTorchRlReplayBuffer(epoch), IsDataLoss("row 5"));
  const std::string heap = Fixture("h");
  const float values[] = {3, 0, 5, 2};
  WriteInPlace(JoinPath(heap, "writer/current_top_values.memmap"),
               {reinterpret_cast<const char*>(values), sizeof(values)});
  EXPECT_THAT(ReadTorchRlReplayBuffer(heap), IsDataLoss("row 2"));
}

TEST(TorchRlReplayBufferTest, LinksAreRefused) {
  const std::string path = Fixture("a");
  const std::string file = JoinPath(path, "sampler/sumtree.memmap");
  RILL_ASSERT_OK(RemoveAll(file));
  ASSERT_EQ(
      symlink(JoinPath(path, "sampler/mintree.memmap").c_str(), file.c_str()),
      0);
  EXPECT_THAT(ReadTorchRlReplayBuffer(path),
              IsInvalidArgument("symbolic link"));
}

TEST(TorchRlReplayBufferTest, WhatCannotBeWrittenIsNamed) {
  const TorchRlReplayBuffer good = Read(Fixture("k"));
  const std::string path = FreshPath("torchrl_bad");
  const auto refuses =
      [&](const std::function<void(TorchRlReplayBuffer*)>& edit,
          const std::string& name) {
        TorchRlReplayBuffer buffer = good;
        edit(&buffer);
        EXPECT_THAT(WriteTorchRlReplayBuffer(buffer, path),
                    IsInvalidArgument(name));
        EXPECT_FALSE(PathExists(path));
      };
  refuses([](auto* b) { b->capacity = 3; }, "capacity");
  refuses([](auto* b) { b->cursor = 4; }, "cursor");
  refuses([](auto* b) { b->write_count = -1; }, "write_count");
  refuses([](auto* b) { b->rows = TensorDict(); }, "rows");
  refuses([](auto* b) { b->sampler = TorchRlPriorities{}; }, "values");
  refuses([](auto* b) { b->generations = Floats({1}, {1}); }, "generations");
  refuses([](auto* b) { b->top_k = TorchRlTopK{}; }, "heap");
  refuses([](auto* b) { b->rng_state = Floats({1}, {1}); }, "rng_state");
  refuses(
      [](auto* b) {
        RILL_EXPECT_OK(b->rows.Set("next/obs", Floats({9, 6, 3, 4}, {4, 1})));
      },
      "next/obs");
  refuses([](auto* b) { RILL_EXPECT_OK(b->rows.Delete("next/done")); },
          "next/done");
  refuses([](auto* b) { RILL_EXPECT_OK(b->rows.Delete("obs")); }, "next/obs");
  refuses(
      [](auto* b) {
        b->form = Form::kPytree;
        RILL_EXPECT_OK(b->rows.Set("a.b", Floats({1, 2, 3, 4}, {4})));
      },
      "a.b");
  RILL_ASSERT_OK(CreateDirectories(path));
  WriteInPlace(JoinPath(path, "thesis.tex"), "mine");
  EXPECT_THAT(WriteTorchRlReplayBuffer(good, path), IsFailedPrecondition());
}

}  // namespace
}  // namespace rill
