// SPDX-License-Identifier: Apache-2.0
// Every option of every built-in selector, unit, unit transform, transform and
// writer is compared: changed alone, it is the one that is reported.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/option_values.h"
#include "rill/replay/options/option_changes.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/recent_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/samplers/units/hindsight_unit.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/samplers/units/trajectory_unit.h"
#include "rill/samplers/units/window_unit.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/compose.h"
#include "rill/transforms/function_transform.h"
#include "rill/transforms/next_state_reconstructor.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/to_device.h"
#include "rill/transforms/units/hindsight_relabel.h"
#include "rill/transforms/units/n_step_returns.h"
#include "rill/transforms/units/row_arithmetic.h"
#include "rill/transforms/units/sequence_marks.h"
#include "rill/transforms/units/slice_marks.h"
#include "rill/transforms/units/stack_frames.h"

namespace rill {
namespace {

using ::testing::IsEmpty;

template <typename Options>
struct Change {
  std::string option;
  std::function<void(Options&)> make;
};

std::vector<OptionChange> Compare(const OptionValues& saved,
                                  const OptionValues& now) {
  Manifest manifest;
  replay_internal::SaveOptions(saved, &manifest);
  return *replay_internal::CompareOptions(manifest, now);
}

// Each change to what `options` makes is reported, alone, and there is one for
// each option that is listed but those that are constant now.
template <typename Options>
void ExpectEachReported(const std::function<Options()>& options,
                        const std::function<OptionValues(Options)>& values_of,
                        const std::vector<Change<Options>>& changes,
                        const std::vector<std::string>& constant = {}) {
  const OptionValues saved = values_of(options());
  EXPECT_THAT(Compare(saved, values_of(options())), IsEmpty());
  std::vector<std::string> names = constant;
  for (const Change<Options>& change : changes) {
    Options other = options();
    change.make(other);
    const std::vector<OptionChange> found =
        Compare(saved, values_of(std::move(other)));
    ASSERT_EQ(found.size(), 1u) << change.option;
    EXPECT_EQ(found[0].option, change.option);
    EXPECT_NE(found[0].saved, found[0].opened);
    names.push_back(change.option);
  }
  std::vector<std::string> listed;
  for (const OptionValues::Value& value : saved.values()) {
    if (!value.is_kind) listed.push_back(value.name);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(listed));
}

template <typename Made>
OptionValues ValuesOf(absl::StatusOr<Made> made) {
  RILL_EXPECT_OK(made);
  if constexpr (requires { (*made)->traits(); }) {
    return (*made)->traits().options;
  } else {
    return (*made)->option_values();
  }
}
OptionValues ValuesOfSelector(absl::StatusOr<std::unique_ptr<Selector>> made) {
  return ValuesOf(std::move(made));
}
OptionValues ValuesOfUnit(absl::StatusOr<std::unique_ptr<Unit>> made) {
  return ValuesOf(std::move(made));
}

template <typename Part>
OptionValues ValuesOfPart(absl::StatusOr<Part> made) {
  RILL_EXPECT_OK(made);
  return made->option_values();
}

// --- Selectors. Each binding names all fields: one that is added breaks it,
// and wants a change below.

TEST(OptionValuesOfPartsTest, Prioritized) {
  using Options = PrioritizedOptions;
  // Where the priorities lie changes no batch.
  [[maybe_unused]] const auto& [alpha, beta, epsilon, new_rows,
                                new_row_priority, stratified, device] =
      Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOf(PrioritizedSelector::Create(o)); },
      {{"alpha", [](Options& o) { o.alpha = 0.7; }},
       {"beta", [](Options& o) { o.beta = 0.41; }},
       {"epsilon", [](Options& o) { o.epsilon = 1e-7; }},
       {"new_rows",
        [](Options& o) { o.new_rows = NewRowPriority::kMaxInBuffer; }},
       {"new_row_priority", [](Options& o) { o.new_row_priority = 2; }},
       {"stratified", [](Options& o) { o.stratified = true; }}});
}

TEST(OptionValuesOfPartsTest, NewRowPrioritiesDiffer) {
  std::vector<OptionValues> all;
  for (const auto rule :
       {NewRowPriority::kGiven, NewRowPriority::kMaxEver,
        NewRowPriority::kMaxInBuffer, NewRowPriority::kConstant}) {
    const auto now = ValuesOf(PrioritizedSelector::Create({.new_rows = rule}));
    for (const OptionValues& other : all) EXPECT_FALSE(now == other);
    all.push_back(now);
  }
}

