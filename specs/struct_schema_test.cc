// SPDX-License-Identifier: Apache-2.0
#include "rill/specs/struct_schema.h"

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/specs/schema.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

struct Step {
  std::array<float, 4> observation;
  int64_t action;
  float reward;
};
bool operator==(const Step& a, const Step& b) {
  return a.observation == b.observation && a.action == b.action &&
         a.reward == b.reward;
}

using StepSchema = StructSchema<Step, Member<"observation", &Step::observation>,
                                Member<"action", &Step::action>,
                                Member<"next/reward", &Step::reward, 1>>;

std::vector<Step> MakeStructs(int64_t n) {
  std::vector<Step> steps;
  for (int64_t i = 0; i < n; ++i) {
    const float x = static_cast<float>(i);
    steps.push_back({{x, x + 0.25f, x + 0.5f, x + 0.75f}, i * i, -x});
  }
  return steps;
}

absl::Status RunExample(const std::vector<Step>& steps) {
  RILL_ASSIGN_OR_RETURN(auto batch, ToBatch<StepSchema>(steps));
  batch.Get<"next/reward">()[7][0] *= 2;
  std::vector<Step> back = ToStructs(batch);
  EXPECT_EQ(back[7].reward, 2 * steps[7].reward);
  back[7].reward /= 2;
  EXPECT_EQ(back, steps);
  return absl::OkStatus();
}

TEST(StructSchemaTest, Example) { RILL_EXPECT_OK(RunExample(MakeStructs(20))); }

TEST(StructSchemaTest, FieldsComeFromTheMembers) {
  EXPECT_EQ(StepSchema::Spec().ToString(),
            "{observation: float32[4], action: int64[], next/reward: "
            "float32[1]}");
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch,
                            ToBatch<StepSchema>(MakeStructs(3)));
  EXPECT_EQ(batch.batch_shape(), Shape({3}));
  EXPECT_THAT(batch.Get<"observation">()[2], ElementsAre(2, 2.25, 2.5, 2.75));
  EXPECT_THAT(batch.Get<"action">().flat(), ElementsAre(0, 1, 4));
  EXPECT_THAT(*batch.dict().Flat<float>("next/reward"), ElementsAre(0, -1, -2));
}

// One member of every kind, more than the schema names, and a base.
struct Base {
  uint8_t level = 9;
};
struct Everything : Base {
  bool flag;
  std::array<bool, 3> flags;
  int8_t i8;
  int16_t i16;
  int32_t i32;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  Float16 half;
  std::array<BFloat16, 2> brain;
  double f64[2][3];
  std::array<std::array<uint8_t, 3>, 2> pixels;
  std::complex<float> wave;
  std::array<float, 0> nothing;
  int not_named = 42;
};
using EverythingSchema = StructSchema<
    Everything, Member<"level", &Everything::level>,
    Member<"flag", &Everything::flag, 1>, Member<"flags", &Everything::flags>,
    Member<"i/8", &Everything::i8>, Member<"i/16", &Everything::i16>,
    Member<"i/32", &Everything::i32>, Member<"u/deep/16", &Everything::u16>,
    Member<"u/deep/32", &Everything::u32>, Member<"u/64", &Everything::u64>,
    Member<"half", &Everything::half>, Member<"brain", &Everything::brain>,
    Member<"f64", &Everything::f64>, Member<R"(a\/b)", &Everything::pixels>,
    Member<"wave", &Everything::wave, 1, 1>,
    Member<"nothing", &Everything::nothing>>;

