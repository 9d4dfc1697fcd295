// SPDX-License-Identifier: Apache-2.0
// The tree on a device beside the one on the host.
#include "rill/device/sum_tree/device_sum_tree.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/kernels/host_grid.h"
#include "rill/device/kernels/testing/thread_grid.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/samplers/sum_tree/sum_tree.h"
#include "rill/testing/chi_square.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Arrays of a device, copied in order of a stream.
template <typename T>
class Array {
 public:
  Array(std::vector<T> values, Device device)
      : device_(device), count_(values.size()) {
    buffer_ = *Buffer::Allocate(
        static_cast<int64_t>(sizeof(T) * (values.size() + 1)), device,
        device.is_cpu() ? MemoryKind::kPageable : MemoryKind::kDevice);
    if (values.empty()) return;
    RILL_EXPECT_OK(CopyBlocking(buffer_->data(), values.data(),
                                static_cast<int64_t>(sizeof(T) * count_),
                                device));
  }
  Array(size_t count, Device device) : Array(std::vector<T>(count), device) {}

  T* data() const { return reinterpret_cast<T*>(buffer_->data()); }
  std::vector<T> Values() const {
    std::vector<T> values(count_);
    RILL_EXPECT_OK(CopyBlocking(values.data(), buffer_->data(),
                                static_cast<int64_t>(sizeof(T) * count_),
                                device_));
    return values;
  }

 private:
  Device device_;
  size_t count_;
  std::shared_ptr<Buffer> buffer_;
};

class DeviceSumTreeTest : public ::testing::TestWithParam<Device> {
 protected:
  double Total(const DeviceSumTree& tree) const {
    double total = 0;
    RILL_EXPECT_OK(
        CopyBlocking(&total, tree.total(), sizeof(total), GetParam()));
    return total;
  }
  void Set(DeviceSumTree& tree, const std::vector<int64_t>& slots,
           const std::vector<double>& weights) {
    const Array<int64_t> at(slots, GetParam());
    const Array<double> values(weights, GetParam());
    RILL_ASSERT_OK(tree.Set(at.data(), values.data(),
                            static_cast<int64_t>(slots.size()), stream_));
    RILL_ASSERT_OK(stream_.Synchronize());
  }
  std::vector<int64_t> Find(const DeviceSumTree& tree,
                            const std::vector<double>& targets) {
    const Array<double> wanted(targets, GetParam());
    const Array<int64_t> found(targets.size(), GetParam());
    RILL_EXPECT_OK(tree.Find(wanted.data(), found.data(),
                             static_cast<int64_t>(targets.size()), stream_));
    RILL_EXPECT_OK(stream_.Synchronize());
    return found.Values();
  }

  const Stream stream_ = *Stream::Create(GetParam());
};

INSTANTIATE_TEST_SUITE_P(HostAndFake, DeviceSumTreeTest,
                         ::testing::Values(Device::Cpu(), Device::Fake()));

TEST_P(DeviceSumTreeTest, Example) {
  const Device device = GetParam();
  const auto tree = *DeviceSumTree::Create(1'000'000, device);
  const Array<int64_t> at({7, 40}, device);
  const Array<double> values({1.0, 3.0}, device);
  const Array<int64_t> drawn(size_t{256}, device);
  RILL_ASSERT_OK(tree->Set(at.data(), values.data(), 2, stream_));
  RILL_ASSERT_OK(tree->Sample({.seed = 7, .batch = 1}, drawn.data(),
                              /*weights=*/nullptr, 256, stream_));
  RILL_ASSERT_OK(stream_.Synchronize());
  EXPECT_EQ(Total(*tree), 4);
  EXPECT_THAT(drawn.Values(), ::testing::Each(::testing::AnyOf(7, 40)));
}

TEST_P(DeviceSumTreeTest, IsTheHostsTreeOverRandomWrites) {
  const Rng rng(1);
  for (const int64_t size : {1, 7, 8, 9, 64, 65, 513, 5000}) {
    SCOPED_TRACE(size);
    const auto tree = *DeviceSumTree::Create(size, GetParam());
    samplers_internal::SumTree want(size);
    for (uint64_t step = 0; step < 12; ++step) {
      // From one place to more than a block has threads; slots repeat.
      const int64_t count = rng.UniformInt(step, 0, step % 4 == 0 ? 1500 : 40);
      std::vector<int64_t> slots;
      std::vector<double> weights;
      for (uint32_t i = 0; i < count; ++i) {
        slots.push_back(rng.UniformInt(step, 1 + 3 * i, size));
        weights.push_back(rng.UniformInt(step, 2 + 3 * i, 4) == 0
                              ? 0
                              : rng.UniformDouble(step, 3 + 3 * i));
      }
      Set(*tree, slots, weights);
      want.Set(slots, weights);
      ASSERT_EQ(Total(*tree), want.total());
      if (want.total() == 0) continue;
      std::vector<double> targets = {-1, 0, want.total(),
                                     std::numeric_limits<double>::quiet_NaN(),
                                     std::numeric_limits<double>::infinity()};
      for (uint32_t i = 0; i < 300; ++i) {
        targets.push_back(want.total() * rng.UniformDouble(100 + step, i));
      }
      std::vector<int64_t> found(targets.size());
      want.Find(targets, absl::MakeSpan(found));
      EXPECT_THAT(Find(*tree, targets), ElementsAreArray(found));
    }
  }
}

