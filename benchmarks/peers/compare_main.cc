// SPDX-License-Identifier: Apache-2.0
// Rill's side of benchmarks/compare. It reads requests from standard input, one
// a line, and answers each with a line:
//   prepare OPERATION ARGUMENT...   "ready", or "missing WHY"
//   measure SECONDS                 "us MICROSECONDS", a call's mean
//
// The operations are these. ROW is 47B, 3KB or 56KB.
//   sample ROW CAPACITY BATCH           prioritized CAPACITY BATCH
//   extend ROW CAPACITY ROWS            slices STORED CAPACITY SLICES LENGTH
//   dict create|get|clone|stack         step LANES
//   collect LANES TIME
// Slices are sampled after a write of 1,000 rows, which is not in their time.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using Words = std::vector<std::string>;

// `calls` calls of what is measured; `before` is not timed.
struct Prepared {
  std::function<absl::Status()> before = nullptr;
  std::function<absl::Status()> run = nullptr;
  int64_t calls = 1;
};

absl::StatusOr<int64_t> NumberAt(const Words& words, size_t i) {
  int64_t number = 0;
  if (i >= words.size() || !absl::SimpleAtoi(words[i], &number) || number < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("argument ", i, ": want a number of at least 1"));
  }
  return number;
}

absl::StatusOr<TensorDictSpec> RowSpec(absl::string_view row) {
  LeafSpec seen = LeafSpec::Unbounded(DType::kFloat32, {4});
  if (row == "3KB") {
    seen = LeafSpec::Unbounded(DType::kFloat32, {384});
  } else if (row == "56KB") {
    seen = LeafSpec::Unbounded(DType::kUInt8, {4, 84, 84});
  } else if (row != "47B") {
    return absl::InvalidArgumentError(
        absl::StrCat("row: got ", row, ", want 47B, 3KB or 56KB"));
  }
  const LeafSpec flag = LeafSpec::Binary({1});
  const std::pair<const char*, LeafSpec> leaves[] = {
      {"observation", seen},
      {"action", LeafSpec::Unbounded(DType::kInt64, {})},
      {"next/observation", seen},
      {"next/reward", LeafSpec::Unbounded(DType::kFloat32, {1})},
      {"next/done", flag},
      {"next/terminated", flag},
      {"next/truncated", flag}};
  TensorDictSpec spec;
  for (const auto& [key, leaf] : leaves) {
    RILL_RETURN_IF_ERROR(spec.Set(key, leaf));
  }
  return spec;
}

// A buffer with `stored` rows, written 1,000 at a time.
struct Filled {
  std::shared_ptr<ReplayBuffer> buffer;
  TensorDict rows;
  TensorDict batch;  // The last sample.
};

absl::StatusOr<std::shared_ptr<Filled>> Fill(const TensorDictSpec& spec,
                                             int64_t stored, int64_t capacity,
                                             std::unique_ptr<Sampler> sampler,
                                             int64_t batch_size) {
  auto filled = std::make_shared<Filled>();
  RILL_ASSIGN_OR_RETURN(
      std::shared_ptr<Storage> storage,
      DenseStorage::Create({.capacity = capacity, .spec = spec}));
  RILL_ASSIGN_OR_RETURN(filled->buffer,
                        ReplayBuffer::Create({.storage = std::move(storage),
                                              .sampler = std::move(sampler),
                                              .batch_size = batch_size}));
  RILL_ASSIGN_OR_RETURN(filled->rows,
                        spec.Zero({std::min<int64_t>(1000, stored)}));
  filled->rows.Find("next/done")
      ->data<bool>()[filled->rows.batch_shape()[0] - 1] = true;
  for (int64_t n = 0; n < stored; n += filled->rows.batch_shape()[0]) {
    RILL_RETURN_IF_ERROR(filled->buffer->Extend(filled->rows).status());
  }
  return filled;
}

absl::StatusOr<Prepared> PrepareSample(const Words& words) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec spec, RowSpec(words[1]));
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, NumberAt(words, 2));
  RILL_ASSIGN_OR_RETURN(const int64_t batch, NumberAt(words, 3));
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<Filled> filled,
      Fill(spec, capacity, capacity, MakeUniformSampler(), batch));
  return Prepared{
      .run = [filled] { return filled->buffer->SampleInto(&filled->batch); }};
}

