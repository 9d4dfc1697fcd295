// SPDX-License-Identifier: Apache-2.0
// Entries of a state:
// - `source`: the state of the source.
// - `frames`, `sequence`: int64 [1]; `producer`: int64 [] (older: none).
// - `whole`, `open`: trajectories. Each has `steps`, the leaves of the source
//   of batch shape [1, steps], and `lengths`, int64 [trajectories].
// - `open/lanes`, `open/dropped`: int64 [trajectories].
// - `newest`: int64 [2 * producers], each producer and the number of its batch.
#include "rill/collectors/sources/trajectory_source.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/flow/trajectory_id.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr absl::string_view kCreate = "TrajectorySource::Create";
constexpr absl::string_view kMaskKey = "collector/mask";
constexpr absl::string_view kVersionKey = "policy_version";
constexpr int64_t kMissing = -1;
constexpr int64_t kNext = -2;  // As the id to drop: that of the next step.

constexpr absl::string_view kType = "TrajectorySource";
constexpr int64_t kStateVersion = 1;

Shape Length(const std::vector<int64_t>& values) {
  return Shape({static_cast<int64_t>(values.size())});
}

// Random actions are version 0, as a batch without versions is.
int64_t NewestVersion(const TensorDict& batch) {
  const auto versions = batch.Flat<int64_t>(kVersionKey);
  if (!versions.ok() || versions->empty()) return 0;
  return *std::max_element(versions->begin(), versions->end());
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrajectorySource>> TrajectorySource::Create(
    Options options) {
  const auto refuse = [](absl::string_view option, auto got,
                         absl::string_view want) {
    return InvalidArgument(kCreate, ": ", option, ": got ", got, ", want ",
                           want);
  };
  if (options.source == nullptr) return refuse("source", "null", "a source");
  if (options.trajectories_per_batch < 1) {
    return refuse("trajectories_per_batch", options.trajectories_per_batch,
                  "> 0");
  }
  if (options.lane < 0) return refuse("lane", options.lane, ">= 0");
  if (const int64_t producer = options.producer.value_or(0);
      producer < 0 || producer > kMaxTrajectoryProducer) {
    return refuse("producer", producer, "[0, 2^23), or none");
  }
  auto made = absl::WrapUnique(new TrajectorySource(std::move(options)));
  RILL_ASSIGN_OR_RETURN(made->producers_,
                        ProducerNumbers::OfOrLowest(made->options_.producer));
  RILL_RETURN_IF_ERROR(made->Bind());
  return made;
}

absl::Status TrajectorySource::CheckLeaf(absl::string_view key, DType dtype,
                                         const Shape& shape,
                                         size_t* number) const {
  const LeafSpec* const leaf = options_.source->spec().Find(key);
  if (leaf == nullptr || leaf->dtype != dtype || !(leaf->shape == shape)) {
    return InvalidArgument(
        kCreate, ": \"", key, "\" of the source: got ",
        leaf == nullptr
            ? "none"
            : absl::StrCat(DTypeName(leaf->dtype), leaf->shape.ToString()),
        ", want ", DTypeName(dtype), shape.ToString());
  }
  *number = std::find_if(leaves_.begin(), leaves_.end(),
                         [&](const Leaf& one) { return one.key == key; }) -
            leaves_.begin();
  return absl::OkStatus();
}

absl::Status TrajectorySource::Bind() {
  spec_ = options_.source->spec();
  if (!spec_.non_tensors().empty()) {
    return InvalidArgument(
        kCreate, ": \"", spec_.non_tensors().front().key,
        "\" of the source: got an entry that is no tensor, want tensors");
  }
  for (const TensorDictSpec::Leaf& leaf : spec_.leaves()) {
    // Bytes alone: steps are kept and joined without a look at their values,
    // but for done and id.
    leaves_.push_back({leaf.key, leaf.spec.shape.num_elements() *
                                     DTypeSize(leaf.spec.dtype)});
    step_bytes_ += leaves_.back().row_bytes;
  }
  RILL_RETURN_IF_ERROR(CheckLeaf(options_.done_key, DType::kBool, {1}, &done_));
  RILL_RETURN_IF_ERROR(
      CheckLeaf(kTrajectoryKey, DType::kInt64, Shape({}), &id_));
  if (options_.format == Format::kCat) return absl::OkStatus();
  if (size_t mask; spec_.Find(kMaskKey) != nullptr) {
    return CheckLeaf(kMaskKey, DType::kBool, Shape({}), &mask);
  }
  adds_mask_ = true;
  return spec_.Set(kMaskKey, LeafSpec::Unbounded(DType::kBool, Shape({})));
}

absl::Status TrajectorySource::CheckStopped() {
  if (!is_stopped_.exchange(false, std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  return absl::CancelledError(
      "TrajectorySource::Next: stopped; call again to go on");
}

void TrajectorySource::Append(const Rows& rows, int64_t begin, int64_t end,
                              Trajectory* to) const {
  if (begin == end) return;
  const int64_t steps = end - begin;
  // One block a piece, leaf behind leaf: an open trajectory grows at its end
  // only, whatever its leaves are.
  const size_t size = to->bytes.size();
  to->bytes.resize(size + static_cast<size_t>(steps * step_bytes_));
  std::byte* at = to->bytes.data() + size;
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const int64_t bytes = leaves_[i].row_bytes;
    at = std::copy_n(rows[i] + begin * bytes, steps * bytes, at);
  }
  to->id = reinterpret_cast<const int64_t*>(rows[id_])[begin];
  to->steps += steps;
  to->pieces.push_back(steps);
}

void TrajectorySource::TakeLane(const Rows& rows, int64_t first, int64_t time,
                                Lane* lane, Ended* ended) const {
  const auto* const ids = reinterpret_cast<const int64_t*>(rows[id_]) + first;
  const auto* const done = reinterpret_cast<const bool*>(rows[done_]) + first;
  Trajectory* const open = &lane->open;
  // The id of the steps in `open` and in [begin, t); kMissing: there are none.
  int64_t id = open->id;
  int64_t begin = 0;  // Steps from here on are not in `open` yet.
  for (int64_t t = 0; t < time; ++t) {
    if (ids[t] != kMissing && lane->dropped == kNext) lane->dropped = ids[t];
    // Left out; a trajectory that is open goes on behind it.
    if (ids[t] == kMissing || ids[t] == lane->dropped) {
      Append(rows, first + begin, first + t, open);
      begin = t + 1;
      continue;
    }
    if (id != kMissing && id != ids[t]) {  // Its end never came.
      *open = {};
      begin = t;
    }
    id = ids[t];
    if (!done[t]) continue;
    Append(rows, first + begin, first + t + 1, open);
    ended->emplace_back(t, std::exchange(*open, {}));
    id = kMissing;
    begin = t + 1;
  }
  Append(rows, first + begin, first + time, open);
}

absl::Status TrajectorySource::Take(const TensorDict& batch,
                                    const WriteInfo& info) {
  RILL_RETURN_IF_ERROR(
      options_.source->spec().CheckLayout("TrajectorySource::Next", batch));
  const Shape& shape = batch.batch_shape();
  if (shape.rank() != 2) {
    return InvalidArgument(
        "TrajectorySource::Next: batch of the source: got shape ",
        shape.ToString(), ", want [lanes, time]");
  }
  std::vector<Tensor> dense;
  Rows rows;
  for (const Leaf& leaf : leaves_) {
    RILL_ASSIGN_OR_RETURN(dense.emplace_back(),
                          batch.Find(leaf.key)->Contiguous());
    if (!dense.back().is_host()) {
      return FailedPrecondition("TrajectorySource::Next: \"", leaf.key,
                                "\": got ", dense.back().device().ToString(),
                                ", want host memory; collect into that");
    }
    rows.push_back(dense.back().raw_data());
  }
  // Where the source has left a batch out, episodes may have begun in it.
  bool follows = true;
  if (info.sequence > 0) {
    // Numbers begin with 1: a source that another sink has read from is known
    // by its first number here.
    int64_t& newest = newest_[info.producer];
    follows = info.sequence == newest + 1;
    newest = info.sequence;
  }
  Ended ended;
  for (int64_t i = 0; i < shape[0]; ++i) {
    const auto lane = lanes_.try_emplace(info.first_lane + i).first;
    if (!follows) lane->second = {.open = {}, .dropped = kNext};
    TakeLane(rows, i * shape[1], shape[1], &lane->second, &ended);
    // Keeps the map, and a saved state, to lanes that have something.
    if (lane->second.open.steps == 0 && lane->second.dropped == kMissing) {
      lanes_.erase(lane);
    }
  }
  // Lanes were taken one by one; their trajectories go out by time of the end.
  // Equal times keep the order of lanes.
  std::stable_sort(
      ended.begin(), ended.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [time, trajectory] : ended) {
    whole_.push_back(std::move(trajectory));
  }
  return absl::OkStatus();
}

void TrajectorySource::Drop(LaneRange lanes) {
  const auto end = lanes_.lower_bound(lanes.first + lanes.count);
  for (auto at = lanes_.lower_bound(lanes.first); at != end; ++at) {
    Lane& lane = at->second;
    // A lane without open steps has nothing to end; its next id is a new one.
    if (lane.open.steps > 0) lane = {.open = {}, .dropped = lane.open.id};
  }
}

absl::StatusOr<int64_t> TrajectorySource::Collect() {
  const auto have = [this] { return static_cast<int64_t>(whole_.size()); };
  FunctionSink sink([this](const TensorDict& batch,
                           const WriteInfo& info) { return Take(batch, info); },
                    [this](int64_t /*producer*/, LaneRange lanes) {
                      Drop(lanes);
                      return absl::OkStatus();
                    });
  RILL_RETURN_IF_ERROR(CheckStopped());
  while (have() < options_.trajectories_per_batch) {
    const absl::Status collected = options_.source->CollectInto(sink);
    // The source has come to its end: what is left is the last batch.
    if (absl::IsOutOfRange(collected) && have() > 0) return have();
    RILL_RETURN_IF_ERROR(collected);
    if (have() >= options_.trajectories_per_batch) break;
    RILL_RETURN_IF_ERROR(CheckStopped());
  }
  return options_.trajectories_per_batch;
}

std::vector<const TrajectorySource::Trajectory*> TrajectorySource::First(
    int64_t trajectories) const {
  std::vector<const Trajectory*> first;
  for (int64_t i = 0; i < trajectories; ++i) first.push_back(&whole_[i]);
  return first;
}

absl::StatusOr<TensorDict> TrajectorySource::Join(
    const std::vector<const Trajectory*>& trajectories, Format format) const {
  int64_t steps = 0;
  int64_t longest = 0;
  for (const Trajectory* one : trajectories) {
    steps += one->steps;
    longest = std::max(longest, one->steps);
  }
  const bool is_padded = format == Format::kPadded;
  TensorDict batch;
  if (is_padded) {
    RILL_ASSIGN_OR_RETURN(
        batch,
        spec_.Zero({static_cast<int64_t>(trajectories.size()), longest}));
  } else {
    // Without the mask, which has nothing to say where no row pads.
    RILL_ASSIGN_OR_RETURN(batch, options_.source->spec().Empty({1, steps}, {}));
  }
  std::vector<std::byte*> to;
  for (const Leaf& leaf : leaves_) {
    to.push_back(batch.Find(leaf.key)->raw_data());
  }
  for (const Trajectory* one : trajectories) {
    const std::byte* from = one->bytes.data();
    for (const int64_t steps_of_piece : one->pieces) {
      for (size_t i = 0; i < leaves_.size(); ++i) {
        const int64_t bytes = steps_of_piece * leaves_[i].row_bytes;
        to[i] = std::copy_n(from, bytes, to[i]);
        from += bytes;
      }
    }
    if (!is_padded) continue;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      to[i] += (longest - one->steps) * leaves_[i].row_bytes;
    }
  }
  if (is_padded && adds_mask_) {
    bool* mask = batch.Find(kMaskKey)->data<bool>();
    for (const Trajectory* one : trajectories) {
      // Zero before: batches are made new.
      std::fill_n(mask, one->steps, true);
      mask += longest;
    }
  }
  return batch;
}

void TrajectorySource::HandOut(int64_t trajectories) {
  for (int64_t i = 0; i < trajectories; ++i) {
    frames_ += whole_.front().steps;
    whole_.pop_front();
  }
}

absl::StatusOr<TensorDict> TrajectorySource::Next() {
  RILL_ASSIGN_OR_RETURN(const int64_t trajectories, Collect());
  RILL_ASSIGN_OR_RETURN(TensorDict batch,
                        Join(First(trajectories), options_.format));
  HandOut(trajectories);
  return batch;
}

absl::Status TrajectorySource::CollectInto(Sink& sink) {
  // They leave whole_ only when the sink has taken them.
  RILL_ASSIGN_OR_RETURN(const int64_t trajectories, Collect());
  RILL_ASSIGN_OR_RETURN(const TensorDict batch,
                        Join(First(trajectories), Format::kCat));
  const WriteInfo info = {.producer = producers_.first(),
                          .first_lane = options_.lane,
                          .policy_version = NewestVersion(batch),
                          .sequence = sequence_ + 1,
                          .source = writer_};
  RILL_RETURN_IF_ERROR(
      CatchExceptions([&] { return sink.Write(batch, info); }, "Sink::Write"));
  ++sequence_;
  HandOut(trajectories);
  return absl::OkStatus();
}

void TrajectorySource::Save(absl::string_view key,
                            const std::vector<const Trajectory*>& trajectories,
                            StateWriter* state) const {
  std::vector<int64_t> lengths;
  for (const Trajectory* one : trajectories) lengths.push_back(one->steps);
  state->Entry(absl::StrCat(key, "/steps"), Join(trajectories, Format::kCat));
  state->List<int64_t>(absl::StrCat(key, "/lengths"), lengths, Length(lengths));
}

absl::StatusOr<TensorDict> TrajectorySource::SaveState() const {
  StateWriter state(kType, kStateVersion);
  // First: a source that cannot save refuses before anything is copied.
  RILL_ASSIGN_OR_RETURN(TensorDict source, options_.source->SaveState());
  state.Entry<TensorDict>("source", std::move(source));
  state.List<int64_t>("frames", {frames_}, {1});
  state.List<int64_t>("sequence", {sequence_}, {1});
  state.Set("producer", producers_.first());
  Save("whole", First(static_cast<int64_t>(whole_.size())), &state);
  std::vector<const Trajectory*> open;
  std::vector<int64_t> lanes;
  std::vector<int64_t> dropped;
  for (const auto& [number, lane] : lanes_) {
    open.push_back(&lane.open);
    lanes.push_back(number);
    dropped.push_back(lane.dropped);
  }
  Save("open", open, &state);
  state.List<int64_t>("open/lanes", lanes, Length(lanes));
  state.List<int64_t>("open/dropped", dropped, Length(lanes));
  std::vector<int64_t> newest;
  for (const auto& [producer, number] : newest_) {
    newest.insert(newest.end(), {producer, number});
  }
  state.List<int64_t>("newest", newest, Length(newest));
  return std::move(state).Finish();
}

absl::StatusOr<std::vector<TrajectorySource::Trajectory>>
TrajectorySource::Load(const StateReader& state, absl::string_view key,
                       int64_t min_steps) const {
  RILL_ASSIGN_OR_RETURN(const auto lengths,
                        state.List<int64_t>(absl::StrCat(key, "/lengths")));
  RILL_ASSIGN_OR_RETURN(const TensorDict* const steps,
                        state.Dict(absl::StrCat(key, "/steps")));
  int64_t sum = 0;
  bool fits = steps->batch_shape().rank() == 2;
  const int64_t want = fits ? steps->batch_shape()[1] : 0;
  for (const int64_t length : lengths) {
    // Compared without adding: a sum of lengths from a file may overflow.
    fits = fits && length >= min_steps && length <= want - sum;
    if (fits) sum += length;
  }
  if (!fits || !(steps->batch_shape() == Shape({1, sum}))) {
    return state.DoesNotFit(absl::StrCat(
        "\"", key, "\": got steps of ", steps->batch_shape().ToString(),
        ", want [1, sum of the lengths], which are >= ", min_steps));
  }
  if (const absl::Status layout =
          options_.source->spec().CheckLayout(key, *steps);
      !layout.ok()) {
    return state.DoesNotFit(layout.message());
  }
  std::vector<Tensor> dense;
  Rows rows;
  for (const Leaf& leaf : leaves_) {
    RILL_ASSIGN_OR_RETURN(dense.emplace_back(),
                          steps->Find(leaf.key)->Contiguous());
    rows.push_back(dense.back().raw_data());
  }
  std::vector<Trajectory> trajectories;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    Append(rows, begin, begin + length, &trajectories.emplace_back());
    begin += length;
  }
  return trajectories;
}

