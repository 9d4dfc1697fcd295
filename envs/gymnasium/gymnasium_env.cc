// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/gymnasium/gymnasium_env.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/clock.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/gymnasium/child_watch.h"
#include "rill/envs/gymnasium/gymnasium_child.h"
#include "rill/envs/gymnasium/python_child.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/lane_errors.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// How it works. All leaves, and the mask, the seeds and the first observations
// of resets, lie in one memory that this process and its children map. A
// command is one byte on a socket; an answer lists the lanes that failed.
// Messages order all access to the memory: a child touches it between a command
// and its answer only, this process outside of that.
//
// Resets ahead. Most resets follow a step that ended an episode, and would cost
// a second round trip. So a child whose lanes have all stepped resets those
// that ended before it answers. It takes the seeds that BeginStep left and
// writes the observations beside the root. Reset copies them.
//
// Several children have processors of their own, if Options::pin_children. They
// and this process wait awake for each other, for a while (child_watch.h).

namespace rill {
namespace {

using envs_internal::TakeLaneErrors;
using gymnasium_internal::ChildWatch;
using gymnasium_internal::kGymnasiumChild;
using gymnasium_internal::PythonChild;

constexpr absl::string_view kMake = "MakeGymnasiumEnv";

// Memory without a name, which children map too.
class SharedMemory {
 public:
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Create(int64_t bytes) {
    auto memory = absl::WrapUnique(new SharedMemory(bytes));
    memory->fd_ = memfd_create("rill_gymnasium", MFD_CLOEXEC);
    // Allocated, not only sized: a write to a page that the system cannot give
    // would end the process with SIGBUS.
    if (memory->fd_ >= 0 && posix_fallocate(memory->fd_, 0, bytes) == 0) {
      void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED, memory->fd_, 0);
      if (data != MAP_FAILED) memory->data_ = static_cast<std::byte*>(data);
    }
    if (memory->data_ == nullptr) {
      return ResourceExhausted(kMake, ": cannot share ", bytes,
                               " bytes of memory; use fewer lanes");
    }
    return std::shared_ptr<SharedMemory>(std::move(memory));
  }
  ~SharedMemory() {
    if (data_ != nullptr) munmap(data_, bytes_);
    if (fd_ >= 0) close(fd_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_; }
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  explicit SharedMemory(int64_t bytes) : bytes_(bytes) {}
  const int64_t bytes_;
  int fd_ = -1;
  std::byte* data_ = nullptr;
};

// The numbers of a text such as "3,84,84"; none for an empty one.
absl::StatusOr<std::vector<int64_t>> Numbers(absl::string_view text) {
  std::vector<int64_t> numbers;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) {
      return InvalidArgument(kMake, ": got \"", part,
                             "\", want a whole number");
    }
    numbers.push_back(number);
  }
  return numbers;
}

// Bounds come as the bytes of NumPy's arrays in hexadecimal: no bit is lost on
// the way. Unbounded where all of them are infinite.
absl::StatusOr<LeafSpec> BoxSpec(DType dtype, const Shape& shape,
                                 absl::string_view low_hex,
                                 absl::string_view high_hex) {
  const auto tensor = [&](absl::string_view hex) -> absl::StatusOr<Tensor> {
    std::string bytes;
    RILL_ASSIGN_OR_RETURN(Tensor values, Tensor::Zeros(dtype, shape));
    if (!absl::HexStringToBytes(hex, &bytes) ||
        bytes.size() != static_cast<size_t>(values.size_bytes())) {
      return InvalidArgument("bounds of a Box are damaged");
    }
    std::memcpy(values.raw_data(), bytes.data(), bytes.size());
    return values;
  };
  RILL_ASSIGN_OR_RETURN(const Tensor low, tensor(low_hex));
  RILL_ASSIGN_OR_RETURN(const Tensor high, tensor(high_hex));
  RILL_ASSIGN_OR_RETURN(LeafSpec spec, LeafSpec::Bounded(low, high));
  if (spec.lows() == nullptr && std::isinf(spec.low) && std::isinf(spec.high)) {
    return LeafSpec::Unbounded(dtype, shape);
  }
  return spec;
}