TEST(OptionValuesOfPartsTest, Consuming) {
  using Options = ConsumingOptions;
  [[maybe_unused]] const auto& [times, inner] = Options();
  const auto with_inner = [](double alpha) {
    Options options;
    options.inner = *PrioritizedSelector::Create({.alpha = alpha});
    return options;
  };
  const OptionValues saved =
      ValuesOfSelector(MakeConsumingSelector(with_inner(0.6)));
  const auto inner_changed =
      Compare(saved, ValuesOfSelector(MakeConsumingSelector(with_inner(0.7))));
  ASSERT_EQ(inner_changed.size(), 1u);
  EXPECT_EQ(inner_changed[0].option, "inner.alpha");
  const auto other_kind =
      Compare(saved, ValuesOfSelector(MakeConsumingSelector({})));
  ASSERT_EQ(other_kind.size(), 1u);
  EXPECT_EQ(other_kind[0].option, "inner");
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) {
        return ValuesOfSelector(MakeConsumingSelector(std::move(o)));
      },
      {{"max_times_sampled", [](Options& o) { o.max_times_sampled = 2; }}});
}

OptionValues MixtureOf(double share, double alpha, bool is_third = false) {
  std::vector<MixturePart> parts(2);
  parts[0] = {.selector = *PrioritizedSelector::Create({.alpha = alpha}),
              .share = share};
  parts[1] = {.selector = MakeUniformSelector(), .share = 0.5};
  if (is_third) parts.push_back({.selector = MakeRecentSelector(), .share = 1});
  return ValuesOfSelector(MakeMixtureSelector(std::move(parts)));
}

TEST(OptionValuesOfPartsTest, Mixture) {
  [[maybe_unused]] const auto& [selector, share] = MixturePart();
  const OptionValues saved = MixtureOf(0.5, 0.6);
  EXPECT_THAT(Compare(saved, MixtureOf(0.5, 0.6)), IsEmpty());
  const auto other_share = Compare(saved, MixtureOf(0.25, 0.6));
  ASSERT_EQ(other_share.size(), 1u);
  EXPECT_EQ(other_share[0].option, "parts.0.share");
  const auto other_alpha = Compare(saved, MixtureOf(0.5, 0.7));
  ASSERT_EQ(other_alpha.size(), 1u);
  EXPECT_EQ(other_alpha[0].option, "parts.0.alpha");
  const auto third = Compare(saved, MixtureOf(0.5, 0.6, true));
  ASSERT_EQ(third.size(), 1u);
  EXPECT_EQ(third[0].option, "parts");
}

TEST(OptionValuesOfPartsTest, WithoutReplacement) {
  using Options = WithoutReplacementOptions;
  // first_epoch is where the state begins, and a save has it.
  [[maybe_unused]] const auto& [shuffle, drop_last, first_epoch] = Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](const Options& o) {
        return MakeWithoutReplacementSelector(o)->traits().options;
      },
      {{"shuffle", [](Options& o) { o.shuffle = false; }},
       {"drop_last", [](Options& o) { o.drop_last = true; }}});
}

TEST(OptionValuesOfPartsTest, Heaps) {
  using Options = HeapSelectorOptions;
  [[maybe_unused]] const auto& [new_priority] = Options();
  const std::vector<Change<Options>> changes = {
      {"new_priority", [](Options& o) { o.new_priority = 3; }}};
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOfSelector(MakeMinHeapSelector(o)); },
      changes);
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOfSelector(MakeMaxHeapSelector(o)); },
      changes);
}

TEST(OptionValuesOfPartsTest, Staleness) {
  using Options = StalenessOptions;
  [[maybe_unused]] const auto& [max_staleness, weight, current] = Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](const Options& o) {
        return MakeStalenessSelector(o)->traits().options;
      },
      {{"max_staleness", [](Options& o) { o.max_staleness = 3; }},
       {"weight", [](Options& o) { o.weight = [](int64_t) { return 1.0; }; }},
       {"current_version",
        [](Options& o) { o.current_version = [] { return int64_t{1}; }; }}});
}