absl::StatusOr<Prepared> PrepareExtend(const Words& words) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec spec, RowSpec(words[1]));
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, NumberAt(words, 2));
  RILL_ASSIGN_OR_RETURN(const int64_t count, NumberAt(words, 3));
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<Filled> filled,
      Fill(spec, capacity, capacity, MakeUniformSampler(), 1));
  RILL_ASSIGN_OR_RETURN(filled->rows, spec.Zero({count}));
  return Prepared{.run = [filled] {
    return filled->buffer->Extend(filled->rows).status();
  }};
}

absl::StatusOr<Prepared> PreparePrioritized(const Words& words) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec spec, RowSpec("47B"));
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, NumberAt(words, 1));
  RILL_ASSIGN_OR_RETURN(const int64_t batch, NumberAt(words, 2));
  RILL_ASSIGN_OR_RETURN(auto sampler, MakePrioritizedSampler());
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<Filled> filled,
      Fill(spec, capacity, capacity, std::move(sampler), batch));
  std::vector<float> priorities(static_cast<size_t>(batch));
  for (size_t i = 0; i < priorities.size(); ++i) {
    priorities[i] = Rng(1).UniformFloat(0, static_cast<uint32_t>(i));
  }
  return Prepared{.run = [filled, priorities]() -> absl::Status {
    RILL_RETURN_IF_ERROR(filled->buffer->SampleInto(&filled->batch));
    return filled->buffer->UpdatePriorities(filled->batch, priorities);
  }};
}

absl::StatusOr<Prepared> PrepareSlices(const Words& words) {
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec spec, RowSpec("47B"));
  RILL_ASSIGN_OR_RETURN(const int64_t stored, NumberAt(words, 1));
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, NumberAt(words, 2));
  RILL_ASSIGN_OR_RETURN(const int64_t slices, NumberAt(words, 3));
  RILL_ASSIGN_OR_RETURN(const int64_t length, NumberAt(words, 4));
  RILL_ASSIGN_OR_RETURN(auto sampler, MakeSliceSampler({.length = length}));
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<Filled> filled,
      Fill(spec, stored, capacity, std::move(sampler), slices * length));
  return Prepared{
      .before =
          [filled] { return filled->buffer->Extend(filled->rows).status(); },
      .run = [filled] { return filled->buffer->SampleInto(&filled->batch); }};
}

absl::StatusOr<TensorDict> SixLeaves() {
  TensorDict dict({64});
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf, Tensor::Zeros(DType::kFloat32, {64, 4}));
    RILL_RETURN_IF_ERROR(dict.Set(key, std::move(leaf)));
  }
  return dict;
}

absl::StatusOr<Prepared> PrepareDict(const Words& words) {
  RILL_ASSIGN_OR_RETURN(const TensorDict dict, SixLeaves());
  const auto repeated = [](auto call) {
    constexpr int64_t kCalls = 100;
    return Prepared{.run = [call]() -> absl::Status {
                      for (int64_t i = 0; i < kCalls; ++i) {
                        RILL_RETURN_IF_ERROR(call());
                      }
                      return absl::OkStatus();
                    },
                    .calls = kCalls};
  };
  if (words[1] == "get") {
    return repeated([dict] { return dict.Get("f").status(); });
  }
  if (words[1] == "clone") {
    return repeated([dict] { return dict.Clone().status(); });
  }
  if (words[1] == "create") {
    return repeated([dict]() -> absl::Status {
      TensorDict made({64});
      for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
        RILL_RETURN_IF_ERROR(made.Set(key, *dict.Find(key)));
      }
      return absl::OkStatus();
    });
  }
  if (words[1] == "stack") {
    return repeated([dicts = std::vector<TensorDict>(64, dict)] {
      return Stack(dicts).status();
    });
  }
  return absl::InvalidArgumentError(absl::StrCat("dict: got ", words[1]));
}

// Lanes whose episode has ended are reset, as part of the step.
struct Stepped {
  std::unique_ptr<Env> env;
  StepDriver driver;
  Tensor action, ready;
  std::vector<uint8_t> mask;
};