// A line that the child describes a leaf with.
absl::Status AddLeaf(absl::string_view line, EnvSpec* spec) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, '\t');
  const auto wrong = [&] {
    return InvalidArgument(kMake, ": cannot read the space \"", line, "\"");
  };
  if (parts.size() < 4) return wrong();
  const absl::string_view key = parts[0], kind = parts[3];
  RILL_ASSIGN_OR_RETURN(const DType dtype, DTypeFromName(parts[1]));
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, Numbers(parts[2]));
  RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
  TensorDictSpec& side =
      absl::StartsWith(key, "action") ? spec->action : spec->observation;
  if (kind == "multi_binary")
    return side.Set(key, LeafSpec::Binary(shape, dtype));
  if (kind == "box" && parts.size() == 6) {
    RILL_ASSIGN_OR_RETURN(LeafSpec leaf,
                          BoxSpec(dtype, shape, parts[4], parts[5]));
    return side.Set(key, std::move(leaf));
  }
  if (parts.size() != 5) return wrong();
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> n, Numbers(parts[4]));
  if (kind == "discrete" && n.size() == 1) {
    return side.Set(key, LeafSpec::Categorical(n[0], dtype));
  }
  if (kind == "multi_discrete") {
    return side.Set(key, LeafSpec::MultiCategorical(n, dtype));
  }
  return wrong();
}

class GymnasiumEnv final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      const GymnasiumEnvOptions& options);
  ~GymnasiumEnv() override { PythonChild::EndAll(children_); }

  absl::Status Seed(uint64_t seed) override;
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::Status EndStep() override;

 private:
  using Children = std::vector<std::unique_ptr<PythonChild>>;
  // The rows of a leaf of the observation.
  struct FirstRows {
    const std::byte* from;  // Of lanes reset ahead.
    std::byte* to;          // The root.
    int64_t width;          // Bytes a lane.
  };

  GymnasiumEnv(EnvSpec spec, TensorDict step,
               const GymnasiumEnvOptions& options)
      : Env(std::move(spec), std::move(step)),
        options_(options),
        step_caller_(Caller("Step")),
        seed_(options.seed),
        episodes_(options.lanes, 0),
        running_(options.lanes, 0),
        errors_(options.lanes),
        watch_(options.children, options.pin_children),
        ahead_errors_(options.lanes),
        held_(options.children) {}

  static int64_t FirstLane(const GymnasiumEnvOptions& options, int64_t child) {
    // Rounds down: shares differ by one lane at most, and none is empty.
    return child * options.lanes / options.children;
  }
  static absl::StatusOr<std::unique_ptr<PythonChild>> StartChild(
      const GymnasiumEnvOptions& options, int64_t child);
  absl::Status Bind();
  // Sends the layout, and waits until all of `which` are ready.
  void Attach(const std::vector<size_t>& which, absl::Time deadline);
  // Starts children that were lost.
  void StartLost(const std::vector<size_t>& which);
  // Waits for an answer each and notes the lanes that failed.
  void Collect(const std::vector<size_t>& which, absl::Time deadline);
  void Lose(size_t child, const absl::Status& why);
  void FailLane(int64_t lane, const absl::Status& why);
  // Puts the first observation that is there already into the root.
  void TakeAhead(int64_t lane);
  // Whether an entry of the child's lanes is not 0.
  bool HasAny(const uint8_t* entries, size_t child) const {
    const uint8_t* const end = entries + FirstLane(options_, child + 1);
    return std::any_of(entries + FirstLane(options_, child), end,
                       [](uint8_t entry) { return entry != 0; });
  }
  // The seed of the lane's next reset.
  uint64_t NextSeed(int64_t lane) const {
    return Rng(seed_, RngStream::kEnv)
               .Bits64(episodes_[lane], static_cast<uint32_t>(lane)) >>
           33;
  }
  std::string Caller(absl::string_view function) const {
    return absl::StrCat(name(), "::", function);
  }

  const GymnasiumEnvOptions options_;
  const std::string step_caller_;
  uint64_t seed_;
  std::vector<uint64_t> episodes_;
  std::vector<uint8_t> running_;
  std::vector<absl::Status> errors_;  // A lane's, of the call that runs.
  bool is_stepping_ = false;          // Between BeginStep and EndStep.
  std::shared_ptr<SharedMemory> memory_;
  std::string layout_;
  // In the shared memory.
  uint8_t* mask_ = nullptr;
  uint64_t* seeds_ = nullptr;
  // A child that has stepped all of its lanes sets those that ended, and resets
  // them into first_rows_ before it answers.
  uint8_t* ahead_ = nullptr;
  ChildWatch watch_;
  std::vector<FirstRows> first_rows_;
  std::vector<absl::Status> ahead_errors_;  // A lane's, of its reset ahead.
  std::vector<absl::Status> held_;          // A child's that was lost in one.
  absl::Span<float> reward_;
  LaneFlags flags_, next_flags_;
  Children children_;  // Null: lost; Reset starts it.
};

