// SPDX-License-Identifier: Apache-2.0
// The parts that docs/extending.md shows, as they stand there, pass the suites
// of their interfaces.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/conformance/policy_conformance.h"
#include "rill/distributed/transport/conformance/transport_conformance.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/docs/doc_examples/guides/own_env.h"
#include "rill/docs/doc_examples/guides/own_policy.h"
#include "rill/docs/doc_examples/guides/own_sampler.h"
#include "rill/docs/doc_examples/guides/own_storage.h"
#include "rill/docs/doc_examples/guides/own_transform.h"
#include "rill/docs/doc_examples/guides/own_transport.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {

TransformUnderTest SquashRewardUnderTest() {
  TransformUnderTest under_test;
  under_test.make = MakeSquashReward;
  const LeafSpec one = LeafSpec::Unbounded(DType::kFloat32, {1});
  RILL_EXPECT_OK(under_test.batch_spec.Set("next/reward", one));
  RILL_EXPECT_OK(under_test.batch_spec.Set("observation", one));
  return under_test;
}
INSTANTIATE_TRANSFORM_CONFORMANCE(SquashReward, SquashRewardUnderTest());

INSTANTIATE_SAMPLER_CONFORMANCE(Stratified, {.make = MakeStratifiedSampler,
                                             .refuses_moved_rows = true});

INSTANTIATE_TEST_SUITE_P(Walk, EnvConformanceTest,
                         ::testing::Values([] { return MakeWalk(3); }));

// An action of three choices of six options each, by observations that differ
// from lane to lane.
PolicySubject LinearActorCriticSubject() {
  constexpr int64_t kLanes = 5, kInputs = 4;
  constexpr int64_t kOptions[] = {6, 6, 6};
  uint32_t draw = 0;
  const auto number = [&draw] {
    return 2 * Rng(1).UniformFloat(/*batch=*/0, draw++) - 1;
  };
  PolicySubject subject;
  subject.policy = MakeLinearActorCritic(kInputs, 3, 6, number);
  subject.action = LeafSpec::MultiCategorical(kOptions);
  subject.root = TensorDict({kLanes});
  Tensor seen = *Tensor::Zeros(DType::kFloat32, {kLanes, kInputs});
  std::generate_n(seen.data<float>(), seen.num_elements(), number);
  RILL_EXPECT_OK(subject.root.Set("observation", seen));
  return subject;
}
INSTANTIATE_TEST_SUITE_P(LinearActorCritic, PolicyConformanceTest,
                         ::testing::Values(LinearActorCriticSubject));

std::atomic<int64_t> rows_read;

absl::StatusOr<std::unique_ptr<Storage>> MakeCountedDense(
    int64_t capacity, int64_t lanes, const TensorDictSpec& spec) {
  DenseStorage::Options options = {.capacity = capacity, .lanes = lanes};
  options.spec = spec;
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Storage> inner,
                        DenseStorage::Create(options));
  return MakeCounted(std::move(inner), &rows_read);
}
StorageCase CountedCase() {
  StorageCase c;
  c.name = "Counted";
  c.create = MakeCountedDense;
  c.is_lazy = true;
  return c;
}
INSTANTIATE_TEST_SUITE_P(Counted, RowReaderConformanceTest,
                         ::testing::Values(CountedCase()), StorageCaseName);
INSTANTIATE_TEST_SUITE_P(Counted, StorageConformanceTest,
                         ::testing::Values(CountedCase()), StorageCaseName);

std::shared_ptr<Transport> MakeNamedInproc() {
  auto inner = InprocTransport::Create({});
  RILL_EXPECT_OK(inner.status());
  return MakeNamed(*std::move(inner), {{"learner", "address of the learner"}});
}
INSTANTIATE_TEST_SUITE_P(Named, TransportConformanceTest, ::testing::Values([] {
                           return TransportSubject{
                               .transport = MakeNamedInproc(),
                               .address = "",
                               .free_address = "nobody"};
                         }));

TEST(ExtendingTest, ATransportKnowsServersByName) {
  const auto transport = MakeNamedInproc();
  EXPECT_THAT(
      transport->Connect("learner", Clock::System().Now() + absl::Seconds(1)),
      StatusIs(absl::StatusCode::kUnavailable,
               ::testing::HasSubstr("address of the learner")));
}

TEST(ExtendingTest, AStorageCountsTheRowsThatAreRead) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, MakeCountedDense(8, 1, {}));
  TensorDict steps({4});
  RILL_ASSERT_OK_AND_ASSIGN(Tensor x, Tensor::From({1, 2, 3, 4}, {4}));
  RILL_ASSERT_OK(steps.Set("x", std::move(x)));
  RILL_ASSERT_OK(storage->Extend(steps).status());
  rows_read = 0;
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({3, 1, 1}, &rows));
  EXPECT_EQ(rows_read, 3);
}

}  // namespace rill