TEST(StructSchemaTest, EveryTypeOfMember) {
  EXPECT_EQ(EverythingSchema::Spec().ToString(),
            R"({level: uint8[], flag: bool[1], flags: bool[3], i/8: int8[], )"
            R"(i/16: int16[], i/32: int32[], u/deep/16: uint16[], )"
            R"(u/deep/32: uint32[], u/64: uint64[], half: float16[], )"
            R"(brain: bfloat16[2], f64: float64[2, 3], a\/b: uint8[2, 3], )"
            R"(wave: complex64[1, 1], nothing: float32[0]})");
  std::vector<Everything> all(700);  // More than two blocks.
  for (size_t i = 0; i < all.size(); ++i) {
    Everything& e = all[i];
    const Rng rng(i);
    const auto roll = [&](uint32_t draw) {
      return static_cast<int64_t>(rng.Bits64(0, draw));
    };
    e.level = static_cast<uint8_t>(roll(0));
    e.flag = roll(1) % 2 == 0;
    e.flags = {roll(2) % 2 == 0, roll(3) % 2 == 0, roll(4) % 2 == 0};
    e.i8 = static_cast<int8_t>(roll(5));
    e.i16 = static_cast<int16_t>(roll(6));
    e.i32 = static_cast<int32_t>(roll(7));
    e.u16 = static_cast<uint16_t>(roll(8));
    e.u32 = static_cast<uint32_t>(roll(9));
    e.u64 = static_cast<uint64_t>(roll(10));
    e.half.bits = static_cast<uint16_t>(roll(11));
    e.brain = {BFloat16{static_cast<uint16_t>(roll(12))},
               BFloat16{static_cast<uint16_t>(roll(13))}};
    for (auto& row : e.f64) {
      for (double& x : row) x = static_cast<double>(roll(14)) + (&x - row);
    }
    for (auto& row : e.pixels) {
      for (uint8_t& x : row) {
        x = static_cast<uint8_t>(
            roll(20 + static_cast<uint32_t>(&x - &e.pixels[0][0])));
      }
    }
    e.wave = {static_cast<float>(i), -1};
    e.not_named = 7;
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch, ToBatch<EverythingSchema>(all));
  EXPECT_EQ(batch.Get<"a\\/b">()(3, 1, 2), all[3].pixels[1][2]);
  EXPECT_EQ(batch.Get<"f64">()(3, 1, 0), all[3].f64[1][0]);
  const std::vector<Everything> back = ToStructs(batch);
  ASSERT_EQ(back.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Everything& a = all[i];
    const Everything row = GetRow(batch, static_cast<int64_t>(i));
    for (const Everything& b : {back[i], row}) {
      EXPECT_EQ(a.level, b.level);
      EXPECT_EQ(a.flag, b.flag);
      EXPECT_EQ(a.flags, b.flags);
      EXPECT_EQ(a.i8, b.i8);
      EXPECT_EQ(a.i16, b.i16);
      EXPECT_EQ(a.i32, b.i32);
      EXPECT_EQ(a.u16, b.u16);
      EXPECT_EQ(a.u32, b.u32);
      EXPECT_EQ(a.u64, b.u64);
      EXPECT_EQ(a.half, b.half);
      EXPECT_EQ(a.brain, b.brain);
      for (int r = 0; r < 2; ++r) {
        for (int c = 0; c < 3; ++c) EXPECT_EQ(a.f64[r][c], b.f64[r][c]);
      }
      EXPECT_EQ(a.pixels, b.pixels);
      EXPECT_EQ(a.wave, b.wave);
      EXPECT_EQ(b.not_named, 42);
    }
  }
}

TEST(StructSchemaTest, BoolsAreReadAsZeroAndOne) {
  struct Flags {
    bool one;
    std::array<bool, 2> two;
  };
  using FlagsSchema = StructSchema<Flags, Member<"one", &Flags::one>,
                                   Member<"two", &Flags::two>>;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            FlagsSchema::Spec().Zero({2}));
  dict.Find("one")->raw_data()[1] = std::byte{7};
  dict.Find("two")->raw_data()[2] = std::byte{0x80};
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch, Typed<FlagsSchema>::Bind(dict));
  const auto byte = [](const bool& b) {
    return *reinterpret_cast<const unsigned char*>(&b);
  };
  for (const Flags& row : {GetRow(batch, 1), ToStructs(batch)[1]}) {
    EXPECT_EQ(byte(row.one), 1);
    EXPECT_EQ(byte(row.two[0]), 1);
    EXPECT_EQ(byte(row.two[1]), 0);
  }
}

int CountAllocations(const std::function<void()>& work) {
  int allocations = 0;
  const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
    ++allocations;
    return absl::OkStatus();
  });
  work();
  return allocations;
}

TEST(StructSchemaTest, ABatchIsOneAllocationAndIntoNone) {
  std::vector<Step> steps = MakeStructs(100000);
  RILL_ASSERT_OK_AND_ASSIGN(auto batch, ToBatch<StepSchema>(steps));
  EXPECT_EQ(
      CountAllocations([&] { RILL_EXPECT_OK(ToBatch<StepSchema>(steps)); }), 1);
  const float* const bytes = batch.Get<"observation">().data();
  steps[5].action = -1;
  EXPECT_EQ(CountAllocations([&] {
              RILL_EXPECT_OK(ToBatchInto<StepSchema>(steps, &batch));
            }),
            0);
  EXPECT_EQ(batch.Get<"observation">().data(), bytes);
  EXPECT_EQ(batch.Get<"action">()[5], -1);
  steps.pop_back();
  RILL_ASSERT_OK(ToBatchInto<StepSchema>(steps, &batch));
  EXPECT_EQ(batch.batch_shape(), Shape({99999}));
  EXPECT_EQ(ToStructs(batch), steps);
}