absl::StatusOr<std::unique_ptr<PythonChild>> GymnasiumEnv::StartChild(
    const GymnasiumEnvOptions& options, int64_t child) {
  std::vector<std::string> environment;
  if (!options.python_path.empty()) {
    std::string path = absl::StrJoin(options.python_path, ":");
    if (const char* old = std::getenv("PYTHONPATH")) {
      absl::StrAppend(&path, ":", old);
    }
    environment.push_back(absl::StrCat("PYTHONPATH=", path));
  }
  const int64_t first = FirstLane(options, child);
  RILL_ASSIGN_OR_RETURN(
      auto started,
      PythonChild::Start(
          options.python, kGymnasiumChild,
          {options.id, options.kwargs,
           absl::StrCat(FirstLane(options, child + 1) - first),
           absl::StrCat(first), absl::StrJoin(options.imports, ","),
           absl::StrCat(child), absl::StrCat(options.children)},
          environment));
  // Before it has threads, which inherit its processors.
  ChildWatch(options.children, options.pin_children)
      .Place(child, started->pid());
  return started;
}

int64_t RowBytes(const LeafSpec& leaf) {
  return leaf.shape.num_elements() * DTypeSize(leaf.dtype);
}

// The description that a child that was started sends; an error where it could
// not make its environments.
absl::Status CheckHello(const absl::StatusOr<std::string>& hello) {
  if (!hello.ok()) {
    return absl::Status(hello.status().code(),
                        absl::StrCat(kMake, ": ", hello.status().message()));
  }
  if (absl::StartsWith(*hello, "ok\n")) return absl::OkStatus();
  const size_t tab = hello->find('\t');
  return InvalidArgument(kMake, ": ",
                         hello->substr(tab == std::string::npos ? 0 : tab + 1));
}

