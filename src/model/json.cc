#include "model/json.h"

#include "model/json_fields.h"

namespace berth {

#define BERTH_JSON(T)                               \
  template boost::json::value to_json<T>(const T&); \
  template Result<T> from_json<T>(const boost::json::value&, std::string_view)

BERTH_JSON(ClusterConfig);
BERTH_JSON(QueueConfig);
BERTH_JSON(PoolConfig);
BERTH_JSON(GpuModelConfig);
BERTH_JSON(PriorityClassConfig);
BERTH_JSON(SchedulingConfig);
BERTH_JSON(ResourceAmounts);
BERTH_JSON(Amounts);
BERTH_JSON(QuotaAmounts);
BERTH_JSON(NodeSpec);
BERTH_JSON(Gpu);
BERTH_JSON(JobSpec);
BERTH_JSON(TaskGroup);
BERTH_JSON(TaskRequest);
BERTH_JSON(TaskPlacement);
BERTH_JSON(Event);

#undef BERTH_JSON

boost::json::object event_json(const EventRecord& record) {
  boost::json::object object;
  object.emplace("seq", record.seq);
  object.emplace("time", json_detail::write(record.time));
  object.emplace("kind", boost::json::string(kind_name(record.event)));
  std::visit([&](const auto& one) { json_detail::write_fields(one, object); }, record.event);
  if (!record.by.empty()) object.emplace("by", json_detail::write(record.by));
  return object;
}

Result<EventRecord> event_from_json(const boost::json::value& json) {
  json_detail::Reader reader("");
  EventRecord record;
  if (!json.is_object()) return invalid("an event is an object");
  const auto& object = json.get_object();
  if (!object.contains("seq") || !object.contains("time")) return invalid("an event has seq and time");
  if (!reader.read(object.at("seq"), record.seq)) return invalid("seq of " + reader.error());
  if (!reader.read(object.at("time"), record.time)) return invalid("time of " + reader.error());
  if (const auto* by = object.if_contains("by"); by != nullptr && !reader.read(*by, record.by))
    return invalid("by of " + reader.error());
  if (!reader.read_choice(object, record.event, {"seq", "time", "kind", "by"})) return invalid(reader.error());
  return record;
}

}  // namespace berth
