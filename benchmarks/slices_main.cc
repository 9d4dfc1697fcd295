// SPDX-License-Identifier: Apache-2.0
// Slices of trajectories from a storage that is still being written, at any
// size. It measures a sample right after a write, a sample without one, and the
// write. benchmarks/slices runs it; --help tells the flags.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/median.h"
#include "rill/benchmarks/slice_rows.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

struct Flags {
  int64_t stored = 346'000'000;
  int64_t capacity = 600'000'000;
  int64_t slices = 256;
  int64_t length = 16;
  int64_t episode = 1000;
  int64_t write = 1000;
  int64_t samples = 500;
};

constexpr absl::string_view kUsage =
    R"(Writes rows of episodes to a DenseStorage, then samples slices of them.
  --stored=N    rows written before the first sample (346000000)
  --capacity=N  of the storage (600000000)
  --slices=N    of a batch (256)
  --length=N    rows of a slice (16)
  --episode=N   steps of an episode (1000)
  --write=N     rows written before each sample (1000)
  --samples=N   of each kind (500)
The last line: ms per sample while writing, ms per sample without, us per write.
)";

absl::StatusOr<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  const std::pair<absl::string_view, int64_t*> known[] = {
      {"stored", &flags.stored},   {"capacity", &flags.capacity},
      {"slices", &flags.slices},   {"length", &flags.length},
      {"episode", &flags.episode}, {"write", &flags.write},
      {"samples", &flags.samples}};
  for (int i = 1; i < argc; ++i) {
    const absl::string_view text = argv[i];
    const auto* const flag = std::find_if(
        std::begin(known), std::end(known), [&](const auto& candidate) {
          return absl::StartsWith(text,
                                  absl::StrCat("--", candidate.first, "="));
        });
    if (flag == std::end(known)) {
      return absl::InvalidArgumentError(
          absl::StrCat("got \"", text, "\", want a flag:\n", kUsage));
    }
    const absl::string_view value = text.substr(flag->first.size() + 3);
    if (!absl::SimpleAtoi(value, flag->second) || *flag->second < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", flag->first, ": got \"", value, "\", want a number from 1 on"));
    }
  }
  if (flags.stored > flags.capacity) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stored: got ", flags.stored,
                     ", want at most --capacity = ", flags.capacity));
  }
  return flags;
}

double Now() {
  return absl::ToDoubleSeconds(Clock::System().Now() - absl::UnixEpoch());
}

// Steps of one producer: a batch to refill.
class Episodes {
 public:
  // `rows` at a time, from step `first` on.
  static absl::StatusOr<Episodes> Create(int64_t rows, int64_t episode,
                                         int64_t first) {
    RILL_ASSIGN_OR_RETURN(TensorDict batch, SliceRowSpec().Empty({rows}, {}));
    return Episodes(std::move(batch), rows, episode, first);
  }

  // The next steps.
  const TensorDict& Next() {
    float* const observation = batch_.Find("observation")->data<float>();
    float* const reward = batch_.Find("next/reward")->data<float>();
    bool* const done = batch_.Find("next/done")->data<bool>();
    for (int64_t i = 0; i < rows_; ++i, ++step_) {
      const int64_t at = step_ % episode_;
      // Episode and step in it: CheckSlices reads them off a sampled row.
      observation[2 * i] = static_cast<float>(step_ / episode_);
      observation[2 * i + 1] = static_cast<float>(at);
      reward[i] = 1.0f;
      done[i] = at == episode_ - 1;
    }
    return batch_;
  }

 private:
  Episodes(TensorDict batch, int64_t rows, int64_t episode, int64_t first)
      : batch_(std::move(batch)),
        rows_(rows),
        episode_(episode),
        step_(first) {}

  TensorDict batch_;
  int64_t rows_;
  int64_t episode_;
  int64_t step_;
};

// Rows that follow one another in their episode, `length` at a time.
absl::Status CheckSlices(const TensorDict& rows, int64_t length) {
  const Tensor& observation = *rows.Find("observation");
  const float* const values = observation.data<float>();
  for (int64_t i = 0; i < observation.shape()[0]; ++i) {
    if (i % length == 0) continue;
    if (values[2 * i] != values[2 * i - 2] ||
        values[2 * i + 1] != values[2 * i - 1] + 1) {
      return absl::InternalError(absl::StrCat(
          "row ", i, " of a batch does not follow the one before"));
    }
  }
  return absl::OkStatus();
}

