// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/sources/transformed_source.h"

#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensordict/state/state_dict.h"

namespace rill {
namespace {

constexpr absl::string_view kType = "TransformedSource";
constexpr int64_t kVersion = 1;

}  // namespace

absl::StatusOr<std::unique_ptr<TransformedSource>> TransformedSource::Create(
    Options options) {
  if (options.source == nullptr) {
    return InvalidArgument(
        "TransformedSource::Create: source: got null, want a source");
  }
  RILL_ASSIGN_OR_RETURN(auto transforms,
                        Compose::Create(std::move(options.transforms)));
  auto made = absl::WrapUnique(
      new TransformedSource(std::move(options.source), std::move(transforms)));
  RILL_ASSIGN_OR_RETURN(made->spec_,
                        made->transforms_->ForwardSpec(made->source_->spec()));
  RILL_ASSIGN_OR_RETURN(made->state_, made->transforms_->InitialState());
  return made;
}

absl::StatusOr<TensorDict> TransformedSource::Transform(
    const TensorDict& batch, TensorDict* state) const {
  // The source may write its batch's memory again, or offer it again.
  RILL_ASSIGN_OR_RETURN(TensorDict own, batch.Clone());
  RILL_RETURN_IF_ERROR(transforms_->ForwardOwned(&own, state));
  RILL_RETURN_IF_ERROR(
      CheckFiniteIfAsked("TransformedSource", own, {"lane", "step"}));
  return own;
}

absl::StatusOr<TensorDict> TransformedSource::Next() {
  RILL_ASSIGN_OR_RETURN(const TensorDict batch, source_->Next());
  TensorDict state = state_;
  RILL_ASSIGN_OR_RETURN(TensorDict transformed, Transform(batch, &state));
  state_ = std::move(state);
  return transformed;
}

absl::Status TransformedSource::CollectInto(Sink& sink) {
  FunctionSink through(
      [&](const TensorDict& batch, const WriteInfo& info) -> absl::Status {
        TensorDict state = state_;
        RILL_ASSIGN_OR_RETURN(const TensorDict transformed,
                              Transform(batch, &state));
        RILL_RETURN_IF_ERROR(sink.Write(transformed, info));
        // After the sink: a batch that it refused comes again and meets the
        // same state.
        state_ = std::move(state);
        return absl::OkStatus();
      },
      [&](int64_t producer, LaneRange lanes) {
        return sink.Cut(producer, lanes);
      });
  return source_->CollectInto(through);
}

absl::StatusOr<TensorDict> TransformedSource::SaveState() const {
  StateWriter state(kType, kVersion);
  state.Entry("source", source_->SaveState());
  state.Entry<TensorDict>("transforms", state_);
  return std::move(state).Finish();
}

absl::Status TransformedSource::LoadState(const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kVersion, dict));
  RILL_ASSIGN_OR_RETURN(const TensorDict* const source, state.Dict("source"));
  RILL_ASSIGN_OR_RETURN(const TensorDict* const transforms,
                        state.Dict("transforms"));
  RILL_ASSIGN_OR_RETURN(const TensorDict initial, transforms_->InitialState());
  RILL_RETURN_IF_ERROR(CheckTransformState("TransformedSource::LoadState",
                                           initial, *transforms));
  RILL_RETURN_IF_ERROR(source_->LoadState(*source));
  state_ = *transforms;
  return absl::OkStatus();
}

}  // namespace rill
