// SPDX-License-Identifier: Apache-2.0
// Errors of options that a user mistook: they name the option, the path, the
// leaf.
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Leaves observation float32[width] and action int64[].
TensorDictSpec Spec(int64_t width = 4) {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {width})));
  RILL_EXPECT_OK(spec.Set("action", LeafSpec::Unbounded(DType::kInt64, {})));
  return spec;
}

// --- Lanes -------------------------------------------------------------------

TEST(OptionErrorsTest, OtherNumberOfLanesNamesTheOption) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            DenseStorage::Create({.capacity = 8, .lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict three, Spec().Zero({3, 2}));
  EXPECT_THAT(storage->Extend(three),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("lanes: got 3 from lane 0 on"),
                             HasSubstr("Options::lanes of the storage is 2"))));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict steps, Spec().Zero({2}));
  EXPECT_THAT(storage->Extend(steps), IsInvalidArgument("Options::lanes = 2"));
}

TEST(OptionErrorsTest, ReopeningWithACapacityAloneAsksForTheLanesToo) {
  const std::string directory = FreshPath("capacity_alone");
  RILL_ASSERT_OK(MemmapStorage::Create(
      {.directory = directory, .capacity = 8, .lanes = 2, .spec = Spec()}));
  EXPECT_THAT(
      MemmapStorage::Open({.directory = directory, .capacity = 8}),
      StatusIs(kFailedPrecondition, AllOf(HasSubstr("Options::lanes: got 1"),
                                          HasSubstr("Options::capacity"),
                                          HasSubstr("give both or neither"))));
}

// --- Specs -------------------------------------------------------------------

TEST(OptionErrorsTest, OtherSpecNamesTheLeafThatDiffersAlone) {
  const std::string directory = FreshPath("other_spec");
  RILL_ASSERT_OK(MemmapStorage::Create(
      {.directory = directory, .capacity = 8, .spec = Spec(4)}));
  EXPECT_THAT(
      MemmapStorage::Open({.directory = directory, .spec = Spec(5)}),
      StatusIs(kFailedPrecondition,
               AllOf(HasSubstr("Options::spec: leaf \"observation\": got "
                               "float32[5], want float32[4], as in \"" +
                               directory),
                     Not(HasSubstr("action")))));

  const std::string saved = FreshPath("other_spec_saved");
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            DenseStorage::Create({.capacity = 8}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict steps, Spec(5).Zero({2}));
  RILL_ASSERT_OK(storage->Extend(steps));
  RILL_ASSERT_OK(storage->Save(saved));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto other, DenseStorage::Create({.capacity = 8, .spec = Spec(4)}));
  EXPECT_THAT(other->Load(saved),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("leaf \"observation\": got float32[5], "
                                       "want float32[4]"),
                             Not(HasSubstr("action")))));
}

// --- Devices -----------------------------------------------------------------

TEST(OptionErrorsTest, DeviceThatIsNotThereIsRefusedByCreate) {
  EXPECT_THAT(DenseStorage::Create({.capacity = 4, .device = Device::Fake(7)}),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("DenseStorage::Create: Options::device"),
                             HasSubstr("fake:7"))));
  EXPECT_THAT(DenseStorage::Create({.capacity = 4,
                                    .device = Device::Fake(7),
                                    .memory_kind = MemoryKind::kPinned}),
              IsInvalidArgument("Options::device"));
  // A machine without one, as a CUDA build finds it without a driver.
  FakeBackend::Install({.num_devices = 0});
  EXPECT_THAT(DenseStorage::Create({.capacity = 4, .device = Device::Fake(0)}),
              IsInvalidArgument("Options::device"));
  FakeBackend::Install({});
  RILL_EXPECT_OK(
      DenseStorage::Create({.capacity = 4, .device = Device::Fake(0)}));
}

// This test links no CUDA backend.
TEST(OptionErrorsTest, DeviceWithoutABackendIsRefusedByCreate) {
  EXPECT_THAT(DenseStorage::Create({.capacity = 4, .device = Device::Cuda(0)}),
              StatusIs(kFailedPrecondition,
                       AllOf(HasSubstr("DenseStorage::Create: Options::device"),
                             HasSubstr("cuda:0"))));
}

// --- Directories -------------------------------------------------------------

TEST(OptionErrorsTest, MissingParentsNameTheOptionAndThePath) {
  const std::string root = FreshPath("missing_parents");
  const std::string path = JoinPath(root, "at/all");
  const auto refuses = [&](const char* option) {
    return StatusIs(absl::StatusCode::kNotFound,
                    AllOf(HasSubstr(option), HasSubstr("got \"" + path + "\""),
                          HasSubstr("make \"" + JoinPath(root, "at"))));
  };
  EXPECT_THAT(MemmapStorage::Create({.directory = path, .capacity = 4}),
              refuses("MemmapStorage::Create: Options::directory"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            DenseStorage::Create({.capacity = 4}));
  EXPECT_THAT(storage->Save(path), refuses("Storage::Save: directory"));
  EXPECT_FALSE(PathExists(root));
}

TEST(OptionErrorsTest, OneMissingParentIsMade) {
  const std::string root = FreshPath("missing_parent");
  RILL_EXPECT_OK(MemmapStorage::Create(
      {.directory = JoinPath(root, "rows"), .capacity = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            DenseStorage::Create({.capacity = 4}));
  RILL_EXPECT_OK(storage->Save(JoinPath(root, "saves/first")));
}

}  // namespace
}  // namespace rill
