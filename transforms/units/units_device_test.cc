// SPDX-License-Identifier: Apache-2.0
// The arithmetic of units on a device gives the bytes that it gives on the
// host, whatever the plan and the rows.
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/slots/sample_plan.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_sample_reader.h"
#include "rill/transforms/testing/fake_units.h"
#include "rill/transforms/unit_transform.h"
#include "rill/transforms/units/hindsight_relabel.h"
#include "rill/transforms/units/row_arithmetic.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kRows = 200;

// Rows of all kinds: frames of whole words and of odd bytes, rewards of
// several agents in float and double, flags that are there or not.
struct RowsCase {
  std::string name;
  std::vector<std::string> flags;
  Shape pixels;
  DType pixel_dtype = DType::kUInt8;
};

std::vector<RowsCase> RowsCases() {
  return {
      {"AllFlags",
       {"next/terminated", "next/truncated", "next/done", "is_init"},
       {1, 4, 8}},
      {"OddFrames", {"next/terminated", "next/truncated"}, {1, 3, 5}},
      {"DoneAlone", {"next/done"}, {2, 3}, DType::kFloat32},
      {"NoFlags", {}, {5}, DType::kInt16},
  };
}

TensorDictSpec SpecOf(const RowsCase& rows) {
  TensorDictSpec spec;
  const auto set = [&spec](absl::string_view key, const LeafSpec& leaf) {
    RILL_EXPECT_OK(spec.Set(key, leaf));
  };
  const LeafSpec pixels = LeafSpec::Unbounded(rows.pixel_dtype, rows.pixels);
  set("pixels", pixels);
  set("next/pixels", pixels);
  set("action", LeafSpec::Categorical(4));
  set("next/reward", LeafSpec::Unbounded(DType::kFloat32, {1}));
  set("next/agents/reward", LeafSpec::Unbounded(DType::kFloat64, {3, 1}));
  for (const std::string& flag : rows.flags) set(flag, LeafSpec::Binary({1}));
  return spec;
}

// A plan over trajectories that `units` knows.
using MakePlan =
    std::function<SamplePlan(const FakeUnits&, const std::vector<Slot>&)>;

struct UnitCase {
  std::string name;
  RowArithmetic::Options options;
  MakePlan rows;
};

SamplePlan Single(const FakeUnits& units, const std::vector<Slot>& anchors) {
  return units.Transitions(anchors);
}
SamplePlan Sliced(const FakeUnits& units, const std::vector<Slot>& anchors) {
  return units.Slices(anchors, 5, false);
}
SamplePlan Padded(const FakeUnits& units, const std::vector<Slot>& anchors) {
  return units.Slices(anchors, 5, true);
}
SamplePlan Sequences(const FakeUnits& units, const std::vector<Slot>& anchors) {
  return units.Sequences(anchors, 2, 4);
}
// Draws of more rows than a block has threads.
SamplePlan Long(const FakeUnits& units, const std::vector<Slot>& anchors) {
  return units.Slices({anchors[0], anchors[1], 0}, 150, true);
}

std::vector<UnitCase> UnitCases() {
  const NStepReturns::Options steps = {
      .num_steps = 3,
      .gamma = 0.97,
      .reward_keys = {"next/reward", "next/agents/reward"}};
  const StackFrames::Options frames = {.num_frames = 4,
                                       .keys = {"pixels", "next/pixels"}};
  StackFrames::Options new_dim = frames;
  new_dim.keys = {"next/pixels"};
  new_dim.new_dim = true;
  StackFrames::Options padded = frames;
  padded.padding = StackFrames::Padding::kConstant;
  padded.value = 7;
  const SequenceMarks::Options sequence = {.length = 4, .burn_in = 2};
  std::vector<UnitCase> cases;
  for (const auto& [name, rows] :
       std::vector<std::pair<std::string, MakePlan>>{{"Single", Single},
                                                     {"Sliced", Sliced},
                                                     {"Padded", Padded},
                                                     {"Long", Long}}) {
    cases.push_back({"Plain" + name, {}, rows});
    cases.push_back({"Steps" + name, {.n_step = steps}, rows});
    cases.push_back({"Frames" + name, {.frames = frames}, rows});
    cases.push_back(
        {"Rainbow" + name, {.n_step = steps, .frames = frames}, rows});
    cases.push_back({"All" + name,
                     {.n_step = steps,
                      .frames = padded,
                      .slice_marks = SliceMarks::Options{}},
                     rows});
    cases.push_back(
        {"Marks" + name, {.slice_marks = SliceMarks::Options{}}, rows});
  }
  cases.push_back({"NewDim", {.frames = new_dim}, Sliced});
  cases.push_back({"Sequences", {.sequence_marks = sequence}, Sequences});
  cases.push_back(
      {"RainbowSequences",
       {.n_step = steps, .frames = frames, .sequence_marks = sequence},
       Sequences});
  return cases;
}

