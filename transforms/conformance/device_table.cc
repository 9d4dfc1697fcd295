// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/conformance/device_table.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"

namespace rill {
namespace {

// Of each transform of the table that works on batches.
std::map<std::string, std::string> ReadColumn(absl::string_view heading) {
  std::ifstream page(absl::StrCat(std::getenv("TEST_SRCDIR"), "/",
                                  std::getenv("TEST_WORKSPACE"),
                                  "/docs/transforms.md"));
  EXPECT_TRUE(page.is_open());
  std::map<std::string, std::string> column;
  bool is_below = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "## ")) {
      is_below = absl::StrContains(line, heading);
    }
    if (!is_below || !absl::StartsWith(line, "| `")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    const bool is_row = cells.size() == 5;
    EXPECT_TRUE(is_row) << line;
    if (!is_row) continue;
    const std::vector<std::string> places = absl::StrSplit(cells[2], ' ');
    const std::set<std::string> all(places.begin(), places.end());
    if (all.count("R") + all.count("W") + all.count("R,") == 0) continue;
    absl::string_view name = cells[0];
    absl::ConsumePrefix(&name, "| `");
    absl::ConsumeSuffix(&name, "`");
    column[std::string(name)] = cells[3];
  }
  EXPECT_FALSE(column.empty()) << heading;
  return column;
}

void ExpectRefused(const DeviceCase& the_case, Device device) {
  const BatchTransform& transform = *the_case.transform;
  SCOPED_TRACE(transform.name());
  const bool is_forward = the_case.call == TransformCall::kForward;
  TensorDictSpec spec = TensorDictSpec::Of(the_case.batch);
  spec.set_device(device);
  const absl::StatusOr<TensorDictSpec> after =
      is_forward ? transform.ForwardSpec(spec) : transform.InverseSpec(spec);
  EXPECT_EQ(after.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(after.status().message()),
      ::testing::AllOf(
          ::testing::StartsWith(std::string(transform.name())),
          ::testing::HasSubstr(absl::StrCat("lies on ", device.ToString())),
          ::testing::HasSubstr("put ToDevice behind")));
  TensorDict batch = *the_case.batch.To(device);
  const TensorDict before = batch;
  TensorDict state = *transform.InitialState();
  const absl::Status status = is_forward ? transform.Forward(&batch, &state)
                                         : transform.Inverse(&batch, &state);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  RILL_EXPECT_OK(batch.CheckEqual(before));
}

}  // namespace

void ExpectAsDocumented(absl::string_view heading,
                        const std::vector<DeviceCase>& cases, Device device) {
  const std::map<std::string, std::string> column = ReadColumn(heading);
  std::set<std::string> tried;
  for (const DeviceCase& each : cases) {
    const std::string name(each.transform->name());
    tried.insert(name);
    const auto found = column.find(name);
    if (found == column.end()) {
      ADD_FAILURE() << name << " is not in the table of " << heading;
    } else if (absl::StartsWith(found->second, "both")) {
      ExpectSameOnDevice(*each.transform, each.call, each.batch, device,
                         each.tolerance);
    } else {
      // And says why.
      EXPECT_TRUE(absl::StartsWith(found->second, "host: ")) << found->second;
      ExpectRefused(each, device);
    }
  }
  for (const auto& [name, where] : column) {
    // Others are as what they are made of.
    if (!absl::StartsWith(where, "both") && !absl::StartsWith(where, "host")) {
      continue;
    }
    EXPECT_TRUE(tried.contains(name)) << name << " has no case";
  }
}

TensorDict DeviceCaseBatch(const Shape& shape) {
  TensorDictSpec spec = TedSpec();
  const auto add = [&](absl::string_view key, const LeafSpec& leaf) {
    RILL_EXPECT_OK(spec.Set(key, leaf));
  };
  const auto floats = [](const Shape& row) {
    return LeafSpec::Bounded(DType::kFloat32, row, -2, 2);
  };
  for (const absl::string_view prefix : {"", "next/"}) {
    add(absl::StrCat(prefix, "pixels"),
        LeafSpec::Bounded(DType::kUInt8, {6, 5, 3}, 0, 255));
    add(absl::StrCat(prefix, "state_value"), floats({1}));
  }
  add("planes", floats({3, 6, 5}));
  add("left", floats({2, 3}));
  add("right", floats({2, 3}));
  add("torque", floats({2}));
  add("wide", LeafSpec::Bounded(DType::kFloat64, {3}, -1e6, 1e6));
  add("info/count", LeafSpec::Bounded(DType::kInt64, {1}, 0, 9));
  return *spec.Random(shape, Rng(7, RngStream::kUser), 0);
}

}  // namespace rill