absl::StatusOr<std::unique_ptr<Env>> GymnasiumEnv::Create(
    const GymnasiumEnvOptions& options) {
  const absl::Time deadline = Clock::Steady().Now() + options.start_timeout;
  Children children;
  // On every error children end together, within one time limit; on success the
  // list is empty by then.
  const absl::Cleanup end = [&children] { PythonChild::EndAll(children); };
  std::vector<PythonChild*> waiting;
  for (int64_t i = 0; i < options.children; ++i) {
    // All are started before the first is waited for: imports take seconds.
    RILL_ASSIGN_OR_RETURN(auto child, StartChild(options, i));
    waiting.push_back(child.get());
    children.push_back(std::move(child));
  }
  const auto hellos = PythonChild::Receive(waiting, deadline);
  for (const auto& hello : hellos) RILL_RETURN_IF_ERROR(CheckHello(hello));
  EnvSpec spec = {.name = options.id, .lanes = options.lanes};
  std::vector<absl::string_view> lines = absl::StrSplit(*hellos[0], '\n');
  for (size_t i = 1; i < lines.size(); ++i) {
    RILL_RETURN_IF_ERROR(AddLeaf(lines[i], &spec));
  }
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec leaves, StepSpec(spec));
  int64_t bytes = 0;
  std::vector<std::string> layout;
  std::vector<int64_t> offsets;
  const auto place = [&](absl::string_view key, int64_t size) {
    layout.push_back(absl::StrCat(key, "\t", bytes));
    offsets.push_back(bytes);
    // Leaves begin at cache lines: children that write beside each other share
    // one only within a leaf.
    bytes += (size + 63) / 64 * 64;
  };
  place("#mask", options.lanes);
  place("#seed", options.lanes * 8);
  place("#ahead", options.lanes);
  place("#watch", ChildWatch::BytesFor(options.children));
  const size_t num_own = offsets.size();
  for (const TensorDictSpec::Leaf& leaf : leaves.leaves()) {
    place(leaf.key, options.lanes * RowBytes(leaf.spec));
  }
  // Apart from the root, which keeps the last step's state until Reset.
  for (const TensorDictSpec::Leaf& leaf : spec.observation.leaves()) {
    place(absl::StrCat("#first/", leaf.key),
          options.lanes * RowBytes(leaf.spec));
  }
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<SharedMemory> memory,
                        SharedMemory::Create(bytes));
  const std::shared_ptr<Buffer> buffer = Buffer::Wrap(
      memory->data(), bytes, Device::Cpu(), MemoryKind::kPageable, memory);
  TensorDict step({options.lanes});
  for (size_t i = 0; i < leaves.leaves().size(); ++i) {
    const TensorDictSpec::Leaf& leaf = leaves.leaves()[i];
    RILL_ASSIGN_OR_RETURN(const Shape shape,
                          leaf.spec.FullShape({options.lanes}));
    RILL_ASSIGN_OR_RETURN(
        Tensor tensor,
        Tensor::View(buffer, leaf.spec.dtype, shape, offsets[num_own + i]));
    RILL_RETURN_IF_ERROR(step.Set(leaf.key, std::move(tensor)));
  }
  std::vector<FirstRows> first_rows;
  for (size_t i = 0; i < spec.observation.leaves().size(); ++i) {
    const TensorDictSpec::Leaf& leaf = spec.observation.leaves()[i];
    RILL_ASSIGN_OR_RETURN(const Tensor root, step.Get(leaf.key));
    first_rows.push_back(
        {.from = memory->data() + offsets[num_own + leaves.leaves().size() + i],
         .to = root.raw_data(),
         .width = RowBytes(leaf.spec)});
  }
  auto env = absl::WrapUnique(
      new GymnasiumEnv(std::move(spec), std::move(step), options));
  env->mask_ = reinterpret_cast<uint8_t*>(memory->data() + offsets[0]);
  env->seeds_ = reinterpret_cast<uint64_t*>(memory->data() + offsets[1]);
  env->ahead_ = reinterpret_cast<uint8_t*>(memory->data() + offsets[2]);
  env->watch_.Bind(memory->data() + offsets[3]);
  env->first_rows_ = std::move(first_rows);
  env->memory_ = std::move(memory);
  env->layout_ = absl::StrJoin(layout, "\n");
  env->children_ = std::move(children);
  RILL_RETURN_IF_ERROR(env->Bind());
  std::vector<size_t> all(options.children);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  env->Attach(all, deadline);
  RILL_RETURN_IF_ERROR(TakeLaneErrors(kMake, absl::MakeSpan(env->errors_)));
  return env;
}

absl::Status GymnasiumEnv::Bind() {
  RILL_ASSIGN_OR_RETURN(reward_, step().Flat<float>("next/reward"));
  RILL_ASSIGN_OR_RETURN(flags_, FindLaneFlags(step()));
  RILL_ASSIGN_OR_RETURN(next_flags_, FindLaneFlags(step(), "next/"));
  return absl::OkStatus();
}