void ExpectSameBytes(const TensorDict& got, const TensorDict& want) {
  EXPECT_EQ(got.LeafKeys(), want.LeafKeys());
  want.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    const Tensor* const other = got.Find(key);
    ASSERT_NE(other, nullptr) << key;
    ASSERT_EQ(other->dtype(), leaf.dtype()) << key;
    ASSERT_EQ(other->shape(), leaf.shape()) << key;
    EXPECT_EQ(std::memcmp(other->raw_data(), leaf.raw_data(),
                          static_cast<size_t>(leaf.size_bytes())),
              0)
        << key << "\n"
        << other->DebugString() << "\n"
        << leaf.DebugString();
  });
}

// Enqueues a unit's arithmetic of batches that are used again, on a stream.
class OnDevice {
 public:
  OnDevice()
      : stream_(*Stream::Create(DeviceUnderTest())),
        uploads_(DeviceUnderTest()) {}

  absl::StatusOr<TensorDict> Run(const UnitTransform& unit,
                                 const FakeSampleReader& reader,
                                 const SamplePlan& plan) {
    const StreamScope scope(stream_);
    TensorDict gathered;
    RILL_ASSIGN_OR_RETURN(FakeSampleReader::Gathered apart,
                          reader.Gather(unit, plan, &gathered));
    RILL_ASSIGN_OR_RETURN(gathered, gathered.To(DeviceUnderTest()));
    if (batch_.batch_shape() != gathered.batch_shape()) {
      batch_ = TensorDict(gathered.batch_shape());
    }
    // Leaves that the unit makes stay, as those of a batch that is used again.
    absl::Status status;
    gathered.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      status.Update(batch_.Set(key, leaf));
    });
    RILL_RETURN_IF_ERROR(status);
    RILL_ASSIGN_OR_RETURN(apart.rows, apart.rows.To(DeviceUnderTest()));
    for (TensorDict& list : apart.context) {
      RILL_ASSIGN_OR_RETURN(list, list.To(DeviceUnderTest()));
    }
    RILL_RETURN_IF_ERROR(uploads_.Begin(stream_));
    status = unit.Enqueue(plan, apart.rows, apart.context, &uploads_, &batch_);
    status.Update(uploads_.Send());
    if (!status.ok()) {
      RILL_RETURN_IF_ERROR(stream_.Synchronize());
      return status;
    }
    RILL_ASSIGN_OR_RETURN(Event end, Event::Record(stream_));
    const auto shared = std::make_shared<const Event>(std::move(end));
    uploads_.End(shared);
    RILL_RETURN_IF_ERROR(shared->Synchronize());
    return batch_.To(Device::Cpu());
  }

 private:
  const Stream stream_;
  StreamUploads uploads_;
  TensorDict batch_;
};

TEST(UnitsDeviceTest, RowArithmeticGivesTheHostsBytes) {
  const Rng rng(7, RngStream::kUser);
  for (const RowsCase& rows : RowsCases()) {
    const TensorDictSpec spec = SpecOf(rows);
    for (const UnitCase& unit : UnitCases()) {
      SCOPED_TRACE(rows.name + " " + unit.name);
      RILL_ASSERT_OK_AND_ASSIGN(const auto arithmetic,
                                RowArithmetic::Create(unit.options));
      OnDevice device;
      for (uint64_t round = 0; round < 2; ++round) {
        RILL_ASSERT_OK_AND_ASSIGN(TensorDict store,
                                  spec.Random({kRows}, rng, round));
        std::vector<bool> ends;
        for (uint32_t i = 0; i < kRows; ++i) {
          // Also none that ends before the last row.
          ends.push_back(round > 0 && rng.UniformInt(round, i, 9) == 0);
        }
        const FakeUnits units(ends);
        std::vector<Slot> anchors;
        for (uint32_t i = 0; i < 20; ++i) {
          anchors.push_back(rng.UniformInt(round, 3000 + i, kRows));
        }
        const SamplePlan plan = units.WithWindows(
            unit.rows(units, anchors),
            {.frames =
                 unit.options.frames ? unit.options.frames->num_frames : 0,
             .steps =
                 unit.options.n_step ? unit.options.n_step->num_steps : 0});
        const FakeSampleReader reader(spec, store);
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want,
                                  reader.Read(*arithmetic, plan));
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got,
                                  device.Run(*arithmetic, reader, plan));
        ExpectSameBytes(got, want);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace rill
