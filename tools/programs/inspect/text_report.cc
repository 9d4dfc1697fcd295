// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/text_report.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap_options.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/tools/programs/inspect/element_text.h"
#include "rill/tools/programs/inspect/facts.h"

namespace rill::inspect {
namespace {

constexpr size_t kMaxShownValue = 60;

// At most kMaxShownValue bytes, and "..." where something is left out.
std::string Shortened(std::string text) {
  if (text.size() > kMaxShownValue) {
    size_t end = kMaxShownValue;
    while ((text[end] & 0xC0) == 0x80) --end;  // Not inside a character.
    text.resize(end);
    text += "...";
  }
  return text;
}

// "1 row", "2 rows".
std::string Counted(int64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// Rows of cells, written in columns.
class Table {
 public:
  using Row = std::vector<std::string>;

  void Add(Row row) {
    // Names and values come from files, and must not move a terminal's cursor.
    for (std::string& cell : row) cell = OneLine(cell);
    rows_.push_back(std::move(row));
  }

  std::string Text() const {
    std::vector<size_t> widths;
    for (const Row& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      // The last cell of a row sets no width: nothing stands behind it.
      for (size_t i = 0; i + 1 < row.size(); ++i) {
        widths[i] = std::max(widths[i], Width(row[i]));
      }
    }
    std::string text;
    for (const Row& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        absl::StrAppend(&line, i == 0 ? "  " : "  ", row[i]);
        if (i + 1 < row.size()) {
          line.append(widths[i] - std::min(widths[i], Width(row[i])), ' ');
        }
      }
      absl::StrAppend(&text, line.substr(0, line.find_last_not_of(' ') + 1),
                      "\n");
    }
    return text;
  }

 private:
  // Characters, not bytes.
  static size_t Width(absl::string_view text) {
    return static_cast<size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  }

  std::vector<Row> rows_;
};

class DictTable {
 public:
  explicit DictTable(const TextOptions& options) : options_(options) {
    Table::Row heads = {"key", "dtype", "shape", "bytes"};
    if (options.values) {
      heads.insert(heads.end(), {"min", "max", "mean", "NaN", "first"});
    }
    table_.Add(std::move(heads));
  }

  absl::Status Level(const TensorDict& dict, const std::string& prefix) {
    for (const std::string& name : dict.Keys()) {
      is_empty_ = false;
      RILL_RETURN_IF_ERROR(Entry(dict, name, absl::StrCat(prefix, name)));
    }
    return absl::OkStatus();
  }

  // All members, as "key[0]/...".
  absl::Status Members(const std::string& key, const LazyStack& stack) {
    for (int64_t i = 0; i < stack.size(); ++i) {
      RILL_RETURN_IF_ERROR(Level(stack.members()[static_cast<size_t>(i)],
                                 absl::StrCat(key, "[", i, "]/")));
    }
    return absl::OkStatus();
  }

  std::string Text() const { return is_empty_ ? "" : table_.Text(); }

 private:
  absl::Status Entry(const TensorDict& dict, const std::string& name,
                     const std::string& key) {
    switch (*dict.Kind(name)) {
      case EntryKind::kTensor: {
        const Tensor& leaf = *dict.Find(name);
        return Elements(key, "", leaf.shape().ToString(), leaf);
      }
      case EntryKind::kDict: {
        const TensorDict& inner = *dict.FindDict(name);
        // Else its leaves show it, and its batch shape is that of this one.
        if (inner.empty() || inner.batch_shape() != dict.batch_shape()) {
          table_.Add({key + "/", "", inner.batch_shape().ToString(), "",
                      "a dictionary of this batch shape"});
        }
        return Level(inner, absl::StrCat(key, "/"));
      }
      case EntryKind::kNonTensor: {
        RILL_ASSIGN_OR_RETURN(const NonTensor value, dict.GetNonTensor(name));
        Json(key, "", value.json);
        return absl::OkStatus();
      }
      case EntryKind::kNonTensorStack: {
        RILL_ASSIGN_OR_RETURN(const NonTensorStack stack,
                              dict.GetNonTensorStack(name));
        Json(key, stack.shape().ToString(), absl::StrJoin(stack.values(), " "));
        return absl::OkStatus();
      }
      case EntryKind::kLazyStack: {
        RILL_ASSIGN_OR_RETURN(const LazyStack stack, dict.GetLazyStack(name));
        table_.Add(
            {key + "[]", "", stack.batch_shape().ToString(), "",
             absl::StrCat("a lazy stack along dimension ", stack.stack_dim())});
        return Members(key, stack);
      }
      case EntryKind::kRagged:
        break;
    }
    RILL_ASSIGN_OR_RETURN(const RaggedTensor rows, dict.GetRagged(name));
    return Elements(key, "ragged ", Counted(rows.num_rows(), "row"),
                    rows.values());
  }