TEST(StructSchemaTest, RowsAreReadAndSetInPlace) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch,
                            ToBatch<StepSchema>(MakeStructs(5)));
  const Step other = {{1, 2, 3, 4}, 77, 0.5f};
  SetRow(batch, 3, other);
  std::vector<Step> want = MakeStructs(5);
  want[3] = other;
  EXPECT_EQ(ToStructs(batch), want);
  EXPECT_EQ(GetRow(batch, 3), other);
  EXPECT_EQ(GetRow(batch, 4), want[4]);
}

TEST(StructSchemaTest, StructsIntoKeepsWhatIsNotNamed) {
  using Part = StructSchema<Step, Member<"action", &Step::action>>;
  const std::vector<Step> steps = MakeStructs(4);
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch, ToBatch<Part>(steps));
  std::vector<Step> out(4, Step{{9, 9, 9, 9}, 0, 3});
  RILL_ASSERT_OK(StructsInto(batch, out));
  EXPECT_EQ(out[2], (Step{{9, 9, 9, 9}, 4, 3}));
  out.pop_back();
  const std::vector<Step> before = out;
  EXPECT_THAT(StructsInto(batch, out), IsInvalidArgument("got 3, want 4"));
  EXPECT_EQ(out, before);
}

TEST(StructSchemaTest, EmptyAndGridBatches) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto none, ToBatch<StepSchema>({}));
  EXPECT_EQ(none.batch_shape(), Shape({0}));
  EXPECT_TRUE(ToStructs(none).empty());
  const std::vector<Step> steps = MakeStructs(6);
  RILL_ASSERT_OK_AND_ASSIGN(const auto line, ToBatch<StepSchema>(steps));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict grid, line.dict().Reshape({2, 3}));
  RILL_ASSERT_OK_AND_ASSIGN(auto lanes, Typed<StepSchema>::Bind(grid));
  EXPECT_EQ(ToStructs(lanes), steps);
  // Into makes a flat one of it.
  RILL_ASSERT_OK(ToBatchInto<StepSchema>(steps, &lanes));
  EXPECT_EQ(lanes.batch_shape(), Shape({6}));
}

// --- StructAppender ---------------------------------------------------------

absl::StatusOr<Typed<StepSchema>> RunAppenderExample(const Step& step) {
  StructAppender<StepSchema> steps;
  RILL_RETURN_IF_ERROR(steps.Append(step));
  RILL_ASSIGN_OR_RETURN(Typed<StepSchema> batch, steps.Take());
  return batch;
}

TEST(StructAppenderTest, Example) {
  const Step step = MakeStructs(9)[8];
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch, RunAppenderExample(step));
  EXPECT_EQ(ToStructs(batch), std::vector<Step>{step});
}

TEST(StructAppenderTest, GrowsAsAVectorDoes) {
  StructAppender<StepSchema> appender;
  for (const int64_t n : {0, 1, 15, 16, 17, 1000}) {
    const std::vector<Step> steps = MakeStructs(n);
    for (const Step& step : steps) RILL_ASSERT_OK(appender.Append(step));
    EXPECT_EQ(appender.size(), n);
    RILL_ASSERT_OK_AND_ASSIGN(const auto batch, appender.Take());
    EXPECT_EQ(batch.batch_shape(), Shape({n}));
    EXPECT_EQ(ToStructs(batch), steps);
    EXPECT_EQ(appender.size(), 0);
  }
}

TEST(StructAppenderTest, WhatWasTakenDoesNotChange) {
  StructAppender<StepSchema> appender;
  const std::vector<Step> steps = MakeStructs(3);
  RILL_ASSERT_OK(appender.Append(steps[1]));
  RILL_ASSERT_OK_AND_ASSIGN(const auto first, appender.Take());
  RILL_ASSERT_OK(appender.Append(steps[2]));
  EXPECT_EQ(GetRow(first, 0), steps[1]);
}

TEST(StructAppenderTest, ReserveAllocatesOnceAndKeepsRows) {
  StructAppender<StepSchema> appender;
  const std::vector<Step> steps = MakeStructs(100);
  RILL_ASSERT_OK(appender.Append(steps[0]));
  EXPECT_EQ(CountAllocations([&] {
              RILL_ASSERT_OK(appender.Reserve(100));
              for (int i = 1; i < 100; ++i) {
                RILL_ASSERT_OK(appender.Append(steps[i]));
              }
            }),
            1);
  EXPECT_THAT(appender.Reserve(int64_t{1} << 60), IsInvalidArgument());
  EXPECT_EQ(appender.size(), 100);
  RILL_ASSERT_OK_AND_ASSIGN(const auto batch, appender.Take());
  EXPECT_EQ(ToStructs(batch), steps);
}

}  // namespace
}  // namespace rill
