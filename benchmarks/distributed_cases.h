// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_BENCHMARKS_DISTRIBUTED_CASES_H_
#define RILL_BENCHMARKS_DISTRIBUTED_CASES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"

// Shared by the programs of benchmarks/distributed, one an engine: each
// measures Rill over that engine, or the engine alone.
namespace rill {

// Exchanges of rows of one size. An exchange is a request and its reply, and
// the rows are in one of them, or in both (kCall).
struct DistributedCase {
  enum Kind { kInsert, kSample, kCall };

  const char* name;
  Kind kind;
  int64_t pixels;  // Bytes of a row beside the 47 of its other leaves.
  int64_t rows;    // Of an exchange.
  int64_t ahead;   // Requests without a reply.
};
absl::Span<const DistributedCase> DistributedCases();

// Rill's tables have as many, and so does BareTable.
inline constexpr int64_t kTableRows = 16 * 256;

// The table of a program without Rill, which copies drawn rows from it before
// they are sent, and received ones into it. A row is one block of bytes, of any
// value.
class BareTable {
 public:
  explicit BareTable(int64_t row_bytes)
      : row_bytes_(static_cast<size_t>(row_bytes)),
        bytes_(row_bytes_ * kTableRows, 1) {}

  // Random ones, one behind the other.
  void Draw(int64_t rows, void* to);
  // Over the oldest ones.
  void Write(int64_t rows, const void* from);

 private:
  const size_t row_bytes_;
  std::vector<char> bytes_;
  std::minstd_rand random_;
  size_t next_ = 0;
};

// The rows of one exchange.
absl::StatusOr<TensorDict> MakeRows(const DistributedCase& of);

// Makes as many exchanges; all replies are there when it returns.
using RunExchanges = std::function<absl::Status(int64_t exchanges)>;
using OpenCase =
    absl::FunctionRef<absl::StatusOr<RunExchanges>(const DistributedCase&)>;

// Prints a line a case: its name, seconds an exchange, and bytes of its rows,
// with tabs between.
absl::Status MeasureCases(bool is_quick, OpenCase open);

// The sides of a program's command line.
inline constexpr char kBareSide[] = "bare";    // The same rows every time.
inline constexpr char kTableSide[] = "table";  // Bare, and a BareTable.
inline constexpr char kRillSide[] = "rill";
// The main of these programs: a side, one of `others` too, and perhaps --quick.
int SideMain(
    int argc, char** argv, const std::vector<absl::string_view>& others,
    absl::FunctionRef<absl::Status(absl::string_view side, bool is_quick)> run);

// The service of Rill's server: a table for each size of rows, and an echo.
absl::StatusOr<std::shared_ptr<Service>> MakeCasesService();
// MeasureCases by Rill's clients; then lines of two columns, with the share of
// its time for which a learner waits.
absl::Status MeasureRill(bool is_quick, std::shared_ptr<Transport> transport,
                         const std::string& address);

}  // namespace rill

#endif  // RILL_BENCHMARKS_DISTRIBUTED_CASES_H_
