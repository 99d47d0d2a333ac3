#pragma once
// What the daemon does about budgets and grants, in virtual time: it keeps the use of each period from the durable log,
// and says which marks were passed (billing/budget_marks.h). A period is billed as a whole, where the daemon adds up
// the bills of its months, so money may differ by a millionth for each rounded group of lines.

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/month.h"
#include "state/state.h"
#include "store/log.h"

namespace berth::sim {

class Budgets {
 public:
  Budgets();
  ~Budgets();
  Budgets(const Budgets&) = delete;
  Budgets& operator=(const Budgets&) = delete;
  // Returns the marks that differ from the last ones. Requires: the state has folded all of the log.
  Result<std::vector<BudgetMarked>> look(const state::State& durable, const store::Log& log, Timestamp now);

 private:
  struct Period;
  Result<Period*> read(const Month& span, const state::State& durable, const store::Log& log);

  std::map<std::pair<Timestamp, Timestamp>, std::unique_ptr<Period>> periods_;
};

}  // namespace berth::sim
