#include "api/routes/job_list.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>

#include "model/queue_path.h"

namespace berth::api {
namespace {

using state::JobState;
using state::State;

constexpr std::size_t kHistoryPage = 200;
constexpr std::size_t kHistoryRowsPerCall = 2000;  // looked at for one answer; the cursor goes on from there

bool ran_on(const JobState& job, NodeId node) {
  return std::any_of(job.past.begin(), job.past.end(), [&](const state::AttemptRecord& record) {
    return std::any_of(record.gpus_on.begin(), record.gpus_on.end(),
                       [&](const auto& place) { return place.first == node; });
  });
}

bool runs_on(const JobState& job, NodeId node) {
  return job.attempt && std::any_of(job.attempt->tasks.begin(), job.attempt->tasks.end(),
                                    [&](const state::TaskState& task) { return task.placement.node == node; });
}

// What live and finished jobs are asked alike. `queue`: that of the job, as it is called now.
bool matches(const JobFilter& filter, const JobState& job, const std::string& queue) {
  if (filter.visible && !filter.visible(queue, job.spec.user)) return false;
  if (!filter.queue.empty() && !is_at_or_below(queue, filter.queue) && !is_at_or_below(job.spec.queue, filter.queue))
    return false;
  if (!filter.user.empty() && job.spec.user != filter.user) return false;
  if (!filter.name.empty() && job.spec.name != filter.name) return false;
  if (filter.kind && job.spec.kind != *filter.kind) return false;
  if (filter.until && job.submitted >= *filter.until) return false;
  const Labels& labels = job.spec.labels;
  const bool has_labels = std::all_of(filter.labels.begin(), filter.labels.end(), [&](const auto& wanted) {
    return std::find(labels.begin(), labels.end(), wanted) != labels.end();
  });
  return has_labels && (!filter.parent || job.parent == *filter.parent);
}

struct Key {
  std::int64_t number = 0;
  std::string_view text;
  std::uint64_t id = 0;
  auto tie() const { return std::tie(number, text, id); }
};

Key key_of(const JobState& job, JobSort sort) {
  const std::uint64_t id = job.id.value();
  switch (sort) {
    case JobSort::kId:
      return {0, {}, id};
    case JobSort::kSubmitted:
      return {job.submitted.ms, {}, id};
    case JobSort::kPriority:
      return {job.priority, {}, id};
    case JobSort::kQueue:
      return {0, job.spec.queue, id};
    case JobSort::kUser:
      return {0, job.spec.user, id};
    case JobSort::kGpus:
      return {gpu_milli_of(job.spec), {}, id};
  }
  return {};
}

struct Found {
  Key key;
  const JobState* job = nullptr;
};

// The first `limit + 1` jobs behind the position, in order: one more than asked tells whether there are more.
std::vector<Found> first_live(const State& state, const JobQuery& query) {
  const auto before = [&](const Key& a, const Key& b) {
    return query.descending ? b.tie() < a.tie() : a.tie() < b.tie();
  };
  const auto by_key = [&](const Found& a, const Found& b) { return before(a.key, b.key); };
  const state::NodeState* node = query.filter.node.empty() ? nullptr : state.node_named(query.filter.node);
  if (node == nullptr && !query.filter.node.empty()) return {};
  std::optional<Key> after;
  if (query.after) after = Key{query.after->number, query.after->text, query.after->id};
  std::vector<Found> heap;
  state.jobs().for_each([&](const JobState& job) {
    const Key key = key_of(job, query.sort);
    if (after && !before(*after, key)) return;
    if (heap.size() > query.limit && !before(key, heap.front().key)) return;
    if (!matches(query.filter, job, job.spec.queue) || (node != nullptr && !runs_on(job, node->id))) return;
    if (query.filter.phase && phase_of(state, job) != *query.filter.phase) return;
    heap.push_back({key, &job});
    std::push_heap(heap.begin(), heap.end(), by_key);
    if (heap.size() > query.limit + 1) {
      std::pop_heap(heap.begin(), heap.end(), by_key);
      heap.pop_back();
    }
  });
  std::sort_heap(heap.begin(), heap.end(), by_key);
  return heap;
}

JobPosition start_of_history() {
  JobPosition position;
  position.in_history = true;
  position.before = std::numeric_limits<std::int64_t>::max();
  return position;
}

void add_live(const View& view, const JobQuery& query, JobPage& page) {
  std::vector<Found> found = first_live(view.state, query);
  const bool more = found.size() > query.limit;
  if (more) found.pop_back();
  for (const Found& one : found) page.jobs.push_back(show_row(view, *one.job));
  if (more) {
    const Key& last = found.back().key;
    page.next = JobPosition{.number = last.number, .text = std::string(last.text), .id = last.id};
  } else if (query.finished) {
    page.next = start_of_history();
  }
}

// Fills the page from history behind its position, as far as one call may look.
Result<void> add_finished(Service& service, const JobQuery& query, std::optional<NodeId> node, JobPage& page) {
  std::uint64_t before = page.next->before;
  std::vector<PastJob> found;
  const std::size_t room = query.limit - page.jobs.size();
  bool more = true;
  std::map<std::string, std::string> renamed;
  service.read([&](const View& view) {
    for (const auto& [path, unused] : view.state.former_paths()) renamed[path] = view.state.present_path(path);
  });
  const auto queue_of = [&](const PastJob& row) {  // as it is called now: whose rights count
    const auto found_name = renamed.find(row.job.spec.queue);
    return found_name == renamed.end() ? row.job.spec.queue : found_name->second;
  };
  for (std::size_t seen = 0; more && found.size() < room && seen < kHistoryRowsPerCall;) {
    auto rows = service.history(before, kHistoryPage);
    if (!rows) return rows.error();
    more = rows->size() == kHistoryPage;
    for (PastJob& row : *rows) {
      if (found.size() == room) {
        more = true;
        break;
      }
      if (query.filter.since && row.finished < *query.filter.since) {
        more = false;  // the history is in the order in which jobs finished
        break;
      }
      before = row.cursor;
      ++seen;
      if (matches(query.filter, row.job, queue_of(row)) && (!node || ran_on(row.job, *node)))
        found.push_back(std::move(row));
    }
  }
  page.next->before = before;
  if (!more) page.next.reset();
  service.read([&](const View& view) {
    for (PastJob& row : found) page.jobs.push_back(show_past_job(view.state, std::move(row)));
  });
  return {};
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4U];
    text += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (error != std::errc() || end != text.data() + i + 2) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string sorting_word(JobSort sort, bool descending) { return (descending ? "-" : "") + std::string(name_of(sort)); }

// Takes the text up to the next space.
std::string_view take_word(std::string_view& rest) {
  const std::size_t space = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, space);
  rest.remove_prefix(std::min(space + 1, rest.size()));
  return word;
}

template <class Integer>
bool take_number(std::string_view& rest, Integer& number) {
  const std::string_view word = take_word(rest);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

}  // namespace

Result<JobPage> list_jobs(Service& service, const JobQuery& query) {
  JobPage page;
  std::optional<NodeId> node;
  const bool begins_in_history = !query.live || (query.after && query.after->in_history);
  service.read([&](const View& view) {
    page.seq = view.state.last_seq();
    page.time = view.now;
    if (const auto* named = view.state.node_named(query.filter.node)) node = named->id;
    if (!begins_in_history) add_live(view, query, page);
  });
  if (begins_in_history) page.next = query.after ? *query.after : start_of_history();
  const bool node_is_unknown = !query.filter.node.empty() && !node;
  if (page.next && page.next->in_history) {
    if (!query.finished || node_is_unknown) {
      page.next.reset();
    } else if (auto added = add_finished(service, query, node, page); !added) {
      return added.error();
    }
  }
  return page;
}

std::string encode_cursor(const JobPosition& position, JobSort sort, bool descending) {
  if (position.in_history) return to_hex("finished " + std::to_string(position.before));
  return to_hex(sorting_word(sort, descending) + " " + std::to_string(position.number) + " " +
                std::to_string(position.id) + " " + position.text);
}

Result<JobPosition> decode_cursor(const std::string& text, JobSort sort, bool descending) {
  const Error refusal = invalid("cursor is not one that this list gave out; begin again without it");
  const auto bytes = from_hex(text);
  if (!bytes) return refusal;
  std::string_view rest = *bytes;
  JobPosition position;
  const std::string_view word = take_word(rest);
  if (word == "finished") {
    position.in_history = true;
    if (!take_number(rest, position.before) || !rest.empty()) return refusal;
    return position;
  }
  if (word != sorting_word(sort, descending)) return invalid("cursor belongs to another sorting; keep sort as it was");
  if (!take_number(rest, position.number) || !take_number(rest, position.id)) return refusal;
  position.text = rest;
  return position;
}

}  // namespace berth::api