TEST(OptionValuesOfPartsTest, SelectorsAndUnitsWithoutOptionsHaveNone) {
  for (const auto& selector : {MakeUniformSelector, MakeRecentSelector,
                               MakeFifoSelector, MakeLifoSelector}) {
    EXPECT_THAT(selector()->traits().options.values(), IsEmpty());
  }
  EXPECT_THAT(MakeTransitionUnit()->traits().options.values(), IsEmpty());
}

TEST(OptionValuesOfPartsTest, SamplerHasThoseOfBothParts) {
  const auto of = [](double alpha, int64_t steps) {
    return (*MakeSampler(*PrioritizedSelector::Create({.alpha = alpha}),
                         *MakeWindowUnit({.steps = steps}), "Mine"))
        ->traits()
        .options;
  };
  const auto alpha = Compare(of(0.6, 3), of(0.7, 3));
  ASSERT_EQ(alpha.size(), 1u);
  EXPECT_EQ(alpha[0].option, "selector.alpha");
  const auto steps = Compare(of(0.6, 3), of(0.6, 5));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].option, "unit.steps");
}

// --- Units -------------------------------------------------------------------

TEST(OptionValuesOfPartsTest, Window) {
  using Options = RowWindows;
  [[maybe_unused]] const auto& [frames, steps] = Options();
  ExpectEachReported<Options>(
      [] { return Options{.frames = 4, .steps = 3}; },
      [](Options o) { return ValuesOfUnit(MakeWindowUnit(o)); },
      {{"frames", [](Options& o) { o.frames = 2; }},
       {"steps", [](Options& o) { o.steps = 5; }}});
}

TEST(OptionValuesOfPartsTest, Hindsight) {
  using Options = HindsightUnitOptions;
  [[maybe_unused]] const auto& [strategy, ratio] = Options();
  for (const auto other :
       {HindsightStrategy::kFinal, HindsightStrategy::kEpisode,
        HindsightStrategy::kRandom}) {
    ExpectEachReported<Options>(
        [] { return Options(); },
        [](Options o) { return ValuesOfUnit(MakeHindsightUnit(o)); },
        {{"strategy", [other](Options& o) { o.strategy = other; }},
         {"ratio", [](Options& o) { o.ratio = 0.5; }}});
  }
}

TEST(OptionValuesOfPartsTest, Trajectory) {
  using Options = TrajectoryUnitOptions;
  [[maybe_unused]] const auto& [only_complete, min_rows, max_rows] = Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOfUnit(MakeTrajectoryUnit(o)); },
      {{"min_rows", [](Options& o) { o.min_rows = 2; }},
       {"max_rows", [](Options& o) { --o.max_rows; }},
       {"only_complete",
        [](Options& o) { o.only_complete = !o.only_complete; }}});
}

TEST(OptionValuesOfPartsTest, Sequence) {
  using Options = SequenceUnitOptions;
  [[maybe_unused]] const auto& [length, burn_in, bootstrap, dilation, period,
                                end, needs_burn_in, windows] = Options();
  for (const auto other : {SequenceEnd::kStop, SequenceEnd::kStrict,
                           SequenceEnd::kShift, SequenceEnd::kIncludeReset}) {
    ExpectEachReported<Options>(
        [] { return Options{.length = 8}; },
        [](Options o) { return ValuesOfUnit(MakeSequenceUnit(o)); },
        {{"length", [](Options& o) { o.length = 9; }},
         {"burn_in", [](Options& o) { o.burn_in = 2; }},
         {"bootstrap", [](Options& o) { o.bootstrap = 1; }},
         {"dilation", [](Options& o) { o.dilation = 2; }},
         {"period", [](Options& o) { o.period = 4; }},
         {"end", [other](Options& o) { o.end = other; }},
         {"needs_burn_in", [](Options& o) { o.needs_burn_in = true; }},
         {"windows.frames", [](Options& o) { o.windows.frames = 2; }},
         {"windows.steps", [](Options& o) { o.windows.steps = 2; }}});
  }
}

