// SPDX-License-Identifier: Apache-2.0
//
// copy_replay rewrite FROM TO: reads the buffer that TorchRL saved, and writes
// it as it was read. Ends badly where it left something out.
// copy_replay reload FROM TO: in between makes a ReplayBuffer of it.
// copy_replay make TO: writes the buffers that replay.py knows.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/torchrl/torchrl.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using Form = TorchRlReplayBuffer::Form;

// A ReplayBuffer is made of `saved` and saved again. Parts that it has no place
// for are taken over from `saved`, so that the two can be compared whole.
absl::StatusOr<TorchRlReplayBuffer> Reloaded(const TorchRlReplayBuffer& saved) {
  PrioritizedSelector* selector = nullptr;
  RILL_ASSIGN_OR_RETURN(auto sampler, MakeTorchRlSampler(saved, &selector));
  RILL_ASSIGN_OR_RETURN(const auto buffer,
                        OpenTorchRl(saved, {.sampler = std::move(sampler)}));
  RILL_ASSIGN_OR_RETURN(
      TorchRlReplayBuffer again,
      ToTorchRl(*buffer, {.batch_size = 1, .selector = selector}));
  // Parts that a ReplayBuffer has no place for.
  again.form = saved.form;
  again.batch_size = saved.batch_size;
  again.generations = saved.generations;
  again.top_k = saved.top_k;
  again.rng_state = saved.rng_state;
  if (selector == nullptr) again.sampler = saved.sampler;
  // A writer of largest values counts what it was offered.
  if (saved.top_k) again.write_count = saved.write_count;
  return again;
}

absl::Status Copy(const std::string& from, const std::string& to,
                  bool is_reloaded) {
  RILL_ASSIGN_OR_RETURN(TorchRlReplayBuffer saved,
                        ReadTorchRlReplayBuffer(from));
  std::vector<std::string> refused;
  for (const RefusedEntry& entry : saved.refused) refused.push_back(entry.key);
  const bool has_index = saved.rows.Find("index") != nullptr;
  if (is_reloaded) {
    RILL_ASSIGN_OR_RETURN(saved, Reloaded(saved));
  }
  RILL_RETURN_IF_ERROR(WriteTorchRlReplayBuffer(
      saved, to, {.add_index = is_reloaded && has_index}));
  if (refused.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", from, "\": refused: ", absl::StrJoin(refused, ", ")));
}

// Steps first, first + 1, ...; one ends at each multiple of 4.
absl::StatusOr<TensorDict> Steps(int64_t lanes, int64_t first, int64_t count) {
  std::vector<float> now;
  std::vector<float> next;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    for (int64_t i = first; i < first + count; ++i) {
      now.push_back(static_cast<float>(100 * lane + i));
      next.push_back(now.back() + 1);
    }
  }
  const Shape batch = {lanes, count};
  TensorDict steps(batch);
  RILL_ASSIGN_OR_RETURN(Tensor obs,
                        Tensor::From<float>(now, batch.Concat({1})));
  RILL_RETURN_IF_ERROR(steps.Set("obs", std::move(obs)));
  RILL_ASSIGN_OR_RETURN(Tensor behind,
                        Tensor::From<float>(next, batch.Concat({1})));
  RILL_RETURN_IF_ERROR(steps.Set("next/obs", std::move(behind)));
  RILL_ASSIGN_OR_RETURN(Tensor done,
                        Tensor::Zeros(DType::kBool, batch.Concat({1})));
  for (size_t i = 0; i < now.size(); ++i) {
    done.data<bool>()[i] = static_cast<int64_t>(next[i]) % 4 == 0;
  }
  RILL_RETURN_IF_ERROR(steps.Set("next/done", std::move(done)));
  return steps;
}

// One not full, one full, one of two lanes; each in the forms of dictionaries.
absl::Status Make(const std::string& to) {
  struct Kind {
    const char* name;
    int64_t lanes, steps;
  };
  RILL_RETURN_IF_ERROR(CreateDirectories(to));
  for (const Kind& kind :
       {Kind{"part", 1, 7}, Kind{"full", 1, 17}, Kind{"lanes", 2, 17}}) {
    RILL_ASSIGN_OR_RETURN(
        auto storage, DenseStorage::Create(
                          {.capacity = 10 * kind.lanes, .lanes = kind.lanes}));
    PrioritizedSelector* selector;
    RILL_ASSIGN_OR_RETURN(auto sampler,
                          MakePrioritizedSampler({.alpha = 0.5}, &selector));
    RILL_ASSIGN_OR_RETURN(const auto buffer,
                          ReplayBuffer::Create({.storage = std::move(storage),
                                                .sampler = std::move(sampler),
                                                .batch_size = 4}));
    RILL_ASSIGN_OR_RETURN(const TensorDict steps,
                          Steps(kind.lanes, 0, kind.steps));
    RILL_RETURN_IF_ERROR(buffer->Extend(steps).status());
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, buffer->Sample(64));
    // Only rows that were drawn get a priority of their own: replay.py knows it
    // by the slot, and takes the others for new ones.
    RILL_ASSIGN_OR_RETURN(const auto index, batch.Flat<int64_t>("index"));
    std::vector<float> priorities;
    for (const int64_t slot : index) {
      priorities.push_back(static_cast<float>(slot % 10 + 1));
    }
    RILL_RETURN_IF_ERROR(buffer->UpdatePriorities(batch, priorities));
    RILL_ASSIGN_OR_RETURN(TorchRlReplayBuffer saved,
                          ToTorchRl(*buffer, {.selector = selector}));
    const std::pair<Form, const char*> forms[] = {{Form::kTensorDict, "dict"},
                                                  {Form::kFlat, "flat"},
                                                  {Form::kNested, "nested"}};
    for (const auto& [form, name] : forms) {
      saved.form = form;
      RILL_RETURN_IF_ERROR(WriteTorchRlReplayBuffer(
          saved, JoinPath(to, absl::StrCat(kind.name, "_", name))));
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "make") return Make(words[1]);
  if (words.size() == 3 && words[0] == "rewrite") {
    return Copy(words[1], words[2], /*is_reloaded=*/false);
  }
  if (words.size() == 3 && words[0] == "reload") {
    return Copy(words[1], words[2], /*is_reloaded=*/true);
  }
  return absl::InvalidArgumentError(
      "usage: copy_replay (rewrite | reload) FROM TO, or make TO");
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const absl::Status status =
      rill::Run(std::vector<std::string>(argv + 1, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
