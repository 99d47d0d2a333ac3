// The view of why a job waits.

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "api/routes/views.h"
#include "model/why_answer.h"

namespace berth::api {
namespace {

namespace json = boost::json;

json::object line_view(const WhyAnswer::Line& line) {
  return {
      {"number", line.number}, {"exact", line.exact}, {"can_start_before", line.can_start_before}, {"text", line.text}};
}

json::object start_view(const WhyAnswer::Start& start) {
  json::object view{{"bound", json::string(name_of(start.bound))}, {"text", start.text}};
  if (start.at) view["at"] = to_iso8601(*start.at);
  return view;
}

}  // namespace

json::object why_view(const WhyAnswer& answer, JobPhase phase) {
  json::object view{{"id", answer.job.value()},
                    {"phase", json::string(name_of(phase))},
                    {"code", json::string(name_of(answer.code))},
                    {"never", answer.never},
                    {"headline", answer.headline},
                    {"quota", answer.quota},
                    {"preemption", answer.preemption},
                    {"details", json::array(answer.details.begin(), answer.details.end())}};
  if (answer.line) view["line"] = line_view(*answer.line);
  if (answer.start) view["start"] = start_view(*answer.start);
  json::array remedies;
  for (const WhyAnswer::Remedy& remedy : answer.remedies) {
    json::object one{{"kind", remedy.kind},
                     {"by", json::string(name_of(remedy.by))},
                     {"taken", remedy.taken},
                     {"text", remedy.text}};
    if (!remedy.patch.empty()) one["patch"] = json::parse(remedy.patch);
    remedies.push_back(std::move(one));
  }
  view["remedies"] = std::move(remedies);
  return view;
}

}  // namespace berth::api
