// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/server/server_config.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/server/json_fields.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"

namespace rill {
namespace {

constexpr char kKind[] = "kind";

// The table's unit; nothing where it names none.
absl::StatusOr<std::optional<SampleUnit>> UnitOf(JsonFields& table) {
  RILL_ASSIGN_OR_RETURN(std::optional<JsonFields> fields, table.Object("unit"));
  if (!fields.has_value()) return std::nullopt;
  RILL_ASSIGN_OR_RETURN(const std::string kind, fields->Text(kKind));
  absl::StatusOr<SampleUnit> unit;
  if (kind == "n_step") {
    NStepReturns::Options n_step;
    RILL_ASSIGN_OR_RETURN(n_step.num_steps, fields->Int("steps"));
    RILL_ASSIGN_OR_RETURN(n_step.gamma, fields->Double("gamma", n_step.gamma));
    unit = MakeTransitions({.n_step = n_step});
  } else if (kind == "slices") {
    SlicesOptions slices;
    RILL_ASSIGN_OR_RETURN(slices.slices.length, fields->Int("length"));
    unit = MakeSlices(slices);
  } else if (kind == "sequences") {
    SequencesOptions sequences;
    SequenceUnitOptions& of = sequences.sequences;
    RILL_ASSIGN_OR_RETURN(of.length, fields->Int("length"));
    RILL_ASSIGN_OR_RETURN(of.burn_in, fields->Int("burn_in", of.burn_in));
    RILL_ASSIGN_OR_RETURN(of.period, fields->Int("period", of.period));
    unit = MakeSequences(sequences);
  } else {
    return fields->Wrong(kKind, kind, "n_step, slices or sequences");
  }
  RILL_RETURN_IF_ERROR(fields->CheckNothingElse());
  RILL_RETURN_IF_ERROR(unit.status());
  return *std::move(unit);
}

absl::StatusOr<std::unique_ptr<Sampler>> PrioritizedOf(
    JsonFields& fields, std::optional<SampleUnit> unit) {
  PrioritizedOptions options;
  RILL_ASSIGN_OR_RETURN(options.alpha, fields.Double("alpha", options.alpha));
  RILL_ASSIGN_OR_RETURN(options.beta, fields.Double("beta", options.beta));
  RILL_ASSIGN_OR_RETURN(options.epsilon,
                        fields.Double("epsilon", options.epsilon));
  RILL_ASSIGN_OR_RETURN(options.stratified,
                        fields.Bool("stratified", options.stratified));
  RILL_RETURN_IF_ERROR(fields.CheckNothingElse());
  if (!unit.has_value()) return MakePrioritizedSampler(options);
  return MakePrioritizedSamplerOver(*std::move(unit), options);
}

// A selector by an order; null where `kind` is none of them.
absl::StatusOr<std::unique_ptr<Selector>> OrderOf(absl::string_view kind) {
  if (kind == "fifo") return MakeFifoSelector();
  if (kind == "lifo") return MakeLifoSelector();
  if (kind == "min_heap") return MakeMinHeapSelector();
  if (kind == "max_heap") return MakeMaxHeapSelector();
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Sampler>> SamplerOf(JsonFields& table) {
  RILL_ASSIGN_OR_RETURN(std::optional<SampleUnit> unit, UnitOf(table));
  RILL_ASSIGN_OR_RETURN(std::optional<JsonFields> fields,
                        table.Object("sampler"));
  std::string kind = "uniform";
  if (fields.has_value()) {
    RILL_ASSIGN_OR_RETURN(kind, fields->Text(kKind));
  }
  if (kind == "prioritized") return PrioritizedOf(*fields, std::move(unit));
  bool drop_last = false;
  if (kind == "without_replacement") {
    RILL_ASSIGN_OR_RETURN(drop_last, fields->Bool("drop_last", false));
  }
  if (fields.has_value()) {
    RILL_RETURN_IF_ERROR(fields->CheckNothingElse());
  }
  if (kind == "uniform") {
    if (!unit.has_value()) return MakeUniformSampler();
    return MakeUniformSamplerOver(*std::move(unit));
  }
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Selector> order, OrderOf(kind));
  if (kind != "without_replacement" && order == nullptr) {
    return fields->Wrong(kKind, kind,
                         "uniform, prioritized, without_replacement, fifo, "
                         "lifo, min_heap or max_heap");
  }
  if (unit.has_value()) {
    return fields->Wrong(kKind, kind, "uniform or prioritized beside a unit");
  }
  if (kind == "without_replacement") {
    return MakeSamplerWithoutReplacement({.drop_last = drop_last});
  }
  return MakeSampler(std::move(order), MakeTransitionUnit(), kind);
}

absl::StatusOr<TopKWriter::Options> TopKOf(JsonFields& fields) {
  using Reduction = TopKWriter::Reduction;
  static constexpr std::pair<absl::string_view, Reduction> kReductions[] = {
      {"sum", Reduction::kSum},       {"mean", Reduction::kMean},
      {"median", Reduction::kMedian}, {"min", Reduction::kMin},
      {"max", Reduction::kMax},
  };
  TopKWriter::Options options;
  RILL_ASSIGN_OR_RETURN(options.k, fields.Int("k", options.k));
  RILL_ASSIGN_OR_RETURN(options.rank_key,
                        fields.Text("rank_key", options.rank_key));
  RILL_ASSIGN_OR_RETURN(const std::string name,
                        fields.Text("reduction", "sum"));
  const auto* const found =
      std::find_if(std::begin(kReductions), std::end(kReductions),
                   [&](const auto& one) { return one.first == name; });
  if (found == std::end(kReductions)) {
    return fields.Wrong("reduction", name, "sum, mean, median, min or max");
  }
  options.reduction = found->second;
  return options;
}

// The table's writer; null where it names none.
absl::StatusOr<std::unique_ptr<Writer>> WriterOf(JsonFields& table,
                                                 uint64_t seed) {
  RILL_ASSIGN_OR_RETURN(std::optional<JsonFields> fields,
                        table.Object("writer"));
  if (!fields.has_value()) return nullptr;
  RILL_ASSIGN_OR_RETURN(const std::string kind, fields->Text(kKind));
  if (kind == "round_robin") {
    RILL_RETURN_IF_ERROR(fields->CheckNothingElse());
    return nullptr;
  }
  if (kind == "top_k") {
    RILL_ASSIGN_OR_RETURN(const TopKWriter::Options options, TopKOf(*fields));
    RILL_RETURN_IF_ERROR(fields->CheckNothingElse());
    return TopKWriter::Create(options);
  }
  if (kind != "removing") {
    return fields->Wrong(kKind, kind, "round_robin, top_k or removing");
  }
  RILL_ASSIGN_OR_RETURN(const std::string remover,
                        fields->Text("remover", "fifo"));
  RILL_RETURN_IF_ERROR(fields->CheckNothingElse());
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<Selector> selector, OrderOf(remover));
  if (selector == nullptr && remover == "uniform") {
    selector = MakeUniformSelector();
  }
  if (selector == nullptr) {
    return fields->Wrong("remover", remover,
                         "fifo, lifo, uniform, min_heap or max_heap");
  }
  return MakeRemovingWriter({.remover = std::move(selector), .seed = seed});
}

absl::StatusOr<std::unique_ptr<Storage>> StorageOf(JsonFields& table,
                                                   int64_t capacity,
                                                   int64_t lanes) {
  RILL_ASSIGN_OR_RETURN(std::optional<JsonFields> fields,
                        table.Object("storage"));
  std::string kind = "memory";
  std::string directory;
  if (fields.has_value()) {
    RILL_ASSIGN_OR_RETURN(kind, fields->Text(kKind));
    if (kind == "memmap") {
      RILL_ASSIGN_OR_RETURN(directory, fields->Text("directory"));
    }
    RILL_RETURN_IF_ERROR(fields->CheckNothingElse());
  }
  RILL_RETURN_IF_ERROR(table.CheckNothingElse());
  if (kind == "memory") {
    return DenseStorage::Create({.capacity = capacity, .lanes = lanes});
  }
  if (kind != "memmap") {
    return fields->Wrong(kKind, kind, "memory or memmap");
  }
  const MemmapStorage::Options options = {
      .directory = directory, .capacity = capacity, .lanes = lanes};
  absl::StatusOr<std::unique_ptr<Storage>> storage =
      MemmapStorage::Open(options);
  if (!absl::IsNotFound(storage.status())) return storage;
  return MemmapStorage::Create(options);
}

absl::Status SetRateLimiter(JsonFields& table, ReplayBuffer::Options* options) {
  RILL_ASSIGN_OR_RETURN(std::optional<JsonFields> fields,
                        table.Object("rate_limiter"));
  if (!fields.has_value()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const int64_t min_size, fields->Int("min_size", 1));
  RILL_ASSIGN_OR_RETURN(const double ratio,
                        fields->Double("samples_per_insert", 0));
  RILL_ASSIGN_OR_RETURN(const double timeout,
                        fields->Double("timeout_seconds", 1));
  RateLimiter::Options limits = RateLimiter::MinSize(min_size);
  if (ratio != 0) {
    RILL_ASSIGN_OR_RETURN(const double buffer, fields->Double("error_buffer"));
    RILL_ASSIGN_OR_RETURN(
        limits, RateLimiter::SampleToInsertRatio(ratio, min_size, buffer));
  }
  RILL_RETURN_IF_ERROR(fields->CheckNothingElse());
  if (!(timeout > 0 && timeout <= std::numeric_limits<int32_t>::max())) {
    return fields->Wrong("timeout_seconds", absl::StrCat(timeout),
                         "above 0 and finite");
  }
  RILL_ASSIGN_OR_RETURN(options->rate_limiter, RateLimiter::Create(limits));
  options->rate_limit_timeout = absl::Seconds(timeout);
  return absl::OkStatus();
}

absl::StatusOr<ReplayBuffer::Options> TableOf(JsonFields& fields) {
  ReplayBuffer::Options options;
  RILL_ASSIGN_OR_RETURN(const int64_t capacity, fields.Int("capacity"));
  RILL_ASSIGN_OR_RETURN(const int64_t lanes, fields.Int("lanes", 1));
  RILL_ASSIGN_OR_RETURN(options.sampler, SamplerOf(fields));
  RILL_ASSIGN_OR_RETURN(options.batch_size, fields.Int("batch_size", 0));
  RILL_ASSIGN_OR_RETURN(const int64_t seed, fields.Int("seed", 0));
  options.seed = static_cast<uint64_t>(seed);
  RILL_ASSIGN_OR_RETURN(options.writer, WriterOf(fields, options.seed));
  RILL_RETURN_IF_ERROR(SetRateLimiter(fields, &options));
  // The last one, as it is the one that leaves something.
  RILL_ASSIGN_OR_RETURN(options.storage, StorageOf(fields, capacity, lanes));
  RILL_RETURN_IF_ERROR(ReplayBuffer::CheckOptions(options));
  return options;
}

absl::Status SetCheckpoint(JsonFields& root, ServerConfig* config) {
  RILL_ASSIGN_OR_RETURN(std::optional<JsonFields> fields,
                        root.Object("checkpoint"));
  if (!fields.has_value()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(config->checkpoint_directory,
                        fields->Text("directory"));
  RILL_ASSIGN_OR_RETURN(
      const double every,
      fields->Double("every_seconds", std::numeric_limits<double>::infinity()));
  if (!(every > 0)) {
    return fields->Wrong("every_seconds", absl::StrCat(every), "above 0");
  }
  config->checkpoint_every = absl::Seconds(every);
  return fields->CheckNothingElse();
}

}  // namespace

absl::StatusOr<ServerConfig> ServerConfig::Parse(absl::string_view json) {
  RILL_ASSIGN_OR_RETURN(JsonFields root, JsonFields::Parse(json));
  ServerConfig config;
  RILL_ASSIGN_OR_RETURN(config.listen, root.Text("listen", config.listen));
  RILL_ASSIGN_OR_RETURN(config.metrics_file,
                        root.Text("metrics_file", config.metrics_file));
  RILL_RETURN_IF_ERROR(SetCheckpoint(root, &config));
  RILL_ASSIGN_OR_RETURN(std::optional<JsonFields> tables,
                        root.Object("tables"));
  if (!tables.has_value() || tables->names().empty()) {
    return root.Wrong("tables", "none", "one table at least");
  }
  for (const std::string& name : tables->names()) {
    RILL_ASSIGN_OR_RETURN(std::optional<JsonFields> fields,
                          tables->Object(name));
    absl::StatusOr<ReplayBuffer::Options> options = TableOf(*fields);
    if (!options.ok()) {
      return absl::Status(
          options.status().code(),
          absl::StrCat("table \"", name, "\": ", options.status().message()));
    }
    config.tables[name] = *std::move(options);
  }
  RILL_RETURN_IF_ERROR(root.CheckNothingElse());
  return config;
}

}  // namespace rill
