#include "billing/invoice.h"

namespace berth::billing {
namespace {

// Tabs and ends of lines cannot be part of a field; names have none, and notes are one line.
class Row {
 public:
  explicit Row(std::string& text) : text_(text) {}
  ~Row() { text_.back() = '\n'; }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  Row& add(std::string_view field) {
    for (const char c : field) text_.push_back(c == '\t' || c == '\n' ? ' ' : c);
    text_.push_back('\t');
    return *this;
  }
  Row& add(std::int64_t number) { return add(std::string_view(std::to_string(number))); }
  Row& add(Timestamp time) { return add(time.ms); }

 private:
  std::string& text_;
};

void add_line(std::string& text, const InvoiceLine& line) {
  Row row(text);
  row.add("line").add(line.queue).add(name_of(line.kind)).add(line.cause).add(line.model).add(line.slice);
  row.add(line.borrower).add(line.user).add(line.job.valid() ? std::to_string(line.job.value()) : std::string());
  row.add(line.job_name).add(name_of(line.job_class));
  std::string labels;
  for (const auto& [key, value] : line.labels) labels += (labels.empty() ? "" : ",") + key + "=" + value;
  row.add(labels).add(line.from).add(line.to).add(unit_text(line)).add(line.quantity).add(line.gpu_milli_ms);
  row.add(line.unit_price_micro).add(line.amount_micro).add(line.note);
}

}  // namespace

std::string_view unit_text(const InvoiceLine& line) {
  return line.unit == Unit::kReported ? std::string_view(line.reported_unit) : name_of(line.unit);
}

std::string canonical_text(const Invoice& invoice) {
  std::string text;
  Row(text)
      .add("invoice")
      .add(invoice.month)
      .add(invoice.from)
      .add(invoice.to)
      .add(invoice.cluster)
      .add(invoice.queue)
      .add(invoice.currency)
      .add(static_cast<std::int64_t>(invoice.price_version))
      .add(static_cast<std::int64_t>(invoice.first_seq))
      .add(static_cast<std::int64_t>(invoice.last_seq))
      .add(invoice.simulated ? "simulated" : "")
      .add(invoice.total_micro);
  for (const InvoiceLine& line : invoice.lines) add_line(text, line);
  for (const FleetAccounts& one : invoice.fleet) {
    Row row(text);
    row.add("fleet")
        .add(one.model)
        .add(one.floor_used)
        .add(one.floor_idle)
        .add(one.floor_lent)
        .add(one.burst)
        .add(one.unowned)
        .add(one.drained)
        .add(one.failed)
        .add(one.capacity);
    if (one.foreign != 0) row.add(one.foreign);
  }
  return text;
}

}  // namespace berth::billing
