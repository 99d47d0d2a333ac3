// Simulates a cluster with queues, prices that change, MIG, growth, preemption, lost nodes and restarts, and writes
// what a program that shares no code with berth needs to bill it again, and the invoice to compare with:
//   DIR/events.jsonl   the events, one JSON object a line, as `berth events -o json` shows them
//   DIR/invoice.txt    the invoice as canonical text (billing/invoice.h)
//   DIR/invoice.journal   the same for hledger
// Usage: export_month SEED STEPS DIR [BEGIN]    with BEGIN, a time, the simulation is moved so that it begins then

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "base/check.h"
#include "billing/ledger.h"
#include "billing/rate.h"
#include "billing/render.h"
#include "model/json.h"
#include "sim/world/simulation.h"
#include "store/event_codec.h"
#include "timezone/time_zones.h"

namespace {

using namespace berth;

std::vector<EventRecord> simulated_events(std::uint64_t seed, std::uint64_t steps) {
  sim::SimulationShape shape;
  shape.most_nodes = 40;
  shape.most_queues = 100;
  shape.live_jobs = 120;
  sim::Simulation simulation(seed, shape);
  while (simulation.steps() < steps && !simulation.violation()) simulation.step();
  BERTH_CHECK(!simulation.violation());
  std::vector<EventRecord> events;
  const auto read = simulation.world().log().read(1, [&](const store::Record& record) -> Result<bool> {
    events.push_back(*store::to_event(record));
    return true;
  });
  BERTH_CHECK(read.has_value());
  return events;
}

// Every model that was ever there, with prices that leave remainders everywhere.
PriceBook prices_for(const std::vector<EventRecord>& events, Timestamp change) {
  std::set<std::string> models;
  std::set<std::string> profiles;
  for (const EventRecord& record : events) {
    if (const auto* node = std::get_if<NodeRegistered>(&record.event)) {
      for (const Gpu& gpu : node->spec.gpus) models.insert(gpu.model);
    } else if (const auto* job = std::get_if<JobSubmitted>(&record.event)) {
      for (const TaskGroup& group : job->spec.groups) profiles.insert(group.request.mig_profile);
    }
  }
  profiles.erase("");
  if (!profiles.empty()) profiles.erase(profiles.begin());  // one costs its part of the GPU
  PriceBook book{"EUR", {}};
  for (const std::int64_t later : {0, 1}) {
    PricePeriod& period = book.periods.emplace_back();
    period.valid_from = later == 0 ? Timestamp{0} : change;
    std::int64_t rank = 0;
    for (const std::string& model : models) {
      GpuPrice price{model, 1'333'300 + 700'100 * rank + 1'300 * later, 2'111'100 + 900'700 * rank, {}};
      for (const std::string& profile : profiles) price.mig_micro.emplace_back(profile, 377'700 + 100 * rank);
      period.gpus.push_back(std::move(price));
      ++rank;
    }
    period.cpu_micro = 20'300;
    period.memory_micro = 3'100;
    period.lending_credit_percent = 60 - 7 * later;
    period.adjustments = {{AdjustmentCause::kExclusive, 11},
                          {AdjustmentCause::kRequiredTopology, 5},
                          {AdjustmentCause::kBatch, -17},
                          {AdjustmentCause::kInference, 3}};
    // In Paris the hour from 02:00 on is there twice, or not at all; and the edges are no full hours.
    period.off_peak = {{{}, 2 * 60 + 10, 2 * 60 + 50, "Europe/Paris", 30 + later},
                       {{Weekday::kSunday, Weekday::kThursday}, 3 * 60 + 5, 90, "Europe/Paris", 13},
                       {{}, 14 * 60, 14 * 60 + 20, "Australia/Lord_Howe", 7}};
    period.quantities = {{"egress", "GiB", 51'300 + later}, {"storage", "GiB-hours", 137 + later}};
  }
  for (const char* zone : {"Australia/Lord_Howe", "Europe/Paris"}) {
    const auto found = timezone::zone_of(zone);
    BERTH_CHECK(found.has_value());
    book.zones.push_back(*found);
  }
  return book;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  BERTH_CHECK(file.good());
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = argc == 5 ? from_iso8601(argv[4]) : Timestamp{0};
  if ((argc != 4 && argc != 5) || !begin) {
    std::cerr << "usage: export_month SEED STEPS DIR [BEGIN]\n";
    return 2;
  }
  std::vector<EventRecord> events =
      simulated_events(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10));
  for (EventRecord& event : events) event.time = event.time + begin->ms;
  const std::filesystem::path directory(argv[3]);
  // Prices that are applied at the end hold from their dates on; and a refund, by an event of its own.
  const Timestamp until = events.back().time + 3;
  const PriceBook book = prices_for(events, Timestamp{(events.front().time.ms + until.ms) / 2});
  events.push_back({events.back().seq + 1, events.back().time + 1, PricesApplied{book, 1, "op"}});
  const Timestamp begin_of_month = *begin;
  const std::string some_queue = [&] {
    for (const EventRecord& record : events)
      if (const auto* job = std::get_if<JobSubmitted>(&record.event)) return job->spec.queue;
    return std::string();
  }();
  events.push_back({events.back().seq + 1, events.back().time + 1,
                    QuantityReported{"r-1", some_queue, "storage", "GiB-hours", 12'345'678, begin_of_month,
                                     begin_of_month + 1, "op"}});
  events.push_back({events.back().seq + 1, events.back().time,
                    QuantityReported{"r-2", some_queue, "egress", "GiB", 7, events.back().time, until, "op"}});
  events.push_back({events.back().seq + 1, events.back().time,
                    QuantityReported{"of the month before", some_queue, "egress", "GiB", 9,
                                     Timestamp{begin_of_month.ms - 2}, Timestamp{begin_of_month.ms - 1}, "op"}});
  events.push_back({events.back().seq + 1, events.back().time,
                    BillCorrected{some_queue, "1969-12", JobId::none(), -1'234'567, "a node was lost", "op"}});
  const Month month{month_at(*begin).name, *begin, until};  // as long as the simulation was
  billing::Ledger ledger(billing::window_of(month, book));
  std::string lines;
  for (const EventRecord& record : events) {
    ledger.apply(record);
    BERTH_CHECK(!ledger.check());
    lines += boost::json::serialize(event_json(record)) + "\n";
  }
  ledger.advance(until);
  const auto invoice = billing::make_invoice(ledger, {"", month, book, 1});
  BERTH_CHECK(invoice.has_value());
  write(directory / "events.jsonl", lines);
  write(directory / "invoice.txt", billing::canonical_text(*invoice));
  write(directory / "invoice.journal", billing::invoice_journal(*invoice));
  return 0;
}