  void Json(const std::string& key, std::string shape, std::string json) {
    table_.Add({key, "JSON", std::move(shape), absl::StrCat(json.size()),
                Shortened(std::move(json))});
  }

  absl::Status Elements(const std::string& key, absl::string_view kind,
                        std::string shape, const Tensor& elements) {
    Table::Row row = {key, absl::StrCat(kind, DTypeName(elements.dtype())),
                      std::move(shape), absl::StrCat(elements.size_bytes())};
    if (options_.values) {
      RILL_ASSIGN_OR_RETURN(const Summary summary, Summarize(elements));
      row.insert(row.end(), {summary.min, summary.max, summary.mean,
                             absl::StrCat(summary.nans), summary.first});
    }
    table_.Add(std::move(row));
    return absl::OkStatus();
  }

  const TextOptions& options_;
  Table table_;
  bool is_empty_ = true;
};

std::string Number(double value) { return absl::StrFormat("%.6g", value); }

std::string Of(const Spread& spread) {
  return absl::StrCat("min ", Number(spread.min), ", mean ",
                      Number(spread.mean()), ", max ", Number(spread.max));
}

// One a lane, shortened.
std::string Lanewise(const std::vector<int64_t>& values) {
  constexpr size_t kShown = 8;
  std::string text = absl::StrJoin(
      values.begin(), values.begin() + std::min(values.size(), kShown), " ");
  return values.size() > kShown ? text + " ..." : text;
}

std::string EpisodesText(const Episodes& episodes) {
  const Spread& lengths = episodes.lengths;
  std::string text = absl::StrCat(lengths.count, " complete");
  if (lengths.count > 0 && lengths.min == lengths.max) {
    absl::StrAppend(&text, " of ",
                    Counted(static_cast<int64_t>(lengths.min), "step"));
  } else if (lengths.count > 0) {
    absl::StrAppend(&text, " of ", Number(lengths.min), " to ",
                    Number(lengths.max), " steps (mean ",
                    Number(lengths.mean()), ")");
  }
  return absl::StrCat(text, ", ", episodes.partial, " begun or cut");
}

// The answers to what a user asks first.
std::string FactsText(const Saved& saved) {
  Table table;
  if (saved.facts) {
    const Facts& facts = *saved.facts;
    std::string rows = facts.written.empty()
                           ? std::string("unknown")
                           : absl::StrCat(facts.live(), " live");
    if (facts.lanes.capacity > 0) {
      absl::StrAppend(&rows, " of ", Counted(facts.lanes.num_slots(), "slot"),
                      " in ", Counted(facts.lanes.count, "lane"));
    }
    table.Add({"rows", rows});
    if (!facts.written.empty()) {
      table.Add({"cursors", absl::StrCat(Lanewise(facts.written),
                                         " steps appended, oldest live ",
                                         Lanewise(facts.oldest))});
    }
    if (!facts.writer.empty()) {
      table.Add({"writer", absl::StrCat(facts.writer, " has it open")});
    }
    // The lines below are then of a part of the rows only, and say so.
    if (facts.rows_read > 0 && facts.rows_read < facts.live()) {
      table.Add(
          {"looked at", absl::StrCat("the newest ", facts.rows_read,
                                     " rows for what follows; --all for all")});
    }
    if (facts.episodes) {
      table.Add({"episodes", EpisodesText(*facts.episodes)});
      if (facts.episodes->returns && facts.episodes->returns->count > 0) {
        table.Add({"returns", Of(*facts.episodes->returns)});
      }
    }
    if (facts.priorities) {
      const Spread& of = *facts.priorities;
      table.Add({"priorities", of.count == 0 ? std::string("none")
                                             : absl::StrCat(Of(of), ", total ",
                                                            Number(of.total))});
    }
    if (facts.live() > 0) {
      table.Add({"age", absl::StrCat("oldest row ",
                                     Counted(facts.age(), "step"), " back")});
      if (facts.policy_versions) {
        const auto& [first, last] = *facts.policy_versions;
        table.Add({"policy", absl::StrCat("versions ", first, " to ", last)});
      }
    }
  }
  for (const std::string& text : saved.damage) table.Add({"damaged", text});
  return table.Text();
}

// The leaves of the rows; without any, nothing.
std::string LeavesText(const Facts& facts) {
  if (facts.leaves.empty()) return "";
  Table table;
  table.Add({"key", "dtype", "shape", "min", "max", "NaN"});
  for (const LeafFacts& leaf : facts.leaves) {
    table.Add({leaf.key, leaf.dtype, leaf.shape, leaf.min, leaf.max,
               absl::StrCat(leaf.nans)});
  }
  return absl::StrCat(
      "leaves of ",
      facts.leaf_rows < facts.live()
          ? absl::StrCat("the newest ", facts.leaf_rows, " rows; --all for all")
          : absl::StrCat("all ", Counted(facts.leaf_rows, "row")),
      ":\n", table.Text());
}

std::string TorchRlText(const TorchRlReplayBuffer& buffer) {
  Table table;
  table.Add({"sampler", SamplerText(buffer)});
  table.Add({"batch_size", buffer.batch_size ? absl::StrCat(*buffer.batch_size)
                                             : std::string("none")});
  table.Add({"writer", absl::StrCat("cursor ", buffer.cursor, ", ",
                                    buffer.write_count, " written")});
  return table.Text();
}

void AddFiles(const Saved& saved, Table* table) {
  for (const auto& [name, bytes] : saved.files) {
    table->Add({name, "", Counted(bytes, "byte")});
  }
}

absl::StatusOr<std::string> DictText(const Saved& saved, absl::string_view path,
                                     const TextOptions& options) {
  const TensorDict& dict = saved.dict;
  std::string text =
      absl::StrCat(OneLine(path), ": ", FormName(saved.form), ", ");
  DictTable table(options);
  if (saved.stack) {
    absl::StrAppend(&text, "lazy stack of batch ",
                    saved.stack->batch_shape().ToString(), " along dimension ",
                    saved.stack->stack_dim(), "\n");
    RILL_RETURN_IF_ERROR(table.Members("", *saved.stack));
  } else if (saved.form == Form::kTorchRl && !saved.torchrl) {
    Table files;
    AddFiles(saved, &files);
    return absl::StrCat(text, "damaged\n", FactsText(saved), files.Text());
  } else {
    absl::StrAppend(&text, "batch ", dict.batch_shape().ToString(), ", ",
                    Counted(dict.num_leaves(), "tensor"), ", ",
                    Counted(dict.size_bytes(), "byte"), "\n");
    if (saved.torchrl) {
      absl::StrAppend(&text, FactsText(saved), TorchRlText(*saved.torchrl));
    }
    RILL_RETURN_IF_ERROR(table.Level(dict, ""));
  }
  text += table.Text();
  for (const RefusedEntry& entry : saved.refused) {
    absl::StrAppend(&text, "  refused: ", OneLine(entry.key), ": ",
                    OneLine(entry.reason), "\n");
  }
  return text;
}

absl::StatusOr<std::string> RillText(const Saved& saved, absl::string_view path,
                                     const TextOptions& options) {
  std::string text =
      absl::StrCat(OneLine(path), ": ", FormName(saved.form), ", kind ",
                   OneLine(saved.manifest.kind), ", version ",
                   saved.manifest.version, "\n", FactsText(saved));
  Table table;
  const bool has_leaves = saved.facts && !saved.facts->leaves.empty();
  if (has_leaves) {
    absl::StrAppend(&text, LeavesText(*saved.facts), "fields and files:\n");
  }
  for (const auto& [name, value] : saved.manifest.fields) {
    // The table of leaves says what the spec says, and in full.
    if (has_leaves && name == "spec") continue;
    table.Add({name, "=", Shortened(value)});
  }
  AddFiles(saved, &table);
  text += table.Text();
  // Parts follow one below the other under whole paths, however deep they are.
  for (const auto& [name, part] : saved.parts) {
    RILL_ASSIGN_OR_RETURN(const std::string below,
                          TextReport(part, JoinPath(path, name), options));
    absl::StrAppend(&text, "\n", below);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> TextReport(const Saved& saved,
                                       absl::string_view path,
                                       const TextOptions& options) {
  return saved.form == Form::kRill ? RillText(saved, path, options)
                                   : DictText(saved, path, options);
}

std::string OneLine(absl::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      absl::StrAppendFormat(&line, "\\x%02x", byte);
    } else {
      line.push_back(c);
    }
  }
  return line;
}

}  // namespace rill::inspect