absl::StatusOr<Prepared> PrepareStep(const Words& words) {
  RILL_ASSIGN_OR_RETURN(const int64_t lanes, NumberAt(words, 1));
  auto stepped = std::make_shared<Stepped>();
  RILL_ASSIGN_OR_RETURN(stepped->env, MakeCartPole({.lanes = lanes}));
  RILL_ASSIGN_OR_RETURN(stepped->driver,
                        StepDriver::Create(stepped->env.get(), nullptr));
  RILL_ASSIGN_OR_RETURN(const TensorDict drawn,
                        stepped->env->spec().action.Random({lanes}, Rng(1), 0));
  RILL_ASSIGN_OR_RETURN(stepped->ready, drawn.Get("action"));
  RILL_ASSIGN_OR_RETURN(stepped->action, stepped->env->step().Get("action"));
  RILL_RETURN_IF_ERROR(stepped->driver.ResetAll());
  return Prepared{.run = [stepped]() -> absl::Status {
    std::copy_n(stepped->ready.raw_data(), stepped->action.size_bytes(),
                stepped->action.raw_data());
    RILL_RETURN_IF_ERROR(stepped->driver.Step());
    const auto done = stepped->driver.done();
    stepped->mask.assign(done.begin(), done.end());
    if (std::count(stepped->mask.begin(), stepped->mask.end(), 1) == 0) {
      return absl::OkStatus();
    }
    return stepped->driver.Reset(stepped->mask);
  }};
}

absl::StatusOr<Prepared> PrepareCollect(const Words& words) {
  RILL_ASSIGN_OR_RETURN(const int64_t lanes, NumberAt(words, 1));
  RILL_ASSIGN_OR_RETURN(const int64_t time, NumberAt(words, 2));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Env> env,
                        MakeCartPole({.lanes = lanes}));
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<SyncCollector> collector,
      SyncCollector::Create(
          {.env = std::move(env), .frames_per_batch = lanes * time}));
  return Prepared{.run = [collector] { return collector->Next().status(); }};
}

absl::StatusOr<Prepared> Prepare(const Words& words) {
  using Maker = absl::StatusOr<Prepared> (*)(const Words&);
  static constexpr std::pair<const char*, Maker> kMakers[] = {
      {"sample", PrepareSample},
      {"extend", PrepareExtend},
      {"prioritized", PreparePrioritized},
      {"slices", PrepareSlices},
      {"dict", PrepareDict},
      {"step", PrepareStep},
      {"collect", PrepareCollect}};
  for (const auto& [name, maker] : kMakers) {
    if (words.size() > 1 && words[0] == name) return maker(words);
  }
  return absl::UnimplementedError("no such operation");
}

// Microseconds a call, over at least `seconds` of them.
absl::StatusOr<double> Measure(const Prepared& prepared, double seconds) {
  const Clock& clock = Clock::System();
  absl::Duration taken;
  int64_t calls = 0;
  while (calls == 0 || taken < absl::Seconds(seconds)) {
    if (prepared.before) {
      RILL_RETURN_IF_ERROR(prepared.before());
    }
    const absl::Time begin = clock.Now();
    RILL_RETURN_IF_ERROR(prepared.run());
    taken += clock.Now() - begin;
    calls += prepared.calls;
  }
  return absl::ToDoubleMicroseconds(taken) / static_cast<double>(calls);
}

std::string Answer(const std::string& line, Prepared* prepared) {
  Words words = absl::StrSplit(line, ' ');
  const std::string request = words.front();
  words.erase(words.begin());
  if (request == "prepare") {
    *prepared = {};
    absl::StatusOr<Prepared> made = Prepare(words);
    if (!made.ok()) return absl::StrCat("missing ", made.status().message());
    *prepared = *std::move(made);
    return "ready";
  }
  double seconds = 0;
  if (request != "measure" || words.size() != 1 ||
      !absl::SimpleAtod(words[0], &seconds) || !prepared->run) {
    return absl::StrCat("missing request: got ", line);
  }
  const absl::StatusOr<double> us = Measure(*prepared, seconds);
  return us.ok() ? absl::StrFormat("us %.9g", *us)
                 : absl::StrCat("missing ", us.status().message());
}

}  // namespace
}  // namespace rill

int main() {
  rill::Prepared prepared;
  char line[1024];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    const std::string request(absl::StripSuffix(line, "\n"));
    absl::PrintF("%s\n", rill::Answer(request, &prepared));
    std::fflush(stdout);
  }
  return 0;
}