TEST(OptionValuesOfPartsTest, Slice) {
  using Options = SliceUnitOptions;
  [[maybe_unused]] const auto& [length, num_slices, batch_size, is_strict,
                                is_padded, span_left, span_right, starts,
                                windows] = Options();
  for (const auto other : {SliceStarts::kRows, SliceStarts::kRecent}) {
    ExpectEachReported<Options>(
        [] { return Options{.length = 8, .is_strict = false, .span_left = 1}; },
        [](Options o) { return ValuesOfUnit(MakeSliceUnit(o)); },
        {{"length", [](Options& o) { o.length = 4; }},
         {"is_strict", [](Options& o) { o.is_strict = true; }},
         {"is_padded", [](Options& o) { o.is_padded = true; }},
         {"span_left", [](Options& o) { o.span_left = 0; }},
         {"span_right", [](Options& o) { o.span_right = 1; }},
         {"starts", [other](Options& o) { o.starts = other; }},
         {"windows.frames", [](Options& o) { o.windows.frames = 2; }},
         {"windows.steps", [](Options& o) { o.windows.steps = 2; }}});
  }
  // Two ways to say one length.
  EXPECT_EQ(ValuesOfUnit(MakeSliceUnit({.length = 8})),
            ValuesOfUnit(MakeSliceUnit({.num_slices = 4, .batch_size = 32})));
}

// --- Unit transforms ---------------------------------------------------------

TEST(OptionValuesOfPartsTest, NStepReturns) {
  using Options = NStepReturns::Options;
  [[maybe_unused]] const auto& [steps, gamma, rewards, terminated, truncated,
                                done, steps_key, gamma_key] = Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOfPart(NStepReturns::Create(o)); },
      {{"num_steps", [](Options& o) { o.num_steps = 3; }},
       {"gamma", [](Options& o) { o.gamma = 0.9; }},
       {"reward_keys", [](Options& o) { o.reward_keys.push_back("next/b"); }},
       {"terminated_key", [](Options& o) { o.terminated_key = "next/t"; }},
       {"truncated_key", [](Options& o) { o.truncated_key = "next/u"; }},
       {"done_key", [](Options& o) { o.done_key = "next/d"; }},
       {"steps_key", [](Options& o) { o.steps_key = "k"; }},
       {"gamma_key", [](Options& o) { o.gamma_key = "g"; }}});
}

TEST(OptionValuesOfPartsTest, StackFrames) {
  using Options = StackFrames::Options;
  [[maybe_unused]] const auto& [frames, keys, dim, new_dim, padding, value] =
      Options();
  ExpectEachReported<Options>(
      [] { return Options{.num_frames = 4, .keys = {"pixels"}}; },
      [](Options o) { return ValuesOfPart(StackFrames::Create(o)); },
      {{"num_frames", [](Options& o) { o.num_frames = 3; }},
       {"keys", [](Options& o) { o.keys.push_back("next/pixels"); }},
       {"dim", [](Options& o) { o.dim = -3; }},
       {"new_dim", [](Options& o) { o.new_dim = true; }},
       {"padding",
        [](Options& o) { o.padding = StackFrames::Padding::kConstant; }},
       {"value", [](Options& o) { o.value = 1; }}});
}

TEST(OptionValuesOfPartsTest, SequenceMarks) {
  using Options = SequenceMarks::Options;
  // `dilation` is the unit's, which reports it.
  [[maybe_unused]] const auto& [length, burn_in, bootstrap, dilation] =
      Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOfPart(SequenceMarks::Create(o)); },
      {{"length", [](Options& o) { o.length = 4; }},
       {"burn_in", [](Options& o) { o.burn_in = 2; }},
       {"bootstrap", [](Options& o) { o.bootstrap = 1; }}});
}

TEST(OptionValuesOfPartsTest, SliceMarks) {
  using Options = SliceMarks::Options;
  [[maybe_unused]] const auto& [truncated, done, terminated, is_init] =
      Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOfPart(SliceMarks::Create(o)); },
      {{"truncated_key", [](Options& o) { o.truncated_key = "next/u"; }},
       {"done_key", [](Options& o) { o.done_key = "next/d"; }},
       {"terminated_key", [](Options& o) { o.terminated_key = "next/t"; }},
       {"is_init_key", [](Options& o) { o.is_init_key = "first"; }}});
}