absl::Status TrajectorySource::LoadState(const TensorDict& dict) {
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(const auto frames,
                        state.List<int64_t>("frames", Shape({1})));
  RILL_ASSIGN_OR_RETURN(const auto sequence,
                        state.List<int64_t>("sequence", Shape({1})));
  if (frames[0] < 0 || sequence[0] < 0) {
    return state.DoesNotFit(absl::StrCat("got ", frames[0],
                                         " frames and number ", sequence[0],
                                         ", want both >= 0"));
  }
  int64_t producer = 0;  // Of states that were saved without.
  if (dict.Contains("producer")) {
    RILL_ASSIGN_OR_RETURN(producer, state.Get<int64_t>("producer"));
  }
  if (producer < 0 || producer > kMaxTrajectoryProducer) {
    return state.DoesNotFit(absl::StrCat("\"producer\": got ", producer,
                                         ", want one in [0, 2^23)"));
  }
  RILL_ASSIGN_OR_RETURN(std::vector<Trajectory> whole,
                        Load(state, "whole", /*min_steps=*/1));
  RILL_ASSIGN_OR_RETURN(std::vector<Trajectory> open,
                        Load(state, "open", /*min_steps=*/0));
  const Shape by_lane({static_cast<int64_t>(open.size())});
  RILL_ASSIGN_OR_RETURN(const auto numbers,
                        state.List<int64_t>("open/lanes", by_lane));
  RILL_ASSIGN_OR_RETURN(const auto dropped,
                        state.List<int64_t>("open/dropped", by_lane));
  std::map<int64_t, Lane> lanes;
  for (size_t i = 0; i < open.size(); ++i) {
    Lane lane = {.open = std::move(open[i]), .dropped = dropped[i]};
    if (numbers[i] < 0 || !lanes.emplace(numbers[i], std::move(lane)).second) {
      return state.DoesNotFit(absl::StrCat("\"open/lanes\": got ", numbers[i],
                                           ", want lanes >= 0, each once"));
    }
  }
  RILL_ASSIGN_OR_RETURN(const auto newest, state.List<int64_t>("newest"));
  if (newest.size() % 2 != 0) {
    return state.DoesNotFit(absl::StrCat("\"newest\": got ", newest.size(),
                                         " numbers, want pairs"));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict* const source, state.Dict("source"));
  // The last that can refuse.
  RILL_RETURN_IF_ERROR(options_.source->LoadState(*source));
  lanes_ = std::move(lanes);
  newest_.clear();
  for (size_t i = 0; i < newest.size(); i += 2) {
    newest_[newest[i]] = newest[i + 1];
  }
  whole_.assign(std::make_move_iterator(whole.begin()),
                std::make_move_iterator(whole.end()));
  frames_ = frames[0];
  sequence_ = sequence[0];
  if (!options_.producer.has_value()) {
    producers_ = ProducerNumbers::Of(producer);
  }
  return absl::OkStatus();
}

}  // namespace rill
