// SPDX-License-Identifier: Apache-2.0
// Loads samplers' states: saved ones with some numbers changed, and any bytes.
// The checksum is put right, and states of other options are tried too. A
// refused state has changed nothing. An accepted one saves to bytes that load
// to the same again, and its plans are over rows that are there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/samplers/units/window_unit.h"
#include "rill/slots/slot.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

constexpr int64_t kBatchSize = 12;

std::unique_ptr<Selector> MakeSelector(int64_t kind) {
  switch (kind) {
    case 0:
      return *PrioritizedSelector::Create({});
    case 1:
      return MakeWithoutReplacementSelector();
    case 2:
      return MakeFifoSelector();
    case 3:
      return *MakeMaxHeapSelector();
    case 4:
      return MakeStalenessSelector();
    case 5:
      return *MakeConsumingSelector({.max_times_sampled = 3});
    default: {
      std::vector<MixturePart> parts;
      parts.push_back(
          {.selector = *MakeConsumingSelector({.inner = MakeLifoSelector()}),
           .share = 1});
      parts.push_back(
          {.selector = MakeWithoutReplacementSelector(), .share = 1});
      return *MakeMixtureSelector(std::move(parts));
    }
  }
}

std::unique_ptr<Unit> MakeUnit(int64_t kind) {
  switch (kind) {
    case 0:
      return MakeTransitionUnit();
    case 1:
      return *MakeSliceUnit({.length = 2});
    case 2:
      return *MakeSliceUnit(
          {.length = 2, .starts = SliceStarts::kOnePerTrajectory});
    case 3:
      return *MakeSequenceUnit({.length = 2, .burn_in = 1, .period = 3});
    default:
      return *MakeWindowUnit({.steps = 3});
  }
}

void Append(FuzzInput* input, StorageModel* model) {
  const int64_t lane = input->TakeSmall(0, model->lanes().count - 1);
  std::vector<StorageModel::Value> rows(input->TakeSmall(1, 6));
  for (StorageModel::Value& row : rows) {
    const auto bits = input->Take<uint8_t>();
    row = {.is_end = bits % 4 == 0, .id = bits / 64};
  }
  model->Append(lane, rows);
}

// Plans, and gives what was drawn priorities.
SamplePlan Step(const StorageModel& model, uint64_t batch, Sampler* sampler) {
  SamplePlan plan;
  const absl::Status status = sampler->Plan(
      {.batch_size = kBatchSize, .seed = 1, .batch_number = batch}, &plan);
  RILL_FUZZ_CHECK(status.ok() || absl::IsFailedPrecondition(status));
  if (!status.ok()) return {};
  RILL_FUZZ_CHECK(!plan.draws.empty());
  const std::vector<Slot> live = model.Live();
  const auto is_live = [&](Slot slot) {
    return std::find(live.begin(), live.end(), slot) != live.end();
  };
  std::vector<float> priorities;
  for (const Draw& draw : plan.draws) {
    RILL_FUZZ_CHECK(is_live(draw.slot));
    RILL_FUZZ_CHECK(draw.weight > 0 && draw.weight <= 1);
    priorities.push_back(static_cast<float>(draw.slot % 5));
  }
  RILL_FUZZ_CHECK(std::all_of(plan.rows.begin(), plan.rows.end(), is_live));
  RILL_FUZZ_CHECK(sampler->UpdatePriorities(plan.draws, priorities).ok());
  return plan;
}

void AppendNumber(int64_t value, std::string* bytes) {
  for (int i = 0; i < 8; ++i) {
    bytes->push_back(static_cast<char>(static_cast<uint64_t>(value) >> 8 * i));
  }
}

// Another state than `saved`, with a checksum that fits.
std::string Changed(const std::string& saved, FuzzInput* input) {
  // docs/formats/saved_state.md: magic and form.
  constexpr size_t kHeader = 12;
  std::string state = saved.substr(0, saved.size() - 4);
  // Numbers begin at any byte, as names lie between them.
  const auto places = static_cast<int64_t>(state.size() - kHeader - 7);
  const int64_t changes = input->TakeSmall(0, 6);
  for (int64_t i = 0; i < changes; ++i) {
    const auto at = static_cast<int64_t>(input->Take<uint16_t>()) % places;
    std::string number;
    AppendNumber(input->TakeHostile(), &number);
    state.replace(kHeader + at, 8, number);
  }
  switch (input->TakeSmall(0, 5)) {
    case 0:
      state.resize(kHeader + input->Take<uint16_t>() % places);
      break;
    case 1:
      state.resize(kHeader);
      state += input->TakeRest();
      break;
    case 2:
      AppendNumber(input->TakeHostile(), &state);
      break;
    default:
      break;
  }
  const auto crc = static_cast<uint32_t>(absl::ComputeCrc32c(state));
  for (int i = 0; i < 4; ++i) state.push_back(static_cast<char>(crc >> 8 * i));
  return state;
}

void Try(FuzzInput* input) {
  const int64_t selector = input->TakeSmall(0, 6);
  const int64_t unit = input->TakeSmall(0, 4);
  const auto make = [&] {
    return *MakeSampler(MakeSelector(selector), MakeUnit(unit), "Fuzzed");
  };
  const auto sampler = make();
  const auto twin = make();
  const int64_t shift = input->TakeSmall(0, 16);
  StorageModel model(
      {.count = input->TakeSmall(1, 3), .capacity = int64_t{1} << shift},
      {.ends = input->TakeSmall(0, 3) > 0, .ids = input->TakeSmall(0, 1) > 0});
  model.AddObserver(sampler->observer());
  const int64_t appends = input->TakeSmall(0, 5);
  for (int64_t i = 0; i < appends; ++i) {
    Append(input, &model);
    Step(model, static_cast<uint64_t>(i), sampler.get());
  }
  const std::string before = *sampler->SaveState();
  const std::string changed = Changed(before, input);
  std::vector<std::string> others;
  if (input->TakeSmall(0, 1) > 0) {
    for (const auto& value : sampler->traits().options.values()) {
      others.push_back(value.name);
    }
  }
  const absl::Status status = sampler->LoadState(changed, {.changed = others});
  const std::string after = *sampler->SaveState();
  if (!status.ok()) {
    RILL_FUZZ_CHECK(absl::IsDataLoss(status) ||
                    absl::IsFailedPrecondition(status));
    RILL_FUZZ_CHECK(after == before);
  }
  model.AddObserver(twin->observer());
  RILL_FUZZ_CHECK(twin->LoadState(after).ok());
  RILL_FUZZ_CHECK(*twin->SaveState() == after);
  for (uint64_t batch = 10; batch < 13; ++batch) {
    RILL_FUZZ_CHECK(Step(model, batch, sampler.get()).draws ==
                    Step(model, batch, twin.get()).draws);
    Append(input, &model);
  }
}

}  // namespace
}  // namespace rill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::FuzzInput input(data, size);
  rill::Try(&input);
  return 0;
}