void GymnasiumEnv::FailLane(int64_t lane, const absl::Status& why) {
  if (errors_[lane].ok()) errors_[lane] = why;
  running_[lane] = 0;
}

// The child is of no use: all of its lanes fail, and what they were reset to
// ahead is lost with it.
void GymnasiumEnv::Lose(size_t child, const absl::Status& why) {
  const int64_t end = FirstLane(options_, child + 1);
  for (int64_t lane = FirstLane(options_, child); lane < end; ++lane) {
    FailLane(lane, why);
    ahead_[lane] = 0;
  }
  children_[child].reset();
}

void GymnasiumEnv::Attach(const std::vector<size_t>& which,
                          absl::Time deadline) {
  std::vector<size_t> sent;
  for (size_t i : which) {
    const absl::Status status =
        children_[i]->SendWithDescriptor(layout_, memory_->fd());
    if (status.ok()) {
      sent.push_back(i);
    } else {
      Lose(i, status);
    }
  }
  Collect(sent, deadline);
}

void GymnasiumEnv::Collect(const std::vector<size_t>& which,
                           absl::Time deadline) {
  std::vector<PythonChild*> waiting;
  for (size_t i : which) waiting.push_back(children_[i].get());
  const auto answers = PythonChild::Receive(
      waiting, deadline, [this] { return is_stepping_ && watch_.IsNear(); });
  for (size_t k = 0; k < which.size(); ++k) {
    if (!answers[k].ok()) {
      if (is_stepping_ && HasAny(ahead_, which[k])) {
        // Its lanes have stepped: the error is the reset's.
        held_[which[k]] = answers[k].status();
      } else {
        Lose(which[k], answers[k].status());
      }
      continue;
    }
    for (absl::string_view line :
         absl::StrSplit(*answers[k], '\n', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(line, absl::MaxSplits('\t', 1));
      int64_t lane = 0;
      if (!absl::SimpleAtoi(parts.first, &lane) || lane < 0 ||
          lane >= lanes()) {
        continue;
      }
      const absl::Status why = Internal(parts.second);
      // A child resets lanes ahead where all of its lanes have stepped.
      if (ahead_[lane] != 0) {
        ahead_errors_[lane] = why;
      } else {
        FailLane(lane, why);
      }
    }
  }
}

absl::Status GymnasiumEnv::Seed(uint64_t seed) {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "Seed", is_stepping_));
  seed_ = seed;
  episodes_.assign(episodes_.size(), 0);
  // A lane that was reset ahead has a seed that is nobody's now.
  std::fill_n(ahead_, lanes(), 0);
  return absl::OkStatus();
}

void GymnasiumEnv::StartLost(const std::vector<size_t>& which) {
  const absl::Time deadline = Clock::Steady().Now() + options_.start_timeout;
  std::vector<size_t> started, ready;
  std::vector<PythonChild*> starting;
  for (size_t i : which) {
    auto child = StartChild(options_, i);
    if (!child.ok()) {
      Lose(i, child.status());
      continue;
    }
    children_[i] = *std::move(child);
    started.push_back(i);
    starting.push_back(children_[i].get());
  }
  const auto hellos = PythonChild::Receive(starting, deadline);
  for (size_t k = 0; k < started.size(); ++k) {
    const absl::Status status = CheckHello(hellos[k]);
    if (status.ok()) {
      ready.push_back(started[k]);
    } else {
      Lose(started[k], status);
    }
  }
  Attach(ready, deadline);
}