TEST(OptionValuesOfPartsTest, RowArithmeticHasThoseOfItsParts) {
  using Options = RowArithmetic::Options;
  [[maybe_unused]] const auto& [n_step, frames, slice_marks, sequence_marks] =
      Options();
  const auto all = [] {
    return Options{.n_step = NStepReturns::Options{},
                   .frames = StackFrames::Options{.keys = {"pixels"}},
                   .slice_marks = SliceMarks::Options{},
                   .sequence_marks = SequenceMarks::Options{}};
  };
  const OptionValues saved = ValuesOf(RowArithmetic::Create(all()));
  const auto expect = [&](const char* option,
                          const std::function<void(Options&)>& change) {
    Options other = all();
    change(other);
    const std::vector<OptionChange> found =
        Compare(saved, ValuesOf(RowArithmetic::Create(other)));
    ASSERT_EQ(found.size(), 1u) << option;
    EXPECT_EQ(found[0].option, option);
  };
  expect("n_step.gamma", [](Options& o) { o.n_step->gamma = 0.5; });
  expect("frames.dim", [](Options& o) { o.frames->dim = -3; });
  expect("slice_marks.is_init_key",
         [](Options& o) { o.slice_marks->is_init_key = "first"; });
  expect("sequence_marks.length",
         [](Options& o) { o.sequence_marks->length = 4; });
}

TEST(OptionValuesOfPartsTest, HindsightRelabel) {
  using Options = HindsightRelabel::Options;
  [[maybe_unused]] const auto& [achieved, desired, reward, reward_key,
                                terminated, terminated_key, truncated_key,
                                done_key] = Options();
  const auto function = [](const Tensor& one, const Tensor&) { return one; };
  ExpectEachReported<Options>(
      [&] { return Options{.reward = function}; },
      [](Options o) { return ValuesOf(HindsightRelabel::Create(o)); },
      {{"achieved_key", [](Options& o) { o.achieved_key = "next/a"; }},
       {"desired_key", [](Options& o) { o.desired_key = "d"; }},
       {"reward_key", [](Options& o) { o.reward_key = "next/r"; }},
       {"terminated", [&](Options& o) { o.terminated = function; }},
       {"terminated_key", [](Options& o) { o.terminated_key = "next/t"; }},
       {"truncated_key", [](Options& o) { o.truncated_key = "next/u"; }},
       {"done_key", [](Options& o) { o.done_key = "next/d"; }}});
}

// --- Transforms --------------------------------------------------------------

TEST(OptionValuesOfPartsTest, RewardScaling) {
  using Options = RewardScaling::Options;
  [[maybe_unused]] const auto& [scale, loc, standard, key] = Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOf(RewardScaling::Create(o)); },
      {{"scale", [](Options& o) { o.scale = 0.1; }},
       {"loc", [](Options& o) { o.loc = 1; }},
       {"standard_normal", [](Options& o) { o.standard_normal = true; }},
       {"key", [](Options& o) { o.key = "next/r"; }}},
      {"on_forward", "on_step"});
}

TEST(OptionValuesOfPartsTest, RewardSum) {
  using Options = RewardSum::Options;
  [[maybe_unused]] const auto& [reward_key, sum_key] = Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOf(RewardSum::Create(o)); },
      {{"reward_key", [](Options& o) { o.reward_key = "r"; }},
       {"sum_key", [](Options& o) { o.sum_key = "sum"; }}});
}

TEST(OptionValuesOfPartsTest, StepCounter) {
  using Options = StepCounter::Options;
  [[maybe_unused]] const auto& [max_steps, count, truncated, done, update] =
      Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOf(StepCounter::Create(o)); },
      {{"max_steps", [](Options& o) { o.max_steps = 500; }},
       {"step_count_key", [](Options& o) { o.step_count_key = "n"; }},
       {"truncated_key", [](Options& o) { o.truncated_key = "u"; }},
       {"done_key", [](Options& o) { o.done_key = "d"; }},
       {"update_done", [](Options& o) { o.update_done = false; }}});
}

TEST(OptionValuesOfPartsTest, NextStateReconstructor) {
  using Options = NextStateReconstructor::Options;
  [[maybe_unused]] const auto& [keys, traj, done, count, mask, fill, strict] =
      Options();
  ExpectEachReported<Options>(
      [] { return Options(); },
      [](Options o) { return ValuesOf(NextStateReconstructor::Create(o)); },
      {{"keys", [](Options& o) { o.keys = {"pixels"}; }},
       {"traj_key", [](Options& o) { o.traj_key = "id"; }},
       {"done_key", [](Options& o) { o.done_key = "next/d"; }},
       {"step_count_key", [](Options& o) { o.step_count_key = "n"; }},
       {"mask_key", [](Options& o) { o.mask_key = "m"; }},
       {"fill_value", [](Options& o) { o.fill_value = 0; }},
       {"strict", [](Options& o) { o.strict = false; }}});
}