TEST_P(DeviceSumTreeTest, DrawsAreThoseOfTheHostsNumbers) {
  constexpr int64_t kSize = 1000;
  constexpr size_t kCount = 300;
  const auto tree = *DeviceSumTree::Create(kSize, GetParam());
  samplers_internal::SumTree want(kSize);
  std::vector<int64_t> slots(kSize);
  std::vector<double> weights(kSize);
  for (int64_t i = 0; i < kSize; ++i) {
    slots[i] = i;
    weights[i] = Rng(3).UniformDouble(0, static_cast<uint32_t>(i));
  }
  Set(*tree, slots, weights);
  want.Set(slots, weights);
  const Rng rng(7, RngStream::kSampler);
  constexpr uint64_t kBatch = (uint64_t{5} << 32) + 9;
  for (const bool stratified : {false, true}) {
    const Array<int64_t> drawn(kCount, GetParam());
    const Array<double> values(kCount, GetParam());
    RILL_ASSERT_OK(tree->Sample(
        {.seed = 7, .batch = kBatch, .first = 4, .stratified = stratified},
        drawn.data(), values.data(), kCount, stream_));
    RILL_ASSERT_OK(stream_.Synchronize());
    std::vector<double> targets;
    for (uint32_t i = 0; i < kCount; ++i) {
      const double u = rng.UniformDouble(kBatch, 4 + i);
      targets.push_back(want.total() * (stratified ? (i + u) / kCount : u));
    }
    std::vector<int64_t> found(kCount);
    want.Find(targets, absl::MakeSpan(found));
    EXPECT_THAT(drawn.Values(), ElementsAreArray(found));
    const std::vector<double> got = values.Values();
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(got[i], want.Get(found[i]));
  }
}

TEST_P(DeviceSumTreeTest, DrawsAreInProportionToWeights) {
  const auto tree = *DeviceSumTree::Create(20, GetParam());
  std::vector<double> weights;
  std::vector<int64_t> slots;
  for (int64_t i = 0; i < 20; ++i) {
    slots.push_back(i);
    weights.push_back(static_cast<double>(i % 5 + 1));
  }
  Set(*tree, slots, weights);
  constexpr int64_t kCount = 20000;
  const Array<int64_t> drawn(size_t{kCount}, GetParam());
  RILL_ASSERT_OK(
      tree->Sample({.seed = 11}, drawn.data(), nullptr, kCount, stream_));
  RILL_ASSERT_OK(stream_.Synchronize());
  std::vector<int64_t> counts(20);
  for (const int64_t slot : drawn.Values()) ++counts[slot];
  for (double& weight : weights) weight /= 60;
  EXPECT_THAT(counts, DistributedAs(weights, /*p_value=*/1e-9));
}

TEST_P(DeviceSumTreeTest, ErrorsNameWhatIsWrong) {
  EXPECT_THAT(DeviceSumTree::Create(0, GetParam()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("size: got 0, want [1, ")));
  const auto tree = *DeviceSumTree::Create(8, GetParam());
  const auto other = *Stream::Create(Device::Fake(1));
  EXPECT_THAT(tree->Set(nullptr, nullptr, -1, stream_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Set: count: got -1, want >= 0")));
  EXPECT_THAT(tree->Find(nullptr, nullptr, 1, other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Find: stream: got one of fake:1")));
}

TEST(TreeSetKernelTest, AnyOrderOfThreadsGivesTheSameTree) {
  const device_internal::TreeLayout layout = device_internal::TreeLayoutOf(700);
  std::vector<int64_t> slots;
  std::vector<double> weights;
  for (uint32_t i = 0; i < 200; ++i) {
    slots.push_back(Rng(1).UniformInt(0, i, 90));
    weights.push_back(Rng(2).UniformDouble(0, i));
  }
  std::vector<double> first;
  for (uint64_t order = 0; order < 21; ++order) {
    std::vector<double> values(layout.num_values);
    std::vector<int64_t> claims(layout.num_values);
    const device_internal::TreeSetKernel kernel = {
        .layout = layout,
        .values = values.data(),
        .claims = claims.data(),
        .first_number = 1,
        .slots = slots.data(),
        .weights = weights.data(),
        .count = static_cast<int64_t>(slots.size())};
    if (order == 20) {
      RunGridOnThreads(kernel, {.blocks = 1, .threads = 64});
    } else {
      RunGridOnHost(kernel, {.blocks = 1, .threads = 64}, order);
    }
    if (order == 0) first = values;
    EXPECT_EQ(values, first) << order;
  }
}

}  // namespace
}  // namespace rill