absl::Status GymnasiumEnv::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "Reset", is_stepping_));
  const std::string caller = Caller("Reset");
  RILL_RETURN_IF_ERROR(CheckMask(caller, spec(), mask));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    const bool is_wanted = mask.lanes[lane] != 0;
    mask_[lane] = is_wanted && ahead_[lane] == 0;
    if (!is_wanted) continue;
    // Taken back by FailLane where the reset fails.
    running_[lane] = 1;
    seeds_[lane] = NextSeed(lane);
    ++episodes_[lane];
  }
  std::vector<size_t> wanted, lost;
  for (size_t i = 0; i < children_.size(); ++i) {
    // The child was lost in a reset ahead: this is the call that has its error.
    if (!held_[i].ok() && HasAny(mask.lanes.data(), i)) {
      Lose(i, std::exchange(held_[i], absl::OkStatus()));
    } else if (HasAny(mask_, i)) {
      wanted.push_back(i);
      if (children_[i] == nullptr) lost.push_back(i);
    }
  }
  // Together: a start takes as long as that of the slowest child.
  if (!lost.empty()) StartLost(lost);
  std::vector<size_t> sent;
  for (size_t i : wanted) {
    if (children_[i] == nullptr) continue;
    const absl::Status status = children_[i]->Send("R");
    if (status.ok()) {
      sent.push_back(i);
    } else {
      Lose(i, status);
    }
  }
  Collect(sent, Clock::Steady().Now() + options_.step_timeout);
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (mask.lanes[lane] == 0) continue;
    if (std::exchange(ahead_[lane], 0) != 0) TakeAhead(lane);
    if (running_[lane] != 0) {
      flags_.Set(lane, /*is_terminated=*/false, /*is_truncated=*/false);
    }
  }
  return TakeLaneErrors(caller, absl::MakeSpan(errors_));
}

void GymnasiumEnv::TakeAhead(int64_t lane) {
  if (!ahead_errors_[lane].ok()) {
    FailLane(lane, ahead_errors_[lane]);
    return;
  }
  for (const FirstRows& rows : first_rows_) {
    std::memcpy(rows.to + lane * rows.width, rows.from + lane * rows.width,
                rows.width);
  }
}

absl::Status GymnasiumEnv::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckIdle(name(), "BeginStep", is_stepping_));
  RILL_RETURN_IF_ERROR(CheckActions(step_caller_, spec(), step()));
  RILL_RETURN_IF_ERROR(CheckRunning(step_caller_, running_));
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    // For the reset that a lane needs if this step ends its episode. The number
    // of episodes is counted when Reset takes it.
    seeds_[lane] = NextSeed(lane);
    ahead_errors_[lane] = absl::OkStatus();
  }
  watch_.BeginStep();
  for (size_t i = 0; i < children_.size(); ++i) {
    const absl::Status status = children_[i]->Send("S");
    if (!status.ok()) Lose(i, status);
  }
  is_stepping_ = true;
  return absl::OkStatus();
}

absl::Status GymnasiumEnv::EndStep() {
  if (!is_stepping_) return absl::OkStatus();
  std::vector<size_t> sent;
  for (size_t i = 0; i < children_.size(); ++i) {
    if (children_[i] != nullptr) sent.push_back(i);
  }
  Collect(sent, Clock::Steady().Now() + options_.step_timeout);
  is_stepping_ = false;
  for (int64_t lane = 0; lane < lanes(); ++lane) {
    if (errors_[lane].ok() && !std::isfinite(reward_[lane])) {
      FailLane(lane, Internal("reward: got ", reward_[lane],
                              ", want a finite number"));
    }
    if (errors_[lane].ok()) {
      // The child writes two flags; `done` is made of them here.
      next_flags_.Set(lane, next_flags_.terminated[lane],
                      next_flags_.truncated[lane]);
    } else {
      RILL_RETURN_IF_ERROR(CutOffLane(spec(), step(), lane));
    }
    running_[lane] = !next_flags_.done[lane];
  }
  return TakeLaneErrors(step_caller_, absl::MakeSpan(errors_));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeGymnasiumEnv(
    const GymnasiumEnvOptions& options) {
  if (options.id.empty() || options.lanes < 1 || options.children < 1 ||
      options.children > options.lanes) {
    return InvalidArgument(
        kMake, ": id, lanes, children: got \"", options.id, "\", ",
        options.lanes, ", ", options.children,
        ", want an id, at least one lane and 1 to lanes children");
  }
  return GymnasiumEnv::Create(options);
}

}  // namespace rill
