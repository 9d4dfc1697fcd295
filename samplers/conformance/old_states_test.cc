// SPDX-License-Identifier: Apache-2.0
// States of version 1 open: one of each selector and unit, as they were saved
// after the history below. A sampler that loads one plans as the one that was
// saved goes on.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/recent_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/samplers/units/window_unit.h"
#include "rill/slots/testing/storage_model.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kBatchSize = 6;
constexpr uint64_t kBatches = 5;
constexpr int kUnits = 4;

std::vector<std::unique_ptr<Selector>> MakeSelectors() {
  std::vector<std::unique_ptr<Selector>> all;
  all.push_back(MakeUniformSelector());
  all.push_back(*PrioritizedSelector::Create({}));
  all.push_back(MakeWithoutReplacementSelector());
  all.push_back(MakeFifoSelector());
  all.push_back(MakeLifoSelector());
  all.push_back(*MakeMinHeapSelector());
  all.push_back(*MakeMaxHeapSelector());
  all.push_back(MakeStalenessSelector());
  all.push_back(MakeRecentSelector());
  all.push_back(*MakeConsumingSelector(
      {.max_times_sampled = 9, .inner = MakeLifoSelector()}));
  std::vector<MixturePart> mixed;
  mixed.push_back({.selector = *MakeConsumingSelector({.max_times_sampled = 9}),
                   .share = 1});
  mixed.push_back(
      {.selector = *MakeConsumingSelector(
           {.max_times_sampled = 7, .inner = *PrioritizedSelector::Create({})}),
       .share = 2});
  all.push_back(*MakeMixtureSelector(std::move(mixed)));
  std::vector<MixturePart> plain;
  plain.push_back({.selector = MakeWithoutReplacementSelector(), .share = 1});
  plain.push_back({.selector = MakeUniformSelector(), .share = 1});
  all.push_back(*MakeMixtureSelector(std::move(plain)));
  return all;
}

std::unique_ptr<Unit> MakeUnit(int kind) {
  switch (kind) {
    case 0:
      return MakeTransitionUnit();
    case 1:
      return *MakeSliceUnit({.length = 2});
    case 2:
      return *MakeSequenceUnit({.length = 2, .period = 3});
    default:
      return *MakeWindowUnit({.steps = 3});
  }
}

// Two rings that have gone round once, in short episodes.
void Append(int64_t step, StorageModel* model) {
  std::vector<StorageModel::Value> rows(2);
  rows[0].is_end = step % 3 == 2;
  model->Append(step % 2, rows);
}

std::vector<SamplePlan> Go(uint64_t first, StorageModel* model,
                           const std::vector<Sampler*>& samplers) {
  std::vector<SamplePlan> plans(samplers.size());
  for (uint64_t batch = first; batch < first + kBatches; ++batch) {
    for (size_t i = 0; i < samplers.size(); ++i) {
      RILL_EXPECT_OK(samplers[i]->Plan(
          {.batch_size = kBatchSize, .seed = 1, .batch_number = batch},
          &plans[i]));
      std::vector<float> priorities;
      for (const Draw& draw : plans[i].draws) {
        priorities.push_back(static_cast<float>(1 + draw.slot % 5));
      }
      RILL_EXPECT_OK(samplers[i]->UpdatePriorities(plans[i].draws, priorities));
    }
    Append(static_cast<int64_t>(batch), model);
    Append(static_cast<int64_t>(batch) + 1, model);
    for (size_t i = 1; i < samplers.size(); ++i) {
      EXPECT_EQ(plans[i].draws, plans[0].draws) << batch;
      EXPECT_EQ(plans[i].rows, plans[0].rows) << batch;
    }
  }
  return plans;
}

TEST(OldStatesTest, LoadedSamplersGoOnAsTheSavedOnes) {
  const size_t num_selectors = MakeSelectors().size();
  for (size_t selector = 0; selector < num_selectors; ++selector) {
    for (int unit = 0; unit < kUnits; ++unit) {
      const std::string file = absl::StrCat("samplers/conformance/testdata/v1/",
                                            selector, "_", unit, ".state");
      SCOPED_TRACE(file);
      const auto make = [&] {
        return *MakeSampler(std::move(MakeSelectors()[selector]),
                            MakeUnit(unit), "Old");
      };
      StorageModel model({.count = 2, .capacity = 16}, {.ids = false});
      const auto saved = make();
      model.AddObserver(saved->observer());
      for (int64_t step = 0; step < 20; ++step) Append(step, &model);
      Go(0, &model, {saved.get()});
      if (const char* to = std::getenv("RILL_WRITE_STATES"); to != nullptr) {
        RILL_ASSERT_OK(WriteFileAtomically(
            absl::StrCat(to, "/", selector, "_", unit, ".state"),
            *saved->SaveState()));
        continue;
      }
      const auto loaded = make();
      model.AddObserver(loaded->observer());
      RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(file));
      RILL_ASSERT_OK(loaded->LoadState(bytes));
      EXPECT_EQ(*loaded->SaveState(), *saved->SaveState());
      Go(kBatches, &model, {saved.get(), loaded.get()});
    }
  }
}

}  // namespace
}  // namespace rill
