// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_SOURCES_TRANSFORMED_SOURCE_H_
#define RILL_COLLECTORS_SOURCES_TRANSFORMED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/compose.h"

namespace rill {

// The batches of another source, each through the Forward of transforms before
// it is handed out or written to a sink: TorchRL's postproc. Returns of whole
// trajectories are such a transform, in front of a replay buffer and behind a
// TrajectorySource.
//
// Numbers, lanes and cuts are those of the source. A batch that the sink or a
// transform refuses in CollectInto comes again, and goes through the transforms
// again, from the state before it. In Next an error of a transform loses that
// batch.
//
// Shapes: those that the transforms make; frames() counts the source's steps.
// Thread-safety: that of Source.
// Cost: one copy of the batch's bytes, since transforms work in place, and the
//   transforms.
//
// Example (TransformedSourceTest.Example runs it):
//   TransformedSource::Options options = {.source = std::move(collector)};
//   RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
//                         RewardScaling::Create({.scale = 0.1}));
//   RILL_ASSIGN_OR_RETURN(auto scaled,
//                         TransformedSource::Create(std::move(options)));
class TransformedSource final : public Source {
 public:
  struct Options {
    std::unique_ptr<Source> source = nullptr;  // Required.
    std::vector<std::unique_ptr<BatchTransform>> transforms = {};
  };

  // INVALID_ARGUMENT names the option; a transform that does not fit the
  // source's spec says so here.
  static absl::StatusOr<std::unique_ptr<TransformedSource>> Create(
      Options options);

  const TensorDictSpec& spec() const override { return spec_; }
  int64_t frames() const override { return source_->frames(); }
  const Times& times() const override { return source_->times(); }

  absl::StatusOr<TensorDict> Next() override;
  absl::Status CollectInto(Sink& sink) override;
  void Stop() override { source_->Stop(); }

  // `source`, and `transforms`, the state of the transforms.
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  TransformedSource(std::unique_ptr<Source> source,
                    std::unique_ptr<Compose> transforms)
      : source_(std::move(source)), transforms_(std::move(transforms)) {}

  // A batch of its own; `state` becomes the one after it.
  absl::StatusOr<TensorDict> Transform(const TensorDict& batch,
                                       TensorDict* state) const;

  const std::unique_ptr<Source> source_;
  const std::unique_ptr<Compose> transforms_;
  TensorDictSpec spec_;
  TensorDict state_;  // Of the transforms.
};

}  // namespace rill

#endif  // RILL_COLLECTORS_SOURCES_TRANSFORMED_SOURCE_H_