class Demonstration {
 public:
  static absl::StatusOr<std::unique_ptr<Demonstration>> Create(
      const Flags& flags) {
    RILL_ASSIGN_OR_RETURN(auto storage,
                          DenseStorage::Create({.capacity = flags.capacity,
                                                .spec = SliceRowSpec()}));
    RILL_ASSIGN_OR_RETURN(auto sampler,
                          MakeSliceSampler({.length = flags.length}));
    RILL_RETURN_IF_ERROR(storage->AddObserver(sampler->observer()));
    return std::unique_ptr<Demonstration>(
        new Demonstration(flags, std::move(storage), std::move(sampler)));
  }
  ~Demonstration() { storage_->RemoveObserver(sampler_->observer()); }

  absl::Status Fill() {
    // Large: filling hundreds of millions of rows is not what is measured.
    constexpr int64_t kBatch = 100'000;
    RILL_ASSIGN_OR_RETURN(
        Episodes episodes,
        Episodes::Create(std::min(kBatch, flags_.stored), flags_.episode, 0));
    const double begin = Now();
    int64_t shown = 0;
    for (int64_t rows = 0; rows < flags_.stored;) {
      RILL_ASSIGN_OR_RETURN(const ExtendResult result,
                            storage_->Extend(episodes.Next()));
      rows += result.rows_written;
      if (rows * 10 / flags_.stored > shown) {
        shown = rows * 10 / flags_.stored;
        std::printf("written %.0f M rows in %.1f s\n",
                    static_cast<double>(rows) / 1e6, Now() - begin);
        std::fflush(stdout);
      }
    }
    return absl::OkStatus();
  }

  // The last line.
  absl::Status Measure() {
    RILL_ASSIGN_OR_RETURN(Episodes episodes,
                          Episodes::Create(flags_.write, flags_.episode,
                                           storage_->cursors()[0].written));
    std::vector<double> writes, beside, alone;
    // The first few make memory that the others reuse.
    constexpr int64_t kWarm = 10;
    for (int64_t i = -kWarm; i < flags_.samples; ++i) {
      const TensorDict& batch = episodes.Next();
      const double begin = Now();
      RILL_RETURN_IF_ERROR(storage_->Extend(batch).status());
      const double written = Now();
      RILL_RETURN_IF_ERROR(Sample());
      const double sampled = Now();
      // Every batch is checked, outside of what is timed.
      RILL_RETURN_IF_ERROR(CheckSlices(rows_, flags_.length));
      if (i < 0) continue;
      writes.push_back(written - begin);
      beside.push_back(sampled - written);
    }
    for (int64_t i = 0; i < flags_.samples; ++i) {
      const double begin = Now();
      RILL_RETURN_IF_ERROR(Sample());
      alone.push_back(Now() - begin);
    }
    std::printf("%lld of %lld rows, %lld slices of %lld, medians of %lld:\n",
                static_cast<long long>(storage_->size()),
                static_cast<long long>(flags_.capacity),
                static_cast<long long>(flags_.slices),
                static_cast<long long>(flags_.length),
                static_cast<long long>(flags_.samples));
    std::printf(
        "%.4f ms per sample while writing, %.4f ms per sample without, "
        "%.1f us per write\n",
        MedianOf(beside) * 1e3, MedianOf(alone) * 1e3, MedianOf(writes) * 1e6);
    return absl::OkStatus();
  }

 private:
  Demonstration(const Flags& flags, std::unique_ptr<Storage> storage,
                std::unique_ptr<Sampler> sampler)
      : flags_(flags),
        storage_(std::move(storage)),
        sampler_(std::move(sampler)) {}

  // Each sample has a number of its own: equal ones draw equal slices, which
  // the caches would have by then.
  absl::Status Sample() {
    RILL_RETURN_IF_ERROR(
        sampler_->Plan({.batch_size = flags_.slices * flags_.length,
                        .seed = 1,
                        .batch_number = batch_number_++},
                       &plan_));
    return storage_->Read(plan_.rows, &rows_);
  }

  const Flags flags_;
  const std::unique_ptr<Storage> storage_;
  const std::unique_ptr<Sampler> sampler_;
  uint64_t batch_number_ = 0;
  SamplePlan plan_;
  TensorDict rows_;
};

absl::Status Main(int argc, char** argv) {
  if (argc > 1 && absl::string_view(argv[1]) == "--help") {
    std::fputs(std::string(kUsage).c_str(), stdout);
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(const Flags flags, ParseFlags(argc, argv));
  RILL_ASSIGN_OR_RETURN(const auto demonstration, Demonstration::Create(flags));
  RILL_RETURN_IF_ERROR(demonstration->Fill());
  return demonstration->Measure();
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  const absl::Status status = rill::Main(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "slices: %s\n", status.ToString().c_str());
  return 1;
}