TEST(OptionValuesOfPartsTest, FunctionTransform) {
  using Options = FunctionTransform::Options;
  // The name is compared as a name, is_stateful by what the functions do.
  [[maybe_unused]] const auto& [name, forward, inverse, forward_spec,
                                inverse_spec, is_stateful] = Options();
  const auto f = [](TensorDict*) { return absl::OkStatus(); };
  const auto spec = [](const TensorDictSpec& s) { return s; };
  ExpectEachReported<Options>(
      [&] {
        return Options{.forward = f, .inverse = f, .forward_spec = nullptr};
      },
      [](Options o) { return ValuesOf(FunctionTransform::Create(o)); },
      {{"forward", [](Options& o) { o.forward = nullptr; }},
       {"inverse", [](Options& o) { o.inverse = nullptr; }},
       {"forward_spec", [&](Options& o) { o.forward_spec = spec; }},
       {"inverse_spec", [&](Options& o) { o.inverse_spec = spec; }}},
      {"on_step", "step_spec"});
}

TEST(OptionValuesOfPartsTest, ToDevice) {
  EXPECT_EQ(ValuesOf(ToDevice::Create(Device::Cpu())),
            OptionValues().Choice("device", "cpu"));
}

TEST(OptionValuesOfPartsTest, ComposeHasThoseOfItsTransforms) {
  const auto of = [](std::vector<double> scales) {
    std::vector<std::unique_ptr<BatchTransform>> transforms;
    for (const double scale : scales) {
      transforms.push_back(*RewardScaling::Create({.scale = scale}));
    }
    return (*Compose::Create(std::move(transforms)))->option_values();
  };
  EXPECT_THAT(Compare(of({1, 2}), of({1, 2})), IsEmpty());
  const auto scale = Compare(of({1, 2}), of({1, 3}));
  ASSERT_EQ(scale.size(), 1u);
  EXPECT_EQ(scale[0].option, "transforms.1.scale");
  const auto fewer = Compare(of({1, 2}), of({1}));
  ASSERT_EQ(fewer.size(), 1u);
  EXPECT_EQ(fewer[0].option, "transforms");
}

// --- Writers -----------------------------------------------------------------

TEST(OptionValuesOfPartsTest, TopKWriter) {
  using Options = TopKWriter::Options;
  [[maybe_unused]] const auto& [rank_key, reduction, k] = Options();
  for (const auto other :
       {TopKWriter::Reduction::kMean, TopKWriter::Reduction::kMedian,
        TopKWriter::Reduction::kMin, TopKWriter::Reduction::kMax}) {
    ExpectEachReported<Options>(
        [] { return Options(); },
        [](Options o) { return ValuesOf(TopKWriter::Create(o)); },
        {{"rank_key", [](Options& o) { o.rank_key = "rank"; }},
         {"reduction", [other](Options& o) { o.reduction = other; }},
         {"k", [](Options& o) { o.k = 3; }}});
  }
}

TEST(OptionValuesOfPartsTest, RemovingWriter) {
  using Options = RemovingWriterOptions;
  [[maybe_unused]] const auto& [remover, seed, used_up_by] = Options();
  const auto sampler = MakeUniformSampler();
  ExpectEachReported<Options>(
      [] {
        Options options;
        options.remover = *MakeMinHeapSelector({.new_priority = 1});
        return options;
      },
      [](Options o) {
        return MakeRemovingWriter(std::move(o))->traits().options;
      },
      {{"remover.selector.new_priority",
        [](Options& o) {
          o.remover = *MakeMinHeapSelector({.new_priority = 2});
        }},
       {"seed", [](Options& o) { o.seed = 1; }},
       {"used_up_by", [&](Options& o) { o.used_up_by = sampler.get(); }}});
}

TEST(OptionValuesOfPartsTest, WritersWithoutOptionsHaveNone) {
  EXPECT_THAT(MakeRoundRobinWriter()->traits().options.values(), IsEmpty());
  EXPECT_THAT(MakeImmutableWriter()->traits().options.values(), IsEmpty());
}

}  // namespace
}  // namespace rill
